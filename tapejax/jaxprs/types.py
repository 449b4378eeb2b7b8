"""The few types that flow through the core, by name.

Most are ``Any`` to a type checker, because JAX has no public class for them: a tracer is no subclass of ``jax.Array``, and what a
jaxpr is differs from version to version. The names say what a reader may expect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Value: TypeAlias = Any  # an array of JAX's or NumPy's, a tracer that stands for one, or a Python number
Values: TypeAlias = Sequence[Value]
Pytree: TypeAlias = Any  # arrays in containers that JAX takes apart
Function: TypeAlias = Callable[..., Any]  # of flat values, if nothing else is said
Slot: TypeAlias = int  # the number of a value in a program
Positions: TypeAlias = tuple[int, ...]  # some of the inputs or outputs of an operation

Primitive: TypeAlias = Any  # one of JAX's operations
Params: TypeAlias = dict[str, Any]  # its parameters
JaxProgram: TypeAlias = Any  # one of JAX's programs, a jaxpr: closed or open
Equation: TypeAlias = Any  # a step of it
Atom: TypeAlias = Any  # a variable or literal in it
TraceLike: TypeAlias = Any  # what JAX hands operations to
Subfun: TypeAlias = Any  # one of JAX's wrapped functions, that can be called once
Where: TypeAlias = Any  # a place in the user's code, as `where.caller` gives it
