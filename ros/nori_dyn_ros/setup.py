"""The ROS 2 package of nori_dyn: one node."""

from glob import glob

from setuptools import setup

NAME = "nori_dyn_ros"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.launch.py")),
    ],
    install_requires=["setuptools", "nori_dyn[live]"],
    zip_safe=True,
    maintainer="the nori_dyn authors",
    maintainer_email="nori-dyn@users.noreply.github.com",
    description="Torques, accelerations and contact wrenches of a robot, estimated from its topics by nori_dyn",
    license="BSD-3-Clause",
    entry_points={"console_scripts": [f"serve = {NAME}.node:main"]},
)
