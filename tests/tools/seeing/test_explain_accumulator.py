"""`ForwardAccumulator.explain`: why a `jvp` is None. `GradientTape.explain` for forward mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


def kinds(explanation):
    return [report.kinds for report in explanation]


def test_each_primal_has_a_report():
    x, w = tf.constant([1.0, 2.0]), tf.Variable([1.0, 3.0])
    with tf.autodiff.ForwardAccumulator([x, w], [tf.ones(2), tf.ones(2)]) as acc:
        y = tf.reduce_sum(tf.round(x) * w)
    of_x, of_w = acc.explain(y)
    assert (of_x.name, of_x.connected, of_x.kinds) == ("x", False, ("no derivative",))
    assert of_w.connected and [step.operation for step in of_w.path] == ["multiply", "reduce_sum"]
    assert str(acc.explain(y)).startswith("The jvp of y, as it depends on\nx: None\n")
    assert "The jvp of <b>y</b>, as it depends on" in acc.explain(y)._repr_html_()
    assert acc.jvp(y).numpy() == 3.0  # looking changes nothing


def as_integers(x):
    return tf.cast(x > 1.0, tf.float32)


@pytest.mark.parametrize(
    "function, kind",
    [(as_integers, "integer"), (tf.stop_gradient, "stop_gradient"), (tf.floor, "no derivative")],
)
def test_a_reason_for_each_jvp_that_is_none(function, kind):
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as acc:
        y = function(x)
    assert acc.jvp(y) is None
    assert kinds(acc.explain(y)) == [(kind,)]


def test_numpy_on_the_way():
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as acc:
        logs = np.log(x * x)
        y = tf.reduce_sum(logs)
    assert acc.jvp(y) is None
    (report,) = acc.explain(y)
    assert report.kinds == ("python",) and report.reasons[0].line.text == "logs = np.log(x * x)"


def test_a_target_outside_of_the_block():
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        h = x * x
    y = tf.sin(h)
    assert acc.jvp(y) is None
    (report,) = acc.explain(y)
    assert report.kinds == ("after",) and not report.connected


def test_what_only_reverse_mode_refuses_is_connected():
    x = jnp.array([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, jnp.ones(2)) as acc:
        y = jax.lax.while_loop(lambda a: jnp.all(a < 10), lambda a: a * a + 1, x)
    assert acc.jvp(y) is not None
    (report,) = acc.explain(y)
    assert report.connected and [step.operation for step in report.path] == ["while"]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.lax.while_loop(lambda a: jnp.all(a < 10), lambda a: a * a + 1, x)
    assert kinds(tape.explain(y, x)) == [("not differentiable",)]


def test_a_part_that_leaves_for_python_is_noted():
    w = tf.Variable(5.0)
    with tf.autodiff.ForwardAccumulator(w, tf.constant(1.0)) as acc:
        misfit = 3.0 * w**2
        penalty = 0.04 * float(w**2)
        loss = misfit + penalty
    assert acc.jvp(loss).numpy() == 30.0
    (report,) = acc.explain(loss)
    assert report.connected and report.kinds == ("python",)


def test_what_is_no_tensor_is_refused():
    with tf.autodiff.ForwardAccumulator(tf.constant(1.0), tf.constant(1.0)) as acc:
        pass
    with pytest.raises(TypeError, match="`target` should be a Tensor, .* but holds <object .* of type 'object'"):
        acc.explain(object())
