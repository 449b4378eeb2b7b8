"""Copies: of a tape, which has none; of functions got from a tape, of compiled functions and modules, also in another process."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

cloudpickle = pytest.importorskip("cloudpickle")

ROOT = Path(__file__).resolve().parents[3]


def again(x):
    return cloudpickle.loads(cloudpickle.dumps(x))


@pytest.fixture
def tape():
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
    return tape, y, v


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps, cloudpickle.dumps])
def test_a_tape_is_neither_pickled_nor_copied_deeply(tape, copied):
    with pytest.raises(TypeError, match="as_function"):
        copied(tape[0])
    with pytest.raises(TypeError, match="as_function"):
        copied({"in a structure": [tape[0]]})


def test_a_shallow_copy_is_the_same_tape(tape):
    tape, y, v = tape
    np.testing.assert_allclose(copy.copy(tape).gradient(y, v), [6.0, 8.0])


def test_a_tape_that_has_seen_nothing_is_copied():
    copied = copy.deepcopy(tf.GradientTape())
    x = tf.Variable(2.0)
    with copied:
        y = x * x
    assert float(copied.gradient(y, x)) == 4.0


# ---- functions from a tape ------------------------------------------------------------------------------------------


def test_a_function_from_a_tape(tape):
    tape, y, v = tape
    f = tape.as_function(y, v)
    g = again(f)
    assert str(g) == str(f) and g.__signature__ == f.__signature__
    for x in (v, tf.constant([1.0, 2.0]), jnp.array([1.0, 2.0])):
        np.testing.assert_array_equal(g(x), f(x))
        assert type(g(x)) is type(f(x))
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(g(x)))(jnp.array([1.0, 2.0])), [2.0, 4.0])
    np.testing.assert_array_equal(again(g)(v), f(v))


def test_a_function_from_a_tape_with_structures_arguments_and_large_constants():
    rng = np.random.default_rng(0)
    sources = {"w": tf.Variable(rng.normal(size=(300, 2)), dtype=tf.float32), "b": [jnp.zeros(2)]}
    x, known = tf.constant(rng.normal(size=(4, 300)), tf.float32), jnp.asarray(rng.normal(size=(300, 300)), "float32")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        y = {"y": jnp.tanh((x._array @ known) @ sources["w"] + sources["b"][0])}
    f = tape.as_function(y, sources, arguments={"x": x})
    g = again(f)
    assert g.constants.keys() == f.constants.keys() != set()
    for at in (x, x * 2.0):
        np.testing.assert_allclose(g(sources, x=at)["y"], f(sources, at)["y"], rtol=1e-6)


def test_a_function_from_a_tape_with_a_rule_of_its_own():
    @jax.custom_jvp
    def steep(x):
        return x

    steep.defjvp(lambda primals, tangents: (primals[0], 5.0 * tangents[0]))
    x = jnp.array([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jnp.sum(steep(x) ** 3)
    g = again(tape.as_function(y, x))
    np.testing.assert_allclose(g(x), 9.0)
    np.testing.assert_allclose(jax.grad(g)(x), jax.grad(lambda x: jnp.sum(steep(x) ** 3))(x))


# ---- compiled functions ---------------------------------------------------------------------------------------------


class Scaled(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(2.0)
        self.calls = tf.Variable(0)
        self.compiled = tf.function(self.plain)

    def plain(self, x):
        return self.w * x

    @tf.function
    def __call__(self, x):
        self.calls.assign_add(1)
        return self.w * x


@pytest.mark.parametrize("copied", [again, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_module_whose_functions_were_called(copied):
    module = Scaled()
    module(tf.constant(3.0)), module.compiled(tf.constant(3.0))
    other = copied(module)
    other.w.assign(5.0)
    assert float(other(tf.constant(3.0))) == float(other.compiled(tf.constant(3.0))) == 15.0
    assert float(module(tf.constant(3.0))) == float(module.compiled(tf.constant(3.0))) == 6.0
    assert int(other.calls) == int(module.calls) == 2


def test_a_method_and_its_object():
    module = Scaled()
    call = again(module.__call__)
    gc.collect()
    module.w.assign(7.0)
    assert float(call(tf.constant(3.0))) == 6.0 and float(module(tf.constant(3.0))) == 21.0


def test_a_function_keeps_its_signature():
    f = again(tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([None], tf.float32)], autograph=False))
    assert f.input_signature[0].shape.as_list() == [None] and not f.autograph
    np.testing.assert_array_equal(f([1.0, 2.0]), [2.0, 3.0])


def test_in_another_process(tape, tmp_path):
    tape, y, v = tape

    class Local(tf.Module):  # which the other process cannot import
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)

        @tf.function
        def __call__(self, x):
            return self.w * x

    module = Local()
    module(tf.constant(1.0))
    file = tmp_path / "pickled"
    file.write_bytes(cloudpickle.dumps((module, tape.as_function(y, v))))
    code = "import pickle, sys; m, f = pickle.load(open(sys.argv[1], 'rb')); print(float(m(3.0)), f([1.0, 2.0])[1])"
    code = code.replace("[1.0, 2.0]", "__import__('numpy').float32([1.0, 2.0])")
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["6.0", "4.0"], done.stderr
