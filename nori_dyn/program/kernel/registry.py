"""The backends: kernels that run a plan, by name; `auto` is the fastest that can run here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from nori_dyn.errors import InputError
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import Compiler, cached_library, find_compiler, needed_compiler
from nori_dyn.program.guards import computes_residual, guard_limits
from nori_dyn.program.kernel.base import AUTO, NATIVE, NUMPY, Kernel, chosen
from nori_dyn.program.kernel.fast_path import measured_limits
from nori_dyn.program.kernel.meanwhile import NumpyUntilCompiled
from nori_dyn.program.kernel.native import NativeKernel, interface
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.kernel.record import KernelRecord, recall, record_key
from nori_dyn.program.kernel.umfpack import UmfpackKernel
from nori_dyn.program.lowering import SolutionProgram, solution_program


def native_kernel(plan: EliminationPlan, check_residual: bool) -> NativeKernel:
    """The kernel that runs a plan as C; compiled, or from the cache, where it is not even traced."""
    checked, compiler = check_residual and computes_residual(plan), needed_compiler("the native backend")

    @cache
    def solution() -> SolutionProgram:
        """The program over expressions of its own, the same as that of the cached code."""
        return solution_program(plan.untouched(), output_columns(plan.system, plan.outputs).tolist(), checked)

    return NativeKernel(
        lambda: solution().program,
        lambda: measured_limits(plan, solution()),
        compiler,
        identity(plan, compiler, checked),
    )


def numpy_kernel(plan: EliminationPlan, check_residual: bool) -> NumpyKernel:
    """The kernel that runs a plan through NumPy."""
    checked = check_residual and computes_residual(plan)
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist(), checked)
    return NumpyKernel(solution.program, guard_limits(plan, solution))


BACKENDS: dict[str, Callable[[EliminationPlan, bool], Kernel]] = {
    NATIVE: native_kernel,
    NUMPY: numpy_kernel,
    UmfpackKernel.name: UmfpackKernel,
}
"""What makes each, of a plan, and whether the residual is computed where there is one."""


def kernel_of(name: str, plan: EliminationPlan, check_residual: bool = True, wait: bool = True) -> Kernel:
    """The kernel of a plan on a backend.

    Args:
        name: the backend, or "auto".
        plan: the plan.
        check_residual: whether the residual is computed where all of d is.
        wait: whether to wait for the compiler; if not, NumPy runs the plan until it is compiled.

    Raises:
        InputError: not to wait makes sense for "auto" only.
        UnknownBackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
        CompilerError: "native" was asked for and there is no C compiler, or it fails; "auto" warns and takes NumPy.
    """
    ways = {name: partial(make, plan, check_residual) for name, make in BACKENDS.items()}
    if not wait:
        check_auto(name)
        if find_compiler() is not None and not is_compiled(plan, check_residual):
            return NumpyUntilCompiled(ways[NUMPY](), lambda: _prepared(ways[NATIVE]()))
    return chosen(name, ways, "The plan")


def check_auto(name: str) -> None:
    """Refuse not to wait for a backend.

    Raises:
        InputError: its name is not "auto".
    """
    if name != AUTO:
        raise InputError(f"wait=False is for backend='auto', which goes from NumPy to native code, not '{name}'.")


def _prepared(kernel: Kernel) -> Kernel:
    """A kernel whose refinement of states off the fast path is ready too."""
    kernel.prepare()
    return kernel


def is_compiled(plan: EliminationPlan, check_residual: bool = True) -> bool:
    """Whether the cache has all that would be compiled, so that it is there at once."""
    checked, compiler = check_residual and computes_residual(plan), needed_compiler("the native backend")
    record = recall(identity(plan, compiler, checked), KernelRecord)
    if record is None or (record.has_fast_path and record.refined is None):
        return False
    entries = filter(None, (record.single, record.refined))
    return all(cached_library(interface(), entry.address) is not None for entry in entries)


def identity(plan: EliminationPlan, compiler: Compiler, checked: bool) -> str:
    """A hash of all that a compiled plan depends on: plan, compiler, and the source of this package.

    Args:
        plan: the plan.
        compiler: the compiler.
        checked: whether the program computes the residual.
    """
    return record_key(compiler, *plan.identity, repr(checked))
