"""Data sets of robot learning with labels: these are what `nd.estimate` says, and all else is as it was."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nori_dyn as nd
from nori_dyn.cli import app
from tests.robots import load
from tests.words import plain

h5py = pytest.importorskip("h5py")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FPS = 50
JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
LINK = "panda_link7"
VECTORS = {"observation.state": "q", "observation.velocity": "qd", "observation.effort": "tau"}
ADDED = [f"observation.{name}" for name in (f"fx.{LINK}", f"sigma.fx.{LINK}", "p_value.contacts")]
ESTIMATED = {}


@pytest.fixture(scope="module", autouse=True)
def panda():
    load("panda")  # skips where no package has it


def episode(k):
    """Time, motion and torques of a Panda on whose hand something presses for a third of the time."""
    return {name: x.copy() for name, x in drawn(k).items()}


@cache
def drawn(k):
    rng, arm = np.random.default_rng(k), nd.preset("panda").tree
    n = int(rng.integers(40, 70))
    t, rates = np.arange(n) / FPS, 1 + 0.3 * rng.uniform(size=7)
    phase = np.outer(t, rates) + rng.uniform(0, 6, 7)
    q, qd = np.array([0, -0.4, 0, -2, 0, 1.8, 0.8]) + 0.3 * np.sin(phase), 0.3 * rates * np.cos(phase)
    qdd = -0.3 * rates**2 * np.sin(phase)
    pushes = np.where((t > t[-1] / 3) & (t < t[-1] / 1.5), rng.uniform(5, 20), 0.0)
    fx = np.zeros((arm.n_links, 6, n))
    fx[arm.names.index(LINK), 5] = pushes
    tau = nd.rnea(arm, q.T, qd.T, qdd.T, fx).T + rng.normal(0, 0.05, q.shape)
    single = {"q": q, "qd": qd, "tau": tau}  # as LeRobot keeps them
    return {"t": t.astype(np.float32).astype(float), "qdd": qdd, "push": pushes} | {
        name: x.astype(np.float32).astype(float) for name, x in single.items()
    }


def estimates(folder, recorded, by="panda", what="contacts", **options):
    """What `nd.estimate` says of an episode, worked out once for each."""
    given = {name: recorded[name] for name in ("t", "q", "qd", "tau") if recorded.get(name) is not None}
    key = what, *((name, x.tobytes()) for name, x in given.items()), *options.items()
    if key not in ESTIMATED:
        np.savez(folder / "one.npz", **given)
        ESTIMATED[key] = nd.estimate(folder / "one.npz", by, what=what, monitor=True, **options).written
    return ESTIMATED[key]


def vector(x):
    return pa.FixedSizeListArray.from_arrays(pa.array(x.astype(np.float32).ravel()), x.shape[1])


def table(k, recorded, first):
    n = len(recorded["t"])
    columns = {name: vector(recorded[own]) for name, own in VECTORS.items()}
    columns |= {"action": vector(recorded["q"]), "timestamp": pa.array(recorded["t"].astype(np.float32))}
    columns |= {"frame_index": pa.array(np.arange(n)), "episode_index": pa.array(np.full(n, k))}
    columns |= {"index": pa.array(first + np.arange(n)), "task_index": pa.array(np.zeros(n, dtype=int))}
    value = lambda dtype: {"dtype": dtype, "_type": "Value"}  # noqa: E731
    listed = {"feature": value("float32"), "length": 7, "_type": "Sequence"}
    told = {name: listed if name in {*VECTORS, "action"} else value("int64") for name in columns}
    told["timestamp"] = value("float32")
    return pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": told}})})


def stats(x):
    x = x.reshape(len(x), -1)
    found = {"min": x.min(0), "max": x.max(0), "mean": x.mean(0), "std": x.std(0), "q50": np.median(x, 0)}
    return {name: each.tolist() for name, each in found.items()} | {"count": [len(x)]}


def lerobot_set(folder, version, recorded, names=None):
    """A data set after LeRobot's specification of a version."""
    names = {"motors": JOINTS} if names is None else names
    features = {name: {"dtype": "float32", "shape": [7], "names": names or None} for name in (*VECTORS, "action")}
    features["timestamp"] = {"dtype": "float32", "shape": [1], "names": None}
    whole = {"frame_index", "episode_index", "index", "task_index"}
    features |= {name: {"dtype": "int64", "shape": [1], "names": None} for name in sorted(whole)}
    features["observation.images.front"] = {"dtype": "video", "shape": [8, 8, 3], "names": ["height", "width", "c"]}
    info = {"codebase_version": version, "robot_type": "panda", "fps": FPS, "features": features}
    first = np.cumsum([0, *(len(each["t"]) for each in recorded)])
    tables = [table(k, each, first[k]) for k, each in enumerate(recorded)]
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    (folder / "videos" / "front").mkdir(parents=True)
    (folder / "videos" / "front" / "file-000.mp4").write_bytes(os.urandom(1000))
    (folder / "meta" / "info.json").write_text(json.dumps(info, indent=4))
    whole_stats = {"timestamp": stats(np.concatenate([each["t"] for each in recorded]))}
    each_stats = [{"timestamp": stats(each["t"])} for each in recorded]
    if version == "v3.0":
        (folder / "meta" / "stats.json").write_text(json.dumps(whole_stats))
        (folder / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
        told = {"episode_index": [*range(len(recorded))], "length": [len(each["t"]) for each in recorded]}
        told |= {f"stats/timestamp/{key}": [own["timestamp"][key] for own in each_stats] for key in stats(first)}
        pq.write_table(pa.table(told), folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
        with pq.ParquetWriter(folder / "data" / "chunk-000" / "file-000.parquet", tables[0].schema) as writer:
            for each in tables:
                writer.write_table(each)
        return folder
    for k, each in enumerate(tables):
        pq.write_table(each, folder / "data" / "chunk-000" / f"episode_{k:06d}.parquet")
    if version == "v2.0":
        (folder / "meta" / "stats.json").write_text(json.dumps(whole_stats))
    else:
        lines = [json.dumps({"episode_index": k, "stats": own}) + "\n" for k, own in enumerate(each_stats)]
        (folder / "meta" / "episodes_stats.jsonl").write_text("".join(lines))
    return folder


def label(*arguments, status=0):
    """What `nori-dyn label` prints."""
    found = CliRunner().invoke(app, ["label", *map(str, arguments), "--robot", "panda", "--workers", "1"])
    assert found.exit_code == status, (found.output, found.exception)
    return plain(found.output)


def refused(*arguments):
    """The error that `nori-dyn label` ends with."""
    found = CliRunner().invoke(app, ["label", *map(str, arguments), "--robot", "panda", "--workers", "1"])
    assert isinstance(found.exception, nd.errors.NoriError), found.output
    return found.exception


def rows(folder):
    """All rows of a LeRobot data set, in the order of its files."""
    return pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("data/**/*.parquet"))])


def check_labels(new, recorded, folder):
    labelled = rows(new)
    of = np.asarray(labelled["episode_index"])
    plan = nd.preset("panda").plan("contacts")
    for k, each in enumerate(recorded):
        found = estimates(folder, each, plan if k else "panda")  # which is the same, and sooner
        for name, field in zip(ADDED, (f"fx:{LINK}", f"sigma:fx:{LINK}", "p_value"), strict=True):
            own = np.array(labelled[name].to_pylist(), dtype=np.float32)[of == k]
            assert np.array_equal(own, found[field].astype(np.float32)), (k, name)


def check_statistics(version, old, new, recorded):
    """Statistics are those of the labels, of those kinds that others have."""
    meta, found = new / "meta", rows(new)
    fx, of = np.array(found[ADDED[0]].to_pylist()), np.asarray(found["episode_index"])
    if version != "v2.1":
        whole = json.loads((meta / "stats.json").read_text())
        assert whole["timestamp"] == json.loads((old / "meta" / "stats.json").read_text())["timestamp"]
        for key, value in stats(fx).items():
            assert np.allclose(whole[ADDED[0]][key], value, rtol=1e-5, atol=1e-5), key
    if version == "v2.1":
        lines = [json.loads(line) for line in (meta / "episodes_stats.jsonl").read_text().splitlines()]
        own = [line["stats"][ADDED[0]] for line in lines]
    elif version == "v3.0":
        told = pq.read_table(meta / "episodes" / "chunk-000" / "file-000.parquet")
        own = [{key: told[f"stats/{ADDED[0]}/{key}"][k].as_py() for key in stats(fx)} for k in range(len(recorded))]
    for k in range(len(recorded)) if version != "v2.0" else ():
        assert {*own[k]} == {*stats(fx)}
        assert np.allclose(own[k]["max"], stats(fx[of == k])["max"], rtol=1e-5)
        assert own[k]["count"] == [len(recorded[k]["t"])]


@pytest.mark.parametrize("version", ["v2.0", "v2.1", "v3.0"])
def test_lerobot(version, tmp_path):
    recorded = [episode(k) for k in range(2)]
    old = lerobot_set(tmp_path / "arm", version, recorded)
    label(old, "--what", "contacts")
    new = tmp_path / "arm.panda"
    check_labels(new, recorded, tmp_path)
    before, after = rows(old), rows(new)
    assert after.column_names == [*before.column_names, *ADDED]
    assert after.select(before.column_names).cast(before.schema).equals(before)
    assert [after.schema.field(name).type for name in before.column_names] == before.schema.types
    told = json.loads(after.schema.metadata[b"huggingface"])["info"]["features"]
    assert told[ADDED[0]] == {"feature": {"dtype": "float32", "_type": "Value"}, "length": 6, "_type": "Sequence"}
    assert told[ADDED[2]] == {"dtype": "float32", "_type": "Value"}
    info, was = (json.loads((each / "meta" / "info.json").read_text()) for each in (new, old))
    components = [f"fx:{LINK}.{part}" for part in ("mx", "my", "mz", "fx", "fy", "fz")]
    assert info["features"].pop(ADDED[0]) == {"dtype": "float32", "shape": [6], "names": components}
    assert info["features"].pop(ADDED[1])["shape"] == [6]
    assert info["features"].pop(ADDED[2])["shape"] == [1]
    assert info == was
    video = Path("videos") / "front" / "file-000.mp4"
    assert (new / video).read_bytes() == (old / video).read_bytes()
    assert not [*tmp_path.glob(".labels*")]
    push = np.concatenate([each["push"] for each in recorded])
    assert np.abs(np.array(after[ADDED[0]].to_pylist())[:, 5] - push).mean() < 0.5
    check_statistics(version, old, new, recorded)
    assert f"has '{ADDED[0]}' already" in str(refused(new, "--what", "contacts"))


def test_all_that_a_preset_estimates(tmp_path):
    recorded = [episode(0)]
    label(lerobot_set(tmp_path / "arm", "v2.1", recorded))
    found = rows(tmp_path / "arm.panda")
    torques = estimates(tmp_path, recorded[0], what="torques")
    offset = np.array(found["observation.offset"].to_pylist(), dtype=np.float32)
    assert np.array_equal(offset, torques["offset"].astype(np.float32))
    check_labels(tmp_path / "arm.panda", recorded, tmp_path)


RUN = """
from nori_dyn.cli import main
from tests.compilers import QUICK, compiled_with
with compiled_with(QUICK):
    main()
"""
"""The command line, whose programs are those of these tests, and compiled already."""


@pytest.mark.parametrize(
    ("version", "stage"),
    [
        ("v3.0", "estimates"),
        pytest.param("v2.1", "estimates", marks=pytest.mark.long),
        pytest.param("v2.1", "files", marks=pytest.mark.long),
    ],
)
def test_a_run_that_was_killed(version, stage, tmp_path):
    recorded = [episode(k) for k in range(4)]
    old, new = lerobot_set(tmp_path / "arm", version, recorded), tmp_path / "arm.panda"
    waiting = tmp_path / ".labels-arm.panda" / "contacts" if stage == "estimates" else new / "data" / "chunk-000"
    command = [sys.executable, "-c", RUN, "label", old, "--robot", "panda", "--what", "contacts", "--workers", "1"]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[3])
    while process.poll() is None and not [*waiting.glob("e*"), *waiting.glob("f*")]:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = [file for file in waiting.iterdir() if file.suffix in (".parquet", ".npz")]
    assert 0 < len(done) < len(recorded)
    for file in done:
        assert len(pq.read_table(file) if file.suffix == ".parquet" else np.load(file)["sample"]) >= 40  # whole
    assert not (new / "meta" / "info.json").exists()
    label(old, "--what", "contacts")
    check_labels(new, recorded, tmp_path)
    assert not [*tmp_path.rglob(".partial-*"), *tmp_path.glob(".labels-*")]


def test_what_was_estimated_before_is_left_alone(tmp_path):
    recorded = [episode(k) for k in range(2)]
    recorded[1]["tau"][5, 3] = np.nan
    old = lerobot_set(tmp_path / "arm", "v3.0", recorded)
    told = str(refused(old, "--what", "contacts"))
    assert "1 of 2 episodes" in told
    assert "- episode_000001.npz, sample 5:" in told
    first = tmp_path / ".labels-arm.panda" / "contacts" / "episode_000000.npz"
    when = first.stat().st_mtime_ns
    refused(old, "--what", "contacts")
    assert first.stat().st_mtime_ns == when
    assert "failed" in label(old, "--what", "contacts", "--singular", "nan")
    found = rows(tmp_path / "arm.panda")
    fx, of = np.array(found[ADDED[0]].to_pylist()), np.asarray(found["episode_index"])
    assert np.isfinite(fx[of == 0]).all()
    assert np.isnan(fx[of == 1]).all()
    text = (tmp_path / "arm.panda" / "meta" / "stats.json").read_text()
    assert "NaN" not in text


def test_samples_without_an_estimate(tmp_path):
    recorded = [episode(0)]
    recorded[0]["q"][7] = np.nan
    label(lerobot_set(tmp_path / "arm", "v2.1", recorded), "--what", "contacts", "--missing", "drop")
    fx = np.array(rows(tmp_path / "arm.panda")[ADDED[0]].to_pylist())
    assert np.flatnonzero(np.isnan(fx).any(axis=1)).tolist() == [7]


def test_a_new_data_set_takes_no_ones_place(tmp_path):
    old = lerobot_set(tmp_path / "arm", "v2.1", [episode(0)])
    (tmp_path / "arm.panda").mkdir()
    assert "is there already" in str(refused(old))


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_an_episode_whose_file_is_not_here(version, tmp_path):
    old = lerobot_set(tmp_path / "arm", version, [episode(0), episode(1)])
    file = sorted(old.glob("data/**/*.parquet"))[-1]
    if version == "v3.0":
        whole = pq.read_table(file)
        pq.write_table(whole.filter(np.asarray(whole["episode_index"]) == 0), file)
    else:
        file.unlink()
    label(old, "--what", "contacts")
    check_labels(tmp_path / "arm.panda", [episode(0)], tmp_path)


def test_what_is_doubtful_is_asked(tmp_path):
    recorded = [episode(0)]
    unnamed = lerobot_set(tmp_path / "unnamed", "v2.1", recorded, names=())
    error = refused(unnamed, "--what", "contacts")
    assert isinstance(error, nd.errors.DoubtfulLogError)
    assert len(error.questions) == 1
    assert "its numbers have no names" in error.questions[0]
    label(unnamed, "--what", "contacts", "--yes")
    check_labels(tmp_path / "unnamed.panda", recorded, tmp_path)
    shares = [{**recorded[0], "q": 30 * recorded[0]["q"], "qd": 30 * recorded[0]["qd"]}]
    error = refused(lerobot_set(tmp_path / "shares", "v3.0", shares), "--what", "contacts")
    assert "or a share of its range, as LeRobot's own arms record it" in error.questions[0]


def test_what_is_doubtful_about_an_episode(tmp_path):
    recorded = [episode(0), episode(1)]
    recorded[1]["tau"] = -recorded[1]["tau"]
    old = lerobot_set(tmp_path / "arm", "v3.0", recorded)
    told = str(refused(old, "--what", "contacts"))
    assert "1 of 2 episodes could not be estimated" in told
    assert "--yes" in told
    assert "warning: episode_000001: the torques are -1.1 times" in label(old, "--what", "contacts", "--yes")


def test_encoders_alone(tmp_path):
    recorded = [episode(0)]
    old = lerobot_set(tmp_path / "arm", "v3.0", recorded)
    for file in old.glob("data/**/*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns(["observation.velocity"]), file)
    assert "made of the positions, by a smoother" in label(old, "--what", "contacts")
    found = estimates(tmp_path, {**recorded[0], "qd": None}, differentiate="smoother")[f"fx:{LINK}"]
    assert np.array_equal(np.array(rows(tmp_path / "arm.panda")[ADDED[0]].to_pylist()), found.astype(np.float32))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"codebase_version": "v1.6"}, "format v1.6"), ({"features": 3}, "is not LeRobot's"), (None, "neither")],
)
def test_what_is_no_data_set(change, said, tmp_path):
    (tmp_path / "arm" / "meta").mkdir(parents=True)
    info = {"codebase_version": "v2.1", "features": {}}
    if change is not None:
        (tmp_path / "arm" / "meta" / "info.json").write_text(json.dumps(info | change))
    assert said in str(refused(tmp_path / "arm"))


def same_but(new, old):
    """Names of the arrays of an HDF5 file that another lacks; all others, and all attributes, are the same."""
    with h5py.File(new) as after, h5py.File(old) as before:
        names = [[], []]
        for file, own in zip((after, before), names, strict=True):
            file.visititems(lambda name, each, own=own: own.append(name))
        for name in ("/", *names[1]):
            assert {**after[name].attrs} == {**before[name].attrs}
            if isinstance(before[name], h5py.Dataset):
                assert after[name].dtype == before[name].dtype
                assert after[name].chunks == before[name].chunks
                assert np.asarray(after[name]).tobytes() == np.asarray(before[name]).tobytes()
        return sorted({*names[0]} - {*names[1]})


def droid_trajectory(path, recorded):
    """A trajectory as DROID's TrajectoryWriter writes it."""
    n, ms = len(recorded["t"]), 1_700_000_000_000 + np.round(1e3 * recorded["t"]).astype(int)
    state = {"joint_positions": recorded["q"], "joint_velocities": recorded["qd"]}
    state |= {"motor_torques_measured": recorded["tau"], "joint_torques_computed": 0 * recorded["tau"]}
    state |= {"cartesian_position": np.zeros((n, 6)), "gripper_position": np.zeros(n)}
    state |= {f"prev_joint_torques_computed{end}": 0 * recorded["tau"] for end in ("", "_safened")}
    state |= {"prev_command_successful": np.ones(n, dtype=bool), "prev_controller_latency_ms": np.zeros(n)}
    arrays = {f"observation/robot_state/{name}": x for name, x in state.items()}
    arrays |= {f"action/robot_state/{name}": x for name, x in state.items()}
    arrays |= {"action/joint_position": recorded["q"], "action/joint_velocity": recorded["qd"]}
    clock = "observation/timestamp/robot_state/"
    arrays |= {f"{clock}read_start": ms, f"{clock}read_end": ms + 1, f"{clock}robot_timestamp_seconds": ms // 1000}
    arrays |= {"observation/controller_info/movement_enabled": np.ones(n, dtype=bool)}
    arrays |= {"observation/camera_extrinsics/1_left": np.zeros((n, 6)), "observation/camera_type/1": np.zeros(n)}
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        file.attrs["success"] = True
        for name, x in arrays.items():
            file.create_dataset(name, data=x, maxshape=(None, *x.shape[1:]), chunks=True)
    return path


def test_droid(tmp_path):
    recorded = [episode(k) for k in range(2)]
    for k, each in enumerate(recorded):
        droid_trajectory(tmp_path / "droid" / "success" / f"{k}" / "trajectory.h5", each)
    error = refused(tmp_path / "droid", "--what", "contacts")
    assert "gripper of Robotiq" in error.questions[0]
    label(tmp_path / "droid", "--what", "contacts", "--yes")
    for k in range(2):
        old, new = (tmp_path / name / "success" / f"{k}" / "trajectory.h5" for name in ("droid", "droid.panda"))
        at = "observation/robot_state"
        assert same_but(new, old) == [f"{at}/fx.{LINK}", f"{at}/p_value.contacts", f"{at}/sigma.fx.{LINK}"]
        found = nd.estimate(old, "panda", what="contacts", monitor=True, accept=True)
        with h5py.File(new) as file:
            assert np.array_equal(file[f"{at}/fx.{LINK}"], found.written[f"fx:{LINK}"])
            assert np.array_equal(file[f"{at}/sigma.fx.{LINK}"], found.written[f"sigma:fx:{LINK}"])
            assert [*file[f"{at}/fx.{LINK}"].attrs["units"]] == ["N m"] * 3 + ["N"] * 3


def robomimic_file(path, recorded):
    """A file as robomimic describes it."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {"control_freq": FPS}})
        data.attrs["total"] = sum(len(each["t"]) for each in recorded)
        file["mask/train"] = np.array([b"demo_0"])
        for k, each in enumerate(recorded):
            n, demo = len(each["t"]), data.create_group(f"demo_{k}")
            demo.attrs["num_samples"] = n
            demo["actions"], demo["states"], demo["dones"] = np.zeros((n, 7)), np.zeros((n, 32)), np.zeros(n, dtype=int)
            for group in ("obs", "next_obs"):
                own = demo.create_group(group)
                own["robot0_joint_pos"], own["robot0_joint_vel"] = each["q"], each["qd"]
                own["robot0_joint_pos_cos"], own["robot0_joint_pos_sin"] = np.cos(each["q"]), np.sin(each["q"])
                own["robot0_eef_pos"], own["robot0_gripper_qpos"] = np.zeros((n, 3)), np.zeros((n, 2))
                own.create_dataset("agentview_image", data=np.zeros((n, 4, 4, 3), dtype=np.uint8), compression="gzip")
                if "tau" in each:
                    own["robot0_joint_torque"] = each["tau"]
    return path


def test_robomimic(tmp_path):
    recorded = [episode(k) for k in range(2)]
    old, new = robomimic_file(tmp_path / "lift.hdf5", recorded), tmp_path / "lift.panda.hdf5"
    label(old, "--what", "contacts")
    names = (f"fx.{LINK}", "p_value.contacts", f"sigma.fx.{LINK}")
    assert same_but(new, old) == [f"data/demo_{k}/obs/{name}" for k in range(2) for name in names]
    for k, each in enumerate(recorded):
        found = estimates(tmp_path, {name: each[name] for name in ("q", "qd", "tau")}, dt=1 / FPS)
        with h5py.File(new) as file:
            assert np.array_equal(file[f"data/demo_{k}/obs/fx.{LINK}"], found[f"fx:{LINK}"])
    label(robomimic_file(tmp_path / "one.hdf5", recorded[:1]), "--what", "contacts")
    assert f"has 'fx.{LINK}' already" in str(refused(tmp_path / "one.panda.hdf5", "--what", "contacts"))
    del recorded[0]["tau"]
    assert "'tau:panda_joint1'" in str(refused(robomimic_file(tmp_path / "sim.hdf5", recorded[:1])))
