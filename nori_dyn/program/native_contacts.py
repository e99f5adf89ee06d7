"""A filter that judges contact states as C, compiled and loaded: one foreign call a tick.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.compiler import Compiler
from nori_dyn.program.contact_source import ContactShape, contact_source, ordered_rows
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.native_filter import NativeTick, interface
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class ContactNumbers:
    """What a filter that judges contact states has to know beside what its C does.

    Attributes:
        counting: of each of S states, which weighed rows count (p,).
        apart: in how many contacts states differ (S, S).
        weights: of weighed rows that hold exactly where they count; 0 of others (p,).
        row_logs: what each weighed row of a case adds to the logarithm of the density of a state that has it.
        free_logs: what each number of u that does not persist adds, where a state leaves it undetermined (n_s,).
        n_contacts: number of contacts.
        rate: how often a contact switches on average [1/s].
        reach: states are judged that differ from a likely one by as many contacts at most.
        part: the probability below which a state has no part in a mixture.
        likely: that from which on states near one are judged.
        longest: the longest time over which rates are known [s].
    """

    counting: Sequence[Booleans]
    apart: Indices
    weights: Floats
    row_logs: Floats
    free_logs: Floats
    n_contacts: int
    rate: float
    reach: int
    part: float
    likely: float
    longest: float


class NativeContacts:
    """A tick of a filter that judges contact states in one foreign call. Not to be shared between threads.

    Attributes:
        each: the tick of each state, with what it knows.
        totals: sums of chi-squares in the most likely state, of their degrees of freedom, and of ticks (3,).
        probabilities: of the states, given all readings so far (S,); they go on from what is written there.
        library: the library.

    Args:
        shape: what its C has to know.
        numbers: what it has to know besides.
        compiler: the compiler.
        rows: the kernel of the program of its rows.
        outputs: the kernel of the program of its outputs.
        state: what it reads: q, qd, y and the weights, one after the other.
        values: where the outputs of the most likely state go.
        probabilities: see above.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        shape: ContactShape,
        numbers: ContactNumbers,
        compiler: Compiler,
        rows: NativeKernel,
        outputs: NativeKernel,
        state: Floats,
        values: Floats,
        probabilities: Floats,
    ) -> None:
        ffi, source = interface(), contact_source(shape, compiler.lanes)
        k, n = shape.tick.steps.k, len(numbers.counting)
        self.each, self.totals = list[NativeTick](), np.zeros(3)
        for _ in range(n):
            known, entries = (np.zeros((k, k)), np.zeros(k)), self.each[0].values if self.each else None
            programs = (rows, outputs, state, values, known, self.totals, numbers.longest, entries)
            self.each.append(NativeTick(shape.tick, compiler, *programs, source=source))
        self.library = library = self.each[0].library
        self._ticks = ffi.new("tick *[]", [tick.at for tick in self.each])
        order, counts, ends = ordered_rows(shape, numbers.counting)
        arrays: dict[str, NDArray[Any]] = {
            "work": aligned(-(-library.contact_room(n) // 8)),
            "probabilities": probabilities,
            "expected": np.zeros(n),
            "logs": np.zeros(n),
            "transitions": np.zeros((n, n)),
            "weights": numbers.weights.copy(),
            "row_logs": numbers.row_logs.copy(),
            "free_logs": numbers.free_logs.copy(),
            "apart": numbers.apart.astype(np.int32),
            "order": order,
            "counts": counts,
            "ends": ends,
            "prior_of": np.full(n, -1, dtype=np.int32),
        }
        self.probabilities, self._prior_of, self._arrays = arrays["probabilities"], arrays["prior_of"], arrays
        self._placed = placed = ffi.new("contacts *")
        placed.each, placed.dt = self._ticks, np.nan
        for name, array in arrays.items():
            kind = "void *" if name == "work" else "double *" if array.dtype == float else "int *"
            setattr(placed, name, ffi.cast(kind, array.ctypes.data))
        placed.n, placed.n_contacts, placed.reach = n, numbers.n_contacts, numbers.reach
        placed.rate, placed.part, placed.likely = numbers.rate, numbers.part, numbers.likely
        self._judge = library.judge

    def begin(self, R: Floats, z: Floats) -> None:
        """Go back to before the first tick, where this is known of the memory, (k, k) and (k,)."""
        first = self.each[0]
        first.R[:], first.z[:], self.totals[:] = R, z, 0.0
        self._prior_of[:] = -1
        self._placed.has_begun = 0

    def go_on_from(self, values: Floats, known: Mapping[int, tuple[Floats, Floats]], has_rates: bool) -> None:
        """Go on from a tick that was judged elsewhere.

        Args:
            values: what the program of its rows gave, see `NativeSteps`.
            known: the posterior R (n, n) and z (n,) of u under each hypothesis that was judged, by its number.
            has_rates: whether it had readings.
        """
        self.each[0].values[:], self._prior_of[:], self._placed.has_begun = values, -1, 1
        for h, (R, z) in known.items():
            one, diagonal = self.each[h], np.diagonal(R)
            self._prior_of[h], one.at.has_rates = 0, has_rates
            one.R_u[:], one.z_u[:] = R, z
            one.pivots[:] = np.divide(1.0, diagonal, out=np.zeros_like(z), where=diagonal != 0)

    def step(self, dt: float) -> int:
        """Judge the state that there is, a time [s] after the last tick, and estimate in the most likely one.

        Returns:
            0, or where there is no estimate a number above 0, see `NativeTick.step`; after 3 the readings have told
            what they can.
        """
        wrong: int = self._judge(self._placed, dt)
        return wrong

    @property
    def free(self) -> Floats:
        """What the program of the outputs read."""
        return self.each[0].free

    @property
    def best(self) -> int:
        """The number of the most likely state at the last step."""
        found: int = self._placed.best
        return found

    def is_judged(self, h: int) -> bool:
        """Whether a state was judged at the last step."""
        return bool(self._prior_of[h] >= 0)
