"""Parameters that robots were simulated with are found from their logs, as far as they are identifiable."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.parameters import Parameters, ten_of, with_presliding
from nori_dyn.identification.plausibility import contradicted_priors, late_readings, unlikely_masses
from nori_dyn.identification.prior import PriorCheck
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.tables import number, spaced
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.unit.identification.inertias import pseudo_inertia_of
from tests.unit.identification.simulated import ARM, changed, motion, saved_log
from tests.words import plain


@pytest.fixture(scope="module")
def arm() -> nd.KinematicTree:
    return load("ur5")


def errors_of(found, robot: nd.KinematicTree) -> np.ndarray:
    """How far each combination is from what it is of a robot."""
    truth = found.base.G @ type(found.parameters)(robot, found.parameters.each).prior
    return np.array([c.value for c in found.combinations]) - truth


def errors_in_deviations(found, robot: nd.KinematicTree) -> np.ndarray:
    return errors_of(found, robot) / [c.deviation for c in found.combinations]


def off(found, robot: nd.KinematicTree) -> float:
    return np.abs(errors_of(found, robot)).max()


def test_a_log_without_noise_identifies_every_combination(tmp_path, arm):
    _, other = changed(arm, seed=1)
    log = saved_log(tmp_path / "log.npz", other)
    found = nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=False)
    assert found.base.rank == found.n_identified == 36
    assert off(found, other) < 1e-6
    assert max(fit.after for fit in found.fits) < 1e-6 < min(fit.before for fit in found.fits)
    assert found.notes == ()


def test_friction_by_weight_is_found_though_the_model_weighs_something_else(tmp_path, arm):
    """The weight is that of what was found: that of the model is off by up to a third, as its bodies are."""
    _, heavy = changed(arm, seed=2, share=0.6)
    friction = nd.components.Friction(joints="all", viscous=0.7, coulomb=1.5, mu=0.08, width=0.01)
    log = saved_log(tmp_path / "log.npz", heavy.replace(components=[friction]), n=3000, sigma=0.01)
    wanted = ["inertias", "friction", "weight_friction"]
    found = nd.identify(log, nd.System(arm, ARM), wanted, held_out=0.0, physical=False)
    for joint in ("shoulder_lift_joint", "elbow_joint"):
        assert found.each[f"mu:{joint}"] == pytest.approx(0.08, abs=1e-3)
        assert found.each[f"coulomb:{joint}"] == pytest.approx(1.5, abs=0.02)
    assert max(fit.after for fit in found.fits) == pytest.approx(0.01, rel=0.1)


def rubbing(tmp_path, viscous, coulomb, static, stribeck, asymmetry, n=3000):
    """The log of two joints whose friction is a formula of velocities, with noise of 0.1 N m."""
    robot, rng = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0)), np.random.default_rng(1)
    t, w, phase, size = np.arange(n) * 0.01, *(rng.uniform(*ends, (2, 1, 4)) for ends in ((0.3, 3), (0, 6), (0.1, 0.5)))
    angle = t[:, None] * w + phase
    q, qd, qdd = ((size * w**k * f(angle)).sum(axis=-1).T for k, f in enumerate((np.sin, np.cos, lambda x: -np.sin(x))))
    level = coulomb + (static - coulomb) / (1 + (qd / stribeck) ** 2)
    friction = viscous * qd + asymmetry * np.abs(qd) + level * qd / np.hypot(qd, 0.01)
    tau = nd.compile(nd.rnea, robot).batch(q, qd, qdd) + friction + rng.normal(0.0, 0.1, q.shape)
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)
    return robot, tmp_path / "log.npz"


def test_stribecks_curve_and_friction_that_differs_by_direction_are_found(tmp_path):
    """From a guess of 0.1 rad/s; deviations are those of the velocity too, in which nothing is linear."""
    truth = {
        "viscous": (0.3, 0.1),
        "coulomb": (1.0, 0.5),
        "static": (2.0, 0.9),
        "stribeck": (0.03, 0.25),
        "asymmetry": (0.2, -0.05),
    }
    robot, log = rubbing(tmp_path, **{name: np.array(values) for name, values in truth.items()})
    wanted = ["inertias", "friction", "stribeck_friction", "asymmetric_friction"]
    found = nd.identify(log, robot, wanted, physical=False)
    truth["excess"] = tuple(np.subtract(truth.pop("static"), truth["coulomb"]))
    for kind, values in truth.items():
        for joint, value in zip(robot.joint_names, values, strict=True):
            name = f"{kind}:{joint}"
            assert abs(found.each[name] - value) < 4 * found.deviations[name] < 0.2, name
    assert [each.stribeck for each in found.robot.components] == pytest.approx(truth["stribeck"], rel=0.15)
    assert not found.remarks


def test_stribecks_curve_is_left_out_of_joints_that_do_not_show_it(tmp_path):
    flat = {"viscous": 0.3, "coulomb": 1.0, "asymmetry": 0.0}
    robot, log = rubbing(tmp_path, **flat, static=np.array([1.0, 1.5]), stribeck=0.2)
    wanted = ["inertias", "friction"]
    found = nd.identify(log, robot, [*wanted, "stribeck_friction"], backend="numpy")
    assert "no Stribeck friction of 'joint1': it is not more at low velocities" in " ".join(found.remarks)
    assert found.each["excess:joint2"] == pytest.approx(0.5, abs=0.1)
    robot, log = rubbing(tmp_path, **flat, static=1.0, stribeck=0.2)
    found, without = (
        nd.identify(log, robot, [*wanted, *more], backend="numpy") for more in (["stribeck_friction"], [])
    )
    assert found.each["coulomb:joint1"] == pytest.approx(without.each["coulomb:joint1"], rel=1e-6)
    known = robot.replace(components=[nd.components.Friction(joints="all", viscous=0.3, coulomb=1.0, width=0.01)])
    with pytest.raises(InputError, match="showed no Stribeck friction, so the logs do not identify"):
        nd.identify(log, known, ["stribeck_friction"], backend="numpy")
    fleet = {"first": log, "second": log}
    with pytest.raises(InputError, match="Stribeck's curve is that of all robots of the type"):
        nd.identify(fleet, robot, [*wanted, "stribeck_friction"], own=["friction", "stribeck_friction"])
    assert "excess:joint1" in nd.identify(fleet, robot, [*wanted, "excess:*"]).each


def waving(tmp_path, gain, n=3000):
    """The log of an arm of two joints, the first in a range of 100 degrees, with waves of theirs that are formulas."""
    robot, rng = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0)), np.random.default_rng(2)
    ends = (0.3, 3.0), (0.0, 6.0), (0.2, 0.25)
    t, w, phase, size = np.arange(n) * 0.01, *(rng.uniform(*each, (2, 1, 4)) for each in ends)
    angle = t[:, None] * w + phase
    q, qd, qdd = ((size * w**k * f(angle)).sum(axis=-1).T for k, f in enumerate((np.sin, np.cos, lambda x: -np.sin(x))))
    tau = nd.compile(nd.rnea, robot).batch(q, qd, qdd) + gain * wave(q) + rng.normal(0.0, 0.05, q.shape)
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)
    return robot, tmp_path / "log.npz", np.ptp(q, axis=0)


def wave(q: np.ndarray) -> np.ndarray:
    return 0.3 * np.cos(2 * q + 0.5) - 0.1 * np.sin(4 * q)


def test_harmonics_of_a_joint_are_found_as_well_as_is_said(tmp_path):
    robot, log, ranges = waving(tmp_path, [1.0, 0.0])
    assert ranges[0] < 2
    found = nd.identify(log, robot, ["inertias", "offsets", "harmonics"], backend="numpy")
    assert found.fits[0].after == pytest.approx(0.05, rel=0.1)
    assert found.fits[0].held_out < 0.06
    assert found.remarks == ("The logs show no harmonics of 'joint2' but what may be chance: they are left out.",)
    (harmonics,) = found.with_stiction().components
    assert harmonics.joints == "joint1"
    q, still = np.load(log)["q"], np.zeros((3000, 2))
    static = nd.compile(nd.rnea, found.robot).batch(q, still, still) + list(found.offsets.values())
    off = (static - nd.compile(nd.rnea, robot).batch(q, still, still) - [1.0, 0.0] * wave(q))[:, 0]
    basis = np.stack([f(k * q[:, 0]) for k in (2, 3, 4) for f in (np.sin, np.cos)])
    deviation = np.sqrt(np.einsum("iq,ij,jq->q", basis, harmonics.covariance, basis))
    assert np.sqrt(np.mean((off / deviation) ** 2)) < 2
    assert np.abs(off).max() < 0.01
    elsewhere = harmonics.force(np.linspace(-np.pi, np.pi, 60)[None])  # determined by their smallest differences
    assert np.abs(elsewhere).max() < 1
    assert found.robot.components[0].covariance is None


def test_harmonics_that_are_chance_are_not_in_the_robot(tmp_path):
    robot, log, _ = waving(tmp_path, 0.0)
    found = nd.identify(log, robot, ["inertias", "harmonics"], backend="numpy")
    assert "no harmonics of 'joint1', 'joint2'" in " ".join(found.remarks)
    assert found.robot.components == ()
    with pytest.raises(InputError, match="joint1, joint2 show no harmonics, so the logs do not identify"):
        nd.identify(log, robot, ["harmonics"], backend="numpy")


def test_harmonics_of_a_joint_whose_torque_nothing_reads_are_left_out(tmp_path):
    robot, log, _ = waving(tmp_path, 1.0)
    sensors = sensor_set(ACCELERATIONS, {"type": "joint_torque", "joints": "joint1"}, UNLOADED)
    found = nd.identify(log, nd.System(robot, sensors), ["inertias", "harmonics"], backend="numpy")
    assert [component.joints for component in found.robot.components] == ["joint1"]
    assert found.fits[0].after == pytest.approx(0.05, rel=0.1)
    some = nd.identify(log, nd.System(robot, sensors), ["inertias", "sin2:*", "cos4:*"], backend="numpy")
    (line,) = (line for line in str(some).partition("Harmonics [N m]")[2].splitlines() if line.startswith("joint1"))
    assert len(line.split()) == 3


def test_each_robot_of_a_fleet_has_its_own_harmonics(tmp_path):
    (tmp_path / "other").mkdir()
    robot, first, _ = waving(tmp_path, [1.0, 0.0])
    _, second, _ = waving(tmp_path / "other", [-1.0, 0.0])
    found = nd.identify({"first": first, "second": second}, robot, ["inertias", "harmonics"], backend="numpy")
    one, other = (found.with_stiction(name).components[0] for name in ("first", "second"))
    assert [one.cos2, other.cos2] == pytest.approx([0.3 * np.cos(0.5), -0.3 * np.cos(0.5)], abs=0.05)
    assert one.covariance[1][1] != other.covariance[1][1]


def test_stiction_of_what_was_found_scatters_as_the_fit_does(tmp_path, arm):
    friction = nd.components.Friction(joints="all", viscous=0.7, coulomb=1.5, width=0.01)
    log = saved_log(tmp_path / "log.npz", arm.replace(components=[friction]), sigma=0.05)
    found = nd.identify(log, nd.System(arm, ARM), ["friction"], physical=False)
    scatter = {each.joints: each.stiction.scatter for each in found.with_stiction().components}
    assert scatter == {name: pytest.approx(0.05, rel=0.2) for name in arm.joint_names}
    again = nd.identify(log, nd.System(found.with_stiction(), ARM), ["friction"], physical=False)
    assert again.each == pytest.approx(found.each, rel=1e-6, abs=1e-6)


def test_drift_is_how_much_viscous_friction_differs_from_log_to_log(tmp_path, arm):
    """And is not counted as scatter; without other logs nothing tells it."""
    laws = [nd.components.Friction(joints="all", viscous=each, coulomb=1.5, width=0.01) for each in (0.6, 0.7, 0.8)]
    colder, log, warmer = (
        saved_log(tmp_path / f"{law.viscous}.npz", arm.replace(components=[law]), sigma=0.02) for law in laws
    )
    for held_out, drift in ((1 / 3, 0.0), ([colder, warmer], 0.1 / 0.7)):
        found = nd.identify(log, nd.System(arm, ARM), ["friction"], physical=False, held_out=held_out)
        for each in found.with_stiction().components:
            assert each.stiction.drift == pytest.approx(drift, rel=0.05)
            assert each.stiction.scatter == pytest.approx(0.02, rel=0.2)
    log_of_one = dict(np.load(warmer))
    for name in ("q", "qd", "qdd"):
        log_of_one[name][:, 1:] *= 0.0
    np.savez(tmp_path / "one.npz", **log_of_one)  # of others it says nothing
    one = nd.identify(log, nd.System(arm, ARM), ["friction"], physical=False, held_out=tmp_path / "one.npz", moving=0.1)
    assert [each.drift > 0 for each in one.stictions.values()] == [True, *[False] * 5]
    assert [fit.held_out is None for fit in one.fits] == [False, *[True] * 5]
    assert one.stictions[f"tau:{arm.joint_names[1]}"].scatter == pytest.approx(0.02, rel=0.2)
    many = nd.identify([colder, log, warmer], nd.System(arm, ARM), ["friction"], physical=False)
    assert many.stictions[f"tau:{arm.joint_names[0]}"].drift == pytest.approx(0.1 / 0.7, rel=0.05)


def test_ripple_is_the_noise_that_joints_have_in_motion_alone(tmp_path):
    """Noise is white, of 0.05 N m at rest and 0.2 in motion; a filter of 5 Hz takes nearly all of it off."""
    friction = nd.components.Friction(joints="all", viscous=0.7, coulomb=1.5, width=0.01)
    robot, t = nd.autotree(1).replace(gravity=(0.0, -9.81, 0.0), components=[friction]), 0.01 * np.arange(6000)
    moves = np.where(t > 20.0, 1.0, 0.0)
    q, qd, qdd = (moves * each for each in (1.0 - np.cos(2 * t - 40.0), 2 * np.sin(2 * t - 40), 4 * np.cos(2 * t - 40)))
    noise = np.random.default_rng(0).normal(size=6000) * np.where(moves, 0.2, 0.05)
    tau = nd.compile(nd.rnea, robot).batch(*(each[:, None] for each in (q, qd, qdd)))[:, 0] + noise
    np.savez(tmp_path / "log.npz", t=t, q=q[:, None], qd=qd[:, None], qdd=qdd[:, None], tau=tau[:, None])
    found = nd.identify(tmp_path / "log.npz", robot, ["friction"], moving=0.05, cutoff=5.0)
    (fit,), (law,) = found.fits, found.with_stiction().components
    assert fit.noise_at_rest == pytest.approx(0.05, rel=0.1)
    assert fit.noise == pytest.approx(0.2, rel=0.1)
    assert law.stiction.ripple == pytest.approx(np.sqrt(0.2**2 - 0.05**2), rel=0.1)
    assert "at rest" in str(found)


def test_friction_rotors_and_offsets_are_found(tmp_path, arm):
    drives = (
        nd.components.Friction(joints="all", viscous=0.7, coulomb=1.5, width=0.01),
        nd.components.Rotor(joints=["elbow_joint"], inertia=2e-4, gear=50),
    )
    driven = arm.replace(components=drives)
    log = saved_log(tmp_path / "log.npz", driven, sigma=0.01)
    shifted = dict(np.load(log))
    shifted["tau"] = shifted["tau"] + np.arange(6) * 0.1
    np.savez(log, **shifted)
    found = nd.identify(log, nd.System(arm, ARM), physical=True)
    assert found.each["viscous:elbow_joint"] == pytest.approx(0.7, abs=0.01)
    assert found.each["coulomb:wrist_3_joint"] == pytest.approx(1.5, abs=0.01)
    assert found.each["rotor:elbow_joint"] == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose([-offset for offset in found.offsets.values()], np.arange(6) * -0.1, atol=0.02)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 6))
    expected = nd.rnea(driven, q, qd, qdd)
    np.testing.assert_allclose(nd.rnea(found.robot, q, qd, qdd), expected, atol=0.2)


def test_inertias_are_those_of_bodies_where_least_squares_are_not(tmp_path, arm):
    _, other = changed(arm, seed=4)
    log = saved_log(tmp_path / "log.npz", other, n=120, sigma=30.0)
    found = nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=True)
    unreal = [not _is_body(found.parameters.inertias(found.plain)[i]) for i in range(6)]
    assert any(unreal)
    assert found.is_physical
    assert all(_is_body(I) for I in found.robot.I)


def _is_body(I: np.ndarray) -> bool:
    return bool(np.linalg.eigvalsh(pseudo_inertia_of(np.array(ten_of(I))))[0] > 0)


def test_only_offsets_are_looked_for_in_calibration(tmp_path, arm):
    log = saved_log(tmp_path / "log.npz", arm, sigma=0.01)
    arrays = dict(np.load(log))
    np.savez(log, **arrays | {"tau": arrays["tau"] + np.array([1.0, -2, 3, -4, 5, -6])})
    found = nd.identify(log, nd.System(arm, ARM), ["offsets"])
    assert len(found.values) == 6
    assert not found.has_robot
    assert "6 of 6 combinations are identified" in str(found)
    assert "Links" not in str(found)
    np.testing.assert_allclose([*found.offsets.values()], [1, -2, 3, -4, 5, -6], atol=0.01)
    np.testing.assert_array_equal(found.robot.I, arm.I)


def test_a_load_is_a_body_too(tmp_path, arm):
    _, other = changed(arm, seed=12, share=0.1)
    I = other.I.copy()
    I[5] += np.diag([0.02, 0.02, 0.02, 2.0, 2.0, 2.0])
    free = saved_log(tmp_path / "free.npz", other, n=300, sigma=3.0, seed=1)
    loaded = saved_log(tmp_path / "loaded.npz", other.replace(I=I), n=300, sigma=3.0, seed=2)
    arguments = {"loaded": loaded, "load_on": arm.names[5]}
    plain = nd.identify(free, nd.System(arm, ARM), ["inertias"], physical=False, **arguments)
    found = nd.identify(free, nd.System(arm, ARM), ["inertias"], **arguments)
    assert not _is_body(inertia_of_ten([*plain.load.values()]))
    assert not plain.is_physical
    assert _is_body(inertia_of_ten([*found.load.values()]))
    assert found.is_physical
    assert found.load["m:load"] == pytest.approx(2.0, abs=5 * found.deviations["m:load"])


@pytest.mark.parametrize("physical", [False, True])
def test_a_payload_that_the_model_lacks_is_found_by_the_parameters_of_its_link(tmp_path, arm, physical):
    """A hand of 0.2 kg that carries 3: its prior held the centre where the model has it, and the mass went wrong."""
    hand = arm.names[5]
    I = arm.I.copy()
    I[5] += inertia_of_ten([3.0, 0.1, 0.45, -0.5, 0.16, 0.0, 0.1, 0.01, 0.08, 0.1])
    log = saved_log(tmp_path / "log.npz", arm.replace(I=I), sigma=0.3)
    wanted = [f"m:{hand}", f"mc:{hand}.*", f"I:{hand}.*"]
    found = nd.identify(log, nd.System(arm, ARM), wanted, physical=physical)
    truth = type(found.parameters)(arm.replace(I=I), found.parameters.each).prior
    assert all(each.how == "identified" for each in found.estimates[:4])
    np.testing.assert_array_less(np.abs(found.values - truth), 4 * np.array([*found.deviations.values()]))
    assert found.each[f"m:{hand}"] - arm.I[5, 5, 5] == pytest.approx(3.0, abs=0.05)
    (check,) = found.to_dict()["prior"]
    assert check["of"] == hand
    assert check["chi_square"] > 1e4 > check["freedoms"] == 10
    assert check["widened"] > 10
    text = " ".join(str(found).split())
    assert f"The logs contradict the prior of '{hand}': chi-square" in text
    assert "loaded, load_on (--loaded, --load-on)" in text


def test_several_links_far_from_the_model_are_told_at_once_and_no_load_is_blamed():
    far = [PriorCheck(f"link{k}", 1e9, 10, 20000.0 / k) for k in (1, 2, 3)]
    near = PriorCheck("hand", 200.0, 10, 5.0)
    first, second = contradicted_priors([*far, near])
    assert "all that the model says of link1, link2, link3" in plain(first)
    assert "by up to 20,000. No load does that:" in plain(first)
    assert "'hand'" in second
    assert all("a load is identified" in each.lower() for each in contradicted_priors([*far[:2], near]))


def test_a_prior_that_logs_do_not_contradict_stays(tmp_path, arm):
    _, other = changed(arm, seed=3)
    found = nd.identify(saved_log(tmp_path / "log.npz", other, sigma=0.3), nd.System(arm, ARM), ["inertias"])
    assert all(check.widened == 1.0 for check in found.prior)
    chi_square, freedoms = (sum(getattr(each, name) for each in found.prior) for name in ("chi_square", "freedoms"))
    assert chi_square < 2 * freedoms
    assert spaced(f"prior     chi-square {number(chi_square)} for {freedoms} degrees of freedom") in str(found)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"m:load": -1}, r"no body has these known values of 'load': m:load = -1 kg"),
        ({"viscous:elbow_joint": -1}, r"'viscous:elbow_joint' is known as -1, which is below 0\. .*--no-physical"),
    ],
)
def test_what_no_body_has_is_not_known(tmp_path, arm, known, message):
    """Which values these are: test_physical.py; of a link of the robot: tests/data/mistakes.md."""
    log = saved_log(tmp_path / "log.npz", arm, n=400, sigma=0.1)
    load = {"loaded": log, "load_on": arm.names[5]} if "m:load" in known else {}
    with pytest.raises(InputError, match=message):
        nd.identify(log, nd.System(arm, ARM), ["inertias", "friction"], known=known, **load)
    found = nd.identify(log, nd.System(arm, ARM), ["inertias", "friction"], known=known, physical=False, **load)
    assert {name: found.each[name] for name in known} == known


def test_a_known_mass_is_that_of_the_body_that_is_returned(tmp_path, arm):
    """Its prior was mended to another mass where the model's inertia is none of a body so light."""
    known = {"m:wrist_1_link": 0.2}
    log = saved_log(tmp_path / "log.npz", arm, n=400, sigma=0.1)
    found = nd.identify(log, nd.System(arm, ARM), ["inertias"], known=known)
    assert found.each["m:wrist_1_link"] == 0.2
    assert found.is_physical
    assert _is_body(found.robot.I[arm.link("wrist_1_link")])
    assert found.remarks == ()


def test_a_centre_of_mass_stays_in_its_hull(tmp_path, arm):
    _, other = changed(arm, seed=13)
    log = saved_log(tmp_path / "log.npz", other, n=200, sigma=10.0)
    link = arm.names[2]
    box = np.array([[x, y, z] for x in (-0.05, 0.05) for y in (-0.05, 0.05) for z in (0.0, 0.1)])
    free = nd.identify(log, nd.System(arm, ARM), ["inertias"])
    found = nd.identify(log, nd.System(arm, ARM), ["inertias"], hulls={link: box})
    centres = [np.array([f.each[f"mc:{link}.{axis}"] for axis in "xyz"]) / f.each[f"m:{link}"] for f in (free, found)]
    low, high = box.min(axis=0), box.max(axis=0)
    assert not np.all((centres[0] > low) & (centres[0] < high))
    assert np.all((centres[1] > low - 1e-6) & (centres[1] < high + 1e-6))
    with pytest.raises(UnknownNameError, match="hand"):
        nd.identify(log, nd.System(arm, ARM), ["inertias"], hulls={"hand": box})
    with pytest.raises(InputError, match="hulls are for"):
        nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=False, hulls={link: box})


def test_far_off_readings_count_less_but_in_the_fits_all_residuals_count_alike(tmp_path, arm):
    _, other = changed(arm, seed=6)
    log = saved_log(tmp_path / "log.npz", other, sigma=0.05)
    arrays = dict(np.load(log))
    spoilt = np.random.default_rng(0).uniform(size=arrays["tau"].shape) < 0.02
    np.savez(log, **arrays | {"tau": arrays["tau"] + 80.0 * spoilt})
    errors = []
    for robust in (False, True):
        found = nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=False, robust=robust)
        errors.append(off(found, other))
    assert errors[1] < 0.2 * errors[0]
    expected = np.sqrt(80.0**2 * spoilt.mean(axis=0) + 0.05**2)
    np.testing.assert_allclose([fit.after for fit in found.fits], expected, rtol=0.02)


@pytest.mark.parametrize("cutoff", [None, 5.0])
def test_torques_of_joints_that_stand_still_need_not_count(tmp_path, arm, cutoff):
    """While a joint stands still its torque says nothing of friction: here it is anything."""
    _, other = changed(arm, seed=11)
    log = saved_log(tmp_path / "log.npz", other, sigma=0.01)
    arrays = dict(np.load(log))
    sticks = np.abs(arrays["qd"]) < 0.1
    np.savez(log, **arrays | {"tau": arrays["tau"] + 5.0 * sticks})
    errors = []
    for moving in (None, 0.11):
        found = nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=False, moving=moving, cutoff=cutoff)
        errors.append(off(found, other))
    assert errors[1] < (0.05 if cutoff is None else 0.25) * errors[0]  # few windows of the filter are all motion
    assert found.fits[0].n < len(arrays["t"])


def test_a_low_pass_takes_noise_and_no_signal(tmp_path, arm):
    _, other = changed(arm, seed=7)
    log = saved_log(tmp_path / "log.npz", other, n=6000, dt=0.002, sigma=1.0)
    found = nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=False, cutoff=10.0)
    assert np.abs(errors_in_deviations(found, other)).max() < 5
    assert max(fit.after for fit in found.fits) < 0.25  # of noise of 1 up to 250 Hz, what is below 10 Hz


def test_signs_and_delays_are_noticed(tmp_path, arm):
    log = saved_log(tmp_path / "log.npz", arm, sigma=0.01, dt=0.002, n=4000)
    arrays, late = dict(np.load(log)), 6

    def identified(**tau):
        np.savez(log, **arrays | tau)
        return nd.identify(log, nd.System(arm, ARM), ["inertias"], physical=False)

    found = identified(tau=arrays["tau"] * np.array([1, -1, 1, 1, 1, 1]))
    assert any("'tau:shoulder_lift_joint'" in note and "sign is probably wrong" in note for note in found.notes)
    found = identified(tau=-arrays["tau"])
    assert any("would have a negative inertia in every pose" in note for note in found.notes)
    found = identified(**{k: v[late:] for k, v in arrays.items()} | {"tau": arrays["tau"][:-late]})
    assert any("Readings lag the motion" in note for note in found.notes)
    assert found.fits[1].delay == pytest.approx(late * 0.002, rel=0.1)
    assert "look for `presliding` too" in next(late_readings({"tau": 0.01}, arm, 5.0))
    assert "what was held out without `presliding`" in next(late_readings({"tau": 0.01}, with_presliding(arm), 5.0))
    assert "compare with a cutoff first" in next(late_readings({"tau": 0.01}, arm, None))


def test_links_that_would_weigh_far_more_or_less_than_in_the_model_are_told(arm):
    each = Parameters.of(arm, ["m:*"], {})
    found = each.prior.copy()
    assert not [*unlikely_masses(each, 5 * found)]
    found[1] *= 100
    (told,) = unlikely_masses(each, found)
    assert f"Link '{arm.names[1]}' would weigh far more than in the model" in told
    found[2] /= 100
    _, told = unlikely_masses(each, found)
    assert f"Link '{arm.names[2]}' would weigh far less than in the model" in told


def test_a_wrist_sensor_identifies_what_it_carries(tmp_path):
    tree = load("panda")
    _, other = changed(tree, seed=8)
    wrist = {"type": "force_torque", "joints": "panda_joint6", "offset": {"sigma": 50.0}}
    sensors = sensor_set(ACCELERATIONS, wrist, {**WRENCHES, "value": 0.0})
    t, q, qd, qdd = motion(tree.nv, 1500, 0.01, seed=3)
    plan = nd.plan(nd.System(other, "inverse_dynamics"), outputs=["f:panda_link6"])
    f = plan.solver("numpy").solve_batch(q, qd, qdd)["f:panda_link6"]
    offset = np.array([1.0, 2.0, -3.0, 4.0, -5.0, 6.0])
    columns = {
        f"ft:panda_joint6.{name}": f[:, k] + offset[k] for k, name in enumerate(("mx", "my", "mz", "fx", "fy", "fz"))
    }
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, **columns)
    found = nd.identify(tmp_path / "log.npz", nd.System(tree, sensors), ["inertias"], physical=False)
    np.testing.assert_allclose([*found.offsets.values()], offset, atol=1e-4)
    base = [found.parameters.each[c] for c in found.base.independent]
    np.testing.assert_allclose(errors_of(found, other)[[each.kind != "offset" for each in base]], 0, atol=1e-4)
    assert not {each.owner for each in base} & {f"panda_link{k}" for k in range(1, 6)}


@pytest.mark.parametrize("contact", ["measured", pytest.param("noisy", marks=pytest.mark.long), "unknown"])
def test_a_floating_robot_in_contact(tmp_path, contact):
    """Solo with one foot in contact, whose wrench is read exactly, with noise, or not at all."""
    tree = load("solo12", base="floating")
    _, other = changed(tree, seed=9)
    foot, base = "FL_LOWER_LEG", tree.joint_names[0]
    free = {"type": "joint_torque", "joints": base, "value": 0.0}
    one_foot = (ACCELERATIONS, free, {**WRENCHES, "links": {"except": [foot]}, "value": 0.0})
    torques = {"type": "joint_torque", "joints": "actuated", "sigma": 0.01}
    at_foot = {**WRENCHES, "links": [foot], **({"sigma": 0.05} if contact == "noisy" else {})}
    measurements = [one_foot[0], torques, *one_foot[1:], *([at_foot] if contact != "unknown" else [])]
    system = nd.System(tree, sensor_set(*measurements))
    rng = np.random.default_rng(4)
    n = 1500
    q = tree.random_configurations(n, rng)
    _, _, qd, qdd = motion(tree.nv, n, 0.01, seed=5)
    plan = nd.plan(nd.System(other, sensor_set(*one_foot)), outputs=["tau", f"fx:{foot}"])
    solved = plan.solver("numpy").solve_batch(q, qd, qdd)
    noise = rng.normal(size=(n, 18))
    columns = {"tau": solved["tau"][:, 6:] + 0.01 * noise[:, :12]}
    y = np.concatenate([qdd, columns["tau"]], axis=1)
    if contact != "unknown":
        y = np.concatenate([y, solved[f"fx:{foot}"] + (0.05 * noise[:, 12:] if contact == "noisy" else 0)], axis=1)
    assert y.shape[1] == system.ny
    table = {name: y[:, k] for k, name in enumerate(system.measurement_names)}
    np.savez(tmp_path / "log.npz", q=q, qd=qd, **table)
    found = nd.identify(tmp_path / "log.npz", system, ["inertias"], physical=False)
    z = errors_in_deviations(found, other)[[c.left < 0.5 for c in found.combinations]]
    assert len(z) > 40
    assert np.max(np.abs(z)) < 5
    assert np.sqrt(np.mean(np.square(z))) < 1.5
    if contact != "measured":  # the weight of a robot in equilibrium is exact
        assert np.sqrt(np.mean(np.square(z))) > 0.3


def test_contacts_that_explain_everything_are_named(tmp_path):
    tree = load("solo12", base="floating")
    torques = {"type": "joint_torque", "joints": "actuated"}, {**TORQUES, "joints": tree.joint_names[0], "value": 0.0}
    system = nd.System(tree, sensor_set(ACCELERATIONS, *torques))
    np.savez(tmp_path / "log.npz", q=np.zeros((3, 19)))
    with pytest.raises(InputError, match=r"identify no combination .* unknown wrenches"):
        nd.identify(tmp_path / "log.npz", system, ["inertias"])


@pytest.mark.parametrize("seed", range(3))
def test_gains_of_all_readings_by_the_mass_of_a_link(tmp_path, seed):
    """Far from one, and fixed by one mass and by how far inertias are usually from the model's."""
    model = nd.autotree(3).replace(gravity=(0.0, -9.81, 0.0))
    _, arm = changed(model, seed)
    path, gains = saved_log(tmp_path / "log.npz", arm, n=800, sigma=0.003, seed=seed), np.array([11.5, 8.0, 1 / 3])
    log = dict(np.load(path))
    np.savez(path, **log | {"tau": log["tau"] / gains})
    known = {"m:link2": float(arm.I[1, 5, 5])}
    wanted = ["inertias", "friction", "offsets", "gains"]
    found = nd.identify(path, model, wanted, known=known, physical=False)
    deviations = np.array([found.deviations[f"gain:{name}"] for name in found.gains])
    np.testing.assert_array_less(np.abs(np.array([*found.gains.values()]) - gains), 2.0 * deviations)
    np.testing.assert_array_less(deviations, 0.3 * gains)


def test_torques_that_logs_lack_are_not_read(tmp_path, arm):
    """As by sensors that read none of that joint; and where they lack all, that is said."""
    log = nd.read_log(saved_log(tmp_path / "log.npz", arm, n=400, sigma=0.01))
    joints = [*arm.joint_names]
    own = [{"of": f"{kind}:{{joint}}", "from": f"{kind}[{{k}}]"} for kind in ("q", "qd", "qdd")]
    read = [joint for joint in joints if joint != joints[1]]
    torques = [{"of": f"tau:{joint}", "from": f"tau[{joints.index(joint)}]"} for joint in read]
    partly = nd.read_log(log.path, nd.tools.LogMapping.from_dict({"columns": [*own, *torques]}))
    found = nd.identify(partly, arm, ["inertias", "friction"])
    sensors = sensor_set(ACCELERATIONS, {**TORQUES, "joints": read}, {**WRENCHES, "value": 0.0}, name="without")
    expected = nd.identify(log, nd.System(arm, sensors), ["inertias", "friction"])
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6, atol=1e-9)
    assert any(f"hold no torque of '{joints[1]}'" in each for each in found.remarks)
    nothing = nd.read_log(log.path, nd.tools.LogMapping.from_dict({"columns": own}))
    with pytest.raises(InputError, match="lacks"):
        nd.identify(nothing, arm, ["inertias"])


def test_a_reading_that_never_changes_tells_no_gain(tmp_path):
    """It may not be connected; the gain of the other is as it is."""
    arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
    path = saved_log(tmp_path / "log.npz", arm, n=500)
    log = dict(np.load(path))
    np.savez(path, **log | {"tau": log["tau"] * [1 / 11.5, 0.0]})
    found = nd.identify(path, arm, ["gains"], held_out=0.0)
    assert found.gains == pytest.approx({"tau:joint1": 11.5, "tau:joint2": 1.0})
    assert any(each.startswith("'tau:joint2' never changes") for each in found.doubts)


def test_a_gain_that_is_known_may_be_negative(tmp_path):
    arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
    path = saved_log(tmp_path / "log.npz", arm, n=500)
    log = dict(np.load(path))
    np.savez(path, **log | {"tau": log["tau"] / [11.5, -2.0]})
    found = nd.identify(path, arm, ["gains"], known={"gain:tau:joint2": -2.0}, physical=False)
    assert found.gains == pytest.approx({"tau:joint1": 11.5, "tau:joint2": -2.0})


def test_what_is_implausible_of_several_logs_alike_is_said_once(tmp_path, arm):
    logs = [saved_log(tmp_path / f"{name}.npz", arm, n=400, seed=k) for k, name in enumerate("ab")]
    for log in logs:
        content = dict(np.load(log))
        np.savez(log, **content | {"qd": 3.0 * content["qd"]})
    doubts = [each for each in nd.identify(logs, arm, ["friction"], held_out=0.0).doubts if "npz" in each]
    (rates,) = (each for each in doubts if "qd" in each)
    assert rates.startswith("a.npz: ")
    assert rates.endswith("The same is so in b.npz, with other numbers.")


def test_bad_arguments_are_refused_in_words(tmp_path, arm):
    log = saved_log(tmp_path / "log.npz", arm, n=200)
    system = nd.System(arm, ARM)
    with pytest.raises(InputError, match="there is no log"):
        nd.identify([], system, ["inertias"])
    for moving, message in ((-1.0, "above which a joint moves"), (1e3, "no joint moves faster than 1000")):
        with pytest.raises(InputError, match=message):
            nd.identify(log, system, ["inertias"], moving=moving)


def test_offsets_and_gains_are_written_with_a_mapping_that_estimates_take(tmp_path):
    """Accelerations from torques are those of the motion once currents are calibrated, twice over."""
    arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
    t, q, qd, qdd = motion(2, 500, 0.01)
    tau = nd.rnea(arm, q.T, qd.T, qdd.T).T
    gains, offsets = np.array([11.5, 8.0]), np.array([0.7, -0.2])
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, current=(tau + offsets) / gains)
    columns = [
        *({"of": f"{kind}:{{joint}}", "from": f"{kind}[{{k}}]"} for kind in ("q", "qd", "qdd")),
        {"of": "tau:{joint}", "from": "current[{k}]", "scale": 2.0},
    ]
    drives = nd.tools.LogMapping.from_dict({"columns": columns, "calibration": {"tau:joint1": {"offset": 0.1}}})
    found = nd.identify(nd.read_log(tmp_path / "log.npz", drives), arm, ["gains", "offsets"], held_out=0.0)
    nd.tools.save_mapping(found.calibrated(drives), tmp_path / "drives.yaml", ("Identified.",))
    assert (tmp_path / "drives.yaml").read_text().startswith("# Identified.\n")
    log = nd.read_log(tmp_path / "log.npz", tmp_path / "drives.yaml")
    calibration = log.mapping.calibration
    for k, joint in enumerate(("joint1", "joint2")):
        assert calibration[f"tau:{joint}"].gain == pytest.approx(gains[k] / 2)
        assert calibration[f"tau:{joint}"].offset == pytest.approx(offsets[k])
    plan = nd.plan(nd.System(arm, "forward_dynamics"), outputs=["qdd"])
    np.testing.assert_allclose(nd.estimate(log, plan, backend="numpy")["qdd"], qdd, atol=1e-6)
    with pytest.raises(nd.errors.InputError, match="no offset or gain"):
        nd.identify(log, arm, ["m:link2"], held_out=0.0, physical=False).calibrated()
