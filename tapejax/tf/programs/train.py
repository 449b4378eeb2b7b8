"""``tf.train``: checkpoints of the objects that a training program holds, over Orbax.

A checkpoint is a directory that Orbax writes: ``values`` holds the arrays, ``objects`` a graph, as JSON: which object had which
others as attributes, and which of them were variables. Restoring walks the graph and the program's objects side by side, from
the root, by the names of attributes. What the program does not have yet is remembered and given its value as soon as it
comes into being. Nothing of a file is executed: it is JSON and arrays.

A checkpoint that is written anew is complete under another name before it takes the former one's place, which is two steps:
where a program was stopped between them, the former one is found under the name that it was given in the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import logging
import os
import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np

from ...tape import active
from ..ops.generator import Generator
from ..values import keras_fence, nest, reading, structures
from ..values.conversion import convert_to_tensor
from ..values.dtypes import narrowed
from ..values.errors import DataLossError, InvalidArgumentError, NotFoundError, extra_missing
from ..values.missing import missing
from ..values.types import Array, Ignored, IntLike, VariableLike
from ..values.variable import Variable
from .description import Format, Json, in_short
from .function import ConcreteFunction, Function, init_scope, inside_function
from .module import OWN, Holder, LoadedObject, Module, Trackable

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "ClusterSpec",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]

__getattr__ = missing("tf.train")


def __dir__() -> list[str]:
    return sorted(__all__)


logger = logging.getLogger("tapejax")

FORMAT = Format("tapejax.checkpoint", 1, "checkpoint", DataLossError, "tapejax.train", "Use another one")


class CheckpointOptions:
    """TensorFlow's options of saving and restoring, which have no effect here."""

    def __init__(self, **options: Any):
        vars(self).update(options)


# ---- which objects, and what they hold ------------------------------------------------------------------------------


def is_variable(value: object) -> bool:
    """Whether `value` is a variable, ours or Keras's, that can be assigned to."""
    return structures.is_variable(value) and hasattr(value, "assign")


def is_trackable(value: Any) -> bool:
    """Whether `value` has state that a checkpoint can save: variables, or objects, lists and dicts that may hold some."""
    if isinstance(value, Mapping):
        return any(map(is_trackable, value.values()))
    if nest.is_sequence(value):
        return any(map(is_trackable, value))
    return _attributes(value) is not None


def _children(value: Trackable) -> list[tuple[str, Any]]:
    """What `value` holds that has state, with the names by which it holds it."""
    return [(name, child) for name, child in _attributes(value) or () if is_trackable(child)]


def _attributes(value: Any) -> list[tuple[str, Any]] | None:
    """What `value` holds, by name; None for what has no state."""
    if value is None or isinstance(value, (str, bytes, int, float, np.ndarray, jax.Array)):
        return None
    if is_variable(value) or isinstance(value, (Function, ConcreteFunction)):
        return []
    if isinstance(value, Checkpoint):
        return value._attached()
    if isinstance(value, (Module, LoadedObject)):
        return [(name, child) for name, child in vars(value).items() if name not in OWN]
    if isinstance(value, Generator):
        return [("_state_var", value.state)]
    if isinstance(value, Mapping):
        return _entries(value)
    if nest.is_sequence(value):
        return _numbered("", value)
    return [] if _is_iterator(value) else _of_keras(value)


def _entries(mapping: Mapping) -> list[tuple[str, Any]]:
    for key, child in mapping.items():
        if not isinstance(key, str) and is_trackable(child):
            raise ValueError(
                f"Unable to save the object {mapping!r}: its key {key!r} is not a string, so it cannot be part of a name in "
                "the checkpoint. Use strings as keys."
            )
    return [(key, child) for key, child in mapping.items() if isinstance(key, str)]


def _is_iterator(value: object) -> bool:
    """Whether `value` is an iterator, of `tf.data` or Grain, that can say where it is."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in ("__next__", "get_state", "set_state"))


def _of_keras(value: Trackable) -> list[tuple[str, Any]] | None:
    """What a Keras object holds, by its place in Keras's own complete lists; and by its attributes, as a program does."""
    keras: Any = sys.modules.get("keras")
    if not hasattr(keras, "optimizers"):
        return None
    if isinstance(value, keras.random.SeedGenerator):
        return [("state", value.state)]
    if isinstance(value, (keras.optimizers.Optimizer, keras.Metric)):  # all they have, in the order of creation
        return _numbered("variables_", value.variables)
    if not isinstance(value, keras.Layer):
        return None
    lists = keras_fence.parts_of(value) | ({"layers": value.layers} if isinstance(value, keras.Model) else {})
    pairs = [pair for name, items in lists.items() for pair in _numbered(f"{name}_", items)]
    if (optimizer := getattr(value, "optimizer", None)) is not None:
        pairs.append(("optimizer", optimizer))
    pairs += [(name, x) for name, x in vars(value).items() if isinstance(x, (keras.Layer, Module)) and name[0] != "_"]
    # A layer of Keras has its weights as ``_kernel``, and a property ``kernel``.
    return pairs + [(name.lstrip("_"), x) for name, x in vars(value).items() if is_variable(x)]


def _numbered(name: str, items: Iterable) -> list[tuple[str, Any]]:
    return [(f"{name}{i}", item) for i, item in enumerate(items)]


def _walk(root: Trackable) -> Iterator[tuple[Trackable, str, dict[str, Trackable]]]:
    """Each object from `root` on, once: it, the shortest way to it, and what it holds by name."""
    queue, seen = [(root, "")], {id(root)}
    for value, path in queue:  # which grows on the way
        children = dict(sorted(_children(value), key=lambda pair: pair[0]))
        for name, child in children.items():
            if id(child) not in seen:
                seen.add(id(child))
                queue.append((child, f"{path}{name.replace('.', '..').replace('/', '.S')}/"))
        yield value, path, children


# ---- writing --------------------------------------------------------------------------------------------------------


def _orbax() -> ModuleType:
    try:
        import orbax.checkpoint
    except ImportError as error:
        raise extra_missing("tf.train.Checkpoint", "Orbax", "checkpoint") from error
    return orbax.checkpoint


def _array(variable: VariableLike) -> Array:
    return variable._array if isinstance(variable, Variable) else variable.__jax_array__()


def _graph(root: Trackable) -> tuple[list[Json], dict[str, Array]]:
    """The objects below `root` as data, each named by the shortest way to it; and the arrays of the variables."""
    objects = list(_walk(root))
    numbers = {id(value): number for number, (value, _, _) in enumerate(objects)}
    nodes: list[Json] = []
    arrays: dict[str, Array] = {}
    for value, path, children in objects:
        node: Json = {"children": {name: numbers[id(child)] for name, child in children.items()}}
        if is_variable(value):
            array = _array(value)
            node["variable"] = {
                "key": f"{path}.ATTRIBUTES/VARIABLE_VALUE",
                "name": str(getattr(value, "name", "")),
                "shape": list(array.shape),
                "dtype": np.dtype(array.dtype).name,
            }
            if array.size:  # Orbax does not take empty ones
                node["variable"]["array"] = f"v{len(arrays)}"
                # Of several processes Orbax takes what they all have in part, or NumPy, which the first one writes.
                own = jax.process_count() > 1 and array.is_fully_addressable
                arrays[node["variable"]["array"]] = np.asarray(array) if own else array
        elif _is_iterator(value):
            node["state"] = value.get_state()
            try:
                json.dumps(node["state"])
            except (TypeError, ValueError) as error:
                raise ValueError(f"the state of {value!r} cannot be saved: {error}") from error
        nodes.append(node)
    return nodes, arrays


def _of_first(prefix: str) -> str:
    """The first process's `prefix`: in TensorFlow's programs each process has one of its own, and writes everything there."""
    if jax.process_count() == 1:
        return prefix
    from jax.experimental import multihost_utils

    text = os.path.abspath(prefix).encode()
    letters = np.zeros(1 << 12, np.uint8)  # as many as a path may have
    letters[: len(text)] = [*text]
    return bytes(multihost_utils.broadcast_one_to_all(letters)).rstrip(b"\0").decode()


def _write(root: Trackable, prefix: str) -> None:
    ocp = _orbax()
    nodes, arrays = _graph(root)
    items = {"objects": ocp.args.JsonSave(FORMAT.seal({"nodes": nodes}))}
    if arrays:
        items["values"] = ocp.args.PyTreeSave(arrays)
    path = Path(os.path.abspath(_of_first(prefix)))
    draft, former = path.with_name(f".{path.name}.new"), _former(path)
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        checkpointer.save(draft, args=ocp.args.Composite(**items), force=True)
    if not jax.process_index():
        if path.exists():
            shutil.rmtree(former, ignore_errors=True)
            os.rename(path, former)
        os.rename(draft, path)
        shutil.rmtree(former, ignore_errors=True)
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(f"tapejax checkpoint {path}")


def _made_folder(prefix: str) -> str:
    """The directory of what is saved as `prefix`, which is there from now on."""
    if inside_function():
        raise RuntimeError("A checkpoint cannot be saved inside a tf.function, which is traced once: save it outside.")
    folder = os.path.dirname(prefix)
    os.makedirs(folder or ".", exist_ok=True)
    return folder


def _former(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


# ---- reading --------------------------------------------------------------------------------------------------------


def _is_checkpoint(path: str | os.PathLike) -> bool:
    return (Path(path) / "objects" / "metadata").is_file()


def _read(prefix: str, values: bool = True) -> tuple[list[Json], dict[str, np.ndarray]]:
    """The nodes of a checkpoint, and its arrays by the names under which they were saved.

    Raises:
      NotFoundError: there is nothing.
      DataLossError: there is something else, or it is damaged.
    """
    path = Path(os.path.abspath(prefix))
    if not path.exists() and _is_checkpoint(_former(path)):
        path = _former(path)
    if not path.exists():
        if Path(f"{path}.index").exists():
            raise DataLossError(
                f"{prefix} is a checkpoint that TensorFlow wrote: read it with TensorFlow, and assign its values to variables."
            )
        raise NotFoundError(
            f"Error when restoring from checkpoint at {prefix}: there is no such checkpoint. Please double-check that the path "
            "is correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1')."
        )
    if not _is_checkpoint(path):
        hint = "it lacks that format's files"
        if path.is_dir() and (path / _STATE_FILE).exists():
            hint = "it is a directory of checkpoints: use tf.train.latest_checkpoint(directory)"
        raise DataLossError(f"{prefix} is no checkpoint that tapejax.train wrote: {hint}")
    nodes = FORMAT.read(path / "objects" / "metadata", path)["nodes"]
    saved = {node["variable"]["array"]: node["variable"] for node in nodes if "array" in node.get("variable", ())}
    return nodes, _read_arrays(path, saved) if values and saved else {}


def _read_arrays(path: Path, saved: dict[str, Json]) -> dict[str, np.ndarray]:
    ocp = _orbax()
    as_numpy = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in saved}
    try:
        with _patient_loops(), ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            values = ocp.args.PyTreeRestore(restore_args=as_numpy)
            arrays = checkpointer.restore(path, args=ocp.args.Composite(values=values))["values"]
    except Exception as error:  # any error of Orbax and TensorStore for missing or truncated files
        raise FORMAT.damaged(path, f"Orbax cannot read it ({in_short(error)})") from error
    for name, variable in saved.items():
        array = arrays.get(name)
        if array is None or [list(array.shape), array.dtype.name] != [variable["shape"], variable["dtype"]]:
            raise FORMAT.damaged(path, f"{variable['key']} is missing, or not what was written")
    return arrays


_reading = threading.Lock()


@contextlib.contextmanager
def _patient_loops() -> Iterator[None]:
    """While it lasts, what comes to this thread's new event loop after its end is left out, and errors that nobody asks for are
    not logged.

    Orbax reads arrays at the same time. When one cannot be read it raises that one's error and closes its loop; asyncio and
    TensorStore's threads would print one for each of the others. Orbax takes no loop: it makes one by `asyncio.new_event_loop`,
    for which this stands in, and which other threads go on to have.
    """
    thread = threading.get_ident()

    def patient_loop() -> asyncio.AbstractEventLoop:
        loop: Any = make()
        if threading.get_ident() != thread:
            return loop
        call = loop.call_soon_threadsafe

        def call_if_open(*args: Any, **options: Any) -> Any:
            try:
                return call(*args, **options)
            except RuntimeError:
                if not loop.is_closed():
                    raise

        loop.call_soon_threadsafe = call_if_open
        loop.set_exception_handler(lambda *_: None)
        return loop

    with _reading:
        make, asyncio.new_event_loop = asyncio.new_event_loop, patient_loop
        try:
            yield
        finally:
            if asyncio.new_event_loop is patient_loop:  # no other library replaced it since
                asyncio.new_event_loop = make


# ---- restoring ------------------------------------------------------------------------------------------------------


class _Restoration:
    """The values of a checkpoint on their way to a program's objects, some of which may come later."""

    def __init__(self, prefix: str, checkpoint: Checkpoint):
        self._prefix = prefix
        self._checkpoint = weakref.ref(checkpoint)
        self._nodes, self._arrays = _read(prefix)
        self._known: dict[int, tuple[Trackable, int]] = {}  # {id of an object: it, kept alive, and its node}
        self.partial = False

    def match(self, value: Trackable, number: int) -> None:
        """Gives `value`, which is the object `number` of the checkpoint, and what it holds their values.

        Raises:
          ValueError, InvalidArgumentError: a variable has another shape or dtype than the one that was saved; nothing has
            been assigned then.
        """
        queue, seen, matched = [(value, number)], {id(value)}, []
        for value, number in queue:  # which grows on the way
            node, content = self._nodes[number], None
            if id(value) not in self._known:
                if keras_fence.is_unset(value):
                    _after(keras_fence.FIRST_VALUE, value, self, number)
                    continue
                if is_variable(value) and "variable" in node:
                    content = self._fitting(value, node["variable"])
            matched.append((value, number, content))
            for name, child in _children(value):
                if name in node["children"] and id(child) not in seen:
                    seen.add(id(child))
                    queue.append((child, node["children"][name]))
        for value, number, content in matched:
            if content is not None:
                _give(value, content)
            elif id(value) not in self._known and "state" in self._nodes[number] and _is_iterator(value):
                value.set_state(self._nodes[number]["state"])
            self._known.setdefault(id(value), (value, number))
        for value, number, _ in matched:
            self._await(value, number)

    def _fitting(self, variable: VariableLike, saved: Json) -> np.ndarray:
        array = _array(variable)
        name = getattr(variable, "name", "")
        declared = getattr(variable, "_declared", None)
        other = list(array.shape) != saved["shape"]
        if other and (declared is None or not declared.is_compatible_with(saved["shape"])):
            raise ValueError(
                f"Received incompatible tensor with shape {tuple(saved['shape'])} when attempting to restore variable with shape "
                f"{tuple(array.shape)} and name {name}. (It was saved as {saved['key']} in {self._prefix}.)"
            )
        wanted = np.dtype(array.dtype)
        dtype = jax.numpy.dtype(saved["dtype"])
        counter = saved["key"] == "save_counter/.ATTRIBUTES/VARIABLE_VALUE"
        if wanted not in (dtype, narrowed(dtype)) and not counter:
            raise InvalidArgumentError(
                f"{saved['key']} in {self._prefix} has dtype {dtype}, which does not equal dtype {wanted} of variable {name}."
            )
        content = self._arrays[saved["array"]] if "array" in saved else np.zeros(saved["shape"], dtype)
        return content.astype(wanted, copy=False)

    # ---- what comes later ----

    def _await(self, value: Trackable, number: int) -> None:
        if isinstance(value, Holder):
            others = [x for x in vars(value).get("_waiting", ()) if not self._supersedes(x)]
            if (waiting := [*others, self] if self.unresolved() else others) or "_waiting" in vars(value):
                vars(value)["_waiting"] = waiting
        elif not getattr(value, "built", True) and hasattr(value, "build"):  # of Keras
            _after("build", value, self, number)

    def _supersedes(self, earlier: _Restoration) -> bool:
        """Whether this has a value for all that another restoration of the same checkpoint waits for."""
        saved = {node["variable"]["key"] for node in self._nodes if "variable" in node}
        return earlier._checkpoint() in (None, self._checkpoint()) and saved.issuperset(earlier._left())

    def attach(self, holder: Trackable, name: str, value: object) -> bool:
        """`value` has become the attribute `name` of `holder`. Whether this waits for others still."""
        if id(holder) in self._known:
            child = self._nodes[self._known[id(holder)][1]]["children"].get(name)
            if child is not None and is_trackable(value):
                self.match(value, child)
        return bool(self.unresolved())

    def retry(self) -> None:
        """Looks again for objects that have come into being: in lists and dicts, which have no hook for it."""
        checkpoint = self._checkpoint()
        if checkpoint is not None and self.unresolved():
            self.match(checkpoint, 0)

    # ---- what a status asks ----

    def unresolved(self) -> list[str]:
        """The saved variables that no object of the program has taken."""
        return [key.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for key in self._left()]

    def _left(self) -> list[str]:
        taken = {number for _, number in self._known.values()}
        return [x["variable"]["key"] for i, x in enumerate(self._nodes) if "variable" in x and i not in taken]

    def unmatched(self) -> list[str]:
        """The program's variables that have no value in the checkpoint."""
        if (checkpoint := self._checkpoint()) is None:
            return []
        matched = {*self._known, id(checkpoint._save_counter)}
        return [path[:-1] for value, path, _ in _walk(checkpoint) if is_variable(value) and id(value) not in matched]

    def trivial(self) -> bool:
        """Whether nothing but the checkpoint itself has found its place."""
        return not any(number for _, number in self._known.values())

    def __del__(self) -> None:
        if (
            sys is not None
            and not sys.is_finalizing()
            and not getattr(self, "partial", True)
            and (left := self.unresolved())
        ):
            logger.warning(
                "Values in checkpoint %s could not be found in the restored object: %s. To silence this, call "
                "status.expect_partial() on what restore() returned.",
                self._prefix,
                ", ".join(left),
            )


def _give(variable: VariableLike, array: np.ndarray) -> None:
    """Assigns `array` to `variable`, spread over devices as its value was."""
    capture = reading.context.capture
    while capture is not None:
        if (slot := capture.created.get((id(variable), "_array"))) is not None:
            # It has just been made, in a function that is being traced: this is its initial value.
            with active.outside():
                variable._array = slot.before = jax.numpy.copy(array)
            return
        capture = capture.parent
    with init_scope():
        place = _array(variable).sharding
        if type(place) is jax.sharding.NamedSharding and array.shape == tuple(variable.shape):
            variable.assign(jax.make_array_from_callback(array.shape, place, lambda part: array[part]))
        else:
            variable.assign(convert_to_tensor(array))


def _after(method: str, value: Trackable, restoration: _Restoration, number: int) -> None:
    """Lets `restoration` go on with a Keras object once its `method`, which makes variables or their values, has run."""
    run = getattr(value, method)
    if getattr(run, "_restoration", None) is restoration:
        return
    own = method in vars(value)

    @functools.wraps(run)
    def run_and_restore(*args: Any, **kwargs: Any) -> Any:
        if own:
            object.__setattr__(value, method, run)
        else:
            object.__delattr__(value, method)
        returned = run(*args, **kwargs)
        restoration.match(value, number)
        return returned

    run_and_restore._restoration = restoration  # type: ignore[attr-defined]
    object.__setattr__(value, method, run_and_restore)


class CheckpointLoadStatus:
    """What `Checkpoint.restore` returns: asserts how much was restored. Each method returns the status."""

    def __init__(self, restoration: _Restoration | None):
        self._restoration = restoration

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every saved value and every variable of the program found the other."""
        self._none("Unresolved object in checkpoint: no object of the program has taken ", _Restoration.unresolved)
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every variable that the program has by now was restored."""
        text = "Found Python objects that were not bound to checkpointed values, likely due to changes in the program: "
        return self._none(text, _Restoration.unmatched)

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Raises AssertionError if nothing was restored."""
        return self._none("Nothing except the root object matched a checkpointed value.", _Restoration.trivial)

    def _none(self, text: str, missing: Callable[[_Restoration], Any]) -> CheckpointLoadStatus:
        if self._restoration is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")
        self._restoration.retry()
        if names := missing(self._restoration):
            raise AssertionError(f"{text}{_listed(names) if isinstance(names, list) else ''}")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Silences the warning about saved values that were not restored."""
        if self._restoration is not None:
            self._restoration.partial = True
        return self


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


class Checkpoint(Holder):
    """The objects of a program whose state is saved and restored together.

    Saved are variables, ours and Keras's; those that modules, Keras models, optimizers and metrics, generators of random
    numbers, lists, tuples and dicts hold; and where iterators over datasets are.

    Args:
      root: an object whose attributes are saved as if they were the checkpoint's.
      **kwargs: objects by the names under which they are saved. More may be assigned to attributes later.

    Raises:
      ValueError: one of them has no state.

    >>> import os, tempfile
    >>> import tapejax as tf
    >>> step, w = tf.Variable(0), tf.Variable([1.0, 2.0])
    >>> checkpoint = tf.train.Checkpoint(step=step, weights={"w": w})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = checkpoint.save(os.path.join(folder, "ckpt"))
    ...     _ = w.assign([0.0, 0.0])
    ...     _ = checkpoint.restore(path).assert_consumed()
    >>> os.path.basename(path), w.numpy()
    ('ckpt-1', array([1., 2.], dtype=float32))
    """

    _root: Trackable
    _save_counter: Variable | None

    def __init__(self, root: Trackable = None, **kwargs: Any):
        own: dict[str, Any] = vars(self)
        own.update(_root=root, _save_counter=None)
        for name, value in kwargs.items() if root is None else [("root", root), *kwargs.items()]:
            if not (is_trackable(value) or isinstance(value, (list, tuple, dict))):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object: a variable, a Module, a Keras model or "
                    f"optimizer, an iterator over a dataset, or a list or dict of these; got {value!r}"
                )
        held = dict(_children(root)) if root is not None else {}
        for name, value in kwargs.items():
            if held.get(name, value) is not value:
                raise ValueError(f"root has another object as {name} already: {held[name]!r}, not {value!r}")
            own[name] = value

    def _attached(self) -> list[tuple[str, Any]]:
        held = dict(_attributes(self._root) or ())
        held |= {name: value for name, value in vars(self).items() if not name.startswith("_")}
        if self._save_counter is not None:
            held["save_counter"] = self._save_counter
        return list(held.items())

    @property
    def save_counter(self) -> Variable:
        """How many times `save` was called, also before a restart."""
        counter = self._save_counter
        if counter is None:
            with init_scope():
                counter = Variable(np.zeros((), narrowed(np.dtype("int64"))), trainable=False, name="save_counter")
            vars(self)["_save_counter"] = counter
            self._tell("save_counter", counter)
        return counter

    def save(self, file_prefix: str | os.PathLike, options: Ignored = None) -> str:
        """Writes a checkpoint, a directory, and notes in the file ``checkpoint`` beside it that it is the latest one.

        Args:
          file_prefix: where: a directory and the beginning of a name. Directories are made.
          options: taken for TensorFlow's sake.

        Returns:
          The prefix, a dash and the count of saves. `restore` takes it.

        Raises:
          RuntimeError: inside a `function`.
          ValueError: a dict with keys that are no strings holds variables.
        """
        prefix = os.fspath(file_prefix)
        folder = _made_folder(prefix)
        path = self._save_numbered(prefix, None)
        _write_state(folder, path, [path])
        return path

    def _save_numbered(self, prefix: str, number: IntLike | None) -> str:
        counter = self.save_counter
        counter.assign_add(1)
        path = f"{prefix}-{int(counter if number is None else number)}"
        try:
            self._write(path)
            return path
        except BaseException:
            counter.assign_sub(1)
            raise

    def write(self, file_prefix: str | os.PathLike, options: Ignored = None) -> str:
        """Writes a checkpoint to exactly `file_prefix` and returns it: `save` without counting and noting it as the latest."""
        prefix = os.fspath(file_prefix)
        _made_folder(prefix)
        self._write(prefix)
        return prefix

    def _write(self, prefix: str) -> None:
        for restoration in vars(self).get("_waiting", ()):
            restoration.retry()
        _write(self, prefix)

    def restore(self, save_path: str | os.PathLike | None, options: Ignored = None) -> CheckpointLoadStatus:
        """Gives the objects the values that they had when `save_path` was written.

        Objects that come into being later get theirs then: variables of a Module when they are assigned to an attribute,
        those of a Keras layer or optimizer when it is built.

        Args:
          save_path: what `save` or `latest_checkpoint` returned. None restores nothing.
          options: taken for TensorFlow's sake.

        Returns:
          A status. `assert_consumed`, `assert_existing_objects_matched` and `assert_nontrivial_match` raise AssertionError
          if not all that, or nothing, was restored; `expect_partial` says that it is no surprise.

        Raises:
          NotFoundError: there is no checkpoint.
          DataLossError: there is something else, or it is damaged.
          ValueError, InvalidArgumentError: a variable has another shape or dtype than the saved one. Nothing is changed then.
        """
        if save_path is None:
            return CheckpointLoadStatus(None)
        status = self.read(save_path)
        _ = self.save_counter  # restored when it is made
        return status

    def read(self, save_path: str | os.PathLike, options: Ignored = None) -> CheckpointLoadStatus:
        """Like `restore`, of what `write` wrote."""
        restoration = _Restoration(os.fspath(save_path), self)
        try:
            restoration.match(self, 0)
        except BaseException:
            restoration.partial = True  # do not warn of what is left
            raise
        return CheckpointLoadStatus(restoration)

    def sync(self) -> None:
        """Waits for checkpoints that are being written: none is, `save` returns when it is done."""


# ---- the latest of several ------------------------------------------------------------------------------------------

_STATE_FILE = "checkpoint"


class CheckpointState(NamedTuple):
    """What the file ``checkpoint`` of a directory says: the latest checkpoint, and all that are kept, oldest first."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


def _write_state(folder: str, latest: str, paths: Sequence[str]) -> None:
    if jax.process_index():
        return

    def inside(path: str) -> str:
        return os.path.relpath(path, folder or ".") if os.path.dirname(path) == folder else path

    state = CheckpointState(inside(latest), [inside(path) for path in paths])
    file = Path(folder or ".") / _STATE_FILE
    draft = file.with_name(f".{_STATE_FILE}.{os.getpid()}")
    draft.write_text(json.dumps(state._asdict(), indent=1))
    os.replace(draft, file)


def get_checkpoint_state(
    checkpoint_dir: str | os.PathLike, latest_filename: str | None = None
) -> CheckpointState | None:
    """What the file ``checkpoint`` in a directory says, or None where there is none.

    Raises:
      DataLossError: it is TensorFlow's, or damaged.
    """
    folder = os.fspath(checkpoint_dir)
    file = Path(folder, latest_filename or _STATE_FILE)
    if not file.is_file():
        return None
    try:
        state = CheckpointState(**json.loads(file.read_bytes()))
        paths = [os.path.join(folder, path) for path in state.all_model_checkpoint_paths]
        return CheckpointState(os.path.join(folder, state.model_checkpoint_path), paths)
    except (TypeError, ValueError) as error:
        raise DataLossError(
            f"{file} does not say which checkpoint is the latest ({in_short(error)}). If TensorFlow wrote it, read its "
            "checkpoints with TensorFlow, and assign their values to variables; if it is damaged, delete it."
        ) from error


def latest_checkpoint(checkpoint_dir: str | os.PathLike, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint in a directory, for `Checkpoint.restore`; None where there is none.

    >>> import tempfile
    >>> import tapejax as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(tf.train.latest_checkpoint(folder))
    None
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path = state.model_checkpoint_path
    if os.path.exists(path) or _former(Path(path)).exists():
        return path
    logger.error("Couldn't find the checkpoint %s, which is said to be the latest", path)
    return None


@dataclasses.dataclass(eq=False, repr=False)
class CheckpointManager:
    """Keeps the latest few checkpoints in a directory, numbered, also from one run of a program to the next.

    Args:
      checkpoint: the `Checkpoint` to save and restore.
      directory: where; made when something is saved.
      max_to_keep: how many are kept; None for all.
      checkpoint_name: the beginning of their names.
      init_fn: what `restore_or_initialize` calls where there is no checkpoint.

    Raises:
      ValueError: `max_to_keep` is not positive.

    >>> import tempfile
    >>> import tapejax as tf
    >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    ...     for _ in range(3):
    ...         _ = checkpoint.step.assign_add(1)
    ...         _ = manager.save()
    ...     [path.removeprefix(folder) for path in manager.checkpoints]
    ['/ckpt-2', '/ckpt-3']
    """

    checkpoint: Checkpoint
    directory: str | os.PathLike[str]
    max_to_keep: int | None
    checkpoint_name: str = "ckpt"
    init_fn: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        if self.max_to_keep is not None and self.max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {self.max_to_keep}.")
        self.directory = os.fspath(self.directory)
        state = get_checkpoint_state(self.directory)
        self._latest: str | None = None if state is None else state.model_checkpoint_path
        self._kept: list[str] = [] if state is None else state.all_model_checkpoint_paths

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept, oldest first."""
        return self._kept.copy()

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint, or None."""
        return self._latest

    def save(self, checkpoint_number: IntLike | None = None, *, options: Ignored = None) -> str:
        """Saves a checkpoint, deletes the oldest beyond `max_to_keep`, and returns its path.

        Args:
          checkpoint_number: its number; by default the checkpoint's count of saves.
          options: taken for TensorFlow's sake.
        """
        prefix = os.path.join(self.directory, self.checkpoint_name)
        folder = _made_folder(prefix)
        self._latest = path = self.checkpoint._save_numbered(prefix, checkpoint_number)
        kept = [*(other for other in self._kept if other != path), path]
        too_many = max(0, len(kept) - (self.max_to_keep or len(kept)))
        self._kept = kept[too_many:]
        # The file first: should the program be stopped in between, it names no checkpoint that is gone.
        _write_state(folder, path, self._kept)
        for old in kept[:too_many]:
            if _is_checkpoint(old) and not jax.process_index():
                shutil.rmtree(old)
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint and returns its path; where there is none, calls `init_fn` and returns None."""
        if self._latest is not None:
            self.checkpoint.restore(self._latest)
        elif self.init_fn is not None:
            self.init_fn()
        return self._latest

    def sync(self) -> None:
        """Waits for checkpoints that are being written: none is, `save` returns when it is done."""


# ---- looking into one -----------------------------------------------------------------------------------------------


class CheckpointReader:
    """The values in a checkpoint by their names. Made by `load_checkpoint`."""

    def __init__(self, prefix: str):
        nodes, arrays = _read(prefix)
        saved = sorted((node["variable"] for node in nodes if "variable" in node), key=lambda x: x["key"])
        self._values = {
            x["key"]: arrays[x["array"]] if "array" in x else np.zeros(x["shape"], jax.numpy.dtype(x["dtype"]))
            for x in saved
        }

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(x.shape) for name, x in self._values.items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        from ..values.dtypes import as_dtype

        return {name: as_dtype(x.dtype) for name, x in self._values.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        return tensor_str in self._values

    def get_tensor(self, tensor_str: str) -> np.ndarray | np.generic:
        """The value, as NumPy. Raises NotFoundError where there is none of that name."""
        if tensor_str not in self._values:
            raise NotFoundError(f"Key {tensor_str} not found in checkpoint. It has: {_listed(list(self._values))}")
        return self._values[tensor_str][()]


def _one(ckpt_dir_or_file: str | os.PathLike) -> str:
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path) and not _is_checkpoint(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
        return latest
    return path


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one in a directory.

    Raises:
      ValueError: there is none in the directory.
      NotFoundError, DataLossError: as for `Checkpoint.restore`.
    """
    return CheckpointReader(_one(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: str | os.PathLike, name: str) -> np.ndarray | np.generic:
    """The value of one variable in a checkpoint, as NumPy, by the name that `list_variables` gives."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file: str | os.PathLike) -> list[tuple[str, list[int]]]:
    """The names and shapes of what a checkpoint holds, or the latest one in a directory.

    >>> import os, tempfile
    >>> import tapejax as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write(os.path.join(folder, "ckpt"))
    ...     tf.train.list_variables(path)
    [('w/.ATTRIBUTES/VARIABLE_VALUE', [2])]
    """
    nodes, _ = _read(_one(ckpt_dir_or_file), values=False)
    saved = [node["variable"] for node in nodes if "variable" in node]
    return sorted((x["key"], list(x["shape"])) for x in saved)


class ClusterSpec:
    """The addresses of a cluster's tasks, by jobs: what the resolvers of `tf.distribute` have.

    Args:
      cluster: such as ``{"worker": ["host:port", ...]}``.
    """

    def __init__(self, cluster: ClusterSpec | Mapping[str, Sequence[str]]):
        jobs = cluster.as_dict() if isinstance(cluster, ClusterSpec) else cluster
        self._jobs = {job: list(tasks) for job, tasks in jobs.items()}

    jobs = property(lambda self: sorted(self._jobs), doc="The jobs' names.")

    def as_dict(self) -> dict[str, list[str]]:
        """The addresses, by jobs."""
        return {job: list(tasks) for job, tasks in self._jobs.items()}

    def job_tasks(self, job_name: str) -> list[str]:
        """The addresses of one job's tasks."""
        return list(self._jobs[job_name])

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._jobs[job_name])
