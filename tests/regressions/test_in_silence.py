"""What was wrong, ended in a traceback or brought in other files without a word, and is told or refused now."""

import copy
import errno
import pickle
import re
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import ModelError, PlanError, SensorConfigError
from nori_dyn.live.decoding import LARGEST, LiveTopic
from nori_dyn.logs.clock import MOST_TIMES
from nori_dyn.logs.drafts.draft import draft
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.formats.writer import Field, FileSchema
from nori_dyn.logs.mapping.record import ALWAYS, SampleRecord
from nori_dyn.logs.messages.kinds import MalformedMessage
from nori_dyn.logs.messages.topic import LONGEST
from tests.messages_of_ros import JOINT_STATE, joint_state
from tests.robots import load
from tests.systems import ACCELERATIONS, SPEED, UNLOADED, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.words import plain

ARM = nd.autotree(2)
TORQUES = {"type": "joint_torque", "joints": "all", "sigma": 0.5}


def observer(**walk: float) -> nd.Plan:
    """The plan of an arm whose torques have offsets that walk."""
    memory = {"speed": SPEED, "push": {"of": "offset", "walk": 1.0} | walk}
    sensors = sensor_set(TORQUES | {"offset": {"sigma": 20}}, UNLOADED, name="observer", memory=memory)
    return nd.plan(ARM, sensors, outputs=["qdd", "offset"])


def log_of(path: Path, n: int = 50, **numbers: np.ndarray) -> Path:
    """Write a log of the arm at rest, but for some numbers."""
    zeros = {name: np.zeros((n, 2)) for name in ("q", "qd", "qdd", "tau")}
    np.savez(path, **{"t": 0.01 * np.arange(n)} | zeros | numbers)
    return path


# --------------------------------------------------------------------------------------------------------------
# Memory that estimates of single instants leave out: offsets were exactly 0.


def test_offsets_that_are_found_anew_are_told_and_a_recogniser_without_memory_is_refused_at_once():
    told = sensor_set(TORQUES | {"offset": {"sigma": 20}}, UNLOADED, name="anew", memory={"speed": SPEED})
    system = nd.System(ARM, told)
    plan = nd.plan(system, outputs=["qdd"])
    words = "offset:tau:joint1, offset:tau:joint2: estimated at each tick"
    assert words in plain(str(plan))
    assert words in plain(str(nd.observability(system, n=1)))
    assert "anew" not in str(observer())
    with pytest.warns(nd.errors.NoriWarning, match=words):
        nd.Tracker(plan, dt=0.01)
    wrench = {"type": "external_wrench", "links": "link2"}
    contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
    others = {"type": "external_wrench", "links": "link1", "value": 0}
    touch = sensor_set(ACCELERATIONS, others, name="touch", contacts=contacts)
    with pytest.raises(PlanError, match="nothing persists by sensors 'touch': a filter needs `memory`"):
        nd.Tracker(nd.plan(ARM, touch, outputs=["tau"]), dt=0.01, hypotheses=nd.Hypotheses())


# --------------------------------------------------------------------------------------------------------------
# Weights in the lanes of limbs that are pivots themselves were read where the tick before had left them.


def test_a_quadruped_on_four_feet_whose_torques_alone_are_asked_for():
    tree, sensors = load("solo12", "floating"), nd.sensors("quadruped_contacts")
    plan = nd.plan(nd.System(tree, sensors.in_contact(*sensors.contact_names)), outputs=["tau"])
    native, other, rng = plan.solver("native"), plan.solver("numpy"), np.random.default_rng(0)
    for _ in range(5):
        weights = plan.system.weights * 10 ** rng.uniform(-0.8, 0.8, size=plan.system.n_weights)
        state = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=plan.system.ny), weights
        assert_close(native.solve(*state).tau, other.solve(*state).tau, SOLVED)


# --------------------------------------------------------------------------------------------------------------
# Numbers that no robot has


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_reading_too_large_to_go_on_from_is_refused_at_its_tick_and_does_no_harm_later(backend):
    """Natively it was `ok`, and made the next tick fail."""
    ticking, without = (nd.Tracker(observer(), dt=0.001, backend=backend) for _ in range(2))
    for k in range(6):
        ticking.inputs.y[:] = [1e200 if k == 2 else 1.0, 1.0]
        without.inputs.y[:] = [np.nan if k == 2 else 1.0, 1.0]
        assert ticking.tick().ok == without.tick().ok == (k != 2)
    assert_close(ticking.outputs.offset, without.outputs.offset, SOLVED)
    with pytest.raises(nd.errors.InputError, match="tick 2: the reading of 'tau:joint1' is off by 2e\\+200"):
        ticking.over(None, *np.zeros((2, 4, 2)), np.array([[1.0, 1], [1, 1], [1e200, 1], [1, 1]]))


@pytest.mark.parametrize("name", ["q", "qd", "qdd", "tau"])
def test_a_log_with_a_number_that_no_robot_has_is_refused_with_its_place(tmp_path, name):
    """An OverflowError before."""
    numbers = np.random.default_rng(0).normal(size=(50, 2))
    numbers[5, 0] = 1e160
    log = log_of(tmp_path / "log.npz", **{name: numbers})
    with pytest.raises(nd.errors.InputError, match=r"sample 5: .*1e\+160"):
        nd.identify(log, ARM)


@pytest.mark.parametrize("differentiate", ["smoother", "kalman", 11])
def test_velocities_that_no_robot_has_are_not_differentiated(tmp_path, differentiate):
    """An OverflowError before."""
    qd = np.random.default_rng(0).normal(size=(200, 2))
    qd[5, 0] = 1e160
    np.savez(log := tmp_path / "log.npz", t=0.01 * np.arange(200), q=0 * qd, qd=qd)
    plan = nd.plan(nd.System(ARM, "inverse_dynamics"), outputs=["tau"])
    with pytest.raises(nd.errors.InputError, match=r"column 'qd\[0\]' is 1e\+160"):
        nd.estimate(log, plan, differentiate=differentiate)
    found = nd.estimate(log, plan, differentiate=differentiate, missing="drop")
    assert len(found.t) >= 170
    assert np.isfinite(found.values["tau"]).all()


@pytest.mark.parametrize("moves", [True, False])
def test_joints_that_rest_are_estimated(tmp_path, moves):
    """Accelerations without noise weighed more than doubles can tell, and those of a robot at rest were left out."""
    t, rng = 0.01 * np.arange(400), np.random.default_rng(0)
    q = np.column_stack(
        [np.sin(t) + rng.normal(scale=0.01, size=400), np.full(400, -0.7)] if moves else 2 * [0.3 + 0 * t]
    )
    np.savez(
        tmp_path / "log.npz", t=t, q=q, tau=nd.rnea(ARM, q.T, 0 * q.T, 0 * q.T).T + rng.normal(scale=0.1, size=q.shape)
    )
    weighed = sensor_set(TORQUES, ACCELERATIONS | {"sigma": 1}, UNLOADED)
    report = nd.estimate(tmp_path / "log.npz", nd.plan(ARM, weighed, ["tau"]), differentiate="smoother").report
    assert (report.samples, report.fell_back) == (400, 0)


def test_a_walk_and_a_model_of_such_numbers_are_refused():
    with pytest.raises(SensorConfigError, match=r"memory\.push\.walk"):
        observer(walk=1e300)
    with pytest.raises(ModelError, match="link 'link2': its spatial inertia is not finite"):
        ARM.replace(I=ARM.I * [[[1.0]], [[np.nan]]])


# --------------------------------------------------------------------------------------------------------------
# Copies


def test_what_is_compiled_is_copied_and_unpickled_with_what_it_was_given():
    weighed = nd.plan(nd.System(ARM, sensor_set(TORQUES, ACCELERATIONS | {"sigma": 1}, UNLOADED)))
    makers = [weighed.solver, lambda: nd.compile(nd.rnea, ARM), lambda: weighed.derivative("q"), weighed.solver]
    for number, make in enumerate(makers):
        made = make()
        for name, array in vars(made.inputs).items():
            array[...] = 0.3 if name != "weights" else 2.0
        made.tick()
        outputs = made.outputs if not hasattr(made.outputs, "__dict__") else vars(made.outputs).values()
        for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))) if number else (copy.copy(made),):
            other.tick()
            others = other.outputs if not hasattr(other.outputs, "__dict__") else vars(other.outputs).values()
            for one, two in zip(
                np.atleast_1d(outputs) if isinstance(outputs, np.ndarray) else outputs, others, strict=True
            ):
                np.testing.assert_array_equal(one, two)
                assert not np.shares_memory(one, two)
    with pytest.raises(nd.errors.InputError, match="a Tracker holds its state"):
        copy.copy(nd.Tracker(observer(), dt=0.01))


# --------------------------------------------------------------------------------------------------------------
# Files


SCHEMA = FileSchema((Field("tau", (2,), ("tau:a", "tau:b"), ("N m", "N m")),), True, {"robot": "arm"})
WRITE = """
import resource, signal, sys
import numpy as np
from pathlib import Path
from nori_dyn.logs.formats.registry import writer_of
from tests.regressions.test_in_silence import SCHEMA
t, values = np.arange(5000.0), np.random.default_rng(0).normal(size=(5000, 2))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for ending in sys.argv[2:]:
    for size in (3_000, 40_000):
        path = Path(sys.argv[1]) / f"{size}.{ending}"
        kind = writer_of(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            with kind(path, SCHEMA) as file:
                for _ in range(4):
                    file.write(t, {"tau": values})
        except OSError:
            print(ending)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_a_disk_that_is_full_is_an_error_of_the_disk_in_every_format(tmp_path):
    """HDF5 ended by SIGSEGV, bags with SQLite's own error."""
    for module in ("h5py", "mcap", "pyarrow", "rosbags"):
        pytest.importorskip(module)
    endings = ["h5", "ros2", "csv", "parquet", "feather", "npz", "mat", "mcap", "bag"]
    command = [sys.executable, "-W", "error", "-c", WRITE, str(tmp_path), *endings]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (ran.returncode, ran.stdout.split()) == (0, [each for each in endings for _ in range(2)]), ran.stderr


def test_a_clock_that_would_make_samples_without_an_end_is_refused(tmp_path):
    log = log_of(tmp_path / "log.npz", n=3, t=np.array([0.0, 1.0, 1e12]))
    mapping = {"clock": {"rate": 100}}
    plan = nd.plan(nd.System(ARM, "inverse_dynamics"), outputs=["tau"])
    with pytest.raises(nd.errors.InputError, match=r"`rate: 100` would make 1e\+14 samples"):
        nd.estimate(nd.read_log(log, mapping), plan)
    assert MOST_TIMES < 1e12 * 100


# --------------------------------------------------------------------------------------------------------------
# The live stream


def test_messages_of_any_size_are_checked_for_that_before_they_are_read():
    """Five of 200,000 names stalled estimates for seconds."""
    topic = LiveTopic("/joint_states", JOINT_STATE)
    for n, why in ((LONGEST + 1, "4,097 names, and more than 4,096"), (LARGEST // 4, "more than 262,144 are not read")):
        payload = joint_state(0.0, ["j"] * n)
        for read in (topic.look, lambda data: topic.numbers(data, 0.0)):
            with pytest.raises(MalformedMessage, match=why):
                read(payload)


# --------------------------------------------------------------------------------------------------------------
# Plausibility


@pytest.mark.parametrize(
    ("names", "factors", "units"),
    [
        (("pos_deg_{}", "vel_rad_{}"), ("deg", "rad"), ("deg", None)),
        (("pos_{}", "vel_{}"), ("deg", "rad"), ("deg", None)),
        (("pos_{}", "vel_{}"), ("deg", "deg"), ("deg", "deg/s")),
        (("pos_{}", "vel_{}"), ("rad", "deg"), (None, "deg/s")),
        (("pos_{}", "vel_{}"), ("rad", "rad"), (None, None)),
    ],
)
def test_names_and_the_ratio_of_positions_and_velocities_tell_units(tmp_path, names, factors, units):
    """Velocities were drafted in deg/s because the positions were, against their name and against what they are."""
    tree, t, size = load("ur5"), 0.01 * np.arange(500), {"rad": 1.0, "deg": 180 / np.pi}
    speeds = np.linspace(1, 2, tree.nv)
    q, qd = 2 * np.sin(np.outer(t, speeds)), 2 * speeds * np.cos(np.outer(t, speeds))
    table = np.column_stack([t, size[factors[0]] * q, size[factors[1]] * qd])
    header = ",".join(["time", *(name.format(k) for name in names for k in range(1, 7))])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=header, comments="")
    with open_log(str(tmp_path / "log.csv")) as source:
        found = draft(source, SampleRecord.of({ALWAYS: nd.System(tree, "inverse_dynamics")}))
    assert tuple(guess.entry.get("unit") for guess in found.guesses) == units


def test_a_contradiction_of_units_names_those_that_the_mapping_says(tmp_path):
    t = 0.01 * np.arange(300)
    q, qd = np.sin(np.outer(t, [1, 2])), np.cos(np.outer(t, [1, 2])) * [1, 2]
    log = log_of(tmp_path / "log.npz", n=300, t=t, q=np.rad2deg(q), qd=qd)
    columns = [
        {"of": "q:{joint}", "from": "q[{k}]", "unit": "deg"},
        {"of": "qd:{joint}", "from": "qd[{k}]", "unit": "deg/s"},
    ]
    columns += [{"of": "qdd:{joint}", "from": "qdd[{k}]"}]
    plan = nd.plan(nd.System(ARM, "inverse_dynamics"), outputs=["tau"])
    (doubt,) = nd.estimate(nd.read_log(log, {"columns": columns}), plan).report.doubts
    assert "or qd like rad/s that were taken for degrees per second" in doubt.message
    assert doubt.message.endswith("The mapping says deg of q, and deg/s of qd.")


@pytest.mark.parametrize(("factor", "doubted"), [(1.0, False), (180 / np.pi, True), (1.5, False)])
def test_accelerations_in_degrees_alone_are_doubted(tmp_path, factor, doubted):
    """Torques were off by all that moves the arm, and nothing was said: q goes along with qd."""
    t, noise = 0.01 * np.arange(300), np.random.default_rng(0).normal(scale=0.1, size=(300, 2))
    q, qd, qdd = (
        np.column_stack([size * of(t), size * 2**k * of(2 * t)])
        for k, (size, of) in enumerate(((1.0, np.sin), (1.0, np.cos), (-1.0, np.sin)))
    )
    log = log_of(tmp_path / "log.npz", n=300, t=t, q=q, qd=qd, qdd=factor * qdd + noise)
    plan = nd.plan(nd.System(ARM, "inverse_dynamics"), outputs=["tau"])
    found = [doubt.message for doubt in nd.estimate(log, plan).report.doubts]
    words = "qd changes 0.017.* times as much as .* qdd.*, at every joint. qdd looks like degrees per second squared"
    assert (len(found) == 1) == doubted
    assert all(re.search(words, each) for each in found)
    told = nd.identify(log, ARM, ["friction"], physical=False).doubts
    assert any(re.search(words, each) for each in told) == doubted


def test_sensors_of_a_base_that_does_not_move_are_told():
    with pytest.warns(nd.errors.NoriWarning, match="it reads nothing on robot .* Its base is fixed"):
        nd.System(ARM, "floating_base")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.System(nd.autotree(2), "inverse_dynamics")


def test_memory_that_runs_out_is_no_damage():
    from nori_dyn.io.files import reason

    assert reason(MemoryError()) == "not enough memory"
    assert reason(OSError(errno.ENOSPC, "No space left on device")) == "No space left on device"
    assert reason(ValueError()) == "ValueError"
    assert reason(sqlite3.OperationalError("locked")) == "locked"
