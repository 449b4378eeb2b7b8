"""Tables in text, and the files of texts: what the code asks for stands in them, and nothing else does."""

import ast
import re
import string
from pathlib import Path

import pytest

import tapejax
from tapejax.tools.cli.port import module, pieces
from tapejax.tools.seeing import operations, parameters, reasons
from tapejax.tools.seeing.tables import bar_text, cases, in_columns, sections

TOOLS = Path(tapejax.__file__).parent / "tools"


def test_columns_stand_under_each_other():
    assert in_columns([("a", "bb", ""), ("ccc", "d", "e")], "<><") == ["a    bb", "ccc   d  e"]
    assert bar_text(0.5) == "█" * 12 + " " * 12


def test_sections_and_cases_of_a_file(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("# a remark\n==== one\na\n\nb\n==== the other\n{c}\n")
    assert sections(file) == {"one": "a\n\nb\n", "the other": "{c}\n"}
    file.write_text(
        "# a remark\n\none: b\n    what\n    happened\n    -> and what\n       to do\n\nother\n    -> this\n"
    )
    assert cases(file) == {"one: b": ("what happened", "and what to do"), "other": ("", "this")}


def called(folder, name, position):
    """The strings that calls of a function have at a position, in all files of a folder; and those it may choose from."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name and len(node.args) > position:
                for part in ast.walk(node.args[position]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


@pytest.mark.parametrize(
    "texts, folder, name, position",
    [
        (reasons.CASES, TOOLS / "seeing", "reason", 0),
        (pieces._REFUSALS, TOOLS / "cli/port", "Refused", 1),
        (parameters._SAID, TOOLS / "seeing", "_said", 0),
    ],
)
def test_what_the_code_names_is_there(texts, folder, name, position):
    named = set(called(folder, name, position)) - {".fit("}
    assert len(named) > 8 and named <= {*texts}


def test_what_is_there_is_named_in_the_code():
    code = "".join(file.read_text(encoding="utf-8") for file in TOOLS.rglob("*.py"))
    for case in [*reasons.CASES, *pieces._REFUSALS, *parameters._SAID, *module.PARTS, *operations._PRELUDE]:
        parts = [case] if case in code else case.split(": ")  # as in f"stop_gradient{where}"
        assert all(re.search(rf"[\"' ]{re.escape(part)}[\"'{{]", code) for part in parts), case


@pytest.mark.parametrize("texts", [reasons.CASES, reasons.FLAT, pieces._REFUSALS])
def test_fields_are_names(texts):
    for pair in texts.values():
        for text in pair:
            fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
            assert all(field.isidentifier() for field in fields), text
