"""A loop of the user's is printed as a loop, which runs the very operations that were recorded."""

import ast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax
from tapejax.tools.seeing import rolling
from tapejax.tools.writing.iteration import Run, flat, rebuilt, repeated


def test_rounds():
    assert repeated("abababc", [4, 8, 4, 8, 4, 8, 9]) == Run(0, 2, 3)
    assert repeated("babab", [8, 4, 8, 4, 8]) == Run(1, 2, 2)  # from the beginning of a round on
    assert repeated("abc", [0, 4, 8]) is None


def test_shapes_and_atoms():
    is_value = {"h", "k"}.__contains__
    one, two = (flat(ast.parse(text, mode="eval").body, is_value) for text in ("x[:4] @ h", "x[4:8] @ k"))
    assert one.shape == two.shape
    assert [*map(ast.unparse, two.atoms)] == ["4", "8", "None", "k"]
    for text in ("x[4:8] @ k", "f(lambda h: h * k, a=-2.0)", "x[:, 0]"):
        node = ast.parse(text, mode="eval").body
        assert ast.unparse(rebuilt(node, is_value, iter(flat(node, is_value).atoms), frozenset())) == text


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape) * 0.5, jnp.float32)


P = {"W": normal(0, 4, 4), "U": normal(1, 4, 3), "b": normal(2, 4)}
XS, ROWS = normal(3, 6, 3), normal(4, 6, 4)


def rnn(p, xs):
    h = jnp.zeros(4)
    for t in range(6):
        h = jnp.tanh(p["W"] @ h + p["U"] @ xs[t] + p["b"])
    return jnp.sum(h**2)


RNN = """\
def f(p, xs):  # for xs: float32[6,3]
    h = jnp.zeros(4)
    for t in range(6):
        h = jnp.tanh(p["W"] @ h + p["U"] @ xs[t] + p["b"])
    return jnp.sum(h**2)
"""


def collected(p, xs):
    h = p["b"]
    hs = [h]
    for t in range(6):
        h = jnp.tanh(p["W"] @ h + p["U"] @ xs[t])
        hs.append(h)
    return jnp.sum(jnp.stack(hs) ** 2)


COLLECTED = """\
def f(p, xs):  # for xs: float32[6,3]
    h = p["b"]
    hs = [h]
    for t in range(6):
        h = jnp.tanh(p["W"] @ h + p["U"] @ xs[t])
        hs.append(h)
    return jnp.sum(jnp.stack(hs) ** 2)
"""


def layers(params, x):
    for W, b in params:
        x = jnp.tanh(x @ W + b)
    return jnp.sum(x**2)


LAYERS = """\
def f(params, x):  # for x: float32[6,4]
    for W, b in params:
        x = jnp.tanh(x @ W + b)
    return jnp.sum(x**2)
"""


def residual(params, x):
    for layer in params:
        h = jax.nn.relu(x @ layer["w"] + layer["b"])
        x = x + h
    return jnp.mean(x**2)


RESIDUAL = """\
def f(params, x):  # for x: float32[6,4]
    for layer in params:
        h = jax.nn.relu(x @ layer["w"] + layer["b"])
        x = x + h
    return jnp.mean(x**2)
"""


def descent(w, x):
    def loss(w):
        return jnp.mean((x @ w - 1.0) ** 2)

    for _ in range(3):
        g = jax.grad(loss)(w)
        w = w - 0.1 * g
    return loss(w)


DESCENT = """\
def loss(w, x):
    return jnp.mean((x @ w - 1.0) ** 2)


def f(w, x):  # for x: float32[6,4]
    for _ in range(3):
        g = jax.grad(lambda w: loss(w, x))(w)
        w = w - 0.1 * g
    return loss(w, x)
"""


def batches(w, x):
    for i in range(3):
        xb = x[i * 2 : (i + 1) * 2]
        w = w - 0.1 * jnp.sin(xb.T @ (xb @ w))
    return jnp.sum(w**2)


BATCHES = """\
def f(w, x):  # for x: float32[6,4]
    for i in range(3):
        xb = x[i * 2:(i + 1) * 2]
        w = w - 0.1 * jnp.sin(xb.T @ (xb @ w))
    return jnp.sum(w**2)
"""


def two_back(w, xs):
    before = w
    for t in range(6):
        new = jnp.tanh(w + 0.5 * before * xs[t])
        before = w
        w = new
    return jnp.sum(w - before)


TWO_BACK = """\
def f(w, xs):  # for xs: float32[6,4]
    before = w
    for t in range(6):
        new = jnp.tanh(w + 0.5 * before * xs[t])
        w, before = new, w
    return jnp.sum(w - before)
"""


def first_differs(w, xs):
    s = 0.0
    for i in range(6):
        s = s + 0.9**i * jnp.tanh(xs[i] @ w)
    return s


FIRST_DIFFERS = """\
def f(w, xs):  # for xs: float32[6,4]
    s = 0.0
    for i in range(6):
        s = s + 0.9**i * jnp.tanh(xs[i] @ w)
    return s
"""


def nested(w, xs):
    total = 0.0
    for t in range(6):
        h = xs[t]
        for _ in range(3):
            h = jnp.tanh(w * h)
        total = total + jnp.sum(h)
    return total


NESTED = """\
def f(w, xs):  # for xs: float32[6,4]
    total = 0.0
    for t in range(6):
        h = xs[t]
        for _ in range(3):
            h = jnp.tanh(w * h)
        total = total + jnp.sum(h)
    return total
"""


def rates(w):
    for lr in [0.1, 0.05, 0.01]:
        w = w - lr * jnp.sin(w)
    return jnp.sum(w)


RATES = """\
def f(w):
    for lr in [0.1, 0.05, 0.01]:
        w = w - lr * jnp.sin(w)
    return jnp.sum(w)
"""


def while_loop(w):
    i = 0
    while i < 4:
        w = jnp.sin(w) * 2.0
        i += 1
    return jnp.sum(w)


WHILE = """\
def f(w):
    for _ in range(4):
        w = jnp.sin(w) * 2.0
    return jnp.sum(w)
"""

PAIRS = [(normal(i, 4, 4), normal(i + 3, 4)) for i in range(3)]
PROGRAMS = {
    "a recurrent net": (rnn, (P, XS), RNN),
    "what is collected": (collected, (P, XS), COLLECTED),
    "layers in tuples": (layers, (PAIRS, ROWS), LAYERS),
    "layers in dicts": (residual, ([{"w": w, "b": b} for w, b in PAIRS], ROWS), RESIDUAL),
    "steps by jax.grad": (descent, (normal(5, 4), ROWS), DESCENT),
    "slices": (batches, (normal(5, 4), ROWS), BATCHES),
    "two rounds back": (two_back, (normal(5, 4), ROWS), TWO_BACK),
    "a number before the loop": (first_differs, (normal(5, 4), ROWS), FIRST_DIFFERS),
    "a loop in a loop": (nested, (normal(5, 4), ROWS), NESTED),
    "numbers in a list": (rates, (normal(5, 4),), RATES),
    "while": (while_loop, (normal(5, 4),), WHILE),
}


def pasted(function):
    scope = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, scope)
    return scope["f"]


def require_same(code, function, args):
    """Values and gradients, also at other inputs."""
    for scale in (1.0, 0.7):
        changed = jax.tree.map(lambda x, scale=scale: x * scale, args)
        found, wanted = (jax.value_and_grad(lambda args, f=f: f(*args))(changed) for f in (code, function))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6), found, wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_stays_a_loop(name, monkeypatch):
    function, args, text = PROGRAMS[name]
    printed = tapejax.code(function, *args)
    assert printed.code == text, printed.code
    require_same(pasted(printed), function, args)
    monkeypatch.setattr(rolling, "roll", lambda *_: None)
    unrolled = tapejax.code(function, *args)
    if not unrolled.constants and "\nh = " not in "\n" + unrolled.code:
        first, second = (str(jax.make_jaxpr(pasted(each))(*args)) for each in (printed, unrolled))
        assert first == second


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_in_a_jitted_function(name):
    function, args, text = PROGRAMS[name]
    printed = tapejax.code(jax.jit(function), *args)
    headers = [line for line in text.splitlines() if "for " in line]
    assert [line for line in printed.code.splitlines() if "for " in line] == headers, printed.code
    require_same(pasted(printed), function, args)


def test_rows_of_an_array():
    """A loop over an array reads its rows, the last one also after it; one that begins later the rest of them."""

    def over(w, xs):
        for x in xs:
            w = jnp.tanh(w + x)
        return jnp.sum(w * x)

    def later(w, xs):
        h = None
        for x in xs:
            if h is None:
                h = jnp.tanh(x)
            else:
                h = jnp.tanh(w * h + x)
        return jnp.sum(h)

    for function, bound in ((over, "for x in "), (later, "for x in rest:")):
        printed = tapejax.code(function, normal(5, 4), ROWS)
        assert bound in printed.code and len(printed.code.splitlines()) <= 6, printed.code
        require_same(pasted(printed), function, (normal(5, 4), ROWS))


def test_a_long_loop_has_the_lines_of_its_source():
    def long(p, xs):
        h = jnp.zeros(4)
        for t in range(100):
            h = jnp.tanh(p["W"] @ h + p["U"] @ xs[t] + p["b"])
        return jnp.sum(h**2)

    printed = tapejax.code(long, P, normal(3, 100, 3))
    assert printed.code == RNN.replace("range(6)", "range(100)").replace("[6,3]", "[100,3]")


def test_what_a_closure_reads_keeps_its_name():
    """A local function reads what is carried after it has changed: the round gives that another name until it ends."""

    def closure(w, xs):
        for t in range(6):
            old = w
            w = w + xs[t]
            w = w - 0.1 * jax.grad(lambda v, old=old: jnp.sum(old * v**2))(w)
        return jnp.sum(w)

    printed = tapejax.code(closure, normal(5, 4), ROWS)
    assert "for t in range(6):" in printed.code, printed.code
    require_same(pasted(printed), closure, (normal(5, 4), ROWS))
