"""Derivatives of planned estimates, against differences in extended precision."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError, PlanError, SingularSystemError, UnknownNameError
from nori_dyn.model.joints import Prismatic, Revolute
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.program.hybrid import HybridReadings
from nori_dyn.system.builder import System
from tests import oracles
from tests.agreement.test_weighted import redundant, state
from tests.compilers import needs_compiler
from tests.least_squares import Extended, constrained_least_squares
from tests.mechanisms import closed_state, four_bar, sprung_leg
from tests.oracles import extended_rows, refined_solution
from tests.robots import load
from tests.systems import FORWARD, PROBLEMS, hybrid, sensor_set
from tests.tolerances import EXACT, SAME_PROGRAM, SOLVED, Tolerance, assert_close
from tests.trees import on_a_free_base
from tests.unit.planning.test_repeats import closed_state as closed_hinged
from tests.unit.planning.test_repeats import four_bar as hinged_four_bar
from tests.unit.recursions.test_joint_terms import WITH_MOTORS
from tests.unit.solve.test_solver import singular_plan, singular_state

WEIGHTS = np.round(840 * oracles.WEIGHTS).astype(np.longdouble) / 840
"""Those of `oracles.WEIGHTS`, extended."""

STEP = np.longdouble(1e-3)


class ExtendedEstimate:
    """d as a function of q, qd, y and weights."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._exact = np.concatenate([np.full(len(row.equation.components), row.is_exact) for row in system.rows])
        self._weight_of = [k for row in system.rows if not row.is_exact for k in row.weight_of_rows]

    def at(self, q: Extended, qd: Extended, y: Extended, weights: Extended | None = None) -> Extended:
        """d (n,)."""
        if self._exact.all():
            return refined_solution(self.system, q, qd, y)
        D, b = extended_rows(self.system, q, qd, y)
        exact, w = self._exact, weights[self._weight_of]
        return constrained_least_squares(D[exact], b[exact], D[~exact], b[~exact], w).d

    def derivative(self, name: str, k: int, *state: np.ndarray) -> Extended:
        """The derivative of d (n,) by number k of an input; of q along freedom k."""
        q, qd, y, *weights = (np.asarray(x, dtype=np.longdouble) for x in state)
        given = {"q": q, "qd": qd, "y": y, **({"weights": weights[0]} if weights else {})}
        size = given["weights"][k] if name == "weights" else np.longdouble(1)

        def moved(t: Extended) -> Extended:
            now = dict(given)
            if name == "q":
                now["q"] = along_freedom(self.system.tree, q, k, t)
            else:
                now[name] = given[name] + t * size * (np.arange(len(given[name])) == k)
            return self.at(*now.values())

        return sum(w * moved(s * STEP) for s, w in zip(oracles.STENCIL, WEIGHTS, strict=True)) / (STEP * size)


def along_freedom(tree: KinematicTree, q: Extended, k: int, t: Extended) -> Extended:
    """A configuration on a curve through q that starts along freedom k."""
    found = q.copy()
    for joint, part, own in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        unit = (np.arange(own.start, own.stop) == k).astype(float)
        if unit.any():
            found[part] = q[part] + t * np.asarray(joint.rates(q[part], unit), dtype=np.longdouble)
            turns = [kind == "quaternion" for kind in joint.coordinates]
            if any(turns):
                quaternion = found[part][turns]
                found[np.arange(part.start, part.stop)[turns]] = quaternion / np.sqrt(np.sum(quaternion**2))
    return found


WRT = ("q", "qd", "y", "weights")

WEIGHED = Tolerance(1e-8, "weights over nine decades; what is refused is what a step of refinement moves by 3e-9")


def check(plan, state, wrt, outputs=None, n=3, tolerance=SOLVED, seed=0):
    """Compare derivatives with differences, at some columns of each input."""
    by = plan.derivative(*wrt, outputs=outputs, backend="numpy")
    found, estimate = by(*state), ExtendedEstimate(plan.system)
    names = plan.outputs if outputs is None else resolve_outputs(plan.system, outputs)
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


BRANCHED = nd.autotree(3, branching=2, skew=0.4)


def wrenches_in_parts(tree):
    """Sensors that give of each joint its acceleration or its force, and wrenches, of which some are known.

    The others are read in frames that are turned, moments and forces apart.
    """
    last, turned = tree.names[-1], {"xyz": [0.1, 0.2, -0.1], "rpy": [0.3, -0.2, 0.5]}
    reading = {"type": "external_wrench", "links": last, "frame": turned}
    return sensor_set(
        {"type": "joint_acceleration", "joints": "actuated"},
        {"type": "joint_torque", "joints": {"except": "actuated"}},
        {"type": "external_wrench", "links": {"except": last}, "value": 0.5},
        {**reading, "name": "moments", "components": ["mx", "my", "mz"]},
        {**reading, "name": "forces", "components": ["fx", "fy", "fz"]},
    )


@pytest.mark.parametrize("problem", ["inverse", "forward", "hybrid", "parts"])
def test_sets_that_read_joints_of_every_kind(problem):
    """The derivatives are those of hybrid dynamics."""
    tree = WITH_MOTORS["two_roots"]
    sets = {**PROBLEMS, "hybrid": hybrid(tree, 2), "parts": wrenches_in_parts(tree)}
    system = nd.System(tree, sets[problem])
    assert HybridReadings.of(system) is not None
    plan = nd.plan(system, outputs=["tau", "qdd"])
    check(plan, random_state(system), ("q", "qd", "y"), n=2)
    check(plan, random_state(system), ("y",), outputs=[f"tau:{tree.joint_names[1]}"], n=2)


@pytest.mark.parametrize("make", [four_bar, sprung_leg, lambda: BRANCHED])
def test_sets_that_read_more_are_eliminated(make):
    tree = make()
    sensors = FORWARD if tree.components else sensor_set({"type": "accelerometer", "links": "all"})
    assert HybridReadings.of(nd.System(tree, sensors)) is None


def test_pivots_that_vanish_are_solved_afresh():
    """A point mass on a slide that turns: no torque turns it where it comes to the axis."""
    I = np.zeros((2, 6, 6))
    I[1, 3:, 3:] = np.eye(3)
    tree = nd.autotree(2).replace(
        joints=(Revolute(), Prismatic((1.0, 0.0, 0.0))), I=I, X_tree=(Transform.identity(),) * 2
    )
    plan = nd.plan(nd.System(tree, FORWARD), outputs=["qdd"])
    by = plan.derivative("q", "qd", "y", backend="numpy")
    _, qd, y = random_state(plan.system)
    for r, is_trusted in ((0.5, True), (1e-3, False)):  # differences by q would cross the axis
        q = np.array([0.3, r])
        by.inputs.q[:], by.inputs.qd[:], by.inputs.y[:] = q, qd, y
        assert (by.tick() == 0) is is_trusted
        check(plan, (q, qd, y), ("q", "qd", "y") if is_trusted else ("qd", "y"))


@pytest.mark.parametrize("make", [four_bar, sprung_leg])
def test_components(make):
    tree = make()
    system = nd.System(tree, "forward_dynamics")
    plan = nd.plan(system)
    q, qd, tau = closed_state(tree, 0)
    check(plan, (q, qd, tau), ("q", "qd", "y"))


def weighed_plan():
    return nd.plan(nd.System(BRANCHED, redundant(BRANCHED)), outputs=["tau", "qdd", "fx"])


@pytest.mark.parametrize(
    "make", [weighed_plan, lambda: nd.plan(nd.System(on_a_free_base(BRANCHED), "forward_dynamics"))]
)
def test_states_solved_afresh_have_the_same_derivatives(make):
    plan = make()
    by = plan.derivative(*WRT[: len(plan.system.input_sizes)], backend="numpy")
    given = by._check(random_state(plan.system) + ((plan.system.weights,) if plan.system.is_weighted else ()))
    for ours, afresh in zip(by(*given), by._formed(by._otherwise(given, "")[0]), strict=True):
        assert_close(afresh, ours, SOLVED)


def test_weights_over_nine_decades_and_none():
    """What the planned order cannot tell is solved afresh."""
    plan = weighed_plan()
    q, qd, y, weights = state(plan.system, 1)
    check(plan, (q, qd, y, weights), WRT, n=3, tolerance=WEIGHED)
    without = plan.system.weights.copy()
    without[3] = 0.0
    by = plan.derivative("weights", backend="numpy")
    found, nearly = by(q, qd, y, without), by(q, qd, y, without + 1e-9 * (np.arange(len(without)) == 3))
    for ours, reference in zip(found, nearly, strict=True):
        assert_close(ours, reference, Tolerance(1e-6, "a weight of 1e-9 for none"))


def test_outputs_in_frames_and_of_one_link_have_names_that_python_takes():
    tree = load("panda")
    plan = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=["tau"])
    by = plan.derivative("qd", "y", outputs=["tau:panda_joint2", "a:panda_hand_tcp", "f"], backend="numpy")
    q, qd, y = random_state(plan.system)
    found, estimate = by(q, qd, y), ExtendedEstimate(plan.system)
    assert by.names[:3] == ("dtau:panda_joint2_dqd", "da:panda_hand_tcp_dqd", "df_dqd")
    assert found.df_dy.shape == (tree.n_links, 6, plan.system.ny)
    frame = tree.frame("panda_hand_tcp")
    column = plan.system.column("a", frame.link)
    for k in (0, 5):
        expected = estimate.derivative("qd", k, q, qd, y)
        assert_close(found.da_panda_hand_tcp_dqd[:, k], frame.X.motion_matrix() @ expected[column], SOLVED)


def test_it_is_called_as_solvers_and_compiled_functions_are():
    plan = weighed_plan()
    system = plan.system
    by = plan.derivative("q", "weights", outputs=["tau"], backend="numpy")
    q, qd, y = random_state(system)
    found = by(q, qd, y)
    assert_close(
        by(q, qd, dict(zip(system.measurement_names, y, strict=True)), system.weights).dtau_dq, found[0], EXACT
    )
    assert_close(by(q=q, qd=qd, y=y, weights={}).dtau_dq, found.dtau_dq, EXACT)
    by.inputs.q[:], by.inputs.qd[:], by.inputs.y[:] = q, qd, y
    assert by.tick() == 0
    assert_close(by.outputs.dtau_dweights, found.dtau_dweights, EXACT)
    many = by.batch(np.array([q, q]), np.array([qd, qd]), np.array([y, y]))
    assert by.batch(np.array([q, q]), np.array([qd, 0 * qd]), np.array([y, y]), out=many) is many
    assert_close(many.dtau_dq[0], found.dtau_dq, SAME_PROGRAM)
    with pytest.raises(InputError, match="below zero"):
        by(q, qd, y, -system.weights)
    with pytest.raises(InputError, match="q, qd, y, weights"):
        by(q, qd)


@needs_compiler
def test_native_derivatives_equal_those_through_numpy():
    plan = weighed_plan()
    states = [random_state(plan.system, seed) for seed in range(9)]
    Q, Qd, Y = (np.array(x) for x in zip(*states, strict=True))
    native, other = (plan.derivative(*WRT, outputs=["tau"], backend=backend) for backend in ("native", "numpy"))
    for ours, reference in zip(native.batch(Q, Qd, Y, threads=2), other.batch(Q, Qd, Y), strict=True):
        assert_close(ours, reference, SOLVED)


@needs_compiler
def test_a_pivot_that_is_a_number_is_trusted():
    """The inertia of the last link about its joint."""
    plan = nd.plan(nd.System(nd.autotree(2), "forward_dynamics"), outputs=["qdd"])
    by = plan.derivative("q", "y", backend="native")
    states = random_state(plan.system)
    for array, values in zip((by.inputs.q, by.inputs.qd, by.inputs.y), states, strict=True):
        array[:] = values
    assert by.tick() == 0
    found = by.kernel.batch([x[None] for x in states], [np.empty((1, 8))])
    assert found == (None, None)


def test_a_planned_program_stays_the_same():
    """What derivatives write down is found by no program that is made afterwards."""
    plan = nd.plan(nd.System(nd.autotree(3), "forward_dynamics"), outputs=["qdd"])
    before = plan.solver("numpy").kernel._program
    plan.derivative("q", backend="numpy")
    after = plan.solver("numpy").kernel._program
    one, other = (len(p.graph.reachable(p.outputs)) for p in (before, after))
    assert one == other
    assert before.cost == after.cost


def test_a_plan_has_the_same_derivatives_whether_planned_or_loaded():
    system = nd.System(load("ur5"), "inverse_dynamics")
    plans = [nd.plan(system, outputs=["tau"], cache=cache) for cache in (False, True, True)]
    assert len({plan.derivative("q", "y", backend="numpy").cost.total for plan in plans}) == 1


def test_what_cannot_be_asked_for():
    plan = nd.plan(nd.System(four_bar(), "forward_dynamics"), outputs=["qdd"])
    with pytest.raises(InputError, match="by which input"):
        plan.derivative()
    with pytest.raises(UnknownNameError, match="q, qd, y"):
        plan.derivative("weights")
    with pytest.raises(UnknownNameError, match="loop:pin"):
        plan.derivative("q", outputs=["loop:bar"])


def test_what_no_sensor_tells_has_no_derivatives():
    """A hinge that closes a planar four-bar: its rows out of the plane repeat what the others say."""
    tree = hinged_four_bar("hinge")
    plan = nd.plan(nd.System(tree, FORWARD))
    with pytest.raises(PlanError, match="do not determine f:crank"):
        plan.derivative("q", outputs=["f:crank"])
    q, qd = closed_hinged(tree)
    check(plan, (q, qd, random_state(plan.system)[2]), ("qd", "y"), tolerance=SOLVED)


def test_singular_states_have_no_derivatives_and_say_why():
    by = singular_plan().derivative("q", "y", backend="numpy")
    good, state = singular_state(0.5), singular_state(0.0)
    with pytest.raises(SingularSystemError, match="singular at this state") as raised:
        by(*state)
    assert "qdd:joint2" in raised.value.undetermined
    with pytest.raises(SingularSystemError, match="singular at state 1 of 2"):
        by.batch(*(np.stack(pair) for pair in zip(good, state, strict=True)))
    for array, values in zip((by.inputs.q, by.inputs.qd, by.inputs.y), state, strict=True):
        array[:] = values
    assert by.tick() != 0


def test_near_singular_states_are_solved_afresh():
    plan = singular_plan()
    by = plan.derivative("q", "qd", "y", backend="numpy")
    q, qd, y = singular_state(1e-5)
    for array, values in zip((by.inputs.q, by.inputs.qd, by.inputs.y), (q, qd, y), strict=True):
        array[:] = values
    assert by.tick() != 0
    estimate = ExtendedEstimate(plan.system)
    found = by(q, qd, y)
    for k in range(plan.system.ny):  # the readings do not move the pose away from there
        expected = estimate.derivative("y", k, q, qd, y)
        for name, array in zip(("tau", "qdd"), (found.dtau_dy, found.dqdd_dy), strict=True):
            columns = output_columns(plan.system, [output for output in plan.outputs if output.name == name])
            assert_close(array[:, k] / np.abs(expected).max(), expected[columns] / np.abs(expected).max(), SOLVED)
