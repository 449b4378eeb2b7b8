"""The replicas of a strategy: one axis of `jax.vmap`, which has a name. Where values differ between replicas they are batched.

Replicas whose batches have other sizes are *groups*, each with an axis of its own. They are traced one by one and evaluated in
step: where a sum over all replicas is asked for, each group gives its part, by the primitive ``sum_of_groups``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...jaxprs import contents, lifting
from ...jaxprs.fence import BatchTracer, Literal, Primitive, Tracer
from ...jaxprs.threads import Context
from ...jaxprs.types import JaxProgram
from .types import Array

if TYPE_CHECKING:
    from ..programs.distribute import Strategy

AXIS = "replica"


class Place(Context):
    """Where this thread is: in which strategies, and in which replica."""

    # The strategies that it is in, innermost last, each with whether the program is outside of its replicas.
    strategies: tuple[tuple[Strategy, bool], ...] = ()
    mesh: Mesh | None = None  # of the innermost one: new variables are placed on its devices
    running = False  # whether a function of the user's is run as that of each replica
    group: int | None = None  # the number of the group's first replica; None where there is one group


place = Place()


def count() -> int:
    """How many there are."""
    return 1 if place.mesh is None else place.mesh.size


def placed(array: Array) -> Array:
    """A new variable's array: the whole of it on each of the strategy's devices, and in all processes what it is in the first.

    In replicas it is the first replica's value. No other group is asked: it makes no variable.
    """
    if place.running:
        array = jax.lax.all_gather(array, AXIS)[0] if differs(array) else _common(array)
    if place.mesh is None or isinstance(array, Tracer):
        return array
    whole = NamedSharding(place.mesh, PartitionSpec())
    if whole.is_fully_addressable:
        return jax.device_put(array, whole)
    own = np.asarray(array)[None]
    each = NamedSharding(place.mesh, PartitionSpec(AXIS))
    with jax.ensure_compile_time_eval():
        rows = jax.make_array_from_callback((place.mesh.size, *array.shape), each, lambda _: own)
        return jax.jit(_first_row, out_shardings=whole)(rows)


def _first_row(rows):
    return rows[0]


def differs(array: Any) -> bool:
    """Whether `array` may have another value in each replica."""
    return isinstance(array, BatchTracer) and array.batch_dim is not None


_sum_of_groups = Primitive("sum_of_groups")
_sum_of_groups.def_abstract_eval(lambda x: x)


@jax.custom_vjp
def _total_of_groups(x):
    return _sum_of_groups.bind(jax.lax.psum(x, AXIS))


_total_of_groups.defvjp(lambda x: (_total_of_groups(x), None), lambda _, cotangent: (_total_of_groups(cotangent),))


def number() -> Array:
    """The number of the replica."""
    return jax.lax.axis_index(AXIS) + (place.group or 0)


def total(x):
    """The sum over all replicas."""
    return _common(_total_of_groups(x)) if place.group is not None else jax.lax.psum(x, AXIS)


def mean(x):
    """The mean over all replicas."""
    return total(x) / count() if place.group is not None else jax.lax.pmean(x, AXIS)


def stacked(x):
    """The values of all replicas, along a new first axis."""
    if place.group is None:
        return jax.lax.all_gather(x, AXIS)
    return total(jnp.zeros((count(), *jnp.shape(x)), x.dtype).at[number()].set(x))


def _common(array: Any) -> Any:
    """`array`, as a value outside of the replicas if it is the same in all."""
    return array.val if isinstance(array, BatchTracer) and array.batch_dim is None else array


def first(array: Array) -> Array:
    """The value of the first replica."""
    return stacked(array)[0] if differs(array) else array


def in_step(programs: Sequence[tuple[JaxProgram, Sequence[Array]]]) -> list[list[Array]]:
    """The results of the groups' programs, each with its inputs.

    Raises:
      ValueError: they ask for different sums.
    """
    steps, summed = [_in_steps(*program) for program in programs], None
    while True:
        parts, results = [], []
        for step in steps:
            try:
                parts.append(step.send(summed))
            except StopIteration as end:
                results.append(end.value)
        if not parts:
            return results
        if results or len({(x.shape, x.dtype) for x in parts}) > 1:
            raise ValueError(
                "replicas with batches of different sizes reduce values of different shapes, or not equally often: batch the "
                "dataset with drop_remainder=True, by a multiple of strategy.num_replicas_in_sync"
            )
        summed = functools.reduce(operator.add, parts)


def _in_steps(program: JaxProgram, args: Sequence[Array]) -> Generator[Array, Array, list[Array]]:
    jaxpr = contents.open_jaxpr(program)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, contents.consts_of(program), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        inputs = [x.val if isinstance(x, Literal) else env[x] for x in eqn.invars]
        called = [x for x in contents.jaxprs_in(eqn.params) if contents.contains(x, _sum_of_groups.name)]
        if eqn.primitive is _sum_of_groups:
            outputs: Sequence[Any] = [(yield inputs[0])]
        elif not called:
            outputs = lifting.run_equation({}, eqn, inputs)
        elif eqn.primitive.name in (*contents.JIT, *contents.RULES):
            outputs = yield from _in_steps(called[0], inputs)
        else:
            raise NotImplementedError(
                f"a sum over replicas inside {eqn.primitive.name}, where their batches have different sizes: batch the dataset "
                "with drop_remainder=True, by a multiple of strategy.num_replicas_in_sync"
            )
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [x.val if isinstance(x, Literal) else env[x] for x in jaxpr.outvars]


def aggregated(array: Array, aggregation: Any, name: str) -> Array:
    """What a variable is assigned in all replicas, where each of them has an `array`.

    Args:
      array: the replica's value.
      aggregation: how the values become one: the variable's ``VariableAggregation``, or Keras's word for it.
      name: the variable's.

    Raises:
      ValueError: the values differ, and the variable has no aggregation.
    """
    if not place.running:
        return array
    kind = str(getattr(aggregation, "name", aggregation)).upper()
    if kind == "SUM":
        return total(array)
    if kind == "MEAN":
        return mean(array) if differs(array) else _common(array)
    if kind == "ONLY_FIRST_REPLICA":
        return first(array)
    if differs(array):
        raise ValueError(
            f"Variable {name!r} is assigned a value that may differ between replicas, and it is the same in all: make the "
            "variable with aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA, or assign what "
            "tf.distribute.get_replica_context().all_reduce gives"
        )
    return _common(array)
