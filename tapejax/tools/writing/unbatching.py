"""The program of one example, of a program that `jax.vmap` made: its equations without the axis of the batch.

It is a guess, which the caller verifies: `jax.vmap` of the program that is found must give the program that was recorded.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax

from ...jaxprs import contents
from ...jaxprs.evaluate import evaluate, needed
from ...jaxprs.fence import at_source
from ...jaxprs.types import Equation, JaxProgram, Value


class Unclear(Exception):
    """It cannot be said what an equation does to one example."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Unbatched:
    """What a value is for one example: the value itself where it has no axis for the batch.

    `plain`: what it was before axes of length one were put in, or it was repeated; `dims`: where the axes of that are in it.
    `numbers`: those that it was joined of, as a place in an array is.
    """

    x: Value
    axis: int | None = dataclasses.field(default=None, metadata={"static": True})
    plain: Value = None
    dims: tuple[int, ...] = dataclasses.field(default=(), metadata={"static": True})
    numbers: tuple[Value, ...] = ()

    @property
    def place(self) -> tuple[Value, ...]:
        """The numbers that it may be a place in an array by."""
        whole = (
            self.plain is not None
            and self.plain.ndim == 0
            and jax.numpy.issubdtype(self.plain.dtype, jax.numpy.integer)
        )
        return (self.plain,) if whole else self.numbers


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Unsure:
    """What may be one of several for one example; at each use it is asked which."""

    rows: list[Unbatched]
    choose: Callable[[], int] = dataclasses.field(metadata={"static": True})


Rule: TypeAlias = Callable[[Equation, list[Unbatched]], list[Unbatched]]


def unbatched(
    program: JaxProgram, rows: Sequence[Unbatched | Unsure], results: Sequence[int] = (), to: int = 0
) -> tuple[JaxProgram, list[Unbatched]]:
    """What a program does to one example, as a program whose inputs are the leaves of `rows`; and what the leaves of its
    results are.

    Args:
      program: what was run for the batch.
      rows: the inputs for one example.
      results: of these results `to` is the axis of the batch, also where they do not depend on it.
      to: the axis.

    Raises:
      Unclear: for an equation that has no rule here. What has no meaning for one example raises anything.
    """

    return jax.make_jaxpr(lambda *rows: _one(program, rows, results, to), return_shape=True)(*rows)


def _one(
    program: JaxProgram, rows: Sequence[Unbatched | Unsure], results: Sequence[int] = (), to: int = 0
) -> list[Unbatched]:
    outs = _run(program, rows)
    outs = [_at(out, to) if i in results and out.axis is None else out for i, out in enumerate(outs)]
    places = [() if i in results else out.place for i, out in enumerate(outs)]
    return [
        out if out.axis is None else Unbatched(out.x, out.axis, numbers=place)
        for out, place in zip(outs, places, strict=True)
    ]


def _run(program: JaxProgram, rows: Sequence[Unbatched | Unsure]) -> list[Unbatched]:
    def equation(eqn: Equation, given: Sequence[Any]) -> list[Unbatched]:
        with at_source(eqn):
            return _equation(eqn, list(map(_row, given)))

    return list(map(_row, evaluate(program, rows, equation)))


def _row(x: Any) -> Unbatched:
    if isinstance(x, Unsure):
        return x.rows[x.choose()]
    return x if isinstance(x, Unbatched) else Unbatched(x)


def _equation(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    name = eqn.primitive.name
    if name in contents.JIT:
        return _run(eqn.params["jaxpr"], rows)
    if name == "broadcast_in_dim":
        return [_broadcast(eqn, rows[0])]
    if all(row.axis is None for row in rows):
        return _joined(eqn, [Unbatched(x) for x in _bound(eqn, [row.x for row in rows])], rows)
    if eqn.effects or name not in _RULES:
        raise Unclear(name)
    return _RULES[name](eqn, rows)


def _bound(eqn: Equation, xs: Sequence[Value], **params: Any) -> list[Value]:
    outs = eqn.primitive.bind(*xs, **eqn.primitive.get_bind_params({**eqn.params, **params}))
    return list(outs) if eqn.primitive.multiple_results else [outs]


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _shifted(axes: Sequence[int], axis: int) -> tuple[int, ...]:
    """`axes` of an array, in the array without `axis`."""
    return tuple([int(a) - (a > axis) for a in axes if a != axis])


def _at(row: Unbatched, axis: int) -> Unbatched:
    """A value without a batch that was repeated for it along `axis`, or has an axis of length one there."""
    shape = _without(row.x.shape, axis)
    if row.plain is not None and axis not in row.dims:
        dims = _shifted(row.dims, axis)
        plain = row.plain
        x = plain if plain.shape == shape else jax.lax.broadcast_in_dim(plain, shape, dims)
        return Unbatched(x, axis, plain, dims)
    if row.x.shape[axis] != 1:
        raise Unclear("repeated")
    return Unbatched(jax.lax.squeeze(row.x, (axis,)), axis)


def _broadcast(eqn: Equation, row: Unbatched) -> Unbatched:
    shape, dims = tuple(eqn.params["shape"]), tuple(map(int, eqn.params["broadcast_dimensions"]))
    if row.axis is None:
        (x,) = _bound(eqn, [row.x])
        return Unbatched(x, None, row.x, dims)
    axis = dims[row.axis]
    own, dims = _without(shape, axis), _shifted(_without(dims, row.axis), axis)
    same = own == row.x.shape and dims == tuple(range(len(own)))
    x = row.x if same else jax.lax.broadcast_in_dim(row.x, own, dims)
    return Unbatched(x, axis, row.x, dims)


# ---- rules ----------------------------------------------------------------------------------------------------------


def _elementwise(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    rank = len(eqn.outvars[0].aval.shape)
    axes = {row.axis for row in rows if row.axis is not None}
    (axis,) = axes
    if any(row.axis is not None and row.x.ndim != rank - 1 for row in rows):
        raise Unclear("axes")
    shape = _without(eqn.outvars[0].aval.shape, axis)
    xs = [row.x if row.axis is None and row.x.ndim == 0 else _narrow(row, axis, shape) for row in rows]
    return [Unbatched(x, axis) for x in _bound(eqn, xs)]


def _narrow(row: Unbatched, axis: int, shape: tuple[int, ...]) -> Value:
    """One operand, as it was before it was given the rank of the others."""
    row = _at(row, axis) if row.axis is None else row
    scalar = row.plain is not None and row.plain.ndim == 0 and row.x.shape != shape
    return row.plain if scalar else row.x


def _reduction(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    (row,) = rows
    axis = _moving(row.axis)
    if axis in eqn.params["axes"]:
        raise Unclear("over the batch")
    (x,) = _bound(eqn, [row.x], axes=_shifted(eqn.params["axes"], axis))
    return [Unbatched(x, axis - sum(a < axis for a in eqn.params["axes"]))]


def _along(key: str) -> Rule:
    """A rule for what goes along the axis that a parameter says, or the axes."""

    def rule(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
        axis = next(row.axis for row in rows if row.axis is not None)
        if any(row.axis not in (None, axis) for row in rows):
            raise Unclear("axes")
        given = eqn.params[key]
        along = given if isinstance(given, tuple) else (given,)
        if axis in along:
            raise Unclear("along the batch")
        own = _shifted(along, axis)
        xs = [(_at(row, axis) if row.axis is None else row).x for row in rows]
        bound = _bound(eqn, xs, **{key: own if isinstance(given, tuple) else own[0]})
        return _joined(eqn, [Unbatched(x, axis) for x in bound], rows)

    return rule


def _joined(eqn: Equation, outs: list[Unbatched], rows: list[Unbatched]) -> list[Unbatched]:
    """The results of an equation, with the numbers that it joins, if it joins numbers alone."""
    numbers = tuple([x for row in rows for x in row.place])
    if eqn.primitive.name == "concatenate" and outs[0].x.shape == (len(numbers),):
        outs[0].numbers = numbers
    return outs


def _stack(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    moving, axis = next(row.axis for row in rows if row.axis is not None), eqn.params["axis"]
    if any(row.axis not in (None, moving) for row in rows):
        raise Unclear("axes")
    xs = [(_at(row, moving) if row.axis is None else row).x for row in rows]
    (x,) = _bound(eqn, xs, axis=axis - (axis > moving))
    return [Unbatched(x, moving + (axis <= moving))]


def _unstack(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    moving, axis = _moving(rows[0].axis), eqn.params["axis"]
    if axis == moving:
        raise Unclear("along the batch")
    return [Unbatched(x, moving - (axis < moving)) for x in _bound(eqn, [rows[0].x], axis=axis - (axis > moving))]


def _transpose(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    (row,), order = rows, [*map(int, eqn.params["permutation"])]
    own = _shifted(order, _moving(row.axis))
    x = row.x if own == tuple(range(len(own))) else jax.lax.transpose(row.x, own)
    return [Unbatched(x, order.index(_moving(row.axis)))]


def _reshape(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    (row,), sizes = rows, tuple(eqn.params["new_sizes"])
    if row.axis != 0 or eqn.params["dimensions"] is not None or sizes[:1] != eqn.invars[0].aval.shape[:1]:
        raise Unclear("reshape")
    return [Unbatched(jax.lax.reshape(row.x, sizes[1:]), 0)]


def _squeeze(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    (row,), axis = rows, _moving(rows[0].axis)
    dims = eqn.params["dimensions"]
    if axis in dims:
        raise Unclear("squeeze")
    return [Unbatched(jax.lax.squeeze(row.x, _shifted(dims, axis)), axis - sum(a < axis for a in dims))]


def _slice(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    (row,), p, axis = rows, eqn.params, _moving(rows[0].axis)
    if (p["start_indices"][axis], p["limit_indices"][axis]) != (0, eqn.invars[0].aval.shape[axis]):
        raise Unclear("slice")
    strides = None if p["strides"] is None else _without(p["strides"], axis)
    own = {key: _without(p[key], axis) for key in ("start_indices", "limit_indices")}
    (x,) = _bound(eqn, [row.x], **own, strides=strides)
    return [Unbatched(x, axis)]


def _product(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    left, right = rows
    (contract, batch), position = eqn.params["dimension_numbers"], 0
    (lc, rc), (lb, rb) = contract, batch
    if left.axis is not None and right.axis is not None:
        if rb[(position := tuple(lb).index(left.axis))] != right.axis:
            raise Unclear("product")
        lb, rb = _without(tuple(lb), position), _without(tuple(rb), position)
    elif left.axis is not None:
        position = _free(eqn, 0).index(left.axis) + len(lb)
    else:
        position = _free(eqn, 1).index(_moving(right.axis)) + len(lb) + len(_free(eqn, 0))
    sides = [
        [axes if row.axis is None else _shifted(axes, row.axis) for axes in pair]
        for row, pair in ((left, (lc, lb)), (right, (rc, rb)))
    ]
    (lc, lb), (rc, rb) = sides
    (x,) = _bound(eqn, [left.x, right.x], dimension_numbers=((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))))
    return [Unbatched(x, position)]


def _free(eqn: Equation, side: int) -> list[int]:
    """The axes of an operand of a product that are in its result alone."""
    contract, batch = eqn.params["dimension_numbers"]
    return [i for i in range(len(eqn.invars[side].aval.shape)) if i not in (*contract[side], *batch[side])]


def _leading(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    """What is done to each of the first axes alone, as a decomposition of matrices is."""
    if any(row.axis != 0 for row in rows):
        raise Unclear("matrices")
    return [Unbatched(x, 0) for x in _bound(eqn, [row.x for row in rows])]


def _scan(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    """A loop: the batch is the first axis of its state, and the second one of its rows, of which a round has the first."""
    consts, carry = contents.scan_counts(eqn.params)
    state, sliced = range(consts, consts + carry), range(consts + carry, len(rows))
    rows = [
        _at(x, 0) if i in state and x.plain is not None and x.axis is None and 0 not in x.dims else x
        for i, x in enumerate(rows)
    ]
    if any(x.axis not in (None, int(i in sliced)) for i, x in enumerate(rows)):
        raise Unclear("loop")
    varying = [i - consts for i in state if rows[i].axis is not None]
    given = [Unbatched(v.aval, None if x.axis is None else 0) for v, x in zip(eqn.invars, rows, strict=True)]
    for i, row in enumerate(given):
        row.x = row.x.update(shape=row.x.shape[(i in sliced) + (row.axis is not None) :])
    body, outs = unbatched(eqn.params["jaxpr"], given, varying)
    moving = [i for i, out in enumerate(outs[:carry]) if out.axis == 0]
    if moving != varying or any(out.axis or out.plain is not None or out.numbers for out in outs):
        raise Unclear("state")
    info = contents.open_jaxpr(eqn.params["jaxpr"]).debug_info
    if info.arg_names is not None:
        info = info._replace(result_paths=_paths(info.arg_names[consts : consts + carry], len(outs) - carry))
    jaxpr = body.jaxpr
    equations = [each for each, _ in needed(body, jaxpr.outvars)]
    xs = _bound(eqn, [row.x for row in rows], jaxpr=body.replace(jaxpr=jaxpr.replace(eqns=equations, debug_info=info)))
    return [
        Unbatched(x, None if out.axis is None else int(i >= carry))
        for i, (x, out) in enumerate(zip(xs, outs, strict=True))
    ]


def _paths(state: Sequence[str], rows: int) -> tuple[str, ...]:
    """Where a function gives the next state, and rows, which JAX does not say of a batch: as where it takes the state."""
    parts = [re.fullmatch(r"(\w*)(.*)", name).groups() for name in state]  # type: ignore[union-attr]
    roots = [*dict.fromkeys(root for root, _ in parts)]
    places = (f"[{roots.index(root)}]" * (len(roots) > 1) + path for root, path in parts)
    return *(f"result[0]{place}" for place in places), *(f"result[1]{f'[{i}]' * (rows > 1)}" for i in range(rows))


def _gather(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    (array, indices), dims, sizes = rows, eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    if {array.axis, indices.axis} - {0, None}:
        raise Unclear("gather")
    offsets, places = dims.offset_dims, dims.start_indices_batching_dims
    if array.axis is not None:
        own = {"collapsed_slice_dims": dims.collapsed_slice_dims, "operand_batching_dims": dims.operand_batching_dims}
        own = {key: _shifted(axes, 0) for key, axes in (own | {"start_index_map": dims.start_index_map}).items()}
        dims, sizes = dims._replace(**own), sizes[1:]
    dims = dims._replace(
        offset_dims=_shifted(offsets, 0),
        start_indices_batching_dims=_shifted(places, 0) if indices.axis == 0 else places,
    )
    every = tuple(range(len(indices.place))) == dims.offset_dims == dims.start_index_map
    if every and array.x.ndim == len(indices.place) and eqn.params["mode"] == jax.lax.GatherScatterMode.CLIP:
        return [Unbatched(jax.lax.dynamic_slice(array.x, indices.place, sizes, allow_negative_indices=False), 0)]
    return [Unbatched(x, 0) for x in _bound(eqn, [array.x, indices.x], dimension_numbers=dims, slice_sizes=sizes)]


def _with_rule(eqn: Equation, rows: list[Unbatched]) -> list[Unbatched]:
    """A function of `jax.nn` that has a rule of its own."""
    info = contents.open_jaxpr(eqn.params["call_jaxpr"]).debug_info
    function = getattr(jax.nn, info.func_name.rpartition(".")[2], None)
    if len(rows) != 1 or function is None or not (info.func_filename or "").endswith("functions.py"):
        raise Unclear("rule")
    return [Unbatched(function(rows[0].x), rows[0].axis)]


def _moving(axis: int | None) -> int:
    if axis is None:
        raise Unclear("axis")
    return axis


_ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp complex conj convert_element_type copy copy_p
cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag integer_pow is_finite le lgamma log log1p
logistic lt max min mul ne neg nextafter not one_minus_square or pow real reduce_precision rem round rsqrt select_n sign
sin sinh sqrt square stop_gradient sub tan tanh xor
""".split()
_REDUCTIONS = "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin".split()
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys("cumsum cumprod cummax cummin cumlogsumexp split".split(), _along("axis")),
    **dict.fromkeys("concatenate sort".split(), _along("dimension")),
    **dict.fromkeys("cholesky triangular_solve lu eigh qr svd fft".split(), _leading),
    "rev": _along("dimensions"),
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "slice": _slice,
    "dot_general": _product,
    "stack": _stack,
    "unstack": _unstack,
    "gather": _gather,
    "scan": _scan,
    "custom_jvp_call": _with_rule,
}
