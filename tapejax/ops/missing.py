"""What is not there: what to use in JAX for a name of TensorFlow's that tapejax does not have. A * stands for any letters."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable
from typing import Any

MISSING = {
    # ---- tf
    "tf.CriticalSection": "Python's threading.Lock",
    "tf.DeviceSpec": "the device's name: tf.device('/GPU:0')",
    "tf.Graph": "nothing: JAX runs at once; tf.function compiles",
    "tf.Operation": "the tape, which lists operations: print(tape)",
    "tf.RaggedTensor*": "arrays with a mask: jnp.where, tf.sequence_mask",
    "tf.Session": "nothing: JAX runs at once; jax.jit compiles",
    "tf.SparseTensor*": "jax.experimental.sparse.BCOO",
    "tf.TypeSpec": "tf.TensorSpec, or jax.ShapeDtypeStruct",
    "tf.*Spec": "tf.TensorSpec, or jax.ShapeDtypeStruct",
    "tf.approx_top_k": "jax.lax.approx_max_k",
    "tf.as_string": "Python's str(x.numpy())",
    "tf.audio": "the soundfile package, or scipy.io.wavfile",
    "tf.check_pinned": "x.sharding.memory_kind of a JAX array",
    "tf.compat": "TensorFlow 2's names",
    "tf.conv": "tf.nn.convolution, or jax.lax.conv_general_dilated",
    "tf.conv2d_backprop_*": "jax.vjp of tf.nn.conv2d",
    "tf.data.FixedLengthRecordDataset": "numpy.fromfile and tf.data.Dataset.from_tensor_slices",
    "tf.data.TFRecordDataset": "grain.experimental.TFRecordIterDataset and tf.data.Dataset.from_generator",
    "tf.data.TextLineDataset": "Python's open and tf.data.Dataset.from_generator: JAX has no strings",
    "tf.data.ThreadingOptions": "nothing: options are kept, and do nothing",
    "tf.data.experimental*": "grain",
    "tf.distribute*": "jax.sharding and jax.shard_map",
    "tf.dtensor": "jax.sharding",
    "tf.edit_distance": "a Python function: JAX has no strings",
    "tf.extract_volume_patches": "jax.lax.conv_general_dilated_patches",
    "tf.feature_column": "Keras's preprocessing layers",
    "tf.fftnd": "tf.signal.fftnd",
    "tf.ifftnd": "tf.signal.ifftnd",
    "tf.irfftnd": "tf.signal.irfftnd",
    "tf.rfftnd": "tf.signal.rfftnd",
    "tf.fingerprint": "hashlib on x.numpy().tobytes()",
    "tf.graph_util": "tf.saved_model, or jax.export",
    "tf.import_graph_def": "tf.saved_model.load, or jax.export.deserialize",
    "tf.lite": "jax.export, and ai-edge-torch or jax2tf to convert",
    "tf.load_library": "jax.ffi",
    "tf.load_op_library": "jax.ffi",
    "tf.lookup": "a Python dict",
    "tf.make_ndarray": "numpy.asarray",
    "tf.make_tensor_proto": "tf.io.serialize_tensor",
    "tf.mlir": "jax.jit(f).lower(x).as_text()",
    "tf.nondifferentiable_batch_function": "jax.vmap",
    "tf.profiler": "jax.profiler",
    "tf.q*int*": "jnp.int8 and a scale of your own, or the qwix package",
    "tf.quantization": "jnp.int8 and a scale of your own, or the qwix package",
    "tf.queue": "Python's queue",
    "tf.ragged*": "arrays with a mask: jnp.where, tf.sequence_mask",
    "tf.random_index_shuffle": "jax.random.permutation",
    "tf.raw_ops": "the function of the same purpose in tf, tf.math or jax.lax",
    "tf.register_tensor_conversion_function": "a __jax_array__ method",
    "tf.resource": "tf.Variable",
    "tf.security": "nothing",
    "tf.sets": "jnp.intersect1d, jnp.union1d, jnp.setdiff1d",
    "tf.sparse*": "jax.experimental.sparse",
    "tf.strings": "Python's strings",
    "tf.summary": "a writer of your own: tensorboardX, or clu.metric_writers",
    "tf.tools": "nothing",
    "tf.tpu": "jax.devices('tpu') and jax.sharding",
    "tf.type_spec_from_value": "tf.TensorSpec.from_tensor, or jax.typeof",
    "tf.variable_creator_scope": "a function that makes your variables",
    "tf.variant": "a Python list, or a pytree",
    "tf.xla": "jax.jit",
    # ---- tf.autograph
    "tf.autograph.experimental.Feature": "nothing: there is no AutoGraph",
    "tf.autograph.to_code": "jax.make_jaxpr, or print(tape.as_function(target, sources))",
    "tf.autograph.to_graph": "tf.function, with tf.cond and tf.while_loop for control flow by values",
    # ---- tf.config
    "tf.config.experimental.ClusterDeviceFilters": "jax.distributed.initialize(local_device_ids=...)",
    "tf.config.experimental.*mlir_bridge": "nothing: JAX always compiles through MLIR",
    "tf.config.experimental.reset_memory_stats": "jax.profiler.device_memory_profile",
    "tf.config.experimental_connect_to_*": "jax.distributed.initialize",
    # ---- tf.debugging
    "tf.debugging.experimental*": "jax.debug, or the tapes: print(tape), tape.check_numerics",
    "tf.debugging.set_log_device_placement": "jax.debug.visualize_array_sharding",
    # ---- tf.dtypes
    "tf.dtypes.QUANTIZED_DTYPES": "jnp.int8 and a scale of your own",
    "tf.dtypes.experimental": "tf.experimental, which has the same dtypes",
    "tf.dtypes.q*int*": "jnp.int8 and a scale of your own, or the qwix package",
    "tf.dtypes.resource": "tf.Variable",
    "tf.dtypes.variant": "a Python list, or a pytree",
    # ---- tf.experimental
    "tf.experimental.*ExtensionType*": "a dataclass and jax.tree_util.register_dataclass",
    "tf.experimental.DynamicRaggedShape": "arrays with a mask",
    "tf.experimental.Optional": "Python's None",
    "tf.experimental.RowPartition": "arrays with a mask",
    "tf.experimental.StructuredTensor": "a pytree of arrays",
    "tf.experimental.dispatch_for_*": "a __jax_array__ method",
    "tf.experimental.unregister_dispatch_for": "a __jax_array__ method",
    "tf.experimental.dtensor": "jax.sharding",
    "tf.experimental.extension_type": "a dataclass and jax.tree_util.register_dataclass",
    "tf.experimental.register_filesystem_plugin": "fsspec, or a path that is mounted",
    "tf.experimental.tensorrt": "jax.jit",
    # ---- tf.image
    "tf.image.combined_non_max_suppression": "tf.image.non_max_suppression for each class",
    "tf.image.*decode_jxl": "the pillow-jxl-plugin package",
    "tf.image.draw_bounding_boxes": "PIL.ImageDraw, or matplotlib.patches",
    "tf.image.extract_glimpse": "tf.image.crop_and_resize",
    "tf.image.generate_bounding_box_proposals": "tf.image.non_max_suppression",
    "tf.image.non_max_suppression_*": "tf.image.non_max_suppression",
    "tf.image.*sample_distorted_bounding_box": "tf.image.random_crop, or tf.image.crop_and_resize with random boxes",
    # ---- tf.io
    "tf.io.decode_csv": "Python's csv, or numpy.loadtxt",
    "tf.io.decode_json_example": "Python's json",
    "tf.io.decode_jxl": "the pillow-jxl-plugin package",
    "tf.io.decode_proto": "the protobuf package",
    "tf.io.encode_proto": "the protobuf package",
    "tf.io.match_filenames_once": "tf.io.gfile.glob",
    "tf.io.parse_*": "grain, or the array_record package",
    "tf.io.*Feature": "grain, or the array_record package",
    "tf.io.TFRecord*": "grain, or the array_record package",
    "tf.io.*serialize*sparse": "jax.experimental.sparse, and numpy.savez for its arrays",
    "tf.io.write_graph": "jax.export",
    # ---- tf.linalg
    "tf.linalg.LinearOperator*": "jnp matrices, or the lineax package",
    "tf.linalg.banded_triangular_solve": "tf.linalg.triangular_solve of tf.linalg.diag(bands, k=...)",
    "tf.linalg.cholesky_update": "jax.lax.linalg.cholesky_update",
    "tf.linalg.experimental*": "jax.scipy.sparse.linalg.cg",
    # ---- tf.math
    "tf.math.reduce_ptp": "jnp.ptp",
    "tf.math.sobol_sample": "scipy.stats.qmc.Sobol",
    "tf.math.special.bessel_j*": "jax.scipy.special.bessel_jn",
    "tf.math.special.*": "scipy.special in tf.numpy_function",
    # ---- tf.nn
    "tf.nn.RNNCell*": "keras.layers.RNN",
    "tf.nn.*_candidate_sampler": "jax.random.categorical",
    "tf.nn.compute_accidental_hits": "tf.equal of the classes and the samples",
    "tf.nn.ctc_beam_search_decoder": "keras.ops.ctc_decode(strategy='beam_search')",
    "tf.nn.ctc_greedy_decoder": "keras.ops.ctc_decode",
    "tf.nn.ctc_unique_labels": "nothing: tf.nn.ctc_loss does not need it",
    "tf.nn.depthwise_conv2d_backprop_*": "jax.vjp of tf.nn.depthwise_conv2d",
    "tf.nn.embedding_lookup_sparse": "jax.ops.segment_sum over tf.gather",
    "tf.nn.fractional_*_pool": "jax.lax.reduce_window",
    "tf.nn.isotonic_regression": "optax.projections, or sklearn.isotonic",
    "tf.nn.nce_loss": "tf.nn.sigmoid_cross_entropy_with_logits on sampled classes",
    "tf.nn.safe_embedding_lookup_sparse": "jax.ops.segment_sum over tf.gather",
    "tf.nn.sampled_softmax_loss": "tf.nn.softmax_cross_entropy_with_logits on sampled classes",
    "tf.nn.with_space_to_batch": "tf.nn.conv2d(..., dilations=rate)",
    # ---- tf.random
    "tf.random.*_candidate_sampler": "jax.random.categorical",
    "tf.random.uniform_candidate_sampler": "jax.random.randint",
    "tf.random.all_candidate_sampler": "jax.random.permutation",
    "tf.random.stateless_parameterized_truncated_normal": "jax.random.truncated_normal",
    # ---- tf.signal
    "tf.signal.*mdct": "tf.signal.frame and tf.signal.dct(type=4)",
    # ---- tf.sysconfig, tf.test, tf.train, tf.types, tf.version
    "tf.sysconfig.*": "jax.ffi.include_dir, for code of your own in C++",
    "tf.test.Benchmark": "Python's timeit, with x.numpy() to wait for the result",
    "tf.test.assert_equal_graph_def": "str(jax.make_jaxpr(f)(x))",
    "tf.test.benchmark_config": "jax.config",
    "tf.test.create_local_cluster": "jax.distributed.initialize, in processes of your own",
    "tf.test.disable_with_predicate": "unittest.skipIf",
    "tf.test.experimental*": "jax.block_until_ready",
    "tf.test.is_cpu_target_available": "Python's platform.machine",
    "tf.test.with_eager_op_as_function": "nothing",
    "tf.train.*List": "NumPy arrays, in files of Grain's ArrayRecord or numpy.savez",
    "tf.train.*Example": "NumPy arrays, in files of Grain's ArrayRecord or numpy.savez",
    "tf.train.Feature*": "NumPy arrays, in files of Grain's ArrayRecord or numpy.savez",
    "tf.train.CheckpointView": "tf.train.list_variables",
    "tf.train.TrackableView": "tf.Module.submodules and variables",
    "tf.train.ClusterSpec": "jax.distributed.initialize",
    "tf.train.*Def": "jax.distributed.initialize",
    "tf.train.Coordinator": "Python's threading",
    "tf.train.ExponentialMovingAverage": "optax.ema, or a variable: v.assign(0.99 * v + 0.01 * x)",
    "tf.train.checkpoints_iterator": "a loop over tf.train.latest_checkpoint",
    "tf.train.experimental.*": "tf.train.Checkpoint",
    "tf.types.experimental.*": "typing.Any, or jax.typing.ArrayLike",
    "tf.version.GRAPH_DEF_*": "jax.__version__: there are no graphs",
}


@functools.cache
def hint_for(full: str) -> str | None:
    """What to use instead of a name: by the table, or a function of JAX's that is called the same."""
    exact = MISSING.get(full)
    if exact is None:
        exact = next((hint for pattern, hint in MISSING.items() if fnmatch.fnmatchcase(full, pattern)), None)
    return exact or _in_jax(full.rpartition(".")[2])


def missing(namespace: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` for the namespace, ``"tf"`` or ``"tf.nn"``: what to use instead of a name."""

    def __getattr__(name: str) -> Any:
        full = f"{namespace}.{name}"
        hint = None if name.startswith("__") else hint_for(full)
        raise AttributeError(f"tapejax has no {full}" + (f": use {hint}" if hint else ""))

    return __getattr__


def _in_jax(name: str) -> str | None:
    """A function of JAX's by that name, if there is one."""
    if name.startswith("_"):
        return None
    import jax.nn
    import jax.scipy.special  # here, since only an error needs it

    places = {"jnp": jax.numpy, "jax.lax": jax.lax, "jax.nn": jax.nn, "jax.scipy.special": jax.scipy.special}
    return next((f"{place}.{name}" for place, module in places.items() if callable(getattr(module, name, None))), None)
