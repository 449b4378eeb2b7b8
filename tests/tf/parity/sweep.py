"""Every function of ``tf.math`` and ``tf.nn`` and every operator, by dtypes and by kinds of operands, beside TensorFlow.

A *row* is a function and what its operands are about; a *case* is a row, a dtype and a *form*, which says what each operand
is: a tensor, a Variable, a NumPy array, a Python number. A case's *outcome* is its values with their dtypes and shapes and
its gradients, or the class of the exception.

TensorFlow's outcomes are always the same and slow to compute, so they are kept in ``kept/sweep.json.xz``.

    python -m tests.tf.parity.sweep --write    # compute TensorFlow's outcomes anew (two minutes)
    python -m tests.tf.parity.sweep            # compare all cases in both modes of 64-bit types (half an hour)

and with ``--rows 'nn.relu*'`` of some rows alone: for a new function seconds, and the outcomes of the others stay as they are.

While 64-bit types are off, tapejax narrows them. That is one rule: the outcome is TensorFlow's for the case with every
64-bit dtype narrowed (`narrow`), its results narrowed likewise.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import functools
import json
import logging
import lzma
import operator
import pathlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import ml_dtypes
import numpy as np

FILE = pathlib.Path(__file__).parent / "kept" / "sweep.json.xz"

# ---- Operands ------------------------------------------------------------------------------------------------------

KINDS = {
    "b": ["bool"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "f": ["float16", "bfloat16", "float32", "float64"],
    "c": ["complex64", "complex128"],
}
KIND_OF = {dtype: kind for kind, dtypes in KINDS.items() for dtype in dtypes}
DTYPES = list(KIND_OF)
NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
# The dtype of a list or number of Python's.
PYTHON = {"bool": bool, "int32": int, "float32": float, "complex128": complex}


def numpy_dtype(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


X = {
    "b": [True, False, True, False],
    "i": [-4, -1, 0, 7],
    "u": [0, 1, 7, 200],
    "f": [-2.5, -0.5, 0.25, 3.0],
    "c": [1 + 2j, -0.5 + 0.25j, 2 - 1j, -1.5 - 0.5j],
}
Y = {
    "b": [True, True, False, False],
    "i": [3, 2, 1, -2],
    "u": [3, 2, 5, 4],
    "f": [1.5, -2.0, 0.75, -0.5],
    "c": [0.5 - 1j, 2 + 0.5j, -1 + 1j, 0.25 + 2j],
}
EDGES = {
    "b": [False, True],
    "f": [-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan],
    "c": [
        0j,
        1 + 0j,
        -2 + 0.5j,
        2j,
        -1 - 1j,
    ],  # not on the branch cut of acos or atanh, where a derivative has two values
}


def edges(dtype: str) -> list:
    """Values at which functions have poles, kinks, ties and overflows."""
    if (kind := KIND_OF[dtype]) in EDGES:
        return EDGES[kind]
    limits = np.iinfo(dtype)
    return [0, 1, limits.max] if kind == "u" else [limits.min, -1, 0, 1, limits.max]


class Role:
    """What an operand is about: its ordinary values by the kind of dtype, and where it has them, its edges."""

    def __init__(
        self, values: Callable[[str], Any], edges: Callable[[str], Any] | None = None, elementwise: bool = False
    ):
        self.values, self.edges = values, edges
        self.elementwise = elementwise  # whether a number will do as well


def listed(values: dict, edges: Callable | None = edges) -> Role:
    return Role(lambda kind: values[kind], edges, True)


def shaped(*shape: int, start: int = 11, empty: bool = False) -> Role:
    """Different numbers of both signs in a shape; of some reductions nothing at all is an edge."""

    def values(kind: str) -> Any:
        numbers = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 37 + start) % 17
        real = {"b": numbers % 2 == 0, "i": numbers - 6, "u": numbers, "f": (numbers - 6) / 4}
        return real[kind] if kind != "c" else (numbers - 6) / 4 + 1j * ((numbers * 5) % 7 - 3) / 2

    return Role(values, (lambda dtype: np.zeros((0, *shape[1:]))) if empty else None)


def like(values: Callable[[np.ndarray], Any], role: Role) -> Role:
    """The ordinary values of a role, changed by a function of real numbers."""
    return Role(lambda kind: values(np.real(np.asarray(role.values(kind), complex if kind == "c" else float))))


def same(values: Any, **options: Any) -> Role:
    """The same numbers in every dtype."""
    return Role(lambda kind: values, **options)


def two(fractions: Any, integers: Any, edges: Callable | None = None) -> Role:
    """One sort of numbers for floats, another for integers."""
    return Role(lambda kind: fractions if kind in "fc" else integers, edges, np.ndim(integers) == 1)


no_zero = lambda dtype: [value for value in edges(dtype) if value not in (0, -1)]  # noqa: E731
ROLES = {
    "x": listed(X),
    "y": listed(Y),
    # Integers divided by zero raise: the form `0` shows it. The lowest integer divided by -1 overflows: undefined.
    "divisor": listed(Y, lambda dtype: edges(dtype) if KIND_OF[dtype] in "bfc" else no_zero(dtype)),
    "exponent": listed(Y | {"i": [3, 2, 1, 0]}, lambda dtype: edges(dtype) if KIND_OF[dtype] in "fc" else [0, 1]),
    # Shifting by the width or more, or by a negative number, is undefined.
    "shift": same([1, 2, 0, 3], edges=lambda dtype: [0, 1]),
    # A float that the integer type does not hold is undefined.
    "castable": Role(lambda kind: {"b": [True, False], "c": [1 + 2j, 2j, 0.5, 100]}.get(kind, [0.5, 2.75, 0, 100])),
    "unit": two([0.25, 0.5, 0.75, 0.125], [0, 1, 1, 0], lambda dtype: [0, 1]),
    "positive": two([1.5, 0.5, 2.0, 3.0], [1, 2, 3, 4]),
    "above one": two([1.5, 2.5, 2.0, 3.0], [2, 3, 4, 5]),
    "order": same([0, 1, 2, 1], elementwise=True),
    "matrix": shaped(2, 3, empty=True),
    "matrix2": shaped(2, 3, start=5),
    "square": shaped(2, 2),
    "square2": shaped(2, 2, start=3),
    "vector": shaped(4),
    "channels": shaped(2),
    "channels2": shaped(2, start=5),
    "rows": shaped(4, 2, start=2),
    "sequence": shaped(1, 5, 2),
    "image": shaped(1, 4, 4, 2),
    "volume": shaped(1, 2, 3, 3, 2),
    "filter1": shaped(2, 2, 2, start=3),
    "filter2": shaped(2, 2, 2, 2, start=3),
    "filter3": shaped(1, 2, 2, 2, 2, start=3),
    "channels of four": shaped(1, 2, 2, 4),
    "logits of time": shaped(3, 1, 3),
    "pointwise": shaped(1, 1, 4, 2, start=4),
    "variance": like(lambda x: np.abs(x) + 1, shaped(2, start=7)),
    "probabilities": two([[0.25, 0.25, 0.5], [0.5, 0.0, 0.5]], [[0, 1, 0], [1, 0, 0]]),
    "weights": Role(lambda kind: [1.0, 0.5, 2.0, 0.75] if kind in "fc" else [1, 2, 1, 3]),
    "labels": same([2, 0]),
    "targets": same([1, 0]),
    "ids": same([0, 0, 1, 2]),
    "unsorted ids": same([2, 0, 1, 2]),
    "counts": same([1, 0, 3, 1]),
    "permutation": same([2, 0, 3, 1]),
    "tensor": shaped(2, 3, 2),
    "cubes": shaped(1, 4, 2, 2),
    "batches": shaped(4, 1, 2, 1),
    "updates": shaped(2, start=4),
    "ties": same([1, 1, 0, 2, 2, 0, 1], edges=edges),
    "sorted": same([1, 2, 2, 5]),
    "lengths": same([3, 1]),
    "true or false": same([1, 0, 1]),
    "limit": same(2),
    # Definite if the lower triangle is mirrored, which is all of it that some functions read.
    "lower half": same([[4, 9, 7], [1, 3, 8], [-1, 0, 2]]),
    "definite": same([[4, 1, -1], [1, 3, 0], [-1, 0, 2]]),
    "regular": same([[2, 1, -1], [1, -3, 0], [0, 1, 2]]),
    "factor": same([[2, 0, 0], [1, 3, 0], [-1, 1, 1]]),
    "signal": shaped(2, 6),
    "spectrum": shaped(2, 4),
    "number": Role(lambda kind: {"f": 2.5, "c": 1 + 2j, "b": True}.get(kind, 2), elementwise=True),
    "index": same(1, elementwise=True),
    "count": same(4, elementwise=True),
}

Form = tuple[str, ...]  # for each operand one of:
# t, v, n, s, l   the ordinary values as a tensor, Variable, NumPy array, NumPy scalar, (nested) list of Python numbers
# e               the edges as a tensor, those of several operands crossed
# t:D, n:D        the ordinary values as a tensor or a NumPy array of another dtype
# anything else   that Python number
NUMBERS = ["2", "True", "2.5", "(1+2j)", "0", "300", "-1", str(2**40)]
TENSORS_BESIDE = ["float32", "int32", "float64"]
ARRAYS_BESIDE = ["float64", "int64"]


def values_of(role: str, dtype: str) -> np.ndarray:
    return np.asarray(ROLES[role].values(KIND_OF[dtype]), numpy_dtype(dtype))


def crossed(roles: Iterable[str], dtype: str) -> list[np.ndarray]:
    """The edges of each operand, in all combinations."""
    found = [np.asarray(ROLES[role].edges(dtype), numpy_dtype(dtype)) for role in roles]  # type: ignore[misc]
    return [found[0]] if len(found) == 1 else [grid.reshape(-1) for grid in np.meshgrid(*found, indexing="ij")]


def operands(tf: Any, row: Row, dtype: str, form: Form) -> list:
    made = []
    for i, (role, spec) in enumerate(zip(row.roles, form)):
        letter, _, other = spec.partition(":")
        if letter == "e":
            made.append(tf.constant(crossed(row.roles, dtype)[i]))
        elif letter not in ("t", "v", "n", "s", "l"):
            made.append(eval(spec))
        else:
            value = values_of(role, other or dtype)
            made.append(
                tf.constant(value)
                if letter == "t"
                else tf.Variable(value)
                if letter == "v"
                else value
                if letter == "n"
                else value.reshape(-1)[0]
                if letter == "s"
                else value.tolist()
            )
    return made


# ---- Rows ----------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    call: Callable  # call(tf, *operands)
    roles: tuple[str, ...]
    python: bool = True  # whether it can be called without any tensor


def forms(row: Row, dtype: str) -> Iterator[Form]:
    """All forms of a row for one dtype. Those without a dtype of TensorFlow's own come once, with Python's kind of dtype."""
    n = len(row.roles)
    everything = lambda spec: (spec,) * n  # noqa: E731
    beside = lambda i, spec: tuple(spec if i == j else "t" for j in range(n))  # noqa: E731
    elementwise = all(ROLES[role].elementwise for role in row.roles)
    numbers = (NUMBERS if n <= 2 else NUMBERS[:3]) if elementwise else []
    if "count" in row.roles:  # so many segments have no room
        numbers = numbers[:-1]
    yield everything("t")
    if all(ROLES[role].edges for role in row.roles):
        yield everything("e")
    for spec in ("v", "n"):
        if n > 1:
            yield from (beside(i, spec) for i in range(n))
        if row.python or spec == "v":
            yield everything(spec)
    if dtype in PYTHON and row.python:
        yield everything("l")
        yield from (everything(number) for number in numbers if type(eval(number)) is PYTHON[dtype])
        if n == 2 and numbers and dtype == "float32":
            yield from (("2.5", "2"), ("2", "2.5"), ("2", "True"))
    if n == 1:
        return
    for i in range(n):
        yield beside(i, "l")
        yield from (beside(i, number) for number in numbers)
        yield from (beside(i, f"n:{other}") for other in ARRAYS_BESIDE if other != dtype)
        if n == 2 and elementwise:
            yield beside(i, "s")
    yield from (beside(n - 1, f"t:{other}") for other in TENSORS_BESIDE if other != dtype)


def narrow(dtype: str, form: Form) -> tuple[str, Form]:
    """The case as tapejax sees it while 64-bit types are off."""
    dtype = NARROW.get(dtype, dtype)
    specs = []
    for spec in form:
        letter, colon, other = spec.partition(":")
        other = NARROW.get(other, other)
        specs.append(letter if not colon or other == dtype else f"{letter}:{other}")
    return dtype, tuple(specs)


ROWS: dict[str, Row] = {}


def find(root: Any, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), root)


def add(names: str, *roles: str, call: Callable | None = None, label: str = "", python: bool = True) -> None:
    """Rows for functions that are called alike: ``call(function, *operands)``, by default ``function(*operands)``."""
    for name in names.split():
        key = name + label
        assert key not in ROWS, key

        def run(tf: Any, *args: Any, name: str = name) -> Any:
            function = find(tf, name)
            return function(*args) if call is None else call(function, *args)

        ROWS[key] = Row(run, roles, python)


def in_math(names: str, *roles: str, **options: Any) -> None:
    add(" ".join(f"math.{name}" for name in names.split()), *roles, **options)


def in_nn(names: str, *roles: str, **options: Any) -> None:
    add(" ".join(f"nn.{name}" for name in names.split()), *roles, **options)


# elementwise
in_math(
    """abs acos acosh angle asin asinh atan atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e ceil conj cos cosh digamma erf
    erfc exp expm1 floor imag is_finite is_inf is_nan lgamma log log1p log_sigmoid logical_not negative real
    reciprocal reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus special.dawsn
    special.expint special.fresnel_cos special.fresnel_sin special.spence sqrt square tan tanh""",
    "x",
)
in_math("erfinv erfcinv ndtri", "unit")
in_nn("elu leaky_relu relu relu6 selu silu softsign", "x")
in_nn("gelu", "x", call=lambda f, x: [f(x), f(x, True)])
in_math(
    """add atan2 equal greater greater_equal less less_equal maximum minimum multiply multiply_no_nan not_equal
    squared_difference subtract xlog1py xlogy""",
    "x",
    "y",
)
in_math("logical_and logical_or logical_xor", "x", "y")
in_math("divide divide_no_nan floordiv floormod truediv xdivy", "x", "divisor")
in_math("pow", "x", "exponent")
in_math("igamma igammac", "positive", "positive")
in_math("polygamma", "order", "positive")
in_math("zeta", "above one", "positive")
in_math("scalar_mul", "number", "x", call=lambda f, scalar, x: f(scalar, x))
add("clip_by_value", "x", "y", "y", call=lambda f, x, low, high: f(x, low, high))
add("bitwise.invert", "x")
add("bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor", "x", "y")
add("bitwise.left_shift bitwise.right_shift", "x", "shift")
for _dtype in DTYPES:
    ROWS[f"cast to {_dtype}"] = Row(lambda tf, x, to=_dtype: tf.cast(x, to), ("castable",))

# whole tensors
in_math(
    """reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod
    reduce_std reduce_sum reduce_variance count_nonzero""",
    "matrix",
    call=lambda f, x: [f(x), f(x, 0), f(x, [1], True)],
)
in_math("argmax argmin", "matrix", call=lambda f, x: [f(x), f(x, 1)])
in_math("cumprod cumsum cumulative_logsumexp", "matrix", call=lambda f, x: [f(x, 1), f(x, 0, True, True)])
in_math("softmax log_softmax l2_normalize", "matrix", call=lambda f, x: [f(x), f(x, 0)])
in_math("lbeta", "probabilities")
in_math("zero_fraction", "vector")
in_math("invert_permutation", "permutation")
in_math("top_k", "matrix", call=lambda f, x: f(x, 2))
in_math("in_top_k", "matrix", call=lambda f, x: f([1, 0], x, 2))
in_math(
    "in_top_k", "targets", label=" targets", call=lambda f, targets: f(targets, [[1.0, 3.0, 2.0], [5.0, 1.0, 7.0]], 1)
)
in_math("add_n", "matrix", "matrix2", call=lambda f, x, y: f([x, y, x]))
in_math("polyval", "x", "y", "x", call=lambda f, x, y, z: f([x, y], z))
in_math("bincount", "counts")
in_math("bincount", "weights", label=" weights", call=lambda f, weights: f([1, 0, 3, 1], weights))
in_math("confusion_matrix", "counts", "counts")
in_math("confusion_matrix", "weights", label=" weights", call=lambda f, w: f([1, 0, 1, 1], [1, 0, 2, 1], weights=w))

SEGMENTS = "max mean min prod sum".split()
in_math(" ".join(f"segment_{how}" for how in SEGMENTS), "rows", call=lambda f, x: f(x, [0, 0, 2, 2]))
in_math(" ".join(f"segment_{how}" for how in SEGMENTS), "ids", label=" ids", call=lambda f, ids: f(ROWS_OF_FLOATS, ids))
UNSORTED = " ".join(f"unsorted_segment_{how}" for how in [*SEGMENTS, "sqrt_n"])
in_math(UNSORTED, "rows", call=lambda f, x: f(x, [2, 0, 2, 2], 4))
in_math(UNSORTED, "unsorted ids", label=" ids", call=lambda f, ids: f(ROWS_OF_FLOATS, ids, 4))
in_math(UNSORTED, "count", label=" number", call=lambda f, count: f(ROWS_OF_FLOATS, [2, 0, 2, 2], count))
LOGITS = np.float32([[1, 3, 2], [5, 1, 7]])
ROWS_OF_FLOATS = np.asarray(ROLES["rows"].values("f"), np.float32)

# layers
in_nn("crelu", "matrix")
in_nn("l2_loss scale_regularization_loss", "vector")
in_nn("compute_average_loss", "vector", call=lambda f, x: f(x, global_batch_size=8))
in_nn("dropout", "vector", label=" of nothing", call=lambda f, x: f(x, 0.0))
in_nn("bias_add", "image", "channels")
in_nn("embedding_lookup", "rows", call=lambda f, x: f(x, [0, 3]))
in_nn("embedding_lookup", "rows", label=" max_norm", call=lambda f, x: f(x, [1], max_norm=1.0))
in_nn("embedding_lookup", "labels", label=" ids", call=lambda f, ids: f(ROWS_OF_FLOATS, ids))
in_nn(
    "batch_normalization",
    "image",
    "channels",
    "variance",
    "channels2",
    "channels",
    call=lambda f, *args: f(*args, 1e-3),
)
in_nn("moments", "matrix", call=lambda f, x: [*f(x, [0]), *f(x, [0, 1], keepdims=True)])
in_nn("local_response_normalization", "image", call=lambda f, x: f(x, 1, 1.0, 0.5, 0.75))
in_nn("sigmoid_cross_entropy_with_logits", "unit", "x")
in_nn("weighted_cross_entropy_with_logits", "unit", "x", "positive")
in_nn("log_poisson_loss", "positive", "x", call=lambda f, *args: [f(*args), f(*args, compute_full_loss=True)])
in_nn("softmax_cross_entropy_with_logits", "probabilities", "matrix")
in_nn("sparse_softmax_cross_entropy_with_logits", "matrix", call=lambda f, x: f([2, 0], x))
in_nn(
    "sparse_softmax_cross_entropy_with_logits",
    "labels",
    label=" labels",
    call=lambda f, y: f(y, np.float32([[1, 3, 2], [5, 1, 7]])),
)
in_nn("conv1d", "sequence", "filter1", call=lambda f, x, w: f(x, w, 1, "SAME"))
in_nn("conv2d", "image", "filter2", call=lambda f, x, w: f(x, w, 2, "SAME"))
in_nn("conv3d", "volume", "filter3", call=lambda f, x, w: f(x, w, [1] * 5, "VALID"))
in_nn("convolution", "image", "filter2")
in_nn("conv1d_transpose", "sequence", "filter1", call=lambda f, x, w: f(x, w, [1, 10, 2], 2))
in_nn("conv2d_transpose conv_transpose", "image", "filter2", call=lambda f, x, w: f(x, w, [1, 8, 8, 2], 2))
in_nn("conv3d_transpose", "volume", "filter3", call=lambda f, x, w: f(x, w, [1, 2, 3, 3, 2], 1))
in_nn("depthwise_conv2d", "image", "filter2", call=lambda f, x, w: f(x, w, [1, 1, 1, 1], "SAME"))
in_nn("separable_conv2d", "image", "filter2", "pointwise", call=lambda f, x, w, p: f(x, w, p, [1, 1, 1, 1], "SAME"))
for _rank, _role in ((1, "sequence"), (2, "image"), (3, "volume")):
    in_nn(f"avg_pool{_rank}d max_pool{_rank}d", _role, call=lambda f, x: f(x, 2, 2, "SAME"))
in_nn("avg_pool max_pool max_pool_with_argmax", "image", call=lambda f, x: f(x, 2, 2, "VALID"))
in_nn("pool", "image", call=lambda f, x: [f(x, [2, 2], "MAX"), f(x, [2, 2], "AVG", padding="SAME")])
in_nn("depth_to_space", "channels of four", call=lambda f, x: f(x, 2))
in_nn("space_to_depth", "image", call=lambda f, x: f(x, 2))
in_nn("space_to_batch", "image", call=lambda f, x: f(x, [2, 2], [[0, 0], [0, 0]]))
in_nn("ctc_loss", "logits of time", call=lambda f, x: f([[1, 2]], x, [2], [3], logits_time_major=True, blank_index=0))

# arrays: what is an index has rows of its own
INDICES, EMPTY = [[1], [0]], np.zeros(0, np.int32)
add("concat", "matrix", call=lambda f, x: [f([x, x], 0), f([x, 2 * x if x.dtype != bool else x], -1)], python=False)
add("stack", "matrix", call=lambda f, x: [f([x, x]), f([x, x], -1)], python=False)
add("unstack", "matrix", call=lambda f, x: f(x, axis=1))
add("split", "matrix", call=lambda f, x: [*f(x, 3, 1), *f(x, [2, -1], 1)])
add("reshape", "matrix", call=lambda f, x: [f(x, [-1]), f(x, [3, -1])])
add("transpose", "tensor", call=lambda f, x: [f(x), f(x, [1, 0, 2]), f(x, conjugate=True)])
add("expand_dims", "matrix", call=lambda f, x: [f(x, 0), f(x, -1)])
add("squeeze", "image")
add("broadcast_to", "channels", call=lambda f, x: f(x, [3, 2]))
add("tile", "matrix", call=lambda f, x: f(x, [2, 3]))
add("repeat", "matrix2", call=lambda f, x: [f(x, 2), f(x, [2, 0, 1], 1)])
add("reverse", "matrix", call=lambda f, x: [f(x, [0]), f(x, [0, -1])])
add("roll", "matrix", call=lambda f, x: [f(x, 1, 0), f(x, [1, -2], [0, 1])])
add("pad", "matrix", call=lambda f, x: [f(x, [[1, 0], [2, 1]]), f(x, [[0, 1], [1, 1]], constant_values=3)])
add(
    "pad",
    "square",
    label=" mirrored",
    call=lambda f, x: [f(x, [[1, 0], [1, 1]], mode) for mode in ("REFLECT", "SYMMETRIC")],
)
add("slice", "matrix", call=lambda f, x: f(x, [0, 1], [2, -1]))
add("boolean_mask", "matrix", call=lambda f, x: [f(x, [True, False]), f(x, [True, False, True], axis=1)], python=False)
add("boolean_mask", "true or false", label=" mask", call=lambda f, mask: f([1.0, 2.0, 3.0], mask))
add("where", "matrix", call=lambda f, x: f([True, False, True], x, x), python=False)
add("where", "ties", label=" places")
add(
    "gather",
    "matrix2",
    call=lambda f, x: [f(x, [1, 0, 1]), f(x, [[2, 0], [1, 1]], axis=1, batch_dims=1), f(x, EMPTY)],
)
add("gather", "targets", label=" ids", call=lambda f, ids: f(ROWS_OF_FLOATS, ids))
add("gather_nd", "square", call=lambda f, x: [f(x, [[1, 0], [1, 1], [1, 0]]), f(x, INDICES)])
add("gather_nd", "square", label=" ignoring", call=lambda f, x: f(x, [[-1], [1], [2]], bad_indices_policy="IGNORE"))
add("gather_nd", "targets", label=" ids", call=lambda f, ids: f(ROWS_OF_FLOATS, ids[:, None]), python=False)
add("scatter_nd", "matrix2", call=lambda f, x: f([[1], [1]], x, [3, 3]))
add("scatter_nd", "targets", label=" ids", call=lambda f, ids: f(ids[:, None], [1.0, 2.0], [3]), python=False)
TENSOR_SCATTER = " ".join(f"tensor_scatter_nd_{how}" for how in "update add sub max min".split())
add(TENSOR_SCATTER, "square", call=lambda f, x: f(x, INDICES, 2 * x if x.dtype != bool else x), python=False)
add("one_hot", "targets", label=" ids", call=lambda f, ids: [f(ids, 2), f(ids, 1, axis=0)])
add("one_hot", "number", label=" value", call=lambda f, value: f([1, -1, 0], 2, value))
add("sequence_mask", "lengths", label=" lengths", call=lambda f, x: [f(x), f(x, 2)])
add("unique unique_with_counts", "ties")
add("sort argsort", "ties", call=lambda f, x: [f(x), f(x, direction="DESCENDING")])
add("searchsorted", "sorted", call=lambda f, x: [f(x, x), f(x, x, "right")])
add("fill", "number", call=lambda f, x: f([2, 3], x))
add("zeros_like ones_like identity stop_gradient", "matrix")
add("range", "limit")
add("linspace", "matrix", call=lambda f, x: [f(x, x + 1, 4), f(x, x, 1)], python=False)
add("meshgrid", "vector", call=lambda f, x: [*f(x, x), *f(x, x, indexing="ij")])
add("cumsum", "matrix", call=lambda f, x: [f(x, 1, True), f(x, -1, reverse=True)])
add("einsum", "square", call=lambda f, x: [f("ij,jk->ik", x, x), f("ii->i", x), f("ij->j", x)])
add("tensordot", "matrix", call=lambda f, x: [f(x, x, [[1], [1]]), f(x, x, 2)])
add("norm", "square", call=lambda f, x: [f(x), f(x, 1, axis=1), f(x, np.inf, axis=0), f(x, axis=[0, 1])])
add("clip_by_norm", "matrix", call=lambda f, x: [f(x, 2), f(x, 1, 1), f(x, -1)])
add("clip_by_norm", "limit", label=" limit", call=lambda f, limit: f([3.0, 4.0], limit))
add("clip_by_global_norm", "matrix", call=lambda f, x: [*f([x, x], 2.0)[0], f([x], 200.0)[1]])
add("reverse_sequence", "matrix", call=lambda f, x: f(x, [3, 1], 1))
add("reverse_sequence", "lengths", label=" lengths", call=lambda f, x: f([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], x, 1))
add("unravel_index", "targets", label=" ids", call=lambda f, ids: f(ids, [2, 3]))
add("dynamic_partition", "matrix2", call=lambda f, x: f(x, [1, 0], 2))
add("dynamic_stitch", "matrix", call=lambda f, x: f([[0, 2]], [x]))
add("space_to_batch", "cubes", call=lambda f, x: f(x, [2, 2], [[0, 0], [1, 1]]))
add("batch_to_space", "batches", call=lambda f, x: f(x, [2, 2], [[0, 0], [1, 0]]))
for _dtype in ("int8", "int32", "uint8", "float16", "float32"):
    ROWS[f"saturate_cast to {_dtype}"] = Row(lambda tf, x, to=_dtype: tf.saturate_cast(x, to), ("castable",))
    ROWS[f"bitcast to {_dtype}"] = Row(lambda tf, x, to=_dtype: tf.bitcast(x, to), ("vector",), python=False)


# matrices and signals
def in_linalg(names: str, *roles: str, **options: Any) -> None:
    add(" ".join(f"linalg.{name}" for name in names.split()), *roles, **options)


in_linalg("adjoint", "matrix")
in_linalg("band_part", "matrix", call=lambda f, x: f(x, 0, 1))
in_linalg("cholesky logdet eigvalsh", "lower half")
in_linalg("det inv trace slogdet matrix_rank matrix_transpose", "regular")
in_linalg("expm sqrtm pinv", "definite")
in_linalg("diag", "vector")
in_linalg("diag_part", "tensor")
in_linalg("set_diag", "square", call=lambda f, x: f(x, x[0]), python=False)
in_linalg("cross", "matrix", call=lambda f, x: f(x, x[::-1]), python=False)
in_linalg("eigh", "lower half", call=lambda f, x: f(x)[0])
in_linalg("svd", "regular", call=lambda f, x: f(x, compute_uv=False))
in_linalg("qr", "regular", call=lambda f, x: f(x)[1] ** 2)
in_linalg("solve", "regular", call=lambda f, x: [f(x, x), f(x, x, adjoint=True)])
in_linalg("triangular_solve", "factor", call=lambda f, x: [f(x, x), f(x, x, adjoint=True)])
in_linalg("cholesky_solve", "factor", call=lambda f, x: f(x, x))
in_linalg("lstsq", "regular", call=lambda f, x: f(x, x))
in_linalg("matmul", "square", call=lambda f, x: [f(x, x, transpose_a=True), f(x, x, adjoint_b=True)])
in_linalg("matvec", "square", call=lambda f, x: [f(x, x), f(x, x, adjoint_a=True)])
in_linalg("global_norm", "matrix", call=lambda f, x: f([x, x]))
in_linalg("normalize", "matrix", call=lambda f, x: [*f(x), *f(x, axis=1)])


def in_signal(names: str, *roles: str, **options: Any) -> None:
    add(" ".join(f"signal.{name}" for name in names.split()), *roles, **options)


in_signal("fft ifft fft2d ifft2d fftshift ifftshift", "spectrum")
in_signal("rfft rfft2d", "signal")
in_signal("irfft irfft2d", "spectrum")
in_signal("dct idct", "signal", call=lambda f, x: [f(x), f(x, 3), f(x, norm="ortho")])
in_signal("frame", "signal", call=lambda f, x: [f(x, 4, 2), f(x, 3, 2, pad_end=True)])
in_signal("overlap_and_add", "spectrum", call=lambda f, x: f(x, 2))
in_signal("stft", "signal", call=lambda f, x: f(x, 4, 2))
in_signal("inverse_stft", "spectrum", call=lambda f, x: f(x, 6, 2))

# operators
for _name in "add sub mul truediv floordiv mod pow and_ or_ xor lt le gt ge eq ne divmod lshift".split():
    _y = {"pow": "exponent", "lshift": "shift"}.get(_name, "divisor" if "div" in _name or _name == "mod" else "y")
    ROWS[f"operator {_name}"] = Row(
        lambda tf, x, y, name=_name: getattr(operator, name, divmod)(x, y), ("x", _y), python=False
    )
ROWS["operator matmul"] = Row(lambda tf, x, y: x @ y, ("square", "square2"), python=False)
for _name in "neg abs invert pos".split():
    ROWS[f"operator {_name}"] = Row(lambda tf, x, name=_name: getattr(operator, name)(x), ("x",), python=False)
for _function in (bool, int, float, complex, operator.index):
    ROWS[f"{_function.__name__} of a scalar"] = Row(lambda tf, x, f=_function: f(x), ("number",), python=False)
ROWS["getitem"] = Row(lambda tf, x: [x[1], x[:, 1:], x[..., None]], ("matrix",), python=False)
ROWS["getitem index"] = Row(lambda tf, i: tf.constant([1.0, 2.0, 3.0])[i], ("index",))
ROWS["getitem slice"] = Row(lambda tf, i: tf.constant([1.0, 2.0, 3.0])[i:], ("index",))

# What has no row, and why.
OTHER_NAMES = {  # the same function under another name
    "math.mod": "math.floormod", "math.softsign": "nn.softsign", "nn.swish": "nn.silu",
    "nn.lrn": "nn.local_response_normalization",
} | {
    f"nn.{name}": f"math.{name}"
    for name in "in_top_k l2_normalize log_softmax sigmoid softmax softplus tanh top_k zero_fraction".split()
} | {f"math.special.bessel_{name}": f"math.bessel_{name}" for name in ("i0", "i0e", "i1", "i1e")}  # fmt: skip
NOT_SWEPT = {"nn.nce_loss", "nn.sampled_softmax_loss"}  # they draw: tests/tf/parity/test_sampled_losses.py

# ---- Outcomes ------------------------------------------------------------------------------------------------------


def outcome(tf: Any, name: str, dtype: str, form: Form) -> tuple[Any, BaseException | None]:
    """The outcome of a case: ``[values]``, ``[values, gradients]``, or the name of an exception's class; and the exception."""
    row = ROWS[name]
    try:
        args = operands(tf, row, dtype, form)
        sources = [arg for arg in args if hasattr(arg, "get_shape")]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = row.call(tf, *args)
    except Exception as error:  # whatever it is, it is the outcome
        return type(error).__name__, error
    leaves = list(result) if isinstance(result, (list, tuple)) else [result]
    values = [encoded(leaf) for leaf in leaves]
    tensors = [leaf for leaf in leaves if hasattr(leaf, "get_shape")]
    targets = [leaf for leaf in tensors if leaf.dtype.is_floating or leaf.dtype.is_complex] or tensors
    if not sources or not targets:
        return [values], None
    try:
        cotangents = [cotangent(tf, target) for target in targets]
        found = tape.gradient(targets, sources, output_gradients=cotangents)
        return [values, [None if g is None else encoded(tf.convert_to_tensor(g)) for g in found]], None
    except Exception as error:
        return [values, type(error).__name__], error


def cotangent(tf: Any, target: Any) -> Any:
    """Different numbers, so that no mistake cancels out."""
    numbers = 1 + np.arange(np.prod(target.shape, dtype=int)).reshape(target.shape) % 3
    return tf.constant((numbers > 1) if target.dtype.is_bool else numbers.astype(target.dtype.as_numpy_dtype))


def encoded(leaf: Any) -> Any:
    """``[dtype, shape, numbers]``; a complex number is two."""
    if not hasattr(leaf, "get_shape"):
        return ["python", type(leaf).__name__, str(leaf)]
    array = np.asarray(leaf.numpy())
    dtype = leaf.dtype.name
    kind = KIND_OF[dtype]
    if kind == "c":
        array = array.astype(np.complex128).reshape(-1).view(np.float64)
    elif kind == "f":
        array = array.astype(np.float64)
    return [dtype, list(leaf.shape), array.reshape(-1).tolist()]


DIGITS = {"float16": 5, "bfloat16": 4, "float32": 8, "complex64": 8, "float64": 12, "complex128": 12}


def rounded(found: Any) -> Any:
    """An outcome as it is kept."""
    if isinstance(found, list) and found and isinstance(found[0], str) and found[0] in DIGITS:
        return [*found[:2], [short(number, DIGITS[found[0]]) for number in found[2]]]
    return [rounded(item) for item in found] if isinstance(found, list) else found


def short(number: float, digits: int) -> float | int:
    number = float(f"{number:.{digits}g}")
    return (
        int(number) if number.is_integer() and abs(number) < 1e6 and (number or np.copysign(1, number) > 0) else number
    )


# ---- Comparing -----------------------------------------------------------------------------------------------------

TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 2e-5, "float64": 1e-9, "complex64": 2e-5, "complex128": 1e-9}


def agrees(want: Any, got: Any, error: BaseException | None, narrowed: bool) -> bool:
    """Whether tapejax's outcome is TensorFlow's: an exception may be of a subclass."""
    if isinstance(want, str) or isinstance(got, str):
        return isinstance(want, str) and want in [base.__name__ for base in type(error).__mro__]
    if len(want) != len(got) or not all_agree(want[0], got[0], narrowed):
        return False
    if len(want) == 1:
        return True
    if isinstance(want[1], str) or isinstance(got[1], str):
        return isinstance(want[1], str) and want[1] in [base.__name__ for base in type(error).__mro__]
    return all_agree(want[1], got[1], narrowed)


def all_agree(want: list, got: list, narrowed: bool) -> bool:
    return len(want) == len(got) and all(leaf_agrees(a, b, narrowed) for a, b in zip(want, got))


def leaf_agrees(want: Any, got: Any, narrowed: bool) -> bool:
    if want is None or got is None or want[0] == "python":
        return want == got
    dtype = NARROW.get(want[0], want[0]) if narrowed else want[0]
    if [dtype, want[1]] != got[:2]:
        return False
    if KIND_OF[dtype] not in "fc":
        return want[2] == got[2]
    return bool(np.all(near(dtype, want[2], got[2])))


def near(dtype: str, want: list, got: list) -> np.ndarray:
    tolerance = TOLERANCE[dtype]
    found = np.isclose(want, got, tolerance, tolerance / 3, equal_nan=True)
    if KIND_OF[dtype] == "c":  # which part of a complex number is infinite, and which nan, is not agreed on
        infinite = [~np.isfinite(numbers).reshape(-1, 2).all(1) for numbers in (want, got)]
        found |= np.repeat(infinite[0] & infinite[1], 2)
    return found


# ---- Cases ---------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    row: str
    dtype: str
    form: Form
    x64: bool = True

    def __str__(self) -> str:
        return f"{self.row}, {self.dtype}, {' '.join(self.form)}" + ("" if self.x64 else ", 64-bit types off")

    @property
    def asked(self) -> Case:
        """The case that TensorFlow is asked."""
        if self.x64:
            return self
        row = " ".join(NARROW.get(word, word) for word in self.row.split())  # cast to int64
        return Case(row, *narrow(self.dtype, self.form))

    @property
    def expected(self) -> Any:
        asked = self.asked
        return kept()["outcomes"][asked.row][asked.dtype][" ".join(asked.form)]


class Compared(NamedTuple):
    case: Case
    want: Any
    got: Any
    error: BaseException | None

    @property
    def agrees(self) -> bool:
        return agrees(self.want, self.got, self.error, not self.case.x64)

    @property
    def difference(self) -> Difference | None:
        """The deliberate difference that this is, if it is one."""
        return next((one for one in DIFFERENCES if one.is_this(self)), None)

    def __str__(self) -> str:
        raised = f" ({str(self.error)[:150]})" if self.error else ""
        return f"{self.case}\n    TensorFlow {self.want}\n    tapejax    {rounded(self.got)}{raised}"


def cases(rows: Iterable[str] = (), x64: bool = True) -> Iterator[Case]:
    for name in rows or ROWS:
        for dtype in DTYPES:
            for form in dict.fromkeys(forms(ROWS[name], dtype)):
                yield Case(name, dtype, form, x64)


def asked(rows: Iterable[str]) -> list[Case]:
    """All that TensorFlow is asked for both modes."""
    return list(dict.fromkeys(case.asked for x64 in (True, False) for case in cases(rows, x64)))


def compare(case: Case) -> Compared:
    import tapejax

    with quiet(), jax.enable_x64(case.x64), warnings.catch_warnings():
        warnings.simplefilter("ignore", tapejax.errors.NarrowingWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, where it divides by itself
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX's, of complex numbers that are cast to floats
        return Compared(case, case.expected, *outcome(tapejax, *case[:3]))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """That an integer is watched is logged; here it is no news."""
    loggers = [logging.getLogger(name) for name in ("tensorflow", "tapejax")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


# ---- What differs on purpose ---------------------------------------------------------------------------------------


class Difference(NamedTuple):
    reason: str
    witness: Case  # one of the cases: while it differs, the difference is there
    is_this: Callable[[Compared], bool]


DIFFERENCES: list[Difference] = []


def differs(reason: str, witness: str, *rows: str, only: Callable[[Compared], bool] = lambda found: True) -> None:
    """A deliberate difference of some rows, by default of all. `witness` is ``row, dtype, form``."""
    name, dtype, form, *mode = witness.split(", ")
    named = set(rows)
    assert named <= set(ROWS), named - set(ROWS)

    def is_this(found: Compared) -> bool:
        return (not named or found.case.row in named) and only(found)

    DIFFERENCES.append(Difference(reason, Case(name, dtype, tuple(form.split()), not mode), is_this))


def refused(outcome: Any) -> bool:
    return isinstance(outcome, str)


def gradients(outcome: Any) -> Any:
    return outcome[1] if not refused(outcome) and len(outcome) > 1 else None


def only_gradients(found: Compared) -> bool:
    """Whether the values agree."""
    return not (refused(found.want) or refused(found.got)) and agrees(
        found.want[:1], found.got[:1], None, not found.case.x64
    )


def with_nan_for_minus_inf(found: Compared) -> Compared:
    """For JAX 0.12's digamma of 0, and only there."""
    if jax.__version_info__ < (0, 12) or refused(found.got):
        return found

    def replaced(part: Any) -> Any:
        if isinstance(part, (list, tuple)):
            return [*map(replaced, part)]
        return np.nan if isinstance(part, float) and part == -np.inf else part

    return found._replace(got=replaced(found.got))


def has_constant(form: Form) -> bool:
    """Whether an operand has no dtype that it keeps: a number, a list, a NumPy value."""
    return any(spec.partition(":")[0] not in ("t", "v", "e") for spec in form)


differs(
    "a dtype for which TensorFlow has no kernel on the CPU: computed where JAX computes it",
    "math.lgamma, bfloat16, t",
    only=lambda found: (
        found.want in ("NotFoundError", "UnimplementedError")
        or gradients(found.want) in ("InvalidArgumentError", "NotFoundError")
    ),
)
differs(
    "TensorFlow fails by accident, with an error that is about its own code: computed, or refused with another error",
    "nn.moments, float32, l",
    only=lambda found: (
        found.want in ("AssertionError", "AttributeError", "SystemError", "ResourceExhaustedError")
        or "ndarray" in str(found.want[:1])
    ),
)
differs(
    "a number, list or NumPy value beside a tensor takes the tensor's dtype; some of TensorFlow's functions refuse it",
    "math.add, float32, 2 t",
    only=lambda found: refused(found.want) and not refused(found.got) and has_constant(found.case.form),
)
differs(
    "an operation without a gradient in TensorFlow, or whose result is bool: None, or JAX's gradient",
    "math.is_nan, float32, t",
    only=lambda found: gradients(found.want) == "LookupError",
)
differs(
    "integers of every width serve as indices, ids, labels and numbers to count",
    "math.segment_sum ids, uint8, t",
    *(row for row in ROWS if row.endswith((" ids", " number", " labels", " targets", " lengths"))),
    *("getitem index", "getitem slice", "math.invert_permutation", "math.bincount"),
    only=lambda found: KIND_OF[found.case.dtype] in "iu" and refused(found.want) and not refused(found.got),
)
differs(
    "while 64-bit types are off, an integer beyond 32 bits is an error",
    "math.abs, int64, e, 64-bit types off",
    only=lambda found: not found.case.x64 and type(found.error) is ValueError,
)
differs(
    "the true derivative at zero, NaN where the argument is",
    "math.bessel_i1, float32, e",
    "math.bessel_i1",
    "math.bessel_i1e",
    only=only_gradients,
)
differs("erf of infinity is 1, not NaN", "math.erf, float64, e", "math.erf")
differs(
    "TensorFlow's gradient is not conjugated; cumprod's is lost at zero",
    "nn.silu, complex64, t",
    *("nn.silu", "math.cumprod", "math.xlogy", "math.xlog1py", "math.xdivy", "math.multiply_no_nan"),
    *("math.segment_prod", "math.unsorted_segment_prod"),
    only=only_gradients,
)
differs(
    "TensorFlow rounds constants of leaky_relu and gelu to float32",
    "nn.leaky_relu, float64, t",
    "nn.leaky_relu",
    "nn.gelu",
)
differs(
    "the transposed convolution of integers is refused",
    "nn.conv2d_transpose, int32, t t",
    *(row for row in ROWS if "transpose" in row),
)
differs(
    "the real part of a complex number is not taken silently",
    "int of a scalar, complex64, t",
    "int of a scalar",
    "float of a scalar",
)
differs(
    "a bool times another dtype is refused: TensorFlow casts both to int32",
    "operator mul, bool, t 2",
    "operator mul",
    only=lambda found: found.case.dtype == "bool",
)
differs(
    "the derivative at infinity is NaN, as JAX's is: 0 in TensorFlow; and in JAX 0.12 the value at 0 is -inf: NaN in TensorFlow",
    "math.digamma, float32, e",
    *("math.digamma", "math.lbeta"),
    only=lambda found: (
        # lbeta's derivative at 0 is -digamma(0) with the sum's, of which the processor decides whether XLA has NaN or -inf
        with_nan_for_minus_inf(found).agrees
        if found.case.row == "math.lbeta"
        else set(found.case.form) == {"e"} and only_gradients(with_nan_for_minus_inf(found))
    ),
)
differs(
    "a NumPy value, list or number of a dtype that the function does not take, beside no tensor: TensorFlow casts it silently",
    "math.logical_and, int32, n n",
    *("math.logical_and", "math.logical_or", "math.logical_xor", "math.in_top_k targets"),
    *("math.invert_permutation", "nn.batch_normalization"),
    *("nn.local_response_normalization", "nn.max_pool", "nn.max_pool2d"),
    *(row for row in ROWS if row.endswith((" number", " lengths")) or row.startswith("signal.")),
    *("unravel_index ids", "linalg.matrix_rank"),
    only=lambda found: all(spec.partition(":")[0] not in ("t", "v", "e") for spec in found.case.form),
)
differs(
    "a NumPy value beside tensors takes their dtype first: what does not fit it is refused, and so is a wrong shape",
    "clip_by_value, int8, 2 t t",
    *("clip_by_value", "nn.batch_normalization"),
    "nn.weighted_cross_entropy_with_logits",
    only=lambda found: refused(found.got) and has_constant(found.case.form),
)
differs(
    "the mean of no complex numbers is NaN, as that of no floats",
    "math.reduce_mean, complex64, e",
    *("math.reduce_mean", "nn.moments"),
    only=lambda found: KIND_OF[found.case.dtype] == "c" and set(found.case.form) == {"e"},
)
differs(
    "a complex 0 to the power of 0 is 1, and its slope that of the power: NaN in TensorFlow",
    "math.pow, complex64, e e",
    *("math.pow", "operator pow"),
    only=lambda found: KIND_OF[found.case.dtype] == "c",
)
differs(
    "the incomplete gamma functions of order 0 are their limits, 1 and 0",
    "math.igamma, float32, 0 t",
    *("math.igamma", "math.igammac"),
    only=lambda found: found.case.form[0] == "0",
)
differs(
    "an order of 2**40 is rounded or overflows in another place",
    "math.zeta, float32, 1099511627776 t",
    *("math.zeta", "math.polygamma"),
    only=lambda found: found.case.form[0] == str(2**40),
)
differs(
    "the derivative where an operand is NaN or infinite, or at a pole, is JAX's",
    "math.maximum, float32, e e",
    *("math.maximum", "math.minimum", "math.floormod", "operator mod", "clip_by_value"),
    *("nn.softsign", "math.rsqrt", "math.erfcinv", "math.ndtri"),
    only=lambda found: set(found.case.form) == {"e"} and only_gradients(found),
)
differs(
    "the derivative of zeta for an order at or below its pole, 1, is JAX's",
    "math.zeta, float32, True t",
    "math.zeta",
    only=lambda found: found.case.form[0] in ("True", "0", "-1") and only_gradients(found),
)
differs(
    "numbers of 16 bits are rounded at other places",
    "nn.local_response_normalization, float16, t",
    *("nn.local_response_normalization", "nn.batch_normalization"),
    only=lambda found: found.case.dtype == "float16",
)
differs(
    "a bool is a length",
    "sequence_mask lengths, bool, t",
    "sequence_mask lengths",
    only=lambda found: refused(found.want),
)
differs(
    "a bool as an index is refused with another error",
    "getitem index, bool, v",
    "getitem index",
    only=lambda found: refused(found.want) and refused(found.got) and found.case.dtype == "bool",
)
differs(
    "a product of matrices of bfloat16 and float32 is refused, as of all other pairs",
    "operator matmul, bfloat16, t t:float32",
    "operator matmul",
    only=lambda found: found.case.form in (("t", "t:float32"), ("t", "t:float64")),
)
differs(
    "what only moves elements about takes every dtype",
    "signal.frame, bool, t",
    "signal.frame",
    only=lambda found: refused(found.want) and not refused(found.got),
)
differs(
    "decompositions of 16-bit floats: LAPACK has none, what needs none is computed",
    "linalg.inv, bfloat16, t",
    *(row for row in ROWS if row.startswith(("linalg.", "signal."))),
    only=lambda found: (
        found.case.dtype in ("float16", "bfloat16")
        and (refused(found.want) or refused(found.got) or refused(gradients(found.got)))
    ),
)
differs(
    "a large integer type's limits, which a float has not, overflow in TensorFlow",
    "saturate_cast to float32, int64, t",
    *("saturate_cast to float32", "saturate_cast to float16"),
    only=lambda found: found.case.dtype in ("int64", "uint64"),
)
differs(
    "rows of a Variable of integers carry no gradient",
    "gather, int32, v",
    "gather",
    only=lambda found: KIND_OF[found.case.dtype] in "iub" and only_gradients(found),
)
differs(
    "complex matrices, too",
    "linalg.pinv, complex64, t",
    *("linalg.pinv", "linalg.matrix_rank"),
    only=lambda found: KIND_OF[found.case.dtype] == "c" and refused(found.want),
)
differs(
    "places in an order carry no gradient: TensorFlow's is zeros",
    "argsort, float32, t",
    "argsort",
    only=only_gradients,
)


# ---- TensorFlow's side ---------------------------------------------------------------------------------------------


def write(rows: list[str]) -> None:
    import tensorflow

    outcomes: dict = collections.defaultdict(lambda: collections.defaultdict(dict))
    if len(rows) < len(ROWS):
        outcomes |= {row: of_row for row, of_row in kept()["outcomes"].items() if row in ROWS and row not in rows}
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in asked(rows):
            outcomes[case.row][case.dtype][" ".join(case.form)] = rounded(outcome(tensorflow, *case[:3])[0])
    text = json.dumps({"tensorflow": tensorflow.__version__, "outcomes": outcomes}, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(asked(rows)):,} cases, {FILE.stat().st_size:,} bytes")


@functools.cache
def kept() -> dict:
    return json.loads(lzma.decompress(FILE.read_bytes()))


# ---- By hand -------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="compute TensorFlow's outcomes anew")
    parser.add_argument("--rows", default="*", help="a pattern: only rows that match it")
    parser.add_argument("--mode", choices=["on", "off", "both"], default="both", help="64-bit types")
    options = parser.parse_args()
    rows = fnmatch.filter(ROWS, options.rows)
    if options.write:
        return write(rows)
    count: collections.Counter = collections.Counter()
    for x64 in {"on": [True], "off": [False], "both": [True, False]}[options.mode]:
        for case in cases(rows, x64):
            found = compare(case)
            difference = None if found.agrees else found.difference
            what = "agree" if found.agrees else "deliberate" if difference else "differ"
            count[what] += 1
            if difference:
                count["  " + difference.reason] += 1
            if what == "differ":
                print(found)
    for what, number in count.items():
        print(f"{number:8,} {what}")


if __name__ == "__main__":
    main()
