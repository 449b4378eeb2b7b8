"""`tapejax.function` on JAX: transformations, libraries, state, threads, errors. tests/tf/parity has what TensorFlow decides."""

import gc
import threading
import time
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import tapejax as tf
from tapejax.jaxprs import fence
from tapejax.tf.values import reading
from tapejax.tf.values.errors import OperatorNotAllowedInGraphError
from tests.compiling import compiles


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """Whatever happens in a function, JAX's trace and the thread's capture are as before."""
    trace = fence.current_trace()
    yield
    assert fence.current_trace() is trace
    assert reading.context.capture is None


# ---- plain JAX code -------------------------------------------------------------------------------------------------


def test_raw_in_raw_out():
    seen = []

    @tf.function
    def f(x, y):
        seen.append((isinstance(x, jax.Array), isinstance(y, tf.Tensor)))
        return jnp.sin(x), y * x, {"n": jnp.ones(2)}

    raw, mixed, rest = f(jnp.array(1.0), tf.constant(2.0))
    assert isinstance(raw, jax.Array) and isinstance(mixed, tf.Tensor) and isinstance(rest["n"], jax.Array)
    assert seen == [(True, True)]


def test_named_scopes_are_in_what_is_compiled():
    """Profiles are read by them."""

    @tf.function
    def step(x):
        with jax.named_scope("block"):
            return tf.reduce_sum(jnp.sin(x) * 2.0)

    text = jax.jit(lambda x: step(x)).lower(jnp.ones(3)).compile().as_text()
    assert "block/sin" in text


def test_a_pytree_of_a_library_is_an_argument():
    eqx = pytest.importorskip("equinox")
    optax = pytest.importorskip("optax")
    traces = []
    optimizer = optax.adam(1e-1)

    @tf.function
    def step(model, state, x):
        traces.append(1)
        with tf.GradientTape() as tape:
            tape.watch(model)
            loss = jnp.mean(jax.vmap(model)(x) ** 2)
        updates, state = optimizer.update(tape.gradient(loss, model), state)
        return eqx.apply_updates(model, updates), state, loss

    model = eqx.nn.Linear(3, 2, key=jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    losses = []
    for _ in range(5):
        model, state, loss = step(model, state, jnp.ones((4, 3)))
        losses.append(float(loss))
    assert isinstance(model, eqx.nn.Linear) and losses[-1] < losses[0] and len(traces) == 1


def test_a_key_of_jaxs_is_an_argument():
    @tf.function
    def noisy(x, key):
        key, own = jax.random.split(key)
        return x * jax.random.normal(own, x.shape), key

    x = jnp.arange(3.0)
    for seed in range(3):
        key, own = jax.random.split(jax.random.key(seed))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, left = noisy(x, jax.random.key(seed))
        np.testing.assert_array_equal(y, x * jax.random.normal(own, (3,)))
        np.testing.assert_array_equal(tape.gradient(y, x), jax.random.normal(own, (3,)))
        assert left == key
    assert noisy.experimental_get_tracing_count() == 1
    dtype = noisy.get_concrete_function(x, key).structured_outputs[1].dtype
    assert str(dtype) == "<dtype: 'key<fry>'>" and dtype == key.dtype


def test_jit_vmap_and_grad_of_a_function():
    v = tf.Variable(3.0)

    @tf.function
    def f(x):
        return x * x * v

    @tf.function
    def pure(x):
        return jnp.sum(x * x)

    xs = jnp.arange(3.0)
    np.testing.assert_allclose(jax.vmap(f)(xs), 3 * xs**2)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.asarray(f(x)))(2.0), 12.0)
    np.testing.assert_allclose(jax.jit(pure)(xs), 5.0)
    np.testing.assert_allclose(jax.hessian(pure)(xs), 2 * np.eye(3))
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(lambda x: pure(x) * 2)))(xs), 4 * xs)


def test_jax_transformations_in_a_function():
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        rows = jax.vmap(lambda row: row * v)(x)
        slope = jax.grad(lambda w: jnp.sum(w * v.value * v.value))(x[0])
        total, _ = jax.lax.scan(lambda c, row: (c + row @ v.value._array, None), 0.0, x)
        return rows, slope, total, jax.jit(lambda w: w + 1)(v)

    rows, slope, total, plus = f(jnp.ones((3, 2)))
    np.testing.assert_allclose(rows, [[1, 2]] * 3)
    np.testing.assert_allclose(slope, [1, 4])
    np.testing.assert_allclose(total, 9)
    np.testing.assert_allclose(plus, [2, 3])


def _with_loops(x):
    total = x[0] * 0.0
    for row in x:
        total = tf.cond(row > 0.5, lambda total=total, row=row: total * row + 1.0, lambda total=total: total + 0.5)
    return tf.map_fn(lambda row: tf.sin(row) * row, x) + tf.scan(lambda c, row: c * row, x, initializer=x[0]) + total


@pytest.mark.parametrize(
    "body",
    [
        lambda x: jnp.sin(x) * lax.psum(x, "i"),
        lambda x: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * jnp.sin(x)), (0, x))[1],
        lambda x: jax.nn.silu(x) * x,
        _with_loops,
    ],
    ids=["collective", "loop", "rule", "rows"],
)
def test_in_shard_map(body):
    """There a value's type says over which axes of a mesh it varies: a function called outside has another trace."""
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    function, x = tf.function(body), jnp.array([0.3, 0.7, 1.1])
    spread = jax.shard_map(
        lambda x: tf.convert_to_tensor(function(x))._array, mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    for transform in (lambda f: f, lambda f: f, jax.jit):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = transform(spread)(x)
            loss = jnp.sum(y**2)
        expected = jax.grad(lambda x: jnp.sum(spread(x) ** 2))(x)
        np.testing.assert_allclose(tape.gradient(loss, x), expected, rtol=1e-5)
    if body is not _with_loops:
        return
    np.testing.assert_allclose(function(x), spread(x), rtol=1e-6)
    assert function.experimental_get_tracing_count() == 2


def test_state_under_grad_stays_concrete():
    count = tf.Variable(0.0)

    @tf.function
    def f(x):
        count.assign_add(x)
        return jnp.asarray(x * count)

    assert jax.grad(f)(2.0) == 2.0  # what was assigned is the variable's, as it is for a tape
    np.testing.assert_allclose(count.numpy(), 2.0)


def test_state_cannot_leave_a_plain_jit():
    v = tf.Variable(1.0)

    @tf.function
    def reads(x):
        return v * x

    @tf.function
    def assigns(x):
        v.assign(x)
        return x

    with pytest.raises(RuntimeError, match="tapejax.function"):
        jax.jit(reads)(1.0)
    with pytest.raises(RuntimeError, match="function"):
        jax.jit(assigns)(1.0)
    with pytest.raises(RuntimeError, match="tapejax.function"):
        jax.vmap(assigns)(jnp.ones(2))
    assert v.numpy() == 1.0


def test_a_plain_jit_names_function():
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match=r"Variable 'Variable:0' was read .*tapejax\.function"):
        jax.jit(lambda x: x * v)(1.0)


def test_an_assignment_inside_a_transformation_is_refused():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        return jax.lax.map(lambda row: v.assign_add(row)._array, x)

    with pytest.raises(RuntimeError, match=r"tf\.while_loop"):
        f(jnp.ones(3))
    assert v.numpy() == 0.0


def test_a_known_call_compiles_nothing():
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v * x) ** 2)
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss

    def outside(x):
        with tf.GradientTape() as tape:
            loss = step(x) * 2.0
        return tape.gradient(loss, v)

    x = tf.constant([1.0, 1.0])
    outside(x), outside(x), outside(x)
    with compiles() as seen:
        step(x), outside(tf.constant([3.0, 4.0]))
    assert not seen


def test_one_program_is_one_entry():
    f = tf.function(lambda x: tf.sin(x) * 2.0)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        f(x)
    assert [entry.op.name for entry in tape._recording.entries] == ["<lambda>"]


@pytest.mark.filterwarnings("ignore::tapejax.errors.NarrowingWarning")
def test_sixty_four_bit_types_have_traces_of_their_own():
    f = tf.function(lambda x: x + 1)
    assert f(np.float64(1.0)).dtype == tf.float32
    with jax.enable_x64(True):
        assert f(np.float64(1.0)).dtype == tf.float64
    assert f(np.float64(1.0)).dtype == tf.float32


# ---- values and types -----------------------------------------------------------------------------------------------


def test_one_and_one_point_zero_are_two_traces():
    # TensorFlow takes 1.0 and True for 1 if 1 came first
    f = tf.function(lambda n: tf.constant(1) * 0 + n if isinstance(n, int) else tf.constant(n))
    assert f(1).dtype == tf.int32 and f(1.0).dtype == tf.float32 and f(1).dtype == tf.int32
    assert f.experimental_get_tracing_count() == 2
    signs = tf.function(lambda n: tf.constant(float(np.copysign(1.0, n))))
    assert signs(0.0).numpy() == 1.0 and signs(-0.0).numpy() == -1.0
    nans = tf.function(lambda n: tf.constant(1.0))
    nans(float("nan")), nans(float("nan"))
    assert nans.experimental_get_tracing_count() == 1


def test_strings_come_back_as_they_are():
    assert tf.function(lambda x: ("name", x))(tf.constant(1))[0] == "name"


def test_a_slice_a_dtype_and_a_shape_are_values():
    f = tf.function(lambda x, part, dtype, shape: tf.reshape(tf.cast(x[part], dtype), shape))
    x = tf.constant([1.0, 2.0, 3.0])
    for _ in range(2):
        assert f(x, slice(0, 2), tf.int32, tf.TensorShape([2, 1])).shape == (2, 1)
    assert f.experimental_get_tracing_count() == 1


def test_a_collected_object_takes_its_traces_along():
    class Options:
        pass

    f = tf.function(lambda options, x: x)
    for _ in range(3):
        f(Options(), 1.0)
        gc.collect()
    assert len(f._programs) == 1


def test_methods_do_not_keep_their_objects_alive():
    class Net:
        def __init__(self):
            self.v = tf.Variable(2.0)

        @tf.function
        def __call__(self, x):
            return self.v * x

    net = Net()
    net(tf.constant(1.0))
    reference = weakref.ref(net)
    del net
    gc.collect()
    assert reference() is None


def test_methods_of_objects_that_cannot_be_weakly_referenced():
    class Pair(tuple):
        __slots__ = ()

        @tf.function
        def total(self, x):
            return self[0] + self[1] + x

    assert Pair((1.0, 2.0)).total(tf.constant(3.0)).numpy() == 6.0


def test_a_classmethod():
    class Net:
        @classmethod
        @tf.function
        def twice(cls, x):
            return x * 2.0

    class Other:
        @tf.function
        @staticmethod
        def thrice(x):
            return x * 3.0

    assert Net.twice(tf.constant(1.0)).numpy() == 2.0
    assert Other.thrice(tf.constant(1.0)).numpy() == 3.0


def test_not_callable():
    with pytest.raises(TypeError, match="callable"):
        tf.function(3)


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_control_flow_names_the_line_and_what_to_do():
    @tf.function(autograph=False)
    def f(x):
        y = x * 2.0
        if y > 0:
            return y
        return -y

    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        f(tf.constant(1.0))
    for text in ("tf.cond", "tf.while_loop", "'f'", "test_function.py", "if y > 0"):
        assert text in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_jnp_control_flow_is_told_alike():
    @tf.function(autograph=False)
    def f(x):
        while jnp.sum(x) > 0:
            x = x - 1
        return x

    with pytest.raises(OperatorNotAllowedInGraphError, match=r"tf\.while_loop"):
        f(jnp.ones(2))


def test_numpy_has_no_value_in_a_function():
    v = tf.Variable(1.0)
    for body in (lambda x: x.numpy(), lambda x: v.numpy(), lambda x: float(v), lambda x: np.asarray(v)):
        with pytest.raises((NotImplementedError, TypeError)):
            tf.function(body)(tf.constant(1.0))


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "map", "cond"])
def test_a_variable_read_first_in_an_operation_of_jax_has_a_gradient(loop):
    """The tape is in the function, and the variable is read nowhere else in it."""
    v = tf.Variable(3.0)
    use = {
        "scan": lambda x: jax.lax.scan(lambda c, a: (c + a * v, c), 0.0, x)[0],
        "fori_loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c + x[i] * v, 0.0),
        "map": lambda x: jnp.sum(jax.lax.map(lambda a: a * v, x)),
        "cond": lambda x: jax.lax.cond(x[0] > 0, lambda: jnp.sum(x) * v, lambda: 0.0),
    }[loop]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = use(x)
        return tape.gradient(y, v)

    assert float(step(jnp.array([1.0, 2.0, 3.0]))) == 6.0


def test_an_error_restores_variables_and_tapes():
    v, x = tf.Variable(1.0), tf.constant(2.0)

    @tf.function
    def fails(x):
        v.assign(x)
        with tf.GradientTape():
            raise ZeroDivisionError

    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(ZeroDivisionError):
            fails(x)
        y = x * v
    assert v.numpy() == 1.0 and tape.gradient(y, x).numpy() == 1.0


def test_printing_a_variable_in_a_function_shows_no_value():
    v, texts = tf.Variable(1.0, name="v"), []

    @tf.function
    def f():
        texts.append(f"{v!r} {v.shape} {v.dtype}")
        return v * 1.0

    f()
    assert "traced" in texts[0] and "numpy" not in texts[0]


def test_variables_created_in_a_branch_are_refused():
    @tf.function
    def f(x):
        return tf.cond(x > 0, lambda: tf.Variable(1.0) * x, lambda: x)

    with pytest.raises(ValueError, match="branch"):
        f(tf.constant(1.0))


# ---- state ----------------------------------------------------------------------------------------------------------


def test_draws_differ_from_call_to_call_and_follow_the_seed():
    @tf.function
    def draw():
        return tf.random.normal([2]), tf.random.uniform([2]), tf.random.normal([2], seed=5)

    def rounds():
        tf.random.set_seed(7)
        return [np.stack([x.numpy() for x in draw()]) for _ in range(3)]

    def eager():
        tf.random.set_seed(7)
        return [
            np.stack([tf.random.normal([2]), tf.random.uniform([2]), tf.random.normal([2], seed=5)]) for _ in range(3)
        ]

    first, second = rounds(), rounds()
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, eager(), rtol=1e-6)
    assert len({x.tobytes() for x in np.reshape(first, (9, 2))}) == 9


def test_draws_in_a_loop_differ():
    @tf.function
    def f():
        return tf.map_fn(lambda x: x + tf.random.uniform([]), tf.zeros([5]))

    drawn = np.concatenate([f().numpy(), f().numpy(), [tf.random.uniform([]).numpy()]])
    assert len(set(drawn.tolist())) == 11


def test_dropout_differs_from_call_to_call():
    f = tf.function(lambda x: tf.nn.dropout(x, 0.5))
    x = tf.ones([64])
    assert (f(x).numpy() != f(x).numpy()).any()


def test_variables_from_a_library_of_pytrees_are_values():
    # a Variable that JAX rebuilt is an argument's value, not state
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        return jax.vmap(lambda w, y: w * y, in_axes=(None, 0))(v, x)

    np.testing.assert_allclose(f(jnp.ones(2)), [2, 2])
    v.assign(3.0)
    np.testing.assert_allclose(f(jnp.ones(2)), [3, 3])


def test_a_thread_that_reads_a_variable_while_another_traces():
    v, tracing, read = tf.Variable(2.0), threading.Event(), []

    def reader():
        tracing.wait(60)
        read.append((v * 3.0).numpy())

    @tf.function
    def f():
        y = v + 1.0
        tracing.set()
        time.sleep(0.3)
        return y

    thread = threading.Thread(target=reader)
    thread.start()
    assert f().numpy() == 3.0
    thread.join(60)
    assert read == [6.0]


def test_threads_that_call_and_trace_at_once():
    v = tf.Variable(0.0)

    @tf.function
    def add(x):
        v.assign_add(tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32))
        return v * 1.0

    failures = []

    def work(sizes):
        try:
            for size in sizes:
                add(tf.ones([size]))
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=([i + 1, i + 2, 1, 2, i + 3],)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert not isinstance(v._array, jax.core.Tracer) and 0 < v.numpy() <= 20


def test_a_gradient_with_respect_to_what_a_function_closed_over():
    x = jnp.array([1.0, 2.0])
    f = tf.function(lambda: jnp.sum(jax.jit(lambda y: y * x)(x)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f()
    np.testing.assert_allclose(tape.gradient(y, x), [2.0, 4.0])


def test_a_function_made_inside_a_function():
    @tf.function
    def outer(x):
        inner = tf.function(lambda y: y * x)
        return inner(tf.constant(2.0)) + inner(tf.constant(3.0))

    assert outer(tf.constant(1.0)).numpy() == 5.0 and outer(tf.constant(2.0)).numpy() == 10.0


# ---- concrete functions ---------------------------------------------------------------------------------------------


def test_open_sizes_are_checked_and_run():
    f = tf.function(lambda x, y: tf.matmul(x, y))
    c = f.get_concrete_function(tf.TensorSpec([None, 3]), tf.TensorSpec([3, None]))
    assert c.structured_outputs.shape.as_list() == [None, None]
    assert c(tf.ones([2, 3]), tf.ones([3, 4])).shape == (2, 4)
    assert c(tf.ones([5, 3]), tf.ones([3, 1])).shape == (5, 1)
    with pytest.raises(TypeError, match="does not fit"):
        c(tf.ones([2, 2]), tf.ones([3, 4]))


def test_sizes_that_must_be_equal():
    f = tf.function(lambda x, y: x + y)
    c = f.get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None]))
    assert c(tf.ones([3]), tf.ones([3])).shape == (3,)


def test_any_rank():
    f = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec(None)])
    c = f.get_concrete_function()
    assert c(tf.ones([2, 3])).shape == (2, 3) and f(1.0).shape == ()


def test_a_concrete_function_creates_variables():
    made = []

    @tf.function
    def f(x):
        if not made:
            made.append(tf.Variable(tf.zeros([2])))
        return made[0] + x

    c = f.get_concrete_function(tf.TensorSpec([2]))
    np.testing.assert_array_equal(c(tf.constant([1.0, 2.0])), [1.0, 2.0])


# ---- what JAX keeps of a trace ---------------------------------------------------------------------------------------


def _jitted(read):
    return jax.jit(lambda x: x + read())


def _scanned(read):
    def body(carry, _):
        return carry + read(), None

    return lambda x: jax.lax.scan(body, x, None, length=1)[0]


def _checkpointed(read):
    return jax.checkpoint(lambda x: x + read())


def _looped(read):
    def body(_, x):
        return x + read()

    return lambda x: jax.lax.fori_loop(0, 1, body, x)


def _chosen(read):
    def yes(x):
        return x + read()

    return lambda x: jax.lax.cond(x[0] < 1e9, yes, lambda x: x, x)


@pytest.mark.parametrize("around", [_jitted, _scanned, _checkpointed, _looped, _chosen])
@pytest.mark.parametrize("kind", [float, int])
def test_what_jax_keeps_of_a_trace_does_not_keep_a_variables_value(around, kind):
    """A function of JAX's that reads a variable is traced anew after an assignment, however the variable is assigned to."""
    v, w = tf.Variable(kind(1)), tf.Variable(kind(100))
    add = around(lambda: jnp.asarray(v) * 1.0 + jnp.asarray(w) * 1.0)

    @tf.function
    def f(x):
        found = [add(x)]
        v.assign(kind(2))
        found.append(add(x))
        w.assign(v + v)
        found += [add(x), add(x)]
        for _ in tf.range(2):
            v.assign_add(kind(10))
            x = tf.convert_to_tensor(add(x))
        found += [x, add(x)]
        while x[0] < 150.0:  # read before it is assigned to, in a loop
            x = tf.convert_to_tensor(add(x))
            v.assign(v + v)
        found += [x, add(x)]
        return found

    found = [float(np.asarray(x)[0]) for x in f(jnp.zeros(1))]
    assert found == [101.0, 102.0, 6.0, 6.0, 16.0 + 26.0, 42.0 + 26.0, 42.0 + 26.0 + 48.0 + 92.0, 208.0 + 180.0]
    assert int(v) == 176


def test_a_known_number_is_no_constant_of_what_is_traced_inside():
    """`assign(0)` in a function: the variable may be read there, as a size, in a tape and inside a jit."""
    step = tf.Variable(5)
    add = jax.jit(lambda x: x + jnp.asarray(step))

    @tf.function
    def f(x):
        step.assign(0)
        before = step.read_value()
        step.assign(2)
        size = tf.zeros([step, 2]) if tf.executing_eagerly() else tf.zeros([2, 2])
        return before, add(x), size, step * 3

    before, added, size, product = f(jnp.int32(7))
    assert (int(before), int(added), size.shape, int(product), int(step)) == (0, 9, (2, 2), 6, 2)


def test_a_number_is_not_assigned_inside_a_jit():
    """JAX keeps what it traced: the next call would not assign again."""
    step = tf.Variable(5)

    @jax.jit
    def count(x):
        step.assign(0)
        return x

    for caller in (count, tf.function(count)):
        with pytest.raises(RuntimeError, match="assigned to"):
            caller(jnp.float32(1.0))
    assert int(step) == 5
