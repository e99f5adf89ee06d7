"""What goes together: small robots of all kinds, estimates, and ways to run them.

`python -m tests.combinations` writes docs/combinations.md. A cell of its tables is what came of one robot, one estimate
and one way: `YES` where it ran and its numbers were those of an oracle, or else the words of the `NoriError` by which
it was refused. To add a robot, an estimate or a way: one entry in `ROBOTS`, `ESTIMATES` or `WAYS`.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.stats import chi2

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.components import Coupling, Friction, Loop, Rotor, Spring, Tendon
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.many_logs import estimate_logs
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.live.engine import Engine, prepared
from nori_dyn.live.state import State
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.log import whole_table
from nori_dyn.logs.mapping.binding import bind
from nori_dyn.logs.mapping.record import CONTACT, SampleRecord
from nori_dyn.logs.motion.differentiation import AUTO
from nori_dyn.model.joints import Prismatic, Revolute, Spherical
from nori_dyn.model.tree import Frame
from nori_dyn.planning.outputs import output_columns
from nori_dyn.report.time_plots import SIZE
from nori_dyn.tables import number
from tests import covering
from tests.browser import parsed, text
from tests.exported import Exported, read, written
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.trees import on_a_free_base
from tests.unit.filtering.recorded import by_least_squares_of
from tests.unit.report.test_curves import points
from tests.unit.report.test_log_page import frame_of

Floats = NDArray[np.float64]
Contacts = tuple[str, ...]

N, DT, LAG = 6, 0.01, 2
"""Ticks of a run, the time between them [s], and how many ticks late a smoother is."""

YES = "yes"
SOLVED, DIFFERENCED, IDENTIFIED, RECOGNISED = 1e-8, 1e-5, 1e-6, 1e-5
"""How exact numbers are, relative to the largest: as solved; beside differences; of a robot that was identified; of
contacts that were recognised, for which an oracle is told the contacts."""

TIP = "tip"
"""The contact, where there is one: of the last link, which it pushes in one direction."""

PUSH = 60.0
"""The force where it is closed [N, N m]."""

# --------------------------------------------------------------------------------------------------------------- robots

CHAIN = nd.tools.random_tree(2, seed=7, kinds=("revolute",), chain=1.0).replace(names=("upper", "lower"))


def shift(*place: float) -> Transform:
    return Transform(np.eye(3), np.array(place))


def tree() -> nd.KinematicTree:
    """Two links, the second on a ball."""
    return CHAIN.replace(name="tree", joints=(Revolute(), Spherical()))


def floating() -> nd.KinematicTree:
    """Two links, of which nothing holds the first."""
    return on_a_free_base(CHAIN).replace(name="floating")


def loops() -> nd.KinematicTree:
    """A crank whose pin slides in the slot of a lever: two rows, one of which repeats what the hinges say."""
    frames = {"slot": Frame(1, shift(0, 0, 0)), "pin": Frame(0, shift(0.3, 0, 0))}
    return CHAIN.replace(
        name="loops",
        parents=(-1, -1),
        joints=(Revolute(), Revolute()),
        X_tree=(shift(0, 0, 0), shift(0.5, 0, 0)),
        frames=frames,
        components=(Loop(name="slider", frames=list(frames), constrains=["fy", "fz"]),),
    )


def couplings() -> nd.KinematicTree:
    """Two links of which a belt turns the second."""
    belt = Coupling(name="belt", joint=CHAIN.joint_names[1], of={CHAIN.joint_names[0]: -0.5})
    return CHAIN.replace(name="couplings", components=(belt,))


def components() -> nd.KinematicTree:
    """Two links with rotors, friction and springs, a passive tendon, and a joint that slides."""
    return CHAIN.replace(
        name="components",
        joints=(Revolute(), Prismatic()),
        frames={"anchor": Frame(-1, shift(0.5, 0.3, 0.2)), "hook": Frame(1, shift(0.1, 0.2, 0.3))},
        components=(
            Rotor(joints="all", inertia=1e-4, gear=30.0),
            Friction(joints="all", viscous=0.1, coulomb=0.2, width=0.1),
            Spring(joints=CHAIN.joint_names[1], stiffness=4.0),
            Tendon(name="cable", through=["anchor", "hook"], role="passive", stiffness=50.0, damping=2.0),
        ),
    )


ROBOTS: Mapping[str, Callable[[], nd.KinematicTree]] = {
    "tree": tree,
    "floating": floating,
    "loops": loops,
    "couplings": couplings,
    "contacts": lambda: tree().replace(name="contacts"),
    "components": components,
}
WITH_CONTACTS = "contacts"
"""The robot whose contact is told in all estimates; that called so recognises one on every robot."""

# -------------------------------------------------------------------------------------------------------------- sensors

SOFT_MOTION, SOFT_TORQUES = ACCELERATIONS | {"sigma": 0.1}, TORQUES | {"sigma": 0.2}
PRIOR = {"type": "prior", "variables": ["qdd", "tau"], "mean": 0.3, "sigma": 10}
MEMORY = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.02, "walk": 0.01}, "drift": {"of": "offset", "walk": 0.1}}

Config = dict[str, Any]
EXACT: Config = {"measurements": [TORQUES]}
WEIGHED: Config = {"measurements": [SOFT_MOTION, SOFT_TORQUES]}
NOISY: Config = {"measurements": [SOFT_MOTION, SOFT_TORQUES, PRIOR], "dynamics": {"sigma": {"3f": 0.01}}}
REMEMBERING: Config = {"measurements": [SOFT_MOTION, SOFT_TORQUES | {"offset": {"sigma": 0.1}}], "memory": MEMORY}


def pushed_along(robot: nd.KinematicTree) -> str:
    """Along what a contact pushes the last link: something that the joints feel."""
    return "mz" if robot.name == "loops" else "fz"


def sensors_on(robot: nd.KinematicTree, config: Config, has_contacts: bool) -> nd.SensorSet:
    """Sensors with what is known of wrenches: none but where a contact is closed, whose force is read if all
    rows hold exactly."""
    tip, pushed = {"links": robot.names[-1]}, [pushed_along(robot)]
    content = {"name": "sensors", **config, "measurements": [*config["measurements"], UNLOADED]}
    if has_contacts:
        others = [component for component in ("mx", "my", "mz", "fx", "fy", "fz") if component not in pushed]
        closed = [UNLOADED | tip | {"components": others}]
        closed += [WRENCHES | tip | {"components": pushed}] if config is EXACT else []
        content["contacts"] = {TIP: {"closed": closed, "open": [UNLOADED | tip]}}
        content["measurements"][-1] = UNLOADED | {"links": list(robot.names[:-1])}
    return nd.SensorSet.from_dict(content)


# ---------------------------------------------------------------------------------------------------------------- ticks


class Ticks(NamedTuple):
    """Ticks of a robot with sensors: times, states, readings of all contact states, and which contacts are closed."""

    t: Floats
    q: Floats
    qd: Floats
    y: Floats
    closed: tuple[Contacts, ...]

    def at(self, part: slice) -> Ticks:
        return Ticks(*(each[part] for each in self))  # type: ignore[arg-type]


@cache
def motion_of(name: str, has_contacts: bool, n: int) -> tuple[nd.System, list[tuple[Contacts, Floats, Floats, Floats]]]:
    """The dynamics of a robot; at each tick the contacts that are closed, q, qd and all of d by them."""
    robot, rng = ROBOTS[name](), np.random.default_rng(5)
    dynamics = nd.System(robot, sensor_set(TORQUES, WRENCHES))
    loaded = [name for name in dynamics.measurement_names if name == f"fx:{robot.names[-1]}.{pushed_along(robot)}"]
    push = np.array([name in loaded for name in dynamics.measurement_names])
    torque = np.array([name.startswith("tau:") for name in dynamics.measurement_names])
    found = []
    for k in range(n):
        state: Contacts = (TIP,) if has_contacts and k % N < N // 2 else ()
        q, qd = nd.tools.closed(robot, robot.random_configuration(rng), rng.normal(size=robot.nv))
        forces = np.where(torque, 3 * rng.normal(size=dynamics.ny), 0.0) + PUSH * push * bool(state)
        found.append((state, q, qd, la.lstsq(dynamics.D(q).toarray(), -dynamics.b(q, qd, forces))[0]))
    return dynamics, found


def ticks_of(plans: nd.Plan, noise: float = 1.0, n: int = N) -> Ticks:
    """What happens by the robot's own dynamics, and what its sensors read of it, give or take their sigmas."""
    dynamics, motion = motion_of(plans.tree.name, bool(plans.contact_names), n)
    rng, Y = np.random.default_rng(6), []
    for state, q, qd, d in motion:
        y = dict.fromkeys(plans.measurement_names, 0.0)
        y |= _read(plans.states[state].system, dynamics, q, qd, d, noise * rng.normal(size=1000))
        Y.append(list(y.values()))
    closed, Q, Qd, _ = zip(*motion, strict=True)
    return Ticks(1.0 + DT * np.arange(n), np.array(Q), np.array(Qd), np.array(Y), closed)


def _read(system: nd.System, dynamics: nd.System, q: Floats, qd: Floats, d: Floats, noise: Floats) -> dict[str, float]:
    """The readings at a state: with them the rows that hold exactly do, and the others to their sigmas."""
    values = np.zeros(system.shape[1])
    for v in dynamics.variables:
        if v.key in {own.key for own in system.variables}:
            values[system.column(v.key.kind, v.key.body, v.key.component)] = d[v.slice]
    rest = system.D(q) @ values + system.b(q, qd, np.zeros(system.ny))
    found = np.zeros(system.ny)
    for row in system.measurements:
        found[row.y] = rest[row.slice]
        if not row.is_exact:
            found[row.y] += noise[row.y] / np.sqrt(system.weights[list(row.weight_of_rows)])
    return dict(zip(system.measurement_names, found.tolist(), strict=True))


def flat(values: Mapping[str, Any], *names: str) -> Floats:
    """Values by name, each with a leading N, side by side."""
    chosen = [np.asarray(values[name]) for name in names or values]
    return np.concatenate([each.reshape(len(each), -1) for each in chosen], axis=1)


def assert_same(found: Any, expected: Any, tolerance: float) -> None:
    """Assert that numbers are those of an oracle."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, float(np.abs(expected).max())))


# ------------------------------------------------------------------------------------------------------------ estimates

OUTPUTS = ("qdd", "tau")


class Run:
    """An estimate of a robot, and how it is run in each way: a method each, which returns nothing and asserts all.

    Args:
        robot: the robot.
        has_contacts: whether it has one, which is told or to be recognised.
        folder: for its files.
        is_compiled: whether what is written as C is compiled, and run.
    """

    config: Config
    tolerance = SOLVED
    way, lag = RunOptions(backend="numpy"), 0

    def __init__(self, robot: nd.KinematicTree, has_contacts: bool, folder: Path, is_compiled: bool) -> None:
        self.robot, self.folder, self.is_compiled = robot, folder, is_compiled
        self.plan: nd.Plan = self.planned(sensors_on(robot, self.config, has_contacts))
        self.ticks = ticks_of(self.plan)

    def planned(self, sensors: nd.SensorSet) -> nd.Plan:
        return nd.plan(self.robot, sensors, OUTPUTS)

    # ---- what is expected

    def own(self, k: int) -> tuple[nd.System, Floats]:
        """The system of a tick, and its readings."""
        system = self.plan.states[self.ticks.closed[k]].system
        places = [self.plan.measurement_names.index(name) for name in system.measurement_names]
        return system, self.ticks.y[k][places]

    def solved(self, k: int, q: Floats, qd: Floats, y: Floats) -> Floats:
        """All d at a state of a tick, by dense algebra."""
        system, _ = self.own(k)
        if not system.is_weighted:  # rows of loops that repeat others are zero here
            return np.asarray(la.lstsq(system.D(q).toarray(), -system.b(q, qd, y))[0])
        return by_least_squares_of([system], [0.0], [q], [qd], [y])[0][0]

    def columns(self, system: nd.System) -> list[int]:
        found: list[int] = output_columns(system, self.plan.states.first.outputs).tolist()
        return found

    @cached_property
    def expected(self) -> Floats:
        """The numbers of all ticks, each by itself."""
        found = []
        for k in range(N):
            system, y = self.own(k)
            found.append(self.solved(k, self.ticks.q[k], self.ticks.qd[k], y)[self.columns(system)])
        return np.array(found)

    @property
    def of_all(self) -> Floats:
        """What is expected of all ticks together."""
        return self.expected

    @property
    def estimates(self) -> Floats:
        """The outputs among these."""
        return self.of_all

    # ---- ways

    @property
    def told(self) -> dict[str, Any]:
        """Which contacts are closed, as all ticks together are given them."""
        return {"contacts": self.ticks.closed} if self.plan.contact_names else {}

    def runner_of(self, plan: nd.Plan) -> Any:
        """What runs a plan, compiled."""
        return plan.solver("numpy")

    @cached_property
    def runner(self) -> Any:
        """What runs the plan."""
        return self.runner_of(self.plan)

    def tick(self) -> None:
        self.assert_ticked(self.runner)

    def assert_ticked(self, solver: Any) -> None:
        found = []
        for t in self.each():
            if self.plan.contact_names:
                solver.switch(t.closed[0])
            solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = t.q[0], t.qd[0], t.y[0]
            assert solver.tick().ok
            found.append(np.concatenate([np.ravel(getattr(solver.outputs, name)).copy() for name in OUTPUTS]))
        assert_same(found, self.expected, self.tolerance)

    def each(self) -> Iterable[Ticks]:
        return (self.ticks.at(slice(k, k + 1)) for k in range(N))

    def batch(self, threads: int = 1) -> None:
        found = self.runner.solve_batch(*self.ticks[1:4], **self.told, threads=threads)
        assert_same(flat(found.values), self.expected, self.tolerance)

    def threads(self) -> None:
        self.batch(threads=2)

    @property
    def options(self) -> dict[str, Any]:
        return {"backend": "numpy"}

    def written(self, name: str) -> Path:
        """A log of the ticks."""
        path, (t, q, qd, y, closed) = self.folder / name, self.ticks
        contacts = {f"{CONTACT}{one}": np.array([one in state for state in closed]) for one in self.plan.contact_names}
        np.savez(path, t=t, q=q, qd=qd, y=y, **({} if self.way.hypotheses else contacts))
        return path

    @cached_property
    def estimated(self) -> Any:
        """What comes of a log."""
        return nd.estimate(self.written("log.npz"), self.plan, **self.options)

    def log(self) -> None:
        assert_same(flat(self.estimated.values), self.of_all, self.tolerance)

    def live(self) -> None:
        assert_same(list(self.streamed(self.plan)), self.expected, self.tolerance)

    def streamed(self, plan: Any) -> Iterable[Floats]:
        """Yield the estimates of a stream of samples."""
        solving = prepared(plan, self.way, self.lag)
        record = SampleRecord.of(solving.systems, solving.contacts)
        stream = Stream("/robot", ("t", *record.names), clock="t")
        binding = bind(dict.fromkeys(stream.columns, stream), None, record)
        engine, state = Engine(solving, binding, AUTO, stream.columns), State(binding)
        for t in self.each():
            told = [float(contact in t.closed[0]) for contact in solving.contacts]
            numbers = dict(zip(record.names, [*t.q[0], *t.qd[0], *t.y[0], *told], strict=True)) | {"t": t.t[0]}
            bound = state.tracks["/robot"].bound
            due = state.take("/robot", np.array([numbers[column] for column in bound.columns]), float(t.t[0]))
            found = None if due is None else engine.tick(state, due)
            if found is not None:
                yield self.of_estimate(found)

    def of_estimate(self, found: Any) -> Floats:
        return np.concatenate([np.ravel(found.estimate.values[name]) for name in OUTPUTS])

    def many_logs(self) -> None:
        out = self.folder / "out"
        for name in ("first.npz", "second.npz"):
            (self.folder / "logs").mkdir(exist_ok=True)
            self.written(f"logs/{name}")
        runner = LogRunner(self.plan, RunOptions(**self.options))
        for outcome in estimate_logs(runner, str(self.folder / "logs" / "*.npz"), out, workers=1):
            if outcome.error:
                raise nd.errors.NoriError(outcome.error)
            assert_same(self.of_table(whole_table(outcome.out)), self.of_all, self.tolerance)

    def of_table(self, table: Mapping[str, Floats]) -> Floats:
        own = [[name for name in table if name.partition(":")[0] == output] for output in OUTPUTS]
        return np.stack([table[name] for names in own for name in names], axis=1)

    def loaded(self) -> nd.Plan:
        """The plan from a file of it."""
        self.plan.save(self.folder / "it.plan")
        return nd.Plan.load(self.folder / "it.plan")

    def file(self) -> None:
        self.assert_ticked(self.runner_of(self.loaded()))

    def c(self) -> None:
        self.assert_exported(self.plan.export(self.folder / "c", name="it"))

    def assert_exported(self, export: Any) -> None:
        assert written(self.folder / "c") == dict(export.files)
        sizes = {"q": self.robot.nq, "qd": self.robot.nv, "y": len(self.plan.measurement_names)}
        assert {name: export.inputs[name] for name in sizes} == sizes
        assert sum(np.prod(export.outputs[name], dtype=int) for name in OUTPUTS) == 2 * self.robot.nv
        if self.is_compiled:
            assert_same(list(self.compiled(Exported.made(export, self.folder / "c"))), self.expected, self.tolerance)

    def compiled(self, made: Exported) -> Iterable[Floats]:
        """Yield what compiled code finds."""
        weights = _weights(self.plan)
        for t in self.each():
            mask = {"contacts": _mask(t.closed[0])} if self.plan.contact_names else {}
            status, found = made.solve(t.q[0], t.qd[0], t.y[0], *weights, **mask)
            assert status == 0
            yield np.concatenate([np.ravel(found[name]) for name in OUTPUTS])

    def page(self) -> None:
        nd.view(self.estimated, self.folder / "log.html")
        self.assert_drawn((self.folder / "log.html").read_text())

    def assert_drawn(self, page: str) -> None:
        """Assert that the lines of a page are the estimates."""
        system = self.plan.states.first.system
        drawn = lines_of(page)
        for name, numbers in zip(np.array(system.variable_names)[self.columns(system)], self.estimates.T, strict=True):
            found, resolution = drawn[str(name)]
            np.testing.assert_allclose(found, numbers, rtol=0, atol=resolution)


def lines_of(page: str) -> dict[str, tuple[Floats, float]]:
    """The estimates that a page draws, by the name of each number, and how exactly they can be read back."""
    (section,) = (each for each in parsed(page).iter("section") if each.get("aria-labelledby") == "estimates")
    found = {}
    for figure in section.iter("figure"):
        frame, low, high = frame_of(figure)
        labels = [text(key) for key in figure.iterfind("figcaption/span") if "key" in key.get("class")]
        paths = [path for path in frame.iter("path") if "line" in path.get("class")]
        for label, path in zip(labels, paths, strict=False):
            variable = text(figure.find("figcaption/b")).partition(": ")[0]
            name = variable if label == "estimated" else f"{variable}.{label}"
            drawn = [point[1] for part in points(path.get("d")) for point in part[1:]]
            found[name] = high - np.array(drawn) / SIZE * (high - low), (high - low) / SIZE
    return found


def _mask(closed: Contacts) -> int:
    return int(TIP in closed)


def _weights(plans: nd.Plan) -> list[Floats]:
    """The weights of a plan, or of the plans of contact states, as solvers take them; none without any."""
    found = plans.solver("numpy").inputs.weights.copy()
    return [found] if len(found) else []


class Exact(Run):
    config = EXACT


class Weighed(Run):
    config = WEIGHED


class Map(Run):
    config = NOISY


class Judged(Weighed):
    """What a monitor says: estimates, their deviations, and how likely such readings are."""

    way = RunOptions(backend="numpy", monitor=True)

    @cached_property
    def expected(self) -> Floats:
        found = []
        for k in range(N):
            system, y = self.own(k)
            q, qd = self.ticks.q[k], self.ticks.qd[k]
            (d,), (P,) = by_least_squares_of([system], [0.0], [q], [qd], [y])
            soft = np.concatenate([np.full(len(row.component_names), not row.is_exact) for row in system.rows])
            weights = system.weights[[k for row in system.rows if not row.is_exact for k in row.weight_of_rows]]
            D, rest = system.D(q).toarray(), (system.D(q) @ d + system.b(q, qd, y))[soft]
            told = np.linalg.matrix_rank(D[soft] @ la.null_space(D[~soft]))
            own = self.columns(system)
            likely = chi2.sf(weights @ rest**2, len(rest) - told)
            found.append([*d[own], *np.sqrt(np.diag(P)[own]), likely])
        return np.array(found)

    @property
    def estimates(self) -> Floats:
        return self.expected[:, : self.expected.shape[1] // 2]

    @property
    def options(self) -> dict[str, Any]:
        return {"backend": "numpy", "monitor": True}

    def said(self, found: nd.results.Diagnosis) -> Floats:
        return np.concatenate([flat(found.estimate.values), flat(found.deviations), np.c_[found.p_value]], axis=1)

    def runner_of(self, plan: Any) -> Any:
        return plan.monitor("numpy")

    def assert_ticked(self, monitor: Any) -> None:
        assert_same(
            [self.said_once(monitor.check(t.q[0], t.qd[0], t.y[0])) for t in self.each()], self.expected, SOLVED
        )

    def said_once(self, found: nd.results.Diagnosis) -> Floats:
        numbers = [*found.estimate.values.values(), *found.deviations.values(), found.p_value]
        return np.concatenate([np.ravel(each) for each in numbers])

    def batch(self, threads: int = 1) -> None:
        found = self.runner.check_batch(*self.ticks[1:4], threads=threads)
        assert_same(self.said(found), self.expected, self.tolerance)

    def log(self) -> None:
        assert_same(self.said(self.estimated.diagnosis), self.expected, self.tolerance)

    def of_estimate(self, found: Any) -> Floats:
        return self.said_once(found.judged)

    def of_table(self, table: Mapping[str, Floats]) -> Floats:
        return np.concatenate([super().of_table(table), _sigmas(table), np.c_[table["p_value"]]], axis=1)

    def c(self) -> None:
        self.assert_exported(self.plan.export(self.folder / "c", name="it", monitor=True))

    def compiled(self, made: Exported) -> Iterable[Floats]:
        for t, estimates in zip(self.each(), super().compiled(made), strict=True):
            status, found = made.check(t.q[0], t.qd[0], t.y[0], *_weights(self.plan))
            assert status == 0
            yield np.concatenate(
                [estimates, *(np.ravel(found[f"sigma_{name}"]) for name in OUTPUTS), [found["p_value"]]]
            )


def _sigmas(table: Mapping[str, Floats]) -> Floats:
    names = [name for output in OUTPUTS for name in table if name.startswith(f"sigma:{output}:")]
    return np.stack([table[name] for name in names], axis=1)


class Derived(Weighed):
    """What the derivatives of estimates by q and by readings are, beside differences of dense solutions."""

    tolerance = DIFFERENCED
    STEP = 1e-5

    @cached_property
    def expected(self) -> Floats:
        return np.array([self._differences(k) for k in range(N)])

    def _differences(self, k: int) -> Floats:
        (system, y), q, qd, h = self.own(k), self.ticks.q[k], self.ticks.qd[k], self.STEP
        own, parts = self.columns(system), np.split(np.arange(2 * self.robot.nv), 2)
        ahead, back = (
            [self.solved(k, self.robot.integrate(q, step), qd, y)[own] for step in sign * h * np.eye(self.robot.nv)]
            for sign in (1, -1)
        )
        by_q = (np.array(ahead) - back).T / (2 * h)
        by_y = np.array([self.solved(k, q, qd, y + e) - self.solved(k, q, qd, y) for e in np.eye(system.ny)]).T[own]
        return np.concatenate([by[part].ravel() for by in (by_q, by_y) for part in parts])

    def runner_of(self, plan: Any) -> Any:
        return plan.derivative("q", "y", backend="numpy")

    def assert_ticked(self, by: Any) -> None:
        found = []
        for t in self.each():
            by.inputs.q[:], by.inputs.qd[:], by.inputs.y[:] = t.q[0], t.qd[0], t.y[0]
            assert not by.tick()
            found.append(np.concatenate([np.ravel(getattr(by.outputs, name)).copy() for name in by.names]))
        assert_same(found, self.expected, self.tolerance)

    def batch(self, threads: int = 1) -> None:
        found = self.runner.batch(*self.ticks[1:4], threads=threads)
        assert_same(flat(found._asdict()), self.expected, self.tolerance)

    def log(self) -> None:
        samples = self.estimated.samples
        found = self.runner.batch(samples.q, samples.qd, samples.y)
        assert_same(flat(found._asdict()), self.expected, self.tolerance)

    def live(self) -> None:
        list(self.streamed(self.runner))

    def many_logs(self) -> None:
        LogRunner(self.runner, RunOptions())

    def c(self) -> None:
        self.runner.export(self.folder / "c")

    def page(self) -> None:
        nd.tools.save_html(self.runner, self.folder / "it.html")


class Identified(Exact):
    """A robot whose inertias are found from a log, beginning with wrong ones: what its plan says is what the true one
    does."""

    tolerance = IDENTIFIED
    SAMPLES = 36

    def __init__(self, robot: nd.KinematicTree, has_contacts: bool, folder: Path, is_compiled: bool) -> None:
        super().__init__(robot, has_contacts, folder, is_compiled)
        self.sensors = sensors_on(
            robot, {"measurements": [m | {"sigma": 1e-4} for m in (ACCELERATIONS, TORQUES)]}, has_contacts
        )
        self.found = self.identified(self.recorded("log.npz"))
        self.plan = nd.plan(self.found.robot, sensors_on(robot, self.config, has_contacts), OUTPUTS)

    def recorded(self, *names: str) -> list[Path]:
        """Logs of the true robot, without noise, one a half of the samples or one of all."""
        ticks = ticks_of(self.planned(self.sensors), noise=0.0, n=self.SAMPLES)
        for name, part in zip(names, np.array_split(np.arange(self.SAMPLES), len(names)), strict=True):
            t, q, qd, y = (each[part] for each in ticks[:4])
            closed = {f"{CONTACT}{TIP}": [float(bool(ticks.closed[k])) for k in part]}
            np.savez(self.folder / name, t=t, q=q, qd=qd, y=y, **closed)
        return [self.folder / name for name in names]

    def identified(self, logs: Sequence[Path]) -> nd.results.Identification:
        wrong = self.robot.replace(I=1.1 * self.robot.I)
        return nd.identify(logs, wrong, ["inertias"], sensors=self.sensors, physical=False, backend="numpy")

    @cached_property
    def expected(self) -> Floats:
        has_contacts = bool(self.sensors.contact_names)
        wrong, self.plan = self.plan, self.planned(sensors_on(self.robot, self.config, has_contacts))
        found, self.plan = super().expected, wrong
        return found

    def log(self) -> None:
        self.tick()  # of what was identified from a log

    def many_logs(self) -> None:
        found = self.identified(self.recorded("first.npz", "second.npz"))
        plan = nd.plan(found.robot, sensors_on(self.robot, self.config, bool(self.sensors.contact_names)), OUTPUTS)
        self.assert_ticked(self.runner_of(plan))

    def page(self) -> None:
        nd.tools.save_html(self.found, self.folder / "it.html")
        said = text(parsed((self.folder / "it.html").read_text()))
        assert all(number(each.plain) in said for each in self.found.estimates)


class Placed(Weighed):
    """Sensors that were chosen among candidates: what is estimated with them."""

    def planned(self, sensors: nd.SensorSet) -> nd.Plan:
        content = sensors.to_dict() | {"candidates": self.config}
        content["measurements"] = content["measurements"][len(self.config["measurements"]) :]
        self.found = nd.place(self.robot, nd.placement.Candidates.from_dict(content), OUTPUTS)
        return nd.plan(self.robot, self.found.sensors, OUTPUTS)

    def page(self) -> None:
        nd.tools.save_html(self.found, self.folder / "it.html")
        said = text(parsed((self.folder / "it.html").read_text()))
        assert all(name in said for name in self.found.chosen)


class Filtered(Run):
    """A filter: each tick by the readings up to it."""

    config = REMEMBERING
    hypotheses = None
    is_causal = True

    def runner_of(self, plan: nd.Plan) -> nd.Tracker[Any]:
        return nd.Tracker(plan, DT, self.lag, self.hypotheses, backend="numpy")

    def by_all(self, last: int) -> Floats:
        """The estimates of all ticks by the readings up to the last of them."""
        systems, y = zip(*map(self.own, range(last + 1)), strict=True)
        t, q, qd = (each[: last + 1] for each in self.ticks[:3])
        found, _ = by_least_squares_of(systems, t, q, qd, y)
        return np.array([d[self.columns(system)] for system, d in zip(systems, found, strict=True)])

    @cached_property
    def expected(self) -> Floats:
        """What comes of one tick after the other."""
        return np.array([self.by_all(k)[k - self.lag] for k in range(self.lag, N)])

    def assert_ticked(self, tracker: Any) -> None:
        assert_same(self.stepped(tracker), self.expected, self.tolerance)

    def stepped(self, tracker: Any) -> list[Floats]:
        tracker.reset()
        found = []
        for k, t in enumerate(self.each()):
            if tracker.contact_names and not tracker.recognises:
                tracker.switch(t.closed[0])
            tracker.inputs.q[:], tracker.inputs.qd[:], tracker.inputs.y[:] = t.q[0], t.qd[0], t.y[0]
            status = tracker.tick(DT)
            assert status.ok == (k >= self.lag)
            if status.ok:
                found.append(np.concatenate([np.ravel(getattr(tracker.outputs, name)).copy() for name in OUTPUTS]))
        return found

    def batch(self, threads: int = 1) -> None:
        t = self.ticks
        found = self.runner.over(*t[:4], **self.told, causal=self.is_causal)
        assert_same(flat(found.estimate.values), self.of_all, self.tolerance)

    def threads(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(self.stepped, [self.runner_of(self.plan) for _ in range(2)]):
                assert_same(found, self.expected, self.tolerance)

    @cached_property
    def estimated(self) -> Any:
        return nd.smooth(self.written("log.npz"), self.plan, causal=self.is_causal, backend="numpy")

    def c(self) -> None:
        self.assert_exported(self.runner.export(self.folder / "c", name="it"))

    def compiled(self, made: Exported) -> Iterable[Floats]:
        of, given, out = made.new("filter"), made.new("inputs"), made.new("outputs")
        made.call("init", given)
        made.call("filter_init", of)
        tells = self.plan.contact_names and self.hypotheses is None
        for k, t in enumerate(self.each()):
            given.q, given.qd, given.y = t.q[0].tolist(), t.qd[0].tolist(), t.y[0].tolist()
            status = made.call("step", of, *([_mask(t.closed[0])] if tells else []), given, DT, out)
            assert (status == 0) == (k >= self.lag)
            found = read(out, made.export.outputs)
            if k >= self.lag:
                yield np.concatenate([np.ravel(found[name]) for name in OUTPUTS])


class Smoothed(Filtered):
    """A smoother: some ticks late where ticks come one by one, else by the readings of all."""

    lag = LAG
    is_causal = False

    @property
    def options(self) -> dict[str, Any]:
        return {"backend": "numpy", "how": "smooth"}

    @cached_property
    def of_all(self) -> Floats:
        return self.by_all(N - 1)


class Recognising(Filtered):
    """A filter that finds out which contacts are closed; an oracle is told them."""

    hypotheses = nd.Hypotheses(rate=20.0, acceleration=100.0)
    way = RunOptions(backend="numpy", hypotheses=hypotheses)

    @cached_property
    def expected(self) -> Floats:
        """What comes of one step after the other; as long as the first state lasts, an oracle is told it."""
        tracker = self.runner_of(self.plan)
        found = [tracker.step(t.q[0], t.qd[0], t.y[0]) for t in self.each()]
        half = N // 2
        assert [found[k].contacts for k in (half - 1, N - 1)] == [(TIP,), ()]
        estimates = np.array([self.of_estimate(one) for one in found])
        assert_same(estimates[:half], super().expected[:half], RECOGNISED)
        return estimates

    @property
    def told(self) -> dict[str, Any]:
        return {}

    @property
    def options(self) -> dict[str, Any]:
        return {"backend": "numpy", "hypotheses": self.hypotheses}

    @cached_property
    def estimated(self) -> Any:
        log = self.written("log.npz")
        return nd.smooth(log, self.plan, causal=True, backend="numpy", contacts=self.hypotheses)


ESTIMATES: Mapping[str, type[Run]] = {
    "exact": Exact,
    "weighed": Weighed,
    "MAP": Map,
    "filter": Filtered,
    "smoother": Smoothed,
    "contacts": Recognising,
    "identification": Identified,
    "derivatives": Derived,
    "monitor": Judged,
    "placement": Placed,
}

WAYS = ("tick", "batch", "threads", "log", "live", "many logs", "file", "C", "page")
"""Each a method of `Run`."""

COMPILED = {
    "exact": "components",
    "weighed": "loops",
    "MAP": "couplings",
    "filter": "contacts",
    "smoother": "components",
    "contacts": "loops",
    "monitor": "tree",
}
"""On which robot what is written as C is compiled, and run; with `pytest --all` it is on all."""


def rows() -> dict[tuple[str, str], list[str]]:
    """The ways in which each estimate of each robot is tried: each two of these meet; all three do with `--all`."""
    found: dict[tuple[str, str], list[str]] = {}
    for i, j, k in covering.chosen([len(ESTIMATES), len(ROBOTS), len(WAYS)]):
        found.setdefault(([*ROBOTS][j], [*ESTIMATES][i]), []).append(WAYS[k])
    for estimate, robot in COMPILED.items():
        found[robot, estimate] = list(dict.fromkeys([*found[robot, estimate], "C"]))
    return found


def cells(robot: str, estimate: str, ways: Sequence[str] = WAYS) -> dict[str, str]:
    """What comes of a robot and an estimate, by the way.

    Raises:
        AssertionError: numbers are not those of the oracle.
    """
    found = {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        folder, run = Path(name), None
        for way in ways:
            try:
                run = run or _made(robot, estimate, folder)
                getattr(run, way.replace(" ", "_").lower())()
                found[way] = YES
            except nd.errors.NoriError as error:
                words = " ".join(str(error).replace(f"{folder}/", "").split())
                found[way] = f"`{type(error).__name__}`: {words}"
    return found


def _made(robot: str, estimate: str, folder: Path) -> Run:
    has_contacts = WITH_CONTACTS in (robot, estimate)
    return ESTIMATES[estimate](ROBOTS[robot](), has_contacts, folder, covering.ALL or COMPILED.get(estimate) == robot)


# ------------------------------------------------------------------------------------------------------------- the page

DOCUMENT = Path(__file__).parents[1] / "docs" / "combinations.md"
TEST = "tests/contracts/test_combinations.py"

HEAD = f"""# What goes together

Six kinds of robots, ten kinds of estimates and nine ways to run them: 540 combinations, tried on robots of two links.
**yes**: it runs, and its numbers are those of dense linear algebra over the same equations. A number in brackets: it is
refused, for all robots or for the one named, with that [message](#refusals). `{TEST}`
compares the page with what comes of each; `python -m tests.combinations` writes it.

Robots: a **tree** with a ball joint; a **floating** base; **loops** with dependent rows; **couplings**; **contacts**
with a plan a state; other **components** (rotors, friction, springs, tendons). Ways: a **tick**; a **batch** of states
or recorded ticks; **threads**; a **log**; **live** samples; **many logs**; a plan **file**, loaded again; exported
**C**; a **page** for the browser.
"""

WORDS = {
    "exact": "as many rows as unknowns: accelerations from torques and wrenches",
    "weighed": "more rows than unknowns, with a sigma each",
    "MAP": "priors on accelerations and torques, some noise in the equations of motion",
    "filter": "velocities and torque offsets are the state",
    "smoother": f"the same with a lag of {LAG} ticks, or by all readings",
    "contacts": "a filter that recognises whether a contact is closed",
    "identification": "inertias from logs; a plan of the identified robot",
    "derivatives": "by configurations and readings",
    "monitor": "deviations and p-values of weighted estimates",
    "placement": "the cheapest sensors; a plan with them",
}
"""What each estimate is."""

Table = Mapping[tuple[str, str], Mapping[str, str]]
"""The cells, by way, of each robot and estimate."""


def page_of(table: Table) -> str:
    """Write the page: a row an estimate, and the refusals, each once."""
    refusals = list(dict.fromkeys(cell for row in table.values() for cell in row.values() if cell != YES))
    shown = {YES: YES} | {cell: f"({k})" for k, cell in enumerate(refusals, 1)}
    rows = [f"| estimate | {' | '.join(WAYS)} |", f"|---{'|---' * len(WAYS)}|"]
    for estimate in ESTIMATES:
        cells = (_cell([shown[table[robot, estimate][way]] for robot in ROBOTS]) for way in WAYS)
        rows.append(f"| **{estimate}**: {WORDS[estimate]} | {' | '.join(cells)} |")
    messages = "\n".join(f"{k}. {cell}" for k, cell in enumerate(refusals, 1))
    return "\n".join([HEAD, *rows, f"\n## Refusals\n\n{messages}\n"])


def _cell(outcomes: Sequence[str]) -> str:
    """Say what comes of most robots, and of those that differ by their names."""
    usual = max(dict.fromkeys(outcomes), key=outcomes.count)
    others = (f"{robot} {one}" for robot, one in zip(ROBOTS, outcomes, strict=True) if one != usual)
    return ", ".join([usual, *others])


def table_in(page: str) -> Table:
    """Read the cells of a page."""
    refusals = dict(re.findall(r"^(\d+)\. (.*)$", page, flags=re.MULTILINE))
    found = {}
    for estimate, row in re.findall(r"^\| \*\*(.*?)\*\*: (.*) \|$", page, flags=re.MULTILINE):
        cells = [_outcomes(cell, refusals) for cell in row.split(" | ")[1:]]
        for robot in ROBOTS:
            found[robot, estimate] = {way: cell[robot] for way, cell in zip(WAYS, cells, strict=True)}
    return found


def _outcomes(cell: str, refusals: Mapping[str, str]) -> dict[str, str]:
    usual, *others = (re.sub(r"\((\d+)\)", r"\1", part) for part in cell.split(", "))
    by_robot = dict.fromkeys(ROBOTS, usual) | dict(other.split(" ") for other in others)
    return {robot: one if one == YES else refusals[one] for robot, one in by_robot.items()}


if __name__ == "__main__":
    DOCUMENT.write_text(
        page_of({(robot, estimate): cells(robot, estimate) for estimate in ESTIMATES for robot in ROBOTS})
    )
