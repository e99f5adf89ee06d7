"""A tree written as a URDF is the same robot to Pinocchio; what a URDF has not is refused by name."""

import numpy as np
import pytest

from benchmarks.urdf_writer import to_urdf
from nori_dyn.errors import ModelError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.rnea import rnea
from tests.peers import pin
from tests.trees import on_a_free_base


def test_a_tree_written_as_a_urdf_is_the_same_robot():
    """Right angles among them, which are written exactly."""
    for tree in (
        *(random_tree(6, seed, kinds=("revolute", "continuous", "prismatic")) for seed in range(3)),
        *(autotree(4, skew=skew) for skew in (np.pi / 2, -np.pi / 2, np.pi)),
    ):
        model = pin.buildModelFromXML(to_urdf(tree))
        q, qd, qdd = np.random.default_rng(0).normal(size=(3, tree.nv))
        places = [model.joints[model.getJointId(name)].idx_q for name in tree.joint_names]
        order = np.argsort(places)
        tau = pin.rnea(model, model.createData(), q[order], qd[order], qdd[order])
        expected = rnea(tree, q, qd, qdd)
        assert np.abs(tau[places] - expected).max() < 1e-12 * np.abs(expected).max(), tree.name


def test_a_joint_that_is_not_written_is_refused_by_name():
    with pytest.raises(ModelError, match=r"joint 'joint\d' is spherical"):
        to_urdf(random_tree(3, 0, kinds=("spherical",)))
    with pytest.raises(ModelError, match="not from the world's own frame"):
        to_urdf(on_a_free_base(random_tree(2, 0, kinds=("revolute",))))
