"""Convolutions that XLA computes slowly on a CPU, written as others that it computes quickly.

XLA hands most convolutions to Eigen. Those with groups, the kernel's gradient of a dilated or grouped one, and those along three
axes take it up to four hundred times as long as the same sum written otherwise. `rewriting` replaces these, after all derivatives
have been taken: what JAX derives of a convolution is a convolution again.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..jaxprs.types import Equation, Function, Value

CONVOLUTION = "conv_general_dilated"
PRODUCTS = frozenset(("dot_general", CONVOLUTION))
# Each of these many parts is an operation, or a convolution, for XLA to compile.
MOST_GROUPS, MOST_TAPS, MOST_ALONG_DEPTH = 16, 100, 16
# The kernel's gradient of a grouped convolution is so slow that more parts are worth it.
MOST_GROUPS_OF_A_GRADIENT = 64
# With so few numbers of a channel to add up for each place of the kernel, Eigen's matrix products do not pay.
FEW_PRODUCTS = 16
# XLA's own gradient of a depthwise convolution's kernel takes the longer the further the numbers of a channel are apart.
MANY_CHANNELS = 64


Shape = Sequence[int]


class Windows(NamedTuple):
    """How the windows of a convolution lie, for each of its spatial axes, and what belongs together.

    All below convolve `x`, (batch, *space, channels in), with `w`, (*space, channels in of a group, channels out).
    """

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    x_dilation: tuple[int, ...]
    w_dilation: tuple[int, ...]
    groups: int
    batch_groups: int
    precision: Any
    dtype: Any

    def sizes(self, x: Shape, w: Shape) -> list[int]:
        """The result's along the spatial axes, from the shapes of both."""
        each = zip(x[1:], w, self.strides, self.padding, self.x_dilation, self.w_dilation, strict=False)
        return [
            max(0, (max(0, (size - 1) * apart + 1) + low + high - (length - 1) * rate - 1) // stride + 1)
            for size, length, stride, (low, high), apart, rate in each
        ]

    def along(self, axis: int, **changed: Any) -> Windows:
        """With other values for one axis."""
        values: dict[str, Any] = {k: _with(getattr(self, k), axis, value) for k, value in changed.items()}
        return self._replace(**values)


def _with(values: tuple[Any, ...], axis: int, value: Any) -> tuple[Any, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


def convolve(x: Value, w: Value, windows: Windows) -> Any:
    return (_rule(x.shape, w.shape, windows) or _by_xla)(x, w, windows)


def _rule(x: Shape, w: Shape, windows: Windows) -> Function | None:
    """How a convolution is computed, None where XLA has nothing better to be given."""
    batch, (*kernel, depth, out) = x[0], w
    sizes, rank = windows.sizes(x, w), len(kernel)
    dilated = [axis for axis in range(rank) if windows.x_dilation[axis] > 1]
    if 0 in (*x, *w, *sizes):
        return None
    if dilated and max(windows.strides) > 1:
        return _by_zeros
    if windows.batch_groups > 1:
        if batch == windows.batch_groups:
            slow = batch < out or batch >= MANY_CHANNELS
            return _by_places if slow and math.prod(sizes) <= MOST_TAPS and not dilated else None
        return _by_group if windows.batch_groups <= MOST_GROUPS_OF_A_GRADIENT else None
    if windows.groups > 1:
        if depth * out <= FEW_PRODUCTS * windows.groups and depth * math.prod(kernel) <= MOST_TAPS:
            return functools.partial(_by_remainder, axis=dilated[0]) if dilated else _by_taps
        return _by_group if windows.groups <= MOST_GROUPS else None
    if dilated and max(windows.w_dilation) == 1 and math.prod(kernel) > math.prod(sizes):
        return _exchanged
    if rank < 3 or min(kernel[0], sizes[0]) > MOST_ALONG_DEPTH:
        return None
    return functools.partial(_by_remainder, axis=0) if dilated[:1] == [0] else _by_depth


def _by_xla(x: Value, w: Value, windows: Windows) -> Any:
    axes = "DHW"[-len(windows.strides) :]
    return lax.conv_general_dilated(
        x,
        w,
        windows.strides,
        windows.padding,
        windows.x_dilation,
        windows.w_dilation,
        (f"N{axes}C", f"{axes}IO", f"N{axes}C"),
        windows.groups,
        windows.batch_groups,
        windows.precision,
        windows.dtype,
    )


def _by_taps(x: Value, w: Value, windows: Windows) -> Any:
    """Few channels to a group: for each place of the kernel a strided slice times the kernel's numbers there."""
    *kernel, depth, out = w.shape
    sizes = windows.sizes(x.shape, w.shape)
    x = x.reshape(*x.shape[:-1], windows.groups, depth, 1)
    w = w.reshape(*kernel, depth, windows.groups, out // windows.groups)
    total: Any = None
    for tap in itertools.product(*map(range, kernel)):
        starts = [t * rate - low for t, rate, (low, _) in zip(tap, windows.w_dilation, windows.padding, strict=True)]
        part = _taken(x, starts, sizes, windows.strides)
        for i in range(depth):
            product = (part[..., i, :] * w[(*tap, i)]).astype(_sum_of(windows.dtype))
            total = product if total is None else total + product
    return total.reshape(x.shape[0], *sizes, out).astype(windows.dtype)


def _sum_of(dtype: Any) -> Any:
    return jnp.promote_types(dtype, jnp.float32) if jnp.issubdtype(dtype, jnp.inexact) else dtype


def _by_group(x: Value, w: Value, windows: Windows) -> Any:
    """Each group by itself."""
    count, axis = max(windows.groups, windows.batch_groups), -1 if windows.groups > 1 else 0
    alone = windows._replace(groups=1, batch_groups=1)
    parts = zip(jnp.split(x, count, axis), jnp.split(w, count, -1), strict=True)
    return jnp.concatenate([convolve(*part, alone) for part in parts], -1)


def _by_places(x: Value, w: Value, windows: Windows) -> Any:
    """The kernel's gradient of a depthwise convolution: for each of its places a product that is summed up for each channel."""
    count = windows.batch_groups
    w = w.reshape(*w.shape[:-1], count, -1)
    sizes = windows.sizes(x.shape, w.shape)
    parts = []
    for place in itertools.product(*map(range, sizes)):
        starts = [i * stride - low for i, stride, (low, _) in zip(place, windows.strides, windows.padding, strict=True)]
        part = jnp.moveaxis(_taken(x, starts, w.shape, windows.w_dilation), 0, -1)[..., None]
        parts.append((part * w).sum(range(w.ndim - 2), _sum_of(windows.dtype)))
    return jnp.stack(parts).reshape(1, *sizes, -1).astype(windows.dtype)


def _exchanged(x: Value, w: Value, windows: Windows) -> Any:
    """The kernel's gradient of a transposed convolution: `w` is larger than the result, and `x` dilated. The other way round it
    is the kernel's gradient of a strided convolution, with the result back to front."""
    axes, sizes = range(1, x.ndim - 1), windows.sizes(x.shape, w.shape)
    each = zip(x.shape[1:], w.shape, sizes, windows.padding, windows.x_dilation, strict=False)
    padding = tuple([(n - 1 - low, (size - 1) * apart + 1 + low - k) for size, k, n, (low, _), apart in each])
    other = windows._replace(padding=padding, x_dilation=windows.w_dilation, w_dilation=windows.x_dilation)
    y = convolve(jnp.moveaxis(w, -1, 0), jnp.moveaxis(x, 0, -1), other)
    return jnp.swapaxes(jnp.flip(y, axes), 0, -1)


def _by_zeros(x: Value, w: Value, windows: Windows) -> Any:
    """A dilated `x` where strides leave results out: the zeros between its numbers are written down."""
    between = [(0, 0, 0), *[(0, 0, apart - 1) for apart in windows.x_dilation], (0, 0, 0)]
    x = lax.pad(x, jnp.zeros((), x.dtype), between)
    return convolve(x, w, windows._replace(x_dilation=(1,) * len(windows.strides)))


def _by_remainder(x: Value, w: Value, windows: Windows, axis: int) -> Any:
    """A convolution of a dilated `x`: what falls between its numbers is left out. Results at places with the same remainder
    modulo the dilation meet the same part of the kernel, and are a convolution that is not dilated."""
    count, apart, rate = windows.sizes(x.shape, w.shape)[axis], windows.x_dilation[axis], windows.w_dilation[axis]
    low, step = windows.padding[axis][0], apart // math.gcd(apart, rate)
    parts = []
    for remainder in range(min(apart, count)):
        size = -(-(count - remainder) // apart)
        first = next((t for t in range(step) if (remainder - low + t * rate) % apart == 0), w.shape[axis])
        part = lax.slice_in_dim(w, min(first, w.shape[axis]), w.shape[axis], step, axis)
        before = (low - remainder - first * rate) // apart
        reach = (part.shape[axis] - 1) * (rate * step // apart)
        after = size - x.shape[axis + 1] - before + reach
        alone = windows.along(axis, padding=(before, after), x_dilation=1, w_dilation=rate * step // apart)
        if part.shape[axis]:
            y = convolve(x, part, alone)
        else:
            sizes = _with(tuple(windows.sizes(x.shape, w.shape)), axis, size)
            y = jnp.zeros((x.shape[0], *sizes, w.shape[-1]), windows.dtype)
        short = -(-count // apart) - size
        parts.append(lax.pad(y, jnp.zeros((), y.dtype), [(0, short * (i == axis + 1), 0) for i in range(y.ndim)]))
    y = jnp.stack(parts, axis + 2)
    y = y.reshape(*y.shape[: axis + 1], -1, *y.shape[axis + 3 :])
    return lax.slice_in_dim(y, 0, count, axis=axis + 1)


def _by_depth(x: Value, w: Value, windows: Windows) -> Any:
    """Along three axes: a sum of convolutions along two."""
    count, stride, rate, low = (
        windows.sizes(x.shape, w.shape)[0],
        windows.strides[0],
        windows.w_dilation[0],
        windows.padding[0][0],
    )
    flat = windows._replace(**{name: getattr(windows, name)[1:] for name in windows._fields[:4]})
    if w.shape[0] > count:  # the kernel's gradient: the places along the depth belong to what is added up
        w = jnp.moveaxis(w, 0, -2)
        w = w.reshape(*w.shape[:2], -1, w.shape[-1])
        parts = [_taken(x, [i * stride - low], [w.shape[2] // x.shape[-1]], [rate]) for i in range(count)]
        parts = [jnp.moveaxis(part, 1, -1) for part in parts]
        return jnp.stack([convolve(part.reshape(*part.shape[:3], -1), w, flat) for part in parts], 1)
    total: Any = None
    for t in range(w.shape[0]):
        part = _taken(x, [t * rate - low], [count], [stride])
        y = convolve(part.reshape(-1, *part.shape[2:]), w[t], flat)
        total = y if total is None else total + y
    return total.reshape(x.shape[0], count, *total.shape[1:])


def _taken(x: Value, starts: Sequence[int], counts: Sequence[int], steps: Sequence[int]) -> Any:
    """Along the spatial axes `counts` numbers from `starts` on, `steps` apart; zero outside of `x`."""
    each = list(zip(starts, counts, steps, x.shape[1:], strict=False))
    pads = [(max(0, -start), max(0, start + (n - 1) * step + 1 - size), 0) for start, n, step, size in each]
    rest = x.ndim - len(pads) - 1
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *pads, *[(0, 0, 0)] * rest])
    firsts = [start + low for start, (low, _, _) in zip(starts, pads, strict=True)]
    index = [
        slice(first, first + (n - 1) * step + 1, step) for first, (_, n, step, _) in zip(firsts, each, strict=True)
    ]
    return x[(slice(None), *index)]


# ---- of an equation -------------------------------------------------------------------------------------------------


def quick(eqn: Equation) -> Function | None:
    """The function of its operands that computes a convolution where XLA would be slow; else None."""
    p = eqn.params
    specs = p["dimension_numbers"]
    orders = (
        (specs.lhs_spec[0], *specs.lhs_spec[2:], specs.lhs_spec[1]),
        (*specs.rhs_spec[2:], specs.rhs_spec[1], specs.rhs_spec[0]),
        (specs.out_spec[0], *specs.out_spec[2:], specs.out_spec[1]),
    )
    windows = Windows(
        p["window_strides"],
        p["padding"],
        p["lhs_dilation"],
        p["rhs_dilation"],
        p["feature_group_count"],
        p["batch_group_count"],
        p["precision"],
        eqn.outvars[0].aval.dtype,
    )
    operands = [v.aval for v in eqn.invars]
    x, w = ([v.shape[i] for i in order] for v, order in zip(operands, orders, strict=False))
    if _rule(x, w, windows) is None:
        return None

    def convolution(x: Value, w: Value) -> Any:
        y = convolve(x.transpose(orders[0]), w.transpose(orders[1]), windows)
        return y.transpose([orders[2].index(i) for i in range(y.ndim)])

    return convolution


def products(eqn: Equation) -> Any:
    """The multiplications of a product or convolution."""
    if eqn.primitive.name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return math.prod(eqn.outvars[0].aval.shape) * math.prod(eqn.invars[0].aval.shape[i] for i in contracted)
    if eqn.primitive.name == CONVOLUTION:
        kernel, layout = eqn.invars[1].aval.shape, eqn.params["dimension_numbers"].rhs_spec
        return math.prod(eqn.outvars[0].aval.shape) * math.prod(kernel) // max(kernel[layout[0]], 1)
    return 0


def is_eigens(eqn: Equation) -> bool:
    """Whether XLA leaves a product or convolution to Eigen, which is as quick however well the program is compiled."""
    if eqn.primitive.name != CONVOLUTION:
        return True
    p, layout = eqn.params, eqn.params["dimension_numbers"]
    kernel, sizes = (
        [v.aval.shape[i] for i in spec[2:]]
        for v, spec in ((eqn.invars[1], layout.rhs_spec), (eqn.outvars[0], layout.out_spec))
    )
    within = max(p["lhs_dilation"], default=1) == 1 or len(kernel) < 3 and math.prod(kernel) <= math.prod(sizes)
    return within and p["batch_group_count"] == 1 and jnp.issubdtype(eqn.outvars[0].aval.dtype, jnp.floating)
