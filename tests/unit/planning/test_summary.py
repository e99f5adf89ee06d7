"""What `print(plan)` says."""

import nori_dyn as nd
from nori_dyn.planning.orderings.umfpack import has_umfpack


def test_a_plan_as_text():
    plan = nd.plan(nd.System(nd.autotree(6, 2), nd.sensors("forward_dynamics")), ["qdd", "fx:link6"], cache=False)
    lines = str(plan).splitlines()
    said = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[: lines.index("")]}
    assert said["robot"] == f"{plan.system.tree.name}: 6 links, 6 freedoms"
    assert said["sensors"] == "forward_dynamics: 6 readings a tick"
    assert said["system"].startswith(f"120 equations in 120 unknowns, {plan.pattern.nnz:,} nonzeros")
    assert said["outputs"] == "qdd, fx:link6"
    assert said["ordering"] == plan.ordering
    assert said["operations"].startswith(f"{plan.cost.total:,} a tick")
    assert "stable: over" in said["stability"]
    rows = [line.split() for line in lines]
    for k, candidate in enumerate(plan.tried):
        figures = (candidate.fill_in, candidate.published.total, candidate.cost.total)
        mark = ["*"] if k == 0 else []
        row = next(row for row in rows if row[: len(mark) + 1] == [*mark, candidate.ordering])
        assert row[len(mark) + 1 : len(mark) + 4] == [f"{figure:,}" for figure in figures]
        assert row[-2] == f"{candidate.program.total:,}"
    assert ("UMFPACK is not installed" in str(plan)) != has_umfpack()
