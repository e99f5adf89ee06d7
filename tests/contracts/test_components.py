"""Every component: its config goes to a dictionary and back, and its parts keep the laws of `Part` and `Closing`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.components.registry import BUILT_IN
from nori_dyn.model.closure import closed
from nori_dyn.model.component import Closing
from nori_dyn.model.kinematics import Kinematics, positions, velocities
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.planning.planner import make_plan
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import Part, parts_of
from nori_dyn.system.variables import VariableKey
from tests.oracles import derivative, newton_euler
from tests.systems import sensor_set
from tests.tolerances import DIFFERENCES, RECURSION, SECOND_DIFFERENCES, SOLVED, assert_close

BAUMGARTE = {"position": 25.0, "velocity": 10.0}
TILTED_SLIDER = [[0.6, 0.8, 0, 0, 0, 0], [0.8, -0.6, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0.8, -0.6, 0]]

ENTRIES: dict[str, list[dict[str, Any]]] = {
    "rotor": [
        {"joints": "all", "inertia": 0.2},
        {"joints": {"match": "joint[36]"}, "inertia": 2e-5, "gear": -100.0},
    ],
    "friction": [
        {"joints": "all", "viscous": 0.3, "coulomb": 0.5, "width": 0.2},
        {"joints": "joint2", "coulomb": 1.0, "static": 1.5, "stribeck": 0.3, "width": 0.1},
    ],
    "spring": [
        {"joints": ["joint1", "joint4"], "stiffness": 7.0, "reference": 0.3},
        {"joints": "joint1", "stiffness": 0.0, "preload": -2.0},
    ],
    "coupling": [
        {"joint": "joint4", "of": {"joint1": -0.5}},
        {"joint": "joint5", "of": {}, "offset": 0.3},
        {"joint": "joint7", "of": {"joint2": 0.5, "joint6": [0.4, 0.3, -0.2]}, "offset": 0.1},
    ],
    "loop": [
        {"frames": ["left", "right"], "constrains": "point"},
        {"frames": ["left", "right"], "constrains": "point", "stabilisation": BAUMGARTE},
        {"frames": ["left", "right"], "constrains": ["mx", "my", "fx", "fy"]},
        {"frames": ["left", "right"], "constrains": ["fx"]},
        {"frames": ["left", "wall"], "constrains": ["fy", "fz"]},
        {"frames": ["right", "wall"], "constrains": "hinge"},
        {"frames": ["left", "wall"], "constrains": "pose"},
        {"frames": ["left", "right"], "constrains": TILTED_SLIDER},
    ],
    "tendon": [
        {"through": ["left", "right"], "stiffness": 30.0, "damping": 2.0, "rest": 0.4},
        {"through": ["left", "pulley", "link2", "wall"], "role": "passive", "stiffness": 5.0, "divisor": 2.0},
        {"through": ["left", "wall"], "role": "held", "rest": 2.5},
        {"joints": {"joint1": 0.3, "joint5": -0.2}, "damping": 1.5},
        {"joints": {"joint1": 1.0, "joint4": 1.0, "joint5": 1.0}, "role": "held", "rest": 0.2},
    ],
}
NAMED = ("coupling", "loop", "tendon")
ALL = [
    {"type": kind, **({"name": "it"} if kind in NAMED else {}), **fields}
    for kind, own in ENTRIES.items()
    for fields in own
]
every_entry = pytest.mark.parametrize("entry", ALL, ids=[json.dumps(entry)[:80] for entry in ALL])
HELD = [entry for entry in ALL if entry["type"] in ("coupling", "loop") or entry.get("role") == "held"]
every_held = pytest.mark.parametrize("entry", HELD, ids=[json.dumps(entry)[:80] for entry in HELD])


def bare() -> KinematicTree:
    """Return a robot of two limbs of several kinds of joints, with frames on links and on the world."""
    kinds = ("revolute", "prismatic", "helical", "revolute", "continuous")
    tree = random_tree(12, seed=21, kinds=kinds, chain=1.0)
    X = random_tree(4, seed=22).X_tree
    frames = {"left": Frame(11, X[0]), "right": Frame(6, X[1]), "pulley": Frame(11, X[2]), "wall": Frame(-1, X[3])}
    return tree.replace(name="two_limbs", parents=(-1, 0, 1, 2, 3, 4, 5, 1, 7, 8, 9, 10), frames=frames)


def with_component(entry: dict[str, Any]) -> KinematicTree:
    return bare().replace(components=(BUILT_IN[entry["type"]].model_validate(entry),))


def state(tree: KinematicTree, seed: int = 0) -> Kinematics:
    """Return a closed state."""
    rng = np.random.default_rng(seed)
    return velocities(tree, *closed(tree, tree.random_configuration(rng), rng.normal(size=tree.nv)))


def row_of(tree: KinematicTree, equation: Equation, at: Kinematics, qdd: np.ndarray) -> np.ndarray:
    """Return what the rows of an equation say of a true motion."""
    motion = newton_euler(tree, at.q, at.qd, qdd, np.zeros((tree.n_links, 6)))
    value = equation.bias(at, np.zeros(0))
    for key, block in equation.blocks(at).items():
        x = motion.a[key.body] if key.kind == "a" else qdd[tree.v_slices[key.body]]
        value = value + block @ x
    return value


def test_every_component_is_tested():
    assert set(ENTRIES) == set(BUILT_IN)


@every_entry
def test_config_goes_to_a_dictionary_and_back(entry):
    (component,) = with_component(entry).components
    content = json.loads(json.dumps(component.to_dict()))
    assert BUILT_IN[entry["type"]].model_validate(content) == component


@every_entry
def test_parts_have_the_shapes_of_what_they_act_on(entry):
    tree = with_component(entry)
    at = state(tree)
    for part in parts_of(tree):
        assert isinstance(part, Part)
        columns = {u.key: len(u.components) for u in part.unknowns}
        columns |= {VariableKey("qdd", i): joint.nv for i, joint in enumerate(tree.joints)}
        assert all(len(u.components) == len(u.units) for u in part.unknowns)
        for key in part.acts_on:
            n = 6 if key.gives == "f" else tree.joints[key.body].nv
            assert part.bias(key, at).shape == (n,)
            assert {v: block.shape for v, block in part.blocks(key, at).items()} == {
                v: (n, columns[v]) for v in part.blocks(key, at)
            }


@every_entry
def test_blocks_do_not_depend_on_velocities(entry):
    tree = with_component(entry)
    at = state(tree)
    still = positions(tree, at.q)
    for part in parts_of(tree):
        for key in part.acts_on:
            for variable, block in part.blocks(key, still).items():
                assert_close(part.blocks(key, at)[variable], block, RECURSION)


@every_entry
def test_a_multiplier_acts_through_the_transpose_of_its_rows(entry):
    tree = with_component(entry)
    at = state(tree)
    for part in parts_of(tree):
        for equation in part.equations:
            (unknown,) = part.unknowns
            for key, block in equation.blocks(at).items():
                gives = {"a": "f", "qdd": "tau"}[key.kind]
                (on,) = [k for k in part.acts_on if k.gives == gives and k.body == key.body]
                assert_close(part.blocks(on, at)[unknown.key], -block.T, RECURSION)


@every_held
def test_the_gap_stays_as_it_is_where_the_rows_hold(entry):
    tree = with_component({key: value for key, value in entry.items() if key != "stabilisation"})
    at = state(tree)
    (part,) = (part for part in parts_of(tree) if part.equations)
    assert isinstance(part, Closing)
    assert np.abs(part.gap(at)).max() < 1e-12
    rng = np.random.default_rng(1)
    qdd, other = rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    columns = [row_of(tree, part.equations[0], at, e) for e in np.eye(tree.nv)]
    said = row_of(tree, part.equations[0], at, np.zeros(tree.nv))
    J = np.array(columns).T - said[:, None]
    qdd = qdd - np.linalg.lstsq(J, J @ qdd + said)[0]

    def gap(t: float, qd: np.ndarray = at.qd) -> np.ndarray:
        return part.gap(positions(tree, tree.integrate(at.q, qd * t + qdd * (t * t / 2))))

    assert_close(derivative(lambda t: gap(t, other)), part.gap_rate(at) @ other, DIFFERENCES)
    still = np.zeros(len(said))
    assert_close(derivative(gap), still, DIFFERENCES)
    assert_close(derivative(lambda t: derivative(lambda s: gap(t + s))), still, SECOND_DIFFERENCES)


@every_entry
def test_a_plan_solves_what_the_system_says(entry):
    tree = with_component(entry)
    at = state(tree)
    is_motor = entry["type"] == "tendon" and entry.get("role", "actuated") == "actuated"
    known = [{"type": "linear_relation", "name": "pull", "terms": {"tendon:it": 1}, "value": 3.0}] * is_motor
    torques, nothing = (
        {"type": "joint_torque", "joints": "all"},
        {"type": "external_wrench", "links": "all", "value": 0},
    )
    system = System(tree, sensor_set(torques, nothing, *known))
    y = np.random.default_rng(2).normal(size=system.ny)
    d = spla.spsolve(system.D(at.q).tocsc(), -system.b(at.q, at.qd, y))
    found = make_plan(system, ordering="recursive")
    estimate = Solver(found, "numpy").solve(at.q, at.qd, y)
    for variable in system.variables:
        if variable.key.component:
            assert_close(estimate[variable.name], d[variable.slice], SOLVED)
    assert_close(estimate.qdd, np.concatenate([d[system.column("qdd", i)] for i in range(tree.n_links)]), SOLVED)
