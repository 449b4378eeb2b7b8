"""``Model.export`` and ``keras.export.ExportArchive`` with `tapejax.saved_model`: Keras's own write TensorFlow's format."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..values import keras_fence as fence
from ..values import nest
from ..values.types import Ignored, Nest, VariableLike
from . import adapters as libraries
from .keras_adapter import tensors_in


def _spec(x: Any) -> Any:
    """The spec of an input, which may be given as Keras's ``InputSpec``, a placeholder or a tensor."""
    kind = libraries.package.TensorSpec
    if isinstance(x, kind):
        return x
    spec = fence.part("export.export_utils").make_input_spec(x)
    return kind(spec.shape, spec.dtype, spec.name)


class ExportArchive:
    """Functions of layers or models on disk, to be loaded by `tapejax.saved_model.load` where the Python code is not.

    >>> import tempfile
    >>> import tapejax as tf
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    >>> archive = tf.keras.export.ExportArchive()
    >>> _ = archive.track_and_add_endpoint("serve", model, [tf.TensorSpec([None, 2])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     archive.write_out(folder, verbose=False)
    ...     loaded = tf.saved_model.load(folder)
    >>> loaded.serve(tf.constant([[1.0, 2.0]]))
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[3.]], dtype=float32)>
    """

    def __init__(self) -> None:
        self._saved: Any = libraries.package.saved_model.LoadedObject()
        self._saved.variables, self._saved.trainable_variables, self._saved.non_trainable_variables = [], [], []
        self._saved.tracked = []
        self._endpoints: dict[str, Any] = {}

    variables = property(lambda self: self._saved.variables)
    trainable_variables = property(lambda self: self._saved.trainable_variables)
    non_trainable_variables = property(lambda self: self._saved.non_trainable_variables)

    def track(self, resource: Any) -> None:
        """Saves the variables of a layer or model.

        Raises:
          ValueError: it is something else, or not built.
        """
        if not isinstance(resource, sys.modules["keras"].Layer):
            raise ValueError(f"Invalid resource type. Expected a Keras `Layer` or `Model`, got {resource!r}")
        if not resource.built:
            raise ValueError("The layer provided has not yet been built. It must be built before export.")
        for name in ("variables", "trainable_variables", "non_trainable_variables"):
            held = getattr(self._saved, name)
            held += [x for x in getattr(resource, name) if not any(x is other for other in held)]
        self._saved.tracked.append(resource)

    def add_endpoint(
        self, name: str, fn: Callable, input_signature: Sequence[Nest] | None = None, **options: Ignored
    ) -> Any:
        """Saves a function under a name; returns the function that is saved.

        Args:
          name: the attribute of the loaded object.
          fn: a function; without a signature a `tapejax.function` that has been called.
          input_signature: for each argument a `TensorSpec`, an ``InputSpec``, a placeholder or a tensor, or a structure of them.

        Raises:
          ValueError: there is such a name already, or no signature.
        """
        if name in self._endpoints:
            raise ValueError(f"Endpoint name {name!r} is already taken.")
        if input_signature is None:
            if not isinstance(fn, libraries.package.types.experimental.GenericFunction):
                raise ValueError(
                    "If the `fn` argument provided is not a `tf.function`, you must provide an `input_signature` argument: "
                    f"add_endpoint({name!r}, fn, input_signature=[tf.TensorSpec([None, 3])])"
                )
            traced: Any = fn
            concrete = [*traced._concrete.values()] or [
                fn.get_concrete_function(*p.args, **p.kwargs) for p in traced._programs.values()
            ]
            if not concrete:
                raise ValueError(
                    f"The tf.function for endpoint {name!r} has never been called: call it, or give input_signature"
                )
            served, signature = traced, concrete[0]
        else:
            specs = nest.map_structure(_spec, tuple(input_signature))
            served = signature = libraries.package.function(
                lambda *args: tensors_in(fn(*args)), input_signature=specs, autograph=False
            )
        setattr(self._saved, name, served)
        self._endpoints[name] = signature
        return served

    def track_and_add_endpoint(
        self, name: str, resource: Any, input_signature: Sequence[Nest], **options: Ignored
    ) -> Any:
        """`track` of a layer or model and `add_endpoint` of its call."""
        self.track(resource)
        return self.add_endpoint(name, resource.__call__, input_signature)

    def add_variable_collection(self, name: str, variables: Sequence[VariableLike]) -> None:
        """Saves variables as a list under a name."""
        setattr(self._saved, name, list(variables))

    def write_out(self, filepath: str | os.PathLike, options: Any = None, verbose: bool = True) -> None:
        """Writes what was added into a directory. The first function is also the signature "serving_default".

        Raises:
          ValueError: nothing was added.
        """
        if not self._endpoints:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        signatures = {"serving_default": next(iter(self._endpoints.values()))} | self._endpoints
        libraries.package.saved_model.save(self._saved, filepath, signatures, options)
        if verbose:
            names = ", ".join(map(repr, self._endpoints))
            say = fence.part("utils.io_utils").print_msg
            say(
                f"Saved artifact at {str(filepath)!r}, for tf.saved_model.load. The following endpoints are available: {names}"
            )


def _export(
    model: Any,
    filepath: str | os.PathLike,
    verbose: bool | None = None,
    input_signature: Any = None,
    **options: Ignored,
) -> None:
    signature_of = fence.part("export.export_utils").get_input_signature
    archive = ExportArchive()
    archive.track_and_add_endpoint("serve", model, signature_of(model) if input_signature is None else input_signature)
    archive.write_out(filepath, verbose=verbose is not False)


def install() -> None:
    """Puts them in the place of Keras's."""
    ExportArchive.__module__ = "keras.export"
    if fence.unlike("export") or fence.unlike("export.export_utils"):
        return
    private = fence.part("export")
    private.export_saved_model = _export
    for module in (private, *(importlib.import_module(f"{keras.__name__}.export") for keras in fence.names_of_keras())):
        module.ExportArchive = ExportArchive
