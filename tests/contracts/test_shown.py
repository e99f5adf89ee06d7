"""What is shown of every class has no broken line; names of sensors are labels, and no more."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

import numpy as np
from lxml import etree

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.robot_names import NamedRobot, Robots
from nori_dyn.measurements.sensor_set import SensorSet, measurement_types
from nori_dyn.model.joints import Free, axis_rotation
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.observe.report import ObservabilityReport, observability
from nori_dyn.report.shows import DOCUMENTS
from nori_dyn.system.builder import System
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables import Shown, document_of
from tests.covering import covering
from tests.standing import LAWS_ELSEWHERE
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set
from tests.trees import random_state
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
    """One of each that is shown, of a robot with names that try to break out."""
    tree = nd.autotree(4).replace(name="<b>robot</b>", names=NASTY, joint_names=JOINTS)
    exact = sensor_set(ACCELERATIONS, {**WRENCHES, "value": 0}, name="<i>exact</i>")
    system = nd.System(tree, exact)
    plan = nd.plan(system)
    solver = plan.solver("numpy")
    twice = sensor_set(
        {**ACCELERATIONS, "sigma": 0.5}, {**TORQUES, "sigma": 0.3}, {**WRENCHES, "value": 0}, name="<u>twice</u>"
    )
    monitor = nd.plan(nd.System(tree, twice), ["tau", f"fx:{NASTY[0]}"]).monitor("numpy")
    contacts = nd.SensorSet.from_dict(CONTACTS)
    plans = nd.plan(tree, contacts)
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
        "placement that survives": nd.place(tree, candidates, survive=1, where={"<b>walk</b>": Q, "at_zero": None}),
        "design": nd.placement.best_sensors(tree, candidates, 5),
        "Pareto front": nd.placement.pareto_front(tree, candidates),
        "exciting motion": nd.exciting_motion(tree, duration=4.0, harmonics=3, rate=10.0, starts=1, joints=JOINTS[1:]),
        "diagnosis": monitor.check(q, ones, y),
        "diagnosis of a batch": monitor.check_batch(Q, Ones, np.tile(y, (3, 1))),
        "identification": identified(tree),
    }


def identified(tree: nd.KinematicTree) -> Shown:
    """What is found in a log of a robot whose tip carries something."""
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


def test_all_that_is_shown_has_figures_as_json():
    for name, thing in things().items():
        figures = thing.to_dict()
        assert figures, name
        assert json.loads(json.dumps(figures)).keys() == figures.keys(), name
        assert thing.shown().json() == json.dumps(figures, indent=2), name


def kinds_of(kind: type) -> Iterator[type]:
    """Yield the classes that are derived from one, with it."""
    yield kind
    for each in kind.__subclasses__():
        yield from kinds_of(each)


def test_every_class_that_is_shown_has_a_document_in_the_module_that_is_named():
    for module, names in DOCUMENTS.items():
        for name in names:
            make = document_of(module, name)
            assert next(iter(get_type_hints(make).values())).__name__ == name
    for kind in kinds_of(Shown):
        if kind.__module__.startswith("nori_dyn.") and kind is not Shown:
            assert {each.__name__ for each in kind.__mro__} & {*chain(*DOCUMENTS.values())}, kind


def test_lists_in_the_entry_of_a_sensor_are_shown_in_a_line():
    felt = {"type": "accelerometer", "links": "link1", "components": ["ax", "ay"], "range": [[-1, 1], [-2, 2]]}
    said = str(sensor_set({**TORQUES, "joints": ["joint1", "joint2"]}, felt))
    assert "joints: joint1, joint2 " in said
    assert "range: [-1, 1], [-2, 2]; links: link1; components: ax, ay" in said


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


FEET = ["link1", "link5"]
SOLES = ["sole1", "sole5"]
FIVE_AXES = ["mx", "my", "fx", "fy", "fz"]
POSE = {"xyz": [0.1, 0.0, 0.2], "rpy": [0.3, 1.0, -2.0]}


def walker() -> KinematicTree:
    """A floating chain with a sole on either end, whose normals are not those of the links."""
    tree = autotree(5, skew=1.2)
    turns = (axis_rotation((1.0, 0.0, 0.0), 0.7), axis_rotation((0.0, 1.0, 0.0), -0.4))
    frames = {
        sole: Frame(tree.link(foot), Transform(E, np.array([0.0, 0.02, -0.1])))
        for sole, foot, E in zip(SOLES, FEET, turns, strict=True)
    }
    return tree.replace(joints=(Free(), *tree.joints[1:]), frames=frames)


TREE = walker()
CELL = {"type": "external_wrench", "components": FIVE_AXES}
REST = (
    {"type": "joint_acceleration", "joints": {"except": "joint3"}},
    {"type": "linear_relation", "name": "third", "terms": {"qdd:joint3": 1}, "value": None},
    {"type": "joint_torque", "joints": "joint1", "value": 0},
    {"type": "external_wrench", "links": {"except": FEET}, "value": 0},
)
CELLS: dict[str, list[dict[str, Any]]] = {
    "links": [{**CELL, "links": foot} for foot in FEET],
    "frames": [{**CELL, "links": sole} for sole in SOLES],
    "frames of links": [{**CELL, "links": foot, "frame": sole} for foot, sole in zip(FEET, SOLES, strict=True)],
    "poses": [{**CELL, "links": foot, "frame": POSE} for foot in FEET],
    "poses on frames": [
        {**CELL, "links": foot, "frame": {**POSE, "relative_to": sole}} for foot, sole in zip(FEET, SOLES, strict=True)
    ],
    "a frame of two": [{**CELL, "links": "sole1"}, {**CELL, "links": "link5"}],
}
"""Five-axis load cells under both feet, by where they read: what loses a rank where the normals are parallel."""

# One row a sensor, of one reading each, so that it can be named.
SENSORS: dict[str, dict[str, Any]] = {
    "accelerometer": {"links": "sole5"},
    "angular_accelerometer": {"links": "link3", "frame": POSE},
    "external_wrench": {"links": "link5", "components": ["mz"], "sigma": 0.1},
    "force_torque": {"joints": "joint4", "frame": POSE},
    "joint_acceleration": {"joints": "joint3", "sigma": 1},
    "joint_torque": {"joints": "joint3"},
    "linear_relation": {"terms": {"fx:link1.mz": 1}, "value": None},
    "link_acceleration": {"links": "sole1"},
    "net_wrench": {"links": "link5"},
    "prior": {"variables": ["fx:link5"], "sigma": 1},
    "rigid_contact": {"links": "sole5"},
}
CROSSED = ("fx:link5", "fx:link1", "qdd:joint3")  # each after the other's link, and after what it is not
NAMES = {
    "free": ("left", "link1", "other"),
    "relations": ("x:sole5", "x:sole1", "relation:sole5"),
    "components": ("f:link1.mx", "a:link5", "tau:joint1.fx"),
    "places": ("sole5", "dynamics", "sole1"),
}
"""What to call the cells and another sensor."""


def named(entries: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{**entry, "name": name} for entry, name in zip(entries, names, strict=False)]


def system(*entries: dict[str, Any]) -> System:
    return System(TREE, sensor_set(*REST, *entries))


def said(report: ObservabilityReport) -> list[object]:
    """All that a report finds."""
    conditions = [
        (c.condition, c.frames, c.meaning, c.ranks.tolist(), c.lost, [part.words for part in c.unseen])
        for c in report.conditions
    ]
    ranks = report.generic_rank, report.structural_rank, report.numerical_rank, report.n_rows, report.n_variables
    unseen = [(part.words, part.links, part.joints) for part in report.unseen]
    return [str(report), *ranks, report.unobservable, unseen, conditions]


def units_in_c(bound: System) -> list[str]:
    """The unit of each reading as the header of exported C has it."""
    found = SideBySide([bound], "").described
    assert list(found) == list(bound.measurement_names)
    return [unit for unit, _ in found.values()]


def assert_same(plain: System, other: System) -> ObservabilityReport:
    """Check that two systems are the same but for names, and return the report on them."""
    q, qd, *_ = random_state(TREE, 3)
    y = np.arange(plain.ny, dtype=float)
    np.testing.assert_array_equal(plain.D(q).toarray(), other.D(q).toarray())
    np.testing.assert_array_equal(plain.b(q, qd, y), other.b(q, qd, y))
    assert [row.units for row in plain.rows] == [row.units for row in other.rows]
    assert [row.is_dynamic for row in plain.rows] == [row.is_dynamic for row in other.rows]
    assert [row.frame is None for row in plain.rows] == [row.frame is None for row in other.rows]
    assert [row.equation.components for row in plain.rows] == [row.equation.components for row in other.rows]
    np.testing.assert_array_equal(other.reading({row.name: y[row.y] for row in other.measurements}), y)
    assert units_in_c(plain) == units_in_c(other)
    report, found = (observability(each, n=1) for each in (plain, other))
    assert said(report) == said(found)
    for one, same in zip(report.conditions, found.conditions, strict=True):
        np.testing.assert_array_equal(one.configurations, same.configurations)
    return report


@covering(strength=1, where=[*CELLS], names=NAMES | {"crossed": CROSSED})
def test_special_poses_are_those_of_the_frames_that_sensors_read_in(where, names):
    cells = CELLS[where]
    report = assert_same(system(*cells), system(*named(cells, names)))
    assert report.is_observable
    assert {condition.condition: condition.lost for condition in report.loses_rank} == {"parallel": 1, "coplanar": 1}
    assert str(report).count("a couple about the common normal") == 1


@covering(strength=1, kind=[*SENSORS], names={"crossed": CROSSED, "places": NAMES["places"]})
def test_renaming_a_sensor_changes_labels_only(kind, names):
    entry = {"type": kind, **SENSORS[kind]}
    if kind == "linear_relation":
        entry["name"] = "plain"
    entries = [*CELLS["frames"], entry]
    other = system(*named(entries, names))
    assert_same(system(*entries), other)
    assert other.rows[-1].name == ("relation:" if kind == "linear_relation" else "") + names[2]


def test_every_sensor_is_renamed():
    assert set(SENSORS) | LAWS_ELSEWHERE == set(measurement_types())


class Bare:
    """An equation of another package that says what it must, and nothing besides."""

    def __init__(self, equation: Any, name: str, group: str) -> None:
        self.name, self.group = name, group
        for part in ("source", "components", "is_measured", "sigma", "blocks", "bias"):
            setattr(self, part, getattr(equation, part))


class Others:
    """A set of sensors whose cells are such equations."""

    name = fingerprint = "others"

    def __init__(self, *labels: tuple[str, str]) -> None:
        self.labels = labels

    def equations(self, tree: KinematicTree) -> list[Any]:
        own = SensorSet.equations(sensor_set(*CELLS["links"]), tree)
        bare = [Bare(equation, *labels) for equation, labels in zip(own, self.labels, strict=True)]
        return [*SensorSet.equations(sensor_set(*REST), tree), *bare]


def test_equations_of_others_need_not_say_more_than_they_must():
    plain = System(TREE, Others(("fx:link1", "cell"), ("fx:link5", "cell")))
    assert [row.frame for row in plain.rows[-2:]] == [None, None]
    assert [row.units for row in plain.rows[-2:]] == [("",) * 5] * 2
    report = assert_same(plain, System(TREE, Others(("fx:sole5", "dynamics"), ("qdd:joint3", "accelerometer"))))
    assert said(report)[1:] == said(observability(system(*CELLS["links"]), n=1))[1:]
