"""What the root of the package loads, and when: nothing with itself, everything with the first of its names."""

import pytest

from tests.processes import finish, start


def run(source):
    (printed,) = finish(start("-c", source))
    return printed


NAMESPACES_FIRST = """
import sys
import tapejax
loaded = lambda: "tapejax._everything" in sys.modules
assert tapejax.__version__ and tapejax.__doc__ and not hasattr(tapejax, "__wrapped__")
from tapejax import minimal, tape
assert tapejax.minimal is minimal and not loaded()
{first}
assert loaded()
import tapejax.math, tapejax.compat.v1.logging, tapejax.errors, tapejax.compat.v2
assert tapejax.math is sys.modules["tapejax.math"] and tapejax.compat.v2 is tapejax
assert tapejax.errors is sys.modules["tapejax.tf.values.errors"] and tapejax.errors.__spec__.name == "tapejax.tf.values.errors"
assert dir(tapejax) == sorted(tapejax.__all__) and "GradientTape" in dir(tapejax)
try:
    import tapejax.nonsense
except ModuleNotFoundError as error:
    assert error.name == "tapejax.nonsense"
print(tapejax.GradientTape is tape.GradientTape, tapejax.math.sin(0.0).numpy())
"""
FIRST = {
    "attribute": "tapejax.sin",
    "namespace in a namespace": "import tapejax.compat.v1.logging",
    "star": "exec('from tapejax import *; assert reduce_sum', {})",
    "pickle": "import pickle; pickle.loads(b'ctapejax.tf.values.tensor\\nTensor\\n.')",
    "traced": "import jax; assert jax.jit(lambda x: tapejax.nn.relu(x))(1.0).numpy() == 1.0",
}


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_everything_comes_with_the_first_name(first):
    assert run(NAMESPACES_FIRST.format(first=first)) == "True 0.0\n"


THREADS = """
import threading
import jax.numpy
import tapejax as tf

def attribute():
    tf.sin

def namespace():
    import tapejax.compat.v1
    from tapejax.nn import relu

def part():
    import tapejax.tf.values.tensor

def run(import_it):
    barrier.wait()
    import_it()
    done.append(import_it)

imports, done = 2 * [attribute, namespace, part], []
barrier = threading.Barrier(len(imports))
threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in imports]
for each in threads:
    each.start()
for each in threads:
    each.join(150)
print(len(done))
"""


def test_threads_may_load_it_at_once():
    """Python asks finders under a lock for all imports; a module that waits for the whole would wait for what waits for it."""
    assert run(THREADS) == "6\n"


KERAS = """
import sys
{first}
import keras
{then}
assert "tapejax._everything" in sys.modules
import jax.numpy as jnp
layer = keras.layers.Dense(1, use_bias=False)
layer.build((None, 2))
with GradientTape() as tape:
    y = layer(jnp.ones((1, 2)))
print(len(tape.watched_variables()), tape.gradient(y, layer.weights)[0] is None)
"""


@pytest.mark.processes
@pytest.mark.parametrize("keras_is_first", [False, True])
def test_everything_comes_with_keras(keras_is_first):
    """The tape alone would not know Keras's variables."""
    pytest.importorskip("keras")
    tape, nothing = "from tapejax.tape import GradientTape", ""
    source = KERAS.format(first=nothing if keras_is_first else tape, then=tape if keras_is_first else nothing)
    (printed,) = finish(start("-c", source, KERAS_BACKEND="jax"))
    assert printed.splitlines()[-1] == "1 False"
