"""Noisy equations of motion and priors: against QR in extended precision, and against iDynTree's BERDY."""

from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from benchmarks.peers.berdy import SWAP, Berdy
from nori_dyn.errors import InvalidConfigError, SensorConfigError
from nori_dyn.model.joints import Fixed
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.planning.orderings.umfpack import has_umfpack
from tests.agreement.test_weighted import reference, unknowns
from tests.agreement.test_weighted import state as weighted_state
from tests.covering import covering
from tests.least_squares import constrained_least_squares
from tests.robots import ROBOTS
from tests.systems import WRENCHES, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES, on_a_free_base

POSE = {"xyz": [0.1, 0.2, 0.3], "rpy": [0.1, 0.2, 0.3]}
READINGS = (
    {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.1},
    {"type": "accelerometer", "links": "all", "frame": POSE, "sigma": 0.1},
    WRENCHES | {"sigma": [1, 1, 1, 2, 2, 2]},
    {"type": "force_torque", "joints": "actuated", "sigma": 0.3},
)
PRIOR = {"type": "prior", "variables": "all", "mean": 0.3, "sigma": 10}


def fixed_joints():
    tree = random_tree(4, seed=15, kinds=("revolute", "prismatic"))
    return tree.replace(joints=tuple(Fixed() if i in (1, 3) else joint for i, joint in enumerate(tree.joints)))


SMALL = {
    "chain": autotree(3, skew=0.3),
    "spherical": random_tree(2, seed=5, kinds=("spherical", "revolute")),
    "three_children": TREES["three_children"],
    "fixed_joints": fixed_joints(),
}
NOISE = {
    "all": 1e-3,
    "accelerations": {"3a": 1e-3},
    "forces": {"3f": 1e-2},
    "torques": {"3tau": 0.1},
    "components": {"3a": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "3f": [0.3, 0.2, 0.1, 0.6, 0.5, 0.4]},
}

CONFIGURED = 1e-12
"""With the weights that were planned for nothing is lost."""

FAR_OFF = 1e-8
"""Each weight is elsewhere: those of the sensors over nine decades, those of the dynamics over twelve."""


def noisy(sigma, *entries):
    """A set of sensors with noisy equations of motion."""
    return sensor_set(*entries, name="noisy", dynamics={"sigma": sigma})


@lru_cache
def planned(tree, noise):
    return nd.plan(nd.System(SMALL[tree], noisy(NOISE[noise], *READINGS, PRIOR)))


def state(system, seed):
    """A state, readings, and weights that are far from those configured."""
    *at, weights = weighted_state(system, seed)
    of_dynamics = np.array([name.startswith("3") for name in system.weight_names])
    decades = np.random.default_rng(seed).uniform(0, 12, len(weights))
    return *at, np.where(of_dynamics, 10.0**decades, weights)


def solved(system, *at):
    return nd.plan(system).solver("numpy").solve(*at)


def error(system, estimate, weights, *at):
    d = reference(system, *at, weights).d
    return np.linalg.norm(unknowns(system, estimate) - d) / np.linalg.norm(d)


def check(plan):
    system, solver = plan.system, plan.solver("numpy")
    for seed in range(2):
        *at, weights = state(system, seed)
        for given, tolerance in ((system.weights, CONFIGURED), (weights, FAR_OFF)):
            estimate = solver.solve(*at, given)
            assert error(system, estimate, given, *at) <= tolerance
            assert not estimate.fell_back


@covering(strength=1, tree=SMALL.keys(), noise=NOISE.keys())
def test_estimates_equal_qr_in_extended_precision(tree, noise):
    check(planned(tree, noise))


@pytest.mark.parametrize("exact", ["joint_torque", "joint_acceleration", "external_wrench", "rigid_contact"])
def test_exact_readings_beside_noisy_dynamics(exact):
    """What is read exactly of a body leaves the noise of its equations to the others."""
    tree = autotree(2, skew=0.3)
    entries = [entry for entry in READINGS if entry["type"] != exact]
    known = {"joint_torque": {"joints": "all"}, "joint_acceleration": {"joints": "actuated"}}.get(
        exact, {"links": "link2"} if exact == "rigid_contact" else {"links": "all", "value": 0}
    )
    check(nd.plan(nd.System(tree, noisy(1e-3, *entries, {"type": exact, **known}))))


def test_an_equation_of_weight_zero_is_left_out():
    """One infinite covariance is beyond the planned order, so it falls back."""
    plan = planned("chain", "forces")
    system = plan.system
    *at, _ = state(system, 2)
    weights = system.weighting({"3f:link2": 0.0})
    nearly = system.weighting({"3f:link2": 1e-30})
    estimate = plan.solver("numpy").solve(*at, weights)
    assert estimate.fell_back
    assert error(system, estimate, nearly, *at) <= CONFIGURED
    if has_umfpack():
        assert error(system, plan.solver("umfpack").solve(*at, weights), nearly, *at) <= CONFIGURED


def test_weights_of_the_dynamics_have_the_names_of_their_equations():
    system = nd.System(autotree(2), noisy({"3a": 0.1, "3f": [1, 1, 1, 2, 2, 2]}, *READINGS))
    own = [name for name in system.weight_names if name.startswith("3")]
    components = ("mx", "my", "mz", "fx", "fy", "fz")
    assert own == [x for link in ("link1", "link2") for x in (f"3a:{link}", *(f"3f:{link}.{c}" for c in components))]
    assert system.weights[:7].round(12).tolist() == [100, 1, 1, 1, 0.25, 0.25, 0.25]


def test_a_config_says_how_noisy_the_dynamics_are():
    plain, soft = sensor_set(*READINGS), noisy({"3f": 0.1}, *READINGS)
    assert nd.SensorSet.from_dict(soft.to_dict()) == soft
    assert "dynamics" not in plain.to_dict()
    assert len({plain.fingerprint, soft.fingerprint, noisy({"3f": 0.2}, *READINGS).fingerprint}) == 3
    for sigma, path in ((0, ("sigma",)), ({"3f": [1, 2]}, ("sigma", "3f")), ({"3g": 1}, ("sigma", "3g"))):
        with pytest.raises(InvalidConfigError) as caught:
            noisy(sigma)
        assert caught.value.path == ("dynamics", *path)


def test_priors_are_of_kinds_and_of_names():
    tree = TREES["fixed_joints"]  # some of whose joints have no torque
    names = {row.name for row in nd.System(tree, sensor_set(PRIOR)).rows if row.equation.group == "prior"}
    assert names == {f"prior:{v.name}" for v in nd.System(tree, sensor_set(PRIOR)).variables}
    tree = SMALL["three_children"]
    entry = {"type": "prior", "variables": ["qdd", "fx:link2"], "joints": "actuated", "sigma": 1}
    names = [row.name for row in nd.System(tree, sensor_set(entry)).rows if row.equation.group == "prior"]
    assert names == ["prior:fx:link2", *(f"prior:qdd:joint{k}" for k in (2, 3, 4))]
    with pytest.raises(SensorConfigError, match=r"variable 'fx:link9'.*Did you mean 'fx:link"):
        nd.System(tree, sensor_set({**entry, "variables": ["fx:link9"]}))
    with pytest.raises(InvalidConfigError, match="sigma"):
        sensor_set({"type": "prior", "variables": "all"})


def test_the_mean_of_a_prior_may_be_an_input():
    tree = autotree(2)
    fixed = nd.System(tree, sensor_set(*READINGS, {**PRIOR, "mean": 0.3}))
    given = nd.System(tree, sensor_set(*READINGS, {**PRIOR, "mean": None}))
    assert given.measurement_names[fixed.ny] == "prior:a:link1.wx"
    *at, y, _ = state(fixed, 0)
    full = np.concatenate([y, np.full(given.ny - fixed.ny, 0.3)])
    assert_close(solved(given, *at, full).tau, solved(fixed, *at, y).tau, SOLVED)


SIGMA = {"force_torque": 0.1, "accelerometer": 0.1, "joint_acceleration": 1.0, "external_wrench": 1.0}
BODY = """<inertial><origin xyz="0.1 -0.05 {z}"/><mass value="2"/>
  <inertia ixx="{z}" ixy="0" ixz="0" iyy="0.4" iyz="0.01" izz="0.3"/></inertial>"""
ARM = f"""
<robot name="arm">
  <link name="trunk">{BODY.format(z=0.2)}</link><link name="upper">{BODY.format(z=0.3)}</link>
  <link name="fore">{BODY.format(z=0.35)}</link><link name="hand">{BODY.format(z=0.5)}</link>
  <joint name="shoulder" type="revolute"><parent link="trunk"/><child link="upper"/><origin xyz="0 0.2 0.5"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.3" rpy="0 0 0.3"/>
    <axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
  <joint name="wrist" type="fixed"><parent link="fore"/><child link="hand"/><origin xyz="0 0 0.4" rpy="1 0 0"/></joint>
  <sensor name="ft" type="force_torque"><parent joint="wrist"/><origin xyz="0 0 0" rpy="0 0 0"/>
    <force_torque><frame>child</frame><measure_direction>child_to_parent</measure_direction></force_torque></sensor>
  <sensor name="imu" type="accelerometer"><parent link="fore"/><origin xyz="0 0.1 0" rpy="0 0 1"/></sensor>
</robot>"""


@pytest.fixture(scope="module", params=["arm", pytest.param("iCubGenova04", marks=pytest.mark.long)])
def peer(request, tmp_path_factory):
    """BERDY, the same tree, and a solver."""
    path = ROBOTS.get(request.param) or tmp_path_factory.mktemp("berdy") / "arm.urdf"
    if request.param == "arm":
        path.write_text(ARM)
    berdy = Berdy(path)
    tree = berdy.with_sensor_frames(nd.load_urdf(path, base="floating", kept="sensors"))
    readings = sensor_set(*berdy.measurements(SIGMA), name="berdy")
    system = nd.System(tree, nd.measurements.berdy_map(readings, dynamics=1e-2, prior=1e2))
    return berdy, tree, nd.plan(system).solver("numpy")


def named(berdy, tree, q, qd, d):
    """BERDY's d by the names of our variables; its accelerations are conventional, ours are spatial."""
    at, found = velocities(tree, q, qd), berdy.to_nori(tree, q, d)
    for block in berdy.variables:
        if block.kind == "a" and block.owner in tree.names:
            v = at.v[tree.link(block.owner)]
            found[f"a:{block.owner}"] = d[block.slice][SWAP] - np.r_[0, 0, 0, np.cross(v[:3], v[3:])]
        elif block.kind == "f" and block.owner in tree.joint_names:
            found[f"f:{tree.names[tree.joint(block.owner)]}"] = d[block.slice][SWAP]
        elif block.kind == "qdd":
            found[f"qdd:{block.owner}"] = d[block.slice]
    return found


@pytest.mark.parametrize(("sigma", "berdys_accuracy"), [(1e-2, 1e-6), (1e-3, 1e-4)])
def test_the_map_estimate_is_berdys(peer, sigma, berdys_accuracy):
    """With one plan, and at a random velocity: the priors on accelerations are of the conventional ones.

    BERDY's accuracy is that of its normal equations, whose condition goes with 1 / sigma^2; the same problem by QR in
    extended precision is the judge of ours.
    """
    berdy, tree, solver = peer
    system = solver.system
    (m, n), rng = berdy.shape, np.random.default_rng(3)
    q, qd, y = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=berdy.ny)
    berdy.set_covariances(sigma**2, 1e4, berdy.variances(SIGMA))
    berdy.update(*berdy.inputs(tree, q, qd, y))
    theirs, (D, bD, Y, bY) = berdy.estimate(), berdy.equations()
    weights = system.weighting({name: sigma**-2 for name in system.weight_names if name.startswith("3")})
    estimate = solver.solve(q, qd, berdy.reading(y), weights)
    assert not estimate.fell_back
    ours = unknowns(system, estimate)
    rows, constants = np.vstack([D, np.eye(n), Y]), np.concatenate([bD, np.zeros(n), bY - y])
    inverse = 1 / np.concatenate([np.full(m, sigma**2), np.full(n, 1e4), berdy.variances(SIGMA)])
    exact = constrained_least_squares(np.zeros((0, n)), np.zeros(0), rows, constants, inverse).d.astype(float)
    condition = np.linalg.cond(rows.T * inverse @ rows)
    assert 1e-15 * condition * np.linalg.norm(exact) <= berdys_accuracy
    for d, tolerance in ((exact, 1e-10), (theirs, berdys_accuracy)):
        found = named(berdy, tree, q, qd, d)
        assert {f"{kind}:{name}" for kind in ("fx", "a", "f") for name in tree.names[1:]} <= set(found)
        for v in system.variables:
            if v.name in found:
                np.testing.assert_allclose(ours[v.slice], found[v.name], rtol=0, atol=tolerance, err_msg=v.name)


def test_means_of_berdys_prior_may_be_inputs():
    """By kind, and as readings."""
    tree = on_a_free_base(autotree(2))
    sensors = sensor_set(*READINGS)
    fixed = nd.measurements.berdy_map(sensors, 0.1, prior={"fx": 2.0, "qdd": 1.0}, mean={"fx": [1, 2, 3, 4, 5, 6]})
    given = nd.measurements.berdy_map(sensors, {"3f": 0.1, "3a": 0.1}, prior={"fx": 2.0, "qdd": 1.0}, mean={"fx": None})
    first, second = nd.System(tree, fixed), nd.System(tree, given)
    *at, y, _ = state(first, 0)
    named = dict(zip(first.measurement_names, y, strict=True))
    means = {f"prior:fx:{name}": [1, 2, 3, 4, 5, 6] for name in tree.names}
    assert_close(solved(second, *at, named | means).tau, solved(first, *at, y).tau, SOLVED)
    assert {name.split(":")[0] for name in first.weight_names} >= {"3a", "3f", "prior"}
    assert not any(name.startswith("3tau") or name == "prior:qdd:joint1" for name in first.weight_names)


@pytest.mark.parametrize("wrong", [{"dynamics": {"3tau": 1.0}, "prior": 1.0}, {"dynamics": 1.0, "prior": {"tau": 1.0}}])
def test_what_berdy_has_not_is_refused(wrong):
    with pytest.raises(SensorConfigError, match="BERDY's"):
        nd.measurements.berdy_map(sensor_set(*READINGS), **wrong)
