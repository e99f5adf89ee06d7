"""Logs of real robots, estimated by the name of the robot alone; and wrong ones, which are named and not estimated.

The data are not in the repository, see docs/real_robots.md: where they are not, or a package is not, these tests skip.
Figures are those of docs/real_robots.md, which take mappings and plans written by hand.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.errors import DoubtfulLogError, InputError, MappingError, MissingExtraError, ModelError, NoriError
from nori_dyn.estimation.preset_logs import preset_log

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::nori_dyn.errors.NoriWarning")]

DATA = Path(__file__).parents[2].parent / "shared" / "data"

PANDA, BAG = "panda_log/beam_z_15cm_1khz.csv.gz", "real/panda_bag/panda_exciting_trajectory.db3"
UR10E, UR10E_MODEL = "real/ur10e/exciting_2.csv.gz", "real/ur10e/ur10e.urdf"
PENDULUM = "real/double_pendulum/PM_measured.csv.gz"
CHEETAH, CHEETAH_MODEL = "real/mini_cheetah/asphalt.npz", "real/mini_cheetah/model.urdf"
WALKING, WALKING_MODEL = "real/icub_walking/walking.mat", "real/icub_walking/model.urdf"


def ready(name, log, model=None):
    """A preset and the file of a log; skips where there is no such data, or no package with its model."""
    if not (DATA / log).exists():
        pytest.skip("the data set is not here: see docs/real_robots.md")
    preset = nd.preset(name, None if model is None else DATA / model)
    try:
        _ = preset.tree
    except ModelError as error:
        pytest.skip(str(error))
    return preset, DATA / log


def estimated(name, log, model=None, **options):
    """The estimates of a log by the name of its robot."""
    preset, path = ready(name, log, model)
    try:
        return preset, nd.estimate(path, preset, missing="drop", singular="nan", **options)
    except MissingExtraError as error:
        pytest.skip(str(error))


def slow(x, t, cutoff):
    """What of samples is slower than some frequency [Hz]."""
    return sosfiltfilt(butter(4, cutoff / (0.5 / np.median(np.diff(t))), output="sos"), x, axis=0)


def read_array(file, name):
    """An array of a MATLAB file, wherever in it."""
    found = []
    file.visititems(
        lambda path, item: found.append(np.asarray(item)) if path.endswith(name) and hasattr(item, "shape") else None
    )
    return found[0]


def rms(x):
    return np.sqrt(np.mean(np.square(x), axis=0))


@pytest.mark.parametrize(
    ("name", "log", "model", "cutoff", "worst", "part"),
    [
        ("panda", PANDA, None, None, [0.46, 2.11, 0.38, 0.82, 0.99, 0.11, 0.22], slice(None)),
        ("panda_arm", BAG, None, None, [0.68, 0.44, 0.50, 0.66, 0.44, 0.33, 0.28], slice(5, -5)),
        ("ur10e", UR10E, UR10E_MODEL, 5.0, [3.4, 10.2, 8.0, 0.91, 0.98, 0.53], slice(100, -100)),
        ("double_pendulum", PENDULUM, None, 8.0, [0.15, 0.094], slice(-11000, -50)),
    ],
)
def test_torques_of_an_arm(name, log, model, cutoff, worst, part):
    preset, found = estimated(name, log, model, what="torques")
    places = [found.samples.record.measurement_names.index(f"tau:{joint}") for joint in preset.tree.joint_names]
    off = found["tau"] - found.samples.y[:, places]
    if cutoff is not None:
        off = slow(off, found.t, cutoff)
    assert (rms(off[part]) <= 1.05 * np.array(worst)).all()


def test_the_feet_of_a_cheetah_carry_its_weight_in_a_trot():
    preset, found = estimated("mini_cheetah", CHEETAH, CHEETAH_MODEL)
    tree, q = preset.tree, found.samples.q
    up = {}
    for leg in ("FR", "FL", "RR", "RL"):
        hip, thigh, calf = (
            q[:, [tree.q_slices[tree.joint(f"{leg}_{part}_joint")].start]] for part in ("hip", "thigh", "calf")
        )
        turns = Rotation.from_quat(q[:, 3:7]) * Rotation.from_euler("x", hip) * Rotation.from_euler("y", thigh + calf)
        up[leg] = turns.apply(found[f"fx:{leg}_foot"][:, 3:])[:, 2]
    weight = 9.81 * tree.I[:, 5, 5].sum()
    assert weight == pytest.approx(88, abs=0.5)
    assert sum(up.values()).mean() == pytest.approx(weight, rel=0.05)
    bears = {leg: force > weight / 8 for leg, force in up.items()}
    for one, across, beside in (("FR", "RL", "FL"), ("FL", "RR", "FR")):  # diagonal pairs stand together, in turn
        assert np.mean(bears[one] == bears[across]) > 0.85
        assert np.mean(bears[one] != bears[beside]) > 0.75
    assert all(0.4 < np.mean(stands) < 0.65 for stands in bears.values())


def test_forces_attitude_and_path_of_an_icub_that_walks():
    h5py = pytest.importorskip("h5py")
    _, found = estimated("icub", WALKING, WALKING_MODEL)
    with h5py.File(DATA / WALKING) as file:
        true = {name: read_array(file, name) for name in ("lfForceZ", "rfForceZ")}
    for foot, name in (("l", "lfForceZ"), ("r", "rfForceZ")):
        force, read = found[f"fx:{foot}_sole"][:, 5], true[name].ravel()
        assert rms(force - read) <= 42
        assert np.corrcoef(force, read)[0, 1] >= 0.936


def scaled(kind, factor):
    """A change to a mapping: numbers of a kind times a factor."""

    def change(columns):
        for entry in columns:
            if entry["of"].startswith(kind) and "root" not in entry["of"]:
                entry["scale"] = (np.array(entry.get("scale", 1.0)) * factor).tolist()

    return change


def swapped(one, other, kinds=("q", "qd", "tau")):
    """A change to a mapping: two joints exchanged."""

    def change(columns):
        for entry in columns:
            if entry["of"].partition(":")[0] in kinds:
                source = entry["from"]
                source = source if isinstance(source, list) else [source.replace("{k}", str(k)) for k in range(7)]
                source[one], source[other] = source[other], source[one]
                entry["from"] = source

    return change


def both(*changes):
    def change(columns):
        for each in changes:
            each(columns)

    return change


def feet_exchanged(columns):
    for entry in columns:
        if entry["of"].startswith("contact"):
            entry["from"] = {"lfForceZ": "rfForceZ", "rfForceZ": "lfForceZ"}[entry["from"]]


def sides_exchanged(columns):
    for entry in columns:
        sides = {"l_": "r_", "r_": "l_"}
        entry["joints"] = [sides.get(each[:2], each[:2]) + each[2:] for each in entry.get("joints", ())] or None


def calves_turned(columns):
    for entry in columns:
        if "calf" in entry["of"]:
            entry.pop("scale")


def turned(columns):
    for entry in columns:
        if entry["of"] in ("imu", "gyro"):
            entry["frame"] = {"rpy": [0, 0, np.pi]}


DEGREES, LIMITS, RATES = 180 / np.pi, "outside the joint limits", "q moves 0.0"
WRONG = {
    "panda": (
        ("panda", PANDA, None),
        {
            "two joints exchanged": (swapped(1, 3), LIMITS),
            "torques exchanged": (swapped(1, 3, ("tau",)), "with 'panda_joint2' and 'panda_joint4' exchanged"),
            "velocities exchanged": (swapped(1, 3, ("qd",)), "moves with qd of 'panda_joint2'"),
            "torques of the other sign": (scaled("tau:", -1), "They have the other sign"),
            "q of the other sign": (both(scaled("q:", -1), scaled("qd:", -1)), LIMITS),
            "degrees": (both(scaled("q:", DEGREES), scaled("qd:", DEGREES)), "Angles look like degrees"),
            "velocities in degrees": (scaled("qd:", DEGREES), RATES),
            "millinewton metres": (scaled("tau:", 1000), "It looks like mN m"),
            "torques of the motors": (scaled("tau:", 0.01), "Are unit and gains right"),
        },
    ),
    "ur10e": (
        ("ur10e", UR10E, UR10E_MODEL),
        {
            "two joints exchanged": (swapped(1, 2), "is it this robot"),
            "torques exchanged": (swapped(1, 2, ("tau",)), "with 'shoulder_lift_joint' and 'elbow_joint' exchanged"),
            "velocities exchanged": (swapped(1, 2, ("qd",)), "moves with qd of"),
            "torques of the other sign": (scaled("tau:", -1), "the other sign"),
            "q of the other sign": (both(scaled("q:", -1), scaled("qd:", -1)), "is it this robot"),
            "degrees": (both(scaled("q:", DEGREES), scaled("qd:", DEGREES)), "Angles look like degrees"),
            "currents": (scaled("tau:", 1 / 14), "is it this robot"),
        },
    ),
    "double_pendulum": (
        ("double_pendulum", PENDULUM, None),
        {
            "joints exchanged": (swapped(0, 1), "the torques do not follow gravity"),
            "velocities exchanged": (swapped(0, 1, ("qd",)), "moves with qd of"),
            "degrees": (both(scaled("q:", DEGREES), scaled("qd:", DEGREES)), "if q were in degrees"),
            "torques of the other sign": (scaled("tau:", -1), "They have the other sign"),
        },
    ),
    "mini_cheetah": (
        ("mini_cheetah", CHEETAH, CHEETAH_MODEL),
        {
            "torques of the other sign": (scaled("tau:", -1), "joint_torque has the other sign"),
            "torques of the motors": (scaled("tau:", 0.1), "the forces that carry the robot are"),
            "millinewton metres": (scaled("tau:", 1000), "It looks like mN m"),
            "calves of the other sign": (calves_turned, "the readings contradict each other"),
            "velocities in degrees": (scaled("qd:", DEGREES), RATES),
        },
    ),
    "icub": (
        ("icub", WALKING, WALKING_MODEL),
        {
            "left and right exchanged": (sides_exchanged, "the readings contradict each other"),
            "feet exchanged": (feet_exchanged, "the readings contradict each other"),
            "degrees": (scaled("q:", DEGREES), "Angles look like degrees"),
            "q of the other sign": (scaled("q:", -1), LIMITS),
            "accelerometer in g": (scaled("imu", 1 / 9.81), "It looks like g"),
            "gyroscope in degrees": (scaled("gyro", DEGREES), "looks like degrees"),
            "IMU half a turn off": (turned, "turned half a turn"),
        },
    ),
}


@pytest.mark.parametrize(
    ("robot", "mistake"), [(robot, one) for robot, (_, changes) in WRONG.items() for one in changes]
)
def test_a_log_that_is_read_wrongly_is_named_and_not_estimated(robot, mistake):
    (name, log, model), changes = WRONG[robot]
    change, said = changes[mistake]
    preset, path = ready(name, log, model)
    tied = preset_log(preset, path)
    assert tied.kind is not None
    mapping = tied.kind.model_dump(
        by_alias=True, exclude_none=True, exclude_unset=True, exclude={"about", "dt", "differentiate"}
    )
    change(mapping["columns"])
    way = tied.way("auto", None)
    with pytest.raises(DoubtfulLogError) as refused:
        nd.estimate(nd.read_log(path, mapping), preset, *way, missing="drop", singular="nan")
    assert any(said in question for question in refused.value.questions), refused.value.questions


@pytest.mark.parametrize(
    ("name", "log", "model", "said"),
    [
        ("ur10e", BAG, UR10E_MODEL, "6 numbers of q are"),
        ("panda", UR10E, None, "7 numbers of q are"),
        ("z1", UR10E, None, "lacks 6 of 12 measurements"),
        ("double_pendulum", CHEETAH, None, "2 numbers of q are"),
        ("go2", CHEETAH, None, "holds no readings of the whole IMU"),
        ("icub", CHEETAH, None, "has no column"),
        ("panda", "real/icub_one_leg/left_leg.npz", None, "lacks 6 of 12 measurements"),
    ],
)
def test_the_preset_of_another_robot_is_refused(name, log, model, said):
    preset, path = ready(name, log, model)
    with pytest.raises((InputError, MappingError), match=said):
        nd.estimate(path, preset, accept=True)


@pytest.mark.parametrize(("model", "said"), [("ur5", "is it this robot"), ("ur3", "is it this robot")])
def test_another_arm_of_the_same_maker_is_named(model, said):
    _, path = ready("ur10e", UR10E, UR10E_MODEL)
    with pytest.raises(DoubtfulLogError, match=said):
        nd.estimate(path, nd.preset("ur10e", model))


@pytest.mark.parametrize(("name", "model"), [("icub", "talos"), ("mini_cheetah", "anymal"), ("panda", "z1")])
def test_a_model_of_another_robot_is_refused(name, model):
    with pytest.raises(NoriError, match=f"{model}.*{name}"):
        nd.preset(name, model).plan()
