"""Names of outputs, and the columns that they stand for."""

import pytest

from nori_dyn.errors import PlanError
from nori_dyn.planning.outputs import Output, output_columns, resolve_outputs
from nori_dyn.system.builder import System
from nori_dyn.system.variables import KINDS
from tests.systems import INVERSE
from tests.trees import TREES


@pytest.fixture(scope="module")
def system() -> System:
    return System(TREES["two_roots"], INVERSE)


def named(system, output):
    """Return the names of the columns of an output."""
    return [system.variable_names[k] for k in output_columns(system, resolve_outputs(system, (output,)))]


def test_none_stands_for_all_and_a_kind_for_all_bodies(system):
    outputs = resolve_outputs(system, None)
    assert [output.name for output in outputs] == list(KINDS)
    assert sorted(set(output_columns(system, outputs).tolist())) == list(range(system.shape[1]))
    for kind in KINDS:
        assert named(system, kind) == [name for name in system.variable_names if name.startswith(f"{kind}:")]
    assert resolve_outputs(system, "tau") == resolve_outputs(system, ("tau",))


def test_one_variable(system):
    for name in ("tau:joint1", "qdd:joint3", "a:link2", "f:link5", "fx:link1"):
        (output,) = resolve_outputs(system, (name,))
        assert output.X is None
        variable = next(v for v in system.variables if v.name == name)
        assert tuple(named(system, name)) == variable.component_names


def test_a_frame_on_a_link_is_the_link_with_a_transform(system):
    (output,) = resolve_outputs(system, ("fx:tool",))
    frame = system.tree.frame("tool")
    assert output == Output("fx:tool", "fx", frame.link, frame.X, "tool")
    assert named(system, "fx:tool") == named(system, f"fx:{system.tree.names[frame.link]}")


def test_unknown_names_and_no_outputs_are_refused(system):
    for name, message in (
        ("torque", "unknown output 'torque'"),
        ("tau:joint11", "unknown output 'tau:joint11'.*Did you mean 'tau:joint1'"),
        ("tau:link1", "unknown output 'tau:link1'"),
        ("fx:joint1", "unknown output 'fx:joint1'"),
        ("fx:wall", "'wall' is fixed to the world"),
        ("", "unknown output ''"),
    ):
        with pytest.raises(PlanError, match=message):
            resolve_outputs(system, (name,))
    with pytest.raises(PlanError, match="outputs is empty"):
        resolve_outputs(system, ())
