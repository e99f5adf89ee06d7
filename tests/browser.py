"""Pages as a browser and a parser see them."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

WIDTHS = {"phone": (390, 844), "tablet": (768, 1024), "desktop": (1440, 900)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def parsed(page: str) -> etree._Element:
    """The page, which is well-formed XML too, as a tree; anything else is an error."""
    return etree.fromstring(page.split("\n", 1)[1], etree.XMLParser(recover=False, resolve_entities=False))


def text(element: etree._Element) -> str:
    return " ".join("".join(element.itertext()).split())


def assert_stands_alone(page: str, root: etree._Element) -> None:
    """Assert that a page loads nothing, has nothing that could, and that each name in it is of one element."""
    assert not re.search(r"https?://|@import|url\(", page)
    assert [e.get("href") for e in root.iter() if e.get("href")] == ["data:,"]
    assert not any(e.get("src") or any(key.startswith("on") for key in e.keys()) for e in root.iter())  # noqa: SIM118
    assert not [*root.iter("img", "iframe", "object", "embed", "form")]
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def shown(browser: Any, page: str, path: Path, *widths: str) -> Iterator[tuple[str, Any]]:
    """Yield each width and a view of the page, newly opened; assert that nothing is complained of or loaded besides."""
    path.write_text(page, encoding="utf-8")
    messages, requests = [], []
    context = browser.new_context()
    view = context.new_page()
    view.on("console", lambda message: messages.append(message.text))
    view.on("pageerror", lambda error: messages.append(str(error)))
    view.on("request", lambda request: requests.append(request.url))
    for width in widths or WIDTHS:
        w, h = WIDTHS[width]
        view.set_viewport_size({"width": w, "height": h})
        view.goto(path.as_uri())
        yield width, view
    context.close()
    assert messages == []
    assert set(requests) == {path.as_uri()}


def assert_readable(view: Any) -> None:
    """Assert that all fits the width, and that texts stand out: with details closed and open, in light and in dark."""
    for is_open in (False, True):
        view.evaluate(f"document.querySelectorAll('details').forEach(d => d.open = {str(is_open).lower()})")
        assert view.evaluate("document.documentElement.scrollWidth") <= view.viewport_size["width"]
        backgrounds = set()
        for scheme in ("light", "dark"):
            view.emulate_media(color_scheme=scheme)
            backgrounds.add(view.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert view.evaluate(CONTRAST) >= 4.5
        assert len(backgrounds) == 2


def assert_verdict_shows(view: Any) -> None:
    """Assert that one sees the whole verdict without scrolling."""
    verdict = view.locator("header").bounding_box()
    assert verdict["y"] + verdict["height"] < view.viewport_size["height"]


CONTRAST = """() => {
  const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = rgb => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const rgb = numbers(getComputedStyle(e).backgroundColor);
      if (rgb.length < 4 || rgb[3] > 0) return rgb;
    }
    return [255, 255, 255];
  };
  const worst = [...document.querySelectorAll("body *")].map(e => {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest("title") || !e.getClientRects().length) return 21;
    const style = getComputedStyle(e);
    let back = behind(e);
    if (e.matches("text.reading, text.chosen")) back = numbers(getComputedStyle(e.previousElementSibling).fill);
    const [a, b] = [numbers(e.closest("svg") ? style.fill : style.color), back].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
  return Math.min(...worst);
}"""
"""The lowest contrast of a text to what is behind it, as WCAG 2 defines it."""
