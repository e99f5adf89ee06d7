"""What is done with a damaged file of each kind, as a user would: loaded, bound to a robot, planned, solved.

Each `use_*` takes a path and returns what came of it, or raises; the errors that count as an answer are NoriErrors.
"""

import contextlib
import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import yaml
from hypothesis import strategies as st

import nori_dyn as nd
from nori_dyn.estimation.plan_files import FORMAT as PLAN
from nori_dyn.estimation.plan_files import PlanData, tree_of
from nori_dyn.io.cache_files import CACHE_VARIABLE, cache_root
from nori_dyn.logs.formats.registry import open_log, writer_of
from nori_dyn.logs.formats.writer import Field, FileSchema
from nori_dyn.logs.motion.differentiation import SavitzkyGolay
from nori_dyn.logs.reading import configurations_in
from nori_dyn.planning.orders import cache_folder, sealed, unsealed
from tests.attack import mutations
from tests.attack.mutations import damaged_bytes, damaged_data, damaged_text, often, pick
from tests.logs import samples_in
from tests.plausible import plausibility_warnings
from tests.systems import TORQUES, UNLOADED, sensor_set

CORPUS = Path(__file__).parent / "corpus"
ARM = CORPUS / "arm.urdf"

RECORDED = (".mat", ".h5", ".parquet", ".arrow", ".mcap", ".bag", ".db3")
"""How the names of logs end that are read by libraries."""

Damage = Callable[[st.DrawFn], bytes]


class Target(NamedTuple):
    """A kind of file.

    Attributes:
        ending: of the file's name.
        damage: makes a damaged file.
        use: does with it what a user would.
        share: how many of 1000 files are of this kind.
    """

    ending: str
    damage: Damage
    use: Callable[[Path], object]
    share: int


def now_and_then(path: Path, one_in: int) -> bool:
    """Whether a file is one of the few with which more is done; it depends on the file alone."""
    return zlib.crc32(path.read_bytes()) % one_in == 0


# --------------------------------------------------------------------- robots


def robot_file(name: str) -> Damage:
    text = (CORPUS / name).read_text()

    def damage(draw: st.DrawFn) -> bytes:
        content = mutations.damaged_xml(draw, text)
        return damaged_bytes(draw, content) if often(draw, 8) else content

    return damage


def use_robot(path: Path) -> object:
    tree = nd.load_robot(path)
    sensors = nd.tools.sensors_from_model(path, tree)
    system = nd.System(tree, nd.sensors("inverse_dynamics"))
    D = system.D(tree.neutral_configuration())
    if now_and_then(path, 20):
        with contextlib.suppress(nd.errors.NoriError):
            nd.load_robot(path, base="floating", kept="sensors")
        solve_once(nd.plan(system, cache=False))
    return tree.names, tree.joint_names, tuple(tree.frames), tree.notes, sensors.name, D.nnz


def solve_once(plan: nd.Plan) -> object:
    tree = plan.system.tree
    state = tree.neutral_configuration(), np.full(tree.nv, 0.1), np.full(plan.system.ny, 0.1)
    with np.errstate(all="ignore"):  # of numbers beyond all bounds
        return plan.solver("numpy").solve(*state).values


# --------------------------------------------------------------------- sensors


@lru_cache
def arm() -> nd.KinematicTree:
    return nd.load_robot(ARM, kept="sensors")


def config_file(name: str) -> Damage:
    text = (CORPUS / name).read_text()
    data = yaml.safe_load(text)

    def damage(draw: st.DrawFn) -> bytes:
        way = draw(st.integers(0, 5))
        if way < 3:
            content = _as_yaml(damaged_data(draw, data))
        elif way < 5:
            content = damaged_text(draw, text, " ,:{}[]").encode()
        else:
            content = pick(draw, mutations.yaml_tricks()).encode()
        return damaged_bytes(draw, content) if often(draw, 10) else content

    return damage


def _as_yaml(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")  # JSON is YAML


def use_sensors(path: Path) -> object:
    sensors = nd.load_sensors(path, ARM, arm())
    systems = [nd.System(arm(), sensors.in_contact(*closed)) for closed in ((), sensors.contact_names)]
    again = nd.SensorSet.from_dict(sensors.to_dict())
    assert again.fingerprint == sensors.fingerprint
    if now_and_then(path, 40):
        solve_once(nd.plan(systems[0], cache=False))
    return sensors.name, systems[0].measurement_names, systems[0].weights.tolist()


def use_candidates(path: Path) -> object:
    found = nd.placement.load_candidates(path, ARM, arm())
    if now_and_then(path, 40):
        return nd.placement.best_sensors(arm(), found, 1)
    return found.name


# --------------------------------------------------------------------- plans


@lru_cache
def arm_system() -> nd.System:
    return nd.System(nd.load_robot(ARM), nd.sensors("inverse_dynamics"))


@lru_cache
def plan_content() -> dict[str, Any]:
    return dict(json.loads(nd.plan(arm_system(), cache=False).content()))


@lru_cache
def plan_set_content() -> dict[str, Any]:
    contacts = {"tip": {"closed": [{"type": "rigid_contact", "links": "link1"}], "open": [ZERO]}}
    rows = [TORQUES, {**ZERO, "links": {"except": "link1"}}]
    tree = nd.autotree(2).replace(joints=(nd.tools.random_tree(1, 0).joints[0],) * 2)
    sensors = sensor_set(*rows, name="touch", contacts=contacts)
    with tempfile.TemporaryDirectory() as folder:
        nd.plan(tree, sensors, leave_out_singular=True, cache=False).save(Path(folder) / "set")
        return dict(json.loads((Path(folder) / "set").read_text()))


ZERO = {"type": "external_wrench", "links": "link1", "value": 0}


def sealed_file(format: str, content: Callable[[], dict[str, Any]]) -> Damage:
    """Damage a file, and mostly seal it again as one who means harm would."""

    def damage(draw: st.DrawFn) -> bytes:
        body = damaged_data(draw, content())
        if not often(draw, 8) and isinstance(body, dict):
            for key in ("checksum", "version", "format"):
                body.pop(key, None)
            with contextlib.suppress(Exception):
                if often(draw, 2):
                    _fit(body, format)
            written = sealed(format, body).encode()
        else:
            written = json.dumps(body).encode()
        return damaged_bytes(draw, written) if often(draw, 8) else written

    return damage


def _fit(body: dict[str, Any], format: str) -> None:
    """Let the fingerprints in a body fit its robot and sensors."""
    data: Any = unsealed(sealed(format, body), PlanData, "", "")
    sensors = nd.SensorSet.from_dict(data.sensors)
    for state in body["states"]:
        state["fingerprint"] = nd.System(tree_of(data.tree), sensors.in_contact(*state["contacts"])).fingerprint


def use_plan(path: Path) -> object:
    plan = nd.Plan.load(path)
    solve_once(plan)
    if now_and_then(path, 20):
        plan.export(path.with_suffix(".c"))
    return plan.system.tree.names, plan.ordering, repr(plan)


def use_plan_set(path: Path) -> object:
    plans = nd.Plan.load(path)
    for plan in plans.plans.values():
        solve_once(plan)
    return repr(plans)


def use_cached_plan(path: Path) -> object:
    """Put the file where the plan of a system is cached: it is found whole, or the plan is made anew."""
    nd.plan(arm_system())
    (entry,) = cache_folder().glob("*.json")
    with instead_of(entry, path):
        return solve_once(nd.plan(arm_system()))


@contextlib.contextmanager
def instead_of(entry: Path, path: Path) -> Iterator[None]:
    """Put a file where a cache has an entry, for a while."""
    whole = entry.read_bytes()
    entry.unlink()  # a library stays as it is where it is loaded
    entry.write_bytes(path.read_bytes())
    try:
        yield
    finally:
        entry.unlink()
        entry.write_bytes(whole)


# --------------------------------------------------------------------- compiled programs


@lru_cache
def arm_plan() -> nd.Plan:
    return nd.plan(arm_system(), outputs=("tau",), cache=False)


@lru_cache
def compiled_entry(ending: str) -> bytes:
    """The content of a file that a compiled plan leaves in the cache."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {CACHE_VARIABLE: folder}):
        arm_plan().solver()
        return next((path.read_bytes() for path in Path(folder).rglob(f"*{ending}")), b"no compiler here")


def compiled_file(ending: str) -> Damage:
    return lambda draw: damaged_bytes(draw, compiled_entry(ending))


def use_compiled(path: Path) -> object:
    """Put the file where the cache has one of a compiled plan: what is damaged is made anew."""
    expected = solve_natively()
    for entry in (cache_root() / "native").glob(f"*{path.suffix}"):
        with instead_of(entry, path):
            np.testing.assert_array_equal(solve_natively(), expected)
    return expected


def solve_natively() -> Any:
    return arm_plan().solver().solve(np.ones(2), np.ones(2), np.ones(2)).tau


# --------------------------------------------------------------------- logs


def csv_file(draw: st.DrawFn) -> bytes:
    content = damaged_text(draw, (CORPUS / "log.csv").read_text(), ",").encode()
    return damaged_bytes(draw, content) if often(draw, 6) else content


def zipped_csv_file(draw: st.DrawFn) -> bytes:
    content = gzip.compress(csv_file(draw) * pick(draw, (1, 1, 1, 100)), mtime=0)
    return damaged_bytes(draw, content) if often(draw, 2) else content


def npz_file(draw: st.DrawFn) -> bytes:
    numbers = np.arange(6.0).reshape(3, 2)
    content = mutations.damaged_npz(draw, {"q": numbers / 10, "qd": numbers, "y": numbers})
    return damaged_bytes(draw, content) if often(draw, 4) else content


@lru_cache
def arm_solver() -> nd.results.Solver:
    return nd.plan(arm_system(), cache=False).solver("numpy")


def use_log(path: Path) -> object:
    with contextlib.suppress(nd.errors.NoriError):
        configurations_in(path, arm_system())
    with contextlib.suppress(nd.errors.NoriError):
        samples_in(path, arm_system(), SavitzkyGolay(5, dt=0.1))
    log = samples_in(path, arm_system())
    with np.errstate(all="ignore"):
        estimate = arm_solver().solve_batch(log.q, log.qd, log.y)
    twice = np.column_stack([log.y, log.y])
    return plausibility_warnings(weighed_system(), log.q, log.qd, twice, estimate, t=log.t)


@lru_cache
def recorded_entry(ending: str) -> bytes:
    """The content of a log of a format."""
    labels = tuple(f"{kind}:{joint}" for kind in ("q", "qd") for joint in ("shoulder", "elbow"))
    fields = (Field("tau", (4,), labels, ("N m",) * 4, "tau"), Field("fx", (2, 3), tuple("abcdef"), ("N",) * 6))
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{'.ros2' if ending == '.db3' else ending}"
        try:
            writer = writer_of(path)
        except nd.errors.MissingExtraError:
            return b"no library here"
        with writer(path, FileSchema(fields, True, {"robot": "arm"})) as file:
            file.write(np.arange(40.0), {"tau": rng.normal(size=(40, 4)), "fx": rng.normal(size=(40, 2, 3))})
        return (next(path.glob("*.db3")) if path.is_dir() else path).read_bytes()


def recorded_file(ending: str) -> Damage:
    return lambda draw: damaged_bytes(draw, recorded_entry(ending))


def use_recorded(path: Path) -> object:
    with open_log(path) as log:
        read = {stream.name: sum(map(len, log.read({stream.name: stream.columns}))) for stream in log.streams}
        of_tables = [stream for stream in log.streams if stream.columns and stream.samples and not stream.kind]
        assert all(read[stream.name] == stream.samples for stream in of_tables)
        return log.streams, log.metadata, log.refused, read


@lru_cache
def weighed_system() -> nd.System:
    rows = [{"type": kind, "joints": "all", "sigma": 1} for kind in ("joint_acceleration", "joint_torque")]
    rows.append(UNLOADED)
    return nd.System(arm_system().tree, sensor_set(*rows, name="weighed"))


TARGETS = {
    "urdf": Target(".urdf", robot_file("arm.urdf"), use_robot, 160),
    "urdf with other joints": Target(".urdf", robot_file("wheel.urdf"), use_robot, 60),
    "mjcf": Target(".xml", robot_file("arm.xml"), use_robot, 120),
    "sensors": Target(".yaml", config_file("sensors.yaml"), use_sensors, 160),
    "candidates": Target(".yaml", config_file("candidates.yaml"), use_candidates, 40),
    "plan": Target(".plan", sealed_file(PLAN, plan_content), use_plan, 150),
    "plan set": Target(".plan", sealed_file(PLAN, plan_set_content), use_plan_set, 60),
    "cached plan": Target(".json", sealed_file(PLAN, plan_content), use_cached_plan, 20),
    "compiled record": Target(".json", compiled_file(".json"), use_compiled, 10),
    "compiled seal": Target(".sha256", compiled_file(".sha256"), use_compiled, 5),
    "compiled library": Target(".so", compiled_file(".so"), use_compiled, 5),
    "csv": Target(".csv", csv_file, use_log, 60),
    "csv.gz": Target(".csv.gz", zipped_csv_file, use_log, 20),
    "npz": Target(".npz", npz_file, use_log, 80),
    **{f"log{ending}": Target(ending, recorded_file(ending), use_recorded, 25) for ending in RECORDED},
}
