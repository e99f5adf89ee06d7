"""Parameters of robots: their names, their values by the model, and the robot of other values."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction, Rotor, Spring
from nori_dyn.identification.parameters import GROUPS, Parameters, all_parameters, ten_of
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.recursions.rnea import rnea
from tests.peers import pin
from tests.robots import ROBOTS, load, pinocchio_model, to_pinocchio
from tests.tolerances import RECURSION, ROUNDING, assert_close
from tests.trees import TREES, random_state

COMPONENTS = (
    Rotor(joints="all", inertia=2e-5, gear=100.0),
    Friction(joints=["joint1", "joint3"], viscous=0.3, coulomb=0.7, width=0.1),
    Friction(joints="joint4", viscous=0.1, coulomb=1.0, static=1.5, width=0.1),
    Spring(joints="joint2", stiffness=7.0, reference=0.3, preload=0.5),
)
EVERYTHING = [word for word in GROUPS if word not in ("offsets", "gains")]


def with_components() -> nd.KinematicTree:
    return nd.tools.random_tree(4, 2, kinds=["revolute", "prismatic"]).replace(components=COMPONENTS)


def torques(tree, state):
    return rnea(tree, *state[:3])


def test_names_units_and_order():
    each = Parameters.of(with_components(), ["I:link1.*", "m:link1", "mc:link1.y", "rotors", "viscous:*"], {}).each
    names = [one.name for one in each]
    assert names[:3] == ["m:link1", "mc:link1.y", "I:link1.xx"]
    assert names[3:8] == ["I:link1.xy", "I:link1.yy", "I:link1.xz", "I:link1.yz", "I:link1.zz"]
    assert names[8:12] == [f"viscous:joint{k}" for k in (1, 2, 3, 4)]
    assert names[12:] == [f"rotor:joint{k}" for k in (1, 2, 3, 4)]
    units = {one.name: one.unit for one in each}
    assert (units["m:link1"], units["mc:link1.y"], units["I:link1.zz"]) == ("kg", "kg m", "kg m^2")
    kinds = [joint.kind for joint in with_components().joints]
    turns, shifts = kinds.index("revolute") + 1, kinds.index("prismatic") + 1
    assert (units[f"viscous:joint{turns}"], units[f"viscous:joint{shifts}"]) == ("N m s/rad", "N s/m")
    assert (units[f"rotor:joint{turns}"], units[f"rotor:joint{shifts}"]) == ("kg m^2", "kg")


def test_every_kind_is_of_a_group():
    kinds = {pattern.partition(":")[0] for patterns in GROUPS.values() for pattern in patterns}
    assert {each.kind for each in all_parameters(with_components(), {"tau:joint1": "N m"})} == kinds


def test_words_names_and_patterns():
    tree = nd.autotree(2)
    readings = {"tau:joint1": "N m", "tau:joint2": "N m"}
    assert Parameters.of(tree, "inertias").names == Parameters.of(tree, ["m:*", "mc:*", "I:*"]).names
    assert len(Parameters.of(tree, ["inertias", "m:link1", "m:*"])) == 20
    assert Parameters.of(tree, ["offsets", "gain:*2"], readings).names == (
        "offset:tau:joint1", "offset:tau:joint2", "gain:tau:joint2",
    )  # fmt: skip
    assert Parameters.of(tree, ["offsets"], {}).names == ()  # a word of which there is none
    assert Parameters.of(tree, ["gain:*"], readings).each[0].unit == ""


def test_joints_of_several_freedoms_have_no_spring_and_those_of_none_nothing():
    names = Parameters.of(TREES["two_roots"], ["springs", "rotors"]).names
    assert names == ("rotor:joint1", "rotor:joint2", "rotor:joint3", "rotor:joint5", "stiffness:joint2",
                     "preload:joint2", "stiffness:joint5", "preload:joint5")  # fmt: skip
    tree = TREES["fixed_joints"]
    still = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if not joint.nv]
    names = Parameters.of(tree, ["friction"]).names
    assert not any(name.endswith(joint) for name in names for joint in still)


def test_what_is_unknown_is_named_and_the_nearest_name_suggested():
    for word in ("mass:link1", "m:link9", "viscous:elbow*", "inertia"):
        with pytest.raises(nd.errors.UnknownNameError, match=r"unknown parameter '.*' in robot 'autotree"):
            Parameters.of(nd.autotree(2), [word])
    with pytest.raises(nd.errors.UnknownNameError, match="Did you mean 'inertias'"):
        Parameters.of(nd.autotree(2), ["inertia"])


def test_ten_parameters_are_pinocchios():
    model = pinocchio_model(ROBOTS["ur5"])
    tree = load("ur5", clean=False)
    prior = Parameters.of(tree, ["inertias"]).prior.reshape(-1, 10)
    for i, name in enumerate(tree.joint_names):
        expected = model.inertias[model.getJointId(name)].toDynamicParameters()
        assert_close(prior[i], expected, ROUNDING)
        assert_close(inertia_of_ten(prior[i]), tree.I[i], ROUNDING)
    assert_close(ten_of(inertia_of_ten(np.arange(1.0, 11.0))), np.arange(1.0, 11.0), ROUNDING)


def test_values_by_the_model():
    found = Parameters.of(with_components(), [*EVERYTHING, "offsets", "gains"], {"tau:joint1": "N m"})
    prior = dict(zip(found.names, found.prior, strict=True))
    assert prior["rotor:joint4"] == pytest.approx(0.2)
    assert (prior["viscous:joint3"], prior["coulomb:joint4"], prior["viscous:joint2"]) == (0.3, 1.0, 0.0)
    assert (prior["stiffness:joint2"], prior["preload:joint2"]) == (7.0, pytest.approx(0.5 + 7.0 * 0.3))
    assert (prior["offset:tau:joint1"], prior["gain:tau:joint1"]) == (0.0, 1.0)


def test_the_robot_of_the_values_before_is_the_same():
    for tree in (*TREES.values(), with_components()):
        found = Parameters.of(tree, EVERYTHING)
        same = found.applied(found.prior)
        assert_close(same.I, tree.I, ROUNDING)
        state = random_state(tree, 0)
        assert_close(torques(same, state), torques(tree, state), RECURSION)
        assert_close(Parameters.of(same, EVERYTHING).prior, found.prior, ROUNDING)


def test_values_of_one_joint_change_that_joint_only():
    tree = with_components()
    changed = Parameters.of(tree, ["viscous:joint3", "rotor:joint1"]).applied([0.9, 0.5])
    state = random_state(tree, 0)
    extra = torques(changed, state) - torques(tree, state)
    assert_close(extra, [(0.5 - 0.2) * state[2][0], 0.0, (0.9 - 0.3) * state[1][2], 0.0], RECURSION)
    after = Parameters.of(changed, EVERYTHING)
    before = Parameters.of(tree, EVERYTHING)
    differing = {name for name, a, b in zip(after.names, after.prior, before.prior, strict=True) if abs(a - b) > 1e-12}
    assert differing == {"viscous:joint3", "rotor:joint1"}


def test_values_of_what_the_model_does_not_have_add_it():
    tree = nd.tools.random_tree(3, 1, kinds=["revolute"])
    found = Parameters.of(tree, ["coulomb:joint2", "stiffness:joint1", "preload:joint1", "rotor:joint3"])
    assert not found.prior.any()
    coulomb, rotor, stiffness, preload = 2.0, 0.3, 5.0, 1.5
    values = dict(zip(["coulomb", "rotor", "stiffness", "preload"], (coulomb, rotor, stiffness, preload), strict=True))
    changed = found.applied([values[each.kind] for each in found.each])
    state = random_state(tree, 0)
    q, qd, qdd = state[:3]
    width = next(c.width for c in changed.components if isinstance(c, Friction))
    expected = [stiffness * q[0] - preload, coulomb * qd[1] / np.hypot(qd[1], width), rotor * qdd[2]]
    assert_close(torques(changed, state) - torques(tree, state), expected, RECURSION)


def test_inertias_of_other_values_are_pinocchios():
    tree = load("ur5", clean=False)
    found = Parameters.of(tree, ["*:forearm_link*", "m:wrist_3_link"])
    links = found.links()
    assert sorted(links) == [tree.link("forearm_link"), tree.link("wrist_3_link")]
    assert links[tree.link("wrist_3_link")][1:] == [-1] * 9
    values = found.prior * np.linspace(0.8, 1.3, len(found))
    model = pin.Model(pinocchio_model(ROBOTS["ur5"]))
    for name, part in (("forearm_link", slice(0, 10)), ("wrist_3_link", slice(10, 11))):
        joint = model.getJointId(tree.joint_names[tree.link(name)])
        ten = model.inertias[joint].toDynamicParameters()
        ten[: part.stop - part.start] = values[part]
        model.inertias[joint] = pin.Inertia.FromDynamicParameters(ten)
    q, qd, qdd, _ = random_state(tree, 4)
    expected = pin.rnea(model, model.createData(), *to_pinocchio(tree, model, q, qd), qdd)
    assert_close(rnea(found.applied(values), q, qd, qdd), expected, RECURSION)


def test_offsets_and_gains_change_no_robot():
    tree = nd.autotree(2)
    same = Parameters.of(tree, ["offsets", "gains"], {"tau:joint1": "N m"}).applied([3.0, 2.0])
    assert same.components == tree.components
    assert (same.I == tree.I).all()
