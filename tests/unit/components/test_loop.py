"""Loops hold poses: motions that they leave free, one after the other, leave no gap."""

from itertools import combinations

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.linalg import null_space
from scipy.spatial.transform import RigidTransform

from nori_dyn.components import Loop
from nori_dyn.model.joints import FORCE

HELD = [c for k in range(1, 6) for c in combinations(FORCE, k) if c[0][0] == "m"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_loop_is_refused_where_free_motions_lead_to_poses_that_are_not(turned):
    """In axes of the frame, and in others about its origin, against products of exponentials by SciPy."""
    rng, refused = np.random.default_rng(0), 0
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0] if turned else np.eye(3)
    for held in HELD:
        T = np.kron(np.eye(2), R) @ np.eye(6)[:, [FORCE.index(name) for name in held]]
        free = null_space(T.T)
        end = RigidTransform.identity()
        for _ in range(4):
            end = end * RigidTransform.from_exp_coords(free @ rng.normal(size=free.shape[1]))
        is_gap = np.abs(T.T @ end.as_exp_coords()).max() > 1e-9
        fields = {"name": "loop", "frames": ["a", "b"], "constrains": T.T.tolist() if turned else list(held)}
        if is_gap:
            refused += 1
            with pytest.raises(ValidationError, match="no configuration closes it"):
                Loop.model_validate(fields)
        else:
            Loop.model_validate(fields)
    assert (refused, len(HELD)) == (36, 55)
