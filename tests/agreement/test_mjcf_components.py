"""What MJCF models have beside rigid bodies, against MuJoCo: joint forces, accelerations, constraints at positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from nori_dyn.model.closure import gap_rate, gaps
from nori_dyn.model.kinematics import positions, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.parts import parts_of
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Floats
from tests.oracles import derivative, newton_euler
from tests.peers import mujoco
from tests.robots import mujoco_state
from tests.systems import TORQUES, UNLOADED, sensor_set
from tests.tolerances import PEER, SOLVED, assert_close

GEOM = '<geom type="box" size=".1 .2 .3" pos=".1 .05 -.1" euler=".1 .2 .3"/>'

MIXED = f"""
<option gravity="0 1 -9"/> <compiler angle="radian"/>
<worldbody>
  <body name="base" pos="0.1 0.2 0.3" quat="0.9 0.1 0.3 -0.2"><joint type="free" damping="0.3"/>{GEOM}
    <site name="hook" pos="1 2 3"/> <site name="eye" pos="0.2 0.1 0" euler="0.3 0.2 0.1"/>
    <body name="a" pos="0 0 .5" euler=".3 0 0">
      <joint name="a1" type="hinge" axis="1 2 3" pos="0.1 -0.2 0.05" ref="0.4" armature="0.3" damping="0.7"
        stiffness="3" springref="0.2"/>
      <joint name="a2" type="slide" axis="0 1 1" pos="0.3 0 0" ref="-0.2" damping="0.7" stiffness="5"/>
      {GEOM}
      <body name="b" pos="0.5 0 0">
        <joint name="ball" type="ball" pos="0.1 0.1 0.1" armature="0.2" damping="0.4"/>{GEOM}
        <site name="ring" pos="0.1 0.2 0.3"/>
        <body name="c" pos="0.5 0 0"><joint name="c1" axis="0 1 0" ref="0.3" armature="0.3"/>{GEOM}
          <body name="d" pos="0 0.5 0"><joint name="d1" axis="1 1 0" pos="0 -0.1 0"/>{GEOM}
            <site pos="0.3 0.2 0.3"/><site name="tip" pos="0.3 0.2 0.3"/></body></body></body></body>
  </body>
</worldbody>
<tendon>
  <fixed name="belt" stiffness="4" damping="0.6" springlength="0.3">
    <joint joint="a1" coef="0.5"/><joint joint="c1" coef="-2"/></fixed>
  <fixed name="other"><joint joint="a2" coef="1.5"/><joint joint="c1" coef="0.1"/></fixed>
  <spatial name="rope" stiffness="6" damping="0.9" springlength="0.1">
    <site site="hook"/><site site="eye"/><site site="ring"/><site site="tip"/></spatial>
  <spatial name="tackle" stiffness="7"><pulley divisor="3"/><site site="hook"/><site site="ring"/></spatial>
</tendon>
"""

EQUALITIES = """
<equality>
  <connect name="pin" body1="a" body2="d" anchor="0.1 0.2 0.3"/>
  <connect name="to world" body1="c" anchor="0.1 -0.2 0.3"/>
  <connect name="sites" site1="eye" site2="tip"/>
  <weld name="glue" body1="d" body2="base" anchor="0.1 0.2 0.1" relpose="0.3 0.2 0.1 0.9 0.1 -0.2 0.3" torquescale="2"/>
  <weld name="site glue" site1="tip" site2="eye"/>
  <joint name="curve" joint1="c1" joint2="a1" polycoef="0.1 0.5 -0.3 0.2 0.05"/>
  <joint name="held" joint1="d1" polycoef="0.3 0 0 0 0"/>
  <tendon name="stiff belt" tendon1="belt" polycoef="0.2 0 0 0 0"/>
  <tendon name="two belts" tendon1="belt" tendon2="other" polycoef="0.2 0.7 0 0 0"/>
  <tendon name="rod" tendon1="rope" polycoef="0.05 0 0 0 0"/>
</equality>
"""

FINGERS = f"""
<default><joint armature="0.2" damping="0.5" frictionloss="0.02"/></default>
<worldbody>
  <body name="palm"><joint name="wrist" axis="0 1 0"/>{GEOM}
    <body name="one" pos="0.1 0 0"><joint name="one1" axis="0 0 1"/>{GEOM}
      <body name="tip" pos="0.1 0 0"><joint name="one2" axis="0 0 1"/>{GEOM}</body></body>
    <body name="two" pos="0 0.1 0"><joint name="two1" axis="0 1 1"/>{GEOM}</body>
  </body>
</worldbody>
<tendon><fixed name="flexor"><joint joint="one1" coef="1"/><joint joint="one2" coef="0.8"/></fixed></tendon>
"""


@pytest.fixture
def write(tmp_path):
    def write(content: str) -> Path:
        path = tmp_path / "model.xml"
        path.write_text(f'<mujoco model="test">{content}</mujoco>')
        return path

    return write


def agree_on_motion(tree: KinematicTree, model: mujoco.MjModel, seed: int, speed: float = 1.0) -> None:
    """Compare tau and qdd at random states with MuJoCo's, tau in MuJoCo's freedoms taken to ours."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    sets = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}
    solvers = {name: nd.plan(nd.System(tree, name), outputs=[output]).solver("numpy") for name, output in sets.items()}
    for _ in range(3):
        q = anywhere(tree, rng)
        qd, qdd = speed * rng.normal(size=tree.nv), rng.normal(size=tree.nv)
        data.qpos[:], data.qvel[:], data.qacc[:] = mujoco_state(tree, model, q, qd, qdd)
        mujoco.mj_inverse(model, data)
        truth = {"tau": freedoms(tree, model, q) @ data.qfrc_inverse, "qdd": qdd}
        known = {"inverse_dynamics": truth["qdd"], "forward_dynamics": truth["tau"]}
        for name, output in sets.items():
            assert_close(solvers[name].solve(q, qd, known[name])[output], truth[output], SOLVED)


def anywhere(tree: KinematicTree, rng: np.random.Generator) -> Floats:
    """A configuration at which constraints need not hold."""
    return np.concatenate([joint.random(rng) for joint in tree.joints])


def freedoms(tree: KinematicTree, model: mujoco.MjModel, q: Floats) -> Floats:
    """The matrix (nv, model.nv) whose transpose takes our velocities to MuJoCo's."""
    still = np.zeros(tree.nv)
    return np.array([mujoco_state(tree, model, q, qd, still)[1] for qd in np.eye(tree.nv)])


def accelerations(system: nd.System, q: Floats, qd: Floats, y: Floats) -> Floats:
    """The accelerations of the joints by which the equations hold."""
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, y))
    return np.concatenate([d[system.column("qdd", i)] for i in range(system.tree.n_links)])


def model_of(path: Path) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    return model


def test_motion_with_rotors_friction_springs_and_tendons(write):
    path = write(MIXED)
    tree = nd.load_mjcf(path)
    assert {c.type for c in tree.components} == {"rotor", "friction", "spring", "tendon"}
    agree_on_motion(tree, model_of(path), seed=1)
    bare = nd.load_mjcf(path, components=False)
    assert bare.components == ()
    assert "left out: armature, joint damping, joint stiffness, tendons" in bare.notes


def on_tendons(path: Path) -> tuple[KinematicTree, mujoco.MjModel, mujoco.MjData]:
    """A robot with motors on its tendons."""
    tree, model = nd.load_mjcf(path), model_of(path)
    components = [c.model_copy(update={"role": "actuated"}) if c.type == "tendon" else c for c in tree.components]
    return tree.replace(components=components), model, mujoco.MjData(model)


def test_lengths_speeds_and_moment_arms_of_tendons(write):
    tree, model, data = on_tendons(write(MIXED))
    lengths = [part.constraint for part in parts_of(tree) if part.unknowns]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, qd = anywhere(tree, rng), rng.normal(size=tree.nv)
        data.qpos[:], data.qvel[:], _ = mujoco_state(tree, model, q, qd, 0 * qd)
        mujoco.mj_forward(model, data)
        at = velocities(tree, q, qd)
        assert_close(np.concatenate([length.gap(at) + length.rest for length in lengths]), data.ten_length, PEER)
        assert_close(np.concatenate([length.speed(at) for length in lengths]), data.ten_velocity, PEER)
        arms = arms_of_tendons(model, data) @ freedoms(tree, model, q).T
        for length, expected in zip(lengths, arms, strict=True):
            rates = []
            for e in np.eye(tree.nv):
                motion = newton_euler(tree.replace(gravity=(0, 0, 0)), q, 0 * qd, e, np.zeros((tree.n_links, 6)))
                read = {VariableKey("a", i): motion.a[i] for i in range(tree.n_links)}
                read |= {VariableKey("qdd", i): e[s] for i, s in enumerate(tree.v_slices)}
                rates.append(sum((block @ read[key]).item() for key, block in length.rows(at).items()))
            assert_close(rates, expected, PEER)


def arms_of_tendons(model: mujoco.MjModel, data: mujoco.MjData) -> Floats:
    arms = np.zeros((model.ntendon, model.nv))
    for k, row in enumerate(arms):
        own = slice(model.ten_J_rowadr[k], model.ten_J_rowadr[k] + model.ten_J_rownnz[k])
        row[model.ten_J_colind[own]] = data.ten_J[own]
    return arms


def test_motors_that_pull_at_tendons(write):
    tree, model, data = on_tendons(write(MIXED))
    names = [c.name for c in tree.components if c.type == "tendon"]
    pulls = [{"type": "linear_relation", "name": x, "terms": {f"tendon:{x}": 1}, "value": None} for x in names]
    system = nd.System(tree, sensor_set(TORQUES, UNLOADED, *pulls))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, qd = anywhere(tree, rng), rng.normal(size=tree.nv)
        push, pull = 5 * rng.normal(size=model.nv), rng.normal(size=len(names))
        data.qpos[:], data.qvel[:], _ = mujoco_state(tree, model, q, qd, 0 * qd)
        mujoco.mj_fwdPosition(model, data)
        data.qfrc_applied[:] = push + arms_of_tendons(model, data).T @ pull
        mujoco.mj_forward(model, data)
        qdd = accelerations(system, q, qd, np.r_[freedoms(tree, model, q) @ push, pull])
        assert_close(mujoco_state(tree, model, q, qd, qdd)[2], data.qacc, SOLVED)


def test_friction_of_joints_that_move_fast(write):
    """MuJoCo's solver smooths the friction of slow joints in its own way; fast ones have all of it in both."""
    path = write(FINGERS)
    tree = nd.load_mjcf(path)
    (friction,) = (c for c in tree.components if c.type == "friction")
    assert (friction.coulomb, friction.viscous) == (0.02, 0.5)
    assert any("smoothly, over 0.001 rad/s" in note for note in tree.notes)
    fast = tree.replace(
        components=[c.model_copy(update={"width": 1e-9}) if c is friction else c for c in tree.components]
    )
    agree_on_motion(fast, model_of(path), seed=2, speed=30.0)


def single(tree: KinematicTree, name: str) -> KinematicTree:
    """A robot on which one constraint holds, and all that acts without one."""
    held = [c for c in tree.components if c.type in ("loop", "coupling") or getattr(c, "role", "") == "held"]
    return tree.replace(components=[c for c in tree.components if c not in held or c.name == name])


def test_constraints_of_any_configuration(write):
    """Gaps are of one size everywhere, and change alike."""
    for name in ("pin", "to_world", "sites", "curve", "held", "stiff_belt", "two_belts", "rod"):
        tree, model, q, data = constrained(write, name)
        at = positions(tree, q)
        assert_close(np.linalg.norm(gaps(at)), np.linalg.norm(data.efc_pos), PEER)
        J = data.efc_J.reshape(-1, model.nv) @ freedoms(tree, model, q).T
        assert_close(gap_rate(at).T @ gaps(at), J.T @ data.efc_pos, PEER)


def test_constraints_where_they_hold(write):
    """What is closed is closed there too, and the same motions are free."""
    for name in ("pin", "to_world", "sites", "glue", "site_glue", "curve", "stiff_belt", "rod"):
        tree, model, q, data = constrained(write, name, closed=True)
        assert np.abs(data.efc_pos).max() < 1e-8, name
        J = data.efc_J.reshape(-1, model.nv) @ freedoms(tree, model, q).T
        ours = gap_rate(positions(tree, q))
        assert len(ours) == len(J), name
        assert_close(np.linalg.pinv(ours) @ ours, np.linalg.pinv(J) @ J, SOLVED)


def constrained(write, name: str, closed: bool = False):
    """A robot with one constraint, MuJoCo's model with the same, a configuration, and MuJoCo's data there."""
    path = write(MIXED + EQUALITIES)
    tree = single(nd.load_mjcf(path), name)
    model = model_of(path)
    found = [model.equality(k).name.replace(" ", "_") for k in range(model.neq)]
    model.eq_active0[:] = [other == name for other in found]
    q = tree.random_configuration(5) if closed else anywhere(tree, np.random.default_rng(5))
    data = mujoco.MjData(model)
    data.qpos[:], _, _ = mujoco_state(tree, model, q, np.zeros(tree.nv), np.zeros(tree.nv))
    mujoco.mj_forward(model, data)
    return tree, model, q, data


@pytest.mark.parametrize(
    "name", ["pin", "to_world", "sites", "glue", "curve", "held", "stiff_belt", "two_belts", "rod"]
)
def test_motion_under_a_constraint(write, name):
    """What MuJoCo's rows and joint forces say together, where they hold without being soft."""
    tree, model, q, data = constrained(write, name, closed=True)
    rng = np.random.default_rng(6)
    q, qd = nd.tools.closed(tree, q, rng.normal(size=tree.nv))
    tau = rng.normal(size=tree.nv)

    def rows(t: float) -> Floats:
        there = tree.integrate(q, qd, t)
        data.qpos[:], _, _ = mujoco_state(tree, model, there, 0 * qd, 0 * qd)
        mujoco.mj_forward(model, data)
        return data.efc_J.reshape(-1, model.nv) @ freedoms(tree, model, there).T

    J, drift = rows(0.0), derivative(rows) @ qd
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)

    def forces(qdd: Floats) -> Floats:
        data.qpos[:], data.qvel[:], data.qacc[:] = mujoco_state(tree, model, q, qd, qdd)
        mujoco.mj_inverse(model, data)
        return freedoms(tree, model, q) @ data.qfrc_inverse

    bias = forces(0 * qd)
    H = np.array([forces(e) - bias for e in np.eye(tree.nv)]).T
    n = len(J)
    right = np.concatenate([tau - bias, -drift])
    expected = np.linalg.lstsq(np.block([[H, -J.T], [J, np.zeros((n, n))]]), right)[0][: tree.nv]
    system = nd.System(tree, "forward_dynamics")
    assert_close(accelerations(system, q, qd, tau), expected, SOLVED)


def test_locked_joints_take_their_components_along(write):
    path = write(MIXED + EQUALITIES)
    tree = nd.load_mjcf(path, locked={"a1": 0.3, "d1": 0.1})
    kinds = {c.name or c.type: c for c in tree.components}
    assert any(note == "locked joints, whose components are left out: a1" for note in tree.notes)
    assert any("'held' left out: joint 'd1' is locked" in note for note in tree.notes)
    assert kinds["curve"].of == {}
    curve = 0.3 + 0.1 + np.polynomial.Polynomial([0, 0.5, -0.3, 0.2, 0.05])(0.3 - 0.4)
    assert kinds["curve"].offset == pytest.approx(curve)
    assert kinds["belt"].joints == {"c1": -2.0}
    assert kinds["belt"].rest == pytest.approx(0.3 - 0.5 * 0.3)
