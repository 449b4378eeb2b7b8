"""Gradients of the user's own: `custom_gradient`, `RegisterGradient` and their kin, over `jax.custom_vjp`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...jaxprs.dependence import has_tangent
from ...jaxprs.fence import eval_jaxpr
from ...jaxprs.types import JaxProgram, Pytree
from ...places import line_of
from ...tape import active, derivative, dispatch, operation
from ...tape.operation import Op
from ...tape.pullback import PullbackOp
from ...tape.query import Query, Source
from ...tape.recording import Recording
from ...tape.structures import Leaf, conjugate
from ...tape.sweep import sweep
from ..values import nest, reading
from ..values.connected import connected
from ..values.conversion import raw
from ..values.errors import InvalidArgumentError, NoValueError
from ..values.staging import staged_after_creation
from ..values.structures import in_pytree, is_variable, leaf_of
from ..values.tensor import Tensor
from ..values.types import Array, Nest, TensorLike, VariableLike
from ..values.variable import Variable
from .opaque import results_in

# ---- custom_gradient ------------------------------------------------------------------------------------------------


class custom_gradient:  # noqa: N801  TensorFlow's spelling
    """Decorator: a function that brings its own gradient.

    `f` returns a pair: its result, and a function that takes the cotangents of the results (one argument for each) and
    returns those of the arguments. If `f` reads Variables, that function must take a keyword argument ``variables``, the
    list of them, and return a pair: the arguments' cotangents, and a list of the variables'.

    On values the backward function runs as ordinary Python, with what it closes over; under ``jax.jit`` it is traced.
    It is differentiated like other code when a higher derivative is asked for.

    Args:
      f: a function, or a method. Arguments and results may be structures of tensors.

    Raises (when called or differentiated):
      TypeError: `f` does not return such a pair, or reads Variables while its gradient takes no ``variables``.
      ValueError: `f` returns more or less than two things, or the number of gradients is wrong.
      InvalidArgumentError: a gradient does not have its argument's shape.

    >>> import tapejax as tf
    >>> @tf.custom_gradient
    ... def clip_gradient(x):
    ...     return x, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)
    >>> v = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = clip_gradient(v * v)
    >>> print(tape.gradient(y, v).numpy())
    6.0

    After ``tf.custom_gradient``.
    """

    def __init__(self, f: Callable):
        self._f = f
        functools.update_wrapper(self, f)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else custom_gradient(self._f.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        if reading.context.capture is not None:
            # In TensorFlow's graphs the function gets the values of variables, eagerly the variables themselves: then a
            # backward function reads what they hold when it runs.
            args, kwargs = nest.map_structure(_value_of, (args, kwargs))
        arguments = _Arguments.of(self._f, args, kwargs)
        watcher = Recording()
        with reading.using() as used:
            pair = active.also(watcher, arguments.call)
        several = isinstance(pair, (list, tuple))
        if not several or len(pair) != 2 or not callable(pair[1]):
            kind = ValueError if several and len(pair) != 2 else TypeError  # as unpacking has it
            what = f"(result, gradient function), not {pair!r}"
            raise kind(f"{self._name} is decorated with custom_gradient: it must return {what}.")
        result, backward = pair
        call = _Call(self._name, backward, arguments, _others(watcher, arguments.leaves), list(used.values()))
        return _attach(call, self, result, watcher)

    @property
    def _name(self) -> str:
        return getattr(self, "__name__", repr(self._f))


def _value_of(x: object) -> Any:
    return Tensor(reading.read(x)) if isinstance(x, Variable) else x


class _Arguments(NamedTuple):
    """A function and its arguments. `leaves` are their parts in the order of the parameters; gradients have the same order."""

    fn: Callable
    args: Sequence
    kwargs: dict[str, Any]
    positional: int  # how many of the leaves came by position
    leaves: list[Any]

    @classmethod
    def of(cls, fn: Callable, args: Sequence, kwargs: dict[str, Any]) -> _Arguments:
        positional = len(nest.flatten(args))
        if kwargs:
            # no signature; if the arguments do not fit, the call raises
            with contextlib.suppress(TypeError, ValueError):
                bound = inspect.signature(fn).bind(*args, **kwargs)
                args, kwargs = bound.args, bound.kwargs
        return cls(fn, args, kwargs, positional, nest.flatten([*args, *kwargs.values()]))

    def call(self) -> Any:
        return self.fn(*self.args, **self.kwargs)

    def call_with(self, fn: Callable, arrays: Iterator[Array]) -> Any:
        """`fn` of these arguments, with `arrays` in place of their tensors."""
        rebuilt = [_rebuilt(x, arrays) for x in self.leaves]
        values = nest.pack_sequence_as([*self.args, *self.kwargs.values()], rebuilt)
        count = len(self.args)
        return fn(*values[:count], **dict(zip(self.kwargs, values[count:], strict=True)))

    def tensors(self) -> list[Leaf]:
        return [leaf for x in self.leaves for leaf, _ in _with_gradients(x)]

    def arrays(self) -> list[Array]:
        """The arrays of the tensors among them."""
        return [reading.read(leaf.value) if isinstance(leaf.value, Variable) else leaf.array for leaf in self.tensors()]

    def may_have(self, count: int) -> bool:
        """Whether a gradient function may return so many gradients: one for each, but for what came by keyword last and is
        no tensor, or, as TensorFlow has it, one for each that came by position."""
        rest = self.leaves[count:]
        return count <= len(self.leaves) and (
            not rest
            or count == self.positional
            or (count > self.positional and not any(leaf for x in rest for leaf in _with_gradients(x)))
        )


class _Call(NamedTuple):
    """One call of a function with a custom gradient: `backward`, and what it gives gradients for.

    `used` is what the function read or assigned to, with what that held before; the `variables` are among it.
    """

    name: str
    backward: Callable
    given: _Arguments
    variables: Sequence[VariableLike]
    used: Sequence[reading.Used]

    def pull(self, cotangents: Sequence[Tensor | jax.Array]) -> list[Array | None]:
        """The gradients of the tensors among the arguments, then of the arrays in `used`: raw arrays, or None."""
        if self.variables:
            pair = self.backward(*cotangents, variables=list(self.variables))
            of_arguments, of_variables = pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, None)
            of_variables = [] if of_variables is None else nest.flatten(of_variables)
            if len(of_variables) != len(self.variables):
                counts_of_variables = f"{self.name} returned {len(of_variables)} for {len(self.variables)}"
                raise ValueError(
                    f"Must return gradient for each variable from @custom_gradient grad_fn: {counts_of_variables}."
                )
        else:
            of_arguments, of_variables = self.backward(*cotangents), []
        of_arguments, leaves = nest.flatten(of_arguments), self.given.leaves
        if not self.given.may_have(len(of_arguments)):
            counts = f"{len(leaves)} gradients, but returned {len(of_arguments)} instead"
            raise ValueError(f"custom_gradient function expected to return {counts}. The function is {self.name}.")
        gradients = [
            self._checked(f"argument {i}", leaf.array, gradient)
            for i, (argument, x) in enumerate(itertools.zip_longest(leaves, of_arguments))
            for leaf, gradient in _with_gradients(argument, x)
        ]
        by_variable = {id(v): x for v, x in zip(self.variables, of_variables, strict=True)}
        for holder, _, array in self.used:
            if isinstance(array, jax.Array):
                name = getattr(holder, "name", holder)
                gradients.append(self._checked(f"variable {name}", array, by_variable.get(id(holder))))
        return gradients

    def _checked(self, what: str, primal: Array, gradient: TensorLike) -> Array | None:
        if gradient is None or not has_tangent(primal):
            return None
        array = raw(gradient, dtype_hint=primal.dtype)
        if array.shape == () != primal.shape and leaf_of(gradient) is None:
            array = jnp.full(primal.shape, array)  # a Python number is broadcast
        if array.shape != primal.shape:
            shapes = f"shape {array.shape} for {what}, which has shape {primal.shape}"
            raise InvalidArgumentError(f"the gradient function of {self.name} returned {shapes}.")
        return array


def _with_gradients(argument: Pytree, given: Pytree = None) -> Iterator[tuple[Leaf, TensorLike]]:
    """Each tensor of one argument, which may be a pytree as an Equinox module is, with its part of the gradient `given`."""
    if (leaf := leaf_of(argument)) is not None:
        yield leaf, given
        return
    parts, tree = _flatten(argument)
    leaves = [in_pytree(part) for part in parts]
    if any(leaves):
        gradients = [None] * len(parts) if given is None else tree.flatten_up_to(given)
        yield from [(leaf, gradient) for leaf, gradient in zip(leaves, gradients, strict=True) if leaf is not None]


def _flatten(argument: Pytree) -> tuple[list[Any], Any]:
    return jax.tree.flatten(argument, is_leaf=is_variable)


def _rebuilt(argument: Pytree, arrays: Iterator[Array]) -> Pytree:
    """`argument` with `arrays` in place of its tensors."""
    if (leaf := leaf_of(argument)) is not None:
        return leaf.wrap(next(arrays))
    parts, tree = _flatten(argument)
    leaves = [(part, in_pytree(part)) for part in parts]
    return tree.unflatten([part if leaf is None else leaf.wrap(next(arrays)) for part, leaf in leaves])


def _others(watcher: Recording, arguments: Sequence[TensorLike]) -> list[VariableLike]:
    of_arguments = {id(leaf.value) for x in arguments for leaf, _ in _with_gradients(x)}
    return [v for v, _ in watcher.variables.values() if id(v) not in of_arguments]


def _attach(call: _Call, function: custom_gradient, result: Nest, watcher: Recording) -> Nest:
    """`result` anew, as values whose gradient is the call's."""
    if call.variables and not _takes_variables(call.backward):
        why = f"since function uses variables: {list(call.variables)}"
        raise TypeError(f"@tf.custom_gradient grad_fn must accept keyword argument 'variables', {why}")
    flat = [(x, raw(x)) for x in nest.flatten(result)]
    outputs = [array for _, array in flat]
    inputs = [*call.given.arrays(), *_arrays_in(call.used)]
    _note_closed_over(watcher, inputs)
    results_inside = results_in(watcher)

    def pull(cotangents: Sequence[Array]) -> list[Array | None]:
        conjugates = [conjugate(c) for c in cotangents]  # the user's function keeps to TensorFlow's convention
        wrapped = [c if isinstance(x, jax.Array) else Tensor(c) for c, (x, _) in zip(conjugates, flat, strict=True)]
        return [None] * len(outputs) + [conjugate(x) for x in call.pull(wrapped)]

    capture = reading.context.capture
    if active.eager() or (capture is not None and capture.leave_out()):

        def again(*flat: Array) -> list[Array]:
            """The call anew at other inputs, for `as_function` and forward mode: traced, so its gradient goes with it."""
            try:
                return _anew(function, call.given, call.used, flat[len(outputs) :], results_inside)
            except (NoValueError, jax.errors.JAXTypeError) as error:
                raise NoValueError(_looks_at_values(function, error)) from error

        functools.update_wrapper(again, function)
        copy = functools.partial(_copies, len(outputs))
        op = PullbackOp(call.name, again, pull, copy, len(outputs))
        results = dispatch.run(op, (*outputs, *inputs))
    else:
        traced, closed_over = _traced(pull, outputs)
        outputs = [dispatch.run(_CUT, (x,)) for x in outputs]
        fn = functools.partial(_with_gradient, traced, len(outputs), len(inputs))
        code = getattr(inspect.unwrap(function), "__code__", None)
        results = dispatch.run(
            RuleOp(call.name, fn, code, len(outputs), len(inputs)), (*outputs, *inputs, *closed_over)
        )
    return _like(_outline(result), results)


class RuleOp(Op):
    """A call of a function with a gradient of the user's in a program that is traced: of its `results`, so many, of what it was
    `given`, and of what its gradient function closes over. `code`: the function's."""

    __slots__ = ("results", "given", "code")
    in_trace = True

    def __init__(self, name: str, fn: Callable, code: CodeType | None, results: int, given: int):
        super().__init__(name, fn, fn)
        self.code, self.results, self.given = code, results, given


def _looks_at_values(function: custom_gradient, error: Exception) -> str:
    line = line_of((code, -1)) if (code := getattr(inspect.unwrap(function), "__code__", None)) else None
    called = f"{function._name} ({line}), a function with a gradient of its own," if line else function._name
    why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    return (
        f"{called} looks at the values of what it is given, so JAX cannot trace it: as_function has no code for it, and its "
        f"jax.grad or jax.jit cannot run. {why}. Compute with tf or jnp functions in both of its parts, or let JAX call what "
        "needs NumPy: jax.pure_callback(numpy_function, jax.ShapeDtypeStruct(x.shape, x.dtype), x)"
    )


# To a tape no gradient goes by what the function ran, which may have none, as a `while_loop`. To JAX's own transformations
# the results are those of a `custom_vjp`: a second derivative goes that way.
_CUT = Op("stop_gradient", jax.lax.stop_gradient, jnp.copy, key=(jax.lax.stop_gradient, jnp.copy))


def _outline(structure: Nest) -> Nest:
    """`structure` with, for each of its leaves, whether it is a ``jax.Array``."""
    return nest.map_structure(lambda x: isinstance(x, jax.Array), structure)


def _like(outline: Nest, arrays: Sequence[Array]) -> Nest:
    """The `arrays` in the structure that `outline` describes; a tensor where the structure had no ``jax.Array``."""
    leaves = zip(arrays, nest.flatten(outline), strict=True)
    return nest.pack_sequence_as(outline, [y if is_array else Tensor(y) for y, is_array in leaves])


def _arrays_in(used: Iterable[reading.Used]) -> list[Array]:
    return [value for *_, value in used if isinstance(value, jax.Array)]


def _note_closed_over(watcher: Recording, inputs: Sequence[Array]) -> None:
    """Notes which arrays a call that `watcher` saw used beside its `inputs`: when it runs again, it uses the same ones."""
    own = {id(x) for x in (*inputs, *(x for entry in watcher.entries for x in entry.outputs))}
    used = [x for entry in watcher.entries for x in entry.inputs]
    used += [ref() for mark in watcher.marks if mark.kind == "closure" for ref in mark.about[1:]]
    reading.record_escape("closure", *[x for x in used if isinstance(x, jax.Array) and id(x) not in own])


def _takes_variables(backward: Callable) -> bool:
    parameters = inspect.signature(backward).parameters.values()
    return any(p.name == "variables" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _anew(
    fn: Callable, arguments: _Arguments, used: Sequence[reading.Used], arrays: Sequence[Array], results: Sequence
) -> list:
    """What `fn` gives at other arrays of its arguments and of what it uses, as raw arrays. `results`: of what is opaque in it."""
    count = len(arrays) - len(_arrays_in(used))
    with reading.context.setting(results=iter(results)):
        result = reading.holding(used, iter(arrays[count:]), arguments.call_with, fn, iter(arrays[:count]))
    return [raw(x) for x in nest.flatten(result)]


def _copies(count: int, *arrays: Array) -> list[Array]:
    return [jnp.copy(x) for x in arrays[:count]]


class _Traced(NamedTuple):
    """A backward function: a jaxpr, and for each argument whether it gives a gradient."""

    jaxpr: JaxProgram
    connected: list[bool]


def _traced(pull: Callable, outputs: Sequence[Array]) -> tuple[_Traced, list[Array]]:
    """A backward function, traced, and the values that it closes over."""
    connected: list[bool] = []

    def backward(*cotangents: Array) -> list[Array]:
        gradients = pull(cotangents)[len(outputs) :]
        connected[:] = [x is not None for x in gradients]
        return [x for x in gradients if x is not None]

    with reading.as_constants(), active.outside():
        closed = jax.make_jaxpr(backward)(*outputs)
    return _Traced(closed.jaxpr, connected), closed.consts


def _with_gradient(traced: _Traced, outputs: int, inputs: int, *flat: Array) -> list[Array]:
    """The outputs again, through a `jax.custom_vjp` whose backward pass is the traced one."""

    @jax.custom_vjp
    def call(results, arguments, closed_over):
        return results

    def forward(results, arguments, closed_over):
        return results, closed_over

    def backward(closed_over, cotangents):
        of_connected = iter(eval_jaxpr(traced.jaxpr, closed_over, *cotangents))
        return None, [next(of_connected) if yes else None for yes in traced.connected], None

    call.defvjp(forward, backward)
    end = outputs + inputs
    return call(list(flat[:outputs]), list(flat[outputs:end]), list(flat[end:]))


def recompute_grad(f: Callable) -> Callable:
    """`f` with its intermediate values computed again in the backward pass instead of kept, as `jax.checkpoint` does.

    On values `f` runs as Python both times. The second time it finds variables and random states as it found them the first
    time, so it computes the same, and what it assigns is undone: state changes once.

    Args:
      f: a function of tensors; it may read and assign variables, Keras's included, and draw random numbers.

    >>> import tapejax as tf
    >>> x = tf.Variable(2.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.recompute_grad(lambda a: a * a * a)(x)
    >>> print(tape.gradient(y, x).numpy())
    12.0
    """
    name = getattr(f, "__name__", "recompute_grad")

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Nest:
        call = _Arguments.of(f, args, kwargs)
        if reading.context.capture is not None:
            return _recomputed_in_program(name, call)
        watcher = Recording()
        with reading.using() as places:
            result = active.alone([watcher], call.call)
        used = [_noted(watcher, *place) for place in places.values()]
        held = [place for place in used if isinstance(place[2], jax.Array)]
        arguments, state = call.arrays(), [value for *_, value in held]
        inputs = [*arguments, *state]
        _note_closed_over(watcher, inputs)
        results_inside = results_in(watcher)

        def again(*arrays: Array) -> list[Array]:
            return _anew(f, call, used, arrays, results_inside)

        def pull(cotangents: Sequence[Array]) -> list[Array | None]:
            recording = Recording(watch_accessed=False)
            fresh = [operation.apply(jnp.copy, x) for x in arguments]  # one value may have come as two arguments
            for x in fresh:
                recording.watch(x)
            for holder, _, value in held:
                recording.watch(value, holder)
            targets = active.also(recording, again, *fresh, *state)
            sources = [*fresh, *(Source(value, holder) for holder, _, value in held)]
            query = Query(recording, targets, sources)
            gradients = query.derivative(
                lambda program, values: derivative.run_sweep(sweep, program, values, cotangents)
            )
            return [None] * len(targets) + [  # zeros where they are not connected, as in TensorFlow
                operation.apply(jnp.zeros_like, x) if g is None and has_tangent(x) else g
                for g, x in zip(gradients, inputs, strict=True)
            ]

        if active.eager():  # as Python, once more
            results = [raw(x) for x in nest.flatten(result)]
            count, remat = len(results), jax.checkpoint(again)
            op = PullbackOp(name, lambda *flat: remat(*flat[count:]), pull, functools.partial(_copies, count), count)
            outputs = dispatch.run(op, (*results, *inputs))
        else:
            fn = jax.checkpoint(again)
            outputs = dispatch.run(Op(name, fn, fn), inputs)
        return _like(_outline(result), outputs)

    return checkpointed


def _noted(watcher: Recording, holder: Any, attribute: str, value: Any) -> reading.Used:
    """Notes on the tapes here that a variable that `watcher` watches was read and held `value`."""
    if id(holder) in watcher.variables:
        value = reading.note_read(holder, value, lambda new: setattr(holder, attribute, new))
    return holder, attribute, value


def _recomputed_in_program(name: str, arguments: _Arguments) -> Nest:
    """The call of a `recompute_grad` function in a `function`: traced, with the state that it uses as further inputs."""
    outlines: list[Nest] = []

    def body(*arrays: Array) -> list[Array]:
        result = arguments.call_with(arguments.fn, iter(arrays))
        outlines.append(_outline(result))
        # zeros for what does not count, as in TensorFlow
        return connected([raw(x) for x in nest.flatten(result)], arrays)

    arrays = arguments.arrays()
    staged = staged_after_creation(body, arrays, name, transform=jax.checkpoint)
    staged.constants = [dispatch.run(_CUT, (x,)) if isinstance(x, jax.Array) else x for x in staged.constants]
    return _like(outlines[-1], staged.run(arrays)[: staged.outputs])


def grad_pass_through(f: Callable) -> Callable:
    """`f` with the identity as its gradient: cotangents of its results are passed on to its arguments.

    Raises:
      ValueError (when differentiated): `f` does not have as many results as arguments.

    >>> import tapejax as tf
    >>> x = tf.Variable(1.3)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.grad_pass_through(tf.round)(x) * 2.0
    >>> print(tape.gradient(y, x).numpy())
    2.0
    """

    @custom_gradient
    def passing(*args: Any, **kwargs: Any) -> tuple[Nest, Callable]:
        def backward(*dys: Tensor, variables: Sequence[VariableLike] = ()) -> tuple:
            return (dys, [None] * len(variables)) if variables else dys

        return f(*args, **kwargs), backward

    return passing
