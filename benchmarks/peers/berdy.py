"""iDynTree's BERDY: its maximum a posteriori estimate, and the way from its numbers to ours.

BERDY minimises |D d + bD|^2 / dynamics + |d - mean|^2 / prior + |Y d + bY - y|^2 / readings by normal equations and a
sparse LDL^T. Its vectors are linear first, in URDF link frames, which are ours; its joint wrenches are those of the
parent on the child. On a floating base a is the proper classical acceleration; on a fixed one a is spatial with
gravity, as ours, every joint has one freedom, the base is no link, and d has more blocks: the "net" wrench
I a + v x* I v on each link, and tau. A tick is a new state and readings, then its equations, its normal matrices and
their factorisation; its arrays are filled beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.base import load
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import ModelError
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.typing import Floats

MODULE = "idyntree.bindings"


SWAP = np.array([3, 4, 5, 0, 1, 2])
"""Linear first to angular first, and back."""

WEAKEST_PRIOR = 1e15
"""Largest variance of a prior, in those of the equations, at which BERDY's estimate was found to be right.

It first factorises the normal matrix of the first two terms alone; from 1e16 on that has pivots which are zero to
rounding, the estimate is wrong by percents, and nothing says so.
"""

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
    "NET_EXT_WRENCH_SENSOR": "external_wrench",
}


@dataclass(frozen=True, slots=True)
class BerdyBlock:
    """A part of d, or of y: what it is, of which link, joint or sensor, and where it lies."""

    kind: str
    owner: str
    slice: slice


class Berdy:
    """BERDY on a robot with its sensors, and all joint accelerations and external wrenches as readings.

    Attributes:
        variables: the blocks of d.
        sensors: the blocks of y.
        shape: number of equations, and of variables.

    Args:
        path: the URDF of the robot, with its sensors.
        floating: whether the base is free.

    Raises:
        ModelError: iDynTree does not take it.
    """

    def __init__(self, path: Path, floating: bool = True) -> None:
        self._idyn, self._floating = load(MODULE), floating
        idyn, loader = self._idyn, self._idyn.ModelLoader()
        if not loader.loadModelFromFile(str(path)):
            raise ModelError(f"iDynTree cannot load {path}.")
        self._model = model = loader.model().copy()
        if not floating:  # what is fixed is lumped, as this variant refuses it
            names = [model.getJointName(i) for i in _moving(model)]
            loader.loadReducedModelFromFullModel(model, idyn.StringVector(names))
            self._model = model = loader.model().copy()
        options = idyn.BerdyOptions()
        options.berdyVariant = idyn.BERDY_FLOATING_BASE if floating else idyn.ORIGINAL_BERDY_FIXED_BASE
        options.includeAllJointAccelerationsAsSensors = options.includeAllNetExternalWrenchesAsSensors = True
        options.includeAllJointTorquesAsSensors, options.includeFixedBaseExternalWrench = False, not floating
        options.baseLink = model.getLinkName(model.getDefaultBaseLink())
        self._base = model.getLinkIndex(options.baseLink)
        self.helper = idyn.BerdyHelper()
        if not self.helper.init(model, options):
            raise ModelError(f"BERDY does not take {path}.")
        self.solver = idyn.BerdySparseMAPSolver(self.helper)
        self.solver.initialize()
        self.shape = self.helper.getNrOfDynamicEquations(), self.helper.getNrOfDynamicVariables()
        self.variables = _blocks(idyn, self.helper.getDynamicVariablesOrdering(), VARIABLES)
        self.sensors = _blocks(idyn, self.helper.getSensorsOrdering(), SENSORS)
        self._freedoms = {model.getJoint(i).getDOFsOffset(): model.getJointName(i) for i in _moving(model)}

    @cached_property
    def _child(self) -> dict[str, str]:
        """The child link of each joint; on a fixed base BERDY has no traversal to ask."""
        model, traversal = self._model, self.helper.dynamicTraversal()
        return {
            model.getJointName(i): model.getLinkName(traversal.getChildLinkIndexFromJointIndex(model, i))
            for i in range(model.getNrOfJoints())
        }

    @property
    def ny(self) -> int:
        """Number of readings."""
        return int(self.helper.getNrOfSensorsMeasurements())

    def set_covariances(self, dynamics: float, prior: float, readings: Floats) -> None:
        """Set the variances of its equations, of its prior on d, whose mean is zero, and of its readings (ny,).

        Raises:
            ValueError: a prior so weak that BERDY's first factorisation breaks down without saying so.
        """
        if prior > WEAKEST_PRIOR * dynamics:
            raise ValueError(f"prior over dynamics is above {WEAKEST_PRIOR:g}: BERDY would return a wrong estimate")
        (m, n), idyn = self.shape, self._idyn
        self.solver.setDynamicsConstraintsPriorCovariance(_diagonal(idyn, np.full(m, dynamics)))
        self.solver.setDynamicsRegularizationPriorCovariance(_diagonal(idyn, np.full(n, prior)))
        self.solver.setMeasurementsPriorCovariance(_diagonal(idyn, readings))
        self.solver.setDynamicsRegularizationPriorExpectedValue(idyn.VectorDynSize.FromPython(np.zeros(n)))

    def inputs(self, tree: KinematicTree, q: Floats, qd: Floats, y: Floats) -> tuple[Any, ...]:
        """What `update` takes at a state of a tree with a free root, with readings y (ny,)."""
        idyn, model = self._idyn, self._model
        s, ds = idyn.JointPosDoubleArray(model), idyn.JointDOFsDoubleArray(model)
        for k, name in self._freedoms.items():
            i = tree.joint(name)
            s.setVal(k, float(q[tree.q_slices[i]][0]))
            ds.setVal(k, float(qd[tree.v_slices[i]][0]))
        of_base = idyn.Vector3.FromPython(qd[:3].copy() if self._floating else np.array(tree.gravity, dtype=float))
        return s, ds, self._base, of_base, idyn.VectorDynSize.FromPython(np.ascontiguousarray(y))

    @property
    def update(self) -> Callable[..., object]:
        """Sets the state and the readings, `inputs`."""
        of = "Floating" if self._floating else "Fixed"
        return getattr(self.solver, f"updateEstimateInformation{of}Base")  # type: ignore[no-any-return]

    def estimate(self) -> Floats:
        """Its estimate of d (n,) at the state and the readings that were set last."""
        assert self.solver.doEstimate()
        return np.array(self.solver.getLastEstimate().toNumPy())

    def runs(self, inputs: Sequence[tuple[Any, ...]]) -> dict[str, Callable[[], object]]:
        """A tick and its parts; each call is at the next of the inputs."""
        turns, update, estimate = cycle(inputs), self.update, self.solver.doEstimate

        def tick(kept: Berdy = self) -> None:  # the solver does not keep the helper that it works with
            update(*next(turns))
            estimate()

        return {"BERDY": tick, "BERDY, update": lambda: update(*next(turns)), "BERDY, estimate": estimate}

    def equations(self) -> tuple[Floats, Floats, Floats, Floats]:
        """D, bD, Y, bY at the state of the last update."""
        (m, n), ny, idyn = self.shape, self.ny, self._idyn
        D, bD = idyn.MatrixDynSize(m, n), idyn.VectorDynSize(m)
        Y, bY = idyn.MatrixDynSize(ny, n), idyn.VectorDynSize(ny)
        self.helper.resizeAndZeroBerdyMatrices(D, bD, Y, bY)
        self.helper.getBerdyMatrices(D, bD, Y, bY)
        return tuple(x.toNumPy().copy() for x in (D, bD, Y, bY))

    def to_nori(self, tree: KinematicTree, q: Floats, d: Floats) -> dict[str, Floats]:
        """Tau and fx of an estimate, by the names of our variables, as far as it says them."""
        at = positions(tree, q)
        found: dict[str, Floats] = {}
        for block in self.variables:
            if block.kind == "fx" and block.owner in tree.names:
                found[f"fx:{block.owner}"] = d[block.slice][SWAP]
            elif block.kind == "f" and block.owner in tree.joint_names:
                S = at.S[tree.joint_names.index(block.owner)]
                found[f"tau:{block.owner}"] = S.T @ d[block.slice][SWAP]
        return found

    def with_sensor_frames(self, tree: KinematicTree) -> KinematicTree:
        """The tree with a frame "sensor:NAME" for each accelerometer and force-torque sensor."""
        idyn, sensors, frames = self._idyn, self.helper.sensors(), dict(tree.frames)
        poses = {}
        for k in range(sensors.getNrOfSensors(idyn.ACCELEROMETER)):
            sensor = sensors.getAccelerometerSensor(k)
            poses[sensor.getName()] = sensor.getParentLink(), sensor.getLinkSensorTransform()
        for k in range(sensors.getNrOfSensors(idyn.SIX_AXIS_FORCE_TORQUE)):
            sensor, pose = sensors.getSixAxisForceTorqueSensor(k), idyn.Transform()
            link = self._child[sensor.getParentJoint()]
            sensor.getLinkSensorTransform(self._model.getLinkIndex(link), pose)
            poses[sensor.getName()] = link, pose
        for name, (link, pose) in poses.items():
            H, frame = pose.asHomogeneousTransform().toNumPy(), tree.frame(link)
            X = Transform(np.array(H[:3, :3].T), np.array(H[:3, 3]))
            frames[f"sensor:{name}"] = Frame(frame.link, X @ frame.X)
        return tree.replace(frames=frames)

    def measurements(self, sigma: dict[str, float]) -> list[dict[str, Any]]:
        """Its sensors as entries of a sensor config, but for gyroscopes, which say nothing of d.

        Args:
            sigma: standard deviation by kind of sensor.
        """
        sensors, entries = self.helper.sensors(), []
        for block in self.sensors:
            if block.kind == "gyroscope":
                continue
            entry: dict[str, Any] = {"type": block.kind, "sigma": sigma[block.kind]}
            if block.kind == "force_torque":
                index = sensors.getSensorIndex(self._idyn.SIX_AXIS_FORCE_TORQUE, block.owner)
                sensor = sensors.getSixAxisForceTorqueSensor(index)
                joint = sensor.getParentJoint()
                on_child = self._model.getLinkName(sensor.getAppliedWrenchLink()) == self._child[joint]
                entry |= {"joints": joint, "frame": f"sensor:{block.owner}"}
                entry["measures"] = "parent_on_child" if on_child else "child_on_parent"
            elif block.kind == "accelerometer":
                entry["links"] = f"sensor:{block.owner}"
            else:
                entry["links" if block.kind == "external_wrench" else "joints"] = block.owner
            entries.append(entry)
        return entries

    def reading(self, y: Floats) -> Floats:
        """Its readings (ny,) as those of a system with its `measurements`."""
        parts = [y[block.slice] for block in self.sensors if block.kind != "gyroscope"]
        return np.concatenate([part[SWAP] if len(part) == 6 else part for part in parts])

    def variances(self, sigma: dict[str, float]) -> Floats:
        """The variance of each reading (ny,); gyroscopes have 1."""
        return np.concatenate(
            [np.full(b.slice.stop - b.slice.start, sigma.get(b.kind, 1.0) ** 2) for b in self.sensors]
        )


def _moving(model: Any) -> list[int]:
    """The joints that have freedoms."""
    return [i for i in range(model.getNrOfJoints()) if model.getJoint(i).getNrOfDOFs()]


def _blocks(idyn: Any, ordering: Any, kinds: dict[str, str]) -> tuple[BerdyBlock, ...]:
    by_number = {getattr(idyn, name): kind for name, kind in kinds.items()}
    return tuple(
        BerdyBlock(by_number[block.type], block.id, slice(block.range.offset, block.range.offset + block.range.size))
        for block in ordering
    )


def _diagonal(idyn: Any, values: Floats) -> Any:
    matrix = idyn.SparseMatrixColMajor(len(values), len(values))
    for k, value in enumerate(values):
        matrix.setValue(k, k, float(value))
    return matrix
