"""``tf.function``: what is traced when, variables as state, gradients through compiled functions."""

import collections

import numpy as np
from harness import error_of, parity

# --- tracing ---------------------------------------------------------------------------------------------------------


@parity
def test_python_side_effects_happen_once_per_trace(tf):
    """The Python function runs for each new shape or dtype, not for each call."""

    @tf.function
    def double(x):
        print("tracing", x.shape, x.dtype.name)
        return x * 2

    results = [double(tf.constant(x)) for x in (1.0, 2.0, 3, 4, [1.0, 2.0], [3.0, 4.0], [1.0], [[1.0]])]
    return results, double.experimental_get_tracing_count()


@parity
def test_python_numbers_count_by_value(tf):
    """A new number is a new trace, a known one is not."""
    seen = []

    @tf.function
    def f(x, n):
        seen.append(n)
        return x * n

    results = [f(tf.constant(3.0), n) for n in (2, 3, 2, 3, 4.5, 4.5)]
    return results, seen, f.experimental_get_tracing_count()


@parity
def test_strings_none_and_flags_count_by_value(tf):
    """Defaults and keywords make no difference to the trace."""
    seen = []

    @tf.function
    def f(x, mode=None, *, flag=False):
        seen.append((mode, flag))
        return x

    one = tf.constant(1.0)
    f(one)
    f(one, None)
    f(one, mode=None)
    f(x=one)
    f(one, "a")
    f(one, mode="a")
    f(x=one, flag=True)
    return seen


@parity
def test_numpy_arguments_are_tensors(tf):
    """NumPy values count by shape and dtype."""
    seen = []

    @tf.function
    def f(x):
        seen.append((x.dtype, x.shape, isinstance(x, np.ndarray)))
        return x * 2

    values = [np.float32(1), np.float32(2), np.ones(2), np.zeros(2), np.ones((1, 2), "int32")]
    return [f(x) for x in values], seen


@parity
def test_structures_of_tensors(tf):
    """Lists, tuples, dicts and namedtuples go in and come out."""
    Point = collections.namedtuple("Point", "x y")
    seen = []

    @tf.function
    def f(a, *more, scale=2, **rest):
        seen.append((len(more), sorted(rest)))
        return {"z": a[0] * scale, "a": (a[1]["k"], [more])}, Point(rest["q"].y, rest["q"].x), None

    one, two = tf.constant(1.0), tf.constant([2.0])
    first = f([one, {"k": two}], one, q=Point(one, two))
    second = f([two, {"k": one}], scale=3, q=Point(two, one))
    third = f([one, {"k": two}], one, q=Point(one, two), scale=2)
    return first, second, third, seen


@parity
def test_the_order_of_a_dict(tf):
    """The order of keys is kept, but makes no new trace."""
    seen = []

    @tf.function
    def f(d):
        seen.append(list(d))
        return {"b": d["b"], "a": d["a"]}

    one, two = tf.constant(1), tf.constant(2)
    return f({"b": one, "a": two}), f({"a": two, "b": one}), seen


@parity
def test_numbers_in_lists_stay_python(tf):
    """Inside a structure, too, Python numbers are values and tensors are inputs."""
    seen = []

    @tf.function
    def f(xs):
        seen.append([isinstance(x, (int, float)) for x in xs])
        return xs

    return f([1, 2]), f([1, 3]), f([tf.constant(1), 2]), f([tf.constant(5), 2]), f((1.5,)), seen


@parity
def test_what_a_function_may_return(tf):
    """Numbers and arrays become tensors; None stays."""
    v = tf.Variable(2.0)
    functions = {
        "int": lambda: 1,
        "float": lambda: 1.5,
        "bool": lambda: True,
        "none": lambda: None,
        "nested": lambda: (1, [2, {"a": 3}]),
        "variable": lambda: v,
        "assigned": lambda: v.assign(3.0),
        "numpy": lambda: np.ones(2, "float32"),
        "empty": lambda: [],
        "nothing": lambda: ((), {}),
    }
    return {name: tf.function(f)() for name, f in functions.items()}


@parity
def test_what_a_function_may_not_return(tf):
    """Other objects are refused."""
    return error_of(tf.function(lambda: object())), error_of(tf.function(lambda: [tf.constant(1), len]))


@parity
def test_objects_count_by_identity(tf):
    """A Python object is a constant; changing it goes unnoticed."""

    class Options:
        def __init__(self, k):
            self.k = k

    seen = []

    @tf.function
    def f(options, x):
        seen.append(options.k)
        return x * options.k

    a, b, one = Options(2.0), Options(3.0), tf.constant(1.0)
    results = [f(a, one), f(b, one), f(a, one)]
    a.k = 5.0
    return results, f(a, one), seen


@parity
def test_functions_as_arguments(tf):
    """A function is an object like others."""
    seen = []

    @tf.function
    def f(g, x):
        seen.append("traced")
        return g(x)

    def plus(x):
        return x + 1.0

    def minus(x):
        return x - 1.0

    x = tf.constant(2.0)
    return f(plus, x), f(plus, x), f(minus, x), seen


@parity
def test_arguments_that_cannot_be_hashed(tf):
    """Nobody could tell whether they changed."""

    class Odd:
        __hash__ = None

    f = tf.function(lambda x: tf.constant(1.0))
    return error_of(f, Odd()), error_of(f, {1, 2})


@parity
def test_calls_that_do_not_fit(tf):
    """Wrong arguments are a TypeError, as in Python."""

    @tf.function
    def f(x, y):
        return x + y

    one = tf.constant(1.0)
    return (
        error_of(f),
        error_of(f, one),
        error_of(f, one, one, one),
        error_of(f, one, y=one, z=one),
        error_of(f, one, x=one),
    )


@parity
def test_an_exception_in_the_function(tf):
    """It reaches the caller; no assignment has taken place, and the next call works."""
    v = tf.Variable(1.0)

    @tf.function
    def f(x, fail):
        v.assign(x)
        if fail:
            raise KeyError("out")
        return v * 2.0

    return error_of(f, tf.constant(2.0), True), v, f(tf.constant(3.0), False), v


@parity
def test_a_tensor_that_leaks_out(tf):
    """A value of the trace is of no use outside."""
    kept = []

    @tf.function
    def f(x):
        kept.append(x * 2.0)
        return x

    f(tf.constant(1.0))
    return error_of(lambda: kept[0] + 1.0)


@parity
def test_the_name_and_doc(tf):
    """The decorated function keeps its name and docstring."""

    @tf.function
    def add(x, y=1):
        """Adds."""
        return x + y

    return add.__name__, add.__doc__, add.python_function(1, 2), add.__wrapped__(2, 3), add.input_signature


@parity
def test_decorating_with_arguments(tf):
    """The options of TensorFlow's decorator are taken."""

    @tf.function(autograph=False, reduce_retracing=True)
    def f(x):
        return x * 2.0

    g = tf.function(lambda x: x + 1.0, jit_compile=True)
    return f(tf.constant(1.0)), g(tf.constant(1.0)), tf.function(f)(tf.constant(3.0))


@parity
def test_eager_or_not(tf):
    """Inside a function nothing is eager but for init_scope."""
    seen = []

    @tf.function
    def f(x):
        seen.append((tf.executing_eagerly(), tf.inside_function()))
        with tf.init_scope():
            seen.append((tf.executing_eagerly(), tf.constant(1).numpy()))
        return x

    f(tf.constant(1.0))
    return seen, tf.executing_eagerly(), tf.inside_function()


@parity
def test_init_scope_reads_and_assigns_at_once(tf):
    """A variable has its real value there."""
    v, seen = tf.Variable(1.0), []

    @tf.function
    def f(x):
        v.assign_add(x)
        with tf.init_scope():
            seen.append(v.numpy())
            v.assign(10.0)
        return v * 1.0

    return f(tf.constant(2.0)), f(tf.constant(2.0)), v, seen


# --- variables -------------------------------------------------------------------------------------------------------


@parity
def test_state_from_call_to_call(tf):
    """Assignments last, and later values are seen."""
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        v.assign_add(x)
        v.assign(v * 2.0)
        v.assign_sub([1.0, 1.0])
        return v + 0.0

    first = f(tf.constant([1.0, 1.0]))
    v.assign([0.0, 0.0])
    return first, f(tf.constant([1.0, 1.0])), v


@parity
def test_reading_before_and_after_an_assignment(tf):
    """Program order is Python's."""
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        before = v + 0.0
        v.assign(x)
        return before, v + 0.0, v.assign_add(1.0) * 2.0, v.read_value(), v.value()

    return f(tf.constant(5.0)), f(tf.constant(7.0)), v


@parity
def test_variables_as_arguments(tf):
    """A variable is passed by reference."""

    @tf.function
    def update(v, x):
        v.assign_add(x)
        return v * 2.0

    a, b = tf.Variable(1.0), tf.Variable(10.0)
    return update(a, tf.constant(1.0)), update(b, tf.constant(1.0)), update(a, tf.constant(1.0)), a, b


@parity
def test_parts_of_a_variable(tf):
    """Slices and scatter updates."""
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f(i):
        v[1:].assign([20.0, 30.0])
        v.scatter_nd_add([[0]], [5.0])
        return v[0], tf.gather(v, i)

    return f(tf.constant([2, 1])), v


@parity
def test_creating_variables_on_the_first_call(tf):
    """Created once, kept, and initialised from the first call's arguments."""
    made = []

    @tf.function
    def f(x):
        if not made:
            made.append(tf.Variable(x * 2.0))
        return made[0].assign_add(x)

    return [f(tf.constant(x)) for x in (1.0, 2.0, 3.0)], made[0], f.experimental_get_tracing_count()


@parity
def test_creating_variables_on_every_call(tf):
    """Only singletons are allowed."""

    @tf.function
    def f(x):
        return tf.Variable(1.0) * x

    return error_of(f, tf.constant(1.0)), f.experimental_get_tracing_count()


@parity
def test_creating_variables_later(tf):
    """A later trace may create none."""
    made = []

    @tf.function
    def f(x, make):
        if make:
            made.append(tf.Variable(1.0))
        return x

    return f(tf.constant(1.0), False), error_of(f, tf.constant(1.0), True)


@parity
def test_creating_variables_in_a_nested_function(tf):
    """The outer function's first call is the inner one's, too."""
    made = []

    @tf.function
    def inner(x):
        if not made:
            made.append(tf.Variable(5.0))
        return made[0] * x

    @tf.function
    def outer(x):
        return inner(x) + 1.0

    return outer(tf.constant(2.0)), outer(tf.constant(3.0)), made[0]


@parity
def test_a_method_creates_variables_for_each_object(tf):
    """Each object has a first call of its own."""

    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones_like(x) * 3.0)
            return self.w * x

    a, b = Layer(), Layer()
    return a(tf.constant([1.0, 2.0])), b(tf.constant([1.0])), a(tf.constant([2.0, 2.0])), a.w, b.w


@parity
def test_nested_functions_share_state(tf):
    """What the inner function assigns is seen by the outer one."""
    v = tf.Variable(1.0)

    @tf.function
    def inner(x):
        v.assign_add(x)
        return v * 10.0

    @tf.function
    def outer(x):
        v.assign(v * 2.0)
        first = inner(x)
        v.assign_sub(1.0)
        return first, inner(x), v * 1.0

    return outer(tf.constant(1.0)), v, inner(tf.constant(1.0)), v


@parity
def test_integer_and_boolean_state(tf):
    """Counters and flags."""
    count, flag = tf.Variable(0, trainable=False), tf.Variable(False)

    @tf.function
    def f():
        flag.assign(tf.logical_not(flag))
        return count.assign_add(1) * 2

    return f(), f(), f(), count, flag


# --- methods ---------------------------------------------------------------------------------------------------------


@parity
def test_methods(tf):
    """Each object has traces of its own, which see its attributes as they were."""

    class Scale:
        def __init__(self, k):
            self.k = k

        @tf.function
        def __call__(self, x):
            return x * self.k

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def add(self, x):
            return x + self.k

        @staticmethod
        @tf.function
        def triple(x):
            return x * 3.0

    a, b, one = Scale(2.0), Scale(3.0), tf.constant(1.0)
    results = a(one), b(one), a.add(1.0), b.add(2.0), Scale.triple(one), a.triple(one)
    a.k = 10.0
    counts = a.add.experimental_get_tracing_count(), b.add.experimental_get_tracing_count()
    return results, a(one), a(tf.constant([1.0])), counts, a.add is a.add, a.add is b.add


@parity
def test_a_bound_method_and_a_callable_object(tf):
    """Anything callable can be compiled."""

    class Net:
        def __init__(self):
            self.v = tf.Variable(2.0)

        def __call__(self, x):
            return self.v * x

        def other(self, x):
            return self.v + x

    net = Net()
    return tf.function(net)(tf.constant(3.0)), tf.function(net.other)(tf.constant(3.0))


# --- input signatures ------------------------------------------------------------------------------------------------


@parity
def test_an_input_signature_converts(tf):
    """Numbers, lists and NumPy arrays become tensors of the dtype asked for."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        return x * 2.0, n + 1

    arguments = [([1.0, 2.0], 1), (np.array([1.0, 2.0], "float32"), np.int32(2)), ([1, 2], tf.constant(3))]
    return [f(*pair) for pair in arguments], f(n=tf.constant(4), x=tf.constant([1.0]))


@parity
def test_an_input_signature_traces_once(tf):
    """One shape and dtype, one trace."""

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def f(x):
        print("tracing")
        return x * 2.0

    return f([1.0, 2.0]), f(tf.constant([1.0, 2.0])), f(np.ones(2, "float32")), f.experimental_get_tracing_count()


@parity
def test_an_input_signature_refuses(tf):
    """What does not fit is a TypeError."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return x * 2.0

    one = tf.constant([1.0])
    return (
        error_of(f, tf.constant([1, 2])),
        error_of(f, tf.constant([[1.0]])),
        error_of(f, 1.0),
        error_of(f),
        error_of(f, one, one),
        error_of(f, "text"),
    )


@parity
def test_input_signatures_that_are_wrong(tf):
    """The signature itself is checked at the decorator."""

    def f(x, y):
        return x

    def g(x, y=3):
        return x * y

    spec = tf.TensorSpec([], tf.float32)
    return (
        error_of(lambda: tf.function(f, input_signature=[spec])),
        error_of(lambda: tf.function(f, input_signature=[1])),
        error_of(lambda: tf.function(f, input_signature=spec)),
        tf.function(g, input_signature=[spec])(2.0),
        tf.function(lambda: tf.constant(1), input_signature=())(),
    )


@parity
def test_nested_input_signatures(tf):
    """Specs may be nested as the arguments are."""

    @tf.function(input_signature=[{"a": tf.TensorSpec([2]), "b": [tf.TensorSpec([], tf.int32)]}])
    def f(d):
        return d["a"] * 2.0, d["b"][0] + 1

    return f({"a": tf.constant([1.0, 2.0]), "b": [tf.constant(1)]}), f({"a": [1.0, 2.0], "b": [1]})


# --- concrete functions ----------------------------------------------------------------------------------------------


@parity
def test_a_concrete_function(tf):
    """One trace, to be called with tensors."""

    @tf.function
    def f(x, y, flag=True, *, k=2):
        return {"a": x * 2.0 if flag else x, "b": (y * k,)}

    spec = tf.TensorSpec([1, 2], tf.float32)
    on = f.get_concrete_function(spec, tf.TensorSpec([], tf.int32))
    off = f.get_concrete_function(spec, tf.TensorSpec([], tf.int32), flag=False, k=5)
    x, n = tf.constant([[1.0, 2.0]]), tf.constant(7)
    return on(x, n), on(x, y=n), off(x, n), off(y=n, x=x), f.experimental_get_tracing_count()


@parity
def test_a_concrete_function_is_the_function_s_trace(tf):
    """The call that follows does not trace again."""

    @tf.function
    def f(x):
        return x * 2.0

    one = f.get_concrete_function(tf.constant([1.0, 2.0]))
    f(tf.constant([3.0, 4.0]))
    two = f.get_concrete_function(tf.TensorSpec([2], tf.float32))
    return f.experimental_get_tracing_count(), one is two, one(tf.constant([5.0, 6.0])), two(x=tf.constant([5.0, 6.0]))


@parity
def test_shapes_made_of_sizes_that_are_not_known(tf):
    """A list and a slice of a shape are a shape again, as libraries merge the leading dimensions."""

    def merged(x):
        leading, rest = x.shape[:2], x.shape[2:]
        size = None if None in leading else leading[0] * leading[1]
        shape = [size] + rest
        return tf.reshape(x, shape if shape.is_fully_defined() else tf.concat([[-1], tf.shape(x)[2:]], 0))

    found = []
    for sizes in ([None, None, None], [None, 3, 4], [2, 3, 4]):
        c = tf.function(merged).get_concrete_function(tf.TensorSpec(sizes))
        found.append((c.structured_outputs.shape, c(tf.ones([2, 3, 4]))))
    return found


@parity
def test_the_structure_of_a_concrete_function(tf):
    """Specs of what goes in and comes out."""
    v = tf.Variable(1.0)

    @tf.function
    def f(x, y, flag=True):
        return {"a": x * v, "b": (y,)}

    c = f.get_concrete_function(tf.TensorSpec([None, 2], tf.float32, name="input"), tf.TensorSpec([], tf.int32))
    (x, y, flag), keywords = c.structured_input_signature
    outputs = c.structured_outputs
    return (
        [(s.shape, s.dtype, s.name) for s in (x, y)],
        (flag, keywords),
        [(s.shape, s.dtype) for s in (outputs["a"], outputs["b"][0])],
        [(s.shape, s.dtype) for s in c.outputs],
        [w is v for w in c.variables],
        [w is v for w in c.trainable_variables],
        c(tf.ones([3, 2]), tf.constant(1)),
        c(tf.ones([1, 2]), tf.constant(1)),
    )


@parity
def test_a_concrete_function_refuses(tf):
    """It takes what it was made for."""

    @tf.function
    def f(x, y):
        return x * y

    c = f.get_concrete_function(tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.float32))
    x, y = tf.constant([1.0, 2.0]), tf.constant(3.0)
    return c(x, y), error_of(c, x), error_of(c), error_of(c, x, y, y), error_of(c, x, z=y)


@parity
def test_a_concrete_function_in_words(tf):
    """pretty_printed_signature and pretty_printed_concrete_signatures."""

    @tf.function
    def f(x, n=1, *, flag=True):
        return {"a": x, "b": [x, x]}

    c = f.get_concrete_function(tf.TensorSpec([2], tf.float32))
    return c.pretty_printed_signature(), str(c), f.pretty_printed_concrete_signatures()


@parity
def test_tensor_specs(tf):
    """Shape, dtype, name; equality and compatibility."""
    s = tf.TensorSpec([None, 2], tf.float32, "n")
    return (
        [repr(x) for x in (s, tf.TensorSpec([2]), tf.TensorSpec(None), tf.TensorSpec([], "int32"))],
        (s.shape, s.dtype, s.name, tf.TensorSpec(None).shape),
        [
            s.is_compatible_with(x)
            for x in (tf.ones([3, 2]), tf.ones([3]), tf.ones([1, 2], tf.int32), np.ones((3, 2), "float32"))
        ],
        [s.is_compatible_with(tf.TensorSpec(x)) for x in ([None, 2], [5, 2], [None, 3], [2])],
        [s == tf.TensorSpec([None, 2], tf.float32, "n"), s == tf.TensorSpec([None, 2]), s == 1],
        hash(s) == hash(tf.TensorSpec([None, 2], tf.float32, "n")),
        repr(tf.TensorSpec.from_tensor(tf.ones([2]), name="q")),
        repr(tf.TensorSpec.from_spec(s)),
        error_of(tf.TensorSpec, "a"),
        error_of(tf.TensorSpec, [2], "nope"),
    )


# --- gradients -------------------------------------------------------------------------------------------------------


@parity
def test_a_tape_outside(tf):
    """Gradients flow to arguments, variables and captured tensors."""
    v, c = tf.Variable(2.0), tf.constant(5.0)

    @tf.function
    def f(x):
        return tf.sin(x) * v * c

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, c])
        y = f(x) * 2.0
    watched = [w is v for w in tape.watched_variables()]
    return tape.gradient(y, [x, v, c]), watched


@parity
def test_a_tape_inside(tf):
    """The backward pass is part of the program."""
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v * x) ** 2)
        gradient = tape.gradient(loss, v)
        v.assign_sub(0.1 * gradient)
        return loss, gradient

    return [step(tf.constant([1.0, 3.0])) for _ in range(3)], v


@parity
def test_tapes_inside_and_outside(tf):
    """A gradient computed inside is differentiated outside."""
    v = tf.Variable(2.0)

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            y = v**3 * x
        return tape.gradient(y, v)

    x = tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        d = slope(x)
    return d, tape.gradient(d, v), tape.gradient(d, x)


@parity
def test_higher_derivatives_of_a_function(tf):
    """Any order, tapes outside."""

    @tf.function
    def f(x):
        return x**4 + tf.sin(x)

    x = tf.Variable(1.5)
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = f(x)
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    return y, d1, d2, third.gradient(d2, x)


@parity
def test_higher_derivatives_in_a_function(tf):
    """Any order, tapes inside, also of a nested function."""

    @tf.function
    def cube(x):
        return x**3

    @tf.function
    def curvature(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = cube(x)
            d = inner.gradient(y, x)
        return outer.gradient(d, x)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        c = curvature(x)
    return c, tape.gradient(c, x)


@parity
def test_connected_or_not(tf):
    """None is decided output by output, through the function."""
    v, w = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def f(x):
        return x * v, tf.stop_gradient(x) * w, tf.floor(x), tf.constant(1.0)

    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        ys = f(x)
    return [tape.gradient(y, [x, v, w]) for y in ys]


@parity
def test_state_stops_gradients(tf):
    """What a function assigned is a constant to those who read it later."""
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        v.assign(x * 2.0)
        return v * 5.0

    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        z = v * 7.0
    return tape.gradient(y, [x, v]), tape.gradient(z, [x, v]), v


@parity
def test_which_variables_are_watched(tf):
    """Those that the program touches and that are trainable."""
    read, assigned, frozen, other = (
        tf.Variable(1.0),
        tf.Variable(2.0),
        tf.Variable(3.0, trainable=False),
        tf.Variable(4.0),
    )

    @tf.function
    def f(x):
        assigned.assign(x)
        return read * frozen * x

    with tf.GradientTape() as tape:
        f(tf.constant(1.0))
    with tf.GradientTape(watch_accessed_variables=False) as picky:
        picky.watch(read)
        y = f(tf.constant(2.0))
    watched = [[w is v for v in (read, assigned, frozen, other)] for w in tape.watched_variables()]
    return sorted(watched), picky.gradient(y, [read, frozen])


@parity
def test_a_jacobian_through_a_function(tf):
    """jacobian and batch_jacobian, inside and outside."""

    @tf.function
    def f(x):
        return tf.stack([x[:, 0] * x[:, 1], tf.sin(x[:, 0])], axis=1)

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.batch_jacobian(y, x)

    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x), tape.batch_jacobian(y, x), inside(x)


@parity
def test_forward_mode_through_a_function(tf):
    """ForwardAccumulator, outside and inside."""
    v = tf.Variable(3.0)

    @tf.function
    def f(x):
        return x * x * v

    @tf.function
    def inside(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
            y = f(x)
        return acc.jvp(y)

    x = tf.constant([2.0, 5.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 2.0])) as acc:
        y = f(x)
    return acc.jvp(y), inside(x)


@parity
def test_stop_recording_and_output_gradients(tf):
    """The rest of the tape's interface, inside a function."""
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * v
            with tape.stop_recording():
                z = y * v
            t = y * z
        return tape.gradient(t, [x, v]), tape.gradient(y, x, output_gradients=tf.constant(3.0)), tape.gradient(z, v)

    return f(tf.constant(5.0))


@parity
def test_a_custom_gradient_in_a_function(tf):
    """It is used by tapes inside and outside."""

    @tf.custom_gradient
    def clip(x):
        return x * 1.0, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    @tf.function
    def f(x):
        return clip(x) * 10.0

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = clip(x * x)
            z = y * 5.0
        return tape.gradient(z, x)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x), inside(x)


@parity
def test_gradients_of_a_function_with_integers(tf):
    """Integer arguments and results are not connected."""

    @tf.function
    def f(x, n):
        return x * tf.cast(n, tf.float32), n + 1

    x, n = tf.constant(2.0), tf.constant(3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, m = f(x, n)
    return tape.gradient(y, x), tape.gradient([y, m], x)


# --- control flow ----------------------------------------------------------------------------------------------------


@parity(says="tf.cond")
def test_python_asks_for_a_value(tf):
    """Without AutoGraph, Python cannot branch on a tensor."""
    v = tf.Variable(1.0)

    def branch(x):
        if x > 0:
            return x
        return -x

    def loop(x):
        while x < 3:
            x = x + 1
        return x

    functions = [branch, loop, lambda x: bool(x), lambda x: not x, lambda x: x and x, lambda x: v and x]
    return [error_of(tf.function(f, autograph=False), tf.constant(1.0)) for f in functions]


@parity
def test_python_wants_a_number(tf):
    """int(), float() and range() of a tensor."""
    functions = [lambda x: int(x), lambda x: float(x), lambda x: range(x), lambda x: [1, 2][x]]
    return [error_of(tf.function(f, autograph=False), tf.constant(1)) for f in functions]


@parity
def test_conditions_and_loops(tf):
    """tf.cond, tf.while_loop and tf.where."""

    @tf.function
    def f(x):
        y = tf.cond(x > 0.0, lambda: x * 2.0, lambda: x - 1.0)
        i, total = tf.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t + y), (tf.constant(0), tf.constant(0.0)))
        return y, i, total, tf.where(x > 0.0, y, total)

    return f(tf.constant(3.0)), f(tf.constant(-3.0)), f.experimental_get_tracing_count()


@parity
def test_gradients_through_a_condition(tf):
    """Both branches are differentiated, the one taken counts."""
    v = tf.Variable(2.0)

    @tf.function
    def f(x):
        return tf.cond(x > 0.0, lambda: x * v, lambda: x * x * x)

    results = []
    for value in (3.0, -3.0):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        results.append(tape.gradient(y, x))
    return results


@parity
def test_assignments_in_branches(tf):
    """A branch may assign to variables."""
    v, w = tf.Variable(1.0), tf.Variable(5.0)

    @tf.function
    def f(x):
        y = tf.cond(x > 0.0, lambda: v.assign_add(x) * 1.0, lambda: w.assign_sub(x) * 1.0)
        return y, v + w

    return f(tf.constant(2.0)), (v.numpy(), w.numpy()), f(tf.constant(-1.0)), (v.numpy(), w.numpy())


@parity
def test_assignments_in_loops(tf):
    """The body of a loop may assign to variables, and its condition may read them."""
    v, count = tf.Variable(1.0), tf.Variable(0)

    def body(i, total):
        count.assign_add(1)
        return i + 1, total + v.assign_add(1.0)

    @tf.function
    def f():
        return tf.while_loop(lambda i, total: v < 5.0, body, (tf.constant(0), tf.constant(0.0)))

    @tf.function
    def rows(x):
        return tf.map_fn(lambda row: v.assign_add(row) * 1.0, x)

    return f(), v.numpy(), count, rows(tf.constant([1.0, 2.0, 3.0])), v


# --- running eagerly -------------------------------------------------------------------------------------------------


@parity
def test_running_functions_eagerly(tf):
    """The Python function runs on every call, on values, as it is."""
    seen = []

    @tf.function
    def f(x):
        seen.append(x)
        local = tf.Variable(1.0)
        if x > 1:
            return x
        return local * 2.0

    tf.config.run_functions_eagerly(True)
    try:
        results = f(tf.constant(1.0)), f(tf.constant(2.0)), f(3), tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)
    return results, seen, tf.config.functions_run_eagerly(), f.experimental_get_tracing_count()


# --- whole programs --------------------------------------------------------------------------------------------------


@parity(rtol=1e-4)
def test_training_in_a_function(tf):
    """A training step with momentum, compiled."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 3)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5]], "float32")
    w, b = tf.Variable(tf.zeros([3, 1])), tf.Variable(tf.zeros([1]))
    velocities = [tf.Variable(tf.zeros_like(v), trainable=False) for v in (w, b)]

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w + b - y) ** 2)
        for v, u, g in zip((w, b), velocities, tape.gradient(loss, (w, b))):
            u.assign(0.9 * u + g)
            v.assign_sub(0.05 * u)
        return loss

    losses = [step(tf.constant(x), tf.constant(y)) for _ in range(20)]
    return losses, w, b, step.experimental_get_tracing_count()


@parity
def test_a_running_average(tf):
    """A metric that keeps its state in variables."""

    class Mean(tf.Module):
        def __init__(self):
            super().__init__()
            self.total, self.count = tf.Variable(0.0, trainable=False), tf.Variable(0, trainable=False)

        @tf.function
        def update(self, x):
            self.total.assign_add(tf.reduce_sum(x))
            self.count.assign_add(tf.size(x))
            return self.total / tf.cast(self.count, tf.float32)

    mean = Mean()
    return mean.update(tf.constant([1.0, 2.0])), mean.update(tf.constant([6.0])), mean.total, mean.count


@parity
def test_shapes_are_known_while_a_function_is_traced(tf):
    """What is computed of shapes alone is known: Python may look at it, and it may be a shape again."""

    @tf.function
    def f(x):
        batch, width = tf.shape(x)[0], tf.shape(x)[-1]
        if tf.rank(x) == 2:
            x = x[:, tf.newaxis]
        flat = tf.reshape(x, [batch * width // 2, -1])
        return flat, tf.zeros([batch, tf.size(x)]), tf.cast(width, tf.float32) * x, tf.gather(x, tf.constant([1, 0]))

    return f(tf.ones([2, 4])), f(tf.ones([2, 1, 2]))


@parity
def test_a_concrete_function_given_another_dtype(tf):
    """It is refused by TensorFlow's runtime, not by the binding."""
    f = tf.function(lambda x: 2 * x).get_concrete_function(tf.TensorSpec([2], tf.float32))
    return error_of(lambda: f(tf.constant([1, 2])))


# --- Python at each call ----------------------------------------------------------------------------------------------


@parity
def test_py_function_on_values(tf):
    """`py_function` sees values at each call of the function around it, and has a gradient; `numpy_function` has none."""
    seen = []

    def look(x, y):
        seen.append(float(x.numpy()))
        return x * y + float(np.sin(y.numpy()))

    @tf.function
    def f(x, y):
        return tf.py_function(look, [x, y], tf.float32) * x

    @tf.function
    def around(x, y):
        return 2.0 * f(x, y)

    @tf.function
    def several(x):
        a, b = tf.py_function(lambda x: (x.numpy() + 1, [1, 2]), [x], [tf.float32, tf.int32])
        c = tf.numpy_function(lambda v: v * 2, [x], tf.float32)
        c.set_shape([])
        return a, tf.ensure_shape(b, [2]), c

    x, y, found = tf.Variable(2.0), tf.constant(3.0), []
    for fn in (f, f, around):
        with tf.GradientTape() as tape:
            tape.watch(y)
            z = fn(x, y)
        found.append((z, tape.gradient(z, [x, y])))
        x.assign_add(1.0)
    return found, seen, several(tf.constant(1.0))


@parity
def test_an_environment_in_a_loop(tf):
    """Steps of an environment that keeps count, in a loop that ends when it says so, in a step that is differentiated."""
    w = tf.Variable([1.0, 2.0])
    calls = []

    def environment(action):
        calls.append(action)
        return np.float32(action.sum() + len(calls)), np.int32(len(calls) > 3)

    def episode(action):
        total = tf.constant(0.0)
        for _ in tf.range(5):
            reward, done = tf.numpy_function(environment, [action], [tf.float32, tf.int32])
            reward.set_shape([])
            total += reward * tf.reduce_sum(w)
            if tf.cast(done, tf.bool):
                break
        return total

    @tf.function
    def step(action):
        with tf.GradientTape() as tape:
            loss = episode(action)
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    return [step(tf.constant([1.0, 2.0])) for _ in range(3)], w, len(calls)


@parity
def test_a_loop_over_an_iterator(tf):
    """A training function of an iterator goes on where it was, and says when there is no more."""
    w = tf.Variable([1.0, -1.0])
    data = np.random.default_rng(0).normal(size=(12, 2)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(3)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, w) - 1.0))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    @tf.function
    def two(iterator):
        loss = tf.constant(0.0)
        for _ in tf.range(2):
            loss = step(next(iterator))
        return loss

    @tf.function
    def one(iterator):
        return step(next(iterator))

    @tf.function
    def unrolled(iterator):
        return [step(next(iterator)) for _ in range(3)]

    iterator = iter(dataset)
    losses = [two(iterator), two(iterator), error_of(lambda: one(iterator))]
    iterator = iter(dataset)
    return losses, one(iterator), unrolled(iterator), w


@parity
def test_scopes_of_names(tf):
    """Scopes around a call of a function do not count in it."""
    made = []

    @tf.function
    def f(x):
        with tf.name_scope("inner"):
            if not made:
                made.append(tf.Variable(1.0, name="v"))
            return made[0] * x

    with tf.name_scope("outer"):
        return f(2.0), made[0].name


@parity
def test_shapes_that_do_not_fit_are_a_value_error_in_a_function(tf):
    """TensorFlow infers shapes while it traces; eagerly it is the operation that complains."""
    a, b = tf.ones([2, 3]), tf.ones([4, 5])
    calls = [
        lambda: a + b,
        lambda: a @ b,
        lambda: tf.concat([a, b], 0),
        lambda: tf.reshape(a, [5]),
        lambda: tf.squeeze(a, 0),
        lambda: a[7],
        lambda: tf.reduce_sum(a, 5),
        lambda: tf.einsum("ij,jk->ik", a, b),
        lambda: tf.linalg.inv(a),
    ]

    def caught(call, kind):
        try:
            call()
        except kind:
            return True

    return [(caught(tf.function(f), ValueError), caught(f, tf.errors.InvalidArgumentError)) for f in calls]
