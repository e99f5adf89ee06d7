"""Recordings for Rerun, read back: links where Pinocchio has them, arrows, series, suspects; and the viewer's check."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.descriptions.urdf_shapes import urdf_shapes
from tests.peers import pin
from tests.recorded_logs import FAULTY, SPIKE, N, arm, estimated, exact_plan, log_file
from tests.robots import ROBOTS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rerun") is None, reason="needs the extra rerun")
FIRST, SECOND = r"/second\:panda_joint2", r"/third\:panda_joint4"


class Recording:
    """What a recording holds, by entity and column."""

    def __init__(self, path: Path) -> None:
        from rerun.chunk import RrdReader

        self.path = path
        self.columns: dict[tuple[str, str], list] = {}
        self.times: dict[tuple[str, str], list] = {}
        for chunk in RrdReader(path).store().stream():
            batch, entity = chunk.to_record_batch(), str(chunk.entity_path)
            clock = next((name for name in ("time", "sample") if name in batch.schema.names), None)
            when = [None] * batch.num_rows if clock is None else batch.column(clock).cast("int64").to_pylist()
            for name in batch.schema.names:
                if ":" in name:
                    values = batch.column(name).to_pylist()
                    kept = [k for k, value in enumerate(values) if value is not None]
                    self.columns.setdefault((entity, name), []).extend(values[k] for k in kept)
                    self.times.setdefault((entity, name), []).extend(when[k] for k in kept)

    @property
    def entities(self) -> set[str]:
        return {entity for entity, _ in self.columns}

    def values(self, entity: str, column: str) -> np.ndarray:
        """What was written, in the order of time."""
        order = np.argsort(self.times[entity, column], kind="stable")
        return np.array([self.columns[entity, column][k] for k in order])

    def seconds(self, entity: str, column: str) -> np.ndarray:
        return np.sort(np.array(self.times[entity, column], dtype=float)) * 1e-9


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Recording:
    path = tmp_path_factory.mktemp("rerun") / "log.rrd"
    assert nd.view(estimated(), path, robot=ROBOTS["panda"]) == ()
    return Recording(path)


def time() -> np.ndarray:
    return estimated().t - estimated().t[0]


def test_links_are_where_pinocchio_has_them(recording):
    model = pin.buildModelFromUrdf(str(ROBOTS["panda"]))
    data = model.createData()
    when = recording.seconds("/robot/panda_link7", "Transform3D:translation")
    samples = np.arange(0, N, 2)  # of a hundred a second
    np.testing.assert_allclose(when, time()[samples], atol=1e-8)
    for link in ("panda_link1", "panda_link4", "panda_link7"):
        origins = recording.values(f"/robot/{link}", "Transform3D:translation")[:, 0]
        turns = Rotation.from_quat(recording.values(f"/robot/{link}", "Transform3D:quaternion")[:, 0])
        for k in (0, 123, len(when) - 1):
            q = pin.neutral(model)
            q[: arm().nq] = estimated().samples.q[samples[k]]
            pin.framesForwardKinematics(model, data, q)
            place = data.oMf[model.getFrameId(link)]
            np.testing.assert_allclose(origins[k], place.translation, atol=1e-6)
            np.testing.assert_allclose(turns[k].as_matrix(), place.rotation, atol=1e-6)


def test_meshes_are_those_of_the_urdf_and_wrenches_arrows_at_their_links(recording):
    meshes = [shape for shape in urdf_shapes(ROBOTS["panda"]) if shape.kind == "mesh"]
    found = {entity for entity, column in recording.columns if column == "Asset3D:blob"}
    assert len(found) == len(meshes) > 8
    assert any(entity.startswith("/robot/panda_link7/shape") for entity in found)
    media = {recording.columns[entity, "Asset3D:media_type"][0][0] for entity in found}
    assert media == {"model/vnd.collada+xml"}
    entity = "/robot/panda_link7/fx/panda_link7/force"
    vectors = recording.values(entity, "Arrows3D:vectors")[:, 0]
    force = estimated()["fx:panda_link7"][::2, 3:]
    scale = np.linalg.norm(vectors, axis=1).max() / np.linalg.norm(force, axis=1).max()
    np.testing.assert_allclose(vectors, scale * force, atol=1e-5 * scale * np.abs(force).max())
    assert 0.1 < np.linalg.norm(vectors, axis=1).max() < 1.0  # of a robot of a metre


def test_series_are_the_numbers_and_the_viewer_takes_them(recording):
    judged = estimated().diagnosis
    k = judged.readings.index("third:panda_joint4")
    tau = estimated()["tau"][:, 1]
    read = estimated().samples.y[:, estimated().samples.record.measurement_names.index("tau:panda_joint2")]
    misfit = r"/residuals/All\ readings\ together/chi-square\ over\ its\ expectation"
    for entity, x in (
        (r"/estimates/tau\:panda_joint2/estimated", tau),
        (r"/estimates/tau\:panda_joint2/measured", read),
        (rf"/residuals{SECOND}/residual", judged.normalised[:, k]),
        (misfit, np.log10(judged.chi_square / judged.degrees_of_freedom)),
    ):
        np.testing.assert_array_equal(recording.values(entity, "Scalars:scalars")[:, 0], x)
        np.testing.assert_allclose(recording.seconds(entity, "Scalars:scalars"), time(), atol=1e-8)
    run = [sys.executable, "-m", "rerun", "rrd", "verify", str(recording.path)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_suspects_are_marked_while_they_are_some(recording):
    entity = f"/said/suspect{FIRST}"
    states = [state[0] for state in recording.values(entity, "StateChange:state")]
    when = recording.seconds(entity, "StateChange:state")
    assert states[0] == states[-1] == "-"
    assert set(states[1:-1]) == {"clearest"}
    assert when[1] == pytest.approx(time()[FAULTY.start])
    assert when[-1] == pytest.approx(time()[FAULTY.stop])
    said = [line[0] for line in recording.values("/suspects", "TextLog:text")]
    assert sum("second:panda_joint2" in line for line in said) == len(states) - 2
    assert sum("third:panda_joint4" in line for line in said) == 1
    assert any(entity.startswith("/robot/panda_link2/suspect") for entity in recording.entities)
    shown = recording.seconds(f"/robot/panda_link4/suspect{SECOND}", "Points3D:positions")
    assert shown.tolist() == [pytest.approx(time()[SPIKE], abs=0.2)]
    (verdict,) = recording.columns["/verdict", "TextDocument:text"]
    assert verdict[0].startswith("# second:panda_joint2 does not fit the other sensors")
    dropped = recording.values(r"/said/dropped\:\ tau\:panda_joint3", "StateChange:state")
    assert [state[0] for state in dropped] == ["-", "yes", "-"]


def test_without_meshes_links_are_capsules_and_without_the_extra_it_is_named(tmp_path, monkeypatch):
    (tmp_path / "panda.urdf").write_bytes(Path(ROBOTS["panda"]).read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(nd.errors.MissingExtraError, match=r"nori_dyn\[rerun\]"):
            nd.view(estimated(), tmp_path / "log.rrd")
    (note,) = nd.view(estimated(), tmp_path / "log.rrd", names=["tau:panda_joint1"], robot=tmp_path / "panda.urdf")
    assert "meshes of the URDF were not found" in note
    assert ("/robot/panda_link3/shape", "Capsules3D:lengths") in Recording(tmp_path / "log.rrd").columns
    nd.view(estimated(), tmp_path / "log.rrd", names=["tau:panda_joint1"])
    found = Recording(tmp_path / "log.rrd")
    lengths = found.columns["/robot/panda_link3/shape", "Capsules3D:lengths"][0]
    (child,) = arm().children[arm().link("panda_link3")]
    assert lengths == [pytest.approx(np.linalg.norm(arm().X_tree[child].r))]
    series = {entity for entity in found.entities if entity.startswith("/estimates")}
    assert series == {rf"/estimates/tau\:panda_joint1/{kind}" for kind in ("measured", "estimated")}


def test_a_log_without_times_goes_by_samples(tmp_path):
    with np.load(log_file("sound")) as archive:
        np.savez(tmp_path / "log.npz", q=archive["q"][:50], qd=archive["qd"][:50], y=archive["y"][:50, :7])
    found = nd.estimate(tmp_path / "log.npz", exact_plan(("tau",)), backend="numpy")
    nd.view(found, tmp_path / "log.rrd")
    recording = Recording(tmp_path / "log.rrd")
    entity = r"/estimates/tau\:panda_joint1/estimated"
    assert recording.times[entity, "Scalars:scalars"] == list(range(50))
    np.testing.assert_array_equal(recording.values(entity, "Scalars:scalars")[:, 0], found["tau"][:, 0])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("ending", ["rrd", "html"])
def test_a_full_disk_is_told(tmp_path, ending):
    out = tmp_path / f"log.{ending}"
    out.symlink_to("/dev/full")
    with pytest.raises(nd.errors.FileFormatError, match="No space left on device"):
        nd.view(estimated(), out)
    assert list(tmp_path.iterdir()) == [out]
