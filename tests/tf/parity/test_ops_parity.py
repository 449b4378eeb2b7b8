"""Every operation at ordinary and at nasty points: its value and its gradient are TensorFlow's.

A row of a table is a test: a name, the operation as a function of `tf` and tensors, and the points.
"""

import numpy as np
import pytest
from harness import check, error_of

f32 = np.float32


def a(*values):
    return np.array(values, f32)


INF, NAN = np.inf, np.nan
LINE = a(-100, -7, -2.5, -2, -1.5, -1, -0.5, -0.0, 0, 0.5, 1, 1.5, 2, 2.5, 6, 7, 100)
TIES = (a(1, 2, 3, 0, -0.0, -1, 5), a(1, 3, 2, 0, 0, -1, -5))
RAGGED = np.array([[3, 1, 3], [2, 2, 2], [0, -1, 0]], f32)
ZEROS = np.array([[0, 2, 3], [0, 0, 4], [1, 2, 3]], f32)
CUBE = np.arange(24, dtype=f32).reshape(2, 3, 4) / 7
MATRIX = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], f32)
IMAGE = np.random.default_rng(0).normal(size=(2, 5, 6, 3)).astype(f32)
IMAGE_TIES = np.round(IMAGE)
FILTERS = np.random.default_rng(1).normal(size=(3, 2, 3, 4)).astype(f32)
SEQUENCE = np.random.default_rng(2).normal(size=(2, 7, 3)).astype(f32)


def row(name, op, *points, **options):
    return pytest.param(op, points, options, id=name)


def unary(path, points, **options):
    def op(tf, x):
        return find(tf, path)(x)

    return row(path, op, points, **options)


def binary(path, x, y, **options):
    def op(tf, x, y):
        return find(tf, path)(x, y)

    return row(path, op, x, y, **options)


def find(tf, path):
    for part in path.split("."):
        tf = getattr(tf, part)
    return tf


UNARY = [
    *(
        unary(f"math.{name}", LINE)
        for name in (
            "abs sign floor ceil round rint square negative exp expm1 sigmoid log_sigmoid softplus tanh sin cos atan "
            "asinh "
            "erf erfc"
        ).split()
    ),
    *(
        unary(f"math.{name}", a(-2, -1, -0.5, -0.0, 0, 0.5, 1, 2, 100))
        for name in ("sqrt reciprocal reciprocal_no_nan log log1p asin acos atanh").split()
    ),
    *(unary(f"math.{name}", a(0, 0.5, 1, 2, 100)) for name in "rsqrt acosh".split()),
    *(unary(f"math.{name}", a(-1.5, -0.5, 0.5, 1, 2, 6)) for name in "lgamma digamma".split()),
    *(
        unary(f"math.{name}", a(-2, -0.5, 0, 0.5, 2))
        for name in ("bessel_i0 bessel_i0e bessel_i1e sinh cosh tan").split()
    ),
    unary("math.bessel_i1", a(-2, -0.5, 0.5, 2)),
    unary("math.bessel_i1", a(0), differs="TensorFlow's derivative at 0 is 1, the true one 1/2"),
    *(unary(f"math.{name}", a(0.1, 0.5, 0.9)) for name in "erfinv ndtri erfcinv".split()),
    *(
        unary(f"nn.{name}", LINE)
        for name in (
            "relu relu6 leaky_relu elu selu gelu silu swish softsign softplus l2_loss crelu softmax log_softmax"
        ).split()
    ),
    unary("nn.relu", a(NAN, INF, -INF)),
    unary("nn.relu6", a(NAN, INF, -INF)),
    unary("math.sigmoid", a(INF, -INF)),
    unary("math.softplus", a(INF, -INF, 1e10)),
    unary("math.abs", a(NAN, INF, -INF)),
    row("gelu_approximate", lambda tf, x: tf.nn.gelu(x, approximate=True), LINE, atol=2e-5),  # 1 - tanh(x)**2 cancels
    row("silu_beta", lambda tf, x: tf.nn.silu(x, beta=2.0), LINE),
    row("leaky_relu_alpha", lambda tf, x: tf.nn.leaky_relu(x, alpha=0.3), LINE),
    row("softmax_axis", lambda tf, x: tf.nn.softmax(x, axis=0) * x, RAGGED),
    row("softmax_inf", lambda tf, x: tf.nn.softmax(x), a(-INF, 0, 1)),
    row("angle", lambda tf, x: tf.math.angle(x), a(-1, 0, 2)),
    row("imag", lambda tf, x: tf.math.imag(x), LINE),
    row("real", lambda tf, x: tf.math.real(x), LINE),
]

BINARY = [
    *(
        binary(f"math.{name}", *TIES)
        for name in (
            "add subtract multiply divide truediv maximum minimum squared_difference divide_no_nan multiply_no_nan "
            "xdivy atan2 "
            "floordiv floormod less equal greater_equal not_equal"
        ).split()
    ),
    binary("math.pow", a(0, 0, 0, 2, 2, -2, -2, -2, 1), a(0, 1, 2, 0, 3, 2, 3, 0, 5)),
    binary("math.pow", a(0, 4), a(0.5, 0.5)),
    binary("math.xlogy", a(0, 0, 1, 2), a(0, 1, 1, 3)),
    binary("math.xlog1py", a(0, 0, 1, 2), a(-1, 1, 1, 3)),
    binary("math.floormod", a(-7, 7, -7, 7.5, -7.5), a(3, -3, -3, 2, 2)),
    binary("math.floordiv", a(-7, 7, -7, 7.5, 1), a(3, -3, -3, 2, 0)),
    binary("truncatediv", np.array([-7, 7], np.int32), np.array([2, -2], np.int32)),
    binary("truncatemod", np.array([-7, 7], np.int32), np.array([3, -3], np.int32)),
    binary("math.floordiv", np.array([-7, 7, -8], np.int32), np.array([3, -3, 4], np.int32)),
    binary("math.floormod", np.array([-7, 7, -8], np.int32), np.array([3, -3, 4], np.int32)),
    binary("math.maximum", np.ones((2, 1), f32), np.ones(3, f32)),
    binary("math.multiply", np.ones((2, 1), f32), a(1, 2, 3)),
    binary("math.igamma", a(1, 2), a(0.5, 3)),
    binary("math.igammac", a(1, 2), a(0.5, 3)),
    binary("math.zeta", a(2, 3), a(0.5, 3)),
    row("polygamma", lambda tf, x: tf.math.polygamma(a(1, 2), x), a(0.5, 3)),
    binary("math.atan2", a(0, 1, -1, 0), a(0, 0, 0, -1)),
    *(row(f"power_{n}", lambda tf, x, n=n: x**n, a(-2, -0.0, 0, 1, 3)) for n in (1, 2, 3, -1, -2, 0.5, 20)),
    row("power_0", lambda tf, x: x**0, a(-2, 1, 3)),
    row("reflected_power", lambda tf, x: 2**x, LINE[2:-2]),
    row("reflected", lambda tf, x: (1 - x) / (3 + x) + 2 // x + 5 % x, a(0.5, 2, 7)),
    row("clip", lambda tf, x: tf.clip_by_value(x, -1.0, 2.0), LINE),
    row("clip_tensors", lambda tf, x, lo, hi: tf.clip_by_value(x, lo, hi), LINE, a(-1), a(2)),
    row("clip_crossed", lambda tf, x: tf.clip_by_value(x, 2.0, -1.0), LINE),
    row("where", lambda tf, x: tf.where(x > 0, x * 2, -x), LINE),
    row("where_nan", lambda tf, x: tf.where(x > 0, tf.math.log(x), x), LINE),
    row("where_sqrt", lambda tf, x: tf.where(x > 0, tf.sqrt(x), 0.0), a(0, -0.0, 1, 4)),
    row("where_rsqrt", lambda tf, x: tf.where(x > 0, tf.math.rsqrt(x), 0.0), a(0, 1, 4)),
    row(
        "where_norm",
        lambda tf, x: tf.where(tf.norm(x, axis=1) > 0, tf.norm(x, axis=1), 0.0),
        ZEROS * a(0, 0, 1),
    ),
    row("multiply_no_nan", lambda tf, x, y: tf.math.multiply_no_nan(x, y), a(1, 0, 2), a(0, 0, 3)),
    row("where_broadcast", lambda tf, x, y: tf.where([[True], [False]], x, y), a(1, 2), a(3, 4)),
    row("add_n", lambda tf, x, y: tf.add_n([x, y, x]), a(1, 2), a(3, 4)),
    row("scalar_mul", lambda tf, x: tf.scalar_mul(3.0, x), LINE),
    row("polyval", lambda tf, x: tf.math.polyval([1.0, x, 2.0], x), LINE),
]

REDUCTIONS = [
    *(
        row(
            f"{name}{'' if axis is None else axis}",
            lambda tf, x, name=name, axis=axis: getattr(tf.math, name)(x, axis),
            points,
        )
        for name in (
            "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp reduce_euclidean_norm "
            "reduce_variance reduce_std"
        ).split()
        for axis in (None, 1, [0, -1])
        for points in (RAGGED, ZEROS)
    ),
    row("reduce_std_constant", lambda tf, x: tf.math.reduce_std(x), a(2, 2, 2)),
    row("reduce_variance_constant", lambda tf, x: tf.math.reduce_variance(x), a(2, 2, 2)),
    row("logsumexp_inf", lambda tf, x: tf.reduce_logsumexp(x), a(-INF, 0, 1)),
    row("logsumexp_all_inf", lambda tf, x: tf.reduce_logsumexp(x), a(-INF, -INF)),
    row("logsumexp_plus_inf", lambda tf, x: tf.reduce_logsumexp(x), a(INF, 0)),
    row("keepdims", lambda tf, x: tf.reduce_max(x, 1, keepdims=True) * x, RAGGED),
    row("reduce_sum_int", lambda tf, x: tf.reduce_sum(x, 0), np.arange(6, dtype=np.int32).reshape(2, 3)),
    row("reduce_mean_int", lambda tf, x: tf.reduce_mean(x), np.array([-1, -2, -2, -2], np.int32)),
    row("reduce_mean_int_large", lambda tf, x: tf.reduce_mean(x), np.array([2**30, 2**30, 2**31 - 1, -5], np.int32)),
    row("reduce_max_empty", lambda tf, x: tf.reduce_max(x), a()),
    row("reduce_mean_empty", lambda tf, x: tf.reduce_mean(x), a()),
    row("reduce_all", lambda tf, x: [tf.reduce_all(x > 0, 1), tf.reduce_any(x > 0, 1)], RAGGED),
    row("count_nonzero", lambda tf, x: tf.math.count_nonzero(x, 0), ZEROS),
    row("zero_fraction", lambda tf, x: tf.math.zero_fraction(x), ZEROS),
    row("argmax", lambda tf, x: [tf.argmax(x, 1), tf.argmin(x, 1), tf.argmax(x)], RAGGED),
    row("argmax_int32", lambda tf, x: tf.argmax(x, 1, output_type=tf.int32), RAGGED),
    *(
        row(f"cumsum_{e}{r}", lambda tf, x, e=e, r=r: tf.cumsum(x, 1, exclusive=e, reverse=r) * x, RAGGED)
        for e in (False, True)
        for r in (False, True)
    ),
    *(
        row(
            f"cumprod_{e}{r}",
            lambda tf, x, e=e, r=r: tf.math.cumprod(x, 1, exclusive=e, reverse=r),
            RAGGED[:2],
        )
        for e in (False, True)
        for r in (False, True)
    ),
    row(
        "cumprod_zero",
        lambda tf, x: tf.math.cumprod(x),
        a(2, 0, 3),
        differs="TensorFlow's gradient at a zero is 0",
    ),
    *(
        row(
            f"cumlogsumexp_{e}{r}",
            lambda tf, x, e=e, r=r: tf.math.cumulative_logsumexp(x, 1, exclusive=e, reverse=r),
            RAGGED,
        )
        for e in (False, True)
        for r in (False, True)
    ),
    row("norm", lambda tf, x: tf.norm(x), a(3, 4)),
    row("norm_0", lambda tf, x: tf.norm(x), a(0, 0)),
    row("norm_axis", lambda tf, x: tf.norm(x, axis=1, keepdims=True), RAGGED),
    row("norm_1", lambda tf, x: tf.norm(x, ord=1, axis=0), RAGGED),
    row("norm_inf", lambda tf, x: tf.norm(x, ord=np.inf, axis=0), RAGGED),
    row("norm_3", lambda tf, x: tf.norm(x, ord=3, axis=0), RAGGED + 1),
    row("norm_fro", lambda tf, x: tf.norm(x, ord="fro", axis=[0, 1]), RAGGED),
    row("norm_matrix_1", lambda tf, x: tf.norm(x, ord=1, axis=[-2, -1]), MATRIX),
    row("norm_matrix_2", lambda tf, x: tf.norm(x, ord=2, axis=[-2, -1]), MATRIX),
    row("l2_normalize", lambda tf, x: tf.math.l2_normalize(x, 1), RAGGED),
    row("l2_normalize_0", lambda tf, x: tf.math.l2_normalize(x), a(0, 0)),
    row("l2_normalize_all", lambda tf, x: tf.nn.l2_normalize(x)[0], RAGGED),
    row("normalize", lambda tf, x: tf.linalg.normalize(x, axis=1)[0][:, 0], RAGGED),
    row("clip_by_norm", lambda tf, x: tf.clip_by_norm(x, 2.0), RAGGED),
    row("clip_by_norm_inside", lambda tf, x: tf.clip_by_norm(x, 20.0), RAGGED),
    row("clip_by_norm_0", lambda tf, x: tf.clip_by_norm(x, 2.0), a(0, 0)),
    row("clip_by_norm_axes", lambda tf, x: tf.clip_by_norm(x, 2.0, axes=[1]), RAGGED),
    row("global_norm", lambda tf, x, y: tf.linalg.global_norm([x, None, y]), a(3, 4), a(1)),
    row("clip_by_global_norm", lambda tf, x, y: tf.clip_by_global_norm([x, y], 2.0), a(3, 4), a(1)),
    row("clip_by_global_norm_inside", lambda tf, x, y: tf.clip_by_global_norm([x, y], 20.0), a(3, 4), a(1)),
    row("clip_by_global_norm_inf", lambda tf, x: tf.clip_by_global_norm([x], 2.0), a(3, INF)),
]

ARRAYS = [
    row("reshape", lambda tf, x: tf.reshape(x, [4, -1]) ** 2, CUBE),
    row("reshape_shape", lambda tf, x: tf.reshape(x, [tf.shape(x)[0], -1]), CUBE),
    row("transpose", lambda tf, x: tf.transpose(x, perm=[2, 0, 1]), CUBE),
    row("transpose_default", lambda tf, x: tf.transpose(x) * 2, CUBE),
    row("expand_squeeze", lambda tf, x: tf.squeeze(tf.expand_dims(x, -1), axis=-1), CUBE),
    row("squeeze", lambda tf, x: tf.squeeze(x), np.ones((1, 3, 1), f32)),
    row("concat", lambda tf, x, y: tf.concat([x, y, x], axis=-1), RAGGED, ZEROS),
    row("stack", lambda tf, x, y: tf.stack([x, y], axis=-1), RAGGED, ZEROS),
    row("unstack", lambda tf, x: tf.unstack(x, axis=1)[1] * 2, CUBE),
    row("unpack", lambda tf, x: sum(part**2 for part in x), CUBE),
    row("split", lambda tf, x: tf.split(x, 2, axis=-1)[1] ** 2, CUBE),
    row("split_sizes", lambda tf, x: tf.split(x, [1, -1, 2], axis=-1), CUBE),
    row("tile", lambda tf, x: tf.tile(x, [2, 1, 3]), CUBE),
    row("repeat", lambda tf, x: tf.repeat(x, 2, axis=1), CUBE),
    row("repeat_flat", lambda tf, x: tf.repeat(x, 2), CUBE),
    row("repeat_each", lambda tf, x: tf.repeat(x, [1, 0, 2], axis=1), CUBE),
    row("pad", lambda tf, x: tf.pad(x, [[1, 0], [0, 2]], constant_values=7.0), RAGGED),
    row("pad_reflect", lambda tf, x: tf.pad(x, [[1, 2], [2, 0]], mode="REFLECT"), RAGGED),
    row("pad_symmetric", lambda tf, x: tf.pad(x, [[1, 2], [2, 0]], mode="SYMMETRIC"), RAGGED),
    row("reverse", lambda tf, x: tf.reverse(x, axis=[0, -1]), CUBE),
    row("roll", lambda tf, x: tf.roll(x, shift=[1, -2], axis=[0, 1]), RAGGED),
    row("broadcast_to", lambda tf, x: tf.broadcast_to(x, [2, 3]), a(1, 2, 3)),
    row("meshgrid", lambda tf, x, y: tf.meshgrid(x, y), a(1, 2), a(3, 4, 5)),
    row("meshgrid_ij", lambda tf, x, y: tf.meshgrid(x, y, indexing="ij"), a(1, 2), a(3, 4, 5)),
    row("gather", lambda tf, x: tf.gather(x, [2, 0, 2]), RAGGED),
    row("gather_axis", lambda tf, x: tf.gather(x, [[2, 0], [1, 1]], axis=1), CUBE),
    row("gather_batch", lambda tf, x: tf.gather(x, [[2, 0], [1, 1]], batch_dims=1), CUBE),
    row("gather_batch_axis", lambda tf, x: tf.gather(x, [[3, 0], [1, 1]], axis=2, batch_dims=1), CUBE),
    row("gather_nd", lambda tf, x: tf.gather_nd(x, [[0, 1], [1, 2], [0, 1]]), CUBE),
    row("gather_nd_batch", lambda tf, x: tf.gather_nd(x, [[[1], [0]], [[2], [2]]], batch_dims=1), CUBE),
    row("scatter_nd", lambda tf, x: tf.scatter_nd([[1], [3], [1]], x, [5]), a(1, 2, 3)),
    row("scatter_update", lambda tf, x, y: tf.tensor_scatter_nd_update(x, [[1], [0]], y), a(1, 2, 3), a(7, 8)),
    row("scatter_add", lambda tf, x, y: tf.tensor_scatter_nd_add(x, [[1], [1]], y), a(1, 2, 3), a(7, 8)),
    row("scatter_sub", lambda tf, x, y: tf.tensor_scatter_nd_sub(x, [[1], [1]], y), a(1, 2, 3), a(7, 8)),
    row("boolean_mask", lambda tf, x: tf.boolean_mask(x, [True, False, True]) ** 2, RAGGED),
    row("boolean_mask_axis", lambda tf, x: tf.boolean_mask(x, [True, False, True], axis=1), CUBE),
    row("boolean_mask_nd", lambda tf, x: tf.boolean_mask(x, x > 1), CUBE),
    row("slice", lambda tf, x: tf.slice(x, [0, 1, 0], [-1, 2, 3]), CUBE),
    row("sort", lambda tf, x: tf.sort(x, axis=1)[:, 0] * 3 + tf.sort(x, direction="DESCENDING")[:, 1], RAGGED),
    row(
        "sort_ties",
        lambda tf, x: [tf.sort(x)[:2], tf.sort(x, direction="DESCENDING")[:2] * 3],
        a(1, 3, 1, 3, 2, 1, 3),
    ),
    row("argsort", lambda tf, x: tf.argsort(x, axis=0, direction="DESCENDING", stable=True), RAGGED),
    row("top_k", lambda tf, x: tf.math.top_k(x, 2), RAGGED),
    row("top_k_values", lambda tf, x: tf.math.top_k(x, 2).values * 3, RAGGED),
    row("searchsorted", lambda tf, x: tf.searchsorted(x, [0.0, 1, 9], side="right"), a(0, 1, 2)),
    row("one_hot_values", lambda tf, x, y: tf.one_hot([0, 2, -1], 3, on_value=x, off_value=y), f32(2), f32(3)),
    row("fill", lambda tf, x: tf.fill([2, 3], x) * 2, f32(2)),
    row("linspace", lambda tf, x, y: tf.linspace(x, y, 5), f32(2), f32(3)),
    row("identity", lambda tf, x: tf.identity(x), RAGGED),
    row("stop_gradient", lambda tf, x: tf.stop_gradient(x) * x, RAGGED),
    row("stop_gradient_alone", lambda tf, x: tf.stop_gradient(x), RAGGED),
    row("zeros_like", lambda tf, x: [tf.zeros_like(x), tf.ones_like(x)], RAGGED),
    row("shape", lambda tf, x: [tf.shape(x), tf.size(x), tf.rank(x)], CUBE),
    row("cast_same", lambda tf, x: tf.cast(x, tf.float32), LINE),
    row("cast_int", lambda tf, x: tf.cast(x, tf.int32), LINE),
    row("cast_half", lambda tf, x: tf.cast(x, tf.float16) * 2, LINE),
    row("cast_bool", lambda tf, x: tf.cast(x, tf.bool), LINE),
    row("cast_complex", lambda tf, x: tf.math.real(tf.cast(x, tf.complex64) * 2), LINE),
    row("complex", lambda tf, x, y: tf.abs(tf.complex(x, y)), a(3, 1), a(4, 0)),
    row("ensure_shape", lambda tf, x: tf.ensure_shape(x, [3, None]), RAGGED),
    row("unique_int", lambda tf, x: tf.unique(x), np.array([3, 1, 3, 2, 1], np.int32)),
    row("segment_sum", lambda tf, x: tf.math.segment_sum(x, [0, 0, 2]), RAGGED),
    row("segment_mean", lambda tf, x: tf.math.segment_mean(x, [0, 0, 2]), RAGGED),
    row("segment_prod", lambda tf, x: tf.math.segment_prod(x + 2, [0, 0, 2]), RAGGED),
    row("unsorted_segment_prod", lambda tf, x: tf.math.unsorted_segment_prod(x + 2, [3, 0, 3], 5), RAGGED),
    row("segment_max", lambda tf, x: tf.math.segment_max(x, [0, 0, 2]), RAGGED),
    row("unsorted_segment_sum", lambda tf, x: tf.math.unsorted_segment_sum(x, [3, 0, 3], 4), RAGGED),
    row("unsorted_segment_mean", lambda tf, x: tf.math.unsorted_segment_mean(x, [3, 0, 3], 4), RAGGED),
    row("unsorted_segment_max", lambda tf, x: tf.math.unsorted_segment_max(x, [3, 0, 3], 4), RAGGED),
    row("unsorted_segment_sqrt_n", lambda tf, x: tf.math.unsorted_segment_sqrt_n(x, [3, 0, 3], 4), RAGGED),
    row(
        "unsorted_segment_2d",
        lambda tf, x: tf.math.unsorted_segment_sum(x, [[1, 0, -1], [1, 1, 0], [0, 0, 2]], 3),
        RAGGED,
    ),
]

_MASK = np.array([True, False, True])
INDEXING = [
    row(f"index{i}", lambda tf, x, index=index: x[index] * 2, CUBE)
    for i, index in enumerate(
        [
            0,
            -1,
            (1, 2),
            (1, 2, 3),
            (..., 0),
            (0, ...),
            slice(1, None),
            (slice(None), slice(0, 2), -1),
            (slice(None, None, -1)),
            (slice(None), slice(None, None, 2)),
            (slice(None), slice(2, 0, -1), 1),
            (slice(None), slice(None, None, -2)),
            None,
            (slice(None), None, 0),
            (None, ..., None),
            (),
            slice(5, 9),
            (0, slice(1, 1)),
            np.int64(1),
            [0, 1],
            (slice(-2, -1), slice(-100, 100)),
            (..., slice(3, 0, -2)),
        ]
    )
] + [
    row("index_tensor", lambda tf, x: x[tf.constant(1)] + x[0][tf.constant(1), None], CUBE),
    row("index_tensor_bounds", lambda tf, x: x[tf.constant(1) :, : tf.constant(2)], CUBE),
    row("index_mask", lambda tf, x: x[x > 1], CUBE),
    row("index_mask_rows", lambda tf, x: x[tf.constant(_MASK)] * x[_MASK], RAGGED),
    row("index_loop", lambda tf, x: sum(x[i, i] ** 2 for i in range(3)), RAGGED),
    row("index_variable", lambda tf, x: tf.Variable([1.0, 2.0, 3.0])[1:] * x, a(1, 2)),
]

LINALG = [
    row("matmul", lambda tf, x, y: tf.matmul(x, y), RAGGED, ZEROS),
    *(
        row(f"matmul_{k}", lambda tf, x, y, k=k: tf.matmul(x, y, **{k: True}), RAGGED, ZEROS)
        for k in "transpose_a transpose_b adjoint_a adjoint_b".split()
    ),
    row("matmul_batch", lambda tf, x, y: tf.matmul(x, y), CUBE, CUBE[0].T),
    row("matmul_operator", lambda tf, x: x @ x + np.eye(3, dtype=f32) @ x, RAGGED),
    row("matvec", lambda tf, x, y: tf.linalg.matvec(x, y, transpose_a=True), RAGGED, a(1, 2, 3)),
    row("tensordot", lambda tf, x, y: tf.tensordot(x, y, 1), CUBE, CUBE[0].T),
    row("tensordot_axes", lambda tf, x, y: tf.tensordot(x, y, [[1, 2], [0, 1]]), CUBE, CUBE[0]),
    row("einsum", lambda tf, x, y: tf.einsum("bij,kj->bik", x, y), CUBE, CUBE[0]),
    row("einsum_one", lambda tf, x: tf.einsum("bij->bj", x), CUBE),
    row("einsum_dots", lambda tf, x: tf.einsum("...ij,...kj->...ik", x, x), CUBE),
    row("cross", lambda tf, x, y: tf.linalg.cross(x, y), RAGGED, ZEROS),
    *(
        row(name, lambda tf, x, name=name: getattr(tf.linalg, name)(x), MATRIX)
        for name in ("inv det logdet cholesky trace diag_part diag expm matrix_transpose adjoint eigvalsh pinv").split()
    ),
    row("slogdet", lambda tf, x: tf.linalg.slogdet(x).log_abs_determinant, MATRIX),
    row("solve", lambda tf, x, y: tf.linalg.solve(x, y), MATRIX, RAGGED),
    row("solve_adjoint", lambda tf, x, y: tf.linalg.solve(x + y, y, adjoint=True), MATRIX, RAGGED),
    row("inv_adjoint", lambda tf, x: tf.linalg.inv(x, adjoint=True), MATRIX),
    row("triangular_solve", lambda tf, x, y: tf.linalg.triangular_solve(x, y), MATRIX, RAGGED),
    row(
        "triangular_upper",
        lambda tf, x, y: tf.linalg.triangular_solve(x, y, lower=False, adjoint=True),
        MATRIX,
        RAGGED,
    ),
    row("cholesky_solve", lambda tf, x, y: tf.linalg.cholesky_solve(x, y), np.tril(MATRIX), RAGGED),
    row(
        "lstsq",
        lambda tf, x, y: tf.linalg.lstsq(x, y),
        np.vstack([MATRIX, RAGGED]),
        np.vstack([RAGGED, MATRIX]),
        rtol=1e-3,
    ),
    row(
        "lstsq_l2",
        lambda tf, x, y: tf.linalg.lstsq(x, y, l2_regularizer=0.1),
        MATRIX[:2],
        RAGGED[:2],
        rtol=1e-3,
    ),
    row("svd", lambda tf, x: tf.linalg.svd(x, compute_uv=False), MATRIX),
    row(
        "svd_product",
        lambda tf, x: (lambda s, u, v: tf.matmul(u * s, v, adjoint_b=True))(*tf.linalg.svd(x)),
        MATRIX,
        atol=1e-4,
    ),
    row("eigh", lambda tf, x: tf.linalg.eigh(x)[0] ** 2, MATRIX),
    row(
        "eigh_product",
        lambda tf, x: (lambda e, v: tf.abs(v))(*tf.linalg.eigh(x)),
        MATRIX,
        rtol=1e-3,
        atol=1e-5,
    ),
    row("qr", lambda tf, x: tf.abs(tf.linalg.qr(x).r), MATRIX, rtol=1e-4),
    row("band_part", lambda tf, x: tf.linalg.band_part(x, 0, 1), MATRIX),
    row("set_diag", lambda tf, x, y: tf.linalg.set_diag(x, y), MATRIX, a(7, 8, 9)),
    row("diag_k", lambda tf, x: tf.linalg.diag(x, k=1), a(1, 2)),
    row("diag_part_k", lambda tf, x: tf.linalg.diag_part(x, k=-1), MATRIX),
    row("eye", lambda tf, x: tf.eye(2, 3, batch_shape=[2]) * x, f32(2)),
]

COUNTS, LOG_MEANS = a(-1, 0, 0.5, 1, 2, 30, 5, INF, NAN), a(0, 1, -2, 0.5, 0, 3, -INF, 1, 0)
P, L = np.array([[0.2, 0.8, 0], [1, 0, 0]], f32), np.array([[1, 2, 3], [0, 0, 0]], f32)
LOSSES = [
    row("softmax_xent", lambda tf, p, x: tf.nn.softmax_cross_entropy_with_logits(labels=p, logits=x), P, L),
    row(
        "softmax_xent_unnormalised",
        lambda tf, p, x: tf.nn.softmax_cross_entropy_with_logits(p * 3, x * 2),
        P,
        L,
    ),
    row("softmax_xent_axis", lambda tf, p, x: tf.nn.softmax_cross_entropy_with_logits(p, x, axis=0), P, L),
    row("softmax_xent_large", lambda tf, p, x: tf.nn.softmax_cross_entropy_with_logits(p, x), P, L * 1000),
    row(
        "softmax_xent_int_labels",
        lambda tf, x: tf.nn.softmax_cross_entropy_with_logits([[0, 1, 0], [1, 0, 0]], x),
        L,
    ),
    row(
        "sparse_xent",
        lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x),
        L,
    ),
    row(
        "sparse_xent_3d",
        lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits([[2, 0, 1], [1, 1, 3]], x),
        CUBE,
    ),
    row("sigmoid_xent", lambda tf, p, x: tf.nn.sigmoid_cross_entropy_with_logits(labels=p, logits=x), P, L - 1),
    row(
        "sigmoid_xent_large",
        lambda tf, p, x: tf.nn.sigmoid_cross_entropy_with_logits(p, x),
        P,
        (L - 1) * 1000,
    ),
    row("weighted_xent", lambda tf, p, x: tf.nn.weighted_cross_entropy_with_logits(p, x, 2.0), P, L - 1),
    row("log_poisson_loss", lambda tf, z, x: tf.nn.log_poisson_loss(z, x), COUNTS, LOG_MEANS),
    row(
        "log_poisson_loss_full",
        lambda tf, z, x: tf.nn.log_poisson_loss(z, x, compute_full_loss=True),
        COUNTS,
        LOG_MEANS,
    ),
    row("moments", lambda tf, x: tf.nn.moments(x, [0, 2]), CUBE),
    row("moments_keepdims", lambda tf, x: tf.nn.moments(x, axes=[1], keepdims=True)[1] * x, CUBE),
    row(
        "batch_norm",
        lambda tf, x, m, s: tf.nn.batch_normalization(x, m, tf.square(m), s, m + 1, 1e-3),
        RAGGED,
        a(1, 2, 3),
        a(0, 1, 2),
    ),
    row(
        "batch_norm_plain",
        lambda tf, x, m: tf.nn.batch_normalization(x, m, tf.square(m), None, None, 1e-3),
        RAGGED,
        a(1, 2, 3),
    ),
    row(
        "batch_norm_scale",
        lambda tf, x, m: tf.nn.batch_normalization(x, m, tf.square(m), None, m, 1e-3),
        RAGGED,
        a(1, 2, 3),
    ),
    row("bias_add", lambda tf, x, b: tf.nn.bias_add(x, b) ** 2, CUBE, a(1, 2, 3, 4)),
    row("embedding_lookup", lambda tf, x: tf.nn.embedding_lookup(x, [0, 2, 0]) ** 2, RAGGED),
    row("embedding_lookup_norm", lambda tf, x: tf.nn.embedding_lookup(x, [0, 2, 0], max_norm=2.0), RAGGED),
    row("mse", lambda tf, x, y: tf.reduce_mean(tf.math.squared_difference(x, y)), RAGGED, ZEROS),
]

CONVOLUTIONS = [
    *(
        row(
            f"conv2d_{padding}{strides}",
            lambda tf, x, w, p=padding, s=strides: tf.nn.conv2d(x, w, s, p),
            IMAGE,
            FILTERS,
        )
        for padding in ("SAME", "VALID")
        for strides in (1, [1, 2, 3, 1], [2, 1])
    ),
    row(
        "conv2d_explicit",
        lambda tf, x, w: tf.nn.conv2d(x, w, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]),
        IMAGE,
        FILTERS,
    ),
    row("conv1d", lambda tf, x, w: tf.nn.conv1d(x, w, stride=2, padding="SAME"), SEQUENCE, FILTERS[0]),
    row("depthwise", lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME"), IMAGE, FILTERS),
    row(
        "separable",
        lambda tf, x, w, p: tf.nn.separable_conv2d(x, w, p, [1, 1, 1, 1], "SAME"),
        IMAGE,
        FILTERS[:, :, :, :2],
        FILTERS.reshape(1, 1, 6, -1),
    ),
    *(
        row(
            f"conv2d_transpose_{padding}",
            lambda tf, x, w, p=padding, o=out: tf.nn.conv2d_transpose(x, w, o, 2, p),
            IMAGE,
            np.swapaxes(FILTERS, 2, 3),
        )
        for padding, out in (("SAME", [2, 10, 12, 4]), ("SAME", [2, 9, 11, 4]), ("VALID", [2, 11, 12, 4]))
    ),
    row(
        "conv1d_transpose",
        lambda tf, x, w: tf.nn.conv1d_transpose(x, w, [2, 14, 4], 2),
        SEQUENCE,
        np.swapaxes(FILTERS[0], 1, 2),
    ),
    row("convolution", lambda tf, x, w: tf.nn.convolution(x, w, padding="SAME"), IMAGE, FILTERS),
    *(
        row(
            f"{name}_{padding}_{kind}",
            lambda tf, x, name=name, p=padding: getattr(tf.nn, name)(x, [2, 3], [2, 2], p),
            points,
        )
        for name in ("max_pool2d", "avg_pool2d")
        for padding in ("SAME", "VALID")
        for kind, points in (("", IMAGE), ("ties", IMAGE_TIES))
    ),
    row("max_pool", lambda tf, x: tf.nn.max_pool(x, 2, 2, "VALID"), IMAGE),
    row("avg_pool1d", lambda tf, x: tf.nn.avg_pool1d(x, 3, 1, "SAME"), SEQUENCE),
    row("pool", lambda tf, x: tf.nn.pool(x, [2, 2], "AVG", strides=[2, 2], padding="SAME"), IMAGE),
    row("space_to_depth", lambda tf, x: tf.nn.space_to_depth(x, 2), IMAGE[:, :4]),
    row("depth_to_space", lambda tf, x: tf.nn.depth_to_space(x, 2), np.concatenate([IMAGE] * 4, -1)),
]


def value_and_gradient(op, points):
    def body(tf):
        """The value, and the gradient for each point."""
        xs = [tf.constant(point) for point in points]
        with tf.GradientTape() as tape:
            tape.watch([x for x in xs if x.dtype.is_floating])
            y = op(tf, *xs)
        floating = [x for x in xs if x.dtype.is_floating]
        gradients = tape.gradient(y, floating)
        return y, [None if g is None else tf.convert_to_tensor(g) for g in gradients]

    return body


def listed(table):
    """Puts a body into a table, by its name."""

    def put(body):
        table[body.__name__] = body
        return body

    return put


TABLES = [*UNARY, *BINARY, *REDUCTIONS, *ARRAYS, *INDEXING, *LINALG, *LOSSES, *CONVOLUTIONS]


@pytest.mark.parametrize("op, points, options", TABLES)
def test_value_and_gradient(op, points, options):
    options = {"rtol": 2e-5, "atol": 2e-6, **options}
    check(value_and_gradient(op, points), **options)


# ---- Values and dtypes where there is nothing to differentiate ---------------------------------------------

VALUES: dict = {}


@listed(VALUES)
def values_range(tf):
    return [
        tf.range(3),
        tf.range(1, 4),
        tf.range(3, 0, -1),
        tf.range(3.0),
        tf.range(1, 4.5, 0.5),
    ]


@listed(VALUES)
def values_range_dtype(tf):
    return [
        tf.range(0, 3, dtype=tf.float32),
        tf.range(tf.constant(3)),
        tf.range(limit=4, start=2),
    ]


@listed(VALUES)
def values_zeros(tf):
    return [
        tf.zeros(3),
        tf.zeros([2, 2], tf.int32),
        tf.ones((2,), tf.bool),
        tf.zeros([]),
        tf.ones(tf.constant([2, 1])),
    ]


@listed(VALUES)
def values_fill(tf):
    return [
        tf.fill([2], 3),
        tf.fill([2], True),
        tf.fill(2, 1.5),
        tf.zeros_like([1, 2]),
        tf.ones_like([1.5], dtype=tf.int32),
    ]


@listed(VALUES)
def values_eye(tf):
    return [tf.eye(2), tf.eye(2, 3, dtype=tf.int32), tf.eye(2, batch_shape=[1])]


@listed(VALUES)
def values_linspace(tf):
    return [
        tf.linspace(0.0, 1.0, 3),
        tf.linspace([0.0, 1], [1.0, 2], 3, axis=-1),
        tf.linspace(0.0, 1.0, 1),
    ]


@listed(VALUES)
def values_one_hot(tf):
    return [
        tf.one_hot([0, 2, -1, 5], 3),
        tf.one_hot(1, 3, on_value=5, off_value=1),
        tf.one_hot([0, 1], 3, axis=0, dtype=tf.int32),
    ]


@listed(VALUES)
def values_sequence_mask(tf):
    return [
        tf.sequence_mask([1, 3], 4),
        tf.sequence_mask([1, 3]),
        tf.sequence_mask([1, 3], dtype=tf.float32),
    ]


@listed(VALUES)
def values_bool(tf):
    return [
        tf.logical_and(True, [True, False]),
        tf.logical_or([False], [True]),
        tf.math.logical_xor([True], [True]),
        tf.logical_not([True]),
    ]


@listed(VALUES)
def values_comparison(tf):
    return [
        tf.equal([1, 2], [1, 3]),
        tf.less([1, 2], 2),
        tf.constant([1, 2]) == [1, 3],
        tf.constant([1]) != 1,
    ]


@listed(VALUES)
def values_bits(tf):
    return [
        tf.bitwise.bitwise_and(5, 3),
        tf.bitwise.left_shift(5, 3),
        tf.constant(5) & 3,
        ~tf.constant(5),
        tf.constant(5) ^ 1,
    ]


@listed(VALUES)
def values_bools(tf):
    return [
        tf.constant(True) & False,
        ~tf.constant([True]),
        tf.constant([True]) ^ [True],
        tf.constant([False]) | True,
    ]


@listed(VALUES)
def values_confusion_matrix(tf):
    return [
        tf.math.confusion_matrix([0, 1, 1], [1, 1, 1]),
        tf.math.confusion_matrix([0], [1], num_classes=3, weights=[2], dtype=tf.float32),
    ]


@listed(VALUES)
def values_bincount(tf):
    return [
        tf.math.bincount([0, 1, 1, 3]),
        tf.math.bincount([0, 1, 1], weights=[1.0, 2, 3], minlength=4),
        tf.math.bincount([0, 5], maxlength=2),
    ]


@listed(VALUES)
def values_in_top_k(tf):
    return [tf.math.in_top_k([0, 1], [[1.0, 2], [1.0, 1]], 1), tf.math.top_k([1, 3, 3], 2)]


@listed(VALUES)
def values_saturate_cast(tf):
    return [
        tf.saturate_cast([-5.0, 300.0, 7.5], tf.uint8),
        tf.saturate_cast([300, -1], tf.uint8),
    ]


@listed(VALUES)
def values_reduce_ints(tf):
    return [
        tf.reduce_prod([]),
        tf.reduce_sum([1, 2]),
        tf.reduce_mean([-3, 0]),
        tf.reduce_prod([2, 3]),
        tf.reduce_max([1, 2]),
        tf.math.reduce_euclidean_norm([3, 4]),
    ]


@listed(VALUES)
def values_round(tf):
    return [
        tf.round([0.5, 1.5, 2.5, -0.5]),
        tf.round([1, 2]),
        tf.sign([-3, 0]),
        tf.abs([-3, 3]),
        tf.square([3]),
    ]


@listed(VALUES)
def values_int_division(tf):
    return [
        tf.constant([-7]) // 2,
        tf.constant([-7]) % 2,
        tf.constant([7]) // -2,
        -7 // tf.constant(2),
    ]


@listed(VALUES)
def values_int_power(tf):
    return [
        tf.pow(2, 3),
        tf.constant([2, 3]) ** 2,
        2 ** tf.constant([2, 3]),
        tf.pow([2.0, 3.0], 2),
    ]


@listed(VALUES)
def values_shape(tf):
    return [
        tf.shape([[1, 2]]),
        tf.size([[1, 2]]),
        tf.rank([[1]]),
        tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])),
    ]


@listed(VALUES)
def values_repeat(tf):
    return [
        tf.repeat([1, 2], [1, 2], axis=0),
        tf.tile([1, 2], [2]),
        tf.roll([1, 2, 3], 1, 0),
        tf.pad([1, 2], [[1, 1]]),
    ]


@listed(VALUES)
def values_matmul_int(tf):
    return [
        tf.matmul([[1, 2]], [[3], [4]]),
        tf.tensordot(tf.constant([1, 2]), tf.constant([3, 4]), 1),
        tf.einsum("i,i->", tf.constant([1, 2]), tf.constant([3, 4])),
    ]


@listed(VALUES)
def values_invert_permutation(tf):
    return [tf.math.invert_permutation([2, 0, 1])]


@listed(VALUES)
def values_shapes_differ(tf):
    return [
        tf.constant([1, 2]) == tf.constant([1, 2, 3]),
        tf.constant([1, 2]) != tf.constant([1, 2, 3]),
        tf.constant(1).__eq__(None),
    ]  # noqa: E711


@listed(VALUES)
def values_reflected_arrays(tf):
    return [
        np.array([1, 2], f32) + tf.constant([1.0, 2]),
        np.float32(2) * tf.constant([1.0]),
        [1, 2] - tf.constant([1.0, 2]),
    ]


@listed(VALUES)
def values_argsort_ties(tf):
    return [
        tf.argsort([1, 3, 1, 3, 2, 1, 3]),
        tf.argsort([1.0, 3, 1, 3, 2, 1, 3], direction="DESCENDING"),
    ]


@listed(VALUES)
def values_finite(tf):
    return [
        tf.math.is_nan([NAN, 1.0]),
        tf.math.is_inf([INF, NAN]),
        tf.math.is_finite([INF, NAN, 0.0]),
    ]


@listed(VALUES)
def values_dilated(tf):
    return [tf.nn.conv2d(IMAGE, FILTERS, 1, "SAME", dilations=2)]


@listed(VALUES)
def values_half(tf):
    return [
        tf.constant([1.5], tf.float16) + 1,
        tf.constant([1.5], tf.bfloat16) * 2,
        tf.reduce_mean(tf.constant([1.5, 2], tf.bfloat16)),
    ]


@listed(VALUES)
def values_where(tf):
    return [tf.where([True, False, True]), tf.where([[1, 0], [0, 3]])]


@listed(VALUES)
def values_true_division(tf):
    return [
        tf.constant([1, 2]) / 2,
        tf.divide(3, 2),
        tf.math.truediv([1], [2]),
        1 / tf.constant(4),
    ]


@listed(VALUES)
def values_linspace_ints(tf):
    return [tf.linspace(0, 1, 3)]


@listed(VALUES)
def values_count(tf):
    return [tf.math.count_nonzero([0, 1, 2]), tf.argmax([1, 3, 3]), tf.argmin([[1, 0]], axis=1)]


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in VALUES.items()])
def test_value(body):
    check(body)


# ---- Errors ------------------------------------------------------------------------------------------------

X = np.arange(12, dtype=f32).reshape(3, 4)
ERRORS: dict = {}


@listed(ERRORS)
def errors_index(tf, x):
    return [
        lambda: x[3],
        lambda: x[-4],
        lambda: x[0, 5],
        lambda: x[0, 0, 0],
        lambda: x[..., ...],
        lambda: x[::0],
        lambda: x[tf.constant(7)],
    ]


@listed(ERRORS)
def errors_index_type(tf, x):
    return [
        lambda: x[1.0],
        lambda: x["a"],
        lambda: x[True],
        lambda: x[np.array([0, 2])],
        lambda: x[tf.constant([0, 2])],
        lambda: x[x > 5, 0],
        lambda: x[[True, False, True]],
    ]


@listed(ERRORS)
def errors_gather(tf, x):
    return [
        lambda: tf.gather(x, [0, 3]),
        lambda: tf.gather(x, [0, -1]),
        lambda: tf.gather(x, 0.0),
        lambda: tf.gather_nd(x, [[5, 1]]),
        lambda: tf.nn.embedding_lookup(x, [5]),
    ]


@listed(ERRORS)
def errors_reshape(tf, x):
    return [
        lambda: tf.reshape(x, (5, -1)),
        lambda: tf.reshape(x, (5, 2)),
        lambda: tf.squeeze(x, 0),
        lambda: tf.expand_dims(x, 4),
        lambda: tf.transpose(x, [0]),
        lambda: tf.transpose(x, [0, 0]),
        lambda: tf.ensure_shape(x, [3, 5]),
        lambda: tf.broadcast_to(x, [3, 3]),
    ]


@listed(ERRORS)
def errors_join(tf, x):
    return [
        lambda: tf.concat([x, tf.ones((2, 2))], 0),
        lambda: tf.stack([x, tf.ones((2, 2))]),
        lambda: tf.concat([x, tf.ones((2, 4), tf.int32)], 0),
        lambda: tf.add_n([]),
        lambda: tf.add_n([x, tf.ones(3)]),
    ]


@listed(ERRORS)
def errors_split(tf, x):
    return [
        lambda: tf.split(x, 3, axis=1),
        lambda: tf.split(x, [1, 2], axis=1),
        lambda: tf.unstack(x, num=2),
    ]


@listed(ERRORS)
def errors_reduce(tf, x):
    return [
        lambda: tf.reduce_sum(x, 2),
        lambda: tf.reduce_sum(x, [0, 0]),
        lambda: tf.reduce_sum([True]),
        lambda: tf.math.reduce_std([1, 2]),
        lambda: tf.reduce_all(x),
        lambda: tf.reduce_logsumexp([1, 2]),
        lambda: tf.argmax(x, 3),
        lambda: tf.cumsum(x, 5),
    ]


@listed(ERRORS)
def errors_dtype(tf, x):
    return [
        lambda: tf.sqrt(4),
        lambda: tf.exp([1]),
        lambda: tf.sigmoid(1),
        lambda: tf.nn.softmax([1, 2]),
        lambda: tf.nn.softmax(1.0),
        lambda: tf.negative(True),
        lambda: tf.logical_not(1),
        lambda: tf.nn.gelu(1),
        lambda: tf.norm([3, 4]),
        lambda: tf.complex(1, 2),
    ]


@listed(ERRORS)
def errors_mixed(tf, x):
    return [
        lambda: x + tf.constant([1, 2, 3, 4]),
        lambda: x == tf.constant(1),
        lambda: tf.maximum(x, tf.constant(1)),
        lambda: x * tf.constant(1.0, tf.float16),
        lambda: tf.constant(1) == 1.5,
        lambda: 1.5 + tf.constant(1),
        lambda: tf.where([True], 1, 2.0),
    ]


@listed(ERRORS)
def errors_operators(tf, x):
    return [
        lambda: tf.constant([True]) + tf.constant([True]),
        lambda: -tf.constant(True),
        lambda: x & x,
        lambda: ~x,
        lambda: x + [1.0, 2],
        lambda: x + None,
        lambda: +x,
        lambda: divmod(x, 2.0),
        lambda: tf.constant(7) // 0,
        lambda: tf.constant(7) % 0,
        lambda: tf.constant(2) ** -1,
        lambda: tf.constant(True) < True,
    ]


@listed(ERRORS)
def errors_matmul(tf, x):
    return [
        lambda: tf.matmul(x, x),
        lambda: tf.matmul(x[0], x[0]),
        lambda: x @ x,
        lambda: tf.linalg.inv(x),
        lambda: tf.linalg.inv(tf.zeros((2, 2))),
        lambda: tf.linalg.solve(tf.zeros((2, 2)), tf.ones((2, 1))),
        lambda: tf.einsum("ij,jk", x, x),
        lambda: tf.matmul(x, x, True, adjoint_a=True),
    ]


@listed(ERRORS)
def errors_losses(tf, x):
    return [
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 4, 1], x),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1], x),
        lambda: tf.nn.softmax_cross_entropy_with_logits(x, tf.ones((2, 2))),
        lambda: tf.nn.sigmoid_cross_entropy_with_logits(x, tf.ones((2, 2))),
        lambda: tf.nn.log_poisson_loss(x, tf.ones((2, 2))),
        lambda: tf.nn.log_poisson_loss([1], [1]),
        lambda: tf.nn.dropout(x, 1.5),
        lambda: tf.nn.dropout([1], 0.5),
    ]


@listed(ERRORS)
def errors_range(tf, x):
    return [
        lambda: tf.range(0, 10, 0),
        lambda: tf.range(5, 1),
        lambda: tf.zeros([2], int),
        lambda: tf.cast(x, None),
        lambda: tf.cast(1.5, int),
    ]


@listed(ERRORS)
def errors_misc(tf, x):
    return [
        lambda: tf.boolean_mask(x, [True, False]),
        lambda: tf.sort(x, direction="x"),
        lambda: tf.math.top_k(x, 5),
        lambda: tf.slice(x, [0, 1], [2, 9]),
        lambda: tf.tile(x, 2),
        lambda: tf.pad(x, [[1, 1, 1]]),
        lambda: tf.pad(x, [[1, 1], [0, 0]], mode="EDGE"),
        lambda: tf.tensor_scatter_nd_add(x, [[5]], [[1.0] * 4]),
    ]


@listed(ERRORS)
def errors_conv(tf, x):
    return [
        lambda: tf.nn.conv2d(IMAGE, FILTERS, 1, "FULL"),
        lambda: tf.nn.conv2d(IMAGE[..., :2], FILTERS, 1, "SAME"),
        lambda: tf.nn.max_pool2d(IMAGE, 2, 2, "SAME", data_format="X"),
        lambda: tf.nn.bias_add(x, [1.0]),
    ]


@listed(ERRORS)
def errors_random(tf, x):
    return [
        lambda: tf.random.normal([2], dtype=tf.int32),
        lambda: tf.random.uniform([2], dtype=tf.int32),
        lambda: tf.random.uniform([2], 5, 5, dtype=tf.int32),
        lambda: tf.random.stateless_normal([2], seed=[1]),
    ]


@listed(ERRORS)
def errors_debugging(tf, x):
    return [
        lambda: tf.debugging.assert_equal(1, 2),
        lambda: tf.debugging.assert_near(1.0, 2.0),
        lambda: tf.debugging.check_numerics(x / 0, "m"),
        lambda: tf.debugging.assert_shapes([(x, (3, 5))]),
        lambda: tf.debugging.assert_positive(x),
        lambda: tf.debugging.assert_rank(x, 3),
        lambda: tf.debugging.assert_type(x, tf.int32),
        lambda: tf.debugging.assert_equal(x, x),
    ]


@listed(ERRORS)
def errors_missing(tf, x):
    return [lambda: tf.no_such_name, lambda: tf.nn.no_such_name]


@pytest.mark.parametrize("actions", [pytest.param(actions, id=name) for name, actions in ERRORS.items()])
def test_error(actions):
    def body(tf):
        """The classes of the errors."""
        return [error_of(action) for action in actions(tf, tf.constant(X))]

    check(body)
