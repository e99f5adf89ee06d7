"""Inverse, forward and hybrid dynamics on real robots against Pinocchio."""

from functools import cache

import numpy as np
import pytest

from nori_dyn.errors import SingularSystemError
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.system.builder import System
from tests import covering as arrays
from tests.robots import ROBOTS, Pinocchio, load
from tests.systems import PROBLEMS, Truth, hybrid, random_states, readings
from tests.tolerances import ILL_SOLVED, SOLVED, Tolerance, assert_close

N_STATES = 100 if arrays.ALL else 25
SNAPPED = ("kinova", "romeo", "baxter", "ur5", "hyq", "talos_reduced", "talos_full")
"""Robots whose angles the loader's cleaning moves by more than 1e-12 rad: compared as they are in the file."""

MASSLESS = ("romeo",)
"""Robots whose finger links weigh nothing: without forward dynamics."""

ILL_CONDITIONED = ("icub",)
"""Robots with a moving link of next to no inertia: no algorithm gets forward dynamics to 1e-9, Pinocchio's included."""

EVERY = [(name, base) for name in ROBOTS for base in ("fixed", "floating")]
FEW = (("panda", "fixed"), ("kinova", "floating"), ("anymal", "floating"))
"""Prismatic and mimic joints, continuous ones, legs, and unaligned axes with links without mass."""


def cases(few):
    """Every robot, all but a few only in long tests."""
    return [pytest.param(*case, id="-".join(case), marks=[] if case in few else pytest.mark.long) for case in EVERY]


BACKENDS = ("numpy", *(("umfpack",) if has_umfpack() else ()))


def led_by(peer: Pinocchio, truth: Truth) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pinocchio's tau (N, nv), a and f (N, n_links, 6) of accelerations."""
    joints = [peer.model.getJointId(joint) for joint in peer.tree.joint_names]
    tau, a, f = [], [], []
    for q, qd, qdd, _, fx in zip(*truth, strict=True):
        tau.append(peer.rnea(q, qd, qdd, fx))
        a.append([np.roll(peer.data.a_gf[j].vector, 3) for j in joints])
        f.append([np.roll(peer.data.f[j].vector, 3) for j in joints])
    return np.array(tau), np.array(a), np.array(f)


@cache
def robot(name: str, base: str) -> KinematicTree:
    return load(name, base, clean=name not in SNAPPED)


@cache
def led(name: str, base: str) -> tuple[Truth, np.ndarray, np.ndarray]:
    """Random states and accelerations of a robot, the torques of Pinocchio's rnea, its a and f."""
    tree = robot(name, base)
    states = random_states(tree, N_STATES, seed=len(name))
    tau, a, f = led_by(Pinocchio.of(name, base, tree), states)
    return states._replace(tau=tau), a, f


@cache
def driven(name: str, base: str) -> tuple[Truth, np.ndarray, np.ndarray]:
    """Random states and torques of a robot, the accelerations of Pinocchio's aba, its a and f."""
    peer = Pinocchio.of(name, base, robot(name, base))
    states = led(name, base)[0]
    rng = np.random.default_rng(7)
    states = states._replace(tau=states.tau * rng.uniform(0.9, 1.1, size=states.tau.shape))
    found = [peer.aba(q, qd, tau, fx) for q, qd, _, tau, fx in zip(*states, strict=True)]
    states = states._replace(qdd=np.array(found))
    return states, *led_by(peer, states)[1:]


def planned(name: str, base: str, problem: str) -> Plan:
    """A plan."""
    tree = robot(name, base)
    return plan(System(tree, hybrid(tree, seed=3) if problem == "hybrid" else PROBLEMS[problem]))


def asked(name: str, base: str, problem: str) -> tuple[dict[str, np.ndarray], Truth, Tolerance]:
    """What Pinocchio says of each variable, the states, and how close we come."""
    if problem != "inverse" and name in MASSLESS:
        pytest.skip(f"{name} has links without mass: see test_massless_fingers_are_the_cause")
    truth, a, f = (led if problem == "inverse" else driven)(name, base)
    expected = {"tau": truth.tau, "qdd": truth.qdd, "a": a, "f": f, "fx": truth.fx}
    return expected, truth, ILL_SOLVED if problem != "inverse" and name in ILL_CONDITIONED else SOLVED


def check(made: Plan, expected: dict[str, np.ndarray], truth: Truth, tolerance: Tolerance) -> None:
    """Compare all estimates, of a batch and of single states."""
    for backend in BACKENDS:
        solver = made.solver(backend)
        y = readings(solver.system, truth)
        batch = solver.solve_batch(truth.q, truth.qd, y)
        for kind, values in expected.items():
            assert_close(batch[kind], values, tolerance)
        for k in range(3):
            one = solver.solve(truth.q[k], truth.qd[k], y[k])
            for kind in expected:
                assert_close(one[kind], batch[kind][k], tolerance)
        assert batch.fell_back.mean() <= 0.05


@pytest.mark.parametrize(("name", "base"), cases(FEW))
@pytest.mark.parametrize("problem", ["inverse", "forward", "hybrid"])
def test_dynamics(name, base, problem):
    """Hybrid: what is known of a random half of the joints, and unknown, is swapped."""
    known = asked(name, base, problem)
    check(planned(name, base, problem), *known)


@pytest.mark.parametrize("name", MASSLESS)
def test_massless_fingers_are_the_cause(name):
    tree = robot(name, "fixed")
    weightless = [i for i in range(tree.n_links) if not tree.I[list(tree.subtree(i))].any()]
    assert weightless
    with pytest.raises(SingularSystemError, match="have no inertia") as raised:
        planned(name, "fixed", "forward")
    for i in weightless:
        assert f"link '{tree.names[i]}'" in str(raised.value)
    assert {f"qdd:{tree.joint_names[i]}" for i in weightless} <= set(raised.value.undetermined)
