"""The wrapper without the rest of tapejax: it can be imported, and it answers as the whole does."""

import json

import alone
import jax
import numpy as np
import plain_jax
import pytest

import tapejax
from tests.processes import finish, start

SHARES = {f"share {i}": [*plain_jax.CASES][i::6] for i in range(6)}


def run(*command, paths=("tests/tape",)):
    (printed,) = finish(start(*command, paths=paths, JAX_ENABLE_X64=str(jax.config.jax_enable_x64)))
    return printed


def assert_same(found, expected, tolerance):
    if not isinstance(expected, list) or None in found or None in expected:
        assert found == expected
    else:
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def assert_answers_as_the_whole(names):
    assert tapejax.GradientTape  # the whole is here
    by_wrapper = json.loads(run("tests/tape/alone.py", *names).splitlines()[-1])
    for name, outcomes in alone.answers(names).items():
        tolerance = 1e-5 if name in alone.LINEAR else plain_jax.CASES[name].tolerance
        for found, expected in zip(by_wrapper[name], outcomes, strict=True):
            assert_same(found, expected, tolerance)


def test_a_linear_function_has_no_second_gradient():
    assert_answers_as_the_whole([*alone.LINEAR, *[*plain_jax.CASES][::40]])
    for outcomes in alone.answers(alone.LINEAR).values():
        assert [*map(type, outcomes)] == [list] * 3 and outcomes[0] != [None] and outcomes[1:] == [[None], [None]]


@pytest.mark.slow
@pytest.mark.parametrize("names", SHARES.values(), ids=SHARES)
def test_the_wrapper_answers_as_the_whole(names):
    assert_answers_as_the_whole(names)


ALONE = """
import sys
import jax.numpy as jnp
from tapejax.tape import GradientTape, ForwardAccumulator

def missing(argument, call, kind=TypeError):
    try:
        call()
    except kind as error:
        assert argument in str(error), error
    else:
        raise AssertionError(argument)

rooms = {name.split(".")[1] for name in sys.modules if name.startswith("tapejax.")}
assert rooms == {"_finders", "_version", "jaxprs", "places", "tape"}, rooms
x = jnp.array([1.0, 2.0])
with GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = {"y": x * 3.0, "of no interest": "text"}
missing("`sources`", lambda: tape.gradient(y["y"], [x, 2.0]))
missing("`sources`", lambda: tape.gradient(y["y"], None))
missing("`target`", lambda: tape.gradient([y["y"], y], x))
missing("`target`", lambda: tape.jacobian([y["y"]], x))
missing("output_gradients", lambda: tape.gradient(y["y"], x, output_gradients=jnp.ones(3)), ValueError)
missing("tangents", lambda: ForwardAccumulator(x, jnp.ones(3)), ValueError)
missing("tapejax.GradientTape", lambda: tape.explain(y["y"], x), AttributeError)
print(tape.gradient(y["y"], {"x": x, "other": (jnp.ones(1),)}, output_gradients=jnp.array([1.0, 2.0])))
with ForwardAccumulator(x, jnp.array([1.0, 0.0])) as accumulator:
    z = x * x
print(accumulator.jvp(z))

import tapejax as tf
with GradientTape() as tape:
    tape.watch(x)
    y = jnp.sin(x)
    recorded = len(tape._recording.entries)
    v = tf.Variable(2.0)  # all of tapejax is imported here, and nothing of that is recorded
    assert len(tape._recording.entries) - recorded <= 1
    z = tf.reduce_sum(y) * v
print(*tape.gradient(z, [x, v]))
print(len(tape.explain(z, v)) > 0 if hasattr(tape, "explain") else None)
"""


def test_the_wrapper_alone_and_then_the_rest():
    first, second, third, last = run("-c", ALONE).splitlines()
    assert "'x': Array([3., 6.]" in first and "'other': (None,)" in first
    assert second == "[2. 0.]"
    assert "1.0806" in third and "1.7507" in third
    assert last == "True"


WATCHED = """
import tapejax as tf
from tapejax.tape import runner

class Watching(runner.Runner):
    def run(self, op, inputs):
        seen.append(op.name)
        return before.run(op, inputs)

seen, before = [], runner.current
runner.use(Watching())
x = tf.Variable(2.0)  # imports the rest
with tf.GradientTape() as tape:
    y = tf.sin(x)
assert tape.gradient(y, x) is not None and {"sin", "gradient"} <= {*seen}, seen
"""


def test_a_runner_that_was_current_before_the_rest_was_imported_stays():
    run("-c", WATCHED)
