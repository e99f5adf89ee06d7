"""Exported C is what the solver computes, stands alone, and stays within what its caller gives it."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.api.plan import Plan, plan
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.system.builder import System
from tests.compilers import needs_compiler
from tests.contracts.test_backends import TwoReadings, singular_tree
from tests.exported import WARNINGS, Exported, checked, compile_c
from tests.robots import load
from tests.systems import FORWARD, INVERSE, hybrid, random_states, sensor_set
from tests.tolerances import EXACT, SAME_PROGRAM, assert_close
from tests.trees import TREES

pytestmark = needs_compiler

OK, INPUT_NOT_FINITE, QUATERNION_NOT_UNIT, SMALL_PIVOT, OUTPUT_NOT_FINITE, INACCURATE = range(6)
NEGATIVE_WEIGHT, WEIGHT_SPREAD, ZERO_WEIGHT, UNPLANNED_CONTACTS = range(6, 10)

PLANS = {
    "panda inverse": lambda: (load("panda"), sensors("inverse_dynamics"), None),
    "panda forward": lambda: (load("panda"), sensors("forward_dynamics"), ("qdd",)),
    "go2 floating inverse": lambda: (load("go2", "floating"), INVERSE, ("tau", "f:FL_hip")),
    "go2 floating forward": lambda: (load("go2", "floating"), FORWARD, ("qdd", "a:FL_foot", "tau:FL_calf_joint")),
    "every joint": lambda: (TREES["mixed_12"], INVERSE, None),
    "no readings": lambda: (TREES["massless"], sensor_set(*KNOWN), None),
    "frames": lambda: (TREES["two_roots"], FORWARD, ("fx:tool", "a:tool", "f:palm", "qdd", "qdd", "tau:joint2")),
    "hybrid": lambda: (TREES["mixed_8"], hybrid(TREES["mixed_8"], 1), None),
    "one body": lambda: (TREES["one_body"], FORWARD, None),
    "singular": lambda: (singular_tree(), TwoReadings(), None),
    "weighed": lambda: (TREES["three_children"], sensor_set(*WEIGHED), ("tau", "fx")),
}
WEIGHED = (
    {"type": "joint_acceleration", "joints": "all", "sigma": 0.1},
    {"type": "joint_torque", "joints": "all", "sigma": 0.3},
    {"type": "external_wrench", "links": "all", "sigma": [1, 1, 1, 2, 2, 2]},
)
KNOWN = (
    {"type": "joint_acceleration", "joints": "all", "value": 0.5},
    {"type": "external_wrench", "links": "all", "value": [1, 2, 3, 4, 5, 6]},
)
every_plan = pytest.mark.parametrize("name", PLANS)


@lru_cache(maxsize=32)
def planned(name: str) -> Plan:
    tree, readings, outputs = PLANS[name]()
    return plan(System(tree, readings), outputs=outputs)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    @lru_cache(maxsize=32)
    def made(name: str) -> Exported:
        return Exported.of(planned(name), tmp_path_factory.mktemp("export") / "it")

    return made


def states(name: str, n: int = 20):
    system = planned(name).system
    truth = random_states(system.tree, n, seed=5)
    return truth.q, truth.qd, np.random.default_rng(6).normal(size=(n, system.ny))


@every_plan
def test_it_is_what_the_solver_gives(name, compiled):
    solver = planned(name).solver("numpy")
    solved = 0
    system = planned(name).system
    weights = (system.weights,) if system.is_weighted else ()
    for q, qd, y in zip(*states(name), strict=True):
        status, found = compiled(name).solve(q, qd, y, *weights)
        estimate = solver.solve(q, qd, y)
        if status != OK:
            assert status == SMALL_PIVOT
            assert estimate.fell_back
            continue
        solved += 1
        for output, values in estimate.values.items():
            field = re.sub(r"\W", "_", output)
            assert_close(np.reshape(found[field], values.shape), values, SAME_PROGRAM)
    assert solved >= 18


@every_plan
def test_the_example_runs(name, compiled, tmp_path):
    made = compiled(name)
    code = [made.folder / f"{made.export.name}.c", made.folder / "main.c"]
    compile_c("-O0", "-o", tmp_path / "example", *code, "-lm")
    lines = checked([tmp_path / "example"]).splitlines()
    assert len(lines) == 1 + sum(int(np.prod(shape)) for shape in made.export.outputs.values())
    assert lines[-1].endswith("us a call")
    assert not any("nan" in line or "inf" in line for line in lines)


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
@every_plan
def test_it_has_no_data_that_is_written_and_calls_four_functions(name, compiled, tmp_path):
    made = compiled(name)
    for level in ("-O0", "-O2"):
        compile_c(level, "-c", "-o", tmp_path / "it.o", made.folder / f"{made.export.name}.c")
        symbols = [line.split()[-2:] for line in checked(["nm", tmp_path / "it.o"]).splitlines()]
        assert {kind for kind, _ in symbols} <= set("TtrRU")
        needed = {symbol for kind, symbol in symbols if kind == "U"}
        assert needed <= {
            "sin",
            "cos",
            "sincos",
            "sqrt",
            "memset",
            "memcpy",
            "_GLOBAL_OFFSET_TABLE_",
            "__stack_chk_fail",
        }
        public = {symbol.removeprefix(f"{made.export.name}_") for kind, symbol in symbols if kind in "TR"}
        weights = {"default_weights"} if planned(name).system.is_weighted else set()
        assert public == {"init", "solve", "status_text"} | weights


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler here")
@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_a_program_in_cpp_uses_it(standard, compiled, tmp_path):
    made = compiled("frames")
    name = made.export.name
    compile_c("-O0", "-c", "-o", tmp_path / "it.o", made.folder / f"{name}.c")
    (tmp_path / "main.cpp").write_text(
        f'#include "{name}.h"\n#include <iostream>\n'
        f"int main() {{ {name}_inputs in{{}}; {name}_outputs out{{}}; {name}_workspace work;\n"
        f"  std::cout << {name}_status_text({name}_solve(&in, &work, &out)) << out.fx_tool[0] << std::endl; }}\n"
    )
    flags = [f"-std={standard}", *WARNINGS, f"-I{made.folder}"]
    checked(["g++", *flags, "-o", tmp_path / "it", tmp_path / "main.cpp", tmp_path / "it.o", "-lm"])
    assert "not of unit length" in checked([tmp_path / "it"])


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake here")
def test_cmake_builds_the_library_and_the_example(compiled, tmp_path):
    made = compiled("frames")
    checked(["cmake", "-S", made.folder, "-B", tmp_path])
    checked(["cmake", "--build", tmp_path])
    assert "us a call" in checked([tmp_path / f"{made.export.name}_example"])


def test_without_vectors_it_is_the_same(compiled, tmp_path):
    name = "go2 floating forward"
    plain = Exported.of(planned(name), tmp_path, "-DGO2_DESCRIPTION_NO_VECTORS")
    source = (tmp_path / f"{plain.export.name}.c").read_text()
    assert "vector_size" in source
    assert "!defined(GO2_DESCRIPTION_NO_VECTORS)" in source
    for state in zip(*states(name), strict=True):
        status, expected = compiled(name).solve(*state)
        assert (status, OK) == (plain.solve(*state)[0], OK)
        for field, values in plain.solve(*state)[1].items():
            assert_close(values, expected[field], SAME_PROGRAM)


@every_plan
def test_every_place_has_a_name(name, compiled):
    made, library, system = compiled(name).export, compiled(name).library, planned(name).system
    assert {place: getattr(library, place) for place in made.indices} == dict(made.indices)
    groups = {"Q": system.tree.nq, "QD": system.tree.nv, "Y": system.ny, "WEIGHT": system.n_weights}
    groups |= {kind.upper(): system.tree.nv for kind in ("tau", "qdd") if kind in made.outputs}
    for group, n in groups.items():
        prefix = f"{made.name.upper()}_{group}_"
        assert [value for place, value in made.indices.items() if place.startswith(prefix)] == list(range(n))


# ------------------------------------------------------------------------------------ the status


def refused(made: Exported, state, expected: int) -> None:
    status, found = made.solve(*state)
    assert status == expected
    assert all(np.isnan(values).all() for values in found.values())


@pytest.fixture(scope="module", params=["as it is", "-ffast-math"])
def guarded(request, compiled, tmp_path_factory):
    """Return exports by plan, compiled strictly and in the way that undoes tests for NaN."""
    if request.param == "as it is":
        return compiled
    folder = tmp_path_factory.mktemp("fast")
    return lru_cache(lambda name: Exported.of(planned(name), folder / name, "-O3", "-ffast-math"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", range(3))
def test_what_is_not_finite_is_refused(which, value, guarded):
    state = [x[0].copy() for x in states("frames")]
    for k in (0, len(state[which]) - 1):
        broken = [x.copy() for x in state]
        broken[which][k] = value
        refused(guarded("frames"), broken, INPUT_NOT_FINITE)
    assert guarded("frames").solve(*state)[0] == OK


@pytest.mark.parametrize("scale", [0.0, 0.5, 0.9985, 1.0015, 1e200])
def test_a_quaternion_that_is_not_unit_is_refused(scale, guarded):
    q, qd, y = (x[0].copy() for x in states("frames"))
    for part in planned("frames").system.tree.quaternions:
        broken = q.copy()
        broken[part] *= scale
        refused(guarded("frames"), (broken, qd, y), QUATERNION_NOT_UNIT)


def test_a_quaternion_that_is_nearly_unit_is_normalised(compiled):
    q, qd, y = (x[0].copy() for x in states("frames"))
    stretched = q.copy()
    for part in planned("frames").system.tree.quaternions:
        stretched[part] *= 1.0009
    status, found = compiled("frames").solve(stretched, qd, y)
    assert status == OK
    for field, values in compiled("frames").solve(q, qd, y)[1].items():
        assert_close(found[field], values, SAME_PROGRAM)


@pytest.mark.parametrize("angle", [0.0, 1e-17, 1e-9, 1e-5, np.pi])
def test_a_pivot_that_vanishes_is_reported_and_does_not_spoil_the_next(angle, guarded):
    made = guarded("singular")
    q, qd, y = (x[0].copy() for x in states("singular"))
    status, before = made.solve(q, qd, y)
    assert status == OK
    flat = q.copy()
    flat[1] = angle
    refused(made, (flat, qd, y), SMALL_PIVOT)
    assert planned("singular").solver("numpy")._backend.solve(flat, qd, y).fell_back
    for field, values in made.solve(q, qd, y)[1].items():
        assert_close(values, before[field], EXACT)


def test_what_overflows_is_refused(compiled):
    q, qd, y = (x[0].copy() for x in states("frames"))
    refused(compiled("frames"), (q, 1e200 * qd, y), OUTPUT_NOT_FINITE)


def test_a_status_has_words(compiled):
    made = compiled("frames")
    text = getattr(made.library, f"{made.export.name}_status_text")
    words = [made.ffi.string(text(status)).decode() for status in range(11)]
    assert len(set(words)) == 11
    assert words[10] == "unknown status"
    assert words[0] == "solved"
