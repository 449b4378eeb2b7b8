"""tape/trace.py: what JAX executes while a tape is active passes through a `RecorderTrace`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, recorded

import tapejax as tf
from tapejax.jaxprs.fence import current_trace
from tapejax.tape import active
from tapejax.tape.query import Query
from tapejax.tape.recording import Recording
from tapejax.tape.sweep import sweep
from tapejax.tape.trace import RecorderTrace


def names(fn, *arrays):
    return [entry.op.name for entry in recorded(fn, *arrays)[0].entries]


def gradient(fn, x):
    recording, y = recorded(fn, x)
    return Query(recording, [y], [x]).derivative(lambda program, values: sweep(program, values))[0]


def test_each_primitive_is_an_entry():
    assert names(lambda x: jnp.sin(x) * jnp.cos(x), X) == ["sin", "cos", "multiply"]


def test_a_jitted_function_is_one():
    @jax.jit
    def f(x):
        return jnp.sin(x) * 2.0

    assert names(f, X) == ["f"]


def test_a_custom_rule_is_kept():
    @jax.custom_jvp
    def f(x):
        return jnp.sum(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * jnp.sum(tangents[0])))
    assert names(f, X)[0] == "f"
    np.testing.assert_array_equal(gradient(f, X), [7.0, 7.0])


def test_a_function_of_jax_with_a_rule_is_one_operation_and_not_traced(monkeypatch):
    for fn, args in ((jax.nn.relu, (X,)), (jax.nn.relu6, (X * 7,)), (jax.scipy.special.xlogy, (X, Y))):
        assert names(fn, *args) == [fn.__name__]
        found = gradient(lambda x, fn=fn, rest=args[1:]: jnp.sum(fn(x, *rest)), args[0])
        np.testing.assert_allclose(found, jax.grad(lambda *args, fn=fn: fn(*args).sum())(*args), rtol=1e-6)
    monkeypatch.setattr(RecorderTrace, "process_custom_jvp_call", None)
    assert names(jax.nn.relu, X) == ["relu"]


def test_a_rule_of_the_users_for_a_function_of_jax_is_taken(monkeypatch):
    relu = jax.nn.relu
    before = gradient(lambda x: jnp.sum(relu(x)), X)
    with monkeypatch.context() as patch:
        patch.setattr(relu, "jvp", lambda primals, tangents: (relu(*primals), 7.0 * tangents[0]))
        np.testing.assert_array_equal(gradient(lambda x: jnp.sum(relu(x)), X), [7.0, 7.0])
    np.testing.assert_array_equal(gradient(lambda x: jnp.sum(relu(x)), X), before)


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_and_tensors_and_transformations_of_a_function_of_jax(wide):
    with jax.enable_x64(wide):
        x = jnp.array([-1.0, 2.0, 0.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sum(jax.vmap(jax.nn.relu)(x) + jax.jit(jax.nn.relu)(x) + jax.nn.relu(x) * jax.nn.relu(2.0))
        np.testing.assert_allclose(tape.gradient(y, x), [0.0, 4.0, 0.0])
        v = tf.Variable([-1.0, 2.0], dtype=tf.float64 if wide else tf.float32)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = jax.nn.relu(v.value() ** 3)
            g = tape.gradient(y, v)
        np.testing.assert_allclose(outer.gradient(g, v), [0.0, 12.0])
        with tf.GradientTape() as tape:
            y = jax.nn.relu(v * 3.0)
        np.testing.assert_allclose(tape.gradient(y, v), [0.0, 3.0])


def test_gradient_reaches_what_is_closed_over():
    np.testing.assert_array_equal(gradient(lambda x: jax.jit(lambda z: jnp.sum(x * z))(Y), X), Y)


def test_an_input_that_comes_out_is_a_value_of_its_own():
    recording, y = recorded(jax.jit(lambda x: x), X)
    (entry,) = recording.entries
    assert y is not X and entry.inputs[0] is X and entry.outputs[0] is y


def test_what_jax_transforms_is_recorded_too():
    np.testing.assert_allclose(gradient(lambda x: jnp.sum(jax.vmap(jnp.sin)(x)), X), jnp.cos(X), rtol=1e-6)
    np.testing.assert_allclose(gradient(lambda x: jax.grad(lambda z: jnp.sum(z**3))(x)[0], X), [6.0, 0.0])


def scan_of(body):
    return lambda x: jax.lax.scan(lambda c, _: (body(c), None), x, length=2)[0]


def first(c):
    return jnp.sin(c) * 2


def second(c):
    return jnp.sin(c) * 2


@pytest.mark.parametrize("body", [first, second])  # which are equal
def test_a_traced_program_is_what_it_is_without_a_tape(body):
    """Its operations go in as they came: nothing is around them, and they have the lines of their own functions."""
    step = scan_of(body)
    traced = jax.make_jaxpr(lambda x: recorded(step, x)[1])(X)
    assert str(traced) == str(jax.make_jaxpr(step)(X))
    (scan,) = traced.eqns
    frames = scan.params["jaxpr"].eqns[0].source_info.traceback.raw_frames()
    assert body.__code__ in [code for code, _ in zip(*frames, strict=True)]


@pytest.mark.parametrize("body", [first, second])
def test_the_program_of_a_call_is_kept_as_it_came(body):
    recording, y = recorded(scan_of(body), X)
    _, params = recording.bound[id(y)]
    frames = params["jaxpr"].eqns[0].source_info.traceback.raw_frames()
    assert body.__code__ in [code for code, _ in zip(*frames, strict=True)]


def test_after_an_error_nothing_is_recorded_and_the_trace_is_what_it_was():
    def fails(x):
        jnp.sin(x)
        raise KeyError("the user's")

    recording, before = Recording(), current_trace()
    with pytest.raises(KeyError, match="the user's"):
        active.also(recording, fails, X)
    jnp.cos(X)
    assert [entry.op.name for entry in recording.entries] == ["sin"] and current_trace() is before


def through_ref(x):
    ref = jax.new_ref(x)
    ref[...] = x * 2
    return jnp.sum(ref[...])


REFUSED = {"jax.Ref": (through_ref, LookupError), "compiled ahead": (jax.jit(jnp.sum).lower(X).compile(), TypeError)}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_followed_runs_and_has_an_entry_that_refuses_a_gradient(text):
    fn, error = REFUSED[text]
    recording, y = recorded(fn, X)
    assert y == fn(X)
    with pytest.raises(error, match=text):
        sweep(*Query(recording, [y], [X]).program())
