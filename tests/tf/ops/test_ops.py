"""The operations without TensorFlow at hand: names, messages, dtypes, compilation, random numbers."""

import collections
import importlib
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import trial
from tapejax.jaxprs import cache, custom_rules
from tapejax.tf.namespaces import EAGER, LAZY, PLACES, at_once
from tapejax.tf.ops import math
from tapejax.tf.ops.array import _gather_nd
from tapejax.tf.ops.table import CACHED_OPTIONS
from tapejax.tf.values.missing import MISSING
from tests.compiling import compiles

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def compilations():
    """How many programs XLA has compiled since the test began: a function that tells."""
    with compiles() as counted:
        yield lambda: len(counted)


# ---- Names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", PLACES)
def test_every_name_has_a_face(namespace):
    for name, fn in at_once(namespace).items():
        if callable(fn) and not isinstance(fn, (type, tf.DType)):
            there = PLACES[namespace][name][1]
            assert fn.__name__ in (name, there) or name in ("mod", "swish"), (namespace, name)
            assert fn.__doc__, (namespace, name)
            assert inspect.signature(fn), (namespace, name)


@pytest.mark.parametrize("namespace", [name for name in PLACES if name != "tf"])
def test_a_namespace_is_a_module(namespace):
    module = importlib.import_module(namespace.replace("tf", "tapejax", 1))
    assert set(PLACES[namespace]) <= set(dir(module))
    assert [name for name in PLACES[namespace] if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match=f"{namespace}.no_such_name"):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    "path, hint",
    [
        ("linalg.LinearOperatorDiag", "lineax"),
        ("strings", "Python's strings"),
        ("image.draw_bounding_boxes", "PIL.ImageDraw"),
        ("logaddexp", "jnp.logaddexp"),
        ("nn.hard_tanh", "jax.nn.hard_tanh"),
    ],
)
def test_a_missing_name_says_what_to_use(path, hint):
    *namespace, name = path.split(".")
    place = getattr(tf, namespace[0]) if namespace else tf
    with pytest.raises(AttributeError, match=hint):
        getattr(place, name)


def test_nothing_is_both_there_and_missing():
    there = {f"{namespace}.{name}" for namespace, names in PLACES.items() for name in names}
    assert not there & MISSING.keys()  # .ci/stubs takes them out


def test_every_row_of_a_table_has_a_name():
    """A row makes no name by itself: the table of names says where it stands."""
    named = {there for names in PLACES.values() for module, there in names.values() if module == "ops.math"}
    assert {*math.UNARY, *math.BINARY, *math.REDUCTIONS} <= named


def test_a_name_of_a_namespace_stands_once_in_the_table():
    rows = [row for module in (EAGER | LAZY).values() for row in module.items()]
    names = [
        (full, entry.partition("=")[0]) for spaces, text in rows for full in spaces.split() for entry in text.split()
    ]
    twice = {each for each, count in collections.Counter(names).items() if count > 1}
    assert {name for full, name in twice if full != "tf.experimental.numpy"} == set()  # which has all of jnp's, too
    assert not EAGER.keys() & LAZY.keys()


def test_keywords_have_tensorflows_names():
    x = tf.nn.relu(features=[-1.0, 2.0], name="r")
    x = tf.reduce_sum(input_tensor=x, axis=0, keepdims=True, name="s")
    x = tf.concat(values=[x, x], axis=0, name="c")
    x = tf.math.atan2(y=x, x=x)
    x = tf.linalg.det(input=tf.linalg.diag(diagonal=x))
    np.testing.assert_allclose(x.numpy(), (np.pi / 4) ** 2, rtol=1e-6)
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        tf.nn.relu(x=[1.0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        tf.nn.leaky_relu(x=[1.0])
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        tf.math.atan2([1.0])


# ---- What is accepted, and what comes out --------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [tf.constant, tf.Variable, jnp.asarray, np.asarray, lambda x: x.tolist()],
    ids=["Tensor", "Variable", "jax", "numpy", "list"],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda x: tf.square(x),
        lambda x: tf.add(x, 1),
        lambda x: tf.reduce_sum(x, axis=1),
        lambda x: tf.reshape(x, [-1]),
        lambda x: tf.concat([x, x], 0),
        lambda x: tf.matmul(x, x, transpose_b=True),
        lambda x: tf.nn.softmax(x),
        lambda x: tf.gather(x, [0, 2]),
        lambda x: tf.where(tf.greater(x, 3), x, 0),
        lambda x: tf.linalg.norm(x),
    ],
)
def test_anything_tensor_like_goes_in_and_a_tensor_comes_out(make, use):
    assert type(use(make(X))) is tf.Tensor
    np.testing.assert_allclose(use(make(X)).numpy(), use(tf.constant(X)).numpy())


def test_raw_arrays_keep_jax_weak_types_out():
    assert tf.square(3.0).dtype == tf.float32
    assert (jnp.float32(1) * tf.constant(2.0)).dtype == jnp.float32
    assert tf.multiply(jnp.asarray(2.0), tf.constant([1.0], tf.float16)).dtype == tf.float16


@pytest.mark.parametrize(
    "use, dtype",
    [
        (lambda: tf.constant([1, 2]) / 2, "float32"),
        (lambda: tf.constant([1], tf.int8) / tf.constant([2], tf.int8), "float32"),
        (lambda: tf.reduce_mean([1, 2]), "int32"),
        (lambda: tf.argmax([1, 2]), "int32"),
        (lambda: tf.shape(X), "int32"),
        (lambda: tf.where([True]), "int32"),
        (lambda: tf.range(3), "int32"),
        (lambda: tf.range(3.0), "float32"),
        (lambda: tf.reduce_sum(tf.constant([1], tf.uint8)), "uint8"),
        (lambda: tf.cumsum(tf.constant([1], tf.int8)), "int8"),
        (lambda: tf.one_hot([1], 2), "float32"),
        (lambda: tf.math.count_nonzero([1]), "int32"),
        (lambda: tf.nn.zero_fraction([1]), "float32"),
        (lambda: tf.constant([1.0], tf.bfloat16) * 2, "bfloat16"),
        (lambda: tf.nn.moments(tf.ones([2], tf.float16), 0)[1], "float16"),
        (lambda: tf.constant(True) & True, "bool"),
        (lambda: tf.sqrt(tf.constant([1.0], tf.float16)), "float16"),
        (lambda: tf.random.normal([2], dtype=tf.float16), "float16"),
    ],
)
def test_dtypes_while_x64_is_off(use, dtype):
    assert use().dtype.name == dtype


def test_several_arrays_are_a_list_as_tensorflow_gives_them():
    """From JAX 0.12 on jnp gives a tuple."""
    x, numpy = tf.constant([1.0, 2.0]), tf.experimental.numpy
    several = numpy.meshgrid(x, x), numpy.broadcast_arrays(x, 1.0), tf.meshgrid(x, x)
    several += tuple(f(x, 1.0) for f in (numpy.atleast_1d, numpy.atleast_2d, numpy.atleast_3d))
    assert [type(each) for each in several] == 6 * [list]


def test_transformations_take_operations():
    def f(x):
        return tf.reduce_sum(tf.nn.relu(x) ** 2 + x[1] * tf.math.log1p(tf.abs(x)))._array

    np.testing.assert_allclose(jax.jit(f)(X[0]), f(X[0]), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X[1]), jax.grad(f)(X[1]), rtol=1e-6)
    assert jax.vmap(f)(X).shape == (3,)


@pytest.mark.parametrize(
    "masked",
    [
        lambda x, mask: x * tf.cast(mask, tf.float32)._array,
        lambda x, mask: x * tf.sequence_mask(mask[0] * 1, 3, tf.float32)._array,
    ],
    ids=["cast", "sequence_mask"],
)
def test_compiled_a_mask_does_not_hide_nan(masked):
    """XLA makes a choice of a product with a converted mask, where TensorFlow, and NumPy, have zero times nan."""
    x, mask = jnp.asarray([1.0, np.nan, 2.0]), jnp.asarray([True, False, True])
    assert np.isnan(jax.jit(masked)(x, mask)[1])


def test_a_traced_index_is_wrapped():
    pick = jax.jit(lambda x, i: tf.Tensor(x)[i]._array)
    np.testing.assert_array_equal(pick(X, 1), X[1])
    np.testing.assert_array_equal(pick(X, -1), X[-1])


# ---- Errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda x: x[3], tf.errors.InvalidArgumentError, "slice index 3 of dimension 0 out of bounds"),
        (lambda x: x[[0], 1.5], TypeError, "tf.gather"),
        (lambda x: tf.sqrt(4), tf.errors.InvalidArgumentError, "sqrt.*int32.*tf.cast"),
        (lambda x: x + tf.constant(1), tf.errors.InvalidArgumentError, "tf.cast"),
        (lambda x: x + [1.0, 2], tf.errors.InvalidArgumentError, r"add.*\(3, 4\).*\(2,\)"),
        (lambda x: tf.matmul(x[0], x), tf.errors.InvalidArgumentError, "tf.linalg.matvec"),
        (
            lambda x: tf.gather(x, [0, 7]),
            tf.errors.InvalidArgumentError,
            r"indices\[1\] = 7 is not in \[0, 3\)",
        ),
        (lambda x: tf.reshape(x, [5, -1]), tf.errors.InvalidArgumentError, "size 12 into shape"),
        (lambda x: tf.reduce_sum(x, 2), tf.errors.InvalidArgumentError, "axis=2 is out of range"),
        (lambda x: tf.constant(7) // 0, tf.errors.InvalidArgumentError, "Integer division by zero"),
        (lambda x: tf.nn.dropout(x, 1.5), ValueError, "rate"),
        (lambda x: tf.boolean_mask(x, [True, False]), ValueError, "incompatible"),
        (lambda x: tf.zeros([1.5]), TypeError, "shape must be made of integers"),
        (lambda x: tf.linalg.inv(tf.zeros([2, 2])), tf.errors.InvalidArgumentError, "not invertible"),
        (
            lambda x: tf.linalg.diag(x, k=(0, 1)),
            tf.errors.InvalidArgumentError,
            "several diagonals, take them one by one",
        ),
    ],
)
def test_errors_say_what_to_do(act, error, message):
    with pytest.raises(error, match=message):
        act(tf.constant(X))


def test_a_shape_that_depends_on_a_traced_value_is_refused():
    with pytest.raises(TypeError, match="mask must have a known value"):
        jax.jit(lambda x: tf.boolean_mask(x, x > 1)._array)(X)
    with pytest.raises(TypeError, match="shape must have a known value"):
        jax.jit(lambda n: tf.zeros(n)._array)(3)


def test_operators_leave_strangers_their_chance():
    class Stranger:
        def __radd__(self, other):
            return "radd"

        def __rmatmul__(self, other):
            return "rmatmul"

    assert tf.constant(1.0) + Stranger() == "radd"
    assert tf.constant([[1.0]]) @ Stranger() == "rmatmul"


# ---- Compilation ------------------------------------------------------------------------------------------------


def test_indexing_in_a_loop_compiles_once(compilations, no_shadow):
    x = tf.constant(np.arange(2000, dtype=np.float32).reshape(1000, 2))
    x[0], x[0, 1], x[1:3]
    before = compilations()
    for i in range(1000):
        assert x[i].shape == (2,)
    for i in range(100):
        x[i, 1], x[i : i + 2], x[-i]
    assert compilations() <= before + 3  # of each kind one, once it has come back often enough


def test_small_exponents_are_programs_of_their_own_and_large_ones_are_not(compilations, monkeypatch, no_shadow):
    monkeypatch.setattr(trial, "enabled", False)  # or it may have come back often enough here, of all places
    x = tf.constant([1.5])
    x**17
    before = compilations()
    for n in range(18, 60):
        x**n
    assert compilations() == before
    np.testing.assert_allclose((x**3).numpy(), [3.375])


def test_python_numbers_are_not_part_of_a_program(compilations, monkeypatch, no_shadow):
    monkeypatch.setattr(trial, "enabled", False)  # likewise
    x = tf.constant([1.5, -2])
    use = [
        lambda v: x * v,
        lambda v: tf.maximum(x, v),
        lambda v: tf.clip_by_value(x, -v, v),
        lambda v: tf.clip_by_norm(x, v),
        lambda v: tf.fill([2], v),
        lambda v: tf.nn.leaky_relu(x, v),
        lambda v: tf.random.normal([2], v, v),
        lambda v: tf.random.uniform([2], -v, v),
        lambda v: tf.nn.dropout(x, v / 100),
        lambda v: tf.pad(x, [[1, 1]], constant_values=v),
    ]
    for f in use:
        f(0.25)
    before = compilations()
    for f in use:
        f(0.5), f(0.75)
    assert compilations() == before


# ---- Random numbers -----------------------------------------------------------------------------------------------


def drawn():
    return [
        tf.random.normal([3]),
        tf.random.uniform([3]),
        tf.random.uniform([3], maxval=100, dtype=tf.int32),
        tf.random.truncated_normal([3]),
        tf.random.shuffle(tf.range(10)),
        tf.random.categorical([[0.0, 0.0, 0.0]], 20),
        tf.random.gamma([3], 2.0),
        tf.random.poisson([3], 4.0),
        tf.random.normal([3], seed=5),
        tf.nn.dropout(tf.ones([20]), 0.5),
    ]


def equal(ones, others):
    return [bool((one.numpy() == other.numpy()).all()) for one, other in zip(ones, others)]


def test_the_seed_decides():
    tf.random.set_seed(7)
    first = drawn()
    second = drawn()
    tf.random.set_seed(7)
    again = drawn()
    tf.random.set_seed(8)
    other = drawn()
    assert all(equal(first, again))
    assert not any(equal(first, second))
    assert not any(equal(first, other))


def test_a_seed_of_its_own_starts_anew_with_the_global_one():
    tf.random.set_seed(7)
    first = tf.random.normal([3], seed=5), tf.random.normal([3], seed=5)
    tf.random.set_seed(7)
    tf.random.normal([2])  # a draw between them, without a seed, changes nothing
    again = tf.random.normal([3], seed=5), tf.random.normal([3], seed=5)
    assert all(equal(first, again))
    assert not equal(first[:1], first[1:])[0]


def test_stateless_draws_depend_on_their_seed_alone():
    def draws(seed):
        return [
            tf.random.stateless_normal([3], seed),
            tf.random.stateless_uniform([3], seed),
            tf.random.stateless_uniform([3], seed, 0, 1000, tf.int32),
            tf.random.stateless_truncated_normal([3], seed=seed),
            tf.random.stateless_categorical([[0.0] * 50], 9, seed),
        ]

    assert all(equal(draws([1, 2]), draws(tf.constant([1, 2]))))
    assert not any(equal(draws([1, 2]), draws([2, 1])))
    children = tf.random.split([1, 2], 3)
    assert children.shape == (3, 2) and children.dtype == tf.int32
    assert not any(equal(draws(children[0]), draws(children[1])))


def test_distributions_are_what_they_are_called():
    tf.random.set_seed(0)
    normal = tf.random.normal([20000], 3.0, 2.0).numpy()
    assert abs(normal.mean() - 3) < 0.1 and abs(normal.std() - 2) < 0.1
    cut = tf.random.truncated_normal([20000], 3.0, 2.0).numpy()
    assert cut.min() > -1 and cut.max() < 7
    uniform = tf.random.uniform([20000], -1, 3).numpy()
    assert -1 <= uniform.min() and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.1
    assert set(tf.random.uniform([500], 2, 5, tf.int32).numpy()) == {2, 3, 4}
    assert sorted(tf.random.shuffle(tf.range(50)).numpy()) == list(range(50))
    kept = tf.nn.dropout(tf.ones([20000]), 0.25).numpy()
    np.testing.assert_allclose(np.unique(kept), [0, 4 / 3], rtol=1e-6)
    assert abs((kept == 0).mean() - 0.25) < 0.02
    assert tf.nn.dropout(tf.ones([4, 5]), 0.5, noise_shape=[None, 1]).numpy().std(axis=1).max() == 0
    often = tf.random.categorical(tf.math.log([[0.1, 0.9]]), 5000).numpy()
    assert abs(often.mean() - 0.9) < 0.03


def test_gradients_pass_to_the_parameters_of_a_draw_and_through_dropout():
    mean, x = tf.Variable([1.0, 2.0]), tf.Variable(tf.ones([10]))
    with tf.GradientTape(persistent=True) as tape:
        sample = tf.random.normal([2], mean, 2.0)
        dropped = tf.nn.dropout(x, 0.5)
    np.testing.assert_array_equal(tape.gradient(sample, mean).numpy(), [1, 1])
    np.testing.assert_array_equal(tape.gradient(dropped, x).numpy(), dropped.numpy())


def test_log_device_placement_is_remembered():  # no parity body: setting it makes TensorFlow's process lose its devices
    assert tf.debugging.get_log_device_placement() is False
    try:
        tf.debugging.set_log_device_placement(True)
        assert tf.debugging.get_log_device_placement() is True
    finally:
        tf.debugging.set_log_device_placement(False)


# ---- The types of operands, looked at once ----------------------------------------------------------------------------


def test_other_types_after_many_calls():
    """What agreed once says nothing of other types, settings and ranges."""
    x, i = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    for _ in range(3):
        assert (x + x).numpy().tolist() == [2.0, 4.0] and (i + i).numpy().tolist() == [2, 4]
        assert (x * 2.0).numpy().tolist() == [2.0, 4.0] and (i * 2).numpy().tolist() == [2, 4]
        for wrong in (lambda: x + i, lambda: i + 2.5, lambda: x @ x, lambda: tf.sqrt(i)):
            with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
                wrong()
        with pytest.raises(ValueError, match="does not fit"):
            i + 2**40
        assert (tf.constant([250], tf.uint8) + 10).numpy().tolist() == [4]
        assert tf.reduce_sum(x, 0, True).shape == (1,) and tf.reduce_sum(x, 0).shape == ()
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.reduce_sum(x, 1)


def test_promotion_is_turned_on_after_many_calls():
    from tapejax.tf.values.settings import settings

    i = tf.constant([1, 2])
    for promoting in (False, True, False):
        settings["promote_dtypes"] = promoting
        try:
            if promoting:
                assert (i + 2.5).dtype == tf.float32
            else:
                with pytest.raises(TypeError):
                    i + 2.5
        finally:
            settings["promote_dtypes"] = False


def test_arguments_of_other_names():
    assert tf.nn.relu(features=tf.constant(-1.0)).numpy() == 0.0
    assert list(inspect.signature(tf.nn.relu).parameters) == ["features", "name"]
    with pytest.raises(TypeError, match=r"relu\(\) got an unexpected keyword argument 'x'"):
        tf.nn.relu(x=1.0)


# ---- loops that end when the data say so -----------------------------------------------------------------------------------


def slope_of_loop(body):
    """A function made anew: the slope of three rounds of `body`, by a tape inside it."""

    @tf.function
    def slope(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, body(z)), (0, x))[1]
        return tape.gradient(y, x)

    return float(slope(tf.constant(1.0), tf.constant(3)))


def test_a_loop_is_recognised_by_its_programs(monkeypatch):
    """Its rule is not traced for that: the rule's loops have rules, and so on, which took 18 seconds."""
    traced = []
    monkeypatch.setattr(custom_rules, "_traced_vjp", traced.append)
    assert slope_of_loop(lambda z: z * 1.5) == 1.5**3
    assert slope_of_loop(lambda z: tf.while_loop(lambda w: w < 4.0, lambda w: w * 2.0, (z,))[0]) == 4.0
    assert not traced


def test_loops_are_told_apart():
    factor = 2.0
    scaled = jax.custom_vjp(lambda z: z * 1.0)
    scaled.defvjp(lambda z: (z, None), lambda _, ct: (ct * factor,))
    assert slope_of_loop(scaled) == 8.0
    factor = 3.0  # a rule in the loop reads it
    assert slope_of_loop(scaled) == 27.0
    one, other = np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0))
    assert slope_of_loop(lambda z: z * one) != slope_of_loop(lambda z: z * other)


# ---- indices and order ---------------------------------------------------------------------------------------------------


def test_a_negative_index_is_out_of_range():
    """Where nobody can look at the index, nothing is taken or changed there; eagerly it is refused, as in TensorFlow."""

    @tf.function
    def found(x, i):
        return tf.gather(x, i), tf.gather_nd(x, i[:, None]), tf.tensor_scatter_nd_add(x, i[:, None], x)

    x, i = tf.constant([1.0, 2.0, 3.0]), tf.constant([-1, 0, 3])
    for result, expected in zip(found(x, i), ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [3.0, 2.0, 3.0]), strict=True):
        np.testing.assert_array_equal(result, expected)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.gather(x, i)


def test_every_nan_is_unique():  # as TensorFlow has it
    values, places = tf.unique(tf.constant([np.nan, 1.0, np.nan, 1.0]))
    np.testing.assert_array_equal(values, [np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(places, [0, 1, 2, 1])


def test_gradient_of_what_rows_without_an_index_take():  # refused by TensorFlow; XLA's optimiser counts one row of such a scatter
    x, rows, by = jnp.ones(1), jnp.zeros((3, 0), "int32"), jnp.array([[1.0], [2.0], [4.0]])

    def pulled(x, rows, by):
        return jax.vjp(lambda x: _gather_nd(x, rows, 0), x)[1](by)[0]

    np.testing.assert_array_equal(pulled(x, rows, by), [7.0])
    assert "scatter" not in str(jax.make_jaxpr(pulled)(x, rows, by))


@pytest.mark.filterwarnings("ignore::tapejax.errors.NarrowingWarning")
def test_options_that_are_equal_but_of_other_types_are_told_apart():
    """What runs a body is kept by the options: True is not 1, and int64 is int32 while 64-bit types are off."""
    x = tf.constant([3.0, 1.0, 2.0])
    for _ in range(2):
        assert tf.math.top_k(x, 2, True, "int64").indices.dtype == tf.int32
        with jax.enable_x64(True):
            assert tf.math.top_k(x, 2, True, "int64").indices.dtype == tf.int64
        np.testing.assert_array_equal(tf.sort(x, 0), [1, 2, 3])
        np.testing.assert_array_equal(tf.sort(x, direction="DESCENDING"), [3, 2, 1])
        np.testing.assert_array_equal(tf.cumsum(x, 0, True), [0, 3, 4])
        np.testing.assert_array_equal(tf.cumsum(x, 0, False, True), [6, 3, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="axis=1"):
            tf.cumsum(x, 1)
        with pytest.raises(ValueError, match="direction"):
            tf.sort(x, 0, "UP")


def test_options_that_are_always_new_are_not_kept():
    x = tf.constant([1, 2, 3])
    for depth in range(300):
        tf.one_hot(x, depth)
    held = [known for known in cache._caches if known.size == CACHED_OPTIONS]
    assert max(map(len, held)) > 1 and all(len(known) <= CACHED_OPTIONS for known in held)


def test_a_dilated_transposed_convolution_is_the_gradient_of_a_dilated_one():
    x, w = tf.random.normal([1, 6, 5, 2]), tf.random.normal([2, 2, 2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.conv2d(x, w, 1, "VALID", dilations=2)
    dy = tf.random.normal(y.shape)
    transposed = tf.nn.conv2d_transpose(dy, w, x.shape, 1, "VALID", dilations=2)
    np.testing.assert_allclose(transposed, tape.gradient(y, x, output_gradients=dy), rtol=1e-5, atol=1e-6)


def test_a_loop_under_jit_fills_an_array_that_was_not_written_before():
    def rows(x):
        array = tf.TensorArray(tf.float32, size=3)
        step = lambda i, array: (i + 1, array.write(i, x * tf.cast(i, tf.float32)))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 3, step, (tf.constant(0), array))[1].stack()._array

    np.testing.assert_array_equal(jax.jit(rows)(np.float32(2.0)), [0.0, 2.0, 4.0])


@pytest.mark.parametrize(("transform", "shape"), [("rfft", [2, 0]), ("rfft2d", [0, 3]), ("rfft3d", [2, 0, 3])])
def test_a_signal_without_samples_is_refused(transform, shape):
    with pytest.raises(tf.errors.InvalidArgumentError, match="without samples"):
        getattr(tf.signal, transform)(tf.zeros(shape))
