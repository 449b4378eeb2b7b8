"""Whether values are the same, and which of the program's expressions had them."""

from __future__ import annotations

import operator
import re
from collections.abc import Hashable, Sequence

import numpy as np

from ....jaxprs.types import Value
from ....tape.recording import type_of
from ...seeing.listing import unused
from ...seeing.parameters import is_parameter_name
from .observing import Block

# Names of OUT.py, and of what `update` computes.
_TAKEN = "params state opt_state loss update init main value grads found updated changes assigned slots batch tree"


def content(x: Value) -> Hashable:
    """The type and the bits of a value."""
    return type_of(x), np.asarray(x).tobytes()


def expression_of(blocks: Sequence[Block], values: Sequence[Value]) -> str | None:
    """The expression that had these values at these blocks, one block a value: these very values first, then a plain name."""
    if not blocks:
        return None
    names = sorted(blocks[0].before, key=lambda text: (not text.isidentifier(), text not in blocks[0].names))
    pairs = [*zip(blocks, values, strict=True)]
    for alike in operator.is_, equal:
        for name in names:
            if all(name in block.before and alike(block.before[name], x) for block, x in pairs):
                return name
    return None


def equal(given: Value, used: Value) -> bool:
    """Whether a value of the program's becomes `used` when it is converted to its dtype."""
    if getattr(used, "dtype", np.dtype(int)).kind not in "biufc":
        return False
    x, y = np.asarray(given), np.asarray(used)
    return x.shape == y.shape and (x.ndim > 0 or x.dtype.kind == y.dtype.kind) and np.array_equal(x.astype(y.dtype), y)


def argument_name(expression: str | None, taken: set[str]) -> str:
    base = re.sub(r"\W+", "_", (expression or "").removeprefix("self.")).strip("_")
    return unused(base if base and is_parameter_name(base) else "data", taken.union(_TAKEN.split()), 1)
