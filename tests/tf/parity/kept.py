"""TensorFlow's side of the parity tests: computed once, and kept in ``kept/`` with the version that gave it.

A file of outcomes belongs to one test file and to its text: an edited file's outcomes are computed anew where TensorFlow is
installed, and are missing elsewhere until they are kept again::

    pytest -m "" --tensorflow=keep tests/tf/parity/test_complex.py  # without a path, whatever is missing

``--tensorflow=fresh`` asks TensorFlow about every body and compares with what was kept.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import lzma
import os
from pathlib import Path

from outcomes import Outcome, from_json, to_json

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

mode = "kept"  # the option --tensorflow
computed: set[str] = set()  # test files of which an outcome was not kept


class Kept:
    """The outcomes of one test file's bodies, by the tests' names; `sources` is all that they follow from."""

    def __init__(self, path: Path, sources: tuple[Path, ...]):
        self._path = path
        text = b"\0".join(source.read_bytes() for source in sources)
        self._source = hashlib.sha256(text).hexdigest()
        stored = json.loads(lzma.decompress(path.read_bytes())) if path.exists() else {}
        self.version = stored.get("tensorflow", "")
        self.outcomes: dict[str, Outcome] = {}
        if stored.get("source") == self._source:
            self.outcomes = {name: from_json(outcome) for name, outcome in stored["outcomes"].items()}
        self._changed = False

    def keep(self, name: str, outcome: Outcome) -> None:
        if not self._changed and self.version != tensorflow_version():
            self.outcomes, self.version = {}, tensorflow_version()
        self.outcomes[name] = outcome
        self._changed = True

    def missing(self, name: str) -> str:
        return f"{self._path.name} does not keep TensorFlow's outcome of {name}: run pytest --tensorflow=keep where TensorFlow is"

    def save(self) -> None:
        if self._changed:
            outcomes = {name: to_json(outcome) for name, outcome in sorted(self.outcomes.items())}
            content = {"tensorflow": self.version, "source": self._source, "outcomes": outcomes}
            self._path.write_bytes(lzma.compress(json.dumps(content, separators=(",", ":")).encode(), preset=9))


def current_file() -> str:
    """The path of the test that runs now."""
    return os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]


def current_test(*sources: str) -> tuple[Kept, str]:
    """What is kept for the test that runs now, and the test's name; `sources` are further files that outcomes follow from."""
    path, name = current_file(), os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)").partition("::")[2]
    if path not in _files:
        texts = (HERE / "outcomes.py", HERE / "tables.py", ROOT / path, *(ROOT / source for source in sources))
        _files[path] = Kept(HERE / "kept" / f"{Path(path).stem}.json.xz", texts)
    return _files[path], name


_files: dict[str, Kept] = {}


def save() -> None:
    """Write what ``--tensorflow=keep`` computed."""
    for file in _files.values():
        file.save()


@functools.cache
def tensorflow_version() -> str:
    """The installed TensorFlow's version, without importing it; empty where there is none."""
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return ""
