"""iDynTree's BERDY on a floating base: its maximum a posteriori estimate, and the way from its numbers to ours.

BERDY minimises |D d + bD|^2 / dynamics + |d|^2 / prior + |Y d + bY - y|^2 / readings by normal equations and a sparse
LDL^T. Its vectors are linear first, in URDF link frames, which are ours; its joint wrenches are those of the parent on
the child. A tick is a new state and readings, then its equations, its normal matrices and their factorisation; its
arrays are filled beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.base import SWAP, load
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import ModelError
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.typing import Floats

MODULE = "idyntree.bindings"


@dataclass(frozen=True, slots=True)
class Block:
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

    Raises:
        ModelError: iDynTree does not take it.
    """

    def __init__(self, path: Path) -> None:
        self._idyn = idyn = load(MODULE)
        loader = idyn.ModelLoader()
        if not loader.loadModelFromFile(str(path)):
            raise ModelError(f"iDynTree cannot load {path}.")
        self._model = loader.model().copy()
        options = idyn.BerdyOptions()
        options.berdyVariant = idyn.BERDY_FLOATING_BASE
        options.includeAllJointAccelerationsAsSensors = True
        options.includeAllNetExternalWrenchesAsSensors = True
        options.includeAllJointTorquesAsSensors = options.includeFixedBaseExternalWrench = False
        options.baseLink = self._model.getLinkName(self._model.getDefaultBaseLink())
        self._base = self._model.getLinkIndex(options.baseLink)
        self.helper = idyn.BerdyHelper()
        if not self.helper.init(self._model, options):
            raise ModelError(f"BERDY does not take {path}.")
        self.solver = idyn.BerdySparseMAPSolver(self.helper)
        self.solver.initialize()
        self.shape = self.helper.getNrOfDynamicEquations(), self.helper.getNrOfDynamicVariables()
        self.variables = _blocks(self.helper.getDynamicVariablesOrdering(), _variable_kinds(idyn))
        self.sensors = _blocks(self.helper.getSensorsOrdering(), _sensor_kinds(idyn))
        joints = range(self._model.getNrOfJoints())
        self._freedoms = {
            self._model.getJoint(i).getDOFsOffset(): self._model.getJointName(i)
            for i in joints
            if self._model.getJoint(i).getNrOfDOFs()
        }
        traversal = self.helper.dynamicTraversal()
        self._child = {
            self._model.getJointName(i): self._model.getLinkName(
                traversal.getChildLinkIndexFromJointIndex(self._model, i)
            )
            for i in joints
        }

    @property
    def ny(self) -> int:
        """Number of readings."""
        return int(self.helper.getNrOfSensorsMeasurements())

    def set_covariances(self, dynamics: float, prior: float, readings: Floats) -> None:
        """Set the variances of its equations, of its prior on d, whose mean is zero, and of its readings (ny,)."""
        (m, n), idyn = self.shape, self._idyn
        self.solver.setDynamicsConstraintsPriorCovariance(_diagonal(idyn, np.full(m, dynamics)))
        self.solver.setDynamicsRegularizationPriorCovariance(_diagonal(idyn, np.full(n, prior)))
        self.solver.setMeasurementsPriorCovariance(_diagonal(idyn, readings))
        self.solver.setDynamicsRegularizationPriorExpectedValue(idyn.VectorDynSize.FromPython(np.zeros(n)))

    def inputs(self, tree: KinematicTree, q: Floats, qd: Floats, y: Floats) -> tuple[Any, ...]:
        """Return what `update` takes at a state of a tree with a free root, with readings y (ny,)."""
        idyn, model = self._idyn, self._model
        s, ds = idyn.JointPosDoubleArray(model), idyn.JointDOFsDoubleArray(model)
        for k, name in self._freedoms.items():
            i = tree.joint_names.index(name)
            s.setVal(k, float(q[tree.q_slices[i]][0]))
            ds.setVal(k, float(qd[tree.v_slices[i]][0]))
        w, readings = idyn.Vector3.FromPython(qd[:3].copy()), idyn.VectorDynSize.FromPython(np.ascontiguousarray(y))
        return s, ds, self._base, w, readings

    def update(self, *inputs: Any) -> None:
        """Set the state and the readings."""
        self.solver.updateEstimateInformationFloatingBase(*inputs)

    def estimate(self) -> Floats:
        """Return its estimate of d."""
        self.solver.doEstimate()
        return np.array(self.solver.getLastEstimate().toNumPy())

    def runs(self, inputs: Sequence[tuple[Any, ...]]) -> dict[str, Callable[[], object]]:
        """Return a tick and its parts; each call is at the next of the inputs."""
        turns, update, estimate = (
            cycle(inputs),
            self.solver.updateEstimateInformationFloatingBase,
            self.solver.doEstimate,
        )

        def tick() -> None:
            update(*next(turns))
            estimate()

        return {"BERDY": tick, "BERDY, update": lambda: update(*next(turns)), "BERDY, estimate": estimate}

    def equations(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return D, bD, Y, bY at the state of the last update."""
        (m, n), ny, idyn = self.shape, self.ny, self._idyn
        D, bD = idyn.MatrixDynSize(m, n), idyn.VectorDynSize(m)
        Y, bY = idyn.MatrixDynSize(ny, n), idyn.VectorDynSize(ny)
        self.helper.resizeAndZeroBerdyMatrices(D, bD, Y, bY)
        self.helper.getBerdyMatrices(D, bD, Y, bY)
        return tuple(x.toNumPy().copy() for x in (D, bD, Y, bY))

    def to_nori(self, tree: KinematicTree, q: Floats, d: Floats) -> dict[str, Floats]:
        """Return tau and fx of an estimate, by the names of our variables, as far as it says them."""
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
        """Return the tree with a frame "sensor:NAME" for each accelerometer and force-torque sensor."""
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
        """Return its sensors as entries of a sensor config, but for gyroscopes, which say nothing of d.

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
        """Return its readings (ny,) as those of a system with its `measurements`."""
        parts = [y[block.slice] for block in self.sensors if block.kind != "gyroscope"]
        return np.concatenate([part[SWAP] if len(part) == 6 else part for part in parts])

    def variances(self, sigma: dict[str, float]) -> Floats:
        """Return the variance of each reading (ny,); gyroscopes have 1."""
        return np.concatenate(
            [np.full(b.slice.stop - b.slice.start, sigma.get(b.kind, 1.0) ** 2) for b in self.sensors]
        )


def _blocks(ordering: Any, kinds: dict[int, str]) -> tuple[Block, ...]:
    return tuple(
        Block(kinds[block.type], block.id, slice(block.range.offset, block.range.offset + block.range.size))
        for block in ordering
    )


def _variable_kinds(idyn: Any) -> dict[int, str]:
    return {
        idyn.LINK_BODY_PROPER_CLASSICAL_ACCELERATION: "a",
        idyn.JOINT_WRENCH: "f",
        idyn.NET_EXT_WRENCH: "fx",
        idyn.DOF_ACCELERATION: "qdd",
    }


def _sensor_kinds(idyn: Any) -> dict[int, str]:
    return {
        idyn.SIX_AXIS_FORCE_TORQUE_SENSOR: "force_torque",
        idyn.ACCELEROMETER_SENSOR: "accelerometer",
        idyn.GYROSCOPE_SENSOR: "gyroscope",
        idyn.DOF_ACCELERATION_SENSOR: "joint_acceleration",
        idyn.NET_EXT_WRENCH_SENSOR: "external_wrench",
    }


def _diagonal(idyn: Any, values: Floats) -> Any:
    matrix = idyn.SparseMatrixColMajor(len(values), len(values))
    for k, value in enumerate(values):
        matrix.setValue(k, k, float(value))
    return matrix
