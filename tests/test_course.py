"""The plan of the course: its lectures fill their time, and what it names is in the notebooks."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
NOTEBOOKS = {path.stem.partition("_")[0]: path for path in (ROOT / "notebooks").glob("*.ipynb")}
LECTURES = re.findall(r"(?ms)^### (?:Lecture|Lab) (\d+[ab]?):(.*?)(?=^##)", PAGE)


def cells(number):
    return json.loads(NOTEBOOKS[number].read_text(encoding="utf-8"))["cells"]


def headings(number):
    return {title for cell in cells(number) for title in re.findall(r"(?m)^#{2,3} (.*)$", "".join(cell["source"]))}


def numbers_of_lectures():
    """Which notebook each lecture is, as the plan has it."""
    plan = PAGE.partition("## The plan")[2].partition("## Lecture by lecture")[0]
    return dict(re.findall(r"(?m)^\| (?:lab )?(\d+[ab]?) \| \[?(\d+b?) ", plan))


def test_every_notebook_has_its_lecture():
    assert set(NOTEBOOKS) <= set(numbers_of_lectures().values())
    numbers = numbers_of_lectures()
    assert [number for number, _ in LECTURES] == list(numbers)
    assert all(lecture in (notebook, f"{notebook}a", f"{notebook}b") for lecture, notebook in numbers.items())


@pytest.mark.parametrize("number, text", LECTURES, ids=[f"lecture {number}" for number, _ in LECTURES])
def test_eighty_minutes_of_a_lecture_are_planned_and_its_sections_exist(number, text):
    assert sum(map(int, re.findall(r"(?m)^\| (\d+) \| ", text))) == 80
    notebook = numbers_of_lectures()[number]
    named = {
        section for row in re.findall(r"(?m)^\| \d+ \| (.*) \|$", text) for section in re.findall(r"\*(.+?)\*", row)
    }
    assert not named or named <= headings(notebook), named - headings(notebook)


def test_what_the_guides_tell_has_its_section():
    rows = PAGE.partition("## Where TensorFlow's guides are")[2].partition("## Glossary")[0]
    for paragraph, places in re.findall(r"(?m)^\| (?!in the guide|---)(.*) \| (.*) \|$", rows):
        found = re.findall(r"(\d+b?) \*(.+?)\*", places)
        assert found and len(found) == len(places.split("; ")), paragraph
        for number, section in found:
            assert section in headings(number), f"{paragraph}: notebook {number} has no section {section!r}"


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
