"""Logs that are damaged in part: what is whole is estimated, as without the rest, and the rest is counted."""

import gzip
import warnings

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError, InputError, NoriWarning
from nori_dyn.logs.clock import NO_TIME, TWICE, invalid_times
from nori_dyn.report.shows.logs import report_warnings

N, DT = 40, 0.01
NAMES = [f"{kind}[{k}]" for kind in ("q", "qd", "qdd", "tau") for k in range(2)]


@pytest.fixture(scope="module")
def plans():
    """A plan of single instants and one with memory."""
    arm = nd.autotree(2)
    exact = nd.plan(nd.System(arm, "inverse_dynamics"), outputs=["tau"])
    return exact, nd.plan(nd.System(arm, "momentum_observer"), outputs=["qdd", "offset"])


@pytest.fixture
def table():
    """Times, q, qd, qdd, tau of an arm, a column a number."""
    rng = np.random.default_rng(2)
    return np.column_stack([DT * np.arange(N), rng.normal(0, 0.1, (N, 8)).cumsum(axis=0)])


def write(path, table, end="\n"):
    lines = [",".join(["t", *NAMES]), *(",".join(map(repr, row)) for row in table.tolist())]
    path.write_text("\n".join(lines) + end)
    return path


def check(plans, path, whole, left_out=None):
    """Check that the estimates of a log are those of rows that are whole, and return the report."""
    for plan in plans:
        found = nd.estimate(path, plan, backend="numpy")
        assert found.report.counts.left_out == (left_out or {})
        expected = nd.estimate(whole, plan, backend="numpy")
        np.testing.assert_array_equal(found.t, expected.t)
        for name, values in expected.values.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12)
    return found.report


CUTS = [
    "1.25,0.5,0",
    "1.25,0.5,0.1,0.1,0.1,0.1,0.1,0.1,",
    "1.25,0.5,0.1,0.1,0.1,0.1,0.1,0.1,-",
    "1",
    "1.25,1,2,3,4,5,6,7,3e",
]


@pytest.mark.parametrize("cut", CUTS)
def test_of_a_table_whose_last_line_is_cut_the_others_are_read(plans, table, tmp_path, cut):
    whole = write(tmp_path / "whole.csv", table)
    log = write(tmp_path / "log.csv", table, f"\n{cut}")
    with pytest.warns(NoriWarning, match=rf"log\.csv:{N + 2}: the last line is cut off, and left out"):
        check(plans, log, whole)


def test_a_last_line_without_an_end_is_taken_where_it_has_all_its_numbers(plans, table, tmp_path):
    check(plans, write(tmp_path / "log.csv", table, ""), write(tmp_path / "whole.csv", table))


def test_a_last_line_that_is_wrong_is_refused_as_any_other(plans, table, tmp_path):
    for end, said in (
        ("1.25,1,2,3,4,5,6,7,up", r"column 'tau\[1\]' is 'up'"),
        ("1,2,3,4,5,6,7,8,9,10", "has 10 cells"),
    ):
        with pytest.raises(FileFormatError, match=rf"log\.csv:{N + 2}: {said}"):
            nd.estimate(write(tmp_path / "log.csv", table, f"\n{end}"), plans[1], backend="numpy")


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_of_a_packed_table_that_is_cut_what_can_be_unpacked_is_read(plans, tmp_path, share):
    rng = np.random.default_rng(6)
    rows = np.column_stack([DT * np.arange(2000), rng.normal(size=(2000, 8))])  # more than a piece of gzip's
    packed = gzip.compress(write(tmp_path / "whole.csv", rows).read_bytes())
    (log := tmp_path / "log.csv.gz").write_bytes(packed[: int(share * len(packed))])
    with pytest.warns(NoriWarning, match=r"log\.csv\.gz: is cut off; the lines that are whole are read") as told:
        found = nd.estimate(log, plans[0], backend="numpy")
    assert len({str(each.message) for each in told}) == 1  # of the log, which is opened twice
    n = found.report.samples
    assert share - 0.1 < n / 2000 < share
    np.testing.assert_array_equal(
        found["tau"], nd.estimate(tmp_path / "whole.csv", plans[0], backend="numpy")["tau"][:n]
    )


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300, 1.7e9, -1.7e9])
def test_samples_at_times_that_are_none_are_left_out_and_counted(plans, table, tmp_path, wrong):
    broken, bad = table.copy(), [7, 8, 20] if not abs(wrong) < 1e50 else [7, 20]
    broken[bad, 0] = wrong
    whole = write(tmp_path / "whole.csv", np.delete(table, bad, axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = check(plans, write(tmp_path / "log.csv", broken), whole, {NO_TIME: len(bad)})
    assert f"left out: {len(bad)} samples {NO_TIME}" in list(report_warnings(report))


def test_rows_that_are_there_twice_are_left_out_and_counted(plans, table, tmp_path, monkeypatch):
    table[:, 3] = np.where(np.arange(N) % 2, 0.0, table[:, 3])
    rows = np.repeat(np.arange(N), np.where(np.isin(np.arange(N), [0, 11, 12, N - 1]), 3, 1))
    whole, log = write(tmp_path / "whole.csv", table), write(tmp_path / "log.csv", table[rows])
    check(plans, log, whole, {TWICE: 8})
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.BLOCK", 5)  # the one before may be in the block before
    check(plans, log, whole, {TWICE: 8})
    table[12] = table[11]
    table[12, 1] += 1e-9  # it says something else at that time: which of the two holds?
    with pytest.raises(InputError, match=r"log\.csv:14: it is of 0\.11 s, and the one before of 0\.11 s"):
        nd.estimate(write(log, table), plans[1], backend="numpy")


def test_a_log_without_any_time_that_is_one_says_why_nothing_is_left(plans, table, tmp_path):
    table[:, 0] = np.nan
    with pytest.raises(InputError, match=rf"no sample of it can be estimated: {N} {NO_TIME}"):
        nd.estimate(write(tmp_path / "log.csv", table), plans[0], backend="numpy")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1.7e9])
def test_streams_on_clocks_of_their_own_do_without_times_that_are_none(plans, table, tmp_path, wrong):
    (t, q, qd, qdd), mapping = (table[:, 0], table[:, 1:3], table[:, 3:5], table[:, 5:7]), []
    for kind, name in (("q", "a_q"), ("qd", "a_qd"), ("qdd", "b_qdd")):
        mapping.append({"of": f"{kind}:{{joint}}", "from": f"{name}[{{k}}]"})
    late = t + 0.3 * DT
    broken = late.copy()
    broken[9] = wrong
    for name, times in (("broken", broken), ("whole", np.delete(late, 9))):
        kept = np.delete(qdd, 9, axis=0) if name == "whole" else qdd
        np.savez(tmp_path / f"{name}.npz", a_t=t, a_q=q, a_qd=qd, b_t=times, b_qdd=kept)
    logs = [nd.read_log(tmp_path / f"{name}.npz", {"columns": mapping}) for name in ("broken", "whole")]
    found, expected = (nd.estimate(log, plans[0], backend="numpy") for log in logs)
    np.testing.assert_array_equal(found["tau"], expected["tau"])
    np.testing.assert_array_equal(found.t, expected.t)
    assert found.report.counts.streams["b"].wrong == 1
    assert f"of {N} samples of stream b: 1 {NO_TIME}" in list(report_warnings(found.report))


def test_which_times_are_none():
    def marked(*t, **more):
        return np.flatnonzero(invalid_times(np.array(t, dtype=float), **more)).tolist()

    assert marked(0, 1, 2) == marked(5) == marked() == marked(3, 1, 2) == []
    assert marked(0, 1e6, 2e6, 3e6) == []  # of a clock in other units, or with gaps
    assert marked(0, 1, 1.7e9, 1.7e9 + 1) == []  # it was set, and goes on
    assert marked(0, 1, 1.7e9, 2, 3) == [2]
    assert marked(1.7e9, 1.7e9 + 1, 0, 1.7e9 + 2) == [2]
    assert marked(0, np.nan, 1e9, np.inf, 1, 2) == [1, 2, 3]
    assert marked(1e9, 2, last=1.0) == [0]
