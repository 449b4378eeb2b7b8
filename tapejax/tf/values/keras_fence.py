"""What Keras does not promise: the only file that imports ``keras.src``, and the list of what is read or replaced there.

The adapters in `tf/libraries` replace private methods, and read no private attribute that is not listed here; all else asks
the functions below.

`tests/tf/libraries/keras_on_jax/fence.py` tests each assumption. Run it first when a new Keras comes out.
"""

from __future__ import annotations

import importlib
import inspect
import types
from typing import Any

# Of each module in keras.src the names that are read or replaced.
MODULES: dict[str, str] = {
    "activations": "ALL_OBJECTS_DICT",
    "api_export": "get_name_from_symbol register_internal_serializable",
    "backend": """
        KerasTensor compute_output_spec core get_keras_mask get_stateless_scope in_stateless_scope name_scope set_keras_mask
        """,
    "backend.common.dtypes": "BIT64_TO_BIT32_DTYPE result_type",
    "backend.jax.core": "cond fori_loop jnp map name_scope scan switch while_loop",
    "backend.jax.nn": "jnn",
    "backend.jax.numpy": "add divide fmax maximum minimum multiply power subtract",
    "backend.jax.trainer": "JAXTrainer",
    "callbacks.tensorboard": "TensorBoard keras_model_summary",
    "export": "ExportArchive export_saved_model",
    "export.export_utils": "get_input_signature make_input_spec",
    "layers.preprocessing.discretization": "tf",
    "layers.preprocessing.feature_space": "tf",
    "layers.preprocessing.hashed_crossing": "tf",
    "layers.preprocessing.hashing": "tf",
    "layers.preprocessing.integer_lookup": "tf",
    "layers.preprocessing.normalization": "tf",
    "layers.preprocessing.string_lookup": "tf",
    "layers.preprocessing.text_vectorization": "tf",
    "legacy.backend": "tf",
    "legacy.layers": "tf",
    "losses": "ALL_OBJECTS_DICT",
    "losses.loss": "reduce_values scale_loss_for_distribution unscale_loss_for_distribution",
    "metrics": "ALL_OBJECTS_DICT",
    "optimizers.base_optimizer": "BaseOptimizer",
    "random.seed_generator": "jax_utils",
    "saving.serialization_lib": "tf",
    "trainers.data_adapters": "data_adapter_utils get_data_adapter",
    "trainers.data_adapters.data_adapter": "DataAdapter",
    "utils.audio_dataset_utils": "paths_and_labels_to_dataset tf tfio",
    "utils.dataset_utils": """
        _convert_dataset_to_list _get_type_spec _rescale_dataset_split_sizes _restore_dataset_from_list _split_dataset_tf
        is_tf_dataset
        """,
    "utils.image_dataset_utils": "_paths_and_labels_to_dataset_tf tf",
    "utils.io_utils": "print_msg",
    "utils.rng_utils": "tf",
    "utils.text_dataset_utils": "_paths_and_labels_to_dataset_tf tf",
    "utils.timeseries_dataset_utils": "_timeseries_dataset_tf",
}
# Of each public class the private attributes that are read, replaced or set, in the class or an object of it.
CLASSES: dict[str, str] = {
    "Layer": "_layers _maybe_build _metrics _non_trainable_variables _seed_generators _trainable_variables",
    "Model": """
        _aggregate_additional_loss _call_has_training_arg _compute_loss _flatten_layers _get_jax_state _loss_tracker
        _metrics _symbolic_build
        """,
    "Variable": "_deferred_initialize _direct_assign _initialize_with_initializer _value",
    "optimizers.Optimizer": """
        _backend_update_step _filter_empty_gradients _learning_rate _trainable_variables _use_weight_decay _variables
        """,
}
# What Keras's functions set on an array, and the module in which they do.
ON_ARRAYS: dict[str, str] = {"_keras_logits": "legacy.backend", "_keras_mask": "backend.common.masking"}
# And the parameters of functions that are called or replaced.
PARAMETERS: dict[str, str] = {
    "utils.audio_dataset_utils.paths_and_labels_to_dataset": """
        file_paths labels label_mode num_classes sampling_rate output_sequence_length ragged shuffle shuffle_buffer_size seed
        """,
    "utils.image_dataset_utils._paths_and_labels_to_dataset_tf": """
        image_paths image_size num_channels labels label_mode num_classes interpolation data_format crop_to_aspect_ratio
        pad_to_aspect_ratio shuffle shuffle_buffer_size seed
        """,
    "utils.text_dataset_utils._paths_and_labels_to_dataset_tf": """
        file_paths labels label_mode num_classes max_length shuffle shuffle_buffer_size seed
        """,
    "utils.timeseries_dataset_utils._timeseries_dataset_tf": """
        data targets sequence_length sequence_stride sampling_rate batch_size shuffle seed start_index end_index
        """,
    "utils.dataset_utils._split_dataset_tf": "dataset left_size right_size shuffle seed",
    "export.export_saved_model": "model filepath verbose input_signature kwargs",
}


def part(name: str) -> Any:
    """A module in ``keras.src``, by its name there."""
    return importlib.import_module(f"keras.src.{name}")


def unlike(name: str) -> list[str]:
    """What a module in ``keras.src`` has not, or has in another form, of what is assumed of it; an older Keras may have less."""
    try:
        module = part(name)
    except ImportError:
        return [name]
    missing = [f"{name}.{each}" for each in MODULES[name].split() if not hasattr(module, each)]
    for full, names in PARAMETERS.items():
        place, _, last = full.rpartition(".")
        if (
            place == name
            and full not in missing
            and [*inspect.signature(getattr(module, last)).parameters] != names.split()
        ):
            missing.append(f"{full}({', '.join(names.split())})")
    return missing


def names_of_keras() -> list[types.ModuleType]:
    """The modules in which users find Keras: its own, and TensorFlow's spelling of it where there is one."""
    modules = []
    for name in ("keras", "keras._tf_keras.keras"):
        try:
            modules.append(importlib.import_module(name))
        except ImportError:  # TensorFlow's spelling is not part of Keras's public interface
            pass
    return modules


ASSIGN, FIRST_VALUE = "_direct_assign", "_deferred_initialize"  # methods of a variable by which its array changes
LAYERS = "_layers"  # of a layer, the layers in it


def held(variable: Any) -> Any:
    """The array in a variable, without a note of it on the tapes; None before it has its first value."""
    return getattr(variable, "_value", None)


def is_unset(value: object) -> bool:
    """Whether `value` is a variable that Keras gives its first value later."""
    return getattr(value, "_value", value) is None


def parts_of(layer: Any) -> dict[str, Any]:
    """What a layer holds, by kind, each kind in the order of creation."""
    return {
        "trainable_variables": layer._trainable_variables,
        "non_trainable_variables": layer._non_trainable_variables,
        "seed_generators": layer._seed_generators,
        "layers": getattr(layer, LAYERS),
        "metrics": layer._metrics,
    }


def rate_of(optimizer: Any) -> Any:
    """The learning rate as it was given: a variable, or a schedule."""
    return optimizer._learning_rate


def trained_by(optimizer: Any) -> Any:
    """The variables that an optimizer was built for."""
    return optimizer._trainable_variables


def excludes(optimizer: Any) -> bool:
    """Whether any of the variables that an optimizer was built for do not decay."""
    return not all(map(optimizer._use_weight_decay, optimizer._trainable_variables))
