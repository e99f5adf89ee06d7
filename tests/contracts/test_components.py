"""Every component: its config goes to a dictionary and back, and its parts keep the laws of `Part` and `Closing`."""

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.components.config import component_types
from nori_dyn.estimation.plan import plan
from nori_dyn.model.closure import closed
from nori_dyn.model.kinematics import Kinematics, positions, velocities
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import Closing, Frame, KinematicTree
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation
from nori_dyn.system.memory import Random
from nori_dyn.system.parts import Part, parts_of
from nori_dyn.system.variables import VariableKey
from tests.noted import noted
from tests.oracles import derivative, newton_euler
from tests.systems import sensor_set
from tests.tolerances import DIFFERENCES, RECURSION, ROUNDING, SECOND_DIFFERENCES, SOLVED, assert_close

BAUMGARTE = {"position": 25.0, "velocity": 10.0}
TILTED_SLIDER = [[0.6, 0.8, 0, 0, 0, 0], [0.8, -0.6, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0.8, -0.6, 0]]

ENTRIES: dict[str, list[dict[str, Any]]] = {
    "rotor": [{"joints": "all", "inertia": 0.2}, {"joints": {"match": "joint[36]"}, "inertia": 2e-5, "gear": -100.0}],
    "friction": [
        {"joints": "all", "viscous": 0.3, "coulomb": 0.5, "width": 0.2},
        {"joints": "joint2", "coulomb": 1.0, "static": 1.5, "stribeck": 0.3, "width": 0.1},
        {"joints": "joint3", "mu": 0.3, "coulomb": 0.5, "width": 0.1},
        {"joints": "joint3", "coulomb": 0.5, "width": 0.1, "stiction": {"scatter": 0.2, "ripple": 0.1}},
        {"joints": "joint4", "coulomb": 0.5, "mu": 0.1, "presliding": {"distance": 1e-3}},
    ],
    "payload": [{"link": "link8"}, {"link": "left", "mass": 2.0, "reach": 0.1, "change": 5.0}],
    "spring": [
        {"joints": ["joint1", "joint4"], "stiffness": 7.0, "reference": 0.3},
        {"joints": "joint1", "stiffness": 0.0, "preload": -2.0},
    ],
    "harmonics": [
        {"joints": ["joint1", "joint4"], "sin2": 0.3, "cos2": -0.2, "sin3": 0.1, "cos4": 0.4},
        {"joints": "joint1", "cos3": 0.2, "covariance": np.diag([0.1, 0.2, 0.3, 0.0, 0.1, 0.2]).tolist()},
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
        {"frames": ["right", "wall"], "constrains": "pose"},
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
OWN = {
    kind: [
        {"type": kind, **({"name": f"{kind}{k}"} if kind in NAMED else {}), **fields} for k, fields in enumerate(own)
    ]
    for kind, own in ENTRIES.items()
}
HELD = {
    "coupling": OWN["coupling"],
    "loop": OWN["loop"],
    "tendon": [entry for entry in OWN["tendon"] if entry.get("role") == "held"],
}
_, _, _, ALONG, ACROSS, _, _, SLIDER = OWN["loop"]
PLANNED = {
    "joints and couplings": [*OWN["rotor"], *OWN["friction"], *OWN["spring"], *OWN["harmonics"], *OWN["coupling"]],
    "tendons": OWN["tendon"],
    "axes": [ALONG, ACROSS],
    "slider": [SLIDER],
}
ALONE = {
    f"{kind}{k}": [entry]
    for kind, own in OWN.items()
    for k, entry in enumerate(own)
    if kind != "payload" and not entry.keys() & {"stiction", "covariance"}  # state: tests/unit/filtering
}


def bare() -> KinematicTree:
    """A robot of two limbs of several kinds of joints, with frames on links and on the world."""
    kinds = ("revolute", "prismatic", "helical", "revolute", "continuous")
    tree = random_tree(8, seed=21, kinds=kinds, chain=1.0)
    X = random_tree(4, seed=22).X_tree
    frames = {"left": Frame(7, X[0]), "right": Frame(6, X[1]), "pulley": Frame(7, X[2]), "wall": Frame(-1, X[3])}
    return tree.replace(name="two_limbs", parents=(-1, 0, 1, 2, 3, 4, 5, 1), frames=frames)


def with_components(*entries: dict[str, Any]) -> KinematicTree:
    return bare().replace(components=tuple(component_types()[entry["type"]].model_validate(entry) for entry in entries))


def state(tree: KinematicTree, seed: int = 0) -> Kinematics:
    """A closed state."""
    rng = np.random.default_rng(seed)
    return velocities(tree, *closed(tree, tree.random_configuration(rng), rng.normal(size=tree.nv)))


def of(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def row_of(tree: KinematicTree, equation: Equation, at: Kinematics, qdd: np.ndarray) -> np.ndarray:
    """What the rows of an equation say of a true motion."""
    motion = newton_euler(tree, at.q, at.qd, qdd, np.zeros((tree.n_links, 6)))
    value = equation.bias(at, np.zeros(0))
    for key, block in equation.blocks(at).items():
        x = motion.a[key.body] if key.kind == "a" else qdd[tree.v_slices[key.body]]
        value = value + block @ x
    return value


def test_every_component_is_tested():
    assert set(ENTRIES) == set(component_types())


@pytest.mark.parametrize("entries", OWN.values(), ids=OWN)
def test_configs_go_to_a_dictionary_and_back_and_parts_keep_their_laws(entries):
    for entry in entries:
        with noted(entry):
            tree = with_components(entry)
            (component,) = tree.components
            content = json.loads(json.dumps(component.to_dict()))
            assert component_types()[entry["type"]].model_validate(content) == component
            check_parts(tree)


def check_parts(tree: KinematicTree) -> None:
    """Parts act with the shape of what they act on, at any velocity, and multipliers by the transpose of their rows.

    Only what random numbers do depends on the velocity as well.
    """
    at = state(tree)
    still = positions(tree, at.q)
    for part in parts_of(tree):
        assert isinstance(part, Part)
        columns = {u.key: len(u.components) for u in part.unknowns}
        columns |= {VariableKey("qdd", i): joint.nv for i, joint in enumerate(tree.joints)}
        assert all(len(u.components) == len(u.units) for u in part.unknowns)
        for key in part.acts_on:
            n = 6 if key.gives == "f" else tree.joints[key.body].nv
            blocks = part.blocks(key, at)
            assert part.bias(key, at).shape == (n,)
            assert {v: block.shape for v, block in blocks.items()} == {v: (n, columns[v]) for v in blocks}
            for variable, block in part.blocks(key, still).items():
                if not isinstance(part, Random):
                    assert_close(blocks[variable], block, RECURSION)
        for equation in (equation for equation in part.equations if not equation.is_measured):
            (unknown,) = part.unknowns
            for key, block in equation.blocks(at).items():
                gives = {"a": "f", "qdd": "tau"}[key.kind]
                (on,) = [k for k in part.acts_on if k.gives == gives and k.body == key.body]
                assert_close(part.blocks(on, at)[unknown.key], -block.T, RECURSION)


@pytest.mark.parametrize("entries", HELD.values(), ids=HELD)
def test_the_gap_stays_as_it_is_where_the_rows_hold(entries):
    for entry in entries:
        with noted(entry):
            check_gap(with_components({key: value for key, value in entry.items() if key != "stabilisation"}))


def check_gap(tree: KinematicTree) -> None:
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


@pytest.mark.parametrize("entries", (PLANNED | ALONE).values(), ids=PLANNED | ALONE)
def test_a_batch_of_states_is_its_states(entries):
    tree = with_components(*entries)
    motors = [e["name"] for e in entries if e["type"] == "tendon" and e.get("role", "actuated") == "actuated"]
    known = [of("linear_relation", name=f"pull {it}", terms={f"tendon:{it}": 1}, value=3.0) for it in motors]
    system = System(tree, sensor_set(of("joint_torque", joints="all"), of("external_wrench", links="all"), *known))
    states = [state(tree, seed) for seed in range(3)]
    Y = np.random.default_rng(2).normal(size=(3, system.ny))
    each = system.each(np.array([at.q for at in states]), np.array([at.qd for at in states]), Y)
    for at, y, (D, b) in zip(states, Y, each, strict=True):
        assert_close(D.toarray(), system.D(at.q, at.qd, y).toarray(), ROUNDING)
        assert_close(b, system.b(at.q, at.qd, y), ROUNDING)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(entries, id=name, marks=[] if name in PLANNED else pytest.mark.long)
        for name, entries in (PLANNED | ALONE).items()
    ],
)
def test_a_plan_solves_what_the_system_says(entries):
    tree = with_components(*entries)
    at = state(tree)
    motors = [e["name"] for e in entries if e["type"] == "tendon" and e.get("role", "actuated") == "actuated"]
    known = [of("linear_relation", name=f"pull {it}", terms={f"tendon:{it}": 1}, value=3.0) for it in motors]
    unloaded = of("external_wrench", links="all", value=0)
    system = System(tree, sensor_set(of("joint_torque", joints="all"), unloaded, *known))
    y = np.random.default_rng(2).normal(size=system.ny)
    d = spla.spsolve(system.D(at.q).tocsc(), -system.b(at.q, at.qd, y))
    found = plan(system)
    estimate = Solver(found, "numpy").solve(at.q, at.qd, y)
    for variable in system.variables:
        if variable.key.component:
            assert_close(estimate[variable.name], d[variable.slice], SOLVED)
    assert_close(estimate.qdd, np.concatenate([d[system.column("qdd", i)] for i in range(tree.n_links)]), SOLVED)
