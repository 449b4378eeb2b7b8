"""The def-use graph of recorded operations."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import pytest

import tapejax as tf
from tapejax.tools.writing.graph import Graph, ValueMap, ValueSet


class Ran(NamedTuple):
    inputs: tuple
    outputs: tuple


A, B, C, D, E, F, G = values = [jnp.ones(2) for _ in range(7)]  # all of them equal


@pytest.fixture
def graph():
    #      0: A, B -> C     1: B -> D     2: C, C, 2.0 -> E, F     3: D, E -> G
    return Graph([Ran((A, B), (C,)), Ran((B,), (D,)), Ran((C, C, 2.0), (E, F)), Ran((D, E), (G,))])


def same(found, expected):
    return [next(i for i, x in enumerate(values) if x is y) for y in found] == [
        next(i for i, x in enumerate(values) if x is y) for y in expected
    ]


def test_values_are_known_by_identity_and_stay_in_order():
    held = ValueSet([B, A, B])
    assert A in held and C not in held and same(held, [B, A])
    held.add(C)
    held.discard(B)
    assert same(held, [A, C]) and same(held | [D], [A, C, D]) and same(held & [C, D], [C]) and same(held - held, [])
    assert held.isdisjoint([B, D]) and not held.isdisjoint([C]) and held <= ValueSet(values)


def test_a_value_in_a_set_stays_alive():
    held = ValueSet()
    held.add(jnp.zeros(3))
    others = [jnp.zeros(3) for _ in range(100)]
    assert not any(x in held for x in others)


def test_a_map_has_something_for_each_value():
    names = ValueMap([(A, "a"), (B, "b")])
    names[C] = names.setdefault(A, "other")
    assert names[C] == "a" and names.get(D) is None and len(names) == 3 and same(names, [A, B, C])
    names.update([(B, "new"), (D, "d")])
    del names[A]
    assert [*names.values()] == ["new", "a", "d"] and A not in names
    with pytest.raises(KeyError):
        names[A]


def test_definitions_and_uses(graph):
    assert graph.position(E) == graph.position(F) == 2 and graph.made_by(G) is graph.operations[3]
    assert graph.position(A) is None and graph.made_by(A) is None
    assert [*graph.uses(B)] == [0, 1] and [*graph.uses(C)] == [2] and [*graph.uses(G)] == []


def test_what_targets_were_computed_from(graph):
    assert graph.before([G]) == [0, 1, 2, 3]
    assert graph.before([F]) == graph.before([E, F]) == [0, 2]
    assert graph.before([A]) == graph.before([]) == []


def test_leaves_have_their_first_use_on_the_way_to_the_targets(graph):
    leaves = graph.leaves([G])
    assert same([x for x, _ in leaves], [B, A]) and [position for _, position in leaves] == [0, 0]
    assert [position for _, position in graph.leaves([D])] == [1]
    ((x, position),) = graph.leaves([A])
    assert x is A and position == 4


def test_what_was_computed_from_sources(graph):
    assert same(graph.after([B]), [B, C, D, E, F, G])
    assert same(graph.after([D]), [D, G]) and same(graph.after([]), [])
    assert same(graph.after([A], ValueSet([E])), [A, C, F])
    assert same(graph.after([A], ValueSet([A, C])), [A])  # a source counts, whatever it was computed from


def test_what_an_assignment_computed_counts_where_it_is_told():
    operations = [Ran((A,), (B,)), Ran((C,), (D,))]  # between them B was assigned to what holds C
    assert Graph(operations).before([D]) == [1]
    assert Graph(operations, ValueMap([(C, [B])])).before([D]) == [0, 1]


def test_of_a_recording():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        unused = tf.sin(x)
        z = tf.exp(y) + 1.0
    graph = Graph(tape._recording.entries)
    assert [graph.operations[i].op.name for i in graph.before([z._array])] == ["multiply", "exp", "add"]
    assert len(graph.uses(x._array)) == 2 and unused._array in graph.after([x._array])
    assert [leaf for leaf, _ in graph.leaves([z._array])][0] is x._array
