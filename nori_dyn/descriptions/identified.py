"""The file of an identified robot: that which it was loaded from, with what was found to be otherwise."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nori_dyn.components.friction import Friction
from nori_dyn.components.rotor import Rotor
from nori_dyn.descriptions.corrections import listed
from nori_dyn.descriptions.mjcf_corrected import check_mjcf, corrected_mjcf
from nori_dyn.descriptions.robots import robot_file
from nori_dyn.descriptions.urdf_corrected import corrected_urdf, relative_files
from nori_dyn.descriptions.urdf_document import IDENTIFIED, YES
from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import check_writable, read_bytes, reason, write_bytes
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.given import check_tree

FORMATS = {"robot": ("a URDF", (".urdf",)), "mujoco": ("an MJCF model", (".xml", ".mjcf"))}
"""What each format is called, and how its files end, by the root element."""


MARK = f'{IDENTIFIED}="{YES}"'.encode()
"""What marks identified parameters in a URDF."""


def is_identified(robot: str | os.PathLike[str]) -> bool:
    """Whether a robot's file, a URDF, was written by `save_robot` with other parameters.

    Raises:
        FileFormatError, ModelError: see `robot_file`.
    """
    return MARK in read_bytes(robot_file(robot)[0])


def save_robot(tree: KinematicTree, source: str | os.PathLike[str], out: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write the file of a robot anew, with other inertias, friction and rotors (in MJCF springs as well).

    All else stays as it is in the file, to the byte: comments, meshes, the order of things, white space. Inertias are
    printed about the centre of mass, in as many digits as it takes to read them back. A URDF has what was identified
    marked, `identified="true"`, friction with the width of Coulomb's: `load_robot` takes in friction and rotors by
    itself from then on, as it does those of an MJCF model anyway. `save_components` writes what the format has no place
    for; the notes say what that is.

    Args:
        tree: the robot, loaded from `source`, with what was identified: see `Parameters.applied`.
        source: the file of the robot, or its name, as for `load_robot`.
        out: where to write: a URDF for a URDF (.urdf), an MJCF model for an MJCF model (.xml, .mjcf).

    Returns:
        Notes: what was done besides, and what the file cannot hold.

    Raises:
        FileFormatError: `source` is no file of a robot, `out` is of another format or cannot be written.
        ModelError: no robot of that name, a tree of another robot, or a number that no file can hold.
        MissingExtraError: an MJCF model, and mujoco is not installed.
        WrongKindError: no robot.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("rod.urdf").write_text('''
        ... <robot name="pendulum">
        ...   <link name="wall"/>
        ...   <link name="rod"> <!-- weighed by hand -->
        ...     <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
        ...   </link>
        ...   <joint name="hinge" type="continuous"><parent link="wall"/><child link="rod"/></joint>
        ... </robot>
        ... ''')
        >>> rod = nd.load_robot("rod.urdf")
        >>> spring = nd.components.Spring(joints="hinge", stiffness=3.0)
        >>> nd.tools.save_robot(rod.replace(I=1.1 * rod.I, components=[spring]), "rod.urdf", "found.urdf")
        ("a URDF has no place for the spring of 'hinge': a file of components has",)
        >>> print(Path("found.urdf").read_text().splitlines()[4].strip()[:47])
        <inertial identified="true"><mass value="1.1"/>
    """
    check_tree(tree, "nd.tools.save_robot", "'panda.urdf', 'identified.urdf'")
    path, root = check_robot(source, out)
    out = Path(out)
    if root == "mujoco":
        corrected = corrected_mjcf(tree, path)
        try:  # a model finds its meshes from its own folder
            with tempfile.NamedTemporaryFile(dir=out.parent, prefix=".partial-", suffix=out.suffix) as draft:
                draft.write(corrected.content)
                draft.flush()
                check_mjcf(tree, draft.name, path)
        except OSError as error:
            raise FileFormatError(f"{out}: cannot be written: {reason(error)}.") from None
        notes = corrected.notes
    else:
        corrected = corrected_urdf(tree, path)
        notes = corrected.notes
        if MARK in corrected.content and any(isinstance(one, Friction | Rotor) for one in tree.components):
            notes += (
                f'friction and rotors are marked, {IDENTIFIED}="{YES}": nd.load_robot and commands take them in by '
                "themselves. Other programs may leave <dynamics> out",
            )
        if path.resolve().parent != out.resolve().parent and (files := relative_files(path)):
            notes += (f"meshes are named from the folder of the first file, and not found from here: {listed(files)}",)
    write_bytes(out, corrected.content)
    return notes


def check_robot(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> tuple[Path, str]:
    """Check, before the work, that the file of a robot can be written anew; return its path and its root element.

    Raises:
        FileFormatError, ModelError: see `save_robot`.
    """
    path, root = robot_file(source)
    form, endings = FORMATS[root]
    out = Path(out)
    if out.suffix.lower() not in endings:
        raise FileFormatError(
            f"{out}: '{path}' is {form}, and is written as one: name a file that ends in {' or '.join(endings)}."
        )
    check_writable(out)
    return path, root
