"""Notebooks as programs: their code cells, as Python."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

from ...tf.values.errors import extra_missing

# Magics that a run without Jupyter can leave out, and those whose text is Python that is timed or captured.
_LEFT_OUT = (
    "autoreload config html javascript js latex load_ext markdown matplotlib pinfo pinfo2 pylab reload_ext svg "
    "tensorboard tensorflow_version"
).split()
_PYTHON_FOLLOWS = "capture prun time timeit".split()
_HEADS = re.compile(r"^([ \t]*)(?:%%capture.*|%%?(?:prun|time|timeit)\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*[ \t]*)", re.M)
_INSTALLERS = ("pip", "conda", "mamba")
_INSTALLS = (*_INSTALLERS, "pip3", "python -m pip", "python3 -m pip", "uv", "apt", "apt-get", "sudo apt")


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
    """A cell with Jupyter's own lines turned into Python, by IPython: calls of ``get_ipython()``, which has `Jupyter`'s.

    Of ``%time f()`` and ``%%time`` the Python stays. Mistakes in the Python stay as they are, too.

    Raises:
        ImportError: the cell has lines of Jupyter's, and IPython is not installed.

    >>> print(as_python("%matplotlib inline\\nif True:\\n    %time print(1)"))
    get_ipython().run_line_magic('matplotlib', 'inline')
    if True:
        print(1)
    <BLANKLINE>
    """
    for text in (source, _HEADS.sub(r"\1", source)):
        # warnings come when it is compiled
        with contextlib.suppress(SyntaxError), warnings.catch_warnings(action="ignore"):
            ast.parse(text)
            return text
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError as error:
        raise extra_missing("a cell with lines of Jupyter's", "IPython", "notebooks") from error
    cell = text.lstrip("\n")  # which IPython would take away
    return text[: len(text) - len(cell)] + TransformerManager().transform_cell(cell)


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
            **{(kind, name): lambda *_: None for name in _LEFT_OUT for kind in ("line", "cell")},
            **{("line", name): lambda line: run_cell(_HEADS.sub("", f"%time {line}")) for name in _PYTHON_FOLLOWS},
            **{("line", name): lambda line, name=name: shell(f"{name} {line}") for name in _INSTALLERS},
            **{("cell", name): lambda _, cell: shell(cell) for name in ("bash", "sh")},
            **{("line", name): _set_environment for name in ("env", "set_env")},
            ("line", "cd"): lambda line: os.chdir(os.path.expanduser(line.strip())),
            ("cell", "writefile"): _write_file,
        }

    def register_magic_function(self, func: Callable, magic_kind: str = "line", magic_name: str | None = None) -> None:
        """Makes a function of the notebook's a magic of one line, of a cell, or (``"line_cell"``) of both."""
        for kind in magic_kind.split("_"):
            self._registered[kind, magic_name or func.__name__] = func

    def run_line_magic(self, magic_name: str, line: str = "", _stack_depth: int = 1) -> Any:
        """What ``%magic_name line`` does."""
        return self._magic("line", f"%{magic_name} {line}".strip(), magic_name)(line)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """What ``%%magic_name line`` above `cell` does."""
        return self._magic("cell", f"%%{magic_name}", magic_name)(line, cell)

    def _magic(self, kind: str, words: str, name: str) -> Callable:
        if (kind, name) not in self._registered:
            advice = "take it out of the cell, or run the notebook in Jupyter"
            raise NotImplementedError(f"{words!r} is Jupyter's, not Python's: {advice}")
        return self._registered[kind, name]

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
