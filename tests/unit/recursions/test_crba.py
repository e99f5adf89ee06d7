"""The inertia matrix: by composites, by columns, by Lagrange, and as twice the kinetic energy."""

import numpy as np
import pytest

from nori_dyn.recursions.crba import crba, inertia_by_columns
from tests.oracles import Lagrangian
from tests.tolerances import EXACT, EXTENDED, RECURSION, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_rnea import motions


@pytest.mark.parametrize("name", TREES)
def test_it_is_lagranges_and_twice_the_kinetic_energy(name):
    tree, (truth, kinetic) = TREES[name], motions(name)
    H = crba(tree, truth.q)
    assert_close(crba(tree.replace(gravity=(5.0, 4.0, 3.0)), truth.q), H, EXACT)
    assert_close(H, inertia_by_columns(tree, truth.q), RECURSION)
    for k in range(2):
        assert_close(H[..., k], Lagrangian(tree, truth.q[:, k]).H(), EXTENDED)
    assert_close(np.einsum("iN,ijN,jN->N", truth.qd, H, truth.qd), 2 * kinetic, RECURSION)
    assert_close(H, np.swapaxes(H, 0, 1), EXACT if max(j.nv for j in tree.joints) == 1 else RECURSION)
    smallest = np.linalg.eigvalsh(np.moveaxis(H, -1, 0)).min(axis=1)
    if name == "massless":
        assert_close(smallest, 0 * smallest, RECURSION)
    else:
        assert (smallest > 0).all()
