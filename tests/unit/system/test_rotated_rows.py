"""Weighed vectors along the axes of the program's frames: other rows, the same sums of squares."""

import numpy as np

from nori_dyn.estimation.system import System
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.system.refined import refine
from tests.covering import covering
from tests.systems import ACCELERATIONS, WRENCHES, sensor_set

POSE = {"xyz": [0.1, -0.2, 0.3], "rpy": [0.1, 0.2, 0.3]}
SENSORS = {
    "accelerometers": [
        {"type": "accelerometer", "links": "all", "frame": POSE, "sigma": 0.1},
        {"type": "accelerometer", "links": "link2", "name": "other", "frame": {"rpy": [0.4, 0, 0]}, "sigma": 0.2},
    ],
    "known": [{"type": "accelerometer", "links": "link3", "frame": POSE, "sigma": 0.1, "value": [1, 2, 3]}],
    "spatial": [{"type": "link_acceleration", "links": "all", "frame": POSE, "sigma": 0.1}],
    "angular": [{"type": "angular_accelerometer", "links": "all", "frame": POSE, "sigma": 0.1}],
    "forces": [{"type": "force_torque", "joints": "all", "frame": POSE, "sigma": 0.1, "measures": "child_on_parent"}],
    "resting": [{"type": "rigid_contact", "links": "link3", "frame": POSE, "sigma": 0.1}],
    "components": [{"type": "accelerometer", "links": "all", "frame": POSE, "sigma": [0.1, 0.2, 0.3]}],
    "some": [{"type": "accelerometer", "links": "all", "frame": POSE, "sigma": 0.1, "components": ["ax", "az"]}],
    "prior": [{"type": "prior", "variables": ["a"], "sigma": 2.0, "mean": 0.5, "conventional": True}],
}
NEEDED = (ACCELERATIONS | {"sigma": 1}, WRENCHES | {"sigma": 1})
TREES = {"skew": autotree(4, branching=2, skew=0.5), "mixed": random_tree(4, seed=2, kinds=("spherical", "revolute"))}


def valued(refined, expressions, seed):
    """The values of expressions at a random state."""
    rng, inputs = np.random.default_rng(seed), refined.symbolic.inputs
    values = {x.index: float(rng.uniform(0.5, 2.0)) for part in inputs.values() for x in part}
    return refined.symbolic.graph.evaluate(expressions, {k: np.array([x]) for k, x in values.items()})[:, 0]


def squares(refined, rows, d, seed):
    """The weighted sum of squares of rows at unknowns d, and its gradient at 0, half of it."""
    total, gradient = 0.0, np.zeros(len(d))
    for row in rows:
        entries, (b, weight) = (valued(refined, x, seed) for x in ([*row.entries.values()], [row.b, row.weight]))
        total += weight * (entries @ d[[*row.entries]] + b) ** 2
        gradient[[*row.entries]] += weight * b * entries
    return total, gradient


@covering(strength=1, tree=TREES, name=SENSORS.keys())
def test_turned_rows_have_the_same_sum_of_squares(tree, name):
    system = System(tree, sensor_set(*SENSORS[name], *NEEDED))
    refined = refine(system)
    n = refined.symbolic.shape[1]
    assert len(refined.summed) == len(refined.weighed)
    turned = sum(x is not y and x.entries != y.entries for x, y in zip(refined.summed, refined.weighed, strict=True))
    if name != "prior":  # its axes are those of links, which may be the same
        assert bool(turned) == (name not in ("resting", "components", "some"))
    d = np.random.default_rng(1).normal(size=n)
    for seed in range(2):
        (given, g), (found, g_found) = (squares(refined, rows, d, seed) for rows in (refined.weighed, refined.summed))
        near = 1e-11 if name == "prior" else 1e-12  # 5e-13 of one processor's sines are 1.2e-12 of another's
        np.testing.assert_allclose(found, given, rtol=near)
        np.testing.assert_allclose(g_found, g, atol=1e-11 * np.abs(g).max())
        conditions = valued(refined, refined.symbolic.b, seed)
        weighed = [*{column for row in refined.weighed for column in row.entries}]
        np.testing.assert_allclose(conditions[weighed], g[weighed], atol=1e-11 * np.abs(g).max())


def test_an_accelerometer_is_a_point_of_a_rigid_body():
    """Along the axes of the frame it reads each linear acceleration once, and constants of its place."""
    system = System(TREES["skew"], sensor_set(*SENSORS["accelerometers"], *NEEDED))
    refined = refine(system)
    rows = [block.slice for block in system.sensor_rows if block.name.startswith("acc:")]
    assert rows
    for row in refined.summed[: 3 * len(rows)]:
        units = [x for x in row.entries.values() if x.is_unit]
        assert len(units) == 1
        assert len(row.entries) <= 3
