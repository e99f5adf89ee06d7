"""The planned elimination as straight-line Python and NumPy: works everywhere, vectorised over batches."""

from nori_dyn.program.backends.base import guarded_name
from nori_dyn.program.backends.planned import PlannedBackend
from nori_dyn.program.backends.usual import measured_limits
from nori_dyn.program.kernel.choice import NUMPY
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.lowering import solution_program


class NumpyBackend(PlannedBackend):
    """See `PlannedBackend`: its program runs through NumPy."""

    name = NUMPY

    def _prepare(self) -> None:
        solution = solution_program(self._plan, self._columns.tolist(), self._checked)
        self.guards = [guarded_name(self._plan, guard) for guard in solution.guards]
        self.kernel = NumpyKernel(solution.program)
        self.kernel.limits[:] = measured_limits(self._plan, solution, self.kernel)
