"""The kinematic tree: what it refuses and answers, that it cannot change, how it is assembled, moves, is shown."""

import dataclasses
import math
import pickle
import re
from itertools import pairwise

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.errors import ModelError, UnknownModelNameError
from nori_dyn.model.assembly import JointData, assemble
from nori_dyn.model.inertia import LinkData, check_inertia
from nori_dyn.model.joints import JOINTS, Helical, Prismatic, Revolute, Spherical
from nori_dyn.model.kinematics import link_transforms, positions, world_transforms
from nori_dyn.model.paths import ancestors, path
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from tests.oracles import masses, poses
from tests.peers import Peer
from tests.robots import load
from tests.tolerances import PEER, RECURSION, ROUNDING, assert_close
from tests.trees import TREES


@pytest.fixture
def tree() -> KinematicTree:
    return TREES["two_roots"]


def test_what_is_no_tree_is_refused(tree):
    for changes, message in (
        ({"parents": (-1, 1, 1, -1, 3)}, r"link 'link2' \(number 1\) has parent number 1"),
        ({"parents": (-1, 3, 1, -1, 3)}, "a parent must come before its children"),
        ({"parents": (-2, 0, 1, -1, 3)}, "parent number -2"),
        ({"parents": (-1, 0, 1)}, r"5 links, but its other lists have \[3, 5\]"),
        ({"names": ("a", "b", "c", "b", "e")}, "two links named 'b'"),
        ({"joint_names": ("a", "a", "c", "d", "e")}, "two joints named 'a'"),
        ({"I": np.zeros((5, 6))}, r"shape \(5, 6\), expected \(5, 6, 6\)"),
        ({"gravity": (0.0, 0.0)}, "gravity must be three finite numbers"),
        ({"gravity": (0.0, 0.0, math.nan)}, "gravity must be three finite numbers"),
        ({"gravity": 9.81}, r"not 9\.81\. Write gravity=\(0, 0, -9\.81\)"),
        ({"gravity": -1.62}, r"not -1\.62\. Write gravity=\(0, 0, -1\.62\)"),
        ({"gravity": "down"}, r"not 'down'\. Write gravity=\(0, 0, -9\.81\)"),
        ({"frames": {"tip": Frame(5, Transform.identity())}}, "frame 'tip' is fixed to link number 5"),
        (
            dict.fromkeys(("names", "joint_names", "parents", "joints", "X_tree"), ()) | {"I": np.zeros((0, 6, 6))},
            "no moving link",
        ),
    ):
        with pytest.raises(ModelError, match=message):
            tree.replace(**changes)


def test_a_tree_cannot_change(tree):
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.name = "other"
    for array in (tree.I, tree.X_tree[0].E, tree.X_tree[0].r, tree.frames["tool"].X.E, tree.frames["tool"].X.r):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        tree.frames["new"] = tree.frames["tool"]


def test_a_tree_does_not_share_what_it_was_made_of():
    I = np.array([spatial_inertia(1.0, np.zeros(3), np.eye(3))])
    X, frames = Transform(np.eye(3), np.zeros(3)), {"tip": Frame(0, Transform.identity())}
    tree = KinematicTree("t", ("a",), ("j",), (WORLD,), (Revolute(),), (X,), I, frames)
    before = tree.fingerprint
    I[:], X.r[:], frames["new"] = 5, 5, Frame(0, X)
    assert tree.replace().fingerprint == before
    assert list(tree.frames) == ["tip"]
    copy = pickle.loads(pickle.dumps(tree))  # in another process
    assert copy.fingerprint == before
    assert copy.frames.keys() == tree.frames.keys()
    with pytest.raises(TypeError):
        copy.frames["new"] = None


def test_sizes_slices_and_questions_of_the_graph(tree):
    assert (tree.n_links, tree.nq, tree.nv) == (5, 3 + 1 + 4 + 7 + 1, 3 + 1 + 3 + 6 + 1)
    assert tree.q_slices == (slice(0, 3), slice(3, 4), slice(4, 8), slice(8, 15), slice(15, 16))
    assert tree.v_slices == (slice(0, 3), slice(3, 4), slice(4, 7), slice(7, 13), slice(13, 14))
    assert tree.quaternions == (slice(4, 8), slice(11, 15))
    assert repr(tree) == "KinematicTree('two_roots', 5 links, nq=16, nv=14)"
    assert tree.children == ((1,), (2,), (), (4,), ())
    assert tree.depths() == (1, 2, 3, 1, 2)
    assert [tree.is_root(i) for i in range(5)] == [True, False, False, True, False]
    assert tree.subtree(0) == (0, 1, 2)
    assert tree.subtree(3) == (3, 4)
    assert tree.subtree(2) == (2,)


def test_names_are_found_and_unknown_ones_suggest_the_closest(tree):
    assert tree.link("link3") == 2
    assert tree.joint("joint5") == 4
    assert tree.frame("link3").link == 2
    assert_close(tree.frame("link3").X.motion_matrix(), np.eye(6), ROUNDING)
    assert tree.frame("tool").link == 1
    assert tree.frame("wall").on_world
    for look, message in (
        (lambda: tree.link("lnk3"), "unknown link 'lnk3' in robot 'two_roots'. Did you mean 'link3'?"),
        (lambda: tree.joint("jiont5"), "unknown moving joint 'jiont5' in robot 'two_roots'"),
        (lambda: tree.frame("tol"), "Did you mean 'tool'?"),
        (lambda: tree.link("tool"), "'tool' is fixed to link 'link2'"),
        (lambda: tree.link("wall"), "'wall' is fixed to the world"),
    ):
        with pytest.raises(UnknownModelNameError) as caught:
            look()
        assert message in str(caught.value)


def test_random_configurations_are_seeded_and_quaternions_normalised(tree):
    q = tree.random_configuration(0)
    assert q.shape == (tree.nq,)
    assert np.array_equal(q, tree.random_configuration(np.random.default_rng(0)))
    assert not np.array_equal(q, tree.random_configuration(4))
    long = q.copy()
    long[4:8] *= 1 + 9e-4
    long[11:15] *= 1 - 9e-4
    assert_close(tree.normalised(long), q, ROUNDING)
    assert long[4] != q[4]  # the argument is not changed
    assert_close(tree.normalised(np.stack([long, q])), np.stack([q, q]), ROUNDING)
    straight = TREES["autotree_chain"]
    angles = straight.random_configuration(0)
    assert tree.normalised(q) is not q
    assert straight.normalised(angles) is angles


def test_fingerprint_changes_with_each_ingredient(tree):
    changes = (
        {},
        {"names": ("a", *tree.names[1:])},
        {"joint_names": ("a", *tree.joint_names[1:])},
        {"parents": (-1, 0, 0, -1, 3)},
        {"joints": (*tree.joints[:4], Prismatic((1.0, 0.0, 0.0)))},
        {"joints": (*tree.joints[:4], Revolute((0.0, 1.0, 0.0)))},
        {"joints": (*tree.joints[:4], Helical((1.0, 0.0, 0.0), pitch=0.1))},
        {"joints": (*tree.joints[:4], Helical((1.0, 0.0, 0.0), pitch=0.2))},
        {"gravity": (0.0, 0.0, -9.80665)},
        {"I": tree.I * (1 + 1e-15)},
        {"X_tree": (Transform.identity(), *tree.X_tree[1:])},
        {"X_tree": (Transform(tree.X_tree[0].E, tree.X_tree[0].r + 1e-9), *tree.X_tree[1:])},
        {"frames": {}},
        {"frames": tree.frames | {"tip": tree.frames["tool"]}},
        {"frames": tree.frames | {"tool": Frame(2, tree.frames["tool"].X)}},
        {"frames": tree.frames | {"tool": Frame(1, Transform.identity())}},
    )
    assert len({tree.replace(**change).fingerprint for change in changes}) == len(changes)
    for same in (
        {"name": "another", "notes": ("read from a file",)},
        {"gravity": np.array(tree.gravity)},
        {"frames": dict(reversed(tree.frames.items()))},
    ):
        assert tree.replace(**same).fingerprint == tree.fingerprint


# From lists of links and joints to a tree.

RNG = np.random.default_rng(31)


def random_transform() -> Transform:
    return random_tree(1, int(RNG.integers(1000))).X_tree[0]


def random_link(name: str) -> LinkData:
    A = RNG.normal(size=(3, 3))
    return LinkData(name, float(RNG.uniform(1, 2)), RNG.normal(size=3), np.trace(A @ A.T) * np.eye(3) - A @ A.T)


def star() -> tuple[list[LinkData], list[JointData]]:
    """Base -shoulder- arm =fixed= plate -wrist- hand, and base =fixed= stand -slide- cart."""
    names = ("base", "arm", "plate", "hand", "stand", "cart")
    ends = {
        "shoulder": ("base", "arm", Revolute()),
        "weld": ("arm", "plate", None),
        "wrist": ("plate", "hand", Revolute((0.0, 1.0, 0.0))),
        "foot": ("base", "stand", None),
        "slide": ("stand", "cart", Prismatic()),
    }
    joints = [JointData(name, a, b, random_transform(), model) for name, (a, b, model) in ends.items()]
    return [random_link(name) for name in names], joints


def test_frames_of_links_follow_what_carries_them():
    links, joints = star()
    tip = random_transform()
    links = [dataclasses.replace(link, frames={f"{link.name}_tip": tip}) for link in links]
    tree = assemble("star", links, joints)
    assert set(tree.frames) == {"base", "plate", "stand"} | {f"{link.name}_tip" for link in links}
    on_plate = tip @ joints[1].X_tree
    for name, on, X in (("hand", 1, tip), ("arm", 0, tip), ("base", WORLD, tip), ("plate", 0, on_plate)):
        assert tree.frames[f"{name}_tip"].link == on
        assert_close(tree.frames[f"{name}_tip"].X.motion_matrix(), X.motion_matrix(), PEER)


def test_a_massless_link_lumps_to_nothing_and_the_order_of_the_file_does_not_matter():
    links, joints = star()
    heavy, other = assemble("star", links, joints), assemble("star", links[::-1], joints[::-1])
    assert set(heavy.names) == set(other.names)
    for i, name in enumerate(heavy.names):
        j = other.names.index(name)
        assert_close(heavy.I[i], other.I[j], PEER)
        assert heavy.joint_names[i] == other.joint_names[j]
    links[2] = LinkData("plate")
    light = assemble("star", links, joints)
    assert_close(light.I[0], spatial_inertia(links[1].mass, links[1].com, links[1].I_com), ROUNDING)
    assert np.abs(light.I[0] - heavy.I[0]).max() > 0.1


SPOILED = {
    "joints 'weld' and 'twin' both connect 'arm' to 'plate'": lambda links, joints: joints.append(
        JointData("twin", "arm", "plate", Transform.identity(), Revolute())
    ),
    "11 roots: 'base', 'x0', .*'x6' and 3 more": lambda links, joints: links.extend(
        LinkData(f"x{k}") for k in range(10)
    ),
    "unknown parent link of joint 'shoulder': 'base'": lambda links, joints: links.clear(),
}


def test_what_cannot_be_assembled_is_refused():
    """More of it, as files have it, in test_urdf.py."""
    for message, spoil in SPOILED.items():
        links, joints = star()
        spoil(links, joints)
        with pytest.raises(ModelError, match=message):
            assemble("star", links, joints)


def test_joints_that_cannot_be_locked_are_told():
    links, joints = star()
    with pytest.raises(ModelError, match="no moving link"):
        assemble("star", links, joints, locked=("shoulder", "wrist", "slide"))
    ball = [dataclasses.replace(j, joint=Spherical()) if j.name == "wrist" else j for j in joints]
    with pytest.raises(ModelError, match=r"'wrist' \(spherical\) can be locked at its neutral"):
        assemble("star", links, ball, locked={"wrist": 0.3})
    assert assemble("star", links, ball, locked=("wrist",)).nv == 2


def test_world_transforms_are_poses():
    for tree in TREES.values():
        q = tree.random_configuration(1)
        X_0 = positions(tree, q).X_0
        assert_close(X_0[WORLD].motion_matrix(), np.eye(6), RECURSION)
        for i, (R, o) in enumerate(zip(*poses(tree, q), strict=True)):
            assert_close(X_0[i].E.T, R, RECURSION)
            assert_close(X_0[i].r, o, RECURSION)


def test_a_body_needs_those_that_carry_it_only():
    tree = TREES["mixed_8"]
    q, last = tree.random_configuration(2), tree.n_links - 1
    carriers = [*path(tree.parents, last)]
    assert carriers == [last, *ancestors(tree.parents, last)]
    X_0 = world_transforms(tree, link_transforms(tree, q, carriers))
    assert set(X_0) == {WORLD, *carriers}
    assert_close(X_0[last].motion_matrix(), positions(tree, q).X_0[last].motion_matrix(), RECURSION)
    assert [*path(tree.parents, WORLD)] == []


nx = Peer("networkx")
X = Transform.identity()


def robot(edges, n):
    """The links and joints of a graph; every link has some mass."""
    links = [LinkData(f"l{i}", 1.0, np.zeros(3), np.eye(3)) for i in range(n)]
    joints = [JointData(f"j{k}", f"l{i}", f"l{j}", X, Revolute((0.0, 0.0, 1.0))) for k, (i, j) in enumerate(edges)]
    graph = nx.DiGraph()
    graph.add_nodes_from(link.name for link in links)
    graph.add_edges_from((joint.parent, joint.child) for joint in joints)
    return links, joints, graph


def test_links_come_depth_first_in_the_order_of_the_file():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        names = rng.permutation(n)
        edges = [(names[rng.integers(i)], names[i]) for i in range(1, n)]
        links, joints, graph = robot([edges[k] for k in rng.permutation(n - 1)], n)
        tree = assemble("random", links, joints, base="floating")
        assert list(tree.names) == list(nx.dfs_preorder_nodes(graph, f"l{names[0]}")), seed


def test_the_cycle_that_is_told_of_is_one():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        pairs = [(i, j) for i in range(n) for j in range(n)]
        edges = [pairs[k] for k in rng.permutation(len(pairs))[: rng.integers(1, n + 3)]]
        links, joints, graph = robot(edges, n)
        try:
            assemble("random", links, joints, base="floating")
            message = ""
        except ModelError as error:
            message = str(error)
        assert ("has a cycle" in message) == (not nx.is_directed_acyclic_graph(graph)), seed
        told = re.findall(r"l\d+", message.partition("cycle:")[2])
        assert told[:1] == told[-1:], seed
        assert all(graph.has_edge(*pair) for pair in pairwise(told)), seed


def test_a_chain_of_thousands_of_links():
    links, joints, _ = robot([(i, i + 1) for i in range(2999)], 3000)
    assert assemble("chain", links, joints).depths()[-1] == 2999


def test_a_tree_as_text():
    lines = str(load("ur5", "floating")).splitlines()
    assert lines[0].split() == ["robot", "ur5"]
    assert "7 moving links, the longest chain 7" in lines[1]
    assert "12 (nv), 13 configuration coordinates (nq)" in lines[2]
    rows = {line.split()[1]: line.split()[2:] for line in lines if line[:1].isdigit()}
    assert rows["upper_arm_link"][:3] == ["shoulder_lift_joint", "revolute", "shoulder_link"]
    text = " ".join(" ".join(lines).split())
    assert "upper_arm_link shoulder_lift_joint revolute shoulder_link -6.28 to 6.28 8.393" in text
    assert "world root_joint free world 4.000" in text
    assert "note: " in text


def test_components_are_listed_and_long_robots_folded():
    parts = (
        nd.components.Rotor(joints="all", inertia=2e-5, gear=100),
        nd.components.Coupling(joint="joint2", of={"joint1": 0.5}),
        nd.components.Tendon(name="flexor", joints={"joint1": 0.01, "joint3": 0.02}, stiffness=200),
        nd.components.Friction(joints=[f"joint{k}" for k in range(1, 7)], viscous=1),
    )
    text = " ".join(nd.autotree(6).replace(components=parts).shown().text(80).split())
    assert "rotor all inertia 2e-5, gear 100" in text
    assert "coupling joint2_joint1 joint2 of joint1 0.5" in text
    assert "tendon flexor joint1 0.01, joint3 0.02 stiffness 200" in text
    assert "friction joint1, joint2, joint3, joint4 viscous 1" in text
    assert "and 2 more" in text
    assert "Components" not in str(nd.autotree(3))
    tree = nd.autotree(75)  # folded, unless there is room
    lines = str(tree).splitlines()
    assert lines[-2] == "... 15 more"
    assert not any("link75" in line for line in lines)
    assert "link75" in tree.shown().text(None)
    assert "link75" in tree._repr_html_()


def test_parents_are_featherstones_formula():
    """spatial_v2: parent(i) = floor((i - 2 + ceil(bf)) / bf), counting from 1 with the world as 0."""
    for branching in (1.0, 1.5, 2.0, 2.5, 3.0):
        tree = autotree(60, branching)
        for i in range(1, 61):
            assert tree.parents[i - 1] + 1 == math.floor((i - 2 + math.ceil(branching)) / branching)
        inner = [len(children) for children in tree.children[:20]]
        assert np.mean(inner) == pytest.approx(branching, abs=0.1)
    assert autotree(11, 1.5).parents == (-1, 0, 1, 1, 2, 3, 3, 4, 5, 5, 6)  # 1, 2, 1, 2, ... children
    assert autotree(5).fingerprint == autotree(5, 1.0, 0.0, 1.0).fingerprint
    assert autotree(1).n_links == 1


def test_links_are_thin_tubes_by_hand_numbers():
    """Length 1 kg 1 m radius 0.05: I_xx = m r^2, and m (6 r^2 + l^2) / 12 across it."""
    tree = autotree(3, taper=0.5)
    for i, (length, mass) in enumerate([(1.0, 1.0), (0.5, 1 / 8), (0.25, 1 / 64)]):
        body = masses(tree)[i]
        radius = length / 20
        across = mass * (6 * radius**2 + length**2) / 12
        assert body.mass == pytest.approx(mass, rel=1e-15)
        assert_close(body.com, [length / 2, 0, 0], ROUNDING)
        assert_close(body.I_com, np.diag([mass * radius**2, across, across]), ROUNDING)
    assert masses(tree)[0].I_com[1, 1] == pytest.approx(0.0845833333333, rel=1e-10)
    assert tree.I[0][2, 2] == pytest.approx(0.0845833333333 + 0.25, rel=1e-10)


def test_joints_sit_at_the_end_of_the_parent():
    skew = 0.4
    tree = autotree(4, branching=2.0, skew=skew, taper=0.5)
    assert_close(tree.X_tree[0].E, np.eye(3), ROUNDING)
    assert_close(tree.X_tree[0].r, np.zeros(3), ROUNDING)
    c, s = math.cos(skew), math.sin(skew)
    for i, length in ((1, 1.0), (2, 1.0), (3, 0.5)):
        assert_close(tree.X_tree[i].r, [length, 0, 0], ROUNDING)
        assert_close(tree.X_tree[i].E, [[1, 0, 0], [0, c, s], [0, -s, c]], ROUNDING)  # rotx of RBDA
    assert all(joint.kind == "revolute" and joint.axis == (0.0, 0.0, 1.0) for joint in tree.joints)
    assert tree.gravity == (0.0, 0.0, -9.81)


def test_autotree_refuses_what_makes_no_tree():
    nan, inf = math.nan, math.inf
    for name, values in {"n": (0, -1), "branching": (0.9, nan, inf), "skew": (nan,), "taper": (0.0, inf, nan)}.items():
        for value in values:
            with pytest.raises(ModelError, match="must be at least 1"):
                autotree(**{"n": 3, name: value})


def test_random_trees_have_every_joint_and_physical_bodies_and_obey_their_arguments():
    tree = random_tree(100, 1)
    assert {joint.kind for joint in tree.joints} == set(JOINTS) - {"fixed"}
    assert max(map(len, tree.children)) >= 3
    for name, body, X in zip(tree.names, masses(tree), tree.X_tree, strict=True):
        assert check_inertia(name, body.mass, body.com, (body.I_com + body.I_com.T) / 2)
        assert_close(X.E @ X.E.T, np.eye(3), ROUNDING)
        assert np.linalg.det(X.E) == pytest.approx(1.0)
    chain = random_tree(10, 2, kinds=("prismatic", "helical"), aligned=1.0, chain=1.0)
    assert chain.parents == tuple(range(-1, 9))
    assert {joint.kind for joint in chain.joints} == {"prismatic", "helical"}
    assert all(sorted(joint.axis) == [0.0, 0.0, 1.0] for joint in chain.joints)
    assert not any(0.0 in joint.axis for joint in random_tree(10, 2, kinds=("revolute",), aligned=0.0).joints)
    with pytest.raises(UnknownModelNameError, match=r"kind of joint 'revolut'.*'revolute'"):
        random_tree(3, 0, kinds=("revolut",))
    with pytest.raises(ModelError):
        random_tree(0, 0)
    assert random_tree(9, 5).fingerprint == random_tree(9, 5).fingerprint
    assert random_tree(9, 5).fingerprint != random_tree(9, 6).fingerprint
