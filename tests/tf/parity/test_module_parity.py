"""``tf.Module`` and ``tf.name_scope``: names, and what is found in which order."""

import collections

from harness import error_of, parity


def dense(tf):
    class Dense(tf.Module):
        def __init__(self, ins, outs, name=None):
            super().__init__(name=name)
            with self.name_scope:
                self.w = tf.Variable(tf.ones([ins, outs]), name="w")
                self.b = tf.Variable(tf.zeros([outs]), name="b")

        def __call__(self, x):
            return x @ self.w + self.b

    return Dense


def names(values):
    return [value.name for value in values]


@parity
def test_the_order_of_variables(tf):
    """A module's own first, by attribute, then those of the modules inside, each once."""
    Dense = dense(tf)

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.z = tf.Variable(1.0, name="z")
            self.sub = Dense(1, 2, name="sub")
            self.a = tf.Variable(2.0, name="a", trainable=False)
            self.layers = [Dense(2, 2, "l0"), tf.Variable(3.0, name="inlist"), Dense(2, 1, "l1")]
            self.d = {"y": tf.Variable(1.0, name="dy"), "x": Dense(1, 1, "dx")}
            self.t = (tf.Variable(1.0, name="t0"), [tf.Variable(1.0, name="t1")])
            self.same = self.z
            self.number, self.text = 3, "text"

    net = Net()
    found = net.variables, net.trainable_variables, net.non_trainable_variables, net.submodules
    return net.name, [names(x) for x in found], [type(x) for x in found]


@parity
def test_submodules_of_submodules(tf):
    """Variables go depth first, modules level by level."""
    modules = {name: tf.Module(name=name) for name in "abcde"}
    a, b, c, d, e = modules.values()
    a.x, a.y, b.z, c.z = b, c, d, e
    for name, module in modules.items():
        module.v = tf.Variable(1.0, name=name)
    return names(a.variables), names(a.submodules)


@parity
def test_cycles_and_sharing(tf):
    """What is reached in two ways is listed once."""
    Dense = dense(tf)
    a, b, shared = tf.Module(name="a"), tf.Module(name="b"), Dense(1, 1, "shared")
    a.b, b.a, a.first, a.second, a.more = b, a, shared, shared, [shared, shared]
    a.v, b.v = tf.Variable(1.0, name="av"), tf.Variable(1.0, name="bv")
    return names(a.variables), names(a.submodules), names(b.submodules)


@parity
def test_the_order_of_attributes(tf):
    """By name, as strings sort; lists by position; dicts by key."""
    m = tf.Module()
    for name in ("b", "B", "_a", "a10", "a2"):
        setattr(m, name, tf.Variable(1.0, name=name))
    m.c = [tf.Variable(1.0, name=f"c{i}") for i in range(11)]
    m.d = {2: tf.Variable(1.0, name="two"), 10: tf.Variable(1.0, name="ten"), 1: tf.Variable(1.0, name="one")}
    return names(m.variables)


@parity
def test_other_containers(tf):
    """Named tuples and ordered dicts are looked into, plain objects and sets are not."""

    class Plain:
        pass

    Pair = collections.namedtuple("Pair", "b a")
    m, plain = tf.Module(), Plain()
    plain.v = tf.Variable(1.0, name="hidden")
    m.plain, m.numbers = plain, {1, 2}
    m.pair = Pair(tf.Variable(1.0, name="pb"), tf.Variable(1.0, name="pa"))
    m.ordered = collections.OrderedDict([("z", tf.Variable(1.0, name="z")), ("a", tf.Variable(1.0, name="a"))])
    m.queue = collections.deque([tf.Variable(1.0, name="q")])
    return names(m.variables)


@parity
def test_keys_that_cannot_be_sorted(tf):
    """There would be no order."""
    m = tf.Module()
    m.d = {1: tf.Variable(1.0), "a": tf.Variable(1.0)}
    return error_of(lambda: m.variables)


@parity
def test_variables_of_the_class(tf):
    """Only attributes of the object count, not the class's, nor properties."""

    class Net(tf.Module):
        shared = tf.Variable(1.0)

        @property
        def made(self):
            return tf.Variable(1.0)

    return names(Net().variables)


@parity
def test_later_changes(tf):
    """Nothing is remembered: the lists are made when they are asked for."""
    m = tf.Module()
    m.layers = []
    before = len(m.variables)
    m.layers.append(tf.Variable(1.0))
    m.layers.append(dense(tf)(1, 1))
    return before, len(m.variables), len(m.submodules), isinstance(m.layers, list)


@parity
def test_default_names(tf):
    """The class's name in snake_case."""
    found = []
    for name in ("MyNet", "HTTPServer", "Conv2D", "A", "my_thing", "X1Y2", "AtoZ", "_Priv"):
        module = type(name, (tf.Module,), {})()
        found.append((name, module.name, module.name_scope.name))
    return found


@parity
def test_names_that_are_no_identifiers(tf):
    """A module's name is an identifier."""
    return [error_of(tf.Module, name=name) for name in ("a b", "1a", "a/b", 3)], tf.Module(name="_a1").name


@parity
def test_with_name_scope(tf):
    """Variables made in a decorated method have the module's name before theirs."""
    Dense = dense(tf)

    class Net(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self, x):
            """Doc."""
            if not hasattr(self, "w"):
                self.w = tf.Variable(x, name="w")
                self.inner = Dense(1, 1)
            return self.w

    net = Net(name="outer")
    net(1.0)
    with tf.name_scope("top"):
        other = Net()
        other(1.0)
    return (
        [net.w.name, net.inner.w.name, net.inner.name, other.w.name, other.inner.b.name],
        [other.name_scope.name, net.name_scope.name, Net.__call__.__doc__, Net.__call__.__name__],
    )


@parity
def test_name_scopes(tf):
    """Scopes nest; a name with a slash at its end stands for itself, an empty one for the top."""
    found = []
    with tf.name_scope("a") as scope:
        found.append(scope)
        with tf.name_scope("b") as scope:
            found += [scope, tf.Variable(1.0, name="v").name, tf.Variable(1.0).name]
        with tf.name_scope("c/") as scope:
            found += [scope, tf.Variable(1.0, name="v").name]
        with tf.name_scope("") as scope:
            found += [scope, tf.Variable(1.0, name="v").name]
    found.append(tf.Variable(1.0, name="v").name)
    return found, error_of(tf.name_scope, None), error_of(tf.name_scope, 3)


@parity
def test_a_scope_after_an_error(tf):
    """The scope is left."""

    def fails():
        with tf.name_scope("a"):
            raise KeyError

    return error_of(fails), tf.Variable(1.0, name="v").name


@parity
def test_before_the_constructor_of_the_base(tf):
    """Variables are found, but there is no name yet."""

    class Net(tf.Module):
        def __init__(self):
            self.v = tf.Variable(1.0)

        @tf.Module.with_name_scope
        def f(self):
            return 1

    net = Net()
    return names(net.variables), error_of(lambda: net.name), error_of(lambda: net.name_scope), error_of(net.f)


@parity
def test_flattening_by_hand(tf):
    """What a subclass may use to find other things."""

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.list = [tf.Variable(1.0, name="v"), dense(tf)(1, 1, "d")]
            self.text = "text"

        @property
        def texts(self):
            return tuple(self._flatten(predicate=lambda x: isinstance(x, str) and not x.startswith(("net", "d"))))

        @property
        def own(self):
            return [v.name for v in self._flatten(False, lambda x: isinstance(x, tf.Variable))]

    net = Net()
    return net.texts, net.own


@parity
def test_a_module_with_a_compiled_call(tf):
    """tf.function on methods, and gradients for all variables."""
    Dense = dense(tf)

    class MLP(tf.Module):
        def __init__(self, sizes):
            super().__init__()
            self.layers = [Dense(a, b, f"layer{i}") for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:]))]

        @tf.function
        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = tf.nn.relu(layer(x))
            return self.layers[-1](x)

    mlp = MLP([2, 3, 1])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(mlp(tf.constant([[1.0, -2.0], [0.5, 4.0]])) ** 2)
    return names(mlp.variables), tape.gradient(loss, mlp.trainable_variables), len(mlp.submodules)
