"""An MJCF model as mujoco compiles it, and what we call the things in it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nori_dyn.descriptions.urdf_document import LARGEST
from nori_dyn.errors import FileFormatError, MissingExtraError, ModelError, NoriWarning
from nori_dyn.io.xml_file import read_xml

NUMBERS = (
    *("body_mass", "body_ipos", "body_iquat", "body_inertia", "body_pos", "body_quat"),
    *("jnt_axis", "jnt_pos", "qpos0", "site_pos", "site_quat"),
    *("dof_armature", "dof_damping", "dof_frictionloss", "jnt_stiffness", "qpos_spring"),
    *("eq_data", "wrap_prm", "tendon_stiffness", "tendon_damping", "tendon_lengthspring"),
)
"""What the equations are made of, in MuJoCo's names."""


@dataclass(frozen=True, eq=False)
class MjcfModel:
    """An MJCF model, compiled once: tree, sensors and components are read from it.

    Attributes:
        name: its name, or that of the file.
        mujoco: the module.
        model: what it compiles of the file.
    """

    name: str
    mujoco: Any
    model: Any

    def named(self, kind: str, number: int) -> str:
        """Name a body, joint, site, tendon or equality: by its number, as in body3, where the file does not."""
        return self.given_name(kind, number) or f"{kind}{number}"

    def given_name(self, kind: str, number: int) -> str:
        """The name that the file gives to a body, joint, site, or the like; empty without one."""
        return self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), number) or ""

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The name of each body's link: the body's, or body3 where it has none."""
        return tuple(self.named("body", i) for i in range(self.model.nbody))

    def site_frame(self, site: int) -> str:
        """The frame of a named site: SITE/site where a body has the name of the site."""
        name = self.given_name("site", site)
        return f"{name}/site" if name in self.links else name


def compiled(path: str | os.PathLike[str]) -> MjcfModel:
    """Compile an MJCF file.

    Raises:
        FileFormatError: not a readable file, or not MJCF.
        ModelError: MuJoCo refuses the model.
        MissingExtraError: mujoco is not installed.
    """
    root = read_xml(path)
    if root.tag != "mujoco":
        hint = " It is a URDF: use load_urdf." if root.tag == "robot" else ""
        raise FileFormatError(f"{path} is not MJCF: its root element is <{root.tag}> instead of <mujoco>.{hint}")
    try:
        import mujoco
    except ImportError:
        raise MissingExtraError("reading an MJCF model", "mjcf") from None
    told: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(told.append)  # left alone, MuJoCo writes a log file where it runs
    try:
        model = mujoco.MjModel.from_xml_path(os.fspath(path))
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise ModelError(f"{path}: MuJoCo refuses it: {' '.join(str(error).split())}") from None
    finally:
        mujoco.set_mju_user_warning(before)
    for message in told:
        warnings.warn(f"{path}: MuJoCo: {' '.join(message.split())}", NoriWarning, stacklevel=3)
    _check_numbers(path, model)
    return MjcfModel(root.get("model") or os.path.splitext(os.path.basename(path))[0], mujoco, model)


def _check_numbers(path: str | os.PathLike[str], model: Any) -> None:
    """Check that all numbers that the dynamics depend on are finite, and not so large that products overflow.

    Raises:
        ModelError: one is not.
    """
    for name in NUMBERS:
        values = np.asarray(getattr(model, name))
        wrong = ~(np.abs(values) <= LARGEST)
        if wrong.any():
            raise ModelError(
                f"{path}: its {name} is {values[wrong][0]:g} at one place: it must be finite and below 1e50."
            )
