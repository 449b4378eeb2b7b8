"""What is not there: the JAX function to use for a name of TensorFlow's that tapejax does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MISSING = {
    "tf.Session": "nothing: JAX runs at once; jax.jit compiles",
    "tf.approx_top_k": "jax.lax.approx_max_k",
    "tf.as_string": "Python's str(x.numpy())",
    "tf.bitcast": "jax.lax.bitcast_convert_type",
    "tf.compat": "TensorFlow 2's names",
    "tf.distribute": "jax.sharding and jax.shard_map",
    "tf.dynamic_partition": "x[mask] for each part",
    "tf.dynamic_stitch": "x.at[indices].set(values)",
    "tf.edit_distance": "a Python function: JAX has no strings",
    "tf.extract_volume_patches": "jax.lax.conv_general_dilated_patches",
    "tf.get_static_value": "numpy.asarray",
    "tf.hessians": "jax.hessian",
    "tf.histogram_fixed_width": "jnp.histogram",
    "tf.io": "Python's open, or numpy.load",
    "tf.lookup": "a Python dict",
    "tf.ragged": "arrays with a mask: jnp.where, tf.sequence_mask",
    "tf.RaggedTensor": "arrays with a mask: jnp.where, tf.sequence_mask",
    "tf.required_space_to_batch_paddings": "jnp.pad",
    "tf.reverse_sequence": "jnp.take_along_axis",
    "tf.sets": "jnp.intersect1d, jnp.union1d, jnp.setdiff1d",
    "tf.signal": "jnp.fft and jax.scipy.signal",
    "tf.sparse": "jax.experimental.sparse",
    "tf.SparseTensor": "jax.experimental.sparse.BCOO",
    "tf.strings": "Python's strings",
    "tf.TensorArray": "a Python list and tf.stack, or jax.lax.scan",
    "tf.xla": "jax.jit",
    "tf.linalg.LinearOperator": "jnp matrices, or lineax",
    "tf.linalg.banded_triangular_solve": "jax.lax.linalg.triangular_solve",
    "tf.linalg.cholesky_update": "jax.lax.linalg.cholesky_update",
    "tf.linalg.eigh_tridiagonal": "jax.scipy.linalg.eigh_tridiagonal",
    "tf.linalg.experimental": "jax.scipy.sparse.linalg.cg",
    "tf.linalg.logm": "jax.scipy.linalg.funm",
    "tf.linalg.lu_reconstruct": "jax.scipy.linalg.lu",
    "tf.linalg.lu_solve": "jax.scipy.linalg.lu_solve",
    "tf.linalg.sqrtm": "jax.scipy.linalg.sqrtm",
    "tf.linalg.tridiagonal_matmul": "jnp.matmul",
    "tf.linalg.tridiagonal_solve": "jax.lax.linalg.tridiagonal_solve",
    "tf.math.approx_max_k": "jax.lax.approx_max_k",
    "tf.math.approx_min_k": "jax.lax.approx_min_k",
    "tf.math.reduce_ptp": "jnp.ptp",
    "tf.math.special": "jax.scipy.special",
    "tf.math.sobol_sample": "scipy.stats.qmc.Sobol",
    "tf.nn.RNNCellDeviceWrapper": "keras.layers.RNN",
    "tf.nn.atrous_conv2d": "tf.nn.conv2d(..., dilations=rate)",
    "tf.nn.batch_norm_with_global_normalization": "tf.nn.batch_normalization",
    "tf.nn.collapse_repeated": "jnp.unique on runs",
    "tf.nn.compute_average_loss": "jnp.mean",
    "tf.nn.ctc_beam_search_decoder": "a decoder of your own over tf.nn.log_softmax",
    "tf.nn.ctc_greedy_decoder": "keras.ops.ctc_decode",
    "tf.nn.ctc_loss": "optax.ctc_loss",
    "tf.nn.dilation2d": "jax.lax.reduce_window",
    "tf.nn.embedding_lookup_sparse": "jax.ops.segment_sum over tf.gather",
    "tf.nn.erosion2d": "jax.lax.reduce_window",
    "tf.nn.experimental": "tf.nn.dropout with tf.random.stateless_uniform",
    "tf.nn.fractional_avg_pool": "jax.lax.reduce_window",
    "tf.nn.fractional_max_pool": "jax.lax.reduce_window",
    "tf.nn.isotonic_regression": "optax.projections",
    "tf.nn.local_response_normalization": "jax.lax.reduce_window",
    "tf.nn.max_pool_with_argmax": "jax.lax.reduce_window",
    "tf.nn.nce_loss": "tf.nn.sigmoid_cross_entropy_with_logits on sampled classes",
    "tf.nn.safe_embedding_lookup_sparse": "jax.ops.segment_sum over tf.gather",
    "tf.nn.sampled_softmax_loss": "tf.nn.softmax_cross_entropy_with_logits on sampled classes",
    "tf.nn.scale_regularization_loss": "the loss itself: there are no replicas",
    "tf.nn.space_to_batch": "jnp.reshape and jnp.transpose",
    "tf.nn.weighted_moments": "jnp.average",
    "tf.nn.with_space_to_batch": "tf.nn.conv2d(..., dilations=rate)",
    "tf.random.all_candidate_sampler": "jax.random.permutation",
    "tf.random.fixed_unigram_candidate_sampler": "jax.random.categorical",
    "tf.random.learned_unigram_candidate_sampler": "jax.random.categorical",
    "tf.random.log_uniform_candidate_sampler": "jax.random.categorical",
    "tf.random.stateless_parameterized_truncated_normal": "jax.random.truncated_normal",
    "tf.random.uniform_candidate_sampler": "jax.random.randint",
    "tf.debugging.enable_check_numerics": "jax.config.update('jax_debug_nans', True)",
    "tf.debugging.disable_check_numerics": "jax.config.update('jax_debug_nans', False)",
    "tf.debugging.set_log_device_placement": "jax.debug.visualize_array_sharding",
    "tf.debugging.experimental": "jax.debug",
}


def missing(namespace: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` for the namespace, ``"tf"`` or ``"tf.nn"``: what to use instead of a name."""

    def __getattr__(name: str) -> Any:
        full = f"{namespace}.{name}"
        if full in MISSING:
            raise AttributeError(f"tapejax has no {full}: use {MISSING[full]}")
        hint = _in_jax(name)
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
