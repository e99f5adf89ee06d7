"""Estimates against the truth of MuJoCo's simulations: robots that step and trot.

What the sets of sensors have in common: each joint's acceleration; the wrench of the outside on each link that meets
nothing, which is zero to within a thousandth (its rows are readings here, so that they can be given that noise); and no
torque at the free joint, exactly. With them D d + b = 0 leaves the six numbers of the base's acceleration and the
wrenches on the feet.

Nothing is assumed of a foot that carries: a prior of mean zero there would pull the estimate off the truth. Where no
prior does, readings without noise have the true d as their minimum, whatever the weights.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.walking import Walk, walk

BIPED, QUADRUPED = "biped", "quadruped"
BOTH = pytest.mark.parametrize("name", [pytest.param(QUADRUPED, marks=pytest.mark.long), BIPED])

TRUE = 1e-6
"""How close the estimates come to the truth without noise, relative to its largest number."""

FULL_SCALE = [-8 * 9.81, 8 * 9.81]
"""Range of the accelerometers [m/s^2]."""


@dataclass(frozen=True)
class Bench:
    """A robot's motion, all its sensors, and what estimates from them."""

    motion: Walk
    system: System
    solver: Solver

    @property
    def feet(self) -> list[int]:
        """The links of the feet."""
        return [self.motion.tree.link(foot) for foot in self.motion.feet]

    def group(self, kind: str) -> list[str]:
        """The names of the sensors of a type."""
        return [row.name for row in self.system.rows if row.equation.group == kind and not row.is_exact]

    def weights(self, *left_out: str) -> np.ndarray:
        """The weights of a set without some sensors."""
        weights = self.system.weights.copy()
        for row in self.system.rows:
            if row.name in left_out:
                weights[row.weights] = 0.0
        return weights

    def of_rows(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are weighed, all of them readings, and the weight of each."""
        weighed = [row for row in self.system.rows if not row.is_exact]
        assert all(row.equation.is_measured for row in weighed)
        assert sum(row.y.stop - row.y.start for row in weighed) == self.system.ny
        places = np.concatenate([np.arange(row.slice.start, row.slice.stop) for row in weighed])
        return places, weights[..., [k for row in weighed for k in row.weight_of_rows]]

    def sigma(self) -> np.ndarray:
        """The standard deviation of each reading (ny,)."""
        return self.of_rows(self.system.weights)[1] ** -0.5

    def degrees(self, weights: np.ndarray) -> int:
        """How many more weighed rows than free unknowns there are."""
        places, of_rows = self.of_rows(weights)
        exact = self.system.shape[0] - len(places)
        return int(np.count_nonzero(of_rows)) - (self.system.shape[1] - exact)


def common(motion: Walk) -> list[dict]:
    """What all sets have: see above; the inertial sensors are on the base and the feet, as many IMUs are.

    The acceleration of the base itself is what a tracking system tells that knows the pose.
    """
    return [
        {"type": "joint_acceleration", "joints": "root", "sigma": 0.5},
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.5},
        {"type": "joint_torque", "joints": "root", "value": 0},
        {"type": "accelerometer", "links": ["base", *motion.feet], "sigma": 0.05, "range": FULL_SCALE},
        {"type": "angular_accelerometer", "links": "base", "sigma": 0.5},
        {"type": "external_wrench", "links": {"except": list(motion.feet)}, "sigma": 1e-3},
    ]


def planned(motion: Walk, *entries: dict) -> Bench:
    system = System(motion.tree, sensor_set(*common(motion), *entries))
    return Bench(motion, system, nd.plan(system).solver("numpy"))


@lru_cache(maxsize=2)
def bench(name: str) -> Bench:
    """A robot with sensors that suffice in every phase, and a tick of its walk in forty.

    The biped has a six-axis force-torque sensor above each foot: it tells the wrench on the foot, once the foot's own
    motion is known, and the accelerometers with the joint accelerations tell that. The quadruped has a torque sensor in
    each joint: three of a leg tell the force on its foot, for a knee that is bent, and its foot is a point, which feels
    no moment.
    """
    motion = walk(name)[::40]
    if name == QUADRUPED:
        torque = {"type": "joint_torque", "joints": "actuated", "sigma": 0.2}
        moment = {"type": "external_wrench", "components": ["mx", "my", "mz"], "sigma": 1e-3}
        tips = [moment | {"links": foot, "frame": foot.replace("foot", "tip")} for foot in motion.feet]
        return planned(motion, torque, *tips)
    joints = [motion.tree.joint_names[motion.tree.link(foot)] for foot in motion.feet]
    sigma = [0.1, 0.1, 0.1, 1.0, 1.0, 1.0]
    return planned(motion, {"type": "force_torque", "joints": joints, "measures": "child_on_parent", "sigma": sigma})


def on_board(here: Bench) -> np.ndarray:
    """The weights of sensors that are on the robot, and so need no pose."""
    return here.weights("qdd:root")


def with_pose(here: Bench) -> np.ndarray:
    """The weights of the tracked acceleration of the base in place of the inertial sensors.

    As many rows tell the base's motion; gravity must be known in the base's axes, for which the pose is needed.
    """
    return here.weights(*here.group("accelerometer"), *here.group("angular_accelerometer"))


SETS = {"on board": on_board, "with the pose": with_pose}


def close_to_the_truth(here: Bench, ticks: Walk, weights: np.ndarray, q: np.ndarray | None = None) -> bool:
    """Whether joint torques and contact wrenches of readings without noise are the true ones."""
    found = here.solver.solve_batch(ticks.q if q is None else q, ticks.qd, ticks.readings(here.system), weights)
    errors = [found.tau - ticks.tau, found.fx[:, here.feet] - ticks.fx]
    sizes = [np.abs(ticks.tau).max(), np.abs(ticks.fx).max()]
    return all(np.abs(error).max() <= TRUE * size for error, size in zip(errors, sizes, strict=True))


@BOTH
@pytest.mark.parametrize("choice", SETS)
def test_readings_without_noise_give_the_true_torques_and_contact_wrenches(name, choice):
    """In all phases: on all feet, and on some of them."""
    here = bench(name)
    assert len({tuple(state) for state in here.motion.touching.tolist()}) >= 3
    assert here.degrees(SETS[choice](here)) > 0
    assert close_to_the_truth(here, here.motion, SETS[choice](here))


def test_motion_alone_tells_the_wrench_in_single_support_and_only_there():
    """The equations of the base are six, as are the numbers of the wrench on the foot that stands.

    Where the other foot carries as well, what it carries is missed: a set for each phase.
    """
    here = planned(walk(BIPED)[::40], {"type": "external_wrench", "links": "r_foot", "sigma": 1e-3})
    touching = here.motion.touching
    assert close_to_the_truth(here, here.motion[touching[:, 0] & ~touching[:, 1]], on_board(here))
    standing = here.motion[here.motion.fx[:, :, 5].min(axis=1) > 20]
    Y = standing.readings(here.system)
    Y[:, [name.startswith("fx:r_foot") for name in here.system.measurement_names]] = 0
    found = here.solver.solve_batch(standing.q, standing.qd, Y, on_board(here))
    assert (np.abs(found.fx[:, here.feet] - standing.fx).max(axis=(1, 2)) > 10).all()
    # How both feet press against each other is not seen: six numbers too many, refused before anything is estimated.
    with pytest.raises(SingularSystemError, match=r"rank is 240 of 246") as caught:
        planned(here.motion)
    for foot in here.motion.feet:
        assert any(name.startswith(f"fx:{foot}") for name in caught.value.undetermined)


@BOTH
def test_sensors_on_board_need_no_pose(name):
    """Gravity is in what accelerometers read: a base that is anywhere, turned anyhow, gives the same estimate."""
    here, rng = bench(name), np.random.default_rng(5)
    ticks = here.motion[::4]
    lost = ticks.q.copy()
    turned = rng.normal(size=(ticks.n, 4))
    lost[:, :3] = rng.normal(size=(ticks.n, 3))
    lost[:, 3:7] = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    assert close_to_the_truth(here, ticks, on_board(here), lost)
    assert not close_to_the_truth(here, ticks, with_pose(here), lost)
    Y = noisy(ticks.readings(here.system), 6, here.sigma())
    one, other = (here.solver.solve_batch(q, ticks.qd, Y, on_board(here)) for q in (ticks.q, lost))
    for what in ("tau", "fx", "f", "a"):
        assert_close(one[what], other[what], SOLVED)
    assert np.abs(one.qdd[:, :6] - other.qdd[:, :6]).max() > 1  # that of the base is what the pose is needed for


def test_a_saturated_accelerometer_is_done_without():
    """At full scale on one foot: refused with the reading, true without it."""
    here = bench(BIPED)
    ticks, weights = here.motion, on_board(here)
    Y = ticks.readings(here.system)
    name = here.group("accelerometer")[1]
    where = [k for k, label in enumerate(here.system.measurement_names) if label.startswith(name)]
    clipped = Y.copy()
    clipped[::3, where] = np.clip(100 * Y[::3, where], *FULL_SCALE)
    n = int(np.flatnonzero(here.system.saturated(clipped).any(axis=1))[0])
    with pytest.raises(InputError, match=rf"Y\[{n}, \d+\] \('{name}\.a.'\).*saturated"):
        here.solver.solve_batch(ticks.q, ticks.qd, clipped, weights)
    found = here.solver.solve_batch(ticks.q, ticks.qd, clipped, weights, missing="drop")
    assert np.abs(found.tau - ticks.tau).max() <= TRUE * np.abs(ticks.tau).max()
    assert np.abs(found.fx[:, here.feet] - ticks.fx).max() <= TRUE * np.abs(ticks.fx).max()


def noisy(readings: np.ndarray, seed: int, sigma: np.ndarray) -> np.ndarray:
    """Readings (N, n) with independent normal errors of some deviations (n,)."""
    return readings + np.random.default_rng(seed).normal(size=readings.shape) * sigma
