"""Several robots of one type, whose logs are one least squares: inertias are shared, friction and offsets are not."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, UnknownNameError
from tests.robots import load
from tests.unit.identification.simulated import changed, motion

WANTED = ["inertias", "friction", "offsets"]
OWN = {"first": (0.5, 1.0), "second": (1.5, 0.2), "third": (0.9, 2.0)}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """The true robot, and the log of each of three: short, without all of the motion, with its friction and offsets."""
    _, real = changed(load("ur5"), seed=4)
    folder, logs = tmp_path_factory.mktemp("fleet"), {}
    for k, (name, (viscous, offset)) in enumerate(OWN.items()):
        friction = nd.components.Friction(joints="all", viscous=viscous, coulomb=0.3, width=0.01)
        t, q, qd, qdd = motion(6, 600, 0.01, seed=k)
        tau = nd.compile(nd.rnea, real.replace(components=(friction,))).batch(q, qd, qdd) + offset
        tau += 0.05 * np.random.default_rng(k).normal(size=tau.shape)
        logs[name] = folder / f"{name}.npz"
        np.savez(logs[name], t=t, q=q, qd=qd, qdd=qdd, tau=tau)
    return real, logs


@pytest.fixture(scope="module")
def found(fleet):
    return nd.identify(fleet[1], load("ur5"), WANTED, held_out=0.0, physical=False)


def test_each_has_its_own_friction_and_offsets(fleet, found):
    for name, (viscous, offset) in OWN.items():
        of = "" if name == "first" else f"@{name}"
        for joint in load("ur5").joint_names:
            one = f"viscous:{joint}{of}"
            assert found.each[one] == pytest.approx(viscous, abs=4 * found.deviations[one])
            assert found.deviations[one] < 0.05
        calibrated = found.calibrated(robot=name)
        assert np.mean([each.offset for each in calibrated.calibration.values()]) == pytest.approx(offset, abs=0.1)
        q, qd, qdd = np.random.default_rng(7).normal(size=(3, 6))
        friction = nd.components.Friction(joints="all", viscous=viscous, coulomb=0.3, width=0.01)
        expected = nd.rnea(fleet[0].replace(components=(friction,)), q, qd, qdd)
        np.testing.assert_allclose(nd.rnea(found.robots[name], q, qd, qdd), expected, atol=0.15)


def test_what_is_shared_is_one_least_squares(fleet, found):
    """As one regression by hand has it: columns of base parameters once, those of friction and offsets a robot."""
    base, n_own = found.base, 18
    G = base.G
    assert len(found.combinations) == base.rank + 2 * n_own
    shared = {c.name: c.deviation for c in found.combinations if c.name.startswith(("I:", "m"))}
    alone = nd.identify(fleet[1]["first"], load("ur5"), WANTED, held_out=0.0, physical=False)
    ratio = [shared[c.name] / c.deviation for c in alone.combinations if c.name in shared]
    assert G.shape[0] == base.rank
    assert np.median(ratio) < 0.75  # of three times as many samples, 0.58
    text = str(found)
    assert "shoulder_pan_joint@second" in text


def test_own_parameters_are_chosen_and_logs_are_of_known_robots(fleet):
    _, logs = fleet
    all_shared = nd.identify(logs, load("ur5"), ["friction"], own=(), held_out=0.0, physical=False)
    assert len(all_shared.estimates) == 12
    with pytest.raises(UnknownNameError, match="robot 'fourth'"):
        nd.identify(logs, load("ur5"), held_out={"fourth": logs["first"]})
    with pytest.raises(InputError, match="of which robot are they"):
        nd.identify(logs, load("ur5"), loaded=logs["first"], load_on="wrist_3_link")
    with pytest.raises(UnknownNameError, match="robot 'fourth'"):
        nd.identify(logs, load("ur5"), ["offsets"], held_out=0.0).calibrated(robot="fourth")


def test_they_are_bodies_too(fleet):
    found = nd.identify(fleet[1], load("ur5"), WANTED)
    assert found.is_physical
    assert max(fit.held_out for fit in found.fits) < 0.06
