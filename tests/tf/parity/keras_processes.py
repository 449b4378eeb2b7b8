"""Bodies with ``tf.keras`` under both systems: Keras has one backend for each process, so each side runs in one of its own.

A test file collects bodies in a `Bodies`, has a fixture and a test that use it, and calls its `main` where it is run as a
program: then it leaves the outcomes of one side in a file.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from harness import differences, tensorflows

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Bodies(dict):
    """The bodies of one test file, by name, and the reasons of deliberate differences. Used as a decorator it adds one."""

    def __init__(self, file: str, *sources: str):
        super().__init__()
        self._file = file
        self._sources = sources  # other files whose text the kept outcomes depend on
        self.differs: dict[str, str] = {}

    def __call__(self, body: Callable | None = None, differs: str = "") -> Any:
        if body is None:
            return functools.partial(self, differs=differs)
        name = body.__name__.removeprefix("test_")
        self[name], self.differs[name] = body, differs
        return body

    def main(self, system: str, file: str) -> None:
        """Leaves the outcomes of all bodies under `system` in a file."""
        import harness
        from outcomes import outcome_under_tapejax, outcome_under_tensorflow

        # Keras imports them where they are, which is half of its time, and needs neither.
        sys.modules["matplotlib"] = sys.modules["sklearn"] = None
        if system == "tensorflow":
            os.environ["KERAS_BACKEND"] = "tensorflow"
            tf, outcome = harness.import_tensorflow(), outcome_under_tensorflow
        else:
            import jax

            jax.config.update("jax_enable_x64", True)
            tf, outcome = harness.import_tapejax(), outcome_under_tapejax
        found = {}
        for name, body in self.items():
            try:
                found[name] = outcome(body, tf)
            except Exception as error:  # the test says so
                found[name] = f"{type(error).__name__}: {error}"
        pathlib.Path(file).write_bytes(pickle.dumps(found))

    def outcomes(self, tmp_path_factory: Any) -> Callable[[str], dict]:
        """The outcomes of one system, by its name; of several workers of pytest-xdist one makes them."""
        folder = tmp_path_factory.getbasetemp()
        folder = (folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder) / pathlib.Path(self._file).stem
        folder.mkdir(exist_ok=True)

        @functools.cache
        def outcomes_under(system: str) -> dict:
            try:
                (folder / f"{system}.log").touch(exist_ok=False)
            except FileExistsError:
                for _ in range(1200):
                    if (folder / f"{system}.done").exists():
                        break
                    time.sleep(0.5)
            else:
                hidden = ("KERAS_", "PYTEST_")
                environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
                environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
                command = [sys.executable, self._file, system, str(folder / system)]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
                (folder / f"{system}.log").write_text(done.stdout + done.stderr)
                (folder / f"{system}.done").touch()
            assert (folder / system).exists(), (folder / f"{system}.log").read_text()[-4000:]
            return pickle.loads((folder / system).read_bytes())

        return outcomes_under

    def check(self, name: str, outcomes: Callable[[str], dict]) -> None:
        """Fails with every difference between the outcomes of one body."""
        __tracebackhide__ = True

        def under(system: str) -> Any:
            outcome = outcomes(system)[name]
            assert not isinstance(outcome, str), outcome
            return outcome

        expected, actual = tensorflows(lambda: under("tensorflow"), *self._sources), under("tapejax")
        found = differences(expected, actual, 1e-4, 1e-5, x64=True)
        if self.differs[name]:
            assert found, f"no longer differs from TensorFlow: {self.differs[name]}"
            return
        assert not found, f"{self[name].__doc__}\n\nTensorFlow: {expected}\n\ntapejax: {actual}\n\n" + "\n".join(found)


def needs_keras(test: Callable) -> Callable:
    missing = pytest.mark.skipif(not importlib.util.find_spec("keras"), reason="Keras is missing")
    return pytest.mark.tensorflow(missing(test))
