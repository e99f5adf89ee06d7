"""Every equation obeys the laws of `Equation`: those of Newton and Euler, and those of all sensors."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from nori_dyn.measurements.sensor_set import SensorSet, measurement_types
from nori_dyn.model.kinematics import Kinematics, positions, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation
from nori_dyn.system.newton_euler import newton_euler
from nori_dyn.system.variables import VariableKey, tree_variables
from tests.noted import noted
from tests.oracles import newton_euler as true_motion
from tests.standing import LAWS_ELSEWHERE
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


CASES: dict[str, list[dict | None]] = {"newton_euler": [None]} | {
    kind: [{"type": kind, **fields} for fields in entries] for kind, entries in SENSORS.items()
}


def equations(tree: KinematicTree, entry: dict | None) -> list[Equation]:
    if entry is None:
        return list(newton_euler(tree))
    return list(SensorSet.from_dict({"name": "one", "measurements": [entry]}).equations(tree))


every_equation = pytest.mark.parametrize("entries", CASES.values(), ids=CASES)


@cache
def moving(tree: str, seed: int) -> Kinematics:
    return velocities(TREES[tree], *random_state(TREES[tree], seed)[:2])


@cache
def still(tree: str, seed: int) -> Kinematics:
    return positions(TREES[tree], moving(tree, seed).q)


@cache
def batch(tree: str, seeds: tuple[int, ...]) -> Kinematics:
    states = [(at.q, at.qd) for at in (moving(tree, seed) for seed in seeds)]
    return velocities(TREES[tree], *(np.stack(parts, axis=-1) for parts in zip(*states, strict=True)))


def on_every_tree(entries: list[dict | None]) -> Iterator[tuple[str, Equation]]:
    for tree in TREES:
        for entry in entries:
            for equation in equations(TREES[tree], entry):
                yield tree, equation


def n_readings(equation: Equation) -> int:
    return len(equation.components) if equation.is_measured else 0


def test_every_sensor_is_tested():
    assert set(SENSORS) | LAWS_ELSEWHERE == set(measurement_types())


@every_equation
def test_blocks_have_the_shape_of_their_rows_and_variable(entries):
    for name, tree in TREES.items():
        sizes = {v.key: v.slice.stop - v.slice.start for v in tree_variables(tree)}
        for entry in entries:
            found = equations(tree, entry)
            assert found, name
            assert len({equation.name for equation in found}) == len(found), name
            for equation in found:
                with noted(name, equation.name):
                    check_shapes(equation, moving(name, 1), sizes)


def check_shapes(equation: Equation, at: Kinematics, sizes: dict[VariableKey, int]) -> None:
    rows = len(equation.components)
    assert rows > 0 or at.tree.joints[equation.body].kind == "fixed"
    assert len(set(equation.components)) == rows
    blocks = equation.blocks(at)
    assert blocks
    assert {key: block.shape for key, block in blocks.items()} == {k: (rows, sizes[k]) for k in blocks}
    assert equation.bias(at, np.ones(n_readings(equation))).shape == (rows,)
    assert equation.sigma is None or len(equation.sigma) == rows
    ranges = getattr(equation, "ranges", None)
    assert ranges is None or (equation.is_measured and len(ranges) == rows)
    assert all(low < high for low, high in ranges or ())
    units, frame = getattr(equation, "units", None), getattr(equation, "frame", None)
    assert units is None or (len(units) == rows and set(units) <= {"rad/s^2", "m/s^2", "N m", "N"})
    assert frame is None or {frame.frame.link} == {key.body for key in blocks}
    assert equation.name
    assert equation.source
    assert equation.group


@every_equation
def test_blocks_do_not_depend_on_velocity(entries):
    for tree, equation in on_every_tree(entries):
        with noted(tree, equation.name):
            blocks = equation.blocks(moving(tree, 2))
            for key, block in equation.blocks(still(tree, 2)).items():
                assert_close(block, blocks[key], EXACT)


@every_equation
def test_bias_is_the_known_terms_minus_the_reading(entries):
    rng = np.random.default_rng(3)
    for tree, equation in on_every_tree(entries):
        at = moving(tree, 3)
        n = n_readings(equation)
        y, z = rng.normal(size=(2, n))
        with noted(tree, equation.name):
            at_zero = equation.bias(at, np.zeros(n))
            if equation.is_measured:
                assert_close(equation.bias(at, y), at_zero - y, ROUNDING)
                assert_close(equation.bias(at, y + 2 * z), at_zero - y - 2 * z, ROUNDING)
            else:
                assert_close(equation.bias(at, y), at_zero, EXACT)


@pytest.mark.parametrize("name", TREES)
def test_newton_and_euler_hold_for_a_true_motion(name):
    """Each row moves with each of its variables, too: a wrong sign in a block must not hide in a zero."""
    tree = TREES[name]
    q, qd, qdd, fx = random_state(tree, 4)
    truth = true_motion(tree, q, qd, qdd, fx)
    system = System(tree, SensorSet("none", ()))
    assert system.shape[0] == 12 * tree.n_links + tree.nv
    d = truth.d(system)
    assert np.isfinite(d).all()
    residual = system.D(q) @ d + system.b(q, qd, np.zeros(0))
    assert_close(residual / np.abs(d).max(), 0 * residual, RECURSION)
    massless = [i for i in range(tree.n_links) if not tree.I[i].any()]
    for equation in newton_euler(tree):
        for (kind, body, _), block in equation.blocks(moving(name, 5)).items():
            if not (kind == "a" and body in massless and equation.name.startswith("3f")):
                assert np.abs(block).max(initial=0) > 0 or not block.size  # of a joint without freedoms


@every_equation
def test_a_batch_is_the_stack_of_single_states(entries):
    seeds = tuple(range(3, 8))
    rng = np.random.default_rng(5)
    for tree, equation in on_every_tree(entries):
        y = rng.normal(size=(n_readings(equation), len(seeds)))
        all_at_once = batch(tree, seeds)
        with noted(tree, equation.name):
            blocks, bias = equation.blocks(all_at_once), equation.bias(all_at_once, y)
            assert bias.shape == (len(equation.components), len(seeds))
            for k, seed in enumerate(seeds):
                at = moving(tree, seed)
                assert_close(bias[:, k], equation.bias(at, y[:, k]), ROUNDING)
                for key, block in equation.blocks(at).items():
                    ours = blocks[key][..., k] if blocks[key].ndim == 3 else blocks[key]
                    assert_close(ours, block, ROUNDING)
