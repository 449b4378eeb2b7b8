"""Trees that a program computes, printed as trees: what a person writes, and the numbers of random programs."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32))


def parameters():
    return {"w1": normal(3, 4), "b1": normal(4), "w2": normal(4, 1), "b2": normal(1)}


X, Y = normal(5, 3), normal(5, 1)


def mlp(params, x):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return h @ params["w2"] + params["b2"]


def loss_fn(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def gradients(params, x, y):
    with tf.GradientTape() as tape:
        tape.watch(params)
        loss = loss_fn(params, x, y)
    return tape.gradient(loss, params)


def sgd(params, grads):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def momentum(params, velocity, grads):
    velocity = {name: 0.9 * velocity[name] + grads[name] for name in params}
    params = {name: params[name] - 0.1 * velocity[name] for name in params}
    return params, velocity


def adam(params, m, v, grads):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
    return jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-3), params, m, v), m, v


LOSS = """\
def mlp(params, x):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return h @ params["w2"] + params["b2"]


def loss_fn(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def gradients(params, x, y):
    return jax.grad(lambda params: loss_fn(params, x, y))(params)

"""


def adapted_twice(params, x, y):
    for _ in range(2):
        params = sgd(params, gradients(params, x, y))
    loss = loss_fn(params, x, y)
    return loss


ADAPTED_TWICE = """
def sgd(params, grads):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def f(params, x, y):  # for x: float32[5,3], y: float32[5,1]
    for _ in range(2):
        params = sgd(params, gradients(params, x, y))
    loss = loss_fn(params, x, y)
    return loss
"""


def with_momentum(params, x, y, velocity):
    params, velocity = momentum(params, velocity, gradients(params, x, y))
    return {"params": params, "velocity": velocity}


WITH_MOMENTUM = """
def momentum(params, velocity, grads):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
    return velocity, params


def f(params, x, y, velocity):  # for x: float32[5,3], y: float32[5,1]
    grads = gradients(params, x, y)
    velocity, params = momentum(params, velocity, grads)
    return {"params": params, "velocity": velocity}
"""


def with_adam(params, x, y, m, v):
    params, m, v = adam(params, m, v, gradients(params, x, y))
    return [params, m, v]


WITH_ADAM = """
def adam(params, m, v, grads):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
    return (
        m,
        v,
        jax.tree.map(
            lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 0.001), params, m, v
        ),
    )


def f(params, x, y, m, v):  # for x: float32[5,3], y: float32[5,1]
    grads = gradients(params, x, y)
    m, v, t0 = adam(params, m, v, grads)
    return [t0, m, v]
"""


def clipped(params, x, y):
    grads = gradients(params, x, y)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g / norm, grads)
    return sgd(params, grads)


CLIPPED = """
def sgd(params, grads):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def f(params, x, y):  # for x: float32[5,3], y: float32[5,1]
    grads = gradients(params, x, y)
    norm = jnp.sqrt(sum(map(lambda g: jnp.sum(g**2), jax.tree.leaves(grads))))
    grads = jax.tree.map(lambda g: g / norm, grads)
    return sgd(params, grads)
"""


def small(values):
    return jax.tree.map(lambda x: 0.1 + jnp.abs(x), values)


PROGRAMS = {  # the program, its arguments beside the parameters, and the text behind `LOSS`
    "an adaptation of two steps": (adapted_twice, {"x": X, "y": Y}, ADAPTED_TWICE),
    "momentum": (with_momentum, {"x": X, "y": Y, "velocity": small(parameters())}, WITH_MOMENTUM),
    "Adam": (with_adam, {"x": X, "y": Y, "m": small(parameters()), "v": small(parameters())}, WITH_ADAM),
    "clipping by the norm of all": (clipped, {"x": X, "y": Y}, CLIPPED),
}


def pasted(function):
    scope = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, scope)
    return scope["f"]


def total(function):
    return lambda *args: sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(function(*args)))


def require_same(function, params, *rest):
    """What is printed has the values and the gradients of the recording, also at other parameters."""
    code = pasted(function)
    for scale in (1.0, 0.7):
        changed = jax.tree.map(lambda x, scale=scale: x * scale, params)
        found, wanted = (f(changed, *rest) for f in (code, function))
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5), found, wanted)
        found, wanted = (jax.grad(total(f))(changed, *rest) for f in (code, function))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4), found, wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tree_that_is_computed_stays_a_tree(name):
    program, arguments, text = PROGRAMS[name]
    params = parameters()
    with tf.GradientTape() as tape:
        tape.watch([params, arguments])
        target = program(params, **arguments)
    function = tape.as_function(target, params, arguments)
    assert function.code == LOSS + text, function.code
    require_same(function, params, *arguments.values())


def test_arguments_of_a_function_are_no_tree_because_they_came_of_one():
    params = {"gate": normal(3, 4), "up": normal(3, 4, seed=1)}

    def mix(a, b):
        return jax.nn.sigmoid(a) * b

    def heads(params, x):
        return x @ params["gate"], x @ params["up"]

    with tf.GradientTape() as tape:
        tape.watch(params)
        a, b = heads(params, X)
        y = jnp.sum(mix(a, b))
    function = tape.as_function(y, params, {"x": X})
    assert "a, b = heads(params, x)" in function.code and "mix(a, b)" in function.code, function.code
    require_same(function, params, X)


def test_a_pytree_of_the_users_is_a_tree_by_its_fields_and_so_is_the_state_of_an_optimizer():
    """In one argument, as Optax has it: the count beside the moments, which are like the parameters."""
    params = Layer(Layer(normal(3, 4), normal(4)), Layer(normal(4, 1), normal(1)))
    state = Pair(jnp.float32(1.0), [small(params), Pair(small(params), ())])

    def net(params, x):
        h = jnp.tanh(x @ params.w.w + params.w.b)
        return h @ params.b.w + params.b.b

    def loss_of(params, x, y):
        return jnp.mean((net(params, x) - y) ** 2)

    def step(params, state, x, y):
        with tf.GradientTape() as tape:
            tape.watch(params)
            loss = loss_of(params, x, y)
        grads = tape.gradient(loss, params)
        count, (m, (v, _)) = state
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
        scale = count + 1.0
        new = jax.tree.map(
            lambda p, m, v: (
                p - 0.0123456789 * (m / (1.0 - 0.9**scale)) / (jnp.sqrt(v / (1.0 - 0.99**scale)) + 0.00123456789)
            ),
            params,
            m,
            v,
        )
        return new, m, v, scale

    with tf.GradientTape() as tape:
        tape.watch([params, state])
        target = step(params, state, X, Y)
    function = tape.as_function(target, params, {"state": state, "x": X, "y": Y})
    text = function.code
    assert "loss_of(params, x, y)" in text and "x @ params.w.w + params.w.b" in text, text
    assert "m = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g, state.second[0], grads)" in text, text
    assert "def each(p, m, v):" in text and "jax.tree.map(each, params, m, v)" in text, text
    assert max(map(len, text.splitlines())) <= 92, text  # a call of `jax.tree.map` with its lambda
    require_same(function, params, state, X, Y)


def test_a_jitted_function_of_all_leaves_is_written_for_each():
    """As Optax corrects the bias of its moments."""
    params = {"w1": normal(3, 4), "b1": normal(4), "w2": normal(4, 1)}

    @jax.jit
    def corrected(tree, decay):
        return jax.tree.map(lambda x: x / (1.0 - decay**2), tree)

    with tf.GradientTape() as tape:
        tape.watch(params)
        moved = jax.tree.map(lambda p: p * 2.0, corrected(params, 0.9))
        loss = loss_fn(moved | {"b2": jnp.zeros(1)}, X, Y)
    function = tape.as_function((loss, moved), params, {"x": X, "y": Y})
    assert "jax.tree.map(lambda x: x / 0.19000006, tree)" in function.code, function.code
    require_same(function, params, X, Y)


def test_names_that_are_no_code():
    held = [tf.Variable(normal(2), name=name) for name in ("block.1 x", "lambda.0", "a/b.c")]
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(held[0] * held[1] * held[2])
    function = tape.as_function(y, held)
    np.testing.assert_allclose(pasted(function)([v.numpy() for v in held]), y.numpy(), rtol=1e-6)


# ---- random programs: leaves are treated alike, or one of them otherwise, in dicts, lists and tuples -----------------


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any


class Pair(NamedTuple):
    first: Any
    second: Any


STRUCTURES = {
    "objects": lambda a, b, c, d: [Layer(a, b), Layer(c, d)],
    "an object of objects": lambda a, b, c, d: Layer(Layer(a, b), {"w": c, "b": d}),
    "named tuples": lambda a, b, c, d: Pair(Pair(a, b), [c, d]),
    "dict": lambda a, b, c, d: {"a": a, "b": b, "c": c, "d": d},
    "nested": lambda a, b, c, d: {"one": {"w": a, "b": b}, "two": {"w": c, "b": d}},
    "list of dicts": lambda a, b, c, d: [{"w": a, "b": b}, {"w": c, "b": d}],
    "list of tuples": lambda a, b, c, d: [(a, b), (c, d)],
    "list": lambda a, b, c, d: [a, b, c, d],
}


def scaled(tree):
    return jax.tree.map(lambda x: 0.9 * x, tree)


def moved(tree, other):
    return jax.tree.map(lambda x, y: x - 0.3 * jnp.sin(y), tree, other)


def in_all(tree):
    return sum(jnp.mean(x**2) for x in jax.tree.leaves(tree))


def one_otherwise(tree, other, position):
    leaves, kind = jax.tree.flatten(tree)
    leaves[position] = leaves[position] * 1.5 + jax.tree.leaves(other)[position]
    return jax.tree.unflatten(kind, leaves)


def swapped(tree):
    leaves, kind = jax.tree.flatten(tree)
    return jax.tree.unflatten(kind, leaves[::-1])


def leaf_by_leaf(tree, other):
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    return jax.tree.unflatten(jax.tree.structure(tree), [jnp.tanh(x) + y * 0.1 for x, y in pairs])


def steepest(tree, other):
    with tf.GradientTape() as tape:
        tape.watch(tree)
        value = in_all(moved(tree, other))
    return tape.gradient(value, tree)


def random_program(rng, start):
    known = [start]
    for _ in range(rng.integers(2, 6)):
        one, other = (known[i] for i in rng.integers(len(known), size=2))
        match rng.integers(8):
            case 0:
                known.append(scaled(one))
            case 1:
                known.append(moved(one, other))
            case 2:
                known.append(one_otherwise(one, other, rng.integers(4)))
            case 3:
                known.append(swapped(one))
            case 4:
                known.append(leaf_by_leaf(one, other))
            case 5:
                known.append(steepest(one, other))
            case 6:
                size = in_all(one)
                known.append(jax.tree.map(lambda x, size=size: x / (1.0 + size), other))
            case 7:
                known.append(jax.tree.map(lambda x: x * x + 1.0, one))
    last = known[-1]
    ends = [last, in_all(last), jax.tree.leaves(last)[rng.integers(4)], [in_all(known[-2]), last]]
    return ends[rng.integers(4)]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 40), marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_programs(structure, seeds):
    for seed in seeds:
        rng = np.random.default_rng([seed, len(structure)])
        start = STRUCTURES[structure](*(normal(3, seed=seed + i) for i in range(4)))
        with tf.GradientTape() as tape:
            tape.watch(start)
            target = random_program(rng, start)
        require_same(tape.as_function(target, start), start)


def test_a_small_tree_that_a_derivative_takes_is_handed_over_whole():
    """A function that is given two leaves has no tree of them, which the gradient in it is taken of."""

    def loss(p, x, y):
        return jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2)

    def adapt(p, x, y):
        for _ in range(2):
            p = jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, x, y))
        return p

    def maml(p, xs, ys):
        total = 0.0
        for x, y in zip(xs, ys):
            total = total + loss(adapt(p, x[:4], y[:4]), x[4:], y[4:])
        return total

    rng = np.random.default_rng(0)
    w, v, xs, ys = (jnp.asarray(rng.normal(size=n), jnp.float32) for n in ((3, 4), 4, (2, 8, 3), (2, 8)))
    for function in (maml, jax.jit(maml)):
        printed = tf.code(function, {"w": w, "v": v}, xs, ys)
        assert "def adapt(p, x, y):" in printed.code
        space = {"jax": jax, "jnp": jnp, "np": np, **printed.constants}
        exec(printed.code, space)
        for found, wanted in zip(
            *(jax.tree.leaves(jax.value_and_grad(f)({"w": 1.5 * w, "v": v}, xs, ys)) for f in (space["f"], maml)),
            strict=True,
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_a_tree_of_zeros_is_a_tree_and_all_rounds_are_alike(way):
    def by_momentum(params, x, y):
        velocity = jax.tree.map(jnp.zeros_like, params)
        for _ in range(3):
            grads = jax.grad(loss_fn)(params, x, y)
            velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
            params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
        return params

    function = tf.code(way(by_momentum), parameters(), X, Y)
    text = function.code[function.code.index("def f(") :]
    assert text == (
        """\
def f(params, x, y):  # for x: float32[5,3], y: float32[5,1]
    velocity = jax.tree.map(jnp.zeros_like, params)
    for _ in range(3):
        grads = jax.grad(lambda params: loss_fn(params, x, y))(params)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
    return params
"""
    ), text
    require_same(function, parameters(), X, Y)


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_moments_from_zeros(way):
    """In a comprehension, and made by ones; the number of the round is in the program."""

    def step(params, x, y):
        m = {name: jnp.zeros_like(p) for name, p in params.items()}
        scale = jax.tree.map(jnp.ones_like, params)
        for t in range(1, 4):
            grads = jax.grad(loss_fn)(params, x, y)
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
            scale = jax.tree.map(lambda s, m: 0.5 * s + m**2, scale, m)
            m_hat = jax.tree.map(lambda m, t=t: m / (1 - 0.9**t), m)
            params = jax.tree.map(lambda p, m, s: p - 0.1 * m / s, params, m_hat, scale)
        return params

    function = tf.code(way(step), parameters(), X, Y)
    for line in (
        "m = jax.tree.map(jnp.zeros_like, params)",
        "scale = jax.tree.map(jnp.ones_like, params)",
        "for t in range(1, 4):",
        "(1 - 0.9**t)",
    ):
        assert line in function.code, function.code
    require_same(function, parameters(), X, Y)


def test_a_function_that_makes_the_last_leaf_is_not_handed_the_tree():
    """It was handed the tree, with a leaf that only the function makes: the printed code read a name that nothing defined."""

    def joined(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def second(p, b):
        x, y = joined((p, b * 2.0), (b, p))
        return jnp.sum(x * y)

    arrays = [normal(4), normal(4, seed=1)]
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        p = arrays[0] * 2.0
        y = second(p, arrays[1])
    function = tape.as_function(y, arrays)
    space = {"jax": jax, "jnp": jnp, **function.constants}
    exec(function.code, space)
    for given in (arrays, [normal(4, seed=2), normal(4, seed=3)]):
        np.testing.assert_allclose(space["f"](given), second(given[0] * 2.0, given[1]), rtol=1e-6)
