"""Text is told from its background: the ratio of WCAG 2, computed of the colours in the style sheets, is 4.5 at least."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEAST = 4.5


def luminance(colour):
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_the_ratio_itself():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#aa22ff", "#212121") == pytest.approx(3.36, abs=0.01)  # what operators had on the dark site
    assert contrast("#408080", "#f5f5f5") == pytest.approx(4.17, abs=0.01)  # and comments on the light one


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_code_on_the_site(scheme):
    css = (ROOT / "docs/site/extra.css").read_text(encoding="utf-8")
    (block,) = re.findall(rf'(?m)^\[data-md-color-scheme="{scheme}"\] {{\n(.*?)^}}', css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", block))
    paper = colours.pop("code-paper")
    assert {"code-comment", "code-number", "code-operator"} <= set(colours)
    assert {name: contrast(x, paper) for name, x in colours.items() if contrast(x, paper) < LEAST} == {}


def test_code_on_slides():
    css = (ROOT / "notebooks/slides/index.html.j2").read_text(encoding="utf-8")
    colours = re.findall(r"\.highlight :is\(.*?\) { color: (#\w+) }", css)
    assert len(colours) == 3 and min(contrast(x, "#f5f5f5") for x in colours) >= LEAST


# The player: what is written on what.
WRITTEN = {
    "paper": "ink faint forward backward tangent cut",
    "wash": "ink faint",
    "forward-wash": "ink forward",
    "backward-wash": "ink backward",
    "source": "ink backward",
    "target": "ink backward",
    "other": "ink",
}


@pytest.mark.parametrize("dark", [False, True])
def test_the_player(dark):
    css = (ROOT / "tapejax/tools/seeing/play.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", css)
    colours = {name: (light, night)[dark] for name, light, night in pairs}
    found = {
        (text, on): contrast(colours[text], colours[on]) for on, texts in WRITTEN.items() for text in texts.split()
    }
    assert {pair: ratio for pair, ratio in found.items() if ratio < LEAST} == {}


def test_figures_of_notebooks(monkeypatch):
    """Text in a colour of the figures, on white: as it is for what cells write themselves, darkened by `style.name`."""
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "notebooks"))
    style = importlib.import_module("style")
    written = [style.BLUE, style.RED, style.PURPLE, style.GREY, style.INK]
    named = [matplotlib.colors.to_hex(style.readable(x)) for x in (*style.CYCLE, style.GREY, (0.7, 0.8, 1.0), "white")]
    assert {x: contrast(x, "#fff") for x in [*written, *named] if contrast(x, "#fff") < LEAST - 0.05} == {}
    assert style.readable(style.BLUE) == matplotlib.colors.to_rgb(style.BLUE)


def test_the_site_is_light_or_dark_as_the_readers_system_is_at_each_visit():
    """Of two palettes the theme would keep the one that fitted at the first visit."""
    assert re.search(r"(?m)^  palette: \{scheme: default, ", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    script = (ROOT / "docs/site/hooks.py").read_text(encoding="utf-8").partition('COLOURS = """')[2]
    assert (
        'matchMedia("(prefers-color-scheme: dark)")' in script and 'dark.addEventListener("change", follow)' in script
    )
