"""``tf.register_tensor_conversion_function``: objects of the user's own in the place of tensors."""

import numpy as np
from harness import error_of, parity


def parameters(tf):
    """A class of positive parameters, as libraries of Gaussian processes have; what was asked of the conversion is noted."""
    asked = []

    class Parameter:
        def __init__(self, value):
            self.unconstrained = tf.Variable(np.log(value).astype("float32"))

        @property
        def value(self):
            return tf.exp(self.unconstrained)

    def convert(value, dtype=None, name=None, as_ref=False):
        asked.append([dtype is None or tf.as_dtype(dtype).name, as_ref])
        if dtype is not None and dtype != tf.float32:
            return NotImplemented
        return value.value

    tf.register_tensor_conversion_function(Parameter, convert)
    return Parameter, asked


USES = {
    "convert": lambda tf, p: tf.convert_to_tensor(p),
    "of a dtype": lambda tf, p: tf.convert_to_tensor(p, tf.float32),
    "hint": lambda tf, p: tf.convert_to_tensor(p, dtype_hint=tf.float32),
    "tensor + p": lambda tf, p: tf.constant([1.0, 2.0]) + p,
    "p - tensor": lambda tf, p: p - tf.constant([1.0, 2.0]),
    "variable * p": lambda tf, p: tf.Variable(2.0) * p,
    "p / variable": lambda tf, p: p / tf.Variable(2.0),
    "add": lambda tf, p: tf.add(p, 1.0),
    "number first": lambda tf, p: tf.maximum(1.5, p),
    "less": lambda tf, p: tf.constant([2.0, 2.0]) < p,
    "equal": lambda tf, p: tf.constant([2.0, 2.0]) == p,
    "reduce_sum": lambda tf, p: tf.reduce_sum(p),
    "exp": lambda tf, p: tf.exp(p),
    "stack": lambda tf, p: tf.stack([p, p]),
    "concat": lambda tf, p: tf.concat([p, [1.0]], 0),
    "add_n": lambda tf, p: tf.add_n([p, p]),
    "where": lambda tf, p: tf.where([True, False], p, 0.0),
    "cast": lambda tf, p: tf.cast(p, tf.float16),
    "reshape": lambda tf, p: tf.reshape(p, [-1, 1]),
    "matmul": lambda tf, p: tf.constant([[1.0, 2.0]]) @ tf.linalg.diag(p),
    "tensordot": lambda tf, p: tf.tensordot(p, p, 1),
    "gather": lambda tf, p: tf.gather(p, [1, 0]),
    "softmax": lambda tf, p: tf.nn.softmax(p),
    "map_fn": lambda tf, p: tf.map_fn(lambda x: x * 2.0, p),
    "clip": lambda tf, p: tf.clip_by_value(p, 0.0, 2.5),
    "shape": lambda tf, p: tf.shape(p),
    "Variable": lambda tf, p: tf.Variable(p).value(),
    "assign": lambda tf, p: tf.Variable([0.0, 0.0]).assign(p).value(),
}


@parity
def test_uses(tf):
    """Eagerly and in a function, with the gradient of the variable behind it."""
    Parameter, _ = parameters(tf)
    p = Parameter([2.0, 3.0])

    def use(name):
        with tf.GradientTape() as tape:
            y = USES[name](tf, p)
            loss = tf.reduce_sum(tf.cast(y, tf.float32) * 2.0)
        return y, tape.gradient(loss, p.unconstrained)

    eager = [use(name) for name in USES]
    return eager, [
        tf.function(lambda name=name: use(name))() for name in USES if "ariable" not in name and name != "assign"
    ]


@parity
def test_what_is_asked(tf):
    """A dtype is asked for where one is wanted, or a tensor stands before it."""
    Parameter, asked = parameters(tf)
    p, found = Parameter([2.0, 3.0]), []
    for name in ("convert", "of a dtype", "hint", "tensor + p", "variable * p", "add", "number first", "exp"):
        asked.clear()
        USES[name](tf, p)
        found.append(list(asked))
    return found, tf.is_tensor(p)


@parity(rtol=1e-4)
def test_a_gaussian_process(tf):
    """Its likelihood and the gradients of its parameters, in a compiled step."""
    Parameter, _ = parameters(tf)
    variance, scale, noise = Parameter(1.5), Parameter(0.7), Parameter(0.5)
    x = tf.constant(np.linspace(0.0, 1.0, 5)[:, None], tf.float32)
    y = tf.sin(6.0 * x)
    unconstrained = [p.unconstrained for p in (variance, scale, noise)]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            squares = tf.square((x - tf.transpose(x)) / scale)
            kernel = variance * tf.exp(-0.5 * squares) + noise * tf.eye(5)
            lower = tf.linalg.cholesky(kernel)
            alpha = tf.linalg.triangular_solve(lower, y)
            loss = 0.5 * tf.reduce_sum(alpha**2) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(lower)))
        gradients = tape.gradient(loss, unconstrained)
        for v, gradient in zip(unconstrained, gradients):
            v.assign_sub(0.05 * gradient)
        return loss, gradients

    return [step() for _ in range(3)]


@parity
def test_which_function(tf):
    """By priority, then by the order in which they were registered; NotImplemented passes on; subclasses count."""

    class A:
        pass

    class B(A):
        pass

    def register(kind, answer, *priority):
        tf.register_tensor_conversion_function(
            kind, lambda value, dtype=None, name=None, as_ref=False: answer(), *priority
        )

    found = []
    for kind, number, priority in ((A, 1.0, ()), (B, 2.0, ()), (B, 3.0, (10,)), ((A, int), 0.0, ())):
        found.append(error_of(register, kind, lambda number=number: tf.constant(number), *priority))
        found.append([tf.convert_to_tensor(x()) for x in (A, B)])
    register(B, lambda: NotImplemented, 1)
    return found, tf.convert_to_tensor(B()), tf.constant(1.0) + B()


@parity
def test_operators_of_its_own(tf):
    """On the left its own operator is called, on the right the tensor's; what Tensor's operators are is listed."""

    class Own:
        def __add__(self, other):
            return "its own"

        __radd__ = __add__

    tf.register_tensor_conversion_function(Own, lambda value, dtype=None, name=None, as_ref=False: tf.constant(2.0))
    listed = {"__add__", "__rmatmul__", "__getitem__", "__neg__", "__eq__", "__pow__"} <= set(
        tf.Tensor.OVERLOADABLE_OPERATORS
    )
    return Own() + tf.constant(1.0), tf.constant(1.0) + Own(), listed


@parity
def test_the_protocol(tf):
    """An object may convert itself, without being registered."""

    class Own:
        def __tf_tensor__(self, dtype=None, name=None):
            return tf.constant(2.0, dtype)

    return tf.convert_to_tensor(Own()), tf.constant(1.0) + Own(), tf.reduce_sum(Own())


@parity
def test_refusals(tf):
    """What cannot be registered, and what conversions must not do."""

    def of(answer):
        class Own:
            pass

        def convert(value, dtype=None, name=None, as_ref=False):
            return answer()

        tf.register_tensor_conversion_function(Own, convert)
        return Own()

    def fails():
        raise KeyError("its own")

    variable = tf.Variable(1.0)
    register = tf.register_tensor_conversion_function
    return [
        error_of(register, 3, lambda *_: 1),
        error_of(register, dict, 3),
        error_of(register, float, lambda *_: 1),
        error_of(register, np.ndarray, lambda *_: 1),
        error_of(register, (dict, np.float32), lambda *_: 1),
        error_of(tf.convert_to_tensor, of(lambda: 3)),
        error_of(tf.add, of(lambda: 3), 1.0),
        error_of(tf.convert_to_tensor, of(lambda: variable)),
        error_of(tf.convert_to_tensor, of(lambda: tf.constant(1.0)), tf.int32),
        error_of(tf.convert_to_tensor, of(lambda: NotImplemented)),
        error_of(lambda: tf.constant(1.0) + of(lambda: NotImplemented)),
        error_of(tf.convert_to_tensor, of(fails)),
        error_of(lambda: tf.constant(1.0) + of(fails)),
    ]
