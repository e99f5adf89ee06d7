"""The planned elimination as native code: one foreign call a tick, vectors of states in a batch.

Source: docs/design.md, 4.8 and 5.2.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.errors import CompilerError
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import computes_residual, guarded_name
from nori_dyn.program.backends.planned import PlannedBackend
from nori_dyn.program.backends.usual import measured_limits
from nori_dyn.program.cache_files import cache_root
from nori_dyn.program.compiled import Compiled, identity, recall, remember
from nori_dyn.program.compiler import cached_library, library_key, load_library, needed_compiler
from nori_dyn.program.emit import Target, Unit, emit
from nori_dyn.program.kernel.caller import LONG
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.kernel.native import NativeKernel, Sizes, interface
from nori_dyn.program.lowering import SolutionProgram, solution_program


class NativeBackend(PlannedBackend):
    """See `PlannedBackend`: its program is compiled, or found in the cache.

    Raises:
        CompilerError: there is no C compiler, or it fails.
    """

    name = NATIVE
    kernel: NativeKernel

    def _prepare(self) -> None:
        """Take the compiled plan from the cache, or compile it."""
        self._compiler = needed_compiler("the native backend")
        self._key = identity(self._plan, self._compiler, self._checked)
        record = recall(self._key)
        library = None if record is None else cached_library(interface(), record.single)
        if record is None or library is None:
            unit = self.unit(Target.ONE_STATE)
            library, sizes = (
                load_library(interface(), unit.text, self._compiler),
                Sizes.of(self._solution.program, unit),
            )
            limits = measured_limits(self._plan, self._solution, self._kernel_of(library, sizes))
            record = Compiled(
                sizes=sizes,
                limits=limits.tolist(),
                guards=[guarded_name(self._plan, guard) for guard in self._solution.guards],
                single=library_key(unit.text, self._compiler),
                packed=unit.packed,
            )
            remember(self._key, record)
        self._record, self.guards = record, record.guards
        self.kernel = self._kernel_of(library, record.sizes)
        self.kernel.limits[:] = record.limits

    def _kernel_of(self, library: Any, sizes: Sizes) -> NativeKernel:
        return NativeKernel(library, self._open_batch, self._compiler, sizes, self._plan.cost.total > LONG)

    def _open_batch(self) -> Any:
        """Return the library for batches; what is compiled for them is written when the first one comes."""
        found = None if self._record.batch is None else cached_library(interface(), self._record.batch)
        if found is None:
            unit, sizes = self.unit(Target.BATCH), self._record.sizes
            if len(self._solution.guards) != sizes.n_pivots:
                raise CompilerError(f"the cached program is of another trace of the plan: remove '{cache_root()}'.")
            found = load_library(interface(), unit.text, self._compiler)
            self._record = self._record.model_copy(update={"batch": library_key(unit.text, self._compiler)})
            remember(self._key, self._record)
        return found

    @property
    def packed(self) -> Mapping[int, int]:
        """How many operations of a tick isomorphic limbs do together: two at a time, four and so on."""
        return self._record.packed

    @cached_property
    def _solution(self) -> SolutionProgram:
        """The program, over expressions of its own: what is cached of it was made of the very same."""
        return solution_program(self._plan.untouched(), self._columns.tolist(), self._checked)

    def unit(self, target: Target) -> Unit:
        """Return the C of the program."""
        with collector_at_rest():
            return emit(self._solution.program, target, self._compiler.lanes)


def is_compiled(plan: EliminationPlan, check_residual: bool = True) -> bool:
    """Return whether the cache has what the backend would compile, so that it is there at once."""
    columns = output_columns(plan.system, plan.outputs)
    compiler = needed_compiler("the native backend")
    record = recall(identity(plan, compiler, check_residual and computes_residual(plan, columns)))
    return record is not None and cached_library(interface(), record.single) is not None
