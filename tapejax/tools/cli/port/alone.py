"""A script, run by its path: runs texts as OUT.py would run, without tapejax and TensorFlow, and writes their losses."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
from pathlib import Path
from typing import Any


class Blocked:
    """Finds that tapejax and TensorFlow are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in ("tapejax", "tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}: not in a ported program", name=name)


class Losses(list):
    """The losses of a program's steps so far."""

    most = 0  # after so many the program ends

    def append(self, loss: Any) -> None:
        super().append(loss)
        if len(self) == self.most:
            raise SystemExit


def run(file: Path, target: str) -> dict[str, Any]:
    """The losses of one text, and the error that ended it; `target` is where it will lie."""
    text = file.read_text().replace("\nstep_losses = []", "\nstep_losses = Losses()", 1)
    text = text.replace('Path(__file__).with_suffix(".npz")', repr(str(file.with_suffix(".npz"))), 1)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": target, "Losses": Losses}
    error = ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, target, "exec"), names)
    except SystemExit:
        pass
    except Exception:
        error = traceback.format_exc()
    return {"losses": names.get("step_losses", []), "error": error}


if __name__ == "__main__":
    target, files, Losses.most, arguments = json.loads(sys.argv[1])
    sys.path.insert(0, str(Path(target).parent))
    sys.argv = [target, *arguments]
    sys.meta_path.insert(0, Blocked())
    for file in map(Path, files):
        file.with_suffix(".json").write_text(json.dumps(run(file, target)))
