"""How often plans are made, and not found in the cache."""

import pytest

from nori_dyn.estimation import plan as plans_module


@pytest.fixture
def counted(monkeypatch):
    calls, real = [], plans_module.make_plan
    monkeypatch.setattr(plans_module, "make_plan", lambda *given: calls.append(given) or real(*given))
    return calls
