"""Bodies with ``tf.keras`` under both systems: Keras has one backend for each process, so each side has a process of its own."""

from __future__ import annotations

import functools
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(bodies: dict[str, Callable], system: str, target: str) -> None:
    """Runs all bodies under one system, and leaves their outcomes in a file."""
    import harness
    from outcomes import outcome_under_tapejax, outcome_under_tensorflow

    if system == "tensorflow":
        os.environ["KERAS_BACKEND"] = "tensorflow"
        tf, outcome = harness.import_tensorflow(), outcome_under_tensorflow
    else:
        import jax

        jax.config.update("jax_enable_x64", True)  # as `tapejax run` has them
        tf, outcome = harness.import_tapejax(), outcome_under_tapejax
    found = {}
    for name, body in bodies.items():
        try:
            found[name] = outcome(body, tf)
        except Exception as error:  # the test says so
            found[name] = f"{type(error).__name__}: {error}"
    pathlib.Path(target).write_bytes(pickle.dumps(found))


@functools.cache
def outcomes(file: str, system: str) -> dict[str, Any]:
    """The outcomes of the bodies in a test file, which calls `main` where it is run as a program."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KERAS_", "PYTEST_"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder, system)
        command = [sys.executable, file, system, str(target)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert target.exists(), (done.stdout + done.stderr)[-4000:]
        return pickle.loads(target.read_bytes())
