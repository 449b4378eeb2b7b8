"""Run a program or notebook that says ``import tensorflow`` on JAX, unmodified.

What makes that possible ends with the program: its imports of ``tensorflow`` find tapejax (`imports`), 64-bit types
are switched on because TensorFlow has them (Python floats still become float32, as there), and Keras runs on JAX. What
JAX compiles is kept for the next run, in the user's cache folder or where `TAPEJAX_COMPILATION_CACHE` says (``off``: nowhere).
Python's garbage collector searches what the program makes, and not what was there before it.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import itertools
import os
import platform
import re
import sys
import traceback
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax

from . import imports, notebook


def run(
    program: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    full_traceback: bool = False,
) -> int:
    """Run the file ``program`` as ``python program *arguments`` would, with tapejax in TensorFlow's place.

    Of a notebook (``.ipynb``) the code cells run in order, in its folder; a cell that fails is reported, and the next
    one runs.

    Args:
        program: the file.
        arguments: what the program finds in ``sys.argv[1:]``.
        full_traceback: whether tracebacks also show the frames between the program's own lines.

    Returns the exit status: 0; or 1 after an uncaught exception, whose traceback in the program's own lines goes to
    stderr; or 2 if the file cannot be read or is not Python. ``SystemExit`` passes through.

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
    is_notebook = path.suffix == ".ipynb"
    main = types.ModuleType("__main__")
    try:
        source = path.read_bytes()
        if is_notebook:
            parts: Sequence[Any] = notebook.code_cells(source.decode())
            runs: Any = notebook.in_ipython(main, os.fspath(program), path.parent)
        else:
            parts = [compile(source, str(path), "exec", dont_inherit=True)]
            runs = contextlib.nullcontext(lambda number, code: exec(code, vars(main)))
            main.__file__ = str(path)
    except OSError as error:
        return _error(f"cannot read {os.fspath(program)}: {error.strerror}")
    except ImportError as error:
        return _error(str(error))
    except (SyntaxError, ValueError) as error:  # ValueError: null bytes, not a notebook
        if is_notebook:
            return _error(f"{os.fspath(program)} is not a notebook: {error}")
        traceback.print_exception(error.with_traceback(None))
        return _error(f"{os.fspath(program)} is not a program in Python {platform.python_version()}")

    vars(main)["__builtins__"] = builtins
    report = _Reporter(path.parent, full_traceback)
    failed = []
    with (
        imports.tensorflow_is_tapejax(path.parent),
        _settings(full_traceback),
        _nothing_older_searched(),
        _as_main(main, path.parent, [os.fspath(program), *arguments]),
        runs as run_part,
    ):
        for number, part in enumerate(parts, 1):
            try:
                run_part(number, part)
            except SystemExit:
                raise
            except KeyboardInterrupt as error:
                report(error)
                return 130
            except BaseException as error:
                report(error)
                failed.append(number)
    if failed and is_notebook:
        _error(f"{len(failed)} of {len(parts)} cells failed: {', '.join(map(str, failed))}")
    return 1 if failed else 0


# ---- the environment of the program


@contextlib.contextmanager
def _settings(full_traceback: bool) -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in ("jax_traceback_filtering", *_KEEPING)}
    before["jax_enable_x64"] = jax.config.read("jax_enable_x64")
    # If Keras is there on another backend, tapejax.keras raises an error about it.
    backend = {} if "keras" in sys.modules else {"KERAS_BACKEND": "jax"}
    jax.config.update("jax_enable_x64", True)
    if full_traceback:
        jax.config.update("jax_traceback_filtering", "off")
    _keep_compiled_programs()
    try:
        with imports.replaced(os.environ, **backend):
            yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


@contextlib.contextmanager
def _nothing_older_searched() -> Iterator[None]:
    # To search all objects of JAX's modules takes 0.1 to 0.2 s, a third of a short program's time.
    if gc.get_freeze_count():  # other code froze objects, and may unfreeze them
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


CACHE = "TAPEJAX_COMPILATION_CACHE"  # the environment variable: a folder, or "off"
# What compiles faster than this is not worth a file: reading one takes about 5 milliseconds.
WORTH_KEEPING = 0.02
_KEEPING = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


def _keep_compiled_programs() -> None:
    """Has JAX keep what it compiles in a folder of this user and machine, unless it keeps it already or is told not to."""
    folder = os.environ.get(CACHE, "")
    config: Any = jax.config
    if folder == "off" or config.jax_compilation_cache_dir is not None:
        return
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    kept = os.path.expanduser(folder) or str(Path(base, "tapejax", platform.node() or "here"))
    for name, value in zip(_KEEPING, (kept, WORTH_KEEPING, -1), strict=True):
        jax.config.update(name, value)


@contextlib.contextmanager
def _as_main(main: types.ModuleType, folder: Path, argv: list[str]) -> Iterator[None]:
    """Make ``main`` what a program finds itself to be: ``__main__``, with its arguments and its folder."""
    # A script's folder comes first; `python -m tapejax` has put the current directory there.
    rest = sys.path[1:] if sys.path[:1] == [os.getcwd()] else sys.path
    path = [str(folder), *rest]
    with imports.replaced(sys.modules, __main__=main), imports.replaced(vars(sys), argv=argv, path=path):
        yield


# ---- tracebacks


class _Reporter:
    """Shows an uncaught exception as Python would, in the lines of the program in `folder`."""

    def __init__(self, folder: Path, full: bool):
        self.folder, self.full = folder, full

    def __call__(self, error: BaseException) -> None:
        # from the program's first frame on: above it is only what runs it
        trace = error.__traceback__
        while trace is not None and not self._is_own(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        error = error.with_traceback(trace)
        sys.stdout.flush()
        if self.full or sys.excepthook is not sys.__excepthook__:  # a program's own hook gets what Python would give it
            sys.excepthook(type(error), error, trace)
            return
        text = "".join(self._folded(traceback.TracebackException.from_exception(error).format()))
        print(_REMARK.sub("", text), end="", file=sys.stderr)

    def _is_own(self, file: str) -> bool:
        return not file.startswith("<") and not imports.is_installed(file, self.folder)

    def _others(self, part: str) -> str | None:
        """The file of a frame that is not the program's; None of any other part of a report."""
        frame = re.match(r'[ |]*File "(.+?)", line', part)
        return frame[1] if frame and not self._is_own(frame[1]) else None

    def _folded(self, parts: Iterable[str]) -> Iterator[str]:
        """The parts of a report, with one line in place of each run of frames that are not the program's."""
        for files, run in itertools.groupby(parts, key=lambda part: self._others(part) is not None):
            if not files:
                yield from run
                continue
            others = [file for file in map(self._others, run) if file and Path(file).resolve() not in _MACHINERY]
            if others:
                count = "1 frame" if len(others) == 1 else f"{len(others)} frames"
                names = ", ".join(dict.fromkeys(map(_package, others)))
                yield f"  ... {count} in {names}; run --full-traceback shows more\n"


_MACHINERY = {Path(__file__).resolve(), Path(imports.__file__).resolve()}
_REMARK = re.compile(r"-{20}\n.*JAX has removed its internal frames.*\n")  # on JAX's own shortened tracebacks


def _package(file: str) -> str:
    """The package that a source file belongs to, as its users call it."""
    parts = Path(file).parts
    for place in imports.INSTALLED:
        if place in parts:
            return Path(parts[len(parts) - parts[::-1].index(place)]).stem
    return "tapejax" if Path(file).resolve().is_relative_to(Path(__file__).parents[2]) else "Python"


def _error(message: str) -> int:
    print(f"tapejax run: {message}", file=sys.stderr)
    return 2
