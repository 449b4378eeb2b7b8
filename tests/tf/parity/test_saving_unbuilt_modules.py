"""Saving a module whose variables are made while its function is traced."""

import tempfile

import numpy as np
from harness import error_of, parity

X = np.arange(6.0, dtype="float32").reshape(2, 3)


def saved(tf, module, use, **options):
    """What the module gives after it was saved, and what it gives loaded."""
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, **options)
        loaded = tf.saved_model.load(folder)
        return use(module), use(loaded), sorted(loaded.signatures)


def of_rows(tf, columns=3):
    return tf.function(input_signature=[tf.TensorSpec([None, columns])])


@parity
def test_variables_of_the_first_call(tf):
    """Of the module itself, in lists and dicts; with a signature and without."""

    class Direct(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @of_rows(tf)
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.fill([3, 2], 0.5))
                self.more = [{"b": tf.Variable([1.0, 2.0])}]
            return x @ self.w + self.more[0]["b"]

    direct = Direct()
    return (
        saved(tf, Direct(), lambda m: m(tf.constant(X))),
        saved(tf, direct, lambda m: m(tf.constant(X)), signatures=direct.__call__),
    )


@parity
def test_variables_of_the_first_call_of_a_list_of_modules(tf):
    """That are made when they are first called, too."""

    class Linear(tf.Module):
        def __init__(self, size, name=None):
            super().__init__(name)
            self.size, self.built = size, False

        def __call__(self, x):
            if not self.built:
                self.w, self.built = tf.Variable(tf.ones([x.shape[-1], self.size]), name="w"), True
            return x @ self.w

    class Network(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Linear(4), Linear(2)]

        @of_rows(tf)
        def predict(self, x):
            for layer in self.layers:
                x = tf.nn.relu(layer(x))
            return x

        @of_rows(tf)
        def doubled(self, x):
            return self.predict(x) * 2.0

    network = Network()
    return (
        saved(tf, Network(), lambda m: [m.predict(tf.constant(X)), m.doubled(tf.constant(X))]),
        saved(tf, network, lambda m: m.predict(tf.constant(X)), signatures={"p": network.predict}),
    )


@parity
def test_state_of_the_first_call(tf):
    """Tracing assigns nothing: a counter that the trace makes is saved as it begins."""

    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.total = None

        @tf.function(input_signature=[tf.TensorSpec([])])
        def add(self, x):
            if self.total is None:
                self.total = tf.Variable(0.0)
            return self.total.assign_add(x)

    counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(counter, folder)
        loaded = tf.saved_model.load(folder)
    return counter.total, loaded.add(2.0), loaded.add(2.0), counter.add(1.0)


@parity
def test_what_nobody_holds(tf):
    """A variable that is no attribute is refused, as ever; and nothing is written."""
    hidden = tf.Variable(2.0)
    module = tf.Module()
    module.f = of_rows(tf)(lambda x: x * hidden)
    with tempfile.TemporaryDirectory() as folder:
        return error_of(tf.saved_model.save, module, folder)
