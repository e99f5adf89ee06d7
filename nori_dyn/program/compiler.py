"""From C source to a loaded library: the compiler of this machine, and a private cache of its output.

The cache is addressed by the hash of source, the C files that it may include, compiler, flags and processor. An entry
appears whole or not at all, so two processes may compile the same plan at once; a damaged one is made anew.
"""

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nori_dyn.errors import CompilerError, NoriWarning
from nori_dyn.io.cache_files import cache_root, partial_folder, put_entry, read_entry

ROUNDING = ("-fno-fast-math", "-fno-unsafe-math-optimizations", "-fno-math-errno")
"""What sines and guards rest on, whatever flags CC brings; the last comes behind those that turn it on."""

FLAGS = ("-O3", "-fno-tree-slp-vectorize", "-march=native", *ROUNDING, "-fPIC", "-w")
LIBRARY, LIBRARIES = ("-shared",), ("-lm",)

C_FOLDER = Path(__file__).parent / "c"
"""The C that does not depend on the robot."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler.

    Attributes:
        command: how it is called.
        identity: its version and its target processor, for the cache.
        lanes: doubles in the widest vector of the processor.
    """

    command: tuple[str, ...]
    identity: str
    lanes: int


@cache
def find_compiler() -> Compiler | None:
    """The compiler of $CC, the system's, or that of the ziglang wheel; None where there is none that works."""
    commands = _named_compiler()
    commands += [(found,) for name in ("cc", "gcc", "clang") if (found := shutil.which(name))]
    if importlib.util.find_spec("ziglang") is not None:
        commands.append((sys.executable, "-m", "ziglang", "cc"))
    for command in commands:
        probe = [*command, "-march=native", "-dM", "-E", "-x", "c", os.devnull]
        try:
            macros = _run(probe, check=True, timeout=60).stdout
            version = _run([*command, "--version"], timeout=60).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        lanes = 8 if "__AVX512F__" in macros else 4 if "__AVX__" in macros else 2
        return Compiler(command, version + macros, lanes)
    return None


def needed_compiler(what: str) -> Compiler:
    """The compiler of `find_compiler`.

    Args:
        what: the part that needs it, for the message.

    Raises:
        CompilerError: there is none that works.
    """
    compiler = find_compiler()
    if compiler is None:
        raise CompilerError(
            f"{what} needs a C compiler, and there is none: install gcc or clang, or pip install 'nori_dyn[compiler]'."
        )
    return compiler


def _named_compiler() -> list[tuple[str, ...]]:
    """The command in $CC, or none where there is no such command."""
    named = os.environ.get("CC", "")
    try:
        return [tuple(words)] if (words := shlex.split(named)) else []
    except ValueError as error:
        warnings.warn(f"CC={named} is no command ({error}): another compiler is used.", NoriWarning, stacklevel=3)
        return []


def _run(command: Sequence[str], check: bool = False, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=check, timeout=timeout)


def c_file(name: str) -> str:
    """The text of a C file."""
    return (C_FOLDER / name).read_text(encoding="ascii")


def c_identity(compiler: Compiler) -> str:
    """A hash of all that machine code depends on besides its source: C files, compiler, flags and processor."""
    hasher = hashlib.sha256("\0".join([compiler.identity, *compiler.command, *FLAGS]).encode())
    for path in sorted(C_FOLDER.iterdir()):
        hasher.update(path.name.encode() + path.read_bytes())
    return hasher.hexdigest()


def library_key(source: str, compiler: Compiler) -> str:
    """The address of a source's library in the cache."""
    return hashlib.sha256(f"{c_identity(compiler)}\0{source}".encode()).hexdigest()[:32]


def load_library(ffi: Any, source: str, compiler: Compiler, flags: int = 0) -> Any:
    """The library of a source, compiled unless it is in the cache.

    Args:
        ffi: the cffi interface with the declarations of the library.
        source: C source.
        compiler: the compiler.
        flags: how to load it, as dlopen has them.

    Raises:
        CompilerError: the compiler fails, or there is no room for its output.
    """
    try:
        folder = _private_folder()
        library, seal = _entry(folder, library_key(source, compiler))
        if not _is_sealed(library, seal):
            _compile(source, compiler, folder, library, seal)
    except OSError as error:
        raise CompilerError(f"the compiled program cannot be written: {error}.") from None
    return _opened(ffi, library, flags)


def cached_library(ffi: Any, key: str) -> Any | None:
    """The library at an address in the cache; None where there is none, or a damaged one."""
    folder = usable_folder()
    if isinstance(folder, OSError):
        return None
    library, seal = _entry(folder, key)
    return _opened(ffi, library) if _is_sealed(library, seal) else None


def _entry(folder: Path, key: str) -> tuple[Path, Path]:
    return folder / f"{key}.so", folder / f"{key}.sha256"


def _opened(ffi: Any, library: Path, flags: int = 0) -> Any:
    try:
        return ffi.dlopen(str(library), flags)
    except OSError as error:
        raise CompilerError(f"the compiled library cannot be loaded: {error}") from None


def _is_sealed(library: Path, seal: Path) -> bool:
    content, words = read_entry(library), (read_entry(seal) or b"").split()
    return content is not None and words[:1] == [_seal(content)]


def _seal(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _compile(source: str, compiler: Compiler, folder: Path, library: Path, seal: Path) -> None:
    with partial_folder(folder) as work:
        code, made, sealed = (Path(work) / name for name in ("program.c", "program.so", "seal"))
        code.write_text(source)
        _called(compiler, [*FLAGS, "-I", str(C_FOLDER), *LIBRARY, "-o", str(made), str(code), *LIBRARIES])
        sealed.write_bytes(_seal(made.read_bytes()))
        put_entry(made, library)
        put_entry(sealed, seal)


def _called(compiler: Compiler, arguments: Sequence[str]) -> None:
    try:
        result = _run([*compiler.command, *arguments])
    except OSError as error:
        raise CompilerError(f"the compiler '{' '.join(compiler.command)}' cannot be run: {error}.") from None
    if result.returncode:
        raise CompilerError(f"the compiler '{' '.join(compiler.command)}' fails: {result.stderr.strip()[:500]}")


def usable_folder() -> Path | OSError:
    """The folder for compiled programs, which only this user can write; or why it cannot be used."""
    folder = cache_root() / "native"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise PermissionError(f"others may write to {folder}")
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        return error


def _private_folder() -> Path:
    """The folder for compiled programs, or a temporary one when it cannot be used."""
    folder = usable_folder()
    if isinstance(folder, OSError):
        warnings.warn(f"compiled programs are not cached: {folder}", NoriWarning, stacklevel=2)
        return Path(tempfile.mkdtemp(prefix="nori_dyn-"))
    return folder
