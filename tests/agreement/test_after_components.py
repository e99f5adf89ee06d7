"""Whatever comes after the system knows components by what they are: texts, files, pages, C, monitors, placement."""

import csv
import re
from functools import lru_cache

import numpy as np

import nori_dyn as nd
from nori_dyn.report.drawings import tree_drawing
from nori_dyn.report.pictures import draw_plan
from tests.closed_robots import robot_with_all_components
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set

PULL = {"type": "linear_relation", "name": "pull", "terms": {"tendon:cable": 1}, "value": None}
OUTPUTS = ("tau", "qdd", "tau_J", "loop:bar", "coupling", "tendon:cable", "tau_J:joint3", "f:link5")
NOISY = [{**entry, "sigma": 0.1} for entry in (TORQUES, ACCELERATIONS, PULL)]


@lru_cache(maxsize=2)
def planned(is_weighted: bool = False) -> nd.Plan:
    entries = NOISY if is_weighted else [TORQUES, PULL]
    system = nd.System(robot_with_all_components(), sensor_set(*entries, UNLOADED, name="after"))
    return nd.plan(system, outputs=OUTPUTS)


def states(n: int, is_weighted: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    system = planned(is_weighted).system
    rng = np.random.default_rng(3)
    Q = system.tree.random_configurations(n, rng)
    Qd = np.array([nd.tools.closed(system.tree, q, rng.normal(size=system.tree.nv))[1] for q in Q])
    return Q, Qd, rng.normal(size=(n, system.ny))


def test_texts_name_what_components_add():
    plan = planned()
    Q, Qd, Y = states(3)
    solver = plan.solver("numpy")
    system_text, one, many = str(plan.system), str(solver.solve(Q[0], Qd[0], Y[0])), str(solver.solve_batch(Q, Qd, Y))
    for words in ("torque in the joint", "internal wrench of loop", "force of coupling", "force of tendon"):
        assert words in system_text
    assert re.search(r"^loop +2 +0 +0 +0$", system_text, re.M)  # rows of a loop are neither readings nor known values
    assert "tau_J [" in one
    for text in (one, many):
        for name in ("loop:bar.fx", "loop:bar.fz", "coupling:belt", "tendon:cable"):
            assert name in text
        assert max(map(len, text.splitlines())) <= 80


def test_files_have_a_column_for_each_number(tmp_path):
    plan = planned()
    q, qd, y = states(3)
    np.savez(tmp_path / "log.npz", q=q, qd=qd, y=y)
    estimate = nd.estimate(tmp_path / "log.npz", plan, backend="numpy")
    estimate.save(tmp_path / "it.csv")
    with (tmp_path / "it.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loop:bar.fz"]) for row in rows] == estimate["loop:bar"][:, 1].tolist()
    assert [float(row["tau_J:joint2"]) for row in rows] == estimate["tau_J"][:, 1].tolist()
    assert [float(row["coupling:belt"]) for row in rows] == estimate["coupling"][:, 0].tolist()
    estimate.save(tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz") as arrays:
        assert np.array_equal(arrays["loop:bar"], estimate["loop:bar"])


def test_exported_c_has_a_field_for_each_number(tmp_path):
    files = planned().export(tmp_path / "it").files
    header = next(text for name, text in files.items() if name.endswith(".h"))
    for line in (
        "double loop_bar[2];",
        "double tau_J[COMPONENTS_NV];",
        "double tendon_cable;",
        "double coupling;",
        "loop:bar: internal wrench of loop bar (2).",
        "Constrained, as accelerations: coupling:belt, loop:bar.",
    ):
        assert line in header


def test_pictures_and_pages_draw_components(tmp_path):
    plan = planned()
    draw_plan(plan, tmp_path / "plan.png")
    short = nd.System(plan.system.tree, sensor_set(TORQUES, UNLOADED))
    report = nd.observability(short)
    assert "tendon:cable" in report.unseen[0].added
    nd.tools.save_html(report, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "loop:bar, between link5 and link6" in page
    assert "force of tendon" in page
    drawing = tree_drawing(short, report)
    assert len(drawing.ties) == 2
    assert {words for words, _ in drawing.sensors} == {"joint torque", "external wrench"}


def test_a_weighed_system_has_a_monitor_and_a_covariance():
    plan = planned(is_weighted=True)
    Q, Qd, Y = states(2, is_weighted=True)
    diagnosis = plan.monitor("numpy").check(Q[0], Qd[0], Y[0])
    assert np.isfinite(diagnosis.p_value)
    assert (diagnosis.deviations["loop:bar"] > 0).all()
    found = nd.conditioning(plan.system, Q, outputs=["loop:bar", "tau_J"])
    assert found.outputs[:2] == ("loop:bar.fx", "loop:bar.fz")
    np.testing.assert_allclose(found.sigma[0, :2], diagnosis.deviations["loop:bar"], 1e-6)
