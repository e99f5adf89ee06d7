"""iDynTree's BERDY on a fixed base: its maximum a posteriori estimate. On a floating one: `benchmarks.peers.berdy`.

BERDY minimises, by normal equations and a sparse LDL^T,

    |D d + bD|^2 / dynamics  +  |d - mean|^2 / prior  +  |Y d + bY - y|^2 / measurements

with a covariance for each term. Its spatial vectors are linear first, in URDF link frames, which are ours. A joint's
wrench is that of the parent on the child, in child coordinates, as our f. Every joint has one freedom; the base is no
link, and has no sensor. There are 26 variables and 19 equations a joint: a is spatial with gravity, as ours; "net" is
the wrench I a + v x* I v on a link; then f, tau, fx, qdd as ours. Readings are first the model's sensors type by type,
then qdd of each freedom, and fx of each link.

It first factorises the normal matrix of the first two terms alone. Where prior / dynamics is 1e16 or more, that has
pivots which are zero to rounding: the estimate is then wrong by percents, and nothing says so: `set_covariances`
refuses that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.peers import idyn

Floats = NDArray[np.float64]
Numbers = Floats | float

WEAKEST_PRIOR = 1e15
"""The largest covariance of a prior, in those of the equations, at which BERDY's estimate was found to be right."""

SWAP = np.array([3, 4, 5, 0, 1, 2])
"""Linear first to angular first, and back."""

VARIABLES = {
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


@dataclass(frozen=True)
class Block:
    """A part of d or of y.

    Attributes:
        kind: what it is: a value of VARIABLES or SENSORS.
        owner: the name of its link (a, net, fx, external_wrench), joint (f, tau, qdd), or sensor.
        slice: where it lies.
    """

    kind: str
    owner: str
    slice: slice


class Berdy:
    """BERDY on a robot, with its sensors, all joint accelerations, external wrenches, and that of the ground.

    Attributes:
        variables: the blocks of d.
        sensors: the blocks of y.
        shape: number of equations, and of variables.
        ny: number of readings.

    Args:
        path: the URDF.
    """

    def __init__(self, path: Path) -> None:
        loader = idyn.ModelLoader()
        if not loader.loadModelFromFile(str(path)):
            raise ValueError(f"iDynTree cannot load {path}")
        full = loader.model().copy()  # what is fixed is lumped, as this variant refuses it
        names = [full.getJointName(i) for i in range(full.getNrOfJoints()) if full.getJoint(i).getNrOfDOFs()]
        loader.loadReducedModelFromFullModel(full, idyn.StringVector(names))
        self._model = loader.model().copy()

        options = idyn.BerdyOptions()
        options.berdyVariant = idyn.ORIGINAL_BERDY_FIXED_BASE
        options.includeAllJointAccelerationsAsSensors = options.includeAllNetExternalWrenchesAsSensors = True
        options.includeFixedBaseExternalWrench = True
        options.baseLink = self._model.getLinkName(self._model.getDefaultBaseLink())
        self._base = self._model.getLinkIndex(options.baseLink)
        helper = idyn.BerdyHelper()
        if not helper.init(self._model, options):
            raise ValueError(f"BERDY does not take {path}")
        self._helper = helper
        self.solver = idyn.BerdySparseMAPSolver(helper)
        self.solver.initialize()
        self.variables = tuple(_blocks(helper.getDynamicVariablesOrdering(), VARIABLES))
        self.sensors = tuple(_blocks(helper.getSensorsOrdering(), SENSORS))
        self.shape = helper.getNrOfDynamicEquations(), helper.getNrOfDynamicVariables()
        self.ny = helper.getNrOfSensorsMeasurements()

    def update(self, s: Floats, ds: Floats, y: Floats, gravity: Sequence[float] = (0, 0, -9.81)) -> None:
        """Set the joint positions, their velocities, and the readings (ny,)."""
        joints = idyn.JointPosDoubleArray(self._model), idyn.JointDOFsDoubleArray(self._model)
        for array, values in zip(joints, (s, ds), strict=True):
            for k, value in enumerate(values):
                array.setVal(k, float(value))
        down, readings = idyn.Vector3.FromPython(np.array(gravity, dtype=float)), np.ascontiguousarray(y)
        self.solver.updateEstimateInformationFixedBase(
            *joints, self._base, down, idyn.VectorDynSize.FromPython(readings)
        )

    def set_covariances(self, dynamics: Numbers, prior: Numbers, mean: Numbers, measurements: Numbers) -> None:
        """Set the diagonals of the covariances of D d + bD, of the prior on d, and of y; and the prior's mean.

        Each is an array, or one number for all.

        Raises:
            ValueError: a prior so weak that BERDY's first factorisation breaks down without saying so.
        """
        m, n = self.shape
        if np.max(prior) > WEAKEST_PRIOR * np.min(dynamics):
            raise ValueError(f"prior over dynamics is above {WEAKEST_PRIOR:g}: BERDY would return a wrong estimate")
        self.solver.setDynamicsConstraintsPriorCovariance(_diagonal(dynamics, m))
        self.solver.setDynamicsRegularizationPriorCovariance(_diagonal(prior, n))
        self.solver.setMeasurementsPriorCovariance(_diagonal(measurements, self.ny))
        expected = np.ascontiguousarray(np.broadcast_to(np.asarray(mean, dtype=float), (n,)))
        self.solver.setDynamicsRegularizationPriorExpectedValue(idyn.VectorDynSize.FromPython(expected))

    def estimate(self) -> Floats:
        """Return its estimate of d (n,) at the state, the readings and the covariances that were set last."""
        assert self.solver.doEstimate()
        return np.array(self.solver.getLastEstimate().toNumPy())

    def named(self, d: Floats) -> dict[str, Floats]:
        """Return d as {"kind:owner": values}, in its own conventions."""
        return {f"{block.kind}:{block.owner}": d[block.slice] for block in self.variables}


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
