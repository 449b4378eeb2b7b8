"""A written step, run without tapejax and TensorFlow, and its losses beside the program's."""

from __future__ import annotations

import json
import linecache
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STEPS = 20  # that are kept and compared, with their arguments


# Runs OUT.py where neither tapejax nor TensorFlow can be imported; prints the losses of its steps, and nothing else.
_ALONE = """
import contextlib, io, json, runpy, sys
sys.modules |= dict.fromkeys(("tapejax", "tensorflow", "keras"))
with contextlib.redirect_stdout(io.StringIO()):
    losses = runpy.run_path(sys.argv[1])["main"]()
print(json.dumps(losses))
"""


def run(target: Path) -> tuple[list[Any], str]:
    """Runs the steps of OUT.py on the recorded batches; their losses, and the error that ended them."""
    done = subprocess.run([sys.executable, "-P", "-c", _ALONE, str(target)], capture_output=True, text=True)
    if done.returncode:
        return [], failure(target, done.stderr) or f"exit status {done.returncode}"
    return json.loads(done.stdout), ""


def failure(target: Path, printed: str) -> str:
    """The error at the end of a traceback, with the line of OUT.py that it came from."""
    errors = re.findall(r"^[\w.]+(?:Error|Exception|Interrupt)\b.*", printed, re.MULTILINE) or printed.splitlines()[-1:]
    places = re.findall(rf'File "{re.escape(str(target))}", line (\d+)', printed)
    at = f"{target.name}:{places[-1]}: `{linecache.getline(str(target), int(places[-1])).strip()}`: " if places else ""
    return at + errors[-1][:300] if errors else ""


def compare(what: str, losses: Sequence[Any], error: str, expected: Sequence[Any], tolerance: float) -> int:
    """Prints the losses of both; 0 if they are the same up to rounding."""
    print(f"\n{what}:")
    if error:
        print(textwrap.indent(error, "  "))
        return 1
    rows, differences = [], [0.0]
    # what a loss is compared with: itself, or where it is next to nothing a thousandth of the largest; or the largest, where
    # losses have both signs and a small one is a difference of large numbers
    finite = [x for loss in expected for x in loss if abs(x) < float("inf")]
    least = max(map(abs, finite), default=1.0) * (1.0 if min(finite, default=0.0) < 0.0 < max(finite) else 1e-3)
    for i, (ours, theirs) in enumerate(zip(expected, losses, strict=False)):
        differences.append(difference(ours, theirs, least))
        columns = " ".join(f"{x:12.6g}" for x in ours), " ".join(f"{x:12.6g}" for x in theirs)
        rows.append(f"  {i:6d}  {'   '.join(columns)}   {differences[-1]:.1e}")
    shown = rows if len(rows) <= 16 else [*rows[:10], "     ...", *rows[-5:]]
    print("\n".join(["    step  program's loss   ported loss   difference", *shown]))
    print(f"  {len(losses)} of {len(expected)} steps; largest difference {max(differences):.1e}", end=" ")
    print(f"(tolerance {tolerance:.0e})")
    lost = len(losses) != len(expected)
    beyond = [i for i, x in enumerate(differences[1:]) if not x <= tolerance]
    if not beyond:
        return int(lost)
    print(f"  beyond the tolerance from step {beyond[0]} on: this is no rounding")
    return 1


def difference(ours: Sequence[float], theirs: Sequence[float], least: float) -> float:
    """The largest difference of two steps' losses, relative to their size; infinite where only one is a number."""
    if len(ours) != len(theirs):
        return float("inf")
    pairs = [(x, y) for x, y in zip(ours, theirs, strict=True) if x != y and (x == x or y == y)]
    found = max((abs(x - y) / max(least, abs(x)) for x, y in pairs), default=0.0)
    return found if found == found else float("inf")
