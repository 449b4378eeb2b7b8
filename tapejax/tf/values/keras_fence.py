"""What Keras does not promise: the only file that imports ``keras.src``, the list of what is read or replaced there, and the
only file that has the names of private attributes.

`tests/tf/libraries/keras_on_jax/fence.py` tests each assumption. Run it first when a new Keras comes out.
"""

from __future__ import annotations

import importlib
import inspect
import types
from typing import Any

# ---- private names, each of which stands here alone -------------------------------------------------------------------

# Of a variable: its array, what assigns to it, what gives it its first value at once, or later.
_VARIABLE = VALUE, ASSIGN, INITIALIZE, FIRST_VALUE = """
    _value _direct_assign _initialize_with_initializer _deferred_initialize
""".split()
# Of a layer: the layers and the metrics in it, what builds it.
_LAYER = LAYERS, METRICS, BUILD = "_layers _metrics _maybe_build".split()
# Of a model: all layers in it, whether its call takes `training`; the loss, with what the model's own is added by, and the
# metric that notes it; what builds it by the shapes of a batch, and gives the state that the trainer hands around.
_MODEL = ALL_LAYERS, TAKES_TRAINING, COMPUTE_LOSS, ADD_OWN_LOSS, LOSS_TRACKER, BUILD_BY_BATCH, STATE = """
    _flatten_layers _call_has_training_arg _compute_loss _aggregate_additional_loss _loss_tracker _symbolic_build _get_jax_state
""".split()
# Of an optimizer: the learning rate as it was given, the variables that it was built for, whether one decays; what drops
# gradients that are None, what updates the variables.
_OPTIMIZER = RATE, TRAINED, DECAYS, FILTER, UPDATE = """
    _learning_rate _trainable_variables _use_weight_decay _filter_empty_gradients _backend_update_step
""".split()
IS_OPEN = "_pop_on_exit"  # of a name scope, whether it was not open before
LOGITS, MASK = "_keras_logits", "_keras_mask"  # what functions set on an array
# What makes datasets by TensorFlow, and splits one, by these: its type, its samples, how many for each, a part as it was.
OF_FILES, OF_SERIES, SPLIT = "_paths_and_labels_to_dataset_tf", "_timeseries_dataset_tf", "_split_dataset_tf"
SPLITTING = "_get_type_spec _convert_dataset_to_list _rescale_dataset_split_sizes _restore_dataset_from_list"
TENSORFLOWS = "keras._tf_keras.keras"  # Keras in TensorFlow's spelling

# ---- what is assumed ---------------------------------------------------------------------------------------------------

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
    "utils.dataset_utils": f"{SPLITTING} {SPLIT} is_tf_dataset",
    "utils.image_dataset_utils": f"{OF_FILES} tf",
    "utils.io_utils": "print_msg",
    "utils.rng_utils": "tf",
    "utils.text_dataset_utils": f"{OF_FILES} tf",
    "utils.timeseries_dataset_utils": OF_SERIES,
}
# What a layer holds, by kind: each list under that name, private.
KINDS = "trainable_variables", "non_trainable_variables", "seed_generators", "layers", "metrics"
# Of each public class the private attributes that are read, replaced or set, in the class or an object of it.
CLASSES: dict[str, list[str]] = {
    "Layer": [*_LAYER, *[f"_{kind}" for kind in KINDS]],
    "Model": [*_MODEL, METRICS],
    "Variable": _VARIABLE,
    "name_scope": [IS_OPEN],
    "optimizers.Optimizer": _OPTIMIZER,
}
# What Keras's functions set on an array, and the module in which they do.
ON_ARRAYS: dict[str, str] = {LOGITS: "legacy.backend", MASK: "backend.common.masking"}
# And the parameters of functions that are called or replaced.
PARAMETERS: dict[str, str] = {
    "utils.audio_dataset_utils.paths_and_labels_to_dataset": """
        file_paths labels label_mode num_classes sampling_rate output_sequence_length ragged shuffle shuffle_buffer_size seed
        """,
    f"utils.image_dataset_utils.{OF_FILES}": """
        image_paths image_size num_channels labels label_mode num_classes interpolation data_format crop_to_aspect_ratio
        pad_to_aspect_ratio shuffle shuffle_buffer_size seed
        """,
    f"utils.text_dataset_utils.{OF_FILES}": """
        file_paths labels label_mode num_classes max_length shuffle shuffle_buffer_size seed
        """,
    f"utils.timeseries_dataset_utils.{OF_SERIES}": """
        data targets sequence_length sequence_stride sampling_rate batch_size shuffle seed start_index end_index
        """,
    f"utils.dataset_utils.{SPLIT}": "dataset left_size right_size shuffle seed",
    "export.export_saved_model": "model filepath verbose input_signature kwargs",
}

# ---- what is asked -----------------------------------------------------------------------------------------------------


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
    for name in ("keras", TENSORFLOWS):
        try:
            modules.append(importlib.import_module(name))
        except ImportError:  # TensorFlow's spelling is not part of Keras's public interface
            pass
    return modules


def is_of(function: Any, name: str) -> bool:
    """Whether `function` is defined in a package in ``keras.src``, of this name there."""
    return bool(function.__module__.startswith(f"keras.src.{name}."))


def held(variable: Any) -> Any:
    """The array in a variable, without a note of it on the tapes; None before it has its first value."""
    return getattr(variable, VALUE, None)


def is_unset(value: object) -> bool:
    """Whether `value` is a variable that Keras gives its first value later."""
    return getattr(value, VALUE, value) is None


def parts_of(layer: Any) -> dict[str, Any]:
    """What a layer holds, by kind, each kind in the order of creation."""
    return {kind: getattr(layer, f"_{kind}") for kind in KINDS}


def rate_of(optimizer: Any) -> Any:
    """The learning rate as it was given: a variable, or a schedule."""
    return getattr(optimizer, RATE)


def trained_by(optimizer: Any) -> Any:
    """The variables that an optimizer was built for."""
    return getattr(optimizer, TRAINED)


def excludes(optimizer: Any) -> bool:
    """Whether any of the variables that an optimizer was built for do not decay."""
    return not all(map(getattr(optimizer, DECAYS), trained_by(optimizer)))
