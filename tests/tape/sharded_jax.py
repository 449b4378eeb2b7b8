"""Tapes over arrays that are spread over eight devices; run by `test_sharding.py` in a process that has them."""

from __future__ import annotations

import functools
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import tapejax as tf

ROWS, WHOLE = P("data"), P()


@functools.cache
def mesh():
    return jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def spread(spec):
    return NamedSharding(mesh(), spec)


def arguments():
    x = jnp.arange(16.0).reshape(8, 2) / 16
    w = jnp.arange(6.0).reshape(2, 3) / 6
    return jax.device_put(x, spread(ROWS)), jax.device_put(w, spread(WHOLE))


def over_devices(function, out_specs=ROWS):
    return jax.shard_map(function, mesh=mesh(), in_specs=(ROWS, WHOLE), out_specs=out_specs)


def rows(x, w):
    return jnp.sin(x @ w)


def of_one_function(x, w):
    """A function that comes back as the same object."""
    return over_devices(rows)(x, w)


def of_a_fresh_lambda(x, w):
    return over_devices(lambda a, b: jnp.tanh(a @ b))(x, w)


def with_a_collective(x, w):
    return over_devices(lambda a, b: lax.psum(jnp.sum(a @ b) ** 2, "data"), WHOLE)(x, w)


def with_a_collective_in_between(x, w):
    return over_devices(lambda a, b: a @ b * lax.pmean(jnp.sum(a, 0), "data")[0])(x, w)


def with_gathering(x, w):
    return over_devices(lambda a, b: a @ b + lax.all_gather(a, "data").sum())(x, w)


def in_jit(x, w):
    return jax.jit(of_a_fresh_lambda)(x, w)


def with_relu(x, w):
    return over_devices(lambda a, b: jax.nn.relu(a @ b - 0.5))(x, w)


def with_a_scan(x, w):
    return over_devices(lambda a, b: lax.scan(lambda c, _: (jnp.sin(c @ b @ b.T), None), a, None, length=2)[0])(x, w)


@jax.custom_jvp
def scaled(x, factor):
    return x * factor


@scaled.defjvp
def _(primals, tangents):
    return scaled(*primals), tangents[0] * primals[1] + primals[0] * tangents[1]


@jax.custom_vjp
def raised(x, power):
    return x + power


raised.defvjp(lambda x, power: (x + power, x), lambda x, ct: (ct, lax.psum(ct.sum(), "data")))


@jax.jit
def in_jit_with_a_rule(x, w):
    """Of its arguments one differs between devices, the other is the same on all."""
    return over_devices(lambda a, b: jax.nn.relu(b).sum() * scaled(jax.nn.silu(a), b[0, 1]))(x, w)


@jax.jit
def in_jit_with_a_rule_that_sums(x, w):
    return over_devices(lambda a, b: raised(a, b.sum()) ** 2)(x, w)


@tf.function
def compiled(x, w):
    return jnp.sin(x @ w) * lax.psum(jnp.sum(x), "data")


def of_a_function(x, w):
    return over_devices(lambda a, b: compiled(a, b) * compiled(a * 2, b))(x, w)


def in_checkpoint(x, w):
    return jax.checkpoint(of_one_function)(x, w)


def by_sharded_arrays(x, w):
    """No shard_map: JAX spreads the work by where the arrays are."""
    return jnp.mean(jax.nn.relu(x @ w) ** 2)


def with_a_constraint(x, w):
    return lax.with_sharding_constraint(x @ w, spread(ROWS)) ** 2


def with_device_put(x, w):
    return jax.device_put(jnp.sin(x @ w), spread(WHOLE)) * 2


FUNCTIONS = [value for name, value in list(globals().items()) if name.startswith(("of_", "with_", "in_", "by_"))]


def gradient(function, sources):
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    return tape.gradient(y, sources)


def assert_same(found, expected):
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5), tuple(found), tuple(expected))


def check(function):
    sources = arguments()
    expected = jax.grad(lambda xs: jnp.sum(function(*xs)))(sources)
    for _ in range(3):
        found = gradient(function, sources)
        assert_same(found, expected)
        assert found[0].sharding.is_equivalent_to(spread(ROWS), 2), found[0].sharding
    assert_same(jax.jit(functools.partial(gradient, function))(sources), expected)

    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    assert_same(jax.grad(lambda xs: jnp.sum(tape.as_function(y, sources)(xs)))(sources), expected)

    with tf.GradientTape() as outer:
        outer.watch(sources)
        first = gradient(function, sources)
    second = jax.grad(lambda xs: sum(map(jnp.sum, jax.grad(lambda v: jnp.sum(function(*v)))(xs))))(sources)
    assert_same(outer.gradient(first, sources, unconnected_gradients="zero"), second)


def check_tape_inside():
    """A tape inside shard_map: each device takes the gradient of its own part."""
    x, w = arguments()

    def by_tape(a, b):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = rows(a, b)
        return tape.gradient(y, a)

    def by_jax(a, b):
        return jax.grad(lambda a: jnp.sum(rows(a, b)))(a)

    assert_same([over_devices(by_tape)(x, w)], [over_devices(by_jax)(x, w)])
    assert_same([jax.jit(over_devices(by_tape))(x, w)], [over_devices(by_jax)(x, w)])


def check_jacobians():
    """A row's cotangent is placed as the target is: inside shard_map, and where a sharding is a part of the type."""
    x, w = arguments()

    def by_tape(method):
        def jacobian(a, b):
            with tf.GradientTape() as tape:
                tape.watch(a)
                y = rows(a, b)
            return getattr(tape, method)(y, a)

        return jacobian

    expected = jax.vmap(jax.jacrev(rows), (0, None))(x, w)
    for transform in (lambda f: f, jax.jit):
        assert_same([transform(over_devices(by_tape("batch_jacobian")))(x, w)], [expected])
        by_device = transform(over_devices(by_tape("jacobian")))(x, w)
        assert_same([by_device[:, :, 0]], [expected])  # each device has one row
        with jax.set_mesh(explicit()):
            spread_out = jax.device_put(x, P("data"))
            assert_same([transform(by_tape("batch_jacobian"))(spread_out, jax.device_put(w, P()))], [expected])


def check_closures():
    """A jitted function that closes over an array keeps what was asked for it, and JAX places the array."""
    x, factor = jnp.arange(8.0), jnp.arange(8.0) + 1
    for asked in ({}, {"out_shardings": spread(ROWS)}, {"in_shardings": spread(ROWS), "out_shardings": spread(WHOLE)}):
        for array in (factor, jax.device_put(factor, spread(ROWS)), jax.device_put(factor, jax.devices()[2])):
            function = jax.jit(lambda x, array=array: x * array, **asked)
            with tf.GradientTape() as tape:
                y = function(x)
            assert y.sharding == function(x).sharding, (y.sharding, asked)
        inner = functools.partial(closing_over_twice, **asked)
        with tf.GradientTape() as tape:
            tape.watch([x, factor])
            y = inner(factor * 2)(x)
        assert_same(tape.gradient(y, [x, factor]), (4 * factor**2, 8 * factor * x))


def closing_over_twice(array, **asked):
    return jax.jit(lambda x: jax.jit(lambda x: x * array, **asked)(x) * array)


def check_moves():
    """Between devices, as a mesh that is set in the block has them."""
    x, here = jnp.arange(8.0), jax.devices()[3]

    def function(x):
        with jax.set_mesh(mesh()):
            assert jax.sharding.get_mesh() == mesh()
            y = jnp.sin(jax.device_put(x, P("data")))
            y = jax.jit(lambda y: lax.with_sharding_constraint(y * 2, P("data")))(y)
        return jax.device_put(y, here) * 3

    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert y.sharding == function(x).sharding
        assert_same([tape.gradient(y, x)], [jax.grad(lambda x: function_without_mesh(x, here).sum())(x)])


def function_without_mesh(x, here):
    return jax.device_put(2 * jnp.sin(jax.device_put(x, spread(ROWS))), here) * 3


def check_unreduced():
    """The cotangent of what is yet to be summed over devices is the same on each of them."""
    with jax.set_mesh(explicit()):
        x = jax.reshard(jnp.arange(8.0), P(unreduced={"data"}))
        summed = jax.shard_map(lambda x: lax.psum_scatter(x, "data", tiled=True), out_specs=ROWS)
        (found,), expected = gradient(lambda x: summed(x) ** 2, [x]), jax.grad(lambda x: (summed(x) ** 2).sum())(x)
        assert found.sharding == expected.sharding, found.sharding
        assert_same(
            [part.data for part in found.addressable_shards], [part.data for part in expected.addressable_shards]
        )


@functools.cache
def explicit():
    return jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))


def whole(x):
    return jax.reshard(x, WHOLE)


def cast_to_varying(x):
    def body(a, b):
        return lax.psum(a * lax.pcast(b, "data", to="varying")[0], "data") ** 2

    return jax.shard_map(body, in_specs=(ROWS, WHOLE), out_specs=WHOLE)(x, whole(x * x))


def without_a_check(x):
    return jax.shard_map(lambda a: lax.psum(jnp.sin(a), "data") ** 2, out_specs=WHOLE, check_vma=False)(x)


def gradient_inside(x):
    def body(a, b):
        return jax.grad(lambda b: lax.psum(jnp.sum(a * b**2), "data"))(b) ** 2

    return jax.shard_map(body, in_specs=(ROWS, WHOLE), out_specs=WHOLE)(x, whole(jnp.cos(x)))


def products(x):
    outer = jnp.einsum("i,j->ij", x, whole(x), out_sharding=P("data", None))
    return jnp.dot(outer, whole(x), out_sharding=ROWS) * jnp.dot(x, jnp.sin(x), out_sharding=WHOLE)


def resharded(x):
    return whole(jnp.sin(x)) * whole(jax.nn.relu(x)) * jax.vmap(jnp.cos, out_axes=None, sum_match=True)(x)


def in_control_flow(x):
    return jax.checkpoint(lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, length=2)[0])(x)


def not_yet_summed(x):
    return whole(jnp.dot(x, jnp.sin(x), out_sharding=P(unreduced={"data"}))) ** 2


def scattered(x):
    summed = jax.shard_map(lambda x: lax.psum_scatter(x, "data", tiled=True), out_specs=ROWS)
    return summed(jax.reshard(whole(x), P(unreduced={"data"}))) ** 2


def yet_to_be_summed_back(x):
    reduced = jax.reshard(whole(x), P(reduced={"data"}))
    return jnp.dot(jax.reshard(jnp.eye(8), P("data", None)), reduced, out_sharding=ROWS) ** 2


def by_auto_axes(x):
    turned = jax.sharding.auto_axes(lambda x: jnp.sin(x) * x[::-1] * x, axes="data", out_sharding=ROWS)
    return jnp.sum(turned(x) * x)


# The rows of the table in `docs/jax.md` that need several devices.
FEATURES = {
    "`psum`, `pcast` in `shard_map`, with and without `check_vma`": (cast_to_varying, without_a_check, gradient_inside),
    "explicit sharding: `reshard`, `out_sharding`": (products, resharded, in_control_flow),
    "`unreduced` and `reduced` values": (not_yet_summed, scattered, yet_to_be_summed_back),
    "`jax.sharding.auto_axes`": (by_auto_axes,),
}


def check_feature(function):
    """A tape in a mesh that is explicit, in `jax.jit` there, around it, and in another tape, beside `jax.grad`."""

    def by_tape(function):
        return lambda x: gradient(lambda x: whole(function(x)).sum(), [x])[0]

    def by_jax(function):
        return jax.grad(lambda x: whole(function(x)).sum())

    with jax.set_mesh(explicit()):
        x = jax.reshard(jnp.linspace(0.3, 2.2, 8), ROWS)
        expected = by_jax(function)(x)
        for way in (by_tape(function), by_tape(jax.jit(function)), jax.jit(by_tape(function)), by_tape(function)):
            found = way(x)
            assert jax.typeof(found) == jax.typeof(expected), (jax.typeof(found), jax.typeof(expected))
            assert_same([found], [expected])
        assert_same([by_tape(by_tape(function))(x)], [by_jax(by_jax(function))(x)])


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", "64" in sys.argv)
    warnings.simplefilter("error")
    assert len(jax.devices()) == 8
    for function in FUNCTIONS:
        check(function)
        print(function.__name__, flush=True)
    for functions in FEATURES.values():
        for function in functions:
            check_feature(function)
            print(function.__name__, flush=True)
    check_closures()
    check_moves()
    check_unreduced()
    check_jacobians()
    check_tape_inside()
    print("tape inside")
