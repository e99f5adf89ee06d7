"""How the counted operations of the compiled algorithms grow with a chain: polynomials, exactly.

A chain of n links is n deep, so O(N d) is a polynomial of degree 2, and O(N d^2) one of degree 3.
"""

import numpy as np
import pytest

from nori_dyn.model.synthetic import autotree
from nori_dyn.program.functions import compiled
from nori_dyn.recursions import aba, christoffel, coriolis, crba, minverse, rnea, times_C

DEGREES = {
    "rnea": (rnea, 1),  # RBDA table 5.1
    "aba": (aba, 1),  # RBDA table 7.1
    "times_C": (times_C, 1),  # Niemeyer and Slotine
    "crba": (crba, 2),  # RBDA table 6.2
    "minverse": (minverse, 3),  # RBDA ch. 6.5: chains of these sizes take less by their factors
    "coriolis": (coriolis, 2),  # Echeandia and Wensing, algorithm 1
    "christoffel": (christoffel, 3),  # Echeandia and Wensing, algorithm 2
}
SIZES = range(6, 12)


@pytest.mark.parametrize("taper", [1.0, 0.9])
@pytest.mark.parametrize("name", DEGREES)
def test_operations_of_a_chain_are_a_polynomial(name, taper):
    """Differences of its degree are a constant that is not zero: nothing is lost to rounding in any inertia."""
    function, degree = DEGREES[name]
    counts = [compiled(function, autotree(n, skew=1.5, taper=taper), backend="numpy").cost.total for n in SIZES]
    differences = np.diff(counts, degree)
    assert differences[0] > 0
    assert len(set(differences.tolist())) == 1, counts
    if degree > 1 and taper == 1.0:  # the depth counts, not the number of links alone
        bush = compiled(function, autotree(SIZES[-1], branching=2, skew=1.5), backend="numpy").cost.total
        assert bush < counts[-1]
