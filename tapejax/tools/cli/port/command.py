"""The command: the program is run and observed, written in JAX, run again, and compared."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ....tf.programs.function import functions_run_eagerly, run_functions_eagerly
from .. import runner
from . import comparing
from .comparing import STEPS
from .observing import Observer
from .pieces import Refused
from .probes import Probes
from .program import Program

TOLERANCE = 1e-3  # of a loss, relative to its size


def port(
    program: str | os.PathLike[str],
    out: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    steps: int | None = None,
    tolerance: float = TOLERANCE,
) -> int:
    """Writes ``out``, a JAX program for ``program``, with its arrays in an ``.npz`` beside it; runs both and compares.

    Args:
      program: the file; it runs as `run` runs it.
      out: the file to write.
      arguments: what the program finds in ``sys.argv[1:]``.
      steps: after how many training steps the program is ended; None: it runs to its end.
      tolerance: how far losses may differ, relative to their size.

    Returns the exit status: 0; 1 if losses differ by more or the written program fails; 2 if the program cannot be ported or
    run, with the line that stopped it and what to do by hand on stderr.
    """
    path, target = Path(program).absolute(), Path(out).absolute()
    if path.suffix == ".ipynb":
        return _refuse(f"{program}: a notebook; save its code cells as a program first (jupyter nbconvert --to script)")
    if path.resolve() == target.resolve() or not target.parent.is_dir():
        return _refuse(f"{out}: a file of its own, in a folder that exists, is needed for the JAX program")
    observer = Observer(STEPS, steps)
    probes = Probes(observer, STEPS)
    with runner._settings(False):
        eagerly = functions_run_eagerly()
        run_functions_eagerly(True)
        try:
            with probes.installed():
                status = runner.run(path, arguments, prepare=probes.prepared)
        except SystemExit as end:
            status = 0 if not end.code else 1
        finally:
            run_functions_eagerly(eagerly)
        if status:
            return _refuse(f"{program} does not run whole: see above, and `python -m tapejax check {program}`")
        try:
            programs = _written(observer, partial(Program, path, target, observer, probes))
            return _compared(*programs, arguments, tolerance)
        except Refused as refusal:
            return _refuse(str(refusal))


def _refuse(message: str) -> int:
    print(f"tapejax port: {message}", file=sys.stderr)
    return 2


def _written(observer: Observer, make: Callable[..., Program]) -> tuple[Program, Program]:
    """The program whose steps make all assignments, for the recorded arguments; and the one for the program's own loop, in
    which statements between the steps assign, too. The latter is written again until no more state is found; where that
    fails, it is the former."""
    plain = grown = make(set(), set(), False)
    state, apart = set[int](), {place for _, place in observer.firsts if place}
    with contextlib.suppress(Refused):
        for _ in range(5):
            grown = make(state, apart, True)
            before, (state, apart) = (state, apart), (grown.steps.state, grown.apart)
            if before == (state, apart):
                break
    return plain, grown


def _compared(last: Program, grown: Program, arguments: Sequence[str], tolerance: float) -> int:
    """Writes the whole program if its losses are right, or else the one on the recorded arguments."""
    observer, target, kinds = last.observer, last.target, last.steps.kinds
    beside = target.with_name(f"{target.stem}_batches.npz")
    np.savez_compressed(beside, **dict(last.batches()))
    # of a step's gradients those that changed variables, which are the first, second ... of so many
    used = {len(k.steps[0].gradients): [int(piece.name.rpartition("_")[2]) - 1 for piece in k.losses] for k in kinds}
    expected = [tuple(loss[i] for i in used.get(len(loss), range(len(loss)))) for loss in observer.losses]

    def compare(how: str, result: dict, losses: Sequence) -> int:
        return comparing.compare(f"{last.path.name} and the JAX program, {how}", result, losses, tolerance)

    written, whole, notes = last.recorded, grown.whole or last.whole, last.notes
    texts = [written] if whole is None else [written, whole]
    count = observer.stop_after or len(observer.losses) + 1  # a step more than the program's tells that there are more
    result, *results = comparing.run(texts, target, last.path.parent, arguments, count)
    firsts = [expected[step.number] for step in last.first]
    status = compare("step by step, on the recorded arguments", result, firsts)
    if whole is not None and compare("as a whole, with the program's own data and loop", results[0], expected):
        notes = "run as a whole it does not give the same losses, see above"
    elif whole is not None:
        written, notes = whole, ""
        beside.unlink()
    text = written.text
    if notes:
        print(f"The program's loop was not kept: {notes}. {target.name} runs on the recorded arguments.")
        text += "\n\n# What the program did around its steps, to be done here by hand:\n#\n"
        text += textwrap.indent(last.source, "# ", lambda _: True)
    target.write_text(text)
    np.savez_compressed(target.with_suffix(".npz"), **written.data)
    looks = text.count("# LOOK")
    summary = f"{len(last.steps.variables)} variables, {len(kinds)} kind(s) of step, {looks} place(s) marked LOOK"
    print(f"wrote {target.name} and {target.stem}.npz: {summary}")
    return status
