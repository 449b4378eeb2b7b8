"""The elements of a dataset as inputs of a program that loops over it: read anew whenever the program runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...jaxprs.fence import Tracer
from ...tape import active
from ..values import nest, reading
from ..values.conversion import raw
from ..values.staging import init_scope
from ..values.types import Array, Nest

__all__ = ["Elements", "runs"]


def runs(dataset: Any) -> Iterator[tuple[Nest, list[Array]]]:
    """The elements, in runs of one shape: an element's structure, and an array for each leaf with a row for each element.

    To be called while a `function` is traced. All elements are read before the program runs, and must be as many, and of such
    shapes, as when it was traced.

    Raises:
      PythonNeeded: the dataset is infinite.
    """
    if dataset._count == -1:
        reading.require_python("a loop over a dataset without end")
    holder, capture = Elements(dataset), reading.context.capture
    assert capture is not None
    names = map(str, itertools.count())
    for structure in holder.structures:
        yield structure, [capture.as_input(holder, next(names)) for _ in nest.flatten(structure)]


class Elements:
    """What a program takes its inputs from: attributes "0", "1" ... for the leaves. It is read when the first is asked for.

    The call that traces runs the program on what was read for the trace: a pass over a dataset may have effects. For the same
    reason what a call could not use, since another thread came first, is put back, and is read by the next one.
    """

    read_once = True

    def __init__(self, dataset: Any):
        self._dataset = dataset
        self._unread: dict[str, list[Array]] = {}  # a list has an array for each pass that no call has used
        self._shapes: list | None = None
        self._read()

    def __getattr__(self, name: str) -> Any:
        if not name.isdigit():
            raise AttributeError(name)
        if not self._unread.get(name):
            self._read()
        return self._unread[name].pop()

    def __setattr__(self, name: str, value: object) -> None:
        if name.isdigit() and not isinstance(value, Tracer):  # put back
            vars(self).pop(name, None)
            self._unread.setdefault(name, []).append(value)
        else:
            vars(self)[name] = value

    def forget(self) -> None:
        """To be called where a trace is not followed by a run."""
        self._unread = {}

    def _read(self) -> None:
        with init_scope(), active.outside():
            elements = [(x, [np.shape(leaf) for leaf in nest.flatten(x)]) for x in self._dataset.as_numpy_iterator()]
            groups = [[x for x, _ in group] for _, group in itertools.groupby(elements, lambda pair: pair[1])]
            columns = [column for group in groups for column in zip(*map(nest.flatten, group), strict=True)]
            arrays = [raw(np.stack(column)) for column in columns]
        shapes = [(x.shape, x.dtype) for x in arrays]
        if self._shapes is None:
            self._shapes, self.structures = shapes, [group[0] for group in groups]
        elif self._shapes != shapes:
            text = "a dataset that a tf.function loops over has other elements now than when the function was traced"
            raise ValueError(f"{text}: {self._shapes} then, {shapes} now")
        for i, x in enumerate(arrays):
            self._unread.setdefault(str(i), []).append(x)
