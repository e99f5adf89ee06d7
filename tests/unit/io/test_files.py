"""Files that take the place of others: all or none, wherever it fails, and whole somewhere wherever it stops.

And where the user's cache is.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from nori_dyn.errors import FileFormatError
from nori_dyn.io.cache_files import CACHE_VARIABLE, cache_root
from nori_dyn.io.files import BEFORE, put_files

OLD = {"a": "old a", "b": "old b", "sub/c": "old c", "stale": "old", "last": "old last"}
NEW = {"a": "new a", "new": "new", "sub/c": "new c", "b": "new b", "other/d": "new d", "last": "new last"}
CALLS = 22
"""How often `put_files` touches the disk there: 11 folders, 4 copies, 1 that is removed, 6 moves."""

ERRORS = OSError(28, "No space left on device"), KeyboardInterrupt()


def made(folder: Path, content: dict[str, str]) -> Path:
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def contents(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in paths}
    return {name: text for name, text in found.items() if not name.startswith(BEFORE)}


def put_back_by_hand(folder: Path) -> dict[str, str]:
    """What is in a folder, with what `.before-*` holds in the place of it."""
    found = contents(folder)
    for spare in folder.glob(f"{BEFORE}*"):
        found |= contents(spare)
    return found


def whenever(monkeypatch, act) -> None:
    """Let something happen before each call that touches the disk."""

    def with_act(real):
        def call(*arguments, **more):
            act()
            return real(*arguments, **more)

        return call

    for owner, name in ((os, "replace"), (os, "mkdir"), (shutil, "copy2"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, with_act(getattr(owner, name)))


def failing(numbers, error):
    """What fails at some of the times that it is called, by their numbers from 0."""
    calls = iter(range(1000))

    def act():
        if next(calls) in numbers:
            raise error

    return act


@pytest.fixture
def place(tmp_path):
    """What makes a folder with old files, and what puts new ones there."""

    def place_of(number):
        folder, stage = made(tmp_path / f"{number}" / "out", OLD), made(tmp_path / f"{number}" / "stage", NEW)
        return folder, lambda: put_files(folder, {name: stage / name for name in NEW}, ["stale"])

    return place_of


@pytest.mark.parametrize("error", ERRORS)
def test_where_one_fails_all_is_as_it_was(error, place, monkeypatch):
    for number in range(CALLS):
        folder, put = place(number)
        with monkeypatch.context() as patched:
            whenever(patched, failing({number}, error))
            try:
                put()
            except (OSError, KeyboardInterrupt):
                assert contents(folder) == OLD, number
                assert not (folder / "other").exists(), number
            else:
                assert contents(folder) == NEW, number  # a folder that is there already
        assert not list(folder.glob(".*")), number


@pytest.mark.parametrize("error", ERRORS)
def test_where_all_fails_from_then_on_what_was_there_is_where_the_error_says(error, place, monkeypatch):
    """It was removed with what was left over."""
    kept = 0
    for number in range(CALLS):
        folder, put = place(number)
        with monkeypatch.context() as patched:
            whenever(patched, failing(range(number, 1000), error))
            with pytest.raises((OSError, FileFormatError, KeyboardInterrupt)) as found:
                put()
        spares = [*folder.glob(".*")]
        assert put_back_by_hand(folder).items() >= OLD.items(), number
        assert spares or contents(folder) == OLD, number
        assert (found.type is FileFormatError) == bool(spares) or isinstance(error, KeyboardInterrupt), number
        if found.type is FileFormatError:
            kept_in = f"and the previous files cannot be restored: they are in '{spares[0]}'."
            assert f"left on device, {kept_in}" in str(found.value)
        kept += len(spares)
    assert kept == 6


def test_wherever_it_stops_the_old_or_the_new_are_whole(place, monkeypatch):
    folder, put = place(0)
    seen = []
    with monkeypatch.context() as patched:
        whenever(patched, lambda: seen.append((contents(folder), put_back_by_hand(folder))))
        put()
    assert len(seen) == CALLS
    assert all(now == OLD or by_hand.items() >= OLD.items() for now, by_hand in seen)
    assert all(now.get(name) in {OLD.get(name), NEW.get(name)} for now, _ in seen for name in {*OLD, *NEW})
    assert contents(folder) == NEW


def test_one_file_is_put_in_one_step(tmp_path, monkeypatch):
    folder, calls = made(tmp_path / "out", {"a": "old"}), []
    new = made(tmp_path, {"new": "new"}) / "new"
    with monkeypatch.context() as patched:
        whenever(patched, lambda: calls.append(contents(folder)))
        put_files(folder, {"a": new})
    assert calls[-1] == {"a": "old"}
    assert contents(folder) == {"a": "new"}
    assert not list(folder.glob(".*"))


def test_the_cache_is_where_the_platform_or_a_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "named"))
    assert cache_root() == tmp_path / "named"
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "nori_dyn"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        for platform, folder in (("linux", ".cache"), ("darwin", "Library/Caches")):
            monkeypatch.setattr(sys, "platform", platform)
            assert cache_root() == Path.home() / folder / "nori_dyn"
