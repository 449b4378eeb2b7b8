"""A convolution that is replaced gives what XLA's own gives, whatever is derived of it, mapped or nested."""

import functools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import convolutions, rewriting
from tapejax.execution import trial as trials
from tapejax.execution.trial import Trial
from tapejax.jaxprs import contents

lax = jax.lax
ONES = (1, 1, 1)


def convolution(rank, strides=ONES, padding="SAME", apart=ONES, rate=ONES, groups=1, batch_groups=1, first=False):
    axes = "DHW"[-rank:]
    layout = f"NC{axes}" if first else f"N{axes}C"
    if padding == "SAME" and apart != ONES:
        padding = ((1, 2),) * rank
    return functools.partial(
        lax.conv_general_dilated,
        window_strides=strides[:rank],
        padding=padding,
        lhs_dilation=apart[:rank],
        rhs_dilation=rate[:rank],
        dimension_numbers=(layout, f"{axes}IO", layout),
        feature_group_count=groups,
        batch_group_count=batch_groups,
    )


def drawn(shape, dtype="float32"):
    return jnp.asarray(np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype))


# What convolves, the shapes of both operands, and what replaces its own equation and those that are derived of it.
CASES = {
    "depthwise": (convolution(2, groups=3), (2, 5, 4, 3), (3, 3, 1, 3), {"_by_taps"}),
    "depthwise, strided": (convolution(2, (2, 3), groups=3), (2, 7, 6, 3), (3, 2, 1, 3), {"_by_taps", "_by_remainder"}),
    "depthwise, dilated": (convolution(2, rate=(2, 1), groups=3), (1, 7, 6, 3), (3, 3, 1, 3), {"_by_taps"}),
    "depthwise, two of each": (convolution(2, groups=3), (2, 5, 4, 3), (3, 3, 1, 6), {"_by_taps", "_by_places"}),
    "depthwise, many channels": (convolution(1, groups=64), (2, 5, 64), (3, 1, 64), {"_by_taps", "_by_places"}),
    "depthwise, 3-D": (convolution(3, (1, 2, 1), groups=2), (1, 3, 4, 3, 2), (2, 2, 2, 1, 2), {"_by_taps", "_by_remainder"}),
    "depthwise, channels first": (convolution(2, groups=3, first=True), (2, 3, 5, 4), (3, 3, 1, 3), {"_by_taps"}),
    "grouped": (convolution(2, groups=2), (2, 5, 4, 10), (3, 3, 5, 8), {"_by_group"}),
    "grouped, strided": (convolution(1, (2,), groups=2), (2, 9, 10), (3, 5, 8), {"_by_group"}),
    "grouped, 3-D": (convolution(3, groups=2), (1, 3, 4, 3, 10), (2, 2, 2, 5, 8), {"_by_group", "_by_depth"}),
    "batches in groups": (convolution(2, batch_groups=2), (4, 5, 4, 3), (2, 2, 3, 6), {"_by_group"}),
    "transposed": (convolution(2, apart=(2, 2)), (2, 4, 5, 3), (3, 3, 3, 2), {"_exchanged"}),
    "transposed, 1-D": (convolution(1, apart=(3,), padding=((-1, 4),)), (2, 6, 3), (2, 3, 2), {"_exchanged"}),
    "transposed, dilated": (convolution(1, apart=(2,), rate=(3,)), (2, 6, 3), (2, 3, 2), {"_by_zeros"}),
    "transposed, 3-D": (convolution(3, apart=(2, 1, 2)), (1, 3, 4, 3, 2), (2, 2, 3, 2, 3), {"_by_remainder", "_exchanged"}),
    "3-D": (convolution(3), (2, 3, 3, 4, 2), (2, 2, 3, 2, 3), {"_by_depth"}),
    "3-D, strided": (convolution(3, (2, 2, 1), "VALID"), (2, 5, 4, 5, 2), (3, 2, 3, 2, 3), {"_by_depth", "_by_remainder"}),
    "3-D, dilated": (convolution(3, rate=(2, 1, 2)), (2, 5, 3, 5, 2), (3, 2, 3, 2, 3), {"_by_depth"}),
    "what falls between": (convolution(3, apart=(3, 3, 3)), (1, 3, 3, 3, 2), (1, 1, 1, 2, 2), {"_by_remainder"}),
}  # fmt: skip


@pytest.fixture
def used(monkeypatch):
    """What has replaced convolutions."""
    found, rule = set(), convolutions._rule

    def noted(*args):
        replaced = rule(*args)
        found.add(getattr(getattr(replaced, "func", replaced), "__name__", None))
        return replaced

    monkeypatch.setattr(convolutions, "_rule", noted)
    return found


def check(fn, *args, tolerance=1e-4):
    expected, found = jax.jit(fn)(*args), jax.jit(rewriting.rewriting(fn))(*args)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * float(abs(y).max(initial=1)))


@pytest.mark.parametrize("name", CASES)
def test_replaced_as_by_xla(name, used):
    "The result, and what comes back to both operands."
    conv, x, w, expected = CASES[name]
    x, w = drawn(x), drawn(w)
    ct = jnp.cos(conv(x, w))

    def every(x, w, ct):
        y, pull = jax.vjp(conv, x, w)
        return y, pull(ct)

    check(every, x, w, ct)
    assert expected <= used


@pytest.mark.parametrize("name", ["depthwise, strided", "grouped", "transposed", "3-D"])
def test_mapped_and_of_second_order(name):
    conv, x, w, _ = CASES[name]
    x, w = drawn(x), drawn(w)

    def penalty(x, w):
        return jnp.sum(jax.grad(lambda x: jnp.sum(jnp.sin(conv(x, w))))(x) ** 2)

    check(lambda x, w: jax.vmap(jax.grad(penalty, (0, 1)))(jnp.stack([x, 2 * x]), jnp.stack([w, w + 1])), x, w)
    check(lambda x, w: jax.jvp(conv, (x, w), (w.sum() * x, w)), x, w)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float16", 1e-2), ("bfloat16", 5e-2), ("int32", 0)])
def test_of_other_dtypes(dtype, tolerance):
    with jax.enable_x64(True):
        for name in ("depthwise", "grouped", "transposed", "3-D"):
            conv, x, w, _ = CASES[name]
            x, w = ((4 * drawn(shape)).astype(dtype) for shape in (x, w))
            check(lambda x, w, conv=conv: conv(x, w).astype("float64"), x, w, tolerance=tolerance)


def test_at_any_depth():
    conv, x, w, _ = CASES["depthwise"]
    x, w = drawn(x), drawn(w)

    @jax.custom_vjp
    def ruled(x, w):
        return conv(x, w)

    ruled.defvjp(lambda x, w: (conv(x, w), (x, w)), lambda kept, ct: jax.vjp(conv, *kept)[1](ct))

    def nested(x, w):
        x, _ = lax.scan(lambda x, _: (jax.jit(conv)(x, w), None), x, None, length=2)
        x = lax.while_loop(lambda x: x.max() > 1e3, lambda x: conv(x, w), x)
        return jax.checkpoint(lambda x: lax.cond(x.sum() > 0, ruled, lambda x, w: -ruled(x, w), x, w))(x)

    program = jax.make_jaxpr(nested)(x, w)
    assert contents.contains(program, "conv_general_dilated")
    assert not contents.contains(rewriting.rewritten(program), "conv_general_dilated")
    check(nested, x, w)


def test_what_xla_computes_quickly_stays_as_it_is():
    for fn in (
        lambda x, w: lax.conv(x, w, (2, 2), "SAME"),
        jax.grad(lambda x, w: lax.conv(x, w, (2, 2), "SAME").sum()),
        lambda x, w: x,
    ):
        program = jax.make_jaxpr(fn)(drawn((2, 3, 8, 8)), drawn((4, 3, 3, 3)))
        assert rewriting.rewritten(program) is program


@pytest.mark.parametrize("always", [False, True])
def test_the_compiler_is_given_the_replaced_program(always, monkeypatch, used):
    "With every operation on trial, and with all of them compiled at once."
    monkeypatch.setattr(trials, "enabled", not always)
    conv, x, w, _ = CASES["transposed"]
    x, w = drawn(x), drawn(w)
    trial = Trial(jax.grad(lambda w, x: jnp.sum(conv(x, w) ** 2)))
    expected = jax.grad(lambda w, x: jnp.sum(conv(x, w) ** 2))(w, x)
    for _ in range(3):
        np.testing.assert_allclose(trial(w, x), expected, rtol=1e-4, atol=1e-3)
    assert "_exchanged" in used


def test_products_are_counted():
    "A convolution that XLA writes as a loop of its own runs ten times as long without its optimisation."
    conv, x, w, _ = CASES["batches in groups"]
    (slow,) = jax.make_jaxpr(conv)(drawn(x), drawn(w)).eqns
    (quick,) = jax.make_jaxpr(lambda x, w: lax.conv(x, w, (1, 1), "VALID"))(
        drawn((4, 3, 5, 4)), drawn((6, 3, 2, 2))
    ).eqns
    assert not convolutions.is_eigens(slow)
    assert convolutions.is_eigens(quick)
    assert convolutions.products(quick) == 4 * 6 * 4 * 3 * 3 * 2 * 2
    x = jnp.zeros((64, 64))
    (product,) = jax.make_jaxpr(jnp.matmul)(x, x[:, :2]).eqns[-1:]
    assert convolutions.products(product) == 64 * 64 * 2
    for program in (lambda x: x @ x, lambda x: lax.conv(x[None, None], x[None, None], (1, 1), "SAME")):
        small, large = (trials._measure(jax.make_jaxpr(program)(jnp.zeros((n, n))), Counter())[1] for n in (8, 64))
        assert large > 64 * small


def test_a_tape_around_compiled_functions_is_served(used):
    conv, x, w, _ = CASES["depthwise"]
    x, w = drawn(x), drawn(w)
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = jnp.sum(jax.jit(conv)(x, w) ** 2)
    np.testing.assert_allclose(
        tape.gradient(y, w), jax.grad(lambda w: jnp.sum(conv(x, w) ** 2))(w), rtol=1e-4, atol=1e-4
    )
    assert "_by_taps" in used
