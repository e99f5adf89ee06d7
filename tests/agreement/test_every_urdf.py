"""Every URDF of example-robot-data and icub-models loads, and inverse dynamics is Pinocchio's; or it says why not."""

import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from tests.peers import pin
from tests.robots import EXAMPLE_ROBOT_DATA, ICUB_MODELS, Pinocchio
from tests.tolerances import RECURSION, SOLVED, assert_close

FOLDERS = (EXAMPLE_ROBOT_DATA, ICUB_MODELS)
FILES = {str(path.relative_to(folder)): path for folder in FOLDERS for path in sorted(folder.rglob("*.urdf"))}
N_STATES = 2

WITHOUT_LINKS = ("ur_description/urdf/ur3.urdf",)
"""What a xacro left empty."""

ONE_BODY = ("hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf")
"""What moves as a whole or not at all."""

NEGATIVE = {
    "tiago_description/robots/tiago.urdf": ("base_antenna_left_link", "base_antenna_right_link"),
    "tiago_description/robots/tiago_dual.urdf": ("base_antenna_left_link", "base_antenna_right_link"),
    "tiago_description/robots/tiago_no_hand.urdf": ("base_antenna_left_link", "base_antenna_right_link"),
    "romeo_description/urdf/romeo_laas_small.urdf": ("body", "LHipPitch_link", "RHipPitch_link"),
}
"""Files in which a link has a negative principal moment, and these links."""

WEIGHTLESS = {"romeo_description/urdf/romeo_laas_small.urdf": ("l_gripper_joint", "r_gripper_joint")}
"""Joints that carry no mass, without which there is forward dynamics."""

HANDFUL = (
    "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
    "asr_twodof_description/urdf/TwoDofs.urdf",
    "double_pendulum_description/urdf/double_pendulum_simple.urdf",
    "hector_description/robots/quadrotor_base.urdf",
    "human_description/robots/human.urdf",
    "pr2_description/urdf/pr2.urdf",
    "romeo_description/urdf/romeo_laas_small.urdf",
    "iCubGazeboV2_7/model.urdf",
)
"""Files that differ much, and of which the other tests have none."""

BASES = ("fixed", "floating")
LOADABLE = [
    pytest.param(file, marks=[] if file in HANDFUL else pytest.mark.long) for file in FILES if file not in WITHOUT_LINKS
]


def loaded(file, base, **options):
    """The robot of a file, angles as they are in it; mimic joints and unreal inertias are let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        return nd.load_urdf(FILES[file], base=base, clean=False, **options)


def peer(file, base):
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    return pin.buildModelFromUrdf(str(FILES[file]), *root)


def states(tree, n, seed):
    """q (n, nq), qd and qdd (n, nv), and fx (n, n_links, 6)."""
    rng = np.random.default_rng(seed)
    q = np.array([tree.random_configuration(rng) for _ in range(n)])
    qd, qdd = rng.normal(size=(2, n, tree.nv))
    return q, qd, qdd, rng.normal(size=(n, tree.n_links, 6))


def test_the_walk_finds_robots():
    assert len(FILES) > 60
    assert {*WITHOUT_LINKS, *ONE_BODY, *NEGATIVE, *HANDFUL} <= FILES.keys()


def test_each_has_a_name():
    named = {robot.path for robot in nd.tools.robots().robots if robot.path is not None}
    assert named == {path for file, path in FILES.items() if file not in WITHOUT_LINKS}


@pytest.mark.parametrize("file", LOADABLE)
def test_inverse_dynamics(file):
    for base in BASES[file in ONE_BODY :]:
        tree, model = loaded(file, base), peer(file, base)
        assert tree.nv == model.nv
        given = states(tree, N_STATES, seed=len(file))
        tau = nd.rnea(tree, *(np.moveaxis(x, 0, -1) for x in given))
        assert_close(tau.T, list(map(Pinocchio(tree, model).rnea, *given)), RECURSION)


def test_what_describes_nothing_says_so():
    for file, base in product(WITHOUT_LINKS, BASES):
        with pytest.raises(nd.errors.ModelError, match=f"{Path(file).name}: .* has no links"):
            loaded(file, base)


FEW = (("tiago_description/robots/tiago_no_hand.urdf", "fixed"),)


@pytest.mark.parametrize(
    ("file", "base"),
    [pytest.param(*case, marks=[] if case in FEW else pytest.mark.long) for case in product(NEGATIVE, BASES)],
)
def test_plans_and_recursions_of_negative_inertias(file, base):
    locked, model = WEIGHTLESS.get(file, ()), peer(file, base)
    model = pin.buildReducedModel(model, [model.getJointId(name) for name in locked], pin.neutral(model))
    tree = loaded(file, base, locked=locked)
    q, qd, qdd, _ = (x[0] for x in states(tree, 1, seed=11))
    theirs = Pinocchio(tree, model)
    tau = theirs.rnea(q, qd, qdd)
    assert_close(theirs.aba(q, qd, tau), qdd, SOLVED)
    assert_close(nd.aba(tree, q, qd, tau), qdd, SOLVED)
    for problem, given in (("inverse_dynamics", qdd), ("forward_dynamics", tau)):
        if tree.n_links > 60 and problem == "forward_dynamics":
            continue  # planned in seconds, and of the same parts as its smaller kin
        plan = nd.plan(nd.System(tree, problem), outputs=("tau", "qdd"))
        estimate = plan.solver("numpy").solve(q, qd, given)
        assert_close(estimate.tau, tau, SOLVED)
        assert_close(estimate.qdd, qdd, SOLVED)
        assert not estimate.fell_back
