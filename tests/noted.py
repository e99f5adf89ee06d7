"""Which case failed, where a test goes through several."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted(*case: object) -> Iterator[None]:
    """Say of which case a law does not hold."""
    try:
        yield
    except BaseException as error:  # pytest's failures are no exceptions
        error.add_note(f"of the case {', '.join(map(str, case))}")
        raise
