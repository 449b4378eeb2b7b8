"""TensorFlow's names: the one table of which name stands in which namespaces, and in which module its body is.

A new name is a word in the row of its module and namespaces. The namespaces are made of the table, the stubs and the list of
missing names of these (`.ci/stubs`). `EAGER` has the modules that are imported with tapejax, `LAZY` families that few
programs need: each is imported when one of its names is first used.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from .values.missing import missing

# {module: {namespaces: names}}; "new=old" renames. What version 1 does not have as version 2 does is not in tf.compat.v1.
EAGER: dict[str, dict[str, str]] = {
    ".tape.accumulator": {"tf tf.autodiff": "ForwardAccumulator"},
    ".tape.gradient_tape": {
        "tf tf.compat.v1": "UnconnectedGradients",
        "tf tf.compat.v1 tf.autodiff": "GradientTape",
    },
    "ops.array": {
        "tf tf.compat.v1": """
            argsort broadcast_dynamic_shape broadcast_static_shape broadcast_to concat ensure_shape expand_dims fill
            identity linspace meshgrid one_hot ones ones_like range rank repeat reshape reverse roll scatter_nd
            searchsorted sequence_mask shape_n slice=slice_ sort split squeeze stack stop_gradient
            tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub
            tensor_scatter_nd_update tile transpose unique unique_with_counts unstack zeros zeros_like
            """,
        "tf tf.compat.v1 tf.dtypes": "cast complex saturate_cast",
        "tf tf.compat.v1 tf.linalg": "eye",
        "tf": "boolean_mask gather gather_nd newaxis pad shape size where",
        "tf.math": "invert_permutation",
        "tf.nn": "depth_to_space space_to_depth",
    },
    "ops.control_flow": {
        "tf tf.compat.v1": "switch_case vectorized_map",
        "tf": "case cond foldl foldr map_fn scan while_loop",
    },
    "ops.custom_gradient": {"tf tf.compat.v1": "custom_gradient grad_pass_through recompute_grad"},
    "ops.debugging": {
        "tf tf.compat.v1 tf.debugging": "Assert",
        "tf tf.debugging": "assert_equal assert_greater assert_less assert_rank",
        "tf.compat.v1 tf.debugging": "assert_integer assert_scalar assert_type",
        "tf.debugging": """
            assert_all_finite assert_greater_equal assert_less_equal assert_near assert_negative assert_non_negative
            assert_non_positive assert_none_equal assert_positive assert_rank_at_least assert_rank_in assert_shapes
            check_numerics clear_caches disable_shadow_mode enable_shadow_mode shadow_mode
            """,
    },
    "ops.linalg": {
        "tf tf.compat.v1": "matrix_square_root=sqrtm",
        "tf tf.compat.v1 tf.linalg": "einsum matmul tensordot",
        "tf tf.linalg": "eig eigvals",
        "tf.linalg": """
            adjoint band_part cholesky cholesky_solve cross det diag diag_part eigh eigvalsh expm inv logdet lstsq lu
            lu_matrix_inverse lu_reconstruct lu_solve matrix_rank matrix_transpose matvec pinv qr set_diag slogdet solve sqrtm
            svd trace triangular_solve
            """,
    },
    "ops.math": {
        "tf tf.compat.v1": "clip_by_global_norm clip_by_norm clip_by_value realdiv truncatediv truncatemod",
        "tf tf.compat.v1 tf.linalg": "norm",
        "tf tf.compat.v1 tf.math": """
            abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh cos cosh cumsum divide equal exp floor
            greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative
            not_equal pow reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod
            reduce_sum round sign sin sinh sqrt square subtract tan truediv
            """,
        "tf tf.compat.v1 tf.math tf.nn": "sigmoid tanh",
        "tf tf.math": "scalar_mul",
        "tf.bitwise": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift",
        "tf.compat.v1": "floor_div=floordiv",
        "tf.linalg": "global_norm normalize",
        "tf.linalg tf.math tf.nn": "l2_normalize",
        "tf.math": """
            angle bincount ceil confusion_matrix conj count_nonzero cumprod cumulative_logsumexp digamma divide_no_nan
            erf erfc erfcinv erfinv expm1 floordiv floormod igamma igammac imag is_finite is_inf is_nan lbeta lgamma
            log log1p log_sigmoid logical_xor mod multiply_no_nan ndtri polygamma polyval real reciprocal
            reciprocal_no_nan reduce_euclidean_norm reduce_std reduce_variance rint rsqrt segment_max segment_mean
            segment_min segment_prod segment_sum squared_difference unsorted_segment_max unsorted_segment_mean
            unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlog1py
            xlogy zeta
            """,
        "tf.math tf.math.special": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e",
        "tf.math tf.nn": "in_top_k softplus top_k zero_fraction",
        "tf.math.special": "dawsn expint fresnel_cos fresnel_sin spence",
    },
    "ops.nn": {
        "tf.math tf.nn": "log_softmax softmax softsign",
        "tf.nn": """
            avg_pool avg_pool1d avg_pool2d avg_pool3d batch_normalization bias_add conv1d conv1d_transpose conv2d
            conv2d_transpose conv3d conv3d_transpose convolution crelu depthwise_conv2d dropout elu embedding_lookup
            gelu l2_loss leaky_relu log_poisson_loss max_pool max_pool1d max_pool2d max_pool3d moments pool relu relu6
            selu separable_conv2d sigmoid_cross_entropy_with_logits silu softmax_cross_entropy_with_logits
            sparse_softmax_cross_entropy_with_logits swish weighted_cross_entropy_with_logits
            """,
    },
    "ops.opaque": {"tf tf.compat.v1": "numpy_function py_function"},
    "ops.random": {
        "tf.compat.v1": "set_random_seed=set_seed",
        "tf.random": """
            categorical fold_in gamma normal poisson set_seed shuffle split stateless_binomial stateless_categorical
            stateless_gamma stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform
            truncated_normal uniform
            """,
        "tf.random.experimental": "stateless_fold_in=fold_in stateless_split=split",
    },
    "ops.registry": {
        "tf tf.compat.v1": "no_gradient RegisterGradient",
        "tf": "NotDifferentiable=no_gradient",
    },
    "ops.tensor_array": {"tf tf.compat.v1": "TensorArray"},
    "programs.function": {
        "tf tf.compat.v1": "function init_scope TensorSpec",
        "tf": "inside_function",
        "tf.config": """
            experimental_functions_run_eagerly=functions_run_eagerly
            experimental_run_functions_eagerly=run_functions_eagerly functions_run_eagerly run_functions_eagerly
            """,
        "tf.types.experimental": "ConcreteFunction GenericFunction=Function PolymorphicFunction=Function",
    },
    "programs.module": {"tf tf.compat.v1": "Module"},
    "values": {"tf": "errors nest"},
    "values.dtypes": {
        "tf tf.compat.v1": "TensorShape",
        "tf tf.compat.v1 tf.dtypes": """
            as_dtype bfloat16 bool complex128 complex64 double DType float16 float32 float64 half int16 int32 int64
            int8 uint16 uint32 uint64 uint8
            """,
        "tf tf.dtypes": "string",
    },
    "values.errors": {"tf": "NarrowingWarning"},
    "values.names": {"tf": "name_scope"},
    "values.reading": {"tf tf.compat.v1": "executing_eagerly"},
    "values.conversion": {"tf tf.compat.v1": "constant convert_to_tensor is_tensor"},
    "values.tensor": {"tf tf.compat.v1": "Tensor"},
    "values.variable": {"tf tf.compat.v1": "Variable"},
}
LAZY: dict[str, dict[str, str]] = {
    ".tools.seeing.source": {"tf": "code"},
    "ops.audio": {"tf.audio": "decode_wav encode_wav"},
    "ops.compat": {
        "tf.compat": "as_bytes as_str=as_text as_str_any as_text dimension_value path_to_str",
        "tf.compat.v1": """
            ConfigProto disable_eager_execution disable_v2_behavior enable_eager_execution
            enable_resource_variables=enable_v2_behavior enable_v2_behavior enable_v2_tensorshape=enable_v2_behavior
            GPUOptions InteractiveSession name_scope Session
            """,
        "tf.compat.v1.logging": """
            DEBUG debug ERROR error FATAL fatal get_verbosity INFO info log set_verbosity WARN warn warning
            """,
        "tf.compat.v1.train": "get_global_step get_or_create_global_step",
    },
    "ops.config": {
        "tf": "device",
        "tf.config": """
            get_logical_device_configuration get_soft_device_placement LogicalDevice LogicalDeviceConfiguration
            PhysicalDevice set_logical_device_configuration set_soft_device_placement
            """,
        "tf.config tf.config.experimental": """
            get_visible_devices list_logical_devices list_physical_devices set_visible_devices
            """,
        "tf.config.experimental": """
            enable_op_determinism enable_tensor_float_32_execution get_device_details get_memory_growth
            get_memory_info get_virtual_device_configuration=get_logical_device_configuration set_memory_growth
            set_virtual_device_configuration=set_logical_device_configuration tensor_float_32_execution_enabled
            VirtualDeviceConfiguration=LogicalDeviceConfiguration
            """,
        "tf.config.optimizer": "get_experimental_options get_jit set_experimental_options set_jit",
        "tf.config.threading": """
            get_inter_op_parallelism_threads get_intra_op_parallelism_threads set_inter_op_parallelism_threads
            set_intra_op_parallelism_threads
            """,
        "tf.debugging": """
            disable_traceback_filtering enable_traceback_filtering get_log_device_placement
            is_traceback_filtering_enabled set_log_device_placement
            """,
        "tf.sysconfig": "get_build_info",
        "tf.test": """
            gpu_device_name is_built_with_cuda is_built_with_gpu_support is_built_with_rocm is_built_with_xla
            is_gpu_available
            """,
        "tf.version": "COMPILER_VERSION GIT_VERSION VERSION",
    },
    "ops.encoded": {
        "tf.image tf.io": """
            decode_bmp decode_gif decode_image decode_jpeg decode_png decode_webp encode_jpeg encode_png is_jpeg
            """,
    },
    "ops.generator": {
        "tf.random tf.random.experimental": """
            Algorithm create_rng_state Generator get_global_generator set_global_generator
            """,
        "tf.random.experimental": "stateless_shuffle",
    },
    "ops.graph": {
        "tf tf.compat.v1": """
            control_dependencies get_logger get_static_value group identity_n is_symbolic_tensor no_op
            VariableSynchronization
            """,
        "tf": "get_current_name_scope tuple VariableAggregation",
        "tf.autograph": "set_verbosity trace",
        "tf.autograph.experimental": "do_not_convert set_loop_options",
        "tf.experimental.dlpack": "from_dlpack to_dlpack",
        "tf.types.experimental": "TensorLike",
    },
    "ops.image": {
        "tf.image": """
            adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation central_crop
            convert_image_dtype crop_and_resize crop_to_bounding_box extract_patches flip_left_right flip_up_down
            grayscale_to_rgb hsv_to_rgb image_gradients non_max_suppression pad_to_bounding_box
            per_image_standardization psnr random_brightness random_contrast random_crop random_flip_left_right
            random_flip_up_down random_hue random_saturation resize resize_with_crop_or_pad resize_with_pad
            ResizeMethod rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv rot90 sobel_edges ssim ssim_multiscale
            stateless_random_brightness stateless_random_contrast stateless_random_crop
            stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
            stateless_random_saturation total_variation transpose yiq_to_rgb yuv_to_rgb
            """,
    },
    "ops.indexed_slices": {"tf tf.compat.v1": "IndexedSlices"},
    "ops.initializers": {
        "tf": """
            constant_initializer ones_initializer random_normal_initializer random_uniform_initializer
            zeros_initializer
            """,
    },
    "ops.io": {
        "tf.io": "decode_raw matching_files parse_tensor read_file serialize_tensor write_file",
        "tf.io.gfile": "copy exists GFile glob isdir join listdir makedirs mkdir remove rename rmtree walk",
    },
    "ops.numerics": {"tf.debugging": "disable_check_numerics enable_check_numerics"},
    "ops.numpy_api": {
        "tf.experimental.numpy": """
            asanyarray ascontiguousarray bool_ complex128 complex64 complex_ e experimental_enable_numpy_behavior
            finfo fix flatten float16 float32 float64 float_ iinfo inexact inf int16 int32 int64 int8 int_ ndarray
            newaxis object_ pi string_ uint16 uint32 uint64 uint8 unicode_
            """
        + " ".join(name for name, x in vars(jnp).items() if callable(x) and not isinstance(x, type) and name[0] != "_"),
        "tf.experimental.numpy.random": """
            poisson=random_poisson rand=random_rand randint=random_randint randn=random_randn random=random_random
            seed=random_seed standard_normal=random_standard_normal uniform=random_uniform
            """,
    },
    "ops.printing": {"tf tf.compat.v1": "print"},
    "ops.profiler": {"tf.profiler.experimental": "Profile ProfilerOptions start stop Trace"},
    "ops.quantization": {
        "tf.compat.v1 tf.compat.v1.quantization tf.quantization": """
            fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
            fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel
            fake_quant_with_min_max_vars_per_channel_gradient
            """,
    },
    "ops.rearrange": {
        "tf tf.compat.v1": "bitcast dynamic_partition dynamic_stitch space_to_batch_nd=space_to_batch unravel_index",
        "tf tf.nn": "space_to_batch",
        "tf": "batch_to_space reverse_sequence",
    },
    "ops.sampled": {
        "tf.nn": "nce_loss sampled_softmax_loss",
        "tf.random": "log_uniform_candidate_sampler uniform_candidate_sampler",
    },
    "ops.signal": {
        "tf.signal": """
            dct fft fft2d fft3d fftshift frame hamming_window hann_window idct ifft ifft2d ifft3d ifftshift
            inverse_stft inverse_stft_window_fn irfft irfft2d irfft3d linear_to_mel_weight_matrix
            mfccs_from_log_mel_spectrograms overlap_and_add rfft rfft2d rfft3d stft
            """,
    },
    "ops.sparse": {
        "tf tf.compat.v1 tf.sparse": "SparseTensor",
        "tf.sparse": """
            add concat expand_dims eye from_dense map_values reduce_sum reorder reshape retain sparse_dense_matmul
            to_dense transpose
            """,
    },
    "ops.summary": {
        "tf.summary": """
            create_file_writer create_noop_writer flush graph histogram image record_if scalar should_record_summaries
            SummaryWriter text trace_export trace_off trace_on write
            """,
        "tf.summary.experimental": "get_step set_step summary_scope",
    },
    "ops.testcase": {"tf.test": "main TestCase"},
    "ops.tpu": {
        "tf.config": "experimental_connect_to_cluster",
        "tf.distribute.cluster_resolver": "TPUClusterResolver",
        "tf.tpu.experimental": "initialize_tpu_system shutdown_tpu_system",
    },
    "ops.windows": {
        "tf.nn": """
            compute_average_loss ctc_loss local_response_normalization lrn max_pool_with_argmax
            scale_regularization_loss
            """,
        "tf.nn.experimental": "stateless_dropout",
    },
    "programs.distribute": {
        "tf.distribute": """
            CrossDeviceOps DistributedDataset DistributedIterator DistributedValues get_replica_context get_strategy
            has_strategy HierarchicalCopyAllReduce in_cross_replica_context InputContext InputOptions
            InputReplicationMode MirroredStrategy NcclAllReduce OneDeviceStrategy ReduceOp ReductionToOneDevice
            ReplicaContext RunOptions Strategy StrategyExtended
            """,
        "tf.distribute tf.distribute.experimental": "MultiWorkerMirroredStrategy ParameterServerStrategy TPUStrategy",
        "tf.distribute.cluster_resolver": "SimpleClusterResolver TFConfigClusterResolver",
        "tf.distribute.experimental": """
            CentralStorageStrategy CollectiveCommunication=CommunicationImplementation CommunicationImplementation
            CommunicationOptions ValueContext
            """,
    },
    "programs.graphs": {"tf tf.compat.v1": "gradients"},
    "programs.optional": {"tf.experimental": "Optional"},
    "testing": {"tf.test": "compute_gradient max_error"},
    "values.registered": {"tf tf.compat.v1": "register_tensor_conversion_function"},
}

# {namespace: {name: (module, its name there)}}
PLACES: dict[str, dict[str, tuple[str, str]]] = {}
for _module, _rows in (EAGER | LAZY).items():
    for _namespaces, _names in _rows.items():
        for _full in _namespaces.split():
            for _new, _, _old in (entry.partition("=") for entry in _names.split()):
                PLACES.setdefault(_full, {})[_new] = _module, _old or _new


def find(full: str, name: str) -> Any:
    """What a name of a namespace, ``"tf"`` or ``"tf.nn"``, stands for; its module is imported."""
    module, there = PLACES[full][name]
    return getattr(importlib.import_module(f".{module}", __package__), there)


def at_once(full: str) -> dict[str, Any]:
    """What a namespace holds from the start."""
    return {name: find(full, name) for name, (module, _) in PLACES.get(full, {}).items() if module in EAGER}


def when_asked(full: str, held: dict[str, Any]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: a name that is imported now and then kept in `held`, or an error with a hint."""
    refuse = missing(full)

    def __getattr__(name: str) -> Any:
        if name not in PLACES.get(full, ()):
            return refuse(name)
        held[name] = find(full, name)
        return held[name]

    return __getattr__


def namespaces() -> dict[str, types.ModuleType]:
    """``{"nn": the module tapejax.nn, "config.experimental": ...}``, each an attribute of the one above it."""
    full_names = PLACES.keys() - {"tf"}
    full_names |= {full.rpartition(".")[0] for full in full_names} - {"tf"}
    modules: dict[str, types.ModuleType] = {}
    for full in sorted(full_names):
        name = full.removeprefix("tf.")
        module = types.ModuleType(full.replace("tf", "tapejax", 1), f"TensorFlow's {full}.")
        held = vars(module)
        held.update(at_once(full), __all__=[*PLACES.get(full, ())], __getattr__=when_asked(full, held))
        held["__dir__"] = lambda names=held["__all__"]: sorted(names)
        modules[name] = module
        above, _, last = name.rpartition(".")
        if above:
            setattr(modules[above], last, module)
    return modules
