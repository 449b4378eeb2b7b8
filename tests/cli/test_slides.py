"""Notebooks 0, 1, 2, 7 and 8 as slides: each begins with a title, and no slide holds more than fits."""

from __future__ import annotations

import json
import re

import pytest
from test_notebooks import FOLDER, nbformat

DECKS = [
    "1_first_tape",
    "2_tape_and_functional",
    "7_how_the_tape_works",
    "0_a_tape_from_scratch",
    "8_what_a_gradient_costs",
]
LINES = 40  # of 23 points each, on slides of 1000: notebooks/slides.json
CELLS = 5

each_deck = pytest.mark.parametrize("stem", DECKS)


def lines_of(cell):
    """How high a cell is on a slide, in lines of code; checked against what a browser shows when the decks were made."""
    if cell.cell_type == "markdown":
        text = re.sub(r"(?s)<details>.*?</details>", "Answer", cell.source)
        heights = {"# ": 4.0, "## ": 3.0, "### ": 3.0, "|": 1.5, "$$": 1.6}  # by what the line begins with
        return 1 + sum(
            next((high for mark, high in heights.items() if line.startswith(mark)), 1.15 if line else 0.7)
            for line in text.splitlines()
        )
    lines = 0 if "drawing" in cell.metadata.get("tags", []) else len(cell.source.splitlines()) + 1
    for output in cell.outputs:
        data = output.get("data", {})
        image = output.get("metadata", {}).get("image/png", {})
        if "tapejax-play" in data.get("text/html", ""):
            lines += 24
        elif image:
            lines += image["height"] / 23 + 1
        elif "text/html" in data:
            lines += 1.3 * data["text/html"].count("<tr") + 1
        else:
            lines += len((output.get("text") or data["text/plain"]).splitlines()) + 0.5
    return lines


def slides_of(stem):
    """The cells of each slide."""
    slides = []
    for cell in nbformat.read(FOLDER / f"{stem}.ipynb", 4).cells:
        kind = cell.metadata["slideshow"]["slide_type"]
        assert kind in ("slide", "subslide", "fragment", "skip", "notes", "-")
        if kind in ("slide", "subslide"):
            slides.append([])
        if kind not in ("skip", "notes"):
            slides[-1].append(cell)
    return slides


@each_deck
def test_a_deck_begins_with_its_title(stem):
    (title, *_), *_ = slides_of(stem)
    assert title.cell_type == "markdown" and title.source.startswith(f"# {stem[0]}. ")


@each_deck
def test_no_slide_holds_more_than_fits(stem):
    for slide in slides_of(stem):
        lines = sum(map(lines_of, slide))
        assert slide and len(slide) <= CELLS and lines <= LINES, (round(lines), [cell.id for cell in slide])


@each_deck
def test_a_section_begins_a_slide(stem):
    for cell in nbformat.read(FOLDER / f"{stem}.ipynb", 4).cells:
        if cell.cell_type == "markdown" and re.match("##? ", cell.source):
            assert cell.metadata["slideshow"]["slide_type"] == "slide", cell.source


def test_the_settings_are_those_of_the_decks():
    settings = json.loads((FOLDER / "slides.json").read_text())
    assert settings["NbConvertApp"] == {"export_format": "slides"}
    assert settings["SlidesExporter"]["reveal_height"] == "1000"
    assert settings["TagRemovePreprocessor"]["remove_input_tags"] == ["drawing"]
