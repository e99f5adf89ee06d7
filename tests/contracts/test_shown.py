"""Everything that prints as a table: no line is too wide, no name is broken, and none is markup in the HTML."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from lxml import etree

import nori_dyn as nd
from nori_dyn.io.robot_names import NamedRobot, Robots
from nori_dyn.tables import Shown
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set
from tests.unit.identification.simulated import saved_log

NASTY = (
    "<a&b>",
    '"><script>alert(1)</script>',
    "a name with spaces",
    "a_name_that_is_as_long_as_names_of_links_can_be",
)
JOINTS = tuple(f"joint of {name}" for name in NASTY)

NASTY_STILL = JOINTS[1:2]

CONTACTS = {
    "name": "on <tip>",
    "measurements": [ACCELERATIONS, {**WRENCHES, "links": {"except": NASTY[-1]}, "value": 0}],
    "contacts": {
        "tip": {
            "closed": [{"type": "external_wrench", "links": NASTY[-1]}],
            "open": [{"type": "external_wrench", "links": NASTY[-1], "value": 0}],
        }
    },
}


@cache
def things() -> dict[str, Shown]:
    """Return one of each that is shown, of a robot with names that try to break out."""
    tree = nd.autotree(4).replace(name="<b>robot</b>", names=NASTY, joint_names=JOINTS)
    exact = sensor_set(ACCELERATIONS, {**WRENCHES, "value": 0}, name="<i>exact</i>")
    system = nd.System(tree, exact)
    plan = nd.plan(system, cache=False)
    solver = plan.solver("numpy")
    twice = sensor_set(
        {**ACCELERATIONS, "sigma": 0.5}, {**TORQUES, "sigma": 0.3}, {**WRENCHES, "value": 0}, name="<u>twice</u>"
    )
    monitor = nd.plan(nd.System(tree, twice), ["tau", f"fx:{NASTY[0]}"], cache=False).monitor("numpy")
    contacts = nd.SensorSet.from_dict(CONTACTS)
    plans = nd.plan_set(tree, contacts, cache=False)
    q, ones = tree.random_configuration(0), np.ones(4)
    Q, Ones = np.tile(q, (3, 1)), np.ones((3, 4))
    y = np.arange(8.0)
    blind = nd.System(tree, sensor_set(ACCELERATIONS, {**WRENCHES, "links": NASTY[0]}, name="<s>blind</s>"))
    both = {"name": "<b>shop</b>", "measurements": [{**WRENCHES, "value": 0}]}
    choices = {"measurements": [{**ACCELERATIONS, "sigma": 0.5}, {**TORQUES, "sigma": 0.3}]}
    candidates = nd.placement.Candidates.from_dict({**both, "candidates": choices})
    return {
        "tree": tree,
        "robots": Robots({name: NamedRobot(name, "<i>package</i>", None, JOINTS, "<b>robot</b>") for name in NASTY}),
        "sensors": exact,
        "sensors with contacts": contacts,
        "system": system,
        "weighted system": nd.System(tree, twice),
        "plan": plan,
        "weighted plan": monitor.solver.plan,
        "plan set": plans,
        "solver": solver,
        "switching solver": plans.solver("numpy"),
        "status": solver.tick(),
        "estimate": solver.solve(q, ones, ones),
        "batch": solver.solve_batch(Q, Ones, Ones),
        "report": nd.observability(system),
        "report of what does not suffice": nd.observability(blind),
        "conditioning": nd.conditioning(nd.System(tree, twice), n=12, workers=1),
        "identifiability": nd.identifiability(nd.System(tree, twice), ["inertias", "gains"], NASTY_STILL),
        "redundancy": nd.redundancy(nd.System(tree, twice), ("tau",)),
        "redundancy where all are critical": nd.redundancy(system, ("tau",)),
        "placement": nd.place(tree, candidates),
        "design": nd.best_sensors(tree, candidates, 5),
        "exciting motion": nd.exciting_motion(tree, duration=4.0, harmonics=3, rate=10.0, starts=1, joints=JOINTS[1:]),
        "diagnosis": monitor.check(q, ones, y),
        "diagnosis of a batch": monitor.check_batch(Q, Ones, np.tile(y, (3, 1))),
        "identification": identified(tree),
    }


def identified(tree: nd.KinematicTree) -> Shown:
    """Return what is found in a log of a robot whose tip carries something."""
    sensors = sensor_set(ACCELERATIONS, TORQUES, {**WRENCHES, "value": 0}, name="<i>torques</i>")
    with TemporaryDirectory() as folder:
        path = saved_log(Path(folder) / "log.npz", tree, n=300, sigma=0.1)
        return nd.identify(
            path, nd.System(tree, sensors), loaded=path, load_on=NASTY[-1], backend="numpy", physical=False
        )


def test_no_line_is_wider_than_a_terminal_and_repr_is_one_line():
    for name, thing in things().items():
        text = str(thing)
        assert text == thing.shown().text(), name
        assert max(map(len, text.splitlines())) <= 80, name
        assert text.count("\n") >= (2 if "Table" in repr(thing.shown()) else 0), name
        assert "\n" not in repr(thing), name
        assert repr(thing) != text, name


def test_no_name_is_broken():
    for name, thing in things().items():
        narrow, wide = str(thing).splitlines(), thing.shown().text(None)
        for each in (*NASTY, *JOINTS):
            if each in wide:
                assert any(each in line for line in narrow), name


def test_html_is_sound_whatever_the_names():
    tags = {"div", "p", "b", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    for name, thing in things().items():
        root = etree.fromstring(thing._repr_html_(), etree.XMLParser(recover=False, resolve_entities=False))
        assert not {element.tag for element in root.iter()} - tags, name
        assert [e.text for e in root.iter("b") if e.text in ("robot", "</b>")] == [], name
        if NASTY[0] in thing.shown().text(None):
            assert NASTY[0] in "".join(root.itertext()), name
        for row in root.iter("tr"):
            assert len(row) in (2, len(row.getparent().getparent()[0][0])), name
