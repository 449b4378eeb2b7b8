"""`keras.ops` and `keras.random` take tensors and variables, eagerly and in a `function`: what they give of arrays is right."""

from __future__ import annotations

import importlib
import inspect
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

# Where a process says `import keras`, it comes after tapejax here, and no tape has been made.
keras = importlib.import_module("keras") if os.environ.get("KERAS_BACKEND") == "jax" else tf.keras
OPS, RANDOM = keras.ops, keras.random

_rng = np.random.default_rng(0)
x, y = (_rng.uniform(0.1, 1.1, (3, 3)).astype("float32") for _ in range(2))
HELD = {
    "x": x,
    "y": y,
    "v": x[0],
    "i": np.array([0, 2, 1], "int32"),
    "ii": np.array([[0, 1, 2], [2, 2, 0], [1, 0, 1]], "int32"),
    "b": x > 0.5,
    "c": (x + 1j * y).astype("complex64"),
    "n": np.int32(2),
    "s": np.float32(0.5),
    "definite": x @ x.T + np.eye(3, dtype="float32"),
    "image": _rng.uniform(size=(2, 8, 8, 4)).astype("float32"),
    "sound": _rng.uniform(size=16).astype("float32"),
    "scores": _rng.uniform(size=(2, 4, 3)).astype("float32"),
    "pads": np.array([[1, 0], [0, 1]], "int32"),
    "rows": np.array([[0], [2]], "int32"),
    "shape": np.array([9, 1], "int32"),
    "order": np.array([1, 0], "int32"),
}
# By what they are called with: names of these, or Python.
TABLE = {
    "x": """
        abs absolute all amax amin angle any arcsinh arctan argmax argmin argsort array average cbrt ceil celu
        cholesky_inverse conj conjugate convert_to_numpy convert_to_tensor copy corrcoef cos cosh count_nonzero cumprod
        cumsum deg2rad det diag diagflat diagonal diff dstack dtype eig eigh elu empty_like erf erfc exp exp2 expm1 fabs
        flip fliplr flipud floor gelu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh hstack i0 imag inv
        is_tensor isfinite isinf isnan isneginf isposinf isreal layer_normalization leaky_relu log log10 log1p log2
        log_sigmoid log_softmax logdet logical_not logsumexp lu_factor matrix_rank max mean median min nan_to_num
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ndim
        negative nonzero norm normalize ones_like pinv prod ptp qr rad2deg ravel real reciprocal relu relu6 rfft
        rms_normalization rot90 round rsqrt selu shape sigmoid sign signbit silu sin sinc sinh size slogdet soft_shrink
        softmax softplus softsign sort sparse_plus sparse_sigmoid sparsemax sqrt square squareplus squeeze stack std
        stop_gradient sum svd swish tan tanh tanh_shrink trace transpose trapezoid tril triu trunc unique unstack var
        view view_as_real vstack where zeros_like
        """,
    "x, y": """
        add allclose append arctan2 binary_crossentropy categorical_crossentropy cdist conv conv_transpose cross depthwise_conv
        divide divide_no_nan dot equal floor_divide fmax fmin fmod full_like geomspace greater greater_equal heaviside hypot inner
        isclose isin kron less less_equal linspace logaddexp logaddexp2 logical_and logical_or logical_xor logspace lstsq matmul
        maximum minimum mod multiply nextafter not_equal outer polar power solve solve_triangular subtract tensordot true_divide
        vdot
        """,
    "i": "bincount bitwise_invert bitwise_not",
    "i, i": """
        bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd get_item lcm ldexp left_shift right_shift
        take take_along_axis
        """,
    "n": "arange bartlett blackman empty eye hamming hanning identity ones tri zeros",
    "v": "arccos arcsin arctanh erfinv histogram meshgrid vander",
    "b": "arccosh",
    "v, v": "correlate digitize nanpercentile nanquantile percentile quantile searchsorted",
    "x, 1": "argpartition array_split expand_dims hsplit moments roll split tile top_k vsplit",
    "x, n": "repeat",
    "i, 3": "multi_hot one_hot",
    "x, 0, 1": "average_pool clip max_pool moveaxis swapaxes threshold",
    "x, 2, 1": "extract_sequences",
    "x, 'float32'": "cast saturate_cast",
    "x, x, x": "separable_conv",
    "x, ii, 1": "psnr",
    "x, i, 0": "segment_max segment_min segment_prod segment_sum",
    "x, pads": "pad",
    "x, shape": "reshape",
    "v, (3, 3)": "broadcast_to",
    "n, s": "full",
    "s, n": "kaiser",
    "n, (2, 2)": "unravel_index",
    "definite": "cholesky",
    "[x, y]": "concatenate fft fft2 ifft2 irfft",
    "i, x": "sparse_categorical_crossentropy",
    "i, x, 2": "in_top_k",
    "image, (4, 4)": "adaptive_average_pool adaptive_max_pool dsplit unfold",
    "image, 2": "depth_to_space glu space_to_depth",
    "image, image, image": "dot_product_attention",
    "x, v, v, -1": "batch_normalization",
    "scores, [4, 3]": "ctc_decode",
    "ii[:2, :2], scores, [2, 2], [4, 4]": "ctc_loss",
    "'ij,jk->ik', x, y": "einsum",
    "image[:1, :4, :4, 0], (4, 4), 2, 1, 0, 2": "fold",
    "sound, 4, 2, 4": "stft",
    "(x, y), 4, 2, 4": "istft",
    "x, 'a b -> b a'": "rearrange",
    "rows, v[:2], (4,)": "scatter",
    "v, rows, v[:2]": "scatter_update",
    "[x > 0.5, y > 0.5], [x, y], 0.0": "select",
    "x, order, (2, 2)": "slice",
    "x, order, y[:2, :2]": "slice_update",
    "x[:, :2]": "view_as_complex",
    "lambda z: OPS.sin(z), (x,), (y,)": "jvp",
    "lambda z: tf.reduce_sum(z) * 2.0, x": "map vectorized_map",
    "lambda c, z: (tf.add(c, z), c * z), v, x": "scan",
    "lambda p, q: tf.add(p, q), x": "associative_scan",
    "s > 0.0, lambda: tf.sin(s), lambda: tf.cos(s)": "cond",
    "n, [tf.sin, tf.cos, tf.exp], s": "switch",
    "lambda i, z: i < 3, lambda i, z: (i + 1, tf.multiply(z, 2.0)), (0, s)": "while_loop",
    "0, n, lambda i, z: tf.multiply(z, 2.0), s": "fori_loop",
}
# These return functions.
MORE = {
    "vectorize": lambda held: OPS.vectorize(lambda z: z * 2)(held["x"]),
    "custom_gradient": lambda held: OPS.custom_gradient(lambda z: (z * 2, lambda *d, **_: d[0] * 7))(held["x"]),
    "transpose": lambda held: OPS.transpose(held["x"], held["order"]),
    "image.resize": lambda held: OPS.image.resize(held["image"], (4, 4)),
    "image.crop_images": lambda held: OPS.image.crop_images(held["image"], 1, 1, 1, 1),
    "linalg.svd": lambda held: OPS.linalg.svd(held["x"]),
    "nn.relu": lambda held: OPS.nn.relu(x=held["x"]),
    "numpy.take": lambda held: OPS.numpy.take(held["x"], held["i"], axis=0),
}
ROWS = {name: (arguments, name) for arguments, names in TABLE.items() for name in names.split()}
DRAWN = {
    "beta": lambda held: RANDOM.beta((2,), held["s"], held["s"], seed=1),
    "binomial": lambda held: RANDOM.binomial((2,), held["s"] * 10, held["s"], seed=1),
    "categorical": lambda held: RANDOM.categorical(held["x"], 2, seed=1),
    "dropout": lambda held: RANDOM.dropout(held["x"], 0.5, seed=1),
    "dropout of rows": lambda held: RANDOM.dropout(held["x"], 0.5, noise_shape=(3, 1), seed=1),
    "dropout at a rate": lambda held: RANDOM.dropout(held["x"], held["s"], seed=1),
    "gamma": lambda held: RANDOM.gamma((2,), held["s"], seed=1),
    "normal": lambda held: RANDOM.normal(held["x"].shape, held["s"], held["s"], seed=1),
    "randint": lambda held: RANDOM.randint((2,), held["n"], held["n"] + 7, seed=1),
    "shuffle": lambda held: RANDOM.shuffle(held["x"], axis=1, seed=1),
    "truncated_normal": lambda held: RANDOM.truncated_normal((2,), held["s"], seed=1),
    "uniform": lambda held: RANDOM.uniform((2,), held["s"], held["s"] + 1.0, seed=1),
}
EVERY = {name: lambda held, row=row: called(*row, held) for name, row in ROWS.items()} | MORE


def called(arguments, name, held):
    return getattr(OPS, name)(*eval(f"({arguments},)", {"tf": tf, "OPS": OPS, **held}))


def same(got, want):
    leaves, wanted = jax.tree.leaves(got), jax.tree.leaves(want)
    assert len(leaves) == len(wanted)
    for one, other in zip(leaves, wanted, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        assert np.asarray(one).dtype == np.asarray(other).dtype or isinstance(other, (int, bool))
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def check(fn, in_function=True):
    want = fn({name: jnp.asarray(value) for name, value in HELD.items()})
    same(fn({name: tf.constant(value) for name, value in HELD.items()}), want)
    same(fn({name: tf.Variable(value) for name, value in HELD.items()}), want)
    if in_function:
        compiled = tf.function(lambda *held: fn(dict(zip(HELD, held, strict=True))), autograph=False)
        same(compiled(*map(tf.constant, HELD.values())), want)


def test_no_function_is_left_out():
    functions = {name for name in dir(OPS) if not name.startswith("_") and inspect.isfunction(getattr(OPS, name))}
    assert not functions - set(EVERY)
    drawing = {name for name in dir(RANDOM) if not name.startswith("_") and inspect.isfunction(getattr(RANDOM, name))}
    assert not drawing - {name.partition(" ")[0] for name in DRAWN}


@pytest.mark.parametrize("name", EVERY)
def test_operations_take_tensors(name):
    if name in ROWS and not hasattr(OPS, name):
        pytest.skip(f"this Keras has no keras.ops.{name}")
    check(EVERY[name], in_function=name != "dtype")  # a text is no tensor


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_take_tensors(name, wide):
    with jax.enable_x64(wide):
        check(DRAWN[name])


def test_a_gradient_passes_through_dropout():
    v = tf.Variable(x)
    for run in (lambda: RANDOM.dropout(v, 0.5, seed=1), tf.function(lambda: RANDOM.dropout(v, 0.5, seed=1))):
        with tf.GradientTape() as tape:
            kept = run()
        want = jax.grad(lambda z: jnp.sum(RANDOM.dropout(z, 0.5, seed=1)))(jnp.asarray(x))
        same(tape.gradient(kept, v), want)
