"""`jaxprs/custom_rules.py`: a custom rule is recognised by the program that it traces to."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.jaxprs import custom_rules
from tapejax.jaxprs.canonical import UncacheableError, snapshot, structure
from tapejax.jaxprs.fence import jaxpr_as_fun

X = 2.0


def by_jvp(factor):
    f = jax.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), factor * tangents[0]))
    return f


def by_vjp(factor):
    f = jax.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (factor * ct * x,))
    return f


def program(f):
    return jax.make_jaxpr(lambda x: f(x))(X)


KINDS = pytest.mark.parametrize("kind", [by_jvp, by_vjp])


@KINDS
def test_rules_that_are_made_anew_are_the_same_if_their_programs_are(kind):
    assert structure(program(kind(3.0))) == structure(program(kind(3.0)))
    assert structure(program(kind(3.0))) != structure(program(kind(4.0)))


@KINDS
def test_a_rule_that_cannot_be_traced_has_no_key(kind):
    def fails(*args):
        raise RuntimeError("the user's")

    f = kind(3.0)
    f.defjvp(fails) if kind is by_jvp else f.defvjp(fails, fails)
    with pytest.raises(UncacheableError, match="cannot be traced"):
        structure(program(f))
    with custom_rules.left_out():  # where it is run forward only, that does not matter
        assert structure(program(f)) == structure(program(kind(3.0)))


def test_a_rule_that_may_be_told_of_zeros_has_no_key():
    f = jax.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]), symbolic_zeros=True)
    with pytest.raises(UncacheableError, match="another one each time"):
        structure(program(f))


def test_a_rule_that_calls_its_own_function_has_a_key():
    def recursive(factor):
        f = jax.custom_jvp(lambda x: x * x)
        f.defjvp(lambda primals, tangents: (f(*primals), factor * f(*primals) * tangents[0]))
        return f

    assert structure(program(recursive(2.0))) == structure(program(recursive(2.0)))
    assert structure(program(recursive(2.0))) != structure(program(recursive(3.0)))


def chain_by_jvp(n):
    f = jax.custom_jvp(lambda x: x * x)
    following = chain_by_jvp(n - 1) if n else lambda x: 3.0 * x
    f.defjvp(lambda primals, tangents: (f(*primals), following(*primals) * tangents[0]))
    return f


def chain_by_vjp(n):
    f = jax.custom_vjp(lambda x: x * x)
    following = chain_by_vjp(n - 1) if n else lambda x: 3.0 * x
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (following(x) * ct,))
    return f


def chain_by_static_argument_of_jvp(n):
    f = jax.custom_jvp(lambda n, x: x * x, nondiff_argnums=(0,))

    @f.defjvp
    def rule(n, primals, tangents):
        return f(n, *primals), (f(n - 1, *primals) if n else 3.0 * primals[0]) * tangents[0]

    return lambda x: f(n, x)


def chain_by_static_argument_of_vjp(n):
    f = jax.custom_vjp(lambda n, x: x * x, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (f(n, x), x), lambda n, x, ct: ((f(n - 1, x) if n else 3.0 * x) * ct,))
    return lambda x: f(n, x)


@pytest.mark.parametrize("chain", [chain_by_jvp, chain_by_vjp, chain_by_static_argument_of_jvp])
def test_rules_that_call_other_functions_are_told_apart_though_all_their_programs_are_equal(chain):
    keys = [structure(program(chain(n))) for n in range(3)]
    assert len(set(keys)) == 3 and keys[2] == structure(program(chain(2)))
    with pytest.raises(UncacheableError, match="another one each time"):  # too long, and no shorter one's
        structure(program(chain(3)))


@KINDS
def test_a_program_that_was_traced_again_has_a_key(kind):
    again = jax.make_jaxpr(jaxpr_as_fun(program(kind(3.0))))(X)
    assert structure(again) == structure(jax.make_jaxpr(jaxpr_as_fun(program(kind(3.0))))(X))
    assert structure(again) != structure(jax.make_jaxpr(jaxpr_as_fun(program(kind(4.0))))(X))


@pytest.mark.parametrize(
    "chain", [chain_by_jvp, chain_by_vjp, chain_by_static_argument_of_jvp, chain_by_static_argument_of_vjp]
)
def test_a_snapshot_has_the_rules_of_other_functions_with_equal_programs(chain):
    for n in range(6):
        kept, f = jaxpr_as_fun(snapshot(program(chain(n)))), chain(n)
        ours, expected = (lambda x, kept=kept: kept(x)[0]), f
        for _ in range(n + 2):
            ours, expected = jax.grad(ours), jax.grad(expected)
            assert ours(X) == expected(X)


def test_rules_in_rules_without_end_have_no_key():
    def endless(depth):
        f = jax.custom_jvp(lambda x: x * depth)
        f.defjvp(lambda primals, tangents: (f(*primals), endless(depth + 1)(tangents[0])))
        return f

    with pytest.raises(UncacheableError, match="another one each time"):
        structure(program(endless(1)))


@KINDS
def test_a_snapshot_runs_the_program_of_the_rule_not_its_python(kind):
    now = [3.0]
    f = kind(np.float32(0.0))
    if kind is by_jvp:
        f.defjvp(lambda primals, tangents: (primals[0] ** 2, np.array(now[0], tangents[0].dtype) * tangents[0]))
    else:
        f.defvjp(lambda x: (x * x, None), lambda _, ct: (np.array(now[0], ct.dtype) * ct,))
    kept = jaxpr_as_fun(snapshot(program(f)))
    now[0] = 7.0
    assert jax.grad(lambda x: kept(x)[0])(X) == 3.0
    assert kept(X)[0] == 4.0


def test_a_snapshot_for_nonzero_tangents_of_some_inputs_only():
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0] + 5 * tangents[1]))
    kept = jaxpr_as_fun(snapshot(jax.make_jaxpr(lambda x, y: f(x, y))(X, X)))
    assert jax.grad(lambda x: kept(x, X)[0])(X) == 2.0 and jax.grad(lambda y: kept(X, y)[0])(X) == 5.0


def test_a_block_that_leaves_rules_out_ends_also_after_an_exception():
    with pytest.raises(ZeroDivisionError), custom_rules.left_out():
        1 // 0  # noqa: B018
    assert structure(program(by_jvp(3.0))) != structure(program(by_jvp(4.0)))


def test_a_thunk_that_fails_keeps_what_was_stored():
    calls = []

    def forward(x):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("the second time")
        return x * x, x

    f = jax.custom_vjp(lambda x: x * x)
    f.defvjp(forward, lambda x, ct: (2 * x * ct,))
    (eqn,) = program(f).eqns
    thunk = eqn.params["fwd_jaxpr_thunk"]
    custom_rules.traced_rule_of(thunk, True)
    trees = eqn.params["out_trees"]()
    with pytest.raises(RuntimeError, match="the second time"):
        custom_rules.traced_rule_of(thunk, False)
    assert eqn.params["out_trees"]() == trees


def composed(*programs):
    """A call of ``custom_vjp`` that is made of programs: the function, and the factor of its gradient."""

    def make(function, factor):
        @jax.custom_vjp
        def f(x):
            return jaxpr_as_fun(function)(x)[0]

        def backward(x, ct):
            return (jaxpr_as_fun(factor)(x)[0] * ct,)

        f.defvjp(lambda x: (f(x), x), backward)
        backward.composed = custom_rules.Composed((function, factor), make)
        return f

    return make(*programs), make


def test_a_call_is_composed_of_programs_and_can_be_made_of_others():
    square, triple, double = (jax.make_jaxpr(f)(X) for f in (lambda x: x * x, lambda x: 3 * x, lambda x: 2 * x))
    f, make = composed(square, triple)
    (eqn,) = program(f).eqns
    known = custom_rules.composition_of(eqn.params)
    assert known.programs == (square, triple) and known.make is make
    with custom_rules.left_out():
        assert custom_rules.composition_of(eqn.params) is None
    params = eqn.params | custom_rules.remade(eqn.params, known, (square, double))
    other = lambda x: eqn.primitive.bind(x, **eqn.primitive.get_bind_params(params))[0]  # noqa: E731
    assert jax.grad(f)(X) == 6.0 and jax.grad(other)(X) == 4.0


def test_no_composition_is_known_of_another_call():
    assert custom_rules.composition_of(program(by_vjp(3.0)).eqns[0].params) is None
    assert custom_rules.composition_of({}) is None


def test_a_rule_for_the_inputs_that_are_perturbed():
    """Only the call itself is such a call; its rule is traced for each set, and stands for no other."""

    @jax.custom_jvp
    def times(a, b):
        return a * b

    def rule(primals, tangents):
        zeros = [isinstance(t, jax.custom_derivatives.SymbolicZero) for t in tangents]
        return times(*primals), tangents[zeros.index(False)] * (2.0 if any(zeros) else 3.0)

    times.defjvp(rule, symbolic_zeros=True)
    for other in (lambda a, b: times(a, b) + 1.0, lambda a, b: times(b, a), lambda a, b: a * b, jnp.sin):
        assert custom_rules.call_that_is_told(jax.make_jaxpr(other)(*[1.0, 2.0][: 1 + (other is not jnp.sin)])) is None
    call = custom_rules.call_that_is_told(jax.make_jaxpr(times)(1.0, 2.0))
    for in_zeros, factor in (((False, True), 2.0), ((True, False), 2.0), ((False, False), 3.0)):
        program, zeros = custom_rules.rule_for(call.params, in_zeros)
        assert zeros == (False,) and len(program.in_avals) == 4 - sum(in_zeros)
        params = call.params | custom_rules.with_rule(call.params, program, in_zeros, zeros)
        bound = functools.partial(call.primitive.bind, **call.primitive.get_bind_params(params))
        given = [i for i, zero in enumerate(in_zeros) if not zero]

        def at(*xs, given=given, bound=bound):
            full = [1.0, 2.0]
            for i, x in zip(given, xs, strict=True):
                full[i] = x
            return bound(*full)[0]

        slopes = jax.grad(at, range(len(given)))(*[[1.0, 2.0][i] for i in given])
        assert [*map(float, slopes)] == [factor, 0.0][: len(given)]
        with pytest.raises(AssertionError, match="other perturbed"):
            params["jvp_jaxpr_fun"].call_wrapped(True, True)
