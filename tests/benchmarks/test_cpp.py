"""The comparison with Pinocchio's C++: what it reads, and who is said to be missing."""

import numpy as np
import pytest

from benchmarks.harness import TOLERANCE, difference
from benchmarks.peers import cpp
from benchmarks.peers.pinocchio import PinocchioModel
from benchmarks.robots import random_states
from benchmarks.suites import cpp as suite
from benchmarks.suites.base import Options
from nori_dyn.errors import CompilerError
from tests.benchmarks.test_peers import TREES

TARGETS = """
set_target_properties(pinocchio::pinocchio_headers PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "BOOST_MPL_LIMIT_LIST_SIZE=30;BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"
  INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include")
set_target_properties(pinocchio::pinocchio_parsers PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION;PINOCCHIO_WITH_URDFDOM;\\$<TARGET_PROPERTY:x>"
)
"""


def there() -> bool:
    try:
        cpp.installed()
        cpp.cpp_command()
    except CompilerError:
        return False
    return True


def quiet(stage, share=None):
    """Show nothing."""


def test_definitions_are_those_of_the_targets_but_for_conditions_and_the_librarys_own_code():
    expected = ("BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "PINOCCHIO_WITH_URDFDOM")
    assert cpp.definitions(TARGETS) == expected
    assert cpp.definitions("") == ()


@pytest.mark.parametrize("base", TREES)
def test_a_model_that_is_made_of_the_joints_numbers_answers_as_the_model(base):
    """Made anew with Pinocchio in Python, as the peer makes it in C++."""
    tree = TREES[base]
    states, at = random_states(tree, 1, 0), PinocchioModel(tree)
    pin, model = at.pin, at.pin.Model()
    for kind, parent, *numbers in cpp.joints_of(at):
        axis, rotation, r, m, c, inertia = np.split(np.array(numbers), [3, 12, 15, 16, 19])
        name = cpp.JOINTS[int(kind)]
        joint = getattr(pin, f"JointModel{name}")(*([axis] if name.endswith("Unaligned") else []))
        placement = pin.SE3(rotation.reshape(3, 3).T, r)
        k = model.addJoint(int(parent), joint, placement, f"joint {model.njoints}")
        model.appendBodyToJoint(k, pin.Inertia(float(m[0]), c, inertia.reshape(3, 3)), pin.SE3.Identity())
    q, v, y = at.first(states)
    for solve in (pin.rnea, pin.aba):
        expected = solve(at.model, at.data, q, v, y)
        assert difference(solve(model, model.createData(), q, v, y), expected) < 1e-12


def test_a_joint_that_a_peer_does_not_make_is_told(monkeypatch):
    monkeypatch.setattr(cpp, "JOINTS", ("FreeFlyer",))
    with pytest.raises(ValueError, match="makes no Pinocchio joint 'R"):
        cpp.joints_of(PinocchioModel(TREES["fixed"]))


@pytest.mark.parametrize(
    ("c", "cpp_name"), [("gcc", "g++"), ("/usr/bin/gcc-12", "/usr/bin/g++-12"), ("clang", "clang++"), ("cc", "c++")]
)
def test_the_cpp_compiler_is_that_of_the_c_compiler_with_its_flags(monkeypatch, c, cpp_name):
    compiler = type("Compiler", (), {"command": (c, "-mno-avx512f")})()
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(cpp, "needed_compiler", lambda what: compiler)
    monkeypatch.setattr(cpp.shutil, "which", lambda name: name)
    assert cpp.cpp_command() == (cpp_name, "-mno-avx512f")
    monkeypatch.setattr(cpp.shutil, "which", lambda name: None)
    with pytest.raises(CompilerError, match="no C\\+\\+ compiler"):
        cpp.cpp_command()
    monkeypatch.setenv("CXX", "my++ -m64")
    assert cpp.cpp_command() == ("my++", "-m64")


def test_who_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(cpp, "HEADERS", {"no-such-distribution": ("include", "x.hpp")})
    cpp.library.cache_clear()
    results = suite.measure(Options(quick=True, robots=("double_pendulum",), rounds=1), quiet)
    assert [result.case["problem"] for result in results] == ["inverse_dynamics", "forward_dynamics"]
    for result in results:
        assert list(result.skipped) == list(cpp.BUILDS)
        for reason in result.skipped.values():
            assert "no-such-distribution is not installed" in reason
            assert "pip install 'pin[build]'" in reason
        here, anywhere = suite.COMPILED
        assert result.differences[anywhere] < TOLERANCE / 1000
        assert set(result.seconds) == {here, anywhere}


@pytest.mark.skipif(not there(), reason="Pinocchio's headers or a C++ compiler are missing")
def test_exported_c_answers_as_pinocchios_cpp():
    """The compilation of Pinocchio takes minutes, once for a cache."""
    results = suite.measure(Options(quick=True, robots=("panda",), rounds=2), quiet)
    assert [result.case["problem"] for result in results] == ["inverse_dynamics", "forward_dynamics"]
    for result in results:
        assert set(result.skipped) <= {cpp.GENERATED}
        assert result.wrong == {}
        assert all(off < TOLERANCE / 1000 for off in result.differences.values())
        assert {cpp.WHEEL, cpp.NATIVE} <= set(result.seconds)
