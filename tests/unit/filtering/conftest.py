"""Backends of filters, smoothers and windows: NumPy, and C for vectors of any width."""

import pytest

from tests.compilers import WIDTHS, compile_for


@pytest.fixture(params=["numpy", *WIDTHS], ids=str)
def every_backend(request, monkeypatch) -> str:
    """The name of a backend, of which that in C is compiled for vectors of two, four and eight doubles."""
    if request.param == "numpy":
        return "numpy"
    compile_for(request.param, monkeypatch)
    return "native"
