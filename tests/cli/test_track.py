"""Estimates over time by nori-dyn estimate: what is written, what is said at the end, and what is refused."""

from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.logs.log import whole_table
from tests.systems import ACCELERATIONS, SPEED, TORQUES, UNLOADED, WRENCHES, sensor_set

DT, N, PUSH = 0.01, 300, 3.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plan of an arm with memory, and a log in which something pushes it."""
    folder = tmp_path_factory.mktemp("track")
    tree, rng, t = nd.autotree(2), np.random.default_rng(0), DT * np.arange(N)
    system = nd.System(tree, nd.sensors("momentum_observer"))
    nd.plan(system, outputs=["qdd", "offset"]).save(folder / "arm.plan")
    nd.plan(nd.System(tree, nd.sensors("inverse_dynamics")), outputs=["tau"]).save(folder / "without.plan")
    q = np.column_stack([np.sin(3 * t), np.cos(2 * t)])
    qd = np.column_stack([3 * np.cos(3 * t), -2 * np.sin(2 * t)])
    qdd = np.column_stack([-9 * np.sin(3 * t), -4 * np.cos(2 * t)])
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
    y = tau + np.array([PUSH, 0.0]) + rng.normal(size=tau.shape)
    whole = {"t": t, "q": q, "qd": qd + 2e-3 * rng.normal(size=qd.shape), "y": y}
    np.savez(folder / "log.npz", **whole)
    np.savez(folder / "gap.npz", **whole | {"t": np.where(t > 1, t + 1, t)})
    np.savez(folder / "twice.npz", **whole | {"t": np.where(t == t[7], t[6], t)})
    np.savez(folder / "untimed.npz", **{name: whole[name] for name in ("q", "qd", "y")})
    np.savez(folder / "loud.npz", **whole | {"y": y + 3 * rng.normal(size=y.shape)})
    return folder


WAYS = {"filter": ("estimate",), "smooth": ("estimate", "--smooth")}


def arguments(way, folder, log="log.npz", out="out.npz", plan="arm.plan"):
    return *WAYS.get(way, (way,)), "--plan", folder / plan, "--input", folder / log, "--out", folder / out


@pytest.mark.parametrize("command", ["filter", "smooth"])
def test_estimates_are_written_with_their_deviations(told, folder, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = told(*arguments(command, folder))
    own = [line for line in output.splitlines() if str(folder) not in line]
    assert all(len(line) <= 80 for line in own)
    assert "expected 1 if the noise model is right" in output
    assert "The readings fit together." in output
    assert "do not fit their sigmas" in told(*arguments(command, folder, "loud.npz", out="loud_estimates.npz"))
    assert "offset:tau:joint1" in output
    assert ("mean delay" in output) == (command == "filter")
    assert ("each from the readings up to it" if command == "filter" else "each from all readings") in output
    plan = nd.Plan.load(folder / "arm.plan")
    expected = nd.smooth(folder / "log.npz", plan, causal=command == "filter")
    with np.load(folder / "out.npz") as found:
        np.testing.assert_array_equal(found["t"], expected.t)
        np.testing.assert_array_equal(found["offset"], expected["offset"])
        np.testing.assert_array_equal(found["sigma:qdd"], expected.deviations["qdd"])
        np.testing.assert_array_equal(found["qd:joint2"], expected.memory["qd:joint2"])
        assert found["sigma:qd:joint2"].shape == (N, 1)
        assert "offset:tau:joint1" not in found  # an output already
        error = found["offset"][N // 2 :, 0] - PUSH
        assert np.mean(np.abs(error) < 3 * found["sigma:offset"][N // 2 :, 0]) > 0.9
    assert not list(folder.glob(".partial-*"))


def test_figures_as_json(figures, folder):
    told = figures(*arguments("smooth", folder))
    assert told["ticks"] == told["samples"] == N
    assert 0.8 < told["ratio"] < 1.2
    assert told["p_value"] > 1e-3
    assert told["unseen"] == told["gaps"] == []
    mean, spread = told["memory"]["offset:tau:joint1"]["last"]
    assert abs(mean - PUSH) < 4 * spread
    assert told["delays"] is None
    late = figures(*arguments("filter", folder))["delays"]
    assert 0.01 < late["outputs"]["offset"] < 1
    assert 0.01 < late["memory"]["offset:tau:joint2"] < 1
    loud = figures(*arguments("filter", folder, "loud.npz"))
    assert loud["ratio"] > 5
    assert loud["p_value"] < 1e-6


def test_both_names_of_the_command_do_the_same(told, refused, folder):
    help = told("--help")
    assert [f" {name} " in help for name in ("estimate", "solve", "filter", "smooth")] == [True, True, False, False]
    out = {}
    for way in ("estimate", "solve", "smooth"):
        assert "expected 1 if" in told(*arguments(way, folder, out=f"{way}.npz"))
        out[way] = whole_table(folder / f"{way}.npz")
    assert all(np.array_equal(out["estimate"][column], values) for column, values in out["solve"].items())
    assert not np.array_equal(out["smooth"]["offset:tau:joint1"], out["estimate"]["offset:tau:joint1"])
    without = "a filter needs `memory`"
    assert without in refused(*arguments("smooth", folder, plan="without.plan", out="none.csv"))


def test_a_plan_with_memory_is_looked_at_too(told, folder):
    """By a filter and by a smoother, with the estimates in a file beside the page."""
    for way in ("filter", "smooth"):
        told(*arguments(way, folder), "--view", folder / "log.html")
        assert "Estimates over time are judged as a whole" in (folder / "log.html").read_text()
        written = whole_table(folder / "out.npz")
        told(*arguments(way, folder, out="alone.npz"))
        alone = whole_table(folder / "alone.npz")
        assert list(written) == list(alone)
        for name, values in alone.items():
            np.testing.assert_allclose(written[name], values, rtol=1e-9, atol=1e-9, err_msg=name)


def test_gaps_are_told(run, folder):
    status, output, errors = run(*arguments("filter", folder, "gap.npz"))
    assert status == 0
    assert "1, ending 2.01000 s after the first sample: the motion through them is unknown" in output
    assert "gaps, the longest 1.01 s" in errors


REFUSED = [
    ("twice.npz", "arm.plan", (), "sample 7: it is of 0.06 s, and the one before of 0.06 s: time must go on"),
    ("untimed.npz", "arm.plan", (), "Give the time between samples: --dt 0.001"),
    ("log.npz", "without.plan", (), "a filter needs `memory`"),
    ("log.npz", "arm.plan", ("--dt", 0), "--dt is 0: the time between samples must be positive"),
]


def test_what_is_refused(refused, folder):
    for (log, plan, more, words), command in product(REFUSED, ("filter", "smooth")):
        if command == "filter" and plan == "without.plan":
            continue  # each sample is estimated from its own readings
        assert words in refused(*arguments(command, folder, log, "none.csv", plan), *more), command
        assert not list(folder.glob("none*")), (command, words)


def test_what_no_reading_tells(refused, figures, tmp_path):
    tree, rng = nd.autotree(2), np.random.default_rng(0)
    sensors = [{**TORQUES, "sigma": 0.1}, {**WRENCHES, "links": ["link1"], "value": 0}, ACCELERATIONS]
    push = {"push": {"of": "fx:link2", "walk": 0.1, "sigma": 3}}
    nd.plan(tree, sensor_set(*sensors, name="pushed", memory=push), outputs=["tau"]).save(tmp_path / "arm.plan")
    still = np.zeros((30, 2))
    np.savez(tmp_path / "log.npz", t=DT * np.arange(30), q=still, qd=still, y=rng.normal(size=(30, 4)))
    told = figures(*arguments("smooth", tmp_path), "--backend", "numpy")
    assert {"fx:link2.mx", "fx:link2.fz"} & set(told["unseen"])
    assert len(told["unseen"]) < 6
    assert "no reading observes fx:link2" in refused(
        *arguments("smooth", tmp_path, out="refused.npz"), "--unseen", "refuse", "--backend", "numpy"
    )
    assert not list(tmp_path.glob("refused*"))


@pytest.fixture(scope="module")
def touched(tmp_path_factory):
    """A plan of a joint whose torque has an offset, a log in which it is pushed twice, and two in which it is not."""
    folder, rng = tmp_path_factory.mktemp("touched"), np.random.default_rng(1)
    torque = TORQUES | {"sigma": 0.5, "offset": {"sigma": 2.0}}
    sensors = sensor_set(torque, ACCELERATIONS, UNLOADED, name="untouched", memory={"constant": {"of": "offset"}})
    nd.plan(nd.autotree(1), sensors, outputs=["tau"]).save(folder / "joint.plan")
    t = DT * np.arange(4000)
    still = np.zeros((len(t), 1))
    for name in ("pushed", "free1", "free2"):
        tau = 1.0 + 0.75 * rng.normal(size=(len(t), 1))
        if name == "pushed":
            tau[(np.abs(t - 11) < 0.5) | (np.abs(t - 25) < 0.5)] += 6.0
        np.savez(folder / f"{name}.npz", t=t, q=still, qd=still, qdd=still, tau=tau)
    return folder


def test_collisions_are_events_and_columns_in_stretches_of_any_length(figures, told, touched):
    found = figures(*arguments_of_collisions(touched), "--chunk", 37)
    assert [event["name"] for event in found["events"]] == ["collision:tau:joint1"] * 2
    assert [event["begin"] for event in found["events"]] == pytest.approx([10.5, 24.5], abs=0.05)
    assert [event["end"] for event in found["events"]] == pytest.approx([11.5, 25.5], abs=0.1)
    with np.load(touched / "out.npz") as written:
        p, t = written["collision:tau:joint1"], written["t"]
    assert p[np.abs(t - 11) < 0.3].min() > 0.5
    assert p[(t < 10.5) | (np.abs(t - 18) < 5)].max() < 0.5
    output = told(*arguments_of_collisions(touched))
    assert "Events" in output
    assert "collision:tau:joint1" in output
    with np.load(touched / "out.npz") as written:
        np.testing.assert_allclose(written["collision:tau:joint1"], p, atol=1e-9)


def arguments_of_collisions(folder):
    where = "--plan", folder / "joint.plan", "--input", folder / "pushed.npz", "--out", folder / "out.npz"
    return "estimate", *where, "--alarms", 20, "--untouched", folder / "free?.npz"


def test_collisions_are_drawn(run, touched):
    page = touched / "page.html"
    assert run(*arguments_of_collisions(touched), "--view", page)[0] == 0
    text = page.read_text()
    assert "2 collisions" in text
    assert "20 an hour, by logs in which nothing touches the robot" in text
    assert run(*arguments_of_collisions(touched)[:5], "--alarms", 1e-3, "--view", page)[0] == 0
    assert "if noise is as the sensors say" in page.read_text()


def test_what_is_refused_of_collisions(refused, folder, touched):
    arguments = arguments_of_collisions(touched)
    assert "give alarms" in refused(*(each for each in arguments if each not in ("--alarms", 20)))
    assert "less than 3600" in refused(*arguments[:-2], "--alarms", 4000)
    assert "too few peaks" in refused(*arguments, "--alarms", 3000)
    assert "no log is called" in refused(*arguments[:-1], touched / "none*.npz")
    assert "not by a smoother" in refused(*arguments, "--smooth")
    without = "estimate", "--plan", folder / "without.plan", "--input", folder / "log.npz", "--out", folder / "x.npz"
    assert "sensors with `memory`" in refused(*without, "--alarms", 1)


LINK = """<link name="{0}"><inertial><mass value="2"/><origin xyz="0.2 0 0"/>
  <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.06 0.06"/></geometry></collision></link>"""

JOINT = """<joint name="{1}_joint" type="continuous"><parent link="{0}"/><child link="{1}"/><origin xyz="{2} 0 0"/>
  <axis xyz="{3}"/></joint>"""


def test_a_touch_is_an_event_with_its_place(figures, tmp_path):
    """Three links that turn about z, y and z: 15 N along -y of the last, 0.3 m from its joint."""
    links = [("world", "upper", 0, "0 0 1"), ("upper", "middle", 0.4, "0 1 0"), ("middle", "lower", 0.4, "0 0 1")]
    parts = "".join(LINK.format(child) + JOINT.format(*link) for link in links for child in link[1:2])
    urdf, log, page = tmp_path / "arm.urdf", tmp_path / "log.npz", tmp_path / "log.html"
    urdf.write_text(f'<robot name="arm"><link name="world"/>{parts}</robot>')
    tree = nd.load_robot(urdf)
    rows = TORQUES | {"sigma": 0.02}, ACCELERATIONS | {"sigma": 0.1}, UNLOADED | {"links": {"except": ["lower"]}}
    sensors = sensor_set(*rows, name="touched", memory={"speed": SPEED}, touch={"links": ["lower"]})
    plan = nd.plan(tree, sensors, outputs=["fx:lower"])
    plan.save(tmp_path / "arm.plan")
    q, still, fx, n = np.array([0.3, 0.5, -0.4]), np.zeros(3), np.zeros((3, 6)), 150
    fx[2] = *np.cross([0.3, 0.03, 0.0], [0.0, -15.0, 0.0]), 0.0, -15.0, 0.0
    free, held = nd.rnea(tree, q, still, still), nd.rnea(tree, q, still, still, fx)
    t = 0.01 * np.arange(n)
    is_held = (t > 0.6) & (t < 1.0)
    zeros = np.zeros((n, 3))
    tau = np.where(is_held[:, None], held, free) + 0.02 * np.random.default_rng(0).normal(size=(n, 3))
    np.savez(log, t=t, q=np.tile(q, (n, 1)), qd=zeros, qdd=zeros, tau=tau)
    where = "--plan", tmp_path / "arm.plan", "--input", log, "--view", page, "--out", tmp_path / "out.csv"
    (event,) = figures("estimate", *where, "--contacts", "recognise", "--meshes", urdf)["events"]
    assert event["name"] == "contact:lower"
    assert [event["begin"], event["end"]] == pytest.approx([0.61, 0.99], abs=0.02)
    assert event["point"][1] == pytest.approx(0.03, abs=0.02)
    assert abs(event["point"][0] - 0.3) < max(0.05, 2 * event["point"][3])
    assert "1 touch" in page.read_text()
    assert "on lower at (" in page.read_text()
    assert (tmp_path / "out.csv").read_text().splitlines()[0].endswith("touch.x,touch.y,touch.z,touch.deviation")
