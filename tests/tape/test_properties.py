"""Random programs: a tape agrees with `jax.grad`, through each entrance, in both ways of running, in first and second order.

A program is data: a list of (operation, operands), where an operand is a number: the position (modulo how many there are) of
a value computed before. All values are 3 by 3 matrices. Every gradient is asked for with respect to *every* value of the
program, arguments and intermediates alike; `jax.grad` answers that by a small shift added to each value.
"""

from __future__ import annotations

import os
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax

import tapejax as tf
from tapejax.execution import schedule, trial
from tapejax.tape import operation
from tapejax.tf.values import operations as values
from tests.tape.interpreted import interpreted

EXAMPLES = int(os.environ.get("TAPEJAX_EXAMPLES", 12))  # more in .ci/nightly

settings.register_profile(
    "tapejax",
    derandomize=not os.environ.get("TAPEJAX_RANDOM"),  # set it to look for new counterexamples
    deadline=None,
    database=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tapejax")

# ---- the operations: bounded, smooth where they are evaluated, and functions that stay the same objects ----------------


def sin(x):
    return jnp.sin(x)


def tanh(x):
    return jnp.tanh(x)


def gaussian(x):
    return jnp.exp(-(x**2))


def halve(x):
    return x / 2


def root(x):
    return jnp.sqrt(x * x + 1)


def sigmoid(x):
    return jax.nn.sigmoid(x)


def leaky(x):
    return jax.nn.leaky_relu(x + 0.37)  # a custom rule, piecewise


def add(x, y):
    return x + y


def subtract(x, y):
    return x - 0.5 * y


def multiply(x, y):
    return x * y


def divide(x, y):
    return x / (1 + y * y)


def matmul(x, y):
    return x @ y / 3


def transpose(x):
    return x.T


def contract(x, y):
    return jnp.einsum("ij,jk,ik->ik", x, y, x) / 3


def solve(x, y):
    return jnp.linalg.solve(x / 10 + 3 * jnp.eye(3), y)


def total(x):
    return jnp.broadcast_to(jnp.sum(x) / 9, (3, 3))


def mean(x):
    return jnp.mean(x, axis=0, keepdims=True) + jnp.zeros((3, 3))


def spread(x):
    return jnp.broadcast_to(jnp.std(x, axis=1, keepdims=True), (3, 3)) * jnp.arange(3.0)


def softmax(x):
    return jax.nn.softmax(x, axis=1)


def first_row(x):
    return jnp.broadcast_to(x[0], (3, 3))


def gather(x):
    return x[jnp.array([2, 0, 0])]


def gather_by(x, y):
    return x[jnp.argmax(y, axis=0)]  # indices that depend on a value


def scatter(x, y):
    return x.at[jnp.array([1, 1])].add(y[:2]).at[0, 0].set(0.25)


def order(x):
    return jnp.sort(x, axis=1) * jnp.arange(3.0)


def where(x, y):
    return jnp.where(x > 0.1, y, x * 0.5)


def branch(x, y):
    return lax.cond(jnp.sum(x) > 0.2, lambda a, b: a * b, lambda a, b: jnp.sin(b), x, y)


def loop(x, y):
    return lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c * y + i), x)


def scan(x, y):
    return lax.scan(lambda c, row: (c * row, jnp.sin(c) + row), x[0], y)[1]


def count(x, y):
    n = lax.while_loop(lambda n: n < 2.0 + jnp.abs(jnp.sum(lax.stop_gradient(y))), lambda n: n + 1, 0.0)
    return x / (n + 1)


def mapped(x, y):
    return jax.vmap(lambda a, b: jnp.outer(a, b)[0], (0, 1), 1)(x, y)


def closing_over(x, y):
    return jax.jit(lambda: jax.jit(lambda a: a * x)(y))()


def checkpointed(x, y):
    return jax.checkpoint(lambda a: jnp.sin(a @ y) / 3)(x)


def stop(x):
    return lax.stop_gradient(x)


def floor(x):
    return jnp.floor(x + 0.37)


def beside(x, y):
    return lax.stop_gradient(x) * y


def identity(x):
    return _identity(x)  # JAX answers with its very argument


def rule(x):
    return _rule(x)


def back_rule(x, y):
    return _back_rule(x, y)


_identity = jax.jit(lambda x: x)
_rule = jax.custom_jvp(lambda x: jnp.cos(x))
_rule.defjvp(lambda primals, tangents: (_rule(*primals), 3 * primals[0] * tangents[0]))
_back_rule = jax.custom_vjp(lambda x, y: x * y)
_back_rule.defvjp(lambda x, y: (_back_rule(x, y), (x, y)), lambda saved, g: (2 * g * saved[1], g * saved[0]))

ONE = [
    sin,
    tanh,
    gaussian,
    halve,
    root,
    sigmoid,
    leaky,
    transpose,
    total,
    mean,
    spread,
    softmax,
    first_row,
    gather,
    order,
]
ONE += [stop, floor, identity, rule]
TWO = [add, subtract, multiply, divide, matmul, contract, solve, gather_by, scatter, where, branch, loop, scan, count]
TWO += [mapped, closing_over, checkpointed, beside, back_rule]

operands = st.integers(0, 20)
steps = st.one_of(
    st.tuples(st.sampled_from(ONE), st.tuples(operands)), st.tuples(st.sampled_from(TWO), st.tuples(operands, operands))
)
programs = st.lists(steps, min_size=1, max_size=8)
seeds = st.integers(0, 1000)


def arguments(seed):
    random = np.random.default_rng(seed)
    return [jnp.asarray(random.uniform(-1, 1, (3, 3)), float) for _ in range(3)]


# ---- running them -----------------------------------------------------------------------------------------------------


def through_jax(fn, *xs):
    return fn(*xs)


def through_apply(fn, *xs):
    return operation.apply(fn, *xs)


def through_tensorflow(fn, *xs):
    """By TensorFlow's name where there is one, else as an operation on Tensors."""
    return NAMES[fn](*xs) if fn in NAMES else values.op(fn, *xs)


NAMES = {
    sin: tf.sin,
    tanh: tf.tanh,
    gaussian: lambda x: tf.exp(-tf.square(x)),
    halve: lambda x: x / 2,
    root: lambda x: tf.sqrt(x * x + 1),
    sigmoid: tf.sigmoid,
    leaky: lambda x: tf.nn.leaky_relu(x + 0.37, alpha=0.01),
    add: lambda x, y: x + y,
    subtract: lambda x, y: tf.subtract(x, 0.5 * y),
    multiply: tf.multiply,
    divide: lambda x, y: x / (1.0 + y**2),
    matmul: lambda x, y: tf.matmul(x, y) / 3,
    transpose: tf.transpose,
    contract: lambda x, y: tf.einsum("ij,jk,ik->ik", x, y, x) / 3,
    total: lambda x: tf.broadcast_to(tf.reduce_sum(x) / 9, [3, 3]),
    mean: lambda x: tf.reduce_mean(x, axis=0, keepdims=True) + tf.zeros([3, 3], x.dtype),
    softmax: lambda x: tf.nn.softmax(x, axis=1),
    first_row: lambda x: tf.broadcast_to(x[0], [3, 3]),
    gather: lambda x: tf.gather(x, [2, 0, 0]),
    gather_by: lambda x, y: tf.gather(x, tf.argmax(y, axis=0)),
    where: lambda x, y: tf.where(x > 0.1, y, x * 0.5),
    stop: tf.stop_gradient,
    floor: lambda x: tf.floor(x + 0.37),
    beside: lambda x, y: tf.stop_gradient(x) * y,
    identity: tf.identity,
}

ENTRANCES = pytest.mark.parametrize(
    "entrance", [through_jax, through_apply, through_tensorflow], ids=["jnp", "apply", "tensorflow"]
)


def execute(program, xs, entrance=through_jax, shifts=None):
    """Every value of the program, the arguments first; `shifts` are added to them as they come."""
    all_values = []

    def keep(x):
        all_values.append(x if shifts is None else x + shifts[len(all_values)])

    for x in xs:
        keep(x)
    for fn, places in program:
        keep(entrance(fn, *(all_values[place % len(all_values)] for place in places)))
    return all_values


def gradient_by_jax(function):
    """The reference, evaluated by Python: XLA takes longer to compile it than the test."""
    return interpreted()(jax.grad(function))


def expected_gradients(program, xs):
    shifts = [jnp.zeros((3, 3))] * (len(xs) + len(program))
    return gradient_by_jax(lambda s: jnp.sum(execute(program, xs, shifts=s)[-1]))(shifts)


def record(program, xs, entrance, persistent=False):
    with tf.GradientTape(persistent) as tape:
        tape.watch(xs)
        results = execute(program, xs, entrance)
    return tape, results


def assert_agree(found, expected, tolerance=2e-4):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.zeros((3, 3)) if x is None else x, y, rtol=tolerance, atol=tolerance)


@ENTRANCES
@given(programs, seeds)
def test_gradient(entrance, program, seed):
    """With respect to every value, twice: what was run step by step may come back compiled whole."""
    xs = arguments(seed)
    expected = expected_gradients(program, xs)
    for _ in range(2):
        tape, results = record(program, xs, entrance)
        assert_agree(tape.gradient(results[-1], results), expected)


@ENTRANCES
@given(programs, seeds)
def test_gradient_step_by_step(entrance, program, seed):
    xs = arguments(seed)
    tape, results = record(program, xs, entrance)
    with mock.patch.object(schedule, "COMPILE_AT_MOST", 0):
        assert_agree(tape.gradient(results[-1], results), expected_gradients(program, xs))


@given(programs, seeds)
def test_whole_and_step_by_step_are_connected_alike(program, seed):
    """What is None in one way of running is None in the other, and through every entrance."""
    found = []
    for entrance in (through_jax, through_apply, through_tensorflow):
        for limit in (0, 10**6):
            with mock.patch.object(schedule, "COMPILE_AT_MOST", limit):
                tape, results = record(program, arguments(seed), entrance)
                found.append([x is None for x in tape.gradient(results[-1], results)])
    assert all(f == found[0] for f in found)


@ENTRANCES
@given(programs, seeds)
def test_as_function(entrance, program, seed):
    """The function on the tape has the program's values, there and elsewhere on the same path, and its gradient."""
    xs = arguments(seed)
    tape, results = record(program, xs, entrance)
    function = tape.as_function(results[-1], xs)
    np.testing.assert_allclose(function(xs), results[-1], rtol=1e-4, atol=1e-4)
    expected = gradient_by_jax(lambda xs: jnp.sum(execute(program, xs)[-1]))(xs)
    assert_agree(jax.grad(lambda xs: jnp.sum(function(xs)))(xs), expected)


@ENTRANCES
@settings(max_examples=EXAMPLES // 2)
@given(programs, seeds)
def test_second_order(entrance, program, seed):
    """The gradient of the squared gradient, by nested tapes."""
    xs = arguments(seed)

    def squared(gradients):
        return sum(jnp.sum(g**2) for g in gradients if g is not None)

    expected = gradient_by_jax(lambda xs: squared(jax.grad(lambda xs: jnp.sum(execute(program, xs)[-1]))(xs)))(xs)
    with tf.GradientTape() as outer:
        outer.watch(xs)
        inner, results = record(program, xs, entrance)
        gradients = inner.gradient(results[-1], xs)
        objective = squared(gradients)
    if any(g is not None for g in gradients):
        assert_agree(outer.gradient(objective, xs), expected, 2e-3)


@settings(max_examples=EXAMPLES // 2)
@given(programs, seeds, st.sets(st.integers(0, 2)), operands)
def test_what_is_not_watched_or_ran_before_the_block_is_constant(program, seed, watched, begin):
    """The tape sees the program from step `begin` on, and watches some of the values that are there by then."""
    xs = arguments(seed)
    begin %= len(program)
    results = execute(program[:begin], xs)
    some = [x for i, x in enumerate(results) if i % 3 in watched]
    with tf.GradientTape() as tape:
        tape.watch(some)
        after = execute(program[begin:], results)
    found = tape.gradient(after[-1], results)

    expected = gradient_by_jax(lambda vs: jnp.sum(execute(program[begin:], vs)[-1]))(results)
    expected = [g if i % 3 in watched else jnp.zeros((3, 3)) for i, g in enumerate(expected)]
    assert_agree(found, expected)
    assert all(g is None for i, g in enumerate(found) if i % 3 not in watched)


@settings(max_examples=EXAMPLES // 2)
@given(programs, seeds)
def test_inside_jit_and_vmap(program, seed):
    xs = arguments(seed)

    def step(xs):
        tape, results = record(program, xs, through_jax)
        return tape.gradient(results[-1], xs, unconnected_gradients="zero")

    expected = gradient_by_jax(lambda xs: jnp.sum(execute(program, xs)[-1]))
    assert_agree(jax.jit(step)(xs), expected(xs))
    batch = [jnp.stack([x, 0.5 * x]) for x in xs]
    mapped = jax.vmap(step)(batch)
    for i in range(2):
        assert_agree([g[i] for g in mapped], expected([x[i] for x in batch]))


@settings(max_examples=EXAMPLES // 2)
@given(programs, seeds)
def test_values_do_not_change(program, seed):
    """A tape looks on: what is computed in its block is what would have been computed without it.

    To the last bit where everything is compiled; what NumPy evaluates is rounded elsewhere.
    """
    xs = arguments(seed)
    expected = execute(program, xs)
    for x, y in zip(record(program, xs, through_jax)[1], expected):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    with mock.patch.object(trial, "enabled", False):
        for x, y in zip(record(program, xs, through_jax)[1], expected):
            np.testing.assert_array_equal(x, y)
