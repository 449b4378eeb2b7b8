"""Near twins: programs that differ in one thing, and so must not be taken for each other.

A program is source text that defines `x` and `program`. It is executed anew for every run, so its functions are new objects,
as the lambdas of a training loop are. Two to four siblings, any two of which are twins, run in one process, in any order, on
tapes, with whatever is remembered of all that ran before. What has to come out is computed without a tape and without
`jax.jit`, by the same text in a namespace of its own, where every transformation is made anew at each call: operation by
operation there is nothing that could be remembered wrongly.

`Chooser` is `random.Random` or Hypothesis's imitation of it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import random
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

import tapejax as tf
from tapejax.tape import operation

from . import twin_tables
from .interpreted import interpreted

Chooser = random.Random

# ---- the language of the programs -----------------------------------------------------------------------------------


def _scaled(x: Any, k: Any) -> Any:
    """Tells zeros of either sign, truths, integers and floats apart."""
    factor = {bool: 0.25, int: 0.5}.get(type(k), 1.0)
    return lax.mul(x, lax.full_like(x, factor * math.copysign(2.0, k) + (0.0 if math.isnan(k) else k)))


# A primitive of the user's own: its parameter is any object.
scaled_p = Primitive("scaled")
scaled_p.def_impl(lambda x, *, k: _scaled(x, k))
scaled_p.def_abstract_eval(lambda x, *, k: x)
mlir.register_lowering(scaled_p, mlir.lower_fun(lambda x, *, k: _scaled(x, k), multiple_results=False))
ad.deflinear2(scaled_p, lambda g, x, *, k: [scaled_p.bind(g, k=k)])
batching.defvectorized(scaled_p)


def _times(x: Any, *, k: Any) -> Any:  # a stable function for the op entrance, which keys it by `k`
    return _scaled(x, k)


class OnTape:
    """The op entrance: what `op`, `ten` and `arr` are for a program on a tape."""

    sin, multiply = tf.sin, tf.multiply
    function = staticmethod(tf.function)
    custom_gradient = staticmethod(tf.custom_gradient)
    recompute_grad = staticmethod(tf.recompute_grad)

    @staticmethod
    def ten(x: Any) -> Any:
        return tf.Tensor(x)

    @staticmethod
    def arr(x: Any) -> Any:
        return x._array if isinstance(x, tf.Tensor) else x

    @staticmethod
    def cond(p: Any, f: Callable, g: Callable, x: Any) -> Any:
        return tf.cond(p, lambda: f(x), lambda: g(x))

    @staticmethod
    def repeat(n: int, f: Callable, x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, f(y)), (0, x), maximum_iterations=n)[1]

    @staticmethod
    def rows(f: Callable, x: Any) -> Any:
        return tf.map_fn(f, x)

    @staticmethod
    def mapped(f: Callable, x: Any) -> Any:
        return tf.vectorized_map(f, x)

    @staticmethod
    def apply(x: Any, k: Any) -> Any:
        return operation.apply(_times, x, k=k)

    @staticmethod
    def gradient(f: Callable, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x, unconnected_gradients="zero")


class ByJax:
    """The same words without tapejax."""

    sin, multiply = jnp.sin, jnp.multiply
    ten = arr = function = recompute_grad = staticmethod(lambda x: x)

    @staticmethod
    def custom_gradient(f: Callable) -> Callable:
        rule = jax.custom_vjp(lambda x: f(x)[0])
        rule.defvjp(lambda x: (f(x)[0], x), lambda x, g: (f(x)[1](g),))
        return rule

    @staticmethod
    def cond(p: Any, f: Callable, g: Callable, x: Any) -> Any:
        return lax.cond(p, f, g, x)

    @staticmethod
    def repeat(n: int, f: Callable, x: Any) -> Any:
        for _ in range(n):
            x = f(x)
        return x

    @staticmethod
    def rows(f: Callable, x: Any) -> Any:
        return jnp.stack([f(x[i]) for i in range(x.shape[0])])

    mapped = rows

    @staticmethod
    def apply(x: Any, k: Any) -> Any:
        return _scaled(x, k)

    @staticmethod
    def gradient(f: Callable, x: Any) -> Any:
        return jax.vjp(f, x)[1](jnp.ones_like(x))[0]


class Holder:
    """Something that can be changed."""


COMMON: dict[str, Any] = {
    "jax": jax,
    "jnp": jnp,
    "np": np,
    "lax": lax,
    "partial": functools.partial,
    "bfloat16": ml_dtypes.bfloat16,
    "scaled_p": scaled_p,
    "Holder": Holder,
    "P": jax.sharding.PartitionSpec,
    "outer": lambda x: jnp.outer(x, x + np.array([1, 2, 3], np.float32)),
    "tagged": checkpoint_name,
    "saving": jax.checkpoint_policies.save_only_these_names,
    "inf": math.inf,
    "nan": math.nan,
}


def namespace(source: str, words: Any, pause: Callable[[], Any] = lambda: None) -> dict[str, Any]:
    names = {**COMMON, "__name__": "twins", "op": words, "ten": words.ten, "arr": words.arr, "pause": pause}
    exec(_compiled(source), names)
    return names


@functools.lru_cache(256)
def _compiled(source: str) -> Any:
    return compile(source, "<twins>", "exec")


# ---- layers: a function {f} of an array of three floats becomes another, {g} ----------------------------------------


def _groups(text: str) -> list[str]:
    return text.strip().split("\n\n")


LAYERS: dict[str, str] = {}
for _group in _groups(twin_tables.LAYERS):
    _name, _, _text = _group.partition("\n")
    LAYERS[_name.strip("[]")] = _text
FIRST_ORDER = {"grad", "jvp", "linearize", "tape"}
# A tape runs these rules when it is asked for the gradient, as TensorFlow runs its own: what they read they read then.
RULED = {
    "custom_jvp, rule",
    "custom_jvp, own rule",
    "custom_vjp, forward",
    "custom_vjp, backward",
    "custom_vjp, nondiff",
}
RULED |= {"custom_gradient, rule", "recompute_grad", "custom_root"}


def layered(lines: str, layers: Sequence[str], late: bool) -> str:
    """Source that defines `program`: `f0` of `lines` inside `layers`; `late`: made at each call."""
    parts = [lines]
    for i, layer in enumerate(layers):
        text = LAYERS[layer].format(f=f"f{i}", g=f"f{i + 1}").replace("_two", f"_two{i}").replace("_both", f"_both{i}")
        text = text.replace("_static", f"_static{i}").replace("_rule", f"_rule{i}")
        if late:
            body = textwrap.indent(f"{text}\nreturn f{i + 1}(x)", "    ")
            text = f"def f{i + 1}(x):\n{body}"
        parts.append(text)
    return "\n".join([*parts, f"program = lambda x: f{len(layers)}(x)"]) + "\n"


# ---- differences ----------------------------------------------------------------------------------------------------


class Side(NamedTuple):
    """One of them: the lines before the layers. `change` makes another one into it, where that is run already."""

    lines: str
    change: str = ""


class Siblings(NamedTuple):
    """What a difference is made of; the rest of the program is the same in all."""

    sides: tuple[Side, ...]
    late: bool = False  # the functions must be made at each call: JAX keeps what it traced for one and the same
    closed: bool = False  # `K` is an array that can be a source, too
    around: tuple[str, ...] = ()  # a context around each run
    between: tuple[str, ...] = ()  # what happens between recording and differentiating
    compiled: bool = False  # only a compiled program shows it
    shallow: bool = False  # no further layers
    eager: bool = False  # not inside another transformation


X = "x = jnp.asarray([0.7, 1.3, -0.4], {dtype})\n"
WEIGHTS = np.array([1.0, 2.0, 4.0])


def _x(dtype: str = "'float32'") -> str:
    return X.format(dtype=dtype)


def _float(k: Any) -> str:
    return repr(float(k))


FLOATS = [1.23451e-4, 0.30001, 2.0004, 12345.678, 3.3333333, 1e-7, 1.0, 0.1, 65504.0, 1e10, 16777216.0]
MAKERS = [
    "{}",
    "np.float32({})",
    "np.float64({})",
    "np.array({}, np.float32)",
    "jnp.float32({})",
    "np.array([{}], np.float32)",
]
# `{K}` enters as an operand of an operation on a traced value, then its distance from `{c}` is made large: `{s}` times.
EXACT = [
    "x * (1 + ((0 * x + K) - {c}) * {s})",
    "x * (1 + (K - 0 * x - {c}) * {s})",
    "x * (1 + (jnp.maximum(K, 0 * x + K) - {c}) * {s})",
    "jnp.sin(x) * (1 + (jnp.where(x > 9, x, K) - {c}) * {s})",
    "x * (1 + ((0 * x + 1) * K - {c}) * {s})",
    "x * (1 + (lax.full((3,), K, x.dtype) * (0 * x + 1) - {c}) * {s})",
]
COARSE = [
    "x * K",
    "x + K * jnp.sin(x)",
    "K - x * x * K",
    "jnp.where(x < K, x, x * K)",
    "jnp.sin(x * K)",
    "jnp.maximum(x, K) * x",
]


MOST = 4  # siblings


def _close(rng: Chooser) -> tuple[list[float], float]:
    """Some float32 numbers, from a bit to a hundredth apart, and what makes the distance of the first two one half."""
    c = np.float32(rng.choice(FLOATS))
    step = np.spacing(c)
    if rng.random() < 0.6:
        step = max(step, np.float32(c * np.float32(rng.choice([1e-6, 1e-5, 2.4e-5, 1e-4, 1e-3, 1e-2]))))
    values = [float(np.float32(c + i * step)) for i in range(MOST)]
    return values, 0.5 / (values[1] - values[0])


def _some(rng: Chooser, values: Sequence[Any]) -> list[Any]:
    """Two to four of them, in any order."""
    return rng.sample(values, min(len(values), rng.choice([2, MOST, MOST, MOST])))


def _sides(rng: Chooser, before: str, values: Sequence[str], after: str) -> tuple[Side, ...]:
    return tuple(Side(f"{before}K = {k}\n{after}") for k in _some(rng, values))


def literal(rng: Chooser) -> Siblings:
    """The value of a number, down to its last bit."""
    values, s = _close(rng)
    make = rng.choice(MAKERS)
    expression = rng.choice(EXACT).format(c=_float(values[0]), s=_float(s))
    if rng.random() < 0.3:
        values, expression = [0.5, 0.75, 1.5, -1.25], rng.choice(COARSE)
    if rng.random() < 0.3 and make == "{}":  # written into the function
        return Siblings(
            tuple(Side(_x() + f"f0 = lambda x: {expression.replace('K', _float(k))}") for k in _some(rng, values))
        )
    body = f"f0 = lambda x: {expression}"
    return Siblings(_sides(rng, _x(), [make.format(_float(k)) for k in values], body))


def special(rng: Chooser) -> Siblings:
    """Zeros of either sign, infinities, nan, integers that are no float32, truths."""
    make = rng.choice(MAKERS[:4])
    one = "(0 * x + 1) * K"
    first, second, expression = rng.choice(
        [
            ("0.0", "-0.0", f"x * jnp.copysign(2.0, {one})"),
            ("0.0", "-0.0", "x * (1 + jnp.signbit(lax.full((3,), K) * (0 * x + 1)))"),
            ("inf", "-inf", f"x * jnp.sign({one})"),
            ("inf", "nan", f"jnp.where(jnp.isnan({one}), x, 2 * x)"),
            ("nan", "0.0", f"jnp.where(jnp.isnan({one}), x, 2 * x)"),
        ]
    )
    if rng.random() < 0.4:
        whole = "(x > 9).astype('int32')"
        first, second, expression = rng.choice(
            [
                ("16777216", "16777217", f"x * (1 + ({whole} + K - 16777216))"),
                ("2", "3", f"x * ({whole} + K)"),
                ("np.int32(2)", "np.int32(3)", f"x * ({whole} + K)"),
                ("True", "False", "jnp.where(jnp.logical_and(x > -9, K), x, 2 * x)"),
                ("np.bool_(True)", "np.bool_(False)", "jnp.where(jnp.logical_or(x > 9, K), x, 2 * x)"),
                ("np.uint8(7)", "np.uint8(8)", "x * ((x > 9).astype('uint8') + K)"),
                ("1 + 2j", "1 - 2j", "jnp.imag((x + 0j) * K)"),
                ("np.complex64(1 + 2j)", "np.complex64(1.0000001 + 2j)", "x + 1e6 * (jnp.real((0 * x + 1) * K) - 1)"),
                ("complex(2, 0.0)", "complex(2, -0.0)", "x * jnp.copysign(2.0, jnp.imag(lax.full((3,), K)))"),
            ]
        )
        make = "{}"
    values = [make.format(k) for k in (first, second)]
    return Siblings(_sides(rng, _x(), values, f"f0 = lambda x: {expression}"))


def dtype(rng: Chooser) -> Siblings:
    """The dtype of a number or an array, or its weak type: it decides in which precision is computed."""
    fine = 1 + 2.0**-13  # one in float16 and bfloat16
    expression = f"x * (1 + (((0 * x + 1) * K) - 1).astype('float32') * {2.0**12}).astype(x.dtype)"
    kind = rng.choice(["half", "brain", "double", "integer", "weak integer"])
    before, around = _x(), ()
    if kind == "double":
        around = ("jax.enable_x64(True)",) * 2
        expression = f"x * (1 + (((0 * x + 1) * K - 1) * {2.0**40}).astype('float32'))"
        first, second = f"np.float32({1 + 2.0**-41})", f"np.float64({1 + 2.0**-41})"
    elif kind in ("half", "brain"):
        half = "np.float16" if kind == "half" else "bfloat16"
        before = _x(half)
        first, second = (
            rng.choice([f"{half}({fine})", str(fine)]),
            rng.choice([f"np.float32({fine})", f"jnp.float32({fine})"]),
        )
        if rng.random() < 0.3:
            first, second = f"np.array([1, {fine}, 1], {half})", f"np.array([1, {fine}, 1], np.float32)"
    else:
        expression = "x * (((x > 9).astype('int8') + K) * 2).astype('float32') / 100"
        first = "np.int8(100)" if kind == "integer" else "100"
        second = rng.choice(["np.int32(100)", "np.int16(100)", "jnp.int32(100)"])
    if kind in ("half", "brain", "double"):
        # the programs after it go on in their own precision
        expression = f"({expression}).astype(x.dtype)"
    return Siblings(_sides(rng, before, [first, second], f"f0 = lambda x: {expression}"), around=around)


def _array(rng: Chooser, module: str, changed: bool = False) -> tuple[list[str], list[str], str]:
    """How to make arrays that differ in an element, how to change any into each of them, and an expression that shows it."""
    kind = rng.choice(["floats", "floats", "floats", "zeros", "indices", "mask"])
    if changed and kind == "indices":  # of an index that is changed in place JAX itself remembers what it was
        kind = "mask"
    if kind == "indices":
        made = [f"{module}.array([0, {i}, 1])" for i in (2, 1, 0)]
        return made, [f"K[1] = {i}" for i in (2, 1, 0)], "x[K] * jnp.sin(x)"
    if kind == "mask":
        made = [f"{module}.array([True, {b}, False])" for b in (True, False)]
        return made, [f"K[1] = {b}" for b in (True, False)], "jnp.where(K, x, x * x)"
    shape, place = rng.choice([((3,), 1), ((1,), 0), ((), ()), ((2000,), 1234), ((40, 40), (17, 23)), ((3, 1), (2, 0))])
    if kind == "zeros":
        values, expression = [0.0, -0.0], "x * (1 + jnp.sum(jnp.signbit((0 * x[0] + 1) * K)))"
    elif shape == (3,) and rng.random() < 0.5:
        values = [1.0, 1.5, 0.5]
        expression = rng.choice(["x * K", "jnp.sin(K) * x", "x + K * x * x", "jnp.dot(x, K) * x"])
    else:
        values, s = _close(rng)
        expression = rng.choice(
            [
                f"x * (1 + jnp.sum(((0 * x[0] + 1) * K - {values[0]!r}) * {s!r}))",
                f"x * (1 + jnp.sum(((0 * x[0] + K) - {values[0]!r}) * {s!r}))",
                f"jnp.sin(x) * (1 + jnp.sum((jnp.where(x[0] > 9, 0 * x[0], K) - {values[0]!r}) * {s!r}))",
            ]
        )
    arrays = [f"filled({shape}, {values[0]!r}, {place}, {value!r})" for value in values]
    if module == "jnp":
        arrays = [f"jnp.asarray({text})" for text in arrays]
    return arrays, [f"K[{place}] = {value!r}" for value in values], expression


def filled(shape: tuple[int, ...], value: float, place: Any, other: float) -> np.ndarray:
    array = np.full(shape, value, np.float32)
    array[place] = other
    return array


COMMON["filled"] = filled


def array(rng: Chooser) -> Siblings:
    """The content of an array that a function closes over."""
    module = rng.choice(["np", "jnp"])
    made, _, expression = _array(rng, module)
    closed = module == "jnp" and "filled" in made[0]
    return Siblings(_sides(rng, _x(), made, f"f0 = lambda x: {expression}"), closed=closed and rng.random() < 0.5)


def in_place(rng: Chooser) -> Siblings:
    """A NumPy array that is changed in place, between two runs or between recording and differentiating."""
    made, changes, expression = _array(rng, "np", changed=True)
    own = "K = {}\n"
    if rng.random() < 0.2:  # through another array over the same memory
        own, changes = "base = {}\nK = base[...]\n", [f"base{change[1:]}" for change in changes]
    chosen = _some(rng, range(len(made)))
    body = f"f0 = lambda x: {expression}"
    sides = tuple(Side(_x() + own.format(made[i]) + body, changes[i]) for i in chosen)
    if rng.random() < 0.3:
        return Siblings(sides, late=True, between=tuple(side.change for side in (*sides[1:], sides[0])), eager=True)
    return Siblings(sides, late=True)


PLACES = {
    # how the value gets into f0, and how it is changed there: {k} the value, {e} the expression
    "global": ("K = {k}\ndef f0(x):\n    return {e}", "K = {k}"),
    "default": ("def f0(x, K={k}):\n    return {e}", "f0.__defaults__ = ({k},)"),
    "keyword default": ("def f0(x, *, K={k}):\n    return {e}", "f0.__kwdefaults__ = dict(K={k})"),
    "attribute": ("h = Holder()\nh.k = {k}\ndef f0(x):\n    K = h.k\n    return {e}", "h.k = {k}"),
    "element": ("h = [{k}]\ndef f0(x):\n    K = h[0]\n    return {e}", "h[0] = {k}"),
    "closure": (
        "def made(K):\n    def f0(x):\n        return {e}\n    def put(k):\n        nonlocal K\n        K = k\n"
        "    return f0, put\n"
        "f0, put = made({k})",
        "put({k})",
    ),
    "partial": ("def base(K, x):\n    return {e}\nf0 = partial(base, {k})", "f0 = partial(base, {k})"),
    "partial, keyword": ("def base(x, K):\n    return {e}\nf0 = partial(base, K={k})", "f0 = partial(base, K={k})"),
    "jit of partial": (
        "def base(K, x):\n    return {e}\nK = {k}\ndef f0(x):\n    return jax.jit(partial(base, K))(x)",
        "K = {k}",
    ),
    "static": (
        "def base(x, K):\n    return {e}\nK = {k}\ndef f0(x):\n    return jax.jit(base, static_argnums=1)(x, K)",
        "K = {k}",
    ),
    "static, by name": (
        "def base(x, K):\n    return {e}\nK = {k}\ndef f0(x):\n    return jax.jit(base, static_argnames='K')(x, K=K)",
        "K = {k}",
    ),
    "rule of custom_jvp": (
        "K = {k}\nf0 = jax.custom_jvp(lambda x: jnp.sin(x))\n@f0.defjvp\ndef rule(p, t):\n    (x,), (g,) = p, t\n    pause()\n"
        "    return jnp.sin(x), g * ({e})",
        "K = {k}",
    ),
    "rule of custom_jvp, default": (
        "f0 = jax.custom_jvp(lambda x: jnp.sin(x))\n@f0.defjvp\ndef rule(p, t, K={k}):\n    (x,), (g,) = p, t\n"
        "    return jnp.sin(x), g * ({e})",
        "rule.__defaults__ = ({k},)",
    ),
    "forward of custom_vjp": (
        "K = {k}\nf0 = jax.custom_vjp(lambda x: jnp.sin(x))\ndef forward(x):\n    return jnp.sin(x), {e}\n"
        "f0.defvjp(forward, lambda r, g: (g * r,))",
        "K = {k}",
    ),
    "backward of custom_vjp": (
        "K = {k}\nf0 = jax.custom_vjp(lambda x: jnp.sin(x))\ndef backward(x, g):\n    pause()\n    return (g * ({e}),)\n"
        "f0.defvjp(lambda x: (jnp.sin(x), x), backward)",
        "K = {k}",
    ),
    "backward of custom_gradient": (
        "K = {k}\n@op.custom_gradient\ndef rule(x):\n    x = arr(x)\n    return jnp.sin(x), lambda g: arr(g) * ({e})\n"
        "def f0(x):\n    return arr(rule(x))",
        "K = {k}",
    ),
}


def elsewhere(rng: Chooser) -> Siblings:
    """A global, default argument, attribute, closure, partial or static argument that is changed: the function is the same."""
    place = rng.choice(sorted(PLACES))
    values, s = _close(rng)
    expression, make = rng.choice(EXACT).format(c=_float(values[0]), s=_float(s)), rng.choice(MAKERS[:3])
    if rng.random() < 0.3 and not place.startswith("static"):
        made, _, expression = _array(rng, rng.choice(["np", "jnp"]))
    else:
        if rng.random() < 0.4:
            values, expression = [0.5, 0.75, 1.5, -1.25], rng.choice(COARSE)
        made = [make.format(_float(k)) for k in values]
    lines, change = PLACES[place]
    same = rng.random() < 0.7
    return Siblings(
        tuple(
            Side(_x() + lines.format(k=k, e=expression), change.format(k=k) if same else "") for k in _some(rng, made)
        ),
        late=True,
    )


FAMILIES = [group.splitlines() for group in _groups(twin_tables.FAMILIES)]
RULES = [group.split("\n---\n") for group in _groups(twin_tables.RULES)]


def parameter(rng: Chooser) -> Siblings:
    """A parameter of a primitive, the order of branches or operands, a length, which result is taken."""
    family = rng.choice(FAMILIES)
    return Siblings(tuple(Side(f"{_x()}f0 = lambda x: arr({expression})") for expression in _some(rng, family)))


def rule(rng: Chooser) -> Siblings:
    """A rule of a custom derivative: the function is the same."""
    family = rng.choice(RULES)
    return Siblings(tuple(Side(_x() + lines) for lines in _some(rng, family)))


def config(rng: Chooser) -> Siblings:
    """A configuration flag, around the run or inside the function."""
    flags, expression = rng.choice(
        [
            (
                ["jax.threefry_partitionable(True)", "jax.threefry_partitionable(False)"],
                "x * jax.random.normal(jax.random.key(7), (3,))",
            ),
            (
                ["jax.threefry_partitionable(True)", "jax.threefry_partitionable(False)"],
                "x * jax.random.uniform(jax.random.key(3), (3,)) + jnp.sin(x)",
            ),
            (
                ["jax.default_prng_impl('threefry2x32')", "jax.default_prng_impl('rbg')"],
                "x * jax.random.uniform(jax.random.key(3), (3,))",
            ),
            (
                ["jax.default_prng_impl('threefry2x32')", "jax.default_prng_impl('unsafe_rbg')"],
                "x * jax.random.normal(jax.random.key(5), (3,))",
            ),
            (
                ["jax.enable_x64(True)", "jax.enable_x64(False)"],
                "x * (1 + (jnp.asarray(0.5) + 2.0**-40 - 0.5) * 2.0**39).astype('float32')",
            ),
            (
                ["jax.numpy_rank_promotion('raise')", "jax.numpy_rank_promotion('allow')"],
                "x * jnp.ones((1, 3), 'float32')[0] + (x + jnp.ones((1, 3), 'float32'))[0]",
            ),
            (
                ["jax.numpy_dtype_promotion('strict')", "jax.numpy_dtype_promotion('standard')"],
                "x * np.float16(2.0) + x * np.arange(3)",
            ),
        ]
    )
    first, second = (0, 1) if rng.random() < 0.5 else (1, 0)
    if rng.random() < 0.5 and "x64" not in flags[0]:
        text = "def f0(x):\n    with {}:\n        return {}"
        return Siblings(tuple(Side(_x() + text.format(flags[i], expression)) for i in (first, second)))
    body = f"{_x()}f0 = lambda x: {expression}"
    return Siblings((Side(body), Side(body)), around=(flags[first], flags[second]))


def argument(rng: Chooser) -> Siblings:
    """The dtype, weak type or shape of the argument: the functions are the same objects."""
    arguments = _some(
        rng,
        [
            "jnp.asarray([0.7, 1.3, -0.4], 'float32')",
            "jnp.asarray([0.7, 1.3, -0.4], 'float16')",
            "jnp.asarray([0.7, 1.3, -0.4], 'bfloat16')",
            "jnp.asarray([0.7, 1.3, -0.4, 2.1], 'float32')",
            "lax.full((3,), 0.7)",  # of weak type
        ],
    )
    expression = rng.choice(
        ["x * 1.7", "x * np.float16(1.7)", "jnp.sin(x) * x", "x * x[::-1]", "x * jnp.finfo(x.dtype).bits"]
    )
    return Siblings(tuple(Side(f"x = {x}\nf0 = lambda x: {expression}", f"x = {x}") for x in arguments))


def result(rng: Chooser) -> Siblings:
    """Which values a call hands out, and in which order: gradients with respect to them."""
    results = [
        "(x, x)",
        "(x, x * 1)",
        "(x, jnp.sin(x))",
        "(jnp.sin(x), x)",
        "(x, x, x.sum())",
        "(jnp.sin(x), jnp.sin(x))",
        "(x, x * 2, x)",
        "(x * 2, x * 2)",
    ]
    call = rng.choice(
        [
            "jax.jit(lambda x: {})(x)",
            "jax.checkpoint(lambda x: {})(x)",
            "jax.jit(lambda x: jax.jit(lambda x: {})(x))(x)",
        ]
    )
    lines = (
        "W = np.array([1, 2, 4], np.float32)\nmiddle = lambda x: {}\n"
        "end = lambda us: sum(k * jnp.sum(u * u * W) for k, u in zip((3, 5, 7), us))\nf0 = lambda x: x * end(middle(x))"
    )
    return Siblings(tuple(Side(_x() + lines.format(call.format(r))) for r in _some(rng, results)), shallow=True)


def name(rng: Chooser) -> Siblings:
    """The name of a function: what a recorded operation is called."""
    names = _some(rng, ["encode", "decode", "mix", "f"])
    layer = rng.choice(["jax.jit", "jax.custom_jvp", "jax.custom_vjp"])
    rules = {
        "jax.jit": "",
        "jax.custom_jvp": "\nf0.defjvp(lambda p, t: (f0(*p), t[0] * 2))",
        "jax.custom_vjp": "\nf0.defvjp(lambda x: (f0(x), None), lambda r, g: (2 * g,))",
    }
    text = "def {n}(x):\n    return x * 2\nf0 = {layer}({n}){rule}\nnamed = '{n}'"
    sides = tuple(Side(_x() + text.format(n=n, layer=layer, rule=rules[layer])) for n in names)
    return Siblings(sides, shallow=True, eager=True)


def donation(rng: Chooser) -> Siblings:
    """Whether a jitted function donates its argument."""
    lines = "f0 = lambda x: x * 2\nz = x + 1\ncall = jax.jit(lambda z: {e}{donate})\nkeeps = {keeps}"
    e = rng.choice(["z * 2", "jnp.sin(z)", "z + 1"])
    if rng.random() < 0.5:
        e += " + 0 * z"
    ways = _some(rng, [(", donate_argnums=0", False), ("", True)])
    sides = tuple(Side(_x() + lines.format(e=e, donate=d, keeps=k)) for d, k in ways)
    return Siblings(sides, shallow=True, eager=True, compiled=True)


def sharding(rng: Chooser) -> Siblings:
    """Where arrays are and where a jitted function puts them. Of use on more than one device."""
    count = len(jax.devices())
    where = [f"jax.sharding.SingleDeviceSharding(jax.devices()[{i}])" for i in range(min(2, count))]
    how = rng.choice(["x", "out_shardings", "device_put", "constraint"])
    # with explicit axes jax.grad itself asks for a mesh around it
    mesh = f"jax.make_mesh(({count},), ('i',), axis_types=(jax.sharding.AxisType.Auto,))"
    where += [f"jax.NamedSharding({mesh}, P())", f"jax.NamedSharding({mesh}, P('i'))"]
    text = (
        "x = jnp.asarray(np.linspace(0.2, 1.3, 4), 'float32')\ns = {s}\n"
        + {
            "x": "x = jax.device_put(x, s)\nf0 = lambda x: jnp.sin(x) * 2",
            "out_shardings": "f0 = lambda x: jax.jit(lambda x: x * 3, out_shardings=s)(x) * 2",
            "device_put": "f0 = lambda x: jax.device_put(x * 2, s) * 3",
            "constraint": f"x = jax.device_put(x, jax.NamedSharding({mesh}, P()))\n"
            "f0 = lambda x: jax.jit(lambda x: lax.with_sharding_constraint(x * 3, s))(x)",
        }[how]
    )
    places = _some(rng, where[-2:] if how == "constraint" else where)
    return Siblings(tuple(Side(text.format(s=s)) for s in places), shallow=True, eager=True, compiled=True)


DIFFERENCES: dict[str, tuple[int, Callable[[Chooser], Siblings]]] = {
    "literal": (16, literal),
    "special": (8, special),
    "dtype": (8, dtype),
    "array": (12, array),
    "in place": (10, in_place),
    "elsewhere": (16, elsewhere),
    "parameter": (16, parameter),
    "rule": (10, rule),
    "config": (6, config),
    "argument": (4, argument),
    "result": (3, result),
    "name": (1, name),
    "donation": (1, donation),
    "sharding": (1, sharding),
}

# ---- running them --------------------------------------------------------------------------------------------------


class Twins(NamedTuple):
    """Siblings with all that their runs have in common."""

    difference: str
    siblings: Siblings
    layers: tuple[str, ...]
    asks: str  # which derivative
    where: str  # eagerly, or under which transformation
    source: str  # an array, a tensor or a variable
    repeat: int  # how often each is run: what comes back is compiled whole
    again: bool  # whether the first is run once more after the second
    threads: bool  # both at the same time
    compiled: bool  # by XLA, not operation by operation
    option: str  # a context around everything

    def program(self, side: int, late: bool | None = None) -> str:
        return layered(self.siblings.sides[side].lines, self.layers, self.siblings.late if late is None else late)

    def context(self, side: int) -> Any:
        """Around one run."""
        return _context(self.siblings.around[side] if self.siblings.around else "")

    def __str__(self) -> str:
        how = [f"{name}: {value}" for name, value in zip(self._fields[3:], self[3:], strict=True) if value]
        parts = [f"# {self.difference}; {'; '.join(how)}", self.program(0)]
        for name in ("around", "between"):
            if texts := getattr(self.siblings, name):
                parts.append(f"# {name}: {texts}")
        for side in range(1, len(self.siblings.sides)):
            change = self.siblings.sides[side].change
            parts.append(f"# then changed by: {change}" if change else f"# a twin:\n{self.program(side)}")
        return "\n".join(parts)


OPTIONS = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "np.printoptions(precision=3)",
    "np.printoptions(precision=2, threshold=5)",
    "simplified_constants()",
    "jax.enable_x64(True)",
]


def generate(rng: Chooser, difference: str = "") -> Twins:
    if not difference:
        difference = rng.choice([name for name in sorted(DIFFERENCES) for _ in range(DIFFERENCES[name][0])])
    siblings = DIFFERENCES[difference][1](rng)
    layers: list[str] = []
    if not siblings.shallow:
        layers = [rng.choice(sorted(LAYERS)) for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 2]))]
        while sum(layer in FIRST_ORDER for layer in layers) > 1:
            layers.remove(next(layer for layer in layers if layer in FIRST_ORDER))
    if siblings.between:
        layers = [layer for layer in layers if layer not in RULED]
    text = siblings.sides[0].lines + "".join(layers)
    asks = rng.choice(["gradient"] * 8 + ["jacobian", "jvp", "second", "persistent"])
    if "custom_vjp" in text or "custom_gradient" in text:
        asks = "gradient" if asks == "jvp" else asks
    where = rng.choice([""] * 7 + ["jit", "function", "vmap"])
    if siblings.eager or siblings.closed:
        where = ""
    plain = where == "" and not siblings.between and not siblings.shallow and not siblings.sides[1].change
    threads = plain and rng.random() < 0.05
    if "shard_map" in layers:  # operation by operation it compiles each anew
        if rng.random() < 0.9:
            layers = [layer for layer in layers if layer != "shard_map"]
    return Twins(
        difference,
        siblings,
        tuple(layers),
        asks,
        where,
        rng.choice(["array", "array", "array", "tensor", "variable"]) if not where else "array",
        rng.choice([1, 1, 1, 1, 2, 3]),
        rng.random() < 0.2,
        threads,
        siblings.compiled or "shard_map" in layers or rng.random() < 0.01,
        "" if siblings.around or siblings.compiled else rng.choice(OPTIONS),
    )


@contextlib.contextmanager
def simplified_constants() -> Any:
    before = jax.config.jax_use_simplified_jaxpr_constants
    jax.config.update("jax_use_simplified_jaxpr_constants", True)
    try:
        yield
    finally:
        jax.config.update("jax_use_simplified_jaxpr_constants", before)


def _context(text: str) -> Any:
    if not text:
        return contextlib.nullcontext()
    return eval(text, {**COMMON, "simplified_constants": simplified_constants})


Found = dict[str, Any]  # what was asked -> an array, None, an exception, or a word


def weights(y: Any) -> Any:
    found = jnp.asarray(np.resize(WEIGHTS, y.shape), y.dtype)
    if isinstance(y, jax.core.Tracer) or len(y.sharding.device_set) == 1:
        return found
    return jax.device_put(found, y.sharding)


def taped(twins: Twins, names: dict[str, Any], between: str = "") -> Found:
    """What the program in `names` and its derivatives are, on tapes."""
    program = names["program"]
    found: Found = {}
    if "middle" in names:
        return _results(names, on_tape=True)
    if "keeps" in names:
        return _donated(names, on_tape=True)

    def ask(x: Any) -> Found:
        source = x
        if twins.source == "tensor":
            source = tf.Tensor(x)
        elif twins.source == "variable":
            source = tf.Variable(x)

        def run() -> Any:
            return program(OnTape.arr(source.value() if twins.source == "variable" else source))

        if twins.asks == "jvp":
            with tf.autodiff.ForwardAccumulator(source, jnp.cos(x)) as accumulator:
                y = run()
            exec(between, names)
            return {"value": y, "jvp": OnTape.arr(accumulator.jvp(y))}
        if twins.asks == "second":
            with tf.GradientTape() as outer:
                outer.watch(source)
                with tf.GradientTape() as inner:
                    inner.watch(source)
                    y = run()
                g = inner.gradient(y, source, weights(y), unconnected_gradients="zero")
            exec(between, names)
            return {"value": y, "second": OnTape.arr(outer.gradient(g, source))}
        sources = [source, names["K"]] if twins.siblings.closed else [source]
        with tf.GradientTape(persistent=twins.asks == "persistent") as tape:
            tape.watch(sources)
            y = run()
        recorded = [entry.op.name for entry in tape]
        exec(between, names)
        if twins.asks == "jacobian":
            return {"value": y, "jacobian": OnTape.arr(tape.jacobian(y, source))}
        gradients = [OnTape.arr(g) for g in tape.gradient(y, sources, weights(y))]
        out = {"value": y, "gradient": gradients[0]}
        if twins.siblings.closed:
            out["gradient of K"] = gradients[1]
        if twins.asks == "persistent":
            out["gradient, again"] = OnTape.arr(tape.gradient(y, source, weights(y)))
            out["jacobian"] = OnTape.arr(tape.jacobian(y, source))
        if "named" in names:
            out["name"] = recorded[-1]
        return out

    try:
        for _ in range(twins.repeat):
            found = _under(twins.where, ask)(names["x"])
            if between:
                break
    except Exception as error:
        return {"raised": error}
    return {key: value if isinstance(value, str) else _settled(value) for key, value in found.items()}


def _under(where: str, ask: Callable) -> Callable:
    if where == "jit":
        return jax.jit(lambda x: ask(x))
    if where == "function":
        compiled = tf.function(lambda x: ask(OnTape.arr(x)))
        return lambda x: {k: OnTape.arr(v) for k, v in compiled(x).items()}
    if where == "vmap":
        mapped = jax.vmap(lambda x: ask(x))
        return lambda x: jax.tree.map(lambda y: y[0], mapped(jnp.stack([x, x * 0.5])))
    return ask


def _settled(x: Any) -> Any:
    return None if x is None else (np.asarray(x), x.sharding)


def plain(twins: Twins, side: int, eager: bool = True) -> Found:
    """What has to come out: the same text in a namespace of its own, no tape; operation by operation if `eager`."""
    names = namespace(twins.program(side, late=True), ByJax)
    if "middle" in names:
        with jax.disable_jit(eager):
            return _results(names, on_tape=False)
    if "keeps" in names:
        return _donated(names, on_tape=False)
    x, program = names["x"], names["program"]

    def ask(x: Any) -> Found:
        def gradient(x: Any) -> Any:
            y, pull = jax.vjp(program, x)
            return pull(weights(y))[0]

        if twins.asks == "jvp":
            y, tangent = jax.jvp(program, (x,), (jnp.cos(x),))
            return {"value": y, "jvp": tangent}
        if twins.asks == "second":
            g, pull = jax.vjp(gradient, x)
            return {"value": program(x), "second": pull(jnp.ones_like(g))[0]}
        if twins.asks == "jacobian":
            try:
                y, pull = jax.vjp(program, x)
                return {"value": y, "jacobian": _jacobian(y, pull, x)}
            except ValueError:  # JAX has no reverse mode there: a tape goes forward
                return {"value": program(x), "jacobian": jax.jacfwd(program)(x)}
        y, pull = jax.vjp(program, x)
        (g,) = pull(weights(y))
        out = {"value": y, "gradient": g}
        if twins.siblings.closed:

            def of(k: Any) -> Any:
                names["K"] = k
                return program(x)

            k = names["K"]
            with contextlib.suppress(jax.errors.UnexpectedTracerError):  # a rule closes over it: the tape alone can
                out["gradient of K"] = jax.vjp(of, k)[1](weights(y))[0]
            names["K"] = k
        if twins.asks == "persistent":
            out["gradient, again"], out["jacobian"] = g, _jacobian(y, pull, x)
        if "named" in names:
            out["name"] = names["named"]
        return out

    try:
        with jax.disable_jit(eager and not twins.siblings.compiled):
            found = _under("vmap", ask)(x) if twins.where == "vmap" else ask(x)
            return {key: value if isinstance(value, str) else _settled(value) for key, value in found.items()}
    except Exception as error:
        return {"raised": error}


def _jacobian(y: Any, pull: Callable, x: Any) -> Any:
    rows = [pull(jnp.asarray(row, y.dtype).reshape(y.shape))[0] for row in np.eye(y.size)]
    return jnp.stack(rows).reshape(y.shape + x.shape)


def _results(names: dict[str, Any], on_tape: bool) -> Found:
    x, middle, end = names["x"], names["middle"], names["end"]
    if on_tape:
        with tf.GradientTape() as tape:
            tape.watch(x)
            us = middle(x)
            y = end(us)
        gradients = tape.gradient(y, [x, *us])
    else:
        us = middle(x)
        y, pull = jax.vjp(end, us)
        gradients = [jax.vjp(lambda x: end(middle(x)), x)[1](jnp.ones_like(y))[0], *pull(jnp.ones_like(y))[0]]
    return {"value": _settled(y), **{f"gradient {i}": _settled(g) for i, g in enumerate(gradients)}}


def _donated(names: dict[str, Any], on_tape: bool) -> Found:
    with tf.GradientTape() if on_tape else contextlib.nullcontext():
        z = names["z"] + 1
        y = names["call"](z)
    return {"value": _settled(y), "deleted": str(z.is_deleted())}


# ---- comparing ------------------------------------------------------------------------------------------------------

TOLERANCE = {"float64": 1e-5, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1, "complex64": 1e-4, "complex128": 1e-5}


def differ(found: Any, expected: Any, factor: float = 1.0) -> str:
    """What differs between two answers, or nothing."""
    if found is None or expected is None:
        one = found if expected is None else expected
        # not connected is zero
        return "" if one is None or not np.any(one[0]) else "None"
    if isinstance(expected, str):
        return "" if found == expected else f"{found} instead of {expected}"
    x, y = found[0], expected[0]
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"{x.dtype}{x.shape} instead of {y.dtype}{y.shape}"
    tolerance = TOLERANCE.get(str(y.dtype), 0) * factor
    x, y = (v.astype(complex if v.dtype.kind == "c" else float) for v in (x, y))
    scale = np.max(np.abs(y[np.isfinite(y)]), initial=0.1)
    with np.errstate(invalid="ignore"):
        close = (np.abs(x - y) <= tolerance * scale) | (x == y) | (np.isnan(x) & np.isnan(y))
    return "" if close.all() else f"{x.tolist()} instead of {y.tolist()}"


def first_difference(found: Found, expected: Found, factor: float = 1.0) -> str:
    if "raised" in expected:
        return "" if "raised" in found else f"no {type(expected['raised']).__name__}"
    if "raised" in found:
        error = found["raised"]
        return f"raised {type(error).__name__}: {str(error)[:300]}"
    for key in expected:
        if problem := differ(found[key], expected[key], factor):
            return f"{key}: {problem}"
    (_, place), (y, other) = found["value"], expected["value"]  # where a gradient is, XLA may choose
    return "" if place.is_equivalent_to(other, y.ndim) else f"value: {place} instead of {other}"


class Verdict(NamedTuple):
    kind: str  # empty: all is well
    detail: str = ""
    distinct: bool = True
    refused: bool = False


def judge(twins: Twins) -> Verdict:
    """Runs both, compares, and says what kind of failure there is."""
    with interpreted(not twins.compiled), _context(twins.option):
        expected = _expected(twins)
        told_apart = _told_apart(expected)
        refused = all("raised" in e for e in expected)
        if twins.threads:
            outcomes = _at_once(twins)
        else:
            outcomes = _in_turn(twins)
    for side, found in outcomes:
        if _says_no(twins, found):
            refused = True
            continue
        if problem := first_difference(found, expected[side]):
            others = [e for i, e in enumerate(expected) if i != side]
            return Verdict(_kind(found, expected[side], others, problem), f"program {side}: {problem}", told_apart)
    return Verdict("", "", told_apart, refused)


def _says_no(twins: Twins, found: Found) -> bool:
    """Whether a tape says that it cannot differentiate with respect to what a function closes over."""
    error = found.get("raised")
    return type(error) is LookupError and (twins.siblings.closed or "closes over" in str(error))


def _expected(twins: Twins) -> list[Found]:
    expected = []
    for side in range(len(twins.siblings.sides)):
        with twins.context(side):
            expected.append(plain(twins, side))
    return expected


def _told_apart(expected: list[Found]) -> bool:
    """Whether the first two differ in what has to come out."""
    return bool(first_difference(expected[1], expected[0], 5.0)) or "raised" in expected[0]


def distinct(twins: Twins) -> bool:
    with interpreted(not twins.compiled), _context(twins.option):
        return _told_apart(_expected(twins))


def _kind(found: Found, expected: Found, others: list[Found], problem: str) -> str:
    if "raised" in found:
        return f"raised {type(found['raised']).__name__}"
    if "raised" in expected:
        return "did not raise"
    where = problem.split(":")[0]
    if where.endswith("K"):
        return "gradient of what is closed over"
    return f"{where}: taken for its twin" if any(not first_difference(found, o) for o in others) else f"{where}: wrong"


def _in_turn(twins: Twins) -> list[tuple[int, Found]]:
    outcomes = []
    names: dict[str, Any] = {}
    sides = list(range(len(twins.siblings.sides)))
    for turn, side in enumerate(sides + sides[:1] * twins.again):
        change = twins.siblings.sides[side].change
        if turn and change:
            exec(change, names)
        else:
            names = namespace(twins.program(side), OnTape)
        between = twins.siblings.between[side] if twins.siblings.between else ""
        with twins.context(side):
            outcomes.append((side, taped(twins, names, between)))
    return outcomes


def _at_once(twins: Twins) -> list[tuple[int, Found]]:
    outcomes: list[tuple[int, Found]] = []
    sides = range(len(twins.siblings.sides))
    barrier = threading.Barrier(len(sides))

    def run(side: int) -> None:
        with interpreted(not twins.compiled), _context(twins.option), twins.context(side):
            names = namespace(twins.program(side), OnTape, functools.partial(time.sleep, 0.001))
            barrier.wait(60)
            outcomes.append((side, taped(twins, names)))

    threads = [threading.Thread(target=run, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(outcomes) < len(sides):
        raise RuntimeError("a thread did not come to its end")
    return sorted(outcomes, key=lambda outcome: outcome[0])


def family(twins: Twins) -> str:
    return twins.difference


def tally(twins: Twins, verdict: Verdict) -> list[str]:
    count = len(twins.siblings.sides)
    words = ["pairs"] * (count * (count - 1) // 2) + [f"asks {twins.asks}", f"difference {twins.difference}"]
    if not verdict.distinct:
        words.append(f"not told apart by the reference: {twins.difference}")
    if verdict.refused:
        words.append(f"refused: {twins.difference}")
    return words
