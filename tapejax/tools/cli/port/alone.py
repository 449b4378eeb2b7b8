"""A script, run by its path: runs OUT.py without tapejax and TensorFlow, and prints its steps' losses as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import traceback
from typing import Any


class Blocked:
    """Finds that tapejax and TensorFlow are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in ("tapejax", "tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}: not in a ported program", name=name)


def run(target: str) -> dict[str, Any]:
    """The losses of the steps, and the error that ended them."""
    losses, error = list[Any](), ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            losses = runpy.run_path(target)["main"]()
    except Exception:
        error = traceback.format_exc()
    return {"losses": losses, "error": error}


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    print(json.dumps(run(sys.argv[1])))
