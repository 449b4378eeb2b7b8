"""`jaxprs/contents.py`: what a jaxpr calls, touches, prints and closes over."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

from tapejax.jaxprs import contents
from tapejax.jaxprs.fence import Primitive


def traced(fn, *args):
    return jax.make_jaxpr(fn)(*args)


def last(fn, *args):
    """The last equation of a function."""
    return traced(fn, *args).eqns[-1]


@jax.custom_jvp
def with_rule(x):
    return jnp.sin(x)


with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), jnp.cos(*primals) * tangents[0]))


def answered(x):
    return io_callback(np.sin, jax.ShapeDtypeStruct((), np.float32), x)


def logged(x):
    io_callback(lambda x: None, None, x)
    return x


def printed(x):
    jax.debug.print("{}", x)
    return x


def branches(f, g):
    return lambda p, x: lax.cond(p, f, g, x)


def test_the_jaxprs_among_parameters_are_found_in_tuples_too():
    cond = last(branches(jnp.sin, jnp.cos), True, 1.0)
    assert len(list(contents.jaxprs_in(cond.params))) == 2 and contents.among(cond.params)
    sin = last(lax.sin, 1.0)
    assert list(contents.jaxprs_in(sin.params)) == [] and not contents.among(sin.params)


def test_a_function_is_mapped_over_jaxprs_and_leaves_other_values():
    program = traced(jnp.sin, 1.0)
    assert contents.mapped(id, program) == id(program)
    assert contents.mapped(id, (program, [program], "name")) == (id(program), [id(program)], "name")
    other = ("name", 3)
    assert contents.mapped(id, other) is other


@pytest.mark.parametrize("inside", [lambda f: f, jax.jit], ids=["plain", "in a jit"])
def test_who_asks_the_host_and_who_prints(inside):
    found = {f.__name__: traced(inside(f), jnp.float32(1)) for f in (answered, logged, printed, with_rule)}
    assert [name for name, program in found.items() if contents.asks_host(program)] == ["answered"]
    assert [name for name, program in found.items() if contents.prints(program)] == ["logged", "printed"]
    assert contents.prints(found["printed"].eqns[-1])  # an equation is asked in the same way


def test_a_program_touches_a_ref_that_was_made_outside():
    ref = jax.new_ref(jnp.zeros(()))

    def writes(x):
        ref[...] += x
        return x

    def keeps_to_itself(x):
        own = jax.new_ref(x)
        own[...] += x
        return own[...]

    assert contents.touches_refs(traced(writes, 1.0)) and not contents.touches_refs(traced(keeps_to_itself, 1.0))
    call = last(lambda x: lax.scan(lambda c, _: (writes(c), None), x, length=2)[0], 1.0)
    assert list(contents.refs_in(call.params)) in ([ref], [])  # an operand, or closed over: by JAX's version


def test_a_plain_jit_asks_for_nothing_but_compilation():
    plain = last(jax.jit(lambda x: x * 2), jnp.ones(2))
    assert contents.is_plain_jit(plain.params)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for option in ({"donate_argnums": 0}, {"keep_unused": True}, {"in_shardings": device}, {"out_shardings": device}):
        assert not contents.is_plain_jit(last(jax.jit(lambda x: x * 2, **option), jnp.ones(2)).params)
    assert not contents.is_plain_jit(plain.params | {"compiler_options_kvs": (("xla_cpu_enable_fast_math", True),)})


def test_inputs_that_a_call_returns_unchanged_but_not_the_donated_ones():
    swap = lambda x, y: (y, x + y, x)  # noqa: E731
    assert contents.forwarded_inputs(last(jax.jit(swap), 1.0, 2.0).params) == {0: 1, 2: 0}
    assert contents.forwarded_inputs(last(jax.jit(swap, donate_argnums=0), 1.0, 2.0).params) == {0: 1}


def test_a_primitive_with_nothing_but_a_python_implementation_does_not_compile():
    python = Primitive("python_only")
    python.def_impl(lambda x: x)
    python.def_abstract_eval(lambda x: x)
    assert contents.primitive_compiles(last(lax.sin, 1.0).primitive, {})
    assert not contents.primitive_compiles(python, {})
    assert contents.compiles(traced(jax.checkpoint(jnp.sin), 1.0))
    assert not contents.compiles(traced(jax.checkpoint(python.bind), 1.0))


def test_a_primitive_is_found_at_any_depth_and_rules_only_in_what_is_called():
    program = traced(branches(jnp.sin, lambda x: with_rule(x) * 2), True, 1.0)
    assert contents.contains(program, "sin") and not contents.contains(program, "cos")
    assert contents.contains(program, "custom_jvp_call") and contents.calls_rules(program)
    assert not contents.calls_rules(traced(lambda x: x * 2, 1.0))


def test_a_rule_with_symbolic_zeros_may_be_told_which_inputs_are_perturbed():
    told = jax.custom_jvp(jnp.sin)
    told.defjvp(lambda primals, tangents: (told(*primals), primals[0]), symbolic_zeros=True)
    assert contents.tells_zeros(traced(branches(told, jnp.sin), True, 1.0))
    assert not contents.tells_zeros(traced(with_rule, 1.0))


def test_the_operands_of_a_scan_are_counted():
    k = jnp.ones(3)

    def program(x, y, ks):
        return lax.scan(lambda c, t: ((c[0] * k.sum() + t, c[1] + 1), t), (x, y), ks)

    scan = next(eqn for eqn in traced(program, 1.0, 2.0, jnp.ones(4)).eqns if eqn.primitive.name == "scan")
    assert contents.scan_counts(scan.params)[1] == 2
    assert contents.scan_counts(scan.params)[0] == len(scan.invars) - 3


def test_arrays_that_are_closed_over_are_found_at_any_depth():
    outer, inner = jnp.arange(3.0), jnp.arange(3.0) + 1

    def program(x):
        return jax.jit(lambda y: lax.cond(True, lambda z: z * inner, lambda z: z, y))(x) + outer

    closed = traced(program, jnp.ones(3))
    assert contents.constants(closed).keys() == {id(outer), id(inner)}
    assert contents.constants(closed)[id(inner)] is inner
    assert contents.constants(traced(lambda x: x * 2.0, jnp.ones(3))) == {}
    call = next(eqn for eqn in closed.eqns if contents.among(eqn.params))
    assert contents.constants_of(call.params).keys() <= {id(inner)}


def test_a_numpy_array_that_is_closed_over_is_given_as_it_was_when_first_seen():
    row = np.array([1.0, 2.0], np.float32)
    closed = traced(jax.jit(lambda x: x * row), jnp.ones(2, jnp.float32))
    (before,) = contents.constants(closed).values()
    row[:] = 7
    (after,) = contents.constants(closed).values()
    np.testing.assert_array_equal(after, [1.0, 2.0])
    assert after is before and not before.flags.writeable
