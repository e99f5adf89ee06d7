"""The report: what it holds, what is refused; as text, figures and page, with the workspace and failures."""

from dataclasses import replace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.joints import Free
from nori_dyn.observe.learned_exact import MotionRequirement
from nori_dyn.observe.null_space import UnobservableSubspace
from nori_dyn.report import findings
from nori_dyn.report.findings import MARGIN, describe_need, memory_notes, memory_words
from nori_dyn.report.page import to_html
from nori_dyn.report.shows.observability import observability_report_document, redundancy_document
from nori_dyn.tables import number, spaced
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.words import plain


@pytest.fixture
def cells() -> nd.System:
    """A floating chain on five-axis load cells at its ends."""
    tree = nd.autotree(5, skew=1.2)
    feet = ["link1", "link5"]
    return nd.System(
        tree.replace(joints=(Free(), *tree.joints[1:])),
        sensor_set(
            ACCELERATIONS,
            {"type": "joint_torque", "joints": "joint1", "value": 0},
            {"type": "external_wrench", "links": feet, "components": ["mx", "my", "fx", "fy", "fz"]},
            {"type": "external_wrench", "links": {"except": feet}, "value": 0},
        ),
    )


def test_ranks_at_given_configurations(cells):
    parallel = nd.configurations_where(cells.tree, "parallel", ("link1", "link5"), n=3)
    Q = np.vstack([parallel, [cells.tree.random_configuration(0)]])
    report = nd.observability(cells, Q, where=None)
    n = cells.shape[1]
    assert report.rank_at.tolist() == [n - 1] * 3 + [n]
    assert (report.gap_at[:3] > 1e8).all()
    assert report.gap_at[3] == np.inf
    assert (report.smallest_at > 1e-4).all()
    assert report.is_observable
    report = nd.observability(cells, where=None)
    assert report.rank_at.shape == (0,)
    assert report.conditions == ()
    assert (report.n_rows, report.n_variables) == cells.shape


def test_the_likely_poses_are_looked_at_unasked_and_the_same_seed_gives_the_same(cells):
    report, again = (nd.observability(cells, seed=4) for _ in range(2))
    assert str(again) == str(report)
    np.testing.assert_array_equal(again.conditions[1].configurations, report.conditions[1].configurations)
    assert [condition.condition for condition in report.conditions] == ["at_zero", "parallel", "coplanar"]
    assert {condition.frames for condition in report.conditions} == {(), ("link1", "link5")}
    assert [condition.condition for condition in report.loses_rank] == ["parallel", "coplanar"]
    lines = [" ".join(line.split()) for line in str(report).splitlines()]
    assert lines[0].startswith("Yes, but not at every pose. At almost every pose all")
    assert any(line.startswith("link1 and link5 with parallel normals 1 combination of the") for line in lines)
    assert "Unobservable at special poses: - a couple about the common normal" in " ".join(lines)
    assert "\n" not in repr(report)


def test_what_is_refused(cells):
    with pytest.raises(nd.errors.InputError, match=r"shape \(11,\), expected \(N, 11\)"):
        nd.observability(cells, cells.tree.neutral_configuration())
    with pytest.raises(nd.errors.InputError, match=r"configurations\[1, 0\] is nan"):
        nd.observability(cells, [cells.tree.neutral_configuration(), np.full(11, np.nan)])


def test_rows_with_a_sigma_count_as_rows_and_rows_may_be_few():
    tree = nd.autotree(3)
    system = nd.System(tree, sensor_set(ACCELERATIONS, TORQUES, UNLOADED | {"sigma": 1.0}))
    assert system.shape == (63, 60)
    assert nd.observability(system).is_observable
    report = nd.observability(nd.System(nd.autotree(2), sensor_set(ACCELERATIONS)))
    assert (report.n_rows, report.generic_rank, report.deficiency) == (28, 28, 12)
    assert {name.partition(":")[0] for name in report.unobservable} == {"f", "fx", "tau"}


TREE = nd.autotree(3)
ENOUGH = nd.System(TREE, sensor_set(ACCELERATIONS, UNLOADED))
SHORT = nd.System(TREE, sensor_set(ACCELERATIONS, {**WRENCHES, "links": ["link1", "link2"], "value": 0}))


def test_a_report_begins_with_the_verdict_and_says_what_is_not_seen():
    report = nd.observability(SHORT)
    text = plain(report)
    assert text.startswith("No, these sensors do not suffice. Whatever the pose,")
    assert "rank 54 of 60, 6 short" in text
    assert "Unobservable:" in text
    assert report.unseen[0].words in text
    assert "Not determined: fx:link3 (6), f:link1 (6), tau:joint1," in text
    assert "at the zero of every joint nothing more lost" in text
    assert "nothing of this robot" not in text
    assert plain(nd.observability(ENOUGH, where=None)).startswith("Yes, these sensors suffice.")


def test_text_figures_and_page_say_the_same():
    report = nd.observability(SHORT)
    figures = report.to_dict()
    page = to_html(report)
    answer, why, (to_add, *_) = findings.verdict(report), findings.reason(report), next(findings.advice(report))
    assert figures["verdict"] == {"level": "no", "heading": answer.heading, "words": answer.sentences[0]}
    assert figures["reason"] == why
    for words in (*answer.sentences, why, *map(findings.describe_unseen, report.unseen)):
        assert words in plain(report)
    page_text = " ".join(page.replace("&#39;", "'").split())
    for words in (answer.heading, *answer.sentences, why, MARGIN, to_add.text):
        assert words in page_text
    assert "rank lost" not in page
    assert "ranks lost" not in str(report)


def test_text_figures_and_page_say_the_same_of_poses_and_failures():
    system = nd.System(TREE, sensor_set({**ACCELERATIONS, "sigma": 0.5}, {**TORQUES, "sigma": 0.3}, UNLOADED))
    report, found, spare = nd.observability(system), nd.conditioning(system, n=6, workers=1), nd.redundancy(system)
    k = int(np.argmax(found.worst_sigma))
    median, worst = found.median_sigma[k], found.worst_sigma[k]
    at_worst = f"{number(worst, 2)} N m at the worst of 6 poses (no. {found.sigma[:, k].argmax()})"
    least = f"Least precise: {found.outputs[k]}, {at_worst}, {number(median, 2)} N m at the median"
    figures = found.to_dict()
    assert figures["known_least"].startswith(least)
    failures = spare.to_dict()["words"]
    text = " ".join((observability_report_document(report, found) + redundancy_document(spare)).text().split())
    page = " ".join(to_html(report, found, spare).split())
    for words in (least, failures, findings.reason(report)):
        assert words in text
        assert words.replace("'", "&#39;") in page


@pytest.mark.parametrize(
    ("lost", "ranks", "outcome"),
    [
        (1, [59, 59], "1 combination of the external wrenches on link1 and link3 not determined"),
        (2, [58, 60], "2 combinations of the external wrenches on link1 and link3 not determined, at the worst"),
        (0, [60, 60], "all determined, but only just"),
    ],
)
def test_what_becomes_of_poses(lost, ranks, outcome):
    report = nd.observability(ENOUGH)
    unseen = (UnobservableSubspace("internal", ("link1", "link3"), (), (), ()),) if lost else ()
    smallest = np.full(2, 1e-7 if not lost else 0.1)
    pose = replace(report.conditions[0], lost=lost, ranks=np.array(ranks), smallest=smallest, unseen=unseen)
    ((_, said, _),) = findings.special_poses(replace(report, conditions=(pose,))).rows
    assert said == outcome
    words = plain(replace(report, conditions=(pose,)))
    assert all(word in words for word in outcome.split())


def test_sensors_that_may_fail_as_text():
    found = nd.redundancy(ENOUGH, ("tau",))
    assert plain(found).startswith(
        "None of the 3 sensors may fail: without any one of them, some of tau:joint1, tau:joint2"
    )
    assert "some of tau is lost" in redundancy_document(found, ("tau",)).text()
    twice = nd.System(TREE, sensor_set(ACCELERATIONS, TORQUES, UNLOADED))
    spare = nd.redundancy(twice, ("tau",), size=2)
    assert "Any one of the 6 sensors may fail" in plain(spare)
    assert "\n" not in repr(spare)


def test_what_is_learned_over_time_in_text_figures_and_page():
    cells = {"type": "force_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 5.0}}
    sensors = sensor_set(ACCELERATIONS, cells, {**UNLOADED, "links": {"except": "link2"}})
    report = nd.observability(nd.System(nd.autotree(2), sensors), memory={"offsets": {"of": "offset", "walk": 0.01}})
    figures, page = report.to_dict()["over_time"], plain(to_html(report))
    text, said = plain(report), memory_words(report.over_time, report.n_variables)
    assert said.startswith("Of the 12 numbers of the memory the sensors determine 7 alone and 3 comb")
    assert figures["words"] == said
    assert (figures["ranks"], figures["states"]) == ([6, 10], 2)
    assert figures["seen_after"]["offset:ft:joint1.mx"] == 2
    assert figures["seen_after"]["offset:ft:joint1.mz"] is None
    assert {"offset:ft:joint1.mz": 1.0, "offset:ft:joint2.mz": -1.0} in figures["sums"]
    assert figures["needs"]["each"][0]["all_of"] == ("joint2",)
    for words in (said, *figures["lines"], *map(spaced, memory_notes(report.over_time, report.system.tree))):
        assert words in text
        assert words in page
    assert "offset:ft:joint1.my + offset:ft:joint2.fz: only if joint2 moves" in text
    assert "These drift by their random walk: offset (all 12)." in text
    assert max(map(len, str(report).splitlines())) <= 80
    assert nd.observability(SHORT).to_dict()["over_time"] is None


def test_what_has_to_move():
    for need, words in (
        (MotionRequirement(("m",), by_time=True), "as time passes, even at rest"),
        (MotionRequirement(("m",), all_of=("a",), is_only=True, enough=("a",)), "only if a moves"),
        (MotionRequirement(("m",), all_of=("a", "b"), is_only=True, enough=("a", "b")), "only if a and b move"),
        (MotionRequirement(("m",), any_of=("a", "b", "c"), is_only=True), "only if some joint moves"),
        (MotionRequirement(("m",), any_of=("a", "b"), is_only=True), "only if one of a and b moves"),
        (MotionRequirement(("m",), any_of=("a",)), "if a moves, for example"),
        (MotionRequirement(("m",), enough=("a", "b")), "if a and b move, for example"),
        (MotionRequirement(("m",), all_of=("c",), enough=("a", "c")), "only if c moves; c and a suffice, for example"),
    ):
        assert describe_need(need, ("a", "b", "c")) == words
