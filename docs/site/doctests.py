"""Doctests in docstrings become fenced code: to Markdown ``>>>`` is a quotation."""

import re

import griffe


class Doctests(griffe.Extension):
    def on_object(self, *, obj, **options):
        if obj.docstring:
            paragraphs = re.sub(" *# doctest: .*|\n *<BLANKLINE>$", "", obj.docstring.value, flags=re.M).split("\n\n")
            obj.docstring.value = "\n\n".join(
                f"```pycon\n{paragraph}\n```" if paragraph.startswith(">>> ") else paragraph for paragraph in paragraphs
            )
