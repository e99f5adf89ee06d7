"""Rows over parameters: true motions by Newton's and Euler's laws, closed forms of joints, and differences."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction, Rotor, Spring
from nori_dyn.identification.regression import Regression, force_readings
from nori_dyn.model.kinematics import velocities
from nori_dyn.recursions.rnea import rnea
from nori_dyn.system.builder import System
from tests.oracles import newton_euler
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.tolerances import RECURSION, ROUNDING, assert_close
from tests.trees import TREES, random_state
from tests.unit.identification.simulated import at_motions

POSE = {"xyz": [0.1, -0.2, 0.3], "rpy": [0.4, -0.5, 2.6]}


def numbers_of(found: Regression, q, qd, qdd, y=None):
    return (part[0] for part in at_motions(found, q[None], qd[None], qdd[None], None if y is None else y[None]))


def of(tree, wanted, *sensors) -> Regression:
    return Regression.of(System(tree, sensor_set(*sensors)), wanted)


@pytest.mark.parametrize(
    ("trees", "wanted"),
    [
        ([TREES[name] for name in TREES if name != "mixed_12"], ["inertias"]),
        ([nd.tools.random_tree(6, 100 + seed) for seed in range(3)], ["*:link2", "*:link2.*", "m:*"]),
    ],
    ids=["all inertias", "some of random trees"],
)
def test_torques_are_rows_times_the_parameters_of_the_model(trees, wanted):
    for tree in trees:
        found = of(tree, wanted, ACCELERATIONS, TORQUES, UNLOADED)
        q, qd, qdd, fx = random_state(tree, 1)
        truth = newton_euler(tree, q, qd, qdd, 0 * fx)
        W, N, c = numbers_of(found, q, qd, qdd)
        assert not N.size
        expected = dict(zip(System(tree, sensor_set(TORQUES)).measurement_names, truth.tau, strict=True))
        assert_close(W @ found.parameters.prior + c, [expected[name] for name in found.row_names], RECURSION)


EVERY_SENSOR = [
    {"type": "force_torque", "joints": "all"},
    {"type": "force_torque", "joints": "joint3", "frame": POSE, "measures": "child_on_parent", "sigma": 0.1},
    {"type": "net_wrench", "links": "all", "frame": POSE},
    TORQUES | {"sigma": 2.0},
    {**WRENCHES, "frame": POSE, "sigma": 1.0},
    {"type": "linear_relation", "name": "sum", "terms": {"fx:link3.mz": 2, "tau:joint2": 1}, "value": None},
]  # fmt: skip


@pytest.mark.parametrize("touched", ["known", "unknown"])
def test_every_sensor_of_forces_reads_a_true_motion(touched):
    """W phi + N w + c = 0 with what the sensor reads, and the wrenches that no row tells by itself."""
    tree = TREES["two_roots"]
    for entry in EVERY_SENSOR:
        sensors = [ACCELERATIONS, entry, {"type": "prior", "variables": ["tau"], "sigma": 9.0}]
        sensors += [{**WRENCHES, "links": {"except": "link2"}, "value": 0}] if touched == "unknown" else [UNLOADED]
        if entry["type"] == "external_wrench":
            sensors[-1] = {**TORQUES, "sigma": 1.0}
        found = of(tree, ["inertias"], *sensors)
        q, qd, qdd, fx = random_state(tree, 1)
        if touched == "known":
            fx = 0 * fx
        elif entry["type"] != "external_wrench":
            fx[[i for i in range(tree.n_links) if tree.names[i] != "link2"]] = 0.0
        truth = newton_euler(tree, q, qd, qdd, fx)
        system, y = found.system, np.zeros(found.system.ny)
        d = truth.d(system)
        at = velocities(tree, q, qd)
        for row in system.measurements:
            value = row.equation.bias(at, np.zeros(row.y.stop - row.y.start))
            for key, block in row.equation.blocks(at).items():
                value = value + block @ d[system.column(key.kind, key.body)]
            y[row.y] = value
        W, N, c = numbers_of(found, q, qd, qdd, y)
        wrench = {f"fx:{tree.names[i]}.{axis}": fx[i, k] for i in range(tree.n_links) for k, axis in enumerate(AXES)}
        w = np.array([wrench[name] for name in found.unknowns])
        rows = [k for k, name in enumerate(found.row_names) if not name.startswith("prior")]
        assert rows, entry
        assert_close((W @ found.parameters.prior + N @ w + c)[rows], np.zeros(len(rows)), RECURSION)


AXES = ("mx", "my", "mz", "fx", "fy", "fz")


def test_coefficients_of_joints_are_their_closed_forms():
    components = (
        Friction(joints="joint2", coulomb=1.0, static=1.5, stribeck=0.4, width=0.1),
        Rotor(joints="joint1", inertia=2e-5, gear=100.0),
        Spring(joints="joint3", stiffness=7.0, reference=0.3),
    )
    tree = nd.tools.random_tree(3, 1, kinds=["revolute"]).replace(components=components)
    found = of(tree, ["friction", "rotors", "springs"], ACCELERATIONS, TORQUES, UNLOADED)
    q, qd, qdd, _ = random_state(tree, 0)
    W, _, c = numbers_of(found, q, qd, qdd)
    column = dict(zip(found.parameters.names, W.T, strict=True))
    e = np.eye(3)
    for k in range(3):
        width = 0.1 if k == 1 else 0.01
        smooth = qd[k] / np.hypot(qd[k], width)
        shape = 1.0 - 1.0 / (1.0 + (qd[1] / 0.4) ** 2) if k == 1 else 1.0
        assert_close(column[f"viscous:joint{k + 1}"], qd[k] * e[k], ROUNDING)
        assert_close(column[f"coulomb:joint{k + 1}"], smooth * shape * e[k], ROUNDING)
        assert_close(column[f"rotor:joint{k + 1}"], qdd[k] * e[k], ROUNDING)
        assert_close(column[f"stiffness:joint{k + 1}"], q[k] * e[k], ROUNDING)
        assert_close(column[f"preload:joint{k + 1}"], -e[k], ROUNDING)
    assert_close(W @ found.parameters.prior + c, rnea(tree, q, qd, qdd), RECURSION)


def test_offsets_and_gains_of_readings():
    """Gain reading = true value + offset."""
    tree = nd.tools.random_tree(3, 1, kinds=["revolute"])
    found = of(tree, ["offsets", "gains"], ACCELERATIONS, TORQUES, UNLOADED)
    q, qd, qdd, _ = random_state(tree, 0)
    y = np.arange(6.0)
    W, _, c = numbers_of(found, q, qd, qdd, y)
    assert found.reads == (3, 4, 5)
    assert_close(W, np.hstack([np.eye(3), -np.diag(y[3:])]), ROUNDING)
    assert_close(c, rnea(tree, q, qd, qdd), RECURSION)


def test_an_exact_wrench_has_an_offset_and_a_gain():
    tree = nd.tools.random_tree(3, 1, kinds=["revolute"])
    read = {**WRENCHES, "links": "link3"}
    others = {**WRENCHES, "links": {"except": "link3"}, "value": 0}
    sensors = ACCELERATIONS, {**TORQUES, "sigma": 1.0}, read, others
    found = of(tree, ["*:fx:link3.*"], *sensors)
    assert not found.unknowns  # the reading tells it
    q, qd, qdd, fx = random_state(tree, 0)
    names = found.system.measurement_names
    y = np.random.default_rng(1).normal(size=found.system.ny)
    gains, offsets = np.linspace(0.5, 1.5, 6), np.linspace(-1.0, 1.0, 6)
    place = [names.index(f"fx:link3.{axis}") for axis in AXES]
    fx[:] = 0.0
    fx[2] = gains * y[place] - offsets
    values = dict(zip([f"gain:fx:link3.{axis}" for axis in AXES], gains, strict=True))
    values |= dict(zip([f"offset:fx:link3.{axis}" for axis in AXES], offsets, strict=True))
    W, _, c = numbers_of(found, q, qd, qdd, y)
    phi = np.array([values[name] for name in found.parameters.names])
    torques = rnea(tree, q, qd, qdd, fx) - y[[names.index(f"tau:joint{k}") for k in (1, 2, 3)]]
    assert_close(W @ phi + c, [torques[int(name[-1]) - 1] for name in found.row_names], RECURSION)


def test_without_gains_all_others_are_as_they_were():
    found = of(nd.autotree(2), ["inertias", "gains"], ACCELERATIONS, TORQUES, UNLOADED)
    without = found.without_gains()
    assert without.parameters is found.parameters
    assert {k for _, k in found.W} - {k for _, k in without.W} == set(found.parameters.of_kinds("gain"))


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_programs_compute_the_columns_that_are_wanted(backend):
    tree = TREES["three_children"]
    found = of(tree, ["inertias", "friction", "gains"], ACCELERATIONS, TORQUES, UNLOADED)
    columns = [3, 0, 41, 25]
    program, layout = found.program(columns, backend)
    n, rng = 5, np.random.default_rng(0)
    Q, (Qd, Qdd) = tree.random_configurations(n, rng), rng.normal(size=(2, n, tree.nv))
    Y = rng.normal(size=(n, found.system.ny))
    W, N, c = layout.dense(program.batch(Q, Qd, Qdd, Y))
    assert W.shape == (n, found.n_rows, 4)
    for k in range(n):
        all_of_them, none, constant = numbers_of(found, Q[k], Qd[k], Qdd[k], Y[k])
        assert_close(W[k], all_of_them[:, columns], RECURSION)
        assert_close(c[k], constant, RECURSION)
        assert N[k].shape == none.shape == (found.n_rows, 0)
    entries = layout.rows[0]
    assert [columns[k] for k in entries[1]] == [c for c in columns if (0, c) in found.W]


def test_readings_of_forces_alone_may_have_offsets_and_gains():
    sensors = sensor_set(ACCELERATIONS, TORQUES, {"type": "accelerometer", "links": "link2"}, UNLOADED)
    assert force_readings(System(nd.autotree(2), sensors)) == {"tau:joint1": "N m", "tau:joint2": "N m"}


def test_what_identifies_nothing_is_refused():
    with pytest.raises(nd.errors.InputError, match="'test': none says anything of the parameters"):
        of(nd.autotree(2), ["inertias"], ACCELERATIONS, UNLOADED)
    with pytest.raises(nd.errors.InputError, match="no reading depends on any of the parameters asked for: m:link1"):
        of(nd.autotree(2), ["m:link1", "mc:link1.z"], ACCELERATIONS, TORQUES, UNLOADED)
