"""Logs as people have them: formats by their endings, columns and their names, and what is wrong where."""

import gzip
import importlib.util

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError, InputError, MissingExtraError, UnplannedStateError
from nori_dyn.logs.formats.registry import FORMATS, open_log, writer_of
from nori_dyn.logs.log import whole_table
from nori_dyn.logs.motion.differentiation import SavitzkyGolay
from nori_dyn.logs.reading import LogCounts
from nori_dyn.logs.samples import contact_states
from tests.logs import samples_in
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set

ARM = nd.autotree(2)
SYSTEM = nd.System(ARM, "inverse_dynamics")
NAMES = ["q[0]", "q[1]", "qd[0]", "qd[1]", "qdd[0]", "qdd[1]"]
ROWS = [[0.5, 1.0, -2.0, 1e-3, 0.0, 5.0], [0.25, 2.0, -2.5, -1e-3, 1.0, 6.0], [0.125, 3.0, 0.0, 0.0, 2.0, 7.0]]


def written(path, delimiter=",", names=NAMES, rows=ROWS):
    path.write_text("\n".join(delimiter.join(map(str, line)) for line in [names, *rows]) + "\n")
    return path


def assert_rows(log, rows=ROWS, why=""):
    np.testing.assert_array_equal(np.column_stack([log.q, log.qd, log.y]), rows, err_msg=why)


def test_what_stands_between_columns_is_found(tmp_path):
    for delimiter in (",", ", ", ";", "; ", "\t", " ", "   "):
        counts = LogCounts()
        assert_rows(samples_in(written(tmp_path / "log.csv", delimiter), SYSTEM, counts=counts), why=repr(delimiter))
        assert counts.unused == ()


def test_what_programs_put_around_numbers_and_names(tmp_path):
    path = tmp_path / "log.csv"
    text = written(path).read_text()
    np.savetxt(path, ROWS, delimiter=",", header=",".join(NAMES))  # a line of names that begins with #
    assert_rows(samples_in(path, SYSTEM))
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())  # Excel's
    assert_rows(samples_in(path, SYSTEM))
    path.write_text("\n".join(f'"{line}"'.replace(",", '","') for line in text.splitlines()))  # all in quotes
    assert_rows(samples_in(path, SYSTEM))
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(text.replace("5.0\n", "5.0\n\n# a remark\n").encode()))
    assert_rows(samples_in(path, SYSTEM))
    path = tmp_path / "log.csv"
    path.write_text('"a,b",c\n1,2\n')
    assert {name: column.tolist() for name, column in whole_table(path).items()} == {"a,b": [1.0], "c": [2.0]}


def test_what_others_call_columns(tmp_path):
    weighed = [kind | {"sigma": 1.0} for kind in (ACCELERATIONS, TORQUES)]
    system = nd.System(ARM, sensor_set(*weighed, UNLOADED))
    rows = np.arange(16.0).reshape(2, 8)
    for kinds in ("q dq ddq tau_J", "position velocity acceleration effort", "q qd y tau"):
        names = [f"{kind}[{k}]" for kind in kinds.split() for k in range(2)]
        assert_rows(samples_in(written(tmp_path / "log.csv", names=names, rows=rows), system), rows, kinds)
        np.savez(tmp_path / "log.npz", **dict(zip(kinds.split(), np.split(rows, 4, axis=1), strict=True)))
        assert_rows(samples_in(tmp_path / "log.npz", system), rows, kinds)


def test_torques_on_either_side_of_the_gear_have_columns_of_their_own(tmp_path):
    robot = ARM.replace(components=(nd.components.Rotor(joints="all", inertia=0.1),))
    system = nd.System(robot, sensor_set(TORQUES | {"offset": {"sigma": 1.0}}, TORQUES | {"side": "link"}))
    names = [f"{kind}[{k}]" for kind in ("q", "qd", "tau", "tau_J") for k in range(2)]
    rows = np.arange(16.0).reshape(2, 8)
    assert_rows(samples_in(written(tmp_path / "log.csv", names=names, rows=rows), system), rows)


def test_columns_that_are_not_used_are_named(tmp_path):
    names, rows = [*NAMES, "mode", "motor[0]", "motor[1]"], [[*row, 1, 2, 3] for row in ROWS]
    counts = LogCounts()
    samples_in(written(tmp_path / "log.csv", names=names, rows=rows), SYSTEM, counts=counts)
    assert counts.unused == ("mode", "motor (2 columns)")


WRONG = {
    "q[0],q[1]\n0,5,0,25\n": "log.csv:2: has 4 cells, and the first line names 2 columns. Decimal commas?",
    "q[0],q[1]\n1,2\n\n1\n": "log.csv:4: has 1 cells, and the first line names 2 columns.",
}


def test_what_is_wrong_is_told_with_its_place(tmp_path):
    for text, said in WRONG.items():
        (tmp_path / "log.csv").write_text(text)
        with pytest.raises(FileFormatError) as caught:
            whole_table(tmp_path / "log.csv")
        assert said in str(caught.value)


def test_a_column_that_is_called_otherwise_is_suggested(tmp_path):
    path = written(tmp_path / "log.csv", names=["qa[0]", *NAMES[1:]])
    with pytest.raises(InputError, match=r"has no column 'q:joint1' or 'q\[0\]'.*Did you mean its column"):
        samples_in(path, SYSTEM)


def test_accelerations_take_the_step_of_time_from_the_log(tmp_path):
    t = 0.01 * np.arange(20)
    np.savez(tmp_path / "log.npz", time=t, q=np.zeros((20, 2)), qd=np.multiply.outer(t, [3.0, 5.0]))
    log = samples_in(tmp_path / "log.npz", SYSTEM, SavitzkyGolay(7))
    np.testing.assert_allclose(log.y, np.tile([3.0, 5.0], (20, 1)), rtol=1e-9)


def test_estimates_in_a_folder_are_no_readings_of_it(tmp_path):
    (tmp_path / "run").mkdir()
    np.savez(tmp_path / "run/log.npz", q=np.zeros((20, 2)), qd=np.zeros((20, 2)), qdd=np.ones((20, 2)))
    found = nd.estimate(tmp_path / "run/log.npz", nd.plan(SYSTEM, outputs=["tau"]), backend="numpy")
    found.save(tmp_path / "run/tau.csv")
    with open_log(tmp_path / "run") as source:
        assert {name.rpartition("[")[0] for name in source.columns} == {"log.q", "log.qd", "log.qdd"}


TIP = {"closed": [WRENCHES | {"name": "push"}], "open": [UNLOADED]}
FOOT = sensor_set(ACCELERATIONS, name="foot", contacts={"tip": TIP})


def test_contact_states_and_what_is_read_in_each(tmp_path):
    tree = nd.autotree(1)
    systems = {state: nd.System(tree, FOOT.in_contact(*state)) for state in ((), ("tip",))}
    names = ["q[0]", "qd[0]", "qdd[0]", *(f"push.{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz")), "contact:tip"]
    rows = [[1, 2, 3, *([""] * 6), 0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]]
    path = written(tmp_path / "log.csv", names=names, rows=rows)
    log = samples_in(path, systems, contacts=("tip",))
    assert log.contacts.tolist() == [[False], [True]]
    assert {state: places.tolist() for state, places in contact_states(log).items()} == {(): [0], ("tip",): [1]}
    with pytest.raises(InputError, match=r"log\.csv:2: 'push\.mx' is empty or nan"):
        samples_in(path, systems, contacts=("tip",), closed=("tip",))
    with pytest.raises(UnplannedStateError, match=r"log\.csv:3: the contact state 'tip' is not planned"):
        samples_in(path, {(): systems[()]}, contacts=("tip",))
    written(path, names=[*names[:-1], "other"], rows=rows)
    with pytest.raises(InputError, match=r"has no column 'contact:tip', 1 where.*--contacts tip, or none"):
        samples_in(path, systems, contacts=("tip",))
    written(path, names=names, rows=[[1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5]])
    with pytest.raises(InputError, match=r"log\.csv:2: column 'contact:tip' is 0\.5: it must be 1"):
        samples_in(path, systems, contacts=("tip",))


def test_text_in_utf_16_is_told(tmp_path):
    for bom, code in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        (tmp_path / "log.csv").write_bytes(bom + "q[0],q[1]\n1,2\n".encode(code))
        with pytest.raises(FileFormatError, match="is text in UTF-16"):
            open_log(tmp_path / "log.csv")


def test_an_ending_that_none_has_is_refused_with_the_known_ones(tmp_path):
    for name in ("log.xlsx", "log", ".csv.zip"):
        (tmp_path / name).write_text("PK\x03\x04" if name == "log.xlsx" else "q[0]\n1\n")
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
