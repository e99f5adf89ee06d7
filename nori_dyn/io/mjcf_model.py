"""An MJCF model as mujoco compiles it, and what we call the things in it."""

from __future__ import annotations

import os
from typing import Any

from nori_dyn.errors import FileFormatError, MissingExtraError, ModelError
from nori_dyn.io.xml_file import read_xml


def compiled(path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return the module mujoco and the model that it compiles from an MJCF file.

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
    try:
        return mujoco, mujoco.MjModel.from_xml_path(os.fspath(path))
    except ValueError as error:
        raise ModelError(f"{path}: MuJoCo refuses it: {' '.join(str(error).split())}") from None


def link_names(mujoco: Any, model: Any) -> list[str]:
    """Return the name of each body's link: the body's, or body3 where it has none."""
    return [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, i) or f"body{i}" for i in range(model.nbody)]


def site_frame(mujoco: Any, model: Any, site: int) -> str:
    """Return the name of a named site's frame: the site's, or SITE/site where a body has that name."""
    name: str = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_SITE, site)
    return f"{name}/site" if name in link_names(mujoco, model) else name
