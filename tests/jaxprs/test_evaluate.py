"""`jaxprs/evaluate.py`: a jaxpr run equation by equation, some of whose values come from elsewhere."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tapejax.jaxprs.evaluate import evaluate, needed


def traced(fn, *args):
    return jax.make_jaxpr(fn)(*args)


def run(eqn, inputs):
    out = eqn.primitive.bind(*inputs, **eqn.params)
    return out if eqn.primitive.multiple_results else [out]


def names(found):
    return [eqn.primitive.name for eqn, _ in found]


def branching(x, y):
    a = lax.sin(x)
    b = lax.cos(y)
    return lax.exp(a), b


def test_the_outputs_are_those_of_the_function():
    assert evaluate(traced(branching, 1.0, 2.0), (0.5, 0.25), run) == list(branching(0.5, 0.25))


def test_each_equation_is_handed_over_with_its_inputs_in_order():
    seen = []

    def note(eqn, inputs):
        seen.append((eqn.primitive.name, inputs))
        return [eqn.primitive.name]

    assert evaluate(traced(branching, 1.0, 2.0), ("x", "y"), note) == ["exp", "cos"]
    assert seen == [("sin", ["x"]), ("cos", ["y"]), ("exp", ["sin"])]


def test_inputs_and_literals_may_be_outputs():
    assert evaluate(traced(lambda x: (x, 2.0), 1.0), ("x",), run) == ["x", 2.0]


@pytest.mark.parametrize("simplified", [False, True])
def test_a_constant_is_read_from_lifted_by_its_identity(simplified):
    with jax._src.config.use_simplified_jaxpr_constants(simplified):
        k = jnp.array([1.0, 2.0])
        closed = traced(lambda x: x * k, jnp.ones(2))
        assert evaluate(closed, (jnp.ones(2),), run)[0].tolist() == [1.0, 2.0]
        assert evaluate(closed, (jnp.ones(2),), run, lifted={id(k): jnp.array([3.0, 4.0])})[0].tolist() == [3.0, 4.0]
        assert evaluate(closed, (jnp.ones(2),), run, lifted={id(jnp.ones(2)): 0.0})[0].tolist() == [1.0, 2.0]


def test_other_atoms_are_wanted_of_other_equations():
    program = traced(branching, 1.0, 2.0).jaxpr
    sin, *_ = program.eqns
    assert evaluate(program, (0.5, 0.25), run, equations=[sin], wanted=sin.outvars) == [lax.sin(0.5)]


def test_a_value_that_no_equation_has_given_cannot_be_read():
    program = traced(branching, 1.0, 2.0)
    with pytest.raises(KeyError):
        evaluate(program, (0.5, 0.25), run, equations=[])
    with pytest.raises(ValueError, match="shorter|longer"):
        evaluate(program, (0.5,), run)


def test_the_equations_on_which_an_output_depends_are_needed():
    program = traced(branching, 1.0, 2.0).jaxpr
    first, second = program.outvars
    assert names(needed(program, [first])) == ["sin", "exp"]
    assert names(needed(program, [second])) == ["cos"] and names(needed(program, [])) == []
    assert [given for _, given in needed(program, [second])] == [{second}]


def test_others_are_needed_where_the_caller_says_so_with_all_on_which_they_depend():
    program = traced(branching, 1.0, 2.0).jaxpr
    found = needed(program, [program.outvars[1]], also=lambda eqn: eqn.primitive.name == "exp")
    assert names(found) == ["sin", "cos", "exp"]
    assert found[-1][1] == set()  # nothing is wanted of it itself
