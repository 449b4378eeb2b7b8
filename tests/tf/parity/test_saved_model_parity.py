"""``tf.saved_model``: what is saved, what the loaded object can do, what is refused."""

import collections
import os
import tempfile

import numpy as np
from harness import error_of, parity


def roundtrip(tf, module, **options):
    with tempfile.TemporaryDirectory() as folder:
        assert tf.saved_model.save(module, folder, **options) is None
        return tf.saved_model.load(folder)


def layer(tf):
    class Dense(tf.Module):
        def __init__(self, ins, outs, name):
            super().__init__(name=name)
            self.w = tf.Variable(np.arange(1.0, 1.0 + ins * outs, dtype="float32").reshape(ins, outs), name="w")
            self.b = tf.Variable(tf.ones([outs]), name="b")

        def __call__(self, x):
            return x @ self.w + self.b

    return Dense


def network(tf):
    Dense = layer(tf)

    class Net(tf.Module):
        def __init__(self):
            super().__init__(name="net")
            self.layers = [Dense(2, 3, "first"), Dense(3, 1, "second")]
            self.calls = tf.Variable(0, trainable=False, name="calls")
            self.extra = {"scale": tf.Variable(5.0, name="scale")}
            self.number, self.text = 3, "text"

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def __call__(self, x):
            self.calls.assign_add(1)
            return self.layers[1](tf.nn.relu(self.layers[0](x)))

        @tf.function
        def scaled(self, x, double=False):
            y = x * self.extra["scale"]
            return {"y": y * 2.0 if double else y, "x": [x]}

        @tf.function
        def untraced(self, x):
            return x

    return Net()


@parity
def test_a_network(tf):
    """Variables, lists, dicts and functions come back; Python's numbers and texts do not."""
    net = network(tf)
    net.calls.assign(7)
    loaded = roundtrip(tf, net)
    x = tf.constant([[1.0, -2.0], [0.5, 4.0]])
    return (
        [loaded(x), net(x)],
        [loaded.layers[0].w, loaded.layers[1].b, loaded.extra["scale"], loaded.calls],
        [v.trainable for v in (loaded.layers[0].w, loaded.calls)],
        [v.name for v in (loaded.layers[0].w, loaded.extra["scale"])],
        [hasattr(loaded, name) for name in ("number", "text", "layers", "extra", "untraced")],
        len(loaded.layers),
    )


@parity
def test_any_batch_size(tf):
    """A size that was None is any size."""
    loaded = roundtrip(tf, network(tf))
    return [loaded(tf.ones([n, 2])) for n in (1, 3, 7)], loaded.calls


@parity
def test_gradients_of_a_loaded_function(tf):
    """First and second order, by variables and arguments."""
    loaded = roundtrip(tf, network(tf))
    x = tf.constant([[1.0, 2.0]])
    variables = [loaded.layers[0].w, loaded.layers[1].b, loaded.calls]
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = loaded(x) ** 2
        d = inner.gradient(y, x)
    return inner.gradient(y, variables), d, outer.gradient(d, [x, loaded.layers[0].w])


@parity
def test_which_variables_of_a_loaded_function_are_watched(tf):
    """The trainable ones that the program touches."""
    loaded = roundtrip(tf, network(tf))
    with tf.GradientTape() as tape:
        loaded(tf.ones([1, 2]))
    return sorted(v.name for v in tape.watched_variables())


@parity
def test_training_a_loaded_model(tf):
    """A loaded model can be trained further."""
    loaded = roundtrip(tf, network(tf))
    x, variables, losses = tf.constant([[0.1, 0.2], [0.3, -0.1]]), [loaded.layers[0].w, loaded.layers[0].b], []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loaded(x) ** 2)
        for v, g in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(0.01 * g)
        losses.append(loss)
    return losses, variables


@parity
def test_several_traces(tf):
    """Each trace is there; Python values choose among them."""
    net = network(tf)
    two, three = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])
    net.scaled(two)
    net.scaled(two, double=True)
    net.scaled(three)
    loaded = roundtrip(tf, net)
    results = [
        loaded.scaled(two),
        loaded.scaled(two, double=True),
        loaded.scaled(two, True),
        loaded.scaled(x=three, double=False),
        loaded.scaled([3.0, 4.0]),
        loaded.scaled(np.array([5.0, 6.0], "float32")),
    ]
    return [sorted(result.items()) for result in results]


@parity
def test_calls_that_fit_no_trace(tf):
    """There is no Python to trace anew."""
    net = network(tf)
    net.scaled(tf.constant([1.0, 2.0]))
    loaded = roundtrip(tf, net)
    return (
        error_of(loaded.scaled, tf.constant([1.0, 2.0, 3.0])),
        error_of(loaded.scaled, tf.constant([1, 2])),
        error_of(loaded.scaled, tf.constant([1.0, 2.0]), double=True),
        error_of(loaded.scaled),
        error_of(loaded.untraced, tf.constant(1.0)),
        error_of(loaded, tf.ones([1, 3])),
    )


@parity
def test_functions_as_attributes(tf):
    """A compiled function may be an attribute like others."""
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([], tf.float32)])
    module.many = [tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([None])])]
    loaded = roundtrip(tf, module)
    loaded.v.assign(10.0)
    return loaded.f(tf.constant(3.0)), loaded.f(2.0), loaded.many[0](tf.ones([2])), module.v


@parity
def test_a_function_of_any_rank(tf):
    """TensorSpec(None): scalars, vectors, matrices."""
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec(None, tf.float32)])
    loaded = roundtrip(tf, module)
    x = tf.ones([2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    return loaded.f(3.0), loaded.f(tf.ones([2])), y, loaded.f(tf.ones([1, 2, 1])), tape.gradient(y, [x, loaded.v])


@parity
def test_two_open_sizes(tf):
    """A matrix product of open sizes, and a sum of two that must agree."""
    module = tf.Module()
    spec = tf.TensorSpec([None, None], tf.float32)
    module.product = tf.function(lambda x, y: x @ y, input_signature=[spec, tf.TensorSpec([None, 2], tf.float32)])
    module.total = tf.function(
        lambda x, y: tf.reduce_sum(x + y, axis=0), input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])]
    )
    loaded = roundtrip(tf, module)
    return loaded.product(tf.ones([4, 3]), tf.ones([3, 2])), loaded.total(tf.ones([5]), tf.ones([5]))


@parity
def test_nested_arguments_and_results(tf):
    """Structures are part of the signature."""
    Pair = collections.namedtuple("Pair", "left right")
    module = tf.Module()
    signature = [{"a": tf.TensorSpec([2]), "b": [tf.TensorSpec([], tf.int32)]}]
    module.f = tf.function(
        lambda d: (d["a"] * 2.0, {"n": [d["b"][0] + 1], "none": None}, Pair(d["a"], d["b"])), input_signature=signature
    )
    loaded = roundtrip(tf, module)
    result = loaded.f({"a": tf.constant([1.0, 2.0]), "b": [tf.constant(3)]})
    return result[0], result[1]["n"], result[1]["none"], list(result[2]), result[2].left


@parity
def test_captured_tensors(tf):
    """A tensor that the function closed over is saved with it."""
    table = tf.constant([10.0, 20.0, 30.0])
    module = tf.Module()
    module.f = tf.function(lambda i: tf.gather(table, i), input_signature=[tf.TensorSpec([None], tf.int32)])
    return roundtrip(tf, module).f(tf.constant([2, 0]))


@parity
def test_a_variable_shared_by_two_modules(tf):
    """It is one variable after loading, too."""
    Dense = layer(tf)
    module = tf.Module()
    module.a, module.b = Dense(1, 1, "a"), Dense(1, 1, "b")
    module.b.w = module.a.w
    loaded = roundtrip(tf, module)
    loaded.a.w.assign([[9.0]])
    return loaded.b.w, loaded.a.w is loaded.b.w


@parity
def test_control_flow_and_state(tf):
    """Conditions, loops and assignments are part of the program."""
    module = tf.Module()
    module.v = tf.Variable(1.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x):
        module.v.assign_add(1.0)
        y = tf.cond(x > 0.0, lambda: x * module.v, lambda: -x)
        return tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + y), (tf.constant(0), tf.constant(0.0)))[1]

    module.f = f
    loaded = roundtrip(tf, module)
    return loaded.f(2.0), loaded.f(-2.0), loaded.f(2.0), loaded.v, module.v


@parity
def test_signatures(tf):
    """Functions by name, which take keywords and return a dict."""
    net = network(tf)
    net.both = tf.function(lambda x, factor: {"y": x * factor, "x": x})
    concrete = net.both.get_concrete_function(tf.TensorSpec([2], tf.float32), 3.0)
    nested = net.scaled.get_concrete_function(tf.TensorSpec([2], tf.float32))
    loaded = roundtrip(tf, net, signatures={"call": net.__call__, "both": concrete})
    call, both = loaded.signatures["call"], loaded.signatures["both"]
    return (
        sorted(loaded.signatures),
        sorted(both(x=tf.constant([1.0, 2.0])).items()),
        error_of(roundtrip, tf, net, signatures=nested),
        call(x=tf.ones([2, 2])),
        call(tf.ones([1, 2])),
        [(key, spec.shape, spec.dtype) for key, spec in call.structured_input_signature[1].items()],
        [(key, spec.shape, spec.dtype, spec.name) for key, spec in call.structured_outputs.items()],
    )


@parity
def test_the_default_signature(tf):
    """The only function with an input signature is the one to serve."""
    net = network(tf)
    loaded = roundtrip(tf, net)
    one = roundtrip(tf, net, signatures=net.__call__)
    return list(loaded.signatures), list(one.signatures), one.signatures["serving_default"](x=tf.ones([1, 2]))


@parity
def test_a_custom_gradient_is_kept(tf):
    """By default, to the second order."""

    @tf.custom_gradient
    def clip(x):
        return x * 1.0, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    module = tf.Module()
    module.f = tf.function(lambda x: clip(x * x), input_signature=[tf.TensorSpec([], tf.float32)])
    loaded = roundtrip(tf, module, options=tf.saved_model.SaveOptions())
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = loaded.f(x) * 5.0
        d = inner.gradient(y, x)
    return y, d, outer.gradient(d, x), tf.saved_model.SaveOptions().experimental_custom_gradients


@parity
def test_what_cannot_be_saved(tf):
    """An object that is no Module; a function that reads a variable which nobody holds."""
    v, module = tf.Variable(1.0), tf.Module()
    module.f = tf.function(lambda x: x * v, input_signature=[tf.TensorSpec([])])
    with tempfile.TemporaryDirectory() as folder:
        return error_of(tf.saved_model.save, object(), folder), error_of(tf.saved_model.save, module, folder)


@parity
def test_directories_without_a_model(tf):
    """Missing, empty and foreign ones."""
    with tempfile.TemporaryDirectory() as folder:
        foreign = os.path.join(folder, "foreign")
        os.makedirs(foreign)
        with open(os.path.join(foreign, "saved_model.pb"), "wb") as file:
            file.write(b"no model")
        load = tf.saved_model.load
        return error_of(load, os.path.join(folder, "missing")), error_of(load, folder), error_of(load, foreign)


@parity
def test_saving_over_an_older_model(tf):
    """The newer one replaces it."""
    module = tf.Module()
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for value in (1.0, 2.0):
            module.v = tf.Variable(value)
            module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([])])
            tf.saved_model.save(module, folder)
            loaded = tf.saved_model.load(folder)
            results.append(loaded.f(3.0))
    return results


@parity
def test_sizes_of_any_batch(tf):
    """What is computed of the shape of a batch of any size is a size, and a tensor too."""

    class Sizes(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2, 2], tf.float32)])
        def __call__(self, x):
            shape = tf.shape(x)
            batch = shape[0]
            return {
                "flat": tf.reshape(x, [batch, 4]) + tf.zeros([batch, 4]) + tf.cast(batch, tf.float32),
                "rest": tf.reshape(x, [batch, -1]),
                "joined": tf.reshape(x, tf.concat([shape[:1], [4]], 0)),
                "stacked": tf.reshape(x, tf.stack([batch * 2, 2])),
                "tiled": tf.tile(tf.ones([1, 2]), [batch, 1]),
                "wide": tf.broadcast_to(tf.constant([1.0, 2.0]), [batch, 2]),
                "filled": tf.fill([2 * batch - 1], 7.0),
                "mean": tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32),
                "known": tf.reduce_prod(shape[1:]),
                "shape": shape,
            }

    loaded = roundtrip(tf, Sizes())
    return [sorted(loaded(tf.reshape(tf.range(4.0 * n), [n, 2, 2])).items()) for n in (1, 3)]
