"""Which combinations of parameters are identifiable: counts of the literature, singular values, possible motions."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.identification.base_parameters import base_parameters, column_order
from nori_dyn.identification.regression import Regression
from nori_dyn.model.joints import Joint, Prismatic, Revolute
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.rnea import rnea
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES
from tests.unit.identification.simulated import at_motions

ACTUATED = {"type": "joint_torque", "joints": "actuated"}
NO_MOTOR = {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0}


def base_of(tree: KinematicTree, wanted=("inertias",), sensors=(ACCELERATIONS, TORQUES, UNLOADED), **options):
    return base_parameters(Regression.of(System(tree, sensor_set(*sensors)), wanted), **options)


def planar(n: int = 2, gravity=(0.0, -9.81, 0.0)) -> KinematicTree:
    return nd.autotree(n).replace(gravity=gravity)


def serial(*joints: Joint, gravity=(0.0, 0.0, -9.81), seed: int = 0, upright: bool = True) -> KinematicTree:
    """An arm whose links have any shape; its first axis is that of its joint in the world if upright."""
    tree = nd.tools.random_tree(len(joints), seed, kinds=["revolute"], chain=1.0)
    first = nd.autotree(1).X_tree[0] if upright else tree.X_tree[0]
    return tree.replace(joints=joints, X_tree=(first, *tree.X_tree[1:]), gravity=gravity)


def numbers_of(found: Regression, n: int, seed: int, still=()):
    """W, N, c at random motions at which some joints stand still, readings any."""
    tree, rng = found.system.tree, np.random.default_rng(seed)
    Q = tree.random_configurations(n, rng)
    Qd, Qdd = rng.normal(size=(2, n, tree.nv))
    for i in map(tree.joint, still):
        Q[:, tree.q_slices[i]] = Q[0, tree.q_slices[i]]
        Qd[:, tree.v_slices[i]] = Qdd[:, tree.v_slices[i]] = 0.0
    return at_motions(found, Q, Qd, Qdd, rng.normal(size=(n, found.system.ny)))


def singular_values(W: np.ndarray) -> np.ndarray:
    """Those of stacked rows whose columns are of one size, relative to the largest."""
    rows = W.reshape(-1, W.shape[-1])
    sizes = np.linalg.norm(rows, axis=0)
    s = np.linalg.svd(rows / np.where(sizes > 1e-12 * sizes.max(), sizes, 1.0), compute_uv=False)
    return s / s[0]


def assert_rank(W: np.ndarray, rank: int) -> None:
    s = singular_values(W)
    assert s[rank - 1] > 1e-6
    assert rank == len(s) or s[rank] < 1e-10


def test_serial_arms_of_any_shape():
    """7 a revolute joint and 4 a prismatic one, less 4, and one for each prismatic one that turns about one axis only.

    Two less where the first axis is along gravity. Source: Gautier and Khalil (1990); Khalil and Dombre, ch. 9; Mayeda,
    Yoshida and Osuka (1990).
    """
    for kinds, lost in {"rrr": 0, "rrp": 0, "rrpr": 0, "rrrrrr": 0, "rpp": 2, "rprr": 1}.items():
        joints = [Revolute() if kind == "r" else Prismatic() for kind in kinds]
        rank = base_of(serial(*joints, upright=False)).rank
        assert rank == 7 * kinds.count("r") + 4 * kinds.count("p") - 4 - lost, kinds
    assert base_of(serial(*(Revolute(),) * 6)).rank == 7 * 6 - 4 - 2


@pytest.mark.parametrize(
    ("trees", "wanted"),
    [
        (
            [TREES[name] for name in ("one_body", "three_children", "massless", "two_roots", "fixed_joints")],
            ["inertias", "rotors", "viscous:*"],
        ),
        (
            [
                *(TREES["autotree_branched"], planar(), planar(5, (0.0, 0.0, -9.81))),
                *(nd.tools.random_tree(5, seed) for seed in range(4)),
            ],
            ["inertias"],
        ),
    ],
    ids=["all kinds of joints", "planar and random"],
)
def test_rank_and_combinations_are_those_of_stacked_rows(trees, wanted):
    """Of all kinds of joints, fixed ones that were kept among them; and of planar arms, whose rank no other arm has."""
    for seed, tree in enumerate(trees):
        found = Regression.of(System(tree, sensor_set(ACCELERATIONS, TORQUES, UNLOADED)), wanted)
        base = base_parameters(found, seed=seed)
        W, _, _ = numbers_of(found, 3 * (base.rank // found.n_rows + 3), seed)
        assert_rank(W, base.rank)
        assert_close(W[..., list(base.independent)] @ base.G, W, SOLVED)


@pytest.mark.parametrize(
    ("name", "still"), [("autotree_chain", "joint3"), ("two_roots", "joint3"), ("three_children", "joint1")]
)
def test_joints_that_stand_still(name, still):
    """One in the middle, a spherical one, and a base: as many as rows tell at whose motions it stands anywhere."""
    tree = TREES[name]
    found = Regression.of(System(tree, sensor_set(ACCELERATIONS, TORQUES, UNLOADED)), ["inertias"])
    base = base_parameters(found, [still])
    W, _, _ = numbers_of(found, 60, seed=2, still=[still])
    assert_rank(W, base.rank)
    assert base.locked == (still,)


def test_a_spring_in_a_joint_that_stands_still_is_a_torque():
    both = base_of(planar(), ["springs"], locked=["joint1"])
    assert both.terms(0).keys() == {"stiffness:joint1", "preload:joint1"}
    assert both.rank == 3
    assert base_of(planar(), ["springs"]).rank == 4
    assert base_of(planar(), ["friction", "rotors"], locked=["joint1", "joint2"]).rank == 0


def test_unknown_wrenches_take_rows():
    """A robot on an unmeasured foot: as many as rows tell that are orthogonal to what the foot could push."""
    tree = TREES["three_children"]
    foot = tree.names[-1]
    touched = ({**WRENCHES, "links": {"except": foot}, "value": 0},)
    found = Regression.of(System(tree, sensor_set(ACCELERATIONS, ACTUATED, NO_MOTOR, *touched)), ["inertias"])
    base = base_parameters(found)
    W, N, _ = numbers_of(found, 80, seed=3)
    assert found.unknowns == tuple(f"fx:{foot}.{axis}" for axis in ("mx", "my", "mz", "fx", "fy", "fz"))
    assert base.n_unknown == 6
    left = []
    for k in range(len(W)):  # rows that no wrench moves, by SciPy's null space
        U, s, _ = np.linalg.svd(N[k])
        left.append(U[:, np.sum(s > 1e-9) :].T @ W[k])
    assert_rank(np.vstack(left), base.rank)
    assert base.rank < base_of(tree, sensors=(ACCELERATIONS, ACTUATED, NO_MOTOR, UNLOADED)).rank


@pytest.mark.parametrize("sigma", [{}, {"sigma": 1.0}])
def test_known_contact_wrenches_cost_nothing(sigma):
    tree = TREES["three_children"]
    foot = tree.names[-1]
    measured = {**WRENCHES, "links": foot, **sigma}
    touched = ({**WRENCHES, "links": {"except": foot}, "value": 0}, measured)
    in_the_air = base_of(tree, sensors=(ACCELERATIONS, ACTUATED, NO_MOTOR, UNLOADED))
    assert (
        base_of(tree, sensors=(ACCELERATIONS, {**ACTUATED, "sigma": 1.0}, NO_MOTOR, *touched)).rank == in_the_air.rank
    )


def test_gains_are_identifiable_up_to_one_factor():
    """All forces could be twice as large, and all gains."""
    base = base_of(planar(), ["inertias", "gains"])
    assert base.rank == 6 + 2 - 1
    ((tied, others),) = base.ties.items()
    assert base.parameters.names[tied] == "gain:tau:joint2"
    assert {*others, tied} == {*base.independent}


@pytest.mark.parametrize(
    ("wanted", "tree"),
    [
        (["inertias", "gain:tau:joint1"], planar()),
        (["inertias", "gains"], planar().replace(components=(nd.components.Friction(joints="all", viscous=1.0),))),
        (["gains", "offsets", "friction"], planar()),
        (["*:link2", "*:link2.*", "gains"], planar()),
    ],
    ids=["a gain is known", "friction is known", "inertias are known", "a link is known"],
)
def test_what_is_known_fixes_the_factor(wanted, tree):
    without = base_of(tree, [word for word in wanted if "gain" not in word])
    base = base_of(tree, wanted)
    assert not base.ties
    assert base.rank == without.rank + len(base.parameters.of_kinds("gain"))


def test_two_arms_have_a_factor_each():
    tree = nd.tools.random_tree(4, 3, kinds=["revolute"]).replace(parents=(-1, 0, -1, 2))
    base = base_of(tree, ["inertias", "gains"])
    assert len(base.ties) == 2
    ends = [{base.parameters.each[k].owner[-1] for k in (tied, *others)} for tied, others in base.ties.items()]
    assert sorted(map(sorted, ends)) == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize("sigma", [{}, {"sigma": 1.0}])
def test_a_measured_wrench_fixes_the_factor_unless_its_gain_is_unknown(sigma):
    sensors = (
        ACCELERATIONS,
        {**TORQUES, "sigma": 1.0},
        {**WRENCHES, "links": "link2", **sigma},
        {**UNLOADED, "links": "link1"},
    )
    assert not base_of(planar(), ["inertias", "gain:tau*"], sensors).ties
    assert len(base_of(planar(), ["inertias", "gains"], sensors).ties) == 1
    offsets = base_of(planar(), ["inertias", "offset:fx*"], sensors)
    names = [offsets.parameters.names[k] for k in offsets.independent]
    assert {name for name in names if "fx:" in name} == {f"offset:fx:link2.{axis}" for axis in ("mz", "fx", "fy")}


def test_free_flight_alone_does_not_identify_how_heavy_a_robot_is():
    """No torque is read, and no motor moves the base: the motion is the same with all masses doubled."""
    tree = nd.tools.random_tree(4, 5, kinds=["revolute"], chain=1.0)
    tree = tree.replace(joints=(TREES["one_free_body"].joints[0], *tree.joints[1:]))
    found = Regression.of(System(tree, sensor_set(ACCELERATIONS, NO_MOTOR, UNLOADED)), ["inertias"])
    base = base_parameters(found)
    assert len(base.ties) == 1
    assert base.rank == len(base.independent) - 1
    assert not base_of(tree, sensors=(ACCELERATIONS, ACTUATED, NO_MOTOR, UNLOADED)).ties
    n, rng = 60, np.random.default_rng(0)  # motions in the air, by RNEA and the inertia matrix
    Q = tree.random_configurations(n, rng)
    Qd, Qdd = rng.normal(size=(2, n, tree.nv))
    for k in range(n):
        push = rnea(tree, Q[k], Qd[k], Qdd[k])[:6]
        Qdd[k, :6] -= np.linalg.solve(crba(tree, Q[k])[:6, :6], push)
    W, _, _ = at_motions(found, Q, Qd, Qdd)
    assert_rank(W, base.rank)
    assert_rank(numbers_of(found, n, 0)[0], base.rank + 1)


def test_offsets_that_sensors_declare_are_parameters():
    declared = {**TORQUES, "sigma": 1.0, "offset": {"sigma": 2.0}}
    base = base_of(planar(), ["inertias"], (ACCELERATIONS, declared, UNLOADED))
    assert base.rank == 8
    assert {"offset:tau:joint1", "offset:tau:joint2"} <= {base.parameters.names[k] for k in base.alone}


def test_a_seed_changes_nothing_that_is_exact():
    a, b = (base_of(TREES["three_children"], seed=seed) for seed in (0, 1))
    assert (a.independent, a.dependent) == (b.independent, b.dependent)
    assert_close(a.K, b.K, SOLVED)
    assert a.error < 1e-25


def test_offsets_and_friction_come_first_then_links_from_the_root():
    parameters = base_of(planar(), ["inertias", "gains", "rotors", "offsets"]).parameters
    names = [parameters.names[k] for k in column_order(parameters)]
    assert names[:4] == ["rotor:joint1", "rotor:joint2", "offset:tau:joint1", "offset:tau:joint2"]
    assert names[4] == "I:link1.xx"
    assert names[13] == "m:link1"
    assert names[-2:] == ["gain:tau:joint1", "gain:tau:joint2"]


def test_combinations_in_words():
    base = base_of(planar())
    assert base.combination(0) == "I:link1.zz + m:link2"
    assert base.names[:2] == ("I:link1.zz +", "mc:link1.x +")
    assert base.terms(2) == {"mc:link1.y": 1.0}


def test_what_is_refused():
    with pytest.raises(nd.errors.InputError, match="depends on any of the parameters asked for: m:link1"):
        base_of(planar(), ["m:link1"])
    assert base_of(planar(), ["I:link2.zz"]).names == ("I:link2.zz",)
    with pytest.raises(nd.errors.UnknownModelNameError, match="joint 'joint9'"):
        base_of(planar(), locked=["joint9"])
