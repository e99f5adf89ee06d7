"""Derivatives of planned estimates: against Pinocchio, and against differences in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.planning.outputs import output_columns
from tests.agreement.test_compiled import Case
from tests.agreement.test_weighted import redundant, state
from tests.estimate_differences import ExtendedEstimate
from tests.mechanisms import closed_state, four_bar, sprung_leg
from tests.robots import load
from tests.systems import PROBLEMS, Figure2, hybrid, paper_chain
from tests.tolerances import RECURSION, SOLVED, Tolerance, assert_close
from tests.trees import three_children

WEIGHED = Tolerance(1e-8, "weights over nine decades; what is refused is what a step of refinement moves by 3e-9")


def check(plan, state, wrt, outputs=None, n=3, tolerance=SOLVED, seed=0):
    """Compare derivatives with differences, at some columns of each input."""
    by = plan.derivative(*wrt, outputs=outputs, backend="numpy")
    found, estimate = by(*state), ExtendedEstimate(plan.system)
    names = plan.outputs if outputs is None else nd.plan(plan.system, outputs=outputs).outputs
    rng = np.random.default_rng(seed)
    arrays = iter(found)
    for name in wrt:
        own = [next(arrays) for _ in names]
        size = own[0].shape[-1]
        for k in rng.permutation(size)[:n]:
            expected = estimate.derivative(name, k, *state)
            scale = state[3][k] if name == "weights" else 1.0
            for output, array in zip(names, own, strict=True):
                reference = expected[output_columns(plan.system, [output])]
                assert_close(scale * array[..., k].ravel(), scale * reference, tolerance)


def random_state(system, seed=0):
    rng = np.random.default_rng(seed)
    return system.tree.random_configuration(rng), rng.normal(size=system.tree.nv), rng.normal(size=system.ny)


@pytest.mark.parametrize(
    ("name", "base"), [("ur5", "fixed"), ("panda", "floating"), ("anymal", "floating"), ("talos_reduced", "floating")]
)
def test_inverse_and_forward_dynamics_equal_pinocchio(name, base):
    case = Case(name, base, n=4)
    inverse = nd.plan(nd.System(case.tree, "inverse_dynamics"), outputs=["tau"])
    forward = nd.plan(nd.System(case.tree, "forward_dynamics"), outputs=["qdd"])
    found = (
        *inverse.derivative("q", "qd", "y", backend="numpy").batch(case.q, case.qd, case.qdd),
        *forward.derivative("q", "qd", "y", backend="numpy").batch(case.q, case.qd, case.tau),
    )
    for ours, reference in zip(found, case.derivatives(), strict=True):
        assert_close(ours, reference, SOLVED)


TREES = {
    "mixed": lambda: three_children(),
    "floating": lambda: load("solo12", "floating"),
    "branched": lambda: nd.autotree(6, branching=2, skew=0.4),
}
"""With every joint that has a name of its own, with a quaternion, and with neither."""


@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
@pytest.mark.parametrize("problem", ["inverse", "forward", "hybrid"])
def test_exact_sets_with_wrenches_measured(make, problem):
    tree = make()
    system = nd.System(tree, hybrid(tree, 1) if problem == "hybrid" else PROBLEMS[problem])
    plan = nd.plan(system, outputs=["tau", "qdd", f"fx:{tree.names[-1]}", "a", "f"])
    check(plan, random_state(system), ("q", "qd", "y"), tolerance=RECURSION if problem == "inverse" else SOLVED)


def test_load_cells():
    system = nd.System(paper_chain(8, 0.9), Figure2())
    plan = nd.plan(system, outputs=["tau", "fx", "qdd"], cache=False)
    check(plan, random_state(system), ("q", "qd", "y"))


@pytest.mark.parametrize("name", ["branched", "floating"])
def test_weighed_sets(name):
    tree = TREES[name]()
    system = nd.System(tree, redundant(tree))
    q, qd, y, _ = state(system, 0)
    plan = nd.plan(system, outputs=["tau", "qdd"])
    check(plan, (q, qd, y, system.weights), ("q", "qd", "y", "weights"), n=2)


def test_noisy_dynamics():
    tree = TREES["branched"]()
    sensors = nd.SensorSet.from_dict(
        {
            "name": "noisy",
            "dynamics": {"sigma": 1e-3},
            "measurements": [
                {"type": "joint_acceleration", "joints": "all", "sigma": 0.1},
                {"type": "joint_torque", "joints": "all", "sigma": 0.1},
                {"type": "external_wrench", "links": "all", "sigma": 0.5},
            ],
        }
    )
    system = nd.System(tree, sensors)
    q, qd, y, _ = state(system, 0)
    plan = nd.plan(system, outputs=["tau", "qdd"])
    check(plan, (q, qd, y, system.weights), ("q", "qd", "y", "weights"), n=2)


@pytest.mark.parametrize("make", [four_bar, sprung_leg])
def test_components(make):
    tree = make()
    system = nd.System(tree, "forward_dynamics")
    plan = nd.plan(system)
    q, qd, tau = closed_state(tree, 0)
    check(plan, (q, qd, tau), ("q", "qd", "y"))
