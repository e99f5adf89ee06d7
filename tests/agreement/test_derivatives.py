"""Analytical derivatives of inverse and forward dynamics, with wrenches from outside, against Pinocchio's."""

import numpy as np
import pytest

import nori_dyn as nd
from tests.agreement.test_compiled import Case
from tests.agreement.test_pinocchio import FEW, ILL_CONDITIONED, MASSLESS, cases
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close


@pytest.mark.parametrize(("name", "base"), cases(FEW))
def test_derivatives_are_pinocchios(name, base):
    case = Case(name, base, n=5, with_fx=True)
    expected = case.derivatives()
    q, qd, qdd, tau, fx = (np.moveaxis(x, 0, -1) for x in (case.q, case.qd, case.qdd, case.tau, case.fx))
    for found, theirs in zip(nd.rnea_derivatives(case.tree, q, qd, qdd, fx), expected[:3], strict=True):
        assert_close(np.moveaxis(found, -1, 0), theirs, SOLVED)
    if name in MASSLESS:
        return
    tolerance = ILL_SOLVED if name in ILL_CONDITIONED else SOLVED
    for found, theirs in zip(nd.aba_derivatives(case.tree, q, qd, tau, fx), expected[3:], strict=True):
        assert_close(np.moveaxis(found, -1, 0), theirs, tolerance)
