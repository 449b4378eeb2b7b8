"""Whose code a file is, and the line of the user's code that asked for an operation.

While a tape records, only the code object and the instruction are kept (`caller`): a frame would keep all its variables alive.
The line is looked up when somebody asks for it (`line_of`).
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import sysconfig
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax

# Code of the user's, and the instruction in it.
Place: TypeAlias = tuple[types.CodeType, int]


def caller(skip: int = 2) -> Place | None:
    """The user's code that is running, and the instruction in it: ``(code, f_lasti)``; None if all code is a library's.

    The search begins `skip` frames above this one. Those between must be tapejax's own: to skip them saves time.
    """
    frame: Any = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        if _whose(code.co_filename) == "user":
            return code, frame.f_lasti
        frame = frame.f_back
    return None


# Functions of JAX's that run several operations: code that is printed calls them.
NAMED = frozenset(
    "softmax gelu logsumexp dot_product_attention bernoulli uniform normal truncated_normal randint".split()
)

# JAX's functions that a transformation gives, and what it is; they run the user's.
_TRANSFORMATIONS = {
    "value_and_grad.<locals>.value_and_grad_f": "gradient",
    "vmap.<locals>.vmap_f": "vmap",
    "jacfwd.<locals>.jacfun": "jacfwd",
    "jacrev.<locals>.jacfun": "jacrev",
    "jvp": "jvp",
    "vjp": "vjp",
    "VJP.__call__": "pull",
    "linearize": "linearize",
    "_lift_linearized": "push",
}

# Of these by the one before: what JAX runs for a transformation, and the user did not call.
_OWN_PARTS = {
    "gradient": {"vjp": "", "pull": ""},
    "jacfwd": {"vmap": ""},
    "jacrev": {"vjp": "", "vmap": "rows"},
    "rows": {"pull": ""},
}


def call_stack(skip: int, block: int) -> tuple[Place | None, tuple[Place, ...]]:
    """What `caller` returns, and where each running function is, from that whose frame has the `id` `block` inwards.

    Functions of tapejax's do not count, of JAX's only `NAMED` ones and transformations. There are none where the first is also
    the last.
    """
    frame: Any = sys._getframe(skip)
    where: Place | None = None
    inner: list[Place] = []
    while frame is not None:
        code = frame.f_code
        whose = _whose(code.co_filename)
        if whose == "user":
            place = code, frame.f_lasti
            if id(frame) == block:
                return (where or place, (place, *inner[::-1])) if inner else (place, ())
            where = where or place
            inner.append(place)
        elif whose != "own" and (whose == "library" or code.co_name in NAMED or _transformation(code)):
            inner.append((code, frame.f_lasti))
        frame = frame.f_back
    return where, tuple(inner[::-1])


def is_called(code: types.CodeType) -> bool:
    """Whether a running function counts in `calls`."""
    whose = _whose(code.co_filename)
    return whose in ("user", "library") or whose == "jax" and (code.co_name in NAMED or bool(_transformation(code)))


def transformation(place: Place) -> str:
    """Which transformation of JAX's runs there: "gradient" (of `jax.grad`), "vmap", "jacfwd", "jacrev", "jvp", "vjp",
    "linearize", or "pull" and "push", the functions that these two give; empty if none does."""
    return _transformation(place[0]) if is_jaxs(place[0].co_filename) else ""


def as_transformation(place: Place, kind: str) -> Place:
    """A call of the transformation `kind`, at no known instruction, made of a `place` in another one."""
    name = next(name for name, each in _TRANSFORMATIONS.items() if each == kind)
    return place[0].replace(co_name=name, co_qualname=name), -1


def _transformation(code: types.CodeType) -> str:
    kind = _TRANSFORMATIONS.get(code.co_qualname, "")  # the quick question first: each operation asks it of its callers
    return kind if kind and code.co_filename.endswith("api.py") else ""


def without_own(places: Sequence[Place]) -> tuple[Place, ...]:
    """`places` without the transformations that are a part of another one, as the `jax.vmap` of `jax.jacfwd` is."""
    kept, before = list[Place](), ""
    for place in places:
        kind = transformation(place)
        own = _OWN_PARTS.get(before, {}).get(kind)
        before = kind if own is None else own
        kept += [place] if own is None else []
    return tuple(kept)


def user_frame() -> int:
    """The `id` of the frame of the user's code that is running."""
    frame: Any = sys._getframe(1)
    while frame is not None and _whose(frame.f_code.co_filename) != "user":
        frame = frame.f_back
    return id(frame)


def levels_to_user() -> int:
    """The `stacklevel`, for a warning in the calling function, of the line of user code that led here."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and serves(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def serves(file: str) -> bool:
    """Whether `file` is a library's, Python's or tapejax's, so that no line of it counts as the user's."""
    return _whose(file) != "user"


@functools.cache
def _whose(file: str) -> str:
    if not is_library(file, list(folders())):
        return "user"
    own, jaxs = map(file.startswith, _OWN)
    return "own" if own else "jax" if jaxs else "library"


def is_jaxs(file: str) -> bool:
    """Whether `file` is JAX's."""
    return _whose(file) == "jax"


class SourceLine(NamedTuple):
    """A line of the user's code. Prints as ``file.py:12``, in a notebook as ``In [3]:2``."""

    file: str
    number: int
    text: str
    function: str

    def __str__(self) -> str:
        name = self.file if self.file.startswith("<") else os.path.basename(self.file)
        return f"{_notebook_cell(self.file) or name}:{self.number}"


def _notebook_cell(file: str) -> str | None:
    """The label of a notebook's cell, ``In [3]``, from the file name that IPython gave its code."""
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    label = getattr(shell and shell.compile, "format_code_name", lambda _: None)(file)  # from IPython 8 on
    if label is not None:
        return str(label[1]).replace("In[", "In [")
    return "cell" if "ipykernel_" in file or file.startswith("<ipython-input") else None


def line_of(where: Place | tuple[()] | None) -> SourceLine | None:
    """The line of `where`, which `caller` returned; None if there is no code of the user's."""
    return _line(where[0].co_filename, *where) if where else None


# An explanation asks for the same lines again and again. `file` is part of the key: code objects of two files may be equal.
@functools.lru_cache(4096)
def _line(file: str, code: Any, instruction: int) -> SourceLine:
    number = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            number = line
    return SourceLine(file, number, linecache.getline(file, number).strip(), code.co_name)


def forget_files() -> None:
    """Forgets the lines that were looked up, and whose code the files are."""
    for kept in (_line, _whose, _installed_in):
        kept.cache_clear()


# ---- whose code a file is ----------------------------------------------------------------------------------------------

# Folders into which libraries are installed, wherever they are.
INSTALLED = ("site-packages", "dist-packages", "__pypackages__")
_ARCHIVES = (".egg", ".whl")
_PYTHONS = tuple({*map(sysconfig.get_path, ("stdlib", "platstdlib")), os.path.dirname(os.__file__)})
_OWN = (os.path.dirname(__file__) + os.sep, os.path.dirname(jax.__file__) + os.sep)


def is_library(file: str, folders: Sequence[str]) -> bool:
    """Whether `file` is Python's, JAX's, ours or an installed library's, and not of a program in `folders`.

    A library is what lies in a folder for libraries, or what a distribution has installed elsewhere on ``sys.path``
    (``pip install --target``, by ``PYTHONPATH`` or a ``.pth``). The source of an editable installation is in neither.
    """
    if file.startswith("<"):  # typed in, or made by exec
        return file.startswith("<frozen ")
    # as it was imported, and without links: some tools make links into a cache
    return any(_is_library(path, folders) for path in dict.fromkeys((file, os.path.realpath(file))))


def _is_library(file: str, folders: Sequence[str]) -> bool:
    folder = next((folder for folder in folders if file.startswith(folder + os.sep)), "")
    parts = (_below(folder, file) or file).split(os.sep)[:-1]
    if file.startswith(_OWN) or any(part in INSTALLED or part.endswith(_ARCHIVES) for part in parts):
        return True
    if any((below := _below(place, file)) and not below.startswith(INSTALLED) for place in _PYTHONS):
        return True
    places = (place for place in sys.path if place and not folder.startswith(place + os.sep))
    return any(below.partition(os.sep)[0] in _installed_in(place) for place in places if (below := _below(place, file)))


def _below(place: str, file: str) -> str:
    """The path of a file from a folder on; empty if it is not in there."""
    return file[len(place) + 1 :] if place and file.startswith(place + os.sep) else ""


@functools.lru_cache(256)
def _installed_in(place: str) -> frozenset[str]:
    """The names of the files and folders in an entry of ``sys.path`` that distributions have installed there."""
    names: set[str] = set()
    with contextlib.suppress(OSError):
        for record in (
            os.path.join(place, name, "RECORD") for name in os.listdir(place) if name.endswith(".dist-info")
        ):
            with contextlib.suppress(OSError), open(record, encoding="utf-8", errors="replace") as lines:
                names.update(line.partition(",")[0].partition("/")[0] for line in lines)
    return frozenset(names)


def folders() -> Iterator[str]:
    """Where the user's program lies: the folder of the main file, unless that is a library's, and the current folder."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(main, str) and set(INSTALLED).isdisjoint(main.split(os.sep)):
        yield os.path.dirname(os.path.abspath(main))
    with contextlib.suppress(OSError):  # it may be gone
        yield os.getcwd()
