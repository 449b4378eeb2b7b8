"""The command: the program is run and observed, its step is written in JAX, run on the recorded batches, and compared."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ....tf.programs.function import functions_run_eagerly, run_functions_eagerly
from .. import runner
from . import comparing
from .comparing import STEPS
from .module import PortedModule
from .observing import Observer, Place
from .pieces import Refused, where

TOLERANCE = 1e-3  # of a loss, relative to its size, and of an entry of the parameters, to its change


def port(
    program: str | os.PathLike[str],
    out: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    steps: int | None = None,
    tolerance: float = TOLERANCE,
) -> int:
    """Writes ``out``, the step of ``program`` in JAX, with its arrays in an ``.npz`` beside it; runs both and compares.

    Args:
      program: the file; it runs as `run` runs it.
      out: the file to write.
      arguments: what the program finds in ``sys.argv[1:]``.
      steps: after how many training steps the program is ended; None: it runs to its end.
      tolerance: how far losses may differ, relative to their size, and the parameters and state after the last step.

    Returns the exit status: 0; 1 if these differ by more or the written program fails; 2 if the program cannot be ported or
    run, with the line that stopped it and what to do by hand on stderr.
    """
    path, target = Path(program).absolute(), Path(out).absolute()
    if path.suffix == ".ipynb":
        return _refuse(f"{program}: a notebook; save its code cells as a program first (jupyter nbconvert --to script)")
    if path.resolve() == target.resolve() or not target.parent.is_dir():
        return _refuse(f"{out}: a file of its own, in a folder that exists, is needed for the JAX program")
    with contextlib.suppress(ImportError, OSError):
        if b"keras" in path.read_bytes():  # whose training may come before the first tape
            importlib.import_module("tapejax.keras")
    observer = Observer(steps)
    with runner._settings(False):
        eagerly = functions_run_eagerly()
        run_functions_eagerly(True)
        try:
            with observer.installed():
                status = runner.run(path, arguments)
        except SystemExit as end:
            status = 0 if not end.code else 1
        finally:
            run_functions_eagerly(eagerly)
        if observer.failed is not None:
            return _refuse(unexpected(*observer.failed))
        if status:
            return _refuse(f"{program} does not run whole: see above, and `python -m tapejax check {program}`")
        try:
            return _write(observer, path, target, tolerance)
        except Refused as refusal:
            return _refuse(str(refusal))
        except Exception as error:
            place = observer.steps[0].gradients[0].place if observer.steps else (os.fspath(path), 1)
            return _refuse(unexpected(place, error))


def unexpected(place: Place, error: BaseException) -> str:
    """What is said of an error of port's own, at a line of the program."""
    said = str(error).strip().partition("\n")[0][:200]
    return str(Refused(where(place), "unexpected", kind=type(error).__name__, error=said))


def _refuse(message: str) -> int:
    print(f"tapejax port: {message}", file=sys.stderr)
    return 2


def _write(observer: Observer, path: Path, target: Path, tolerance: float) -> int:
    module = PortedModule(path, observer)
    text, data = module.written()
    target.write_text(text)
    np.savez_compressed(target.with_suffix(".npz"), **data)
    kinds = len(module.steps.kinds)
    first = [step for step in observer.steps if step.number < STEPS]
    expected = [module.expected(step) for step in first]
    losses, last, error = comparing.run(target)
    if error:
        error = str(Refused(where(observer.steps[0].gradients[0].block), "fails", error=error))
    what = f"{path.name} and {target.name}"
    status = comparing.compare(what, losses, error, expected, tolerance, lambda: comparing.run(target, "moved")[0])
    if not error:
        ours, begin = (comparing.entries_of(module.last(step)) for step in (first[-1], None))
        status |= comparing.compare_last(last, ours, begin, tolerance, lambda: comparing.run(target, "moved")[1])
    print(f"wrote {target.name} and {target.stem}.npz: {len(module.groups)} trained variables, {kinds} kind(s) of step")
    return status
