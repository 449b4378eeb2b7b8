"""`cache.clear` empties every table of what tapejax has made: found by what grows while a program runs."""

import functools
import importlib
import inspect
import pkgutil
import types
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import cache
from tapejax.jaxprs.cache import Cache
from tapejax.tf.programs import distribute

# What grows and is no table of what was made: `clear` must not touch it.
REGISTRIES = {
    "tapejax.execution.trial._trials": "the operations on trial, which `clear` has begin anew",
    "tapejax.jaxprs.cache._caches": "the tables themselves",
    "tapejax.jaxprs.canonical._EXACT": "how the values of a class are told apart",
    "tapejax.jaxprs.fence._hidden": "classes of traces that JAX was told of",
    "tapejax.tf.values.conversion.ARRAY_TYPES": "classes of arrays",
    "tapejax.tf.values.operations.ARRAY_TYPES": "the same set",
    "tapejax.tf.values.dtypes._known": "dtypes, of which there is one object each",
}
TABLES = (dict, set, list, weakref.WeakKeyDictionary, weakref.WeakSet, Cache)


def modules():
    for found in pkgutil.walk_packages(tf.__path__, "tapejax."):
        # Keras has one backend in a process, which may not be JAX here
        if not found.name.startswith(
            ("tapejax.__main__", "tapejax.tools.cli", "tapejax.keras", "tapejax.tf.libraries.keras")
        ):
            yield importlib.import_module(found.name)


def tables():
    """Each table by its name: a module's, one that a public function closes over, a function's results."""
    by_name = {}

    def note(name, value, depth=0):
        if isinstance(value, TABLES):
            by_name[name] = value
        elif isinstance(value, types.FunctionType) and value.__module__.startswith("tapejax.") and depth < 4:
            for cell, inner in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                if inner != types.CellType():
                    note(f"{name}.{cell}", inner.cell_contents, depth + 1)

    for module in modules():
        for name, value in vars(module).items():
            if not name.startswith("__"):
                note(f"{module.__name__}.{name}", value)
    return by_name


def memos():
    """The functions and methods whose results are kept."""
    spaces = [space for module in modules() for space in (module, *filter(inspect.isclass, vars(module).values()))]
    kept = [x for space in spaces for x in vars(space).values() if isinstance(x, functools._lru_cache_wrapper)]
    return list({id(x): x for x in kept if x.__module__.startswith("tapejax.")}.values())


def work():
    x, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    step = tf.function(lambda x: tf.reduce_sum(tf.sin(x) * w) if tf.reduce_sum(x) > 0 else tf.reduce_sum(x))
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.relu(x * w), axis=0) + step(x) + jnp.sum(jax.jit(lambda v: v * 5.0)(x._array)) * 2.5
            z = jnp.sum(jax.lax.scan(lambda c, v: (c * v, c), x._array[0], x._array)[1])
        tape.jacobian(y, [x, w])
        assert tape.explain(z, [w])
    tf.random.stateless_normal([2], [1, 2])
    tf.nest.flatten({"a": np.ones(2)})
    tf.distribute.get_strategy()._compiled(distribute._Defined(work))
    with pytest.raises(AttributeError):
        tf.no_such_name  # noqa: B018


def test_one_call_empties_all_that_a_program_fills(no_shadow):
    every = tables()
    cache.clear()
    before = {name: len(table) for name, table in every.items()}
    work()
    filled = {name for name, table in every.items() if len(table) > before[name]}
    filled_memos = [x for x in memos() if x.cache_info().currsize]
    cache.clear()
    assert {name for name in filled if len(every[name]) > before[name]} <= set(REGISTRIES)
    assert [x for x in memos() if x.cache_info().currsize] == []
    # these are seen by the search: closed over, by object, a plain dict, a `Cache`, a memoised function
    seen = ("tf.ops.nn.relu", "jaxprs.contents._facts", "tape.operation._function_ops")
    assert all(any(name.startswith(f"tapejax.{each}") for name in filled) for each in seen)
    assert "_is_nested_type" in [x.__name__ for x in filled_memos]
    work()
