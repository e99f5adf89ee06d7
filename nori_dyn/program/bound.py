"""The least time of a program on any processor in use: what waits for one another, and what there is to issue.

Operations that need each other's results cannot overlap, so that no order of them is faster than the longest chain. Nor
is any faster than the number of its operations over those that a processor begins in a cycle, packs of SIMD lanes
counted once.

Source: A. Fog, Instruction tables, 2024: the least of Intel's since Skylake and AMD's since Zen 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from nori_dyn.algebra.expressions import Graph, Op
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.packs import find_packs, in_lanes
from nori_dyn.program.program import Program
from nori_dyn.program.statements import GIVEN

SUM, PRODUCT, FUSED = 3, 3, 4
"""Latency of a sum, a product, and a product that is summed in one instruction [cycles]."""

LATENCIES = {Op.SIN: 54, Op.COS: 54, Op.MUL: PRODUCT, Op.RECIPROCAL: 13, Op.SQRT: 18}
"""Latencies of the rest [cycles]; of a sine that of the chain in `program/c/sines.h`. What is not here takes none."""

ISSUED = 4
"""Operations that begin in a cycle at most: two products that are summed, or two products and two sums."""

FREE = {*GIVEN, Op.NEG, Op.OPAQUE}
"""What is no operation, or part of another one."""

LANES = 8
"""Numbers that a vector holds at most."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What no processor in use is faster than.

    Attributes:
        chain: latency of the longest chain of operations that need one another's results [cycles].
        operations: operations, packs of SIMD lanes counted once, sines and cosines not counted.
    """

    chain: int
    operations: int

    @property
    def issue(self) -> int:
        """Cycles in which that many operations begin."""
        return -(-self.operations // ISSUED)

    @property
    def cycles(self) -> int:
        """The least number of cycles of a state."""
        return max(self.chain, self.issue)


def plan_bound(plan: EliminationPlan) -> Bound:
    """The bound of a tick of a plan, of its outputs alone: neither checks nor refinement are in it."""
    plan = plan.untouched()
    return program_bound(solution_program(plan, output_columns(plan.system, plan.outputs).tolist()).program)


def program_bound(program: Program) -> Bound:
    """The bound of one state of a program, of its outputs alone."""
    graph = program.graph
    nodes = graph.reachable(program.outputs)
    packing = find_packs(graph, nodes, in_lanes(program.limb_nodes, LANES))
    heads = {packing.head(i) for i in nodes if graph.ops[i] not in FREE}
    return Bound(longest_chain(graph, nodes), len(heads))


def longest_chain(graph: Graph, nodes: list[int]) -> int:
    """Latency of the longest chain of operations among nodes in topological order [cycles]."""
    ready = dict.fromkeys(nodes, 0)
    for i in nodes:
        op, operands = graph.ops[i], [k for k in (graph.left[i], graph.right[i]) if k >= 0]
        if op in (Op.ADD, Op.SUB):
            ready[i] = max(
                ready[k] + SUM if graph.ops[k] is not Op.MUL else ready[k] - PRODUCT + FUSED for k in operands
            )
        elif operands:
            ready[i] = max(ready[k] for k in operands) + LATENCIES.get(op, 0)
    return max(ready.values(), default=0)
