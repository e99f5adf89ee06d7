"""What a report says of where it was made."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nori_dyn.bench.peers.registry as registry
from nori_dyn.program.compiler import find_compiler


def machine() -> dict[str, str | int]:
    """Return what is known of the machine."""
    compiler = find_compiler()
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "system": platform.platform(),
        "compiler": "none" if compiler is None else " ".join(compiler.command),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of all peers that are installed."""
    found = {"python": platform.python_version()}
    packages = ("nori_dyn", "numpy", "scipy", *(peer.package for peer in registry.PEERS.values()))
    for package in dict.fromkeys(packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
