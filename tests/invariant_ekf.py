"""The contact-aided invariant extended Kalman filter of Hartley, Ghaffari, Eustice and Grizzle, IJRR 39 (2020).

Right-invariant, with biases of gyroscope and accelerometer and a point for each standing foot.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

GRAVITY = np.array([0.0, 0.0, -9.81])


def skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


class InvariantEKF:
    """The state is X = (R, v, p, d_1, ...) of SE_K+2(3), one matrix, and the biases.

    Args:
        R: attitude at first, from base to world coordinates (3, 3).
        feet: positions of the feet in base coordinates (n, 3); all stand.
        P: covariance of the error (15 + 3 n, 15 + 3 n), in the order R, v, p, d, bias of gyroscope, of accelerometer.
        gyro, acc, foot: sigmas of the sensors at each tick [rad/s, m/s^2], and of the velocity of a foot [m/s].
        encoder: standard deviation of the position of a foot by the encoders [m].
    """

    def __init__(
        self, R: np.ndarray, feet: np.ndarray, P: np.ndarray, gyro: float, acc: float, foot: float, encoder: float
    ) -> None:
        n = len(feet)
        self.X = np.eye(5 + n)
        self.X[:3, :3], self.X[:3, 5:] = R, R @ feet.T
        self.bias, self.P, self.n = np.zeros(6), P.copy(), n
        self.noise = np.diag([gyro**2] * 3 + [acc**2] * 3 + [0.0] * 3 + [foot**2] * 3 * n + [0.0] * 6)
        self.encoder = encoder

    @property
    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Gravity and velocity in base coordinates."""
        R = self.X[:3, :3]
        return R.T @ GRAVITY, R.T @ self.X[:3, 3]

    def propagate(self, w: np.ndarray, a: np.ndarray, dt: float) -> None:
        """Go on by what the IMU read, over a time."""
        R, v, p, k = self.X[:3, :3].copy(), self.X[:3, 3].copy(), self.X[:3, 4].copy(), 9 + 3 * self.n
        w, a = w - self.bias[:3], a - self.bias[3:]
        A = np.zeros((k + 6, k + 6))
        A[3:6, :3], A[6:9, 3:6] = skew(GRAVITY), np.eye(3)
        A[:3, k : k + 3], A[3:6, k + 3 :] = -R, -R
        for row, x in enumerate(self.X[:3, 3:].T):
            A[3 + 3 * row : 6 + 3 * row, k : k + 3] = -skew(x) @ R
        Ad = np.eye(k + 6)
        for row in range(3 + self.n):
            Ad[3 * row : 3 * row + 3, 3 * row : 3 * row + 3] = R
        for row, x in enumerate(self.X[:3, 3:].T):
            Ad[3 + 3 * row : 6 + 3 * row, :3] = skew(x) @ R
        Phi = np.eye(k + 6) + dt * A + dt**2 / 2 * A @ A
        Q = Phi @ Ad @ self.noise @ Ad.T @ Phi.T * dt**2
        self.P = Phi @ self.P @ Phi.T + Q
        world = R @ a + GRAVITY
        self.X[:3, :3] = R @ Rotation.from_rotvec(w * dt).as_matrix()
        self.X[:3, 3], self.X[:3, 4] = v + world * dt, p + v * dt + world * dt**2 / 2

    def correct(self, feet: np.ndarray) -> None:
        """Take the positions of the feet in base coordinates (n, 3), by the encoders."""
        k, m = 9 + 3 * self.n, 3 * self.n
        H, z = np.zeros((m, k + 6)), np.zeros(m)
        for row, h in enumerate(feet):
            own = slice(3 * row, 3 * row + 3)
            H[own, 6:9], H[own, 9 + 3 * row : 12 + 3 * row] = -np.eye(3), np.eye(3)
            z[own] = self.X[:3, :3] @ h + self.X[:3, 4] - self.X[:3, 5 + row]
        S = H @ self.P @ H.T + self.encoder**2 * np.eye(m)
        K = np.linalg.solve(S, H @ self.P).T
        delta = K @ z
        xi = np.zeros_like(self.X)
        xi[:3, :3], xi[:3, 3:] = skew(delta[:3]), delta[3:k].reshape(-1, 3).T
        self.X = expm(xi) @ self.X
        self.bias += delta[k:]
        J = np.eye(k + 6) - K @ H
        self.P = J @ self.P @ J.T + self.encoder**2 * K @ K.T
