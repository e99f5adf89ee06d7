"""Every shipped set of sensors on every robot that it names, in every contact state: planned, run, and held against
dense least squares; or refused when it is planned, where the rank of the rows says that it has to be.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import nori_dyn as nd
from nori_dyn.descriptions.sensor_configs import shipped_configs
from nori_dyn.errors import SingularSystemError, SystemShapeError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.program.compiler import find_compiler
from tests.least_squares import null_space
from tests.robots import ROBOTS, load
from tests.tolerances import ILL_SOLVED, assert_close

Floats = np.ndarray
Robots = dict[str, Callable[[], KinematicTree]]

QUICK = 8_000
"""Operations of a tick up to which it is compiled, in seconds at the most; others run through NumPy."""

STATES = 2
"""Ticks of each plan."""

REFINEMENTS = 4
"""Steps of refinement of the oracle."""

FINGERS = "panda_finger_joint1", "panda_finger_joint2"


def fixed(*names: str) -> Robots:
    return {name: lambda name=name: load(name) for name in names}


def walking(*names: str) -> Robots:
    return {f"{name}, floating": lambda name=name: load(name, "floating") for name in names}


LEGGED = "anymal", "solo12", "go2", "hyq", "g1", "talos_reduced", "talos_full", "romeo", "icub", "iCubGenova04"
QUADRUPEDS = walking("anymal", "solo12", "go2", "hyq")
HUMANOIDS = walking("iCubGenova04", "talos_reduced", "talos_full")
ICUBS = walking("iCubGenova04")
ARMS = fixed("ur5", "xarm7", "kinova") | {"panda": lambda: load("panda", locked=FINGERS)}
EVERY = fixed(*(name for name in ROBOTS if name not in LEGGED)) | walking(*LEGGED)

NAMED: dict[str, Robots] = {
    "inverse_dynamics": EVERY,
    "forward_dynamics": EVERY,
    "hybrid_dynamics": EVERY,
    "identification": fixed(*(name for name in ROBOTS if name not in LEGGED)),
    "joint_torques": fixed(*(name for name in ROBOTS if name not in LEGGED)),
    "identification_floating": walking(*LEGGED),
    "floating_base": walking(*LEGGED),
    "feet_unknown": HUMANOIDS,
    "icub_feet_three_axes": HUMANOIDS,
    "icub_imu": ICUBS,
    "icub_standing": ICUBS,
    "load_cells_five": HUMANOIDS,
    "load_cells_square": HUMANOIDS,
    "four_cells_a_foot": HUMANOIDS,
    "three_axes_a_foot": HUMANOIDS,
    "biped_contacts": HUMANOIDS,
    "quadruped_point_feet": QUADRUPEDS,
    "quadruped_foot_forces": QUADRUPEDS,
    "quadruped_contacts": QUADRUPEDS,
    "wrist_sensor": {"panda": lambda: load("panda", locked=FINGERS, kept=("panda_hand_joint",))},
    "touch": ARMS,
    "momentum_observer": ARMS,
    "own_sensors": {"iCubGenova04, floating": lambda: load("iCubGenova04", "floating", kept="sensors")},
    "nori_code": {f"{n} links": lambda n=n: nd.autotree(n, skew=0.3) for n in (5, 12, 30)},
}
"""The robots that each set says it is for; those that are for every robot on all of the table."""

MODELS = {"own_sensors": ROBOTS["iCubGenova04"]}
"""Robots whose own sensors a shipped set takes."""

NEVER = "feet_unknown", "icub_feet_three_axes"
"""Sets that say of themselves that they never suffice."""


def systems(name: str, robot: str) -> Iterator[tuple[tuple[str, ...], nd.System]]:
    """Yield the systems of a set on a robot, one a contact state, with what is closed."""
    tree, known = NAMED[name][robot](), nd.load_sensors(name, MODELS.get(name))
    n = len(known.contact_names)
    for closed in range(2**n):
        state = tuple(contact for k, contact in enumerate(known.contact_names) if closed >> k & 1)
        yield state, nd.System(tree, known.in_contact(*state) if n else known)


def least_squares(system: nd.System, q: Floats, qd: Floats, y: Floats) -> Floats:
    """d (n,) by the augmented system [0 G^T; G -v] and SuperLU, refined by residuals in extended precision.

    Source: Björck, Numerical Methods for Least Squares Problems, ch. 2.5.
    """
    variance, n = np.zeros(system.shape[0]), system.shape[1]
    for row in system.rows:
        if not row.is_exact:
            variance[row.slice] = 1 / system.weights[list(row.weight_of_rows)]
    G = sp.csc_matrix(system.D(q))
    matrix = sp.bmat([[None, G.T], [G, -sp.diags(variance)]], format="csc")
    target = np.concatenate([np.zeros(n), -system.b(q, qd, y)])
    factors, wide = spla.splu(matrix), matrix.astype(np.longdouble)
    x = np.zeros(len(target), np.longdouble)
    for _ in range(REFINEMENTS):
        x += factors.solve((target - wide @ x).astype(float))
    return x[:n].astype(float)


def backends(plan: nd.Plan) -> list[str]:
    is_quick = plan.cost.total <= QUICK and find_compiler() is not None
    return ["numpy", *["umfpack"] * has_umfpack(), *["native"] * is_quick]


ROWS_TO_SPARE = {
    "feet_unknown": -6,
    "identification": (9, 6),
    "identification_floating": 18,
    "joint_torques": (9, 6),
    "load_cells_five": 4,
    "four_cells_a_foot": 4,
    "three_axes_a_foot": 6,
    "biped_contacts": 26,
    "quadruped_contacts": 6,
    "touch": (0, 1),
    "own_sensors": 192,
}
"""Of sets that have not as many rows as unknowns, where all contacts are closed, on the first two robots."""


def test_what_is_shipped_has_the_rows_that_it_says():
    assert set(NAMED) == set(shipped_configs())
    for name, path in shipped_configs().items():
        assert path.read_text().startswith("# ")
        for k, robot in enumerate([*NAMED[name]][:2]):
            *_, (_, system) = systems(name, robot)
            spare = np.broadcast_to(ROWS_TO_SPARE.get(name, 0), 2)[k]
            assert system.shape[0] == system.shape[1] + spare, (name, robot)
            assert system.is_weighted == (spare > 0 or name in ("touch", "momentum_observer")), name
            assert name not in ("inverse_dynamics", "forward_dynamics") or system.ny == system.tree.nv
        known = nd.load_sensors(name, MODELS.get(name))
        assert (known.name, bool(known.source)) == (name, True)


def outputs_of(state: tuple[str, ...]) -> list[str] | None:
    """The outputs that are asked for: all, or the torques alone, which have a way of their own through limbs."""
    return ["tau"] if state and len(state) % 2 == 0 else None


@pytest.mark.long
@pytest.mark.parametrize(("name", "robot"), [(name, robot) for name, robots in NAMED.items() for robot in robots])
def test_every_shipped_set_runs_or_is_refused_when_it_is_planned(name, robot):
    for state, system in systems(name, robot):
        tree, rng, outputs = system.tree, np.random.default_rng(7), outputs_of(state)
        open_ = null_space(system.D(tree.random_configuration(rng)).toarray(), 1e-10)
        assert open_.shape[1] or name not in NEVER
        if open_.shape[1]:
            with pytest.raises((SingularSystemError, SystemShapeError)) as refused:
                nd.plan(system, outputs)
            if isinstance(refused.value, SingularSystemError):
                moved = np.flatnonzero(np.abs(open_).max(axis=1) > 1e-8)
                assert set(refused.value.undetermined) <= {system.variable_names[k] for k in moved}, state
            continue
        plan = nd.plan(system, outputs)
        for backend in backends(plan):
            solver = plan.solver(backend)
            for _ in range(STATES):
                q, qd, y = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=system.ny)
                solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y
                status = solver.tick()
                assert status.ok, (state, backend, status)
                d = least_squares(system, q, qd, y)
                for kind in outputs or ("tau", "qdd", "fx", "f", "a"):
                    expected = np.concatenate([d[v.slice] for v in system.variables if v.kind == kind])
                    assert_close(np.ravel(getattr(solver.outputs, kind)), expected, ILL_SOLVED)
