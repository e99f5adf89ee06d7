"""Programs with loops for what repeats agree with Pinocchio on chains and trees of many links."""

from functools import partial

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.planning.planner import make_plan
from nori_dyn.program import repeated_writer
from nori_dyn.program.backends import native as native_module
from nori_dyn.program.backends.native import NativeBackend
from nori_dyn.program.c_source import c_source
from tests.compilers import needs_compiler
from tests.in_pinocchio import in_pinocchio
from tests.peers import pin
from tests.tolerances import RECURSION, SOLVED, assert_close

N = 24


@needs_compiler
@pytest.mark.parametrize("branching", [1.0, 2.0])
def test_many_links_agree_with_pinocchio(branching, monkeypatch):
    monkeypatch.setattr(repeated_writer, "SHRINKS", np.inf)
    monkeypatch.setattr(native_module, "c_source", partial(c_source, large=0))
    tree = nd.autotree(N, branching, 1.5)
    model, _, q_order, v_order = in_pinocchio(tree)
    data = model.createData()
    rng = np.random.default_rng(0)
    q, qd, x = rng.uniform(-1, 1, N), rng.normal(size=N) / 10, rng.normal(size=N)
    there = pin.neutral(model)
    there[q_order] = q
    qd_there, x_there = np.zeros(N), np.zeros(N)
    qd_there[v_order], x_there[v_order] = qd, x
    cases = {
        "inverse_dynamics": ("tau", pin.rnea(model, data, there, qd_there, x_there).copy(), RECURSION),
        "forward_dynamics": ("qdd", pin.aba(model, data, there, qd_there, x_there).copy(), SOLVED),
    }
    for problem, (output, expected, tolerance) in cases.items():
        plan = make_plan(nd.System(tree, nd.sensors(problem)), [output], ordering="recursive")
        backend = NativeBackend(plan)
        assert "loop0" in backend._source.single
        solution = backend.solve(q, qd, x)
        assert not solution.fell_back
        assert_close(solution.values, expected[v_order], tolerance)
