"""The report: what it holds, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.joints import Free
from tests.systems import ACCELERATIONS, INVERSE, TORQUES, WRENCHES, sensor_set


@pytest.fixture
def cells() -> nd.System:
    """Return a floating chain on five-axis load cells at its ends."""
    tree = nd.autotree(5, skew=1.2)
    feet = ["link1", "link5"]
    return nd.System(
        tree.replace(joints=(Free(), *tree.joints[1:])),
        sensor_set(
            ACCELERATIONS,
            {"type": "joint_torque", "joints": "joint1", "value": 0},
            {"type": "external_wrench", "links": feet, "components": ["mx", "my", "fx", "fy", "fz"]},
            {"type": "external_wrench", "links": {"except": feet}, "value": 0},
        ),
    )


def test_ranks_at_given_configurations(cells):
    parallel = nd.configurations_where(cells.tree, "parallel", ("link1", "link5"), n=3)
    Q = np.vstack([parallel, [cells.tree.random_configuration(0)]])
    report = nd.observability(cells, Q, where=None)
    n = cells.shape[1]
    assert report.rank_at.tolist() == [n - 1] * 3 + [n]
    assert (report.gap_at[:3] > 1e8).all()
    assert report.gap_at[3] == np.inf
    assert (report.smallest_at > 1e-4).all()
    assert report.is_observable
    report = nd.observability(cells, where=None)
    assert report.rank_at.shape == (0,)
    assert report.conditions == ()
    assert (report.n_rows, report.n_variables) == cells.shape


def test_the_likely_poses_are_looked_at_unasked_and_the_same_seed_gives_the_same(cells):
    report, again = (nd.observability(cells, seed=4) for _ in range(2))
    assert str(again) == str(report)
    np.testing.assert_array_equal(again.conditions[1].configurations, report.conditions[1].configurations)
    assert [condition.condition for condition in report.conditions] == ["at_zero", "parallel", "coplanar"]
    assert {condition.frames for condition in report.conditions} == {(), ("link1", "link5")}
    assert [condition.condition for condition in report.loses_rank] == ["parallel", "coplanar"]
    lines = [" ".join(line.split()) for line in str(report).splitlines()]
    assert lines[0].startswith("Yes, but not at every pose. At almost every pose all")
    assert any(line.startswith("link1 and link5 with parallel normals 1 combination of the") for line in lines)
    assert "What the sensors do not see at special poses: - a couple about the common normal" in " ".join(lines)
    assert "\n" not in repr(report)


def test_what_is_refused(cells):
    with pytest.raises(nd.InputError, match=r"shape \(11,\), expected \(N, 11\)"):
        nd.observability(cells, cells.tree.neutral_configuration())
    with pytest.raises(nd.InputError, match=r"configurations\[1, 0\] is nan"):
        nd.observability(cells, [cells.tree.neutral_configuration(), np.full(11, np.nan)])
    with pytest.raises(nd.InputError, match="Did you mean 'parallel'"):
        nd.observability(cells, where={"parallell": ("link1", "link5")})
    with pytest.raises(nd.errors.NoConfigurationError):
        nd.observability(cells, where={"parallel": ("link1", "link2")})


def test_rows_with_a_sigma_count_as_rows_and_rows_may_be_few():
    tree = nd.autotree(3)
    system = nd.System(tree, sensor_set(ACCELERATIONS, TORQUES, {**WRENCHES, "value": 0, "sigma": 1.0}))
    assert system.shape == (63, 60)
    assert nd.observability(system).is_observable
    report = nd.observability(nd.System(nd.autotree(2), sensor_set(ACCELERATIONS)))
    assert (report.n_rows, report.generic_rank, report.deficiency) == (28, 28, 12)
    assert {name.partition(":")[0] for name in report.unobservable} == {"f", "fx", "tau"}


def test_the_package_is_called_as_its_function():
    """However it was imported: a package of the function's name takes its place in `nori_dyn`."""
    code = (
        "import nori_dyn.observe.report; import nori_dyn as nd;"
        "s = nd.System(nd.autotree(1), nd.sensors('inverse_dynamics')); print(nd.observability(s).is_observable)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
    assert nd.observability(nd.System(nd.autotree(1), INVERSE)).is_observable
