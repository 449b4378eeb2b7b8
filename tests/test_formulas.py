"""Formulas on the site: MathML that browsers show as LaTeX means it, whatever the converter makes of it."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml", reason="the extra `docs` is not installed")
pytest.importorskip("ziamath", reason="the extra `docs` is not installed")

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs" / "site"))
import formulas  # noqa: E402


def tags(formula):
    """The elements of a formula that hold no others, as text: what is to be seen, with a space for each that is set."""
    root = ET.fromstring(formulas.mathml(formula))
    return "".join(" " if x.tag == "mspace" else x.text or "" for x in root.iter() if not len(x))


@pytest.mark.parametrize(
    ("latex", "seen"),
    [
        (r"\cos 2\alpha", "cos 2α"),
        (r"\frac{2v^2}{g}\cos 2\alpha", "2v2g cos 2α"),
        (r"\cos^2\alpha", "cos2 α"),
        (r"\log x", "log x"),
        (r"x_i\sin x_i", "xi sin xi"),
        (r"\cos(x)", "cos(x)"),
        (r"-\log(1 - p)", "−log(1−p)"),
        (r"\bar x \mathrel{+}= \bar s\,\cos x", "x¯+=s¯ cos x"),
        (r"\operatorname{diag}(p)", "diag(p)"),
        (r"\mathbb R^n", "ℝn"),
    ],
)
def test_what_is_seen(latex, seen):
    assert tags(latex) == seen


def elements(formula, tag):
    return [x for x in ET.fromstring(formulas.mathml(formula)).iter(tag)]


def test_an_operator_of_two_signs_is_one():
    assert [x.text for x in elements(r"\bar x \mathrel{+}= y", "mo")] == ["¯", "+="]
    assert not [x for x in elements(r"a \mathrel{+}= b", "mo") if len(x)]


def test_names_of_functions_are_no_operators():
    assert [x.text for x in elements(r"\operatorname{diag}(p)", "mi")] == ["diag", "p"]


def test_accents_stand_right_above_their_letters():
    accents = [
        x.get("accent") for x in elements(r"\dot a\,\bar b\,\ddot c\,\hat d\,\vec e\,\tilde f\,\dot{v}_i", "mover")
    ]
    assert accents == ["true"] * 7
    assert [x.get("accent") for x in elements(r"\overbrace{x}", "mover")] == [None]  # which stands apart


def test_a_prime_is_raised_once():
    assert not elements("f'(a)", "msup") and tags("f''(a) + f'^2") == "f″(a)+f′2"
    assert [x.get("lspace") for x in elements("f'", "mo")] == ["0"] and elements("x^2", "msup")


def test_signs_that_stand_close():
    for latex in ("a/b", "|f|", r"\lVert x\rVert"):
        for x in elements(latex, "mo"):
            assert (x.get("lspace"), x.get("rspace"), x.get("stretchy")) == ("0", "0", "false"), latex


def test_code_is_left_alone():
    text = "<p>$x$ and <code>$x$</code></p><pre>a $b$</pre><a title='$c$'>$d$</a>"
    found = formulas.with_mathml(text)
    assert found.count("<math") == 2
    assert "<code>$x$</code>" in found and "<pre>a $b$</pre>" in found and "title='$c$'" in found


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_formula_of_the_notebooks_is_converted(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = (
            re.sub(r"(?s)```.*?```|`[^`\n]*`", "", "".join(cell["source"])) if cell["cell_type"] == "markdown" else ""
        )
        for found in re.findall(formulas.FORMULA, text):
            made = formulas.mathml(found.strip("$"))
            assert "\\" not in made and "merror" not in made, found
            root = ET.fromstring(made)
            assert not [x for x in root.iter("mo") if len(x)], found
            assert {x.get("mathvariant") for x in root.iter()} <= {None, "normal"}, found


def test_the_font_comes_with_the_site():
    sheet = (ROOT / "docs" / "site" / "extra.css").read_text(encoding="utf-8")
    assert f'src: url("{formulas.FONT.name}")' in sheet and formulas.FONT.stat().st_size > 100_000
    assert not re.search(r"https?:", sheet)


def test_the_sign_of_a_root_does_not_hang_below_it():
    for latex in (r"\sqrt n", r"\sqrt{x^2 + 1}", r"\sqrt{\log x}"):
        (root,) = elements(latex, "msqrt")
        assert root[-1].tag == "mspace" and (root[-1].get("height"), root[-1].get("depth")) == ("0.75em", "0.25em"), (
            latex
        )
        assert root[-1].get("width") == "0" and len(root) >= 2
