"""Types of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Numbers of doubles."""

Indices: TypeAlias = NDArray[np.intp]
"""Positions in other arrays."""

Booleans: TypeAlias = NDArray[np.bool_]
"""Truths, one for each of something."""

Array: TypeAlias = NDArray[Any]
"""Numbers over any scalar: floats, batches of floats, or expressions, as objects."""
