"""``tf.saved_model``: variables and compiled functions on disk, to be loaded where the Python code is not.

A saved model is a directory: ``saved_model.json`` describes the objects and what the functions take and return;
``variables-*.npz`` holds the arrays; ``functions/`` the programs, exported by `jax.export` (StableHLO). A program comes with its
derivatives: its pullback, and the pullback of that, are programs too. Loading reads data only: nothing of a file is executed,
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
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from numpy.lib import format as format_

from ..core import jaxprs
from ..core._jax import eval_jaxpr
from ..core.op import Op
from ..core.rules import joint
from ..ops import random
from ..ops.generator import Generator
from ..values import nest
from ..values.dtypes import TensorShape
from ..values.staging import Compiled, Slot
from ..values.structures import is_variable
from ..values.tensor import Tensor, Variable
from .function import ConcreteFunction, Function, Program
from .module import Module
from .signatures import RANKS, TensorSpec, cast, describe, in_words, symbolic_inputs

__all__ = ["SaveOptions", "contains_saved_model", "load", "save"]

logger = logging.getLogger("tapejax")

MANIFEST = "saved_model.json"
MANIFEST_BYTES = 1 << 28  # no description is longer
FORMAT = "tapejax.saved_model"
VERSION = 1
PLATFORMS = ("cpu", "cuda", "tpu")
# Derivatives that are saved with a program: of the first and second order.
ORDERS = 2


class SaveOptions:
    """How `save` saves.

    Args:
      experimental_custom_gradients: whether the gradients of functions with a custom gradient are saved. Without them, asking
        the loaded function for its gradient raises `LookupError`.
      **others: TensorFlow's other options, which have no effect here.
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: str | None = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Any = None,
    ):
        self.experimental_custom_gradients = bool(experimental_custom_gradients)
        self.experimental_io_device = experimental_io_device


# ---- saving ---------------------------------------------------------------------------------------------------------


def save(obj: Any, export_dir: str | os.PathLike, signatures: Any = None, options: SaveOptions | None = None) -> None:
    """Saves the variables and compiled functions of `obj`.

    Saved are variables, `function`s and modules among its attributes, also in lists, tuples and dicts; of a function the
    traces that it has, or the one of its `input_signature`. Other attributes are Python's and stay behind.

    Args:
      obj: a `Module`, or what `load` returned.
      export_dir: a directory, made if it does not exist.
      signatures: a function with an input signature, or a dict of them, to be found in ``loaded.signatures``; they return
        tensors in a dict.
      options: `SaveOptions`.

    Raises:
      ValueError: `obj` is no Module, or a function cannot be exported (it prints, or calls back into Python).
      AssertionError: a function reads a variable that is no attribute of `obj` or of what it holds.

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
    if not isinstance(obj, (Module, LoadedObject)):
        raise ValueError(
            f"Expected a tf.Module (or what tf.saved_model.load returned) for export, got {obj!r} of type {type(obj).__name__}. "
            "Make it an attribute of a tf.Module."
        )
    _require_flatbuffers()
    _Saver(options or SaveOptions()).save(obj, Path(export_dir), signatures)


class _Saver:
    def __init__(self, options: SaveOptions):
        self._options = options
        self._nodes: list[dict[str, Any]] = []
        self._ids: dict[int, int] = {}  # by id of the object
        self._kept: list[Any] = []  # what the ids belong to
        self._functions: list[tuple[dict[str, Any], str, Any]] = []  # exported when all variables are known
        self._arrays: dict[str, Any] = {}
        self._files: dict[str, bytes] = {}

    def save(self, obj: Any, folder: Path, signatures: Any) -> None:
        self._node(obj, "root")
        called = _signatures(obj, signatures)
        manifest_signatures = {}
        for key, concrete in called.items():
            manifest_signatures[key] = self._add({"kind": "function"}, None)
            self._functions.append(
                (self._nodes[manifest_signatures[key]], f"signature {key!r}", _as_signature(key, concrete))
            )
        for node, path, function in self._functions:
            node.update(self._function(function, path))
        self._file("variables-{}.npz", _npz(self._arrays))
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "jax": jax.__version__,
            "nodes": self._nodes,
            "signatures": manifest_signatures,
            "dtypes": {name: np.dtype(x.dtype).name for name, x in self._arrays.items()},
            "files": {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in self._files.items()},
        }
        _write(folder, self._files, json.dumps(manifest | {"sha256": _digest(manifest)}, indent=1).encode())

    def _file(self, pattern: str, data: bytes) -> str:
        """The name under which a file with this content is written: the pattern with a part of its digest."""
        name = pattern.format(hashlib.sha256(data).hexdigest()[:16])
        self._files[name] = data
        return name

    # ---- objects ----

    def _add(self, node: dict[str, Any], value: Any) -> int:
        self._nodes.append(node)
        if value is not None:
            self._ids[id(value)] = len(self._nodes) - 1
            self._kept.append(value)
        return len(self._nodes) - 1

    def _node(self, value: Any, path: str) -> int | None:
        """The number of the node that stands for `value`; None where there is nothing to save."""
        if (known := self._ids.get(id(value))) is not None:
            return known
        if is_variable(value):
            return self._variable(value)
        if isinstance(value, (Function, ConcreteFunction, LoadedFunction)):
            number = self._add({"kind": "function"}, value)
            self._functions.append((self._nodes[number], path, value))
            return number
        if isinstance(value, Mapping):
            return self._container(
                "dict", value, [(key, value[key]) for key in value if isinstance(key, (str, int))], path
            )
        if nest.is_nested(value) and not isinstance(value, range):
            return self._container("tuple" if isinstance(value, tuple) else "list", value, enumerate(value), path)
        if isinstance(value, (Module, LoadedObject)):
            return self._container("object", value, _attributes(value), path)
        if isinstance(value, Generator):
            return self._container("object", value, [("state", value.state)], path)
        if hasattr(value, "trainable_variables") and hasattr(value, "variables"):  # a layer of Keras
            return self._container("object", value, [("variables", list(value.variables))], path)
        return None

    def _container(self, kind: str, value: Any, items: Any, path: str) -> int:
        node: dict[str, Any] = {"kind": kind, "children": []}
        number = self._add(node, value)
        for key, item in items:
            child = self._node(item, f"{path}.{key}")
            if child is not None:
                node["children"].append([key, child])
            elif kind in ("list", "tuple"):  # the others keep their places
                node["children"].append([key, self._add({"kind": "nothing"}, None)])
        return number

    def _variable(self, variable: Any) -> int:
        name = f"v{len(self._arrays)}"
        array = variable._array if isinstance(variable, Variable) else variable.__jax_array__()
        self._arrays[name] = array
        declared = getattr(variable, "_declared", None)
        node = {
            "kind": "variable",
            "array": name,
            "name": str(variable.name).removesuffix(":0"),
            "trainable": bool(getattr(variable, "trainable", True)),
            "shape": None if declared is None else _shape(declared),
            "any_shape": declared is not None and declared.rank is None,
        }
        return self._add(node, variable)

    # ---- functions ----

    def _function(self, function: Any, path: str) -> dict[str, Any]:
        if isinstance(function, LoadedFunction):
            raise ValueError(
                f"{path} was loaded from a saved model: its programs are there already, copy that directory."
            )
        concrete = [function] if isinstance(function, ConcreteFunction) else None
        owner = function._function if isinstance(function, ConcreteFunction) else function
        if concrete is None and function.input_signature is not None:
            concrete = [function.get_concrete_function()]
        if concrete is None:
            traced = [(p.args, p.kwargs) for p in function._programs.values()]
            traced += [(c._args, c._kwargs) for c in function._concrete.values() if c.symbolic]
        else:
            traced = [(c._args, c._kwargs) for c in concrete]
        programs = []
        for args, kwargs in traced:
            try:
                signature = _encode(list(args)), _encode(kwargs)
            except TypeError as error:
                logger.warning("A trace of %s is not saved, since it was called with %s", path, error)
                continue
            programs.append(self._program(owner, args, kwargs, path) | {"args": signature[0], "kwargs": signature[1]})
        return {
            "name": owner.name,
            "parameters": _parameters(owner._binding.signature),
            "one_signature": owner.input_signature is not None,
            "programs": programs,
        }

    def _program(self, function: Function, args: Sequence[Any], kwargs: dict[str, Any], path: str) -> dict[str, Any]:
        specs: list[Any] = []
        function._key(args, kwargs, specs)
        unknown = sum(spec.shape.rank is None for spec in specs)
        many = itertools.product(sorted(RANKS), repeat=unknown)
        ranks = list(many) if unknown <= 2 else [(rank,) * unknown for rank in sorted(RANKS)]
        variants: list[dict[str, Any]] = []
        failures: list[Exception] = []
        record: dict[str, Any] = {}
        for rank in ranks:
            try:
                program, levels = self._export(function, args, kwargs, specs, rank)
            except AssertionError:
                raise
            except Exception as error:  # of this rank there is no program
                failures.append(error)
                continue
            variants.append({"ranks": list(rank), **levels})
            record = record or self._interface(program, path)
        if not variants:
            raise ValueError(
                f"{path} cannot be exported with the signature {in_words(tuple(args))}: {failures[0]} (Printing from a compiled "
                "program and calls back into Python cannot be saved.)"
            ) from failures[0]
        return record | {"variants": variants}

    def _interface(self, program: Program, path: str) -> dict[str, Any]:
        staged = program.staged
        keys = []
        for constant in staged.constants:
            keys.append(f"c{len(self._arrays)}")
            self._arrays[keys[-1]] = constant
        results = program.pack(iter([_Result(i) for i in range(staged.outputs)]))
        return {
            "state": [self._slot(slot, path) for slot in staged.slots],
            "changed": list(staged.changed),
            "constants": keys,
            "results": _encode(results),
            "outputs": staged.outputs,
        }

    def _slot(self, slot: Slot, path: str) -> Any:
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

    def _export(
        self, function: Function, args: Any, kwargs: Any, specs: Any, ranks: Any
    ) -> tuple[Program, dict[str, Any]]:
        attempts = (
            symbolic_inputs(specs, ranks)
            if any(None in spec.shape or spec.shape.rank is None for spec in specs)
            else [None]
        )
        for position, inputs in enumerate(attempts):
            try:
                if inputs is None:
                    key = function._key(args, kwargs, [])
                    program = function._programs.get(key) or function._trace(key, args, kwargs, specs)
                else:
                    program = function._new_program(args, kwargs, specs, inputs)
                break
            except Exception:
                if position == len(attempts) - 1:
                    raise
        custom = program.staged.incomplete or jaxprs.contains(program.staged.lifted, "custom_vjp_call")
        orders = 0 if custom and not self._options.experimental_custom_gradients else ORDERS
        if orders:
            program.complete()
        closed = program.staged.lifted
        levels, reason = _exported(closed, program.staged.outputs, orders)
        if orders == 0:
            reason = "it has a custom gradient, and was saved without (SaveOptions(experimental_custom_gradients=True) keeps it)"
        names = [self._file("functions/{}.stablehlo", data) for data in levels]
        return program, {"files": names, "reason": reason}


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, and the compiled functions among its methods."""
    for name in sorted(vars(value)):
        if name not in ("_name", "_name_scope", "signatures"):
            yield name, vars(value)[name]
    for name in dir(type(value)):
        if isinstance(inspect.getattr_static(type(value), name), Function) and name not in vars(value):
            yield name, getattr(value, name)


def _signatures(obj: Any, signatures: Any) -> dict[str, ConcreteFunction]:
    if signatures is None:
        found = [x for _, x in _attributes(obj) if isinstance(x, Function) and x.input_signature is not None]
        if len(found) != 1:
            return {}
        concrete = found[0].get_concrete_function()
        try:
            if not concrete.symbolic or all(spec.shape.rank is not None for spec in concrete.inputs):
                _named_results(concrete.structured_outputs)
                return {"serving_default": concrete}
        except ValueError:  # what it returns has no names: there is no default signature
            pass
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


def _named_results(results: Any) -> dict[str, Any]:
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

    def signature(*tensors: Any) -> dict[str, Any]:
        given = iter(tensors)
        args, kwargs = nest.map_structure(lambda x: next(given) if isinstance(x, TensorSpec) else x, wanted)
        return _named_results(concrete(*args, **kwargs))

    signature.__name__ = f"signature_{re.sub(r'[^A-Za-z0-9_]', '_', key)}"
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return Function(signature, tuple(TensorSpec.from_spec(spec, name) for spec, name in zip(specs, names, strict=True)))


def _exported(closed: Any, outputs: int, orders: int) -> tuple[list[bytes], str]:
    """The program and its derivatives, serialized; and why there are no more derivatives, where that is so."""
    from jax import export

    def plain(*flat: Any) -> list[Any]:
        return eval_jaxpr(jaxprs.open_jaxpr(closed), closed.consts, *flat)

    inputs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in jaxprs.open_jaxpr(closed).invars]
    fn: Callable = plain
    levels: list[bytes] = []
    for order in range(orders + 1):
        try:
            levels.append(_serialized(export, fn, inputs))
        except Exception as error:
            if order == 0:
                raise
            return levels, str(error).split("\n")[0]
        if order < orders:
            results = jax.eval_shape(fn, *inputs)
            fn, inputs = _pullback(fn, inputs, results, outputs if order == 0 else len(results))
    return levels, f"derivatives beyond order {orders} are not saved"


def _serialized(export: Any, fn: Callable, inputs: Sequence[Any]) -> bytes:
    try:
        exported = export.export(jax.jit(fn), platforms=PLATFORMS)(*inputs)
    except Exception:  # an operation that is not known on all of them
        exported = export.export(jax.jit(fn))(*inputs)
    return bytes(exported.serialize())


def _pullback(fn: Callable, inputs: Sequence[Any], results: Sequence[Any], count: int) -> tuple[Callable, list[Any]]:
    """The function (inputs, cotangents of the first `count` results) -> cotangents of the inputs, floats only."""
    floats, ends = _inexact(inputs), _inexact(results[:count])

    def pull(*flat: Any) -> list[Any]:
        given, cotangents = flat[: len(inputs)], flat[len(inputs) :]

        def at(*xs: Any) -> list[Any]:
            full = list(given)
            for i, x in zip(floats, xs, strict=True):
                full[i] = x
            outputs = fn(*full)
            return [outputs[j] for j in ends]

        return list(jax.vjp(at, *[given[i] for i in floats])[1](list(cotangents)))

    return pull, [*inputs, *[jax.ShapeDtypeStruct(results[j].shape, results[j].dtype) for j in ends]]


def _inexact(xs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(xs) if jnp.issubdtype(x.dtype, jnp.inexact)]


# ---- loading --------------------------------------------------------------------------------------------------------


def contains_saved_model(export_dir: str | os.PathLike) -> bool:
    """Whether there is a saved model in a directory."""
    return (Path(export_dir) / MANIFEST).is_file()


def load(export_dir: str | os.PathLike, tags: Any = None, options: Any = None) -> Any:
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


class LoadedObject:
    """An object of a loaded model: the attributes that were saved."""

    signatures: dict[str, Any]

    def __repr__(self) -> str:
        return f"<loaded object with {', '.join(vars(self)) or 'no attributes'}>"


class CallableObject(LoadedObject):
    """A loaded object whose ``__call__`` was saved."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)["__call__"](*args, **kwargs)


class _Loader:
    def __init__(self, folder: Path):
        self._folder = folder
        self._manifest = _read_manifest(folder)
        self._made: dict[int, Any] = {}

    def load(self) -> Any:
        try:
            self._data = {name: self._file(name, *check) for name, check in self._manifest["files"].items()}
            (variables,) = [name for name in self._data if name.startswith("variables")]
            self._arrays = _arrays(self._data[variables], self._manifest["dtypes"], variables)
            root = self._node(0)
            root.signatures = {key: self._node(i) for key, i in self._manifest["signatures"].items()}
            return root
        except OSError:
            raise
        except Exception as error:  # whatever a wrong number, name or nesting leads to
            raise _damaged(self._folder, f"its content does not make sense ({_short(error)})") from error

    def _file(self, name: str, size: int, digest: str) -> bytes:
        path = self._folder / name
        if not re.fullmatch(r"variables(-[0-9a-f]{16})?\.npz|functions/[0-9a-f]+\.stablehlo", name):
            raise _damaged(self._folder, f"{MANIFEST} names a file {name!r}")
        if not path.is_file():  # a pipe, or a device, has no end
            raise _damaged(self._folder, f"{name} is missing")
        if (found := path.stat().st_size) != size:
            raise _damaged(self._folder, f"{name} has {found} bytes, where {size} were written")
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise _damaged(self._folder, f"{name} is not what was written")
        return data

    def _node(self, number: int) -> Any:
        if number not in self._made:
            node = self._manifest["nodes"][number]
            getattr(self, f"_make_{node['kind']}")(number, node)
        return self._made[number]

    def _make_object(self, number: int, node: dict[str, Any]) -> None:
        callable_ = any(key == "__call__" for key, _ in node["children"])
        self._made[number] = made = CallableObject() if callable_ else LoadedObject()
        for key, child in node["children"]:
            vars(made)[key] = self._node(child)

    def _make_list(self, number: int, node: dict[str, Any]) -> None:
        made: list[Any] = []
        self._made[number] = made
        made.extend(self._node(child) for _, child in node["children"])

    def _make_tuple(self, number: int, node: dict[str, Any]) -> None:
        self._made[number] = tuple(self._node(child) for _, child in node["children"])

    def _make_dict(self, number: int, node: dict[str, Any]) -> None:
        made: dict[Any, Any] = {}
        self._made[number] = made
        made.update((key, self._node(child)) for key, child in node["children"])

    def _make_nothing(self, number: int, node: dict[str, Any]) -> None:
        self._made[number] = None

    def _make_variable(self, number: int, node: dict[str, Any]) -> None:
        shape = TensorShape(None) if node["any_shape"] else node["shape"]
        self._made[number] = Variable(
            self._arrays[node["array"]],
            trainable=node["trainable"],
            name=node["name"],
            shape=shape,
            validate_shape=shape is None,
        )

    def _make_function(self, number: int, node: dict[str, Any]) -> None:
        programs = [_LoadedProgram(node["name"], program, self) for program in node["programs"]]
        signature = _signature(node["parameters"])
        self._made[number] = LoadedFunction(node["name"], signature, programs, node["one_signature"])

    def slot(self, reference: dict[str, Any]) -> Slot:
        if "variable" in reference:
            return Slot(self._node(reference["variable"]), "_array", None, None)
        if reference["random"] == "own":
            return Slot(random.state.apart(reference["seed"]), "count", None, None)
        return Slot(random.state, {"seed": "seed", "count": "count"}[reference["random"]], None, None)

    def array(self, name: str) -> Any:
        return jnp.asarray(self._arrays[name])

    def exported(self, names: Sequence[str]) -> list[Any]:
        from jax import export

        out = []
        for name in names:
            try:
                exported = export.deserialize(bytearray(self._data[name]))
                asks = _CALLBACK.search(exported.mlir_module())
            except Exception as error:
                written = self._manifest.get("jax")
                raise OSError(
                    f"JAX {jax.__version__} cannot read {name} of the saved model in {self._folder}, which JAX {written} wrote: "
                    f"{str(error).splitlines()[0]}. A JAX reads what the same or an older version wrote."
                ) from error
            if asks:
                raise _damaged(self._folder, f"{name} calls {asks[0]}, which `save` never writes")
            if jax.default_backend() not in [_PLATFORM_NAMES.get(p, p) for p in exported.platforms]:
                raise OSError(
                    f"The saved model in {self._folder} was exported for {', '.join(exported.platforms)}; this is a "
                    f"{jax.default_backend()}: save it again from here"
                )
            out.append(exported)
        return out


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
        self._signature = signature
        self._programs = programs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program whose signature the arguments fit.

        Raises:
          ValueError: there is none.
          TypeError: the arguments do not fit the function's parameters, or its input signature if it has one.
        """
        if not self._programs:
            raise ValueError(
                f"Found zero restored functions for caller function: {self.name} had never been traced when saved."
            )
        given = self._bind(args, kwargs)
        for program in self._programs:
            arrays = program.match(*given)
            if arrays is not None:
                return program(arrays)
        options = "\n".join(f"  {in_words(program.args)} {in_words(program.kwargs)}" for program in self._programs)
        raise (TypeError if self._one_signature else ValueError)(
            f"Could not find matching concrete function to call loaded from the SavedModel: {self.name} was called with "
            f"{given[0]} and {given[1]}. Expected one of:\n{options}"
        )

    def _bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if self._signature is None:
            return args, dict(sorted(kwargs.items()))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `{error}`. Received args: {args} and kwargs: {kwargs} for "
                f"signature: {self._signature}."
            ) from error
        bound.apply_defaults()
        return bound.args, dict(sorted(bound.kwargs.items()))

    def experimental_get_tracing_count(self) -> int:
        return len(self._programs)

    @property
    def structured_input_signature(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments of the first program; a signature takes them by name."""
        return (), dict(
            zip(self._signature.parameters if self._signature else (), self._programs[0].args, strict=False)
        )

    @property
    def structured_outputs(self) -> Any:
        return self._programs[0].structured_outputs

    def __repr__(self) -> str:
        return f"<loaded function {self.name}{self._signature or ''}>"


class _LoadedProgram:
    """One saved trace: what it takes, and a program for each rank that its arguments may have."""

    def __init__(self, name: str, record: dict[str, Any], loader: _Loader):
        self.args = tuple(_decode(record["args"]))
        self.kwargs = _decode(record["kwargs"])
        self._specs = _specs((self.args, self.kwargs))
        self._results = record["results"]
        self._unknown = [i for i, spec in enumerate(self._specs) if spec.shape.rank is None]
        common: dict[str, Any] = {
            "slots": [loader.slot(reference) for reference in record["state"]],
            "changed": record["changed"],
            "constants": [loader.array(name) for name in record["constants"]],
            "outputs": record["outputs"],
        }
        self._variants = {}
        for variant in record["variants"]:
            exported = loader.exported(variant["files"])
            self._variants[tuple(variant["ranks"])] = _LoadedCompiled(name, exported, variant["reason"], **common)

    def match(self, args: tuple, kwargs: dict[str, Any]) -> list[Any] | None:
        """The arrays among the arguments, if they fit; else None."""
        try:
            given = cast(list(args), list(self.args)), cast(kwargs, self.kwargs)
        except (TypeError, ValueError):
            return None
        arrays: list[Any] = []
        describe(given[0], arrays)
        describe(given[1], arrays)
        return arrays if self._ranks(arrays) in self._variants else None

    def _ranks(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        return tuple(arrays[i].ndim for i in self._unknown)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        found = self._variants[self._ranks(arrays)].run(arrays)
        return _decode(self._results, found)

    @property
    def structured_outputs(self) -> Any:
        variant = next(iter(self._variants.values()))
        specs = [TensorSpec([d if isinstance(d, int) else None for d in x.shape], x.dtype) for x in variant.results]
        found = nest.map_structure(lambda x: x._array if isinstance(x, Tensor) else x, _decode(self._results, specs))
        if isinstance(found, dict):  # a signature's results have names
            return {k: TensorSpec.from_spec(x, k) if isinstance(x, TensorSpec) else x for k, x in found.items()}
        return found


class _LoadedCompiled(Compiled):
    def __init__(self, name: str, exported: Sequence[Any], reason: str, **common: Any):
        vars(self).update(common)
        self.results = exported[0].out_avals[: self.outputs]
        call = _differentiable(name, exported, self.outputs, reason)

        def program(*flat: Any) -> list[Any]:
            return list(call(*flat))

        def noted(*flat: Any) -> list[Any]:
            return list(call(*flat))[: self.outputs]

        program.__name__ = name
        self.op = Op(name, program)
        self.noted = Op(name, noted)
        joint.add(noted)


def _differentiable(name: str, levels: Sequence[Any], count: int, reason: str) -> Callable:
    """The first of `levels`, whose pullback is the next one."""
    forward = jax.custom_batching.sequential_vmap(lambda *flat: tuple(levels[0].call(*flat)))

    @jax.custom_vjp
    def call(*flat: Any) -> tuple[Any, ...]:
        return forward(*flat)

    def fwd(*flat: Any) -> tuple[Any, Any]:
        return call(*flat), flat

    def bwd(flat: Any, cotangents: Any) -> tuple[Any, ...]:
        if len(levels) == 1:
            raise LookupError(f"gradient registry has no entry for: {name}, a function of a saved model: {reason}.")
        ends = [x for x in cotangents[:count] if jnp.issubdtype(x.dtype, jnp.inexact)]
        pull = _differentiable(f"{name}_pullback", levels[1:], len(levels[1].out_avals), reason)
        found = iter(pull(*flat, *ends))
        return tuple(next(found) if jnp.issubdtype(x.dtype, jnp.inexact) else None for x in flat)

    call.defvjp(fwd, bwd)
    return call


# ---- structures as JSON ---------------------------------------------------------------------------------------------


class _Result:
    """Stands for the result of that number while a structure of results is written down."""

    def __init__(self, number: int):
        self.number = number


def _encode(x: Any) -> Any:
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


def _decode(x: dict[str, Any], results: Sequence[Any] = ()) -> Any:
    ((kind, content),) = x.items()
    match kind:
        case "spec":
            shape, dtype, name = content
            return TensorSpec(shape, dtype, name)
        case "tensor":
            return Tensor(results[content])
        case "array":
            return results[content]
        case "dict":
            return {key: _decode(item, results) for key, item in content}
        case "namedtuple":
            name, fields, items = content
            return collections.namedtuple(name, fields)(*[_decode(item, results) for item in items])
        case "list":
            return [_decode(item, results) for item in content]
        case "tuple":
            return tuple(_decode(item, results) for item in content)
        case "value":
            return content
    raise KeyError(kind)


def _shape(shape: Any) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()


def _specs(structure: Any) -> list[TensorSpec]:
    specs: list[Any] = []
    describe(structure, specs)
    return specs


def _parameters(signature: inspect.Signature | None) -> list[Any] | None:
    if signature is None:
        return None
    out = []
    for p in signature.parameters.values():
        default: Any = None
        if p.default is not p.empty:
            try:
                default = _encode(p.default)
            except TypeError:  # an object: the caller has to give it
                default = None
        out.append([p.name, p.kind.name, default])
    return out


def _signature(parameters: list[Any] | None) -> inspect.Signature | None:
    if parameters is None:
        return None
    out = []
    for name, kind, default in parameters:
        value = inspect.Parameter.empty if default is None else _decode(default)
        out.append(inspect.Parameter(name, inspect._ParameterKind[kind], default=value))
    return inspect.Signature(out)


# ---- files ----------------------------------------------------------------------------------------------------------


def _npz(arrays: dict[str, Any]) -> bytes:
    # NumPy's format has no names for bfloat16 and its kin: they are written as bytes, the manifest says what they are.
    plain = {}
    for name, x in arrays.items():
        x = np.asarray(x)
        plain[name] = x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "V" else x
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **plain)
    return buffer.getvalue()


def _arrays(data: bytes, dtypes: dict[str, str], file: str) -> dict[str, np.ndarray]:
    """The arrays in an archive of `_npz`'s.

    NumPy would make room for whatever shape a file claims, and unpack what is packed: here arrays are views of `data`.
    """
    out = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [archive.getinfo(f"{name}.npy") for name in dtypes]
        if any(x.compress_type != zipfile.ZIP_STORED for x in members) or sum(x.file_size for x in members) > len(data):
            raise ValueError(f"{file} is packed")
        for (name, dtype), info in zip(dtypes.items(), members, strict=True):
            member = io.BytesIO(archive.read(info))
            header = {(1, 0): format_.read_array_header_1_0, (2, 0): format_.read_array_header_2_0}
            shape, by_columns, stored = header[format_.read_magic(member)](member)
            content = member.getbuffer()[member.tell() :]
            if stored.hasobject or math.prod(shape) * stored.itemsize != content.nbytes:
                raise ValueError(f"{file} has an array {name} of shape {shape} and {stored} in {content.nbytes} bytes")
            x: np.ndarray = np.ndarray(shape, stored, content, order="F" if by_columns else "C")
            out[name] = x if x.dtype.name == dtype else x.view(np.dtype(getattr(ml_dtypes, dtype)))
    return out


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


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        if (folder / "saved_model.pb").exists() or (folder / "saved_model.pbtxt").exists():
            raise OSError(
                f"{folder} holds a SavedModel of TensorFlow: its graphs cannot be run by JAX. Load it with TensorFlow, and "
                "rebuild the model from its variables."
            )
        raise FileNotFoundError(f"SavedModel file does not exist at: {path}")
    if (size := path.stat().st_size) > MANIFEST_BYTES:
        raise _damaged(folder, f"{MANIFEST} has {size} bytes")
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, f"{MANIFEST} is no JSON ({_short(error)})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise OSError(f"{path} was not written by tapejax.saved_model.save")
    if manifest.get("version") != VERSION:
        raise OSError(
            f"{path} has version {manifest.get('version')!r} of the format; this tapejax reads version {VERSION}"
        )
    if missing := {"nodes", "signatures", "dtypes", "files"} - set(manifest):
        raise _damaged(folder, f"{MANIFEST} lacks {', '.join(sorted(missing))}")
    if manifest.pop("sha256", None) not in (None, _digest(manifest)):
        raise _damaged(folder, f"{MANIFEST} is not what was written")
    return manifest


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def _damaged(folder: Path, what: str) -> OSError:
    return OSError(f"The saved model in {folder} is damaged: {what}. Save it again, or copy the whole directory.")


def _require_flatbuffers() -> None:
    try:
        import flatbuffers  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise ImportError("tf.saved_model needs `flatbuffers`, as jax.export does: pip install flatbuffers") from None
