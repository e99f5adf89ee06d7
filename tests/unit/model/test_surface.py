"""Surfaces: areas and normals in closed form, and shapes of files as MuJoCo has them."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import NoriWarning
from nori_dyn.model.surface import Surface, box, capsule, cylinder, sphere
from tests.peers import mujoco

FACETS = 0.02
"""Share by which solids of revolution are off, of 32 sides."""

SPACING = 0.04
"""Of points on what is read from files [m]."""

SOLIDS = {
    "box": (box([0.2, 0.4, 0.6]), 2 * (0.08 + 0.12 + 0.24)),
    "cylinder": (cylinder(0.1, 0.5), 2 * np.pi * 0.1 * (0.5 + 0.1)),
    "capsule": (capsule(0.1, 0.5), 2 * np.pi * 0.1 * 0.5 + 4 * np.pi * 0.01),
    "sphere": (sphere(0.1), 4 * np.pi * 0.01),
}


@pytest.mark.parametrize(("triangles", "area"), SOLIDS.values(), ids=SOLIDS)
def test_areas_normals_and_insides(triangles, area):
    surface = Surface.of(triangles, 0.02)
    assert surface.area == pytest.approx(area, rel=FACETS)
    assert len(surface.points) == round(surface.area / 0.02**2)
    assert np.linalg.norm(surface.normals, axis=1) == pytest.approx(1.0)
    assert (np.sum(surface.points * surface.normals, axis=1) > 0).all()  # convex about the origin
    assert surface.encloses(surface.points - 1e-3 * surface.normals).all()
    assert not surface.encloses(surface.points + 1e-3 * surface.normals).any()


GEOMS = """
<geom type="box" size="0.1 0.2 0.3" pos="0.5 0 0" euler="10 20 30"/>
<geom type="sphere" size="0.1" pos="0 0.5 0"/>
<geom type="cylinder" size="0.1 0.2" pos="0 0 0.5" euler="40 0 0"/>
<geom type="capsule" size="0.05 0.2" pos="-0.5 0 0" euler="0 70 0"/>
<geom type="ellipsoid" size="0.1 0.05 0.2" pos="0 -0.5 0"/>
<geom type="mesh" mesh="wedge" pos="0 0 -0.5" euler="0 0 30"/>
<geom type="box" size="1 1 1" contype="0" conaffinity="0"/>
"""
MODEL = """<mujoco><asset><mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1" scale="1 2 1"/></asset><worldbody>
<body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0" pos="0.1 0 0.2"/>{geoms}
<body name="tip" pos="0 0 .1" euler="0 30 0"><geom type="sphere" size="0.1" pos="2 0 0"/></body></body>
</worldbody></mujoco>"""


def test_points_are_on_the_geoms_of_mujoco(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(MODEL.format(geoms=GEOMS))
    tree = nd.load_mjcf(path)
    surface = nd.tools.surfaces(path, tree, SPACING)["arm"]
    spec = mujoco.MjSpec.from_file(str(path))
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    origin = tree.frame("arm/body").X.r  # of the body, in the link's coordinates
    hit, missed = np.zeros(1, dtype=np.int32), 0
    for x, n in zip(surface.points, surface.normals, strict=True):
        start = data.xpos[1] + x - origin + 1e-2 * n
        distance = mujoco.mj_ray(model, data, start, -n, None, 1, -1, hit)
        missed += abs(distance - 1e-2) > 2e-3
    assert missed == 0


def test_shapes_of_a_urdf(tmp_path):
    shapes = "".join(
        f'<collision><origin xyz="{x} 0 0" rpy="0.1 0.2 0.3"/><geometry>{shape}</geometry></collision>'
        for x, shape in enumerate(
            ['<box size="0.2 0.4 0.6"/>', '<sphere radius="0.1"/>', '<cylinder radius="0.1" length="0.5"/>']
        )
    )
    lost = '<collision><geometry><mesh filename="gone.stl"/></geometry></collision>'
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = '<joint name="j{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="0 0 1"/></joint>'
    path = tmp_path / "arm.urdf"
    path.write_text(
        f'<robot name="arm"><link name="base"><collision><geometry><sphere radius="1"/></geometry></collision></link>'
        f'<link name="arm">{mass}{shapes}{lost}</link><link name="tool">{shapes}</link>'
        f"{joint.format(1, 'continuous', 'base', 'arm')}{joint.format(2, 'fixed', 'arm', 'tool')}</robot>"
    )
    tree = nd.load_urdf(path)
    with pytest.warns(NoriWarning, match="meshes of arm are not found"):
        found = nd.tools.surfaces(path, tree, SPACING)
    assert [*found] == ["arm"]
    assert found["arm"].area == pytest.approx(
        2 * sum(SOLIDS[name][1] for name in ("box", "sphere", "cylinder")), rel=FACETS
    )
    assert found["arm"].points[:, 2].max() > 1.2  # those of the tool
