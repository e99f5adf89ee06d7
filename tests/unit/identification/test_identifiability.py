"""What is said of identifiable parameters: counts, words within 80 columns, and all of it as JSON."""

import json

import pytest

import nori_dyn as nd
from nori_dyn.tables import describe_sum, spaced
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set
from tests.trees import TREES


def planar() -> nd.KinematicTree:
    return nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))


@pytest.fixture(scope="module")
def panda():
    tree = load("panda", locked=("panda_finger_joint1", "panda_finger_joint2"))
    return nd.identifiability(nd.System(tree, "identification"))


def test_each_parameter_is_identifiable_in_one_way(panda):
    assert panda.rank == 43
    assert [len(panda.names_of(how)) for how in ("alone", "combined", "never")] == [20, 39, 11]
    assert len(panda.combinations) == 43 - 20
    combined = set().union(*(each.terms for each in panda.combinations))
    assert combined == set(panda.names_of("combined"))
    assert panda.identifiable["I:panda_link1.xx"] == "never"


@pytest.mark.parametrize(("name", "rank"), [("ur5", 36), ("xarm7", 43)])
def test_counts_of_arms_are_those_of_the_literature(name, rank):
    """7 n - 6 for an upright axis, by the rules of Mayeda, Yoshida and Osuka, and of Gautier and Khalil (1990).

    So it is of the Panda above: Gaz et al., Dynamic identification of the Franka Emika Panda robot (2019).
    """
    assert nd.identifiability(nd.System(load(name), "identification"), "inertias").rank == rank


def test_it_prints_within_80_columns_and_cuts_what_is_long(panda):
    lines = str(panda).splitlines()
    first = "43 combinations of 70 parameters are identifiable. 20 parameters are identifiable alone"
    assert " ".join(lines[:2]).startswith(first)
    assert max(map(len, lines)) <= 80
    assert any("+ 5 more" in line for line in lines)
    assert lines[-1] == "  ... 11 more"
    assert repr(panda) == "Identifiability('identification' on 'panda', 43 combinations of 70 parameters)"
    assert panda._repr_html_().startswith("<div>")


def test_json_has_all_of_it(panda):
    found = json.loads(json.dumps(panda.to_dict()))
    assert (found["rank"], found["robot"], found["sensors"]) == (43, "panda", "identification")
    assert len(found["parameters"]) == 70
    assert found["parameters"][0] == {
        "name": "m:panda_link1", "kind": "m", "of": "panda_link1", "unit": "kg", "identifiable": "never",
    }  # fmt: skip
    assert max(len(each["terms"]) for each in found["combinations"]) == 9
    assert found["combinations"][0] == {
        "name": "I:panda_link1.zz",
        "terms": {"I:panda_link1.zz": 1.0, "I:panda_link2.yy": 1.0},
    }
    assert 0 < found["error"] < 1e-25


def test_sums_in_words():
    terms = {"a": 1.0, "b": -0.25, "c": 2.0, "d": -1.0, "e": 1e-5}
    assert spaced(describe_sum(terms)) == "a - 0.250 b + 2 c - d + 1e-5 e"
    assert describe_sum({"a": 1.0, "rounding": 3e-16}) == "a"
    assert spaced(describe_sum(terms, 3)) == "a - 0.250 b + 2 c + 2 more"
    assert spaced(describe_sum(dict(list(terms.items())[:3]), 3)) == "a - 0.250 b + 2 c"


def test_a_common_factor_is_said_in_words():
    found = nd.identifiability(nd.System(planar(), "identification"), ["inertias", "gains"])
    (factor,) = found.common_factors
    assert factor.name == "gain:tau:joint2"
    assert "gain:tau:joint1" in factor.others
    assert {found.identifiable[name] for name in ("gain:tau:joint1", "gain:tau:joint2")} == {"alone"}
    assert "Identifiable up to one common factor: gain:tau:joint2, I:link1.zz" in " ".join(str(found).split())
    assert found.to_dict()["common_factors"] == [{"name": factor.name, "others": list(factor.others)}]
    known = planar().replace(components=(nd.components.Friction(joints="joint1", viscous=0.1),))
    assert "common factor" not in str(nd.identifiability(nd.System(known, "identification"), ["inertias", "gains"]))


def test_unknown_wrenches_and_joints_that_stand_still_are_said():
    tree = TREES["three_children"]
    foot = tree.names[-1]
    touched = {**WRENCHES, "links": {"except": foot}, "value": 0}
    found = nd.identifiability(nd.System(tree, sensor_set(ACCELERATIONS, TORQUES, touched)), locked="joint2")
    text = " ".join(str(found).split())
    assert "standing still joint2" in text
    assert f"unknown wrenches fx:{foot}.mx" in text
    assert found.to_dict()["still"] == ["joint2"]
    assert found.to_dict()["unknown_wrenches"]["eliminated"] == 6
    nothing_unknown = nd.identifiability(nd.System(planar(), "identification"))
    assert "unknown wrenches" not in str(nothing_unknown)


@pytest.mark.parametrize("given", ["panda", nd.autotree(2), None])
def test_what_is_no_system_is_refused(given):
    with pytest.raises(nd.errors.WrongKindError, match=r"nd\.identifiability"):
        nd.identifiability(given)


def test_names_that_do_not_exist_are_refused():
    system = nd.System(planar(), "identification")
    with pytest.raises(nd.errors.UnknownNameError, match="unknown parameter 'masses'"):
        nd.identifiability(system, "masses")
    with pytest.raises(nd.errors.UnknownModelNameError, match="'elbow'"):
        nd.identifiability(system, locked=["elbow"])
    assert nd.identifiability(system, "inertias").rank == 6


def test_former_names_of_attributes_warn():
    found = nd.identifiability(nd.System(nd.autotree(2), "identification"), ["inertias"])
    with pytest.warns(DeprecationWarning, match=r"Identifiability\.told is now identifiable"):
        assert found.told == found.identifiable
    with pytest.raises(AttributeError, match="'Identifiability' object has no attribute 'tolled'"):
        _ = found.tolled
