"""Printing runs nothing of the user's: callbacks, in branches taken or not; and it takes every rule, and no results at all."""

import functools
import inspect

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback
from jax.experimental.ode import odeint

import tapejax as tf

CALLS = []
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
SMALL, LARGE = jnp.array([1.0, 2.0, 3.0], jnp.float32), jnp.arange(300.0, dtype=jnp.float32)
CONSTANTS = {"small": SMALL, "large": LARGE, "NumPy": np.arange(3, dtype=np.float32)}


def noted(*args):
    CALLS.append(args)


def doubled(x):
    CALLS.append(x)
    return np.asarray(x) * np.float32(2)


def raises(x):
    raise RuntimeError("never to be called")


def pure(fn=doubled):
    return jax.pure_callback(fn, SCALAR, np.float32(3))


@jax.custom_jvp
def with_jvp(x):
    return x * pure()


with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), tangents[0] * pure()))


@jax.custom_vjp
def with_vjp(x):
    return x * pure()


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda kept, g: (g * pure(),))


@jax.custom_vjp
def noting_vjp(x):
    return x * 2


noting_vjp.defvjp(lambda x: (x * 2, x), lambda kept, g: (jax.debug.callback(noted, 1), (g * 2,))[1])


def sqrt(x):  # a name that one of our operations has
    return jnp.sqrt(x) * pure()


def steps(x, body):
    return jax.lax.scan(lambda c, _: (body(c), None), x, None, 3)[0]


CALLING = {
    "in a jitted function": jax.jit(lambda x: x * pure()),
    "as it is": lambda x: x * pure(),
    "of what moves": jax.jit(lambda x: x * jax.pure_callback(doubled, SCALAR, jax.lax.stop_gradient(x))),
    "a branch not taken": jax.jit(lambda x: jax.lax.cond(x > 5, lambda x: x + pure(raises), lambda x: 2 * x, x)),
    "a case": jax.jit(lambda x: jax.lax.switch(1, [lambda x: x + pure(raises), lambda x: x * pure()], x)),
    "scan": lambda x: steps(x, lambda c: c * pure()),
    "fori_loop": jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * pure(), x)),
    "remat": jax.jit(lambda x: jax.checkpoint(lambda x: x * pure())(x)),
    "custom_jvp": with_jvp,
    "custom_jvp in jit": jax.jit(lambda x: with_jvp(x) * 2),
    "custom_vjp": with_vjp,
    "custom_vjp in jit": jax.jit(lambda x: with_vjp(x) * 2),
    "a note in a rule": noting_vjp,
    "named as ours": jax.jit(sqrt),
    "a result that nothing uses": jax.jit(lambda x: (pure(raises) if False else pure(), x * x)[1]),
    "debug.callback": jax.jit(lambda x: (jax.debug.callback(noted, 1), x * x)[1]),
    "debug.print": lambda x: (jax.debug.print("{}", 1), x * x)[1],
    "io_callback without an answer": jax.jit(lambda x: (io_callback(noted, None, np.int32(1)), x * x)[1]),
    "error_if": jax.jit(lambda x: equinox.error_if(x * x, x > 5, "too large")),
    "error_if under filter_jit": equinox.filter_jit(lambda x: equinox.error_if(x * x, x > 5, "too large")),
    "numpy_function": lambda x: x * tf.numpy_function(doubled, [x], tf.float32),
    "py_function": lambda x: tf.py_function(lambda v: v * doubled(v), [x], tf.float32),
    "py_function in a function": tf.function(lambda x: tf.py_function(lambda v: v * doubled(v), [x], tf.float32)),
}


def recorded(fn):
    x = jnp.array(1.5, jnp.float32)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = fn(x)
    return tape, getattr(y, "_array", y), x


def compare(tape, y, x):
    """The printed code gives the recorded value and the tape's gradient."""
    function = tape.as_function(y, x)
    names = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, names)
    np.testing.assert_allclose(names["f"](x), y, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(names["f"])(x), tape.gradient(y, x), rtol=1e-6)


@pytest.mark.parametrize("name", CALLING)
def test_printing_calls_nothing(name):
    tape, y, x = recorded(CALLING[name])
    jax.effects_barrier()
    CALLS.clear()
    function = tape.as_function(y, x)
    texts = [
        str(function),
        function._repr_html_(),
        str(tape),
        tape._repr_html_(),
        str(tape.jaxpr(y, x)),
        *map(str, tape),
    ]
    tape.draw(y, x)
    jax.make_jaxpr(function)(x)
    jax.effects_barrier()
    assert not CALLS and all(texts)
    compare(tape, y, x)


def test_an_answer_that_differs_each_time():
    count = jax.ShapeDtypeStruct((), jnp.int32)
    fn = jax.jit(lambda x: x * io_callback(lambda: (CALLS.append(0), np.int32(2))[1], count))
    tape, y, x = recorded(fn)
    CALLS.clear()
    assert "x" in str(tape.as_function(y, x)) and "connected" in str(tape.explain(y, x)) and str(tape)
    assert tape.gradient(y, x) == 2
    jax.effects_barrier()
    assert not CALLS


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["", "jit"])
@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_a_loop_with_a_condition_for_each_row(transform, shape):
    doubled = jax.vmap(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 10.0, lambda c: c * 2, x))
    x = jnp.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jnp.sum(transform(doubled)(x) * x)
    function = tape.as_function(y, x)
    names = {"jax": jax, "jnp": jnp, **function.constants}
    exec(str(function), names)
    np.testing.assert_allclose(names["f"](x), y)
    np.testing.assert_allclose(
        jax.jvp(names["f"], (x,), (x,))[1], jax.jvp(lambda x: jnp.sum(doubled(x) * x), (x,), (x,))[1]
    )


def test_integers_that_become_numbers_in_a_call():
    n = jnp.arange(3)
    text = str(tf.code(jax.jit(lambda n: n + 50.0), n))
    assert "convert" not in text and "constants" not in text
    names = {"jnp": jnp}
    exec(text, names)
    np.testing.assert_array_equal(names["f"](n), n + 50.0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def flow(velocity, state):
    """Where `state` is a moment later. Backward, the cotangent flows with it."""
    return jax.tree.map(lambda x, v: x + 0.1 * v, state, velocity(state))


def flow_backward(velocity, state, ct):
    def of_both(state, ct):
        return velocity(state), jax.vjp(velocity, state)[1](ct)[0]

    return (flow(lambda both: of_both(*both), (state, ct))[1],)


flow.defvjp(lambda velocity, state: (flow(velocity, state), state), flow_backward)


@pytest.mark.parametrize(
    "solve",
    [
        lambda p: flow(lambda y: -p * y, p),
        pytest.param(
            lambda p: odeint(lambda y, t, p: -p * y, jnp.ones(2), jnp.linspace(0.0, 1.0, 3), p), marks=pytest.mark.slow
        ),
    ],
    ids=["flow", "odeint"],
)
def test_a_rule_whose_reverse_calls_itself_on_a_larger_state(solve):
    "Its rule's rule is a parameter of the code: to write all of them would have no end."
    x = jnp.array([0.5, 1.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(solve(x) ** 2)
    function = tape.as_function(y, x)
    assert function.constants
    names = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(str(function), names)
    np.testing.assert_allclose(names["f"](x), y, rtol=1e-6)


def test_jax_does_not_print_what_it_traces():
    tape, y, x = recorded(jnp.sin)
    function = tape.as_function(y, x)
    jax.jit(jax.grad(function))(x)
    assert function._print.cache_info().misses == 0


# ---- rules over constants ----


def by_jvp(c):
    @jax.custom_jvp
    def scaled(x):
        return x * c

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0] * c))
    return lambda x: jnp.sum(scaled(x))


def by_vjp(c):
    @jax.custom_vjp
    def scaled(x):
        return x * c

    scaled.defvjp(lambda x: (scaled(x), x), lambda x, g: (jnp.sum(g * c),))
    return lambda x: jnp.sum(scaled(x))


def by_a_rule_in_a_rule(c):
    inner = by_jvp(c)
    outer = jax.custom_jvp(lambda x: inner(x) * jnp.sum(c))
    outer.defjvp(lambda primals, tangents: jax.jvp(lambda x: inner(x) * jnp.sum(c), primals, tangents))
    return outer


AROUND = {
    "as it is": lambda fn: fn,
    "jit": jax.jit,
    "jit in jit": lambda fn: jax.jit(lambda x: jax.jit(fn)(x) * 2),
    "scan": lambda fn: functools.partial(steps, body=fn),
    "scan in jit": lambda fn: jax.jit(functools.partial(steps, body=fn)),
    "cond": lambda fn: jax.jit(lambda x: jax.lax.cond(x > 0, fn, lambda x: x, x)),
    "remat": lambda fn: jax.jit(jax.checkpoint(fn)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("rule", [by_jvp, by_vjp, by_a_rule_in_a_rule])
def test_a_rule_over_a_constant(rule, constant, around):
    compare(*recorded(AROUND[around](rule(CONSTANTS[constant]))))


@pytest.mark.parametrize("around", [lambda fn: fn, jax.jit])
def test_where_the_gradient_is_an_error_the_code_raises_it(around):
    x, c = jnp.array(1.5, jnp.float32), SMALL
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, c])
        y = around(by_jvp(c))(x)
    with pytest.raises(LookupError, match="closes over"):
        tape.gradient(y, [x, c])
    function = tape.as_function(y, [x, c])
    names = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, names)
    np.testing.assert_allclose(names["f"]([x, c]), y, rtol=1e-6)
    with pytest.raises(LookupError, match="closes over"):
        jax.grad(names["f"])([x, c])


def test_a_rule_that_raises_by_design():
    @jax.custom_jvp
    def fixed(x):
        return x + 1

    @fixed.defjvp
    def refuse(primals, tangents):
        raise RuntimeError("not to be differentiated")

    tape, y, x = recorded(jax.jit(lambda x: x * fixed(jax.lax.stop_gradient(x))))
    compare(tape, y, x)


@equinox.filter_custom_jvp
def squared(x):
    return jnp.sum(x**2)


@squared.def_jvp
def squared_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return squared(x), jnp.sum(2 * x * dx)


@equinox.filter_custom_vjp
def cubed(x):
    return jnp.sum(x**3)


@cubed.def_fwd
def cubed_fwd(perturbed, x):
    return cubed(x), x


@cubed.def_bwd
def cubed_bwd(x, g, perturbed, x_):
    return 3 * x**2 * g


@pytest.mark.parametrize("rule", [squared, cubed])
def test_a_rule_of_equinox_that_calls_its_function_is_written_once(rule):
    tape, y, x = recorded(lambda x: rule(x * jnp.arange(3.0)))
    function = tape.as_function(y, x)
    assert function.constants == {} and function.code.count("def fn_wrap") <= 3
    compare(tape, y, x)
    names = {"jax": jax, "jnp": jnp}
    exec(function.code, names)
    np.testing.assert_allclose(jax.grad(jax.grad(names["f"]))(x), jax.grad(jax.grad(function))(x), rtol=1e-6)


def sine(derivative):
    @jax.custom_jvp
    def same(x):
        return jnp.sin(x)

    same.defjvp(lambda primals, tangents: (same(*primals), derivative(*primals) * tangents[0]))
    return same


def test_two_functions_of_one_name_are_two_whose_rules_differ():
    expected = sine(sine(jnp.exp))
    tape, y, x = recorded(expected)
    function = tape.as_function(y, x)
    names = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, names)
    found = names["f"]
    for _ in range(4):
        np.testing.assert_allclose(found(x), expected(x), rtol=1e-5)
        found, expected = jax.grad(found), jax.grad(expected)


# ---- lists of numbers ----


def rotation(t):
    c, s = jnp.cos(t), jnp.sin(t)
    return jnp.array([[c, -s], [s, c]])


def rotation_of_tensors(t):
    return tf.convert_to_tensor([[tf.cos(t), -tf.sin(t)], [tf.sin(t), tf.cos(t)]])


def skew(t):
    a = jnp.sin(t)
    return jnp.array([[0.0, -a], [a, 1.0]])


def in_one_row(t):
    a = jnp.exp(t)
    return jnp.asarray([a, t, a * t])


def of_filled_rows(t):
    return jnp.concatenate([jnp.full((1,), jnp.sin(t)), t[None], jnp.full((1,), 2.0)])


@pytest.mark.parametrize("matrix", [rotation, rotation_of_tensors, skew, in_one_row, of_filled_rows])
def test_a_list_of_numbers_is_made_in_one_function(matrix):
    def called(t):
        return jnp.sum(jnp.asarray(matrix(t)) * jnp.asarray(matrix(t * 2)))

    tape, y, x = recorded(called)
    code = tape.as_function(y, x).code
    assert code.count("def ") == 2 and code.count(f"{matrix.__name__}(x") == 2, code
    written = inspect.getsource(matrix).splitlines()[-1].strip()
    assert ("jnp.stack([" if "tf." in written else written) in code, code
    compare(tape, y, x)


# ---- the parameters of functions ----


def riccati(A, B, P):
    def body(c, t):
        return t[0] @ c + t[1], None

    return jax.lax.scan(body, P, (A, B))[0]


def fit_loss(p, x, y, l2):
    return jnp.mean((x @ p["w"] + p["b"] - y) ** 2) + l2 * jnp.sum(p["w"] ** 2)


def contracted(psi, u, k):
    return jnp.tensordot(u, psi, [[1], [k]])


def turned(axis, angle=0.0):
    angle = angle / 2
    return jnp.cos(angle) if axis == "x" else jnp.sin(angle)


def of_riccati(a):
    return riccati(jnp.sin(a["A"]), jnp.cos(a["A"]), a["P"] * 2.0)


def of_fit_loss(a):
    stepped = {"w": a["w"] * 2.0, "b": a["b"] - 1.0}
    return fit_loss(stepped, jnp.ones((8, 3)), jnp.zeros(8), a["l2"])


def of_contracted(a):
    return contracted(
        a["x"] * 2.0,
        jnp.sin(a["x"]),
        1,
    )


def of_turned(a):
    return turned("x", angle=a["x"] * 3.0) * turned("y", a["x"] + 1.0)


PARAMETERS = {
    "def riccati(A, B, P):": (of_riccati, {"A": (3, 2, 2), "P": (2, 2)}),
    "def fit_loss(p_w, p_b, l2):": (of_fit_loss, {"w": (3,), "b": (), "l2": ()}),
    "def contracted(psi, u):": (of_contracted, {"x": (2, 2)}),
    "def turned(angle):": (of_turned, {"x": (3,)}),
}


@pytest.mark.parametrize("head", PARAMETERS)
def test_a_parameter_has_its_own_name(head):
    program, shapes = PARAMETERS[head]
    rng = np.random.default_rng(0)
    tree = {name: jnp.asarray(rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tree)
        result = jnp.sum(program(tree))
    function = tape.as_function(result, tree)
    assert head in function.code, function.code
    names = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, names)
    np.testing.assert_allclose(names["f"](tree), result, rtol=1e-5)
    other = jax.tree.map(lambda x: x * 1.3 + 0.1, tree)
    np.testing.assert_allclose(names["f"](other), jnp.sum(program(other)), rtol=1e-5)


# ---- operations that are one of JAX's functions ----

A = jnp.arange(12.0).reshape(4, 3) ** 2 + 1
ONE_CALL = {
    "jnp.linalg.svd(A, full_matrices=False)": lambda a: jnp.linalg.svd(a, full_matrices=False)[1],
    "jnp.linalg.svd(A, compute_uv=False)": lambda a: jnp.linalg.svd(a, compute_uv=False),
    "jnp.fft.rfft(A)": lambda a: jnp.abs(jnp.fft.rfft(a)),
    "jnp.fft.irfft(A)": jnp.fft.irfft,
    "jnp.fft.irfft2(jnp.fft.rfft2(A))": lambda a: jnp.fft.irfft2(jnp.fft.rfft2(a)),
    "jnp.diag(A[0])": lambda a: tf.linalg.diag(a[0]),
    'jnp.vectorize(jnp.diag, signature="(n)->(n,n)")(A)': tf.linalg.diag,
    "jnp.fill_diagonal(A, A[0], inplace=False)": lambda a: tf.linalg.set_diag(a, a[0]),
    "c * A[i]": lambda a: jax.lax.fori_loop(0, 3, lambda i, c: c * a[i], jnp.ones(3)),
}


@pytest.mark.parametrize("text", ONE_CALL)
def test_an_operation_is_written_as_the_function_that_does_it(text):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(A)
        y = jnp.sum(jnp.asarray(ONE_CALL[text](A)) ** 3)
    code = tape.as_function(y, A).code
    assert text in code and "bind(" not in code, code
    names = {"jax": jax, "jnp": jnp, "np": np}
    exec(code, names)
    np.testing.assert_allclose(names["f"](A), y, rtol=1e-5)
    np.testing.assert_allclose(jax.grad(names["f"])(A), tape.gradient(y, A), rtol=1e-4, atol=1e-4)


# ---- equations without results ----

nothing = jax.custom_jvp(lambda t: t)
nothing.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
nothing_either = jax.custom_vjp(lambda t: t)
nothing_either.defvjp(lambda t: (t, None), lambda kept, g: (g,))


@pytest.mark.parametrize(
    "effect",
    [
        lambda x: nothing({}),
        lambda x: nothing_either({}),
        lambda x: jax.jit(lambda: None)(),
        lambda x: jax.checkpoint(lambda x: None)(x),
        lambda x: jax.lax.cond(x > 1, lambda: None, lambda: None),
        lambda x: jax.lax.scan(lambda c, _: (c, None), (), None, 3),
        lambda x: jax.lax.scan(lambda c, _: (jax.debug.callback(noted, 1), (c, None))[1], (), None, 3),
    ],
)
def test_an_equation_without_results(effect):
    for around in (lambda fn: fn, jax.jit):
        compare(*recorded(around(lambda x: (effect(x), x * x)[1])))
