"""tape/rules.py: gradients registered by an operation's name, and functions marked as connected."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X

from tapejax.jaxprs import cache
from tapejax.tape import rules


@pytest.fixture(autouse=True)
def forgotten():
    before = dict(rules._rules)
    yield
    rules._rules.clear()
    rules._rules.update(before)
    cache.clear()


def test_a_rule_is_the_derivative_of_its_name():
    rules.register("rules.doubled", lambda inputs, outputs, cotangents: [cotangents[0] * 7])
    (slope,) = jax.vjp(rules.with_rule("rules.doubled", lambda x: x * 2), X)[1]([jnp.ones(2)])
    np.testing.assert_array_equal(slope, [7.0, 7.0])
    assert rules.has_rule("rules.doubled") and rules.is_python("rules.doubled")


def test_none_carries_no_gradient():
    rules.register("rules.none", None)
    (slope,) = jax.vjp(rules.with_rule("rules.none", lambda x: x * 2), X)[1](jnp.ones(2))
    np.testing.assert_array_equal(slope, [0.0, 0.0])
    assert rules.has_rule("rules.none") and not rules.is_python("rules.none")


def test_a_name_has_one_rule():
    rules.register("rules.once", None)
    with pytest.raises(KeyError, match="Registering two gradient with name 'rules.once'"):
        rules.register("rules.once", None)


def test_a_rule_gives_a_gradient_for_each_input():
    rules.register("rules.short", lambda inputs, outputs, cotangents: [])
    with pytest.raises(ValueError, match="returned 0 gradients for 1 inputs"):
        jax.vjp(rules.with_rule("rules.short", lambda x: x * 2), X)[1]([jnp.ones(2)])


def test_a_function_without_a_rule_is_itself():
    assert rules.with_rule("rules.unknown", jnp.sin) is jnp.sin


def test_what_depends_on_rules_is_forgotten_when_one_is_registered(no_shadow, monkeypatch):
    monkeypatch.setattr(rules, "caches", rules.caches[:])  # what is added here ends with the test
    kept = cache.Cache(8)
    rules.depends_on_rules(kept, lambda key: [key])
    kept.get("a", lambda: "x")
    rules.register("rules.new", None)
    assert len(kept) == 0


def test_a_rule_is_used_again_in_a_higher_derivative():
    rules.register("rules.cubed", lambda inputs, outputs, cotangents: [cotangents[0] * 3 * outputs[0]])
    fn = rules.with_rule("rules.cubed", lambda x: [x**3])  # the rule says 3 y, so that the second derivative is 9 y
    slope = jax.grad(lambda x: fn(x)[0])
    assert (slope(2.0), jax.grad(slope)(2.0)) == (24.0, 72.0)
