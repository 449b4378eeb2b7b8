"""`jaxprs/dependence.py`: which inputs the derivative of an output depends on, and what kinds of values have one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tapejax.jaxprs.dependence import (
    Links,
    equation_links,
    everything,
    has_tangent,
    is_key,
    kind_of,
    links,
    type_has_tangent,
)

X, Y, N = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]), jnp.array([1, 2])


def by(fn, *inputs, **options):
    """`links` as lists."""
    found = links(fn, inputs, jax.tree.leaves(fn(*inputs)), **options)
    return [sorted(inputs) for inputs in found.by]


def test_an_output_depends_on_the_inputs_that_it_is_computed_from():
    assert by(lambda x, y: (x * y, jnp.sin(y), x), X, Y) == [[0, 1], [1], [0]]


CONSTANT = {"floor": jnp.floor, "stop_gradient": lax.stop_gradient, "round trip": lambda x: x.astype(int).astype(float),
            "comparison": lambda x: jnp.where(x > 0, 1.0, 2.0), "nothing": lambda x: jnp.ones(2)}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_a_derivative_that_is_a_symbolic_zero_depends_on_nothing(name):
    assert by(CONSTANT[name], X) == [[]]


def test_a_derivative_that_happens_to_be_zero_depends_on_its_inputs():
    assert by(lambda x: x * 0.0, X) == [[0]] and by(jnp.sign, X) == [[]]


def test_integers_have_no_part_in_it():
    assert by(lambda x, n: (x * n, n + 1), X, N) == [[0], []]
    assert by(lambda n: n * 1.0, N) == [[]]


def test_what_a_loop_carries_comes_round_any_number_of_times():
    def rotated(x, y, z):
        return lax.scan(lambda c, _: ((c[1], c[2], c[2] * 2), None), (x, y, z), length=5)[0]

    assert by(rotated, X, Y, X + 1) == [[1, 2], [2], [2]]  # the third is first by then, the second where it ran once


def test_each_branch_counts_and_each_call_is_looked_into():
    assert by(lambda n, x, y: lax.cond(n > 0, lambda: x, lambda: y), jnp.array(1), X, Y) == [[1, 2]]
    assert by(jax.jit(lambda x, y: (y * 2, x * 3)), X, Y) == [[1], [0]]


def test_what_is_written_to_a_ref_is_read_later():
    def through(x, y):
        ref = jax.new_ref(jnp.zeros(2))
        ref[...] = x
        return ref[...] * 2, y

    assert by(through, X, Y) == [[0], [1]]


def test_what_cannot_be_differentiated_depends_on_everything_and_says_that_rules_may_be_told():
    fails = jax.custom_jvp(jnp.sin)

    @fails.defjvp
    def refuse(primals, tangents):
        raise RuntimeError("the user's")

    assert links(fails, [X], [X]) == Links((frozenset({0}),), True)
    assert links(lambda x: x, [X], [X]) == Links((frozenset({0}),), False)


def test_a_rule_that_may_be_told_is_told_which_inputs_are_perturbed():
    told = jax.custom_jvp(lambda x, y: x * y)

    @told.defjvp
    def rule(primals, tangents):
        dx, dy = tangents
        zero = type(dy).__name__ == "SymbolicZero"
        return told(*primals), dx * 2 if zero else dx + dy

    rule = told.defjvp(rule, symbolic_zeros=True)
    assert links(told, [X, Y], [X]).by_perturbation
    assert by(told, X, Y, perturbed=(0,)) == [[0]] and by(told, X, Y, perturbed=(0, 1)) == [[0, 1]]


def test_an_equation_has_links_of_its_own():
    product, rounded = jax.make_jaxpr(lambda x: lax.floor(2.0 * x))(X).eqns
    assert equation_links(product) == (frozenset({0, 1}),)  # a literal is an input like any other
    assert equation_links(rounded) == (frozenset(),)


def test_everything_that_is_wanted_depends_on_all_inputs_that_are_given():
    assert everything([X, N, Y], [X, N]) == (frozenset({0, 2}), frozenset())
    assert everything([X, N, Y], [X], start=1) == (frozenset({2}),)
    ref = jax.new_ref(N)  # gradient is refused there, whatever it holds
    assert everything([ref, N], [ref]) == (frozenset({0}),)


def test_a_number_of_pythons_is_a_constant():
    assert by(lambda x, y: x * y, X, 2.0) == [[0]] and by(lambda x, y: x * y, X, np.float32(2.0)) == [[0, 1]]


class Pair(NamedTuple):
    x: float


with_tangent = [jnp.float32(1), jnp.complex64(1), jnp.bfloat16(1), np.float32(1), np.ones(2), 1.0, 1j]
without_tangent = [jnp.int32(1), np.ones(2, bool), jax.random.key(0), 1, True, None, object(), Pair(1.0)]


def test_which_values_have_a_tangent():
    assert all(map(has_tangent, with_tangent)) and not any(map(has_tangent, without_tangent))
    assert has_tangent(jax.new_ref(X)) and not has_tangent(jax.new_ref(N))
    assert jax.jit(lambda x, n: [1.0 * has_tangent(x), 1.0 * has_tangent(n)])(X, N) == [1.0, 0.0]


def test_the_type_of_a_value_tells_it():
    for x in (*with_tangent, *without_tangent):
        assert type_has_tangent(kind_of(x)) == has_tangent(x)


def test_keys_of_random_numbers_are_no_numbers():
    assert is_key(kind_of(jax.random.key(0))) and not is_key(kind_of(X)) and not is_key(float)


def test_the_kind_of_a_value_is_all_that_a_program_may_depend_on():
    assert kind_of(X) == kind_of(X + 1) == kind_of(np.ones(2, X.dtype)) != kind_of(jnp.ones(3))
    assert kind_of(1.0) is float and kind_of(True) is bool and kind_of(1j) is complex
    weak = jnp.sin(1.0)
    assert weak.weak_type and kind_of(weak) != kind_of(jnp.zeros((), weak.dtype))
