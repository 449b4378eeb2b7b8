"""Shadow mode: what is kept and no longer right is found when it is used again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tapejax as tf
from tapejax.execution import recognition, schedule, speculation
from tapejax.execution.shadow import ShadowError, difference
from tapejax.jaxprs import cache, contents, interning
from tapejax.jaxprs.cache import Cache
from tapejax.tape import operation, query
from tapejax.tape.operation import Op


@pytest.fixture
def shadowed():
    with tf.debugging.shadow_mode():
        yield


def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(jax.nn.relu(operation.apply(jnp.multiply, x, 3.0))) + lax.fori_loop(
            0, 2, lambda _, v: v * 2.0, x[0]
        )
        y = y + jax.jit(lambda v: jnp.sum(v * v))(x)
    return y, tape.gradient(y, x)


def corrupt(cached, replace):
    """Puts `replace(value)` in the place of what is kept, where that is something."""
    count = 0
    for kept in (cached._young, cached._old):
        for key, value in kept.items():
            if (new := replace(value)) is not None:
                kept[key] = new
                count += 1
    return count


def wrong(op):
    """An Op in the place of `op` that computes one more."""

    def fn(*xs):
        return jax.tree.map(lambda y: y + 1, op.fn(*xs))

    return Op(op.name, fn, key=op.key)


def test_what_is_right_passes(shadowed):
    x = jnp.arange(3.0) + 1
    for _ in range(3):
        value, gradient = step(x)
        np.testing.assert_allclose(value, 36.0)
        np.testing.assert_allclose(gradient, [9.0, 7.0, 9.0])


def test_a_result_that_is_a_literal(shadowed):
    """What JAX computes of Python numbers alone may have a dtype and no shape."""

    def f(x):
        return x**2

    @jax.custom_vjp
    def square(x):
        return f(x)

    square.defvjp(lambda x: jax.vjp(f, x), lambda pull, ct: pull(ct))
    for _ in range(3):
        with tf.GradientTape():
            assert jax.vjp(square, 1.0)[1](1.0) == (2.0,)


def test_shadow_mode_ends(no_shadow):
    assert cache.shadow is None
    with tf.debugging.shadow_mode():
        assert cache.shadow is not None
        with tf.debugging.shadow_mode():
            pass
        assert cache.shadow is not None
    assert cache.shadow is None
    tf.debugging.enable_shadow_mode()
    assert cache.shadow is not None
    tf.debugging.disable_shadow_mode()
    assert cache.shadow is None


OP_TABLES = {
    "operations": (operation, "_function_ops"),
    "primitives": (recognition, "_ops"),
    "programs of JAX's": (recognition, "_program_ops"),
}


@pytest.mark.parametrize("table", OP_TABLES)
def test_a_wrong_operation_is_found(table):
    x = jnp.arange(3.0) + 1
    step(x)
    module, name = OP_TABLES[table]
    cached = getattr(module, name)
    assert corrupt(cached, lambda value: wrong(value) if isinstance(value, Op) else (wrong(value[0]), *value[1:]))
    try:
        with pytest.raises(ShadowError, match=r"test_shadow\.py:\d+: .*what was kept differs"):
            with tf.debugging.shadow_mode():
                step(x)
    finally:
        cached.clear()
    step(x)


def pullbacks():
    (cached,) = [cell.cell_contents for cell in operation.pullback.__closure__ if isinstance(cell.cell_contents, Cache)]
    return cached


def test_a_wrong_pullback_is_found(monkeypatch):
    monkeypatch.setattr(schedule, "COMPILE_AT_MOST", 0)
    x = jnp.arange(3.0) + 1
    step(x)
    assert corrupt(pullbacks(), wrong)
    try:
        with pytest.raises(ShadowError, match=r"pullback \(.*test_shadow\.py"):
            with tf.debugging.shadow_mode():
                step(x)
    finally:
        pullbacks().clear()


def test_a_compiled_program_that_is_out_of_date_is_found():
    """The program is as it would be made now; what was compiled of it is not."""
    factor = [2.0]

    def scaled(x):
        return x * factor[0]

    x = jnp.float32(1.0)
    operation.apply(scaled, x)
    factor[0] = 3.0
    with pytest.raises(ShadowError, match="scaled .*It computed .*2.*now it computes .*3"):
        with tf.debugging.shadow_mode():
            operation.apply(scaled, x)


def test_a_wrong_representative_is_found():
    x = jnp.arange(3.0) + 1
    step(x)
    other = jax.make_jaxpr(jax.jit(lambda v: v + 77.0))(x)
    assert corrupt(interning._representatives, lambda value: other)
    try:
        with pytest.raises(ShadowError, match=r"test_shadow\.py"):
            with tf.debugging.shadow_mode():
                step(x)
    finally:
        for cached in (
            interning._representatives,
            recognition._program_ops,
            recognition._ops,
            contents._facts,
        ):
            cached.clear()


@pytest.mark.parametrize(
    "module, table, replace",
    [
        (operation, "_links", lambda value: (frozenset(),) * len(value)),
        (query, "_programs", lambda value: (value[0], value[1][::-1]) if len(value[1]) > 1 else None),
    ],
)
def test_what_is_connected_is_found(module, table, replace, monkeypatch):
    monkeypatch.setattr(speculation, "begun", False)  # a plan has its program, and looks nothing up
    x = jnp.arange(3.0) + 1
    step(x)
    cached = getattr(module, table)
    if table == "_links":
        query._programs.clear()
    assert corrupt(cached, replace)
    try:
        with pytest.raises(ShadowError, match=r"test_shadow\.py"):
            with tf.debugging.shadow_mode():
                step(x)
    finally:
        cached.clear()
    np.testing.assert_allclose(step(x)[1], [9.0, 7.0, 9.0])


def test_a_wrong_spelling_is_found():
    from tapejax.tools.seeing import spelling

    def code():
        x = jnp.arange(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sin(x)
        return tape.as_function(y, x, flat=True).code  # by the tables, not from this source

    code()
    assert corrupt(spelling._spellings, lambda value: ("jnp.cos({0})",) if value == ("jnp.sin({0})",) else None)
    try:
        with pytest.raises(ShadowError):
            with tf.debugging.shadow_mode():
                code()
    finally:
        spelling._spellings.clear()


def trace(f, *args):
    return jax.make_jaxpr(f)(*args)


def test_where_programs_differ():
    x = jnp.ones(3)
    one = trace(lambda x: x * 2.0 + 1, x)
    assert difference(one, trace(lambda y: y * 2.0 + 1, x)) is None
    assert "operands of mul" in difference(one, trace(lambda x: x * 3.0 + 1, x))
    assert "operations" in difference(one, trace(lambda x: x * 2.0, x))
    assert "inputs" in difference(one, trace(lambda x: x * 2.0 + 1, jnp.ones(2)))
    assert "add or sub" in difference(one, trace(lambda x: x * 2.0 - 1, x))
    square = trace(lambda x: lax.integer_pow(x, 2), x)
    assert "y of integer_pow: 2 or 3" in difference(square, trace(lambda x: lax.integer_pow(x, 3), x))
    loops = [trace(lambda x, k=k: lax.fori_loop(0, 3, lambda _, v: v * k, x), x) for k in (2.0, 3.0)]
    assert "operands of mul" in difference(*loops)
    consts = [trace(lambda x, k=k: x * np.array([1.0, k, 2.0], np.float32), x) for k in (2.0, 3.0)]
    literals = jax.config.jax_use_simplified_jaxpr_constants  # such an array is an operand
    assert ("operands of mul" if literals else "constants") in difference(*consts)
    assert "results" in difference(trace(lambda x: (x * 2, x), x), trace(lambda x: (x, x * 2), x))
