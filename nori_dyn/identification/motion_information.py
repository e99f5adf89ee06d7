"""Fisher information of parameters from a motion, its derivatives by the motion, exactly, and criteria of it.

With W_k the whitened rows of sample k over the parameters and N_k those over unknown wrenches, what is left
of W_k where the wrenches are fitted as well is V_k = W_k - N_k C_k, C_k = N_k^+ W_k, and

    F = R0^T R0 + n sum_k V_k^T V_k

where n is how many samples of a log each one stands for, and R0 is the square root of the prior information. For any
criterion J(F) with the derivative G, dJ = 2 n sum_k tr(G V_k^T (dW_k - dN_k C_k)): the derivatives of C_k drop out, as
V_k is what is least. The last step, from factors of the entries to the motion, is one reverse sweep of their program.

Criterion D is the logarithm of the determinant of F, which does not change with the units of the parameters; A the
negative logarithm of the trace of its inverse, the sum of the variances, which does. Both are large where F is.

Source: Pukelsheim, Optimal Design of Experiments, ch. 6; Swevers et al. (1997) for D on motions of robots; the
derivatives are ours (tests/unit/identification/test_motion_information.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.arrays import numeric
from nori_dyn.algebra.derivatives import depends_on
from nori_dyn.algebra.ranges import width
from nori_dyn.algebra.ranks import independent_columns
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.base_parameters import BaseParameters
from nori_dyn.identification.elimination import TOLERANCE
from nori_dyn.identification.limits import MotionLimits
from nori_dyn.identification.motion_function import MotionFunction, Pullback
from nori_dyn.identification.moving_joints import Hold, MovingJoints
from nori_dyn.identification.regression import Regression, RegressorLayout
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

OF_DRIVES = 0.01
"""Standard deviation of torques that are read, as a share of what the drive can give; 1 N m or 1 N where not known."""

EXACT = 1e4
"""How many times as exact as readings rows count that hold exactly, such as that a joint has no motor."""

STATES = 400
"""Random states from which the sensitivity of readings to each parameter is taken."""

DEPENDENT = 1e-9
"""Share of a column that other columns leave of it below which it depends on them, where joints stand still."""


@dataclass(frozen=True, eq=False)
class MotionInformation:
    """Information that motions give of some parameters.

    Attributes:
        entries: those of the rows W and N that are not zero.
        layout: where they belong.
        weights: 1 / sigma of each row (n_rows,).
        n_samples: of the log that is to be, which those of a motion stand for.
        kept: the parameters that F is of, by their columns in W (n,).
        units: what each is in units of (n,).
        earlier: R0 (rows, n), over them in these units; of no rows where nothing is known beforehand.
    """

    entries: MotionFunction
    layout: RegressorLayout
    weights: Floats
    n_samples: float
    kept: Indices
    units: Floats
    earlier: Floats

    @staticmethod
    def of(
        regression: Regression, columns: Sequence[int], moved: Sequence[int], weights: Floats, n_samples: float
    ) -> MotionInformation:
        """Compile it of all columns in SI units, with nothing known beforehand.

        Args:
            regression: the regression.
            columns: the parameters, by their indices; they must be identifiable one by one.
            moved: the freedoms that move.
            weights: 1 / sigma of each row (n_rows,).
            n_samples: of the log that is to be.

        Raises:
            InputError: a parameter whose rows depend on what the sensors read.
            CompilerError: as for `compile`.
        """
        _refuse_readings(regression, columns)
        (layout, entries), n = regression.entries(columns), len(columns)
        traced = regression.traced(entries[: layout.constants.start], ("q", "qd", "qdd"))
        function = MotionFunction.of(traced, moved)
        return MotionInformation(function, layout, weights, n_samples, np.arange(n), np.ones(n), np.zeros((0, n)))

    def fitted(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats]:
        """Whitened rows V (N, rows, n) of N samples, wrenches fitted, and these C (N, unknowns, n)."""
        W, N, _ = self.layout.dense(self.entries(q, qd, qdd))
        W, N = self.weights[:, None] * W[:, :, self.kept] * self.units, self.weights[:, None] * N
        C = np.linalg.pinv(N, rcond=TOLERANCE) @ W if N.shape[2] else np.zeros((len(W), 0, W.shape[2]))
        return W - N @ C, C

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """Information F (n, n) of a motion, and the pullback of derivatives by it to the freedoms that move.

        Args:
            q: the samples (N, nq).
            qd: their velocities (N, nv).
            qdd: their accelerations (N, nv).
        """
        V, C = self.fitted(q, qd, qdd)
        n, flat = self.n_samples / len(q), V.reshape(-1, V.shape[2])
        F = self.earlier.T @ self.earlier + n * (flat.T @ flat)

        def pullback(G: Floats) -> Floats:
            of_left = 2.0 * n * self.weights[:, None] * (flat @ G).reshape(V.shape)
            of_N, of_W = -(of_left @ np.swapaxes(C, 1, 2)), np.zeros((*V.shape[:2], self.layout.shape[1]))
            of_W[:, :, self.kept] = of_left * self.units
            at_W, at_N = (np.array(at, dtype=np.intp).reshape(-1, 2).T for at in (self.layout.of_W, self.layout.of_N))
            factors = np.hstack([of_W[:, at_W[0], at_W[1]], of_N[:, at_N[0], at_N[1]]])
            return self.entries.pullback(q, qd, qdd, factors)

        return F, pullback

    def identifiable(
        self, joints: MovingJoints, limits: MotionLimits, rest: Floats, is_special: bool, seed: int
    ) -> MotionInformation:
        """The information of the parameters that motions identify, in units of what moves the readings alike.

        Args:
            joints: those that move.
            limits: theirs.
            rest: positions (n_joints,) about which they move.
            is_special: whether others stand still, here and not just anywhere, where fewer may be identifiable.
            seed: seed of the states.
        """
        n = len(joints.bodies)
        rng, shape = np.random.default_rng(seed), (STATES, n)
        q = limits.middle[:n] + limits.room[:n] * rng.uniform(-1, 1, shape)
        qd, qdd = (limit[:n] * rng.uniform(-1, 1, shape) for limit in (limits.speed, limits.acceleration))
        way = np.ones((STATES, 1))
        while np.isnan((whole := joints.whole(rest + way * (q - rest), qd, qdd))[0]).any():
            way[np.isnan(whole[0]).any(axis=1)] /= 2
        rows = self.fitted(*whole)[0].reshape(-1, len(self.kept))
        size = np.linalg.norm(rows, axis=0)
        kept = np.flatnonzero(size > DEPENDENT * size.max(initial=0.0))
        if is_special and len(kept):
            kept = np.sort(kept[independent_columns(rows[:, kept], DEPENDENT)])
        return replace(self, kept=kept, units=np.sqrt(STATES) / size[kept], earlier=np.zeros((0, len(kept))))

    def with_earlier(self, base: BaseParameters, earlier: Any) -> MotionInformation:
        """Add the information of an earlier log, a square root over base parameters or over all.

        Raises:
            InputError: a square root of another width, or of other combinations of parameters.
        """
        R0 = numeric("earlier", earlier)
        n, n_all = len(base.independent), len(base.parameters)
        if R0.ndim != 2 or R0.shape[1] not in (n, n_all) or not np.isfinite(R0).all():
            raise InputError(
                f"earlier has shape {R0.shape}: expected a square root (rows, {n}) of the information of the base "
                f"parameters, or (rows, {n_all}) of all parameters, of finite numbers."
            )
        if R0.shape[1] == n_all and n_all != n:
            independent = R0[:, list(base.independent)]
            others = R0[:, list(base.dependent)] - independent @ base.K
            if np.abs(others).max(initial=0.0) > 1e-6 * np.abs(R0).max(initial=0.0):
                raise InputError(
                    "earlier has information on combinations that this motion does not identify: use the same robot, "
                    "sensors and moving joints for both."
                )
            R0 = independent
        return replace(self, earlier=R0[:, self.kept] * self.units)


def _refuse_readings(regression: Regression, columns: Sequence[int]) -> None:
    """Refuse parameters whose rows are not known before the motion, as they depend on readings."""
    y = [x.index for x in regression.inputs["y"]]
    wanted = set(columns)
    entries = {place: entry for place, entry in regression.W.items() if place[1] in wanted}
    depends = depends_on(regression.graph, [*entries.values()], y)
    for (row, column), entry in entries.items():
        if depends[entry.index]:
            raise InputError(
                f"'{regression.parameters.names[column]}' multiplies what '{regression.row_names[row]}' reads, which "
                "is known after the motion only: no motion can be chosen for it. Leave gains out; those that excite "
                "inertias and friction serve them as well."
            )


def weights_of(regression: Regression) -> Floats:
    """Weights 1 / sigma of the rows; without a sigma, as the most exact row that has one, or 1."""
    known: dict[str, float] = {}
    for row in regression.system.sensor_rows:
        if width(row.weights):
            sizes = regression.system.weights[list(row.weight_of_rows)]
            known.update(zip(row.component_names, np.sqrt(sizes).tolist(), strict=True))
    most = max((known[name] for name in regression.row_names if name in known), default=1.0)
    exact = [reads < 0 and is_exact for reads, is_exact in zip(regression.reads, regression.is_exact, strict=True)]
    usual = np.where(exact, EXACT * most, most)
    return np.array([known.get(name, size) for name, size in zip(regression.row_names, usual, strict=True)])


def torque_sensors(
    tree: KinematicTree, motors: Collection[int] | None = None, contacts: Mapping[str, Hold] | None = None
) -> SensorSet:
    """Sensors of the torques of motors on a robot that touches only what it stands on, or what holds its base.

    Args:
        tree: the robot.
        motors: the freedoms that have one; all of joints when None.
        contacts: frames that stand, and how; where none do, something holds a floating base.
    """
    entries: list[dict[str, Any]] = [{"type": "joint_acceleration", "joints": "all"}]
    for joint, name, s in zip(tree.joints, tree.joint_names, tree.v_slices, strict=True):
        if joint.nv and (s.start in motors if motors is not None else not isinstance(joint, Free)):
            effort = tree.drives[name].effort if name in tree.drives else np.inf
            sigma = OF_DRIVES * effort if np.isfinite(effort) else 1.0
            entries.append({"type": "joint_torque", "joints": [name], "sigma": sigma})
        elif joint.nv and (contacts or not isinstance(joint, Free)):
            entries.append({"type": "joint_torque", "joints": [name], "value": 0})
    held = [name for name, joint in zip(tree.names, tree.joints, strict=True) if isinstance(joint, Free)]
    if contacts:
        held = sorted({tree.names[tree.frame(name).link] for name in contacts})
        entries += [
            {"type": "external_wrench", "links": [tree.names[tree.frame(name).link]], "frame": name, "value": 0}
            | {"components": ["mx", "my", "mz"]}
            for name, how in contacts.items()
            if how == "point"
        ]
    links = {"except": held} if held else "all"
    if len(held) < tree.n_links:
        entries.append({"type": "external_wrench", "links": links, "value": 0})
    return SensorSet.from_dict({"name": "joint torques", "measurements": entries})


Criterion: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Of an information F (n, n) that is symmetric: the criterion, and its derivative by F (n, n), symmetric."""

VAGUE = 1e-12
"""Prior information of everything, as a share of the largest, so that F is never singular."""


def d_optimality(F: Floats) -> tuple[float, Floats]:
    """Criterion log det F, and F^-1."""
    factor, inverse = _inverse(F)
    return 2.0 * float(np.log(np.diag(factor)).sum()), inverse


def a_optimality(F: Floats) -> tuple[float, Floats]:
    """Criterion -log tr F^-1, and F^-2 / tr F^-1."""
    _, inverse = _inverse(F)
    trace = float(np.trace(inverse))
    return -math.log(trace), inverse @ inverse / trace


CRITERIA: Mapping[str, Criterion] = {"D": d_optimality, "A": a_optimality}
"""The criteria by name."""


def criterion_named(name: str) -> Criterion:
    """A criterion by name.

    Raises:
        UnknownNameError: there is no such criterion.
    """
    if not isinstance(name, str) or name not in CRITERIA:
        raise UnknownNameError("criterion", str(name), CRITERIA)
    return CRITERIA[name]


def _inverse(F: Floats) -> tuple[Floats, Floats]:
    """Cholesky factor of F with a vague prior, and the inverse of that."""
    vague = F + VAGUE * (float(np.diag(F).max(initial=0.0)) or 1.0) * np.eye(len(F))
    factor = la.cholesky(vague, lower=True)
    root = la.solve_triangular(factor, np.eye(len(F)), lower=True)
    return factor, root.T @ root
