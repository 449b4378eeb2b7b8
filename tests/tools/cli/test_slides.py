"""The notebooks as slides: each deck begins with a title, has notes for the speaker, and no slide holds more than fits."""

from __future__ import annotations

import copy
import importlib.util
import json
import re

import pytest
from test_notebooks import FOLDER, NOTEBOOKS, nbformat

DECKS = [path.stem for path in NOTEBOOKS if "slideshow" in path.read_text(encoding="utf-8")]
SHRUNK = 1300  # a slide that is too high is made smaller, to three quarters
ERROR = 160  # of the heights that `cut` computes

spec = importlib.util.spec_from_file_location("cut", FOLDER / "slides" / "cut.py")
cut = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cut)

each_deck = pytest.mark.parametrize("stem", DECKS)


def slides_of(stem, notebook=None):
    """The cells of each slide."""
    slides = []
    for cell in (notebook or nbformat.read(FOLDER / f"{stem}.ipynb", 4)).cells:
        kind = cell.metadata["slideshow"]["slide_type"]
        assert kind in ("slide", "subslide", "fragment", "skip", "notes", "-")
        if kind in ("slide", "subslide"):
            slides.append([])
        if kind not in ("skip", "notes"):
            slides[-1].append(cell)
    return slides


def unfolded(slide):
    """The cells of a slide, without the folded answers: these stay below their exercises."""
    assert not slide[0].source.startswith("<details>"), slide[0].id
    return [cell for cell in slide if not cell.source.startswith("<details>")]


def test_there_are_decks():
    assert len(DECKS) >= 8


@each_deck
def test_a_deck_begins_with_its_title(stem):
    (title, *_), *_ = slides_of(stem)
    number = f"{stem.partition('_')[0]}. " if stem[0].isdigit() else ""
    assert title.cell_type == "markdown" and title.source.startswith(f"# {number}")


@each_deck
def test_no_slide_holds_more_than_fits(stem):
    for slide in map(unfolded, slides_of(stem)):
        high = sum(map(cut.height, slide))
        limit = SHRUNK if len(slide) == 1 else cut.FITS
        assert slide and len(slide) <= cut.CELLS and high <= limit + ERROR, (round(high), [cell.id for cell in slide])


@each_deck
def test_a_deck_that_is_cut_anew_fits(stem):
    notebook = nbformat.read(FOLDER / f"{stem}.ipynb", 4)
    before = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.metadata["slideshow"]["slide_type"] != "skip":
            del cell.metadata["slideshow"]
    cut.cut(notebook)
    shown = [[cell.id for slide in slides_of(stem, each) for cell in slide] for each in (before, notebook)]
    assert shown[0] == shown[1]
    for slide in map(unfolded, slides_of(stem, notebook)):
        assert len(slide) == 1 or sum(map(cut.height, slide)) <= cut.FITS, [cell.id for cell in slide]
        assert len(slide) <= cut.CELLS


@each_deck
def test_a_slide_has_one_idea(stem):
    """Text behind code begins another slide, unless it asks about what the code shows."""
    for first, *cells in map(unfolded, slides_of(stem)):
        done = first.cell_type == "code"
        for cell in cells:
            assert not done or cell.cell_type == "code" or cell.source.startswith("**Question"), cell.source
            done = done or cell.cell_type == "code"


@each_deck
def test_a_section_begins_a_slide(stem):
    for cell in nbformat.read(FOLDER / f"{stem}.ipynb", 4).cells:
        if cell.cell_type == "markdown" and re.match("##? ", cell.source):
            assert cell.metadata["slideshow"]["slide_type"] in ("slide", "skip"), cell.source


@each_deck
def test_a_deck_has_notes_for_the_speaker(stem):
    notes = [cell for slide in slides_of(stem) for cell in slide if "<!-- speaker: " in cell.source]
    assert len(notes) >= 5 and all(re.search(r"\n\n<!-- speaker: [^<>]+ -->$", cell.source) for cell in notes)


def test_the_first_lecture_on_none_has_thirty_three_cells():
    _, *cells = [cell for slide in slides_of("4_why_is_my_gradient_none") for cell in slide]  # the first is the title
    assert len(cells) == 33


def test_of_an_exercise_a_slide_has_all_that_is_asked_and_no_check():
    cells = {cell.id: cell.source for cell in nbformat.read(FOLDER / "0_a_tape_from_scratch.ipynb", 4).cells}
    rules = cut.asked(cells["four-rules"])
    assert all(f"def {name}(" in rules for name in ("add", "subtract", "multiply", "sine", "rectify"))
    assert "style." not in rules and rules.rstrip().endswith("return ...")
    assert cut.asked("x = ...\n\n\ndef right(x):\n    return x\n\n\nstyle.check(x, right)") == "x = ..."


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
    settings = json.loads((FOLDER / "slides.json").read_text())
    settings["SlidesExporter"] |= {"reveal_url_prefix": "lib/reveal.js", "mathjax_url": "lib/mathjax/MathJax.js"}
    exporter = exporters.SlidesExporter(config=Config(settings))
    page, _ = exporter.from_filename(str(FOLDER / "1_first_tape.ipynb"))
    loaded = re.findall(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["'](?!data:)([^"']+)""", page)
    assert loaded and all(address.startswith("lib/") for address in loaded)  # nothing comes from a network
    assert "import mermaid" not in page and "require(" not in page.partition("<main>")[0]
    assert (
        'className: "parts"' in page and "Reveal.layout()" in page
    )  # tall drawings in two parts; formulas change heights
    assert 'classList.add("fragment")' in page and 'className: "running"' in page  # step by step, a title on each
    assert "Not answered yet." not in page and "<!-- speaker" not in page
    assert page.count('<aside class="notes">') >= 5 and "--jp-content-font-size1: 28px" in page
    rules, _ = exporter.from_filename(str(FOLDER / "0_a_tape_from_scratch.ipynb"))
    assert all(f'<span class="nf">{name}</span>' in rules for name in ("subtract", "rectify"))
    assert "factor" in page and "what came out of that step" not in page  # what is asked, not the check
