"""Which format a file has, and what is said where none fits or a library lacks."""

import importlib.util

import numpy as np
import pytest

from nori_dyn.errors import FileFormatError, MissingExtraError
from nori_dyn.logs.registry import FORMATS, open_log, writer_of


def test_an_ending_that_none_has_is_refused_with_the_known_ones(tmp_path):
    for name in ("log.xlsx", "log", ".csv.zip"):
        (tmp_path / name).write_text("q[0]\n1\n")
        with pytest.raises(FileFormatError, match=r"must end in \.csv, .*\.parquet.*\.mcap.*or be the folder of a bag"):
            open_log(tmp_path / name)
        with pytest.raises(FileFormatError, match=r"must end in \.csv, "):
            writer_of(name)


def test_capitals_do_not_matter_and_a_name_that_tells_nothing_is_looked_into(tmp_path):
    (tmp_path / "LOG.CSV").write_text("q[0]\n1\n")
    assert open_log(tmp_path / "LOG.CSV").streams[0].columns == ("q[0]",)
    np.savez(tmp_path / "log.npz", q=np.ones((3, 2)))
    (tmp_path / "log.npz").rename(tmp_path / "log-2024-05-01")
    assert open_log(tmp_path / "log-2024-05-01").streams[0].columns == ("q[0]", "q[1]")


def test_a_library_that_lacks_is_told_with_the_extra(monkeypatch, tmp_path):
    find = importlib.util.find_spec
    for each in (each for each in FORMATS if each.needs):
        path = tmp_path / f"log{each.endings[0]}"
        path.touch()
        with monkeypatch.context() as patch:
            patch.setattr(
                "importlib.util.find_spec", lambda name, each=each: None if name in each.needs else find(name)
            )
            with pytest.raises(MissingExtraError, match=r"pip install 'nori_dyn\[logs\]'"):
                open_log(path)
            if each.writer:
                with pytest.raises(MissingExtraError, match=each.name):
                    writer_of(path)
