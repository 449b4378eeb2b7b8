"""The few types that flow through the core, by name.

JAX has no public class for most of them: a tracer is no subclass of ``jax.Array``, and what a jaxpr is differs from version to
version. A protocol says what tapejax uses of an object. Where none can be written, the type is ``Any``, and its name says what to
expect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from ..places import Place

Value: TypeAlias = Any  # an array of JAX's or NumPy's, a tracer that stands for one, or a Python number
Values: TypeAlias = Sequence[Value]
Pytree: TypeAlias = Any  # arrays in containers that JAX takes apart
Function: TypeAlias = Callable[..., Any]  # of flat values, if nothing else is said
Slot: TypeAlias = int  # the number of a value in a program
Positions: TypeAlias = tuple[int, ...]  # some of the inputs or outputs of an operation
Params: TypeAlias = dict[str, Any]  # the parameters of a primitive
JaxProgram: TypeAlias = Any  # one of JAX's programs, a jaxpr: closed or open
TraceLike: TypeAlias = Any  # what JAX hands operations to
Where: TypeAlias = Place | None  # a place in the user's code, if it is known


class Primitive(Protocol):
    """One of JAX's operations."""

    name: str
    multiple_results: bool

    def bind(self, *args: Any, **params: Any) -> Any: ...

    def get_bind_params(self, params: Params) -> Any: ...


class Atom(Protocol):
    """A variable or literal in a jaxpr."""

    aval: Any


class Equation(Protocol):
    """A step of a jaxpr."""

    primitive: Primitive
    params: Params
    invars: Sequence[Any]
    outvars: Sequence[Any]
    effects: Any
    source_info: Any
    ctx: Any

    def replace(self, **changes: Any) -> Equation: ...


class Subfun(Protocol):
    """One of JAX's wrapped functions, that can be called once."""

    stores: Any
    transforms: Any

    def call_wrapped(self, *args: Any) -> Any: ...

    def populate_stores(self, stores: Any) -> None: ...
