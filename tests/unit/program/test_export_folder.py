"""The folder of an export: all files or none, and nobody else's touched."""

import os
import stat

import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError, UnknownNameError
from nori_dyn.export.files import OF_PROGRAMS
from nori_dyn.export.folder import check_folder, write_folder
from nori_dyn.export.text import MARK
from tests.exported import written as content

FILES = {"it.h": f"/* {MARK} */\n", "main.c": f"/* an example, {MARK} */\n"}


def test_a_new_or_empty_folder_is_written(tmp_path):
    (tmp_path / "empty").mkdir()
    umask = os.umask(0)
    os.umask(umask)
    for folder in (tmp_path / "new", tmp_path / "empty"):
        write_folder(folder, FILES)
        assert content(folder) == FILES
        assert stat.S_IMODE((folder / "it.h").stat().st_mode) == 0o666 & ~umask


def test_an_earlier_export_is_replaced_and_what_is_beside_it_left(tmp_path):
    write_folder(tmp_path, FILES)
    (tmp_path / "build").mkdir()
    (tmp_path / ".gitignore").write_text("build")
    newer = {**FILES, "it.h": f"/* {MARK}, newer */"}
    write_folder(tmp_path, newer)
    assert (tmp_path / "it.h").read_text() == newer["it.h"]
    assert sorted(os.listdir(tmp_path)) == [".gitignore", "build", "it.h", "main.c"]


def test_what_an_earlier_export_wrote_besides_is_removed(tmp_path):
    besides = dict.fromkeys(("it_monitor.h", "it_states.h", "it_state_l_foot.c"), f"/* {MARK} */")
    write_folder(tmp_path, {**FILES, **besides}, "it")
    write_folder(tmp_path, FILES, "it")
    assert content(tmp_path) == FILES
    mine = tmp_path / "it_monitor.h"
    mine.write_text("mine")
    with pytest.raises(FileFormatError, match=r"it_monitor\.h"):
        write_folder(tmp_path, FILES, "it")
    assert mine.read_text() == "mine"


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path):
    others = {
        "main.c": "int main(void) { return 42; }",
        "notes.txt": "mine",
        "other.h": f"/* {MARK} */",
        "it.h": "\xff",
    }
    for name, text in others.items():
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(text)
        with pytest.raises(FileFormatError, match=rf"(?s)not of an earlier export.*{name}.*new or an empty folder"):
            write_folder(folder, FILES)
        assert content(folder) == {name: text}
    (tmp_path / "taken" / "main.c").mkdir(parents=True)  # a folder in the place of a file
    with pytest.raises(FileFormatError, match=r"main\.c"):
        write_folder(tmp_path / "taken", FILES)
    assert os.listdir(tmp_path / "taken") == ["main.c"]


def test_a_folder_that_cannot_be_made_or_written_is_an_error_that_names_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for folder, message in (
        ("file", "is a file; name a folder"),
        ("file/out", "'.*file' does not exist"),
        ("no/out", "'.*no' does not exist"),
    ):
        for attempt in (check_folder, lambda path: write_folder(path, FILES)):
            with pytest.raises(FileFormatError, match=message):
                attempt(tmp_path / folder)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FileFormatError, match="is not writable"):
        write_folder(tmp_path / "out", FILES)
    assert not (tmp_path / "out").exists()


def test_a_plan_exports_itself(tmp_path):
    plan = nd.plan(nd.System(nd.autotree(2), nd.sensors("forward_dynamics")), outputs=("qdd",))
    made = plan.export(tmp_path / "out", name="two")
    assert content(tmp_path / "out") == dict(made.files)
    own = {"two.h", "two.hpp", "two.c", "main.c", "CMakeLists.txt"}
    assert set(made.files) == own | {f"nori_dyn/{file}" for file in OF_PROGRAMS}
    assert nd.__version__ in made.files["two.h"]
    assert (made.inputs, made.outputs) == ({"q": 2, "qd": 2, "y": 2}, {"qdd": (2,)})
    assert all(MARK in text[:200] for text in made.files.values())
    again = nd.plan(plan.system, outputs=("qdd",)).export(tmp_path / "out", name="two")
    assert again.files == made.files
    with pytest.raises(UnknownNameError, match="unknown language of export 'rust'"):
        plan.export(tmp_path / "out", lang="rust")
