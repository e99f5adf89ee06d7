"""The class for C++ and the CMake package of an export: compiled, installed and used as another project would."""

import textwrap
from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler
from tests.contracts.test_export import SOFT
from tests.exported import Exported, address, checked, needs_cmake, needs_cpp
from tests.systems import sensor_set
from tests.tolerances import SAME_PROGRAM, assert_close

pytestmark = [needs_compiler, needs_cpp]

PROGRAM = r"""
#include <it.hpp>

#include <cmath>
#include <cstdio>
#include <limits>

int main() {
    static nori_dyn::it::Solver solver;
    static_assert(noexcept(solver.solve()), "a tick does not throw");
    if (!std::isnan(solver.tau()[0])) return 1;
    std::array<double, IT_NQ> q{};
    q[IT_Q_joint2] = 0.5;
    solver.set_q(q);
    solver.set_y({1, 2, 3, 4, 5, 6});
    if (solver.solve() != IT_OK) return 2;
    for (const double tau : solver.tau()) std::printf("%.17g ", tau);
    std::printf("%.17g ", solver.fx()[IT_LINK_link1][IT_FZ]);
    std::printf("%.17g\n", solver.tau_joint2());
    solver.in.qd[IT_QD_joint1] = std::numeric_limits<double>::infinity();
    try {
        solver.solve_or_throw();
        return 3;
    } catch (const nori_dyn::it::Refused &refused) {
        std::printf("%d %s\n", refused.status(), refused.what());
    }
    return std::isnan(solver.tau_joint2()) ? 0 : 4;
}
"""


@lru_cache
def planned() -> nd.Plan:
    return nd.plan(nd.System(nd.autotree(3), sensor_set(*SOFT)), outputs=("tau", "fx", "tau:joint2"))


@pytest.fixture
def plan():
    return planned()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Exported.of(planned(), tmp_path_factory.mktemp("cpp") / "export", name="it", monitor=True)


def assert_says_the_same(output: str, plan: nd.Plan) -> None:
    numbers, refusal = output.splitlines()
    expected = plan.solver("numpy").solve(np.array([0, 0.5, 0]), np.zeros(3), np.arange(1.0, 7.0))
    assert_close([float(x) for x in numbers.split()], [*expected.tau, 0.0, expected.tau[1]], SAME_PROGRAM)
    assert refusal == "1 a number of the inputs is infinite or not a number"


def test_the_class_solves_throws_and_copies(plan, made, tmp_path):
    for standard in ("c++17", "c++20"):
        assert_says_the_same(made.run_cpp(PROGRAM, tmp_path, standard), plan)


def test_the_class_judges(plan, made, tmp_path):
    program = (
        '#include "it.hpp"\n#include <cstdio>\n'
        "int main() {\n"
        "    static nori_dyn::it::Solver solver;\n"
        "    solver.in.y[IT_Y_qdd_joint1] = 9;\n"
        "    if (solver.check() != IT_OK) return 1;\n"
        '    std::printf("%d %.3g\\n", it_suspect(&solver.diagnosis), solver.diagnosis.p_value);\n'
        "}\n"
    )
    suspected, p_value = made.run_cpp(program, tmp_path).split()
    assert 0 <= float(p_value) < 1e-3
    monitor, y = plan.monitor("numpy"), np.zeros(plan.system.ny)
    y[plan.system.measurement_names.index("qdd:joint1")] = 9
    first = monitor.check(np.zeros(3), np.zeros(3), y).suspects()[0]
    assert monitor.readings[int(suspected)] == first.reading


def test_what_these_tests_keep_compiled_is_found_by_all_that_made_it(tmp_path):
    """Source, headers, flags, compiler and processor: none of them may be another where an old object is taken."""
    source, header, folder = tmp_path / "it.c", tmp_path / "it.h", tmp_path / "more"
    folder.mkdir()

    def found(command=("cc",), identity="1.0, a processor", flag="-O2", object="it.o"):
        return address(command, identity, [flag, f"-I{folder}", "-c", "-o", str(tmp_path / object), str(source)])

    source.write_text("int it;")
    before = found()
    assert before == found(object="other.o")
    changed = [found(command=("cc", "-m32")), found(identity="1.0, another"), found(flag="-O3")]
    for file in (source, header, folder / "other.hpp"):
        file.write_text("long it;")
        changed.append(found())
    assert len({before, *changed}) == 7


def project(folder, find: str) -> None:
    """Write a project of somebody else's."""
    folder.mkdir()
    (folder / "main.cpp").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(
        textwrap.dedent(f"""\
        cmake_minimum_required(VERSION 3.10...3.31)
        project(controller LANGUAGES C CXX)
        set(CMAKE_CXX_STANDARD 17)
        {find}
        add_executable(controller main.cpp)
        target_link_libraries(controller PRIVATE it::it)
        install(TARGETS controller DESTINATION bin)
        """)
    )


def build(folder, option: str, plan: nd.Plan) -> None:
    """Build that project, and run it."""
    checked(["cmake", "-S", folder / "mine", "-B", folder / "out", option])
    checked(["cmake", "--build", folder / "out"])
    assert_says_the_same(checked([folder / "out/controller"]), plan)


@needs_cmake
def test_it_is_installed_and_found(plan, made, tmp_path):
    checked(["cmake", "-S", made.folder, "-B", tmp_path / "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'prefix'}"])
    checked(["cmake", "--build", tmp_path / "build"])
    assert "us a call" in checked([tmp_path / "build/it_example"])
    checked(["cmake", "--install", tmp_path / "build"])
    headers = {path.name for path in (tmp_path / "prefix/include").iterdir()}
    assert headers == {"it.h", "it.hpp", "it_monitor.h"}
    project(tmp_path / "mine", "find_package(it REQUIRED CONFIG)")
    build(tmp_path, f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}", plan)


@needs_cmake
def test_it_is_part_of_another_project_and_installs_nothing_there(plan, made, tmp_path):
    project(tmp_path / "mine", f'add_subdirectory("{made.folder}" it)')
    build(tmp_path, f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'prefix'}", plan)
    checked(["cmake", "--install", tmp_path / "out"])
    assert [path.name for path in (tmp_path / "prefix").iterdir()] == ["bin"]
