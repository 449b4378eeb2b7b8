"""TensorFlow's names for JAX's functions, by family.

`NAMESPACES` says which name stands where: ``NAMESPACES["tf.nn"]["relu"]`` is ``tf.nn.relu``. Importing this package
attaches the operators to `Tensor` and `Variable`.
"""

from __future__ import annotations

import types
from typing import Any

from .. import values
from . import array, debugging, linalg, math, nn, operators, random
from .missing import MISSING, missing

# Each name is looked up in the modules after the colon, in their order; "new=old" renames.
_TABLE = {
    "tf": """
        abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh
        clip_by_global_norm clip_by_norm clip_by_value cos cosh cumsum divide equal exp floor greater greater_equal
        less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow
        realdiv reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
        round scalar_mul sigmoid sign sin sinh sqrt square subtract tan tanh truediv truncatediv truncatemod
        norm
        argsort boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to cast complex concat
        ensure_shape expand_dims eye fill gather gather_nd identity linspace meshgrid newaxis one_hot ones ones_like pad
        parallel_stack range rank repeat reshape reverse roll saturate_cast scatter_nd searchsorted sequence_mask shape
        shape_n size slice=slice_ sort split squeeze stack stop_gradient strided_slice tensor_scatter_nd_add
        tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tile transpose unique
        unique_with_counts unstack where zeros zeros_like
        einsum matmul tensordot
        constant convert_to_tensor is_tensor Tensor Variable
        Assert assert_equal assert_greater assert_less assert_rank
        """,
    "tf.math": """
        abs accumulate_n acos acosh add add_n angle argmax argmin asin asinh atan atan2 atanh bessel_i0 bessel_i0e
        bessel_i1 bessel_i1e betainc bincount ceil confusion_matrix conj cos cosh count_nonzero cumprod cumsum
        cumulative_logsumexp digamma divide divide_no_nan equal erf erfc erfcinv erfinv exp expm1 floor floordiv
        floormod greater greater_equal igamma igammac imag in_top_k invert_permutation is_finite is_inf is_nan
        l2_normalize lbeta less less_equal lgamma log log1p log_sigmoid log_softmax logical_and logical_not logical_or
        logical_xor maximum minimum mod multiply multiply_no_nan ndtri negative nextafter not_equal polygamma polyval
        pow real reciprocal reciprocal_no_nan reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp reduce_max
        reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance rint round rsqrt scalar_mul segment_max
        segment_mean segment_min segment_prod segment_sum sigmoid sign sin sinh softmax softplus softsign sqrt square
        squared_difference subtract tan tanh top_k truediv unsorted_segment_max unsorted_segment_mean
        unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlog1py xlogy
        zero_fraction zeta
        """,
    "tf.nn": """
        avg_pool avg_pool1d avg_pool2d avg_pool3d batch_normalization bias_add conv1d conv1d_transpose conv2d
        conv2d_transpose conv3d conv3d_transpose convolution crelu depth_to_space depthwise_conv2d dropout elu
        embedding_lookup gelu in_top_k l2_loss l2_normalize leaky_relu log_poisson_loss log_softmax max_pool max_pool1d
        max_pool2d max_pool3d moments pool relu relu6 selu separable_conv2d sigmoid
        sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits softplus softsign
        space_to_depth sparse_softmax_cross_entropy_with_logits swish tanh top_k weighted_cross_entropy_with_logits
        zero_fraction
        """,
    "tf.linalg": """
        adjoint band_part cholesky cholesky_solve cross det diag diag_part eig eigh eigvals eigvalsh einsum expm eye
        global_norm inv l2_normalize logdet lstsq lu matmul matrix_rank matrix_transpose matvec norm normalize pinv qr
        set_diag slogdet solve svd tensor_diag tensor_diag_part tensordot trace triangular_solve
        """,
    "tf.random": """
        categorical fold_in gamma normal poisson set_seed shuffle split stateless_binomial stateless_categorical
        stateless_gamma stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform truncated_normal
        uniform
        """,
    "tf.debugging": """
        Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer assert_less
        assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal
        assert_positive assert_rank assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar
        assert_shapes assert_type check_numerics is_numeric_tensor
        """,
    "tf.bitwise": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift",
}
_PLACES = {
    "tf": (math, array, linalg, values, debugging),
    "tf.math": (math, nn, array),
    "tf.nn": (nn, math, array),
    "tf.linalg": (linalg, math, array),
    "tf.random": (random,),
    "tf.debugging": (debugging,),
    "tf.bitwise": (math,),
}


def _found(entry: str, places: tuple) -> tuple[str, Any]:
    new, _, old = entry.partition("=")
    place = next(vars(place) for place in places if (old or new) in vars(place))
    return new, place[old or new]


NAMESPACES: dict[str, dict[str, Any]] = {
    namespace: dict(_found(entry, _PLACES[namespace]) for entry in names.split()) for namespace, names in _TABLE.items()
}


def namespace(full: str, doc: str = "") -> types.ModuleType:
    """The module ``tapejax.nn`` for ``"tf.nn"``: its names, and an error with a hint for those that are missing."""
    module = types.ModuleType(full.replace("tf", "tapejax", 1), doc or f"TensorFlow's {full}.")
    vars(module).update(NAMESPACES[full], __all__=list(NAMESPACES[full]), __getattr__=missing(full))
    return module


__all__ = ["MISSING", "NAMESPACES", "missing", "namespace", "operators"]
