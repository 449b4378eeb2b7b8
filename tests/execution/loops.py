"""Random training loops, in which steps differ from one another in many ways, with what runs ahead and without: they agree.

    python -m tests.execution.loops [programs] [seed] [--x64] [--default]

A program is a block of random operations over variables, arrays, constants and Python numbers, which comes back 24 times. In some
steps something is otherwise (`WAYS`). Compared are each value, gradient, None and exception, and what the variables hold at the
end. `--default`: plans begin as for users, only earlier; else at the second sighting. Exit status: how many programs differ.
"""

import contextlib
import random
import sys

import jax
import jax.numpy as jnp
import numpy as np

import tapejax as tf
from tapejax.execution import speculation

STEPS, SIZE = 24, 3


class Stopped(Exception):
    pass


@tf.custom_gradient
def half_as_steep(x):
    return tf.sin(x), lambda dy: dy * 0.5


@jax.custom_jvp
def steeper(x):
    return jnp.sin(x) * 2.0


steeper.defjvp(lambda primals, tangents: (steeper(*primals), tangents[0] * jnp.cos(primals[0]) * 3.0))
staged = tf.function(lambda x: tf.sin(x) * x + 1.0)
jitted = jax.jit(lambda x: jnp.tanh(x) * x + 0.5)


def of_jax(fn):
    return lambda *tensors: tf.convert_to_tensor(fn(*[tf.convert_to_tensor(x)._array for x in tensors]))


UNARY = [
    *(
        tf.sin,
        tf.tanh,
        tf.square,
        tf.sigmoid,
        tf.stop_gradient,
        tf.identity,
        tf.nn.relu,
        tf.nn.softplus,
        tf.nn.softmax,
        tf.cumsum,
    ),
    *(
        lambda x: x**2,
        lambda x: -x,
        lambda x: 1.0 / (x * x + 1.0),
        lambda x: x / 3.0,
        lambda x: x + 0.0,
        lambda x: tf.floor(x / 0.1),
    ),
    *(lambda x: tf.gather(x, tf.argsort(x)), lambda x: tf.reverse(x, [0]), lambda x: x + tf.reduce_sum(x), tf.sort),
    *(
        lambda x: tf.concat([x[1:], x[:1]], 0),
        lambda x: tf.stack([x[0], x[2], x[1]]),
        lambda x: tf.where(x > 0.05, x, 0.1 * x),
    ),
    *map(
        of_jax,
        (
            jnp.cos,
            jax.nn.silu,
            jax.nn.gelu,
            jitted,
            lambda x: x[jnp.array([2, 0, 1])],
            lambda x: jnp.sqrt(jnp.abs(x) + 0.1),
        ),
    ),
]
BINARY = [
    *(lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x - y, tf.maximum, tf.minimum, lambda x, y: x / (2 + y * y)),
    *(lambda x, y: tf.where(x > y, x, y * 0.5), lambda x, y: x * tf.reduce_mean(y), tf.math.squared_difference),
    *map(of_jax, (lambda x, y: jnp.arctan2(x, y + 3.0), lambda x, y: jnp.hypot(x + 2.0, y))),
]
# What is no plain operation: rules, calls, control flow, JAX's own derivatives.
UNUSUAL = [
    *(
        half_as_steep,
        staged,
        lambda x: tf.map_fn(lambda row: row * 2.0, x),
        of_jax(steeper),
        of_jax(jax.checkpoint(jitted)),
    ),
    lambda x: tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * 0.9), [tf.constant(0), x])[1],
    of_jax(lambda x: jax.lax.scan(lambda total, row: (total + row, total * row), jnp.zeros((), x.dtype), x)[1]),
    of_jax(lambda x: jax.vmap(lambda row: row * x[0])(x)),
    of_jax(lambda x: jax.grad(lambda z: jnp.sum(jnp.sin(z) * z))(x)),
]
# In which a step may differ from the usual one, and of those the ones that compile much.
WAYS = (
    "another_line number type_of_the_number variables_swapped one_variable_twice assigned_before assigned_inside assigned_after "
    "stopped reset watched late ends_early raises order twice_a_source cotangent zeros target precision debug_nans new_variables "
    "not_watched donated fresh_array branch"
).split()
RARE = "jacobian as_function nested outer gradient_inside no_jit forward".split()
FIXED = 8  # how many values there are before the first line: see `Loop.pool`


def line(draw, k):
    operand = lambda: draw.randrange(FIXED + k) if k and draw.random() < 0.7 else draw.randrange(FIXED)  # noqa: E731
    kind = draw.choices([BINARY, UNARY, UNUSUAL], [5, 5, 1])[0]
    return draw.choice(kind), *[operand() for _ in range(2 if kind is BINARY else 1)]


def otherwise(draw, lines):
    """The program with one line, or its end, otherwise."""
    lines, k = list(lines), draw.randrange(len(lines))
    kind = draw.randrange(3)
    if kind == 0:
        lines[k] = line(draw, k)
    elif kind == 1 and k > 3:
        del lines[k:]
    else:
        lines.append(line(draw, len(lines)))
    return lines


class Loop:
    """A program, its variables and data, and how often and in which ways its steps differ."""

    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.dtype = np.dtype("float64" if jax.config.jax_enable_x64 else "float32")
        self.lines = [line(draw, k) for k in range(draw.randint(4, 14))]
        self.variables = [tf.Variable(self.array()) for _ in range(3)]
        self.parameter, self.constant, self.buffer = jnp.asarray(self.array()), tf.constant(self.array()), self.array()
        self.data, self.number = tf.constant(self.array()), round(draw.uniform(-1, 1), 1)
        self.fresh, self.trained, self.persistent = draw.random() < 0.5, draw.random() < 0.5, draw.random() < 0.2
        self.rate, self.favourites = draw.choice([0.1, 0.3, 0.6]), draw.sample(WAYS, 4)
        self.others = [otherwise(draw, self.lines) for _ in range(2)]

    def array(self):
        return np.array([self.draw.uniform(-1, 1) for _ in range(SIZE)], self.dtype)

    def ways(self):
        found = set()
        while self.draw.random() < self.rate and len(found) < 3:
            usual = self.favourites if self.draw.random() < 0.7 else WAYS
            found.add(self.draw.choice(RARE if self.draw.random() < 0.1 else usual))
        return found

    def pool(self, ways):
        """What lines read: three variables, an array, a tensor, a constant, a number, and an array of NumPy's."""
        u, v, w = self.variables
        if "variables_swapped" in ways:
            u, v = v, u
        if "one_variable_twice" in ways:
            v = u
        number = self.number + 0.5 if "number" in ways else self.number
        if "type_of_the_number" in ways:
            number = self.draw.choice([np.float32, int, lambda x: np.array(x, self.dtype)])(number)
        data = tf.constant(self.array()) if self.fresh else self.data
        if "fresh_array" in ways:
            self.buffer[:] = self.array()  # in the same memory
        return [u, v, w, self.parameter, data, self.constant, number, self.buffer]

    def step(self):
        """What one step gives: a list of arrays, of None, and of the class of an exception."""
        ways = self.ways()
        if "new_variables" in ways:
            self.variables[self.draw.randrange(3)] = tf.Variable(self.array())
        if "assigned_before" in ways:
            self.draw.choice(self.variables).assign(self.array())
        try:
            with contextlib.ExitStack() as modes:
                if "precision" in ways:
                    modes.enter_context(jax.default_matmul_precision("highest"))
                if "no_jit" in ways:
                    modes.enter_context(jax.disable_jit())
                return [sorted(ways), *self.block(ways)]
        except (Stopped, FloatingPointError) as error:
            return [sorted(ways), type(error).__name__]
        finally:
            for variable in self.variables:  # so that nothing overflows
                variable.assign(tf.clip_by_value(variable, -2.0, 2.0))

    def block(self, ways):
        draw, pool = self.draw, self.pool(ways)
        lines = draw.choice(self.others) if "another_line" in ways else self.lines
        at = draw.randrange(len(lines))
        with contextlib.ExitStack() as around:
            outer = around.enter_context(tf.GradientTape(persistent=True)) if "outer" in ways else None
            tangent = tf.constant(self.array())
            forward = (
                around.enter_context(tf.autodiff.ForwardAccumulator(pool[0], tangent)) if "forward" in ways else None
            )
            asks_twice = self.persistent or bool(ways & {"as_function", "gradient_inside"})
            with tf.GradientTape(asks_twice, watch_accessed_variables="not_watched" not in ways) as tape:
                tape.watch([pool[3], pool[1]])
                if "watched" in ways:
                    tape.watch(pool[4])
                values = self.run(lines, pool, ways, at, tape)
                loss = tf.reduce_sum(values[-1] * values[-2])
            if "assigned_after" in ways:
                pool[0].assign(self.array())
            found = self.asked(tape, loss, values, pool, ways, asks_twice)
            if outer is not None:
                found.append(outer.gradient(loss, pool[:5]))
            if forward is not None:
                found.append(forward.jvp([loss, values[-1]]))
        return [loss, values, found]

    def run(self, lines, pool, ways, at, tape):
        """The values of the lines."""
        draw, values = self.draw, []
        for k, (operation, *operands) in enumerate(lines):
            here = k == at
            if here and "assigned_inside" in ways:
                pool[0].assign(self.array())
            if here and "reset" in ways:
                tape.reset()
            if here and values and "late" in ways:
                tape.watch(values[-1])
            if here and "raises" in ways:
                raise Stopped
            if "ends_early" in ways and k > max(1, at):
                break
            modes = contextlib.ExitStack()
            if "stopped" in ways and here:
                modes.enter_context(tape.stop_recording())
            if "debug_nans" in ways and k >= at:
                modes.enter_context(jax.debug_nans(True))
            with modes:
                inputs = [[*pool, *values][i] for i in operands]
                if not all(isinstance(x, (tf.Tensor, tf.Variable)) for x in inputs):
                    inputs = [tf.broadcast_to(tf.cast(x, self.dtype.name), [SIZE]) for x in inputs]
                y = tf.clip_by_value(tf.convert_to_tensor(operation(*map(tf.convert_to_tensor, inputs))), -3.0, 3.0)
                if here and "branch" in ways and float(y[0]) > 0.1:
                    y = y * 2.0
            if here and "donated" in ways:
                jax.jit(lambda x: x + 1, donate_argnums=0)((y * 1.0)._array)
            if here and "nested" in ways:
                with tf.GradientTape() as inner:
                    inner.watch(y)
                    z = tf.sin(y) * y + pool[0]
                y = y + inner.gradient(z, y)
            if here and "gradient_inside" in ways:
                gradient = tape.gradient(y, pool[0])
                y = y if gradient is None else y + tf.clip_by_value(gradient, -1.0, 1.0)
            values.append(y)
        return values if len(values) > 1 else [*values, draw.random() * values[0]]

    def asked(self, tape, loss, values, pool, ways, asks_twice):
        draw = self.draw
        sources = [*pool[:5], values[0]]
        if "order" in ways:
            draw.shuffle(sources)
        if "twice_a_source" in ways:
            sources.append(sources[0])
        target = draw.choice([values[-1], [loss, values[-1]], [loss, pool[0]], values[0]]) if "target" in ways else loss
        if "jacobian" in ways:
            return [tape.jacobian(values[-1], sources)]
        weight = tf.constant(draw.uniform(0.5, 2), self.dtype) if "cotangent" in ways and target is loss else None
        unconnected = "zero" if "zeros" in ways else "none"
        gradients = tape.gradient(target, sources, output_gradients=weight, unconnected_gradients=unconnected)
        found = [gradients]
        if asks_twice:
            found.append(tape.gradient(values[-1], sources))
        if "as_function" in ways:
            found.append(tape.as_function(loss, pool[0])(pool[0]))
        if self.trained and "order" not in ways:
            for variable, gradient in zip(self.variables, gradients, strict=False):
                if gradient is not None:  # by its sign alone, so that no rounding adds up
                    variable.assign_sub(0.02 * tf.sign(tf.round(1000.0 * gradient)))
        return found


def numbers(tree):
    """`tree` with NumPy's arrays in the place of tensors and variables."""
    if isinstance(tree, (list, tuple)):
        return [numbers(x) for x in tree]
    return tree if tree is None or isinstance(tree, str) else np.array(tree)


def results(seed, early):
    """What each step of the program gives, and how often a plan answered; `early` as in `speculation`."""
    answered, answer, before = [], speculation.FollowedBlock.answer, speculation.early
    speculation._plans.clear()
    speculation._sightings.clear()
    speculation.early, speculation.begun = early, False
    speculation.FollowedBlock.answer = lambda *args: answered.append(answer(*args)) or answered[-1]
    try:
        tf.random.set_seed(seed)
        loop = Loop(seed)
        return [numbers(loop.step()) for _ in range(STEPS)] + [numbers(loop.variables)], len(answered) - answered.count(
            None
        )
    finally:
        speculation.FollowedBlock.answer, speculation.early = answer, before
        speculation._plans.clear()
        speculation._sightings.clear()


def differences(x, y, path=""):
    """Where two results of a program differ, in words. Last digits may: NumPy evaluates some operations, for a while."""
    if type(x) is not type(y):
        return [f"{path}: {x} and ahead {y}"]
    if isinstance(x, list):
        if len(x) != len(y):
            return [f"{path}: {len(x)} and ahead {len(y)} values"]
        return [line for k, pair in enumerate(zip(x, y, strict=True)) for line in differences(*pair, f"{path}.{k}")]
    if not isinstance(x, np.ndarray):
        return [] if x == y else [f"{path}: {x} and ahead {y}"]
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return [f"{path}: {x.dtype}{x.shape} and ahead {y.dtype}{y.shape}"]
    precision = 3e-5 if x.dtype.itemsize <= 4 else 3e-10
    size = max(1e-2, np.abs(x[np.isfinite(x)]).max(initial=0)) if x.dtype.kind == "f" else 0
    close = np.isclose(x, y, rtol=precision, atol=precision * size, equal_nan=True).all()
    return [] if close else [f"{path}: {x} and ahead {y}"]


def check(seed, early=True):
    """The differences between a program with plans and without, and how often one of them answered."""
    expected, _ = results(seed, None)
    found, answered = results(seed, early)
    return differences(expected, found), answered


def main(arguments):
    count, first = ([int(x) for x in arguments if x.isdigit()] + [50, 0])[:2] if arguments else (50, 0)
    if "--x64" in arguments:
        jax.config.update("jax_enable_x64", True)
    if "--default" in arguments:
        speculation.COMPILE, speculation.COMPILE_KIND, speculation.COMPILE_STEP = 500, 60, 10
    bad = answers = 0
    for seed in range(first, first + count):
        different, answered = check(seed, early="--default" not in arguments)
        answers += answered
        if different:
            bad += 1
            print(f"program {seed}:", *different[:3], sep="\n    ", flush=True)
    print(f"{count} programs, {bad} differ; plans answered {answers} times")
    return bad


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
