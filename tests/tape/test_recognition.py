"""A program that differs in one thing is another one: its value and gradient are JAX's own, after any twin of it."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.interpreters import ad, mlir

import tapejax as tf
from tapejax.jaxprs.fence import Primitive
from tapejax.tape import dispatch, operation
from tapejax.tape.operation import Op, PythonOp


@pytest.fixture(params=[False, True], ids=["32-bit", "64-bit"], autouse=True)
def bits(request):
    with jax.enable_x64(request.param):
        yield


@pytest.fixture
def simplified_constants():
    before = jax.config.jax_use_simplified_jaxpr_constants
    jax.config.update("jax_use_simplified_jaxpr_constants", True)
    yield
    jax.config.update("jax_use_simplified_jaxpr_constants", before)


def by_tape(function, *xs):
    """The value of `function` in a tape, and its gradient."""
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs)
    return y, tape.gradient(y, xs)


def assert_as_jax(function, *xs):
    """Value and gradient in a tape are those without one, to the last bit."""
    value, gradients = by_tape(function, *xs)
    np.testing.assert_array_equal(value, function(*xs))
    expected = jax.grad(lambda *xs: jnp.sum(function(*xs)), argnums=range(len(xs)))(*xs)
    for found, wanted in zip(gradients, expected):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


# ---- literals -------------------------------------------------------------------------------------------------------

WRAPPED = {
    "jit": lambda k: jax.jit(lambda x: x * k),
    "scan": lambda k: lambda x: lax.scan(lambda c, _: (c * k, None), x, None, length=2)[0],
    "cond": lambda k: lambda x: lax.cond(x > 0, lambda v: v * k, lambda v: v, x),
    "fori_loop": lambda k: lambda x: lax.fori_loop(0, 2, lambda _, v: v * k, x),
    "checkpoint": lambda k: jax.checkpoint(lambda x: x * k),
}
NEIGHBOURS = [
    np.float32([1.23451e-4, 1.23454e-4]),
    np.float32([1.0, np.nextafter(np.float32(1), np.float32(2))]),
    np.float16([1.0, 1.001]),
    [2.0004, 2.0001],
    [0.0, -0.0],
    [1, True, 1.0],
    [np.array(3.0, np.float32), np.array(4.0, np.float32)],
]


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("factors", NEIGHBOURS, ids=str)
def test_literals(wrapped, factors):
    for factor in factors:
        assert_as_jax(WRAPPED[wrapped](factor), jnp.float32(1.5))


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_literals_under_coarse_print_options(wrapped):
    with np.printoptions(precision=2):
        for factor in np.float32([2.0004, 2.0001]):
            assert_as_jax(WRAPPED[wrapped](factor), jnp.float32(1.5))


def test_signed_zeros():
    for zero in (np.float32(0.0), np.float32(-0.0)):
        found, _ = by_tape(jax.jit(lambda x: jnp.abs(x) * zero), jnp.float32(1.0))  # noqa: B023
        assert np.signbit(found) == np.signbit(zero)


# ---- arrays that change ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_an_array_changed_in_place(wrapped, size):
    if wrapped == "cond":
        size = ()
    mask = np.ones(size, np.float32)
    for value in (1, 5, 7):
        mask[...] = value
        assert_as_jax(WRAPPED[wrapped](mask), jnp.full(size, 1.5, jnp.float32))


@pytest.mark.parametrize("shape", [(), (3,)])
def test_an_array_changed_before_the_gradient(shape):
    mask, x = np.full(shape, 2.0, np.float32), jnp.ones(shape, jnp.float32)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jax.jit(lambda x: jnp.sum(x * mask))(x)
        z = jax.jit(lambda x: jnp.sum(x * mask * mask))(x)
    mask[...] = 7
    np.testing.assert_array_equal(tape.gradient(y, x), np.full(shape, 2.0))
    np.testing.assert_array_equal(tape.gradient(z, x), np.full(shape, 4.0))
    assert_as_jax(jax.jit(lambda x: jnp.sum(x * mask)), x)


def test_an_array_in_a_function():
    """As in TensorFlow, a function has the array that it was traced with."""
    mask, x = np.ones(3, np.float32), jnp.ones(3, jnp.float32)

    @tf.function
    def f(x):
        return x * mask

    f(x)
    mask[:] = 9
    value, (gradient,) = by_tape(f, x)
    np.testing.assert_array_equal(value, [1, 1, 1])
    np.testing.assert_array_equal(gradient, [1, 1, 1])
    by_tape(jax.jit(lambda x: x * mask), x)
    np.testing.assert_array_equal(f(x), [1, 1, 1])


def test_an_array_in_a_custom_rule():
    mask, x = np.ones(3, np.float32), jnp.ones(3, jnp.float32)
    for value in (2, 3):
        mask[:] = value
        f = jax.custom_jvp(lambda x: x * 1.0)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * mask))  # noqa: B023
        assert_as_jax(jax.jit(f), x)
        _, (gradient,) = by_tape(f, x)
        np.testing.assert_array_equal(gradient, mask)


# ---- the context ----------------------------------------------------------------------------------------------------


def noise(x):
    return x * jax.random.uniform(jax.random.key(1), x.shape, jnp.float32)


def fresh(function):
    return lambda x: jax.jit(lambda x: function(x))(x)


def closing_over(array):
    return lambda x: jax.jit(lambda x: noise(x) * array)(x)


@pytest.mark.parametrize(
    "function",
    [fresh(noise), noise, closing_over(np.ones(3, np.float32)), lambda x: closing_over(jnp.ones(3, jnp.float32))(x)],
    ids=["fresh jit", "eager", "lifted NumPy array", "lifted array"],
)
def test_how_random_bits_are_made(function):
    for partitionable in (True, False, True):
        with jax.threefry_partitionable(partitionable):
            assert_as_jax(function, jnp.ones(3, jnp.float32))


def test_how_random_bits_are_made_in_a_function_and_a_custom_rule():
    x = jnp.ones(3, jnp.float32)
    draw = jax.jit(noise)
    f = jax.custom_jvp(draw)
    f.defjvp(jax.jit(lambda primals, tangents: (draw(*primals), noise(tangents[0]))))
    compiled = tf.function(noise)
    for partitionable in (True, False, True):
        with jax.threefry_partitionable(partitionable):
            np.testing.assert_array_equal(compiled(x), noise(x))
            assert_as_jax(f, x)


# ---- constants as literals ------------------------------------------------------------------------------------------


def test_large_arrays_as_literals(simplified_constants):
    a = jnp.arange(2000, dtype=jnp.float32)
    b = a.at[1000].add(1)
    x = jnp.full(2000, 1.5, jnp.float32)
    for w in (a, b, np.asarray(a), np.asarray(b)):
        assert_as_jax(lambda x, w=w: jax.jit(lambda x: jnp.sum(x * w))(x), x)


OVER = {
    "jit": lambda w: lambda x: jax.jit(lambda x: x * w)(x),
    "a jit in a jit": lambda w: lambda x: jax.jit(lambda x: jax.jit(lambda x: x * w)(x) + w)(x),
    "scan": lambda w: lambda x: jax.jit(lambda x: lax.scan(lambda c, _: (c * w, None), x, None, length=2)[0])(x),
    "scan, eager": lambda w: lambda x: lax.scan(lambda c, _: (c * w, None), x, None, length=2)[0],
    "while": lambda w: lambda x: jax.jit(lambda x: lax.cond(True, lambda x: x * w, lambda x: x, x))(x),
    "checkpoint": lambda w: lambda x: jax.checkpoint(lambda x: x * w)(x),
    "relu": lambda w: lambda x: jax.jit(lambda x: jax.nn.relu(w) * x)(x),
    "itself": lambda w: lambda x: jax.jit(lambda x: (x, w))(x)[1],
}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("traced_before", [False, True])
@pytest.mark.parametrize("simplified", [False, True])
def test_the_gradient_of_what_is_closed_over(over, shape, simplified, traced_before, request):
    if simplified:
        request.getfixturevalue("simplified_constants")
    x, w = jnp.full(shape, 1.5, jnp.float32), jnp.full(shape, 2.5, jnp.float32)
    for factor in (1, 2):
        scaled = w * factor
        function = OVER[over](scaled)
        if traced_before:  # without a tape JAX may write the array into the program
            function(x)
        with tf.GradientTape() as tape:
            tape.watch((x, scaled))
            y = function(x)
        found = tape.gradient(y, (x, scaled), unconnected_gradients="zero")
        expected = jax.grad(lambda x, w: jnp.sum(OVER[over](w)(x)), argnums=(0, 1))(x, scaled)
        np.testing.assert_array_equal(y, OVER[over](scaled)(x))
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def root(x):
    def newton(f, start):
        return lax.fori_loop(0, 20, lambda _, y: y - f(y) / (2 * y), start)

    return lax.custom_root(lambda y: y**2 - x, x, newton, lambda g, y: y / g(jnp.ones_like(y)))


def converted(x):
    w = x * 2
    f, consts = jax.closure_convert(lambda y: y * w, x)
    g = jax.custom_vjp(f)
    g.defvjp(lambda *args: (f(*args), args), lambda args, ct: jax.vjp(f, *args)[1](ct))
    return g(x, *consts)


@pytest.mark.parametrize("function", [root, converted])
def test_arrays_that_jax_finds_among_the_constants(simplified_constants, function):
    """With respect to these JAX's own transformations differentiate, too."""
    x = jnp.full(3, 1.5, jnp.float32)
    for f in (function, jax.jit(function)):
        assert_as_jax(f, x)
        assert_as_jax(lambda x, f=f: by_tape(f, x)[1][0], x)


def test_a_custom_rule_over_a_literal(simplified_constants):
    x = jnp.full(3, 1.5, jnp.float32)
    for w in (jnp.full(3, 2.0, jnp.float32), jnp.full(3, 3.0, jnp.float32)):
        f = jax.custom_jvp(lambda x, w=w: x * w)
        f.defjvp(lambda primals, tangents, f=f, w=w: (f(*primals), tangents[0] * w * 2))
        assert_as_jax(lambda x, f=f: jax.jit(lambda x: f(x))(x), x)
        assert_as_jax(f, x)


# ---- what an operation is told --------------------------------------------------------------------------------------


def scaled(x, factor):
    return x * factor


def over(x, bottom):
    return x / jnp.asarray(bottom, jnp.float32)


def test_static_arguments_are_told_apart():
    x = jnp.arange(3, dtype=jnp.int32)
    for factor in (1, True, 1.0, np.float32(1), 1 + 0j):
        found = operation.apply(scaled, x, factor=factor)
        assert found.dtype == scaled(x, factor).dtype
    for zero in (0.0, -0.0):
        assert operation.apply(over, jnp.float32(1.0), bottom=zero) == over(jnp.float32(1.0), zero)
        assert operation.apply(over, jnp.float32(1.0), bottom=(zero,)) == over(jnp.float32(1.0), (zero,))


RULES = {
    "custom_jvp": lambda slopes: with_slopes(slopes),
    "custom_vjp": lambda slopes: with_pulls(slopes),
}


def with_slopes(slopes):
    f = jax.custom_jvp(lambda x, y: x + y)

    @f.defjvp
    def rule(primals, tangents):
        first, second = slopes()
        return f(*primals), tangents[0] * first + tangents[1] * second

    return f


def with_pulls(slopes):
    f = jax.custom_vjp(lambda x, y: x + y)
    f.defvjp(lambda x, y: (f(x, y), ()), lambda _, g: tuple(g * slope for slope in slopes()))
    return f


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_a_rule_that_stands_for_another_does_not_change(kind, wrap):
    """The first of two equal rules reads what has changed when a derivative of the second is taken."""
    read, array = [2.0, 3.0], np.float32([2.0, 3.0])
    x, y = jnp.float32(1.0), jnp.float32(1.0)

    def gradient(f, *sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            z = f(x, y)
        return tape.gradient(z, sources)

    make = RULES[kind]
    assert gradient(wrap(make(lambda: read)), x) == (2.0,)
    assert gradient(wrap(make(lambda: tuple(array))), x) == (2.0,)
    read[:], array[:] = [5.0, 7.0], [5.0, 7.0]
    assert gradient(wrap(make(lambda: (2.0, 3.0))), y) == (3.0,)
    assert gradient(wrap(make(lambda: np.float32([2.0, 3.0]))), y) == (3.0,)
    assert gradient(wrap(make(lambda: read)), x, y) == (5.0, 7.0)
    assert gradient(wrap(make(lambda: tuple(array))), x, y) == (5.0, 7.0)


def of_order(first, second):
    """sin, whose derivative has a rule of its own; both rules are over functions of the same program."""
    inner = jax.custom_jvp(lambda x: x * 1.0)
    inner.defjvp(lambda p, t: (inner(*p), t[0] * second))
    outer = jax.custom_jvp(lambda x: x * 1.0)
    outer.defjvp(lambda p, t: (outer(*p), t[0] * inner(p[0]) * first))
    return outer


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_rules_in_rules(wrap):
    x = jnp.float32(1.5)
    for first, second in ((2.0, 3.0), (2.0, 5.0), (3.0, 3.0), (2.0, 3.0)):
        f = wrap(of_order(first, second))
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            slope = tape.gradient(y, x)
        assert slope == jax.grad(f)(x)
        assert outer.gradient(slope, x) == jax.grad(jax.grad(f))(x)


def test_a_pull_of_numbers():
    """A backward function may answer with numbers that no operation made."""
    x = jnp.float32(1.0)
    for slope in (2.0, 3.0):
        f = jax.custom_vjp(lambda x: x * 1.0)
        f.defvjp(lambda x, f=f: (f(x), None), lambda _, g, slope=slope: (np.float32(slope),))
        assert by_tape(jax.jit(f), x)[1][0] == jax.grad(f)(x)
        assert by_tape(f, x)[1][0] == slope


def scaled_by():
    """A primitive of the user's own, with any number or array as its parameter."""
    primitive = Primitive("scaled_by")

    def run(x, *, factor):
        return x * factor

    primitive.def_impl(run)
    primitive.def_abstract_eval(lambda x, *, factor: jax.core.ShapedArray(x.shape, jnp.result_type(x, factor)))
    ad.deflinear2(primitive, lambda t, x, *, factor: [primitive.bind(t, factor=factor).astype(x.aval.dtype)])
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=False))
    return primitive


def test_parameters_of_a_primitive_are_told_apart():
    x = jnp.ones(2, jnp.float32)
    primitive = scaled_by()
    for factor in (1, True, 0.0, -0.0, np.float32(1.23451e-4), np.float32(1.23454e-4)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = primitive.bind(x, factor=factor)
        expected = np.ones(2, np.float32) * factor
        found = tape.gradient(y, x)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def long_enough(x):
    return jnp.sum(x) if x.shape[0] > 2 else jnp.sum(lax.stop_gradient(x))


@pytest.mark.parametrize("sizes", [(2, 3, 2), (3, 2, 3)])
def test_what_is_connected_may_depend_on_a_shape(sizes):
    for size in sizes:
        x = jnp.ones(size, jnp.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = operation.apply(long_enough, x)
        assert (tape.gradient(y, x) is None) == (size == 2)


def test_arguments_of_a_function_are_told_apart():
    @tf.function
    def kind(value):
        return f"{value!r}"

    values = [1, True, 1.0, 0.0, -0.0, complex(0.0, 0.0), complex(-0.0, 0.0), {1: "a"}, {True: "a"}, {1.0: "a"}]
    for value in (*values, *values):
        assert kind(value) == repr(value)


# ---- threads --------------------------------------------------------------------------------------------------------


def with_slope(slope, while_traced=lambda: None):
    f = jax.custom_jvp(lambda x: jnp.sin(x) * 1.0)

    @f.defjvp
    def rule(primals, tangents):
        while_traced()
        return f(*primals), tangents[0] * slope

    return f


def test_rules_that_another_thread_looks_into():
    x = jnp.float32(1.0)
    inside, done = threading.Event(), threading.Event()
    found, in_time = [], []

    def wait():
        inside.set()
        in_time.append(done.wait(60))

    def other():
        found.append(by_tape(with_slope(11.0, wait), x)[1][0])

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert inside.wait(60)
        for slope in (3.0, 7.0):
            assert by_tape(jax.jit(with_slope(slope)), x)[1][0] == slope
            assert by_tape(with_slope(slope), x)[1][0] == slope
    finally:
        done.set()
        thread.join()
    assert found == [11.0]
    assert all(in_time), "the other thread had to wait for this one"


# ---- lines ----------------------------------------------------------------------------------------------------------


def test_equal_code_of_two_files(tmp_path):
    x = jnp.float32(1.0)
    for name in ("one.py", "two.py"):
        code = compile("import jax.numpy as jnp\ndef f(x):\n    return jnp.sin(x)\n", str(tmp_path / name), "exec")
        space = {}
        exec(code, space)
        with tf.GradientTape() as tape:
            tape.watch(x)
            space["f"](x)
        assert tape._recording.entries[0].line.file.endswith(name)


# ---- registered gradients -------------------------------------------------------------------------------------------


def cubed(x):
    return x * x * x


def test_a_registered_gradient_that_reads_a_global():
    x, slope = jnp.float32(1.0), [0.0]
    name = f"cubed_{id(slope)}"
    op = Op(name, cubed, key=("cubed", name))
    tf.RegisterGradient(name)(lambda op, dy: dy * slope[0])
    for slope[0] in (2.0, 3.0):
        assert by_tape(lambda x: dispatch.run(op, (x,)), x)[1][0] == slope[0]
        assert by_tape(lambda x: 2.0 * dispatch.run(op, (x,)) + x, x)[1][0] == 2 * slope[0] + 1


@pytest.mark.parametrize("kind", ["operand", "cond", "switch", "jit", "tensor"])
def test_an_array_changed_between_recording_and_gradient(kind):
    """A derivative is taken at what the inputs were when they were recorded."""
    factor = np.array([2.0, 3.0, 4.0], np.float32)
    x = jnp.array([0.5, 1.0, 2.0])
    programs = {
        "operand": lambda x: x * factor,
        "cond": lambda x: jax.lax.cond(True, lambda x: x * factor, lambda x: x, x),
        "switch": lambda x: jax.lax.switch(0, [lambda x: x * factor, lambda x: x], x),
        "jit": lambda x: jax.jit(lambda x: x * factor)(x),
        "tensor": lambda x: tf.multiply(x, factor),
    }
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = programs[kind](x)
    factor[:] = 100.0
    assert tape.gradient(y, x).tolist() == [2.0, 3.0, 4.0]


NUMBERS = [0.0, -0.0, 0, False, 1.0, 1, True, float("nan"), -float("nan"), 1e300, 0.1, 2**31 - 1, 5e-324]


def test_numbers_are_told_apart():
    """A number that comes back is an array that was kept: of exactly its type and bits."""

    def numbers(x, number):
        return jnp.broadcast_to(number, (2,))

    def bits_of(x):
        return x.dtype, x.weak_type, np.asarray(x).tobytes()

    x, by_jax = jnp.ones(2), jax.jit(numbers)
    for _ in range(3):
        for number in NUMBERS:
            with tf.GradientTape() as tape:
                found = operation.apply(numbers, x, number)
            assert bits_of(found) == bits_of(by_jax(x, number))
            assert type(tape[0].inputs[1]) is type(number)


def test_a_kept_number_is_nobodys_value():
    """An operation that gives a number back gives a new array each time: to watch one is not to watch the other."""

    def second(x, number):
        return number

    x = jnp.ones(2)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            one, other = operation.apply(second, x, 3.5), operation.apply(second, x, 3.5)
            tape.watch(one)
            y, z = one * 2.0, other * 2.0
        assert one is not other
        assert tape.gradient(y, one) == 2.0
        assert tape.gradient(z, one) is None
    assert operation.apply(second, x, 3.5) is not operation.apply(second, x, 3.5)


def test_numbers_under_other_settings():
    x = jnp.ones(2, jnp.float32)
    for _ in range(3):
        for wide in (False, True):
            with jax.enable_x64(wide):
                found = operation.apply(jnp.multiply, jnp.asarray(1, "int32"), 0.1)
                assert found.dtype == (jnp.float64 if wide else jnp.float32)
                assert operation.apply(jnp.add, x, 0.1).dtype == jnp.float32


def test_python_gets_numbers():
    """What runs as Python is given the number itself."""
    seen = []

    def look(x, number):
        seen.append(type(number))
        return x * number

    op = PythonOp("look", look)
    for _ in range(3):
        dispatch.run(op, (jnp.ones(2), 2.0))
    assert seen == [float] * 3
