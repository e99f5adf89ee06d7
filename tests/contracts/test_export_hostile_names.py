"""Names of a model and of its sensors, whatever they are, stay where they belong in exported C."""

import re

from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.export.files import CExport
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import Frame
from nori_dyn.system.builder import System
from tests.compilers import needs_compiler
from tests.contracts.test_export import KNOWN, OK
from tests.exported import Exported, needs_cpp
from tests.systems import ACCELERATIONS, random_states, sensor_set
from tests.tolerances import EXACT, assert_close

pytestmark = needs_compiler

TREE = autotree(12, branching=3, skew=0.4)

HOSTILE = (
    '"',
    "*/ int x; /*",
    "\n#include <stdlib.h>\n#error out\n",
    "double",
    "\\",
    "été 手",
    "??/",
    "??/\n*??/\n/ int y; //\\",
    "%s%n{}{name}",
    "a" * 3000,
    "l sole",
    "l-sole",
    "l_sole",
    "*",
    "/",
)


def named(names: tuple[str, ...], robot: str, folder) -> Exported:
    """The export of a robot whose links, joints and frames have some names, one output for each."""
    n = TREE.n_links
    frames = {name: Frame(0, TREE.X_tree[1]) for name in names[n:]}
    tree = TREE.replace(name=robot, names=names[:n], joint_names=names[:n], frames=frames)
    outputs = (*(f"tau:{name}" for name in names[:n]), *(f"fx:{name}" for name in names), "fx", "tau")
    system = System(tree, sensor_set(ACCELERATIONS, KNOWN[1], name=robot))
    return Exported.of(plan(system, outputs=outputs), folder, "-trigraphs", name="it")


def observed(names: tuple[str, ...], robot: str, folder) -> CExport:
    """The export of a filter of the same robot, offsets of the torques of its joints learned."""
    names = names[: TREE.n_links]
    tree = TREE.replace(name=robot, names=names, joint_names=names, frames={})
    torque = {"type": "joint_torque", "joints": "all", "sigma": 1, "offset": {"sigma": 1}}
    memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 1}, "offsets": {"of": "offset", "walk": 1}}
    sensors = SensorSet.from_dict({"name": robot, "measurements": [torque, KNOWN[1]], "memory": memory})
    filtering = Filter(plan(System(tree, sensors), outputs=("tau", "offset")), dt=0.001, backend="numpy")
    return filtering.export(folder, name="it")


PLAIN = tuple(f"p{k}" for k in range(len(HOSTILE)))


def assert_same_but_for_names(hostile: CExport, plain: CExport) -> None:
    for file, text in hostile.files.items():
        assert text.isascii()
        assert text.count("/*") == text.count("*/")
        assert "include <stdlib" not in text
        assert "??" not in text
        assert code(hostile, file) == code(plain, file)


def code(made: CExport, file: str) -> str:
    """A file without its comments and what its strings are, its fields and enumerators by number."""
    text = re.sub(r"/\*.*?\*/", "", made.files[file], flags=re.DOTALL)
    if file.endswith(".hpp"):
        text = re.sub(r'"[^"]*"', '""', text)
    numbers = {name: f"name{k}" for k, name in enumerate([*made.outputs, *made.indices])}
    return re.sub(r"\b\w+\b", lambda found: numbers.get(found[0], found[0]), text)


def test_names_stay_in_comments_and_fields(tmp_path):
    hostile = named(HOSTILE, HOSTILE[1], tmp_path / "hostile")
    plain = named(PLAIN, "plain", tmp_path / "plain")
    fields = list(hostile.export.outputs)
    assert len(set(fields)) == len(fields) == len(HOSTILE) + TREE.n_links + 2
    assert all(re.fullmatch(r"(tau|fx)(_[A-Za-z0-9]+)*", field) for field in fields)
    assert {"fx", "tau", "fx_l_sole", "fx_l_sole_2", "fx_l_sole_3"} <= set(fields)
    assert {"IT_LINK_double", "IT_LINK_unnamed", "IT_LINK_unnamed_2"} <= set(hostile.export.indices)
    assert all(re.fullmatch(r"[A-Z]+(_[A-Za-z0-9]+)*", name) for name in hostile.export.indices)
    assert_same_but_for_names(hostile.export, plain.export)
    q, qd, y = random_states(TREE, 1, seed=1)[:3]
    status, found = hostile.solve(q[0], qd[0], y[0])
    assert status == OK
    for values, others in zip(found.values(), plain.solve(q[0], qd[0], y[0])[1].values(), strict=True):
        assert_close(values, others, EXACT)


def test_names_stay_in_comments_and_fields_of_filters(tmp_path):
    hostile = observed(HOSTILE, HOSTILE[1], tmp_path / "hostile")
    assert_same_but_for_names(hostile, observed(PLAIN, "plain", tmp_path / "plain"))
    assert Exported.made(hostile, tmp_path / "it", "-trigraphs").library


STRINGS = r"""
#include "it.hpp"
#include <cstdio>

int main() {
    for (const char *name : nori_dyn::it::Filter::output_names) std::printf("%s%c", name, 0);
}
"""


@needs_cpp
def test_strings_are_the_names(tmp_path):
    made = Exported.made(observed(HOSTILE, HOSTILE[1], tmp_path / "export"), tmp_path / "export")
    told = made.run_cpp(STRINGS, tmp_path).split("\0")[:-1]
    names = HOSTILE[: TREE.n_links]
    for kind in ("tau", "offset:tau", "qd"):
        assert [name for name in told if name.startswith(f"{kind}:")][-len(names) :] == [f"{kind}:{n}" for n in names]
