"""Exported C is what the solver computes, stands alone, and stays within what its caller gives it."""

import re
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.model.synthetic import autotree
from nori_dyn.system.builder import System
from tests.compilers import needs_compiler
from tests.contracts.test_backends import TwoReadings, singular_tree
from tests.exported import Exported, listed, needs_cpp, needs_nm, write_files
from tests.robots import load
from tests.systems import FORWARD, INVERSE, hybrid, random_states, sensor_set
from tests.tolerances import EXACT, SAME_PROGRAM, assert_close
from tests.trees import TREES, on_a_free_base

pytestmark = needs_compiler

OK, INPUT_NOT_FINITE, QUATERNION_NOT_UNIT, SMALL_PIVOT, OUTPUT_NOT_FINITE, INACCURATE = range(6)
NEGATIVE_WEIGHT, WEIGHT_SPREAD, ZERO_WEIGHT, UNPLANNED_CONTACTS = range(6, 10)

PLANS = {
    "panda inverse": lambda: (load("panda"), sensors("inverse_dynamics"), None),
    "panda forward": lambda: (load("panda"), sensors("forward_dynamics"), ("qdd",)),
    "go2 floating inverse": lambda: (load("go2", "floating"), INVERSE, ("tau", "f:FL_hip")),
    "go2 floating forward": lambda: (load("go2", "floating"), FORWARD, ("qdd", "a:FL_foot", "tau:FL_calf_joint")),
    "legs": lambda: (on_a_free_base(autotree(7, branching=2, skew=0.3)), FORWARD, ("qdd",)),
    "every joint": lambda: (TREES["mixed_12"], INVERSE, None),
    "no readings": lambda: (TREES["massless"], sensor_set(*KNOWN), None),
    "frames": lambda: (TREES["two_roots"], FORWARD, ("fx:tool", "a:tool", "f:palm", "qdd", "qdd", "tau:joint2")),
    "hybrid": lambda: (TREES["fixed_joints"], hybrid(TREES["fixed_joints"], 1), None),
    "one body": lambda: (TREES["one_body"], FORWARD, None),
    "singular": lambda: (singular_tree(), TwoReadings(), None),
    "soft": lambda: (autotree(3), sensor_set(*SOFT), ("tau", "qdd")),
    "weighed": lambda: (on_a_free_base(autotree(2, skew=0.3)), sensor_set(*WEIGHED), ("tau", "fx")),
}
SOFT = (
    {"type": "joint_acceleration", "joints": "all", "sigma": 0.5},
    {"type": "joint_torque", "joints": "all", "sigma": 0.2},
    {"type": "external_wrench", "links": "all", "value": 0},
)
WEIGHED = (
    {"type": "joint_acceleration", "joints": "all", "sigma": 0.1},
    {"type": "joint_torque", "joints": "all", "sigma": 0.3},
    {"type": "external_wrench", "links": "all", "sigma": [1, 1, 1, 2, 2, 2]},
)
KNOWN = (
    {"type": "joint_acceleration", "joints": "all", "value": 0.5},
    {"type": "external_wrench", "links": "all", "value": [1, 2, 3, 4, 5, 6]},
)
LONG = {"panda inverse", "go2 floating inverse", "go2 floating forward"}  # `legs` and `every joint` have all they have
every_plan = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in PLANS]
)


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


@needs_nm
@every_plan
def test_it_stands_alone(name, compiled, tmp_path):
    """It has no data that is written, and calls four functions; the example runs, compiled in the plainest way."""
    made = compiled(name)
    plain = made._replace(folder=tmp_path)
    write_files(made.export.files, tmp_path)
    plain.objects("-O0")
    public = {"init", "solve", "status_text"} | ({"default_weights"} if planned(name).system.is_weighted else set())
    for defined, needed in (made.symbols(), plain.symbols()):
        assert defined == {f"{made.export.name}_{function}" for function in public}
        assert needed <= {"sin", "cos", "sincos", "sqrt", "memset", "memcpy", *OF_THE_COMPILER}
    lines = plain.run_example(tmp_path)
    assert len(lines) == 1 + sum(int(np.prod(shape)) for shape in made.export.outputs.values())
    assert lines[-1].endswith("us a call")
    assert not any("nan" in line or "inf" in line for line in lines)


OF_THE_COMPILER = {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}


@needs_cpp
def test_a_program_in_cpp_uses_it(compiled, tmp_path):
    made = compiled("frames")
    name = made.export.name
    program = (
        f'#include "{name}.h"\n#include <iostream>\n'
        f"int main() {{ {name}_inputs in{{}}; {name}_outputs out{{}}; {name}_workspace work;\n"
        f"  std::cout << {name}_status_text({name}_solve(&in, &work, &out)) << out.fx_tool[0] << std::endl; }}\n"
    )
    for standard in ("c++11", "c++20"):
        assert "not of unit length" in made.run_cpp(program, tmp_path, standard)


def test_without_vectors_it_is_the_same(compiled, tmp_path):
    plain = Exported.of(planned("legs"), tmp_path, "-DIT_NO_VECTORS", name="it")
    source = (tmp_path / "it.c").read_text()
    assert "const v2 " in source or "const v4 " in source
    assert "!defined(IT_NO_VECTORS)" in source
    for state in zip(*states("legs"), strict=True):
        (status, expected), (other, found) = compiled("legs").solve(*state), plain.solve(*state)
        assert (status, other) == (OK, OK)
        for field, values in found.items():
            assert_close(values, expected[field], SAME_PROGRAM)


@every_plan
def test_every_place_has_a_name(name, compiled):
    made, system = compiled(name).export, planned(name).system
    named = {"Y": system.measurement_names, "WEIGHT": system.weight_names}
    places = {"Q": system.tree.q_slices, **dict.fromkeys(("QD", "TAU", "QDD"), system.tree.v_slices)}
    groups = {"Q": system.tree.nq, "QD": system.tree.nv, "Y": system.ny, "WEIGHT": system.n_weights}
    groups |= {kind.upper(): system.tree.nv for kind in ("tau", "qdd") if kind in made.outputs}
    for group, n in groups.items():
        prefix = f"{made.name.upper()}_{group}_"
        assert [value for place, value in made.indices.items() if place.startswith(prefix)] == list(range(n))
        found = [made.indices[prefix + re.sub(r"\W", "_", reading)] for reading in named.get(group, ())]
        assert found == list(range(len(found)))
        for joint, at in zip(system.tree.joint_names, places.get(group, ()), strict=False):
            assert at.stop - at.start != 1 or made.indices[prefix + joint] == at.start


@pytest.mark.parametrize("name", ["soft", "frames"])
def test_inputs_are_ready_after_one_call(name, compiled):
    """Quaternions begin at unit length, and weights as they are configured."""
    made, system = compiled(name), planned(name).system
    given, out = made.new("inputs"), made.new("outputs")
    made.call("init", given)
    assert listed(given, "q") == system.tree.neutral_configuration().tolist()
    assert listed(given, "qd") == [0.0] * system.tree.nv
    assert listed(given, "y") == [0.0] * system.ny
    if system.is_weighted:
        assert listed(given, "weights") == system.weights.tolist()
        assert listed(made.library, f"{made.export.name}_default_weights") == system.weights.tolist()
    assert made.call("solve", given, made.new("workspace"), out) == OK
    expected = planned(name).solver("numpy").solve(listed(given, "q"), listed(given, "qd"), listed(given, "y"))
    assert_close(np.array(listed(out, "qdd")), expected.qdd, SAME_PROGRAM)


# ------------------------------------------------------------------------------------ the status


def refused(made: Exported, state, expected: int) -> None:
    status, found = made.solve(*state)
    assert status == expected, state
    assert all(np.isnan(values).all() for values in found.values()), state


@pytest.fixture(scope="module", params=["as it is", "-ffast-math"])
def guarded(request, compiled, tmp_path_factory):
    """Exports by plan, compiled strictly and in the way that undoes tests for NaN."""
    if request.param == "as it is":
        return compiled
    folder = tmp_path_factory.mktemp("fast")
    return lru_cache(lambda name: Exported.of(planned(name), folder / name, "-O3", "-ffast-math"))


def test_what_is_not_finite_is_refused(guarded):
    state = [x[0].copy() for x in states("frames")]
    for which, value, last in product(range(3), (np.nan, np.inf, -np.inf), (False, True)):
        broken = [x.copy() for x in state]
        broken[which][-last] = value
        refused(guarded("frames"), broken, INPUT_NOT_FINITE)
    assert guarded("frames").solve(*state)[0] == OK


def test_a_quaternion_that_is_not_unit_is_refused(guarded):
    q, qd, y = (x[0].copy() for x in states("frames"))
    for part, scale in product(planned("frames").system.tree.quaternions, (0.0, 0.5, 0.9985, 1.0015, 1e200)):
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


def test_a_pivot_that_vanishes_is_reported_and_does_not_spoil_the_next(guarded):
    made = guarded("singular")
    q, qd, y = (x[0].copy() for x in states("singular"))
    status, before = made.solve(q, qd, y)
    assert status == OK
    for angle in (0.0, 1e-17, 1e-9, 1e-5, np.pi):
        flat = q.copy()
        flat[1] = angle
        refused(made, (flat, qd, y), SMALL_PIVOT)
        assert planned("singular").solver("numpy").solved(flat, qd, y)[2], angle
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


WEIGHTS = (
    ([1, 1, 1, 1, 1, -1e-300], NEGATIVE_WEIGHT),
    ([1, 1, 1, 1, 1, np.nan], INPUT_NOT_FINITE),
    ([1, 1, 1, 1, 1, np.inf], INPUT_NOT_FINITE),
    ([1, 1, 1, 1, 1, 2e14], WEIGHT_SPREAD),
    ([1, 1, 1, 1, 1, 1e-15], WEIGHT_SPREAD),
    ([0, 0, 0, 0, 0, 0], ZERO_WEIGHT),
    ([0, 0, 1, 0, 0, 1], ZERO_WEIGHT),
    ([0, 0, 0, 1, 1, 1], ZERO_WEIGHT),  # what the planned order divides by
    ([0, 1, 1, 0, 1, 1], OK),
    ([1, 1, 1, 1e-6, 1e-6, 1e-6], OK),
)


def test_weights_that_cannot_be_used_have_a_status_of_their_own(compiled):
    made, solver = compiled("soft"), planned("soft").solver("numpy")
    state = np.full(3, 0.3), np.ones(3), np.arange(6.0)
    for weights, status in WEIGHTS:
        found, outputs = made.solve(*state, np.array(weights, dtype=float))
        assert found == status, weights
        if status == OK:
            expected = solver.solve(*state, np.array(weights, dtype=float))
            assert_close(outputs["tau"], expected.tau, SAME_PROGRAM)
            continue
        assert all(np.isnan(values).all() for values in outputs.values()), weights
        words = made.ffi.string(made.call("status_text", found)).decode()
        assert "weight" in words or status == INPUT_NOT_FINITE, weights
    assert solver.solve(*state, np.array([0.0, 0, 0, 1, 1, 1])).fell_back  # Python solves afresh
