"""The layout of Foxglove: sound, and of topics and fields that a file of estimates has."""

import json
import re

import pytest

from nori_dyn.logs.fields import schema_of
from nori_dyn.report.foxglove import MOST_LINES, foxglove_layout, write_foxglove_layout
from tests.recorded_logs import checked_plan, estimated, exact_plan

pytest.importorskip("mcap", reason="needs the extra logs")
rosbags = pytest.importorskip("rosbags.typesys", reason="needs the extra logs")


def paths(layout: dict) -> dict[str, str]:
    """What is drawn, and what it is called."""
    plots = [panel for panel in layout["configById"].values() if "paths" in panel]
    return {path["value"]: path["label"] for plot in plots for path in plot["paths"]}


def ids(node) -> list[str]:
    """The panels of a layout, in their places."""
    return [node] if isinstance(node, str) else [*ids(node["first"]), *ids(node["second"])]


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    path = tmp_path_factory.mktemp("layout") / "layout.json"
    write_foxglove_layout(checked_plan(), path, is_judged=True)
    return json.loads(path.read_text())


def test_every_panel_has_its_place_and_every_place_its_panel(layout):
    placed = ids(layout["layout"])
    for panel in [layout["configById"][name] for name in placed]:
        placed += [name for tab in panel.get("tabs", ()) for name in ids(tab["layout"])]
    assert sorted(placed) == sorted(layout["configById"])
    assert all("!" in name for name in placed)
    assert {"configById", "globalVariables", "userNodes", "playbackConfig", "layout"} == set(layout)
    plan = exact_plan(None)  # panels with many lines show some of them
    plots = foxglove_layout(schema_of(plan.system, plan.outputs, True, True, False, {}))["configById"]
    on = {name: sum(path["enabled"] for path in panel["paths"]) for name, panel in plots.items() if "paths" in panel}
    assert max(on.values()) <= MOST_LINES
    assert min(on.values()) >= 1
    assert any(tab["title"] == "Accelerations" for tab in plots["Tab!estimates"]["tabs"])


def test_what_is_drawn_is_in_the_messages_of_a_written_file(layout, tmp_path):
    """As mcap and rosbags read them, which know nothing of us: each path leads to the number that it is called."""
    from mcap.reader import make_reader

    path = tmp_path / "estimates.mcap"
    estimated().save(path)
    store = rosbags.get_typestore(rosbags.Stores.ROS2_HUMBLE)
    first = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            if channel.topic not in first:
                first[channel.topic] = store.deserialize_cdr(message.data, schema.name)
    table = estimated().to_pandas().iloc[0]
    drawn = paths(layout)
    assert {"tau:panda_joint3", "fx:panda_link7.mz", "sigma:tau:panda_joint1", "p_value"} <= set(drawn.values())
    for where, label in drawn.items():
        topic, _, rest = where.partition(".")
        number = first[topic]
        for name, index in re.findall(r"(\w+)(?:\[(\d+)\])?", rest):
            number = getattr(number, name)
            number = number[int(index)] if index else number
        assert number == table[label], where
