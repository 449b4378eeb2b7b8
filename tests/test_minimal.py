"""`tapejax.minimal` gives what the real tape gives, on programs of TensorFlow's two guides on automatic differentiation.

The programs are bodies of other parity tests, in which they run under TensorFlow and under tapejax.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import minimal_face
import numpy as np
import pytest
import test_custom_gradients
import test_guide
import test_higher_order
import test_jacobians
import test_nested
import test_tape_rules
import test_training
from harness import differences
from outcomes import outcome_under_tapejax

import tapejax
from tapejax import minimal

# the introductory guide, then the advanced one, topic by topic
BODIES = {
    test_guide: """
        a_layer_by_hand a_gradient_has_the_shape_of_its_source unpacking_the_result a_model_of_the_users_own
        watching_a_tensor watching_only_what_is_chosen an_intermediate_result_as_source a_persistent_tape_answers_often
        a_tape_answers_once_by_default several_targets_add_up a_vector_target_is_summed
        elementwise_derivatives_of_a_curve a_loop_that_depends_on_values newton_steps_inside_the_block unconnected
        a_python_float_detour state_stops_gradients""",
    test_tape_rules: "stop_recording stopping_one_of_two_tapes reset_forgets_what_was_watched reset_in_a_loop",
    test_custom_gradients: """
        stop_gradient a_stable_softplus rounding_that_lets_gradient_through the_wrong_gradient_is_used
        second_order_through_the_gradient_function""",
    test_nested: """
        a_second_derivative two_tapes_side_by_side watching_on_one_tape_only a_mixed_second_derivative
        hessian_vector_product a_function_that_opens_a_tape""",
    test_higher_order: "the_hessian_of_a_vector",
    test_jacobians: "a_scalar_target the_kernel_of_a_layer a_source_given_twice an_intermediate_as_source a_batch",
    test_training: "linear_regression minimising_by_newtons_method",
}


@pytest.mark.parametrize("module, name", [(module, name) for module, names in BODIES.items() for name in names.split()])
def test_a_program_of_the_guides(module, name):
    body = getattr(module, f"test_{name}").__wrapped__
    expected, actual = (outcome_under_tapejax(body, tf) for tf in (tapejax, minimal_face.tf))
    assert not differences(expected, actual, rtol=1e-4, atol=1e-5, x64=True)  # types are equal in either mode


def test_it_is_a_lesson_of_one_sitting():
    source = Path(minimal.__file__).read_text(encoding="utf-8")
    assert source.count("\n") <= 150
    assert "from ." not in source and "import tapejax" not in source  # stands alone


@jax.custom_jvp
def rounded(x):
    return jnp.round(x)


rounded.defjvp(lambda primals, tangents: (rounded(*primals), tangents[0]))

FUNCTIONS = {
    "stop_gradient": lambda x: jnp.sum(jax.lax.stop_gradient(x) * x),
    "a rule of its own": lambda x: jnp.sum(rounded(x) * 10.0),
    "relu": lambda x: jnp.sum(jax.nn.relu(x - 1.5)),
    "scan": lambda x: jax.lax.scan(lambda product, a: (product * a, None), 1.0, x)[0],
    "an eigenvalue": lambda x: jnp.linalg.eigh(jnp.outer(x, x) + jnp.diag(x))[0][0],
    "checkpoint": lambda x: jax.checkpoint(lambda x: jnp.sum(jnp.sin(x)))(x),
    "an update": lambda x: jnp.sum(x.at[0].set(x[1] * x[2])),
    "jit": jax.jit(lambda x: jnp.sum(x * x)),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_records_what_jax_executes(f):
    def gradient(x):
        with minimal.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    x = jnp.array([1.0, 2.0, 3.0])
    expected = jax.grad(f)(x)
    for found in (gradient(x), jax.jit(gradient)(x), jax.vmap(gradient)(x[None])[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_it_lacks_is_what_it_says():
    """The limits in its docstring: a gradient lost through a closure, and an error for a custom rule inside jax.grad."""
    x = jnp.array([1.0, 2.0])
    with minimal.GradientTape() as tape:
        tape.watch(x)
        y = jax.jit(lambda a: a * x)(jnp.ones(2))
    assert tape.gradient(y, x) is None

    def inside(x):
        with minimal.GradientTape() as tape:
            tape.watch(x)
            return jnp.sum(rounded(x))

    with pytest.raises(Exception, match="both stores occupied"):
        jax.grad(inside)(x)
