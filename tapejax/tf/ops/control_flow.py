"""TensorFlow's control flow: Python where values are known, JAX's ``lax`` where a function is traced.

On values the branches and bodies run as ordinary Python, once for each element or iteration, and the tape records what they
do. Under ``jax.jit`` and `tapejax.function` they are traced once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.fence import Tracer
from ...jaxprs.types import Pytree
from ...tape import active
from ..values import nest, reading
from ..values.conversion import convert_to_tensor, is_tensor, raw
from ..values.dtypes import requested
from ..values.errors import InvalidArgumentError, PythonNeeded
from ..values.staging import Threaded, row_type
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, IntLike, Nest, TensorLike
from . import loops
from .array import repeat, stack
from .random import each_row
from .table import accepting
from .tensor_array import TensorArray


def _traced(*values: object) -> bool:
    return any(isinstance(raw(x), Tracer) for x in values if is_tensor(x))


def _value(x: TensorLike) -> Tensor | TensorArray:
    return x if isinstance(x, TensorArray) else convert_to_tensor(x)


def _arrays(structure: Nest) -> list[Array]:
    leaves = nest.flatten(structure)
    return [array for x in leaves for array in (x.arrays() if isinstance(x, TensorArray) else (raw(x),))]


def _tensors(structure: Nest, arrays: Sequence[Array]) -> Nest:
    left = iter(arrays)

    def filled(x: Nest) -> Tensor | TensorArray | None:
        if x is None:  # as a branch may return it
            return None
        return x.holding(left) if isinstance(x, TensorArray) else Tensor(next(left))

    return nest.map_structure(filled, structure)


def _outline(structure: Nest) -> Nest:
    """`structure` with numbers for its tensors, which would keep the trace alive that made them."""
    return nest.map_structure(lambda x: x if x is None or isinstance(x, TensorArray) else 0, structure)


def cond(
    pred: TensorLike, true_fn: Callable | None = None, false_fn: Callable | None = None, name: str | None = None
) -> Nest:
    """`true_fn()` if `pred` is true, else `false_fn()`.

    On a known `pred` one of them runs, as Python, and may return anything. On a traced one both are traced
    (`jax.lax.cond`), and must return tensors of the same structure, shapes and dtypes.

    Raises:
      TypeError: a branch is not callable, or traced branches do not agree.

    >>> import tapejax as tf
    >>> print(tf.cond(tf.constant(1.0) < 2.0, lambda: tf.constant("yes" == "yes"), lambda: tf.constant(False)).numpy())
    True
    """
    _require_callable(("true_fn", true_fn), ("false_fn", false_fn))
    assert true_fn is not None and false_fn is not None
    if not _traced(pred):
        return true_fn() if bool(pred) else false_fn()
    return _select(lambda branches: jax.lax.cond(raw(pred), *branches), [true_fn, false_fn])


# Bodies that are traced may assign to variables: what they assign is carried through the operation by `Threaded`.


def _select(choose: Callable, branches: Sequence[Callable]) -> Nest:
    structures: list[Nest] = []
    shapes: list[tuple] = []

    def flat(branch: Callable) -> Callable:
        def traced() -> list[Array]:
            result = branch()
            structures.append(_outline(result))
            arrays = _arrays([x for x in nest.flatten(result) if x is not None])
            shapes.append(tuple([x.shape for x in arrays]))
            return arrays

        return traced

    threaded = Threaded(*[(flat(branch), ()) for branch in branches])
    if len({len(each) for each in shapes}) == 1 and len(set(shapes)) > 1:
        raise PythonNeeded(f"the branches return different shapes, {shapes}: JAX's programs have fixed shapes")
    arrays, state = choose([partial(threaded, i, threaded.state) for i in range(len(branches))])
    nest.assert_same_structure(structures[0], structures[-1])
    if len({tuple(x is None for x in nest.flatten(structure)) for structure in structures}) > 1:
        raise TypeError("branches must return None in the same places, or not at all")
    threaded.finish(state)
    return _tensors(structures[0], arrays)


def switch_case(
    branch_index: TensorLike, branch_fns: Sequence | dict, default: Callable | None = None, name: str = "switch_case"
) -> Nest:
    """The branch of that number; `default`, or else the last one, for a number out of range.

    Args:
      branch_index: an integer tensor.
      branch_fns: functions without arguments: a list, or a dict or list of pairs with their numbers.
      default: the function for any other number.

    Raises:
      TypeError: what should be a function is none.
      ValueError: there are no functions, or they are not numbered from 0 without a gap.

    >>> import tapejax as tf
    >>> print(tf.switch_case(tf.constant(1), [lambda: tf.constant(1.0), lambda: tf.constant(2.0)]).numpy())
    2.0
    """
    numbered = _numbered(branch_fns)
    _require_callable(*((f"branch_fns[{i}]", fn) for i, fn in numbered.items()))
    if default is not None:
        _require_callable(("default", default))
    otherwise = default or numbered[max(numbered)]
    if not _traced(branch_index):
        return numbered.get(int(branch_index), otherwise)()
    count = max(numbered) + 1
    branches = [numbered.get(i, otherwise) for i in range(count)] + [otherwise]
    index = raw(branch_index)
    index = jnp.where((index < 0) | (index > count), count, index)
    return _select(lambda fns: jax.lax.switch(index, fns), branches)


def _numbered(branch_fns: Sequence | dict) -> dict[int, Callable]:
    if not isinstance(branch_fns, (list, tuple, dict)):
        raise TypeError(f"'branch_fns' must be a list, tuple or dict of functions, got {branch_fns!r}.")
    if not branch_fns:
        raise ValueError("Must provide at least one item in 'branch_fns'.")
    items = branch_fns.items() if isinstance(branch_fns, dict) else enumerate(branch_fns)
    pairs = [x if isinstance(x, tuple) else (i, x) for i, x in items]
    if sorted(i for i, _ in pairs) != list(range(len(pairs))):
        raise ValueError(f"branch_fns must be numbered from 0 on without a gap, got {[i for i, _ in pairs]}.")
    return dict(pairs)


def _require_callable(*named: tuple[str, object]) -> None:
    for name, fn in named:
        if not callable(fn):
            raise TypeError(f"'{name}' must be callable, got {fn!r}.")


def case(pred_fn_pairs, default: Callable | None = None, exclusive=False, strict=False, name="case") -> Nest:
    """The function of the first true condition, else `default`.

    Raises:
      TypeError: what should be a function is none.
      InvalidArgumentError: no condition is true and there is no default, or with `exclusive` several are.
    """
    if not isinstance(pred_fn_pairs, (list, tuple, dict)):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple or dict of pairs, got {pred_fn_pairs!r}.")
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    _require_callable(*(("fn", fn) for _, fn in pairs), *([("default", default)] if default is not None else []))
    if not _traced(*(pred for pred, _ in pairs)):
        chosen = [fn for pred, fn in pairs if bool(pred)]
        if exclusive and len(chosen) > 1:
            raise InvalidArgumentError(f"exclusive=True, but {len(chosen)} of the conditions are true")
        if not chosen and default is None:
            raise InvalidArgumentError("None of the conditions is true, and there is no default")
        return chosen[0]() if chosen else default()  # type: ignore[misc]
    result = default or pairs[-1][1]
    for pred, fn in reversed(pairs):
        result = lambda pred=pred, fn=fn, rest=result: cond(pred, fn, rest)  # noqa: E731
    return result()


_OPTIONS = {"parallel_iterations": 10, "back_prop": True, "swap_memory": False}


@accepting("parallel_iterations back_prop swap_memory maximum_iterations name", **_OPTIONS)
def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Nest,
    shape_invariants: object = None,
    maximum_iterations: IntLike | None = None,
) -> Nest:
    """`body` over and over while `cond` holds, as Python on known values; both take the loop variables one by one.

    In a `function` it can be differentiated backward, for which states are computed anew (`loops`). Under ``jax.jit`` and its
    kin it is a ``lax.while_loop``, which goes forward only; with `maximum_iterations` it is a ``lax.scan`` of that length,
    which can be differentiated backward too.

    Args:
      cond: takes the loop variables and returns a boolean scalar.
      body: takes them and returns them anew, in the same structure.
      loop_vars: a list or tuple of structures of tensors.
      shape_invariants: if given, shapes may change: a `function` then runs as Python.
      parallel_iterations, back_prop, swap_memory: taken for TensorFlow's sake.
      maximum_iterations: an upper bound.

    Raises:
      TypeError: `cond` or `body` is not callable.
      ValueError: there are no loop variables, or `body` returns another structure.

    >>> import tapejax as tf
    >>> i, x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (tf.constant(0), tf.constant(1.0)))
    >>> print(i.numpy(), x.numpy())
    3 8.0
    """
    _require_callable(("cond", cond), ("body", body))
    if not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    single = len(loop_vars) == 1

    def step(current: Nest) -> Nest:
        result = body(*current)
        if single and not (isinstance(result, (list, tuple)) and len(result) == 1):
            result = [result]
        # the one may be a list, the other a tuple
        nest.assert_same_structure(list(current), list(result) if isinstance(result, (list, tuple)) else result)
        return result

    if not active.staging():
        count = 0
        # Python's numbers stay what they are until the end, as in TensorFlow: they take the dtype of what stands beside them.
        while (maximum_iterations is None or count < int(maximum_iterations)) and bool(cond(*loop_vars)):
            loop_vars = step(loop_vars)
            count += 1
        return nest.map_structure(_value, loop_vars)

    variables = nest.map_structure(_value, loop_vars)

    def flat(*arrays: Array) -> list[Array]:
        after = nest.map_structure(_value, step(_tensors(variables, arrays)))
        leaves, new_arrays = nest.flatten(after), _arrays(after)
        if len(leaves) == len(new_arrays) == len(arrays):  # else a TensorArray was not written before
            for x, old, new in zip(leaves, arrays, new_arrays, strict=True):
                if old.shape != new.shape and (shape_invariants is not None or isinstance(x, TensorArray)):
                    text = f"a loop variable of shape {old.shape} has shape {new.shape} after an iteration"
                    raise PythonNeeded(f"{text}: JAX's programs have fixed shapes")
        return new_arrays

    start = _arrays(variables)
    if any(isinstance(x, TensorArray) and not x.arrays() for x in nest.flatten(variables)):
        # The first trace is only for the shapes of elements, which the body's writes determine.
        if reading.context.capture is None:
            jax.eval_shape(flat, *start)
        else:
            Threaded((flat, start))
        start = _arrays(variables)
    threaded = Threaded((flat, start), (lambda *arrays: [raw(cond(*_tensors(variables, arrays)))], start))
    kind = jax.lax.while_loop if reading.context.capture is None else loops.while_loop
    last, state = run_loop(threaded, start, None, True, maximum_iterations, kind)
    threaded.finish(state)
    return _tensors(variables, last)


def run_loop(
    threaded: Threaded,
    start: list[Array],
    rows: list[Array] | None,
    tested: bool,
    limit: IntLike | None = None,
    loop: Callable = jax.lax.while_loop,
) -> tuple[list[Array], list[Array]]:
    """Runs a loop's body: over `rows`, at most `limit` times, while its test holds. Returns its arrays and the state.

    The first body of `threaded` takes a row of each array in `rows`, and the arrays that `start` gives at first, and returns new
    ones; the second, if the loop is `tested`, takes the arrays and says whether to go on.
    """

    def holds(carry: Pytree) -> Array:
        return threaded(1, carry[1], *carry[0])[0][0]

    def advance(carry: Pytree, *row: Array) -> Pytree:
        return threaded(0, carry[1], *row, *carry[0])

    def step(carry: Pytree, row: Pytree) -> Pytree:
        rows = row or ()
        if not tested:
            return advance(carry, *rows), None
        return jax.lax.cond(holds(carry), advance, lambda carry, *_: carry, carry, *rows), None

    if rows is None and limit is None:
        return loop(holds, advance, (start, threaded.state))
    length = None if limit is None else int(limit)
    return jax.lax.scan(step, (start, threaded.state), rows, length=length)[0]


def _rows(elems: Nest, argument: str = "elems", broadcast: bool = False) -> tuple[list[Tensor], int]:
    """The tensors in `elems`, and how many rows they have. With `broadcast`, one row goes with each row of the others."""
    arrays = nest.flatten(elems)
    if not arrays:
        raise ValueError(f"'{argument}' must hold at least one tensor.")
    tensors = [convert_to_tensor(x) for x in arrays]
    for x in tensors:
        if x._array.ndim == 0:
            raise ValueError(f"Elements in {argument} must be 1+ dimensional Tensors, not scalars")
    counts = {x._array.shape[0] for x in tensors}
    if broadcast and len(counts) == 2 and 1 in counts and 0 not in counts:
        counts.discard(1)
        (count,) = counts
        return [x if x._array.shape[0] == count else repeat(x, count, 0) for x in tensors], count
    if len(counts) > 1:
        raise ValueError(f"The tensors in {argument} have different numbers of rows: {sorted(counts)}.")
    return tensors, counts.pop()


def _row(elems: Nest, tensors: Sequence[Tensor], i: int) -> Nest:
    return nest.pack_sequence_as(elems, [x[i] for x in tensors])


def _stacked(results: Sequence[Nest]) -> Nest:
    columns = zip(*(nest.flatten(result) for result in results), strict=True)
    return nest.pack_sequence_as(results[0], [stack(list(column)) for column in columns])


@accepting(
    "parallel_iterations back_prop swap_memory infer_shape name fn_output_signature",
    **_OPTIONS | {"parallel_iterations": None, "infer_shape": True},
)
def map_fn(fn: Callable, elems: Nest, dtype: DTypeLike | Nest = None, fn_output_signature: Nest = None) -> Nest:
    """`fn` of each row of `elems`, stacked: as Python, row by row, on known values; `jax.lax.map` where traced.

    Args:
      fn: takes a row (structured as `elems`) and returns a tensor or a structure of them.
      elems: tensors with the same number of rows, or a structure of them.
      fn_output_signature (or dtype): needed if `fn` returns another structure or dtype than `elems` has.

    Raises:
      ValueError: an element is a scalar, or `fn` returns another structure than was announced.
      InvalidArgumentError: `fn` returns another dtype than was announced.

    >>> import tapejax as tf
    >>> print(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0])).numpy())
    [1. 4.]
    """
    tensors, count = _rows(elems)
    signature = fn_output_signature if fn_output_signature is not None else dtype
    expected = nest.pack_sequence_as(elems, [x.dtype for x in tensors]) if signature is None else signature

    def checked(row: Nest) -> Nest:
        result = nest.map_structure(convert_to_tensor, fn(row))
        if nest.is_nested(expected) or nest.is_nested(result):
            nest.assert_same_structure(expected, result)
        for want, x in zip(nest.flatten(expected), nest.flatten(result), strict=True):
            announced = requested(getattr(want, "dtype", want))
            if x.dtype != announced:
                dtype = x.dtype.name
                raise InvalidArgumentError(f"fn returned {dtype}, not {announced}: give fn_output_signature=tf.{dtype}")
        return result

    if count and not active.staging():
        return _stacked([checked(_row(elems, tensors, i)) for i in range(count)])
    structures: list[Nest] = []

    def flat(*arrays: Array) -> list[Array]:
        result = checked(_tensors(elems, arrays))
        structures.append(_outline(result))
        return _arrays(result)

    rows = [x._array for x in tensors]
    threaded = Threaded((flat, [row_type(x) for x in rows]))
    state, arrays = jax.lax.scan(lambda state, row: threaded(0, state, *row)[::-1], threaded.state, rows)
    threaded.finish(state)
    return _tensors(structures[0], arrays)


def vectorized_map(fn: Callable, elems: Nest, fallback_to_while_loop: bool = True, warn: bool = True) -> Nest:
    """`fn` of each row of `elems`, all rows at once: `jax.vmap`. `fn` runs once, on tensors whose values are not known.

    >>> import tapejax as tf
    >>> print(tf.vectorized_map(lambda x: x * tf.reduce_sum(x), tf.ones((3, 2))).numpy().tolist())
    [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]
    """
    tensors, count = _rows(elems, broadcast=True)
    structures: list[Nest] = []

    def flat(row: Array, arrays: Sequence[Array]) -> list[Array]:
        with each_row(row):  # an outer tape may compute a gradient here, of values that are tracers
            around = active.active_recordings()
            result = active.continuing(around, reading.run, True, fn, _tensors(elems, arrays))
        structures.append(_outline(result))
        return _arrays(result)

    arrays = jax.vmap(flat)(np.arange(count, dtype=np.uint32), [x._array for x in tensors])
    return _tensors(structures[0], arrays) if arrays else structures[0]


def _folded(fn: Callable, elems: Nest, initializer: Nest, reverse: bool, every: bool) -> Nest:
    """The accumulated value: the last one, or with `every` all of them, stacked in the order of the elements."""
    tensors, count = _rows(elems)
    order = list(range(count))[:: -1 if reverse else 1]
    # TensorFlow's eager folds pass Python's numbers on unchanged: they take the dtype of the other operand.
    convert = _value if every or active.staging() else lambda x: x
    if initializer is not None:
        value = nest.map_structure(convert, initializer)
        seen = []
    elif count:
        value = _row(elems, tensors, order.pop(0))
        seen = [value]
    else:
        raise ValueError("'elems' has no rows and there is no 'initializer'.")
    if order and active.staging():
        return _scanned(fn, elems, tensors, value, seen, order, reverse, every)
    for i in order:
        result = nest.map_structure(convert, fn(value, _row(elems, tensors, i)))
        if initializer is not None or nest.is_nested(result):
            nest.assert_same_structure(value, result)
        value = result
        seen.append(value)
    if every and not seen:
        return nest.map_structure(lambda x: Tensor(jnp.zeros((0, *x.shape), x._array.dtype)), value)
    return _stacked(seen[::-1] if reverse else seen) if every else nest.map_structure(_value, value)


def _scanned(fn, elems, tensors, value, seen, order, reverse, every):
    start = _arrays(value)

    def body(*arrays: Array) -> list[Array]:
        result = fn(_tensors(value, arrays[: len(start)]), _tensors(elems, arrays[len(start) :]))
        nest.assert_same_structure(value, result)
        return _arrays(result)

    def step(carry: Pytree, row: Sequence[Array]) -> Pytree:
        arrays, state = threaded(0, carry[1], *carry[0], *row)
        return (arrays, state), arrays

    rows = [x._array[min(order) : max(order) + 1] for x in tensors]
    threaded = Threaded((body, [*start, *[row_type(x) for x in rows]]))
    (last, state), all_of_them = jax.lax.scan(step, (start, threaded.state), rows, reverse=reverse)
    threaded.finish(state)
    if not every:
        return _tensors(value, last)
    if seen:
        first = [raw(x)[None] for x in nest.flatten(seen[0])]
        parts = zip(first, all_of_them, strict=True)
        all_of_them = [jnp.concatenate([b, a] if reverse else [a, b]) for a, b in parts]
    return _tensors(value, all_of_them)


@accepting("parallel_iterations back_prop swap_memory infer_shape reverse name", **_OPTIONS, infer_shape=True)
def scan(fn: Callable, elems: Nest, initializer: Nest = None, reverse: bool = False) -> Nest:
    """``fn(accumulated, row)`` along the rows of `elems`: every accumulated value, stacked.

    Without an `initializer` the first row is the first value. As Python on known values; `jax.lax.scan` where traced.

    >>> import tapejax as tf
    >>> print(tf.scan(lambda a, x: a + x, tf.constant([1.0, 2.0, 3.0])).numpy())
    [1. 3. 6.]
    """
    return _folded(fn, elems, initializer, reverse, every=True)


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None) -> Nest:
    """``fn(accumulated, row)`` along the rows of `elems`, from the first: the last value. See `scan`."""
    return _folded(fn, elems, initializer, reverse=False, every=False)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None) -> Nest:
    """``fn(accumulated, row)`` along the rows of `elems`, from the last: the last value. See `scan`."""
    return _folded(fn, elems, initializer, reverse=True, every=False)
