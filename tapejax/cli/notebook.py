"""Notebooks as programs: their code cells, as Python."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import warnings

# Jupyter's magics that a run without Jupyter can leave out, and those whose text is Python that is timed or captured.
_LEFT_OUT = (
    "autoreload conda config html javascript js latex load_ext markdown matplotlib mamba pip pylab reload_ext svg"
)
_LEFT_OUT += " tensorboard tensorflow_version"
_PYTHON_FOLLOWS = "capture prun time timeit"
_INSTALLS = ("pip", "pip3", "python -m pip", "python3 -m pip", "conda", "mamba", "uv", "apt", "apt-get", "sudo apt")


def code_cells(text: str) -> list[str]:
    """The code cells of an ``.ipynb`` file's text that are not empty, in order.

    Raises:
        ValueError: the text is no notebook of format 4.
    """
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("not a notebook of format 4: open it in Jupyter and save it again")
    # Every text of a notebook is either a string or a list of lines.
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    return [source for source in sources if source.strip()]


def as_python(source: str) -> str:
    """A cell with Jupyter's own lines turned into Python, line for line.

    ``%matplotlib inline`` and what else has no meaning without Jupyter becomes ``pass``; ``%time f()`` becomes
    ``f()``; ``!ls`` calls the shell, but ``!pip install`` only says that it does not. What cannot be had becomes a
    statement that raises. Mistakes in the Python stay as they are.

    >>> print(as_python("%matplotlib inline\\nif True:\\n    %time print(1)"))
    pass
    if True:
        print(1)
    """
    lines = source.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        magic, _, rest = lines[first][2:].partition(" ")
        if magic in ("bash", "sh"):
            return _shell("\n".join(lines[first + 1 :])) + "\n" * (len(lines) - 1)
        if magic not in _PYTHON_FOLLOWS.split():
            return (_PASS if magic in _LEFT_OUT.split() else _refusal(f"%%{magic}")) + "\n" * (len(lines) - 1)
        lines[first] = "" if magic == "capture" else _time_options.sub("", rest)
    # Which of the lines that begin with % are Python's (a remainder goes on there) is for the parser to decide.
    for _ in range(len(lines)):
        try:
            with warnings.catch_warnings(action="ignore"):  # whoever compiles the result will hear them
                ast.parse("\n".join(lines))
        except SyntaxError as error:
            number = (error.lineno or 1) - 1
            replacement = _line_as_python(lines[number]) if number < len(lines) else None
            if replacement is None:
                break
            lines[number] = replacement
        else:
            break
    return "\n".join(lines)


_PASS = "pass"
_time_options = re.compile(r"^\s*(-\w+( +\d+)?( +|$))*")


def _line_as_python(line: str) -> str | None:
    match = re.match(r"(\s*)(%|!|\?|[\w, ]+=\s*[%!])(.*)", line)
    if match is None:
        return _PASS if re.fullmatch(r"[\w.]+\?{1,2}\s*", line) else None  # tf.cast? is a request for help
    indent, mark, text = match.groups()
    word, _, rest = text.partition(" ")
    if mark == "?" or (mark == "%" and word in _LEFT_OUT.split()):
        if word in ("pip", "conda", "mamba"):
            return indent + _shell(text)
        return indent + _PASS
    if mark == "%" and word in _PYTHON_FOLLOWS.split():
        return indent + (_time_options.sub("", rest) or _PASS)
    if mark == "!":
        return indent + _shell(text)
    return indent + _refusal(line.strip())


def _shell(command: str) -> str:
    return f"__import__({__name__!r}, fromlist=['shell']).shell({command!r})"


def _refusal(words: str) -> str:
    message = f"{words!r} is Jupyter's, not Python's: take it out of the cell, or run the notebook in Jupyter"
    return f"raise NotImplementedError({message!r})"


def shell(command: str) -> None:
    """What a cell's ``!command`` does: runs it, and goes on whatever its exit status is. Installs nothing."""
    if command.strip().startswith(tuple(f"{name} " for name in _INSTALLS)):
        print(f"tapejax run: left out: {command.strip()}", file=sys.stderr)
        return
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
