"""A NumPy array is the user's, who may write into it as soon as an operation has returned: what is run and kept is a copy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tape import runner


def aligned(*shape, dtype=np.float32):
    """An array whose memory JAX takes without a copy, as every fourth array is by chance."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


@pytest.fixture
def given():
    """The NumPy arrays that the runner is given."""
    seen, run = [], type(runner.current).run

    class Watching(type(runner.current)):
        def run(self, op, inputs):
            seen.extend(x for x in inputs if isinstance(x, np.ndarray))
            return run(self, op, inputs)

    before = runner.current
    runner.use(Watching())
    yield seen
    runner.use(before)


@jax.custom_jvp
def with_a_rule(x, y):
    return x * y


with_a_rule.defjvp(lambda primals, tangents: (with_a_rule(*primals), tangents[0] * primals[1]))


@jax.custom_vjp
def with_a_pullback(x, y):
    return x * y


with_a_pullback.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, ct * 0))

CALLS = {
    "jnp": jnp.multiply,
    "operator": lambda x, y: x * y,
    "lax": jax.lax.mul,
    "jit": jax.jit(lambda x, y: x * y),
    "a rule": with_a_rule,
    "a pullback": with_a_pullback,
    "checkpoint": jax.checkpoint(lambda x, y: x * y),
    "vmap": jax.vmap(lambda x, y: x * y),
    "tf": tf.multiply,
    "a tensor": lambda x, y: tf.convert_to_tensor(x) * y,
    "a conversion": lambda x, y: x * tf.convert_to_tensor(y)._array,
    "an array": lambda x, y: x * jnp.asarray(y),
    "a function": tf.function(lambda x, y: x * y),
    "a custom gradient": tf.custom_gradient(lambda x, y: (x * y, lambda dy: (dy * 2.0, dy))),
    "an outer product": lambda x, y: tf.einsum("i,i->i", x, y),
    "NumPy's name": lambda x, y: tf.experimental.numpy.multiply(x, y),
}


@pytest.mark.parametrize("name", CALLS)
def test_in_a_block_the_operation_is_given_the_copy_that_is_kept(name, given):
    x, buffer = jnp.arange(1.0, 9.0), aligned(8)
    buffer[:] = 2.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = CALLS[name](x, buffer)
    assert not any(np.shares_memory(array, buffer) for array in given)
    pointer = getattr(y, "_array", y).unsafe_buffer_pointer()
    assert not 0 <= pointer - buffer.ctypes.data < buffer.nbytes
    buffer[:] = -1.0
    np.testing.assert_array_equal(y, 2 * np.arange(1.0, 9.0))
    np.testing.assert_array_equal(tape.gradient(y, x), np.full(8, 2.0))


@pytest.mark.parametrize("shape", [(8,), (300, 300)], ids=["small", "large"])
@pytest.mark.parametrize(
    "name", ["tf", "a tensor", "a function", "a custom gradient", "an outer product", "NumPy's name"]
)
def test_outside_of_a_block_too_in_functions_of_tapejax(name, shape, given):
    if name == "an outer product" and len(shape) > 1:
        shape = (90_000,)
    buffer = aligned(*shape)
    buffer[:] = 2.0
    y = CALLS[name](jnp.ones(shape), buffer)
    assert not any(np.shares_memory(array, buffer) for array in given)
    buffer[:] = -1.0
    np.testing.assert_array_equal(y, np.full(shape, 2.0))


MADE = {
    "constant": tf.constant,
    "convert_to_tensor": tf.convert_to_tensor,
    "identity": tf.identity,
    "cast": lambda x: tf.cast(x, tf.float32),
    "Variable": tf.Variable,
    "assign": lambda x: tf.Variable(np.zeros(x.shape, np.float32)).assign(x),
    "reshape": lambda x: tf.reshape(x, [-1]),
    "a dataset": lambda x: next(iter(tf.data.Dataset.from_tensors(x))),
    "numpy_function": lambda x: tf.numpy_function(lambda: x, [], tf.float32),
    "TensorArray": lambda x: tf.TensorArray(tf.float32, 1).write(0, x).read(0),
    "a function": tf.function(lambda x: x),
}


@pytest.mark.parametrize("taped", [False, True], ids=["outside", "in a block"])
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_it_is_a_copy(name, taped):
    if name == "a dataset":
        pytest.importorskip("grain")
    buffer = aligned(16)
    if taped:
        with tf.GradientTape():
            made = MADE[name](buffer)
    else:
        made = MADE[name](buffer)
    buffer[:] = 1.0
    np.testing.assert_array_equal(made, np.zeros(16))
