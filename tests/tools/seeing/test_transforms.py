"""What JAX's transformations ran in a block, in printed code: as such, of the user's function, plain and under `jax.jit`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted

import tapejax


def array(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def mse(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)


def adapted(params, x, y):
    grads = jax.grad(mse)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def meta(params, xs, ys, xq, yq):
    return mse(adapted(params, xs, ys), xq, yq)


def maml(params, xs, ys, xq, yq):
    value, grads = jax.value_and_grad(meta)(params, xs, ys, xq, yq)
    return value, jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


@jax.custom_vjp
def fixed_point(w, x):
    z = jnp.zeros_like(x)
    for _ in range(3):
        z = jnp.tanh(w @ z + x)
    return z


def fixed_point_fwd(w, x):
    z = fixed_point(w, x)
    return z, (w, x, z)


def fixed_point_bwd(kept, cotangent):
    w, x, z = kept
    jac = jax.jacobian(lambda z: jnp.tanh(w @ z + x))(z)
    u = jnp.linalg.solve(jnp.eye(z.shape[0]) - jac.T, cotangent)
    return jax.vjp(lambda w, x: jnp.tanh(w @ z + x), w, x)[1](u)


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


def implicit(w, x, y):
    value, slope = jax.value_and_grad(lambda w: jnp.sum((fixed_point(w, x) - y) ** 2))(w)
    return value, w - 0.1 * slope


def critic(w, x):
    return jnp.tanh(x @ w[0]) @ w[1]


def penalty(w, real, fake, eps):
    def loss(w):
        mix = eps[:, None] * real + (1 - eps[:, None]) * fake
        slopes = jax.vmap(jax.grad(critic, argnums=1), in_axes=(None, 0))(w, mix)
        norms = jnp.sqrt(jnp.sum(slopes**2, axis=1) + 1e-12)
        return jnp.mean(critic(w, fake)) - jnp.mean(critic(w, real)) + 10.0 * jnp.mean((norms - 1) ** 2)

    value, grads = jax.value_and_grad(loss)(w)
    return value, [p - 0.01 * g for p, g in zip(w, grads, strict=True)]


def u(params, x):
    return jnp.tanh(x * params["w"] + params["b"]) @ params["v"]


def residual(params, x):
    return jax.grad(jax.grad(u, argnums=1), argnums=1)(params, x) + u(params, x)


def pinn(params, xs):
    def loss(params):
        return jnp.mean(jax.vmap(residual, in_axes=(None, 0))(params, xs) ** 2) + (u(params, 0.5) - 1.0) ** 2

    value, grads = jax.value_and_grad(loss)(params)
    return value, {k: params[k] - 0.01 * grads[k] for k in params}


def squared_error(w, x, y):
    return (x @ w - y) ** 2


def per_example(w, x, y):
    grads = jax.vmap(jax.grad(squared_error), in_axes=(None, 0, 0))(w, x, y)
    clipped = grads / jnp.maximum(jnp.linalg.norm(grads, axis=1, keepdims=True), 1.0)
    return w - 0.1 * jnp.mean(clipped, axis=0)


def distance(a, b):
    return jnp.sqrt(jnp.sum((a - b) ** 2))


def pairwise(points, centers):
    return jax.vmap(lambda p: jax.vmap(lambda c: distance(p, c))(centers))(points)


def pull(a, b, m):
    d = b - a
    return m * d / (jnp.sum(d**2) + 0.1)


def bodies(x, masses):
    def total(a):
        return jnp.sum(jax.vmap(lambda b, m: pull(a, b, m))(x, masses), axis=0)

    return x + 0.1 * jax.vmap(total)(x)


def logp(x):
    return -0.5 * jnp.sum(x**2)


def kernel(a, b):
    return jnp.exp(-jnp.sum((a - b) ** 2))


def stein(x):
    def moved(a):
        def term(b):
            return kernel(b, a) * jax.grad(logp)(b) + jax.grad(kernel)(b, a)

        return jnp.mean(jax.vmap(term)(x), axis=0)

    for _ in range(2):
        x = x + 0.1 * jax.vmap(moved)(x)
    return x


def attention(x):
    def attended(q):
        weights = jax.nn.softmax(x @ q)
        return weights @ x

    return jnp.sum(jax.vmap(attended)(x) ** 2)


def layer(w, c):
    return jnp.tanh(w @ c)


def along_columns(x, w):
    h = jax.vmap(lambda c: layer(w, c), in_axes=1, out_axes=1)(x)
    return h, jax.vmap(lambda c, s: jnp.cumsum(c) * s, in_axes=(1, 0))(x, jnp.sum(w, axis=1))


def with_loops(x, w):
    def rounds(rows):
        def step(h, row):
            h = jnp.tanh(w @ h + row)
            return h, h[0]

        h, firsts = jax.lax.scan(step, jnp.zeros(3), rows)
        return h * jnp.mean(firsts)

    def again(h):
        return jax.lax.fori_loop(0, 3, lambda i, h: jnp.tanh(w @ h) + i, h)

    def unrolled(h):
        for _ in range(4):
            h = jnp.cos(w @ h)
        return h

    return jax.vmap(unrolled)(jax.vmap(again)(jax.vmap(rounds)(x)))


def looked_up(logits, labels):
    def picked(rows, labels):
        return jax.nn.log_softmax(rows)[jnp.arange(2), labels]

    return jax.vmap(picked)(logits, labels.astype(int))


def network(params, x):
    h = jax.nn.relu(params["w"].T @ x)
    return jax.nn.log_softmax(jnp.concatenate([h, h[:2] * 2.0]))[1:3].sum()


def of_a_batch(params, xs):
    return jnp.mean(jax.vmap(network, in_axes=(None, 0))(params, xs))


def residuals(w, x, y):
    return w[0] * jnp.exp(-w[1] * x) - y


def gauss_newton(w, x, y):
    r, j = residuals(w, x, y), jax.jacfwd(residuals)(w, x, y)
    return w - jnp.linalg.solve(j.T @ j + 0.1, j.T @ r)


def model(w, x):
    return jnp.tanh(x @ w)


def natural(w, x, y):
    j = jax.jacobian(model)(w, x)
    slope = jax.grad(lambda w: jnp.mean((model(w, x) - y) ** 2))(w)
    return w - 0.5 * jnp.linalg.solve(j.T @ j / 8.0 + 0.1, slope)


def logistic(w, x, y):
    return jnp.mean(jnp.log1p(jnp.exp(-y * (x @ w)))) + 0.01 * jnp.sum(w**2)


def newton(w, x, y):
    return w - jnp.linalg.solve(jax.hessian(logistic)(w, x, y), jax.grad(logistic)(w, x, y))


PARAMS = {"w": array(0, 3, 4), "v": array(1, 4)}
PROGRAMS = {
    maml: (PARAMS, array(2, 5, 3), array(3, 5), array(4, 6, 3), array(5, 6)),
    penalty: ([array(0, 3, 4), array(1, 4)], array(2, 5, 3), array(3, 5, 3), jnp.abs(array(4, 5)) % 1),
    pinn: ({"w": array(0, 4), "b": array(1, 4), "v": array(2, 4)}, array(3, 7)),
    per_example: (array(0, 3), array(1, 8, 3), array(2, 8)),
    pairwise: (array(0, 6, 3), array(1, 6, 3)),
    bodies: (array(0, 5, 3), jnp.abs(array(1, 5))),
    stein: (array(0, 5, 3),),
    attention: (array(0, 4, 3),),
    along_columns: (array(0, 3, 4), array(1, 4, 3)),
    with_loops: (array(0, 4, 5, 3), array(1, 3, 3)),
    looked_up: (array(0, 4, 2, 3), jnp.abs(array(1, 4, 2))),
    of_a_batch: (PARAMS, array(2, 5, 3)),
    gauss_newton: (array(0, 2), array(1, 8), array(2, 8)),
    natural: (array(0, 3), array(1, 8, 3), array(2, 8)),
    newton: (array(0, 3), array(1, 8, 3), jnp.sign(array(2, 8))),
    implicit: (0.3 * array(0, 3, 3), array(1, 3), array(2, 3)),
}


def definitions(code):
    return code.code[code.code.index("def ") :]


@pytest.mark.parametrize(("jitted", "wide"), [(False, False), (True, True)], ids=["plain-32", "jit-64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_numbers_at_other_inputs(program, jitted, wide):
    with jax.enable_x64(wide):
        args = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64 if wide else jnp.float32), PROGRAMS[program])
        f = pasted(tapejax.code(jax.jit(program) if jitted else program, *args))
        other = jax.tree.map(lambda x: x * 1.1 + 0.01, args)
        close = {"rtol": 1e-9, "atol": 1e-9} if wide else {"rtol": 1e-4, "atol": 1e-5}

        def total(function):
            return lambda *xs: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(function(*xs)))

        for a, b in ((f(*other), program(*other)), (jax.grad(total(f))(*other), jax.grad(total(program))(*other))):
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **close), a, b)


@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
def test_a_gradient_of_a_gradient(jitted):
    assert definitions(tapejax.code(jax.jit(maml) if jitted else maml, *PROGRAMS[maml])) == (
        """\
def mse(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)


def adapted(params, x, y):
    grads = jax.grad(lambda params: mse(params, x, y))(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def meta(params, xs, ys, xq, yq):
    t0 = adapted(params, xs, ys)
    return mse(t0, xq, yq)


# for xs: float32[5,3], ys: float32[5], xq: float32[6,3], yq: float32[6]
def f(params, xs, ys, xq, yq):
    value, grads = jax.value_and_grad(lambda params: meta(params, xs, ys, xq, yq))(
        params
    )
    return value, jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)
"""
    )


@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (penalty, ["slopes = jax.vmap(jax.grad(lambda "]),
        (
            pinn,
            [
                "    return jax.grad(jax.grad(lambda x: u",
                "jnp.mean(jax.vmap(lambda x: residual(params, x))(xs) ** 2)",
            ],
        ),
        (per_example, ["grads = jax.vmap(lambda x, y: jax.grad(lambda w: squared_error(w, x, y))(w))(x, y)"]),
        (pairwise, ["return jax.vmap(lambda p: jax.vmap(lambda c: distance(p, c))(centers))(points)"]),
        (
            bodies,
            ["return jnp.sum(jax.vmap(lambda b, m: pull(a, b, m))(x, masses), axis=0)", "jax.vmap(lambda a: total(a"],
        ),
        (
            stein,
            [
                "return kernel(b, a) * jax.grad(logp)(b) + jax.grad(lambda b: kernel(b, a))(b)",
                "jax.vmap(lambda a: moved(a, x))(x)",
                "return jnp.mean(jax.vmap(lambda b: term(b, a))(x), axis=0)",
            ],
        ),
        (attention, ["weights = jax.nn.softmax(x @ q)", "return jnp.sum(jax.vmap(lambda q: attended(q, x))(x) ** 2)"]),
        (
            along_columns,
            ["jax.vmap(lambda c: layer(w, c), in_axes=1, out_axes=1)(x)", "in_axes=(1, 0))(x, jnp.sum(w, axis=1))"],
        ),
        (
            with_loops,
            [
                "h, firsts = jax.lax.scan(step, jnp.zeros(3), rows)",
                "return jax.lax.fori_loop(0, 3, lambda i, h: jnp.tanh(w @ h) + i, h)",
                "for _ in range(4):",
            ],
        ),
        (looked_up, ["return jax.nn.log_softmax(rows)[jnp.arange(2), labels]"]),
        (gauss_newton, ["j = jax.jacfwd(lambda w: residuals(w, x, y))(w)"]),
        (natural, ["j = jax.jacrev(lambda w: model(w, x))(w)"]),
        (newton, ["jax.jacfwd(jax.jacrev(lambda w: logistic"]),
        (of_a_batch, ['h = jax.nn.relu(params["w"].T @ x)', "jnp.mean(jax.vmap(lambda x: network("]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_transformation_is_printed_as_such(program, lines, jitted):
    if program is pinn and not jitted and jax.__version_info__ < (0, 11):
        pytest.skip("what goes back is spread over the batch before it is used")
    code = tapejax.code(jax.jit(program) if jitted else program, *PROGRAMS[program]).code
    assert [line for line in lines if line not in code] == []


@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "filter_jit"])
def test_a_step_of_equinox_and_optax(jitted):
    """`eqx.filter_jit` gives a number back beside the results, and Equinox's own functions around JAX's hand everything on."""
    eqx, optax = pytest.importorskip("equinox"), pytest.importorskip("optax")
    model, optimizer = eqx.nn.MLP(3, 2, 8, 1, key=jax.random.key(0)), optax.sgd(0.1)
    x, y = array(0, 5, 3), array(1, 5, 2)

    def loss_fn(model, x, y):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    def step(model, state, x, y):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, y)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, updates), state, loss

    params = eqx.filter(model, eqx.is_array)
    with tapejax.GradientTape() as tape:
        tape.watch(params)
        new, _, loss = (eqx.filter_jit(step) if jitted else step)(model, optimizer.init(params), x, y)
    code = tape.as_function([eqx.filter(new, eqx.is_array), loss], params, arguments={"x": x, "y": y})
    assert definitions(code) == (
        """\
def linear(params, x):
    return params.weight @ x + params.bias


def mlp(params, x):
    return linear(params.layers[1], jax.vmap(jax.nn.relu)(linear(params.layers[0], x)))


def loss_fn(model, x, y):
    return jnp.mean((jax.vmap(lambda x: mlp(model, x))(x) - y) ** 2)


def f(params, x, y):  # for x: float32[5,3], y: float32[5,2]
    loss, grads = jax.value_and_grad(lambda params: loss_fn(params, x, y))(params)
    return [jax.tree.map(lambda p, g: p + -0.1 * g, params, grads), loss]
"""
    )
    other = jax.tree.map(lambda a: a * 1.1, params)
    found, right = pasted(code)(other, x * 0.5, y), step(eqx.combine(other, model), optimizer.init(params), x * 0.5, y)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
        found,
        [eqx.filter(right[0], eqx.is_array), right[2]],
    )


def test_a_jitted_call_gives_what_it_was_given():
    def both(x):
        y = jnp.sin(x) * 2.0
        return x, y, y, 1.0

    f = pasted(tapejax.code(lambda x: jax.jit(both)(x), array(0, 3)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), f(array(1, 3)), both(array(1, 3)))
