"""What filters say of themselves: how it drifts what no sensor sees, and where drawn ticks lie in their chi-squares.

python -m benchmarks.filters

The first table is of a push and offsets that one pose does not tell apart, beside a textbook filter in doubles, both
beside a hundred digits; the second is of the robots of `tests/observers.py`.
"""

from __future__ import annotations

import argparse

import numpy as np

from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.tables import Document, Table
from tests.agreement.test_filter import DRAWN, consistency
from tests.observers import observer
from tests.ticks import Part
from tests.unseen import exactly, pushed_or_off

ROBOTS = ("arm", "quadruped", "humanoid")
CASES = ((10.0, 0.1), (1e3, 1e-2), (1e4, 1e-3), (1e6, 1e-5))
"""What is known at first of a push and offsets, and the noise of what reads their sum."""


def chances(ticks: int) -> Table:
    """Return where drawn ticks lie in their chi-squares."""
    rows = []
    for name in ROBOTS:
        for told in (1.0, 1.5, 1 / 1.5, 1.1, 1 / 1.1):
            innovations, errors = consistency(name, ticks, told)
            rows.append((name, f"{told:.3g}", f"{innovations:.2g}", f"{errors:.2g}"))
    heads = ("robot", "noise told over true", "innovations: probability below", "errors: probability below")
    return Table(f"Consistency in {ticks} drawn ticks", heads, tuple(rows))


def unseen(ticks: int) -> Table:
    """Return how far what cannot be told apart drifts, in its own deviations."""
    rows = []
    for sigma, noise in CASES:
        system, q = pushed_or_off(sigma, noise), np.array([0.3, 0.7])
        running = Filter(plan(system, outputs=["tau"]), 1e-3)
        Y = np.array([1.0, 2.0]) + noise * np.random.default_rng(6).normal(size=(ticks, 2))
        running.inputs.q[:] = q
        failed = 0
        for y in Y:
            running.inputs.y[:] = y
            failed += not running.tick().ok
        true = exactly(system, running.memory_names, q, Y)
        if failed:
            rows.append(
                (f"{sigma:g}", f"{noise:g}", str(failed), "", "", _plain(system, running.memory_names, q, Y, true))
            )
            continue
        known = running.state
        mean, covariance = true.off(known.mean, known.covariance)
        plain = _plain(system, running.memory_names, q, Y, true)
        rows.append((f"{sigma:g}", f"{noise:g}", "0", f"{mean:.0e}", f"{covariance:.0e}", plain))
    heads = (
        "sigma at first",
        "noise",
        "ticks refused",
        "mean off [deviations]",
        "covariance off",
        "textbook in doubles",
    )
    return Table(f"What one pose does not tell apart, {ticks} ticks", heads, tuple(rows))


def _plain(system, names, q, Y, true) -> str:  # type: ignore[no-untyped-def]
    """Return how far the mean of Kalman's filter with a covariance in doubles is off."""
    part = Part.of(system, names)
    pose = part.pose(q)
    H, P = pose.YC.astype(float), np.diag(part.beginning()[1] ** 2)
    m, noise = np.zeros(len(P)), np.diag(1 / system.weights[part.weights])
    d_0 = pose.start(system.b(q, 0 * q, Y[0])[part.exact], len(P)).astype(float)
    still = system.b(q, 0 * q, 0 * Y[0])[part.weighed] + pose.Y @ d_0
    for y in Y:
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + noise)
        m, P = m - K @ (H @ m + still - y), P - K @ H @ P
    least = np.linalg.eigvalsh((P + P.T) / 2).min()
    return f"{true.off(m, P)[0]:.0e}, smallest eigenvalue {least:.0e}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--ticks", type=int, default=DRAWN, help="how many")
    options = parser.parse_args()
    for name in ROBOTS:
        observer(name)
    print(Document((unseen(options.ticks), chances(options.ticks))).text(140))


if __name__ == "__main__":
    main()
