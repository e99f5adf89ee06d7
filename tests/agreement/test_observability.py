"""Do the sensors suffice? What the paper says of load cells, what was found about it, and rank against an SVD."""

from functools import partial

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import FORCE
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.numeric import Reduction
from nori_dyn.observe.poses import configurations_where
from nori_dyn.observe.report import ObservabilityReport, observability
from nori_dyn.system.builder import System
from tests.least_squares import null_space
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, Figure2, paper_chain, sensor_set
from tests.trees import on_a_free_base

THREE_AXES = ["mx", "my", "fz"]
FIVE_AXES = ["mx", "my", "fx", "fy", "fz"]
long = partial(pytest.param, marks=pytest.mark.long)

HUMANOIDS = {
    "talos_reduced": ("left_sole_link", "right_sole_link"),
    "iCubGenova04": ("l_sole", "r_sole"),
    "g1": ("left_ankle_roll_link", "right_ankle_roll_link"),
}


def on_feet(feet: tuple[str, str], *readings: dict) -> SensorSet:
    """(17): accelerations are known, no wrench on the base or elsewhere, and some readings at both feet."""
    return sensor_set(
        ACCELERATIONS,
        {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
        {"type": "external_wrench", "links": {"except": list(feet)}, "value": 0},
        *readings,
    )


def on_load_cells(feet: tuple[str, str], components: list[str], *poses: dict) -> SensorSet:
    """Load cells on both feet, in the frames of these or in others."""
    frames = [{"frame": pose} for pose in poses] or [{}, {}]
    cells = [{"type": "external_wrench", "links": foot, "components": components} for foot in feet]
    return on_feet(feet, *(cell | frame for cell, frame in zip(cells, frames, strict=True)))


def floating_chain(n: int) -> KinematicTree:
    """A chain of n links that floats."""
    return on_a_free_base(autotree(n, 1, 1.5, 1.0))


def lost(report: ObservabilityReport) -> dict[str, int]:
    """The ranks lost at each special pose."""
    return {condition.condition: condition.lost for condition in report.conditions}


# ------------------------------------------------------------------------------------- (18) and (23)

every_robot = pytest.mark.parametrize(
    "name",
    ["chain 8", *(long(name) for name in ("chain 12", "chain 20", "talos_reduced", "iCubGenova04", "g1"))],
)


def robot_and_feet(name: str) -> tuple[KinematicTree, tuple[str, str]]:
    if name in HUMANOIDS:
        return load(name, "floating"), HUMANOIDS[name]
    n = int(name.split()[1])
    return floating_chain(n), ("link1", f"link{n}")


@every_robot
def test_three_axes_a_foot_are_one_short_and_three_on_flat_ground(name):
    """(18): each foot does not see the lines in its plane, and the two planes share one."""
    tree, feet = robot_and_feet(name)
    system = System(tree, on_load_cells(feet, THREE_AXES))
    report = observability(system, where={"coplanar": feet, "parallel": feet})
    assert system.shape[0] == system.shape[1] == report.structural_rank == report.n_variables
    assert (report.deficiency, report.numerical_rank) == (1, report.generic_rank)
    assert lost(report) == {"coplanar": 2, "parallel": 0}
    (part,) = report.unseen
    assert part.words.startswith("an internal force along the line in which the planes of")
    assert report.conditions[0].unseen[0].words.startswith("any internal force in the common plane of")
    assert all(condition.always for condition in report.loses_rank)
    assert {row.partition(":")[0] for row in report.unobservable} == {"fx", "f", "tau"}
    check_components(system, report, tree.random_configuration(np.random.default_rng(0)))


@every_robot
def test_five_axes_a_foot_suffice_but_for_parallel_feet(name):
    """(23), which the paper observed to be solvable."""
    tree, feet = robot_and_feet(name)
    report = observability(System(tree, on_load_cells(feet, FIVE_AXES)))
    assert report.is_observable
    assert report.unobservable == report.null_space == report.unseen == ()
    assert report.numerical_rank == report.n_variables
    found = lost(report)
    assert (found["parallel"], found["coplanar"]) == (1, 1)
    for condition in report.loses_rank:
        (part,) = condition.unseen
        assert part.dimension == 1
        assert part.words.startswith("a couple about the common normal")


@pytest.mark.parametrize("name", ["talos_reduced", long("iCubGenova04"), long("g1")])
def test_feet_on_the_ground_see_only_the_sum_of_two_couples(name):
    tree, feet = robot_and_feet(name)
    five, three = (Reduction(System(tree, on_load_cells(feet, c))) for c in (FIVE_AXES, THREE_AXES))
    n = five.system.shape[1]
    for q in configurations_where(tree, "double_support", feet, n=2, seed=1):
        assert (five.rank_at(q).rank, three.rank_at(q).rank) == (n - 1, n - 3)
        assert min(five.rank_at(q).gap, three.rank_at(q).gap) > 1e8


@pytest.mark.parametrize("n", [8, long(20), long(30)])
def test_the_set_of_the_published_code(n):
    tree = paper_chain(n, 1.0)
    for written in (Figure2(), sensors("nori_code")):
        report = observability(System(tree, written), where={"parallel": ("link1", f"link{n}")}, n=1)
        assert report.is_observable
        assert lost(report) == {"parallel": 1}
    flat = observability(System(autotree(n), sensors("nori_code")), where=None)
    assert flat.generic_rank == flat.numerical_rank < flat.n_variables  # all axes are parallel


# ----------------------------------------------------------------------------------------- Property 3


@pytest.mark.parametrize("seed", range(2))
def test_property_3(seed):
    """For any H whose H_f is singular, a pose makes [H, X* H] singular: turn the feet so that H_f has one range."""
    rng = np.random.default_rng(seed)
    H_f = rng.normal(size=(3, 2)) @ rng.normal(size=(2, 3))
    H = np.vstack([rng.normal(size=(3, 3)), H_f])  # angular first
    seen = np.linalg.svd(H.T)[2][3:]
    normal = np.linalg.svd(H_f.T)[2][2]
    tree = floating_chain(8)
    feet = ("link1", "link8")
    readings = [
        {
            "type": "linear_relation",
            "name": f"{foot}-{k}",
            "value": None,
            "terms": {f"fx:{foot}.{component}": float(value) for component, value in zip(FORCE, row, strict=True)},
        }
        for foot in feet
        for k, row in enumerate(seen)
    ]
    system = System(tree, on_feet(feet, *readings))
    report = observability(system, where=None)
    assert report.is_observable  # not so for (18), where H_f^T H_mu is special
    Q = configurations_where(tree, "parallel", feet, n=3, seed=seed, normals=[normal, normal])
    for q in Q:
        at = positions(tree, q)
        X = at.X_0[tree.n_links - 1] @ at.X_0[0].inverse()
        both = np.hstack([H, X.motion_matrix().T @ H])
        values = np.linalg.svd(both, compute_uv=False)
        assert values[-1] < 1e-9 * values[0]
    assert (Reduction(system).rank_at(Q[0]).rank, len(Q)) == (report.n_variables - 1, 3)


# --------------------------------------------------------------------- generic rank, against an SVD


def random_system(seed: int) -> System:
    """A random tree with a random part of the sensors that it could have: some too few, some too many."""
    rng = np.random.default_rng(seed)
    tree = random_tree(int(rng.integers(1, 8)), seed)
    if rng.random() < 0.2:  # links without mass, so that accelerations are not told by torques
        I = tree.I.copy()
        I[rng.random(tree.n_links) < 0.4] = 0.0
        tree = tree.replace(I=I)
    spread = rng.choice([0.3, 0.7, 0.95])
    entries = []
    for name, joint in zip(tree.names, tree.joint_names, strict=True):
        kind = rng.choice(["joint_acceleration", "joint_torque"])
        pose = {"xyz": rng.normal(size=3).tolist(), "rpy": rng.normal(size=3).tolist()}
        frame = {"frame": pose} if rng.random() < 0.5 else {}
        for wanted, entry in (
            (spread, {"type": kind, "joints": joint}),
            (spread, {"type": "external_wrench", "links": name, **frame, **_some(rng, FORCE)}),
            (0.2, {"type": "force_torque", "joints": joint, **_some(rng, FORCE)}),
            (0.2, {"type": "accelerometer", "links": name, **frame}),
            (0.1, {"type": "rigid_contact", "links": name}),
        ):
            if rng.random() < wanted:
                entries.append({**entry, "sigma": 0.1} if rng.random() < 0.3 else entry)
    return System(tree, sensor_set(*entries, name=f"random-{seed}"))


def _some(rng: np.random.Generator, components: tuple[str, ...]) -> dict[str, list[str]]:
    if rng.random() < 0.6:
        return {}
    kept = [c for c in components if rng.random() < 0.7]
    return {"components": kept} if kept else {}


@pytest.mark.parametrize("seeds", [range(12), *(long(range(k, k + 20)) for k in range(12, 192, 20))], ids=str)
def test_generic_rank_and_what_is_not_determined_one_by_one(seeds):
    """Of 192 systems in all: the rank is that at random configurations, and the null space that of components."""
    deficient = 0
    for seed in seeds:
        system = random_system(seed)
        report = observability(system, where=None, seed=seed)
        rng = np.random.default_rng(seed)
        Q = [system.tree.random_configuration(rng) for _ in range(2)]
        assert report.generic_rank == max(
            system.shape[1] - null_space(system.D(q).toarray(), 1e-11).shape[1] for q in Q
        ), seed
        assert report.generic_rank == max(Reduction(system).rank_at(q).rank for q in Q), seed
        assert report.generic_rank == report.numerical_rank <= report.structural_rank
        assert len(report.null_space) == report.deficiency
        deficient += not report.is_observable
        check_components(system, report, Q[0])  # where the null space was taken
    assert 0 < deficient < len(seeds)


def test_exact_and_numerical_rank_differ_where_they_should():
    """Two readings that differ by one part in 1e13: exactly, they tell two unknowns; in doubles, they do not."""
    tree = autotree(2)
    terms = {"qdd:joint1": 1.0, "qdd:joint2": 1.0}
    nearly = {"qdd:joint1": 1.0, "qdd:joint2": 1.0 + 1e-13}
    for second, rank in ((nearly, 40), (terms, 39)):
        relations = [{"type": "linear_relation", "name": f"r{k}", "terms": t} for k, t in enumerate((terms, second))]
        report = observability(System(tree, sensor_set(UNLOADED, *relations)), where=None)
        assert (report.generic_rank, report.numerical_rank) == (rank, 39)
        said = "in double precision they do not: there the rank is 39 of 40." in " ".join(str(report).split())
        assert said == (rank == 40)


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-2])
def test_a_foot_tilted_by_next_to_nothing(tilt):
    """Where all axes are parallel, the couples about them are seen apart by the tilt of one foot alone."""
    cells = on_load_cells(("link1", "link6"), FIVE_AXES, {}, {"rpy": [tilt, 0, 0]})
    report = observability(System(on_a_free_base(autotree(6)), cells), where=None)
    assert report.is_observable == (tilt > 0)
    assert (report.numerical_rank == report.n_variables) == (tilt > 1e-9)


def test_rotations_of_a_file_count_as_exact():
    """G1 and iCub of example-robot-data: with their doubles as they stand, a force in a foot's plane would be seen."""
    for name, feet in (("g1", HUMANOIDS["g1"]), ("icub", ("l_sole", "r_sole"))):
        report = observability(System(load(name, "floating"), on_load_cells(feet, THREE_AXES)), where=None)
        assert (report.deficiency, report.numerical_rank) == (1, report.generic_rank)


def test_load_cells_in_frames_of_any_tilt():
    """The rotation of a sensor's own frame counts as exact too."""
    tree, feet = robot_and_feet("chain 8")
    rng = np.random.default_rng(0)
    for _ in range(2):
        poses = [{"xyz": rng.normal(size=3).tolist(), "rpy": rng.normal(size=3).tolist()} for _ in feet]
        report = observability(System(tree, on_load_cells(feet, THREE_AXES, *poses)), where=None)
        assert (report.deficiency, report.numerical_rank) == (1, report.generic_rank)


def check_components(system: System, report: ObservabilityReport, q: np.ndarray) -> None:
    """For each component that is not determined two different d have the same readings; for no other one."""
    D = system.D(q).toarray()
    place = {name: k for k, name in enumerate(system.variable_names)}
    vectors = np.zeros((len(report.null_space), system.shape[1]))
    for vector, row in zip(report.null_space, vectors, strict=True):
        for name, value in vector.coefficients.items():
            row[place[name]] = value
        size = np.abs(D) @ np.abs(row)
        assert np.abs(D @ row).max() <= 1e-9 * size.max()
    assert np.linalg.matrix_rank(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)) == len(vectors)
    assert {system.variable_names[k] for k in np.flatnonzero(np.abs(vectors).max(axis=0, initial=0))} == set(
        report.unobservable
    )
    # the others: each is a combination of the rows of D, e_j = D^T x, and so of readings
    columns = np.linalg.norm(D, axis=0)
    scaled = D / columns
    scaled /= np.where((rows := np.linalg.norm(scaled, axis=1, keepdims=True)) > 0, rows, 1.0)
    determined = [k for name, k in place.items() if name not in set(report.unobservable)]
    goal = np.eye(system.shape[1])[:, determined]
    x = np.linalg.lstsq(scaled.T, goal, rcond=1e-12)[0]
    assert np.abs(scaled.T @ x - goal).max(initial=0) < 1e-7


# ------------------------------------------------------------------------------- known answers


@pytest.mark.parametrize("name", ["panda", long("g1"), long("anymal")])
def test_inverse_and_forward_dynamics_always_suffice(name):
    for known in (ACCELERATIONS, TORQUES):
        report = nd.observability(System(load(name, "floating"), sensor_set(known, UNLOADED)))
        assert report.is_observable
        assert report.loses_rank == ()


def test_an_arm_that_is_stretched():
    """The tip of a planar arm is held: how hard it is pulled along a straight arm, neither torque nor motion tells."""
    tip = {"links": "link2", "frame": {"xyz": [1, 0, 0]}}
    known = sensor_set(
        TORQUES,
        {"type": "rigid_contact", **tip, "components": ["ax", "ay"]},
        {"type": "external_wrench", **tip, "components": ["mx", "my", "mz", "fz"], "value": 0},
        {"type": "external_wrench", "links": "link1", "value": 0},
    )
    report = observability(System(autotree(2), known))
    assert report.is_observable
    (straight,) = report.loses_rank
    assert (straight.condition, straight.lost, straight.always) == ("at_zero", 1, True)
    (part,) = straight.unseen
    assert part.words == "fx of the external wrench on link2"
    assert set(part.vectors[0].coefficients) == {"fx:link2.fx", "f:link2.fx", "f:link1.fx"}
