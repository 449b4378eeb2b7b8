"""How the arguments of a function with a custom gradient may come: by position, by keyword, by default, in structures."""

from harness import error_of, parity

KEYWORDS = (
    "keywords of a custom gradient are bound to its parameters; TensorFlow leaves them out, and refuses them in a graph"
)


def scaled(tf, record=None):
    """x * y, whose gradients are 100 and 200 times what comes back."""

    @tf.custom_gradient
    def f(x, y=2.0, *, z=None):
        def grad(d):
            if record is not None:
                record.append(1)
            return [d * 100.0, d * 200.0, d * 300.0][: 2 if z is None else 3]

        return x * y, grad

    return f


def gradients(tf, call, compiled=False):
    found = []
    return error_of(lambda: found.append(_gradients(tf, call, compiled))) or found


def _gradients(tf, call, compiled):
    def step(p, q):
        with tf.GradientTape() as tape:
            tape.watch([p, q])
            out = call(p, q)
        return out, tape.gradient(out, [p, q])

    return (tf.function(step) if compiled else step)(tf.constant(2.0), tf.constant(3.0))


@parity
def test_positions(tf):
    """All by position."""
    return [gradients(tf, scaled(tf), compiled) for compiled in (False, True)]


@parity(differs=KEYWORDS)
def test_all_by_keyword(tf):
    """Both arguments, in any order."""
    f = scaled(tf)
    return gradients(tf, lambda p, q: f(x=p, y=q)), gradients(tf, lambda p, q: f(y=q, x=p))


@parity(differs=KEYWORDS)
def test_by_position_and_keyword(tf):
    """The first by position; a keyword-only one."""
    f = scaled(tf)
    return gradients(tf, lambda p, q: f(p, y=q)), gradients(tf, lambda p, q: f(p, 2.0, z=q))


@parity(differs=KEYWORDS)
def test_keywords_in_a_graph(tf):
    """Inside a `function`."""
    f = scaled(tf)
    return gradients(tf, lambda p, q: f(x=p, y=q), True)


@parity
def test_a_keyword_that_has_no_gradient(tf):
    """A gradient function that returns gradients of what came by position alone, as TensorFlow wants it."""

    @tf.custom_gradient
    def clipped(x, low, high=1.0, name=None):
        return x + 0.0, lambda d: (tf.clip_by_value(d, low, high), None)

    @tf.custom_gradient
    def scaled(x, by=None):
        return x * by, lambda d: d * 7.0

    @tf.custom_gradient
    def defaults(x, by=2.0):
        return x * by, lambda d: d * 7.0

    return [
        gradients(tf, lambda p, q: clipped(p * 3.0, -0.5, high=0.5)),
        gradients(tf, lambda p, q: clipped(p * 3.0, -0.5, high=0.5, name="c")),
        gradients(tf, lambda p, q: scaled(p, by=tf.constant(5.0))),
        gradients(tf, lambda p, q: defaults(p)),
        gradients(tf, lambda p, q: defaults(p, 5.0)),
        gradients(tf, lambda p, q: tf.grad_pass_through(tf.clip_by_value)(p, clip_value_min=0.0, clip_value_max=1.0)),
    ]


@parity(differs=KEYWORDS)
def test_a_tensor_by_keyword_needs_a_gradient(tf):
    """One gradient for two tensors that came by keyword."""

    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda d: d * 7.0

    return gradients(tf, lambda p, q: f(x=p, y=q))


@parity(differs=KEYWORDS)
def test_methods_lists_and_nested_rules(tf):
    """A method, a structure by keyword, a rule within a rule, a function of any keywords."""

    class Gate:
        @tf.custom_gradient
        def __call__(self, x, gate):
            return x * gate, lambda d: (d * 100.0, d * 200.0)

    @tf.custom_gradient
    def of_list(parts, scale):
        return parts[0] * parts[1], lambda d: ([d * 10.0, d * 20.0], None)

    @tf.custom_gradient
    def anything(*args, **kwargs):
        return args[0] * kwargs["b"], lambda d: (d * 10.0, d * 20.0)

    inner = scaled(tf)

    @tf.custom_gradient
    def outer(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            out = inner(y=y, x=x)
        return out, lambda d: tape.gradient(out, [x, y], output_gradients=d)

    gate = Gate()
    return [
        gradients(tf, lambda p, q: gate(p, gate=q)),
        gradients(tf, lambda p, q: of_list(parts=[p, q], scale=1.0)),
        gradients(tf, lambda p, q: anything(p, b=q)),
        gradients(tf, lambda p, q: outer(y=q, x=p)),
    ]


@parity(differs=KEYWORDS)
def test_variables_by_keyword(tf):
    """A Variable that comes by keyword is an argument; one that is read is among `variables`."""
    w = tf.Variable(5.0)

    @tf.custom_gradient
    def f(x, v):
        return x * v * w, lambda d, variables=None: ((d * 10.0, d * 20.0), [d * 30.0 for _ in variables])

    v, x = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(v=v, x=x)
    found = []
    return error_of(lambda: found.append(tape.gradient(y, [x, v, w]))) or found


@parity(differs=KEYWORDS)
def test_recomputed_with_keywords(tf):
    """The function of `recompute_grad` has gradients of its keywords."""
    f = tf.recompute_grad(lambda x, y, power=2: x * y**power)
    return [gradients(tf, lambda p, q: f(y=q, x=p), compiled) for compiled in (False, True)], gradients(
        tf, lambda p, q: f(p, y=q, power=3)
    )


@parity
def test_recomputed_arguments_that_do_not_count(tf):
    """Zeros, not None, for what the function does not use."""
    f = tf.recompute_grad(lambda x, y: x * x)
    return gradients(tf, f), gradients(tf, f, compiled=True)


@parity
def test_a_wrong_call(tf):
    """An argument that is missing, one too many, an unknown keyword: as Python says it."""
    f = scaled(tf)
    return [error_of(f), error_of(f, 1.0, 2.0, 3.0), error_of(lambda: f(1.0, w=2.0)), error_of(lambda: f(1.0, x=2.0))]
