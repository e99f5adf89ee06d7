"""Optional libraries, imported where they are used."""

import importlib.util
from typing import Any

from nori_dyn.errors import MissingExtraError


def needed(what: str, extra: str, *libraries: str) -> Any:
    """The first of some libraries, all of which must be installed: an extra brings them.

    Args:
        what: what they are for.
        extra: the extra.
        libraries: names of modules.

    Raises:
        MissingExtraError: one of them is not installed.
    """
    if any(importlib.util.find_spec(library) is None for library in libraries):
        raise MissingExtraError(what, extra)
    return importlib.import_module(libraries[0])
