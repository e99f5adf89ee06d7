"""The controller of ros/nori_dyn_controllers against a stand-in for ROS 2: see tests/ros/controllers/ros.hpp.

What it publishes is what Python estimates, without allocation; what is refused is published as no number.
"""

import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.model.joints import FORCE, Fixed
from tests.compilers import needs_compiler
from tests.contracts.test_export_filter import standing, touching
from tests.exported import Exported, checked, compile_c, compile_cpp, needs_cmake, needs_cpp
from tests.peers import pin
from tests.robots import ROBOTS, load, pinocchio_with_revolutes
from tests.standing import robot as box
from tests.standing import sensors as box_sensors
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.trees import on_a_free_base

pytestmark = [needs_compiler, needs_cpp]

PACKAGE = Path(__file__).parents[2] / "ros" / "nori_dyn_controllers"
STAND_IN = Path(__file__).parent / "controllers"
SOURCES = (PACKAGE / "src/broadcaster.cpp", STAND_IN / "run.cpp")

JAZZY = ("-O0", "-DCOUNTED")
HUMBLE = ("-O2", "-DCOUNTED", "-DHUMBLE")
SANITIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Published(NamedTuple):
    """A message: when it is from, what its numbers are of, and these."""

    time: float
    names: list[str]
    numbers: Any


class Ran(NamedTuple):
    """What a controller did: its interfaces, messages by topic, diagnoses, allocations, and why it was not configured.

    The first message on each topic is from before the first tick.
    """

    interfaces: list[str]
    messages: dict[str, list[Published]]
    diagnoses: list[tuple[int, str]]
    allocations: dict[str, int]
    error: str


class Controller(NamedTuple):
    """A controller that is compiled with one export."""

    program: Path
    name: str

    def run(self, lines=(), commands=()) -> Ran:
        """What it does with some parameters, and commands of the stand-in."""
        done = subprocess.run(
            [self.program, self.name, *lines], input="\n".join(commands) + "\n", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        ran = Ran([], {}, [], {}, "")
        for kind, *cells in (line.split("\t") for line in done.stdout.splitlines()):
            if kind == "interface":
                ran.interfaces.append(cells[0])
            elif kind == "message":
                numbers = np.array(cells[3:], dtype=float)
                ran.messages.setdefault(cells[0], []).append(Published(float(cells[1]), cells[2].split(","), numbers))
            elif kind == "diagnosis":
                ran.diagnoses.append((int(cells[0]), cells[1]))
            elif kind == "allocations":
                ran.allocations[cells[0]] = int(cells[1])
            else:
                return ran._replace(error=cells[0])
        return ran


def headers() -> set[str]:
    """The headers of ROS that the controllers include."""
    sources = (*PACKAGE.rglob("*.hpp"), *PACKAGE.rglob("*.cpp"))
    found = {header for source in sources for header in re.findall(r'#include "(\w+/.+)"', source.read_text())}
    return {header for header in found if not header.startswith("nori_dyn_controllers/")}


def includes(folder: Path) -> Path:
    """A folder where each of these is the stand-in."""
    for header in headers():
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text('#include "ros.hpp"\n')
    return folder


def configured(names: list[str]) -> str:
    """What CMake writes for some exports."""
    text = (PACKAGE / "src/exports.cpp.in").read_text()
    text = text.replace("@INCLUDES@", "".join(f'#include "{name}.hpp"\n' for name in names))
    return text.replace("@MAKERS@", ", ".join(f'{{"{name}", &make<nori_dyn::{name}::Estimator>}}' for name in names))


def built(made: Exported, folder: Path, *flags: str) -> Controller:
    """A controller with an export, compiled under every warning."""
    name, folder = made.export.name, folder / "controller"
    include = includes(folder / "include")
    (folder / "exports.cpp").write_text(configured([name]))
    where = [f"-I{path}" for path in (include, STAND_IN, PACKAGE / "include", made.folder)]
    objects = []
    for source in (*SOURCES, folder / "exports.cpp"):
        objects.append(folder / f"{source.stem}.o")
        own = where if source.stem == "exports" else where[:-1]
        compile_cpp("-std=c++17", *flags, *own, "-c", source, "-o", objects[-1])
    sanitizing = [flag for flag in flags if "sanitize" in flag]
    for source in made.folder.glob("*.c") if sanitizing else ():
        if source.name != "main.c":
            objects.append(folder / f"{source.stem}.c.o")
            compile_c("-O1", *sanitizing, "-c", source, "-o", objects[-1])
    objects += () if sanitizing else made.objects()
    checked(["g++", *sanitizing, *objects, "-lm", "-o", folder / "controller"])
    return Controller(folder / "controller", name)


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    """Controllers by case and flags, compiled once."""

    @lru_cache
    def exported(case: str) -> Exported:
        folder = tmp_path_factory.mktemp("export") / "it"
        return Exported.made(estimator(case).export(folder, name="it"), folder)

    return lru_cache(lambda case, flags: built(exported(case), tmp_path_factory.mktemp("built"), *flags))


# ------------------------------------------------------------------------------------ cases

DT = 0.002
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
WALKER = on_a_free_base(nd.autotree(3, branching=2, skew=0.3))
HELD = WALKER.replace(parents=(-1, 0, 1), joints=(*WALKER.joints[:1], Fixed(), Fixed()))
"""A force-torque sensor that somebody carries about: an IMU on link1, a tool beyond joint2."""

OF_HELD = (
    {"type": "accelerometer", "links": "link1"},
    {"type": "angular_accelerometer", "links": "link1"},
    {"type": "joint_torque", "joints": "joint1", "value": 0},
    {"type": "force_torque", "joints": "joint2", "measures": "child_on_parent"},
    {"type": "external_wrench", "links": "link3", "value": 0},
)


def tracked(plan: nd.Plan) -> Any:
    return nd.Tracker(plan, DT, backend="numpy")


def panda(**options: Any) -> nd.KinematicTree:
    return load("panda", locked=FINGERS, **options)


CASES = {
    "contacts": lambda: tracked(nd.plan(nd.autotree(2, skew=0.3), touching(), outputs=("qdd", "fx:link2"))),
    "recognised": lambda: nd.Tracker(
        estimator("contacts").plan, DT, hypotheses=nd.Hypotheses(rate=20), backend="numpy"
    ),
    "external torques": lambda: tracked(nd.plan(nd.System(panda(), nd.sensors("momentum_observer")), outputs=("qdd",))),
    "touch": lambda: nd.plan(nd.System(panda(), nd.sensors("touch")), outputs=("tau", "fx:panda_hand")),
    "walker": lambda: tracked(nd.plan(nd.System(WALKER, standing("link3")), outputs=("tau", "fx:link3"))),
    "base": lambda: tracked(nd.plan(nd.System(box(), box_sensors()), outputs=("fx:l_foot",))),
    "quadruped": lambda: nd.plan(
        load("anymal", "floating"),
        nd.sensors("quadruped_contacts"),
        outputs=("fx:LF_FOOT", "tau"),
        states=[("fore_left", "hind_right"), ("fore_right", "hind_left")],
    ),
    "held sensor": lambda: nd.plan(nd.System(HELD, sensor_set(*OF_HELD)), outputs=("fx:link2",)),
    "wrist": lambda: nd.plan(
        nd.System(panda(kept=["panda_hand_joint"]), nd.sensors("wrist_sensor")), outputs=("fx:panda_hand",)
    ),
    "wrist over time": lambda: tracked(
        nd.plan(
            panda(kept=["panda_hand_joint"]), nd.load_sensors(PACKAGE / "config/wrist.yaml"), outputs=("fx:panda_hand",)
        )
    ),
}


@lru_cache
def estimator(case: str) -> Any:
    """A plan, or a tracker."""
    return CASES[case]()


class Running(NamedTuple):
    """An estimator here, beside the controller."""

    of: Any
    record: SampleRecord

    @staticmethod
    def begun(case: str) -> "Running":
        of = estimator(case)
        plan = of.plan if isinstance(of, nd.Tracker) else of
        systems = {state: one.system for state, one in plan.states.plans.items()}
        if isinstance(of, nd.Tracker):
            of.reset()
        record = SampleRecord.of(systems, () if getattr(of, "recognises", False) else plan.contact_names)
        return Running(of if isinstance(of, nd.Tracker) else of.solver("numpy"), record)

    @property
    def told(self) -> dict[str, str]:
        """The interfaces that names do not tell, by the number or contact: all that is no joint's."""
        estimated = {self.record.names[place] for place in self.record.estimated}
        names = [name for name in self.record.names if usual_interface(name) is None and name not in estimated]
        return {name: f"robot/{k}" for k, name in enumerate(names)}

    def lines(self) -> list[str]:
        """The parameters `inputs`; contacts are closed above 20."""
        return [f"{n} = {i}{' > 20' * n.startswith('contact:')}" for n, i in self.told.items()]

    def row(self, interfaces: list[str], q, qd, y, closed=()) -> str:
        """The values of the interfaces."""
        contacts = [30.0 if name in closed else 10.0 for name in self.record.contacts]
        values = dict(zip(self.record.names, [*q, *qd, *y, *contacts], strict=True))
        names = {self.told.get(name) or usual_interface(name): name for name in self.record.names}
        return " ".join(f"{values[names[interface]]:.17g}" for interface in interfaces)

    def tick(self, dt: float, q, qd, y, closed=()) -> Any:
        """The outputs, one after the other; None where there is no estimate."""
        of = self.of
        try:
            if self.record.contacts:
                of.switch(closed)
        except nd.errors.UnplannedStateError:
            return None
        names = self.record.measurement_names
        own = [names.index(name) for name in getattr(of, "measurement_names", names)]
        of.inputs.q[:], of.inputs.qd[:], of.inputs.y[:] = q, qd, y[own]
        status = of.tick(dt) if isinstance(of, nd.Tracker) else of.tick()
        if not status.ok:
            return None
        memory = of.state.mean if isinstance(of, nd.Tracker) else []
        return np.concatenate([*(np.ravel(values) for values in vars(of.outputs).values()), memory])


def usual_interface(name: str) -> str | None:
    """Where a number is read, as the README has it; None where that is to be told."""
    kinds = {"q": "position", "qd": "velocity", "qdd": "acceleration", "tau": "effort"}
    kind, _, rest = name.partition(":")
    if kind in kinds:
        return None if rest.endswith("]") else f"{rest}/{kinds[kind]}"
    if not rest:
        rest, kind = name, "ft"
    if kind not in ("ft", "fx", "acc"):
        return None
    quantities = {"m": "torque", "f": "force", "a": "linear_acceleration"}
    return f"{rest[:-3]}/{quantities[rest[-2]]}.{rest[-1]}"


def ticks(running: Running, n: int) -> list[tuple[float, Any, Any, Any, tuple[str, ...]]]:
    """A motion with noise whose period varies; readings fail, and contacts come and go."""
    rng, record = np.random.default_rng(5), running.record
    tree, states, found = record.tree, [*record.systems], []
    q, qd = tree.random_configuration(1), 0.1 * rng.normal(size=tree.nv)
    y = rng.normal(size=len(record.measurement_names))
    closed = states[0]
    for k in range(n):
        dt = DT * rng.choice([0.5, 1.0, 1.0, 2.0])
        qd = qd + 0.02 * rng.normal(size=tree.nv)
        q, y = tree.integrate(q, qd, dt), y + 0.05 * rng.normal(size=len(y))
        if k % 20 == 10:
            closed = states[rng.integers(len(states))]
        silent = np.nan if k % 50 == 30 else 1.0
        found.append((dt, q * silent, qd * silent, y * silent, closed))
    if record.contacts:
        found[n // 2] = (*found[n // 2][:4], record.contacts)
    return found


def of_topic(topic: str, names: list[str]) -> list[str]:
    """The names of the numbers of a message on a topic, which names a frame or joints."""
    kind = topic.removeprefix("~/")
    if kind.startswith("wrench/"):
        return [f"fx:{names[0]}.{component}" for component in FORCE]
    kind = "tau" if kind == "joint_states" else kind.replace("/", ":")
    return [f"{kind}:{name}" for name in names]


EVERY = [
    pytest.param(case, flags, id=f"{case}-{name}", marks=[pytest.mark.long] * ((case, name) != ("contacts", "jazzy")))
    for case in CASES
    for name, flags in (("jazzy", JAZZY), ("humble", HUMBLE), ("sanitized", SANITIZED))
]


@pytest.mark.parametrize(("case", "flags"), EVERY)
def test_it_publishes_what_python_estimates(case, flags, controller):
    here, ran = Running.begun(case), controller(case, flags)
    interfaces = ran.run(here.lines()).interfaces
    moved = ticks(here, 100)
    rows = [f"tick {dt:.17g} {here.row(interfaces, *rest)}" for dt, *rest in moved]
    ran = ran.run(here.lines(), ["activate", *rows, "diagnose"])
    assert ran.allocations["to update"] == 0
    assert {len(published) for published in ran.messages.values()} == {1 + len(moved)}
    refused = 0
    for k, tick in enumerate(moved):
        expected, found = here.tick(*tick), {topic: of[1 + k] for topic, of in ran.messages.items()}
        if expected is None:
            refused += 1
            assert all(np.isnan(message.numbers).all() for message in found.values())
            continue
        values = found.pop("~/values")
        assert_close(values.numbers[: len(expected)], expected, SOLVED)
        named = dict(zip(values.names, values.numbers, strict=True))
        for topic, message in found.items():
            assert message.time == pytest.approx(sum(one[0] for one in moved[: k + 1]), abs=1e-6)
            assert message.numbers.tolist() == [named[name] for name in of_topic(topic, message.names)]
    assert refused == 2 + bool(here.record.contacts and here.record.contacts not in here.record.systems)
    assert ran.diagnoses[0][0] == 1
    assert f"ticks 100; refused {refused}" in ran.diagnoses[0][1]
    if flags is not SANITIZED:
        assert ran.allocations["to configure"] > 50  # they are counted
    assert all(np.isnan(published[0].numbers).all() for published in ran.messages.values())


# ------------------------------------------------------------------------------------ compensation, in Pinocchio


def swung(n: int, fx: Any, dt: float) -> tuple[Any, Any, Any]:
    """q, qd (n, 7) of an arm that swings, and what the sensor in its wrist reads if wrenches act on the hand (n, 6)."""
    model = pinocchio_with_revolutes(ROBOTS["panda"], ("panda_hand_joint",))
    t, phases = dt * np.arange(n)[:, None], np.arange(7.0)
    middle, w = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.8, 0.8]), 2.0 + 0.3 * phases
    q, qd = middle + 0.4 * np.sin(w * t + phases), 0.4 * w * np.cos(w * t + phases)
    qdd = -0.4 * w**2 * np.sin(w * t + phases)
    places = [model.joints[model.getJointId(f"panda_joint{k + 1}")].idx_v for k in range(7)]
    data, hand, readings = model.createData(), model.getJointId("panda_hand_joint"), np.zeros((n, 6))
    for k in range(n):
        whole, forces = np.zeros((3, model.nv)), pin.StdVec_Force(model.njoints, pin.Force.Zero())
        whole[:, places], forces[hand] = (q[k], qd[k], qdd[k]), pin.Force(fx[k, 3:], fx[k, :3])
        pin.rnea(model, data, *whole, forces)
        readings[k] = -np.concatenate([data.f[hand].angular, data.f[hand].linear])
    return q, qd, readings


@pytest.mark.long
def test_a_biased_sensor_is_compensated_without_accelerations(controller):
    """Its bias is learned while nothing touches; then nothing is felt but noise, then what pushes."""
    n, dt, rng, noise = 6000, 0.001, np.random.default_rng(8), np.array([0.01] * 3 + [0.2] * 3)
    fx = np.zeros((n, 6))
    fx[2 * n // 3 :] = 0.5, -0.4, 0.3, 5.0, -8.0, 10.0
    q, qd, readings = swung(n, fx, dt)
    assert np.sqrt(np.mean(readings[: n // 3] ** 2, axis=0)).max() > 5
    readings = readings + [0.3, -0.2, 0.1, 4.0, -3.0, 6.0] + noise * rng.normal(size=(n, 6))
    qd = qd + 0.0005 * rng.normal(size=qd.shape)
    here, run = Running.begun("wrist over time"), controller("wrist over time", JAZZY)
    interfaces = run.run(here.lines()).interfaces
    closed = [()] * (n // 3) + [("tool",)] * (n - n // 3)
    rows = [f"tick {dt} {here.row(interfaces, *state)}" for state in zip(q, qd, readings, closed, strict=True)]
    lines = [*here.lines(), f"outputs: compensated = {next(iter(vars(here.of.outputs)))}"]
    published = run.run(lines, ["activate", *rows]).messages["~/compensated"][1:]
    found = np.array([message.numbers for message in published]) - fx
    for part in (slice(n // 3, 2 * n // 3), slice(2 * n // 3, n)):  # accelerations are estimated
        np.testing.assert_allclose(np.sqrt(np.mean(found[part] ** 2, axis=0)), noise, rtol=0.4)


# ------------------------------------------------------------------------------------ parameters


def test_outputs_have_other_names_and_signs(controller):
    run, here = controller("contacts", JAZZY), Running.begun("contacts")
    rows = ["activate", f"tick {DT} {'1 ' * 9}30"]
    usual, told = (
        run.run([*here.lines(), *lines], rows).messages
        for lines in ((), ("outputs: external/torques = -1 * offset:tau", "outputs: tip = fx:link2"))
    )
    assert list(usual) == ["~/values", "~/wrench/link2", "~/offset/tau"]
    assert list(told) == ["~/values", "~/tip", "~/external/torques"]
    assert np.array_equal(told["~/external/torques"][1].numbers, -usual["~/offset/tau"][1].numbers)
    assert np.array_equal(told["~/tip"][1].numbers, usual["~/wrench/link2"][1].numbers)
    assert (told["~/tip"][1].names, told["~/external/torques"][1].names) == (["link2"], ["joint1", "joint2"])
    assert np.abs(told["~/tip"][1].numbers[5]) > 0.1


def test_inputs_have_factors_and_constants(controller):
    run = controller("contacts", JAZZY)
    given = ["contact:tip = -2 * gripper/width > 1", "fx:link2.fz=3", "qdd:joint1 = imu/a", "qd:joint1 = -1*a/b"]
    found = run.run(given)
    assert {"gripper/width", "imu/a", "a/b", "joint2/acceleration"} < set(found.interfaces)
    assert not {"link2/force.z", "joint1/acceleration", "joint1/velocity"} & set(found.interfaces)
    (one, *_), here = found.interfaces, Running.begun("contacts")
    assert one == "joint1/position"
    values = {"gripper/width": -1.0, "a/b": 0.5}
    rows = ["activate", f"tick {DT} {' '.join(str(values.get(name, 0.1)) for name in found.interfaces)}"]
    expected = here.tick(DT, [0.1] * 2, [-0.5, 0.1], np.array([0.1, 0.1, 0.1, 0.1, 3.0]), ("tip",))
    assert_close(run.run(given, rows).messages["~/values"][1].numbers[: len(expected)], expected, SOLVED)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "nothing says where these come from: 'contact:tip'"),
        (("contact:tip = 1", "tau:knee = knee/effort"), "there is no 'tau:knee' to read"),
        (("contact:tip = 1", "contact:tip = 0"), "'contact:tip' is there twice"),
        (("contact:tip",), "'contact:tip' has no '='"),
        (("contact:tip = somewhere",), "'somewhere' is neither a number nor a state interface"),
        (("contact:tip = tip/force.z > much",), "'tip/force.z > much' is neither a number nor a state interface"),
        (("contact:tip = nan",), "'nan' is neither a number nor a state interface"),
        (("contact:tip = 1", "outputs: a = fx:link1"), "there is no output 'fx:link1'"),
    ],
)
def test_a_parameter_that_cannot_be_is_told(lines, message, controller):
    assert controller("contacts", JAZZY).run(lines).error == message


def test_an_export_that_is_not_there_is_told(controller):
    found = controller("contacts", JAZZY)._replace(name="panda").run()
    assert found.error == "export: there is no 'panda'; this library was built with: it"
    assert controller("contacts", JAZZY)._replace(name="").run(["contact:tip = 1"]).interfaces  # the only one


def test_what_cannot_be_read_or_sent_is_told_or_left_out(controller):
    """1e300 stands for an interface that is locked by its writer."""
    run, here = controller("contacts", JAZZY), Running.begun("contacts")
    good, locked = f"tick {DT} {'1 ' * 9}30", f"tick {DT} 1 1e300 {'1 ' * 7}30"
    unknown = f"tick {DT} {'1 ' * 9}nan"
    rows = ["diagnose", "activate", good, "diagnose", "busy 1", good, "busy 0", locked, "diagnose", unknown, "diagnose"]
    ran = run.run(here.lines(), rows)
    assert [level for level, _ in ran.diagnoses] == [0, 0, 1, 2]
    words = [text for _, text in ran.diagnoses]
    assert words[0] == "not running; ticks 0; refused 0"
    assert words[1] == "estimates; ticks 1; refused 0"
    assert words[2].startswith("refused: a number of the inputs is infinite")
    assert words[2].endswith("not finite joint2/position")
    assert words[3].startswith("refused: the contact state is not planned")
    assert words[3].endswith("not finite robot/0")
    values = [np.isnan(message.numbers).all() for message in ran.messages["~/values"]]
    assert values == [True, False, True, True]  # one was not sent
    assert ran.allocations["to update"] == 0


# ------------------------------------------------------------------------------------ the package


def test_the_package_is_of_one_piece():
    name = ElementTree.parse(PACKAGE / "package.xml").getroot().findtext("name")
    assert name == PACKAGE.name
    plugins = ElementTree.parse(PACKAGE / f"{name}.xml").getroot()
    (plugin,) = plugins.findall("class")
    assert plugins.get("path") == name
    source = SOURCES[0].read_text()
    assert f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})" in source
    cmake = (PACKAGE / "CMakeLists.txt").read_text()
    assert f"pluginlib_export_plugin_description_file(controller_interface {name}.xml)" in cmake
    depends = [one.text for one in ElementTree.parse(PACKAGE / "package.xml").getroot().findall("depend")]
    (listed,) = re.findall(r"set\(DEPENDENCIES(.*?)\)", cmake, re.DOTALL)
    assert listed.split() == depends
    assert {header.partition("/")[0] for header in headers()} == set(depends)


AMENT = """
macro(ament_package)
endmacro()
macro(pluginlib_export_plugin_description_file category file)
  install(FILES ${file} DESTINATION share/${PROJECT_NAME})
endmacro()
"""


@needs_cmake
@pytest.mark.long
def test_cmake_builds_the_package_with_two_exports(controller, tmp_path):
    """With stand-ins for the packages that it finds, and what ament adds to CMake."""
    for case, name in (("contacts", "one"), ("held sensor", "two")):
        estimator(case).export(tmp_path / name, name=name)
    (tmp_path / "ros").mkdir()
    folder = includes(tmp_path / "include")
    (folder / "ros.hpp").write_text((STAND_IN / "ros.hpp").read_text())
    for package in ("ament_cmake", *{header.partition("/")[0] for header in headers()}):
        target = f"add_library({package}::{package} INTERFACE IMPORTED)\n"
        target += f'target_include_directories({package}::{package} INTERFACE "{folder}")\n'
        text = AMENT if package == "ament_cmake" else f"{target}set({package}_TARGETS {package}::{package})\n"
        (tmp_path / "ros" / f"{package}Config.cmake").write_text(text)
    exports = f"-DNORI_DYN_EXPORTS={tmp_path / 'one'};{tmp_path / 'two'}"
    places = [f"-DCMAKE_PREFIX_PATH={tmp_path / 'ros'}", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'there'}"]
    checked(["cmake", "-S", PACKAGE, "-B", tmp_path / "build", exports, *places, "-DCMAKE_CXX_FLAGS=-Werror"])
    checked(["cmake", "--build", tmp_path / "build"])
    checked(["cmake", "--install", tmp_path / "build"])
    library = tmp_path / "there/lib/libnori_dyn_controllers.so"
    assert (tmp_path / "there/share/nori_dyn_controllers/nori_dyn_controllers.xml").is_file()
    program = tmp_path / "run"
    words = [f"-I{folder}", STAND_IN / "run.cpp", library, f"-Wl,-rpath,{library.parent}", "-o", program]
    checked(["g++", "-std=c++17", *words])
    assert Controller(program, "two").run(Running.begun("held sensor").lines()).interfaces
    assert Controller(program, "").run().error == "export: there is no ''; this library was built with: one two"
    refused = subprocess.run(["cmake", "-S", PACKAGE, "-B", tmp_path / "no", *places], capture_output=True, text=True)
    assert "Name the folders that `nori-dyn export` wrote" in refused.stderr
