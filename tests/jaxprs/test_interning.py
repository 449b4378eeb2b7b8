"""`jaxprs/interning.py`: one representative for each structure of a jaxpr."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tapejax.jaxprs import cache, interning
from tapejax.jaxprs.canonical import Identity, UncacheableError
from tapejax.jaxprs.interning import intern, intern_forward, interned_key, is_known, is_uncacheable

ARRAY = jnp.arange(3.0)
pytestmark = pytest.mark.usefixtures("no_shadow")  # which makes each representative anew


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()
    yield
    cache.clear()


def traced(factor=2.0):
    """A jaxpr of its own at each call."""
    return jax.make_jaxpr(lambda x: jnp.sin(x) * factor)(1.0)


def with_rule(factor=2.0):
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), factor * tangents[0]))
    return jax.make_jaxpr(lambda x: f(x))(1.0)


def closing_over():
    return jax.make_jaxpr(jax.jit(lambda x: x * ARRAY))(1.0)


def test_equal_programs_have_one_representative():
    one, other = traced(), traced()
    assert one is not other and intern(one) is intern(other)
    assert intern(intern(one)) is intern(one)
    assert intern(traced(3.0)) is not intern(one)


def test_the_representative_is_a_copy_so_that_the_first_program_can_go():
    program = traced()
    first, gone = intern(program), weakref.ref(program)
    assert first is not program and first.eqns == program.eqns
    del program
    gc.collect()
    assert gone() is None and intern(traced()) is first


def test_each_program_in_a_tuple_is_replaced_and_other_values_are_left():
    one, other = traced(), traced()
    assert intern((one, other, "name"))[0] is intern(other) and intern((one, other))[1] is intern(one)
    assert intern("name") == "name" and intern(3) == 3


def test_what_closes_over_an_array_stands_for_itself():
    program = closing_over()
    assert intern(program) is program and intern_forward(program) is program and not is_known(program)


def test_programs_with_a_rule_are_equal_if_their_rules_are():
    assert intern(with_rule(2.0)) is intern(with_rule(2.0))
    assert intern(with_rule(2.0)) is not intern(with_rule(3.0))


def test_for_what_runs_forward_only_rules_do_not_matter():
    assert intern_forward(with_rule(2.0)) is intern_forward(with_rule(3.0))
    assert intern_forward(with_rule(2.0)) is not intern(with_rule(2.0))
    assert intern_forward((traced(), "name"))[0] is intern_forward(traced())


def test_a_rule_without_a_key_makes_a_program_like_no_other():
    def fails(primals, tangents):
        raise RuntimeError("the user's")

    f = jax.custom_jvp(jnp.sin)
    f.defjvp(fails)
    programs = [jax.make_jaxpr(lambda x: f(x))(1.0) for _ in range(2)]
    assert [intern(x) for x in programs] == programs
    assert is_uncacheable({"jaxpr": programs[0], "name": "f"}) and not is_uncacheable({"jaxpr": traced()})


def test_a_program_is_known_once_it_was_interned():
    program = traced()
    assert not is_known(program)
    intern(program)
    assert is_known(program) and not is_known(traced())


def test_the_key_of_a_parameter_has_interned_programs_by_their_identity():
    program = intern(traced())
    assert interned_key(program) == Identity(program)
    assert interned_key((program, program)) == (tuple, Identity(program), Identity(program))
    assert interned_key(1) != interned_key(True)
    with pytest.raises(UncacheableError, match="an array as a parameter"):
        interned_key(np.ones(2))


def test_representatives_that_stand_for_nothing_alive_are_dropped_and_listeners_are_told(monkeypatch):
    told = []
    monkeypatch.setattr(interning, "_listening", [told.extend])
    monkeypatch.setattr(interning, "UNUSED_KEPT", 2)
    alive = traced(-1.0)
    kept = intern(alive)
    unused = [id(intern(traced(float(i)))) for i in range(4)]
    gc.collect()
    for _ in range(interning.AGES_KEPT + 1):
        interning.next_age()
    for i in range(2):  # what is new makes it look
        intern(traced(10.0 + i))
    interning.next_age()
    assert {id(x) for x in told} <= set(unused) and len(told) >= 2
    assert intern(traced(-1.0)) is kept


def test_a_program_that_branches_is_compared_with_all_its_branches():
    def branching(factor):
        return jax.make_jaxpr(lambda p, x: lax.cond(p, lambda x: x * factor, jnp.sin, x))(True, 1.0)

    assert intern(branching(2.0)) is intern(branching(2.0)) is not intern(branching(3.0))
