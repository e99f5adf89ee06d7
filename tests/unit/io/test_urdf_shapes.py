"""What links look like: shapes and meshes of URDFs, where they are, and which files they name."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.io.urdf_shapes import mesh_file, urdf_shapes
from tests.peers import pin
from tests.robots import ROBOTS

URDF = """
<robot name="r">
  <material name="red"><color rgba="1 0 0 0.5"/></material>
  <link name="a">
    <visual>
      <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry><box size="1 2 3"/></geometry><material name="red"/>
    </visual>
    <visual><geometry><sphere radius="0.5"/></geometry></visual>
    <visual><geometry><cylinder radius="0.1" length="2"/></geometry></visual>
    <visual><geometry><mesh filename="package://arm/meshes/hand.stl" scale="2 2 2"/></geometry></visual>
    <visual><geometry><mesh filename="gone.stl"/></geometry></visual>
    <visual><geometry><box size="1 2"/></geometry></visual>
    <visual/>
  </link>
</robot>
"""


@pytest.fixture
def urdf(tmp_path):
    package = tmp_path / "share" / "arm"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes" / "hand.stl").write_bytes(b"solid")
    path = package / "urdf" / "arm.urdf"
    path.write_text(URDF)
    return path


def test_shapes_meshes_colours_and_places(urdf):
    box, ball, cylinder, mesh, gone = urdf_shapes(urdf)
    assert [(s.kind, s.size) for s in (box, ball, cylinder)] == [
        ("box", (1, 2, 3)),
        ("sphere", (0.5,)),
        ("cylinder", (0.1, 2)),
    ]
    assert box.colour == (1, 0, 0, 0.5)
    assert ball.colour is None
    assert mesh.mesh == urdf.parents[1] / "meshes" / "hand.stl"
    assert mesh.size == (2, 2, 2)
    assert gone.mesh is None
    np.testing.assert_allclose(box.X.E.T, pin.rpy.rpyToMatrix(0.1, 0.2, 0.3), atol=1e-15)
    np.testing.assert_array_equal(box.X.r, [1, 2, 3])


def test_packages_are_found_by_the_environment(urdf, tmp_path, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "arm.urdf"
    name = "package://arm/meshes/hand.stl"
    assert mesh_file(elsewhere, name) is None
    for variable, folder in (("ROS_PACKAGE_PATH", tmp_path / "share"), ("AMENT_PREFIX_PATH", tmp_path)):
        monkeypatch.setenv(variable, str(folder))
        assert mesh_file(elsewhere, name) == urdf.parents[1] / "meshes" / "hand.stl"
        monkeypatch.delenv(variable)


def test_installed_robots_have_all_their_meshes_and_what_is_no_xml_is_refused(tmp_path):
    for name in ("panda", "talos_reduced", "iCubGenova04"):
        shapes = urdf_shapes(ROBOTS[name])
        assert len(shapes) > 8
        assert all(shape.mesh is not None for shape in shapes if shape.kind == "mesh"), name
    (tmp_path / "r.urdf").write_text("<robot")
    with pytest.raises(nd.errors.FileFormatError, match="not XML"):
        urdf_shapes(tmp_path / "r.urdf")
