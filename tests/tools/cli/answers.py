"""Answers to the notebooks' exercises, as a table: right ones that are written differently than the folded one, and wrong ones,
each with a word of the message that it has to get."""

from __future__ import annotations

RIGHT: dict[str, list[str]] = {
    "guides/turn-1": [
        "predicted = dict(a=1, b=None, c=None, d=-1, e=None)",
        "predicted = {**dict.fromkeys('bce'), 'a': tf.constant(1.0), 'd': np.float32(-1.0)}",
    ],
    "guides/turn-2": [
        """
def batch_hessian(f, x):
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        slopes = inner.gradient(f(x), x)
    return tf.einsum("aiaj->aij", outer.jacobian(slopes, x))""",
        "batch_hessian = lambda f, x: jax.vmap(jax.hessian(lambda row: jnp.asarray(f(row[None]))[0]))(jnp.asarray(x))",
    ],
    "tape_or_functional/slope": [
        """
def slope(at):
    v = tf.Variable(at)
    with tf.GradientTape(persistent=True) as t:
        value = tf.square(v) * tf.sin(v)
    return t.gradient(value, v)""",
        """
def slope(x):
    x = jnp.asarray(x)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([x])
        value = jnp.sin(x) * x * x
    (found,) = tape.gradient(value, [x])
    return float(found)""",
        """
def slope(x):
    tape = tf.GradientTape()
    with tape:
        tape.watch(x)
        first, second = x * x, jnp.sin(x)
        both = {"y": first * second}
    return tape.gradient(both["y"], x)""",
        """
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.jit(lambda x: x**2 * jnp.sin(x))(x)
    return tape.jacobian(y, x, unconnected_gradients="zero")""",
        """
@tf.function
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2 * tf.sin(x)
    return jax.grad(tape.as_function(y, x))(x)""",
    ],
    "tape_or_functional/predicted": [
        "predicted = dict(tape=None, jax=0)",
        'predicted = {"tape": "none", "jax": tf.constant([0.0])}',
        'predicted = {"jax": jnp.zeros(()), "tape": "None"}',
        'predicted = {"tape": None, "jax": -0.0}',
    ],
    "tape_or_functional/middle": [
        "middle = jax.linearize(lambda h: jnp.sin(h) * x, h)[1](1.0)",
        "middle = jax.grad(lambda parts: jnp.sin(parts['h']) * parts['x'])({'h': h, 'x': x})['h']",
        "middle = jax.vjp(lambda h: x * jnp.sin(h), h)[1](1.0)[0]",
        "middle = float(jax.grad(lambda v: jnp.sin(v) * 1.5)(2.25))",
        "middle = jax.grad(lambda h, x: jnp.sin(h) * x, argnums=0)(h, x)",
        "middle = jnp.cos(h) * x",
    ],
    "0_a_tape_from_scratch/by-hand": ["by_hand = (math.cos(2) + 3, 2)", "by_hand = np.array([2.584, 2.0])"],
    "0_a_tape_from_scratch/gradient": [
        """
def gradient(target, sources):
    adjoints = {target: 1.0}
    for entry in TAPE[::-1]:
        upstream = adjoints.get(entry[0])
        if upstream is None:
            continue
        for x, local in zip(*entry[1:]):
            adjoints.setdefault(x, 0.0)
            adjoints[x] += upstream * local
    return [adjoints.get(x, None) for x in sources]""",
    ],
    "0_a_tape_from_scratch/more-rules": [
        """
def divide(a, b):
    quotient = a / b
    return quotient, (1 / b, -quotient / b)
def power(n):
    def rule(a):
        return a**n, [n * a**n / a if a else float(n == 1)]
    return rule
def absolute(a):
    return abs(a), [(a > 0) - (a < 0)]
exponential = lambda a: (np.exp(a), np.exp([a]))""",
    ],
    "0_a_tape_from_scratch/hessian-times": [
        """
def hessian_times(f, values, direction):
    TAPE[:] = []
    numbers = list(map(Number, map(Dual, values, direction)))
    return np.array([g.tangent for g in gradient(f(*numbers), numbers)])""",
    ],
    "1_first_tape/cell-19": [
        "factor = jnp.cos(1.0)",
        "factor = np.float64(0.5403)",
        "factor = tf.cos(tf.constant(1.0))",
    ],
    "1_first_tape/cell-44": [
        "guess = np.arange(4, 0, -1)",
        "guess = tf.constant([4, 3, 2, 1])",
        "guess = (4, 3, 2, 1)",
    ],
    "1_first_tape/train": [
        """
def train(rate, steps):
    def loss_of(v, h):
        return jnp.mean((h + v * times - 0.5 * g * times**2 - heights) ** 2)
    w, losses = (jnp.float32(0.0), jnp.float32(0.0)), []
    for _ in range(steps):
        loss, slopes = jax.value_and_grad(loss_of, argnums=(0, 1))(*w)
        losses.append(loss)
        w = jax.tree.map(lambda w, g: w - rate * g, w, slopes)
    return jnp.array(losses)""",
    ],
    "1_first_tape/optimizer": [
        """
class Momentum:
    def __init__(self, variables, rate, decay):
        self.variables, self.rate, self.decay = variables, rate, decay
        self.speeds = {}

    def apply(self, gradients):
        for i, (w, g) in enumerate(zip(self.variables, gradients)):
            self.speeds[i] = self.decay * self.speeds.get(i, 0.0) - self.rate * g
            w.assign(w + self.speeds[i])""",
    ],
    "2_tape_and_functional/best-step-found": ["best = (2.0**-11, 2.0**-25.5)", "best = np.sqrt([2.0**-22, 2.0**-51])"],
    "2_tape_and_functional/cell-18": [
        "power = sum(t * r for t, r in zip(torque, rates))",
        "power = jnp.vdot(rates, torque)",
    ],
    "2_tape_and_functional/hvp": [
        "hvp = lambda f, x, v: jax.jvp(jax.grad(f), (x,), (v,))[1]",
        "hvp = lambda f, x, v: jax.grad(lambda x: jnp.vdot(jax.grad(f)(x), v))(x)",
        "hvp = lambda f, x, v: jax.vjp(jax.grad(f), x)[1](v)[0]",
        """
def hvp(f, x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slope = inner.gradient(y, x)
    return outer.gradient(slope, x, output_gradients=v)""",
    ],
    "2b_where_they_differ/log-cosh": [
        """
@tf.custom_gradient
def log_cosh(x):
    def backward(bar):
        return tf.tanh(x) * bar
    return tf.nn.softplus(-2.0 * tf.abs(x)) + tf.abs(x) - np.log(2.0), backward""",
    ],
    "2b_where_they_differ/unit": [
        """
def length(x):
    return x / jnp.linalg.norm(x)
unit = jax.custom_vjp(length)
unit.defvjp(lambda x: jax.vjp(length, x), lambda pull, w: pull(w))""",
        """
unit = jax.custom_vjp(lambda x: x / jnp.sqrt(x @ x))
unit.defvjp(lambda x: (unit(x), x), lambda x, w: (w / jnp.sqrt(x @ x) - x * (x @ w) / (x @ x) ** 1.5,))""",
    ],
    "3_beyond_the_gradient/cell-10": [
        """
def sums(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)
def along(f, x):
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        y = f(x)
    return accumulator.jvp(y)""",
        """
sums = lambda f, x: jax.vjp(lambda x: jnp.asarray(f(x)), jnp.asarray(x))[1](jnp.ones_like(jnp.asarray(f(x))))[0]
along = lambda f, x: jax.jvp(lambda x: jnp.asarray(f(x)), [jnp.asarray(x)], [jnp.asarray(x)])[1]""",
    ],
    "3_beyond_the_gradient/reverse": [
        "reverse_gradient = lambda x, strength: tf.stop_gradient(x + strength * x) - strength * x",
    ],
    "3_beyond_the_gradient/penalty": [
        """
def slope_penalty(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tf.reduce_sum(tape.gradient(y, x) ** 2) / x.shape[0]""",
    ],
    "4_why_is_my_gradient_none/cell-15": ["have_one = set('w')", "have_one = {name for name in ('w',)}"],
    "4_why_is_my_gradient_none/cell-19": ["guess = 6", "guess = float(early)", "guess = np.array(6.0)"],
    "4_why_is_my_gradient_none/cell-79": ["guess = 1"],
    "5_port_a_program/cell-36": [
        "def count_right(weights, points, labels): return int(np.sum((logits_of(weights, points) > 0) == labels))",
        "count_right = lambda w, p, l: jnp.count_nonzero((logits_of(w, p) > 0) == (l == 1))",
    ],
    "6_keras_flax_equinox/cell-16": ["guess = type(equinox_model)"],
    "6_keras_flax_equinox/cell-33": [
        "away = tape.gradient(loss, [points])[0]",
        "away = np.array(tape.gradient(loss, points))",
    ],
    "7_how_the_tape_works/rules": [
        """
rules = {
    "sin": lambda bar, x: (bar * jnp.cos(x),),
    "reduce_sum": lambda bar, x: (jnp.broadcast_to(bar, x.shape),),
    "exp": lambda bar, x: jax.vjp(jnp.exp, x)[1](bar),
    "multiply": lambda bar, a, b: jax.vjp(jnp.multiply, a, b)[1](bar),
    "true_divide": lambda bar, a, b: (bar / b, -(bar / b) * (a / b)),
    "matmul": lambda bar, a, b: (jnp.einsum("ik,jk->ij", bar, b), jnp.einsum("ij,ik->jk", a, bar)),
}""",
    ],
    "8_what_a_gradient_costs/matmul-flops": ["matmul_flops = lambda m, k, n: np.array([2, 4]) * m * k * n"],
    "8_what_a_gradient_costs/multiplications": [
        """
def multiplications(sizes):
    forward = reverse = 0
    for m, n in zip(sizes[1:], sizes[2:]):
        forward += sizes[0] * m * n
    for m, n in zip(sizes[:-1], sizes[1:-1]):
        reverse += sizes[-1] * m * n
    return [forward, reverse]""",
    ],
    "9_gradients_without_a_formula/kepler-check": [
        "rule = lambda upstream, x, m, e: [upstream / (1 - e * jnp.cos(x)), upstream * jnp.sin(x) / (1 - e * jnp.cos(x))]",
    ],
    "9_gradients_without_a_formula/adjoint-check": [
        """
def adjoint_rates(f, y, adjoint, theta):
    return [-bar for bar in jax.vjp(f, y, theta)[1](adjoint)]""",
    ],
    "10_when_gradients_lie/seven-check": [
        """
@tf.custom_gradient
def square_with_seven(x):
    return x**2, lambda upstream: upstream * jnp.where(x == 0.0, 7.0, 2.0 * x)""",
    ],
    "10_when_gradients_lie/log-check": [
        """
@jax.custom_jvp
def log_one_minus_exp(x):
    return jnp.where(x > -0.7, jnp.log(-jnp.expm1(x)), jnp.log1p(-jnp.exp(x)))
log_one_minus_exp.defjvps(lambda t, y, x: t * jnp.exp(x) / jnp.expm1(x))""",
    ],
    "10_when_gradients_lie/tags-check": [
        "parts = lambda x, tag: (x.value, x.tangent) if getattr(x, 'tag', 0) == tag else (x, 0.0)"
    ],
}

# {notebook/cell: [(answer, a word of the message)]}
WRONG: dict[str, list[tuple[str, str]]] = {
    "guides/turn-1": [
        ('predicted = {"a": None, "b": None, "c": None, "d": -1.0, "e": None}', "for a: the path through `tf.floor`"),
        ('predicted = {"a": 1.0, "b": 1.0, "c": 1.0, "d": -1.0, "e": 5.0}', "for b"),
        ('predicted = {"a": 1.0}', "with the keys a to e"),
    ],
    "guides/turn-2": [
        (
            """
def batch_hessian(f, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slopes = inner.gradient(y, x)
    return outer.jacobian(slopes, x)""",
            "the batch in it twice",
        ),
        (
            """
def batch_hessian(f, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slopes = inner.gradient(y, x)
    return outer.gradient(slopes, x)""",
            "`gradient` in the place of a Jacobian",
        ),
    ],
    "tape_or_functional/slope": [
        (
            """
def slope(x):
    with tf.GradientTape() as tape:
        y = x**2 * jnp.sin(x)
    return tape.gradient(y, x)""",
            "watch x",
        ),
        (
            """
def slope(x):
    y = x**2 * jnp.sin(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(y, x)""",
            "in the block",
        ),
        ("slope = lambda x: jax.grad(lambda x: x**2 * jnp.sin(x))(x)", "no tape"),
        (
            """
def slope(x):
    with tf.GradientTape() as tape:
        y = lambda x: x**2 * jnp.sin(x)
    return (y(x + 1e-3) - y(x - 1e-3)) / 2e-3""",
            "no tape gave them",
        ),
    ],
    "tape_or_functional/predicted": [
        ('predicted = {"tape": 0, "jax": 0}', "no"),
        ('predicted = {"tape": "None", "jax": "None"}', "never None"),
        ('predicted = {"tape": 1.0, "jax": 0.0}', "flat"),
    ],
    "tape_or_functional/middle": [
        ("middle = tape", "a number"),
        ("middle = by_tape", "the tape's own answer"),
        ("middle = jax.grad(lambda x: jnp.sin(x * x) * x)(1.5)", "along both paths"),
        ("middle = None", "None"),
    ],
    "0_a_tape_from_scratch/by-hand": [
        ("by_hand = [3.0, 2.0]", "takes one of them"),
        ("by_hand = [3 * math.cos(2), 2.0]", "added, not multiplied"),
        ("by_hand = [2.0, 3 + math.cos(2)]", "reversed"),
        ("by_hand = 2.584", "two numbers"),
    ],
    "0_a_tape_from_scratch/gradient": [
        ("gradient = lambda target, sources: [TAPE[-1][2][0] for _ in sources]", "the gradient of a * b"),
        ("gradient = lambda target, sources: 1.0", "a list with an adjoint for each"),
        (
            """
def gradient(target, sources):
    bar = {target: 1.0}
    for result, inputs, derivatives in TAPE:
        if result in bar:
            for x, derivative in zip(inputs, derivatives):
                bar[x] = bar.get(x, 0.0) + bar[result] * derivative
    return [bar.get(x) for x in sources]""",
            "read from its end",
        ),
        (
            """
def gradient(target, sources):
    bar = {target: 1.0}
    for result, inputs, derivatives in reversed(TAPE):
        for x, derivative in zip(inputs, derivatives):
            bar[x] = bar[result] * derivative
    return [bar[x] for x in sources]""",
            "A dictionary was asked for a key",
        ),
    ],
    "0_a_tape_from_scratch/operators": [
        (
            """
class Operators:
    __add__ = __radd__ = lambda self, other: self.apply(add, self, other)
    __sub__ = __rsub__ = lambda self, other: self.apply(subtract, self, other)
    __mul__ = __rmul__ = lambda self, other: self.apply(multiply, self, other)""",
            "as they were written",
        ),
    ],
    "0_a_tape_from_scratch/record": [
        (
            """
def record(rule, *inputs):
    numbers = [Number(x) for x in inputs]
    value, derivatives = rule(*(x.value for x in numbers))
    TAPE.append((Number(value), numbers, derivatives))
    return TAPE[-1][0]""",
            "calls itself without end",
        ),
    ],
    "0_a_tape_from_scratch/push": [
        (
            """
def push(rule, *inputs):
    value, derivatives = rule(*(x.value for x in inputs))
    return Dual(value, sum(d * x.tangent for d, x in zip(derivatives, inputs)))""",
            "A plain number came",
        ),
    ],
    "0_a_tape_from_scratch/more-rules": [
        (
            """
divide = lambda a, b: (a / b, [1 / b, -a / b**2])
power = lambda a, n: (a**n, [n * a ** (n - 1)])
absolute = lambda a: (abs(a), [1.0 if a > 0 else -1.0])
exponential = lambda a: (math.exp(a), [math.exp(a)])""",
            "power gets n alone",
        ),
    ],
    "0_a_tape_from_scratch/train": [
        (
            "train = lambda loss_of, data, weights, epochs, rate: from_scratch.train(loss_of, data, weights, epochs, -rate)",
            "subtracted",
        ),
    ],
    "0b_functional_ad_from_scratch/push": [
        (
            """
def push(tag, rule, *inputs):
    value, derivatives = rule(*(x.value if has(x, tag) else x for x in inputs))
    return Dual(value, sum(d * x.tangent for d, x in zip(derivatives, inputs) if has(x, tag)), tag)""",
            "add by weighted_sum",
        ),
    ],
    "0b_functional_ad_from_scratch/jvp": [
        (
            "jvp = lambda f, primals, tangents: f([Dual(x, t, next(TAGS)) for x, t in zip(primals, tangents)])",
            "`f(*xs)`",
        ),
        (
            "jvp = lambda f, primals, tangents: f(*(Dual(x, t, TAGS) for x, t in zip(primals, tangents)))",
            "`next(TAGS)`",
        ),
    ],
    "0b_functional_ad_from_scratch/linearize-cell": [
        (
            """
def linearize(f, *primals):
    inputs = [Unknown([]) for _ in primals]
    value, tangent = jvp(f, primals, inputs)
    return value, Linear(inputs, inputs[0].rows, [tangent])""",
            "the same list `rows`",
        ),
        (
            """
def linearize(f, *primals):
    rows = []
    inputs = [Unknown(rows) for _ in primals]
    value, tangent = jvp(f, primals, inputs)
    return value, Linear(inputs, rows, [tangent])""",
            "three elements",
        ),
    ],
    "0b_functional_ad_from_scratch/evaluate": [
        (
            """
def evaluate(linear, *tangents):
    known = dict(zip(linear.inputs, tangents))
    for result, weights, unknowns in linear.rows:
        known[result] = weighted_sum(weights, unknowns)
    return [known[x] for x in linear.outputs]""",
            "an Unknown came out",
        ),
    ],
    "0b_functional_ad_from_scratch/transpose-cell": [
        (
            """
def transpose(linear):
    rows = []
    inputs = [Unknown(rows) for _ in linear.outputs]
    arriving = dict(zip(linear.outputs, inputs))
    for result, weights, unknowns in reversed(linear.rows):
        for w, x in zip(weights, unknowns):
            arriving[x] = arriving.get(x, 0.0) + w * arriving[result]
    return Linear(inputs, rows, [arriving[x] for x in linear.inputs])""",
            "`weighted_sum` writes a row",
        ),
    ],
    "0b_functional_ad_from_scratch/vjp-and-grad": [
        (
            """
vjp = transformations.vjp
grad = lambda f: lambda x, *others: jvp(f, (x, *others), (1.0, *[0.0] * len(others)))[1]""",
            "goes forward",
        ),
        (
            """
vjp = transformations.vjp
grad = lambda f, *primals: vjp(f, *primals)[1](1.0)[0]""",
            "grad gets f alone",
        ),
    ],
    "1_first_tape/cell-19": [
        ("factor = np.sin(1.0)", "the sine itself"),
        ("factor = np.cos(0.5)", "of double = 2α"),
        ("factor = 2 * np.cos(1.0)", "another step"),
        ("factor = 14.6789 / 7.931", "what went in divided by what came out"),
        ("factor = -np.cos(1.0)", "sign"),
        ("factor = [np.cos(1.0)]", "take what is in it"),
        ("factor = np.cos", "a number"),
    ],
    "1_first_tape/cell-44": [
        ("guess = [1.0, 1.0, 1.0, 1.0]", "not on its own alone"),
        ("guess = [1, 2, 3, 4]", "sums of the rows"),
        ("guess = [5, 11, 18, 26]", "this is y"),
        ("guess = [8, 6, 4, 2]", "2 times"),
        ("guess = [-4, -3, -2, -1]", "sign"),
        ("guess = [0, 0, 0, 0]", "zero"),
        ("guess = [[4, 3, 2, 1]]", "take what is in it"),
        ("guess = tape.jacobian", "four numbers"),
    ],
    "1_first_tape/train": [
        ("train = lambda rate, steps: None", "the loss before each step"),
        ("train = lambda rate, steps: [float(np.mean((-0.5 * g * times**2 - heights) ** 2))] * steps", "do not change"),
        ("train = lambda rate, steps: [0.0] * steps", "zero"),
    ],
    "1_first_tape/optimizer": [
        (
            """
class Momentum:
    def __init__(self, variables, rate, decay):
        self.variables, self.rate, self.decay = variables, rate, decay
        self.speeds = [0.0 for _ in variables]

    def apply(self, gradients):
        for i, g in enumerate(gradients):
            self.speeds[i] = self.decay * self.speeds[i] - self.rate * g
            self.variables[i] = self.variables[i] + self.speeds[i]""",
            "has not moved",
        ),
        (
            """
class Momentum:
    def __init__(self, variables, rate, decay):
        self.variables, self.rate = variables, rate
    def apply(self, gradients):
        for w, g in zip(self.variables, gradients):
            w.assign_sub(self.rate * g)""",
            "the speed of the step before",
        ),
        (
            """
class Momentum:
    def __init__(self, variables, rate, decay): pass
    def apply(self, gradients): pass""",
            "has not moved",
        ),
    ],
    "2_tape_and_functional/best-step-found": [
        ("best = [2.0**-24, 2.0**-53]", "too small"),
        ("best = [0.1, 0.1]", "too large"),
        ("best = [2.0**-25.5, 2.0**-11]", "float32 comes first"),
        ("best = [0.0, 0.0]", "not positive"),
        ("best = 2.0**-11", "a list of two steps"),
    ],
    "2_tape_and_functional/cell-18": [
        ("power = torque * rates", "add them up"),
        ("power = rates @ angles", "Not right"),
        ("power = -(torque @ rates)", "sign"),
        ("power = 2 * (torque @ torque) / 2", "by itself"),
        ("power = [torque @ rates]", "take what is in it"),
    ],
    "2_tape_and_functional/hvp": [
        (
            """
def hvp(f, x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
    return outer.gradient(inner.gradient(y, x), x, output_gradients=v)""",
            "inside the outer block",
        ),
        (
            """
def hvp(f, x, v):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)
        slope = inner.gradient(y, x)
    return outer.gradient(slope, x, output_gradients=v)""",
            "watch its source",
        ),
        ("hvp = lambda f, x, v: jax.jvp(jax.grad(f), x, v)[1]", "tuples or lists"),  # a forgotten tuple
        ("hvp = lambda f, x, v: jax.vjp(jax.grad(f), x)[1](v)", "take what is in it"),  # a tuple too many
        ("hvp = lambda f, x, v: jax.jvp(jax.grad(f), [x], [v])", "a tuple of length 2"),
        ("hvp = lambda f, x, v: jax.jvp(jax.grad(f), [x], [v])[0]", "this is the gradient"),
        ("hvp = lambda f, x, v: jax.grad(f)(x) * v", "element by element"),
        ("hvp = lambda f, x, v: jax.hessian(f)(x)", "Hessian itself"),
        ("hvp = lambda f, x, v: jnp.zeros(4)", "zero"),
        ("hvp = lambda f, x, v: jax.hessian(f)(x) @ v", "47 × 47"),
        ("hvp = lambda f, x, v: 2 * jax.jvp(jax.grad(f), [x], [v])[1]", "2 times"),
    ],
    "2b_where_they_differ/log-cosh": [
        ("log_cosh = lambda x: (jnp.abs(x), lambda upstream: upstream * jnp.tanh(x))", "@tf.custom_gradient"),
        (
            """
@tf.custom_gradient
def log_cosh(x):
    return jnp.logaddexp(x, -x) - jnp.log(2.0), lambda upstream: jnp.tanh(x)""",
            "upstream",
        ),
        (
            """
@tf.custom_gradient
def log_cosh(x):
    return jnp.log(jnp.cosh(x)), lambda upstream: upstream * jnp.tanh(x)""",
            "finite",
        ),
    ],
    "2b_where_they_differ/unit": [
        (
            """
@jax.custom_vjp
def unit(x):
    return x / jnp.linalg.norm(x)
def unit_forward(x):
    return unit(x), x
def unit_backward(x, w):
    length = jnp.linalg.norm(x)
    u = x / length
    return ((jnp.eye(x.size) - jnp.outer(u, u)) @ w / length,)
unit.defvjp(unit_forward, unit_backward)""",
            "a matrix of 47 × 47",
        ),
        (
            """
unit = jax.custom_vjp(lambda x: x / jnp.linalg.norm(x))
unit.defvjp(lambda x: (unit(x), x), lambda x, w: w / jnp.linalg.norm(x))""",
            "(cotangent,)",
        ),
        (
            """
unit = jax.custom_vjp(lambda x: x / jnp.linalg.norm(x))
unit.defvjp(lambda x: (unit(x), x), lambda x, w: (w / jnp.linalg.norm(x),))""",
            "along u",
        ),
        (
            """
unit = jax.custom_vjp(lambda x: x)
unit.defvjp(lambda x: (x, x), lambda x, w: (w,))""",
            "x itself",
        ),
    ],
    "3_beyond_the_gradient/cell-10": [
        (
            """
sums = lambda f, x: tf.reduce_sum(jax.jacobian(lambda x: jnp.asarray(f(x)))(jnp.asarray(x)), axis=0)
along = lambda f, x: jnp.asarray(x) @ jax.jacobian(lambda x: jnp.asarray(f(x)))(jnp.asarray(x))""",
            "transpose times x",
        ),
        (
            """
sums = lambda f, x: jax.jacobian(lambda x: jnp.asarray(f(x)))(jnp.asarray(x))
along = sums""",
            "Jacobian itself",
        ),
        (
            """
sums = lambda f, x: jax.jvp(lambda x: jnp.asarray(f(x)), [jnp.asarray(x)], [jnp.ones(x.shape)])[1]
along = sums""",
            "sums of the rows",
        ),
    ],
    "3_beyond_the_gradient/reverse": [
        ("reverse_gradient = lambda x, strength: x", "passes as it is"),
        ("reverse_gradient = lambda x, strength: (x, lambda upstream: -strength * upstream)", "@tf.custom_gradient"),
        ("reverse_gradient = lambda x, strength: 2 * tf.stop_gradient(x) - x", "strength is missing"),
        ("reverse_gradient = lambda x, strength: tf.stop_gradient(x)", "None"),
    ],
    "3_beyond_the_gradient/penalty": [
        (
            """
def slope_penalty(f, x):
    with tf.GradientTape() as tape:
        y = f(x)
    return tf.reduce_mean(tf.reduce_sum(tape.gradient(y, x) ** 2, axis=1))""",
            "no tape watches",
        ),
        (
            """
def slope_penalty(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tf.reduce_mean(tape.gradient(y, x) ** 2)""",
            "mean over all elements",
        ),
        (
            """
def slope_penalty(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tf.reduce_sum(tape.gradient(y, x) ** 2, axis=1)""",
            "for each example",
        ),
    ],
    "4_why_is_my_gradient_none/cell-15": [("have_one = {'w', 'b'}", "1 too many"), ("have_one = ['w']", "a set")],
    "4_why_is_my_gradient_none/cell-19": [
        ("guess = None", "None"),
        ("guess = 12.0", "before the watch"),
        ("guess = [6.0]", "take what is in it"),
    ],
    "4_why_is_my_gradient_none/cell-79": [("guess = None", "None"), ("guess = 'one'", "a number")],
    "4_why_is_my_gradient_none/repair-check": [
        ("gradients = [tf.constant(0.0)] * 2", "zero"),
        ("gradients = tf.constant(1.0)", "two numbers"),
    ],
    "5_port_a_program/cell-36": [
        ("def count_right(weights, points, labels): return jnp.sum(logits_of(weights, points) > 0)", "taken for a 1"),
        (
            "def count_right(weights, points, labels): return jnp.sum((logits_of(weights, points) > 0.5) == (labels > 0.5))",
            "compared with 0.5",
        ),
        ("def count_right(weights, points, labels): return 367", "after training"),
        (
            "def count_right(weights, points, labels): return jnp.sum((logits_of(weights, points) > 0) != (labels > 0.5))",
            "classified wrongly",
        ),
        ("count_right = lambda w, p, l: jnp.mean((logits_of(w, p) > 0) == (l > 0.5))", "this is a share"),
        ("count_right = lambda w, p, l: (logits_of(w, p) > 0) == (l > 0.5)", "an array of shape"),
    ],
    "5_port_a_program/adam": [
        ("adam = lambda weights, state, gradients: weights", "(weights, state)"),
        (
            "adam = lambda weights, state, gradients: (jax.tree.map(lambda w, g: w - 0.001 * g, weights, gradients), state)",
            "step 1",
        ),
    ],
    "6_keras_flax_equinox/cell-16": [("guess = list", "Not right"), ("guess = equinox_model", "a class")],
    "6_keras_flax_equinox/cell-33": [
        ("away = -tape.gradient(loss, points)", "sign"),
        ("away = jnp.zeros_like(points)", "zero"),
        ("away = tape.gradient(loss, points).T", "transpose"),
    ],
    "7_how_the_tape_works/rules": [
        (
            """
rules = dict.fromkeys(["sin", "reduce_sum", "exp", "multiply", "true_divide", "matmul"], lambda bar, *inputs: [bar])""",
            "a cotangent of its shape",
        ),
        ("rules = {'sin': 1, 'reduce_sum': 2, 'exp': 3}", "a function (bar, *inputs)"),
    ],
    "8_what_a_gradient_costs/matmul-flops": [
        ("matmul_flops = lambda m, k, n: (m * k * n, 2 * m * k * n)", "no additions"),
        ("matmul_flops = lambda m, k, n: (2 * m * k * n, 2 * m * k * n)", "one product"),
        ("matmul_flops = lambda m, k, n: (2 * m * k * n, 2 * m * k * n)", "backward"),
        ("matmul_flops = lambda m, k, n: 6 * m * k * n", "two numbers"),
    ],
    "8_what_a_gradient_costs/gradient-of-product": [
        (
            """
def gradient_of_product(xs):
    return [functools.reduce(lambda a, b: a * b, xs[:i] + xs[i + 1 :]) for i in range(len(xs))]""",
            "at most",
        ),
    ],
    "9_gradients_without_a_formula/kepler-check": [
        ("rule = lambda upstream, x, m, e: (upstream, upstream * jnp.sin(x))", "division by"),
        ("rule = lambda upstream, x, m, e: (1 / (1 - e * jnp.cos(x)), jnp.sin(x) / (1 - e * jnp.cos(x)))", "left out"),
        (
            "rule = lambda upstream, x, m, e: (-upstream / (1 - e * jnp.cos(x)), -upstream * jnp.sin(x) / (1 - e * jnp.cos(x)))",
            "sign",
        ),
        ("rule = lambda upstream, x, m, e: upstream / (1 - e * jnp.cos(x))", "two cotangents"),
    ],
    "9_gradients_without_a_formula/adjoint-check": [
        ("adjoint_rates = lambda f, y, adjoint, theta: jax.vjp(f, y, theta)[1](adjoint)", "sign"),
        ("adjoint_rates = lambda f, y, adjoint, theta: -jax.vjp(f, y)[1](adjoint)", "Asked for"),
    ],
    "10_when_gradients_lie/seven-check": [
        ("square_with_seven = lambda x: x * x", "where 7 is asked for"),
        ("square_with_seven = lambda x: x**2 + 7 * x", "changes the value"),
        ("square_with_seven = lambda x: x**2", "the derivative at 0"),
        ("square_with_seven = lambda x: tf.stop_gradient(x**2)", "the tape sees"),
    ],
    "10_when_gradients_lie/log-check": [
        ("log_one_minus_exp = lambda x: jnp.log(-x)", "near 0 only"),
        ("log_one_minus_exp = lambda x: -jnp.exp(x)", "far from 0 only"),
        (
            "log_one_minus_exp = lambda x: jnp.where(x > -0.7, jnp.log(-jnp.expm1(x)), jnp.log1p(-jnp.exp(x)))",
            "branch not taken",
        ),
        ("log_one_minus_exp = lambda x: jnp.log(1.0 - jnp.exp(x))", "at -80"),
        ("log_one_minus_exp = lambda x: jnp.sum(jnp.log(-jnp.expm1(x)))", "the shape of x"),
    ],
    "10_when_gradients_lie/tags-check": [
        ("parts = lambda x, tag: (getattr(x, 'value', x), getattr(x, 'tangent', 0.0))", "derivatives are confused"),
        ("parts = lambda x, tag: x", "a pair"),
    ],
    "4_why_is_my_gradient_none/loop-1-check": [
        (
            "\n"
            "losses, speed = [], tf.Variable(0.0)\n"
            "for _ in range(20):\n"
            "    with tf.GradientTape() as tape:\n"
            "        loss = tf.reduce_mean((speed * times - heights) ** 2)\n"
            "    losses.append(float(loss))\n"
            "    speed.assign_add(0.2 * tape.gradient(loss, speed))",
            "uphill",
        ),
        (
            "\n"
            "losses, speed = [], tf.Variable(0.0)\n"
            "for _ in range(20):\n"
            "    with tf.GradientTape() as tape:\n"
            "        loss = tf.reduce_sum((speed * times - heights) ** 2)\n"
            "    losses.append(float(loss))\n"
            "    speed.assign_sub(0.2 * tape.gradient(loss, speed))",
            "added up",
        ),
        (
            "\n"
            "losses, speed = [], tf.Variable(0.0)\n"
            "for _ in range(20):\n"
            "    with tf.GradientTape() as tape:\n"
            "        loss = tf.reduce_mean((speed * times - heights) ** 2)\n"
            "    losses.append(float(loss))\n"
            "    speed.assign_sub(0.1 * tape.gradient(loss, speed))",
            "half as long",
        ),
        (
            "\n"
            "losses, speed = [], tf.Variable(0.5)\n"
            "for _ in range(20):\n"
            "    with tf.GradientTape() as tape:\n"
            "        loss = tf.reduce_mean((speed * times - heights) ** 2)\n"
            "    losses.append(float(loss))\n"
            "    speed.assign_sub(0.2 * tape.gradient(loss, speed))",
            "begins elsewhere",
        ),
        (
            "\n"
            "losses, speed = [], tf.Variable(0.0)\n"
            "for _ in range(20):\n"
            "    with tf.GradientTape() as tape:\n"
            "        loss = tf.reduce_mean((speed * times - heights) ** 2)\n"
            "    losses.append(float(loss))\n"
            "    speed.assign(speed)",
            "nothing has moved",
        ),
    ],
    "8_what_a_gradient_costs/multiplications": [
        (
            "def multiplications(sizes):\n"
            "    pairs = [m * n for m, n in itertools.pairwise(sizes)]\n"
            "    return sizes[-1] * sum(pairs[:-1]), sizes[0] * sum(pairs[1:])",
            "changed places",
        ),
        (
            "def multiplications(sizes):\n"
            "    pairs = [m * n for m, n in itertools.pairwise(sizes)]\n"
            "    return sum(pairs[1:]), sum(pairs[:-1])",
            "for one vector",
        ),
        ("def multiplications(sizes): return [math.prod(sizes)] * 2", "all sizes are multiplied"),
    ],
    "8_what_a_gradient_costs/fewest-steps": [
        ("fewest_steps = lambda n, slots: n * (n - 1) // 2", "fewer than"),
        ("fewest_steps = lambda n, slots: n - 1", "too few"),
    ],
    "8_what_a_gradient_costs/fewest-multiplications": [
        ("fewest_multiplications = lambda sizes: min(multiplications(sizes))", "Other orders"),
        ("fewest_multiplications = lambda sizes: 0", "not counted"),
    ],
    "10_when_gradients_lie/root-check": [
        ("small_root = lambda b, c: (-b + jnp.sqrt(b**2 - 4 * c)) / 2", "cancel"),
        ("small_root = lambda b, c: -c / b", "nearly right"),
    ],
}
