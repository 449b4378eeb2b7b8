"""What NumPy evaluates of a program is what the compiled program computes: values, types, signs of zeros, memory of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution.host.interpreter import Interpreter
from tapejax.execution.trial import Trial, Unsupported

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype("float32")
Y = RNG.normal(size=(4, 5)).astype("float32")
B = RNG.normal(size=(2, 3, 4)).astype("float32")
ODD = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.5, -2.5, 3.5, 1e-30, 1e30], "float32")
INTS = np.array([0, 1, -1, 5, -7, 2**31 - 1, -(2**31)], "int32")
U = np.array([0, 1, 5, 2**32 - 1], "uint32")
lax = jax.lax

PROGRAMS = {
    "arithmetic": (lambda x, y: (x + y, x - y, x * y, x / y, -x, abs(x)), ODD, ODD[::-1].copy()),
    "extremes": (lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.clip(x, -1, 1)), ODD, ODD[::-1].copy()),
    "compared": (lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), ODD, ODD[::-1].copy()),
    "integers": (lambda x, y: (x + y, x - y, x * y, -x, abs(x), x & y, x | y, x ^ y, ~x, x == y), INTS, INTS[::-1].copy()),
    "unsigned": (lambda x, y: (x + y, x - y, x * y, x & y, ~x), U, U[::-1].copy()),
    "shifts": (lambda x: [f(x, jnp.asarray(k, x.dtype)) for k in (0, 3, 31, 32, 40)
                          for f in (lax.shift_left, lax.shift_right_logical)], INTS),
    "exponentials": (lambda x: (jnp.exp(x), jnp.log(x), jnp.log1p(x), jnp.expm1(x), jnp.tanh(x), jax.nn.sigmoid(x)), ODD),
    "trigonometry": (lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sinh(x), jnp.cosh(x)), X),
    "roots": (lambda x: (jnp.sqrt(x), lax.rsqrt(x), jnp.square(x), x**2, x**3, x**-2, x**0, x**0.5), ODD),
    "powers": (lambda x, y: jnp.power(x, y), np.abs(X), X),
    "rounded": (lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x), jnp.isfinite(x)), ODD),
    "erf": (lambda x: (lax.erf(x), lax.erf_inv(jnp.clip(x, -1, 1))), np.append(ODD, np.linspace(-1, 1, 99, dtype="float32"))),
    "casts": (lambda x, i, b: (x.astype(bool), i.astype("float32"), i.astype("uint8"), b.astype("int32"), x.astype("float32")),
              X, INTS, INTS > 0),
    "shapes": (lambda x: (x.T, x.reshape(2, 6), x[None], x[:, 1:3], x[::-1], x[0], jnp.broadcast_to(x, (2, 3, 4)),
                          jnp.concatenate([x, x], 1), jnp.stack([x, x]), jnp.split(x, 2, 1), jnp.squeeze(x[:1])), X),
    "broadcast": (lambda x: [jnp.broadcast_to(y, shape).astype("float32") for y, shape in (
        (x.T, (2, 4, 3)), (x[:, 1:2], (3, 4)), (x[0, 0], (2, 3)), (x[:0], (2, 0, 4)), (x[:1], (5, 1, 1, 4)), (x[:1] > 0, (3, 4)),
        (x[0].astype("bfloat16"), (2, 4)), (x.astype("int8"), (1, 3, 4)), (-x[::-1], (2, 3, 4)))], X),
    "subnormal results": (lambda x: (x * 1e-15, jnp.exp(-1e32 * x), jnp.exp(-90 + 0 * x), (x * 1e-15) * 1e20, x / 1e12),
                          np.array([1e-30, -1e-30, 1.0], "float32")),
    "same memory": (lambda x: (x, x, jnp.reshape(x, (3, 4))), X),
    "sums": (lambda x: (x.sum(), x.sum(0), x.mean(1), x.prod(), x.max(), x.min(0), x.var(), x.argmax(0), x.argmin(1)), X),
    "empty": (lambda x: (x.sum(), x.sum(0), jnp.max(x, initial=-jnp.inf)), X[:0]),
    "truths": (lambda x: (jnp.any(x > 0), jnp.all(x > 0, 0), jnp.where(x > 0, x, 0), jnp.sum(x > 0)), X),
    "products": (lambda x, y: (x @ y, jnp.einsum("ij,ik->jk", x, x), jnp.tensordot(x, x, 2), jnp.vdot(x, x)), X, Y),
    "batched": (lambda x, y: (x @ y, jnp.einsum("bij,bkj->bik", x, x)), B, Y),
    "positions": (lambda x, i: (lax.dynamic_index_in_dim(x, i, 0), lax.dynamic_update_slice(x, x[:1], (i, i))), X, np.int32(7)),
    "counts": (lambda: (jnp.arange(5), lax.broadcasted_iota("int32", (2, 3), 1), jnp.eye(3)),),
    "softmax": (lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x), jax.nn.logsumexp(x), jax.nn.softplus(x), jax.nn.elu(x)), X),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x @ Y) ** 2 * jax.nn.relu(x).sum())), X),
    "random": (lambda seed: [f(jax.random.fold_in(jax.random.key(seed), 3)) for f in (
        lambda k: jax.random.bits(k, (7,)), lambda k: jax.random.uniform(k, (3, 3), "float32"),
        lambda k: jax.random.normal(k, (5,), "float32"), lambda k: jax.random.bernoulli(k, 0.3, (9,)),
        lambda k: jax.random.truncated_normal(k, -2.0, 2.0, (9,), "float32"))], np.uint32(9)),
    "neighbours": (lambda x, y: jnp.nextafter(x, y), X, B[0]),
    "one number": (lambda x: x * 2 + 1, np.float32(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted_as_compiled(name):
    fn, *inputs = PROGRAMS[name]
    traced = jax.jit(fn).trace(*inputs)
    found = Interpreter(traced.jaxpr)([np.asarray(x) for x in inputs])
    expected = jax.tree.leaves(jax.jit(fn)(*inputs))
    assert len(found) == len(expected)
    for x, y in zip(found, map(np.asarray, expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert x.flags.owndata
        assert not any(np.shares_memory(x, z) for z in inputs)
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-6 if name != "powers" else 0)
            assert (np.signbit(x) == np.signbit(y))[~np.isnan(y)].all()
        else:
            np.testing.assert_array_equal(x, y)


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.nan,
    np.inf,
    -np.inf,
    0.5,
    -2.5,
    3.0,
    1e-30,
    -1e-30,
    1e30,
    100.0,
    -100.0,
    88.0,
    1e-3,
    np.pi,
]
OF_FLOATS = "neg abs square exp exp2 log log1p expm1 tanh sin cos tan sinh cosh sqrt rsqrt logistic floor ceil is_finite sign erf"
OF_PAIRS = "add sub mul div max min pow atan2 eq ne lt le gt ge"
OF_INTEGERS = "neg square bitwise_not"
OF_INTEGER_PAIRS = "add sub mul max min eq lt bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "uint32"])
def test_every_primitive_on_special_numbers(dtype):
    kind = np.dtype(dtype)
    numbers = SPECIAL if kind.kind == "f" else [0, 1, 5, 7, np.iinfo(kind).max, np.iinfo(kind).min]
    unary, binary = (OF_FLOATS, OF_PAIRS) if kind.kind == "f" else (OF_INTEGERS, OF_INTEGER_PAIRS)
    with jax.enable_x64(True):
        xs = np.array(numbers, dtype)
        x, y = map(np.ascontiguousarray, np.meshgrid(xs, xs))

        def every(x, y):
            found = {name: getattr(lax, name)(x) for name in unary.split()}
            found |= {name: getattr(lax, name)(x, y) for name in binary.split()}
            sums = {"sum": x.sum(0), "prod": x[:4].prod(0), "max": x.max(1), "argmin": jnp.argmin(x, 1), "power": x**3}
            casts = {name: x.astype(name) for name in ("bool", "float32", "float64")}
            return found | {f"all {name}": value for name, value in sums.items()} | casts

        found = Interpreter(jax.jit(every).trace(x, y).jaxpr)([x, y])
        expected = jax.jit(every)(x, y)
    for name, a, b in zip(sorted(expected), found, jax.tree.leaves(expected), strict=True):
        b = np.asarray(b)
        assert a.dtype == b.dtype, name
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=32 * np.finfo(a.dtype).eps, atol=0, err_msg=name)
            assert (np.signbit(a) == np.signbit(b))[~np.isnan(b)].all(), name
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize(
    "fn, x",
    [
        (lambda x: lax.bitcast_convert_type(x.astype("bfloat16"), "uint16"), X),
        (lambda x: lax.while_loop(lambda y: y.sum() < 9, lambda y: y + 1, x), X),
        (lambda x: lax.sort([x, x], is_stable=False), X),
        (lambda x: jnp.linalg.inv(x), np.eye(200, dtype="float32")),
        (lambda x: jnp.linalg.svd(x), X[:0]),
        (lambda x: jax.debug.print("{}", x), X),
    ],
)
def test_what_numpy_does_otherwise_is_refused(fn, x):
    with pytest.raises(Unsupported):
        Interpreter(jax.jit(fn).trace(x).jaxpr)


def test_large_products_are_not_for_numpy(monkeypatch):
    "Its threads would wait for the next one, busily: a product is computed in parts, and a larger one is XLA's."
    sizes = []

    def matmul(x, y):
        sizes.append(x.shape[-2] * x.shape[-1] * y.shape[-1])
        return product(x, y)

    product = np.matmul
    monkeypatch.setattr(np, "matmul", matmul)
    for rows in (64, 65, 256):
        x, y = RNG.normal(size=(rows, 64)).astype("float32"), RNG.normal(size=(64, 64)).astype("float32")
        (found,) = Interpreter(jax.make_jaxpr(jnp.matmul)(x, y))([x, y])
        np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-5)
    assert len(sizes) == 1 + 2 + 4
    assert max(sizes) <= 64**3
    with pytest.raises(Unsupported, match="large"):
        Interpreter(jax.make_jaxpr(jnp.matmul)(jnp.zeros((257, 64), jnp.float32), y))


def test_only_what_is_needed_is_evaluated():
    "A pullback computes forward what nothing reads, which XLA drops."

    def unread(x):
        inner = jax.jit(lambda x: (lax.while_loop(lambda y: y.sum() < 9, lambda y: y + 1, x), x * 2))
        return inner(x)[1]

    np.testing.assert_array_equal(Interpreter(jax.make_jaxpr(unread)(X))([X])[0], X * 2)


def test_nan_beside_a_mask_is_left_to_xla():
    """XLA makes a choice of a product with a converted mask, but not of each such product."""
    x, mask = np.array([np.nan, 2.0], "float32"), np.array([False, True])
    interpreter = Interpreter(jax.jit(lambda x, mask: x * mask.astype("float32")).trace(x, mask).jaxpr)
    with pytest.raises(Unsupported, match="mask"):
        interpreter([x, mask])
    np.testing.assert_array_equal(interpreter([np.ones_like(x), mask]), [[0.0, 1.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_comes_back_to_a_maximum_is_the_same_before_and_after_the_compiler(bad):
    x = jnp.asarray([1.0, 3.0, 2.0], jnp.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.max(x)
    found = tape.gradient(y, x, output_gradients=jnp.asarray(bad, jnp.float32))
    np.testing.assert_array_equal(found, jax.jit(jax.grad(lambda x: jnp.max(x) * bad))(x))


@pytest.mark.parametrize(
    "fn", [lax.max, lax.min, lambda x, y: lax.clamp(x, y, x + 1), lambda x, y: lax.clamp(x - 1, y, x)]
)
@pytest.mark.parametrize("shape", [(4,), (7, 4)])
def test_a_maximum_of_two_zeros_has_the_sign_that_xla_gives(fn, shape):
    x, y = (np.broadcast_to(np.array(zeros, "float32"), shape) for zeros in ([0, -0.0, 0, -0.0], [0, 0, -0.0, -0.0]))
    (found,) = Interpreter(jax.jit(fn).trace(x, y).jaxpr)([x, y])
    np.testing.assert_array_equal(np.signbit(found), np.signbit(jax.jit(fn)(x, y)))


@pytest.mark.parametrize(
    "fn",
    [jnp.max, jnp.min, lax.cummax, lax.cummin]
    + [lambda x: jnp.zeros(3).at[:].max(x[0]), lambda x: (-jnp.zeros(3)).at[:].min(x[0])],
)
@pytest.mark.parametrize("x", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [-0.0, -1.0, 0.0], [1.0, 0.0, -0.0]])
def test_a_reduction_of_zeros_has_the_sign_that_xla_gives(fn, x):
    x = np.array(x, "float32")
    found = Trial(fn)(jnp.asarray(x))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(jax.jit(fn)(x)))
