"""Fixed joints that are kept: of no freedoms, the wrench through them a variable; the robot moves as without them."""

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from nori_dyn.errors import ModelError, UnknownModelNameError
from nori_dyn.measurements.selectors import Except, select_joints
from nori_dyn.model.joints import Fixed
from tests.covering import covering
from tests.oracles import newton_euler
from tests.robots import Pinocchio, load
from tests.systems import ACCELERATIONS, PROBLEMS, TORQUES, WRENCHES, random_states, readings, sensor_set
from tests.tolerances import RECURSION, SOLVED, assert_close
from tests.trees import TREES, random_state

FT = tuple(f"{name}_ft_sensor" for name in ("l_leg", "r_leg", "l_foot", "r_foot", "l_arm", "r_arm"))
HAND = ("panda_joint8", "panda_hand_joint")
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def pair(name: str, base: str, kept: tuple[str, ...]):
    """A robot with some fixed joints kept, and with all of them lumped."""
    return load(name, base, clean=False, kept=kept), load(name, base, clean=False)


@pytest.mark.parametrize(("name", "base", "kept"), [("iCubGenova04", "floating", FT), ("panda", "fixed", HAND)])
def test_the_robot_moves_as_with_its_joints_lumped(name, base, kept):
    tree, lumped = pair(name, base, kept)
    assert tree.n_links == lumped.n_links + len(kept)
    assert (tree.nq, tree.nv) == (lumped.nq, lumped.nv)
    assert {n for n, joint in zip(tree.joint_names, tree.joints, strict=True) if isinstance(joint, Fixed)} == set(kept)
    assert [n for n in tree.joint_names if n not in kept] == list(lumped.joint_names)
    assert tree.fingerprint != lumped.fingerprint
    assert_close(sum(I[5, 5] for I in tree.I), sum(I[5, 5] for I in lumped.I), RECURSION)
    assert any(note == f"kept, without freedoms: {', '.join(kept)}" for note in tree.notes)
    peer, rng = Pinocchio.of(name, base, lumped), np.random.default_rng(1)
    q = tree.random_configuration(rng)
    qd, qdd = rng.normal(size=(2, tree.nv))
    assert_close(nd.rnea(tree, q, qd, qdd), peer.rnea(q, qd, qdd), SOLVED)
    assert nd.recursions.expanded_parents(tree) == nd.recursions.expanded_parents(lumped)
    if base == "fixed":
        assert_close(nd.christoffel(tree, q), nd.christoffel(lumped, q), RECURSION)


@covering(strength=1, problem=PROBLEMS, backend=["numpy", "native"])
def test_plans_of_a_robot_with_kept_joints(problem, backend):
    tree, lumped = pair("panda", "fixed", HAND)
    truth = random_states(tree, 8, seed=5)
    truth.fx[:, [tree.link("panda_link8"), tree.link("panda_hand")]] = 0
    ours = truth._replace(tau=np.random.default_rng(5).normal(size=(8, tree.nv)))
    theirs = ours._replace(fx=ours.fx[:, [tree.names.index(name) for name in lumped.names]])
    found, expected = (
        nd.plan(nd.System(t, problem)).solver(backend).solve_batch(s.q, s.qd, readings(nd.System(t, problem), s))
        for t, s in ((tree, ours), (lumped, theirs))
    )
    assert_close(found.tau, expected.tau, SOLVED)
    assert_close(found.qdd, expected.qdd, SOLVED)
    assert found.residual.max() < 1e-12
    hand = tree.joint("panda_hand_joint")
    for k in range(8):
        motion = newton_euler(tree, ours.q[k], ours.qd[k], found.qdd[k], ours.fx[k])
        assert_close(found.f[k, hand], motion.f[hand], SOLVED)


def test_a_plan_file_keeps_kept_joints(tmp_path):
    tree = load("panda", locked=FINGERS, kept=HAND)
    plan = nd.plan(nd.System(tree, PROBLEMS["forward"]), outputs=("qdd", "f:panda_hand"))
    plan.save(tmp_path / "arm.plan")
    again = nd.Plan.load(tmp_path / "arm.plan")
    assert again.system.tree.fingerprint == tree.fingerprint
    assert again.system.tree.joints[again.system.tree.joint("panda_joint8")] == Fixed()
    q, qd = tree.random_configuration(1), np.ones(tree.nv)
    y = np.ones(plan.system.ny)
    one, other = (p.solver("numpy").solve(q, qd, y) for p in (plan, again))
    assert_close(one["f:panda_hand"], other["f:panda_hand"], RECURSION)


def test_a_kept_joint_costs_little_where_its_wrench_is_not_wanted():
    """Its inertia is moved to the body before; what is left is the way of gravity and velocities across it."""
    systems = [nd.System(load("panda", kept=kept), nd.sensors("forward_dynamics")) for kept in (HAND, ())]
    with_joints, lumped = (nd.plan(system, outputs=("qdd",)).cost.total for system in systems)
    assert with_joints <= 1.05 * lumped


def test_selectors_of_a_robot_with_kept_joints():
    tree = TREES["fixed_joints"]
    fixed = [i for i, joint in enumerate(tree.joints) if isinstance(joint, Fixed)]
    assert select_joints(tree, "all") == select_joints(tree, "actuated") == list(range(tree.n_links))
    assert select_joints(tree, Except(**{"except": "actuated"})) == []
    for entry in (ACCELERATIONS, TORQUES):
        system = nd.System(tree, sensor_set(entry))
        assert system.ny == tree.nv
        assert not {tree.joint_names[i] for i in fixed} & {row.name.split(":")[1] for row in system.measurements}
    assert nd.System(tree, sensor_set({**ACCELERATIONS, "joints": tree.joint_names[fixed[1]]})).ny == 0
    wrenches = nd.System(tree, sensor_set({"type": "force_torque", "joints": "all"}))
    assert wrenches.ny == 6 * tree.n_links
    names = {variable.name for variable in wrenches.variables}
    assert not {f"{kind}:{tree.joint_names[i]}" for kind in ("tau", "qdd") for i in fixed} & names


def test_a_force_torque_sensor_in_a_kept_joint_reads_its_wrench():
    tree = TREES["fixed_joints"]
    q, qd, qdd, fx = random_state(tree, 7)
    truth = newton_euler(tree, q, qd, qdd, fx)
    known = sensor_set(
        ACCELERATIONS, {**WRENCHES, "links": {"except": "link5"}}, {"type": "force_torque", "joints": "joint3"}
    )
    system = nd.System(tree, known)
    y = np.concatenate([qdd, np.delete(fx, 4, axis=0).ravel(), truth.f[2]])
    assert system.shape[0] == system.shape[1]
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, y))
    assert_close(d, truth.d(system), SOLVED)


def test_a_locked_joint_and_a_fixed_one_on_the_world_can_be_kept():
    """The load cell under a robot: the wrench through it carries the whole robot."""
    tree, lumped = (load("panda", locked=(*FINGERS, "panda_joint7"), kept=kept) for kept in ("panda_joint7", ()))
    assert tree.joints[tree.joint("panda_joint7")] == Fixed()
    q = tree.random_configuration(2)
    assert_close(nd.crba(tree, q), nd.crba(lumped, q), RECURSION)
    tree = load("ur5", kept="world_joint")
    base = tree.joint("world_joint")
    assert tree.is_root(base)
    system = nd.System(tree, nd.sensors("inverse_dynamics"))
    q, still = tree.random_configuration(3), np.zeros(tree.nv)
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, still, still))
    assert tree.I[base, 5, 5] > 0
    assert_close(d[system.column("f", base)][3:], [0.0, 0.0, 9.81 * tree.I[:, 5, 5].sum()], SOLVED)


def test_what_does_not_exist_or_moves_is_refused_with_the_closest():
    with pytest.raises(UnknownModelNameError, match=r"fixed joint to keep 'panda_joint_8'.*mean 'panda_joint8'"):
        load("panda", kept=("panda_joint_8",))
    with pytest.raises(ModelError, match=r"'panda_joint7' is revolute; only fixed.*mean 'panda_joint8'"):
        load("panda", kept=("panda_joint7",))
