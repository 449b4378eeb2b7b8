"""Where a tape, PyTorch's `backward`, JAX's functions and `torch.func` answer differently: each row is a small program in each.

`ROWS`, of four parts, has the four programs of a row in the order of `ways.TITLES`; None where a way has no such thing.
"""

import jax
import jax.numpy as jnp
from ways import torch

import tapejax as tf


def by_tape(f, x, **options):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, **options)


def by_backward(f, x):
    x = torch.tensor(x, requires_grad=True)
    f(x).backward()
    return x.grad


def by_func(f, x):
    return torch.func.grad(f)(torch.tensor(x))


def variable_changes():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    v.assign(10.0)
    return tape.gradient(y, v)


def array_changes():
    x = jnp.array(2.0)
    y, pull_back = jax.vjp(lambda x: x * x, x)
    x = jnp.array(10.0)  # arrays do not change: this is another one
    return pull_back(jnp.ones_like(y))[0]


def tensor_changes(change):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    change(x)
    y.backward()
    return x.grad


def argument_changes(change):
    x = torch.tensor(2.0)
    y, pull_back = torch.func.vjp(lambda x: x * x, x)
    change(x)
    return pull_back(torch.ones_like(y))[0]


def in_place(x):
    with torch.no_grad():
        x.copy_(torch.tensor(10.0))


def by_data(x):
    x.data = torch.tensor(10.0)


def rate_changes(derivative, x):
    rate = 2.0
    slope = derivative(lambda x: rate * x)
    before = slope(x)
    rate = 3.0
    return before, slope(x)


def twice_by_tape():
    x = jnp.array(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x), tape.gradient(y, x)


def twice_by_backward():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    y.backward()
    return x.grad


def twice_by_vjp(vjp, x):
    y, pull_back = vjp(lambda x: x * x, x)
    return pull_back(1.0 + 0.0 * y)[0], pull_back(1.0 + 0.0 * y)[0]


def two_by_backward():
    x, found = torch.tensor(2.0, requires_grad=True), []
    for _ in range(2):
        (x * x).backward()
        found.append(float(x.grad))
    return tuple(found)


def square(x):
    return x * x


# Is there a path?
PATH = {
    "1. y comes from another variable, not from x": (
        lambda: by_tape(lambda x: 3.0 * tf.Variable(2.0), jnp.array(1.7)),
        lambda: by_backward(lambda x: 3.0 * torch.tensor(2.0, requires_grad=True), 1.7),
        lambda: jax.grad(lambda x: 3.0 * jnp.array(2.0))(1.7),
        lambda: by_func(lambda x: 3.0 * torch.tensor(2.0, requires_grad=True), 1.7),
    ),
    "2. y is a constant": (
        lambda: by_tape(lambda x: jnp.array(6.0), jnp.array(1.7)),
        lambda: by_backward(lambda x: torch.tensor(6.0), 1.7),
        lambda: jax.grad(lambda x: jnp.array(6.0))(1.7),
        lambda: by_func(lambda x: torch.tensor(6.0), 1.7),
    ),
    "3. x is rounded on the way": (
        lambda: by_tape(lambda x: 3.0 * jnp.round(x), jnp.array(1.7)),
        lambda: by_backward(lambda x: 3.0 * torch.round(x), 1.7),
        lambda: jax.grad(lambda x: 3.0 * jnp.round(x))(1.7),
        lambda: by_func(lambda x: 3.0 * torch.round(x), 1.7),
    ),
}
# What x and y are.
KINDS = {
    "4. y is a vector": (
        lambda: by_tape(square, jnp.array([1.0, 2.0])),
        lambda: by_backward(square, [1.0, 2.0]),
        lambda: jax.grad(square)(jnp.array([1.0, 2.0])),
        lambda: by_func(square, [1.0, 2.0]),
    ),
    "5. x is an integer": (
        lambda: by_tape(lambda x: 2.0 * x, jnp.array(3)),
        lambda: by_backward(lambda x: 2.0 * x, 3),
        lambda: jax.grad(lambda x: 2.0 * x)(3),
        lambda: by_func(lambda x: 2.0 * x, 3),
    ),
    "6. y is an integer: argmax": (
        lambda: by_tape(jnp.argmax, jnp.array([1.0, 2.0])),
        lambda: by_backward(torch.argmax, [1.0, 2.0]),
        lambda: jax.grad(jnp.argmax)(jnp.array([1.0, 2.0])),
        lambda: by_func(torch.argmax, [1.0, 2.0]),
    ),
    "7. x is complex: |x| at 3+4i": (
        lambda: by_tape(jnp.abs, jnp.array(3.0 + 4.0j)),
        lambda: by_backward(torch.abs, 3.0 + 4.0j),
        lambda: jax.grad(jnp.abs)(3.0 + 4.0j),
        lambda: by_func(torch.abs, 3.0 + 4.0j),
    ),
}
# What changes before the derivative is asked for.
CHANGES = {
    "8. x*x at 2, and x becomes 10 before the derivative is asked for": (
        variable_changes,
        lambda: tensor_changes(in_place),
        array_changes,
        lambda: argument_changes(in_place),
    ),
    "9. the same, through PyTorch's .data": (
        None,
        lambda: tensor_changes(by_data),
        None,
        lambda: argument_changes(by_data),
    ),
    "10. a Python number that the function reads changes from 2 to 3": (
        lambda: rate_changes(lambda f: lambda x: by_tape(f, x), jnp.array(1.0)),
        lambda: rate_changes(lambda f: lambda x: by_backward(f, x), 1.0),
        lambda: rate_changes(jax.grad, 1.0),
        lambda: rate_changes(lambda f: lambda x: by_func(f, x), 1.0),
    ),
    "11. the same, compiled by jax.jit": (None, None, lambda: rate_changes(lambda f: jax.jit(jax.grad(f)), 1.0), None),
}
# Asking again.
AGAIN = {
    "12. the gradient of one result is asked for twice": (
        twice_by_tape,
        twice_by_backward,
        lambda: twice_by_vjp(jax.vjp, jnp.array(2.0)),
        lambda: twice_by_vjp(torch.func.vjp, torch.tensor(2.0)),
    ),
    "13. two computations, one after the other": (
        lambda: (by_tape(square, jnp.array(2.0)), by_tape(square, jnp.array(2.0))),
        two_by_backward,
        lambda: (jax.grad(square)(2.0), jax.grad(square)(2.0)),
        lambda: (by_func(square, 2.0), by_func(square, 2.0)),
    ),
}
ROWS = PATH | KINDS | CHANGES | AGAIN
