"""The rank that a pattern allows: the largest matching of rows with columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_flow


def structural_rank(matrix: Any) -> int:
    """The largest number of nonzeros (n, m), no two of which share a row or a column.

    As the largest flow from all rows to all columns, by Dinic's algorithm. SciPy's own `structural_rank` takes as good
    as forever on some systems of a few thousand rows.
    """
    found = sp.coo_array(matrix)
    n, m = found.shape
    is_nonzero = found.data != 0
    rows, columns = found.row[is_nonzero], found.col[is_nonzero]
    source, sink = 0, n + m + 1
    tails = np.concatenate([np.full(n, source), 1 + rows, 1 + n + np.arange(m)])
    heads = np.concatenate([1 + np.arange(n), 1 + n + columns, np.full(m, sink)])
    network = sp.csr_array((np.ones(len(tails), np.int32), (tails, heads)), shape=(sink + 1, sink + 1))
    return int(maximum_flow(network, source, sink, method="dinic").flow_value)
