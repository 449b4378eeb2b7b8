"""A written step, run without tapejax and TensorFlow: its losses, and its last parameters and state, beside the program's."""

from __future__ import annotations

import itertools
import json
import linecache
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

STEPS = 20  # that are kept and compared, with their arguments
Entries: TypeAlias = Mapping[str, np.ndarray]
Losses: TypeAlias = Sequence[Any]  # of each step several


# What is called rounding is at most so many times what another last digit of all that OUT.py begins with makes.
AMPLIFIED = 16.0

# Runs OUT.py where neither tapejax nor TensorFlow can be imported; prints the losses of its steps, and nothing else. What the
# last step gave goes to a file. "moved": all numbers in OUT.npz are the next ones, so that each step rounds in its own way.
_ALONE = """
import contextlib, io, json, runpy, sys
sys.modules |= dict.fromkeys(("tapejax", "tensorflow", "keras"))
import jax, numpy
class Moved(dict):
    files = property(list)
if "moved" in sys.argv:
    load, after = numpy.load, lambda x: numpy.nextafter(x, numpy.asarray(numpy.inf, x.dtype)) if x.dtype.kind == "f" else x
    numpy.load = lambda path: Moved((name, after(x)) for name, x in load(path).items())
with contextlib.redirect_stdout(io.StringIO()):
    losses, last = runpy.run_path(sys.argv[1])["main"]()
leaves, _ = jax.tree_util.tree_flatten_with_path(last)
numpy.savez(sys.argv[2], **{path[0].key + jax.tree_util.keystr(path[1:]): x for path, x in leaves})
print(json.dumps(losses))
"""


def run(target: Path, *how: str) -> tuple[list[Any], dict[str, np.ndarray], str]:
    """Runs the steps of OUT.py on the recorded batches; their losses, what the last gave, and the error that ended them."""
    with tempfile.TemporaryDirectory() as folder:
        last = Path(folder, "last.npz")
        command = [sys.executable, "-P", "-c", _ALONE, str(target), str(last), *how]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return [], {}, failure(target, done.stderr) or f"exit status {done.returncode}"
        with np.load(last) as arrays:
            return json.loads(done.stdout), {_without_chains(name): x for name, x in arrays.items()}, ""


def _without_chains(name: str) -> str:
    """The path of an entry, of Optax's states the fields alone."""
    return re.sub(r"\.(\w+)", r"['\1']", re.sub(r"\[\d+\]|\.inner_state\b", "", name))


def failure(target: Path, printed: str) -> str:
    """The error at the end of a traceback, with the line of OUT.py that it came from."""
    errors = re.findall(r"^[\w.]+(?:Error|Exception|Interrupt)\b.*", printed, re.MULTILINE) or printed.splitlines()[-1:]
    places = re.findall(rf'File "{re.escape(str(target))}", line (\d+)', printed)
    at = f"{target.name}:{places[-1]}: `{linecache.getline(str(target), int(places[-1])).strip()}`: " if places else ""
    return at + errors[-1][:300] if errors else ""


def compare(what: str, losses: Losses, error: str, expected: Losses, tolerance: float, moved: Callable = list) -> int:
    """Prints the losses of both; 0 if they are the same up to rounding. `moved` gives those of OUT.py moved."""
    print(f"\n{what}:")
    if error:
        print(textwrap.indent(error, "  "))
        return 1
    # what a loss is compared with: itself, or where it is next to nothing a thousandth of the largest; or the largest, where
    # losses have both signs and a small one is a difference of large numbers
    finite = [x for loss in expected for x in loss if abs(x) < float("inf")]
    least = max(map(abs, finite), default=1.0) * (1.0 if min(finite, default=0.0) < 0.0 < max(finite) else 1e-3)
    pairs = [*zip(expected, losses, strict=False)]
    differences = [difference(*pair, least) for pair in pairs]
    print("    step  program's loss   ported loss   difference")
    for i, pair in enumerate(pairs):
        columns = [" ".join(f"{x:12.6g}" for x in several) for several in pair]
        print(f"  {i:6d}  {'   '.join(columns)}   {differences[i]:.1e}")
    print(f"  {len(losses)} of {len(expected)} steps; largest difference {max(differences, default=0.0):.1e}", end=" ")
    print(f"(tolerance {tolerance:.0e})")
    beyond = [i for i, x in enumerate(differences) if not x <= tolerance]
    if beyond:
        others = [difference(*pair, least) for pair in zip(losses, moved(), strict=False)]
        reached = [AMPLIFIED * x for x in itertools.accumulate(others, max)] or [0.0] * len(losses)
        print(f"  beyond the tolerance from step {beyond[0]} on: this is", end=" ")
        beyond = [i for i in beyond if not differences[i] <= reached[i] < float("inf")]
        print("no rounding" if beyond else "rounding; another last digit at the beginning makes as much of it")
    return int(bool(beyond) or len(losses) != len(expected))


def difference(ours: Sequence[float], theirs: Sequence[float], least: float) -> float:
    """The largest difference of two steps' losses, relative to their size; infinite where only one is a number."""
    if len(ours) != len(theirs):
        return float("inf")
    pairs = [(x, y) for x, y in zip(ours, theirs, strict=True) if x != y and (x == x or y == y)]
    found = max((abs(x - y) / max(least, abs(x)) for x, y in pairs), default=0.0)
    return found if found == found else float("inf")


def compare_last(last: Entries, expected: Entries, begin: Entries, tolerance: float, moved: Callable = dict) -> int:
    """Prints how far what the last step gave is from the program's, and which entry is farthest; 0 for rounding.

    Args:
      last: what OUT.py gave, by the text of an entry's path.
      expected: the program's.
      begin: what it was at first.
      moved: gives what it gives moved.
    """
    apart = {name: distance(x, last.get(name), begin.get(name, np.zeros(()))) for name, x in expected.items()}
    beyond = [name for name, x in apart.items() if not x <= tolerance]
    others = moved() if beyond else {}
    reached = {n: AMPLIFIED * _norm(last[n] - x) for n, x in others.items() if apart.get(n, 0) < float("inf")}
    rounding = [n for n in beyond if n in reached and _norm(expected[n] - last[n]) <= reached[n] < float("inf")]
    rest = {name: x for name, x in apart.items() if name not in rounding}
    most = max(rest, key=rest.__getitem__, default="none")
    print(f"  after the last step, {len(rest)} entries; largest difference {rest.get(most, 0.0):.1e}: {most}", end=" ")
    print(f"(tolerance {tolerance:.0e})")
    for name in beyond:
        said = "not compared, moved by rounding" if name in rounding else "beyond the tolerance"
        print(f"  {said}: {name}, {apart[name]:.1e}")
    return int({*beyond} != {*rounding})


def entries_of(trees: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The leaves of trees that have names, by the texts of their paths."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(dict(trees))
    return {path[0].key + jax.tree_util.keystr(path[1:]): np.asarray(x) for path, x in leaves}


def distance(ours: np.ndarray, theirs: np.ndarray | None, begin: np.ndarray) -> float:
    """The norm of a difference, relative to the change since the beginning, or to a hundredth of the size if that is more.
    Integers must be the same."""
    if theirs is None or ours.shape != theirs.shape:
        return float("inf")
    if bool(((ours == theirs) | (ours != ours) & (theirs != theirs)).all()):
        return 0.0
    values = ours.astype(complex)
    size = max(_norm(values - begin), 1e-2 * _norm(values), 1e-38)
    apart = float("inf") if ours.dtype.kind in "biu" else _norm(values - theirs) / size
    return apart if apart == apart else float("inf")


def _norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(x.ravel()))
