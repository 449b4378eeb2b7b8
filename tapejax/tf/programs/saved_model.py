"""``tf.saved_model``: variables and compiled functions on disk, to be loaded where the Python code is not.

A saved model is a directory: ``saved_model.json`` describes the objects and what the functions take and return;
``variables-*.npz`` holds the arrays; ``functions/`` the programs, exported by `jax.export` (StableHLO). A program comes with its
derivatives, of the first and second order. Loading reads data only: nothing of a file is executed,
but for programs, by XLA, when they are called.

The other files are named after their content, and the description, which lists them, takes the place of the former one in one
step. So a directory always holds a whole model: the former one until the new one is complete.
"""

from __future__ import annotations

import collections
import hashlib
import inspect
import io
import itertools
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import contents
from ...jaxprs.fence import eval_jaxpr
from ...jaxprs.types import JaxProgram
from ...tape.operation import Op
from ..ops import random
from ..ops.generator import Generator
from ..values import keras_fence, nest
from ..values.dtypes import TensorShape
from ..values.errors import InvalidArgumentError, extra_missing
from ..values.staging import Compiled, JointOp, Slot
from ..values.structures import is_variable
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, Ignored, Nest, TensorLike, VariableLike
from ..values.variable import Variable
from .description import Format, Json, in_short
from .function import Binding, ConcreteFunction, Function
from .module import OWN, LoadedObject, Module, Trackable
from .signatures import Argument, Arguments, Keywords, Spec, TensorSpec, cast, describe, in_words, of_known_ranks

__all__ = ["SaveOptions", "contains_saved_model", "load", "save"]


def __dir__() -> list[str]:
    return sorted(__all__)


logger = logging.getLogger("tapejax")

MANIFEST = "saved_model.json"
FORMAT = Format("tapejax.saved_model", 1, "saved model in", OSError, "tapejax.saved_model.save", "Save it again")
PLATFORMS = ("cpu", "cuda", "tpu")
# Derivatives that are saved with a program: of the first and second order.
ORDERS = 2

Exported: TypeAlias = Any  # a jax.export.Exported, whose module is loaded when it is needed


class SaveOptions:
    """How `save` saves.

    Args:
      experimental_custom_gradients: whether the gradients of functions with a custom gradient are saved. Without them, asking
        the loaded function for its gradient raises `LookupError`.
      **others: TensorFlow's other options, which have no effect here.
    """

    experimental_custom_gradients: bool

    def __init__(self, *, experimental_custom_gradients: bool = True, **others: Any):
        vars(self).update(others, experimental_custom_gradients=bool(experimental_custom_gradients))


# ---- saving ---------------------------------------------------------------------------------------------------------


def save(
    obj: Trackable, export_dir: str | os.PathLike, signatures: Any = None, options: SaveOptions | None = None
) -> None:
    """Saves the variables and compiled functions of `obj`.

    Saved are variables, `function`s and modules among its attributes, also in lists, tuples and dicts; of a function the
    traces that it has, or the one of its `input_signature`. Other attributes are Python's and stay behind.

    Args:
      obj: a `Module`, a built model or layer of Keras, or what `load` returned.
      export_dir: a directory, made if it does not exist.
      signatures: a function with an input signature, or a dict of them, to be found in ``loaded.signatures``; they return
        tensors in a dict. By default, of Keras: its call, on ``inputs``.
      options: `SaveOptions`.

    Raises:
      ValueError: `obj` is none of these, or a function cannot be exported (it prints, or calls back into Python).
      AssertionError: a function reads a variable that is not an attribute of `obj` or of what it holds.

    >>> import tempfile
    >>> import tapejax as tf
    >>> module = tf.Module()
    >>> module.v = tf.Variable(2.0)
    >>> module.scale = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([None])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.saved_model.save(module, folder)
    ...     loaded = tf.saved_model.load(folder)
    >>> loaded.scale(tf.constant([1.0, 2.0])).numpy()
    array([2., 4.], dtype=float32)
    """
    if not (isinstance(obj, (Module, LoadedObject)) or _is_layer(obj)):
        raise ValueError(
            "Expected a tf.Module, a model or layer of Keras (or what tf.saved_model.load returned) for export, got "
            f"{obj!r} of type {type(obj).__name__}. Make it an attribute of a tf.Module."
        )
    if signatures is None and _is_layer(obj):
        signatures = _call_of(obj)
    _require_flatbuffers()
    _Saver(options or SaveOptions()).save(obj, Path(export_dir), signatures)


class _Saver:
    def __init__(self, options: SaveOptions):
        self._custom_gradients = options.experimental_custom_gradients
        self._nodes: list[Json] = []
        self._ids: dict[int, int] = {}  # by id of the object
        self._kept: list[object] = []  # what the ids belong to
        # exported when all variables are known
        self._functions: list[tuple[int, str, Function | ConcreteFunction | LoadedFunction]] = []
        self._arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}  # of the arrays, by id
        self._files: dict[str, bytes] = {}

    def save(self, obj: Trackable, folder: Path, signatures: Any) -> None:
        wanted = {key: _as_signature(key, concrete) for key, concrete in _signatures(obj, signatures).items()}
        before = _Saver(SaveOptions())
        before._node(obj, "root")
        # These trace, which may make variables: the objects are looked through after it.
        records = {id(function): self._function(function, path) for _, path, function in before._functions}
        records |= {id(signature): self._function(signature, f"signature {key!r}") for key, signature in wanted.items()}
        self._node(obj, "root")
        called = {}
        for key, signature in wanted.items():
            called[key] = self._add({"kind": "function"}, None)
            self._functions.append((called[key], f"signature {key!r}", signature))
        for number, path, function in self._functions:
            record = records.get(id(function)) or self._function(function, path)
            for program in record["programs"]:
                program["state"] = [self._slot(slot, path) for slot in program["state"]]
            self._nodes[number].update(record)
        self._file("variables-{}.npz", _npz(self._arrays))
        manifest = {
            "jax": jax.__version__,
            "nodes": self._nodes,
            "signatures": called,
            "dtypes": {name: np.dtype(x.dtype).name for name, x in self._arrays.items()},
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in self._files.items()},
        }
        _write(folder, self._files, json.dumps(FORMAT.seal(manifest), indent=1).encode())

    def _file(self, pattern: str, data: bytes) -> str:
        """The name under which a file with this content is written: the pattern with a part of its digest."""
        name = pattern.format(hashlib.sha256(data).hexdigest()[:16])
        self._files[name] = data
        return name

    # ---- objects ----

    def _add(self, node: Json, value: object) -> int:
        self._nodes.append(node)
        if value is not None:
            self._ids[id(value)] = len(self._nodes) - 1
            self._kept.append(value)
        return len(self._nodes) - 1

    def _node(self, value: Trackable, path: str) -> int | None:
        """The number of the node that stands for `value`; None where there is nothing to save."""
        if (saved := self._ids.get(id(value))) is not None:
            return saved
        if is_variable(value):
            return self._variable(value)
        if isinstance(value, (Function, ConcreteFunction, LoadedFunction)):
            number = self._add({"kind": "function"}, value)
            self._functions.append((number, path, value))
            return number
        if (content := _content(value)) is None:
            return None
        kind, items = content
        children: list = []
        number = self._add({"kind": kind, "children": children}, value)
        for key, item in items:
            child = self._node(item, f"{path}.{key}")
            if child is None and kind in ("list", "tuple"):  # the others keep their places
                child = self._add({"kind": "nothing"}, None)
            if child is not None:
                children.append([key, child])
        return number

    def _variable(self, variable: VariableLike) -> int:
        array = variable._array if isinstance(variable, Variable) else variable.__jax_array__()
        declared = getattr(variable, "_declared", None)
        node = {
            "kind": "variable",
            "array": self._named(array),
            "name": str(variable.name).removesuffix(":0"),
            "trainable": bool(getattr(variable, "trainable", True)),
            "shape": None if declared is None else _shape(declared),
            "any_shape": declared is not None and declared.rank is None,
        }
        return self._add(node, variable)

    # ---- functions ----

    def _function(self, function: Any, path: str) -> Json:
        if isinstance(function, LoadedFunction):
            raise ValueError(f"{path} was loaded from a saved model: its programs are in that directory, copy it.")
        owner = function
        if isinstance(function, Function) and function.input_signature is not None:
            function = function.get_concrete_function()
        if isinstance(function, ConcreteFunction):
            owner, traced = function._function, [(function._args, function._kwargs)]
        else:
            traced = [(p.args, p.kwargs) for p in function._programs.values()]
            traced += [(c._args, c._kwargs) for c in function._concrete.values() if c.symbolic]
        programs: list[Json] = []
        for args, kwargs in traced:
            try:
                programs += self._programs(owner, args, kwargs, path)
            except TypeError as error:
                logger.warning("A trace of %s is not saved, since it was called with %s", path, error)
        return {
            "name": owner.name,
            "parameters": _parameters(owner._binding.signature),
            "one_signature": owner.input_signature is not None,
            "programs": programs,
        }

    def _programs(self, function: Function, args: Arguments, kwargs: Keywords, path: str) -> list[Json]:
        """The program for these arguments; of some whose rank is unknown, one for each rank that they may have.

        Raises:
          TypeError: there is an object among the arguments.
        """
        programs: list[Json] = []
        failures: list[Exception] = []
        for positional, named in of_known_ranks((tuple(args), kwargs)):
            signature = {"args": _encode(list(positional)), "kwargs": _encode(named)}
            try:
                programs.append(self._program(function, positional, named) | signature)
            except AssertionError:
                raise
            except Exception as error:  # of this rank there is no program
                failures.append(error)
        if not programs:
            raise ValueError(
                f"{path} cannot be exported with the signature {in_words(tuple(args))}: {failures[0]} (Printing from a compiled "
                "program and calls back into Python cannot be saved.)"
            ) from failures[0]
        return programs

    def _program(self, function: Function, args: Arguments, kwargs: Keywords) -> Json:
        key, specs = function._key(args, kwargs)
        if any(None in spec.shape for spec in specs):
            program = function._new_symbolic(args, kwargs)
        else:
            program = function._programs.get(key) or function._trace(key, args, kwargs, specs)
        staged = program.staged
        custom = staged.incomplete or contents.contains(staged.lifted, "custom_vjp_call")
        if custom and not self._custom_gradients:
            data, _ = _exported(staged.lifted, 0)
            reason = "it has a custom gradient, and was saved without (SaveOptions(experimental_custom_gradients=True) keeps it)"
        else:
            program.complete()
            staged = program.staged
            data, reason = _exported(staged.lifted, ORDERS)
        return {
            "file": self._file("functions/{}.stablehlo", data),
            "reason": reason,
            "state": staged.slots,  # by their numbers in the end
            "changed": list(staged.changed),
            "constants": [self._named(x) for x in staged.constants],
            "results": _encode(program.pack(iter([_Result(i) for i in range(staged.outputs)]))),
            "outputs": staged.outputs,
        }

    def _named(self, array: Array) -> str:
        """The name under which `array` is saved."""
        name = self._names.setdefault(id(array), f"a{len(self._names)}")
        self._arrays[name] = array
        return name

    def _slot(self, slot: Slot, path: str) -> Json:
        if slot.holder is random.state:
            return {"random": slot.attribute}
        if isinstance(slot.holder, random.Counter):
            return {"random": "own", "seed": slot.holder.own}
        number = self._ids.get(id(slot.holder))
        if number is None:
            name = getattr(slot.holder, "name", slot.holder)
            raise AssertionError(
                f"Tried to export a function which references an 'untracked' resource: {path} reads variable {name!r}, which is "
                "no attribute of the object that is saved, nor of what it holds. Assign it to an attribute."
            )
        return {"variable": number}


def _content(value: Trackable) -> tuple[str, Iterable[tuple]] | None:
    """The kind of node for an object that holds others, and what it holds."""
    if isinstance(value, Mapping):
        return "dict", [(key, item) for key, item in value.items() if isinstance(key, (str, int))]
    if nest.is_sequence(value) and not isinstance(value, range):
        return "tuple" if isinstance(value, tuple) else "list", enumerate(value)
    if isinstance(value, (Module, LoadedObject)):
        return "object", _attributes(value)
    if isinstance(value, Generator):
        return "object", [("state", value.state)]
    if _is_layer(value):  # its `variables` leave out a tf.Variable
        held = [(name, x) for name, x in vars(value).items() if name == keras_fence.LAYERS or isinstance(x, Variable)]
        return "object", [("variables", list(value.variables)), *held, *_methods(value)]
    return None


def _is_layer(value: object) -> bool:
    keras: Any = sys.modules.get("keras")
    return hasattr(keras, "Layer") and isinstance(value, keras.Layer)


def _call_of(layer: Trackable) -> Function | None:
    """The call of a layer of Keras, for batches of any size; None where its inputs are not known yet."""
    names = (f"inputs_{number}" if number else "inputs" for number in itertools.count())

    def spec(shape: Sequence[int | None], dtype: DTypeLike) -> TensorSpec:
        return TensorSpec([None, *shape[1:]], dtype, next(names))

    if not layer.built:
        return None
    try:
        inputs = nest.map_structure(lambda x: spec(x.shape, x.dtype), layer.input)
    except AttributeError:  # it was called on values only
        if (shape := layer.get_build_config().get("input_shape")) is None:
            return None
        inputs = spec(shape, layer.compute_dtype)
    return Function(lambda inputs: nest.map_structure(Tensor, layer(inputs)), (inputs,))


def _attributes(value: Trackable) -> Iterator[tuple[str, Any]]:
    """What an object holds, and the compiled functions among its methods."""
    for name in sorted(vars(value)):
        if name not in OWN:
            yield name, vars(value)[name]
    yield from _methods(value)


def _methods(value: Trackable) -> Iterator[tuple[str, Any]]:
    for name in dir(type(value)):
        if isinstance(inspect.getattr_static(type(value), name), Function) and name not in vars(value):
            yield name, getattr(value, name)


def _signatures(obj: Trackable, signatures: Any) -> dict[str, ConcreteFunction]:
    if signatures is None:
        functions = [x for _, x in _attributes(obj) if isinstance(x, Function) and x.input_signature is not None]
        concrete = functions[0].get_concrete_function() if len(functions) == 1 else None
        try:
            if concrete is None or any(spec.shape.rank is None for spec in concrete.inputs):
                return {}
            _named_results(concrete.structured_outputs)
            return {"serving_default": concrete}
        except InvalidArgumentError:
            raise
        except ValueError:  # what it returns has no names: there is no default signature
            return {}
    if not isinstance(signatures, Mapping):
        signatures = {"serving_default": signatures}
    out = {}
    for key, function in signatures.items():
        if isinstance(function, Function):
            if function.input_signature is None:
                raise ValueError(
                    f"signatures[{key!r}] = {function!r} has no input signature: give it one, or pass "
                    "function.get_concrete_function(...)"
                )
            function = function.get_concrete_function()
        if not isinstance(function, ConcreteFunction):
            raise ValueError(f"signatures[{key!r}]: expected a tf.function or a concrete function, got {function!r}")
        out[key] = function
    return out


def _named_results(results: Nest) -> dict[str, Any]:
    if isinstance(results, Mapping) and all(isinstance(key, str) for key in results):
        named = dict(results)
    elif isinstance(results, (list, tuple)):
        named = {f"output_{i}": x for i, x in enumerate(results)}
    else:
        named = {"output_0": results}
    for name, x in named.items():
        if not isinstance(x, (Tensor, TensorSpec, jax.Array)):
            raise ValueError(f"a signature must return tensors by name or in a flat list; {name!r} is {x!r}")
    return named


def _as_signature(key: str, concrete: ConcreteFunction) -> Function:
    """`concrete` as a function of keywords that returns a dict."""
    specs = concrete.inputs
    names = [re.sub(r"\W", "_", spec.name or f"args_{i}") for i, spec in enumerate(specs)]
    wanted = concrete.structured_input_signature

    def signature(*tensors: TensorLike) -> dict[str, Any]:
        left = iter(tensors)
        args, kwargs = nest.map_structure(lambda x: next(left) if isinstance(x, TensorSpec) else x, wanted)
        return _named_results(concrete(*args, **kwargs))

    signature.__name__ = f"signature_{re.sub(r'[^A-Za-z0-9_]', '_', key)}"
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return Function(signature, tuple(TensorSpec.from_spec(spec, name) for spec, name in zip(specs, names, strict=True)))


def _exported(closed: JaxProgram, orders: int) -> tuple[bytes, str]:
    """The program with its derivatives, up to that order, serialized; and why there are no more derivatives."""
    from jax import export

    def plain(*flat: Array) -> list[Array]:
        return eval_jaxpr(contents.open_jaxpr(closed), closed.consts, *flat)

    inputs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in contents.open_jaxpr(closed).invars]
    reason = f"derivatives beyond order {orders} are not saved"
    while True:
        for platforms in (PLATFORMS, None):  # an operation may not be known on all of them
            try:
                exported = export.export(jax.jit(plain), platforms=platforms)(*inputs)
                return bytes(exported.serialize(vjp_order=orders)), reason
            except Exception as error:
                failure = error
        if not orders:
            raise failure
        orders, reason = orders - 1, str(failure).split("\n")[0]


# ---- loading --------------------------------------------------------------------------------------------------------


def contains_saved_model(export_dir: str | os.PathLike) -> bool:
    """Whether there is a saved model in a directory."""
    return (Path(export_dir) / MANIFEST).is_file()


def load(export_dir: str | os.PathLike, tags: Ignored = None, options: Ignored = None) -> Trackable:
    """What `save` saved in a directory: an object with the same variables, functions and objects as attributes.

    Its functions take what the saved ones were traced with; gradients flow through them, of the first and second order.

    Args:
      export_dir: the directory.
      tags, options: taken for TensorFlow's sake.

    Raises:
      FileNotFoundError: there is no saved model.
      OSError: there is something else, or files are missing, truncated or changed.
    """
    _require_flatbuffers()
    return _Loader(Path(export_dir)).load()


class CallableObject(LoadedObject):
    """A loaded object whose ``__call__`` was saved."""

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        return vars(self)["__call__"](*args, **kwargs)


class _Loader:
    def __init__(self, folder: Path):
        self._folder = folder
        self._manifest = _manifest(folder)
        self._made: dict[int, Trackable] = {}

    def load(self) -> Trackable:
        try:
            self._data = {name: self._file(name, digest) for name, digest in self._manifest["files"].items()}
            (variables,) = [name for name in self._data if name.startswith("variables")]
            self.arrays = _arrays(self._data[variables], self._manifest["dtypes"])
            root = self._node(0)
            root.signatures = {key: self._node(i) for key, i in self._manifest["signatures"].items()}
            return root
        except OSError:
            raise
        except Exception as error:  # any error that a wrong number, name or nesting causes
            raise FORMAT.damaged(self._folder, f"its content is inconsistent ({in_short(error)})") from error

    def _file(self, name: str, digest: str) -> bytes:
        path = self._folder / name
        if not re.fullmatch(r"variables(-[0-9a-f]{16})?\.npz|functions/[0-9a-f]+\.stablehlo", name):
            raise FORMAT.damaged(self._folder, f"{MANIFEST} names a file {name!r}")
        if not path.is_file():  # a pipe, or a device, has no end
            raise FORMAT.damaged(self._folder, f"{name} is missing")
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise FORMAT.damaged(self._folder, f"{name} is not what was written")
        return data

    def _node(self, number: int) -> Trackable:
        if number in self._made:
            return self._made[number]
        node = self._manifest["nodes"][number]
        made: Any
        children = ((key, self._node(child)) for key, child in node.get("children", ()))
        match node["kind"]:
            case "object":
                callable_ = any(key == "__call__" for key, _ in node["children"])
                made = self._made[number] = CallableObject() if callable_ else LoadedObject()
                vars(made).update(children)
            case "dict":
                made = self._made[number] = {}
                made.update(children)
            case "list":
                made = self._made[number] = []
                made.extend(child for _, child in children)
            case "tuple":
                made = tuple(child for _, child in children)
            case "nothing":
                made = None
            case "variable":
                shape, name = TensorShape(None) if node["any_shape"] else node["shape"], node["name"]
                made = Variable(self.arrays[node["array"]], node["trainable"], shape is None, name=name, shape=shape)
            case "function":
                programs = [_LoadedProgram(node["name"], program, self) for program in node["programs"]]
                made = LoadedFunction(node["name"], _signature(node["parameters"]), programs, node["one_signature"])
            case kind:
                raise KeyError(kind)
        self._made[number] = made
        return made

    def slot(self, reference: Json) -> Slot:
        if "variable" in reference:
            return Slot(self._node(reference["variable"]), "_array", None, None)
        if reference["random"] == "own":
            return Slot(random.state.apart(reference["seed"]), "count", None, None)
        return Slot(random.state, {"seed": "seed", "count": "count"}[reference["random"]], None, None)

    def exported(self, name: str) -> Exported:
        from jax import export

        try:
            exported = export.deserialize(bytearray(self._data[name]))
            levels = [exported]
            while levels[-1].has_vjp():
                levels.append(levels[-1].vjp())
            asks = [_CALLBACK.search(level.mlir_module()) for level in levels]
        except Exception as error:
            written = self._manifest.get("jax")
            raise OSError(
                f"JAX {jax.__version__} cannot read {name} of the saved model in {self._folder}, which JAX {written} wrote: "
                f"{str(error).splitlines()[0]}. A JAX reads what the same or an older version wrote."
            ) from error
        for callback in filter(None, asks):
            raise FORMAT.damaged(self._folder, f"{name} calls {callback[0]}, which `save` never writes")
        if jax.default_backend() not in [_PLATFORM_NAMES.get(p, p) for p in exported.platforms]:
            raise OSError(
                f"The saved model in {self._folder} was exported for {', '.join(exported.platforms)}; this is a "
                f"{jax.default_backend()}: save it again from here"
            )
        return exported


_PLATFORM_NAMES = {"cuda": "gpu", "rocm": "gpu"}
# How XLA calls Python: by an address that a program has in it.
_CALLBACK = re.compile(r"\b\w*python\w*callback\w*")


class LoadedFunction:
    """A function of a loaded model: the programs that were saved with it, one for each signature."""

    def __init__(
        self, name: str, signature: inspect.Signature | None, programs: Sequence[_LoadedProgram], one: bool = False
    ):
        self.name = self.__name__ = name
        self._one_signature = one
        self._signature, self._binding = signature, Binding(signature)
        self._programs = programs

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        """Runs the program whose signature the arguments fit.

        Raises:
          ValueError: there is none.
          TypeError: the arguments do not fit the function's parameters, or its input signature if it has one.
        """
        if not self._programs:
            raise ValueError(f"Found zero restored functions for caller function: {self.name} was saved untraced.")
        arguments = self._binding.bind(args, kwargs)
        for program in self._programs:
            arrays = program.match(*arguments)
            if arrays is not None:
                return program(arrays)
        options = "\n".join(f"  {in_words(program.args)} {in_words(program.kwargs)}" for program in self._programs)
        raise (TypeError if self._one_signature else ValueError)(
            f"Could not find matching concrete function to call loaded from the SavedModel: {self.name} was called with "
            f"{arguments[0]} and {arguments[1]}. Expected one of:\n{options}"
        )

    @property
    def structured_input_signature(self) -> tuple[tuple, dict[str, Spec]]:
        """The arguments of the first program; a signature takes them by name."""
        names = self._signature.parameters if self._signature else ()
        return (), dict(zip(names, self._programs[0].args, strict=False))

    structured_outputs = property(lambda self: self._programs[0].structured_outputs)

    def __repr__(self) -> str:
        return f"<loaded function {self.name}{self._signature or ''}>"


class _LoadedProgram:
    """One saved trace: what it takes, and the program."""

    def __init__(self, name: str, record: Json, loader: _Loader):
        self.args = tuple(_decode(record["args"]))
        self.kwargs = _decode(record["kwargs"])
        self._results = record["results"]
        self._compiled = _LoadedCompiled(
            name,
            loader.exported(record["file"]),
            record["reason"],
            slots=[loader.slot(reference) for reference in record["state"]],
            changed=record["changed"],
            constants=[jnp.asarray(loader.arrays[name]) for name in record["constants"]],
            outputs=record["outputs"],
        )

    def match(self, args: tuple, kwargs: Keywords) -> list[Array] | None:
        """The arrays among the arguments, if they fit; else None."""
        try:
            return _tensors((cast(list(args), list(self.args)), cast(kwargs, self.kwargs)))
        except (TypeError, ValueError):
            return None

    def __call__(self, arrays: Sequence[Array]) -> Nest:
        return _decode(self._results, self._compiled.run(arrays))

    @property
    def structured_outputs(self) -> Spec:
        results = self._compiled.results
        specs = [TensorSpec([d if isinstance(d, int) else None for d in x.shape], x.dtype) for x in results]
        outputs = nest.map_structure(lambda x: x._array if isinstance(x, Tensor) else x, _decode(self._results, specs))
        if isinstance(outputs, dict):  # a signature's results have names
            return {k: TensorSpec.from_spec(x, k) if isinstance(x, TensorSpec) else x for k, x in outputs.items()}
        return outputs


class _LoadedCompiled(Compiled):
    def __init__(self, name: str, exported: Exported, reason: str, **common: Any):
        vars(self).update(common)
        self.results = exported.out_avals[: self.outputs]
        call = _differentiable(name, exported, reason)

        def program(*flat: Array) -> list[Array]:
            return list(call(*flat))

        def noted(*flat: Array) -> list[Array]:
            return list(call(*flat))[: self.outputs]

        program.__name__ = name
        self.op, self.noted = Op(name, program), JointOp(name, noted)
        self._prepare()


def _differentiable(name: str, exported: Exported, reason: str) -> Callable:
    """An exported program, which JAX can also put under ``vmap``, and whose pullback is the one that was saved with it."""
    forward = jax.custom_batching.sequential_vmap(lambda *flat: tuple(exported.call(*flat)))

    @jax.custom_vjp
    def call(*flat: Array) -> tuple[Array, ...]:
        return forward(*flat)

    def bwd(flat: tuple[Array, ...], cotangents: tuple[Array, ...]) -> tuple[Array, ...]:
        if not exported.has_vjp():
            raise LookupError(f"gradient registry has no entry for: {name}, a function of a saved model: {reason}.")
        return _differentiable(f"{name}_pullback", exported.vjp(), reason)(*flat, *cotangents)

    call.defvjp(lambda *flat: (call(*flat), flat), bwd)
    return call


# ---- structures as JSON ---------------------------------------------------------------------------------------------


class _Result:
    """Stands for the result of that number while a structure of results is written down."""

    def __init__(self, number: int):
        self.number = number


def _encode(x: Argument) -> Any:
    """A structure of specs, results and plain values as JSON. TypeError for an object."""
    if isinstance(x, TensorSpec):
        return {"spec": [_shape(x.shape), x.dtype.name, x.name]}
    if isinstance(x, Tensor):
        return {"tensor": x._array.number}
    if isinstance(x, _Result):
        return {"array": x.number}
    if isinstance(x, Mapping):
        if not all(isinstance(key, (str, int)) for key in x):
            raise TypeError(f"a dict whose keys are no strings or integers: {x!r}")
        return {"dict": [[key, _encode(item)] for key, item in x.items()]}
    if hasattr(x, "_fields"):
        return {"namedtuple": [type(x).__name__, list(x._fields), [_encode(item) for item in x]]}
    if isinstance(x, (list, tuple)):
        return {type(x).__name__ if type(x) in (list, tuple) else "list": [_encode(item) for item in x]}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"value": x}
    raise TypeError(f"an object that is no plain value: {x!r}")


_DECODE: dict[str, Callable[[Any, Callable, Sequence[Array]], Argument]] = {
    "spec": lambda content, inner, results: TensorSpec(*content),
    "tensor": lambda content, inner, results: Tensor(results[content]),
    "array": lambda content, inner, results: results[content],
    "dict": lambda content, inner, results: {key: inner(item) for key, item in content},
    "namedtuple": lambda content, inner, results: collections.namedtuple(*content[:2])(*map(inner, content[2])),
    "list": lambda content, inner, results: list(map(inner, content)),
    "tuple": lambda content, inner, results: tuple(map(inner, content)),
    "value": lambda content, inner, results: content,
}


def _decode(x: Any, results: Sequence[Array] = ()) -> Argument:
    ((kind, content),) = x.items()
    return _DECODE[kind](content, lambda item: _decode(item, results), results)


def _shape(shape: TensorShape) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()


def _tensors(structure: Nest) -> list[Array]:
    """The tensors in a structure, or their specs."""
    arrays: list[Array] = []
    describe(structure, arrays)
    return arrays


def _parameters(signature: inspect.Signature | None) -> list[list] | None:
    return None if signature is None else [[p.name, p.kind.name, _default(p)] for p in signature.parameters.values()]


def _default(parameter: inspect.Parameter) -> Any:
    try:
        return None if parameter.default is parameter.empty else _encode(parameter.default)
    except TypeError:  # an object: the caller has to give it
        return None


def _signature(parameters: list[list] | None) -> inspect.Signature | None:
    if parameters is None:
        return None
    kinds, empty = inspect._ParameterKind, inspect.Parameter.empty
    values = [empty if default is None else _decode(default) for _, _, default in parameters]
    made = [inspect.Parameter(p[0], kinds[p[1]], default=value) for p, value in zip(parameters, values, strict=True)]
    return inspect.Signature(made)


# ---- files ----------------------------------------------------------------------------------------------------------


def _npz(arrays: dict[str, Array]) -> bytes:
    # NumPy's format has no names for bfloat16 and similar types: they are written as bytes, and the manifest holds their dtypes.
    plain = {}
    for name, x in arrays.items():
        x = np.asarray(x)
        plain[name] = x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "V" else x
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **plain)
    return buffer.getvalue()


def _arrays(data: bytes, dtypes: dict[str, str]) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in dtypes}
    return {name: x if x.dtype.name == dtypes[name] else x.view(jnp.dtype(dtypes[name])) for name, x in arrays.items()}


def _write(folder: Path, files: dict[str, bytes], manifest: bytes) -> None:
    (folder / "functions").mkdir(parents=True, exist_ok=True)
    for name, data in (*files.items(), (MANIFEST, manifest)):
        draft = folder / f".{Path(name).name}.draft"
        draft.write_bytes(data)
        os.replace(draft, folder / name)
    for pattern in ("variables*.npz", "functions/*.stablehlo", ".*.draft"):
        for old in folder.glob(pattern):
            if old.relative_to(folder).as_posix() not in files:
                old.unlink()


def _manifest(folder: Path) -> Json:
    path = folder / MANIFEST
    if not path.is_file():
        if (folder / "saved_model.pb").exists() or (folder / "saved_model.pbtxt").exists():
            raise OSError(
                f"{folder} holds a SavedModel of TensorFlow: its graphs cannot be run by JAX. Load it with TensorFlow, and "
                "rebuild the model from its variables."
            )
        raise FileNotFoundError(f"SavedModel file does not exist at: {path}")
    return FORMAT.read(path, folder)


def _require_flatbuffers() -> None:
    try:
        import flatbuffers  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise extra_missing("tf.saved_model", "flatbuffers, with which jax.export writes", "saved-model") from error
