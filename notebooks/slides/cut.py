"""Cuts notebooks into slides, so that none holds more than fits:

    python notebooks/slides/cut.py notebooks/8_what_a_gradient_costs.ipynb ...

Sections begin slides, text stays with the code that follows it, text behind code begins another slide unless it asks about
what is shown, and cells that are left out (``skip``) stay so. Heights are
computed from the text; they were checked against Chromium's, and may be wrong by a tenth.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from typing import Any

import nbformat

TEXT, CODE = 38, 30  # the height of a line, in points of a slide of 1600 x 1000: notebooks/slides/index.html.j2
ACROSS = {TEXT: 97, CODE: 106}  # characters in such a line
FITS = 1000  # the height of a slide
CELLS = 5  # on a slide


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
        return 720
    if columns := re.search(r'class="ways".*?min-height:([\d.]+)em', page, re.DOTALL):
        return 130 + 19 * float(columns[1])
    if image and "data:image/svg+xml" in page:  # a drawing of a tape
        return 40 + min(676, 1.9 * image["height"])
    if image:  # twice as large as in the notebook, if that fits
        return 40 + 1.3 * min(520, 2 * image["height"], 1200 * image["height"] / image["width"])
    if "<tr" in page:
        return 60 + 38 * page.count("<tr")
    text = (output.get("text") or data["text/plain"]).replace("Not answered yet.\n", "").rstrip("\n")
    return 24 + lines_high(text.split("\n"), CODE) if text else 0


def asked(source):
    """Of the code of an exercise what is to be filled in, without the check: the template does the same."""
    parts = source.split("\nstyle.check(")[0].split("\n\n\n")
    return "\n\n\n".join(parts[: max(i for i, part in enumerate(parts, 1) if "..." in part)])


def height(cell):
    if cell.cell_type == "markdown":
        text = re.sub(r"(?s)<details>.*?</details>", "Answer", cell.source)
        text = re.sub(r"(?s)<!--.*?-->|\\[a-z]+|(?<=\$)[^$]+(?=\$\$)", "", text)
        return 16 + sum(map(block_height, text.strip().split("\n\n")))
    source = asked(cell.source) if "style.check(" in cell.source else cell.source
    code = 0 if "drawing" in cell.metadata.get("tags", []) else 24 + lines_high(source.split("\n"), CODE)
    return code + sum(map(output_height, cell.outputs))


def begins(cell: Any, position: int) -> str:
    """Whether a cell must begin a slide, by what it is."""
    title = re.match(r"#+ ", cell.source) if cell.cell_type == "markdown" else None
    if position == 0 or title and len(title[0]) <= 3:
        return "slide"
    return "subslide" if position == 1 or title else "-"


def belong(cell: Any, *following: Any) -> Iterable[Any]:
    """The cells that text introduces: code, and the folded answer of an exercise."""
    if cell.cell_type == "markdown" and following and following[0].cell_type == "code":
        yield following[0]
        yield from (answer for answer in following[1:] if answer.source.startswith("<details>"))


def cut(notebook: Any) -> None:
    """Writes into each cell's metadata where it stands."""
    kinds = [cell.metadata.get("slideshow", {}).get("slide_type", "-") for cell in notebook.cells]
    kinds = [
        "skip" if "import style" in cell.source else kind for cell, kind in zip(notebook.cells, kinds, strict=True)
    ]
    shown = [cell for cell, kind in zip(notebook.cells, kinds, strict=True) if kind not in ("skip", "notes")]
    for cell, kind in zip(notebook.cells, kinds, strict=True):
        cell.metadata["slideshow"] = {"slide_type": kind}
    filled, count, done = 0.0, 0, False
    for i, cell in enumerate(shown):
        kind, high = begins(cell, i), height(cell)
        together = high + sum(map(height, belong(cell, *shown[i + 1 : i + 3])))
        needed = together if together <= FITS else high
        folded = cell.source.startswith("<details>")  # an answer, which stays below its exercise
        another = done and cell.cell_type == "markdown" and not cell.source.startswith("**Question")
        if kind == "-" and not folded and (another or filled + needed > FITS or count >= CELLS):
            kind = "subslide"
        filled, count = (filled + high, count + 1) if kind == "-" else (high, 1)
        done = cell.cell_type == "code" or kind == "-" and done
        cell.metadata["slideshow"] = {"slide_type": kind}


if __name__ == "__main__":
    for path in sys.argv[1:]:
        read = nbformat.read(path, 4)
        cut(read)
        nbformat.write(read, path)
