"""Rotors in the recursions, against Pinocchio with armature."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.tree import KinematicTree
from tests.agreement.test_compiled import Case, everything
from tests.tolerances import SOLVED, assert_close

N = 20


def rotors(tree: KinematicTree, seed: int = 0) -> dict[int, float]:
    """Return an inertia for each joint but free ones."""
    sizes = np.random.default_rng(seed).uniform(0.01, 1.0, tree.n_links)
    return {i: float(size) for i, size in enumerate(sizes) if tree.joints[i].kind != "free"}


class Armoured(Case):
    """A robot with rotors, and Pinocchio's with armature."""

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name, base, N)
        self.model = self.model.copy()  # others are given the same one
        self.data = self.model.createData()
        inertias = rotors(self.tree)
        for i, inertia in inertias.items():
            number = self.model.getJointId(self.tree.joint_names[i])
            self.model.armature[self.model.idx_vs[number]] = inertia
        self.tree = self.tree.replace(
            components=tuple(
                nd.components.Rotor(joints=self.tree.joint_names[i], inertia=inertia / 16, gear=-4)
                for i, inertia in inertias.items()
            )
        )
        self.tau = nd.compile(nd.rnea, self.tree, backend="numpy").batch(self.q, self.qd, self.qdd)


@pytest.mark.parametrize(("name", "base"), [("panda", "fixed"), ("anymal", "floating"), ("kinova", "floating")])
def test_pinocchio_with_armature(name, base):
    case = Armoured(name, base)
    batches = [np.moveaxis(x, 0, -1) for x in (case.q, case.qd, case.qdd, case.tau)]
    expected = case.algorithms()
    for ours, reference in zip(everything(case.tree, *batches), expected, strict=True):
        assert_close(np.moveaxis(ours, -1, 0), reference, SOLVED)
    assert_close(expected.qdd, case.qdd, SOLVED)
