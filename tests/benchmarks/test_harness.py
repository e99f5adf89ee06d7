"""Results of runs in turns: who answers otherwise, who is left out, what is printed, and what a baseline keeps."""

import numpy as np
import pytest

from benchmarks.documents import with_tables
from benchmarks.figures import DOCS, TABLES, read, tables_of
from benchmarks.harness import Budget, Result, Run, compare, difference, figure_tables, timing_tables
from benchmarks.peers.base import Peer, runs_of
from benchmarks.report import BAND, Baseline, RegressionError, Report
from benchmarks.robots import Robot, random_states
from benchmarks.suites import counts, scaling
from benchmarks.suites.base import Options
from benchmarks.suites.planning import STAGES, cold_and_warm
from benchmarks.urdf_writer import to_urdf
from nori_dyn.model.synthetic import autotree

BUDGET = Budget(3, 1e-4)
ANSWER = np.array([1.0, -2.0])


def run(off=0.0):
    return Run(lambda: None, lambda: ANSWER + off)


def test_another_answer_is_reported_and_not_timed():
    calls = []
    wrong = Run(lambda: calls.append(1), lambda: ANSWER + 1e-3)
    result = compare({"robot": "x"}, {}, {"ours": run()}, {"right": run(1e-9), "wrong": wrong}, {}, BUDGET)
    assert set(result.seconds) == {"ours", "right"}
    assert result.wrong == {"wrong": pytest.approx(1e-3 / 2)}
    assert not calls


@pytest.mark.parametrize("answer", [np.array([np.nan, 0.0]), np.zeros(3)])
def test_an_answer_that_is_none_is_wrong(answer):
    result = compare({}, {}, {"ours": run()}, {"peer": Run(lambda: None, lambda: answer)}, {}, BUDGET)
    assert result.wrong == {"peer": np.inf}


def test_times_are_those_of_a_state_and_ratios_are_taken_round_by_round(monkeypatch):
    times = {"ours": [1.0, 2.0, 4.0], "peer": [30.0, 60.0, 120.0]}
    monkeypatch.setattr("benchmarks.harness.in_turns", lambda calls, rounds, seconds: times)
    result = compare({}, {}, {"ours": Run(list)}, {"peer": Run(list, states=10)}, {}, BUDGET)
    assert result.seconds == {"ours": [1.0, 2.0, 4.0], "peer": [3.0, 6.0, 12.0]}
    assert result.ratio("peer") == (3.0, 3.0, 3.0)
    assert result.time("ours") == (1.5, 2.0, 3.0)


def test_difference_is_relative_to_the_largest_number():
    assert difference(np.array([100.0, 1.0]), np.array([100.0, 2.0])) == pytest.approx(0.01)
    assert difference(np.zeros(2), np.zeros(2)) == 0


def test_a_peer_that_is_not_installed_or_fails_is_left_out_by_name():
    def fail(robot, states):
        raise RuntimeError("it does not like\n this robot")

    peers = [
        Peer("Absent", "absent-package", "no_such_module.inside", {"task": fail}),
        Peer("Fails", "numpy", "numpy", {"task": fail}),
        Peer("Cannot", "numpy", "numpy", {"another": fail}),
        Peer("Works", "numpy", "numpy", {"task": lambda robot, states: run()}),
    ]
    tree = autotree(2)
    runs, skipped = runs_of(peers, "task", Robot("x", "fixed", tree), random_states(tree, 1, 0))
    assert set(runs) == {"Works"}
    assert skipped == {"Absent": "absent-package is not installed", "Fails": "it does not like this robot"}


MADE_UP = Result(
    {"robot": "an_arm", "n": 3},
    counts={"operations": 1234},
    seconds={"ours": [1e-6, 2e-6, 4e-6], "peer": [3e-6, 3e-6, 4e-6]},
    own="ours",
    figures={"MB": 64.0},
    differences={"peer": 2e-13},
    wrong={"other": 0.5},
)


def test_what_is_printed_are_medians_ratios_and_their_quartiles():
    (table,) = timing_tables("A tick", [MADE_UP])
    assert table.title == "A tick: an arm, n 3; operations 1,234"
    assert table.rows == (
        ("ours", "2", "", "", ""),
        ("peer", "3", "1.50", "1.25 - 2.25", "2e-13"),
        ("other", "not timed", "", "", "0.5"),
    )
    (table,) = figure_tables("Once", [MADE_UP, Result({})])
    assert table.columns == ("case", "operations", "ours [s]", "peer [s]", "MB")
    assert table.rows == (("an arm, n 3", "1,234", "2e-6", "3e-6", "64"),)
    (table,) = scaling.tables("Links", [MADE_UP])
    assert table.rows == (("an arm, n 3", "1,234", "64", "411", "667", "1.50"),)


def test_a_baseline_has_counts_and_the_medians_of_ratios_which_may_fall_by_a_band():
    report = Report(Options(quick=True), {"tick": [MADE_UP]})
    before = Baseline.of(report)
    assert before.counts == {"tick": {"an arm, n 3: operations": 1234}}
    assert before.ratios == {"tick": {"an arm, n 3: peer over ours": 1.5}}
    assert before.compare(report) == (1, 1)
    for factor in (0.1, 0.99 * BAND, 1.01 * BAND, 100.0):
        changed = before.model_copy(update={"ratios": {"tick": {"an arm, n 3: peer over ours": 1.5 * factor}}})
        if factor < BAND:
            changed.compare(report)
            continue
        with pytest.raises(RegressionError, match=r"peer over ours: \d+(\.\d+)? times faster before, 1\.5 now"):
            changed.compare(report)


def test_formulas_are_those_of_the_literature():
    n = 7
    assert counts.formula_rnea(n) == (93 * n - 69) + (81 * n - 66)  # multiplications and additions
    assert counts.formula_aba(n) == 2496  # 429 n - 507


def test_every_stage_takes_some_time_cold_and_warm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(to_urdf(autotree(2)))
    found = cold_and_warm(str(path), "fixed")
    assert list(found) == ["cold", "warm"]
    for seconds in found.values():
        assert tuple(seconds) == STAGES
        assert all(x >= 0 for x in seconds.values())


@pytest.mark.parametrize("document", TABLES)
def test_the_tables_of_the_documents_are_those_of_the_runs_that_are_kept(document):
    runs = read([DOCS / "bench" / folder / "bench.json" for folder in ("", "avx2", "throughput")])
    text = (DOCS / document).read_text()
    assert with_tables(text, "figures", tables_of(document, runs)) == text
