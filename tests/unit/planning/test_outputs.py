"""Names of outputs, and the columns that they stand for."""

from __future__ import annotations

import numpy as np
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


def test_none_stands_for_all(system):
    outputs = resolve_outputs(system, None)
    assert [output.name for output in outputs] == list(KINDS)
    assert sorted(set(output_columns(system, outputs).tolist())) == list(range(system.shape[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_stands_for_all_bodies(system, kind):
    columns = output_columns(system, resolve_outputs(system, (kind,)))
    names = [system.variable_names[column] for column in columns]
    assert names == [name for name in system.variable_names if name.startswith(f"{kind}:")]


@pytest.mark.parametrize("name", ["tau:joint1", "qdd:joint3", "a:link2", "f:link5", "fx:link1"])
def test_one_variable(system, name):
    (output,) = resolve_outputs(system, (name,))
    assert output.X is None
    names = [system.variable_names[column] for column in output_columns(system, (output,))]
    variable = next(v for v in system.variables if v.name == name)
    assert tuple(names) == variable.component_names


def test_a_frame_on_a_link_is_the_link_with_a_transform(system):
    (output,) = resolve_outputs(system, ("fx:tool",))
    frame = system.tree.frame("tool")
    assert output == Output("fx:tool", "fx", frame.link, frame.X, "tool")
    link = resolve_outputs(system, (f"fx:{system.tree.names[frame.link]}",))
    np.testing.assert_array_equal(output_columns(system, (output,)), output_columns(system, link))


def test_a_single_name_is_a_list_of_one(system):
    assert resolve_outputs(system, "tau") == resolve_outputs(system, ("tau",))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torque", "unknown output 'torque'"),
        ("tau:joint11", "unknown output 'tau:joint11'.*Did you mean 'tau:joint1'"),
        ("tau:link1", "unknown output 'tau:link1'"),
        ("fx:joint1", "unknown output 'fx:joint1'"),
        ("fx:wall", "'wall' is fixed to the world"),
        ("", "unknown output ''"),
    ],
)
def test_unknown_names_are_refused(system, name, message):
    with pytest.raises(PlanError, match=message):
        resolve_outputs(system, (name,))


def test_no_outputs_are_refused(system):
    with pytest.raises(PlanError, match="outputs is empty"):
        resolve_outputs(system, ())
