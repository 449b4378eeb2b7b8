"""The names that programs call most, with each of their arguments: by keyword, as tensors, at their limits."""

import numpy as np
from tables import Table

f32 = np.float32
X = np.arange(24, dtype=f32).reshape(2, 3, 4) / 5 - 2
M = np.array([[3.0, 1.0, 2.0], [2.0, 2.0, 2.0], [0.0, -1.0, 5.0]], f32)
I = np.array([[0, 2], [1, 1]], np.int32)  # noqa: E741

table = Table()


def c(tf, value, dtype=None):
    return tf.constant(value, dtype)


# ---- Making --------------------------------------------------------------------------------------------------------

table.values(
    "zeros-ones-fill",
    lambda tf: [
        tf.zeros(shape=[2, 1], dtype=tf.int32, name="z"),
        tf.ones(tf.TensorShape([2])),
        tf.zeros((c(tf, 2), 3)),
        tf.zeros(np.array([2, 2])),
        tf.ones([2], "float16"),
        tf.ones([], bool),
        tf.fill(dims=[2, 2], value=9, name="f"),
        tf.fill([1], c(tf, 2.5)),
        tf.zeros_like(input=X[0, 0], dtype=tf.int64, name="l"),
        tf.ones_like([[1, 2]], tf.float32),
        tf.zeros_like(tf.Variable([1, 2])),
    ],
)
table.values(
    "range-linspace-eye",
    lambda tf: [
        tf.range(start=1, limit=7, delta=2, dtype=tf.float32, name="r"),
        tf.range(c(tf, 3)),
        tf.range(3, delta=0.5),
        tf.range(10, 0, -3),
        tf.linspace(start=0.0, stop=1.0, num=4, name="l"),
        tf.linspace([0.0, 1.0], [1.0, 5.0], 3, axis=-1),
        tf.linspace(c(tf, 1.0), 2.0, c(tf, 3)),
        tf.linspace(0.0, 1.0, 1),
        tf.eye(num_rows=2, num_columns=3, batch_shape=[2], dtype=tf.int32, name="e"),
        tf.eye(c(tf, 2), batch_shape=c(tf, [1])),
    ],
)
table.values(
    "constant-convert_to_tensor",
    lambda tf: [
        tf.constant(value=[1, 2, 3, 4], dtype=tf.float32, shape=(2, 2), name="c"),
        tf.constant(0, shape=[2, 3]),
        tf.constant([[1, 2]], "float64"),
        tf.constant(True),
        tf.constant(X[0], tf.float16),
        tf.convert_to_tensor(value=[1.0], dtype=tf.float32, dtype_hint=tf.int32, name="t"),
        tf.convert_to_tensor(1, dtype_hint=tf.float32),
        tf.convert_to_tensor([c(tf, 1.0), 2.0]),
        tf.convert_to_tensor(np.arange(3)),
        tf.convert_to_tensor(tf.TensorShape([1, 2])),
        tf.convert_to_tensor(range(3)),
    ],
)
table.values(
    "one_hot",
    lambda tf: [
        tf.one_hot(indices=[0, 2, -1, 3], depth=3, on_value=5.0, off_value=-1.0, axis=0, dtype=tf.float32, name="o"),
        tf.one_hot(I, 3, axis=1),
        tf.one_hot(I, c(tf, 3), axis=-1, on_value=True, off_value=False),
        tf.one_hot(1, 3, dtype=tf.int32),
        tf.one_hot(I, 3, on_value=2),
        tf.one_hot(c(tf, [1], tf.uint8), 2, on_value=True, off_value=False, dtype=tf.bool),
    ],
)
table.errors(
    "making-errors",
    lambda tf: [
        lambda: tf.zeros([-1]),
        lambda: tf.fill([2], [1, 2]),
        lambda: tf.range(0, 5, 0),
        lambda: tf.one_hot([0.5], 3),
        lambda: tf.one_hot([0], 3, on_value=1.0, off_value=0),
        lambda: tf.one_hot([0], 3, on_value=1, dtype=tf.float32) is None,
        lambda: tf.convert_to_tensor("a", tf.float32),
        lambda: tf.convert_to_tensor(c(tf, 1.0), tf.int32),
        lambda: tf.constant([1, 2, 3], shape=[2, 2]),
        lambda: tf.eye(-1),
        lambda: tf.linspace(0.0, 1.0, 0),
    ],
)

# ---- Types ---------------------------------------------------------------------------------------------------------

table.values(
    "cast",
    lambda tf: [
        tf.cast(x=[1.9, -1.9], dtype=tf.int32, name="c"),
        tf.cast([0.0, 2.0], "bool"),
        tf.cast([True, False], tf.float32),
        tf.cast(c(tf, [1 + 2j]), tf.complex64),
        tf.cast([300, -1], tf.uint8),
        tf.cast(3, np.float16),
        tf.cast(tf.Variable([1.5]), tf.bfloat16),
        tf.cast([1, 2], float),
    ],
)
table.values(
    "shape-size-rank",
    lambda tf: [
        tf.shape(input=X, out_type=tf.int64, name="s"),
        tf.size(X),
        tf.size(X, tf.int64),
        tf.rank(X),
        tf.shape(3.0),
        tf.shape([[1, 2]])[1],
        tf.shape_n([X, M]),
        tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])),
        tf.broadcast_dynamic_shape([2, 1], [3]),
    ],
)

# ---- Shaping -------------------------------------------------------------------------------------------------------

table.gradients(
    "reshape-squeeze-expand_dims",
    lambda tf, x: [
        tf.reshape(tensor=x, shape=[-1, 4], name="r"),
        tf.reshape(x, c(tf, [4, -1])),
        tf.reshape(x, (c(tf, 6), 4)),
        tf.reshape(x, -1),
        tf.reshape(x[0, 0, 0], []),
        tf.expand_dims(input=x, axis=-1, name="e"),
        tf.expand_dims(x, c(tf, 1)),
        tf.expand_dims(x, -4),
        tf.squeeze(input=x[:1, :, :1], axis=[0, -1], name="s"),
        tf.squeeze(x[:1, :, :1]),
        tf.squeeze(x[:1], 0),
        tf.squeeze(x[:1, :, :1], axis=(2,)),
        x[tf.newaxis, ..., tf.newaxis, 0],
    ],
    X,
)
table.gradients(
    "transpose-tile-pad-reverse-roll",
    lambda tf, x: [
        tf.transpose(a=x, perm=[2, 0, 1], conjugate=False, name="t"),
        tf.transpose(x),
        tf.transpose(x, c(tf, [1, 0, 2])),
        tf.tile(input=x, multiples=[1, 2, 1], name="t"),
        tf.tile(x, c(tf, [2, 1, 1])),
        tf.pad(tensor=x, paddings=[[1, 0], [0, 2], [0, 0]], mode="CONSTANT", constant_values=3, name="p"),
        tf.pad(x, c(tf, [[1, 1], [1, 1], [2, 1]]), "reflect"),
        tf.pad(x, [[1, 1], [1, 1], [2, 1]], mode="SYMMETRIC"),
        tf.reverse(tensor=x, axis=[0, -1], name="r"),
        tf.roll(input=x, shift=1, axis=0, name="r"),
        tf.roll(x, shift=[1, -2], axis=[0, 2]),
        tf.repeat(input=x, repeats=[1, 2, 0], axis=1, name="r"),
        tf.repeat(x[0, 0], 2),
        tf.repeat(x, repeats=2, axis=-1),
        tf.broadcast_to(input=x[:1], shape=[2, 2, 3, 4], name="b"),
    ],
    X,
)
table.errors(
    "shaping-errors",
    lambda tf: [
        lambda: tf.reshape(X, [5, -1]),
        lambda: tf.reshape(X, [-1, -1]),
        lambda: tf.squeeze(X, 0),
        lambda: tf.squeeze(X, 5),
        lambda: tf.expand_dims(X, 4),
        lambda: tf.transpose(X, [0, 0, 1]),
        lambda: tf.transpose(X, [0, 1]),
        lambda: tf.tile(X, [1, 2]),
        lambda: tf.pad(X, [[1, 1]]),
        lambda: tf.pad(X, [[3, 0], [0, 0], [0, 0]], "REFLECT"),
        lambda: tf.reverse(X, [3]),
        lambda: tf.reverse(X, [0, 0]),
        lambda: tf.repeat(X, [1, 2], axis=1),
        lambda: tf.broadcast_to(X, [2, 2]),
        lambda: tf.reshape(X, [2.0, 12.0]),
    ],
)

# ---- Joining and cutting -------------------------------------------------------------------------------------------

table.gradients(
    "concat-stack-split-unstack",
    lambda tf, x: [
        tf.concat(values=[x, x + 1], axis=-1, name="c"),
        tf.concat([x, x[:, :1]], c(tf, 1)),
        tf.concat((x,), 0),
        tf.stack(values=[x, -x], axis=-1, name="s"),
        tf.stack([x[0], x[1]], 1),
        tf.stack(x),
        *tf.split(value=x, num_or_size_splits=[1, -1], axis=1, name="s"),
        *tf.split(x, 2),
        *tf.split(x, c(tf, [1, 3]), axis=-1),
        *tf.split(x, num_or_size_splits=3, axis=1, num=3),
        *tf.unstack(value=x, num=3, axis=1, name="u"),
        *tf.unstack(x, axis=-1),
        tf.add_n(inputs=[x, x, x * 2], name="a"),
    ],
    X,
)
table.values(
    "meshgrid",
    lambda tf: [
        tf.meshgrid([1, 2, 3], [4, 5]),
        tf.meshgrid([1, 2, 3], [4, 5], indexing="ij", name="m"),
        tf.meshgrid([1.0]),
        tf.meshgrid([1, 2], [3], [4, 5]),
        tf.meshgrid(*[c(tf, [0.0, 1.0])] * 2, indexing="xy"),
    ],
)
table.errors(
    "joining-errors",
    lambda tf: [
        lambda: tf.concat([X, M], 0),
        lambda: tf.concat([X, X], 3),
        lambda: tf.stack([X, X[:1]]),
        lambda: tf.stack([X, X], axis=5),
        lambda: tf.split(X, 3),
        lambda: tf.split(X, [1, 2], axis=1),
        lambda: tf.split(X, [-1, 1, 5], axis=1),
        lambda: tf.split(X, 2, axis=3),
        lambda: tf.unstack(X, num=3),
        lambda: tf.unstack(X, axis=3),
        lambda: tf.meshgrid([1], [2], indexing="yx"),
        lambda: tf.meshgrid([1], [2], foo=1),
        lambda: tf.add_n([]),
        lambda: tf.add_n([X, M]),
    ],
)

# ---- Looking up ----------------------------------------------------------------------------------------------------

table.gradients(
    "gather",
    lambda tf, x: [
        tf.gather(params=x, indices=[1, 0, 1], validate_indices=None, axis=0, batch_dims=0, name="g"),
        tf.gather(x, I, axis=1),
        tf.gather(x, c(tf, 2), axis=-1),
        tf.gather(x, [[0, 2], [1, 1]], axis=1, batch_dims=1),
        tf.gather(x, [[0, 2], [1, 1]], batch_dims=1),
        tf.gather(x, [[[0], [1], [2]]] * 2, axis=2, batch_dims=2),
        tf.gather(x, [[0, 2], [1, 1]], axis=-1, batch_dims=-1),
        tf.gather(x, np.array([1, 0], np.int64)),
        tf.gather_nd(params=x, indices=[[0, 1], [1, 2]], batch_dims=0, name="g"),
        tf.gather_nd(x, [[[0, 1]], [[2, 3]]], batch_dims=1),
        tf.gather_nd(x, c(tf, [[0, 0, 1], [1, 2, 3]])),
        tf.boolean_mask(tensor=x, mask=[True, False], axis=0, name="b"),
        tf.boolean_mask(x, [True, False, True], axis=1),
        tf.boolean_mask(x, c(tf, X[0] > -1), axis=1),
    ],
    X,
)
table.values(
    "where",
    lambda tf: [
        tf.where(condition=X > 0, x=X, y=0.0, name="w"),
        tf.where([True, False], [[1, 2]], [[3], [4]]),
        tf.where(c(tf, True), 1.0, [2.0, 3.0]),
        tf.where(M > 1),
        tf.where([0.0, 1.0, -1.0]),
        tf.where([[False]]),
        tf.where([1, 0, 2]),
    ],
)
table.errors(
    "looking-up-errors",
    lambda tf: [
        lambda: tf.gather(X, [2]),
        lambda: tf.gather(X, [-1]),
        lambda: tf.gather(X, [0], axis=3),
        lambda: tf.gather(X, [0.5]),
        lambda: tf.gather_nd(X, [[2, 0]]),
        lambda: tf.gather_nd(X, [[0, 0, 0, 0]]),
        lambda: tf.boolean_mask(X, [True]),
        lambda: tf.boolean_mask(X, True),
        lambda: tf.where([True, False], [1.0, 2.0]),
        lambda: tf.where([True, False, True], [1.0, 2.0], [3.0, 4.0]),
    ],
)

# ---- Arithmetic and reductions -------------------------------------------------------------------------------------

REDUCTIONS = "sum mean max min prod std variance logsumexp euclidean_norm"
for name in [f"reduce_{what}" for what in REDUCTIONS.split()]:
    table.gradients(
        name,
        lambda tf, x, n=name: [
            getattr(tf.math, n)(input_tensor=x, axis=[0, -1], keepdims=True, name="r"),
            getattr(tf.math, n)(x),
            getattr(tf.math, n)(x, 1),
            getattr(tf.math, n)(x, axis=c(tf, 0)),
            getattr(tf.math, n)(x, axis=c(tf, [1, 2])),
            getattr(tf.math, n)(x, (0, 2), True),
            getattr(tf.math, n)(x, axis=[]),
            getattr(tf.math, n)(x, axis=-3),
        ],
        np.abs(X) + 0.1,
        rtol=1e-4,
        atol=1e-5,
    )
    table.errors(
        f"{name}-errors",
        lambda tf, n=name: [
            lambda: getattr(tf.math, n)(X, axis=3),
            lambda: getattr(tf.math, n)(X, axis=[0, 0]),
            lambda: getattr(tf.math, n)(X, axis=-4),
            lambda: getattr(tf.math, n)(X, keep_dims=True),
        ],
    )
table.values(
    "reduce_all-reduce_any-count_nonzero",
    lambda tf: [
        tf.reduce_all(input_tensor=X > -3, axis=[0, 1], keepdims=True, name="r"),
        tf.reduce_any(X > 2, axis=1),
        tf.reduce_any(X > 2),
        tf.reduce_all([[True, False]], -1),
        tf.math.count_nonzero(input=M, axis=1, keepdims=True, dtype=tf.int32, name="n"),
        tf.math.count_nonzero(M),
    ],
)
table.values(
    "argmax-argmin-sort-top_k",
    lambda tf: [
        tf.argmax(input=M, axis=1, output_type=tf.int32, name="a"),
        tf.argmin(M),
        tf.argmax(M, axis=-1),
        tf.argmax(X, c(tf, 2), tf.int32),
        tf.math.argmin(input=[3, 1, 1]),
        tf.sort(values=M, axis=0, direction="DESCENDING", name="s"),
        tf.argsort(values=M, axis=-1, direction="ASCENDING", stable=True, name="s"),
        tf.math.top_k(input=M, k=2, sorted=True, index_type=tf.int64, name="t"),
        tf.math.top_k([1, 3, 2]),
        tf.math.in_top_k(targets=[0, 1], predictions=M[:2], k=1, name="i"),
        tf.searchsorted(sorted_sequence=[1, 3, 5], values=[0, 3, 9], side="right", out_type=tf.int64, name="s"),
    ],
)
table.gradients(
    "matmul-einsum-tensordot",
    lambda tf, x, y: [
        tf.matmul(a=x, b=y, transpose_a=False, transpose_b=True, adjoint_a=False, adjoint_b=False, name="m"),
        tf.matmul(x, y, True),
        tf.linalg.matmul(x, y, adjoint_a=True),
        tf.matmul(x, y, a_is_sparse=True),
        tf.linalg.matvec(a=x, b=y[0], transpose_a=True, name="v"),
        tf.tensordot(a=x, b=y, axes=1, name="t"),
        tf.tensordot(x, y, [[0], [1]]),
        tf.tensordot(x, y, axes=0),
        tf.einsum("ij,jk->ik", x, y, name="e"),
        tf.einsum("ij->ji", x),
        tf.einsum("i...,...i->...", x, y),
        tf.einsum("ij,kj", x, y, optimize="optimal"),
    ],
    M,
    M.T.copy() + 1,
)
table.values(
    "comparing-and-arithmetic",
    lambda tf: [
        tf.equal(x=M, y=2.0, name="e"),
        tf.not_equal(M, M.T),
        tf.equal([True], [False]),
        tf.math.equal(M, [[3.0, 1.0, 2.0]]),
        tf.abs(x=[-1, 2], name="a"),
        tf.abs(c(tf, [3 + 4j])),
        tf.square(x=[1, -2], name="s"),
        tf.math.log(x=[1.0, 2.0], name="l"),
        tf.sqrt(x=[4.0], name="s"),
        tf.sigmoid(x=[0.0, 1.0], name="s"),
        tf.clip_by_value(t=M, clip_value_min=1.0, clip_value_max=c(tf, 2.0), name="c"),
        tf.clip_by_value([1, 5, 9], 2, 6),
        tf.cumsum(x=M, axis=1, exclusive=True, reverse=True, name="c"),
        tf.math.cumprod(M, axis=-1, reverse=True),
        tf.math.divide(7, 2),
        tf.math.floordiv(c(tf, -7), 2),
        tf.math.mod(c(tf, -7), 3),
        tf.maximum(x=[1, 5], y=[3, 3], name="m"),
        tf.math.add([2.0], 1),
        tf.identity(input=M, name="i"),
        tf.stop_gradient(input=M, name="s"),
        tf.math.round([0.5, 1.5, 2.5]),
        tf.pow(x=[2, 3], y=2, name="p"),
        tf.unique(x=[3, 1, 3], out_idx=tf.int64, name="u"),
        tf.sequence_mask(lengths=[1, 3], maxlen=4, dtype=tf.float32, name="m"),
        tf.tensor_scatter_nd_update(tensor=[1, 2, 3], indices=[[0], [2]], updates=[9, 8], name="t"),
        tf.scatter_nd(indices=[[1], [1]], updates=[1.0, 2.0], shape=[3], name="s"),
    ],
)
table.gradients(
    "norms",
    lambda tf, x: [
        tf.norm(tensor=x, ord="euclidean", axis=None, keepdims=True, name="n"),
        tf.norm(x, ord=1, axis=-1),
        tf.norm(x, ord=np.inf, axis=1),
        tf.norm(x, ord="fro", axis=[1, 2], keepdims=True),
        tf.norm(x, ord=3, axis=0),
        tf.math.l2_normalize(x=x, axis=[1, 2], epsilon=1e-6, name="l"),
        tf.clip_by_norm(t=x, clip_norm=1.0, axes=[0], name="c"),
        tf.linalg.normalize(x, axis=-1)[0],
    ],
    X + 0.05,
    rtol=1e-4,
    atol=1e-5,
)

# ---- nn ------------------------------------------------------------------------------------------------------------

LOGITS = np.array([[2.0, -1.0, 0.5], [0.1, 0.2, 0.3]], f32)
IMAGE = np.random.default_rng(7).normal(size=(2, 6, 5, 4)).astype(f32)
KERNEL = np.random.default_rng(8).normal(size=(3, 3, 2, 4)).astype(f32)
table.gradients(
    "activations",
    lambda tf, x: [
        tf.nn.softmax(logits=x, axis=0, name="s"),
        tf.nn.log_softmax(x, axis=-1),
        tf.nn.relu(features=x, name="r"),
        tf.nn.leaky_relu(features=x, alpha=0.3, name="l"),
        tf.nn.elu(features=x),
        tf.nn.gelu(features=x, approximate=True, name="g"),
        tf.nn.silu(features=x, beta=2.0),
        tf.nn.swish(x),
        tf.nn.softplus(features=x, name="s"),
        tf.nn.softsign(features=x),
        tf.nn.crelu(features=x, axis=0, name="c"),
        tf.nn.l2_loss(t=x, name="l"),
        tf.nn.tanh(x=x),
    ],
    LOGITS,
)
table.gradients(
    "losses",
    lambda tf, x: [
        tf.nn.softmax_cross_entropy_with_logits(labels=[[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], logits=x, axis=-1, name="s"),
        tf.nn.softmax_cross_entropy_with_logits([[0.5] * 3] * 2, x, axis=0),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=x, name="s"),
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones([2, 3]), logits=x, name="s"),
        tf.nn.weighted_cross_entropy_with_logits(labels=tf.ones([2, 3]), logits=x, pos_weight=2.0, name="w"),
    ],
    LOGITS,
)
table.gradients(
    "convolutions",
    lambda tf, x, k: [
        tf.nn.conv2d(
            input=x, filters=k, strides=[1, 2, 1, 1], padding="SAME", data_format="NHWC", dilations=1, name="c"
        ),
        tf.nn.conv2d(x, k, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]),
        tf.nn.conv2d(x, k, (2, 1), "VALID", dilations=[1, 1]),
        tf.nn.convolution(input=x, filters=k, strides=2, padding="VALID", data_format=None, dilations=None, name="c"),
        tf.nn.depthwise_conv2d(x, k[..., :2], [1, 1, 1, 1], "SAME"),
        tf.nn.conv2d_transpose(x, tf.transpose(k, [0, 1, 3, 2]), [2, 12, 5, 4], [2, 1], padding="SAME", name="t"),
        tf.nn.max_pool2d(input=x, ksize=[1, 2, 3, 1], strides=2, padding="SAME", data_format="NHWC", name="m"),
        tf.nn.avg_pool2d(x, 3, 1, "SAME"),
        tf.nn.avg_pool(x, [2, 2], [1, 2], "VALID", name="a"),
        tf.nn.pool(input=x, window_shape=[2, 3], pooling_type="MAX", strides=[1, 2], padding="SAME", name="p"),
        tf.nn.pool(x, [2, 2], "AVG", dilations=[2, 1]),
        tf.nn.pool(x, [2, 2], "MAX", dilations=[1, 2]),
    ],
    IMAGE[..., :2].copy(),
    KERNEL,
    rtol=1e-4,
    atol=1e-4,
)
table.gradients(
    "normalisation",
    lambda tf, x: [
        *tf.nn.moments(x=x, axes=[0, 1], shift=None, keepdims=True, name="m"),
        *tf.nn.moments(x, -1),
        tf.nn.batch_normalization(
            x=x,
            mean=tf.fill([4], 0.5),
            variance=tf.fill([4], 2.0),
            offset=None,
            scale=tf.ones([4]),
            variance_epsilon=1e-3,
            name="b",
        ),
        tf.nn.bias_add(value=x, bias=[1.0, 2.0, 3.0, 4.0], data_format="NHWC", name="b"),
        tf.nn.bias_add(x, tf.ones([6]), "NCHW"),
        tf.nn.embedding_lookup(params=x[0, :, 0], ids=I, max_norm=1.0, name="e"),
        tf.nn.depth_to_space(x, 2),
        tf.nn.space_to_depth(x[:, :, :4], block_size=2, data_format="NHWC", name="s"),
    ],
    IMAGE,
    rtol=1e-4,
    atol=1e-4,
)

test_rows = table.test()
