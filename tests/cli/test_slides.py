"""The notebooks as slides: each deck begins with a title, has notes for the speaker, and no slide holds more than fits."""

from __future__ import annotations

import json
import math
import re

import pytest
from test_notebooks import FOLDER, NOTEBOOKS, nbformat

DECKS = [path.stem for path in NOTEBOOKS if "slideshow" in path.read_text(encoding="utf-8")]
TEXT, CODE = 38, 30  # the height of a line, in points of a slide of 1600 x 1000: notebooks/slides/index.html.j2
ACROSS = {TEXT: 97, CODE: 106}  # characters in such a line
FITS, SHRUNK = 1000, 1300  # a slide that is too high is made smaller, to three quarters
ERROR = 160  # of the heights below, which were checked against Chromium's
CELLS = 5

each_deck = pytest.mark.parametrize("stem", DECKS)


def lines_high(lines, size):
    return size * sum(max(1, math.ceil(len(line) / ACROSS[size])) for line in lines)


def block_height(block):
    """Of a paragraph, list, table, formula, or title."""
    lines = block.split("\n")
    if block.startswith("#"):
        return {"#": 90, "##": 62}.get(block.split()[0], 50)
    if block.startswith("$$"):
        return 110
    if block.startswith("|"):
        return sum(14 + 35 * math.ceil(len(line) / 105) for line in lines)
    if block.startswith("```"):
        return 24 + lines_high(lines[2:], CODE)
    return 16 + lines_high((item.replace("\n", " ") for item in re.split(r"\n(?=\* )", block)), TEXT)


def output_height(output):
    data, image = output.get("data", {}), output.get("metadata", {}).get("image/png", {})
    page = data.get("text/html", "")
    if "tapejax-play" in page:
        return 620
    if image and "data:image/svg+xml" in page:  # a drawing of a tape
        return 40 + 1.3 * min(520, image["height"])
    if image:  # twice as large as in the notebook, if that fits
        return 40 + 1.3 * min(520, 2 * image["height"], 1200 * image["height"] / image["width"])
    if "<tr" in page:
        return 60 + 38 * page.count("<tr")
    text = (output.get("text") or data["text/plain"]).replace("Not answered yet.\n", "").rstrip("\n")
    return 24 + lines_high(text.split("\n"), CODE) if text else 0


def height(cell):
    if cell.cell_type == "markdown":
        text = re.sub(r"(?s)<details>.*?</details>", "Answer", cell.source)
        text = re.sub(r"(?s)<!--.*?-->|\\[a-z]+|(?<=\$)[^$]+(?=\$\$)", "", text)
        return 16 + sum(map(block_height, text.strip().split("\n\n")))
    source = cell.source
    if "style.check(" in source:  # what is asked, not the check
        source = source.split("\n\n\n")[0].split("\nstyle.check(")[0]
    code = 0 if "drawing" in cell.metadata.get("tags", []) else 24 + lines_high(source.split("\n"), CODE)
    return code + sum(map(output_height, cell.outputs))


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


def test_there_are_decks():
    assert len(DECKS) >= 8


@each_deck
def test_a_deck_begins_with_its_title(stem):
    (title, *_), *_ = slides_of(stem)
    assert title.cell_type == "markdown" and title.source.startswith(f"# {stem.split('_')[0]}. ")


@each_deck
def test_no_slide_holds_more_than_fits(stem):
    for slide in slides_of(stem):
        high = sum(map(height, slide))
        limit = SHRUNK if len(slide) == 1 else FITS
        assert slide and len(slide) <= CELLS and high <= limit + ERROR, (round(high), [cell.id for cell in slide])


@each_deck
def test_a_section_begins_a_slide(stem):
    for cell in nbformat.read(FOLDER / f"{stem}.ipynb", 4).cells:
        if cell.cell_type == "markdown" and re.match("##? ", cell.source):
            assert cell.metadata["slideshow"]["slide_type"] in ("slide", "skip"), cell.source


@each_deck
def test_a_deck_has_notes_for_the_speaker(stem):
    notes = [cell for slide in slides_of(stem) for cell in slide if "<!-- speaker: " in cell.source]
    assert len(notes) >= 5 and all(re.search(r"\n\n<!-- speaker: [^<>]+ -->$", cell.source) for cell in notes)


def test_the_first_lecture_on_none_has_thirty_cells():
    _, *cells = [cell for slide in slides_of("4_why_is_my_gradient_none") for cell in slide]  # the first is the title
    assert len(cells) == 30


def test_the_settings_are_those_of_the_decks():
    settings = json.loads((FOLDER / "slides.json").read_text())
    assert settings["NbConvertApp"] == {"export_format": "slides"}
    assert (
        settings["SlidesExporter"] | {"reveal_height": "1000", "template_name": "slides"} == settings["SlidesExporter"]
    )
    assert settings["TagRemovePreprocessor"]["remove_input_tags"] == ["drawing"]


def test_a_deck_as_nbconvert_makes_it(tmp_path, monkeypatch):
    exporters = pytest.importorskip("nbconvert")
    from traitlets.config import Config

    monkeypatch.chdir(FOLDER.parent)
    exporter = exporters.SlidesExporter(config=Config(json.loads((FOLDER / "slides.json").read_text())))
    page, _ = exporter.from_filename(str(FOLDER / "1_first_tape.ipynb"))
    assert "Not answered yet." not in page and "<!-- speaker" not in page
    assert page.count('<aside class="notes">') >= 5 and "--jp-content-font-size1: 28px" in page
    assert "factor" in page and "what came out of that step" not in page  # what is asked, not the check
