"""Names in C: a user's name as an identifier that compiles, as text that stays inside its comment, as a string.

A name from a model gets into C source by these three ways only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nori_dyn.errors import IdentifierError

PATTERN = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*", re.ASCII)
"""A letter, then letters, digits and single underscores: no name reserved by C, C++ or a system."""

LONGEST = 48
"""Characters of an identifier made here; C compilers may stop reading at 63."""

SIGNIFICANT = 63
"""Characters of an identifier that every compiler of C reads."""

SHORTEST = 16
"""Characters that a name of the model keeps after a prefix, however long that is."""

UNNAMED = "unnamed"
"""What a name becomes that has no ASCII letter and no digit."""

LONGEST_COMMENT = 120
"""Characters of a name in a comment."""

_PLAIN = r"A-Za-z0-9 _.:+,()\[\]/=@-"

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_HEADERS = """
aio assert complex cpio ctype devctl dirent dlfcn endian errno fcntl features fenv float fmtmsg fnmatch ftw glob grp
iconv inttypes iso646 langinfo libgen libintl limits link locale malloc math memory monetary mqueue ndbm netdb nl_types
poll pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbit stdbool stdckdint
stddef stdint stdio stdlib stdnoreturn string strings stropts syslog tar termios tgmath threads time trace uchar ulimit
unistd utime utmpx values wchar wctype windows wordexp
"""
_TARGETS = """
all clean depend edit_cache help install list_install_components m package package_source preinstall rebuild_cache test
"""
_OTHERS = "main aux con nul prn std linux unix i386"

KEYWORDS = frozenset(_KEYWORDS.split())
"""Of C23 and C++23."""

TAKEN = frozenset(f"{_HEADERS} {_TARGETS} {_OTHERS}".split())
"""Headers of C and POSIX that a file of the same name would hide, names reserved by CMake, the example, devices,
the namespace of C++, macros of compilers."""


def checked_identifier(name: str) -> str:
    """A name that a user has chosen for exported code.

    Raises:
        IdentifierError: it is not an identifier, or one that means something else already.
    """
    if not PATTERN.fullmatch(name):
        raise IdentifierError(name, "it must be a letter, then letters, digits and single underscores")
    if len(name) > LONGEST:
        raise IdentifierError(name, f"it is longer than {LONGEST} characters")
    if name in KEYWORDS:
        raise IdentifierError(name, "it is a keyword of C or C++")
    if name.lower() in TAKEN:
        raise IdentifierError(
            name, "it already names a header of the system, the example, a target of CMake, or a macro of compilers"
        )
    return name


def default_identifier(name: str) -> str:
    """An identifier for exported code from a robot's name."""
    made = identifier(name) or "robot"
    if not made[0].isalpha() or made.lower() in KEYWORDS | TAKEN:
        made = f"robot_{made}"
    return checked_identifier(made[:LONGEST].rstrip("_"))


def identifier(name: str, longest: int = LONGEST) -> str:
    """A name with underscores for all but ASCII letters and digits; it may be empty, or begin with a digit."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:longest].rstrip("_")


def distinct_identifiers(names: Sequence[str], longest: int = LONGEST) -> list[str]:
    """An identifier for each of some names, numbered where two would be the same.

    A name that is an identifier already stays as it is: of "fx:sole", "fx-sole", "fx_sole", the last is fx_sole.
    """
    own = {name for name in names if identifier(name, longest) == name}
    found: dict[str, None] = {}
    for name in names:
        made = plain = identifier(name, longest) or UNNAMED
        number = 1
        while made in found or (made in own and made != name):
            number += 1
            made = f"{plain}_{number}"
        found[made] = None
    return list(found)


def enumerators(prefix: str, names: Iterable[str]) -> list[str]:
    """An identifier for each of some names, all with the same prefix, as short as every compiler reads them."""
    longest = max(SIGNIFICANT - len(prefix) - len("__999"), SHORTEST)
    return [f"{prefix}_{made}" for made in distinct_identifiers([*names], longest)]


def comment_text(name: str) -> str:
    """A name as text for a comment: it can neither end nor continue it, nor begin another."""
    text = re.sub(f"[^{_PLAIN}]", lambda found: f"{{U+{ord(found[0]):04X}}}", name)
    return text if len(text) <= LONGEST_COMMENT else f"{text[:LONGEST_COMMENT]}..."


def string_literal(name: str) -> str:
    """A name as a string of C++, in UTF-8: what could end it, or mean something else in it, is an octal escape."""
    data = name.encode(errors="backslashreplace").decode("latin-1")
    escaped = re.sub(f"[^{_PLAIN}]", lambda found: f"\\{ord(found[0]):03o}", data)
    return f'"{escaped}"'
