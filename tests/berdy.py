"""iDynTree's BERDY: its equations, its maximum a posteriori estimate, and the way from its numbers to ours, and back.

BERDY minimises, by normal equations and a sparse LDL^T,

    |D d + bD|^2 / dynamics  +  |d - mean|^2 / prior  +  |Y d + bY - y|^2 / measurements

with a covariance for each term. Its spatial vectors are linear first, in URDF link frames, which are ours. A joint's
wrench is that of the parent on the child, in child coordinates, as our f; links on fixed joints without mass are frames
to it, links with mass stay links, and their joints are joints without freedoms.

Floating base (any joints; no pose and no linear velocity of the base is asked for; iCubGenova04: 39 links, 38 joints of
which 6 are fixed, 32 freedoms): 728 variables = 12 a link + 6 a joint + 1 a freedom, and 462 equations.
- a: conventional ("sensor") acceleration of the link's origin minus gravity, in link axes. Ours, spatial, lacks the
  velocity term: linear part minus w x v.
- fx, f, qdd as ours; there is no tau, no wrench from the world on the base, and no acceleration of a base joint.
- 6 equations a link: (3f), without a wrench on the base; then 6 a joint: (3a). Up to the order of rows and of their
  components they are ours, row by row, with the same residual for the same motion.
Fixed base (every joint has one freedom; the base is no link; no sensor on it): 26 variables and 19 equations a joint.
- a is spatial with gravity, as ours; "net" is the wrench I a + v x* I v on a link; then f, tau, fx, qdd as ours.

Readings are Y d + bY: first the model's sensors type by type, each in its own frame (force-torque sensors, 6, of the
wrench on whichever link the model says: on iCub the parent, so that they read -f; accelerometers, 3, with velocity
terms in bY; gyroscopes, 3, whose rows of Y are zero), then qdd of each freedom, tau where asked for, fx of each link.

Its accuracy is that of normal equations: about 0.1 eps times their condition, 1e-14 to 1e-9 of d on iCub with
covariances 1e-4 to 1e-10 of the equations. It first factorises the normal matrix of the first two terms alone. Where
prior / dynamics is 1e16 or more, that has pivots which are zero to rounding: the estimate is then wrong by percents,
depends on what was estimated before, and nothing says so. `set_covariances` refuses that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.spatial import Transform, cross
from nori_dyn.model.kinematics import Kinematics, velocities
from nori_dyn.model.tree import Frame, KinematicTree
from tests.peers import idyn

Floats = NDArray[np.float64]
Numbers = Floats | float

WEAKEST_PRIOR = 1e15
"""The largest covariance of a prior, in those of the equations, at which BERDY's estimate was found to be right."""

SWAP = np.array([3, 4, 5, 0, 1, 2])
"""Linear first to angular first, and back."""

VARIABLES = {
    "LINK_BODY_PROPER_CLASSICAL_ACCELERATION": "a",
    "LINK_BODY_PROPER_ACCELERATION": "a",
    "NET_INT_AND_EXT_WRENCHES_ON_LINK_WITHOUT_GRAV": "net",
    "JOINT_WRENCH": "f",
    "DOF_TORQUE": "tau",
    "NET_EXT_WRENCH": "fx",
    "DOF_ACCELERATION": "qdd",
}
SENSORS = {
    "SIX_AXIS_FORCE_TORQUE_SENSOR": "force_torque",
    "ACCELEROMETER_SENSOR": "accelerometer",
    "GYROSCOPE_SENSOR": "gyroscope",
    "DOF_ACCELERATION_SENSOR": "joint_acceleration",
    "DOF_TORQUE_SENSOR": "joint_torque",
    "NET_EXT_WRENCH_SENSOR": "external_wrench",
}


@dataclass(frozen=True)
class Block:
    """A part of d, of the equations, or of y.

    Attributes:
        kind: what it is: a value of VARIABLES or SENSORS; "3f", "3a", "net", "3tau" for equations.
        owner: the name of its link (a, net, fx, 3f, external_wrench), joint (f, tau, qdd, 3a), or sensor.
        slice: where it lies.
    """

    kind: str
    owner: str
    slice: slice


@dataclass(frozen=True)
class Equations:
    """D d + bD = 0 and Y d + bY = y at one state."""

    D: Floats
    bD: Floats
    Y: Floats
    bY: Floats


class Berdy:
    """BERDY on a robot, with its sensors, and all joint accelerations and external wrenches as readings.

    Attributes:
        variables: the blocks of d.
        equations: the blocks of rows of D.
        sensors: the blocks of y.
        freedoms: joint names in the order of its q and qd.
        links: link names.
        child: the link that each joint carries, by joint name.
        base: the base link.

    Args:
        path: the URDF.
        base: the variant.
        ground: with a fixed base, whether the wrench of the ground on it is a reading too.
    """

    def __init__(
        self,
        path: Path,
        base: Literal["fixed", "floating"] = "floating",
        ground: bool = False,
    ) -> None:
        loader = idyn.ModelLoader()
        if not loader.loadModelFromFile(str(path)):
            raise ValueError(f"iDynTree cannot load {path}")
        self.is_floating = base == "floating"
        if not self.is_floating:  # lump what is fixed, which that variant refuses
            full = loader.model().copy()
            names = [full.getJointName(i) for i in range(full.getNrOfJoints()) if full.getJoint(i).getNrOfDOFs()]
            loader.loadReducedModelFromFullModel(full, idyn.StringVector(names))
        self.model = loader.model().copy()

        options = idyn.BerdyOptions()
        options.berdyVariant = idyn.BERDY_FLOATING_BASE if self.is_floating else idyn.ORIGINAL_BERDY_FIXED_BASE
        options.includeAllJointAccelerationsAsSensors = True
        options.includeAllNetExternalWrenchesAsSensors = True
        options.includeFixedBaseExternalWrench = ground
        self.base = options.baseLink = self.model.getLinkName(self.model.getDefaultBaseLink())
        self.helper = idyn.BerdyHelper()
        if not self.helper.init(self.model, options):
            raise ValueError(f"BERDY ({base} base) does not take {path}")
        self.solver = idyn.BerdySparseMAPSolver(self.helper)
        self.solver.initialize()

        joints = [self.model.getJoint(i) for i in range(self.model.getNrOfJoints())]
        names = [self.model.getJointName(i) for i in range(len(joints))]
        freedoms = {j.getDOFsOffset(): name for j, name in zip(joints, names, strict=True) if j.getNrOfDOFs()}
        self.freedoms = tuple(freedoms[k] for k in range(self.model.getNrOfDOFs()))
        self.links = tuple(self.model.getLinkName(i) for i in range(self.model.getNrOfLinks()))
        traversal = self.helper.dynamicTraversal()
        self.child = {
            name: self.links[traversal.getChildLinkIndexFromJointIndex(self.model, i)] for i, name in enumerate(names)
        }
        self.variables = tuple(_blocks(self.helper.getDynamicVariablesOrdering(), VARIABLES))
        self.sensors = tuple(_blocks(self.helper.getSensorsOrdering(), SENSORS))
        self.equations = tuple(self._equation_blocks(names))
        assert self.shape == (self.helper.getNrOfDynamicEquations(), self.helper.getNrOfDynamicVariables())
        assert self.ny == self.helper.getNrOfSensorsMeasurements()

    def _equation_blocks(self, joints: Sequence[str]) -> Iterator[Block]:
        if self.is_floating:
            for k, link in enumerate(self.links):
                yield Block("3f", link, slice(6 * k, 6 * k + 6))
            start = 6 * len(self.links)
            for k, joint in enumerate(joints):
                yield Block("3a", joint, slice(start + 6 * k, start + 6 * k + 6))
            return
        start = 0
        for joint in (block.owner for block in self.variables if block.kind == "f"):
            for kind, size in (("3a", 6), ("net", 6), ("3f", 6), ("3tau", 1)):
                owner = joint if kind in ("3a", "3tau") else self.child[joint]
                yield Block(kind, owner, slice(start, start + size))
                start += size

    @property
    def shape(self) -> tuple[int, int]:
        """Number of equations and of variables."""
        return self.equations[-1].slice.stop, self.variables[-1].slice.stop

    @property
    def ny(self) -> int:
        """Number of readings."""
        return sum(block.slice.stop - block.slice.start for block in self.sensors)

    def places(self, blocks: Sequence[Block], kind: str) -> NDArray[np.intp]:
        """Return where the numbers of all blocks of a kind lie, in order."""
        return np.concatenate([np.arange(b.slice.start, b.slice.stop) for b in blocks if b.kind == kind])

    def state(self, tree: KinematicTree, q: Floats, qd: Floats) -> tuple[Floats, Floats, Floats]:
        """Return its joint positions, their velocities and the base's angular velocity for q (nq,), qd (nv,)."""
        at = [tree.joint_names.index(name) for name in self.freedoms]
        s, ds = (np.array([x[y[i]][0] for i in at]) for x, y in ((q, tree.q_slices), (qd, tree.v_slices)))
        is_free = tree.joints[0].kind == "free"
        return s, ds, qd[:3] if is_free else np.zeros(3)

    def update(self, s: Floats, ds: Floats, w: Floats, y: Floats, gravity: Sequence[float] = (0, 0, -9.81)) -> None:
        """Set the state of the solver, and the readings (ny,); a floating base feels no gravity but in y."""
        joints = idyn.JointPosDoubleArray(self.model), idyn.JointDOFsDoubleArray(self.model)
        for array, values in zip(joints, (s, ds), strict=True):
            for k, value in enumerate(values):
                array.setVal(k, float(value))
        base, readings = self.model.getLinkIndex(self.base), idyn.VectorDynSize.FromPython(np.ascontiguousarray(y))
        if self.is_floating:
            self.solver.updateEstimateInformationFloatingBase(*joints, base, _vector3(w), readings)
        else:
            self.solver.updateEstimateInformationFixedBase(*joints, base, _vector3(gravity), readings)

    def matrices(self) -> Equations:
        """Return its equations at the state of the last update."""
        (m, n), ny = self.shape, self.ny
        D, bD = idyn.MatrixDynSize(m, n), idyn.VectorDynSize(m)
        Y, bY = idyn.MatrixDynSize(ny, n), idyn.VectorDynSize(ny)
        self.helper.resizeAndZeroBerdyMatrices(D, bD, Y, bY)
        assert self.helper.getBerdyMatrices(D, bD, Y, bY)
        return Equations(D.toNumPy().copy(), bD.toNumPy().copy(), Y.toNumPy().copy(), bY.toNumPy().copy())

    def set_covariances(self, dynamics: Numbers, prior: Numbers, mean: Numbers, measurements: Numbers) -> None:
        """Set the diagonals of the covariances of D d + bD, of the prior on d, and of y; and the prior's mean.

        Each is an array, or one number for all.

        Raises:
            ValueError: a prior so weak that BERDY's first factorisation breaks down without saying so.
        """
        (m, n), ny = self.shape, self.ny
        if np.max(prior) > WEAKEST_PRIOR * np.min(dynamics):
            raise ValueError(f"prior over dynamics is above {WEAKEST_PRIOR:g}: BERDY would return a wrong estimate")
        self.solver.setDynamicsConstraintsPriorCovariance(_diagonal(dynamics, m))
        self.solver.setDynamicsRegularizationPriorCovariance(_diagonal(prior, n))
        self.solver.setMeasurementsPriorCovariance(_diagonal(measurements, ny))
        expected = np.ascontiguousarray(np.broadcast_to(np.asarray(mean, dtype=float), (n,)))
        self.solver.setDynamicsRegularizationPriorExpectedValue(idyn.VectorDynSize.FromPython(expected))

    def estimate(self) -> Floats:
        """Return its estimate of d (n,) at the state, the readings and the covariances that were set last."""
        assert self.solver.doEstimate()
        return np.array(self.solver.getLastEstimate().toNumPy())

    def named(self, d: Floats) -> dict[str, Floats]:
        """Return d as {"kind:owner": values}, in its own conventions."""
        return {f"{block.kind}:{block.owner}": d[block.slice] for block in self.variables}

    def to_nori(self, tree: KinematicTree, q: Floats, qd: Floats, d: Floats) -> dict[str, Floats]:
        """Return d as {name of a variable of `System(tree, ...)`: values}, as far as it says them.

        With a floating base tau follows from f, and qdd of the base from its a; where `tree` has lumped links that it
        has not, their external wrenches are added up on the link that carries them.
        """
        at = velocities(tree, q, qd)
        own = self.named(d)
        found: dict[str, Floats] = {f"fx:{name}": np.zeros(6) for name in tree.names}
        for link in self.links:
            if f"fx:{link}" not in own:  # the base of the fixed variant
                continue
            frame = tree.frame(link)
            if not frame.on_world:
                on_body = frame.X.motion_matrix().T @ own[f"fx:{link}"][SWAP]
                found[f"fx:{tree.names[frame.link]}"] += on_body
        for i, (link, joint) in enumerate(zip(tree.names, tree.joint_names, strict=True)):
            if link in self.links:
                found[f"a:{link}"] = own[f"a:{link}"][SWAP] - self._velocity_term(at, i)
            if joint in self.child:
                found[f"f:{link}"] = own[f"f:{joint}"][SWAP]
                found[f"tau:{joint}"] = at.S[i].T @ found[f"f:{link}"]
                if joint in self.freedoms:
                    found[f"qdd:{joint}"] = own[f"qdd:{joint}"]
            elif tree.joints[i].kind == "free":
                a_0 = -np.array([0.0, 0.0, 0.0, *tree.gravity])
                found[f"f:{link}"] = found[f"tau:{joint}"] = np.zeros(6)
                found[f"qdd:{joint}"] = found[f"a:{link}"] - at.X_up[i].apply_motion(a_0) - at.c[i]
        return found

    def _velocity_term(self, at: Kinematics, i: int) -> Floats:
        """Return its a minus ours, angular first."""
        if not self.is_floating:
            return np.zeros(6)
        w, v = at.v[i][:3], at.v[i][3:]
        return np.concatenate([np.zeros(3), cross(w, v)])

    def sensor_frames(self) -> dict[str, tuple[str, Transform]]:
        """Return {sensor name: (link, transform from link coordinates to the sensor's)}.

        A force-torque sensor is on the link that its joint carries.
        """
        found = {}
        sensors = self.helper.sensors()
        for k in range(sensors.getNrOfSensors(idyn.ACCELEROMETER)):
            sensor = sensors.getAccelerometerSensor(k)
            found[sensor.getName()] = sensor.getParentLink(), _transform(sensor.getLinkSensorTransform())
        for k in range(sensors.getNrOfSensors(idyn.SIX_AXIS_FORCE_TORQUE)):
            sensor, pose = sensors.getSixAxisForceTorqueSensor(k), idyn.Transform()
            link = self.child[sensor.getParentJoint()]
            assert sensor.getLinkSensorTransform(self.model.getLinkIndex(link), pose)
            found[sensor.getName()] = link, _transform(pose)
        return found

    def with_sensor_frames(self, tree: KinematicTree) -> KinematicTree:
        """Return the tree with a frame "sensor:NAME" for each accelerometer and force-torque sensor."""
        frames = dict(tree.frames)
        for name, (link, X) in self.sensor_frames().items():
            frame = tree.frame(link)
            frames[f"sensor:{name}"] = Frame(frame.link, X @ frame.X)
        return tree.replace(frames=frames)

    def measurements(self, sigma: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
        """Return its sensors as entries of a sensor config, in its order, for a tree `with_sensor_frames`.

        Gyroscopes, which say nothing of d, are left out.

        Args:
            sigma: standard deviation by kind of sensor; no sigma where it is not given.
        """
        sensors = self.helper.sensors()
        entries = []
        for block in self.sensors:
            entry: dict[str, Any] = {"type": block.kind}
            match block.kind:
                case "gyroscope":
                    continue
                case "force_torque":
                    index = sensors.getSensorIndex(idyn.SIX_AXIS_FORCE_TORQUE, block.owner)
                    sensor = sensors.getSixAxisForceTorqueSensor(index)
                    joint = sensor.getParentJoint()
                    on_child = self.links[sensor.getAppliedWrenchLink()] == self.child[joint]
                    entry |= {"joints": joint, "frame": f"sensor:{block.owner}"}
                    entry["measures"] = "parent_on_child" if on_child else "child_on_parent"
                case "accelerometer":
                    entry["links"] = f"sensor:{block.owner}"
                case "external_wrench":
                    entry["links"] = block.owner
                case _:
                    entry["joints"] = block.owner
            if sigma and block.kind in sigma:
                entry["sigma"] = sigma[block.kind]
            entries.append(entry)
        return entries

    def reading(self, y: Floats) -> Floats:
        """Return its readings (ny,) as those of a system with its `measurements`: without gyroscopes, angular first."""
        parts = [y[block.slice] for block in self.sensors if block.kind != "gyroscope"]
        return np.concatenate([part[SWAP] if len(part) == 6 else part for part in parts])


def normal_matrix(at: Equations, dynamics: Floats, prior: Floats, measurements: Floats) -> Floats:
    """Return the inverse of the covariance of the estimate, as BERDY assembles it."""
    return at.D.T / dynamics @ at.D + np.diag(1 / prior) + at.Y.T / measurements @ at.Y


def _blocks(ordering: Any, kinds: Mapping[str, str]) -> Iterator[Block]:
    by_number = {getattr(idyn, name): kind for name, kind in kinds.items()}
    for block in ordering:
        start = block.range.offset
        yield Block(by_number[block.type], block.id, slice(start, start + block.range.size))


def _diagonal(values: Numbers, n: int) -> Any:
    matrix = idyn.SparseMatrixColMajor(n, n)
    for k, value in enumerate(np.broadcast_to(np.asarray(values, dtype=float), (n,))):
        matrix.setValue(k, k, float(value))
    return matrix


def _vector3(values: Sequence[float] | Floats) -> Any:
    return idyn.Vector3.FromPython(np.array(values, dtype=float))


def _transform(pose: Any) -> Transform:
    H = pose.asHomogeneousTransform().toNumPy()
    return Transform(np.array(H[:3, :3].T), np.array(H[:3, 3]))
