"""Every equation obeys the laws of `Equation`: those of Newton and Euler, and those of all sensors."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.measurements.registry import measurement_types
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.kinematics import positions, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation
from nori_dyn.system.newton_euler import newton_euler
from nori_dyn.system.variables import tree_variables
from tests.oracles import newton_euler as true_motion
from tests.tolerances import EXACT, RECURSION, ROUNDING, assert_close
from tests.trees import TREES, random_state

# One row a sensor: its fields beside `type`. A sensor of the registry that is not here fails a test below.
FRAME = {"xyz": [0.1, 0, 0.2], "rpy": [0.3, 1, -2]}
SENSORS: dict[str, list[dict]] = {
    "accelerometer": [{"links": "all", "frame": FRAME}, {"links": "all", "components": ["az"], "value": 9.81}],
    "angular_accelerometer": [{"links": "all", "frame": FRAME}],
    "force_torque": [{"joints": "all", "frame": FRAME, "measures": "child_on_parent"}, {"joints": "all", "value": 1}],
    "linear_relation": [
        {"name": "sum", "terms": {"a:link1.wx": 2, "fx:link1.mz": -1}},
        {"name": "read", "terms": {"f:link1.fz": 2}, "value": None},
    ],
    "link_acceleration": [{"links": "all", "components": ["ay", "wx"], "frame": FRAME}],
    "net_wrench": [{"links": "all", "frame": FRAME}, {"links": "all", "value": 0}],
    "prior": [
        {"variables": "all", "sigma": 2},
        {"variables": ["a", "fx"], "conventional": True, "mean": [1, 2, 3, 4, 5, 6], "sigma": 2},
        {"variables": ["a", "f", "fx:link1"], "conventional": True, "mean": None, "sigma": [1, 2, 3, 4, 5, 6]},
    ],
    "rigid_contact": [{"links": "all"}, {"links": "all", "frame": FRAME, "value": None}],
    "joint_acceleration": [{"joints": "all"}, {"joints": "all", "value": 0.5}],
    "joint_torque": [{"joints": "all", "sigma": 0.1, "range": [-1, 1]}, {"joints": "all", "value": -2}],
    "external_wrench": [
        {"links": "all"},
        {"links": "all", "value": 0},
        {"links": "all", "components": ["mz", "fx"], "frame": FRAME},
    ],
}


def cases():
    yield "newton_euler", None
    for kind, entries in SENSORS.items():
        for k, fields in enumerate(entries):
            yield f"{kind}-{k}", {"type": kind, **fields}


CASES = dict(cases())


def equations(tree: KinematicTree, entry: dict | None) -> list[Equation]:
    if entry is None:
        return list(newton_euler(tree))
    return list(SensorSet.from_dict({"name": "one", "measurements": [entry]}).equations(tree))


every_equation = pytest.mark.parametrize("entry", CASES.values(), ids=CASES)
every_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def n_readings(equation: Equation) -> int:
    return len(equation.components) if equation.is_measured else 0


def test_every_sensor_is_tested():
    assert set(SENSORS) == set(measurement_types())


@every_equation
@every_tree
def test_blocks_have_the_shape_of_their_rows_and_variable(tree, entry):
    sizes = {(v.kind, v.body): v.slice.stop - v.slice.start for v in tree_variables(tree)}
    q, qd, *_ = random_state(tree, 1)
    at = velocities(tree, q, qd)
    found = equations(tree, entry)
    assert found
    for equation in found:
        rows = len(equation.components)
        assert rows > 0 or tree.joints[equation.body].kind == "fixed"
        assert len(set(equation.components)) == rows
        blocks = equation.blocks(at)
        assert blocks
        for key, block in blocks.items():
            assert block.shape == (rows, sizes[key])
        y = np.ones(n_readings(equation))
        assert equation.bias(at, y).shape == (rows,)
        assert equation.sigma is None or len(equation.sigma) == rows
        ranges = getattr(equation, "ranges", None)
        assert ranges is None or (equation.is_measured and len(ranges) == rows)
        assert all(low < high for low, high in ranges or ())
        units, frame = getattr(equation, "units", None), getattr(equation, "frame", None)
        assert units is None or (len(units) == rows and set(units) <= {"rad/s^2", "m/s^2", "N m", "N"})
        assert frame is None or {frame.frame.link} == {body for _, body in blocks}
        assert equation.name
        assert equation.source
        assert equation.group


@every_equation
@every_tree
def test_names_are_unique(tree, entry):
    names = [equation.name for equation in equations(tree, entry)]
    assert len(set(names)) == len(names)


@every_equation
@every_tree
def test_blocks_do_not_depend_on_velocity(tree, entry):
    q, qd, *_ = random_state(tree, 2)
    still, moving = positions(tree, q), velocities(tree, q, qd)
    for equation in equations(tree, entry):
        for key, block in equation.blocks(still).items():
            assert_close(block, equation.blocks(moving)[key], EXACT)


@every_equation
@every_tree
def test_bias_is_the_known_terms_minus_the_reading(tree, entry):
    q, qd, *_ = random_state(tree, 3)
    at = velocities(tree, q, qd)
    rng = np.random.default_rng(3)
    for equation in equations(tree, entry):
        n = n_readings(equation)
        y, z = rng.normal(size=(2, n))
        at_zero = equation.bias(at, np.zeros(n))
        if equation.is_measured:
            assert_close(equation.bias(at, y), at_zero - y, ROUNDING)
            assert_close(equation.bias(at, y + 2 * z), at_zero - y - 2 * z, ROUNDING)
        else:
            assert_close(equation.bias(at, y), at_zero, EXACT)


@every_tree
def test_newton_and_euler_hold_for_a_true_motion(tree):
    q, qd, qdd, fx = random_state(tree, 4)
    truth = true_motion(tree, q, qd, qdd, fx)
    system = System(tree, SensorSet("none", ()))
    assert system.shape[0] == 12 * tree.n_links + tree.nv
    d = truth.d(system)
    assert np.isfinite(d).all()
    residual = system.D(q) @ d + system.b(q, qd, np.zeros(0))
    assert_close(residual / np.abs(d).max(), 0 * residual, RECURSION)


@every_tree
def test_each_block_of_the_true_motion_matters(tree):
    """A wrong sign in a block must not hide in a zero: each row block moves with each of its variables."""
    q, qd, *_ = random_state(tree, 5)
    at = velocities(tree, q, qd)
    for equation in newton_euler(tree):
        massless = [i for i in range(tree.n_links) if not tree.I[i].any()]
        for (kind, body), block in equation.blocks(at).items():
            if not (kind == "a" and body in massless and equation.name.startswith("3f")):
                assert np.abs(block).max(initial=0) > 0 or not block.size  # of a joint without freedoms


@every_equation
@every_tree
def test_a_batch_is_the_stack_of_single_states(tree, entry):
    states = [random_state(tree, seed)[:2] for seed in range(3, 8)]
    Q, Qd = (np.stack(parts, axis=-1) for parts in zip(*states, strict=True))
    batch = velocities(tree, Q, Qd)
    rng = np.random.default_rng(5)
    for equation in equations(tree, entry):
        y = rng.normal(size=(n_readings(equation), len(states)))
        blocks, bias = equation.blocks(batch), equation.bias(batch, y)
        assert bias.shape == (len(equation.components), len(states))
        for k, (q, qd) in enumerate(states):
            at = velocities(tree, q, qd)
            assert_close(bias[:, k], equation.bias(at, y[:, k]), ROUNDING)
            for key, block in equation.blocks(at).items():
                ours = blocks[key][..., k] if blocks[key].ndim == 3 else blocks[key]
                assert_close(ours, block, ROUNDING)
