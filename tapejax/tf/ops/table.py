"""How a pure function of arrays becomes a function with TensorFlow's face.

`operation` is the whole of it: the body says what is computed on raw arrays, and is compiled once per set of static
arguments; the decorator says which parameters are tensors and which dtypes they may have. What has no body of its
own is a row in a table: ``unary("sin", jnp.sin, "fc", "...")``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import cache
from ...jaxprs.cache import Cache
from ...jaxprs.fence import ConcreteArray, Tracer
from ...jaxprs.types import Value
from ...tape.operation import Op, op_of
from ..values import reading
from ..values.conversion import is_array_like, raw
from ..values.dtypes import DType, narrowed, requested
from ..values.errors import DTypeError, InvalidArgumentError, PythonNeeded
from ..values.operations import op, operands
from ..values.reading import read
from ..values.settings import settings
from ..values.tensor import Tensor, compute
from ..values.types import Array, AxisLike, IntLike, Nest, ShapeLike, TensorLike
from ..values.variable import Variable
from .sizes import Sizes, is_symbolic

# Kinds of dtypes, as letters: bool, signed int, unsigned int, float, complex. A capital is some of a kind's dtypes.
ANY, NUMBER, REAL, FIELD, FLOAT, INTEGER, BOOL = "biufc", "iufc", "iuf", "fc", "f", "iu", "b"
_SOME = {
    "F": ("float32", "float64"),
    "S": ("float16", "bfloat16", "float32"),
    "T": ("float32",),
    "H": ("int16",),
    "I": ("int32", "int64"),
    "J": ("int32",),
    "U": ("uint8", "uint16"),
}
_KIND_NAMES = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "floating", "c": "complex"} | {
    letter: ", ".join(names) for letter, names in _SOME.items()
}
# What a tensor is converted to that an operation does not take: the first of these that it does.
_CASTS = ("float32", "int32", "uint8", "complex64", "bool")
_DTYPE_ARGUMENTS = {"dtype", "out_type", "output_type", "index_type"}
_WHOLE_ARGUMENTS = set("axis block_size frame_length frame_step k n num_lower num_upper perm repeats".split())
# Of an operation of one tensor this many different options are found without a look at each.
CACHED_OPTIONS = 64
_HOST_DTYPES = {int: np.int32, float: np.float32, bool: np.bool_}
_ARRAYS = (Tensor, Variable, jax.Array, np.ndarray, np.generic)


_NUMPYS = frozenset(ANY)
_PARENTS = {"f": np.floating, "i": np.signedinteger, "u": np.unsignedinteger}  # of dtypes that NumPy knows nothing of


def kind_of(dtype: np.dtype) -> str:
    """The letter of a dtype's kind. bfloat16 is a float here, unlike in NumPy."""
    letter = getattr(dtype, "kind", "")  # the dtype of random keys has none
    if letter in _NUMPYS:
        return letter
    return next((kind for kind, parent in _PARENTS.items() if jnp.issubdtype(dtype, parent)), "?")


def is_of(dtype: np.dtype, kinds: str) -> bool:
    """Whether a dtype is one of `kinds`."""
    return kind_of(dtype) in kinds or any(dtype.name in _SOME.get(kind, ()) for kind in kinds)


def require_kind(name: str, array: Array, kinds: str, argument: str = "x") -> None:
    """Raises DTypeError for a dtype that the operation does not take: ``tf.sqrt`` of an integer.

    TensorFlow raises InvalidArgumentError or TypeError, by whether the check is its kernel's or Python's.
    """
    if not is_of(array.dtype, kinds):
        allowed = " or ".join(_KIND_NAMES[kind] for kind in kinds).replace("integer or unsigned integer", "integer")
        cast = next(dtype for dtype in _CASTS if is_of(np.dtype(dtype), kinds))
        cure = f"tf.cast({argument}, tf.{cast})"
        if cast == "bool":
            cure = f"compare it, as in {argument} > 0, or {cure}"
        elif kind_of(array.dtype) == "c":
            cure = f"tf.math.real({argument}), tf.math.imag({argument}) or tf.abs({argument})"
        elif kind_of(array.dtype) == "f":
            cure += ", which cuts off fractions" * (cast == "int32")
        raise DTypeError(f"{name}: {argument} must be of dtype {allowed}, got {array.dtype}. Convert it first: {cure}")


def integers(name: str, value: TensorLike, argument: str = "indices") -> Array:
    """The array of an argument that holds indices, which are of an integer dtype by themselves: floats are not rounded."""
    array = raw(value)
    require_kind(name, array, INTEGER, argument)
    return array


def _argument(name: str, value: TensorLike, argument: str, kinds: str = "") -> Array:
    """The array of an argument, which the error names."""
    try:
        # Where only bools will do, a Python number is a TypeError, a tensor of numbers an InvalidArgumentError.
        return raw(value, "bool") if kinds == BOOL and not is_array_like(value) else raw(value)
    except DTypeError as error:
        raise DTypeError(f"{name}: {argument}: {error}") from None


def agreeing(name: str, values: Sequence[TensorLike], kinds: str, arguments: Sequence[str]) -> list:
    """`operands` of an operation that takes `kinds`: where they do not agree, one of another kind is what is wrong."""
    try:
        return operands(*values)
    except DTypeError as error:
        for value, argument in zip(values, arguments, strict=False):
            require_kind(name, _argument(name, value, argument), kinds, argument)
        raise DTypeError(str(error).replace("an operation", name)) from None


def whole(value: Any, argument: str = "argument") -> Any:
    """`static` of what must be an integer, or lists of integers.

    Raises:
      DTypeError: it is a float, even 2.0: TensorFlow refuses these, too.
    """
    numbers = static(value, argument)
    if not all(isinstance(n, (int, np.integer)) or is_symbolic(n) for n in jax.tree.leaves(numbers)):
        raise DTypeError(_NOT_WHOLE.format(argument=argument, value=value))
    return numbers


_NOT_WHOLE = (
    "{argument} must be made of integers, got {value!r}. Divide integers by // in place of /, and convert others first: "
    "int(x), or of a tensor tf.cast(x, tf.int32)"
)


def static(value: Any, argument: str = "argument") -> Any:
    """`value` as something hashable that can be part of a compiled program: lists and small tensors become tuples."""
    if type(value) is tuple and all(type(item) is int for item in value):
        return value
    if isinstance(value, Sizes):
        numbers = value.sizes.tolist()
        return numbers if value.sizes.ndim == 0 else tuple(numbers)
    if isinstance(value, _ARRAYS):
        return host(value, argument).tolist() if np.ndim(value) == 0 else static(host(value, argument).tolist())
    if isinstance(value, DType):
        return value.dtype
    if isinstance(value, (list, tuple, range)):
        return tuple(static(item, argument) for item in value)
    return value


def host(value: TensorLike, argument: str = "argument") -> np.ndarray:
    """The value of a tensor as NumPy: for what decides about shapes, which JAX needs before it compiles."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if type(value) in _HOST_DTYPES:
        return np.asarray(value, _HOST_DTYPES[type(value)])
    array = raw(value)
    if isinstance(array, Tracer):
        raise PythonNeeded(
            f"{argument} must have a known value: the shape of the result depends on it. Got a tensor that JAX is "
            "tracing. Give a Python number or NumPy array, or compute it outside jit, vmap, grad and scan"
        )
    reading.record_escape("static", array)
    return np.asarray(array)


def known(array: Array) -> np.ndarray | None:
    """The values, where looking at them costs next to nothing; else None.

    As in TensorFlow, indices and divisors are checked on the CPU only.
    """
    if isinstance(array, jax.Array):
        if isinstance(array, Tracer) or next(iter(array.devices())).platform != "cpu":
            return None
    return np.asarray(array)


def shape_of(shape: ShapeLike, argument: str = "shape") -> tuple[int, ...]:
    """A shape argument (number, list, TensorShape, tensor, list with tensors in it) as a tuple of ints."""
    sizes = static(shape, argument)
    sizes = (sizes,) if not isinstance(sizes, tuple) else sizes
    for size in sizes:
        if not (isinstance(size, int) or is_symbolic(size)) or isinstance(size, bool):
            raise DTypeError(_NOT_WHOLE.format(argument=argument, value=shape))
    return sizes


def axis_of(axis: IntLike, rank: int, argument: str = "axis") -> int:
    """An axis counted from the front. Raises InvalidArgumentError when there is no such axis."""
    number = int(whole(axis, argument))
    if not -rank <= number < rank:
        raise InvalidArgumentError(f"{argument}={number} is out of range: there are axes {-rank}..{rank - 1}")
    return number % rank


def axes_of(axis: AxisLike | None, rank: int) -> tuple[int, ...]:
    """The axes of a reduction; None means all of them."""
    if axis is None:
        return tuple(range(rank))
    axis = whole(axis, "axis")
    axes = tuple(axis_of(one, rank) for one in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) < len(axes):
        raise InvalidArgumentError(f"axis={axis} names an axis twice")
    return axes


def wide(dtype: str) -> np.dtype:
    """A 64-bit dtype that TensorFlow picks by itself (argmax, int / int): narrowed without a warning."""
    return narrowed(np.dtype(dtype))


def run(fn: Callable, name: str, arrays: Sequence[TensorLike], kinds: str, names: Sequence[str], **options: Any) -> Any:
    """Runs `fn` on tensors, its arguments `names`, that must agree in dtype."""
    arrays = agreeing(name, arrays, kinds, names) if len(arrays) > 1 else [_argument(name, arrays[0], names[0])]
    if kinds != ANY:
        i = next(i for i, array in enumerate(arrays) if hasattr(array, "dtype"))
        require_kind(name, arrays[i], kinds, names[i])
    return op(fn, *arrays, **options)


def operation(tensors: str, kinds: str = ANY, agree: bool = True) -> Callable[[Callable], Callable[..., Any]]:
    """Makes a public function out of a body on raw arrays.

    Args:
      tensors: the names of the parameters that are tensors; the others are static. They come first in the signature.
      kinds: the kinds of dtype that the first tensor may have; of tensors that need not agree, a word for each, or for the first.
      agree: whether the tensors must be of one dtype.

    The public function has one parameter more, `name`, which is accepted and ignored, as everywhere.
    """

    def decorate(fn: Callable) -> Callable[..., Any]:
        signature = inspect.signature(fn)
        count = len(tensors.split())
        names = list(signature.parameters)
        defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}
        plain = {key: _option(key, value) for key, value in defaults.items() if key in names[count:]}
        complete = len(plain) == len(names) - count
        ready: Cache[Callable[[Array], Any]] = Cache(CACHED_OPTIONS)  # what runs the body of one tensor, by the options
        public_signature = _with_name(signature, names[:count])
        public_names = list(public_signature.parameters)
        allowed, required, each = set(public_names), set(names) - set(defaults), kinds.split()

        def public(*args, **kwargs):
            key = _plain_key(args, kwargs) if count == 1 else None
            if key is not None and (run_on := ready.peek(key)) is not None:
                return run_on(args[0]._array)
            if complete and not kwargs and len(args) == count:
                arrays, options = args, plain
            else:
                arguments = dict(zip(public_names, args, strict=False)) | kwargs
                if len(arguments) != len(args) + len(kwargs) or not required <= arguments.keys() <= allowed:
                    _bound(public_signature, fn.__name__, args, kwargs)  # raises the TypeError
                arrays = [arguments[key] for key in names[:count]]
                options = {
                    key: _option(key, arguments[key]) if key in arguments else plain[key] for key in names[count:]
                }
            if key is not None:
                ready.get(key, _of_one, fn, fn.__name__, kinds, options, names[0])
            if agree or count == 1:
                return run(fn, fn.__name__, arrays, kinds, names, **options)
            arrays = [_argument(fn.__name__, array, argument) for array, argument in zip(arrays, names, strict=False)]
            for array, own, argument in zip(arrays, each, names, strict=False):
                require_kind(fn.__name__, array, own, argument)
            return op(fn, *arrays, **options)

        public = functools.wraps(fn)(public)
        public.__signature__ = public_signature  # type: ignore[attr-defined]
        return public

    return decorate


_PLAIN = {int, bool, str, type(None)}


def _plain_key(args: tuple, kwargs: dict[str, Any]) -> Hashable:
    """What `operation` finds the options by, where a tensor comes with plain values; else None."""
    if len(args) == 1 and not kwargs:
        return () if type(args[0]) is Tensor else None
    values = (*args[1:], *kwargs.values())
    if not args or type(args[0]) is not Tensor or "name" in kwargs or not _PLAIN.issuperset(map(type, values)):
        return None
    # A name of a dtype means another one where 64-bit types are off.
    return (wide("int64"), *kwargs, *values, *map(type, values))


def accepting(names: str, **defaults: Any) -> Callable[[Callable], Callable[..., Any]]:
    """Decorator: the function also takes these parameters, in this order; parameters that it does not define are ignored.

    >>> import inspect
    >>> inspect.signature(accepting("deep name", deep=False)(lambda x: x))
    <Signature (x, deep: 'Ignored' = False, name: 'Ignored' = None)>
    """

    def decorate(fn: Callable) -> Callable[..., Any]:
        own, kind = inspect.signature(fn), inspect.Parameter.POSITIONAL_OR_KEYWORD
        order = [name for name in own.parameters if name not in names.split()] + names.split()
        others = {n: inspect.Parameter(n, kind, default=defaults.get(n), annotation="Ignored") for n in order}
        public = own.replace(parameters=[own.parameters.get(name, others[name]) for name in order])

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            arguments = public.bind(*args, **kwargs).arguments
            return fn(**{name: x for name, x in arguments.items() if name in own.parameters})

        call.__signature__ = public  # type: ignore[attr-defined]
        return call

    return decorate


def _option(name: str, value: Any) -> Any:
    if name in _DTYPE_ARGUMENTS and value is not None:
        return requested(value)
    return (whole if name in _WHOLE_ARGUMENTS else static)(value, name)


def _with_name(signature: inspect.Signature, tensors: Sequence[str] = ()) -> inspect.Signature:
    parameters = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD, annotation="TensorLike" if p.name in tensors else p.annotation)
        for p in signature.parameters.values()
    ]
    extra = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="str | None")
    returns = "Tensor" if signature.return_annotation is signature.empty else signature.return_annotation
    return signature.replace(parameters=[*parameters, extra], return_annotation=returns)


class Sparse:
    """What holds values and their places: the functions of `_OF_VALUES` give the same with other values."""

    values: Tensor
    _sizes: tuple[int, ...]

    def with_values(self, new_values: TensorLike) -> Sparse:
        """Other values in the same places."""
        raise NotImplementedError


# The elementwise functions that TensorFlow has for sparse tensors, too
_OF_VALUES = "abs asin asinh atan atanh bessel_i0e bessel_i1e erf negative sign sin sqrt square tan tanh".split()


def unary(
    name: str, fn: Callable, kinds: str = FIELD, doc: str = "", argument: str = "x", unchanged: str = ""
) -> Callable[..., Tensor]:
    """A public function of one tensor, elementwise. `fn` must be a stable object: a ``jnp`` function for one.

    A tensor of the kinds in `unchanged` is the result itself, as in TensorFlow: an integer's gradient passes, too.
    """
    _show(name, fn)

    def public(x: TensorLike, name: str | None = None) -> Tensor:
        if isinstance(x, Sparse) and sparse:
            return x.with_values(public(x.values))  # type: ignore[return-value]
        array = x._array if type(x) is Tensor else _argument(public.__name__, x, argument, kinds)
        if unchanged and kind_of(array.dtype) in unchanged:
            require_kind(public.__name__, array, kinds, argument)
            return Tensor(array)
        return run_on(array)

    run_on, sparse = _of_one(fn, name, kinds, {}, argument), name in _OF_VALUES
    return named(public, name, doc + _takes(kinds), {"x": argument})


def _of_one(fn: Callable, name: str, kinds: str, static: dict[str, Any], argument: str) -> Callable[[Array], Nest]:
    """``fn(array, **static)`` as a function of one array, which must be of these `kinds`."""
    ready, keep = _ops_of(fn)

    def run_on(array: Array) -> Nest:
        dtype = array.aval.dtype if type(array) is ConcreteArray else None
        op = ready.get(dtype)
        if op is None or cache.shadow is not None:
            if kinds != ANY:
                require_kind(name, array, kinds, argument)
            op = keep(dtype, static)
        return compute(op, (array,))

    return run_on


def _ops_of(fn: Callable) -> tuple[dict[Hashable, Op], Callable[[Hashable, dict[str, Any]], Op]]:
    """A table of the Ops that run `fn`, by the types that need no further check, and what puts one there: called with the key,
    None where there is none, and the static arguments."""
    ready: dict[Hashable, Op] = cache.table()

    def keep(key: Hashable, static: dict[str, Any]) -> Op:
        op = op_of(fn, static)
        if key is not None and cache.shadow is None:
            ready[key] = op
        return op

    return ready, keep


def binary(
    name: str, fn: Callable, kinds: str = NUMBER, doc: str = "", arguments: tuple[str, str] = ("x", "y")
) -> Callable[..., Tensor]:
    """A public function of two tensors of one dtype, which broadcast."""
    _show(name, fn)

    ready, keep = _ops_of(fn)

    def first(x: TensorLike, y: TensorLike) -> Tensor:
        a, b = agreeing(public.__name__, (x, y), kinds, arguments)
        if kinds != ANY:
            decisive, argument = (a, arguments[0]) if hasattr(a, "dtype") else (b, arguments[1])
            require_kind(public.__name__, decisive, kinds, argument)
        same = a is x and b is y and {type(a), type(b)} <= _TOLD_BY_TYPE and not settings["promote_dtypes"]
        return compute(keep((_type_of(a), _type_of(b)) if same else None, {}), (a, b))

    public = by_types(ready, first)
    BINARY[public] = ready, first
    return named(public, name, doc + _takes(kinds), dict(zip("xy", arguments, strict=True)))


# The functions that `binary` made, with what `by_types` was given for each.
BINARY: dict[Callable, tuple[dict[Hashable, Op], Callable]] = {}
# Operands of these types are known to agree by type. An integer's value must be checked at each call.
_TOLD_BY_TYPE = {ConcreteArray, float, bool}


def by_types(ready: dict[Hashable, Op], first: Callable) -> Callable:
    """The function of two tensors or numbers that runs the Op in `ready` for their types, else ``first(x, y)``."""

    def public(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
        a = x._array if type(x) is Tensor else read(x) if type(x) is Variable else x
        b = y._array if type(y) is Tensor else read(y) if type(y) is Variable else y
        of_a = a.aval.dtype if type(a) is ConcreteArray else type(a)
        of_b = b.aval.dtype if type(b) is ConcreteArray else type(b)
        op = ready.get((of_a, of_b))
        return first(a, b) if op is None or cache.shadow is not None else compute(op, (a, b))

    return public


def _type_of(x: Value) -> np.dtype | type:
    return x.aval.dtype if type(x) is ConcreteArray else type(x)


def reduction(name: str, fn: Callable, kinds: str = NUMBER, doc: str = "") -> Callable[..., Tensor]:
    """A public function that reduces axes; ``fn(x, axis, keepdims)`` gets a tuple of axes."""
    _show(name, fn)

    def public(
        input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        is_tensor = type(input_tensor) is Tensor
        array = input_tensor._array if is_tensor else _argument(public.__name__, input_tensor, "input_tensor", kinds)
        plain = type(array) is ConcreteArray and (axis is None or type(axis) is int) and type(keepdims) is bool
        key = (array.aval.dtype, len(array.aval.shape), axis, keepdims) if plain else None
        op = ready.get(key)
        if op is None or cache.shadow is not None:
            require_kind(public.__name__, array, kinds, "input_tensor")
            static = {"axis": axes_of(axis, array.ndim), "keepdims": bool(keepdims)}
            op = keep(key, static)
        return compute(op, (array,))

    ready, keep = _ops_of(fn)
    return named(public, name, doc + _takes(kinds))


class later:  # noqa: N801
    """A module of functions that is imported when one of them is first called (``jax.scipy`` takes a while).

    >>> special = later("jax.scipy.special")
    >>> special.erf is special.erf, special.erf.__name__
    (True, 'erf')
    """

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> Callable:
        def function(*args, **kwargs):
            return getattr(importlib.import_module(self._module), name)(*args, **kwargs)

        setattr(self, name, renamed(name, function))  # always the same object: what is compiled is kept by it
        return function


def mask_as(dtype: np.dtype, mask: Value) -> Value:
    """1 and 0 for true and false: XLA would make a choice of a product with a converted mask, and hide a nan times 0."""
    return jnp.where(mask, jnp.ones((), dtype), jnp.zeros((), dtype))


def piecewise_linear(fn: Callable) -> Callable:
    """`fn` of one argument, elementwise and made of straight pieces, connected to it at every order, as in TensorFlow.

    To JAX the second derivative of such a function is no number at all, which would come out as None; to TensorFlow it is
    0. The derivative is JAX's, with a zero added that depends on the argument. It is chosen, not multiplied: an infinite
    cotangent does not become NaN in it.
    """

    @jax.custom_jvp
    @functools.wraps(fn)
    def connected(x, *rest):
        return fn(x, *rest)

    def derivative(primals, tangents):
        (x, *rest), (dx, *_) = primals, tangents
        y, dy = jax.jvp(lambda x: fn(x, *rest), (x,), (dx,))
        finite = jnp.where(jnp.isfinite(x), x, jnp.zeros_like(x))
        return y, dy + jnp.where(False, finite * dx, jnp.zeros_like(x))

    connected.defjvp(derivative)
    return connected


def renamed(name: str, fn: Callable) -> Callable:
    """`fn` under the name that the tape shows."""
    fn.__name__ = fn.__qualname__ = name
    return fn


def _show(name: str, fn: Callable) -> None:
    """The tape shows a function of this library's by the name of its first row; a ``jnp`` function keeps its own."""
    if fn.__name__.startswith(("_", "<")):
        renamed(name, fn)


def named(
    public: Callable[..., Tensor], name: str, doc: str, arguments: dict[str, str] | None = None
) -> Callable[..., Tensor]:
    renamed(name, public).__doc__ = doc
    if arguments and any(old != new for old, new in arguments.items()):
        return with_arguments(public, arguments)
    return public


def _takes(kinds: str) -> str:
    return "" if kinds == ANY else f"\n\nTakes {', '.join(_KIND_NAMES[kind] for kind in kinds)} tensors."


def _bound(signature: inspect.Signature, name: str, args: tuple, kwargs: dict[str, Any]) -> inspect.BoundArguments:
    """``signature.bind``, but of a name that is wrong and one that is missing the wrong one is told, as Python does."""
    if unknown := [key for key in kwargs if key not in signature.parameters]:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")
    return signature.bind(*args, **kwargs)


def with_arguments(public: Callable[..., Tensor], arguments: dict[str, str]) -> Callable[..., Tensor]:
    """`public` with other names for its arguments."""
    own = inspect.signature(public)
    others = own.replace(parameters=[p.replace(name=arguments.get(p.name, p.name)) for p in own.parameters.values()])
    required = sum(p.default is p.empty for p in own.parameters.values())

    @functools.wraps(public)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        if kwargs or len(args) != required:
            args = _bound(others, public.__name__, args, kwargs).args
        return public(*args)

    call.__signature__ = others  # type: ignore[attr-defined]
    return call
