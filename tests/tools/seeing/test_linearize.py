"""Linear functions that `jax.vjp` and `jax.linearize` give, called once, several times and under `jax.vmap`; and what functions
give beside that of which a derivative is taken: in printed code as such, the same plain and under `jax.jit`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted

import tapejax

PROGRAMS = {}


def program(*shapes):
    def add(function):
        every = np.random.default_rng(0)
        draw = lambda shape: jnp.asarray(every.normal(size=shape), jnp.float32)  # noqa: E731
        PROGRAMS[function] = jax.tree.map(draw, shapes, is_leaf=lambda x: isinstance(x, tuple) and x != shapes)
        return function

    return add


PARAMS = {"w": (3, 3), "b": (3,)}


@program((3,), (3, 3))
def jacobian_by_rows(x, a):
    def residual(x):
        return jnp.tanh(a @ x)

    y, pull = jax.vjp(residual, x)
    basis = jnp.eye(3)
    (jac,) = jax.vmap(pull)(basis)
    return jac @ y


@program((3,), (4, 3), (5, 4))
def mapped_among_others(x, a, vs):
    _, pull = jax.vjp(lambda x: jnp.tanh(a @ x), x)
    return jnp.sum(jax.vmap(lambda v: jnp.sin(pull(v * 2.0)[0]))(vs))


@program((3,), (4, 3), (5, 4))
def in_a_loop(x, a, vs):
    _, pull = jax.vjp(lambda x: jnp.tanh(a @ x), x)
    total = 0.0
    for v in vs:
        (row,) = pull(v)
        total = total + jnp.sum(row**2)
    return total


@program((3,), (4, 3), (4,), (4,))
def one_after_the_other(x, a, u, v):
    _, pull = jax.vjp(lambda x: jnp.tanh(a @ x), x)
    (du,) = pull(u)
    (dv,) = pull(v)
    return du * dv


@program(PARAMS, (2, 3))
def of_a_number(params, x):
    def loss(params):
        h = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.mean(h**2), h

    value, pull, h = jax.vjp(loss, params, has_aux=True)
    (grads,) = pull(1.0)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return params, value, jnp.sum(h)


@program((3,), (4, 3), (3,))
def linearized(x, a, v):
    def residual(x):
        h = jnp.tanh(a @ x)
        return jnp.sin(h) * 2.0

    y, push = jax.linearize(residual, x)
    dy = push(v)
    return jnp.sum(y * dy)


@program((3,), (4, 3), (3,), (3,))
def linearized_twice(x, a, u, v):
    y, push = jax.linearize(lambda x: jnp.tanh(a @ x), x)
    du = push(u)
    dv = push(v)
    return jnp.sum(y * du * dv)


@program((3,), (4, 3))
def columns(x, a):
    y, push = jax.linearize(lambda x: jnp.tanh(a @ x), x)
    columns = jax.vmap(push)(jnp.eye(3))
    return columns @ y


@program((3,), (4, 3))
def linearized_beside(x, a):
    def residual(x):
        h = jnp.tanh(a @ x)
        return jnp.sin(h), h

    y, push, h = jax.linearize(residual, x, has_aux=True)
    return push(x + 1.0) + y + h


@program((3,), (3, 3))
def conjugate_gradients(x, b):
    def loss(x):
        return jnp.sum(jnp.cosh(b @ x)) + jnp.sum(x**2)

    g, hvp = jax.linearize(jax.grad(loss), x)
    d = jnp.zeros(3)
    r = -g
    p = r
    for _ in range(3):
        hp = hvp(p)
        alpha = (r @ r) / (p @ hp)
        d = d + alpha * p
        new = r - alpha * hp
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x + d


@program({"w": (3,), "b": ()}, (8, 3), (8,))
def accuracy(params, x, y):
    def loss_fn(params, x, y):
        logits = x @ params["w"] + params["b"]
        right = jnp.mean(jnp.sign(logits) == jnp.sign(y))
        return jnp.mean(jnp.log1p(jnp.exp(-y * logits))), right

    for _ in range(3):
        (loss, right), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return params, loss, right


@program((3,), (8, 3), (8,))
def last_loss(w, x, y):
    def loss_fn(w):
        return jnp.mean((x @ w - y) ** 2)

    for _ in range(3):
        loss, grad = jax.value_and_grad(loss_fn)(w)
        w = w - 0.1 * grad
    return w, loss


@program({"w": (3,), "b": ()}, (8, 3), (8,))
def without_value(params, x, y):
    def loss_fn(params):
        pred = x @ params["w"] + params["b"]
        return jnp.mean((pred - y) ** 2), pred

    grads, pred = jax.grad(loss_fn, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), jnp.max(pred)


@program((3,), (3,), (3,))
def two_of_three(a, b, c):
    def product(a, b, c):
        return jnp.sum(jnp.sin(a * b) * c)

    value, (da, dc) = jax.value_and_grad(product, argnums=(0, 2))(a, b, c)
    return value, a - 0.1 * da, c - 0.1 * dc


def printed(program, way=lambda f: f):
    code = tapejax.code(way(program), *PROGRAMS[program])
    return code, code.code[code.code.index("def ") :]


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_numbers_where_it_is_pasted(program, way):
    f = pasted(printed(program, way)[0])

    def total(function):
        return lambda *xs: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(function(*xs)))

    for at in (PROGRAMS[program], jax.tree.map(lambda x: x * 0.6 + 0.01, PROGRAMS[program])):
        for a, b in ((f(*at), program(*at)), (jax.grad(total(f))(*at), jax.grad(total(program))(*at))):
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5), a, b)


LINES = {
    jacobian_by_rows: ["y, pull = jax.vjp(", "(jac,) = jax.vmap(pull)(basis)"],
    mapped_among_others: ["jnp.sin(pull("],
    in_a_loop: ["_, pull = jax.vjp(", "for v in ", "(row,) = pull(v)"],
    one_after_the_other: ["(du,) = pull(u)", "(dv,) = pull(v)"],
    of_a_number: [
        "value, pull, h = jax.vjp(lambda params: loss(params, x), params, has_aux=True)",
        "(grads,) = pull(1.0)",
    ],
    linearized: ["y, push = jax.linearize(lambda x: residual(x, a), x)", "dy = push(v)"],
    linearized_twice: ["y, push = jax.linearize(lambda x: jnp.tanh(a @ x), x)", "du = push(u)", "dv = push(v)"],
    columns: ["columns = jax.vmap(push)(jnp.eye(3))"],
    linearized_beside: ["y, push, h = jax.linearize(lambda x: residual(x, a), x, has_aux=True)"],
    conjugate_gradients: ["g, hvp = jax.linearize(jax.grad(lambda x: loss(x, b)), x)", "hp = hvp(p)", "for _ in "],
    accuracy: ["(loss, right), grads = jax.value_and_grad(", "has_aux=True", "for _ in range(3)"],
    last_loss: ["loss, grad = jax.value_and_grad(lambda w: loss_fn(w, x, y))(w)", "for _ in range(3)"],
    two_of_three: [
        "value, (da, dc) = jax.value_and_grad(",
        "lambda a, c: product(a, b, c), argnums=(0, 1)",
        "a - 0.1 * da",
    ],
    without_value: ["grads, pred = jax.grad(lambda params: loss_fn(params, x, y), has_aux=True)(params)"],
}
# Plain it has a name of the function that is mapped; before JAX 0.11 rows are taken in two ways.
DIFFERENT = (mapped_among_others, *([in_a_loop] if jax.__version_info__ < (0, 11) else []))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_they_are_printed_as_such(program):
    _, text = printed(program)
    assert [line for line in LINES[program] if line not in text] == []
    assert program in DIFFERENT or printed(program, jax.jit)[1] == text


def test_a_value_that_is_read_before_is_computed_before():
    """The call that gave it is not the one of which the derivative was taken."""

    def both(x):
        def loss(x):
            h = jnp.tanh(x)
            return jnp.sum(h**2), h

        first, h = loss(x)
        return jax.grad(lambda x: loss(x)[0])(x * jnp.sum(h)) + first

    x = jnp.array([0.1, 0.2, 0.3])
    code = tapejax.code(both, x)
    assert "has_aux" not in code.code
    np.testing.assert_allclose(pasted(code)(x * 2), both(x * 2), rtol=1e-5)
