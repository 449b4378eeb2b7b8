"""Notebooks as programs: their code cells, as Python."""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ...tf.values.errors import extra_missing
from .imports import replaced

_HEADS = re.compile(r"^([ \t]*)(?:%%capture.*|%%?(?:prun|time|timeit)\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*[ \t]*)", re.M)
# Magics that a run without Jupyter can leave out, and commands that install something.
_LEFT_OUT = (
    "autoreload config html javascript js latex load_ext markdown matplotlib pinfo pinfo2 pylab reload_ext svg "
    "tensorboard tensorflow_version"
).split()
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
    """A cell with Jupyter's own lines turned into Python, by IPython: calls of ``get_ipython()``.

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


def in_ipython(
    main: types.ModuleType, name: str, folder: Path
) -> contextlib.AbstractContextManager[Callable[[int, str], None]]:
    """While it lasts, cells can be run in the module `main`, in a `folder`: by what it gives, of a cell's number and source.

    An error is raised, and not shown; nothing is installed, figures need no window, and no history is kept.

    Raises:
        ImportError: IPython is not installed.
    """
    try:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config
    except ImportError as error:
        raise extra_missing("a notebook", "IPython", "notebooks") from error

    class Shell(InteractiveShell):
        db: Any = {}  # what magics keep, elsewhere in the user's home

        def _nothing(self, *args: Any, **kwargs: Any) -> None:
            """Errors are raised again; folders, paths and the environment are the program's."""

        init_ipython_dir = init_profile_dir = init_path = init_virtualenv = _nothing
        showtraceback = showsyntaxerror = showindentationerror = _nothing

        def system(self, cmd: str) -> None:
            if cmd.strip().startswith(tuple(f"{name} " for name in _INSTALLS)):
                print(f"tapejax run: left out: {cmd.strip()}", file=sys.stderr)
            else:
                print(self.getoutput(cmd, split=False), end="")  # IPython's own forks, which JAX warns of

    def run_cell(shell: Shell, number: int, source: str) -> None:
        usual = type(shell.compile).get_code_name

        def called(raw_code: str, *others: Any) -> str:
            return f"{name}, cell {number}" if raw_code == source else usual(shell.compile, raw_code, *others)

        shell.compile.get_code_name = called
        shell.run_cell(source, store_history=True).raise_error()

    @contextlib.contextmanager
    def shell() -> Iterator[Callable[[int, str], None]]:
        environment = replaced(os.environ, MPLBACKEND=os.environ.get("MPLBACKEND", "agg"))
        own_names = replaced(vars(builtins), display=None, __IPYTHON__=True)  # which stay, else
        with contextlib.chdir(folder), warnings.catch_warnings(), environment, own_names:
            for message in ("FigureCanvasAgg is non-interactive", "To exit: use"):
                warnings.filterwarnings("ignore", message)
            config = Config({"HistoryManager": {"enabled": False, "hist_file": ":memory:"}})
            interactive = Shell(user_module=main, cache_size=0, config=config)
            interactive.displayhook.write_output_prompt = lambda: None  # values stand alone
            magics = interactive.magics_manager.magics
            for kind in ("line", "cell"):
                magics[kind] |= dict.fromkeys(_LEFT_OUT, lambda *_: None)
            for name in _INSTALLERS:
                magics["line"][name] = lambda line, name=name: interactive.system(f"{name} {line}")
            yield partial(run_cell, interactive)

    return shell()
