"""Printed code of whole programs: its names are on values that they held, parameters in the user's order, functions once."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import printed_programs
import pytest
from held_names import alike, held_by_printed, held_by_user, misnamed, numbered, out_of_order

import tapejax as tf

PROGRAMS = dict(printed_programs.PROGRAMS)
if all(map(importlib.util.find_spec, ("diffrax", "equinox", "flax", "optax"))):
    import printed_programs_libraries

    PROGRAMS |= printed_programs_libraries.PROGRAMS
WAYS = {"plain": lambda f: f, "jit": jax.jit, "function": tf.function}
# What is wrong still, by program and way: this table only shrinks.
KNOWN = {
    ("implicit", "plain"): {"order": ["fixed_point(a, b) of (w, x)"]},
    ("implicit", "jit"): {"order": ["fixed_point(a, b) of (w, x)"]},
    ("equinox_step", "plain"): {
        "names": [
            "grads",
            "grads_2",
            "grads_3",
            "grads_4",
            "grads_5",
            "grads_6",
            "grads_7",
            "grads_8",
            "model",
            "updates",
            "x_2",
            "x_3",
            "x_4",
        ]
    },
    ("equinox_step", "jit"): {
        "names": ["grads", "grads_2", "grads_3", "grads_4", "model", "state", "updates", "x_2", "x_3", "x_4"]
    },
    ("flax_step", "plain"): {"names": ["state", "state_2", "x_2", "x_3"], "numbered": ["loss_2"]},
    ("flax_step", "jit"): {"names": ["state", "state_2", "x_2", "x_3"]},
    # Its code is Equinox's own primitives, for which JAX has no public function: nothing of the user's ran them.
    ("diffrax_solve", "jit"): {"order": ["diffrax_solve(a, b, c, d, e, g, h, i, j, k) of (start, rates)"]},
    # Outside of `jit` the derivative of one of jnp's jitted functions is one operation with the value that it is of. What is cut
    # out as the function that `jax.hessian` was given takes the tangents, too, and differs from that called elsewhere.
    ("pinn", "plain"): {"names": ["hessian"], "numbered": ["net_2", "net_3"]},
    ("pinn", "function"): {"numbered": ["net_2", "net_3"]},
    ("implicit", "function"): {"order": ["fixed_point(a, b) of (w, x)"]},
    ("equinox_step", "function"): {
        "names": [
            "grads",
            "grads_2",
            "grads_3",
            "grads_4",
            "grads_5",
            "grads_6",
            "grads_7",
            "grads_8",
            "model",
            "state",
            "updates",
            "x_2",
            "x_3",
            "x_4",
        ]
    },
    ("flax_step", "function"): {"names": ["state", "state_2", "x_2", "x_3"], "numbered": ["loss_2"]},
}
if jax.__version_info__ < (
    0,
    12,
):  # there an array is taken apart by slices, and Python 3.11 stores its parts one by one
    KNOWN |= {("pendulum", way): {"names": ["theta"]} for way in WAYS}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_names_are_on_values_that_they_held(name, way):
    function, arrays = PROGRAMS[name]
    args = [jax.tree.map(jnp.asarray, x) for x in arrays]
    user, wanted = held_by_user(function, args)
    code = tf.code(WAYS[way](function), *args)
    printed, result = held_by_printed(code.code, code.constants, args, user.parameters)
    assert alike(*([*map(np.asarray, jax.tree.leaves(x))] for x in (wanted, result)))
    found = {"names": misnamed(user, printed), "order": out_of_order(user, printed), "numbered": numbered(printed)}
    found, known = {kind: wrong for kind, wrong in found.items() if wrong}, KNOWN.get((name, way), {})
    if jax.__version_info__ < (0, 12):  # what is not recognised is another program there
        found, known = [*found], [*known]
    assert found == known, code.code


# Lines of programs that are printed as they stand in all ways: what they name is a string, a constant, a row, a tuple.
LINES = {
    "by_a_class": [
        "def gate(p, x, h):",
        'return x @ p["w"] + h @ p["u"]',
        'z = jax.nn.sigmoid(gate(params["z"], x, h))',
    ],
    "messages_of_a_graph": [
        "messages = jnp.tanh(h[senders] @ w_message)",
        "received = jax.ops.segment_sum(messages, receivers, num_segments=5)",
    ],
    "heads": ["scores = jnp.where(mask[:, None, None, :], scores, -1e9)"],
    "hopfield": ["s, i = state", "return s - 0.5 * jax.grad(lambda s: energy(s, memories))(s), i + 1"],
    "quantiles": ['error = y - h @ params["heads"][i]', "total = total + jnp.mean(jnp.maximum(q * error, t0 * error))"],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LINES)
def test_lines_are_printed_as_they_stand(name, way):
    function, arrays = PROGRAMS[name]
    code = tf.code(WAYS[way](function), *[jax.tree.map(jnp.asarray, x) for x in arrays]).code
    assert not {*LINES[name]} - {*map(str.strip, code.splitlines())}, code


def test_the_comparison():
    def f(x, y):
        h = jnp.maximum(x, y)
        return h + y

    args = [jnp.array([1.0, 3.0]), jnp.array([2.0, 2.0])]
    user, _ = held_by_user(f, args)
    right = "def f(x, y):\n    h = jnp.maximum(x, y)\n    return h + y\n"
    wrong = "def f(y, x):\n    h = y > x\n    h_2 = jnp.where(h, y, x)\n    return h_2 + x\n"
    for text, names, order in ((right, [], []), (wrong, ["h", "x", "y"], ["f(y, x) of (x, y)"])):
        printed, result = held_by_printed(text, {}, args, user.parameters)
        assert misnamed(user, printed) == names and out_of_order(user, printed) == order
        np.testing.assert_array_equal(result, [4.0, 5.0])
