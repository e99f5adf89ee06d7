"""Pages as a browser and a parser see them."""

from __future__ import annotations

import shutil

from lxml import etree

WIDTHS = {"phone": (390, 844), "tablet": (768, 1024), "desktop": (1440, 900)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def parsed(page: str) -> etree._Element:
    """Return the page, which is well-formed XML too, as a tree; anything else is an error."""
    return etree.fromstring(page.split("\n", 1)[1], etree.XMLParser(recover=False, resolve_entities=False))


def text(element: etree._Element) -> str:
    return " ".join("".join(element.itertext()).split())


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
