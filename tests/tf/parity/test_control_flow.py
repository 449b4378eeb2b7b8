"""Control flow, which on values is Python: branches, loops, maps, scans and folds."""

import numpy as np
from harness import error_of, parity

# --- branches -------------------------------------------------------------------------------------------------------


@parity
def test_cond_runs_one_branch(tf):
    """Only the branch taken runs, and only it is connected."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)

    def yes():
        print("yes")
        return x * x

    def no():
        print("no")
        return y**3

    found = []
    for pred in (x < y, x > y, True, tf.constant(False)):
        with tf.GradientTape() as tape:
            z = tf.cond(pred, yes, no)
        found.append((z, tape.gradient(z, [x, y])))
    return found


@parity
def test_what_cond_returns(tf):
    """Structures; branches may differ; the names of the arguments."""
    x = tf.constant(2.0)
    return (
        tf.cond(x > 1.0, lambda: [x, (x * 2.0,)], lambda: [x, (x,)]),
        tf.cond(pred=x > 5.0, true_fn=lambda: x, false_fn=lambda: tf.constant([1, 2])),
        tf.cond(x > 1.0, true_fn=lambda: {"a": x}, false_fn=lambda: {"a": x * 2.0}),
    )


@parity
def test_cond_inside_cond(tf):
    """Nested, with tapes of two orders."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.cond(x > 0.0, lambda: tf.cond(x > 1.0, lambda: x**3, lambda: x**2), lambda: x)
        slope = inner.gradient(y, x)
    return slope, outer.gradient(slope, x)


@parity
def test_branches_that_are_refused(tf):
    """A branch is a function."""
    x = tf.constant(1.0)
    return (
        error_of(tf.cond, x > 0.0, x, x),
        error_of(tf.cond, x > 0.0, lambda: x, None),
        error_of(tf.cond, x > 0.0, None, lambda: x),
        error_of(tf.cond, tf.constant([True, False]), lambda: x, lambda: x),
    )


@parity
def test_case(tf):
    """The first true one; else the default."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    found = []
    for limit in (1.0, 2.5, 10.0):
        with tf.GradientTape() as tape:
            z = tf.case([(x < limit, lambda: x * y), (y < limit, lambda: y**2)], default=lambda: x + y)
        found.append((z, tape.gradient(z, [x, y])))
    return found, tf.case([(x < 5.0, lambda: x * 1.0)])


@parity
def test_case_exclusive(tf):
    """With no default one must be true."""
    x = tf.constant(2.0)
    pairs = [(x < 5.0, lambda: x), (x < 6.0, lambda: x * 2.0)]
    return (
        tf.case(pairs),
        error_of(tf.case, [(x > 5.0, lambda: x), (x > 6.0, lambda: x)]),
        tf.case([(x > 5.0, lambda: x)], default=lambda: x * 3.0, exclusive=True),
    )


@parity(differs="exclusive=True raises where several are true, as documented; eager TensorFlow does not look")
def test_several_that_exclude_each_other(tf):
    """Then at most one may be true."""
    x = tf.constant(2.0)
    return error_of(tf.case, [(x < 5.0, lambda: x), (x < 6.0, lambda: x * 2.0)], exclusive=True)


@parity
def test_switch_case(tf):
    """By number; out of range the default or the last."""
    x = tf.Variable(2.0)
    branches = [lambda: x * 1.0, lambda: x**2, lambda: x**3]
    found = []
    for index in (0, 2, 3, -1):
        with tf.GradientTape() as tape:
            y = tf.switch_case(tf.constant(index), branches)
        found.append((y, tape.gradient(y, x)))
    named = {1: lambda: x * 5.0, 0: lambda: x * 7.0}
    return found, [tf.switch_case(tf.constant(i), named, default=lambda: x * 0.0) for i in (0, 1, 2)]


@parity
def test_switch_case_by_pairs(tf):
    """Branches as numbered pairs."""
    pairs = [(1, lambda: tf.constant(10.0)), (0, lambda: tf.constant(20.0))]
    return [tf.switch_case(tf.constant(i), pairs) for i in (0, 1, 2)]


@parity
def test_switches_that_are_refused(tf):
    """Numbers from 0 without a gap, each a function."""
    x, i = tf.constant(1.0), tf.constant(0)
    return (
        error_of(tf.switch_case, i, {1: lambda: x, 3: lambda: x}),
        error_of(tf.switch_case, i, [(0, lambda: x), (0, lambda: x)]),
        error_of(tf.switch_case, i, [x, x]),
        error_of(tf.switch_case, i, []),
        error_of(tf.switch_case, i, lambda: x),
        error_of(tf.case, lambda: x),
        error_of(tf.case, [(x > 0.0, lambda: x)], default=x),
    )


# --- loops ----------------------------------------------------------------------------------------------------------


@parity
def test_while_loop(tf):
    """Python on values: prints each time round, differentiable."""
    x = tf.Variable(2.0)

    def body(i, y):
        print("round", int(i), float(y))
        return i + 1, y * x

    with tf.GradientTape() as tape:
        i, y = tf.while_loop(lambda i, y: i < 4, body, [tf.constant(0), tf.constant(1.0)])
    return i, y, tape.gradient(y, x)


@parity
def test_a_loop_whose_length_depends_on_values(tf):
    """Newton's square root until it is good enough."""
    a = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        (root,) = tf.while_loop(lambda r: tf.abs(r * r - a) > 1e-4, lambda r: [0.5 * (r + a / r)], [tf.constant(1.0)])
    return root, tape.gradient(root, a)


@parity
def test_one_loop_variable(tf):
    """What comes back is a list as it went in, or a tuple."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        found = tf.while_loop(lambda y: y < 100.0, lambda y: [y * x], [x])
    as_tuple = tf.while_loop(lambda y: y < 10.0, lambda y: (y + 4.0,), (tf.constant(1.0),))
    return found, as_tuple, tape.gradient(found, x)


@parity
def test_structures_of_loop_variables(tf):
    """Dicts and nested tuples."""
    start = (tf.constant(0), {"a": tf.constant(1.0), "b": (tf.constant([1.0, 2.0]),)})

    def body(i, state):
        return i + 1, {"a": state["a"] * 2.0, "b": (state["b"][0] + state["a"],)}

    return tf.while_loop(lambda i, state: i < 3, body, start)


@parity
def test_maximum_iterations(tf):
    """An upper bound; a loop that never runs."""
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        bounded = tf.while_loop(lambda i, y: True, lambda i, y: [i + 1, y * x], [0, 1.0], maximum_iterations=3)
        never = tf.while_loop(lambda y: y > 100.0, lambda y: [y * x], [x * 1.0])
    return bounded, tape.gradient(bounded[1], x), never, tape.gradient(never, x)


@parity
def test_shapes_that_grow(tf):
    """On values a shape may change from round to round."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        _, y = tf.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, tf.concat([y, x * y[-1]], 0)),
            [tf.constant(0), x * 1.0],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
        )
    return y.shape, tape.gradient(y, x)


@parity
def test_a_loop_at_second_order(tf):
    """A loop in a tape in a tape, and a tape in a loop."""
    x = tf.Variable(1.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (tf.constant(0), tf.constant(1.0)))
        slope = inner.gradient(y, x)

    def descend(i, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = (w - 3.0) ** 2
        return i + 1, w - 0.1 * tape.gradient(loss, w)

    _, w = tf.while_loop(lambda i, w: i < 10, descend, (tf.constant(0), tf.constant(0.0)))
    return slope, outer.gradient(slope, x), w


@parity
def test_loops_that_are_refused(tf):
    """What is not callable, no variables, another structure."""
    x = tf.constant(1.0)
    return (
        error_of(tf.while_loop, x < 1.0, lambda y: y, [x]),
        error_of(tf.while_loop, lambda y: y < 1.0, x, [x]),
        error_of(tf.while_loop, lambda: True, lambda: [], []),
        error_of(tf.while_loop, lambda i, y: i < 2.0, lambda i, y: (i + 1.0, y, y), [x, x]),
    )


# --- maps -----------------------------------------------------------------------------------------------------------


@parity
def test_map_fn(tf):
    """Row by row, as Python."""
    x, w = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.Variable(2.0)

    def row(a):
        print("row", a.numpy())
        return tf.reduce_sum(a * a) * w

    with tf.GradientTape() as tape:
        y = tf.map_fn(row, x)
    return y, tape.gradient(y, [x, w])


@parity
def test_map_fn_over_structures(tf):
    """Several tensors in, several out, of other dtypes."""
    a, b = tf.constant([1.0, 2.0]), tf.constant([[1, 2], [3, 4]])
    return (
        tf.map_fn(lambda pair: pair[0] * tf.cast(pair[1], tf.float32), (a, b), fn_output_signature=tf.float32),
        tf.map_fn(lambda x: (x, x * 2.0), a, fn_output_signature=(tf.float32, tf.float32)),
        tf.map_fn(
            lambda x: {"n": tf.cast(x, tf.int32), "x": x},
            a,
            fn_output_signature={"n": tf.int32, "x": tf.float32},
        ),
        tf.map_fn(lambda d: d["a"] + 1.0, {"a": a}, dtype=tf.float32),
        tf.map_fn(lambda x: x > 1.5, a, fn_output_signature=tf.bool),
    )


@parity
def test_map_fn_at_second_order(tf):
    """The Hessian's diagonal of a mapped function."""
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.map_fn(lambda a: tf.sin(a) * a, x)
        slope = inner.gradient(y, x)
    return slope, outer.jacobian(slope, x)


@parity
def test_maps_that_are_refused(tf):
    """Scalars, different numbers of rows, undeclared results."""
    x = tf.constant([1.0, 2.0])
    return (
        error_of(tf.map_fn, lambda a: a, tf.constant(1.0)),
        error_of(tf.map_fn, lambda a: (a, a), x),
        error_of(tf.map_fn, lambda a: tf.cast(a, tf.int32), x),
    )


@parity
def test_vectorized_map(tf):
    """All rows at once."""
    x, w = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda a: tf.reduce_sum(a * a) * w + a, x)
    pairs = tf.vectorized_map(lambda ab: (ab[0] * ab[1], ab[0] - ab[1]), (tf.ones((3, 2)), tf.range(3.0)))
    return y, tape.gradient(y, [x, w]), pairs


@parity
def test_gradients_for_each_example(tf):
    """A tape in a vectorized_map: one gradient for each row."""
    w, x, y = (
        tf.constant([0.5, -0.5]),
        tf.constant([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]),
        tf.constant([1.0, 0.0, 1.0]),
    )

    def slope(example):
        features, label = example
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = (tf.reduce_sum(features * w) - label) ** 2
        return tape.gradient(loss, w)

    return tf.vectorized_map(slope, (x, y)), tf.map_fn(slope, (x, y), fn_output_signature=tf.float32)


# --- scans and folds ------------------------------------------------------------------------------------------------


@parity
def test_scan(tf):
    """Every accumulated value, with and without an initial one."""
    x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0.5)

    def step(a, b):
        print(float(a), float(b))
        return a * w + b

    with tf.GradientTape(persistent=True) as tape:
        plain, started, backward = (
            tf.scan(step, x),
            tf.scan(step, x, initializer=10.0 * w),
            tf.scan(step, x, reverse=True),
        )
    return plain, started, backward, [tape.gradient(y, [x, w]) for y in (plain, started, backward)]


@parity
def test_scan_over_structures(tf):
    """An accumulator of another structure than the elements."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return (
        tf.scan(lambda state, row: (state[0] + 1, state[1] + row), x, initializer=(tf.constant(0), tf.zeros(2))),
        tf.scan(lambda a, pair: a + pair[0] * pair[1], (x, x), initializer=tf.zeros(2)),
        tf.scan(lambda a, b: a + b, x),
    )


@parity
def test_folds(tf):
    """From the left and from the right."""
    x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as tape:
        values = [
            tf.foldl(lambda a, b: a * w + b, x),
            tf.foldr(lambda a, b: a * w + b, x),
            tf.foldl(lambda a, b: a * b, x, initializer=w * 2.0),
            tf.foldr(lambda a, b: a - b, x, initializer=tf.constant(1.0)),
        ]
    return values, [tape.gradient(y, [x, w]) for y in values]


@parity
def test_folds_over_structures(tf):
    """Pairs of elements, and a structured accumulator."""
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    return (
        tf.foldl(lambda acc, pair: acc + pair[0] * pair[1], (a, b), initializer=tf.constant(0.0)),
        tf.foldl(lambda acc, x: (acc[0] + x, acc[1] * x), a, initializer=(tf.constant(0.0), tf.constant(1.0))),
        tf.foldr(lambda acc, pair: [acc[0] + pair[1]], [a, b], initializer=[tf.constant(0.0)]),
    )


@parity
def test_scans_that_are_refused(tf):
    """Another structure than the initial value; no rows to begin with."""
    x = tf.constant([1.0, 2.0])
    return (
        error_of(tf.scan, lambda a, b: (a, b), x, initializer=tf.constant(1.0)),
        error_of(tf.scan, lambda a, b: a + b[0], (x, tf.constant([1.0, 2.0, 3.0])), initializer=tf.constant(0.0))
        is None,
    )


@parity(differs="what is not callable is a TypeError; TensorFlow misses its name (AttributeError)")
def test_functions_that_are_none(tf):
    """A number in the place of a function."""
    x = tf.constant([1.0, 2.0])
    return [error_of(f, 3, x) for f in (tf.scan, tf.foldl, tf.foldr, tf.map_fn)]


@parity
def test_no_rows(tf):
    """Nothing to scan or fold: the initial value, or nothing."""
    none = tf.ones((0,))
    return (
        tf.scan(lambda a, b: a + b, none, initializer=tf.constant(1.0)),
        tf.foldl(lambda a, b: a + b, none, initializer=tf.constant(1.0)),
        tf.map_fn(lambda a: a * 2.0, none),
        tf.vectorized_map(lambda a: a * 2.0, tf.ones((0, 3))),
    )


@parity(
    differs="nothing to begin with is a ValueError (TensorFlow: OutOfRangeError); a map over no rows keeps their shape"
)
def test_no_rows_and_no_beginning(tf):
    """There is no first row to begin with."""
    none = tf.ones((0, 3))
    return tf.map_fn(lambda a: a * 2.0, none), error_of(tf.foldl, lambda a, b: a + b, none)


@parity
def test_a_recurrent_network(tf):
    """A scan over time steps, trained through."""
    rng = np.random.default_rng(0)
    inputs = tf.constant(rng.normal(size=(4, 2, 3)).astype("float32"))
    u, v = (tf.Variable(rng.normal(size=(n, 3)).astype("float32")) for n in (3, 3))
    with tf.GradientTape() as tape:
        states = tf.scan(lambda h, x: tf.tanh(x @ u + h @ v), inputs, initializer=tf.zeros((2, 3)))
        loss = tf.reduce_mean(states[-1] ** 2)
    return loss, tape.gradient(loss, [u, v])


@parity
def test_branches_that_return_none(tf):
    """Branches for their effects, None in a structure, None in one branch only."""
    v = tf.Variable(0.0)

    def both(a, b):
        f = tf.function(lambda p: tf.cond(p, a, b))
        return [f(tf.constant(p)) for p in (True, False)]

    def add():
        v.assign_add(1.0)

    both(lambda: tf.group(v.assign_add(1.0)), tf.no_op)
    found = [
        both(add, lambda: None),
        both(lambda: (tf.constant(1.0), None), lambda: (tf.constant(2.0), None)),
        error_of(lambda: both(lambda: (None, tf.constant(1.0)), lambda: (tf.constant(1.0), None))),
    ]
    return found, v


@parity(differs="a branch that sizes rule out is not run, so what it alone uses has no gradient: None, not zeros")
def test_a_branch_that_is_known_not_to_be_taken(tf):
    used, unused = tf.Variable(2.0), tf.Variable(3.0)

    @tf.function
    def slopes(x):
        with tf.GradientTape() as tape:
            y = tf.cond(tf.shape(x)[0] > 1, lambda: used * x, lambda: unused * x)
        return tape.gradient(y, [used, unused])

    return slopes(tf.ones([3]))
