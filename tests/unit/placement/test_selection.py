"""The cheapest sensors, and what does as well, against all subsets, each judged by an SVD of D in doubles."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import (
    InputError,
    InvalidConfigError,
    NoPlacementError,
    NoriError,
    PlanError,
    SensorConfigError,
    UnknownModelNameError,
    UnknownPoseError,
    UnknownSensorNameError,
)
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.redundancy import redundancy
from nori_dyn.observe.report import observability
from nori_dyn.placement import design, selection
from nori_dyn.placement.candidates import Candidates
from nori_dyn.placement.cases import Demand
from nori_dyn.placement.cover import CoverProblem
from nori_dyn.placement.design import Design, best_sensors
from nori_dyn.placement.selection import Placement, place
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.words import plain

KINDS = {
    "joint_acceleration": "joints",
    "joint_torque": "joints",
    "accelerometer": "links",
    "force_torque": "joints",
    "angular_accelerometer": "links",
}


def random_candidates(seed: int, more: int = 0) -> tuple[KinematicTree, Candidates, tuple[str, ...] | None]:
    """A small robot, random candidates of one row or several, random rules, and what is asked for."""
    rng = np.random.default_rng(seed)
    tree = autotree(4, 1 + seed % 2, 0.7, 0.9)
    single_rows = seed % 3 == 0
    entries, costs = [], {}
    for _ in range(9 + more):
        kind = str(rng.choice([*KINDS][: 2 if single_rows else None]))
        owner = str(rng.choice(tree.joint_names if KINDS[kind] == "joints" else tree.names))
        if {"type": kind, KINDS[kind]: owner} not in entries:
            entries.append({"type": kind, KINDS[kind]: owner})
    for number, entry in enumerate(entries):
        entry |= {"name": f"s{number}", "sigma": 0.1 * (1 + number)}
        costs[entry["name"]] = float(rng.integers(1, 12))
    names = [entry["name"] for entry in entries]
    rules = {}
    if seed % 4 == 1 and not single_rows:
        rules = {"must": [names[0]], "at_most_one": [names[1:3], names[3:6]]}
    if seed % 4 == 2:
        rules = {"together": {"pair": names[:2]}}
    free = {**UNLOADED, "links": {"except": tree.names[-1]}} if seed % 5 == 4 else UNLOADED
    data = {"name": "random", "measurements": [free], "candidates": {"measurements": entries}, "costs": costs, **rules}
    outputs = (None, ("tau",), ("tau:joint1",), ("qdd",))[int(rng.integers(4))]
    return tree, Candidates.from_dict(data), outputs


class Judge:
    """Which subsets determine the outputs at some configurations (N, nq) in each contact state."""

    def __init__(self, tree: KinematicTree, candidates: Candidates, outputs: tuple[str, ...] | None, Q: Any):
        self.choices = candidates.on(tree)
        self.cases = []
        for offered in self.choices.offered:
            system = offered.system
            wanted = [outputs is None or any(name.startswith(o) for o in outputs) for name in system.variable_names]
            for q in Q:
                D = system.D(q).toarray()
                own, fixed = {name: [] for name in self.choices.sensors}, []
                for row in system.rows:
                    own.get(offered.rows.get(row.key), fixed).extend(range(row.slice.start, row.slice.stop))
                    if not row.is_exact:
                        D[row.slice] *= np.sqrt(system.weights[list(row.weight_of_rows)])[:, None]
                _, values, V = np.linalg.svd(D[fixed])
                N = V[int(np.sum(values > 1e-9 * values[0])) :].T
                self.cases.append((N, {name: D[rows] @ N for name, rows in own.items()}, wanted))
        self.known: dict[tuple[str, ...], bool] = {}

    def determines(self, some: tuple[str, ...]) -> bool:
        if some not in self.known:
            self.known[some] = all(self.at(case, some) for case in self.cases)
        return self.known[some]

    def at(self, case: tuple[Any, ...], some: tuple[str, ...]) -> bool:
        N, own, wanted = case
        if some:
            _, values, V = np.linalg.svd(np.vstack([own[name] for name in some]))
            N = N @ V[int(np.sum(values > 1e-9)) :].T
        return np.abs(N[wanted]).max(initial=0) < 1e-7

    def deviation(self, some: tuple[str, ...]) -> float:
        """Root mean square of the standard deviations of the outputs with such a subset, which determines them."""
        variances = []
        for N, own, wanted in self.cases:
            half = N[wanted] @ np.linalg.pinv(np.vstack([own[name] for name in some]), rcond=1e-10)
            variances += [np.sum(half**2, axis=1)]
        return float(np.sqrt(np.mean(variances)))

    def allowed(self, survive: int) -> Iterator[tuple[str, ...]]:
        """Yield the subsets that suffice, whichever so many fail, and that the rules allow."""
        for k in range(len(self.choices.sensors) + 1):
            for some in itertools.combinations(self.choices.sensors, k):
                rules = all(len(set(some) & set(group)) <= 1 for group in self.choices.at_most_one)
                rests = itertools.combinations(some, max(k - survive, 0))
                if rules and set(self.choices.must) <= set(some) and all(map(self.determines, rests)):
                    yield some

    def least_cost(self, survive: int = 0) -> float | None:
        """The least cost of those; None where there are none."""
        return min(map(self.choices.cost, self.allowed(survive)), default=None)


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.long)])
def test_the_cheapest_of_all_subsets_of_which_any_may_fail_at_poses_and_in_contact_states(seeds):
    """A robot that stands on its last link at times, at poses at which its joints are parallel or at zero."""
    found = 0
    for seed in seeds:
        tree, candidates, outputs = random_candidates(seed, more=4)
        if seed % 3 == 1:
            touch = {"type": "external_wrench", "links": tree.names[-1], "components": ["mx", "my", "mz"], "value": 0}
            open_ = {"type": "external_wrench", "links": tree.names[-1], "components": ["fx", "fy", "fz"], "value": 0}
            there = [{**UNLOADED, "links": {"except": tree.names[-1]}}, touch]
            contacts = {"tip": {"closed": [], "open": [open_]}}
            present = sensor_set(*there, name="random", contacts=contacts)
            candidates = replace(candidates, present=present)
        survive = 1 + (seed % 5 == 4)
        where = {"at_zero": None, "walk": tree.random_configurations(2, seed)} if seed % 2 else None
        Q = [tree.random_configuration(seed), *([np.zeros(tree.nq), *where["walk"]] if where else [])]
        expected = Judge(tree, candidates, outputs, Q).least_cost(survive)
        if expected is None:
            with pytest.raises(NoPlacementError):
                place(tree, candidates, outputs, survive=survive, where=where)
            continue
        placed = place(tree, candidates, outputs, seed=seed, survive=survive, where=where)
        assert placed.is_optimal, seed
        assert placed.cost == pytest.approx(expected), seed
        found += 1
    assert found >= len(seeds) / 3


def candidates_of(**changes) -> Candidates:
    entries = [ACCELERATIONS, TORQUES]
    data = {"name": "c", "measurements": [UNLOADED], "candidates": {"measurements": entries}, **changes}
    return Candidates.from_dict(data)


def test_methods_and_costs_by_type():
    tree = autotree(3)
    matroid = place(tree, candidates_of(costs={"joint_torque": 5, "tau:joint2": 0.5}), None)
    assert matroid.method.startswith("greedy, and proven")
    assert "tau:joint2" in matroid.chosen
    assert matroid.cost == matroid.bound == 2.5
    part = place(tree, candidates_of(costs={"joint_torque": 5}), ("tau:joint3",))
    assert part.method == "greedy, and proven to be the cheapest"
    assert part.chosen == ("qdd:joint1", "qdd:joint2", "qdd:joint3")
    assert [m.type for m in part.sensors.measurements] == ["external_wrench", *["joint_acceleration"] * 3]
    cheap = place(tree, candidates_of(costs={"joint_torque": 2}), ("tau:joint3",))
    assert cheap.chosen == ("tau:joint3",)


def test_a_search_that_ends_early_says_so():
    tree = autotree(6)
    entries = [{"type": "accelerometer", "links": "all"}, {"type": "force_torque", "joints": "all"}]
    data = {"name": "c", "measurements": [UNLOADED], "candidates": {"measurements": entries}}
    whole = place(tree, Candidates.from_dict(data), ("tau",))
    hasty = place(tree, Candidates.from_dict(data), ("tau",), effort=1)
    assert whole.is_optimal
    assert hasty.bound <= whole.cost <= hasty.cost
    assert hasty.is_optimal or hasty.method.startswith("greedy; the search")


def test_what_cannot_be_placed():
    tree = autotree(3)
    with pytest.raises(NoPlacementError, match="the cheapest costs 3"):
        place(tree, candidates_of(budget=2))
    one = [{"type": "joint_torque", "joints": "joint1"}]
    with pytest.raises(NoPlacementError, match="leave 2 of 3 outputs open: tau:joint2, tau:joint3") as error:
        place(tree, candidates_of(candidates={"measurements": one}))
    assert error.value.undetermined == ("tau:joint2", "tau:joint3")
    pairs = [[f"qdd:joint{k}", f"tau:joint{j}"] for k in (1, 2, 3) for j in (1, 2, 3)]
    pairs += [["qdd:joint1", "qdd:joint2"], ["tau:joint1", "tau:joint2"]]
    with pytest.raises(NoPlacementError, match="'at_most_one' leaves no set"):
        place(tree, candidates_of(at_most_one=pairs))
    with pytest.raises(NoPlacementError, match="of those in 'must'"):
        place(tree, candidates_of(at_most_one=[["qdd:joint1", "qdd:joint2"]], must=["qdd:joint1", "qdd:joint2"]))
    wrong: list[tuple[dict[str, Any], type[NoriError], str]] = [
        ({"effort": 0}, InputError, "effort"),
        ({"survive": -1}, InputError, "survive is -1"),
        ({"survive": "one"}, InputError, "survive is 'one'"),
        ({"survive": 1, "where": [[0.0]]}, InputError, "shape"),
        ({"where": {"mine": np.zeros((0, 3))}}, InputError, "'mine' has no configurations"),
        ({"where": "lying"}, UnknownPoseError, "special pose 'lying'"),
        ({"where": {"flat": "link9"}}, UnknownModelNameError, "link9"),
        ({"states": [()]}, PlanError, "no contacts"),
        ({"survive": 4}, NoPlacementError, "failed, the other 2 of them together leave"),
        ({"deviation": 1.0}, SensorConfigError, "has no sigma"),
    ]
    for asked, error, message in wrong:
        with pytest.raises(error, match=message):
            place(tree, candidates_of(), **asked)
    assert place(tree, candidates_of(), where="at_zero").demand.at.keys() == {"at_zero"}


def test_candidates_that_make_no_sense():
    twice = {"a": ["tau:joint1", "qdd:joint1"], "b": ["tau:joint1", "qdd:joint2"]}
    for changes, error, message in (
        ({"costs": {"gyro": 3}}, UnknownSensorNameError, "'costs' of candidates 'c'"),
        ({"costs": {"joint_torque": -1}}, InvalidConfigError, r"costs\.joint_torque: .*greater than or equal to 0"),
        ({"must": ["tau:joint9"]}, UnknownSensorNameError, "Did you mean 'tau:joint"),
        ({"together": twice}, SensorConfigError, "two"),
        ({"together": {"tau:joint1": ["tau:joint1", "qdd:joint1"]}}, SensorConfigError, "has the name of a sensor"),
        ({"candidates": {"measurements": []}}, SensorConfigError, "no sensors to choose from"),
        ({"candidates": {"measurements": [{"type": "gyro"}]}}, UnknownSensorNameError, "gyro"),
        ({"price": 3}, InvalidConfigError, "price"),
        ({"candidates": None}, InvalidConfigError, "candidates"),
    ):
        with pytest.raises(error, match=message):
            place(autotree(3), candidates_of(**changes))


def test_what_is_there_anyway_is_not_the_choice_of_its_name():
    """Components of one wrench, some known without a sensor, and some to be bought."""
    tree = autotree(2)
    known = [
        ACCELERATIONS,
        {"type": "external_wrench", "links": "link1", "value": 0},
        {"type": "external_wrench", "links": "link2", "components": ["mx", "my", "fx", "fz"], "value": 0},
    ]
    entries = [
        {"type": "external_wrench", "links": "link2", "components": ["mz", "fy"]},
        {"type": "force_torque", "joints": "joint2"},
    ]
    costs = {"external_wrench": 1, "force_torque": 5}
    data = {"name": "c", "measurements": known, "candidates": {"measurements": entries}, "costs": costs}
    found = place(tree, Candidates.from_dict(data), None)
    assert (found.chosen, found.cost) == (("fx:link2",), 1)
    assert set(redundancy(System(tree, found.sensors), ("fx",)).lost["fx:link2"]) == {"fx:link2.mz", "fx:link2.fy"}


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 24), marks=pytest.mark.long)])
def test_exchanges_are_all_that_suffice(seeds):
    judged = 0
    for seed in seeds:
        tree, candidates, outputs = random_candidates(seed)
        with contextlib.suppress(NoPlacementError):
            found = place(tree, candidates, outputs, seed=seed)
            choices = candidates.on(tree)
            assert found.exchanges.keys() == set(found.chosen), seed
            for name, others in found.exchanges.items():
                kept = [sensor for sensor in found.chosen if sensor != name]
                costs = [choices.costs[other] for other in others]
                assert costs == sorted(costs), seed
                for other in set(choices.sensors) - set(found.chosen):
                    report = observability(System(tree, choices.sensor_set([*kept, other])), where=None)
                    open_ = [each for each in report.unobservable if outputs is None or each.startswith(outputs)]
                    is_allowed = choices.is_allowed([*kept, other]) and name not in choices.must
                    assert (other in others) == (is_allowed and not open_), seed
                    judged += 1
    assert judged > len(seeds)


def test_priors_of_a_robot_are_no_choices():
    """Friction at rest is a variable with a prior, whose rows come after those of all sensors."""
    friction = nd.components.Friction(joints="all", coulomb=0.5, width=0.05, stiction={"scatter": 0.6})
    found = place(autotree(3).replace(components=(friction,)), candidates_of())
    assert found.chosen == ("qdd:joint1", "qdd:joint2", "qdd:joint3")
    assert all(others == ("tau:joint1", "tau:joint2", "tau:joint3") for others in found.exchanges.values())


def test_a_set_survives_at_each_of_many_poses():
    tree, candidates = autotree(4, 1, 0.7, 0.9), candidates_of(costs={"joint_torque": 2.5})
    Q = tree.random_configurations(100, 0)
    found = place(tree, candidates, survive=1, where={"walk": Q})
    judge = Judge(tree, candidates, ("tau",), Q)
    assert len(found.chosen) > 4
    assert all(map(judge.determines, itertools.combinations(found.chosen, len(found.chosen) - 1)))
    assert len(found.demand.configurations) == 100


def test_what_takes_too_long_is_left_out(monkeypatch):
    tree, candidates, outputs = random_candidates(0)
    problem = CoverProblem.of(choices := candidates.on(tree), outputs, 0, Demand.of(choices, 0, None, 0))
    monkeypatch.setattr(selection, "MOST_LOOKS", 1)
    assert selection.exchanges(problem, list(choices.costs)) == {}


TREE = nd.autotree(12)
CANDIDATES = Candidates.from_dict(
    {
        "name": "c",
        "measurements": [UNLOADED],
        "candidates": {"measurements": [ACCELERATIONS | {"sigma": 0.1}, TORQUES | {"sigma": 1.0}]},
        "costs": {"joint_acceleration": 250.5},
    }
)


@cache
def cheapest() -> Placement:
    return place(TREE, CANDIDATES)


@cache
def best() -> Design:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "PROGRAMS_TO_PROVE", 0)
        return best_sensors(TREE, CANDIDATES, 12)


def test_the_cheapest_as_text():
    found = cheapest()
    text = plain(found)
    assert text.startswith("12 sensors for 12: the cheapest possible. They determine tau at almost every pose.")
    assert "Found among 24 candidates by: greedy, and proven to be the" in text
    assert repr(found) == "Placement(12 sensors, cost 12, bound 12)"
    assert "the cheapest costs at least 10" in plain(replace(found, bound=10.0))
    assert "They determine everything" in plain(replace(found, outputs=("all",)))


@pytest.mark.parametrize("found", [cheapest, best])
def test_precision_stands_beside_the_price(found):
    bought = found().bought
    expected = nd.conditioning(bought.system, bought.expected.configurations, ("tau",), workers=1)
    np.testing.assert_array_equal(expected.sigma, bought.expected.sigma)
    k = int(np.argmax(expected.worst_sigma))
    text = plain(found())
    assert f"Least precise: {expected.outputs[k]}, " in text
    assert "Expected standard deviations" in text
    figures = found().to_dict()["expected"]["deviations"][k]
    assert (figures["output"], figures["worst"]) == (expected.outputs[k], expected.worst_sigma[k])
