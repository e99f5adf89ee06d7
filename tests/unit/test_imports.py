"""What importing costs, and what planning a long chain costs; counted, not timed."""

import subprocess
import sys

import pytest

import nori_dyn as nd

HEAVY = ("numpy", "scipy", "pydantic", "lxml", "mujoco", "matplotlib", "rich", "typer")
STAGES = {
    "import sys, nori_dyn as nd": HEAVY,
    "import nori_dyn.tables": ("numpy", "rich", "jinja2"),
    "import nori_dyn.descriptions.urdf, nori_dyn.descriptions.mjcf": ("lxml", "mujoco"),
    "nd.plan(nd.System(nd.autotree(3), 'inverse_dynamics'))": ("lxml", "mujoco", "matplotlib", "pinocchio"),
}
"""What is done one after the other, and what is not imported by it."""

OBSERVED = """
import nori_dyn.observe.report
print(nd.observability(nd.System(nd.autotree(1), "inverse_dynamics")).is_observable)
"""


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def test_nothing_is_imported_before_it_is_needed():
    """And a package that is imported by its name is not what `nori_dyn` has of that name."""
    code = "\n".join(f"{stage}\nprint([m for m in {others} if m in sys.modules])" for stage, others in STAGES.items())
    assert run(code + OBSERVED).splitlines() == ["[]"] * len(STAGES) + ["True"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("sensors", ["inverse_dynamics", pytest.param("forward_dynamics", marks=pytest.mark.long)])
def test_planning_a_chain_of_a_hundred_links_stays_under_a_gigabyte(sensors):
    # VmHWM is the process's own peak; ru_maxrss would begin at what the parent held
    code = (
        "import re, pathlib, nori_dyn as nd;"
        f"plan = nd.plan(nd.System(nd.autotree(100, skew=1.5), nd.sensors('{sensors}')), cache=False);"
        r"peak = re.search(r'VmHWM:\s+(\d+) kB', pathlib.Path('/proc/self/status').read_text())[1];"
        "print(plan.system.shape[0], peak)"
    )
    rows, kilobytes = map(int, run(code).split())
    assert rows == 2000
    assert kilobytes < 1_000_000


CONTRACT = (
    "load_urdf",
    "load_mjcf",
    "autotree",
    "sensors",
    "load_sensors",
    "System",
    "plan",
    "Plan",
    "observability",
    "configurations_where",
    "rnea",
    "aba",
    "crba",
    "minverse",
    "coriolis",
    "christoffel",
    "ltl",
    "ltdl",
    "load_robot",
    "conditioning",
    "redundancy",
    "place",
    "identify",
    "identifiability",
    "exciting_motion",
    "estimate",
    "read_log",
    "view",
    "jacobian",
    "compile",
    "Tracker",
)


def test_at_most_forty_five_names_are_public():
    assert len(nd.__all__) <= 45
    assert {*CONTRACT} <= {*nd.__all__} <= {*dir(nd)}
    assert all(getattr(nd, name) is not None for name in nd.__all__)
    with pytest.raises(AttributeError, match="no attribute 'rnae'"):
        _ = nd.rnae


FORMER = {
    "Estimate": "results.Estimate",
    "NoriError": "errors.NoriError",
    "rnea_derivatives": "recursions.rnea_derivatives",
    "random_tree": "tools.random_tree",
    "ObservabilityReport": "observe.ObservabilityReport",
    "Filter": r"Tracker\(plan, dt\)",
    "ContactFilter": r"Tracker\(plan, dt, hypotheses=nori_dyn.Hypotheses\(\)\)",
    "PlanSet": "Plan",
    "plan_set": r"plan\(tree, sensors\)",
}


@pytest.mark.parametrize("name", FORMER)
def test_former_names_say_the_new_ones(name):
    with pytest.warns(DeprecationWarning, match=f"^nori_dyn.{name} is now nori_dyn.{FORMER[name]}$") as told:
        assert getattr(nd, name) is not None
    assert told[0].filename == __file__


def test_orders_of_a_model_of_pinocchio_have_their_former_names():
    words = r"^nori_dyn.interop.to_pinocchio_order is now nori_dyn.interop.to_convention$"
    with pytest.warns(DeprecationWarning, match=words):
        assert nd.interop.to_pinocchio_order is nd.interop.to_convention
