"""Packs of statements of isomorphic limbs: they compute what they stand for, and there are many of them."""

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.model.joints import Free
from nori_dyn.model.limbs import corresponding, isomorphic_limbs
from nori_dyn.model.synthetic import autotree
from nori_dyn.program.emit import Target, emit
from nori_dyn.program.functions import compile
from nori_dyn.program.packs import LEAST, Packing, find_packs, in_lanes
from nori_dyn.program.program import Program
from nori_dyn.program.statements import GIVEN
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.system.limbs import of_joints
from tests.oracles import newton_euler
from tests.robots import load
from tests.tolerances import RECURSION, assert_close

LONG = pytest.mark.long
ROBOTS = {"anymal": 4, "g1": 2, "go2": 4, "solo12": 4, "talos_reduced": 2, "iCubGenova04": 2}
"""Robots with isomorphic limbs, and how many of a kind there are."""

every_robot = pytest.mark.parametrize("name", [*ROBOTS][:2] + [pytest.param(x, marks=LONG) for x in [*ROBOTS][2:]])


@lru_cache
def packed(name):
    """A recursion for a floating robot as a program, and its packs."""
    tree = load(name, "floating")
    found = traced(rnea, tree)
    inputs = {key: tuple(array.flat) for key, array in found.inputs.items()}
    program = Program(inputs, tuple(x for array in found.outputs.values() for x in array.flat))
    labelled, first = [], 0
    for key, scalars in inputs.items():
        labelled += of_joints(tree, first, key) if len(scalars) in (tree.nq, tree.nv) else []
        first += len(scalars)
    scalars = [x.index for part in inputs.values() for x in part]
    places = corresponding(isomorphic_limbs(tree), labelled)
    limbs = [[[scalars[k] for k in limb] for limb in group] for group in places]
    return program, find_packs(program.graph, nodes_of(program), limbs)


def nodes_of(program):
    return program.graph.reachable(program.outputs)


def statements(program):
    return [i for i in nodes_of(program) if program.graph.ops[i] not in GIVEN]


@every_robot
def test_most_of_limbs_is_packed_once(name):
    program, packing = packed(name)
    nodes = [i for pack in packing.statements for i in pack.nodes]
    assert len(set(nodes)) == len(nodes)
    assert {len(pack.nodes) for pack in packing.statements} == {ROBOTS[name]}
    assert len(nodes) > 0.7 * len(statements(program))


def test_where_too_little_is_saved_nothing_is_packed():
    tree = autotree(7, branching=2.0)
    found = traced(rnea, tree)
    program = Program({"": ()}, tuple(found.outputs["result"].flat))
    assert find_packs(program.graph, nodes_of(program), ()).packs == Packing().packs == []
    q = found.inputs["q"]  # of two joints only: less than the share of all operations
    few = find_packs(program.graph, nodes_of(program), [[[q[5].index], [q[6].index]]])
    assert few.packs == [] or sum(len(p.nodes) - 1 for p in few.statements) >= LEAST * len(statements(program))


@pytest.mark.parametrize(
    ("n", "most", "expected"),
    [(1, 8, []), (2, 8, [2]), (3, 4, [2]), (4, 4, [4]), (4, 2, [2, 2]), (5, 4, [4]), (6, 8, [4, 2]), (9, 4, [4, 4])],
)
def test_limbs_go_into_vectors_of_two_four_and_eight(n, most, expected):
    group = [[k] for k in range(n)]
    found = in_lanes([group], most)
    assert [len(limbs) for limbs in found] == expected
    used = [limb for limbs in found for limb in limbs]
    assert used == group[: len(used)]


def spider(n):
    """A free body with n legs of two joints, none like the others but in how it is built."""
    parents = [-1, *(i for k in range(n) for i in (0, 2 * k + 1))]
    made = autotree(1 + 2 * n, skew=0.3, taper=0.97)
    return made.replace(name="spider", parents=tuple(parents), joints=(Free(), *made.joints[1:]))


def test_limbs_in_the_lanes_of_vectors_move_as_the_textbook_has_it(lanes):
    """Ten legs fill vectors of eight and of two, of four and of two, or of two."""
    tree = spider(10)
    function = compile(rnea, tree, backend="native")
    packed = emit(function._program, Target.ONE_STATE, lanes).packed
    assert set(packed) == {lanes, 2}
    Q, rng = tree.random_configurations(19, 0), np.random.default_rng(0)
    Qd, Qdd = rng.normal(size=(2, 19, tree.nv))
    unloaded = np.zeros((tree.n_links, 6))
    expected = [newton_euler(tree, *state, unloaded).tau for state in zip(Q, Qd, Qdd, strict=True)]
    assert_close([function(*state) for state in zip(Q, Qd, Qdd, strict=True)], expected, RECURSION)
    assert_close(function.batch(Q, Qd, Qdd), expected, RECURSION)
