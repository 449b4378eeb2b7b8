"""TensorFlow's names: which stands in which namespace, and in which module it is defined.

`NAMESPACES` holds what is imported with tapejax: ``NAMESPACES["tf.nn"]["relu"]`` is ``tf.nn.relu``. `LATER` holds what is
imported when it is first used.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from .ops import array, debugging, linalg, math, nn, random, tensor_array
from .values import dtypes
from .values import tensor as values
from .values.missing import missing

_BITWISE = "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"
_ROWS = (*math.UNARY, *math.BINARY, *math.REDUCTIONS)
_ELEMENTWISE = " ".join(name for name in _ROWS if name not in {*_BITWISE.split(), "realdiv"})
# Each name is looked up in the modules of `_PLACES`, in their order; "new=old" renames.
_TABLE = {
    "tf": """
        abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh clip_by_global_norm clip_by_norm
        clip_by_value cos cosh cumsum divide equal exp floor greater greater_equal less less_equal logical_and
        logical_not logical_or maximum minimum multiply negative not_equal pow realdiv reduce_all reduce_any
        reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round scalar_mul sigmoid sign sin
        sinh sqrt square subtract tan tanh truediv truncatediv truncatemod norm
        argsort boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to cast complex concat
        ensure_shape expand_dims eye fill gather gather_nd identity linspace meshgrid newaxis one_hot ones ones_like
        pad range rank repeat reshape reverse roll saturate_cast scatter_nd searchsorted sequence_mask shape shape_n
        size slice=slice_ sort split squeeze stack stop_gradient tensor_scatter_nd_add tensor_scatter_nd_max
        tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tile transpose unique unique_with_counts
        unstack where zeros zeros_like
        eig eigvals einsum matmul tensordot
        constant convert_to_tensor is_tensor Tensor Variable
        Assert assert_equal assert_greater assert_less assert_rank
        TensorArray
        """,
    "tf.math": _ELEMENTWISE
    + """
        add_n angle argmax argmin atan2 bincount confusion_matrix conj count_nonzero cumprod cumsum cumulative_logsumexp
        floordiv floormod igamma igammac imag in_top_k invert_permutation l2_normalize lbeta log_softmax logical_not mod
        polygamma polyval pow real scalar_mul segment_max segment_mean segment_min segment_prod segment_sum softmax softplus
        softsign top_k unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
        unsorted_segment_sqrt_n unsorted_segment_sum zero_fraction zeta
        """,
    "tf.nn": """
        avg_pool avg_pool1d avg_pool2d avg_pool3d batch_normalization bias_add conv1d conv1d_transpose conv2d
        conv2d_transpose conv3d conv3d_transpose convolution crelu depth_to_space depthwise_conv2d dropout elu
        embedding_lookup gelu in_top_k l2_loss l2_normalize leaky_relu log_softmax max_pool max_pool1d max_pool2d max_pool3d
        moments pool relu relu6 selu separable_conv2d sigmoid sigmoid_cross_entropy_with_logits silu softmax
        softmax_cross_entropy_with_logits softplus softsign space_to_depth sparse_softmax_cross_entropy_with_logits swish
        tanh top_k weighted_cross_entropy_with_logits zero_fraction
        """,
    "tf.linalg": """
        adjoint band_part cholesky cholesky_solve cross det diag diag_part eig eigh eigvals eigvalsh einsum expm eye
        global_norm inv l2_normalize logdet lstsq matmul matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag
        slogdet solve sqrtm svd tensordot trace triangular_solve
        """,
    "tf.random": """
        categorical fold_in gamma normal poisson set_seed shuffle split stateless_binomial stateless_categorical
        stateless_gamma stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform truncated_normal
        uniform
        """,
    "tf.debugging": """
        Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer assert_less
        assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal
        assert_positive assert_rank assert_rank_at_least assert_rank_in assert_scalar assert_shapes assert_type
        check_numerics clear_caches disable_shadow_mode enable_shadow_mode shadow_mode
        """,
    "tf.bitwise": _BITWISE,
}
_PLACES = {
    "tf": (math, array, linalg, values, debugging, tensor_array),
    "tf.math": (math, nn, array),
    "tf.nn": (nn, math, array),
    "tf.linalg": (linalg, math, array),
    "tf.random": (random,),
    "tf.debugging": (debugging,),
    "tf.bitwise": (math,),
}

_CODECS = "decode_bmp decode_gif decode_image decode_jpeg decode_png decode_webp encode_jpeg encode_png is_jpeg"
# Families that few programs need: each is imported when one of its names is first used. {namespace: {module: names}}
_LATER: dict[str, dict[str, str]] = {
    "tf": {
        "ops.config": "device",
        "ops.graph": """
            VariableAggregation VariableSynchronization control_dependencies get_current_name_scope get_logger
            get_static_value group identity_n is_symbolic_tensor no_op tuple
            """,
        "ops.indexed_slices": "IndexedSlices",
        "ops.linalg": "matrix_square_root=sqrtm",
        "programs.graphs": "gradients",
        "values.conversions": "register_tensor_conversion_function",
        "ops.initializers": """
            constant_initializer ones_initializer random_normal_initializer random_uniform_initializer zeros_initializer
            """,
        "ops.printing": "print",
        "ops.rearrange": """
            batch_to_space bitcast dynamic_partition dynamic_stitch reverse_sequence space_to_batch
            space_to_batch_nd=space_to_batch unravel_index
            """,
        "ops.sparse": "SparseTensor",
        ".tools.seeing.source": "code",
    },
    "tf.audio": {"ops.audio": "decode_wav encode_wav"},
    "tf.autodiff": {".tape.accumulator": "ForwardAccumulator", ".tape.gradient_tape": "GradientTape"},
    "tf.autograph": {"ops.graph": "set_verbosity trace"},
    "tf.autograph.experimental": {"ops.graph": "do_not_convert set_loop_options"},
    "tf.compat": {"ops.compat": "as_bytes as_str=as_text as_str_any as_text dimension_value path_to_str"},
    "tf.compat.v1": {
        "ops.compat": """
            ConfigProto GPUOptions InteractiveSession Session disable_eager_execution disable_v2_behavior
            enable_eager_execution enable_v2_behavior name_scope enable_resource_variables=enable_v2_behavior
            enable_v2_tensorshape=enable_v2_behavior
            """,
        "ops.debugging": "assert_integer assert_scalar assert_type",
        "ops.math": "floor_div=floordiv",
        "ops.random": "set_random_seed=set_seed",
        "ops.graph": "get_logger",
    },
    "tf.compat.v1.logging": {
        "ops.compat": "DEBUG ERROR FATAL INFO WARN debug error fatal get_verbosity info log set_verbosity warn warning"
    },
    "tf.compat.v1.train": {"ops.compat": "get_global_step get_or_create_global_step"},
    "tf.config": {
        "programs.function": """
            experimental_functions_run_eagerly=functions_run_eagerly experimental_run_functions_eagerly=run_functions_eagerly
            functions_run_eagerly run_functions_eagerly
            """,
        "ops.config": """
            LogicalDevice LogicalDeviceConfiguration PhysicalDevice get_logical_device_configuration
            get_soft_device_placement get_visible_devices list_logical_devices list_physical_devices
            set_logical_device_configuration set_soft_device_placement set_visible_devices
            """,
        "ops.tpu": "experimental_connect_to_cluster",
    },
    "tf.config.experimental": {
        "ops.config": """
            VirtualDeviceConfiguration=LogicalDeviceConfiguration enable_op_determinism enable_tensor_float_32_execution
            get_device_details get_memory_growth get_memory_info
            get_virtual_device_configuration=get_logical_device_configuration get_visible_devices list_logical_devices
            list_physical_devices set_memory_growth set_virtual_device_configuration=set_logical_device_configuration
            set_visible_devices tensor_float_32_execution_enabled
            """
    },
    "tf.config.optimizer": {"ops.config": "get_experimental_options get_jit set_experimental_options set_jit"},
    "tf.config.threading": {
        "ops.config": """
            get_inter_op_parallelism_threads get_intra_op_parallelism_threads set_inter_op_parallelism_threads
            set_intra_op_parallelism_threads
            """
    },
    "tf.debugging": {
        "ops.config": """
            disable_check_numerics disable_traceback_filtering enable_check_numerics enable_traceback_filtering
            get_log_device_placement is_traceback_filtering_enabled set_log_device_placement
            """,
    },
    "tf.distribute": {
        "programs.distribute": """
            CrossDeviceOps DistributedDataset DistributedValues HierarchicalCopyAllReduce InputContext InputOptions
            InputReplicationMode MirroredStrategy MultiWorkerMirroredStrategy NcclAllReduce OneDeviceStrategy
            ParameterServerStrategy ReduceOp ReductionToOneDevice ReplicaContext RunOptions Strategy StrategyExtended
            TPUStrategy get_replica_context get_strategy has_strategy in_cross_replica_context
            """,
    },
    "tf.distribute.cluster_resolver": {"ops.tpu": "TPUClusterResolver"},
    "tf.distribute.experimental": {
        "programs.distribute": """
            CentralStorageStrategy CollectiveCommunication=CommunicationImplementation CommunicationImplementation
            CommunicationOptions MultiWorkerMirroredStrategy ParameterServerStrategy TPUStrategy ValueContext
            """
    },
    "tf.dtypes": {"ops.array": "cast complex saturate_cast"},
    "tf.experimental": {"programs.optional": "Optional"},
    "tf.experimental.numpy": {
        "ops.numpy_api": """
            asanyarray ascontiguousarray bool_ complex128 complex64 complex_ e experimental_enable_numpy_behavior finfo fix
            flatten float16 float32 float64 float_ iinfo inexact inf int16 int32 int64 int8 int_ ndarray newaxis object_ pi
            string_ uint16 uint32 uint64 uint8 unicode_
            """
        + " ".join(name for name, x in vars(jnp).items() if callable(x) and not isinstance(x, type) and name[0] != "_")
    },
    "tf.experimental.numpy.random": {
        "ops.numpy_api": """
            poisson=random_poisson rand=random_rand randint=random_randint randn=random_randn random=random_random
            seed=random_seed standard_normal=random_standard_normal uniform=random_uniform
            """
    },
    "tf.profiler.experimental": {"ops.profiler": "Profile ProfilerOptions Trace start stop"},
    "tf.experimental.dlpack": {"ops.graph": "from_dlpack to_dlpack"},
    "tf.image": {
        "ops.image": """
            ResizeMethod adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation central_crop
            convert_image_dtype crop_and_resize crop_to_bounding_box extract_patches flip_left_right flip_up_down
            grayscale_to_rgb hsv_to_rgb image_gradients non_max_suppression pad_to_bounding_box per_image_standardization
            psnr random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down random_hue
            random_saturation resize resize_with_crop_or_pad resize_with_pad rgb_to_grayscale rgb_to_hsv rgb_to_yiq
            rgb_to_yuv rot90 sobel_edges ssim ssim_multiscale stateless_random_brightness stateless_random_contrast
            stateless_random_crop stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
            stateless_random_saturation total_variation transpose yiq_to_rgb yuv_to_rgb
            """,
        "ops.encoded": _CODECS,
    },
    "tf.io": {
        "ops.io": "decode_raw matching_files parse_tensor read_file serialize_tensor write_file",
        "ops.encoded": _CODECS,
    },
    "tf.io.gfile": {"ops.io": "GFile copy exists glob isdir join listdir makedirs mkdir remove rename rmtree walk"},
    "tf.math.special": {
        "ops.math": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e dawsn expint fresnel_cos fresnel_sin spence"
    },
    "tf.nn": {
        "ops.rearrange": "space_to_batch",
        "ops.sampled": "nce_loss sampled_softmax_loss",
        "ops.windows": """
            compute_average_loss ctc_loss local_response_normalization lrn max_pool_with_argmax scale_regularization_loss
            """,
    },
    "tf.nn.experimental": {"ops.windows": "stateless_dropout"},
    "tf.random": {
        "ops.generator": "Algorithm Generator create_rng_state get_global_generator set_global_generator",
        "ops.sampled": "log_uniform_candidate_sampler uniform_candidate_sampler",
    },
    "tf.random.experimental": {
        "ops.generator": """
            Algorithm Generator create_rng_state get_global_generator set_global_generator stateless_shuffle
            """,
        "ops.random": "stateless_fold_in=fold_in stateless_split=split",
    },
    "tf.signal": {
        "ops.signal": """
            dct fft fft2d fft3d fftshift frame hamming_window hann_window idct ifft ifft2d ifft3d ifftshift inverse_stft
            inverse_stft_window_fn irfft irfft2d irfft3d linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms
            overlap_and_add rfft rfft2d rfft3d stft
            """
    },
    "tf.sparse": {
        "ops.sparse": """
            SparseTensor add concat expand_dims eye from_dense map_values reduce_sum reorder reshape retain
            sparse_dense_matmul to_dense transpose
            """
    },
    "tf.summary": {
        "ops.summary": """
            SummaryWriter create_file_writer create_noop_writer flush graph histogram image record_if scalar
            should_record_summaries text trace_export trace_off trace_on write
            """
    },
    "tf.summary.experimental": {"ops.summary": "get_step set_step summary_scope"},
    "tf.sysconfig": {"ops.config": "get_build_info"},
    "tf.test": {
        "testing": "compute_gradient max_error",
        "ops.config": """
            gpu_device_name is_built_with_cuda is_built_with_gpu_support is_built_with_rocm is_built_with_xla
            is_gpu_available
            """,
        "ops.testcase": "TestCase main",
    },
    "tf.version": {"ops.config": "COMPILER_VERSION GIT_VERSION VERSION"},
    "tf.tpu.experimental": {"ops.tpu": "initialize_tpu_system shutdown_tpu_system"},
    "tf.types.experimental": {
        "programs.function": "ConcreteFunction GenericFunction=Function PolymorphicFunction=Function",
        "ops.graph": "TensorLike",
    },
}


# What `tf.compat.v1` does not have as `tf` has it: other arguments in version 1, or no such name there.
NOT_IN_VERSION_1 = """
    ForwardAccumulator NarrowingWarning NotDifferentiable VariableAggregation annotations assert_equal assert_greater
    assert_less assert_rank batch_to_space boolean_mask case code cond constant_initializer device eig eigvals foldl
    foldr gather gather_nd get_current_name_scope inside_function map_fn name_scope newaxis
    ones_initializer pad random_normal_initializer random_uniform_initializer reverse_sequence scalar_mul scan shape
    size space_to_batch string tuple where while_loop zeros_initializer
""".split()


def _found(entry: str, places: tuple) -> tuple[str, Any]:
    new, _, old = entry.partition("=")
    place = next(vars(place) for place in places if (old or new) in vars(place))
    return new, place[old or new]


NAMESPACES: dict[str, dict[str, Any]] = {
    namespace: dict(_found(entry, _PLACES[namespace]) for entry in names.split()) for namespace, names in _TABLE.items()
}
NAMESPACES["tf.dtypes"] = {"DType": dtypes.DType, "as_dtype": dtypes.as_dtype} | {
    name: x for name, x in vars(dtypes).items() if isinstance(x, dtypes.DType)
}
# {namespace: {name: (module, its name there)}}
LATER: dict[str, dict[str, tuple[str, str]]] = {
    namespace: {
        (pair := entry.partition("="))[0]: (module, pair[2] or pair[0])
        for module, names in families.items()
        for entry in names.split()
    }
    for namespace, families in _LATER.items()
}
LATER["tf.compat.v1"] |= {name: place for name, place in LATER["tf"].items() if name not in NOT_IN_VERSION_1}


def names_of(full: str) -> list[str]:
    """All names of a namespace, ``"tf"`` or ``"tf.nn"``."""
    return [*NAMESPACES.get(full, ()), *LATER.get(full, ())]


def when_asked(full: str, held: dict[str, Any]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: a name that is imported now and then kept in `held`, or an error with a hint."""
    refuse = missing(full)
    later = LATER.get(full, {})

    def __getattr__(name: str) -> Any:
        if name not in later:
            return refuse(name)
        module, there = later[name]
        owner = importlib.import_module(f".{module}", __package__)
        held[name] = getattr(owner, there)
        return held[name]

    return __getattr__


def namespaces() -> dict[str, types.ModuleType]:
    """``{"nn": the module tapejax.nn, "config.experimental": ...}``, each an attribute of the one above it."""
    full_names = {full for full in (*NAMESPACES, *LATER) if full != "tf"}
    full_names |= {full.rpartition(".")[0] for full in full_names} - {"tf"}
    modules: dict[str, types.ModuleType] = {}
    for full in sorted(full_names):
        name = full.removeprefix("tf.")
        module = types.ModuleType(full.replace("tf", "tapejax", 1), f"TensorFlow's {full}.")
        held = vars(module)
        held.update(NAMESPACES.get(full, {}), __all__=names_of(full), __getattr__=when_asked(full, held))
        held["__dir__"] = lambda names=held["__all__"]: sorted(names)
        modules[name] = module
        above, _, last = name.rpartition(".")
        if above:
            setattr(modules[above], last, module)
    return modules
