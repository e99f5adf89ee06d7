"""What is odd about a robot is told, and a file that cannot be written keeps no other from being written."""

import numpy as np

import nori_dyn as nd
from nori_dyn.errors import ModelError

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
ODD = f"""
<robot name="odd">
  <link name="base"/>
  <link name="upper">{INERTIAL}</link>
  <link name="tip"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
  <joint name="j2" type="continuous"><parent link="upper"/><child link="tip"/><axis xyz="0 1 0"/></joint>
</robot>
"""
SOUND = ODD.replace('<link name="tip"/>', f'<link name="tip">{INERTIAL}</link>')
SOUND = SOUND.replace("<axis", '<limit lower="-1" upper="1"/><axis')


def test_joints_without_limits_and_links_without_inertia(told, figures, tmp_path):
    (tmp_path / "odd.urdf").write_text(ODD)
    (tmp_path / "sound.urdf").write_text(SOUND)
    notes = figures("info", tmp_path / "odd.urdf")["notes"]
    assert "revolute or prismatic, and without limits: j1" in notes
    assert any(
        note.startswith("without inertia: all that moves with j2. Forward dynamics are singular") for note in notes
    )
    assert "without inertia: all that moves with j2" in told("info", tmp_path / "odd.urdf")
    sound = told("info", tmp_path / "sound.urdf")
    assert "without" not in sound


def test_what_was_found_is_written_where_it_can_be(run, tmp_path, monkeypatch):
    (tmp_path / "sound.urdf").write_text(SOUND)
    tree, t = nd.load_robot(tmp_path / "sound.urdf"), 0.01 * np.arange(200)
    q, qd, qdd = (np.column_stack([f(t), f(2 * t)]) for f in (np.sin, np.cos, lambda x: -np.sin(x)))
    tau = np.array([nd.rnea(tree, *state) for state in zip(q, qd, qdd, strict=True)])
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)

    def refuse(*arguments):
        raise ModelError("the friction of 'j1' cannot be in a file: coulomb is -0.004.")

    monkeypatch.setattr("nori_dyn.io.component_files.save_components", refuse)
    files = {
        "--out": tmp_path / "found.urdf",
        "--html": tmp_path / "page.html",
        "--components-out": tmp_path / "c.yaml",
    }
    words = (
        "--robot",
        tmp_path / "sound.urdf",
        "--parameters",
        "friction",
        *(x for pair in files.items() for x in pair),
    )
    status, output, errors = run("identify", tmp_path / "log.npz", *words)
    assert status == 1
    assert "failed: the friction of 'j1' cannot be in a file" in errors
    assert "Page written to" in output
    assert "Robot written to" in output
    assert [path.exists() for path in files.values()] == [True, True, False]
