"""Tables of text as programs write them, and what is wrong with them where."""

import gzip

import numpy as np
import pytest

from nori_dyn.errors import FileFormatError
from nori_dyn.logs.registry import open_log


def read(path, *columns, text=None):
    """Return the columns of a table, which is written first where its text is given."""
    if text is not None:
        path.write_text(text)
    with open_log(path) as source:
        wanted = columns or source.streams[0].columns
        blocks = list(source.read({"": wanted}))
    values = [np.concatenate(each) for each in zip(*(block.values for block in blocks), strict=True)]
    return dict(zip(wanted, (each.tolist() for each in values), strict=True))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.csv"


def test_the_first_line_may_hold_numbers(path):
    numbers = "798.467,-0.03,1e-3\n798.469,-0.04,0\n"
    found = read(path, text=numbers)
    assert found == {"column[0]": [798.467, 798.469], "column[1]": [-0.03, -0.04], "column[2]": [1e-3, 0]}
    with pytest.raises(FileFormatError, match=r"log\.csv:2: has 3 cells, and the first line of numbers has 2"):
        read(path, text="1,2\n1,2,3\n")


def test_names_may_stand_in_a_remark(tmp_path):
    path = tmp_path / "log.txt"
    np.savetxt(path, [[1, 2], [3, 4]], header="made by a robot\nq[0] q[1]")
    assert read(path) == {"q[0]": [1, 3], "q[1]": [2, 4]}
    assert read(path, text="# made by a robot\n1 2\n3 4\n") == {"column[0]": [1, 3], "column[1]": [2, 4]}
    found = read(path, text="# made by: a robot\nq[0] q[1]\n# more\n1 2\n3 4\n")
    assert found == {"q[0]": [1, 3], "q[1]": [2, 4]}


def test_columns_of_text_are_left_out_and_others_not_looked_at(path):
    assert str(read(path, text="mode,q[0],\nidle,1,x\nrun,,y\n")) == "{'q[0]': [1.0, nan]}"
    assert read(path, "a", text="a,b\n1,2\n3,broken\n") == {"a": [1, 3]}


@pytest.mark.parametrize("fast", [True, False])
def test_pieces_end_at_lines_and_errors_name_them(path, monkeypatch, fast):
    if fast:
        pytest.importorskip("pyarrow")
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.PIECE", 1000)
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.LARGE", 0 if fast else 1 << 30)
    rows = np.random.default_rng(0).normal(size=(500, 3))
    lines = ["a, b,c", *(f"{x:.17g}, {y:.17g},{z:.17g}" for x, y, z in rows.tolist())]
    lines[7] = '"1", ,3'
    lines[400:400] = ["", "  ", "# a remark"]
    path.write_text("\r\n".join(lines))
    rows[6] = [1, np.nan, 3]
    found = read(path, "c", "a", "b")
    np.testing.assert_array_equal([found["a"], found["b"], found["c"]], rows.T)
    with open_log(path) as source:
        assert source.place("", 0) == f"{path}:2"
        assert source.place("", 398) == f"{path}:400"
        assert source.place("", 399) == f"{path}:404"
    for wrong, said in (("1,2", "has 2 cells, and the first line names 3"), ("1,x,3", "column 'b' is 'x'")):
        with pytest.raises(FileFormatError, match=rf"log\.csv:451: {said}"):
            read(path, text="\n".join([*lines[:450], wrong, *lines[451:]]))


def test_names_alone_are_no_samples_and_what_is_too_long_is_told(path, monkeypatch):
    path.write_text("q[0],q[1]\n")
    with open_log(path) as source:
        assert source.streams[0].columns == ("q[0]", "q[1]")
        assert list(source.read({"": ["q[0]"]})) == []
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.LONGEST", 1 << 20)
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(b"1" * (6 << 20)))
    with pytest.raises(FileFormatError, match="is no line of text"):
        open_log(path.with_suffix(".csv.gz"))
    with pytest.raises(FileFormatError, match=r"log\.csv:3: column 'a'"):
        read(path, text='a,b\n1,2\n"' + "1" * 200_000 + '",2\n')


def test_times_by_the_calendar(path):
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-05-01 12:30:00.25", periods=3, freq="10ms", tz="Europe/Rome")
    table = pd.DataFrame({"q": [1.0, 2.0, np.nan], "mode": ["a", "b", "c"]}, index=times)
    table.to_csv(path, index_label="stamp of it")
    with open_log(path) as source:
        (stream,) = source.streams
        assert (stream.columns, stream.clock) == (("stamp of it", "q"), "stamp of it")
        assert stream.units == {"stamp of it": "s"}
    found = read(path, "q", "stamp of it")
    np.testing.assert_array_equal(found["q"], [1, 2, np.nan])
    np.testing.assert_allclose(found["stamp of it"], times.as_unit("ns").astype("int64") / 1e9, rtol=0, atol=1e-6)
    with pytest.raises(FileFormatError, match=r"log\.csv:3: column 'column\[0\]' is 'soon', which is no number"):
        read(path, text="2024-05-01T12:30:00Z,1\n2024-05-01T12:30:01Z,2\nsoon,3\n")
