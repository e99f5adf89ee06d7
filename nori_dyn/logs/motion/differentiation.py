"""Differentiators: joint velocities and accelerations that a log lacks, from what it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeAlias, get_args
from warnings import catch_warnings

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.formats.source import BLOCK
from nori_dyn.logs.motion.joint_filter import JointModel, JointNoise, even_step, joint_states
from nori_dyn.logs.motion.joint_noise import likeliest, stretches
from nori_dyn.typing import Booleans, Floats

DifferentiationMethod: TypeAlias = Literal["kalman", "smoother"]
"""How the noise of joints may be weighed: by the readings so far, or by all."""

METHODS: tuple[DifferentiationMethod, ...] = get_args(DifferentiationMethod)

Differentiate: TypeAlias = int | DifferentiationMethod | Literal["auto"] | None
"""How users say how accelerations are made: a window in samples, a way, the one that suits, or not at all."""

AUTO: Literal["auto"] = "auto"
"""What is taken where users say nothing: the smoother for a log, the adaptive filter of `live` for a stream."""

ORDER = 3
"""Order of the polynomial of Savitzky and Golay."""

MEDIAN = 0.4549
"""Of a chi-square of one degree of freedom."""

USUAL = 3.0
"""Deviations up to which differences are by noise."""

JUMP = 5.0
"""Usual steps of time from which on what is before and after are not of one motion."""


ACCELERATION = 1
"""Where accelerations are in the states of joints of which velocities are read."""

FINEST = 1e-4
"""Least deviation of a rate [rad/s, rad/s^2, m/s, m/s^2]: a joint that rests reads one number, without any noise."""

UNSURE = 2.0
"""Accelerations are none where they are less sure than the least sure joint usually is, by this factor."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionDerivatives:
    """Accelerations derived from velocities, or velocities and accelerations from positions.

    Attributes:
        qdd: the accelerations (N, n); nan where there is none.
        sigma: their standard deviations (N, n); None where they are not known.
        qd: the velocities (N, n), of positions; nan where there is none.
    """

    qdd: Floats
    sigma: Floats | None = None
    qd: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differentiator(ABC):
    """Derives what a log lacks of the motion of its joints.

    Attributes:
        dt: time between samples [s]; that of the log's column of times when None.
        makes_velocities: whether velocities that a log lacks are made of positions as well.
        of_positions: whether positions are differentiated; otherwise velocities.
    """

    dt: float | None = None
    makes_velocities: bool = True
    of_positions: bool = False

    @property
    @abstractmethod
    def window(self) -> int:
        """The samples that an acceleration is made of, half of them before it and half of them after."""

    @abstractmethod
    def fitted(self, read: Callable[[], tuple[Floats, Floats, float]]) -> Differentiator:
        """A copy with the parameters that it learns from the log.

        Args:
            read: reads times (N,) and velocities, or positions, (N, n) of the log, and the time between samples.

        Raises:
            InputError: too few samples.
        """

    @abstractmethod
    def derivatives(self, t: Floats | None, read: Floats, dt: float) -> MotionDerivatives:
        """Accelerations of successive samples, and of positions velocities as well.

        Args:
            t: times (N,) [s]; None where they are not known.
            read: velocities, or positions, (N, n); nan where one is not known.
            dt: the usual time between samples [s].

        Raises:
            InputError: too few samples.
        """

    def remark(self) -> str:
        """A remark for the report, or ""."""
        return ""


@dataclass(frozen=True, slots=True)
class SavitzkyGolay(Differentiator):
    """The Savitzky-Golay filter: derivative of a polynomial fit, in the middle of its window.

    A fit over a quarter of the window shows how sure accelerations are. The two differ by noise, whose variance is that
    of the differences that are usual; what is beyond three deviations of it, anywhere in the window, no polynomial
    follows, as where a joint stops at once:

        sigma^2 = |w|^2 / |w - w_short|^2 noise + max over the window of (difference^2 - 9 noise)

    Attributes:
        window: its length in samples.
        degree: of the polynomial.
        noise: variance of the differences by noise (n,) [rad^2/s^4]; None where nothing was learned of it.

    Source: Savitzky and Golay, Analytical Chemistry 36, 1964; the deviations are an own derivation
        (tests/unit/logs/test_joint_estimation.py).
    """

    window: int
    degree: int = ORDER
    noise: Floats | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.window < (least := self.degree + 1 | 1):
            raise InputError(f"the window must be at least {least} samples, not {self.window}.")

    def fitted(self, read: Callable[[], tuple[Floats, Floats, float]]) -> SavitzkyGolay:
        """A copy that knows the noise of velocities, where these are differentiated."""
        if self.of_positions:
            return self
        _, values, dt = read()
        if len(values) < self.window:
            return self
        off = self.apply(values, dt) - self._short.apply(values, dt)
        with catch_warnings(action="ignore", category=RuntimeWarning):  # of joints that are never known
            return replace(self, noise=np.nanmedian(np.square(off), axis=0) / MEDIAN)

    @property
    def _short(self) -> SavitzkyGolay:
        return SavitzkyGolay(max(3, self.window // 4 | 1), degree=2)

    def sigma(self, qdd: Floats, read: Floats, dt: float) -> Floats | None:
        """Standard deviations (N, n) of accelerations; nan where nothing is known of them, None if that is everywhere.

        Args:
            qdd: the accelerations (N, n).
            read: the velocities (N, n).
            dt: time between samples [s].
        """
        if self.noise is None:
            return None
        from scipy.ndimage import maximum_filter1d
        from scipy.signal import savgol_coeffs

        short = self._short
        w, w_short = (savgol_coeffs(fit.window, fit.degree, 1) for fit in (self, short))
        apart = w - np.pad(w_short, (self.window - short.window) // 2)
        beyond = np.square(qdd - short.apply(read, dt)) - USUAL**2 * self.noise
        worst = maximum_filter1d(np.fmax(beyond, 0.0), self.window, axis=0)
        variance = (w @ w) / (apart @ apart) * self.noise + worst
        return np.where(np.isfinite(qdd) & (variance > 0), np.maximum(np.sqrt(variance), FINEST), np.nan)

    def derivatives(self, t: Floats | None, read: Floats, dt: float) -> MotionDerivatives:
        found = [self.apply(read, dt, order) for order in range(1, 2 + self.of_positions)]
        if t is not None and self.dt is None:
            for values in found:
                values[self.across(t, dt)] = np.nan
        if self.of_positions:
            return MotionDerivatives(found[-1], qd=found[0])
        return MotionDerivatives(found[0], self.sigma(found[0], read, dt))

    def apply(self, qd: Floats, dt: float, order: int = 1) -> Floats:
        """Derivative of values (N, n), dt [s] apart; nan where one is, and in runs shorter than the window.

        Raises:
            InputError: fewer samples than the window.
        """
        if len(qd) < self.window:
            raise InputError(f"the log has {len(qd)} samples, fewer than the window of {self.window}.")
        is_known = np.isfinite(qd).all(axis=1)
        if is_known.all():
            return self._derivative(qd, dt, order)
        found = np.full(qd.shape, np.nan)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_known, [False]]).astype(int)))
        for start, stop in edges.reshape(-1, 2).tolist():
            if stop - start >= self.window:
                found[start:stop] = self._derivative(qd[start:stop], dt, order)
        return found

    def _derivative(self, qd: Floats, dt: float, order: int) -> Floats:
        from scipy.signal import savgol_filter  # takes long to load

        return np.asarray(savgol_filter(qd, self.window, self.degree, deriv=order, delta=dt, axis=0))

    def across(self, t: Floats, dt: float) -> Booleans:
        """Mask (N,) of derivatives whose window contains a jump of time."""
        jumps = np.flatnonzero((np.diff(t) > JUMP * dt) | (np.diff(t) < 0))
        found = np.zeros(len(t), dtype=bool)
        half = self.window // 2
        for k in jumps.tolist():
            found[max(k - half + 1, 0) : k + half + 1] = True
        return found


@dataclass(frozen=True, slots=True, eq=False)
class KalmanDifferentiator(Differentiator):
    """A Kalman filter or smoother for each joint, of velocities or positions: see `nd.tools.joint_motion`.

    A free joint has velocities as well, so that its accelerations are made likewise.

    Attributes:
        way: "kalman" for the readings so far, "smoother" for all.
        noise: that of the joints; found from the log when None.
        step: the usual time between samples of the log [s]; found from it when None.
    """

    way: DifferentiationMethod
    noise: JointNoise | None = None
    step: float | None = None

    @property
    def window(self) -> int:
        """Twice the samples after which the filter has forgotten its beginning, of `BLOCK` each at most."""
        memory = self._model.settled.memory if self.noise is not None and self.step is not None else BLOCK
        return 2 * int(min(memory, BLOCK)) + 1

    def fitted(self, read: Callable[[], tuple[Floats, Floats, float]]) -> KalmanDifferentiator:
        """A copy with the maximum-likelihood noise of what is read of the log."""
        if self.noise is not None and self.step is not None:
            return self
        t, values, step = read()
        step = even_step(t, step)
        try:
            noise = self.noise or likeliest(stretches(t, values[..., None], step), step, 0 if self.of_positions else 1)
        except InputError as error:
            lacks, of = ("velocities", "positions") if self.of_positions else ("accelerations", "velocities")
            raise InputError(
                f"the log lacks joint {lacks}, and they cannot be derived from its {of}: {error} Or choose a window in "
                "samples: --differentiate 5."
            ) from None
        return replace(self, noise=noise, step=step)

    def derivatives(self, t: Floats | None, read: Floats, dt: float) -> MotionDerivatives:
        assert self.noise is not None  # it has learned
        assert self.step is not None
        times = np.asarray(self.step * np.arange(len(read)) if t is None or self.dt is not None else t, dtype=float)
        x, sigma = np.full((*read.shape, 2), np.nan), np.full((*read.shape, 2), np.nan)
        goes_on = np.diff(times) >= 0
        edges = [0, *(np.flatnonzero(~goes_on) + 1).tolist(), len(read)]
        for start, stop in pairwise(edges):
            part = times[start:stop], read[start:stop, :, None]
            found, deviations = joint_states(self.noise, *part, self.step, smooth=self.way == "smoother")
            x[start:stop], sigma[start:stop] = found[..., self._rates], deviations[..., self._rates]
        sigma, usual = (
            np.maximum(each, FINEST) for each in (sigma, self._model.deviations[:, self._rates].max(axis=0))
        )
        x[~(sigma <= UNSURE * usual)] = np.nan
        return MotionDerivatives(x[..., 1], sigma[..., 1], x[..., 0] if self.of_positions else None)

    def remark(self) -> str:
        assert self.noise is not None  # it has learned
        jerk, sigma = self.noise.jerk, self._model.sigma[:, 0]
        usual = self._model.deviations[:, self._rates][:, 1]
        read = ("positions", "rad") if self.of_positions else ("velocities", "rad/s")
        return (
            f"by a {'Kalman filter' if self.way == 'kalman' else 'smoother'}: noise of {read[0]} "
            f"{_range(sigma)} {read[1]}, random walk of the jerk {_range(jerk)} rad/s^3/sqrt(s)"
            + (f", accelerations within {_range(usual)} rad/s^2" if self.way == "kalman" else "")
        )

    @property
    def _rates(self) -> slice:
        """Where velocities and accelerations are in the states."""
        return slice(ACCELERATION - 1 + self.of_positions, ACCELERATION + 1 + self.of_positions)

    @property
    def _model(self) -> JointModel:
        assert self.noise is not None  # it has learned
        assert self.step is not None
        return JointModel(self.noise, self.step)


def differentiator(differentiate: Differentiate, dt: float | None = None) -> Differentiator | None:
    """The differentiator for an option; None for none.

    Args:
        differentiate: a window in samples; "kalman" or "smoother"; "auto" for the latter, of velocities only; None.
        dt: time between samples [s]; that of the log's times when None.

    Raises:
        InputError: no such way, a window that is too short or even, or a time that is not positive.
    """
    if differentiate is None:
        return None
    if dt is not None and not 0 < dt < np.inf:
        raise InputError(f"the time between samples must be positive, not {dt} s.")
    if isinstance(differentiate, str):
        way: DifferentiationMethod = "smoother" if differentiate == AUTO else differentiate
        if way not in METHODS:
            known = " or ".join(f"'{name}'" for name in METHODS)
            raise InputError(
                f"accelerations cannot be derived by '{way}'. Known: a window in samples, such as 51, or {known}."
            )
        return KalmanDifferentiator(way, dt=dt, makes_velocities=differentiate != AUTO)
    if differentiate % 2 == 0:
        raise InputError(f"the window must be odd, so that a sample is in its middle, not {differentiate} samples.")
    return SavitzkyGolay(differentiate, dt=dt)


def _range(values: Floats) -> str:
    """Range of values as text."""
    low, high = f"{values.min():.2g}", f"{values.max():.2g}"
    return low if low == high else f"{low} to {high}"
