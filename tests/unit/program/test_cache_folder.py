"""Where the user's cache is: as the platform has it, or as NORI_DYN_CACHE says."""

import sys
from pathlib import Path

from nori_dyn.io.cache_files import CACHE_VARIABLE, cache_root


def test_the_cache_is_where_the_platform_has_it(monkeypatch, tmp_path):
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
