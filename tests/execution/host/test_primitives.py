"""What NumPy evaluates of JAX's primitives is what XLA computes: indices, windows, integers, loops, decompositions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.execution.host.interpreter import Interpreter
from tapejax.execution.trial import Trial, Unsupported

lax = jax.lax


def compare(fn, *args, tolerance=64):
    """Both results, to some units in the last place of the largest number."""
    found = Interpreter(jax.jit(fn).trace(*args).jaxpr)([np.asarray(x) for x in args])
    expected = [np.asarray(x) for x in jax.tree.leaves(jax.jit(fn)(*args))]
    for x, y in zip(found, expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if x.dtype.kind in "fc":
            near = tolerance * np.finfo(x.dtype).eps
            largest = np.abs(y[np.isfinite(y)]).max(initial=1e-30)
            np.testing.assert_allclose(x, y, rtol=near, atol=near * largest)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def drawn(rng, shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return (3 * rng.normal(size=shape)).astype(dtype) if kind == "f" else rng.integers(0, 50, shape).astype(dtype)


DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool", "complex64"]
MODES = ["clip", "fill", "promise_in_bounds", None]
CHANGES = {"f": "set add multiply subtract min max", "c": "set add multiply", "b": "set"}


def index(rng, shape, mode):
    """Arrays of indices of one shape, some out of bounds if the mode has an answer to that, and slices."""
    many = tuple(rng.integers(1, 4, rng.integers(0, 3)))
    dtype = rng.choice(["int8", "int32", "int64", "uint8"])
    found = []
    for size in shape:
        if rng.random() < 0.3:
            found.append(slice(0, max(1, size - 1)))
        elif mode == "promise_in_bounds":
            found.append(rng.integers(0, size, many).astype(dtype))
        else:
            found.append(rng.integers(0 if dtype == "uint8" else -7, 8, many).astype(dtype))
    return tuple(found)


@pytest.mark.parametrize("seed", range(16))
def test_elements_by_arrays_of_indices(seed):
    rng = np.random.default_rng(seed)
    dtype, mode = rng.choice(DTYPES), MODES[seed % 4]
    if dtype == "complex64" and mode == "fill":  # with nan, see below
        mode = "clip"
    shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
    x, at = drawn(rng, shape, dtype), index(rng, shape, mode)
    by = [0, 0 if mode == "promise_in_bounds" else 1]

    def moved(x, by):
        return jnp.asarray(x).at[tuple([i if isinstance(i, slice) else i + jnp.asarray(by, i.dtype) for i in at])]

    def taken(x, by):
        return moved(x, by).get(mode=mode)

    shape = jax.eval_shape(functools.partial(taken, by=0), x).shape
    news, xs = drawn(rng, (2, *shape), dtype), np.stack([x, x[::-1]])

    def every(xs, news):
        found = [taken(x, 0), jax.vmap(taken)(xs, jnp.array(by))]
        for change in CHANGES.get(x.dtype.kind, CHANGES["f"]).split():

            def put(x, new, by, change=change):
                return getattr(moved(x, by), change)(new, mode=mode)

            found += [put(x, news[0], 0), jax.vmap(put)(xs, news, jnp.array(by))]
        return found

    compare(every, xs, news)


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_windows_that_are_partly_outside(axes, mode):
    rng = np.random.default_rng(0)
    x, starts = drawn(rng, (5, 6), "float32"), rng.integers(-3, 8, (9, 2)).astype("int32")
    into = lax.ScatterDimensionNumbers((1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=axes)

    def every(x, starts, updates):
        found = [jax.vmap(lambda i: lax.dynamic_slice(x, i, (2, 3)))(starts)]
        found += [jax.vmap(lambda i: lax.dynamic_update_slice(x, 0 * x[:2], i))(starts)]
        for offsets in ((1, 2), (0, 2), (0, 1)):
            how = lax.GatherDimensionNumbers(offset_dims=offsets, collapsed_slice_dims=(), start_index_map=axes)
            found += [lax.gather(x, starts, how, (2, 3), mode=mode)]
        return found + [
            fn(x, starts, updates, into, mode=mode) for fn in (lax.scatter, lax.scatter_add, lax.scatter_mul)
        ]

    compare(every, x, starts, drawn(rng, (9, 2, 3), "float32"))


X = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
TIES = np.array([[0.0, -0.0, np.nan, 1.0], [np.inf, -np.nan, -np.inf, 1.0], [2.0, 2.0, -1.0, 2.0]], "float32")
FLOATS = np.array(
    [0.5, -0.5, 127.6, 128, -128.9, 255.9, -1, 2**31, -(2**31), 2**32, 2**63, -(2**63), 1e30, np.nan, -np.inf]
)
Z = (X + 1j * X[::-1]).astype("complex64")
PROGRAMS = {
    "casts": (lambda x: [x.astype(t) for t in ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "bool")], FLOATS),
    "sorted": (lambda x: [f(x, axis) for f in (jnp.sort, jnp.argsort) for axis in (0, 1)], TIES),
    "sorted by two": (lambda x, y: lax.sort([jnp.round(x), y, x], num_keys=2), X, TIES),
    "largest": (lambda x: (lax.top_k(x, 2), lax.top_k(x.astype("int32"), 3), lax.top_k(jnp.abs(x).astype("uint8"), 1)), X),
    "cumulative": (lambda x: [f(x, axis, reverse=r) for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)
                              for axis in (0, 1) for r in (False, True)], X),
    "cumulative extremes": (lambda x: (lax.cummax(x), lax.cummin(x, 1)), TIES),
    "padded": (lambda x: [lax.pad(x, np.float32(1), c) for c in (((1, 2, 0), (0, 0, 1)), ((-1, 3, 2), (-2, -1, 0)))], X),
    "tiled": (lambda x: (jnp.tile(x, 2), jnp.tile(x, (2, 1, 3))), X),
    "kept apart": (lambda x: (lax.optimization_barrier(x), lax.optimization_barrier((x, 2 * x))), X),
    "nothing kept apart": (lambda x: (lax.optimization_barrier(()), 2 * x), X),  # as `jax.checkpoint` of no residuals
    "total order": (lambda x: (lax.lt_to_p.bind(x, x[:, ::-1]), lax.le_to_p.bind(x, x[::-1])), TIES),
    "inverse functions": (lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.arcsinh(x), jnp.arccosh(1 + x * x),
                                     jnp.arctanh(x), jnp.cbrt(x), lax.erfc(x)), np.clip(X, -0.9, 0.9)),
    "complex": (lambda x, y: (x + y, x - y, x * y, x / y, -x, abs(x), jnp.exp(x), x.real, x.imag, x.conj(), jnp.sign(x), x**2,
                              x**-1, x == y, jnp.where(x == y, x, y), x.sum(0), x @ y.T, x.reshape(2, 6),
                              lax.complex(x.real, y.real), jax.vjp(jnp.imag, x)[1](y.real),
                              x.real.astype(x.dtype)), Z, Z[::-1].copy()),
    "cases out of range": (lambda i, x: lax.select_n(i, x, 2 * x, 3 * x), np.arange(-2, 10).reshape(3, 4).astype("int32"), X),
    "cases": (lambda i, x: (lax.select_n(i, x, 2 * x, 3 * x), lax.select_n(i[0, 0], x, -x)),
              np.arange(12).reshape(3, 4).astype("int32") % 2, X),
    "branches": (lambda x: [lax.switch(i, [lambda x: x, lambda x: x * x, lambda x: x.sum() + x], x) for i in (-1, 1, 5)], X),
    "branch of a value": (lambda i, x: lax.cond(i > 0, lambda x: (x, x[0]), lambda x: (-x, x[1]), x), np.int32(1), X),
    "loop": (lambda x: [lax.scan(lambda c, r: (2 * c + r, (c, r.sum())), x[0], x, reverse=r) for r in (False, True)], X),
    "counted": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x), X),
    "loop of no turns": (lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x[:0]), X),
    "subnormal in a loop": (lambda x: lax.scan(lambda c, r: (c * r, c), x, jnp.full((3,), 1e-20, x.dtype))[1], np.float32(1e-10)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_computes_what_xla_computes(name):
    fn, *args = PROGRAMS[name]
    compare(fn, *args)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32"])
def test_quotients_and_remainders(dtype):
    kind = np.dtype(dtype)
    of_kind = [0.0, 1.0, -1.0, 2.5, -3.7, np.inf, np.nan] if kind.kind == "f" else [0, 1, 2, 3, 7, *_ends(kind)]
    x, y = map(np.ascontiguousarray, np.meshgrid(*[np.array(of_kind, dtype)] * 2))
    compare(lambda x, y: (lax.div(x, y), lax.rem(x, y), x % y, x // y, lax.sign(x)), x, y)


def _ends(kind):
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    return [least, least + 1, most - 1, most]


# ---- decompositions


def of_some_kind(rng, dtype, batch, m, n):
    return drawn(rng, (*batch, m, n), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_decompositions(dtype, batch):
    rng = np.random.default_rng(len(batch))
    x, b = of_some_kind(rng, dtype, batch, 4, 4), of_some_kind(rng, dtype, batch, 4, 2)
    wide, tall = of_some_kind(rng, dtype, batch, 3, 5), of_some_kind(rng, dtype, batch, 5, 3)
    positive = x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(4, dtype=dtype)

    def every(x, b, positive, wide, tall):
        found = [jnp.linalg.cholesky(positive), jnp.linalg.eigh(positive), jnp.linalg.solve(positive, b)]
        found += [lax.linalg.eigh(positive, lower=False, symmetrize_input=False), jnp.linalg.inv(positive)]
        for each in (x, wide, tall):
            found += [lax.linalg.lu(each), jnp.linalg.svd(each, compute_uv=False)]
            for full in (False, True):
                mode = "complete" if full else "reduced"
                found += [jnp.linalg.qr(each, mode), jnp.linalg.svd(each, full_matrices=full)]
        for bits in range(32):
            left, lower, transposed, conjugated, unit = [bool(bits >> i & 1) for i in range(5)]
            how = dict(left_side=left, lower=lower, transpose_a=transposed, conjugate_a=conjugated, unit_diagonal=unit)
            found += [lax.linalg.triangular_solve(positive, b if left else b.swapaxes(-1, -2), **how)]
        return found

    compare(every, x, b, positive, wide, tall, tolerance=4000)


@pytest.mark.parametrize("of", ["cholesky", "inv", "det", "eigh", "svd", "qr"])
def test_derivatives_of_decompositions(of):
    x = np.array([[4.0, 1.0, 0.5, 0.2], [1.0, 3.0, 0.3, 0.1], [0.5, 0.3, 2.0, 0.4], [0.2, 0.1, 0.4, 1.0]])

    def total(x):
        return sum([jnp.sum(jnp.sin(part)) for part in jax.tree.leaves(getattr(jnp.linalg, of)(x))])

    compare(lambda x: (jax.grad(total)(x), jax.hessian(total)(x)), x, tolerance=40000)


@pytest.mark.parametrize(
    "fn, x",
    [
        (jnp.linalg.cholesky, -np.eye(3)),  # nan
        (lambda x: lax.linalg.triangular_solve(x, x), np.zeros((2, 2))),
        (lax.linalg.lu, np.ones((3, 3))),  # where rounding decides
        (lambda x: lax.top_k(x, 1), np.array([0.0, -0.0])),
        (lambda x: x / x, np.array([0.0 + 0j])),
        (lambda x: x.at[5].get(mode="fill"), np.array([1.0 + 0j])),
    ],
)
def test_numbers_that_are_left_to_xla(fn, x):
    with pytest.raises(Unsupported):
        Interpreter(jax.jit(fn).trace(x).jaxpr)([x])
    found, expected = Trial(fn)(x), jax.jit(fn)(x)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (2, 3)])
def test_signs_of_zeros_in_sums(shape):
    def every(x):
        found = [
            fn(x, axes)
            for fn in (lax.reduce_sum, lax.reduce_prod)
            for axes in ([], range(x.ndim), [x.ndim - 1][: x.ndim])
        ]
        return found + [lax.cumsum(x, x.ndim - 1, reverse=reverse) for reverse in (False, True) if x.ndim]

    x = np.full(shape, -0.0)
    found, expected = Interpreter(jax.jit(every).trace(x).jaxpr)([x]), jax.jit(every)(x)
    assert [np.signbit(x).tolist() for x in found] == [np.signbit(x).tolist() for x in expected]


TINY = np.finfo("float32").tiny


@pytest.mark.parametrize(
    "fn, x",
    [
        (lambda x: jnp.exp(x) * 1e38, -88.0),  # NumPy's says nothing of an underflow
        (lambda x: x * 0.5 > 0, TINY),  # nothing is rounded: no underflow
        (lambda x: (x - TINY) * 1e38, 1.5 * TINY),
        (lambda x: lax.fori_loop(0, 150, lambda i, x: x * 0.5, x) > 0, 1.0),
        (lambda x: (x * 1e38, x > 0, jnp.log(x), x.astype(bool), jnp.sign(x)), 1e-40),
        (lambda x: (x, x[None], -x, jnp.where(x == 0, x, 1)), 1e-40),  # what is copied keeps it
        (lambda x: x * np.float32(1e-40) > 0, 1e38),
        (lambda x: jnp.nextafter(x, 1) * 1e38, 0.0),
        (lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, "int32") + 1, "float32") * 1e38, 0.0),
    ],
)
def test_subnormal_numbers(fn, x):
    x = np.float32(x)
    found, expected = Trial(fn)(x), jax.jit(fn)(x)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_a_long_loop_is_compiled_at_once():
    loop = Trial(lambda x: lax.fori_loop(0, 100_000, lambda i, x: x + 1, x))
    assert loop(0.0) == 100_000
    assert [plan.cost for plan in loop._plans.values()] == [0.0]


# ---- windows, transforms, 16-bit floats, functions of complex numbers


def convolved(rank, dtype="float32", **how):
    axes = "DHW"[-rank:]
    layout = how.pop("layout", f"N{axes}C")
    options = {
        "window_strides": (1,) * rank,
        "padding": "SAME",
        "dimension_numbers": (layout, f"{axes}IO", layout),
    } | how
    return functools.partial(lax.conv_general_dilated, **options)


CONVOLUTIONS = {
    "plain": (convolved(2), (2, 5, 4, 3), (3, 2, 3, 4)),
    "strided": (convolved(2, window_strides=(2, 3), padding="VALID"), (2, 7, 6, 3), (3, 2, 3, 4)),
    "dilated": (convolved(1, rhs_dilation=(2,)), (2, 7, 3), (3, 3, 4)),
    "transposed": (convolved(2, padding=((1, 2), (-1, 0)), lhs_dilation=(2, 3)), (1, 4, 5, 3), (2, 2, 3, 2)),
    "grouped": (convolved(2, feature_group_count=3), (2, 5, 4, 6), (3, 3, 2, 6)),
    "three axes": (convolved(3), (1, 3, 4, 3, 2), (2, 2, 2, 2, 3)),
    "channels first": (convolved(2, layout="NCHW"), (2, 3, 5, 4), (3, 2, 3, 4)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_convolutions_and_their_gradients(name, dtype):
    conv, x, w = CONVOLUTIONS[name]
    rng = np.random.default_rng(0)
    x, w = drawn(rng, x, dtype), drawn(rng, w, dtype)

    def every(x, w):
        y, pull = jax.vjp(conv, x, w)
        return y, pull(y)

    compare(every, x, w)


def test_a_large_convolution_is_refused():
    x, w = np.zeros((8, 32, 32, 16), "float32"), np.zeros((3, 3, 16, 16), "float32")
    with pytest.raises(Unsupported):
        Interpreter(jax.make_jaxpr(convolved(2))(x, w))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_windows_that_are_reduced(dtype):
    x = drawn(np.random.default_rng(0), (2, 7, 6), dtype)

    least = np.asarray(-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    greatest = np.asarray(np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max, x.dtype)
    windows = [((1, 1, 1), "SAME", None), ((1, 2, 3), "VALID", None), ((1, 1, 1), "VALID", (1, 2, 1))]

    def every(x):
        return [
            lax.reduce_window(x, start, combine, (1, 3, 2), strides, padding, window_dilation=rates)
            for start, combine in ((x.dtype.type(0), lax.add), (least, lax.max), (greatest, lax.min))
            for strides, padding, rates in windows
        ]

    compare(every, x)


def test_what_comes_back_to_windows_that_are_added():
    def mean(x):
        return lax.reduce_window(x, 0.0, lax.add, (1, 3, 2), (1, 2, 2), "SAME")

    x = drawn(np.random.default_rng(0), (2, 7, 6), "float64")
    compare(lambda x: jax.vjp(mean, x)[1](mean(x)), x)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_fourier_transforms(dtype):
    z = drawn(np.random.default_rng(0), (3, 4, 6), dtype)

    def every(z):
        found = [f(z) for f in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.fft2, jnp.fft.ifft2, jnp.fft.fftn, jnp.fft.irfft)]
        found += [f(z.real) for f in (jnp.fft.rfft, jnp.fft.rfft2, jnp.fft.rfftn)]
        found += [jnp.fft.irfft(z, 7), jnp.fft.irfft2(z), jnp.fft.fft(z, 9), jnp.fft.rfft(z.real, 4)]
        return [*found, jax.vjp(jnp.fft.rfft, z.real)[1](z[..., :4])]

    compare(every, z)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers(dtype):
    names = "log log1p expm1 tanh sin cos tan sinh cosh sqrt rsqrt logistic asin acos atan asinh acosh atanh".split()
    parts = np.array([0.02, -0.3, 0.5, 1.0, -1.0, 1.5, -2.5, 7.0, -15.0])
    z = (parts[:, None] + 1j * parts).astype(dtype)
    for name in names:
        compare(getattr(lax, name), z)
    compare(lambda z: z ** (0.5 + 0.2j), z)


@pytest.mark.parametrize("z", [0.5, -0.0 + 0.5j, 1e-5 + 1j, 1 + 40j])
def test_complex_numbers_on_the_axes_near_to_zero_and_far_away_are_left_to_xla(z):
    z = np.array([z], "complex64")
    with pytest.raises(Unsupported, match="complex"):
        Interpreter(jax.make_jaxpr(jnp.sin)(z))([z])
    np.testing.assert_array_equal(Trial(jnp.sin)(z), jax.jit(jnp.sin)(z))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats(dtype):
    """Rounded after each operation; XLA may keep what is between in single precision."""
    near = float(jnp.finfo(dtype).eps)
    x, y, w = (jnp.asarray(v, dtype) for v in (X, X[::-1], Z.real.T))

    def every(x, y, w):
        found = [x + y, x * y, x / y, jnp.exp(x), jnp.tanh(x), jax.nn.gelu(x), x @ w, x.sum(0), x.mean(), jnp.max(x, 1)]
        found += [x.astype("float32"), y.astype("int32"), (x > y).astype(dtype), jnp.where(x > y, x, y), jnp.sort(x)]
        found += [x[jnp.array([2, 0])], x.at[jnp.array([1, 1])].add(y[:2]), jnp.cumsum(x, 1), jnp.var(x), x**2]
        found += [jax.grad(lambda x: jnp.sum(jnp.tanh(x @ w) ** 2))(x), lax.scan(lambda c, r: (c + r, c), x[0], x)[1]]
        return found + [jnp.arange(3, dtype=dtype), jnp.exp(20 + 0 * x), x * jnp.asarray(1e-6, dtype)]

    found = Interpreter(jax.jit(every).trace(x, y, w).jaxpr)([np.asarray(v) for v in (x, y, w)])
    for a, b in zip(found, jax.tree.leaves(jax.jit(every)(x, y, w)), strict=True):
        b = np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        scale = np.abs(b.astype("float64")[np.isfinite(b.astype("float64"))]).max(initial=0)
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=4 * near, atol=4 * near * scale)


def test_a_complex_number_becomes_its_real_part():
    compare(
        lambda z: lax.convert_element_type_p.bind(z, new_dtype=np.dtype("float32"), weak_type=False, sharding=None), Z
    )


# All that is evaluated of one, two or three arrays of a dtype; most of the dtypes some of them refuse, as JAX does.
OF_ARRAYS = {
    **{
        name: (1, getattr(lax, name))
        for name in "neg abs sign square sqrt rsqrt cbrt exp exp2 log log1p expm1 tanh sin cos tan sinh cosh asin acos atan "
        "asinh acosh atanh logistic erf erfc erf_inv floor ceil round is_finite real imag conj bitwise_not stop_gradient "
        "optimization_barrier".split()
    },
    **{
        name: (2, getattr(lax, name))
        for name in "add sub mul div rem max min pow atan2 nextafter eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor "
        "shift_left shift_right_logical complex dot".split()
    },
    **{name: (1, functools.partial(getattr(lax, name), axis=0)) for name in "cumsum cumprod cummax cummin".split()},
    **{
        name: (1, functools.partial(getattr(jnp, name), axis=0))
        for name in "sum prod max min any all ptp nanmax nanmin argmax argmin sort argsort flip".split()
    },
    "clamp": (3, lax.clamp),
    "select": (2, lambda x, y: jnp.where(jnp.arange(4) % 2 == 0, x, y)),
    "select_n": (3, lambda *xs: lax.select_n(jnp.int32([0, 1, 2, 1]), *xs)),
    "cube": (1, lambda x: lax.integer_pow(x, 3)),
    "inverse": (1, lambda x: lax.integer_pow(x, -1)),
    "pad": (1, lambda x: jnp.pad(x, 1)),
    "pad_max": (1, lambda x: lax.pad(x, x[0], [(1, 2, 1)])),
    "reshape": (1, lambda x: x.reshape(2, 2).T),
    "tile": (1, lambda x: jnp.tile(x, 2)),
    "concatenate": (2, lambda x, y: jnp.concatenate([x, y])),
    "stack": (2, lambda x, y: jnp.stack([x, y])),
    "split": (1, lambda x: jnp.split(x, 2)),
    "slice": (1, lambda x: x[1::2]),
    "dynamic_slice": (1, lambda x: lax.dynamic_slice(x, [1], [2])),
    "dynamic_update_slice": (2, lambda x, y: lax.dynamic_update_slice(x, y[:2], [1])),
    "gather": (1, lambda x: x[np.array([0, 3, 1])]),
    **{
        f"scatter_{name}": (2, lambda x, y, name=name: getattr(x.at[np.array([0, 3, 0, 1])], name)(y))
        for name in "add subtract multiply min max".split()
    },
    "scatter": (2, lambda x, y: x.at[np.array([0, 3])].set(y[:2])),
    "top_k": (1, lambda x: lax.top_k(x, 2)),
    "window_sum": (1, lambda x: lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (2,), (1,), "SAME")),
    "window_max": (1, lambda x: lax.reduce_window(x, _least(x.dtype), lax.max, (2,), (1,), "SAME")),
    "window_min": (1, lambda x: lax.reduce_window(x, _greatest(x.dtype), lax.min, (2,), (1,), "SAME")),
    "fft": (1, jnp.fft.fft),
    "matmul": (2, lambda x, y: x.reshape(2, 2) @ y.reshape(2, 2)),
    "convolve": (2, lambda x, y: jnp.convolve(x, y)),
    "histogram": (1, lambda x: jnp.histogram(x, bins=3)),
    **{f"to_{dtype}": (1, functools.partial(lax.convert_element_type, new_dtype=dtype)) for dtype in ("bool", "int8")},
    **{
        f"to_{dtype}": (1, functools.partial(lax.convert_element_type, new_dtype=dtype))
        for dtype in ("uint32", "int64", "float16", "bfloat16", "float32", "complex64")
    },
    "bits": (1, lambda x: lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")),
}
ALL_DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
ALL_DTYPES += ["complex64", "complex128"]


def _least(dtype):
    return np.array(-np.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).min, dtype)


def _greatest(dtype):
    return np.array(np.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).max, dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_each_primitive_of_each_dtype(dtype):
    """It is what XLA computes, or left to XLA."""
    rng, found, calls, wrong = np.random.default_rng(1), {}, {}, {}
    for name, (count, fn) in OF_ARRAYS.items():
        numbers = (
            rng.integers(0, 5, (3, 4)) if np.dtype(jnp.dtype(dtype)).kind in "biu" else rng.uniform(-0.9, 0.9, (3, 4))
        )
        if dtype.startswith("complex"):
            numbers = numbers + 1j * rng.uniform(-0.9, 0.9, (3, 4))
        args = list(numbers.astype(jnp.dtype(dtype)))[:count]
        try:
            program = jax.jit(fn).trace(*args).jaxpr
        except Exception:  # JAX has no such operation
            continue
        try:
            found[name], calls[name] = Interpreter(program)(args), (fn, args)
        except Unsupported:
            continue
    # in one program, which is compiled in a third of the time; behind barriers, so that each is computed by itself
    one = jax.jit(lambda given: {name: calls[name][0](*lax.optimization_barrier(xs)) for name, xs in given.items()})
    for name, expected in one({name: args for name, (_, args) in calls.items()}).items():
        for x, y in zip(found[name], jax.tree.leaves(expected), strict=True):
            exact = not jnp.issubdtype(y.dtype, jnp.inexact)
            near = 0 if exact else 64 * float(jnp.finfo(y.dtype).eps)
            wide = complex if jnp.iscomplexobj(y) else float
            a, b = np.asarray(x).astype(wide), np.asarray(y).astype(wide)
            if (x.dtype, x.shape) != (y.dtype, y.shape) or not np.allclose(a, b, near, near, equal_nan=True):
                wrong[name] = x, y
    assert wrong == {}
    assert (len(found) > 20) == (dtype != "uint16")  # which NumPy evaluates nothing of
