"""The plan of the course: its lectures fill their time, and what it names is in the notebooks."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "notebooks" / "course.md").read_text(encoding="utf-8")
NOTEBOOKS = {path.stem.partition("_")[0]: path for path in (ROOT / "notebooks").glob("*.ipynb")}
FIRST = "first"  # the lesson that has no number
READING = "guides"  # the notebook that is no lecture
LECTURES = re.findall(r"(?ms)^### (?:Lecture )?(Lab \d+|\d+|First)(?: lesson| \(notebook (\d+b?)\)):(.*?)(?=^##)", PAGE)
HEADED = {number.lower(): notebook for number, notebook, _ in LECTURES}
LECTURES = [(number.lower(), text) for number, _, text in LECTURES]


def cells(number):
    return json.loads(NOTEBOOKS[number].read_text(encoding="utf-8"))["cells"]


def headings(number):
    return {title for cell in cells(number) for title in re.findall(r"(?m)^#{2,3} (.*)$", "".join(cell["source"]))}


def numbers_of_lectures():
    """Which notebook each lecture is, as the plan has it."""
    plan = PAGE.partition("## The plan")[2].partition("## Lecture by lecture")[0]
    return dict(re.findall(r"(?m)^\| (first|(?:lab )?\d+) \| \[(tape|\d+b?) ", plan))


def test_every_notebook_has_its_lecture():
    assert set(NOTEBOOKS) - {READING} <= set(numbers_of_lectures().values())
    assert f"| {READING} | [" in PAGE
    numbers = numbers_of_lectures()
    assert [number for number, _ in LECTURES] == list(numbers)
    assert numbers.pop(FIRST) == "tape"
    assert numbers.items() <= HEADED.items()
    for kind in ("", "lab "):  # in the order in which they are held
        held = [lecture for lecture in numbers if lecture.startswith("lab") == bool(kind)]
        assert held == [f"{kind}{i}" for i in range(1, len(held) + 1)]


def rows(text):
    """The minutes of a lecture's parts, those in which students write, and the sections."""
    found = re.findall(r"(?m)^\| (\d+) \| (\d*) \| (.*) \|$", text)
    return [(int(minutes), int(writing or 0), re.findall(r"\*(.+?)\*", what)) for minutes, writing, what in found]


def spoken(cell):
    """The minutes that a cell takes, by the rule on the page, without what students write."""
    source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
    if cell["metadata"]["slideshow"]["slide_type"] == "skip" or "checks" in tags or "style.check(" in source:
        return 0.0
    if cell["cell_type"] == "markdown":
        said = re.sub(r"\$\$?[^$]+\$\$?", " formula ", re.sub(r"(?s)<details>.*?</details>", "", source))
        said = re.sub(r"(?ms)```.*?```|\]\([^)]*\)|^\|[ |:-]*\|$", "", said)
        return len(re.findall(r"\w+", said)) / 60 + 2 * source.count("**Question")
    lines = 0 if "drawing" in tags else len([line for line in source.split("\n") if line.strip()])
    outputs = json.dumps(cell["outputs"])
    return 0.25 + lines / 12 + 1.5 * ("image/png" in outputs or "tapejax-play" in outputs)


@pytest.mark.parametrize("number, text", LECTURES, ids=[f"lecture {number}" for number, _ in LECTURES])
def test_the_minutes_of_a_lecture_are_counted_and_its_sections_exist(number, text):
    parts, notebook = rows(text), numbers_of_lectures()[number]
    part_of = {section: part for part, (*_, sections) in enumerate(parts) for section in sections}
    assert parts and set(part_of) <= headings(notebook), set(part_of) - headings(notebook)
    counted, above, inner = [0.0] * len(parts), None, None
    for cell in cells(notebook):
        for level, title in re.findall(r"(?m)^(##|###) (.*)$", "".join(cell["source"])):
            inner = part_of.get(title)
            above = inner if level == "##" else above
        if (part := above if inner is None else inner) is not None:
            counted[part] += spoken(cell)
    for (minutes, writing, sections), count in zip(parts, counted, strict=True):
        assert abs(minutes - writing - count) <= 1, (sections, minutes, writing, round(count, 1))
    least, most = (40, 45) if number == FIRST else (75, 85)
    assert least <= sum(minutes for minutes, *_ in parts) <= most


@pytest.mark.parametrize("number", ["0", "0b"])
def test_the_speakers_notes_have_the_minutes_of_the_plan(number):
    text = next(text for lecture, text in LECTURES if numbers_of_lectures()[lecture] == number)
    part_of = {section: part for part, (*_, sections) in enumerate(rows(text)) for section in sections}
    told, part = {"title": [0, 0]} | {part: [0, 0] for part in part_of.values()}, "title"
    for cell in cells(number):
        source = "".join(cell["source"])
        for title in re.findall(r"(?m)^## (.*)$", source):
            part = part_of.get(title, "home")
        for minutes, writing in re.findall(r"<!-- speaker: (\d+) minutes?( of writing)?[.,:]", source):
            told[part][bool(writing)] += int(minutes)  # a KeyError: a section for home takes no time of the lecture
    assert sum(map(sum, told.values())) <= 90
    del told["title"]
    planned = [[minutes - writing, writing] for minutes, writing, _ in rows(text)]
    assert [*told.values()] == planned


def test_what_the_guides_tell_has_its_section():
    rows = PAGE.partition("## Where TensorFlow's guides are")[2].partition("## Glossary")[0]
    for paragraph, places in re.findall(r"(?m)^\| (?!in the guide|---)(.*) \| (.*) \|$", rows):
        found = re.findall(r"(\d+b?) \*(.+?)\*", places)
        assert found and len(found) == len(places.split("; ")), paragraph
        for number, section in found:
            assert section in headings(number), f"{paragraph}: notebook {number} has no section {section!r}"


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_links_of_a_notebook_lead_to_files_beside_it(number):
    """`jupyter lab notebooks` opens nothing that lies outside of that folder."""
    source = "\n\n".join("".join(cell["source"]) for cell in cells(number) if cell["cell_type"] == "markdown")
    linked = {
        link for link in re.findall(r"\]\(([^)\s#]+\.\w+)[)#]", source) if "://" not in link and link[0].isalpha()
    }
    assert {"course.md", *linked} <= {path.name for path in (ROOT / "notebooks").iterdir()}


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_a_notebook_says_what_it_needs_and_what_comes_next(number):
    title = "".join(cells(number)[0]["source"]).lower()
    assert "need" in title and ("next" in title or number == "7")


def test_there_are_twelve_exam_questions_with_folded_answers():
    questions = PAGE.partition("## Exam questions")[2].partition("## Where TensorFlow's guides are")[0]
    answered = r"(?:(?!^\*\*).)*?<details markdown=\"1\"><summary>Answer</summary>\n\n"
    numbered = re.findall(rf"(?ms)^\*\*(\d+)\.\*\* {answered}", questions)
    assert numbered == [str(i) for i in range(1, 13)] and questions.count("\n\n</details>\n") == 12


def test_what_the_bibliography_lists_is_cited():
    listed = re.findall(r'<a id="(\w+)">', PAGE)
    assert len(listed) == len(set(listed)) and not [name for name in listed if f"(#{name})" not in PAGE]


def test_the_points_of_the_project_are_a_hundred():
    rubric = PAGE.partition("## A project")[2].partition("\n## ")[0]
    assert sum(map(int, re.findall(r"(?m)^\| (\d+) \| ", rubric))) == 100


def test_what_has_a_doi_or_is_on_arxiv_says_so():
    entries = re.split(r'<a id="', PAGE.partition("## Bibliography")[2].partition("## Licence")[0])[1:]
    without = [
        entry.partition('"')[0] for entry in entries if not re.search(r"doi\.org/10\.\d{4}|arXiv:\d{4}\.\d{4,5}", entry)
    ]
    assert without == ["f18", "sp05", "s80"]  # proceedings without a DOI, and a thesis


def sections(number):
    """The cells between two headings."""
    parts = [[]]
    for cell in cells(number):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and re.match(r"#{2,3} ", source):
            parts.append([])
        parts[-1].append(source)
    return parts


@pytest.mark.parametrize("number", ["3", "4", "6", "10", READING])
def test_a_tape_has_its_functional_twin(number):
    """In the section of a tape JAX takes the same derivative, or a sentence says why it cannot be asked for."""
    twin = re.compile(r"(?m)^# by functions|\*\*By functions\*\*|(?:jax|nnx)\.(?:grad|value_and_grad)\(|eqx\.filter_")
    answered = r"(?!.*(?:style\.(?:check|same)\(|</details>))"  # an exercise's check, or its answer
    taped = re.compile(rf"(?m)^ *with tf\.(?:GradientTape|autodiff\.ForwardAccumulator)\({answered}", re.DOTALL)
    without = [part[0] for part in sections(number) if any(map(taped.search, part)) and not any(map(twin.search, part))]
    assert without == []
