"""Formulas of notebooks become MathML, which browsers show without a script, in a font that comes with the site."""

import html
import importlib.util
import re
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path

from latex2mathml.converter import convert

# An OpenType font with the table that fractions, roots and braces need, under the SIL Open Font License. Of its package only
# the file is used.
FONT = Path(importlib.util.find_spec("ziamath").origin).with_name("fonts") / "STIXTwoMath-Regular.ttf"
# What holds no formulas: code, the text that a button copies, tags.
CODE = r"<(pre|code|script|style)\b.*?</\1>|<div class=\"clipboard-copy-txt\".*?</div>|<[^>]*>"
FORMULA = r"(?P<formula>(?s:\$\$[^$]+\$\$)|\$[^$\n<]+(?:\n[^$\n<]+)?\$)"
ACCENTS, PRIMES = "˙¨¯^~→", set("′″‴")


def with_mathml(content):
    """HTML with its formulas as MathML."""

    def formula(found):
        if found["formula"] is None:
            return found[0]
        display = "block" if found["formula"].startswith("$$") else "inline"
        return mathml(html.unescape(found["formula"]).strip("$"), display)

    return re.sub(rf"(?s:{CODE})|{FORMULA}", formula, content)


def mathml(formula, display="inline"):
    """A formula in LaTeX as MathML, without the converter's faults."""
    converted = convert(formula, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    root = ET.fromstring(converted)
    for element in list(root.iter()):
        _correct(element)
    for sign in root.iter("msqrt"):  # the sign has a least height: below a low letter it would hang under the line
        sign.append(ET.Element("mspace", width="0", height="0.75em", depth="0.25em"))
    for row in list(root.iter()):
        if row.tag in ("math", "mrow", "mstyle", "msqrt", "mtd"):
            row[:] = _spaced(_joined(list(row)))
    return ET.tostring(root, encoding="unicode")


def _correct(element):
    if (
        element.tag == "mover" and (element[1].text or "") in ACCENTS
    ):  # as large as in a text, and right above the letter
        element.set("accent", "true")
    if element.tag == "msup" and set(element[1].text or "?") <= PRIMES:  # a prime is raised in the font already
        element.tag = "mrow"
        element[1].tag, element[1].attrib = "mo", {"lspace": "0", "rspace": "0"}
    nested = list(element.iter("mo"))[1:]
    if element.tag == "mo" and len(element) and nested:  # \mathrel{+}
        element[:], element.text = [], "".join(x.text for x in nested)
        element.set("class", "whole")
    elif element.tag == "mo" and _is_name(element.text):  # \operatorname{diag}
        element.tag = "mi"
    elif element.tag == "mi" and set(element.text or "") <= PRIMES:
        element.tag = "mo"
    elif element.tag == "mo" and element.text in ("/", "|", "‖"):  # not between two spaces, and bars of one height
        element.attrib |= {"lspace": "0", "rspace": "0", "stretchy": "false"}
    elif element.tag == "mo" and element.text == ":":
        element.attrib |= {"lspace": "0.17em", "rspace": "0.28em"}
    elif element.attrib.pop("mathvariant", None) == "double-struck":  # browsers want the letter itself
        element.text = "".join(unicodedata.lookup(f"DOUBLE-STRUCK CAPITAL {letter}") for letter in element.text)


def _joined(row):
    """An operator of several signs is one: \\mathrel{+}=."""
    found = []
    for element in row:
        if found and element.tag == "mo" and found[-1].attrib.pop("class", None):
            found[-1].text += element.text
        else:
            found.append(element)
    return found


def _spaced(row):
    """The names of functions are set apart from what they are applied to, and from factors."""
    found = []
    for element in row:
        if found and (_is_function(found[-1]) or _is_function(element)):
            other = element if _is_function(found[-1]) else found[-1]
            if other.tag not in ("mo", "mspace"):
                found.append(ET.Element("mspace", width="0.167em"))
        found.append(element)
    return found


def _is_function(element):
    first = element[0] if element.tag in ("msup", "msub", "msubsup") else element
    return first.tag == "mi" and _is_name(first.text)


def _is_name(text):
    return bool(re.fullmatch("[a-z]{2,}", text or ""))
