"""Robots that exist: do their logs, read through their mappings, say what else was measured on them?

The data are not in the repository, see docs/real_robots.md: where they are not, or a package is not, these tests skip.
"""

import importlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

import nori_dyn as nd
from benchmarks.real import icub_offsets, ur10e, ur10e_pushes
from benchmarks.real.finding import Figure, Finding
from benchmarks.real.recording import beside
from nori_dyn.errors import MissingExtraError
from nori_dyn.identification.parameters import ten_of, ten_parameters

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[2].parent / "shared" / "data"

FOLDERS = {
    "icub_base": "icub_walking",
    "icub3_base": "icub3_walking_sim",
    "ur10e_bands": "ur10e",
    "ur10e_pushes": "ur10e",
}
"""Where the data of a module are, if not in a folder of its name."""


@cache
def results_of(name: str) -> list[Finding | Figure]:
    """What comes of a data set, worked out once."""
    folder = DATA / name if name == "panda_log" else DATA / "real" / FOLDERS.get(name, name)
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not here: see docs/real_robots.md")
    if name == "human_bowing":
        pytest.importorskip("idyntree")
    try:
        return importlib.import_module(f"benchmarks.real.{name}").run(DATA)
    except MissingExtraError as error:
        pytest.skip(str(error))


def finding(results: list[Finding | Figure], estimated: str) -> Finding:
    """The finding of what was estimated."""
    (one,) = (each for each in results if isinstance(each, Finding) and each.estimated == estimated)
    return one


def figure(results: list[Finding | Figure], what: str) -> Figure:
    """The figure whose name begins so."""
    (one,) = (each for each in results if isinstance(each, Figure) and each.what.startswith(what))
    return one


def test_the_ground_under_the_bowing_human_is_the_plate():
    """Joints alone say it to 1.9 N of 605, mean included."""
    results = results_of("human_bowing")
    rms, difference, _, correlation = finding(results, "vertical force of the ground, from the joints alone").of("fz")
    assert rms <= 1.9
    assert abs(difference) <= 1.0
    assert correlation >= 0.95
    assert finding(results, "couple about the ankle's axis at the foot").correlation[0] >= 0.95


def test_the_map_estimate_of_the_bowing_human_is_berdys():
    """With the authors' variances; BERDY's equations of motion have some too, and its rounding shows."""
    assert figure(results_of("human_bowing"), "largest difference of our MAP estimate").value <= 1e-6


def test_sensors_of_the_icub_on_one_leg_read_what_its_motion_asks_for():
    results = results_of("icub_one_leg")
    leg = finding(results, "wrench below the right hip")
    for component, correlation in zip(leg.components, (0.72, 0.94, 0.89, 0.98, 0.74, 0.93), strict=True):
        assert leg.of(component)[3] >= correlation, component
    assert max(leg.rms[:3]) <= 10  # N
    assert max(leg.rms[3:]) <= 0.5  # N m
    for title, least in (("right hip", 0.98), ("lifted foot", 0.94)):
        (still,) = (each for each in results if getattr(each, "estimated", "").endswith(f"{title}, the leg turned out"))
        assert min(still.correlation) >= least, title
    foot = finding(results, "wrench of the standing foot")
    assert max(foot.rms[:3]) <= 7  # N of 320, on its own feet
    assert max(foot.rms[3:]) <= 1.3  # N m


def test_offsets_found_on_one_leg_hold_on_two():
    """On data that had no part in them."""
    force = figure(results_of("icub_one_leg"), "force on both feet before")
    assert force.value == pytest.approx(force.expected, rel=0.005)


def test_the_walking_icub_is_found_on_the_foot_that_it_stands_on():
    """Of every instant, from its joints and its IMU: no foot's sensor has gone into it."""
    results = results_of("icub_walking")
    weight = figure(results, "weight on both feet, mean")
    assert weight.value == pytest.approx(weight.expected, rel=0.02)
    assert finding(results, "left foot's share, both taken to stand").correlation[0] >= 0.85
    assert finding(results, "left foot's share, in the states found").correlation[0] >= 0.92
    phases = figure(results, "phases on one foot that were found")
    assert phases.value == phases.expected == 6
    assert figure(results, "instants on one foot that were found so").value >= 0.9
    assert figure(results, "instants on one foot that were given to the other").value == 0


def test_torques_from_outside_are_those_of_the_pandas_own_observer():
    results = results_of("panda_log")
    outside = finding(results, "torques from outside, low-passed at 25/s")
    assert min(outside.correlation) >= 0.9
    assert max(outside.rms) <= 0.09
    inside = finding(results, "torques, arm with hand")
    np.testing.assert_allclose(inside.rms, [0.46, 2.11, 0.38, 0.82, 0.99, 0.11, 0.22], atol=0.006)


def test_torques_of_the_panda_in_the_bag():
    results = results_of("panda_bag")
    bare = finding(results, "torques, links alone")
    np.testing.assert_allclose(bare.rms, [0.69, 0.44, 0.50, 0.66, 0.44, 0.33, 0.28], atol=0.006)
    links = finding(results, "torques of the second half, links alone")
    driven = finding(results, "torques of the second half, with friction and rotors fitted on the first")
    assert all(a < b for a, b in zip(driven.rms, links.rms, strict=True))
    assert min(driven.correlation) >= 0.75


def test_currents_of_the_ur10e_are_its_torques_and_its_load():
    """What another log says of its drives holds, and what it carries adds what a mass adds."""
    results = results_of("ur10e")
    driven = finding(results, "torques, with friction and rotors fitted on another log")
    assert min(driven.correlation) >= 0.97
    load = finding(results, "what the load adds, a point mass fitted")
    assert min(load.correlation[1:]) >= 0.99
    assert max(load.rms) <= 2.5
    assert 2 < figure(results, "mass of the load, a point mass").value < 4


def test_rotors_and_friction_are_what_the_double_pendulum_lacks():
    results = results_of("double_pendulum")
    links, driven = finding(results, "torques, links alone"), finding(results, "torques, with rotors and friction")
    assert all(a < 0.6 * b for a, b in zip(driven.rms, links.rms, strict=True))
    assert min(driven.correlation) >= 0.985


def test_presliding_takes_some_of_the_residual_of_the_double_pendulum():
    results = results_of("double_pendulum")
    slides, deflected = (finding(results, f"torques, all identified{how}") for how in ("", ", with presliding"))
    assert all(a < 0.92 * b for a, b in zip(deflected.rms, slides.rms, strict=True))


def test_one_trajectory_of_the_ur10e_explains_another():
    every = finding(results_of("ur10e"), "torques, all parameters identified on another log")
    assert np.all(np.array(every.correlation) >= [0.995, 0.998, 0.998, 0.996, 0.99, 0.996])
    moved = finding(results_of("ur10e"), "torques of joints that move, all identified on another log")
    assert min(moved.correlation) >= 0.998


def test_the_load_of_the_ur10e_and_the_gains_of_its_drives():
    results = results_of("ur10e")
    mass = figure(results, "mass of the load, by these gains")
    assert mass.value == pytest.approx(3.07, abs=0.05)
    assert 0 < mass.deviation < 0.1
    gains = [one for one in results if isinstance(one, Figure) and one.what.startswith("gain of the drive")]
    assert len(gains) == 6
    for gain in gains[1:]:
        assert gain.value == pytest.approx(gain.expected, rel=0.125), gain.what
    assert 9 < gains[0].value < 13


def test_a_payload_by_the_parameters_of_one_link_is_that_of_dense_least_squares():
    """The recipe of docs/identification.md on the log with a load: by Pinocchio's regressor, with a filter of SciPy."""
    from scipy.signal import butter, savgol_filter, sosfiltfilt

    pin = pytest.importorskip("pinocchio")
    folder = DATA / "real" / "ur10e"
    if not folder.is_dir():
        pytest.skip("the data set ur10e is not here: see docs/real_robots.md")
    how = {"cutoff": ur10e.CUTOFF, "differentiate": ur10e.WINDOW, "moving": ur10e.MOVING}
    names = ("exciting_1", "exciting_2", "exciting_2_load")
    first, second, loaded = (nd.read_log(folder / f"{name}.csv.gz", beside("ur10e.log.yaml")) for name in names)
    arm = nd.load_urdf(folder / "ur10e.urdf")
    free = nd.identify([first, second], arm, held_out=0, **how)
    hand = arm.names[-1]
    wanted = [f"m:{hand}", f"mc:{hand}.*", f"I:{hand}.*", "offsets"]
    found = nd.identify(loaded, free.robot, wanted, physical=False, **how)

    table = np.loadtxt(folder / "exciting_2_load.csv.gz", delimiter=",")
    q, qd, tau = table[:, 1:7], table[:, 7:13], table[:, 13:19] * ur10e.GAINS
    qdd = savgol_filter(qd, ur10e.WINDOW, 3, deriv=1, delta=0.01, axis=0)
    model = pin.buildModelFromUrdf(str(folder / "ur10e.urdf"))
    data = model.createData()
    Y = np.array([pin.computeJointTorqueRegressor(model, data, *s).copy() for s in zip(q, qd, qdd, strict=True)])
    viscous, coulomb, rotor = (
        np.array([free.each[f"{kind}:{joint}"] for joint in arm.joint_names])
        for kind in ("viscous", "coulomb", "rotor")
    )
    tens = np.array([ten_of(I) for I in free.robot.I])
    y = tau - (Y @ tens.ravel() + viscous * qd + coulomb * qd / np.hypot(qd, 0.01) + rotor * qdd)
    offsets = np.broadcast_to(-np.eye(6), (len(q), 6, 6))
    A = np.concatenate([Y[:, :, -10:], offsets], axis=2)
    low = butter(4, ur10e.CUTOFF, fs=100, output="sos")
    smooth = [sosfiltfilt(low, x, axis=0)[100:-100:6] for x in (A, y, (np.abs(qd) > ur10e.MOVING).astype(float))]
    A, y, counts = smooth[0], smooth[1], smooth[2] > 0.99
    sigma = np.ones(6)
    for _ in range(20):
        x = np.linalg.lstsq((A / sigma[:, None])[counts], (y / sigma)[counts], rcond=None)[0]
        sigma = np.array([(y - A @ x)[counts[:, k], k].std() for k in range(6)])
    by_pinocchio = tens[-1] + x[:10]
    ten = [each.name for each in ten_parameters(hand)]
    off = np.abs(np.array([found.each[name] for name in ten]) - by_pinocchio)
    np.testing.assert_array_less(off, 2.5 * np.array([found.deviations[name] for name in ten]))
    payload = found.each[f"m:{hand}"] - tens[-1, 0]
    assert payload == pytest.approx(x[0], abs=0.03)
    assert payload == pytest.approx(3.07, abs=0.05)
    assert all(each.how == "identified" for each in found.estimates[:4])


def test_the_log_of_the_panda_tells_little_beyond_offsets():
    results = results_of("panda_log")
    assert figure(results, "combinations of inertias and offsets").value == 50
    assert figure(results, "independent ones that the log identifies").value <= 25
    offsets = finding(results, "torques of the last third, offsets identified")
    every = finding(results, "torques of the last third, inertias and offsets identified")
    assert np.all(np.array(every.rms) > 0.75 * np.array(offsets.rms))
    assert max(offsets.rms) < 0.15


def test_two_thirds_of_the_bag_of_the_panda_explain_the_last():
    last = finding(results_of("panda_bag"), "torques of the last third, all parameters identified on the others")
    assert max(last.rms) <= 0.26
    assert np.mean(last.rms) <= 0.14
    assert min(last.correlation) >= 0.93


def test_the_trunk_of_a_trotting_mini_cheetah_weighs_what_its_makers_say():
    """Though nothing measures the ground under its feet."""
    results = results_of("mini_cheetah")
    assert figure(results, "beforehand: combinations").value == 94
    assert figure(results, "beforehand: of the four").value == 4
    mass, aside = figure(results, "mass of the trunk"), figure(results, "first moment of the trunk, y")
    assert abs(mass.value - 3.3) < 2 * mass.deviation < 0.3
    assert abs(aside.value) < 2 * aside.deviation < 0.02
    held_out = finding(results, "torques of the last third, the trunk identified on the others")
    assert all(rms < 1.2 * spread for rms, spread in zip(held_out.rms, held_out.spread, strict=True))


def test_friction_and_rotors_take_more_than_half_of_the_residual_of_the_double_pendulum():
    results = results_of("double_pendulum")
    rigid = finding(results, "torques of joints that move, inertias identified")
    every = finding(results, "torques of joints that move, all identified")
    assert all(a < 0.4 * b for a, b in zip(every.rms, rigid.rms, strict=True))
    assert min(every.correlation) >= 0.997


def test_the_leg_of_the_icub_is_weighed_by_the_sensor_below_its_hip():
    results = results_of("icub_one_leg")
    for when in ("on one leg", "the leg turned out"):
        mass = figure(results, f"mass of the leg, {when}")
        assert mass.value == pytest.approx(mass.expected, rel=0.06)
        assert 0 < mass.deviation < 0.1
    moment = figure(results, "first moment along the thigh, shank and foot at the knee, on one leg")
    assert moment.value == pytest.approx(moment.expected, rel=0.05)


@pytest.fixture(scope="module")
def offsets():
    """What came of the offsets of the iCub on one leg, worked out once."""
    if not (DATA / "real" / "icub_one_leg").is_dir():
        pytest.skip("the data set icub_one_leg is not here: see docs/real_robots.md")
    return icub_offsets.run(DATA, ["constants", "walking"])


@pytest.mark.parametrize("sensor", icub_offsets.SENSORS)
def test_wrenches_of_the_icub_are_nearer_without_the_offsets_learned_before(offsets, sensor):
    """Each sensor's largest offset, of 4 to 290 N, is gone but for what the model is off."""
    read = finding(offsets, f"{sensor}, as read").rms
    less = finding(offsets, f"{sensor}, less the offset 5 s before, walking").rms
    largest = max(range(3), key=lambda k: read[k])
    assert less[largest] < 0.2 * read[largest]


def test_deviations_of_offsets_are_honest_where_they_may_walk(offsets):
    assert figure(offsets, "walking: later estimates within 3 deviations").value > 0.99
    assert figure(offsets, "walking: rms over deviations").value < 1.2


def test_deviations_of_constants_are_not(offsets):
    """A model that is off by newtons is no white noise: these say so."""
    assert figure(offsets, "constants: later estimates within 3 deviations").value < 0.5
    assert figure(offsets, "constants: chi-square").value > 5


def test_the_base_of_the_walking_icub_is_found_by_encoders_and_imu():
    """Closer in each than a plain error-state filter of the same readings: 0.9 deg, .037 .039 .024 m/s, 63 mm."""
    results = results_of("icub_base")
    for found, bound in zip(finding(results, "velocity of the base").rms, (0.037, 0.039, 0.024), strict=True):
        assert found < bound
    assert figure(results, "tilt, rms error").value < 0.65
    assert figure(results, "path, rms error").value < 0.045
    given = finding(results_of("icub_walking"), "vertical force, in the states found").rms
    estimated = finding(results, "vertical force, in the states found").rms
    np.testing.assert_allclose(estimated, given, rtol=0.01)


def test_the_chest_of_the_icub_3_is_found_though_its_soles_slip():
    """The plain filter: 1.4 deg, .043 .019 .016 m/s, 0.39 m of 3 m."""
    results = results_of("icub3_base")
    x, _, z = finding(results, "velocity of the base").rms
    assert x < 0.0215
    assert z < 0.016
    assert figure(results, "tilt, rms error").value < 0.5
    assert figure(results, "path, rms error").value < 0.13
    assert figure(results, "smoothed path, rms error").value < 0.035


def test_zero_is_in_the_bands_of_torques_from_outside_on_an_arm_that_nothing_touches():
    results = results_of("ur10e_bands")
    found = finding(results, "torques of joints that move, with friction by weight and squared velocity")
    assert np.all(np.array(found.rms) <= [1.6, 1.5, 0.82, 0.15, 0.2, 0.15])
    assert min(found.correlation) >= 0.998
    assert 0.93 <= figure(results, "share of samples in motion").value <= 0.97
    assert 0.93 <= figure(results, "share of samples at which joints turn back").value <= 0.97
    standing = figure(results, "standstills with their mean in it")
    assert standing.expected >= 150
    assert standing.value >= 0.95 * standing.expected
    assert figure(results, "half of the widest band at rest").value <= 1.0


@pytest.mark.parametrize("chosen", ["15", "60", "120"])
def test_pushes_of_the_ur10e_are_seen_with_as_many_false_alarms_as_chosen(chosen):
    results, title = results_of("ur10e_pushes"), f"with {chosen} false alarms an hour chosen"
    found = figure(results, f"false alarms {title}")
    assert poisson.ppf(0.025, found.expected) <= found.value <= poisson.ppf(0.975, found.expected)
    pushes = figure(results, f"pushes that are seen {title}")
    assert pushes.value == pushes.expected == 6
    assert figure(results, f"median delay {title}").value <= (0.05 if chosen == "15" else 0.04)
    stops = figure(results, f"stops of the arm that are seen {title}")
    assert 0 < stops.value <= stops.expected == 3


def test_pushes_of_the_ur10e_are_seen_by_its_preset():
    folder = DATA / "real" / "ur10e"
    if not folder.is_dir():
        pytest.skip("the data set ur10e is not here: see docs/real_robots.md")
    free = [folder / f"{name}.csv.gz" for name in ur10e_pushes.LEARNT]
    how = {
        "what": "collisions",
        "accept": True,
        "differentiate": 11,
        "alarms": nd.tools.Alarms(15.0, time=ur10e_pushes.TIME),
    }
    found = nd.estimate(folder / "push_pose_2.csv.gz", "ur10e", untouched=free, **how)
    late = np.subtract.outer([event.begin - found.t[0] for event in found.history.events], ur10e_pushes.ONSETS)
    assert (np.abs(late) < 0.25).any(axis=0).all()  # late, as two logs end with stops
    assert ((late > 0) & (late < 2.0)).any(axis=1).all()  # of a push, or of its end


@pytest.mark.parametrize(("name", "begins"), [("push_pose_2", ur10e_pushes.ONSETS), ("one_joint_5", ())])
def test_the_preset_of_the_ur10e_tells_pushes_from_motion_by_what_it_has_learnt(name, begins):
    """Whatever model is given beside: that of the drives is identified with its friction."""
    folder = DATA / "real" / "ur10e"
    if not folder.is_dir():
        pytest.skip("the data set ur10e is not here: see docs/real_robots.md")
    preset = nd.preset("ur10e", model=folder / "ur10e.urdf")
    found = nd.estimate(folder / f"{name}.csv.gz", preset, what="collisions", accept=True)
    seen = np.array([event.begin for event in found.history.events]) - found.t[0]
    assert all(np.any((seen > onset) & (seen < onset + 0.15)) for onset in begins)
    assert len(seen) <= len(begins) + 1  # one is let go


def test_the_load_of_the_ur10e_is_weighed_while_it_moves():
    soon, late = (figure(results_of("ur10e_bands"), f"mass of the load after {when}") for when in ("10 s", "all"))
    assert soon.value == pytest.approx(soon.expected, rel=0.05)
    assert late.value == pytest.approx(late.expected, rel=0.03)
