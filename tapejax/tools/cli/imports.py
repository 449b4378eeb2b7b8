"""``import tensorflow`` finds tapejax, in the program that is being run and its own modules, and nowhere else.

``import keras`` finds ``tapejax.keras``, because on TensorFlow's backend Keras would give tensors.

What is installed beside the program (Keras, Orbax, Flax, ...) asks Python, too, whether TensorFlow is there, and would
believe that it is: so the answer depends on who asks. That is why the import statement itself is intercepted.
An entry in ``sys.modules`` or a finder in ``sys.meta_path`` would answer everybody alike.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import tapejax
from tapejax import _version

from ...places import INSTALLED as INSTALLED
from ...places import is_library

ALIAS = "tensorflow"
KERAS = "keras"

# What is built on TensorFlow itself, and so returns or takes its tensors. (tensorflow_probability.substrates is not.)
_BUILT = Path(__file__).with_name("built_on_tensorflow.txt").read_text(encoding="utf-8")
BUILT_ON_TENSORFLOW = dict(line.split(": ", 1) for line in _BUILT.splitlines())


def is_installed(file: str, folder: Path) -> bool:
    """Whether a source file is Python's, tapejax's or an installed package's, and not of the program in `folder`, which may
    be installed itself."""
    return is_library(file, [str(folder), str(folder.resolve())])


def resolve(fullname: str) -> Any:
    """What the program means by the module ``tensorflow.a.b`` or ``keras.a``: tapejax's namespace ``a.b``, ``keras.a``.

    Raises:
        ModuleNotFoundError: there is none; the message says what to use instead, as tapejax's own errors do.
    """
    target: Any = tapejax
    names = fullname.split(".")
    try:
        for name in names[1:] if names[0] == ALIAS else names:
            target = getattr(target, name)
        if callable(target):
            module = fullname.rpartition(".")[0]
            raise AttributeError(f"it is a function or class, so say `from {module} import {name}`")
    except AttributeError as error:
        raise ModuleNotFoundError(f"No module named {fullname!r}: {error}", name=fullname) from None
    return target


@contextlib.contextmanager
def tensorflow_is_tapejax(folder: str | os.PathLike[str]) -> Iterator[None]:
    """While it lasts, code that is not installed finds tapejax where it imports ``tensorflow``.

    `folder` is the program's. Modules are the program's wherever they lie, but for those of Python, of tapejax and of
    what is installed (`places.is_library`).
    """
    folder = Path(folder)
    python_import, python_import_module = builtins.__import__, importlib.import_module

    def of_the_program(caller: Mapping[str, Any], frame: Any) -> bool:
        """Whether code with the globals `caller`, which runs in `frame`, is the program's."""
        if _is_pythons(caller) and not _is_generated(frame):
            return False  # Python's frozen import system, too, in whose name compiled modules import
        while frame is not None:
            file = caller.get("__file__") or getattr(caller.get("__spec__"), "origin", None)
            if isinstance(file, str) and not _is_pythons(caller):
                return not is_installed(file, folder)
            if caller.get("__name__") == "__main__":  # typed in
                return True
            frame = frame.f_back  # made by exec, or Python's (timeit, code): it is the code of whoever called that
            caller = frame.f_globals if frame is not None else {}
        return True

    # Not a keyword more than Python's own __import__ has: programs call it, too.
    def __import__(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: N807
        frame = sys._getframe(1)
        if level == 0 and _is_ours(name) and of_the_program(frame.f_globals if globals is None else globals, frame):
            return _import(name, fromlist or ())
        return python_import(name, globals, locals, fromlist, level)

    def import_module(name, package=None):
        frame = sys._getframe(1)
        if _is_ours(name) and of_the_program(frame.f_globals, frame):
            return _import(name, ("*",))
        return python_import_module(name, package)

    # Programs ask for TensorFlow's version and mean its behaviour; a version may have a local part after a plus sign.
    version = f"{_version.TENSORFLOW}+tapejax{_version.__version__}"
    with (
        replaced(vars(builtins), __import__=__import__),
        replaced(vars(importlib), import_module=import_module),
        replaced(vars(tapejax), __version__=version),
        replaced(vars(tapejax.version), VERSION=version, GIT_VERSION=f"v{version}"),
    ):
        yield


def _is_pythons(namespace: Mapping[str, Any]) -> bool:
    return str(namespace.get("__name__")).partition(".")[0] in sys.stdlib_module_names


def _is_generated(frame: types.FrameType) -> bool:
    """Whether the code was made by exec, and lies in no file."""
    file = frame.f_code.co_filename
    return file.startswith("<") and not is_library(file, [])


def _is_ours(name: str) -> bool:
    top, _, below = name.partition(".")
    if top == KERAS:
        return not below.startswith("src")
    return top == ALIAS or (top in BUILT_ON_TENSORFLOW and below.partition(".")[0] != "substrates")


def _import(name: str, names: Sequence[str]) -> types.ModuleType:
    top = name.partition(".")[0]
    if top in BUILT_ON_TENSORFLOW:
        raise ModuleNotFoundError(f"{top} is built on TensorFlow itself: use {BUILT_ON_TENSORFLOW[top]}", name=name)
    module = resolve(name)
    for each in names:
        try:
            if each != "*":
                getattr(module, each)
        except AttributeError as error:  # `from module import name` would drop its text, which says what to use instead
            raise ImportError(f"cannot import name {each!r} from {name!r}: {error}", name=name) from None
    return module if names else resolve(top)


@contextlib.contextmanager
def replaced(entries: MutableMapping[str, Any], **values: Any) -> Iterator[None]:
    """While it lasts, a mapping (of a module's names, ``vars(sys)``, say, or ``os.environ``) has these entries."""
    before = {name: entries[name] for name in values if name in entries}
    entries.update(values)
    try:
        yield
    finally:
        entries.update(before)
        for name in values.keys() - before.keys():
            entries.pop(name, None)
