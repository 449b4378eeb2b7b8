"""Names that programs use around their computations: printing, devices, files, initializers, settings, NumPy's face."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from harness import error_of, import_tapejax, parity
from tables import Table

f32 = np.float32

table = Table()

# ---- print ---------------------------------------------------------------------------------------------------------


def printed(tf, *values, **options):
    """What tf.print writes to a file: TensorFlow's own streams go past Python."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "printed")
        tf.print(*values, output_stream=f"file://{path}", **options)
        with open(path, encoding="utf-8") as file:
            return file.read()


PRINTED = {
    "scalars": lambda tf: [
        1.5,
        1.0,
        1 / 3,
        1e10,
        1e-5,
        123456789.0,
        1e5,
        1e6,
        16777216.0,
        float("nan"),
        float("inf"),
    ],
    "integers": lambda tf: [7, 0, -3, 2**31 - 1, True, False],
    "dtypes": lambda tf: [tf.constant(1.5, tf.float16), tf.constant(0.1, tf.bfloat16), tf.constant(255, tf.uint8)],
    "vectors": lambda tf: [[1.0, 2.0, 0.1], [True, False], tf.range(6), tf.range(7), tf.range(20), tf.zeros((0,))],
    "matrices": lambda tf: [
        tf.reshape(tf.range(24), (2, 3, 4)),
        tf.reshape(tf.range(100), (10, 10)),
        tf.reshape(tf.range(20.0), (10, 2)),
        [[1.0, -2.0], [3.25, 4.0]],
    ],
}
for name, values in PRINTED.items():
    table.values(f"print-{name}", lambda tf, values=values: [printed(tf, tf.convert_to_tensor(v)) for v in values(tf)])
table.values(
    "print-arguments",
    lambda tf: [
        printed(tf, "a", tf.constant(1), "b"),
        printed(tf),
        printed(tf, 1, 2.0, True, None, "text"),
        printed(tf, 1, 2, sep="-", end="!"),
        printed(tf, tf.range(10), summarize=2),
        printed(tf, tf.range(10), summarize=-1),
        printed(tf, tf.reshape(tf.range(64), (8, 8)), summarize=1),
        printed(tf, tf.Variable([1.0, 2.0])),
        printed(tf, np.array([1.0, 2.0])),
        printed(tf, tf.TensorShape([1, None]), tf.float32),
    ],
)
table.values(
    "print-structures",
    lambda tf: [
        printed(tf, [tf.constant(1), "x", 2.5, None]),
        printed(tf, {"b": tf.constant(1), "a": [tf.constant([2.0])]}),
        printed(tf, (tf.constant(1),)),
    ],
)
table.errors("print-errors", lambda tf: [lambda: tf.print(1, foo=2), lambda: tf.print(1, output_stream=5)])


@parity
def test_print_in_a_function(tf):
    """It prints when the function runs, each time."""

    @tf.function
    def f(x, path):
        tf.print("x =", x, [x * 2], output_stream=path)
        return x

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "printed")
        for value in (1.0, 2.0):
            f(tf.constant([value]), f"file://{path}").numpy()
        with open(path, encoding="utf-8") as file:
            return file.read()


def test_print_goes_to_stderr_as_pythons_print_does():
    tf = import_tapejax()
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        tf.print("one", tf.constant(2))
    assert shown.getvalue() == "one 2\n"
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        tf.print(tf.constant([1.0]), output_stream=sys.stdout, end="")
    assert shown.getvalue() == "[1]"


# ---- Devices and settings ------------------------------------------------------------------------------------------

table.values(
    "devices",
    lambda tf: [
        str(tf.config.list_physical_devices("CPU")),
        [(d.name, d.device_type) for d in tf.config.list_logical_devices("CPU")],
        str(tf.config.list_physical_devices("FPGA")),
        [d.name for d in tf.config.get_visible_devices("CPU")],
        tf.config.get_logical_device_configuration(tf.config.list_physical_devices("CPU")[0]),
        tf.config.experimental.get_device_details(tf.config.list_physical_devices("CPU")[0]),
        str(tf.config.LogicalDeviceConfiguration(memory_limit=5)),
        tf.config.get_soft_device_placement(),
        tf.config.threading.get_inter_op_parallelism_threads(),
        tf.config.experimental.tensor_float_32_execution_enabled(),
        tf.test.is_built_with_xla(),
        tf.debugging.is_traceback_filtering_enabled(),
    ],
)


def on(tf, name):
    with tf.device(name):
        return tf.constant(1.0).device


table.values(
    "device",
    lambda tf: [
        on(tf, name)
        for name in (
            "/CPU:0", "cpu", "CPU:0", "/device:CPU:0", None, "", "/GPU:7", "/job:localhost/replica:0/task:0/device:CPU:0",
        )
    ],
)  # fmt: skip
table.errors(
    "device-errors",
    lambda tf: [
        lambda: on(tf, "foo"),
        lambda: on(tf, 3),
        lambda: tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("CPU")[0], True),
        lambda: tf.config.experimental.get_memory_growth(tf.config.list_physical_devices("CPU")[0]),
        lambda: tf.config.experimental.get_memory_info("GPU:7"),
        lambda: tf.config.set_visible_devices("x"),
        lambda: tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
        ),
    ],
)


def test_a_cpu_is_divided():
    """In a process of its own: this comes before JAX computes, whatever was asked of the devices before."""
    program = """
import tapejax as tf
assert tf.config.list_physical_devices("FPGA") == []
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
assert len(tf.config.get_logical_device_configuration(cpu)) == 3
assert [d.name for d in tf.config.list_logical_devices("CPU")] == [f"/device:CPU:{i}" for i in range(3)]
with tf.device("CPU:2"):
    x = tf.constant([1.0, 2.0])
    y = x * 2.0
assert x.device == y.device == "/job:localhost/replica:0/task:0/device:CPU:2"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@parity
def test_just_in_time_compilation_is_remembered(tf):
    """Switched on and off, for optimizer and options."""
    found = []
    for enabled in (True, False):
        tf.config.optimizer.set_jit(enabled)
        found.append(tf.config.optimizer.get_jit())
    tf.config.optimizer.set_experimental_options({"constant_folding": True})
    return found, tf.config.optimizer.get_experimental_options()["constant_folding"]


@parity
def test_gradients_under_a_device(tf):
    """tf.device around a tape, and inside it."""
    x = tf.Variable([1.0, 2.0])
    with tf.device("/CPU:0"), tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x)
    with tf.GradientTape() as other:
        with tf.device("CPU:0"):
            z = tf.reduce_sum(x**3)
    return tape.gradient(y, x), other.gradient(z, x)


# ---- Initializers --------------------------------------------------------------------------------------------------

table.values(
    "initializers",
    lambda tf: [
        tf.zeros_initializer()([2, 3]),
        tf.ones_initializer()((2,), dtype=tf.int32),
        tf.constant_initializer(2.5)([2]),
        tf.constant_initializer([1, 2, 3, 4])([2, 2], tf.float32),
        tf.random_uniform_initializer(0, 5)([3], tf.int32).shape,
        tf.random_normal_initializer(mean=3.0, stddev=1e-9)([3]),
        tf.random_normal_initializer().get_config(),
        tf.random_uniform_initializer.from_config({"minval": 0.0, "maxval": 1e-9, "seed": 1})([2]),
        [float(tf.reduce_sum(i([9]) - i([9]))) for i in [tf.random_normal_initializer(seed=1)]],
        tf.Variable(lambda: tf.zeros_initializer()((2,))),
    ],
    atol=1e-6,
)
table.errors(
    "initializer-errors",
    lambda tf: [
        lambda: tf.zeros_initializer()((2,), tf.string),
        lambda: tf.random_normal_initializer()((2,), tf.int32),
        lambda: tf.random_uniform_initializer()((2,), tf.bool),
        lambda: tf.constant_initializer([1, 2])((3,)),
        lambda: tf.zeros_initializer()((2,), foo=1),
    ],
)

# ---- Files ---------------------------------------------------------------------------------------------------------


@parity
def test_files(tf):
    """gfile over a folder of its own."""
    gfile = tf.io.gfile
    with tempfile.TemporaryDirectory() as folder:
        one, two = gfile.join(folder, "a", "one.txt"), os.path.join(folder, "a", "two.txt")
        found = [gfile.exists(one), gfile.isdir(folder)]
        gfile.makedirs(os.path.join(folder, "a"))
        gfile.makedirs(os.path.join(folder, "a"))
        with gfile.GFile(one, "w") as file:
            file.write("first\nsecond\n")
        with gfile.GFile(one) as file:
            found += [file.read(5), file.readline(), file.size(), list(file)]
        with gfile.GFile(one, "rb") as file:
            found.append(file.read())
        gfile.copy(one, two)
        found += [sorted(gfile.listdir(os.path.dirname(one))), gfile.isdir(two)]
        found += [sorted(os.path.basename(p) for p in gfile.glob(os.path.join(folder, "a", "*")))]
        gfile.rename(two, two + "2")
        found += [gfile.exists(two), [(len(d), len(f)) for _, d, f in gfile.walk(folder)]]
        errors = [
            error_of(gfile.copy, one, two + "2"),
            error_of(gfile.rename, one, two + "2"),
            error_of(gfile.remove, two),
            error_of(gfile.listdir, os.path.join(folder, "no")),
            error_of(gfile.mkdir, os.path.join(folder, "no", "no")),
            error_of(lambda: gfile.GFile(two).read()),
            error_of(tf.io.read_file, two),
        ]
        gfile.copy(one, two + "2", overwrite=True)
        gfile.remove(one)
        gfile.rmtree(os.path.join(folder, "a"))
        return found, errors, gfile.exists(os.path.join(folder, "a"))


@parity
def test_bytes(tf):
    """Reading, writing and decoding; a string tensor is Python's bytes here."""

    def plain(x):
        return x if isinstance(x, bytes) else x.numpy()

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "deep", "file")
        tf.io.write_file(path, b"\x01\x00\x02\x00")
        data = plain(tf.io.read_file(path))
    x = tf.constant([[1.5, 2.0]])
    return (
        data,
        tf.io.decode_raw(data, tf.int16),
        tf.io.decode_raw(data, tf.uint16, little_endian=False),
        tf.io.decode_raw([data, data], tf.uint8),
        tf.io.decode_raw(data, tf.uint8, fixed_length=6),
        tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32),
        tf.io.parse_tensor(tf.io.serialize_tensor(tf.cast(x, tf.bfloat16)), tf.bfloat16),
        error_of(lambda: tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.int32)),
        error_of(lambda: tf.io.parse_tensor(b"nonsense", tf.int32)),
    )


# ---- Odds and ends -------------------------------------------------------------------------------------------------

table.values(
    "dtypes",
    lambda tf: [
        tf.dtypes.cast([1.5], tf.int32),
        tf.dtypes.complex(1.0, 2.0),
        tf.dtypes.saturate_cast([300.0], tf.uint8),
        tf.dtypes.as_dtype("float32"),
        tf.errors.NOT_FOUND,
        tf.errors.UNAUTHENTICATED,
        [tf.nest.is_nested(seq=x) for x in ([], 1)],
    ],
)


@parity
def test_tensors_of_other_libraries(tf):
    """DLPack there and back, with NumPy."""
    x = tf.constant([[1.0, 2.0]])
    return tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x)), float(x[0, 1])


@parity
def test_autograph_is_left_alone(tf):
    """do_not_convert, as a decorator with and without arguments."""

    @tf.autograph.experimental.do_not_convert
    def f(x):
        return x + 1.0

    @tf.autograph.experimental.do_not_convert()
    def g(x):
        return x * 2.0

    return f(tf.constant(1.0)), g(tf.constant(2.0)), tf.function(f)(tf.constant(3.0))


@parity
def test_attributes_of_graphs(tf):
    """What eager tensors refuse."""
    x = tf.constant([1.0, 2.0])
    return [
        error_of(lambda: x.eval()),
        error_of(lambda: x.consumers()),
        error_of(lambda: x.op),
        error_of(lambda: x.graph),
        error_of(lambda: x.T),
        error_of(lambda: x.reshape),
        error_of(lambda: x.set_shape([3])),
        x.cpu(),
        x.ndim,
        x.get_shape(),
    ]


def test_testcase():
    tf = import_tapejax()

    class Case(tf.test.TestCase):
        def runTest(self):
            x = tf.constant([1.0, 2.0])
            self.assertAllEqual(x, [1, 2])
            self.assertAllClose({"a": x}, {"a": x + 1e-9})
            self.assertAllCloseAccordingToType(tf.cast(x, tf.float16), x * 1.0005)
            self.assertNotAllClose(x, x + 1.0)
            self.assertNear(1.0, tf.constant(1.01), 0.1)
            self.assertAllInRange(x, 1.0, 2.0)
            self.assertShapeEqual(x, x * 2.0)
            self.assertDTypeEqual(x, tf.float32)
            for wrong in (
                lambda: self.assertAllEqual(x, [1, 3]),
                lambda: self.assertAllClose(x, x + 1.0),
                lambda: self.assertNotAllClose(x, x),
                lambda: self.assertNotAllEqual(x, x),
                lambda: self.assertAllInRange(x, 1.0, 2.0, open_upper_bound=True),
                lambda: self.assertNear(1.0, 2.0, 0.1),
            ):
                with self.assertRaises(AssertionError):
                    wrong()
            assert isinstance(self.evaluate([x])[0], np.ndarray)

    assert Case().run().wasSuccessful()


# ---- NumPy's face --------------------------------------------------------------------------------------------------

X = np.random.default_rng(6).normal(size=(3, 4)).astype(f32)
NUMPY = {
    "unary": lambda np_, x: [
        getattr(np_, n)(x)
        for n in "abs sin cos exp tanh square negative floor sign isfinite mean sum std var max min argmax any all ravel".split()
    ],
    "binary": lambda np_, x: [
        getattr(np_, n)(x, x[::-1])
        for n in "add subtract multiply maximum minimum greater equal hypot logaddexp outer".split()
    ],
    "axes": lambda np_, x: [
        np_.sum(x, axis=1),
        np_.mean(x, axis=0, keepdims=True),
        np_.cumsum(x, axis=1),
        np_.transpose(x),
        np_.reshape(x, (2, 6)),
        np_.expand_dims(x, 1),
        np_.swapaxes(x, 0, 1),
        np_.moveaxis(x, 0, 1),
        np_.sort(x, axis=0),
        np_.argsort(x, axis=1),
        np_.flip(x, 0),
        np_.roll(x, 1),
        np_.diff(x, axis=1),
    ],
    "joining": lambda np_, x: [
        np_.concatenate([x, x], axis=1),
        np_.stack([x, x]),
        np_.vstack([x, x]),
        np_.tile(x, (1, 2)),
        np_.repeat(x, 2, axis=0),
        np_.split(x, 3),
        np_.where(x > 0, x, np_.zeros_like(x)),
        np_.pad(x, [(1, 0), (0, 1)], "constant"),
        np_.tril(x),
        np_.diag(x[:, :3]),
    ],
    "products": lambda np_, x: [
        np_.matmul(x, np_.transpose(x)),
        np_.dot(x, x[0]),
        np_.einsum("ij,kj->ik", x, x),
        np_.tensordot(x, x, 2),
    ],
}
for name, values in NUMPY.items():
    table.values(
        f"numpy-{name}",
        lambda tf, values=values: [
            np.asarray(y)
            for part in values(tf.experimental.numpy, tf.constant(X))
            for y in (part if isinstance(part, list) else [part])
        ],
    )


LISTS = {
    "one": lambda np_: [
        np_.sum([1, 2]),
        np_.mean([[1.0, 2.0], [3.0, 4.0]], axis=(0, 1)),
        np_.sort((3, 1, 2)),
        np_.size([1, 2]),
    ],
    "several": lambda np_: [
        np_.concatenate(([1, 2], [3])),
        np_.stack([[1], [2]], axis=1),
        *np_.meshgrid([1, 2], [3], indexing="ij"),
        *np_.ix_([0, 1], [2]),
        np_.select([[True, False], [False, True]], [[1, 2], [3, 4]], 9),
        np_.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]),
        np_.maximum([1, 2], [3, 1]),
        np_.where([True, False], [1, 2], [3, 4]),
    ],
    "beside-what-is-no-array": lambda np_: [
        np_.transpose([[1, 2]], (1, 0)),
        np_.tensordot([[1, 2]], [[1], [2]], axes=([1], [0])),
        np_.tile([1, 2], (2, 2)),
        np_.pad([1, 2], [(1, 0)], "constant"),
        *np_.split([1, 2, 3], [1, 2]),
        np_.roll([[1, 2], [3, 4]], (1, 1), (0, 1)),
        np_.full_like([1, 2], [3, 4]),
        np_.average([[1, 2], [3, 4]], axis=0, weights=[1, 3]),
        np_.clip([1, 2, 3], a_min=2, a_max=2),
        np_.reshape([1, 2], newshape=[2, 1]),
        np_.zeros([2, 1]),
        np_.array([[1, 2.5]]),
    ],
}
for name, values in LISTS.items():
    table.values(
        f"numpy-of-lists-{name}",
        lambda tf, values=values: [np.asarray(x, float) for x in values(tf.experimental.numpy)],
    )


@parity
def test_gradients_through_numpys_functions_of_lists(tf):
    """A list with tensors in it is connected to them."""
    tnp = tf.experimental.numpy
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum([x, 2 * x]) + tnp.sum(tnp.concatenate([[x[0]], x]) ** 2)
    return tape.gradient(y, x)


@parity
def test_gradients_through_numpys_functions(tf):
    """The tape sees them."""
    tnp = tf.experimental.numpy
    x, v = tf.constant(X), tf.Variable(X[0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.sin(x) * tnp.mean(tnp.square(v)) + tnp.max(x, axis=1, keepdims=True))
    return tape.gradient(y, [x, v])


@parity
def test_numpys_random_numbers(tf):
    """Shapes, dtypes, and the seed."""
    random = tf.experimental.numpy.random
    random.seed(1)
    one = random.randn(2, 3)
    random.seed(1)
    return (
        bool((one.numpy() == random.randn(2, 3).numpy()).all()),
        [
            x.shape
            for x in (
                one,
                random.rand(2),
                random.uniform(0, 1, [3]),
                random.randint(5, size=(2, 2)),
                random.poisson(2.0, [4]),
            )
        ],
        one.dtype.name in ("float32", "float64"),
        random.randint(3, 4, [2]),
    )


def test_numpy_behavior_on_request():
    """Methods, promotion and indexing as NumPy's, from then on; it cannot be taken back in TensorFlow, so it is not asked."""
    tf = import_tapejax()
    from tapejax.tf.values.settings import settings

    x, before = tf.constant([[1, 2], [3, 4]]), {kind: dict(vars(kind)) for kind in (tf.Tensor, tf.Variable)}
    with pytest.raises(AttributeError, match="enable_numpy_behavior"):
        x.T  # noqa: B018
    with pytest.raises(TypeError):
        x + 1.5
    tf.experimental.numpy.experimental_enable_numpy_behavior()
    try:
        np.testing.assert_array_equal(x.T, [[1, 3], [2, 4]])
        np.testing.assert_array_equal(x + 1.5, [[2.5, 3.5], [4.5, 5.5]])
        np.testing.assert_array_equal(x * tf.constant(0.5), [[0.5, 1], [1.5, 2]])
        np.testing.assert_array_equal(x[[1, 0]], [[3, 4], [1, 2]])
        np.testing.assert_array_equal(x[:, (True, False)], [[1], [3]])
        np.testing.assert_array_equal(x[(0, 1), tf.constant([1, 0])], [2, 3])
        np.testing.assert_array_equal(x[x > 2], [3, 4])
        assert (x.size, x.reshape(4).tolist(), x.max().item(), str(x.astype(tf.float32).dtype)) == (
            4,
            [1, 2, 3, 4],
            4,
            "<dtype: 'float32'>",
        )
        v = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = (v.reshape(2, 1) * tf.constant([1, 2])).sum()
        np.testing.assert_array_equal(tape.gradient(y, v), [3, 3])
    finally:
        settings["promote_dtypes"] = False
        for kind, attributes in before.items():
            for name in vars(kind).keys() - attributes.keys():
                delattr(kind, name)
        tf.Tensor.__getitem__ = before[tf.Tensor]["__getitem__"]
    with pytest.raises(TypeError):
        x + 1.5


test_rows = table.test()
