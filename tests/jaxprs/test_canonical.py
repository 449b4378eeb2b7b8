"""The exact canonical form: what is equal is the same program, what differs in one bit is another."""

from __future__ import annotations

import dataclasses
import enum
import functools
import struct
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.jaxprs.canonical import MOST_BYTES, Identity, UncacheableError, exact, key, snapshot, structure
from tapejax.jaxprs.fence import HighPrimitive

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: object


class Sloppy:
    """An object whose equality leaves out what it holds."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Sloppy)

    def __hash__(self):
        return 0


class High(HighPrimitive):
    """An operation of `jax.experimental.hijax`, whose equality compares `params` only, and these as Python does."""

    __module__ = "jax.as_if"

    def __init__(self, dtype, **params):
        self.in_avals, self.params = (jax.typeof(jnp.ones(2)),), params
        self.out_aval = jax.typeof(jnp.ones(2, dtype))
        super().__init__()


class Users(High):
    __module__ = __name__


class Color(enum.IntEnum):
    RED = 1


def other_nan():
    return struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]


POLICIES = jax.checkpoint_policies

# Of each row all values are different, however equal Python finds them.
DISTINCT = [
    [1, True, 1.0, 1 + 0j, "1", b"1", np.int32(1), np.int64(1), np.float32(1), np.bool_(True), Color.RED],
    [0.0, -0.0, 0, False, np.float32(0.0), np.float32(-0.0), np.float64(0.0)],
    [complex(0.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)],
    [float("nan"), other_nan(), -float("nan"), None],
    [(1, 2), [1, 2], Point(1, 2), Other(1, 2), (1.0, 2), (True, 2), ((1, 2),)],
    [frozenset([1]), frozenset([True]), frozenset([1.0])],
    [slice(1, 2), slice(True, 2), slice(1.0, 2), range(1, 2)],
    [np.float32(1.23451e-4), np.float32(1.23454e-4), np.float64(np.float32(1.23451e-4))],
    [np.array(2.0), np.array([2.0]), np.array([2.0, -0.0]), np.array([2.0, 0.0]), np.array(2.0, np.float32), 2.0],
    [np.dtype("float32"), "float32", np.float32, jnp.float32],
    [Frozen(1), Frozen(True), Frozen(0.0), Frozen(-0.0)],
    [functools.partial(max, 1), functools.partial(max, True), functools.partial(min, 1), functools.partial(max, key=1)],
    [Sloppy(1), Sloppy(2), object(), object()],
    [High("float32", k=0), High("int32", k=0), High("float32", k=0.0), High("float32", k=-0.0), High("float32", j=0)],
    [Users("float32"), Users("float32")],
    [
        POLICIES.save_only_these_names("a"),
        POLICIES.save_only_these_names("a", "b"),
        POLICIES.save_any_names_but_these("a"),
        POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names("a")),
        POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names("b")),
        POLICIES.save_from_both_policies(POLICIES.dots_saveable, lambda *_, **__: True),
        POLICIES.save_from_both_policies(POLICIES.dots_saveable, lambda *_, **__: True),
        POLICIES.dots_saveable,
        POLICIES.nothing_saveable,
        POLICIES.everything_saveable,
    ],
]


def keys_of(value):
    try:
        return exact(value)
    except UncacheableError:
        return Identity(value)


@pytest.mark.parametrize("values", DISTINCT, ids=lambda row: repr(row[0])[:20])
def test_what_differs_has_another_key(values):
    keys = [keys_of(value) for value in values]
    assert len(set(keys)) == len(values)
    assert all((a == b) == (i == j) for i, a in enumerate(keys) for j, b in enumerate(keys))


@pytest.mark.parametrize(
    "make",
    [
        lambda: 1.5,
        lambda: float("nan"),
        lambda: (1, (2.0, "a"), None),
        lambda: np.float32(0.1),
        lambda: np.array([1.0, np.nan]),
        lambda: np.array([[1, 2, 3]])[:, ::2],
        lambda: Frozen((1, -0.0)),
        lambda: functools.partial(max, 1, key=2.0),
        lambda: slice(None, 3),
        lambda: jax.tree.structure({"a": 1}),
        lambda: jax.ShapeDtypeStruct((2,), jnp.float32),
        lambda: jax.lax.GatherDimensionNumbers((0,), (), (0,)),
        lambda: High("float32", k=(0.5, "a")),
        lambda: POLICIES.save_only_these_names("a", "b"),
        lambda: POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_any_names_but_these("a")),
    ],
)
def test_what_is_made_anew_has_the_same_key(make):
    assert exact(make()) == exact(make())
    assert hash(exact(make())) == hash(exact(make()))


@pytest.mark.parametrize(
    "value",
    [[1], {"a": 1}, {1}, bytearray(b"x"), jnp.ones(2), np.zeros(MOST_BYTES + 1, np.int8), np.array([None]), (1, [2])],
    ids=lambda value: type(value).__name__,
)
def test_what_can_change_has_no_key(value):
    with pytest.raises(UncacheableError):
        exact(value)
    assert key(value) == key(value) != key(value.copy() if hasattr(value, "copy") else (1, [2]))
    assert key((value, 1.0)) == key((value, 1.0)) != key((value, 1))


def traced(f, *args):
    return jax.make_jaxpr(f)(*args)


def test_a_program_is_its_operations_types_and_literals():
    x = jnp.ones(3)
    programs = [
        traced(lambda x: x * 2.0, x),
        traced(lambda x: x * 3.0, x),
        traced(lambda x: 2.0 * x, x),
        traced(lambda x: x + 2.0, x),
        traced(lambda x: x * 2.0, jnp.ones(4)),
        traced(lambda x: x * 2.0, jnp.ones(3, jnp.float16)),
        traced(lambda x: (x * 2.0, x), x),
        traced(lambda x: x * 2.0, 1.0),
        traced(lambda x: x * 2.0, jnp.ones(())),
        traced(jax.jit(lambda x: x * 2.0), x),
        traced(lambda x: jax.lax.integer_pow(x, 2), x),
        traced(lambda x: jax.lax.integer_pow(x, 3), x),
        traced(lambda x: x * np.array([1.0, 2.0, 3.0], np.float32), x),
        traced(lambda x: x * np.array([1.0, 2.0, 4.0], np.float32), x),
    ]
    assert len({structure(p) for p in programs}) == len(programs)
    assert structure(programs[0]) == structure(traced(lambda y: y * 2.0, x))


def test_literals_are_told_apart_by_their_last_bit():
    x = jnp.float32(1.0)
    for dtype in (np.float32, np.float16, jnp.bfloat16.dtype.type):
        one = dtype(1.0)
        after = (
            np.nextafter(np.float32(1), np.float32(2))
            if dtype is np.float32
            else dtype(1 + float(jnp.finfo(dtype).eps))
        )
        assert structure(traced(lambda x, k=one: x * k, x)) != structure(traced(lambda x, k=after: x * k, x))
    zero, minus = structure(traced(lambda x: x * 0.0, x)), structure(traced(lambda x: x * -0.0, x))
    assert zero != minus
    nan = structure(traced(lambda x: x * np.float32(np.nan), x))
    assert nan == structure(traced(lambda x: x * np.float32(np.nan), x))


def test_print_options_do_not_matter():
    with np.printoptions(precision=3):
        assert structure(traced(lambda x: x * np.float32(2.0004), 1.0)) != structure(
            traced(lambda x: x * np.float32(2.0001), 1.0)
        )


def test_the_context_of_an_equation_counts():
    def bits(x):
        return jax.random.bits(jax.random.wrap_key_data(x))

    data = jnp.zeros(2, jnp.uint32)
    found = []
    for partitionable in (True, False, True):
        with jax.threefry_partitionable(partitionable):
            found.append(structure(traced(bits, data)))
    assert found[0] == found[2] != found[1]


def test_a_snapshot_does_not_change():
    scalar, row = np.array(2.0, np.float32), np.array([1.0, 2.0], np.float32)
    closed = traced(jax.jit(lambda x: x * scalar + row), jnp.ones(2))
    copy = snapshot(closed)
    before = structure(copy)
    assert before == structure(closed) and snapshot(copy) is copy
    scalar[...] = 7.0
    row[:] = 7.0
    assert structure(copy) == before
    np.testing.assert_array_equal(jax.core.eval_jaxpr(copy.jaxpr, copy.consts, jnp.ones(2))[0], [3.0, 4.0])
    assert snapshot(traced(lambda x: x + 1, 1)) is not None
    assert snapshot((1, "a")) == (1, "a") and snapshot(3) == 3


def test_an_identity_stands_for_itself_only():
    x = []
    assert Identity(x) == Identity(x) != Identity([]) and hash(Identity(x)) == hash(Identity(x))
    assert Identity(x) != x
