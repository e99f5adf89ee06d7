"""What `print(tree)` says."""

import nori_dyn as nd
from tests.robots import load


def test_a_tree_as_text():
    lines = str(load("ur5", "floating")).splitlines()
    assert lines[0].split() == ["robot", "ur5"]
    assert "7 moving links, at most 7 in a row" in lines[1]
    assert "12 (nv); a configuration has 13 numbers (nq)" in lines[2]
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
    assert "coupling joint2_joint1 joint2 of joint1 0.500" in text
    assert "tendon flexor joint1 0.0100, joint3 0.0200 stiffness 200" in text
    assert "friction joint1, joint2, joint3, joint4 viscous 1" in text
    assert "and 2 more" in text
    assert "Components" not in str(nd.autotree(3))
    tree = nd.autotree(75)  # folded, unless there is room
    lines = str(tree).splitlines()
    assert lines[-2] == "... 15 more"
    assert not any("link75" in line for line in lines)
    assert "link75" in tree.shown().text(None)
    assert "link75" in tree._repr_html_()
