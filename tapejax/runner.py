"""Run a program that says ``import tensorflow`` on JAX, unmodified.

Two things make that possible, and both end with the program:

* a finder at the front of ``sys.meta_path`` answers every import of ``tensorflow`` and of names below it with
  tapejax's own objects, whether or not TensorFlow is installed;
* 64-bit types are switched on, because TensorFlow has them. (Python floats still become float32, as there.)
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import os
import platform
import re
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax

import tapejax

ALIAS = "tensorflow"


def run(program: str | os.PathLike[str], arguments: Sequence[str] = ()) -> int:
    """Run the file ``program`` as ``python program *arguments`` would, with tapejax in TensorFlow's place.

    Returns the exit status: 0, or 1 after an uncaught exception, whose traceback (from the program's first
    frame on) goes to stderr, or 2 if the file cannot be read or is not Python. ``SystemExit`` passes through.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     program = pathlib.Path(folder, "program.py")
    ...     _ = program.write_text("import sys, tensorflow; print(tensorflow.__name__, sys.argv[1:])")
    ...     run(program, ["--epochs", "3"])
    tapejax ['--epochs', '3']
    0
    """
    # Python, too, names the main file by its absolute path: it must still be found after an os.chdir.
    path = Path(program).absolute()
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as error:
        return _refuse(f"cannot read {os.fspath(program)}: {error.strerror}")
    except (SyntaxError, ValueError) as error:  # ValueError: null bytes
        traceback.print_exception(error.with_traceback(None))
        return _refuse(f"{os.fspath(program)} is not a program in Python {platform.python_version()}")

    main = types.ModuleType("__main__")
    vars(main).update(__file__=str(path), __builtins__=builtins)
    with _tensorflow_is_tapejax(), _main_program(main, [os.fspath(program), *arguments]):
        try:
            exec(code, vars(main))
        except SystemExit:
            raise
        except BaseException as error:
            _report(error, str(path))
            return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


class AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tensorflow`` as the module ``tapejax``, and ``tensorflow.a.b`` as its attribute ``a.b``."""

    def find_spec(self, fullname, path=None, target=None):
        """Answer for ``tensorflow`` and names below it; leave every other import to Python."""
        if fullname.partition(".")[0] != ALIAS:
            return None
        try:
            found = _resolve(fullname)
        except AttributeError as error:  # its text says what to use instead
            raise ModuleNotFoundError(f"No module named {fullname!r}: {error}", name=fullname) from None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin="tapejax")
        spec.loader_state = found
        return spec

    def exec_module(self, module):
        """Put tapejax's object into ``sys.modules`` in place of the new, empty module."""
        # Handing it out from create_module would let importlib write over its __spec__.
        found = module.__spec__.loader_state
        if not hasattr(found, "__path__"):
            found.__path__ = []  # else importlib would not look below: import tensorflow.experimental.numpy
        sys.modules[module.__name__] = found


def _resolve(fullname: str) -> object:
    found: object = tapejax
    for name in fullname.split(".")[1:]:
        found = getattr(found, name)
    if callable(found):
        raise AttributeError(f"tensorflow has it as a function or class; say `from` ... `import {name}`")
    return found


@contextlib.contextmanager
def _tensorflow_is_tapejax() -> Iterator[None]:
    finder = AliasFinder()
    real = _take_alias_modules()
    x64 = jax.config.read("jax_enable_x64")
    sys.meta_path.insert(0, finder)
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", x64)
        sys.meta_path.remove(finder)
        _take_alias_modules()
        sys.modules.update(real)


def _take_alias_modules() -> dict[str, types.ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] == ALIAS]
    return {name: sys.modules.pop(name) for name in names}


@contextlib.contextmanager
def _main_program(main: types.ModuleType, argv: list[str]) -> Iterator[None]:
    """Make ``main`` what a program finds itself to be: ``__main__``, with its arguments and its folder."""
    before = sys.modules["__main__"], sys.argv, sys.path
    # A script's folder comes first; `python -m tapejax` has put the current directory there.
    rest = sys.path[1:] if sys.path[:1] == [os.getcwd()] else sys.path
    sys.modules["__main__"], sys.argv, sys.path = main, argv, [os.path.dirname(str(main.__file__)), *rest]
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv, sys.path = before


def _report(error: BaseException, path: str) -> None:
    """Show an uncaught exception as Python would, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    _explain_missing_name(error)
    sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _explain_missing_name(error: BaseException) -> None:
    """Add what tapejax says of a name that is missing: ``from tensorflow.math import it`` drops that text."""
    if not isinstance(error, ImportError):
        return
    name = re.match(r"cannot import name '(\w+)' from", str(error))
    if name and error.name in sys.modules:
        try:
            getattr(sys.modules[error.name], name[1])
        except AttributeError as reason:
            error.add_note(str(reason))


def _refuse(message: str) -> int:
    print(f"tapejax run: {message}", file=sys.stderr)
    return 2
