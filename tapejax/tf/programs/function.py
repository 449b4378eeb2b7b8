"""``tf.function``: `jax.jit` with the Variables that the Python function reads and assigns threaded through.

A call looks its program up under the key of its arguments (`signatures`); a new key traces the Python function once
(`staging`). The program is one operation to the tapes around it, and an ordinary one: it may be differentiated any number of
times, and run under any JAX transformation.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import logging
import traceback
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ...jaxprs.fence import trace_context
from ...places import serves
from ...tape import active
from ..ops.numerics import checks_numerics
from ..ops.table import accepting
from ..values import nest, reading, replicas
from ..values.conversion import is_array_like
from ..values.dtypes import requested
from ..values.errors import DTypeError, OperatorNotAllowedInGraphError, OutOfRangeError, PythonNeeded
from ..values.missing import no_attribute
from ..values.names import name_scope
from ..values.reading import inside_function
from ..values.settings import settings
from ..values.staging import Staged, abstract, derivative_possible, init_scope, tracing
from ..values.structures import is_variable
from ..values.tensor import Tensor
from ..values.types import Array, Nest, VariableLike
from . import autograph, graphs
from .inputs import Elements
from .signatures import (
    Argument,
    Arguments,
    Keywords,
    Spec,
    TensorSpec,
    alive,
    cast,
    check_signature,
    describe,
    flatten_result,
    in_words,
    of_known_ranks,
    rebuild,
    symbolic_inputs,
)

__all__ = ["ConcreteFunction", "Function", "TensorSpec", "function", "init_scope", "inside_function"]

_LOGGER = logging.getLogger("tapejax")


def run_functions_eagerly(run_eagerly: object) -> None:
    """Makes every `function` run as the Python function that it decorates, so that it can be debugged; or compile again.

    >>> import tapejax as tf
    >>> @tf.function
    ... def f(x):
    ...     print("value", x.numpy())
    ...     return x
    >>> tf.config.run_functions_eagerly(True)
    >>> _ = f(tf.constant(1.0))
    value 1.0
    >>> tf.config.run_functions_eagerly(False)
    """
    settings["run_functions_eagerly"] = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether `run_functions_eagerly` is in force."""
    return settings["run_functions_eagerly"]


@accepting(
    "jit_compile reduce_retracing experimental_implements experimental_autograph_options "
    "experimental_attributes experimental_relax_shapes experimental_compile experimental_follow_type_hints",
    reduce_retracing=False,
)
def function(
    func: Callable | None = None, input_signature: Sequence[Spec] | None = None, autograph: object = True
) -> Any:
    """Compiles a Python function of tensors: it runs once for each kind of arguments, and from then on as one program.

    A decorator, with or without arguments. Tensors are inputs, by shape and dtype; Python numbers, strings and other objects
    count by value, a new one traces again. Variables that the function reads or assigns, Keras's too, keep their state as if it
    were Python; ones that it creates it may create on its first call only.

    Control flow is Python's, while tracing. Where it depends on a tensor's value (``if x > 0:``, ``while``, ``for i in
    tf.range(n)``, ``break``, ``and`` ...) it is converted if the extra ``tapejax[autograph]`` is installed; without it, use
    `tf.cond` and `tf.while_loop`.

    Args:
      func: the function, a method or any callable.
      input_signature: a list of (nested) `TensorSpec` for the first arguments, which are converted and must fit.
      autograph: whether control flow is converted, in `func` and in what it calls of the user's functions.
      jit_compile, reduce_retracing, experimental_...: taken for TensorFlow's sake.

    Raises (when called):
      TypeError: the arguments do not fit the function or its `input_signature`, one cannot be hashed, or the function returns
        what is not a tensor.
      OperatorNotAllowedInGraphError: Python asks for the truth of a tensor that is being traced.
      ValueError: variables are created on a later call.

    >>> import tapejax as tf
    >>> total = tf.Variable(0.0)
    >>> @tf.function
    ... def add(x):
    ...     print("tracing")
    ...     return total.assign_add(x)
    >>> print(add(tf.constant(1.0)).numpy(), add(tf.constant(2.0)).numpy())
    tracing
    1.0 3.0

    After ``tf.function``; the program is `jax.jit`'s.
    """
    signature = check_signature(input_signature)
    if func is None:
        return lambda decorated: Function(decorated, signature, bool(autograph))
    if isinstance(func, (classmethod, staticmethod)):
        return type(func)(Function(func.__func__, signature, bool(autograph)))
    return Function(func, signature, bool(autograph))


class Function:
    """A compiled function, made by `function`."""

    def __init__(self, python_function: Callable, input_signature: tuple | None = None, autograph: bool = True):
        if not callable(python_function):
            raise TypeError(f"tf.function decorates callables, got {python_function!r}")
        self.python_function = python_function
        self.input_signature = input_signature
        self.autograph = autograph
        self._binding = Binding(_signature(python_function), input_signature)
        self._programs: dict[Hashable, TracedProgram] = {}
        self._as_python: set[Hashable] = set()  # calls that cannot be traced
        self._recorded = False  # whether it calls `tf.gradients`
        self._concrete: dict[Hashable, ConcreteFunction] = {}
        self._methods: dict[int, tuple[Callable[[], object], Function]] = {}
        self._traces = 0
        functools.update_wrapper(self, python_function)
        self.name = self.__name__ = getattr(python_function, "__name__", type(python_function).__name__)

    def __get__(self, instance: object, owner: type | None = None) -> Function:
        """The function of a method: each instance has programs, and variables to create, of its own."""
        if instance is None:
            return self
        method = self._methods.get(id(instance))
        if method is not None and method[0]() is instance:
            return method[1]
        methods, key = self._methods, id(instance)
        if method is not None:
            methods.pop(key, None)
        try:
            reference: Callable[[], object] = weakref.ref(instance, lambda _: methods.pop(key, None))
        except TypeError:  # no weak reference is possible: it lives as long as this function
            reference = lambda: instance  # noqa: E731
        bound = Function(_Method(self.python_function, reference), self.input_signature, self.autograph)
        return methods.setdefault(key, (reference, bound))[1]

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        if settings["run_functions_eagerly"]:
            return self.python_function(*args, **kwargs)
        if replicas.place.running:  # a part of the replica's program: what it assigns may differ between replicas
            return self._run(args, kwargs)
        return self._call(*self._binding.bind(args, kwargs))

    def _call(self, args: Arguments, kwargs: Keywords) -> Nest:
        key, arrays = self._key(args, kwargs)
        if checks_numerics() and not active.staging():
            return self._run_as_python(args, kwargs, arrays)
        program = self._programs.get(key)
        if program is None:
            try:
                if key in self._as_python and not active.staging():
                    return self._run_as_python(args, kwargs, arrays)
                pairs = [_twice(x) for x in args]
                args = [again for _, again in pairs]
                program = self._trace(key, [x for x, _ in pairs], kwargs, arrays)
            except PythonNeeded as reason:
                if active.staging():  # the function that is being traced around this one runs as Python, too
                    raise
                _LOGGER.info("tf.function %s runs as Python: %s", self.name, reason)
                self._as_python.add(key)
                self._traces += 1
                return self._run_as_python(args, kwargs, arrays)
        return program(arrays)

    def _run_as_python(self, args: Arguments, kwargs: Keywords, arrays: Sequence[Array | TensorSpec]) -> Nest:
        outputs: list[Array] = []
        left = iter(arrays)
        rebuilt = [rebuild(x, left) for x in args]

        def body() -> Nest:
            named = {name: rebuild(x, left) for name, x in kwargs.items()}
            return reading.run(True, self._unmodified, self._target(), rebuilt, named)

        try:
            returned = graphs.run(True, body) if self._recorded or checks_numerics() else body()
        except StopIteration as end:
            raise OutOfRangeError("End of sequence") from end
        return flatten_result(returned, outputs)(iter(outputs))

    def _target(self) -> Callable:
        return self.python_function.bound() if isinstance(self.python_function, _Method) else self.python_function

    def _run(self, args: Arguments, kwargs: Keywords) -> Any:
        """Calls the Python function, its control flow converted where it may depend on a tensor."""
        target = self._target()
        if self.autograph and autograph.INSTALLED and autograph.needed(target, args, kwargs):
            return self._unmodified(lambda *given, **named: autograph.call(target, given, named), args, kwargs)
        return self._unmodified(target, args, kwargs)

    def _unmodified(self, run: Callable, args: Arguments, kwargs: Keywords) -> Any:
        """``run(*args, **kwargs)``; what it did to the lists and dicts among them would be lost, for they are copies.

        Raises:
          ValueError: it has changed one.
        """
        arguments = dict(zip(self._binding.names(len(args)), args, strict=True)) | kwargs
        leaves = nest.flatten(arguments)  # kept, so that no other object gets the identity of one
        before = {name: _held(x) for name, x in arguments.items()}
        returned = run(*args, **kwargs)
        del leaves
        if changed := [name for name, x in arguments.items() if _held(x) != before[name]]:
            raise ValueError(
                f"{self.name}() should not modify its Python input arguments: {', '.join(changed)}. It has copies of its lists "
                "and dicts, so what it does to them is lost; modify a copy, and return it"
            )
        return returned

    def _key(self, args: Arguments, kwargs: Keywords) -> tuple[Hashable, list[Array | TensorSpec]]:
        """The key of a call, and its tensors."""
        arrays: list[Array | TensorSpec] = []
        key: list[Hashable] = [describe(x, arrays) for x in args]
        for name in kwargs:
            key.append((name, describe(kwargs[name], arrays)))
        key.append(trace_context())
        return tuple(key), arrays

    def _trace(
        self, key: Hashable, args: Arguments, kwargs: Keywords, arrays: Sequence[Array | TensorSpec]
    ) -> TracedProgram:
        with tracing:
            if (traced := self._programs.get(key)) is not None:  # traced by another thread meanwhile
                return traced
            program = self._new_program(args, kwargs, arrays, [_abstract(x) for x in arrays])
            if program.staged.portable:
                self._programs = {k: p for k, p in self._programs.items() if alive(k)}
                self._programs[key] = program
            return program

    def _new_program(
        self,
        args: Arguments,
        kwargs: Keywords,
        arrays: Sequence[Array | TensorSpec],
        inputs: Sequence[jax.ShapeDtypeStruct],
    ) -> TracedProgram:
        concrete = [x if is_array_like(x) else _zeros(x) for x in arrays]
        before = reading.context.variables_made
        program = TracedProgram(self, args, kwargs, inputs, concrete)
        self._traces += 1
        if reading.context.variables_made == before:
            return program
        # Variables were made, perhaps in an `init_scope`, as Keras makes them: where they are there the program may be another.
        if program.staged.created and self._programs:
            raise ValueError(
                f"Creating variables on a non-first call to a function decorated with tf.function ({self.name}): create them "
                "before it, or on its first call only."
            )
        program = TracedProgram(self, args, kwargs, inputs, concrete)
        if program.staged.created:
            raise ValueError(
                "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
                f"created once (`if self.v is None: self.v = tf.Variable(...)`), or created outside {self.name}."
            )
        self._traces += 1
        return program

    def _new_symbolic(self, args: Arguments, kwargs: Keywords) -> TracedProgram:
        """A program for all sizes that the specs leave open: JAX does not run such a one, but exports it.

        Raises what the last attempt raises, where JAX cannot trace the function without knowing the sizes.
        """
        failure: Exception | None = None
        for positional, named in of_known_ranks((tuple(args), kwargs)):
            _, specs = self._key(positional, named)
            for inputs in symbolic_inputs(specs):
                try:
                    return self._new_program(positional, named, specs, inputs)
                except Exception as error:
                    failure = error
        assert failure is not None
        raise failure

    # ---- looking at it ----

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The program for arguments like these. Tensors may be given as `TensorSpec`.

        Sizes may be None: then each size that occurs has its own program.

        Raises:
          TypeError: the arguments do not fit the function.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        args, kwargs = self._binding.bind(args, kwargs)
        key, _ = self._key(args, kwargs)
        if key not in self._concrete:
            self._concrete[key] = ConcreteFunction(self, args, kwargs)
        return self._concrete[key]

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function has been traced."""
        return self._traces

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """What the programs take and return, in words."""
        return "\n\n".join(self._binding.in_words(program) for program in self._programs.values())

    def __reduce__(self) -> tuple:
        """A copy, also in another process, has programs of its own: they are traced when it is called."""
        how = self.input_signature, self.autograph
        if isinstance(self.python_function, _Method):
            method: Any = self.python_function.bound()
            return _of_object, (Function(self.python_function.__wrapped__, *how), method.__self__)
        return Function, (self.python_function, *how)

    def __repr__(self) -> str:
        return f"<tapejax.function {self.name}{self._binding.signature or ''}>"


def _of_object(function: Function, instance: object) -> Function:
    """The function of a method, which keeps its object: a copy has nothing else that does."""
    method = function.__get__(instance)
    vars(method)["_instance"] = instance
    return method


class _Method:
    """A method whose object is not kept alive."""

    def __init__(self, method: Callable, reference: Callable):
        self.__wrapped__ = method
        self._reference = reference
        self.__name__ = getattr(method, "__name__", "method")
        self.__doc__ = method.__doc__
        signature = inspect.signature(method)
        self.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])

    def bound(self) -> Callable:
        instance = self._reference()
        if instance is None:
            raise ReferenceError(f"the object whose method {self.__name__} is called was deleted")
        return types.MethodType(self.__wrapped__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        return self.bound()(*args, **kwargs)


# ---- one program ----------------------------------------------------------------------------------------------------


class TracedProgram:
    """One trace of a function: the pure program, what it was traced with, and how to pack its results."""

    def __init__(
        self,
        function: Function,
        args: Arguments,
        kwargs: Keywords,
        inputs: Sequence[jax.ShapeDtypeStruct],
        arrays: Sequence[Array] = (),
    ):
        def body(*tracers: Array) -> list[Array]:
            left = iter(tracers)
            rebuilt = [rebuild(x, left) for x in args]
            named = {name: rebuild(x, left) for name, x in kwargs.items()}
            outputs: list[Array] = []
            # Scopes around the call, which may be another each time, do not count.
            with name_scope(""):
                result = graphs.run(function._recorded, lambda: function._run(rebuilt, named))
                self.pack = flatten_result(result, outputs)
            return outputs

        try:
            try:
                self.staged = Staged(body, inputs, function.name, arrays)
            except graphs.TapeNeeded:
                function._recorded = True
                self.staged = Staged(body, inputs, function.name, arrays)
        except jax.errors.ConcretizationTypeError as error:
            raise _not_allowed(function, error) from error
        again = functools.partial(Staged, body, inputs, function.name, differentiable=True)
        self._again = again if self.staged.incomplete else None  # else it would keep the arguments alive for nothing
        # The key of this program has their identity.
        self.given = [x for x in jax.tree.leaves((args, kwargs), is_leaf=is_variable) if is_variable(x)]
        specs = [_spec(x) for x in inputs]
        left = iter(specs)
        rebuilt = [rebuild(x, left) for x in args], {name: rebuild(x, left) for name, x in kwargs.items()}
        self.args, self.kwargs = tuple(map(_unwrapped, rebuilt[0])), dict(_unwrapped(rebuilt[1]))
        self._code = _code_of(function.python_function)
        self._note()

    def _note(self) -> None:
        if not self.staged.created and self._code is not None:
            self.staged.note_code(self._code)

    def __call__(self, arrays: Sequence[Array]) -> Nest:
        if self.staged.incomplete:
            if derivative_possible():
                self.complete()
            elif (capture := reading.context.capture) is not None:
                capture.mark_incomplete()
        return self.pack(iter(self.staged.run(arrays)))

    def complete(self) -> None:
        """Traces the function once more where its custom gradients were left out: a derivative may be asked for."""
        with tracing:  # another thread may be at it
            if self._again is not None:
                self.staged, self._again = self._again(), None
                self._note()

    @property
    def structured_outputs(self) -> Spec:
        """The results, with a spec for each tensor."""
        return _unwrapped(self.pack(iter([_spec(x) for x in self.staged.results])))

    @property
    def variables(self) -> tuple[VariableLike, ...]:
        return tuple(slot.holder for slot in self.staged.slots if is_variable(slot.holder))


def _twice(x: Argument) -> tuple[Argument, Argument]:
    """An argument for a trace, and for a run as Python after it: what it took of an iterator of Python's is there again."""
    if not isinstance(x, Iterator) or type(x).__module__ not in ("builtins", "itertools"):
        return x, x
    traced, again = itertools.tee(x)
    return traced, again


def _abstract(x: Array | TensorSpec) -> jax.ShapeDtypeStruct:
    if isinstance(x, TensorSpec):
        return jax.ShapeDtypeStruct(tuple(x.shape), requested(x.dtype))
    return abstract(x)


def _zeros(spec: TensorSpec) -> np.ndarray:
    return np.zeros(() if spec.shape.rank is None else [size or 1 for size in spec.shape], requested(spec.dtype))


def _spec(x: jax.ShapeDtypeStruct) -> TensorSpec:
    return TensorSpec([size if isinstance(size, int) else None for size in x.shape], x.dtype)  # None: a symbolic size


def _unwrapped(structure: Nest) -> Nest:
    # What was made with specs in place of arrays has some of them inside Tensors; objects are not kept alive.
    def leaf(x: Nest) -> Nest:
        if isinstance(x, Tensor):
            return x._array
        key = None if isinstance(x, TensorSpec) else describe(x, [])
        return key if isinstance(key, weakref.ref) else x

    return nest.map_structure(leaf, structure)


def _code_of(function: Any) -> types.CodeType | None:
    """The code that a call runs first; None where it is not Python's."""
    while not isinstance(function, types.FunctionType):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif isinstance(function, _Method):
            function = function.__wrapped__
        else:
            return getattr(inspect.getattr_static(type(function), "__call__", None), "__code__", None)
    return function.__code__


def _not_allowed(function: Function, error: Exception) -> OperatorNotAllowedInGraphError:
    """What is wrong in the user's terms: Python reads a value that does not exist while it is traced."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not serves(f.filename)]
    where = f' (File "{frames[-1].filename}", line {frames[-1].lineno}: `{frames[-1].line}`)' if frames else ""
    reason = autograph.why_not(error) if function.autograph else ""
    return OperatorNotAllowedInGraphError(
        f"Using a symbolic `tf.Tensor` as a Python value (`if`, `while`, `and`, bool(), int(), range() ...) is not allowed in "
        f"the tf.function {function.name!r}{where}: the function is traced once for all values, so there is none yet. Use "
        "tf.cond in place of `if`, tf.while_loop in place of `while`, tf.where to choose between tensors; or let it run eagerly, "
        f"with tf.config.run_functions_eagerly(True). {reason}".rstrip()
    )


# ---- binding --------------------------------------------------------------------------------------------------------

_PARAMETER = inspect.Parameter
_POSITIONAL = (_PARAMETER.POSITIONAL_ONLY, _PARAMETER.POSITIONAL_OR_KEYWORD)
_EMPTY = _PARAMETER.empty


class Binding:
    """Brings the arguments of a call into one form: by position where possible, defaults filled in, keywords sorted."""

    def __init__(self, signature: inspect.Signature | None, input_signature: tuple | None = None):
        self.signature, self.specs = signature, input_signature
        if signature is None:
            return
        parameters = list(signature.parameters.values())
        positional = [p for p in parameters if p.kind in _POSITIONAL]
        self._offset = 1 if positional and positional[0].name == "self" else 0  # specs leave it out
        self._defaults = [p.default for p in positional]
        self._variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self._required = sum(default is _EMPTY for default in self._defaults)
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        self._keywords = {p.name: p.default for p in keywords}
        self._needs_keywords = any(default is _EMPTY for default in self._keywords.values())
        if input_signature is not None:
            missing = [p.name for p in positional[self._offset + len(input_signature) :] if p.default is _EMPTY]
            if missing:
                raise TypeError(f"input_signature missing type constraint for {', '.join(missing)}")

    def bind(self, args: Arguments, kwargs: Keywords) -> tuple[tuple, Keywords]:
        """The arguments in their one form, cast to the input signature.

        Raises:
          TypeError: they do not fit the function or its signature.
        """
        try:
            args, kwargs = self._canonical(tuple(args), kwargs)
            return args if self.specs is None else self._cast(args), kwargs
        except TypeError as error:
            raise _unfit(error, args, kwargs, self.signature) from error

    def _canonical(self, args: tuple, kwargs: Keywords) -> tuple[tuple, Keywords]:
        if self.signature is None:
            return args, dict(sorted(kwargs.items()))
        if not kwargs and not self._needs_keywords and self._required <= len(args):
            if len(args) == len(self._defaults) or (self._variadic and len(args) > len(self._defaults)):
                return args, self._keywords
            if len(args) < len(self._defaults):
                return (*args, *self._defaults[len(args) :]), self._keywords
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, dict(sorted(bound.kwargs.items()))

    def _cast(self, args: tuple) -> tuple:
        specs: Any = self.specs
        start, stop = self._offset if self.signature is not None else 0, 0
        stop = start + len(specs)
        if len(args) < stop or (self._variadic and len(args) > stop):
            raise TypeError(f"{len(specs)} arguments, as in the input signature {specs}, not {len(args) - start}")
        return (*args[:start], *[cast(x, s) for x, s in zip(args[start:stop], specs, strict=True)], *args[stop:])

    def names(self, count: int) -> list[str]:
        """Names for `count` arguments by position."""
        parameters = () if self.signature is None else self.signature.parameters.values()
        names = [p.name for p in parameters if p.kind in _POSITIONAL]
        return names[:count] + [f"arg{i}" for i in range(len(names), count)]

    def in_words(self, program: TracedProgram) -> str:
        """What `program` takes and returns, as TensorFlow writes it."""
        pairs = zip(self.names(len(program.args)), program.args, strict=True)
        lines = [f"  {name} (POSITIONAL_OR_KEYWORD): {in_words(x)}" for name, x in pairs]
        lines += [f"  {name} (KEYWORD_ONLY): {in_words(x)}" for name, x in program.kwargs.items()]
        captures = [f"  {v.name}: {TensorSpec.from_tensor(v)}" for v in program.variables]
        return "\n".join(
            ["Input Parameters:", *(lines or ["  None"]), "Output Type:", f"  {in_words(program.structured_outputs)}"]
            + ["Captures:", *(captures or ["  None"])]
        )


def _signature(fn: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):  # a builtin does not say
        return None


def _held(structure: Nest) -> Any:
    """What a structure of lists and dicts holds, and where, by identity."""
    if not nest.is_nested(structure):
        return id(structure)
    return list(structure) if isinstance(structure, dict) else None, [_held(x) for x in nest._children(structure)]


def _unfit(error: TypeError, args: object, kwargs: object, signature: object) -> TypeError:
    return (DTypeError if isinstance(error, DTypeError) else TypeError)(
        f"Binding inputs to tf.function failed due to `{error}`. Received args: {args} and kwargs: {kwargs} for signature: "
        f"{signature}."
    )


# ---- concrete functions ---------------------------------------------------------------------------------------------


class ConcreteFunction:
    """The program of a `Function` for one signature. Made by `Function.get_concrete_function`; call it with tensors."""

    def __init__(self, function: Function, args: Arguments, kwargs: Keywords):
        self._function = function
        self._args = tuple(map(_spec_of, args))
        self._kwargs = {name: _spec_of(x) for name, x in kwargs.items()}
        key, specs = function._key(args, kwargs)
        self.symbolic = any(x.shape.rank is None or None in x.shape for x in map(TensorSpec.from_tensor, specs))
        self._known: TracedProgram | None = None
        if not self.symbolic:
            with contextlib.suppress(PythonNeeded):  # the function runs as Python, then
                self._known = function._programs.get(key)
                if self._known is None:
                    self._known = function._trace(key, args, kwargs, specs)
                    for slot in self._known.staged.slots:
                        if isinstance(slot.holder, Elements):
                            slot.holder.forget()
        names = function._binding.names(len(args))
        self._names, every = names, dict(zip(names, self._args, strict=True)) | self._kwargs
        # Python lets all of them be left out; parameters that are not tensors have a value.
        kinds = [_PARAMETER.POSITIONAL_OR_KEYWORD] * len(names) + [_PARAMETER.KEYWORD_ONLY] * len(kwargs)
        parameters = [_PARAMETER(name, kind, default=None) for name, kind in zip(every, kinds, strict=True)]
        self._signature = inspect.Signature(parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        """Runs the program.

        Args:
          *args, **kwargs: tensors as in the signature; what it holds by value may be left out.

        Raises:
          TypeError: they do not fit the signature; DTypeError, which is InvalidArgumentError too, for a tensor of another dtype.
        """
        args, kwargs = self._complete(args, kwargs)
        if self.symbolic or self._known is None or checks_numerics():
            return self._function._call(args, kwargs)
        return self._program(self._function._key(args, kwargs)[1])

    @property
    def _program(self) -> TracedProgram:
        if self._known is None:
            self._known = self._function._new_symbolic(self._args, self._kwargs)
        return self._known

    def _complete(self, args: tuple, kwargs: Keywords) -> tuple[tuple, Keywords]:
        try:
            arguments = self._signature.bind(*args, **kwargs).arguments
            named = {name: _given(name, spec, arguments) for name, spec in self._kwargs.items()}
            return tuple(_given(n, spec, arguments) for n, spec in zip(self._names, self._args, strict=True)), named
        except TypeError as error:
            raise _unfit(error, args, kwargs, self.structured_input_signature) from error

    @property
    def name(self) -> str:
        return self._function.name

    @property
    def function_type(self) -> str:
        return self._function._binding.in_words(self._program)

    @property
    def structured_input_signature(self) -> tuple[tuple, dict[str, Spec]]:
        """The arguments by position and by name, with a spec for each tensor."""
        args = tuple(_with_name(x, name) for name, x in zip(self._names, self._args, strict=True))
        return args, {name: _with_name(x, name) for name, x in self._kwargs.items()}

    structured_outputs = property(lambda self: self._program.structured_outputs, doc="A spec for each tensor returned.")

    @property
    def inputs(self) -> list[TensorSpec]:
        return [x for x in nest.flatten(self.structured_input_signature) if isinstance(x, TensorSpec)]

    @property
    def outputs(self) -> list[TensorSpec]:
        return [x for x in nest.flatten(self.structured_outputs) if isinstance(x, TensorSpec)]

    @property
    def variables(self) -> tuple[VariableLike, ...]:
        """The variables that the program reads or assigns."""
        return self._program.variables

    @property
    def trainable_variables(self) -> tuple[VariableLike, ...]:
        return tuple(v for v in self.variables if v.trainable)

    def __getattr__(self, name: str) -> Any:
        no_attribute("ConcreteFunction", self, name)

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        return self.function_type

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.name} at {id(self):#x}>"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.function_type}"


def _given(name: str, spec: Argument, arguments: Keywords) -> Argument:
    """The argument of that name; what holds no tensor may be left out."""
    if name in arguments:
        return cast(arguments[name], spec)
    arrays: list[Array | TensorSpec] = []
    describe(spec, arrays)
    if arrays:
        raise TypeError(f"missing a required argument: {name!r}")
    return spec


def _spec_of(argument: Argument) -> Argument:
    tensors = Tensor, jax.Array, np.ndarray, np.generic
    return nest.map_structure(lambda x: TensorSpec.from_tensor(x) if isinstance(x, tensors) else x, argument)


def _with_name(argument: Argument, name: str) -> Argument:
    if isinstance(argument, TensorSpec):
        return argument if argument.name else TensorSpec.from_spec(argument, name)
    return argument
