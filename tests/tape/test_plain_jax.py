"""Plain JAX in a tape: for every construct of `plain_jax.CASES` the tape's gradient is `jax.grad`'s."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback
from plain_jax import CASES, FLOAT, Case, a_third

import tapejax as tf
from tapejax.execution import schedule
from tapejax.tape import active
from tests.tape.interpreted import interpreted


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]


def total(outputs):
    """The sum of all that is differentiable in `outputs`: what a tape's gradient is the gradient of."""
    return functools.reduce(lambda a, b: a + b, [jnp.sum(x).astype(FLOAT) for x in floats(outputs)])


def split(arguments):
    """The differentiable leaves of `arguments`, and how to put others in their place."""
    leaves, tree = jax.tree.flatten(arguments)
    where = [i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def rebuild(new):
        full = list(leaves)
        for i, x in zip(where, new):
            full[i] = x
        return jax.tree.unflatten(tree, full)

    return [leaves[i] for i in where], rebuild


def gradient_by_jax(case: Case):
    _, rebuild = split(case.arguments())
    return jax.grad(lambda xs: total(case.function(*rebuild(xs))))


def by_jax(case: Case, function):
    """`function`, a reference, evaluated by Python: XLA takes longer to compile it than the test."""
    function = jax.jit(function) if case.staged else function
    return interpreted()(function)


@functools.cache
def expected_gradient(name: str):
    case = CASES[name]
    return by_jax(case, gradient_by_jax(case))(split(case.arguments())[0])


def gradient_by_tape(case: Case):
    """A function from the sources to their gradients by a tape, zeros where they are None."""
    _, rebuild = split(case.arguments())

    def step(sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = case.function(*rebuild(sources))
        return tape.gradient(outputs, sources, unconnected_gradients="zero")

    return step


def assert_same(found, expected, tolerance=1e-5):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def named(condition):
    return pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items() if condition(c)])


# ---- every case -----------------------------------------------------------------------------------------------------


@named(lambda case: True)
def test_gradient(case):
    """Three times over: what runs step by step at first is compiled whole when it comes back."""
    sources, _ = split(case.arguments())
    step = gradient_by_tape(case)
    for _ in range(3):
        assert_same(step(sources), expected_gradient(case.name), case.tolerance)
    assert not active.active_recordings()


@a_third(0)
def test_gradient_entry_by_entry(case, monkeypatch):
    monkeypatch.setattr(schedule, "COMPILE_AT_MOST", 0)
    sources, _ = split(case.arguments())
    assert_same(gradient_by_tape(case)(sources), expected_gradient(case.name), case.tolerance)


@named(lambda case: True)
def test_values_and_as_function(case):
    """A tape changes no value; the function on it has the program's values and `jax.grad`'s gradient."""
    sources, rebuild = split(case.arguments())
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    assert not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(outputs))
    assert_same(outputs, interpreted()(case.function)(*rebuild(sources)), case.tolerance)

    function = tape.as_function(outputs, sources)
    assert_same(function(sources), outputs, case.tolerance)
    gradient = by_jax(case, jax.grad(lambda xs: total(function(xs))))
    assert_same(gradient(sources), expected_gradient(case.name), case.tolerance)


@a_third(1, lambda case: case.staged)
def test_tape_inside_jit(case):
    sources, _ = split(case.arguments())
    assert_same(jax.jit(gradient_by_tape(case))(sources), expected_gradient(case.name), case.tolerance)


def second_order_by_jax(case: Case, sources):
    gradient = gradient_by_jax(case)
    return interpreted()(jax.grad(lambda xs: total(gradient(xs))))(sources)


@pytest.mark.slow
@named(lambda case: case.twice)
def test_nested_tapes(case):
    sources, rebuild = split(case.arguments())
    for _ in range(2):
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as inner:
                inner.watch(sources)
                outputs = case.function(*rebuild(sources))
            first = inner.gradient(outputs, sources, unconnected_gradients="zero")
        second = outer.gradient(first, sources, unconnected_gradients="zero")
        assert_same(second, second_order_by_jax(case, sources), max(case.tolerance, 1e-4))


# ---- a tape inside JAX's transformations ------------------------------------------------------------------------------

# One program for each way in which an operation reaches the recorder.
KINDS = (
    "identity",
    "python_operators",
    "in_place_set",
    "relu",
    "scan",
    "cond_true",
    "jit_closing_over_deep",
    "vmap_closing_over",
    "grad",
    "custom_jvps_over_one_function",
    "custom_vjps_over_one_function",
    "checkpoint",
    "random_key_in_the_block",
)


def in_vmap(step, sources):
    """Over a batch of two."""
    return jax.vmap(step)(jax.tree.map(lambda x: jnp.stack([x, 2 * x]), sources))


def in_vmap_of_one(step, sources):
    """Over the first source only; the others are the same for the whole batch."""
    first, *others = sources
    return jax.vmap(lambda x: step([x, *others]))(jnp.stack([first, 2 * first]))


def in_grad(step, sources):
    return jax.grad(lambda xs: total(step(xs)))(sources)


def in_jit_of_grad(step, sources):
    return jax.jit(jax.grad(lambda xs: total(step(xs))))(sources)


def in_jvp(step, sources):
    return jax.jvp(step, (sources,), (sources,))


def in_scan(step, sources):
    return lax.scan(lambda count, xs: (count + 1, step(xs)), 0, jax.tree.map(lambda x: jnp.stack([x, 2 * x]), sources))


def in_cond_branch(step, sources):
    return lax.cond(sources[0].sum() > 0, step, lambda xs: xs, sources)


def in_while_loop(step, sources):
    def body(state):
        count, xs = state
        return count + 1, jax.tree.map(lambda x, g: x - 0.01 * g, xs, step(xs))

    return lax.while_loop(lambda state: state[0] < 3, body, (0, sources))


def in_checkpoint(step, sources):
    return jax.grad(jax.checkpoint(lambda xs: total(step(xs))))(sources)


def in_custom_vjp_backward(step, sources):
    """The backward pass of a custom_vjp takes the gradient by a tape."""

    @jax.custom_vjp
    def f(xs):
        return total(xs)

    f.defvjp(lambda xs: (f(xs), xs), lambda xs, g: (jax.tree.map(lambda x: x * g, step(xs)),))
    return jax.grad(lambda xs: 3.0 * f(xs))(sources)


def in_custom_jvp_rule(step, sources):
    @jax.custom_jvp
    def f(xs):
        return total(xs)

    f.defjvp(lambda xs, ts: (f(*xs), total(jax.tree.map(jnp.multiply, step(*xs), *ts))))
    return jax.grad(f)(sources)


def in_vmap_of_grad_in_jit(step, sources):
    return jax.jit(lambda xs: jax.vmap(jax.grad(lambda x: total(step(x))))(xs))(
        jax.tree.map(lambda x: jnp.stack([x, 2 * x]), sources)
    )


TRANSFORMATIONS = [value for name, value in list(globals().items()) if name.startswith("in_")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transformed", TRANSFORMATIONS, ids=lambda f: f.__name__)
def test_tape_inside(transformed, kind):
    """A step that takes a gradient by a tape behaves under a transformation as one that takes it by `jax.grad`."""
    if transformed is in_jvp and "custom_vjp" in kind:
        pytest.skip("JAX itself has no forward mode through a custom_vjp whose forward pass calls it again")
    case = CASES[kind]
    sources, _ = split(case.arguments())
    found = transformed(gradient_by_tape(case), sources)
    expected = by_jax(case, lambda sources: transformed(gradient_by_jax(case), sources))(sources)
    assert_same(found, expected, 1e-4)


def test_tape_around_and_inside_a_transformation():
    """A tape outside jit and one inside; a tape outside vmap and one inside; three levels."""
    x = jnp.arange(1.0, 4.0)

    def by_tape(f):
        def gradient(v):
            with tf.GradientTape() as tape:
                tape.watch(v)
                y = f(v)
            return tape.gradient(y, v)

        return gradient

    def cube(v):
        return v**3

    assert_same(by_tape(jax.vmap(by_tape(cube)))(x), 6 * x)
    for wrap in (jax.jit, jax.checkpoint, lambda f: f):
        assert_same(by_tape(wrap(by_tape(cube)))(x), 6 * x)
        assert_same(by_tape(wrap(by_tape(wrap(by_tape(cube)))))(x), jnp.full(3, 6.0))
    assert_same(jax.grad(lambda v: by_tape(jax.jit(by_tape(cube)))(v).sum())(x), jnp.full(3, 6.0))


# ---- tapes among each other -------------------------------------------------------------------------------------------


def test_stacked_tapes():
    x = jnp.arange(1.0, 4.0)
    with tf.GradientTape() as a, tf.GradientTape(persistent=True) as b:
        a.watch(x)
        y = x * x
        b.watch(y)
        z = jnp.sin(y)
    assert_same(a.gradient(z, x), 2 * x * jnp.cos(x * x))
    assert_same(b.gradient(z, y), jnp.cos(y))
    assert b.gradient(z, x) is None


def test_reentered_tape():
    """A tape goes on where it was left; what ran in between it did not see."""
    x = jnp.arange(1.0, 4.0)
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    between = y * 5.0
    with tape:
        z = y * x + between
    assert_same(tape.gradient(z, x), 3 * x * x)
    assert_same(tape.gradient(y, x), 2 * x)


def test_tape_entered_twice():
    tape = tf.GradientTape()
    with tape, pytest.raises(ValueError, match="still recording"), tape:
        pass
    assert not active.active_recordings()


def test_gradient_inside_the_block_of_a_persistent_tape(caplog):
    """The backward pass is recorded, so that it can be differentiated too."""
    x = FLOAT(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        first = tape.gradient(y, x)
    assert_same(first, FLOAT(27.0))
    assert_same(tape.gradient(first, x), FLOAT(18.0))
    assert "persistent" in caplog.text


def test_intermediate_sources_and_targets_that_are_sources():
    x = jnp.arange(1.0, 4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jnp.sin(x)
        z = y * x
    assert_same(tape.gradient(z, [x, y, z]), [jnp.sin(x) + x * jnp.cos(x), x, jnp.ones(3)])
    assert_same(tape.gradient([z, x], x), jnp.sin(x) + x * jnp.cos(x) + 1)


# ---- what JAX itself cannot ----------------------------------------------------------------------------------------------


def taped(function, x, **keywords):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, **keywords)


X = np.arange(1.0, 4.0, dtype=FLOAT)


def test_python_that_reads_values():
    """`jax.grad` refuses `float()` of a traced value; a tape has values. To it they are constants."""
    x = jnp.asarray(X)
    assert_same(taped(lambda v: v * float(v[1]) + v * np.asarray(v).sum(), x), jnp.full(3, 8.0))


def test_custom_vjp_that_reads_values():
    """Python control flow on values in a rule: the rule runs on the values themselves, forward and backward."""

    @jax.custom_vjp
    def f(v):
        return v * 2 if v[0] > 0 else v

    def forward(v):
        return f(v), float(v[1])

    def backward(second, g):
        return (g * 3 if g[0] > 0 else g * second,)

    f.defvjp(forward, backward)
    x = jnp.asarray(X)
    for _ in range(2):
        assert_same(taped(lambda v: f(v) * v, x), 2 * x + 3 * x)
        assert_same(taped(lambda v: f(v) * -v, x), -2 * x - 2 * x)


# ---- None ----------------------------------------------------------------------------------------------------------------

UNCONNECTED = {
    "floor": jnp.floor,
    "round": jnp.round,
    "ceil": jnp.ceil,
    "stop_gradient": lax.stop_gradient,
    "stop_gradient in jit": jax.jit(lambda v: lax.stop_gradient(v) * 2),
    "stop_gradient in scan": lambda v: lax.scan(lambda c, e: (c, lax.stop_gradient(e)), 0.0, v)[1],
    "stop_gradient in both branches": lambda v: lax.cond(v[0] > 0, lax.stop_gradient, jnp.floor, v),
    "to integers and back": lambda v: v.astype(jnp.int32).astype(FLOAT),
    "integers": lambda v: v.astype(jnp.int32),
    "comparison": lambda v: (v > 1.0).astype(FLOAT),
    "argmax": lambda v: jnp.argmax(v).astype(FLOAT),
    "zeros_like": jnp.zeros_like,
    "shape": lambda v: FLOAT(v.shape[0]),
    "NumPy": lambda v: jnp.asarray(np.asarray(v) * 2),
    "Python float": lambda v: jnp.asarray(float(v[0])),
    "another output of the same jit": lambda v: jax.jit(lambda w: (jnp.floor(w), w))(v)[0],
    "another part of a carry": lambda v: lax.scan(lambda c, e: ((c[0] + e, c[1] + 1.0), None), (0.0, 0.0), v)[0][1],
    "nothing": lambda v: jnp.ones(3),
    "unwatched": lambda v: jnp.asarray(X) ** 2,
}


@pytest.mark.parametrize("function", UNCONNECTED.values(), ids=UNCONNECTED)
def test_none(function):
    x = jnp.asarray(X)
    assert taped(function, x) is None
    assert_same(taped(function, x, unconnected_gradients="zero"), jnp.zeros(3))
    assert taped(lambda v: [function(v), function(v)], x) is None


def test_none_beside_a_gradient():
    x, y = jnp.asarray(X), jnp.asarray(X)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = jnp.floor(x) * y
    assert_same(tape.gradient(z, {"x": x, "y": y}), {"x": None, "y": jnp.floor(x)})


def test_numpy_operands_do_not_hide_the_others():
    """What is known of an operation must not depend on which operand happened to be NumPy's when it was first seen."""
    x = jnp.asarray(X)
    assert_same(taped(lambda v: lax.atan2(X, v) * 0 + v, x), jnp.ones(3))
    assert_same(taped(lambda v: lax.atan2(v, jnp.asarray(X)), x), 0.5 / x)


def test_integers_are_no_sources(caplog):
    x, i = jnp.asarray(X), jnp.arange(3)
    with tf.GradientTape() as tape:
        tape.watch([x, i])
        y = x * i
    assert "floating" in caplog.text
    assert_same(tape.gradient(y, [x, i]), [i.astype(FLOAT), None])


def test_typed_keys_are_values_like_others(caplog):
    x, key = jnp.asarray(X), jax.random.key(0)
    with tf.GradientTape() as tape:
        tape.watch([x, key])
        y = x * jax.random.normal(key, (3,))
    assert_same(tape.gradient([y, key], [x, key]), [jax.random.normal(key, (3,)), None])

    draw = jax.jit(lambda x: jnp.sum(x * jax.random.normal(key, (3,))))  # which closes over the key

    @jax.jit
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = draw(x)
        return tape.gradient(y, x)

    assert_same(step(x), jax.random.normal(key, (3,)))


def test_a_dtype_of_a_user_with_a_tangent():
    """Flax's scales of 8-bit floats, whose gradients are added by their maximum: it was None."""
    fp8 = pytest.importorskip("flax.linen.fp8_ops")

    def f(x, history, scale):
        history, scale = (lax.convert_element_type(v, fp8.fp32_max_grad) for v in (history, scale))
        for factor in (1.0, 2.0):
            x = fp8.in_qdq(jnp.float32, jnp.float8_e4m3fn, factor * x, scale, history)
        return x.sum()

    @jax.jit
    def step(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = f(*args)
        return tape.gradient(y, args)

    args = jnp.float32([[1.0, -3.0]]), jnp.zeros(4, jnp.float32), jnp.ones(1, jnp.float32)
    expected = jax.jit(jax.grad(f, (0, 1, 2)))(*args)
    assert_same(step(*args), expected)
    with tf.GradientTape() as tape:
        tape.watch(args)
        y = jax.jit(f)(*args)
    assert_same(tape.gradient(y, args), expected)


# ---- LookupError ---------------------------------------------------------------------------------------------------------


def _grow(v):
    return lax.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 2, v)


def _double_on_the_host(v):
    return jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct((3,), FLOAT), v)


def _double_with_a_side_effect(v):
    return io_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct((3,), FLOAT), v)


NO_GRADIENT = {
    "while": (_grow, "while"),
    "while in jit": (jax.jit(_grow), "while_loop"),
    "while in cond": (lambda v: lax.cond(v[0] > 0, _grow, jnp.sin, v), "while_loop"),
    "pure_callback": (_double_on_the_host, "pure_callback"),
    "pure_callback in jit": (jax.jit(_double_on_the_host), "(?i)pure.callback"),
    "io_callback": (_double_with_a_side_effect, "io_callback"),
}


@pytest.mark.parametrize("function, name", NO_GRADIENT.values(), ids=NO_GRADIENT)
def test_what_cannot_be_differentiated_is_named(function, name):
    x = jnp.asarray(X)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x) * x
        np.testing.assert_allclose(y, function(x) * x)  # forward it runs
        with pytest.raises(LookupError, match=name):
            tape.gradient(y, x)
    assert not active.active_recordings()


def test_what_cannot_be_differentiated_does_not_matter_beside_the_path():
    x = jnp.asarray(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = _grow(x)
        z = jnp.sin(x)
    assert_same(tape.gradient(z, x), jnp.cos(x))
    assert_same(tape.gradient(z * y, z), None)  # after the block
    with pytest.raises(LookupError):
        tape.gradient(y, x)


# ---- bad input -----------------------------------------------------------------------------------------------------------


def test_donated_argument():
    """What was donated is gone; what does not need its value still works."""
    double = jax.jit(lambda v: v * 2, donate_argnums=0)
    x = jnp.asarray(X) + 0
    assert_same(taped(lambda v: double(v * 1), x), jnp.full(3, 2.0))


@pytest.mark.parametrize("ask", ["gradient", "jacobian", "check_numerics", "explain"])
def test_a_donated_source_is_named_by_its_argument(ask):
    """The class is that of a value on the way that was donated."""
    sine = jax.jit(jnp.sin, donate_argnums=0)
    x = jnp.asarray(X) + 0.0
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = sine(x)
        with pytest.raises(RuntimeError, match="Argument `tensor`.*was donated"):
            tape.watch(x)
    with pytest.raises(RuntimeError, match="Argument `sources`.*was donated"):
        getattr(tape, ask)(y, x)


def test_deleted_array_is_reported():
    x = jnp.asarray(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 2
        z = y * y
    y.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        tape.gradient(z, x)
    assert_same(taped(jnp.sin, x), jnp.cos(x))


@pytest.fixture
def escaped():
    caught = []
    jax.jit(lambda v: caught.append(v) or v)(jnp.asarray(X))
    return caught[0]


def test_escaped_tracer_as_operand(escaped):
    x = jnp.asarray(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(jax.errors.UnexpectedTracerError):
            x * escaped
        y = x * x
    assert_same(tape.gradient(y, x), 2 * x)


def test_escaped_tracer_as_target(escaped):
    x = jnp.asarray(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        tape.gradient(escaped, x)


def test_escaped_tracer_as_source(escaped):
    x = jnp.asarray(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises((jax.errors.UnexpectedTracerError, ValueError), match="tracer"):
        tape.gradient(y, escaped)


def test_escaped_tracer_watched(escaped):
    with tf.GradientTape() as tape:
        with pytest.raises((jax.errors.UnexpectedTracerError, ValueError), match="tracer"):
            tape.watch(escaped)


# ---- the rules of custom functions ------------------------------------------------------------------------------------


def _times(factor):
    """The identity with `factor()` times its gradient; `factor` is called when the backward pass runs."""

    @jax.custom_vjp
    def identity(v):
        return v * 1.0

    identity.defvjp(lambda v: (identity(v), None), lambda _, g: (g * factor(),))
    return identity


FACTOR = 2.0


def test_a_rule_reads_globals_and_objects_anew():
    """The backward function of a custom_vjp is the user's Python: what it reads may have changed since the last time."""
    global FACTOR
    x, box = jnp.asarray(X), [2.0]

    def factor():
        return FACTOR

    kept = _times(factor)
    for value in (2.0, 3.0, FLOAT(5.0), jnp.float32(7.0)):
        FACTOR = box[0] = value
        expected = jnp.full(3, float(value))
        for function in (kept, _times(factor), _times(lambda: box[0]), jax.vmap(_times(factor))):
            for _ in range(2):
                assert_same(taped(function, x), expected)


def test_rules_told_apart_by_what_they_close_over():
    x = jnp.asarray(X)
    for value in (2.0, -0.0, 0.0, 3, True, FLOAT(4.0), np.dtype(FLOAT).type(5.0)):
        assert_same(taped(_times(lambda v=value: v), x), jnp.full(3, 1.0) * value)
        assert_same(taped(_times((lambda v: lambda: v)(value)), x), jnp.full(3, 1.0) * value)


def test_a_rule_that_calls_its_own_function():
    """Tracing the rule meets the function again, and its rule, without end."""
    f = jax.custom_jvp(lambda v: v * 2)
    f.defjvp(lambda primals, tangents: (f(*primals), f(f(tangents[0]))))
    x = jnp.asarray(X)
    for function in (f, jax.jit(f), jax.vmap(f), lambda v: lax.scan(lambda c, _: (f(c), None), v, None, length=2)[0]):
        expected = jax.grad(lambda v, function=function: function(v).sum())(x)
        for _ in range(2):
            assert_same(taped(function, x), expected)


# ---- other worlds of JAX ---------------------------------------------------------------------------------------------


def test_x64():
    with jax.enable_x64(True):
        x = jnp.arange(1.0, 4.0)
        for _ in range(2):
            gradient = taped(lambda v: jnp.sin(v) * np.float64(2) + jax.jit(lambda: v * v)(), x)
            assert gradient.dtype == jnp.float64
            np.testing.assert_allclose(gradient, 2 * np.cos(x) + 2 * np.asarray(x), rtol=1e-14)
    assert taped(jnp.sin, jnp.asarray(X)).dtype == FLOAT


def test_one_program_under_two_precisions():
    """The same code with and without 64 bits, by turns: the two programs must not be taken for each other."""
    for _ in range(3):
        for wide in (False, True):
            with jax.enable_x64(wide):
                x = jnp.arange(1.0, 4.0)
                gradient = taped(lambda v: (v * jnp.arange(3) + 1) ** 2, x)
                assert gradient.dtype == (jnp.float64 if wide else jnp.float32)


def test_recorded_in_64_bits_and_asked_in_32():
    """The derivative has the precision of what was computed, as that of `jax.vjp` has."""
    x = np.array([1.0, 2.0, 3.0])
    slopes = np.sin(x) + x * np.cos(x)
    with jax.enable_x64(True):
        v, other = jnp.asarray(x), jnp.ones(2)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((v, other))
            y = jnp.sin(v) * v
        with tf.autodiff.ForwardAccumulator(v, jnp.ones(3)) as accumulator:
            z = jnp.sin(v) * v
    found = {
        "gradient": (tape.gradient(y, v), slopes),
        "jacobian": (tape.jacobian(y, v), np.diag(slopes)),
        "jvp": (accumulator.jvp(z), slopes),
        "unconnected": (tape.gradient(y, other, unconnected_gradients="zero"), np.zeros(2)),
    }
    for name, (value, expected) in found.items():
        assert value.dtype == np.float64, name
        np.testing.assert_allclose(value, expected, rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32, jnp.complex64])
def test_dtypes(dtype):
    x = jnp.asarray([1.0, 2.0, 3.0], dtype)
    assert_same(taped(lambda v: v * v + 3 * v, x), 2 * x + 3)


def test_disable_jit():
    """With jit switched off every primitive is an entry of its own."""
    x = jnp.asarray(X)
    with jax.disable_jit():
        assert_same(taped(lambda v: jax.nn.softmax(v) * jnp.arange(3.0), x), expected_softmax(x))


def expected_softmax(x):
    return jax.grad(lambda v: (jax.nn.softmax(v) * jnp.arange(3.0)).sum())(x)


def test_debug_nans():
    x = jnp.asarray(X)
    with jax.debug_nans(True):
        assert_same(taped(lambda v: jax.nn.softmax(v) * jnp.arange(3.0), x), expected_softmax(x))
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(FloatingPointError):
                jnp.log(x - 2.0)
    assert not active.active_recordings()


def test_numpy_rank_promotion_and_default_precision():
    x = jnp.ones((2, 2))
    with jax.numpy_rank_promotion("raise"), jax.default_matmul_precision("float32"):
        assert_same(taped(lambda v: v @ v, x), jnp.full((2, 2), 4.0))


def test_checking_leaks():
    x = jnp.asarray(X)
    with jax.checking_leaks():
        assert_same(taped(lambda v: jax.nn.relu(v) * jax.jit(lambda w: w * v)(v), x), 3 * x * x)


def test_references():
    """`jax.new_ref`, a mutable array: followed inside jit, refused outside, where a tape cannot see it change."""

    def f(v):
        ref = jax.new_ref(v)
        ref[...] = ref[...] * 2
        return ref[...] * v

    x = jnp.asarray(X)
    assert_same(taped(jax.jit(f), x), 4 * x)
    with pytest.raises(LookupError, match="Ref"):
        taped(f, x)
    assert not active.active_recordings()


CONSTANTS = {
    "Python's": lambda x: 1.0,
    "NumPy's": lambda x: np.ones((), FLOAT),
    "weak": lambda x: jnp.ones_like(jnp.asarray(2.0)),
    "JAX's": lambda x: jnp.ones((), FLOAT),
    "of what it looks at": lambda x: float(x) - float(x),
}


@pytest.mark.parametrize("value", CONSTANTS)
@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_a_function_with_a_rule_that_returns_a_constant(kind, value):
    """Its result is an array that the tape knows, and has the gradient that the rule gives."""
    value = CONSTANTS[value]

    @kind
    def f(x):
        return value(x)

    if kind is jax.custom_vjp:
        f.defvjp(lambda x: (value(x), None), lambda _, ct: (2 * ct,))
    else:
        f.defjvp(lambda primals, tangents: (jnp.asarray(value(*primals), FLOAT), 2 * tangents[0]))
    x = FLOAT(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        z = y * 5
    assert jax.typeof(y) == jax.typeof(jnp.asarray(value(x)))
    assert_same(tape.gradient(z, x), FLOAT(10.0))


@pytest.mark.parametrize("first", ["tape", "jax.grad"])
@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_a_vmapped_rule_over_a_closure(kind, first):
    """Its rule refuses a derivative with respect to what it closes over; to ask for one leaves JAX as it was."""
    weights = jnp.asarray(X)

    @jax.jit
    def f(x, w):
        @kind
        def g(v):
            return jnp.sin(v) * lax.stop_gradient(w)

        if kind is jax.custom_vjp:
            g.defvjp(lambda v: (jnp.sin(v), jnp.cos(v)), lambda c, ct: (6 * c * ct,))
        else:
            g.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 6 * jnp.cos(primals[0]) * tangents[0]))
        return g(x) * weights

    x = jnp.asarray(X)

    def total(x):
        return jax.vmap(f, (0, None))(x, FLOAT(5.0)).sum()

    for way in ("tape", "tape", "jax.grad", "tape") if first == "tape" else ("jax.grad", "tape", "tape", "jax.grad"):
        found = taped(total, x) if way == "tape" else jax.grad(total)(x)
        assert_same(found, 6 * jnp.cos(x) * X.sum())


def test_types_of_the_user():
    """`jax.experimental.hijax`: gradient passes values that are no arrays, if their type has a tangent."""
    from jax.experimental import hijax

    if not hasattr(hijax, "VJPHiPrimitive"):
        pytest.skip("JAX 0.12 has other classes for it")

    class Halves:
        def __init__(self, doubled):
            self.doubled = doubled

    class HalvesType(hijax.HiType):
        def __eq__(self, other):
            return type(self) is type(other)

        def __hash__(self):
            return hash(type(self))

        def to_tangent_aval(self):
            return jax.typeof(jnp.asarray(X))

    hijax.register_hitype(Halves, lambda _: HalvesType())

    class Primitive(hijax.VJPHiPrimitive):
        def __init__(self, given, taken):
            self.in_avals, self.out_aval, self.params = (given,), taken, {}
            super().__init__()

        def vjp_fwd(self, _, x):
            return self(x), None

    class Double(Primitive):
        def expand(self, x):
            return Halves(2 * x)

        def vjp_bwd_retval(self, _, ct):
            return (3 * ct,)  # not what calculus says, to see that it is this rule

    class Halve(Primitive):
        def expand(self, halves):
            return halves.doubled / 2

        def vjp_bwd_retval(self, _, ct):
            return (5 * ct,)

    array, halves = jax.typeof(jnp.asarray(X)), HalvesType()

    def f(x):
        twice = Double(array, halves)(jnp.sin(x))
        return jnp.sum(Halve(halves, array)(twice) * Halve(halves, array)(twice))

    x = jnp.asarray(X)
    assert_same(taped(f, x), jax.grad(f)(x))


def test_another_function_in_the_place_of_jit(monkeypatch):
    """As `chex.OnCallOfTransformedFunction` puts one there: what a tape compiles for itself is none of its business."""
    jit = jax.jit
    calls = []
    monkeypatch.setattr(jax, "jit", lambda f: lambda *args: calls.append(f) or jit(f)(*args))
    x = FLOAT(1.25)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.jit(f := lambda x: jnp.sin(x) * 1.25)(x)
    assert_same(tape.gradient(y, x), jnp.cos(x) * 1.25)
    assert calls == [f]


def test_values_of_a_user_that_change_in_place():
    """As a `jax.Ref`: a jitted function that gets one runs as it came; a gradient through it is refused, not None."""
    nnx = pytest.importorskip("flax.nnx")
    if not hasattr(nnx.Variable, "hijax"):
        pytest.skip("This Flax has no variables that JAX knows")
    # with JAX 0.12 Flax refuses to change others in a jitted function
    kind = {"ref": True} if jax.__version_info__ >= (0, 12) else {"hijax": True}
    k = jnp.float32(3.0)

    @jax.jit
    def double(variable):
        variable[...] = 2 * variable[...]
        return variable[...] * k

    for function, answer in ((double, 12.0), (jax.jit(lambda variable: variable[...] ** 2), 4.0)):
        with tf.GradientTape() as tape:
            x = FLOAT(2.0)
            tape.watch(x)
            variable = nnx.Param(x, **kind)
            y = function(variable)
            z = variable[...] ** 2
        assert (float(y), float(z)) == (answer, 16.0 if function is double else 4.0)
        with pytest.raises(LookupError, match="in place"):
            tape.gradient(y, x)


def _set(ref, value):
    ref[...] = value


def _empty(x):
    ref = jax.new_ref(jnp.zeros(()))
    ref[...] = 2 * x
    return ref


def _part(x):
    ref = jax.new_ref(jnp.ones(5))
    ref.at[1:4][...] += x
    return ref


def _in_jit(x):
    ref = jax.new_ref(jnp.zeros(()))
    jax.jit(lambda ref, x: _set(ref, x * x))(ref, x)
    return ref


def _in_loop(x):
    ref = jax.new_ref(jnp.ones(()))
    jax.lax.scan(lambda c, y: (c * y, _set(ref, ref[...] * c + x)), 2.0, jnp.arange(1.0, 4.0))
    return ref


def _in_branch(x):
    ref = jax.new_ref(jnp.ones(()))
    jax.lax.cond(x > 0, lambda: _set(ref, jnp.sin(x)), lambda: None)
    return ref


def _through_two(x):
    first, second = jax.new_ref(jnp.zeros(())), jax.new_ref(jnp.zeros(()))
    first[...] = jnp.sin(x)
    second[...] = first[...] ** 2
    return second


def _unconnected(x):
    ref, other = jax.new_ref(jnp.zeros(())), jax.new_ref(jnp.ones(()))
    ref[...] = jnp.sin(x)
    return other


@pytest.mark.parametrize("make", [_empty, _part, _in_jit, _in_loop, _in_branch, _through_two, _unconnected])
def test_references_that_are_made_of_constants(make):
    """What is written into a Ref inside jit is read from it later, though the Ref was made of nothing that is watched."""
    f, x = jax.jit(lambda x: jnp.sum(make(x)[...])), FLOAT(1.5)
    with tf.GradientTape() as tape, tf.ForwardAccumulator(x, jnp.ones_like(x)) as accumulator:
        tape.watch(x)
        y = f(x)
    gradient = tape.gradient(y, x)
    if make is _unconnected:
        assert gradient is None and accumulator.jvp(y) is None
    else:
        assert_same(gradient, jax.grad(f)(x))
        assert_same(accumulator.jvp(y), jax.grad(f)(x))


def _read(ref, x):
    return x * ref[...]


def _written(ref, x):
    ref[...] += 1
    return x * ref[...]


CALLS_ON_REFS = {
    "an argument of jit": lambda ref, f: lambda x: jax.jit(f)(ref, x),
    "closed over by jit": lambda ref, f: jax.jit(lambda x: f(ref, x)),
    "closed over by checkpoint": lambda ref, f: jax.checkpoint(lambda x: f(ref, x)),
    "in a loop": lambda ref, f: lambda x: jax.lax.scan(lambda c, _: (f(ref, c), None), x, length=2)[0],
    "in a branch": lambda ref, f: lambda x: jax.lax.cond(x > 0, lambda x: f(ref, x), lambda x: x, x),
}


@pytest.mark.parametrize("function", [_read, _written])
@pytest.mark.parametrize("call", CALLS_ON_REFS)
def test_calls_that_touch_a_reference_made_outside(call, function):
    """They run once, as without a tape; a gradient through them is refused, since a pullback would run them again."""
    ref, plain = jax.new_ref(FLOAT(2.0)), jax.new_ref(jnp.float32(2.0))
    x = FLOAT(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = CALLS_ON_REFS[call](ref, function)(x)
    assert (y, ref[...]) == (CALLS_ON_REFS[call](plain, function)(x), plain[...])
    ref[...] = 100.0
    with pytest.raises(LookupError, match="Ref"):
        tape.gradient(y, x)
    assert ref[...] == 100.0


WRITES = {
    "eagerly": lambda ref, x: _set(ref, x),
    "by an argument of jit": lambda ref, x: jax.jit(_set)(ref, x),
    "by a closure of jit": lambda ref, x: jax.jit(lambda x: _set(ref, x))(x),
}
READS = {
    "eagerly": lambda ref: ref[...],
    "by an argument of jit": lambda ref: jax.jit(lambda ref: ref[...] * 2)(ref),
    "by a closure of jit": lambda ref: jax.jit(lambda: jax.jit(lambda: ref[...] * 2)())(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("read", READS)
def test_values_that_go_through_a_reference_alone(write, read):
    """Refused, not None: also where a call closes over the Ref, which is then none of its arguments."""
    x = jnp.full((1, 2), FLOAT(3.0))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        ref = jax.new_ref(jnp.zeros_like(x))
        WRITES[write](ref, x)
        y = READS[read](ref)
    for ask in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(LookupError, match="Ref"):
            ask(y, x)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_a_rule_that_is_told_of_zeros_knows_zeros_of_another_rule(transform):
    """What a rule with ``symbolic_zeros`` says is zero is so for the next one, as in ``jax.grad`` of the same sources."""

    @jax.custom_jvp
    def second(x, y):
        return jnp.sin(y)

    @functools.partial(second.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        assert type(tangents[1]) is jax.custom_derivatives.SymbolicZero
        return second(*primals), tangents[1]

    def f(x):
        return second(x, second(x, 1.0)) + x

    x = jnp.arange(3.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = transform(f)(x)
        np.testing.assert_array_equal(tape.gradient(y, x), jax.grad(lambda x: transform(f)(x).sum())(x))


@pytest.mark.parametrize("closed_over", [False, True])
def test_a_reference_that_the_rule_alone_touches(closed_over):
    """Gradients that a rule puts aside: the Ref goes through the call, and is not touched in the forward pass."""

    @jax.custom_vjp
    def aside(ref, x):
        return x

    def backward(ref, ct):
        ref[...] = ct
        return None, ct

    aside.defvjp(lambda ref, x: (x, ref), backward)
    ref, x = jax.new_ref(jnp.zeros(3)), jnp.asarray(X)
    call = jax.jit(lambda x, *refs: aside(*(refs or (ref,)), jnp.sin(x)) ** 2)
    for _ in range(2):
        assert_same(taped(lambda x: call(x, *([] if closed_over else [ref])), x), 2 * jnp.sin(x) * jnp.cos(x))
        assert_same(ref[...], 2 * jnp.sin(x))
        x = x * 2


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_a_mutable_value_of_another_type_that_a_rule_alone_touches(transform):
    Box = getattr(pytest.importorskip("jax._src.hijax"), "Box", None)
    if Box is None:
        pytest.skip("this JAX has no such type")
    box = Box(0.0)

    @jax.custom_vjp
    def aside(x):
        return x

    def backward(_, g):
        box.set(g)
        return (g,)

    aside.defvjp(lambda x: (aside(x), None), backward)
    f = transform(lambda x: 2 * aside(3 * x))
    with tf.GradientTape():  # the gradient is JAX's: a tape does not follow what changes in place
        for x in (1.0, 2.0):
            assert jax.grad(f)(x) == 6.0
            assert box.get() == 2.0


@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint])
def test_inputs_that_are_returned(transform):
    """An input that a call returns beside other results is a value of its own there, computed from the input."""
    x, y = jnp.array([1.0, 2.0]), jnp.array(3.0)
    call = transform(lambda x, y: (x, y, jnp.sum(x * y), jax.lax.stop_gradient(x)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        new_x, new_y, z, stopped = call(x, y)
        total = z + jnp.sum(new_x * stopped) * new_y
    assert len({id(value) for value in (x, y, new_x, new_y, stopped)}) == 5

    def of_new(x, y):
        return jnp.sum(x * jax.lax.stop_gradient(x)) * y

    def of_all(x, y):
        return jnp.sum(x * y) + of_new(x, y)

    for sources, function in (([x, y], of_all), ([new_x, new_y], of_new)):
        for found, wanted in zip(tape.gradient(total, sources), jax.grad(function, (0, 1))(x, y)):
            np.testing.assert_allclose(found, wanted)


def test_a_tape_is_no_transformation():
    """To libraries that ask JAX which one is under way, as Flax does before it changes a model's state."""
    from jax.extend import core

    def level():
        return core.get_opaque_trace_state(convention="nnx")

    def inside(v):
        levels.append(level())
        with tf.GradientTape():
            levels.append(level())
        return v

    outside, levels = level(), []
    with tf.GradientTape():
        assert level() == outside
        jax.jit(inside)(1.0)
        jax.grad(inside)(1.0)
    first, same, second, as_before = levels
    assert first == same and second == as_before and outside not in levels
