"""Files damaged on purpose: by structure (elements, keys, values), as text, and byte by byte.

Every function takes Hypothesis's `draw` first, so that a file that breaks something is shrunk to the least damage that
does.
"""

import copy
import io
import os
import pickle
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from lxml import etree

CANARY = Path(tempfile.gettempdir()) / f"nori_dyn-canary-{os.getpid()}"
"""A file that only code inside one of the damaged files would make."""

SECRET = "SECRET-4f1c"
"""The content of a file that no damaged file may bring into a message or a model."""

SECRET_FILE = CANARY.with_name(f"nori_dyn-secret-{os.getpid()}")

NUMBERS = (
    *("0", "-0.0", "1", "-1", "3", "1e-400", "5e-324", "1e-30", "1e30", "1e50", "-1e51", "1e154", "1e308", "1e400"),
    *("nan", "-nan", "inf", "-Infinity", "0x10", "1_000", "1,5", "1e", "--1", "٣", "１", "9" * 5000, "1" + "0" * 400),
)
WORDS = (
    *("", " ", "x", "null", "true", "no", "~", "é", "\u202e", "\U0001f916", "a" * 10_000, "\n", "\t", "\x7f", "%s%n"),
    *("all", "actuated", "upper", "shoulder", "lower", "fixed", "floating", "arm.urdf", "../../etc/passwd"),
    *("{0}", "${x}", "[", "]]>", "<x/>", "&lt;", "&x;", "'\"", "1 2 3", "1 2 3 4", "(", "(a+)+$", "2001-13-45", "1:99"),
    *("/dev/zero", f"__import__('os').system('touch {CANARY}')"),
)
VALUES = (
    *(None, True, False, 0, -1, 3, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, -0.0, 5e-324, 1e30, -1e51, 1e154),
    *(1e308, float("nan"), float("inf"), -float("inf"), "\ud800", "\x00", [], {}, [[]], {"": {}}, [None], [1, 2, 3]),
    *([0.0] * 6, *NUMBERS, *WORDS),
)


class Payload:
    """An object that makes the canary when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {CANARY}",)


def pick(draw: st.DrawFn, options: Any) -> Any:
    return options[draw(st.integers(0, len(options) - 1))]


def often(draw: st.DrawFn, one_in: int) -> bool:
    """Whether to do what is done once in so many times; the simplest case is not to."""
    return draw(st.integers(0, one_in - 1)) == one_in - 1


def times(draw: st.DrawFn) -> range:
    return range(draw(st.integers(1, 4)))


# --------------------------------------------------------------------- lists and mappings: JSON, YAML


def damaged_data(draw: st.DrawFn, data: Any) -> Any:
    """Lists and mappings with a few things in them deleted, doubled, swapped, nested, renamed or replaced."""
    data = copy.deepcopy(data)
    for _ in times(draw):
        place, key = _somewhere(draw, data)
        if place is None:
            continue
        other, twin = _somewhere(draw, data)
        action = draw(st.integers(0, 8))
        if action == 0:
            del place[key]
        elif action == 1:
            place[key] = _value(draw)
        elif action == 2 and other is not None:
            place[key], other[twin] = copy.deepcopy(other[twin]), copy.deepcopy(place[key])
        elif action == 3 and other is not None:
            place[key] = copy.deepcopy(other[twin])
        elif action == 4 and isinstance(place, dict):
            place[pick(draw, WORDS)] = place.pop(key)
        elif action == 5 and isinstance(place, list):
            place.insert(key, copy.deepcopy(place[key]))
        elif action == 6:
            place[key] = _nested(place[key], pick(draw, (1, 3, 30)))
        elif action == 7:
            place[key] = [place[key]] * pick(draw, (2, 100))
        elif action == 8:
            place[key] = _other_number(draw, place[key])
    return data


def _somewhere(draw: st.DrawFn, data: Any) -> tuple[Any, Any]:
    """A list or mapping in data, and an index or key of it; None where data is neither."""
    place = key = None
    while isinstance(data, list | dict) and data:
        keys = list(data) if isinstance(data, dict) else range(len(data))
        place, key = data, keys[draw(st.integers(0, len(keys) - 1))]
        data = place[key]
        if often(draw, 4):
            break
    return place, key


def _nested(value: Any, depth: int) -> Any:
    for k in range(depth):
        value = [value] if k % 2 else {"a": value}
    return value


def _value(draw: st.DrawFn) -> Any:
    """A value of its own: what changes it later must not change what the next file is made of."""
    return copy.deepcopy(pick(draw, VALUES))


def _other_number(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _value(draw)
    return pick(draw, (-value, value + 1, value * 1e12, value * 1e-12, float(value), str(value), value + 1e-9))


# --------------------------------------------------------------------- XML


def damaged_xml(draw: st.DrawFn, text: str) -> bytes:
    """An XML file with a few elements and attributes changed, and now and then with what XML can do besides."""
    root = etree.fromstring(text.encode(), etree.XMLParser(remove_blank_text=True))
    for _ in times(draw):
        elements = list(root.iter(etree.Element))
        element, other = pick(draw, elements), pick(draw, elements)
        action = draw(st.integers(0, 8))
        if action <= 2 and element.attrib:
            name = pick(draw, element.attrib.keys())
            value = pick(draw, (pick(draw, NUMBERS), pick(draw, WORDS), _damaged_numbers(draw, element.get(name))))
            _set(element, name, value)
        elif action == 3 and element.attrib:
            del element.attrib[pick(draw, element.attrib.keys())]
        elif action == 4 and element is not root:
            element.getparent().remove(element)
        elif action == 5 and element is not root and element not in other.iterancestors() and element is not other:
            other.append(copy.deepcopy(element) if often(draw, 2) else element)
        elif action == 6:
            element.tag = pick(draw, elements).tag
        elif action == 7 and other.attrib:
            _set(element, *pick(draw, other.attrib.items()))
        elif action == 8:
            element.text = pick(draw, NUMBERS)
    content = etree.tostring(root)
    return _with_xml_tricks(draw, content) if often(draw, 6) else content


def _set(element: Any, name: str, value: str) -> None:
    element.set(name, "".join(character for character in value if character.isprintable()))


def _damaged_numbers(draw: st.DrawFn, text: str) -> str:
    words = text.split() or [""]
    words[draw(st.integers(0, len(words) - 1))] = pick(draw, NUMBERS)
    return " ".join(words)


def _with_xml_tricks(draw: st.DrawFn, content: bytes) -> bytes:
    root = etree.fromstring(content).tag.encode()
    doors = {
        b"bomb": b'<!ENTITY a "lol">'
        + b"".join(b'<!ENTITY %c "%s">' % (c, b"&%c;" % (c - 1) * 9) for c in b"bcdefghij"),
        b"file": b'<!ENTITY j SYSTEM "file://%s">' % str(SECRET_FILE).encode(),
        b"net": b'<!ENTITY j SYSTEM "http://127.0.0.1:1/x">',
        b"parameter": b'<!ENTITY %% p SYSTEM "file://%s"> %%p;' % str(SECRET_FILE).encode(),
        b"default": b'<!ATTLIST %s version CDATA "1e400">' % root,
        b"unused": b'<!ENTITY k "l">',
    }
    trick = draw(st.integers(0, 9))
    at = content.find(b">") + 1
    deep = pick(draw, (10, 300, 5000))
    if trick < 6:
        use = b"&j;" if trick < 3 else b""
        return b"<!DOCTYPE %s [%s]>" % (root, [*doors.values()][trick]) + content[:at] + use + content[at:]
    if trick == 6:
        return content[:at] + b"<link>" * deep + b"</link>" * deep + content[at:]
    if trick == 7:
        return content[:at] + b"<xi:include href='%s'/>" % str(SECRET_FILE).encode() + content[at:]
    if trick == 8:
        return b'<?xml version="1.0" encoding="%s"?>' % pick(draw, (b"utf-16", b"latin-1", b"x", b"utf-7")) + content
    return content[:at] + b"<![CDATA[ <![CDATA[ ]]>" * deep + content[at:]


# --------------------------------------------------------------------- text: YAML, CSV


def damaged_text(draw: st.DrawFn, text: str, separators: str) -> str:
    """Text with a few lines and words deleted, doubled, swapped or replaced."""
    for _ in times(draw):
        lines = text.split("\n")
        k, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        action = draw(st.integers(0, 6))
        if action == 0:
            del lines[k]
        elif action == 1:
            lines.insert(j, lines[k])
        elif action == 2:
            lines[k], lines[j] = lines[j], lines[k]
        else:
            lines[k] = _damaged_line(draw, lines[k], separators)
        text = "\n".join(lines)
    return text


def _damaged_line(draw: st.DrawFn, line: str, separators: str) -> str:
    ends = [k for k, character in enumerate(line) if character in separators]
    start, end = sorted((pick(draw, [0, *ends]), pick(draw, [*ends, len(line)])))
    return line[:start] + pick(draw, (pick(draw, NUMBERS), pick(draw, WORDS), "", separators[0])) + line[end:]


def yaml_tricks() -> tuple[str, ...]:
    """What YAML can do besides: tags, aliases, bombs, types of its own."""
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return (
        f"!!python/object/apply:os.system ['touch {CANARY}']",
        f"name: !!python/object/new:os.system [touch {CANARY}]\nmeasurements: []",
        bomb + "name: x\nmeasurements: *i",
        bomb + "name: *i\nmeasurements: []",
        "name: x\nmeasurements: &m [*m]",
        "&r {name: x, measurements: [*r]}",
        "name: x\nmeasurements: [{type: prior, variables: all, sigma: 1, <<: *none}]",
        "name: x\n<<: {measurements: []}\n<<: [1]",
        "? {a: b}\n: c",
        "? [a, b]\n: c",
        "name: 2001-13-45\nmeasurements: []",
        "name: x\nmeasurements: !!set {a, b}",
        "name: x\nmeasurements: !!omap [a: 1]",
        "name: !!binary '/w=='\nmeasurements: []",
        "name: !!int x\nmeasurements: []",
        "name: !!float '1:99:x'\nmeasurements: []",
        f"name: {'9' * 5000}\nmeasurements: []",
        f"name: 0x{'f' * 100_000}\nmeasurements: []",
        "[" * 1000,
        "- " * 1000 + "x",
        "{" * 1000 + "}" * 1000,
        "\n".join(" " * k + "a:" for k in range(500)),
        "--- a\n--- b",
        "%YAML 9.9\n---\nname: x",
        "name: \x00",
        "name: 'x",
        "@",
        "*",
        "\ufeffname: x\nmeasurements: []",
        "null",
        "5",
        "'text'",
    )


# --------------------------------------------------------------------- NPZ


def damaged_npz(draw: st.DrawFn, arrays: dict[str, np.ndarray[Any, Any]]) -> bytes:
    """An NPZ file with arrays of other types, shapes, names and headers."""
    arrays = dict(arrays)
    for _ in times(draw):
        if not arrays:
            break
        name = pick(draw, list(arrays))
        array = arrays[name]
        action = draw(st.integers(0, 5))
        if action == 0:
            del arrays[name]
        elif action == 1:
            arrays[pick(draw, ("y", "q", "../x", "a/b", "é", " ", "q[0]", "qdd:shoulder"))] = arrays.pop(name)
        elif action == 2 and array.dtype.kind in "bif":
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(pick(draw, ("f2", "i1", "c16", "U8", "S4", "?", "g", ">f4", "O")))
        elif action == 3:
            arrays[name] = pick(
                draw,
                (
                    *(np.array([Payload()], dtype=object), np.array("2001-01-01", "M8[D]"), np.zeros(3, "m8[s]")),
                    *(np.zeros(2, [("a", "f8"), ("b", "O")]), np.array(3.0), np.zeros((0, 2)), np.zeros((3, 0))),
                    *(np.zeros((1, 1, 1, 1)), np.array([b"\xff"]), np.zeros((200_000, 2), "?")),
                ),
            )
        elif action == 4 and array.ndim and array.size:
            arrays[name] = pick(draw, (array.T, array[None], array[:1], array.reshape(-1), array[..., 0]))
        elif array.dtype.kind == "f" and array.size:
            first = np.arange(array.size).reshape(array.shape) == 0
            with np.errstate(all="ignore"):
                arrays[name] = np.where(first, float(pick(draw, NUMBERS[:18])), array)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _npy(draw, array))
        if often(draw, 8):
            content = pick(draw, (b"", b"text", b"\0" * 10**7))
            archive.writestr(pick(draw, ("Q.npy", "note.txt", "../../x.npy")), content)
    return file.getvalue()


def _npy(draw: st.DrawFn, array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    content = file.getvalue()
    if not often(draw, 6):
        return content
    shape = str(array.shape).encode()
    lies = (
        *(b"(-1,)", b"(99999999999999,)", b"(3, 1e9)", b"(2**62, 8)", b"None", b"(3,", b"((((((((((3,))))))))))"),
        f"__import__('os').system('touch {CANARY}')".encode(),
    )
    return content.replace(shape, pick(draw, lies))


def pickled() -> bytes:
    """A pickle that makes the canary."""
    return pickle.dumps(Payload())


# --------------------------------------------------------------------- bytes


def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """A file cut short, with other bytes, in another encoding, or empty."""
    action = draw(st.integers(0, 7))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    if action == 0:
        return content[:at]
    if action == 1:
        return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    if action == 2:
        return content[:at] + draw(st.binary(max_size=8)) + content[at:]
    if action == 3:
        return content[:at] + content
    if action == 4:
        return content.decode("latin-1").encode(pick(draw, ("utf-16", "utf-32", "utf-8", "utf-8-sig")))
    if action == 5:
        return pick(draw, (b"", b"\0", b"\xff\xfe", b"\n" * 1000, pickled(), b"PK\x05\x06" + b"\0" * 18))
    if action == 6:
        return content[:at] + pick(draw, (b"[", b'{"a":', b"(", b"<a>", b"- ")) * 2000 + content[at:]
    return content[at:] + content[:at]
