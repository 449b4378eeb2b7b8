"""What is run before it is compiled computes what the compiled program computes."""

import subprocess
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.execution import trial as trials
from tapejax.execution.trial import Trial

lax = jax.lax


def test_is_compiled_after_a_number_of_calls_that_depends_on_shapes_alone():
    decided = []
    trial = Trial(lambda x: jnp.sin(x) * 2, decided.append)
    x = jnp.linspace(0.0, 1.0, 5)
    expected = jax.jit(lambda x: jnp.sin(x) * 2)(x)
    for _ in range(5000):
        np.testing.assert_allclose(trial(x), expected, rtol=1e-6)
        if decided:
            break
    assert decided


def test_what_runs_on_trial_cost_more_ends_when_it_is_compiled():
    trial = Trial(lambda x: jnp.sin(x) * 2)
    assert not trial.excess(1)
    x, runs = jnp.linspace(0.0, 1.0, 5), 0
    trial(x)
    assert 0 < 2 * trial.excess(1) == trial.excess(2) < trial.excess(10**9) == trial.excess(10**10)
    while trial.excess(1) and runs < 5000:
        trial(x)
        runs += 1
    assert not trial.excess(10**9) and runs > 50


def test_without_an_evaluator_everything_is_compiled(monkeypatch):
    monkeypatch.setattr(trials, "MOST_NUMBERS", -1.0)
    trial = Trial(lambda x: jnp.sin(x) * 2)
    for _ in range(2):  # the first may find that they are refused
        np.testing.assert_allclose(trial(jnp.ones(3)), 2 * np.sin(np.ones(3)), rtol=1e-6)
    refused = trials._cheap_options is None  # XLA has no such options any more
    assert [plan.run == trial._run_compiled for plan in trial._plans.values()] == [refused]


def test_equal_equations_cost_less_to_compile():
    "XLA compiles the kernels of a loop that was unrolled once."

    def budget(rounds, x):
        def unrolled(x):
            for _ in range(rounds):
                x = jnp.sin(x) * x
            return x

        trial = Trial(unrolled)
        trial(x)
        (plan,) = trial._plans.values()
        return plan.left + plan.cost

    def per_equation(equations):
        return trials.COMPILE + trials.COMPILE_EQUATION * equations

    x = jnp.ones(3)
    assert budget(1, x) == per_equation(2)
    kinds = 2 * trials.COMPILE_KIND + 200 * trials.COMPILE_EQUAL
    assert budget(100, x) == trials.COMPILE + kinds < per_equation(200) / 2


def test_what_a_window_costs_is_counted():
    "The gradient of the largest of each window runs ten times as long without XLA's optimisation."
    x = jnp.zeros((1, 8, 8, 1))

    def pooled(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()

    one, windows = (trials._measure(jax.make_jaxpr(f)(x), Counter())[1] for f in (jnp.sin, jax.grad(pooled)))
    assert windows > 30 * one


def test_more_elements_than_xla_can_count_are_refused():
    "XLA would end the process."
    for sizes in ((2**40, 2**40), (2**62,)):
        with pytest.raises(ValueError, match="too many elements"):
            Trial(lambda x, sizes=sizes: jnp.broadcast_to(x, sizes) + 1)(jnp.ones(()))


def test_results_are_of_the_types_that_jit_gives():
    trial = Trial(lambda x, y: (x + 1, [y * 2.0]))
    for x, y in ((1.0, jnp.ones(3)), (np.float32(1), 2), (jnp.arange(2), np.ones(2, "float32"))):
        (a, (b,)), (c, (d,)) = trial(x, y), jax.jit(lambda x, y: (x + 1, [y * 2.0]))(x, y)
        assert (a.aval, b.aval) == (c.aval, d.aval)
        assert not a.committed
        assert a.sharding == c.sharding


def test_placed_arrays_and_traced_ones_are_compiled():
    trial = Trial(lambda x: x + 1)
    placed = jax.device_put(jnp.ones(3), jax.devices()[0])
    assert trial(placed).committed
    np.testing.assert_array_equal(jax.vmap(trial)(jnp.ones((2, 3))), 2)
    np.testing.assert_array_equal(jax.jit(trial)(jnp.ones(3)), 2)
    assert jax.grad(trial)(1.0) == 1


def test_guarded_transfers_stay_none():
    """What NumPy computed would have to be transferred."""
    x = jnp.ones(3)
    with jax.transfer_guard("disallow"):
        found = Trial(lambda x: x + x)(x)
    np.testing.assert_array_equal(found, 2)


def test_unknown_options_of_xla_do_not_end_the_process(monkeypatch):
    monkeypatch.setattr(trials, "_cheap_options", {"xla_there_is_no_such_option": True})
    trial = Trial(lambda x: lax.conv(x, x[:, :, :3, :3], (1, 1), "SAME"))  # too large for NumPy
    assert trial(jnp.ones((16, 16, 32, 32))).shape == (16, 16, 32, 32)
    assert trials._cheap_options is None


PROGRAM = """
import numpy as np, tapejax as tf
tf.random.set_seed(0)
w = tf.Variable(tf.random.normal([8, 8]))
for _ in range(300):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.tanh(tf.random.normal([4, 8]) @ w) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
print(w.numpy().tobytes().hex())
"""


def test_a_program_that_is_run_twice_gives_the_same_numbers():
    command = [sys.executable, "-c", PROGRAM]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in "12"]
    one, other = [run.communicate(timeout=300)[0] for run in runs]
    assert one == other and len(one) > 2 * 256 and not any(run.returncode for run in runs)


def test_an_unknown_setting_is_an_error():
    """It names the variable, what came, and what is allowed; nothing, and nothing between quotes, is no setting."""
    assert trials._on_trial("") is True and trials._on_trial("always") is False
    for unknown in ("alwyas", "Always", "1", " "):
        with pytest.raises(ValueError, match=f"TAPEJAX_COMPILE is {unknown!r}: set it to 'always'.* or unset it"):
            trials._on_trial(unknown)
