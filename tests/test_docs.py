"""The pages that a reader sees first: their links lead somewhere, and the README's first program prints what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page):
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name} links to {link}, which does not exist"
            assert not anchor or anchor in anchors(target), f"{page.name} links to {link}: no such heading"


def test_the_first_program_prints_what_the_readme_says():
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    says = re.findall(r"(?m)^print\(.*\)  # (.*)$", program)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "README.md", "exec"), {})
    assert says and " ".join(printed.getvalue().split()) == " ".join(" ".join(says).split())


@pytest.mark.parametrize("name", ["main job", "tests"])
def test_the_commands_that_ci_runs_are_marked(name):
    blocks = re.findall(rf"(?m)^<!-- ci: {name} -->\n```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1 and blocks[0].count("\n") == 1
