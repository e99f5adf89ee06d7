"""Identification: intervals hold what they say, known values are those of bodies, and units are doubted.

Random arms move at random under noise whose samples are alike for long. Their inertias are drawn from what is known
before, and what a log tells of them has to be within 1.96 deviations in 93 to 97 of 100 logs. One combination and one
parameter of each log count, so that what counts is independent, and the number of those that are missed is binomial.
"""

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.identification.parameters import ten_of, ten_parameters
from tests.attack.arms import FAMILIES, Draft, Floats, drafted, log
from tests.unit.identification.inertias import pseudo_inertia_of, random_body

LOGS, KNOWN, ARMS = 30, 6, 4
"""Logs of a family, known values, and arms whose logs are in other units, that are tried by default."""

SHARES = {"combinations": (0.03, 0.07), "parameters": (0.03, 0.07), "priors": (0.0, 1e-3)}
"""Share of the logs, at the least and at the most, in which a truth is beyond 1.96 deviations, or a true prior is
taken for contradicted."""

CHANCE = 1e-6
"""With which a test fails though nothing is wrong."""

MARGIN, LARGE = 1e-6, 100.0
"""Margin by which a body may have known values that are refused, and the largest tr X of those of which it is proved
that none has them: that of the model is 4."""

SCRIPT = '''"""Do a family of the attack on identification again: {what}."""

from tests.attack.test_identification import again

again("{family}", seed={seed}, logs={logs})
'''


def identified(draft: Draft, folder: Path) -> nd.results.Identification:
    """What the logs of a draft tell."""
    paths: dict[bool, list[Path]] = {False: [], True: []}
    for k, (real, is_loaded) in enumerate(draft.logs):
        paths[is_loaded].append(folder / f"{k}.npz")
        np.savez(paths[is_loaded][-1], **log(draft, real))
    options = {"physical": False, "held_out": 0.0, "backend": "numpy"} | draft.options
    return nd.identify(paths[False], draft.arm, draft.wanted, loaded=paths[True], **options)


def off(draft: Draft, found: nd.results.Identification) -> dict[str, list[float]]:
    """The errors of the combinations, and of the parameters, that are told, in deviations."""
    truth = {each.name: draft.truth.get(each.name, each.before) for each in found.estimates}
    own = found.base.G @ np.array([truth[name] for name in found.parameters.names])
    combined = zip(found.combinations, own, strict=True)
    return {
        "combinations": [(each.value - true) / each.deviation for each, true in combined if each.left < 0.1],
        "parameters": [(p.plain - truth[p.name]) / p.deviation for p in found.estimates if p.how == "identified"],
    }


def judged(what: str, missed: int, n: int) -> Iterator[str]:
    """Yield what is wrong with a number of logs that are missed, where that is not by chance."""
    least, most = SHARES[what]
    if binom.sf(missed - 1, n, most) < CHANCE or binom.cdf(missed, n, least) < CHANCE:
        yield f"{what} are missed in {missed} of {n} logs, expected {100 * least:g} to {100 * most:g} %"


def again(family: str, seed: int, logs: int) -> None:
    """Print how many deviations what is told is from the truth, log by log."""
    with tempfile.TemporaryDirectory() as folder:
        for k in range(logs):
            draft = drafted(family, [seed, [*FAMILIES].index(family), k])
            found = identified(draft, Path(folder))
            far = {what: np.sort(np.abs(each)).round(2) for what, each in off(draft, found).items()}
            print(k, found.problem.tree.n_links, far)


def test_intervals_hold_the_truth_as_often_as_they_say(tmp_path, attack_scale, attack_seed, attacked, attack_scripts):
    failures, every = [], {what: np.zeros(2, int) for what in SHARES}
    logs = max(round(LOGS * attack_scale), 1)
    for number, family in enumerate(FAMILIES):
        own = {what: np.zeros(2, int) for what in SHARES}
        for k in range(logs):
            draft = drafted(family, [attack_seed, number, k])
            found = identified(draft, tmp_path)
            for what, told in off(draft, found).items():
                if told:
                    own[what] += (abs(draft.rng.choice(told)) > 1.96, 1)
            if family != "payload":
                own["priors"] += (any(check.widened > 1.0 for check in found.prior), 1)
        attacked("logs identified", logs)
        wrong = [each for what, (missed, n) in own.items() for each in judged(what, missed, n)]
        if wrong:
            path = attack_scripts / f"identification-{family}-{attack_seed}.py"
            path.write_text(SCRIPT.format(what="; ".join(wrong), family=family, seed=attack_seed, logs=logs))
            failures += [f"{family}: {each}: {path}" for each in wrong]
        every = {what: every[what] + own[what] for what in SHARES}
    failures += [f"all: {each}" for what, (missed, n) in every.items() for each in judged(what, missed, n)]
    assert not failures, "\n".join(failures)


def test_known_values_are_those_of_a_body_or_refused(tmp_path, attack_scale, attack_seed, attacked):
    """What is taken is a body; of what is refused CVXPY finds none, and a proof that there is none."""
    pytest.importorskip("cvxpy", reason="CVXPY is not installed")
    for k in range(max(round(KNOWN * attack_scale), 1)):
        draft = drafted("inertias", [attack_seed, len(FAMILIES), k])
        rng, i = draft.rng, int(draft.rng.integers(draft.arm.n_links))
        names = [each.name for each in ten_parameters(draft.arm.names[i])]
        model = ten_of(draft.arm.I[i])
        ten = random_body(rng) if rng.random() < 0.5 else model * rng.choice([-1.0, 0.0, 0.1, 3.0], size=10)
        known = {int(at): float(ten[at]) for at in rng.choice(10, size=int(rng.integers(1, 5)), replace=False)}
        by_name = {names[at]: value for at, value in known.items()}
        (margin, most), where = margins(model, known), (attack_seed, k, by_name)
        np.savez(tmp_path / "log.npz", **log(draft, draft.arm))
        options = {"known": by_name, "held_out": 0.0, "backend": "numpy"}
        attacked("known values", 1)
        try:
            found = nd.identify(tmp_path / "log.npz", draft.arm, ["inertias"], **options)
        except InputError as error:
            if "no body has these known values" not in str(error) or margin > MARGIN or most > MARGIN:
                pytest.fail(f"{where}, a body has them by {margin:.1e}, none by more than {most:.1e}: {error}")
            continue
        assert margin > 0, (*where, margin)
        assert {name: found.each[name] for name in by_name} == by_name
        for I in found.robot.I:
            eigenvalues = np.linalg.eigvalsh(pseudo_inertia_of(ten_of(I)))
            assert eigenvalues[0] > -1e-12 * eigenvalues[-1], where


def margins(model: Floats, known: dict[int, float]) -> tuple[float, float]:
    """By how much a body has known values, and by how much at most any has that is not more than LARGE.

    The margin is the least eigenvalue of the pseudo-inertia X relative to a model's, 1 at most. What CVXPY says is not
    believed: of the primal solution it is computed from the body itself; and the dual one gives a matrix Y, of which
    tr(X Y) is the same, v, for all that have the values, so that

        (tr Y + 4 s) least eigenvalue of X <= tr(X (Y + s 1)) = v + s tr X,  where Y + s 1 is positive semidefinite.
    """
    import cvxpy as cp

    L = np.linalg.cholesky(pseudo_inertia_of(model))
    root, units = np.linalg.inv(L), np.array([pseudo_inertia_of(unit) for unit in np.eye(10)])
    ten, least = cp.Variable(10), cp.Variable()
    X = sum(ten[k] * (root @ unit @ root.T) for k, unit in enumerate(units))
    is_body = (X + X.T) / 2 >> least * np.eye(4)
    fixed = [ten[k] == value for k, value in known.items()]
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        cp.Problem(cp.Maximize(least), [is_body, least <= 1.0, *fixed]).solve("CLARABEL")
    at, values = [*known], np.array([*known.values()])
    body = ten.value.copy()
    body[at] = values
    margin = np.linalg.eigvalsh(root @ pseudo_inertia_of(body) @ root.T)[0]
    prices = np.einsum("kij,ij->k", units, root.T @ is_body.dual_value @ root)[at]
    dual = np.linalg.solve(np.einsum("kij,lij->kl", units, units), units.reshape(10, 16)).reshape(10, 4, 4)[at]
    Y = L.T @ np.einsum("k,kij->ij", prices, dual) @ L
    short = max(0.0, -np.linalg.eigvalsh(Y)[0])
    return float(margin), float((prices @ values + short * LARGE) / (np.trace(Y) + 4 * short))


def test_it_is_asked_of_motion_what_estimate_asks(tmp_path, attack_scale, attack_seed, attacked):
    """Of arms whose joints have limits; `test_units` has whatever else logs are in."""
    for k in range(max(round(ARMS * attack_scale), 1)):
        rng = np.random.default_rng([attack_seed, len(FAMILIES) + 1, k])
        arm = nd.tools.random_tree(int(rng.integers(2, 5)), int(rng.integers(1 << 30)), kinds=["revolute"])
        made = log(Draft(rng, arm, arm), arm)
        reach = np.maximum(1.1 * np.abs(made["q"]).max(axis=0), rng.uniform(0.5, 3.0, size=arm.nv))
        joints = (replace(joint, limits=(-float(r), float(r))) for joint, r in zip(arm.joints, reach, strict=True))
        arm = arm.replace(joints=tuple(joints))
        plan = nd.plan(nd.System(arm, "inverse_dynamics"), outputs=["tau"])
        degrees = {rate: np.degrees(made[rate]) for rate in ("q", "qd", "qdd")}
        for turned, words in ((made, ""), (made | degrees, "degrees"), (made | {"t": 1e3 * made["t"]}, "step of time")):
            np.savez(tmp_path / "log.npz", **turned)
            found = nd.identify(tmp_path / "log.npz", arm, ["friction"], physical=False, backend="numpy")
            doubts = [each.removeprefix("log.npz: ") for each in found.doubts if each.startswith("log.npz: ")]
            asked = nd.estimate(tmp_path / "log.npz", plan, backend="numpy").report.doubts
            by_estimate = [each.message for each in asked if each.check in ("limits", "rates", "clock")]
            assert set(by_estimate) <= set(doubts), (attack_seed, k, words)
            assert any(words in each for each in doubts) if words else not doubts, (attack_seed, k, words, doubts)
            attacked("identifications in other units", 1)
