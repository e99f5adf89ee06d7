"""The joint accelerations of samples: as they are read, or estimated from accelerometers as well."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.errors import InputError, SingularSystemError, SystemShapeError
from nori_dyn.identification.regression import MOTIONS
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import scalar_rows, without_offset
from nori_dyn.model.joints import FORCE
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.planner import EliminationPlan, make_plan
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation
from nori_dyn.system.rows import SensorRow
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class MotionSensors:
    """The sensors of a system that read its motion, and no wrench from outside, which changes no motion.

    Attributes:
        of: the system's.
        chosen: which of its equations of sensors.
    """

    of: System
    chosen: frozenset[int]

    @property
    def name(self) -> str:
        """That of the system's set."""
        return f"{self.of.sensors.name}, motion only"

    @property
    def fingerprint(self) -> str:
        """A hash of all that its equations depend on."""
        return hashlib.sha256(f"{self.of.sensors.fingerprint} {sorted(self.chosen)}".encode()).hexdigest()

    def equations(self, tree: KinematicTree) -> Sequence[Equation]:
        """The rows on a tree."""
        own = [each for k, each in enumerate(self.of.sensors.equations(tree)) if k in self.chosen]
        return [*own, *(_no_wrench(tree, i) for i in range(tree.n_links))]


def _no_wrench(tree: KinematicTree, i: int) -> VariableReading:
    return VariableReading(
        name=f"fx:{tree.names[i]}",
        source="Nori (8)",
        group="external_wrench",
        components=FORCE,
        key=VariableKey("fx", i),
        matrix=np.eye(6),
        value=(0.0,) * 6,
        sigma=None,
    )


class JointAccelerations:
    """How joint accelerations come of the readings of a system.

    Args:
        system: the system.

    Raises:
        InputError: its sensors do not determine all joint accelerations.
    """

    def __init__(self, system: System) -> None:
        self._read = _read_accelerations(system)
        self._solver: Solver | None = None
        if self._read is None:
            self._solver, self._own = _solver(system)

    def accelerations(self, q: Floats, qd: Floats, y: Floats) -> Floats:
        """Joint accelerations (n, nv) of samples."""
        if self._read is not None:
            places, factors = self._read
            return np.asarray(y[:, places] / factors)
        assert self._solver is not None
        return np.asarray(self._solver.solve_batch(q, qd, y[:, self._own])["qdd"])


def _read_accelerations(system: System) -> tuple[Indices, Floats] | None:
    """Index of the reading of each joint acceleration, and its factor; None where some are not read."""
    places, factors = np.full(system.tree.nv, -1), np.ones(system.tree.nv)
    for row, k, freedom, factor in scalar_rows(system, system.measurements, "qdd"):
        if row.equation.is_measured and without_offset(row.equation) is row.equation:
            places[freedom], factors[freedom] = row.y.start + k, factor
    return None if (places < 0).any() else (places, factors)


def _solver(system: System) -> tuple[Solver, Indices]:
    """Solver for joint accelerations, and the readings that it takes.

    Raises:
        InputError: the sensors do not determine all joint accelerations.
    """
    at = positions(system.tree, system.tree.neutral_configuration())
    rows = [row for row in system.rows if isinstance(row.key, SensorRow)]
    chosen = [k for k, row in enumerate(rows) if all(key.kind in MOTIONS for key in row.equation.blocks(at))]
    own = [k for number in chosen for k in range(rows[number].y.start, rows[number].y.stop)]
    try:
        motion = System(system.tree, MotionSensors(system, frozenset(chosen)), system.of_components.repeats)
        plan: EliminationPlan = make_plan(motion, ["qdd"])
    except (SingularSystemError, SystemShapeError) as error:
        raise InputError(
            f"sensors '{system.sensors.name}' do not determine the motion of '{system.tree.name}': the accelerations "
            "of all joints, a floating base included, are needed. Add joint_acceleration for the joints, and an "
            f"accelerometer and a gyroscope's rate for the base. ({error})"
        ) from None
    return Solver(plan), np.array(own, dtype=np.intp)
