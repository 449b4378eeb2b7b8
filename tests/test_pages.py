"""The programs on the pages of `docs/` run, from the first to the last of a page, and print what the page says they print.

Those of the porting guide and of the page on devices have tests of their own, `test_porting_guide.py` and `test_devices.py`.
"""

import ast
import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)  # and what it prints
PAGES = {
    page: blocks
    for page in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "notebooks" / "course.md")
    if page.name != "guide.md" and (blocks := BLOCK.findall(page.read_text(encoding="utf-8")))
}


def run(block, name, names):
    """Runs a block; an expression at its end is shown, as a notebook does."""
    tree = ast.parse(block)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is not None:
        shown = eval(compile(ast.Expression(last.value), name, "eval"), names)
        print(*([] if shown is None else [repr(shown)]), end="")


def numbers_apart(text):
    """The words, and the numbers up to rounding: another processor has another last digit."""
    number = r"-?\d+\.\d*"
    return re.sub(number, "#", "".join(text.split())), [float(f"{float(x):.4g}") for x in re.findall(number, text)]


DEVICES = ROOT / "docs" / "devices.md"  # needs eight


def wants_another_jax(package):
    """Whether a package is installed and imports what this JAX took away: asdex 0.5.2 with JAX 0.12."""
    try:
        importlib.import_module(package)
    except ModuleNotFoundError:
        return False
    except ImportError as error:
        return package == "asdex" and "from 'jax." in str(error)
    return False


@pytest.mark.parametrize("page", [page for page in PAGES if page != DEVICES], ids=lambda page: page.stem)
def test_the_programs_of_a_page_run(page):
    names = {}
    for number, (block, below) in enumerate(PAGES[page], 1):
        packages = re.findall(r"(?m)^(?:from|import) (\w+)", block)
        if any(map(wants_another_jax, packages)):
            continue
        for package in packages:
            pytest.importorskip(package)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            run(block, f"{page.name}, block {number}", names)
        if below:
            assert numbers_apart(printed.getvalue().strip()) == numbers_apart(below.strip())
        said = re.findall(r"(?m)^\s*print\(.*\)  # (.*)$", block)
        assert not said or printed.getvalue().splitlines() == said
