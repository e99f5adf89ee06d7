"""What a report says of where it was made."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers.registry import MANY, PEERS
from nori_dyn.program.compiler import find_compiler

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""Where Linux tells of the caches of a core, an `index...` folder each."""

VECTORS = {8: "AVX-512", 4: "AVX", 2: "128 bits"}
"""What vectors of so many doubles are called; of those of 4, AVX2 where the processor says so."""


def machine() -> dict[str, str | int]:
    """What is known of the machine."""
    compiler = find_compiler()
    return {
        "processor": _processor(),
        "vectors": vectors(),
        "caches": ", ".join(f"{name} {size}" for name, size in caches(CACHES).items()) or "unknown",
        "cores": os.cpu_count() or 0,
        "system": " ".join(filter(None, (platform.system(), *platform.libc_ver()))),
        "compiler": "none" if compiler is None else " ".join(compiler.command),
    }


def versions() -> dict[str, str]:
    """The versions of Python, of this package, and of all peers that are installed."""
    found = {"python": platform.python_version()}
    packages = ("nori_dyn", "numpy", "scipy", *(peer.package for peer in (*PEERS.values(), *MANY.values())))
    for package in dict.fromkeys(packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def vectors() -> str:
    """The vectors that native code is compiled to use; those of the processor too, where they are wider."""
    compiler, flags = find_compiler(), set(_entry("flags").split())
    has = 8 if "avx512f" in flags else 4 if "avx" in flags else 2
    used = has if compiler is None else compiler.lanes
    names = VECTORS | ({4: "AVX2"} if "avx2" in flags else {})
    if not flags or used == has:
        return names[used]
    return f"{names[used]}, on a processor with {names[has]}"


def caches(folder: Path) -> dict[str, str]:
    """The sizes of the caches of a core by name: L1d, L1i, L2, L3; none where the system does not tell."""
    found = {}
    for entry in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        suffix = {"Data": "d", "Instruction": "i"}.get(kind, "")
        found[f"L{level}{suffix}"] = f"{size[:-1]} KiB" if size.endswith("K") else size
    return found


def _processor() -> str:
    return _entry("model name") or platform.processor() or platform.machine()


def _entry(key: str) -> str:
    """What /proc/cpuinfo says of a processor; empty where it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), "")
