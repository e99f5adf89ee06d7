"""States and forces in other programs' conventions, against what these programs and finite differences say."""

from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import spatial_inertia
from nori_dyn.errors import UnknownNameError
from nori_dyn.interop.conventions import CONVENTIONS
from nori_dyn.model.joints import Continuous, Cylindrical, Fixed, Free, Helical, Planar, Prismatic, Revolute, Spherical
from tests.oracles import derivative
from tests.peers import mujoco
from tests.tolerances import SOLVED, assert_close

KINDS = (Free(), Revolute(), Continuous(), Prismatic(), Helical(pitch=0.2), Spherical(), Planar(), Cylindrical())

FLOATING = """
<mujoco><option gravity="0.5 -1 -9.81"/><worldbody>
  <body name="trunk" pos="0 0 1"><freejoint name="root"/>
    <inertial mass="3" pos="0.1 0.2 -0.1" quat="0.9 0.1 0.3 0.2" diaginertia="0.2 0.3 0.4"/>
    <body name="neck" pos="0 0.1 0.4"><joint name="ball" type="ball"/>
      <inertial mass="1" pos="0 0.2 0.1" diaginertia="0.02 0.03 0.04"/>
      <body name="head" pos="0 0.3 0.1"><joint name="hinge" axis="1 2 0"/>
        <inertial mass="2" pos="0.1 0 0.1" diaginertia="0.05 0.03 0.04"/></body></body>
    <body name="arm" pos="0.3 0 0"><joint name="slide" type="slide" axis="0 1 1"/>
      <inertial mass="1.5" pos="0 0.1 0" diaginertia="0.02 0.02 0.04"/></body>
  </body>
</worldbody></mujoco>"""


def tree_of(convention: str) -> nd.KinematicTree:
    """A tree with a joint of each kind that a convention has, and one that does not move."""
    joints = [joint for joint in KINDS if joint.kind not in CONVENTIONS[convention].absent]
    joints.insert(3, Fixed())
    source = nd.tools.random_tree(len(joints), seed=4)
    I = np.array([spatial_inertia(1.0 + i, np.array([0.1, 0.2, 0.3]), np.eye(3)) for i in range(len(joints))])
    return source.replace(joints=tuple(joints), I=I)


def state_of(tree: nd.KinematicTree, batch: tuple[int, ...], seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = np.array([tree.random_configuration(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, tree.nq)
    qd, qdd, tau = rng.normal(size=(3, *batch, tree.nv))
    fx = rng.normal(size=(*batch, tree.n_links, 6))
    fx[..., [i for i, joint in enumerate(tree.joints) if not joint.nv], :] = 0
    return q, qd, qdd, tau, fx


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_there_and_back(convention):
    tree = tree_of(convention)
    moving = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
    angles = np.concatenate([np.full(j.nq, "angle" in j.coordinates) for j in tree.joints])
    for batch, joints in product([(), (3,), (2, 2)], [None, moving[::-1]]):
        own = state_of(tree, batch, seed=1)
        there = nd.interop.to_convention(tree, convention, *own, joints=joints)
        back = nd.interop.from_convention(tree, convention, *there, joints=joints)
        turns = (back.q - own[0]) * angles / (2 * np.pi)
        assert_close(back.q - 2 * np.pi * np.round(turns), own[0], SOLVED)
        for value, expected in zip(back[1:], own[1:], strict=True):
            assert_close(value, expected, SOLVED)
        for place in np.ndindex(*batch):  # a batch is its states
            one = nd.interop.to_convention(tree, convention, *(x[place] for x in own), joints=joints)
            for value, expected in zip(there, one, strict=True):
                assert_close(value[place], expected, SOLVED)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_power_and_acceleration(convention):
    tree = tree_of(convention)
    q, qd, qdd, tau, _ = state_of(tree, (), seed=3)
    there = nd.interop.to_convention(tree, convention, q, qd, qdd, tau)
    np.testing.assert_allclose(there.tau @ there.qd, tau @ qd, rtol=1e-12)

    def velocity(t: float) -> np.ndarray:
        at = tree.integrate(q, qd + qdd * t / 2, t)  # right up to t^2, which is enough at t = 0
        return nd.interop.to_convention(tree, convention, at, qd + qdd * t).qd

    np.testing.assert_allclose(there.qdd, derivative(velocity, 1e-3), atol=1e-9)


def test_featherstones_velocity_is_taken_at_the_origin_of_the_world():
    tree = tree_of("featherstone")
    q, qd, *_ = state_of(tree, (), seed=4)
    there = nd.interop.to_convention(tree, "featherstone", q, qd)

    def pose(t: float) -> np.ndarray:
        quaternion, r = np.split(nd.interop.to_convention(tree, "featherstone", tree.integrate(q, qd, t)).q[:7], [4])
        w, x, y, z = quaternion
        M = np.eye(4)
        M[:3, 3] = r
        M[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        return M

    twist = derivative(pose) @ np.linalg.inv(pose(0))  # [w x, v0; 0 0], in world coordinates
    spatial = [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]]
    np.testing.assert_allclose(there.qd[:6], spatial, atol=1e-9)


@pytest.fixture(scope="module")
def floating(tmp_path_factory):
    path = tmp_path_factory.mktemp("conventions") / "floating.xml"
    path.write_text(FLOATING)
    return nd.load_mjcf(path), mujoco.MjModel.from_xml_path(str(path))


def test_featherstones_wrenches_do_the_same_work(floating):
    tree, _ = floating
    q, qd, qdd, tau, fx = state_of(tree, (), seed=6)
    there = nd.interop.to_convention(tree, "featherstone", q, qd, qdd, tau, fx)
    np.testing.assert_allclose(there.fx[0] @ there.qd[:6], fx[0] @ qd[:6], rtol=1e-12)
    np.testing.assert_allclose(there.tau[:6] @ there.qd[:6], tau[:6] @ qd[:6], rtol=1e-12)


def test_mujocos_inverse_and_forward_dynamics(floating):
    tree, model = floating
    data = mujoco.MjData(model)
    for seed in range(3):
        q, qd, qdd, tau, fx = state_of(tree, (), seed)
        there = nd.interop.to_convention(tree, "mujoco", q, qd, qdd, nd.rnea(tree, q, qd, qdd, fx), fx)
        data.qpos[:], data.qvel[:], data.qacc[:] = there.q, there.qd, there.qdd
        mujoco.mj_inverse(model, data)
        pushed = np.zeros(model.nv)
        for body, wrench in enumerate(there.fx, 1):
            mujoco.mj_applyFT(model, data, wrench[:3], wrench[3:], data.xpos[body], body, pushed)
        assert_close(there.tau, data.qfrc_inverse - pushed, SOLVED)
        data.qfrc_applied[:] = tau
        mujoco.mj_forward(model, data)
        own = nd.interop.from_convention(tree, "mujoco", data.qpos, data.qvel, data.qacc, data.qfrc_applied)
        assert_close(nd.aba(tree, own.q, own.qd, own.tau), own.qdd, SOLVED)


def test_a_wrench_on_a_link_that_does_not_move_is_carried():
    tree = tree_of("pinocchio")
    i = next(i for i, joint in enumerate(tree.joints) if not joint.nv)
    q, qd, qdd, _, fx = state_of(tree, (), seed=5)
    fx[i] = np.arange(1.0, 7.0)
    there = nd.interop.to_convention(tree, "pinocchio", q, qd, qdd, fx=fx)
    carried = nd.interop.from_convention(tree, "pinocchio", *there).fx
    assert not carried[i].any()
    assert_close(nd.rnea(tree, q, qd, qdd, carried), nd.rnea(tree, q, qd, qdd, fx), SOLVED)


def test_what_is_not_there_is_refused():
    tree = tree_of("nori")
    q = tree.neutral_configuration()
    with pytest.raises(UnknownNameError, match="unknown convention 'drake'"):
        nd.interop.to_convention(tree, "drake", q)
    for convention, kind in (("pinocchio", "cylindrical"), ("mujoco", "helical"), ("featherstone", "planar")):
        with pytest.raises(nd.errors.ModelError, match=f"is {kind}, which {convention} does not have"):
            nd.interop.to_convention(tree, convention, q)
    tree = tree_of("mujoco")
    q, v = tree.neutral_configuration(), np.zeros(tree.nv)
    for error, message, given in (
        (nd.errors.ModelError, "unknown moving joint 'elbow'", {"q": q, "joints": ("elbow",)}),
        (nd.errors.ModelError, "leave out", {"q": q, "joints": tree.joint_names[:1]}),
        (nd.errors.InputError, "qdd is given without qd", {"q": q, "qdd": v}),
        (nd.errors.InputError, "qd has shape", {"q": q, "qd": v[1:]}),
        (nd.errors.InputError, r"q\[3\] is nan", {"q": np.where(np.arange(tree.nq) == 3, np.nan, q)}),
        *((nd.errors.InputError, "q ", {"q": wrong}) for wrong in (1.0, [[1.0], [1.0, 2.0]], "q")),
    ):
        with pytest.raises(error, match=message):
            nd.interop.to_convention(tree, "mujoco", **given)
    with pytest.raises(nd.errors.InputError, match="quaternion"):
        nd.interop.from_convention(tree, "mujoco", np.zeros(tree.nq))
    tree = tree_of("pinocchio")
    numbers = nd.interop.to_convention(tree, "pinocchio", tree.neutral_configuration()).q
    with pytest.raises(nd.errors.InputError, match="cosine and sine of joint"):
        nd.interop.from_convention(tree, "pinocchio", np.where(np.arange(len(numbers)) == 8, 0.0, numbers))
