"""execution/recognition.py: what is kept of an operation goes with it."""

import jax.numpy as jnp

from tapejax.execution.recognition import forget
from tapejax.jaxprs import cache
from tapejax.tape import rules
from tapejax.tape.operation import Op, pullback


def test_an_operation_is_forgotten_with_those_that_are_made_of_it(no_shadow, monkeypatch):
    monkeypatch.setattr(rules, "caches", rules.caches[:])
    kept = cache.Cache(8)
    rules.depends_on_rules(kept, lambda op: [op])
    op, other = Op("f", jnp.sin), Op("g", jnp.sin)
    for each in (op, pullback(op, (0,), (0,)), other):
        kept.get(each, lambda: "kept")
    forget(op)
    assert [key for key, _ in kept.items()] == [other]
