"""Programs as straight-line Python: on floats, on batches, and against the system they were made from."""

import math
import re

import numpy as np
import pytest

from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.expressions import Graph
from nori_dyn.model.synthetic import random_tree
from nori_dyn.program.program import Program
from nori_dyn.program.python_source import PythonProgram, python_source
from nori_dyn.system.builder import System
from nori_dyn.system.trace import trace
from tests.systems import INVERSE
from tests.tolerances import ROUNDING, SOLVED, assert_close


def small_program() -> Program:
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    s, c = graph.sin_cos(x)
    product = s * y
    outputs = [product + c, -product, graph.reciprocal(product), product, product, x, graph.expr(2.5), c - y]
    return Program({"x": (x,), "y": (y,)}, outputs)


def made(program):
    return PythonProgram(program.inputs, program.outputs)


def expected(x, y):
    p = np.sin(x) * y
    return np.array([p + np.cos(x), -p, 1 / p, p, p, x, 2.5 + 0 * x, np.cos(x) - y])


def test_floats_and_batches_agree_with_direct_evaluation():
    program = made(small_program())
    X, Y = np.array([[0.3], [-2.0], [1.1]]), np.array([[2.0], [0.7], [-3.0]])
    batch = program.batch(X, Y)
    assert batch.shape == (8, 3)
    assert_close(batch, expected(X[:, 0], Y[:, 0]), ROUNDING)
    for k in range(3):
        assert_close(program.single(X[k], Y[k]), batch[:, k], ROUNDING)


def test_a_zero_divisor_raises_on_floats_and_spoils_only_its_own_state_in_a_batch():
    program = made(small_program())
    with pytest.raises(ZeroDivisionError):
        program.single(np.array([0.0]), np.array([1.0]))
    batch = program.batch(np.array([[0.0], [0.3]]), np.array([[1.0], [2.0]]))
    assert math.isinf(batch[2, 0])
    assert_close(batch[:, 1], expected(0.3, 2.0), ROUNDING)


def test_cost_counts_what_runs():
    program = small_program()
    assert program.cost == Cost(additions=3, multiplications=1, divisions=1)
    source = python_source(program.inputs, program.outputs)
    assert source.count(" + ") + source.count(" - ") + source.count("= -") == 3
    assert source.count(" * ") == 1
    assert source.count("1.0 / ") == 1


def test_a_program_without_outputs_is_refused():
    with pytest.raises(ValueError, match="without outputs"):
        Program({}, ())


def test_dead_code_is_left_out():
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    _dead = x * y
    program = Program({"x": (x,), "y": (y,)}, [x + 1.0])
    assert "y_0" not in python_source(program.inputs, program.outputs)


def test_registers_are_reused_and_outputs_survive():
    """A long sum of products: a handful of registers, though every partial sum is an output as well."""
    graph = Graph(0)
    x = [graph.input(f"x{k}") for k in range(40)]
    total, outputs = x[0], []
    for k in range(1, 40):
        total = total * x[k] + x[k - 1]
        outputs.append(total)
    program = Program({"x": tuple(x)}, outputs)
    registers = set(re.findall(r"\bt\d+\b", python_source(program.inputs, program.outputs)))
    assert len(registers) <= 3
    values = np.random.default_rng(0).uniform(0.5, 1.5, 40)
    running, sums = values[0], []
    for k in range(1, 40):
        running = running * values[k] + values[k - 1]
        sums.append(running)
    assert_close(made(program).single(values), sums, ROUNDING)


RULES = (
    lambda a, b, x: a + b,
    lambda a, b, x: a - 0.3 * b,
    lambda a, b, x: a * b * 0.1,
    lambda a, b, x: np.sin(x) * b,
    lambda a, b, x: -b + np.cos(x),
)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed):
    """Random operations on random operands: registers that die, are read twice, or are outputs."""
    rng = np.random.default_rng(seed)
    graph = Graph(seed)
    inputs = tuple(graph.input(f"x{k}") for k in range(4))
    values = rng.uniform(0.5, 2.0, size=(4, 5))
    nodes, numbers = list(inputs), list(values)
    for _ in range(200):
        i, j = rng.integers(max(0, len(nodes) - 12), len(nodes), size=2)
        rule = RULES[rng.integers(len(RULES))]
        nodes.append(rule(nodes[i], nodes[j], inputs[i % 4]))
        numbers.append(rule(numbers[i], numbers[j], values[i % 4]))
    chosen = rng.choice(len(nodes), size=40)
    program = made(Program({"x": inputs}, [nodes[k] for k in chosen]))
    assert_close(program.batch(values.T.copy()), [numbers[k] for k in chosen], SOLVED)


def assembly(symbolic):
    """Inputs, and outputs: the structural nonzeros of D, then b."""
    return symbolic.inputs, (*symbolic.entries, *symbolic.b)


def test_no_name_of_a_model_gets_into_the_source():
    tree = random_tree(2, seed=0).replace(names=("os.system('x')", "b"), joint_names=("__import__", "d"))
    source = python_source(*assembly(trace(System(tree, INVERSE))))
    assert set(re.findall(r"[A-Za-z_]\w*", source)) - {"e"} <= {
        *("def", "run", "sin", "cos", "out", "q", "qd", "y"),
        *re.findall(r"\b(?:t|q_|qd_|y_)\d+\b", source),
    }
