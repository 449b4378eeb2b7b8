"""Wrong answers to the exercises in which a function or class is written: changes of the right one, and others.

Each change is (old, new), as text in the folded answer.
"""

from __future__ import annotations

# {notebook/cell: (changes of the folded answer, whole answers)}. The last of the whole ones are of a wrong kind.
CHANGED: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "1_first_tape/train": (
        [
            ("assign_sub", "assign_add"),
            ("reduce_mean", "reduce_sum"),
            ("rate * gradient", "0.1 * gradient"),
            ("range(steps)", "range(12)"),
            ("losses.append(float(loss))", "losses.insert(0, float(loss))"),
            ("zip([speed, start]", "zip([start, speed]"),
            ("tf.Variable(0.0), tf.Variable(0.0)", "tf.Variable(1.0), tf.Variable(0.0)"),
            ("tf.Variable(0.0), tf.Variable(0.0)", "tf.Variable(0.0), tf.constant(0.0)"),
            ("return losses", "return loss"),
        ],
        ["train = [1.0, 0.5]"],
    ),
    "1_first_tape/optimizer": (
        [
            ("self.decay * speed - ", "-"),  # no momentum
            ("self.decay * speed - self.rate * gradient", "self.decay * speed + self.rate * gradient"),
            ("self.rate * gradient", "(1 - self.decay) * self.rate * gradient"),
            ("variable.assign_add(speed)", "variable.assign_sub(self.rate * gradient)"),
            ("variable.assign_add(speed)", "variable = variable + speed"),
            (
                "variable.assign_add(speed)",
                "variable.assign_add(self.decay * speed - self.rate * gradient)",
            ),  # Nesterov
            (
                "self.speeds = [tf",
                "self.speeds = [tf.Variable(0.0)] * len(variables)\n        rest = [tf",
            ),  # one for all
            ("def apply", "def step"),
        ],
        ["Momentum = 0.9"],
    ),
    "2_tape_and_functional/hvp": (
        [
            ("ForwardAccumulator(x, v)", "ForwardAccumulator(x, x)"),
            ("accumulator.jvp(gradient)", "accumulator.jvp(y)"),
            ("return accumulator.jvp(gradient)", "return gradient * v"),
            ("return accumulator.jvp(gradient)", "return gradient"),
        ],
        [
            "hvp = lambda f, x, v: jax.hessian(f)(x) @ v",
            "hvp = lambda f, x, v: (jax.grad(f)(x + 0.01 * v) - jax.grad(f)(x - 0.01 * v)) / 0.02",
            "hvp = lambda f, x, v: jnp.stack([jax.jvp(jax.grad(f), [x], [e])[1] @ v for e in np.eye(x.size, dtype='f4')])",
            "hvp = lambda f, x, v: jnp.diag(jax.hessian(f)(x)) * v",
            "hvp = lambda f, x, v: (jax.grad(f)(x + 0.1 * v) - jax.grad(f)(x)) / 0.1",
            "hvp = lambda f, x, v: jax.grad(f)(x) @ v",
            "hvp = jnp.ones(4)",
        ],
    ),
    "2b_where_they_differ/log-cosh": (
        [
            ("lambda upstream: upstream * jnp.tanh(x)", "lambda upstream: jnp.tanh(x)"),
            ("upstream * jnp.tanh(x)", "upstream * (1.0 - jnp.tanh(x) ** 2)"),
            ("upstream * jnp.tanh(x)", "upstream / jnp.tanh(x)"),
            ("- jnp.log(2.0)", ""),
            ("value, lambda", "jnp.log(jnp.cosh(x)), lambda"),
            ("@tf.custom_gradient\n", ""),
            (", lambda upstream: upstream * jnp.tanh(x)", ""),
        ],
        [
            """
@tf.custom_gradient
def log_cosh(x):
    return x + jnp.log1p(jnp.exp(-2.0 * x)) - jnp.log(2.0), lambda upstream: upstream * jnp.tanh(x)""",  # overflows
            "log_cosh = lambda x: jnp.abs(x) + jnp.log1p(jnp.exp(-2.0 * jnp.abs(x))) - jnp.log(2.0)",
            "log_cosh = jnp.tanh(1.0)",
        ],
    ),
    "2b_where_they_differ/unit": (
        [
            (" - u * jnp.dot(u, w)", ""),
            ("jnp.dot(u, w)", "jnp.sum(u)"),
            (") / length,)", "),)"),
            (") / length,)", ") * length,)"),
            ("return x / length, (x / length, length)", "return x / length, (x, length)"),
            ("/ length,)", "/ length)"),
        ],
        ["unit = lambda x: x / jnp.linalg.norm(x)", "unit = jax.jit(lambda x: x / jnp.linalg.norm(x))"],
    ),
    "3_beyond_the_gradient/reverse": (
        [
            ("-strength", "strength"),
            ("-strength * upstream", "-upstream"),
            ("-strength * upstream", "-strength"),
            ("return x, lambda", "return -x, lambda"),
            ("return reverse(x)", "return reverse(-strength * x)"),
            ("return reverse(x)", "return x"),
            ("return x, lambda upstream: -strength * upstream", "return x"),
        ],
        ["reverse_gradient = lambda x, strength: -strength * x", "reverse_gradient = -1.0"],
    ),
    "3_beyond_the_gradient/penalty": (
        [
            ("tf.reduce_mean(", "tf.reduce_sum("),
            ("tf.reduce_sum(slopes**2, axis=1)", "slopes**2"),
            ("slopes**2", "slopes"),
            ("tf.reduce_sum(slopes**2, axis=1)", "tf.norm(slopes, axis=1)"),
            ("y = f(x)", "y = tf.reduce_mean(f(x))"),
            ("y = f(x)", "y = f(x) * (x.shape[0] / 5) ** 0.5"),
            ("tf.reduce_sum(slopes**2", "tf.reduce_sum(tf.stop_gradient(slopes)**2"),
            ("slopes**2", "slopes.numpy()**2"),
            ("    tape.watch(x)\n", ""),
        ],
        ["slope_penalty = 0.0"],
    ),
    "5_port_a_program/adam": (
        [
            ("(m / (1 - 0.9**step))", "m"),
            ("(s / (1 - 0.999**step))", "(s)"),
            ("step = step + 1", "step = step"),
            ("0.001 * g**2", "0.001 * g"),
            ("jnp.sqrt(s / (1 - 0.999**step))", "s / (1 - 0.999**step)"),
            ("jnp.sqrt(s / (1 - 0.999**step)) + 1e-8", "jnp.sqrt(s / (1 - 0.999**step) + 1e-8)"),
            ("w - 0.001", "w + 0.001"),
            ("w - 0.001", "-0.001"),  # the step without the weights
            ("w - 0.001", "0.99 * w - 0.001"),
            ("0.9 * m + 0.1 * g", "0.1 * m + 0.9 * g"),
            (", (step, means, squares)\n", ", state\n"),
            (", (step, means, squares)\n", "\n"),
        ],
        ["adam = 0.001"],
    ),
    "6_keras_flax_equinox/train": (
        [
            ("-rate * g", "rate * g"),
            ("-rate * g", "-0.5 * g"),
            ("range(steps)", "range(6)"),
            ("            tape.watch(model)\n", ""),
            ("model = eqx.apply_updates", "eqx.apply_updates"),
            ("return model, losses", "return losses, model"),
            ("return model, losses", "return model, loss"),
            ("return model, losses", "return losses"),
        ],
        ["train = lambda model, rate, steps: (model, [1.0] * steps)", "train = optax.sgd(0.1)"],
    ),
    "guides/turn-2": (
        [
            ("outer.batch_jacobian", "outer.jacobian"),
            ("outer.batch_jacobian", "outer.gradient"),
            ("return outer.batch_jacobian(slopes, x)", "return slopes"),
            ("inner.gradient", "inner.jacobian"),
            ("        outer.watch(x)\n", ""),
            ("            inner.watch(x)\n", ""),
            ("outer.batch_jacobian(slopes, x)", "tf.reduce_sum(outer.batch_jacobian(slopes, x), axis=0)"),
            ("outer.batch_jacobian(slopes, x)", "tf.linalg.diag_part(outer.batch_jacobian(slopes, x))"),
        ],
        ["batch_hessian = lambda f, x: jnp.eye(3)", "batch_hessian = 2.0"],
    ),
}


def wrong(place, right):
    """The wrong answers at a place, of which `right` is the folded answer."""
    changes, whole = CHANGED[place]
    assert all(old in right for old, _ in changes), (place, [old for old, _ in changes if old not in right])
    return [*(right.replace(old, new, 1) for old, new in changes), *whole]
