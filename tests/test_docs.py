"""The pages that a reader sees first: their links lead somewhere, and the README's first program prints what it says."""

import contextlib
import io
import re
import runpy
import tomllib
from pathlib import Path

import marks
import pytest

import tapejax

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "notebooks" / "course.md"]


def anchors(page):
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named.union(re.findall(r'<a id="(\w+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name} links to {link}, which does not exist"
            assert not anchor or anchor in anchors(target), f"{page.name} links to {link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_picture_has_a_text_in_its_place(page):
    text = page.read_text(encoding="utf-8")
    said = re.findall(r"!\[([^\]]*)\]\(", text)
    said += [(re.search('alt="([^"]*)"', tag) or [tag, ""])[1] for tag in re.findall("<img[^>]*>", text)]
    assert not [words for words in said if len(words) < 30]


PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS[:2], ids=["beside jax.grad", "nan"])
def test_a_program_prints_what_the_readme_says(program):
    says = re.findall(r"(?m)^print\(.*\)  # (.*)$", program)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "README.md", "exec"), {})
    number = r"-?\d+\.\d*"
    assert says and re.sub(number, "", printed.getvalue()).split() == re.sub(number, "", "\n".join(says)).split()
    # another processor, or NumPy in place of XLA, rounds another last digit
    found, wanted = (list(map(float, re.findall(number, text))) for text in (printed.getvalue(), "\n".join(says)))
    assert found == pytest.approx(wanted, rel=1e-5)


def test_the_readme_shows_what_the_tape_says(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = tmp_path / "program.py"
    text = PROGRAMS[1]
    program.write_text(f"{text}\nshown = str(tape), str(tape.as_function(energy, points))\n")
    names = runpy.run_path(str(program))
    tape, energy, points = names["tape"], names["energy"], names["points"]
    message, table, code = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    with pytest.raises(tapejax.errors.NonFiniteError) as raised:
        tape.check_numerics(energy, points)
    assert f"NonFiniteError: {raised.value}".startswith(" ".join(message.removesuffix(" ...\n").split()))
    rows = [" ".join(row.split()) for row in names["shown"][0].splitlines()]
    assert all(any(row.startswith(" ".join(shown.split())) for row in rows) for shown in table.splitlines()[:-1])
    assert names["shown"][1] == code
    assert len(re.sub(r"[|`*#]|-{3,}", " ", readme).split()) <= 600


def test_the_extras_that_messages_and_pages_name_are_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    # pip before 23.3 compares a name as it is written with the one in the wheel, which is normalised
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in extras)
    features = (ROOT / "docs" / "features.md").read_text(encoding="utf-8").partition("## Extras")[2]
    assert set(re.findall(r"(?m)^\| `([\w-]+)` \|", features)) == {*extras} - {
        "bench",
        "browser",
        "docs",
        "libraries",
        "test",
    }
    for path in [*PAGES, *(ROOT / "tapejax").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"(?:tapejax|\.)\[([a-z_][\w,-]*)\]", text) + re.findall(r'extra_missing\(.*"(\S+)"\)', text)
        assert {*",".join(named).split(",")} <= {*extras, "", "extra"}, path


@pytest.mark.parametrize("name", ["main job", "tests"])
def test_the_commands_that_ci_runs_are_marked(name):
    blocks = re.findall(rf"(?m)^<!-- ci: {name} -->\n```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1 and blocks[0].count("\n") == 1


def test_the_table_of_differences_is_what_the_tests_say():
    stale = "stale: run `python -m tests.tf.parity.marks`"
    assert marks.PAGE.read_text(encoding="utf-8") == marks.written(), stale


def test_the_first_page_plays_its_program():
    shown = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    played = (ROOT / "docs" / "site" / "played.py").read_text(encoding="utf-8")
    *program, gradient = shown.strip().split("\n\n")
    assert all(part in played for part in program) and gradient == "tape.gradient(loss, [x, w])"


def test_a_button_opens_a_notebook_where_the_repository_has_an_address(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    from hosted import button, colab_address

    here = "https://colab.research.google.com/github/an-owner/a.name/blob/main/notebooks/1_first_tape.ipynb"
    for repository in (
        "https://github.com/an-owner/a.name",
        "https://github.com/an-owner/a.name.git",
        "https://github.com/an-owner/a.name/",
    ):
        assert colab_address(repository, "notebooks/1_first_tape.ipynb") == here
        shown = button(repository, "notebooks/1_first_tape.ipynb")
        assert f'href="{here}"' in shown and "%cd a.name/notebooks" in shown
    assert "/blob/stable/" in colab_address("https://github.com/an-owner/a.name", "x.ipynb", "stable")
    for other in (
        None,
        "",
        "https://example.org/an-owner/a.name",
        "https://github.com/an-owner",
        "github.com.example.org/a/b",
    ):
        assert colab_address(other, "x.ipynb") is None and button(other, "x.ipynb") == ""


def test_the_architecture_names_what_is_there():
    package = ROOT / "tapejax"
    folders = [ROOT, package, *(path for path in package.rglob("*") if path.is_dir())]
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[\w.*]+/)*[\w.*]+(?:/|\.py|\.txt|\.md))(?:: \w+)?`", text)
    assert len(named) > 40
    assert not [name for name in named if not any(any(folder.glob(name.rstrip("/"))) for folder in folders)]
    rooms = re.findall(r"(?ms)^## `(\w+)/`(.*?)(?=^## )", text)
    for room, section in rooms:
        for row in re.findall(r"(?m)^\| ((?:`[\w/]+`(?:, )?)+) \|", section):
            for name in re.findall(r"`([\w/]+)`", row):
                assert (package / room / name).exists() or (package / room / f"{name}.py").exists(), f"{room}/{name}"
