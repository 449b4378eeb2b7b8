"""The programs on the pages of `docs/` run, from the first to the last of a page, and print what the page says they print.

Those of the porting guide have a test of their own, `test_porting_guide.py`.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = {
    page: blocks
    for page in sorted((ROOT / "docs").glob("*.md"))
    if page.name != "guide.md" and (blocks := BLOCK.findall(page.read_text(encoding="utf-8")))
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_programs_of_a_page_run(page):
    names = {}
    for number, block in enumerate(PAGES[page], 1):
        for package in re.findall(r"(?m)^(?:from|import) (\w+)", block):
            pytest.importorskip(package)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)
        said = re.findall(r"(?m)^\s*print\(.*\)  # (.*)$", block)
        assert not said or printed.getvalue().splitlines() == said
