"""Notebooks as programs: their code cells, as Python."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

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
    try:  # every text of a notebook is either a string or a list of lines
        sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    except (AttributeError, KeyError, TypeError):
        raise ValueError("not a notebook of format 4: open it in Jupyter and save it again") from None
    return [source for source in sources if source.strip()]


def as_python(source: str) -> str:
    """A cell with Jupyter's own lines turned into Python, line for line.

    ``%matplotlib inline`` and what else has no meaning without Jupyter becomes ``pass``; ``%time f()`` becomes
    ``f()``; ``!ls`` calls the shell, but ``!pip install`` only says that it does not. Other magics become calls of
    ``get_ipython()``, which has `Jupyter`'s. Mistakes in the Python stay as they are.

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
            body = "\n".join(lines[first + 1 :])
            call = f"get_ipython().run_cell_magic({magic!r}, {rest!r}, {body!r})"
            return (_PASS if magic in _LEFT_OUT.split() else call) + "\n" * (len(lines) - 1)
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
    call = f"run_line_magic({word!r}, {rest!r})" if mark.endswith("%") else f"getoutput({text!r})"
    return f"{indent}{mark[:-1]}get_ipython().{call}"


def _shell(command: str) -> str:
    return f"__import__({__name__!r}, fromlist=['shell']).shell({command!r})"


def _refused(words: str) -> str:
    return f"{words!r} is Jupyter's, not Python's: take it out of the cell, or run the notebook in Jupyter"


class Jupyter:
    """What ``get_ipython()`` gives a notebook's cells. Its cells are run by `run_cell`.

    >>> jupyter = Jupyter(print)
    >>> jupyter.register_magic_function(lambda line, cell: print(f"{line}: {cell}"), "cell", "twice")
    >>> jupyter.run_cell_magic("twice", "a", "b")
    a: b
    """

    def __init__(self, run_cell: Callable[[str], None]):
        self.run_cell = run_cell
        self._registered: dict[tuple[str, str], Callable] = {
            ("line", "cd"): lambda line: os.chdir(os.path.expanduser(line.strip())),
            ("line", "env"): _set_environment,
            ("line", "set_env"): _set_environment,
            ("cell", "writefile"): _write_file,
        }

    def register_magic_function(self, func: Callable, magic_kind: str = "line", magic_name: str | None = None) -> None:
        """Makes a function of the notebook's a magic of one line, of a cell, or (``"line_cell"``) of both."""
        for kind in magic_kind.split("_"):
            self._registered[kind, magic_name or func.__name__] = func

    def run_line_magic(self, magic_name: str, line: str = "", _stack_depth: int = 1) -> Any:
        """What ``%magic_name line`` does."""
        if ("line", magic_name) in self._registered:
            return self._registered["line", magic_name](line)
        if magic_name not in (*_LEFT_OUT.split(), *_PYTHON_FOLLOWS.split()):
            raise NotImplementedError(_refused(f"%{magic_name} {line}".strip()))
        return self.run_cell(f"%{magic_name} {line}")

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """What ``%%magic_name line`` above `cell` does."""
        if ("cell", magic_name) not in self._registered:
            raise NotImplementedError(_refused(f"%%{magic_name}"))
        return self._registered["cell", magic_name](line, cell)

    def magic(self, arg_s: str) -> Any:
        """What ``%arg_s`` does."""
        name, _, line = arg_s.partition(" ")
        return self.run_line_magic(name, line)

    def system(self, cmd: str) -> None:
        """What ``!cmd`` does."""
        shell(cmd)

    def getoutput(self, cmd: str) -> list[str]:
        """The lines that ``!cmd`` prints."""
        return _output(cmd).splitlines()


def _set_environment(line: str) -> None:
    name, _, value = line.strip().partition("=" if "=" in line else " ")
    if value:
        os.environ[name.strip()] = value.strip()
    else:
        print(os.environ[name] if name else dict(os.environ))


def _write_file(line: str, cell: str) -> None:
    *options, name = line.split()
    with open(os.path.expanduser(name), "a" if "-a" in options else "w", encoding="utf-8") as file:
        file.write(cell)


def shell(command: str) -> None:
    """What a cell's ``!command`` does: runs it, and goes on whatever its exit status is. Installs nothing."""
    if command.strip().startswith(tuple(f"{name} " for name in _INSTALLS)):
        print(f"tapejax run: left out: {command.strip()}", file=sys.stderr)
        return
    print(_output(command), end="")


def _output(command: str) -> str:
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout
