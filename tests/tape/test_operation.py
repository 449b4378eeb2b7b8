"""tape/operation.py: the kinds of operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, program_of, recorded

from tapejax.jaxprs.canonical import UncacheableError
from tapejax.jaxprs.dependence import kind_of
from tapejax.tape import runner
from tapejax.tape.operation import (
    Op,
    PythonOp,
    apply,
    is_size,
    op_of,
    pullback,
    pushforward,
)
from tapejax.tape.recording import Entry


def links(op, *inputs):
    outputs = jax.tree.leaves(op.fn(*inputs))
    entry = Entry(op, inputs, tuple(outputs))
    return [set(x) for x in op.links(entry, tuple(map(kind_of, inputs)), tuple(range(len(inputs)))).by]


def test_operations_with_one_key_are_equal(no_shadow):
    assert op_of(jnp.sum, {"axis": 0}) is op_of(jnp.sum, {"axis": 0}) != op_of(jnp.sum, {"axis": 1})
    assert Op("f", jnp.sin) != Op("f", jnp.sin)


def test_links_are_what_the_derivative_depends_on():
    assert links(op_of(jnp.multiply, {}), X, Y) == [{0, 1}]
    assert links(Op("f", lambda x, y: [jnp.floor(x) * y, x > y]), X, Y) == [{1}, set()]


def test_a_function_may_have_operations_of_another_kind(no_shadow):
    class Other(Op):
        __slots__ = ()

    def fn(x):
        return x

    fn.kind_of_op = Other
    assert type(op_of(fn, {})) is Other and type(op_of(jnp.abs, {})) is Op


def test_a_python_operation_may_look_at_values():
    op = PythonOp("f", lambda x: x * float(x[0]))
    assert op.runs_python and links(op, X) == [{0}]
    np.testing.assert_array_equal(runner.current.run(op, (X,)), X)


def test_its_pullback_and_pushforward_are_operations(no_shadow):
    op = op_of(jnp.multiply, {})
    back, forward = pullback(op, (0, 1), (0,)), pushforward(op, (1,), (0,))
    assert (back.name, forward.name) == ("multiply_pullback", "multiply_pushforward")
    np.testing.assert_array_equal(runner.current.run(back, (X, Y, jnp.ones(2))), [Y, X])
    np.testing.assert_array_equal(runner.current.run(forward, (X, Y, jnp.ones(2))), [X])
    assert pullback(op, (0, 1), (0,)) is back


def test_what_jax_cannot_differentiate_is_named():
    loop = Op("loop", lambda x: jax.lax.while_loop(lambda x: x[0] < 3, lambda x: x * 2, x))
    with pytest.raises(LookupError, match="gradient registry has no entry for: loop"):
        runner.current.run(pullback(loop, (0,), (0,)), (X, X))


def test_a_step_is_pulled_back_at_recorded_inputs():
    program, values = program_of(lambda x: apply(jnp.multiply, x, Y), X)
    (step,) = program.steps
    (slope,) = step.op.pull_back(step, [values[slot] for slot in step.ins], {0: jnp.ones(2)})
    np.testing.assert_array_equal(slope, Y)


def test_apply_is_one_entry():
    recording, _ = recorded(lambda x: apply(jnp.sum, x, axis=0), X)
    assert [entry.op.name for entry in recording.entries] == ["sum"]


def test_sizes():
    assert is_size(3) and is_size(jnp.arange(4)) and not is_size(1.0) and not is_size(jnp.arange(100))


def test_a_static_value_that_may_change_makes_no_operation():
    with pytest.raises(UncacheableError):
        op_of(jnp.sum, {"where": X})
