"""Contact states by the closed contacts that users name, as the index of a state that has a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import InputError, UnknownContactError, UnplannedStateError
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.typing import Booleans, Indices

Closed: TypeAlias = Iterable[str] | Booleans
"""Which contacts are closed: their names in any order, or a boolean for each, in the order of `contact_names`."""

ClosedInAll: TypeAlias = str | AbstractSet[str] | Booleans
"""The same for many states at once: a sequence of names might as well be meant as one for each of them."""


class PlannedStates:
    """The contact states that have a plan, by their numbers.

    Attributes:
        contact_names: all contacts.
        states: the states.

    Args:
        contact_names: all contacts.
        states: the states.
    """

    def __init__(self, contact_names: Sequence[str], states: Iterable[ContactState]) -> None:
        self.contact_names, self.states = tuple(contact_names), tuple(states)
        self._bits = {contact: 1 << k for k, contact in enumerate(self.contact_names)}
        self._numbers = {self._mask(state): number for number, state in enumerate(self.states)}

    def number_of(self, closed: Closed) -> int:
        """The number of a contact state.

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: the state has no plan.
            InputError: closed contacts are neither names nor booleans.
        """
        mask = self._mask(closed)
        try:
            return self._numbers[mask]
        except KeyError:
            state = tuple(name for name, bit in self._bits.items() if mask & bit)
            raise UnplannedStateError(state, self.states) from None

    def _mask(self, closed: Closed) -> int:
        """A contact state as a number with a bit for each contact."""
        mask = 0
        for name in self._names(closed):
            try:
                mask |= self._bits[name]
            except (KeyError, TypeError):
                raise UnknownContactError("contact", name, self.contact_names) from None
        return mask

    def _names(self, closed: Closed) -> Iterable[str]:
        """The names of the contacts that are closed."""
        if isinstance(closed, str):
            return (closed,)
        if type(closed) is np.ndarray and closed.shape == (len(self._bits),) and closed.dtype == np.bool_:
            return compress(self.contact_names, closed)
        if isinstance(closed, np.ndarray) or not isinstance(closed, Iterable):
            array = isinstance(closed, np.ndarray)
            given = f"an array of {closed.dtype} and shape {closed.shape}" if array else repr(closed)
            raise InputError(
                f"contacts is {given}, expected names, or booleans of shape ({len(self._bits)},): "
                f"{', '.join(self.contact_names)}."
            )
        return closed

    def numbers_of(self, contacts: ClosedInAll | Sequence[Closed], N: int) -> Indices:
        """The number of the contact state of each of N states.

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: a state has no plan.
            InputError: a wrong shape, or names that may be meant for all states or one for each.
        """
        if isinstance(contacts, np.ndarray) and contacts.ndim == 2:
            if contacts.shape != (N, len(self._bits)):
                raise InputError(f"contacts has shape {contacts.shape}, expected ({N}, {len(self._bits)}).")
            different, of_states = np.unique(contacts, axis=0, return_inverse=True)
            return np.array([self.number_of(one) for one in different], dtype=np.intp)[of_states.ravel()]
        if isinstance(contacts, str | AbstractSet | np.ndarray) or not isinstance(contacts, Iterable):
            return np.full(N, self.number_of(contacts), dtype=np.intp)
        each = list(contacts)
        names = [repr(one) for one in each if isinstance(one, str)]
        if names:
            raise InputError(
                f"contacts is a sequence with the name {names[0]} in it: that may mean contacts closed in all {N} "
                f"states, or one for each. Give a set for all states, {{{', '.join(dict.fromkeys(names))}}}; or for "
                f"each of them a sequence of names, [({names[0]},), ...]."
            )
        if len(each) != N:
            raise InputError(f"contacts has {len(each)} states, expected {N}.")
        return np.array([self.number_of(one) for one in each], dtype=np.intp)
