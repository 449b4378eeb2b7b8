"""Random numbers: the numbers are not TensorFlow's, but all else is: when they come again, when they differ, shapes, dtypes,
statistics, gradients, states, errors."""

import numpy as np
from harness import error_of, parity


def plain(x):
    return np.asarray(x).tolist()


def calls(draw, count=3):
    return [plain(draw()) for _ in range(count)]


def facts(tf, make):
    """Of draws made by ``make()``: whether a new one and an old one repeat themselves after set_seed, and calls differ."""
    tf.random.set_seed(7)
    first = calls(make())
    tf.random.set_seed(7)
    again = calls(make())
    old = make()
    tf.random.set_seed(7)
    one = calls(old)
    tf.random.set_seed(7)
    other = calls(old)
    return first == again, one == other, first[0] == first[1], first[1] == first[2]


def draws(tf):
    return {
        "normal": lambda: tf.random.normal([5]),
        "uniform": lambda: tf.random.uniform([5]),
        "integers": lambda: tf.random.uniform([5], maxval=1000000, dtype=tf.int32),
        "shuffle": lambda: tf.random.shuffle(tf.range(50)),
        "categorical": lambda: tf.random.categorical(tf.zeros([1, 1000]), 5),
        "dropout": lambda: tf.nn.dropout(tf.ones([100]), 0.5),
        "own seed": lambda: tf.random.normal([5], seed=3),
        "own seed of a dropout": lambda: tf.nn.dropout(tf.ones([100]), 0.5, seed=3),
    }


# --- seeds -----------------------------------------------------------------------------------------------------------


@parity
def test_eager_draws(tf):
    """Another number at each call; all again after set_seed."""
    return {name: facts(tf, lambda draw=draw: draw) for name, draw in draws(tf).items()}


@parity
def test_draws_in_a_function(tf):
    """The same of compiled functions, new ones and old ones."""
    return {name: facts(tf, lambda draw=draw: tf.function(draw)) for name, draw in draws(tf).items()}


@parity
def test_another_seed_gives_other_numbers(tf):
    """Of eager draws."""
    found = []
    for seed in (1, 2, 1):
        tf.random.set_seed(seed)
        found.append(calls(lambda: tf.random.normal([3])))
    return found[0] == found[1], found[0] == found[2]


@parity(differs="a function that was traced before follows a new seed, too")
def test_another_seed_for_a_function(tf):
    """TensorFlow's keeps the seed that it was traced with."""
    tf.random.set_seed(1)
    f = tf.function(lambda: tf.random.normal([3]))
    one = plain(f())
    tf.random.set_seed(2)
    return one == plain(f())


@parity
def test_stateless_draws(tf):
    """The same numbers at each call, whatever the seed of the process is."""
    seed = [1, 2]
    each = {
        "normal": lambda: tf.random.stateless_normal([5], seed),
        "uniform": lambda: tf.random.stateless_uniform([5], seed),
        "categorical": lambda: tf.random.stateless_categorical(tf.zeros([1, 1000]), 5, seed),
        "shuffle": lambda: tf.random.experimental.stateless_shuffle(tf.range(50), seed),
    }
    return {name: [facts(tf, lambda d=d: d), facts(tf, lambda d=d: tf.function(d))] for name, d in each.items()}


@parity
def test_operations_with_one_seed(tf):
    """Eagerly the second goes on with the sequence of the first; in a function each has a sequence of its own."""

    def both():
        return tf.random.uniform([3], seed=1), tf.random.uniform([3], seed=1)

    tf.random.set_seed(5)
    a, b = both()
    f = tf.function(both)
    c, d = f()
    e, g = f()
    other = tf.random.uniform([3], seed=2)
    return [plain(x) == plain(y) for x, y in ((a, b), (c, d), (c, e), (e, g), (a, other))]


@parity
def test_two_draws_in_one_function_differ(tf):
    """Each operation draws its own numbers."""

    @tf.function
    def f():
        return tf.random.uniform([3]), tf.random.uniform([3])

    a, b = f()
    c, d = f()
    return len({tuple(plain(x)) for x in (a, b, c, d)})


@parity
def test_draws_of_another_trace_differ_from_call_to_call(tf):
    """A function traced for several shapes draws on."""
    tf.random.set_seed(4)
    f = tf.function(lambda x: x + tf.random.uniform([]))
    found = [plain(f(tf.zeros(shape)))[0] for shape in ([1], [2], [1], [2])]
    return found[0] == found[2], found[1] == found[3]


@parity
def test_seeds_of_any_kind(tf):
    """Large, negative, NumPy's, a tensor, None."""
    for seed in (2**40, -1, np.int64(3), tf.constant(3), None, 0):
        tf.random.set_seed(seed)
    tf.random.set_seed(2**33 + 1)
    a = plain(tf.random.uniform([3]))
    tf.random.set_seed(1)
    b = plain(tf.random.uniform([3]))
    tf.random.set_seed(None)
    c = plain(tf.random.uniform([3]))
    tf.random.set_seed(None)
    return a == b, c == plain(tf.random.uniform([3]))


# --- in loops and maps -----------------------------------------------------------------------------------------------


@parity
def test_draws_in_loops(tf):
    """Every round draws its own number, eagerly and in a function; so does the next call."""

    def rounds():
        return tf.while_loop(
            lambda i, x: i < 4,
            lambda i, x: (i + 1, tf.concat([x[1:], tf.random.uniform([1])], 0)),
            (tf.constant(0), tf.zeros([4])),
        )[1]

    def rows():
        return tf.map_fn(lambda x: x + tf.random.uniform([]), tf.zeros([4]))

    def scanned():
        return tf.scan(lambda a, x: tf.random.uniform([]), tf.zeros([5]))[1:]

    found = []
    for fn in (rounds, rows, scanned):
        for run in (fn, tf.function(fn)):
            found.append(len({*plain(run()), *plain(run())}))
    return found


@parity
def test_draws_in_branches(tf):
    """The branch that is taken draws."""
    f = tf.function(lambda p: tf.cond(p, lambda: tf.random.uniform([]), lambda: tf.random.uniform([]) + 10.0))
    found = [plain(f(tf.constant(p))) for p in (True, True, False, False, True)]
    return len(set(found)), [x < 1 for x in found]


def different_rows(tf, made):
    """How many rows differ in two runs of each draw, which is made a function, or not."""
    zeros = tf.zeros([4])
    each = {
        "uniform": lambda: tf.vectorized_map(lambda x: x + tf.random.uniform([]), zeros),
        "shuffle": lambda: tf.vectorized_map(tf.random.shuffle, tf.tile(tf.range(50)[None], [4, 1])),
        "dropout": lambda: tf.vectorized_map(lambda x: tf.nn.dropout(x, 0.5), tf.ones([4, 60])),
        "categorical": lambda: tf.vectorized_map(lambda x: tf.random.categorical(x, 5), tf.zeros([4, 1, 1000])),
        "stateless": lambda: tf.vectorized_map(lambda x: x + tf.random.stateless_uniform([], [1, 2]), zeros),
    }
    runs = {name: made(draw) for name, draw in each.items()}
    return [(name, len({str(row) for row in (*plain(run()), *plain(run()))})) for name, run in runs.items()]


@parity
def test_draws_in_vectorized_map(tf):
    """Each row draws its own numbers; stateless ones are the same in all."""
    generator = tf.random.Generator.from_seed(1)
    rows = [plain(tf.vectorized_map(lambda x: x + generator.normal([]), tf.zeros([4]))) for _ in range(2)]
    return different_rows(tf, lambda draw: draw), len({*rows[0], *rows[1]})


@parity
def test_draws_in_vectorized_map_in_a_function(tf):
    return different_rows(tf, tf.function)


# --- gradients -------------------------------------------------------------------------------------------------------


@parity
def test_gradients_through_draws(tf):
    """Of a function that draws, around it and in it: at the numbers that were drawn."""
    v = tf.Variable(tf.ones([20]))

    @tf.function
    def scaled():
        return v * tf.random.uniform([20])

    @tf.function
    def inside():
        with tf.GradientTape() as tape:
            y = tf.nn.dropout(v, 0.5)
        return y, tape.gradient(y, v)

    with tf.GradientTape(persistent=True) as tape:
        a = scaled()
        b = tf.nn.dropout(v, 0.5)
        c = tf.function(lambda: tf.map_fn(lambda x: x * tf.random.uniform([]), v))()
        with tf.GradientTape() as inner:
            d = tf.function(lambda: v * v * tf.random.uniform([20]))()
        e = inner.gradient(d, v)
    y, gradient = inside()
    pairs = [
        (tape.gradient(a, v), a),
        (tape.gradient(b, v), b),
        (tape.gradient(c, v), c),
        (gradient, y),
        (tape.gradient(e, v), e),
    ]
    return [np.allclose(one, other, rtol=1e-5) for one, other in pairs]


@parity
def test_gradients_of_parameters(tf):
    """Means and deviations have one; what is drawn from probabilities has none."""
    mean, deviation = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    logits = tf.Variable([[0.1, 0.2]])
    generator = tf.random.Generator.from_seed(1)
    with tf.GradientTape(persistent=True) as tape:
        x = tf.random.normal([5, 2], mean, deviation)
        y = generator.normal([2], mean, deviation)
        z = tf.cast(tf.random.categorical(logits, 3), tf.float32)
        u = generator.uniform([3], 0.0, deviation)
        s = tf.random.shuffle(mean)
    error = np.allclose(tape.gradient(x, deviation), np.sum((x - mean) / deviation), rtol=1e-4)
    return (
        tape.gradient(x, mean),
        error,
        tape.gradient(y, mean),
        tape.gradient(z, logits),
        np.allclose(tape.gradient(u, deviation), np.sum(u / deviation), rtol=1e-4),
        tape.gradient(s, mean),
        [v.name for v in tape.watched_variables()],
    )


# --- shapes, dtypes, statistics --------------------------------------------------------------------------------------


@parity
def test_shapes_and_dtypes(tf):
    results = [
        tf.random.normal((2, 3)),
        tf.random.normal(tf.constant([2, 3]), dtype=tf.float64),
        tf.random.normal([2, 3], mean=[1.0, 2.0, 3.0]),
        tf.random.uniform([3], 2, 5, tf.int64),
        tf.random.uniform([], dtype=tf.float16),
        tf.random.poisson([2], [1.0, 2.0, 3.0]),
        tf.random.categorical(tf.zeros([2, 3]), 4),
        tf.random.categorical(tf.zeros([2, 3]), 4, dtype=tf.int32),
        tf.random.stateless_uniform([3], [1, 2], None, None, tf.int32),
        tf.random.split([1, 2], 3),
        tf.random.fold_in([1, 2], 3),
        tf.random.experimental.stateless_split([1, 2], 2),
        tf.random.experimental.stateless_fold_in([1, 2], 3),
    ]
    return [(x.shape, x.dtype) for x in results]


@parity
def test_shapes_and_dtypes_of_a_generators_draws(tf):
    g = tf.random.Generator.from_seed(1)
    results = [
        g.normal([2, 3]),
        g.normal([2, 3], dtype=tf.float64),
        g.normal([2, 3], mean=[1.0, 2.0, 3.0]),
        g.truncated_normal([4]),
        g.uniform([4]),
        g.uniform([4], maxval=9, dtype=tf.int32),
        g.uniform([4], minval=None, dtype=tf.int64),
        g.uniform_full_int([4]),
        g.uniform_full_int([4], tf.int32),
        g.binomial([3, 2], counts=[10.0, 20.0], probs=[0.3, 0.9]),
        g.make_seeds(3),
        g.make_seeds(),
        g.normal([0]),
    ]
    return [(x.shape, x.dtype) for x in results]


@parity
def test_statistics(tf):
    """Means, deviations, bounds, frequencies."""
    tf.random.set_seed(0)
    g = tf.random.Generator.from_seed(0)
    found = []
    for normal in (tf.random.normal, g.normal):
        x = normal([20000], 3.0, 2.0).numpy()
        found += [abs(x.mean() - 3) < 0.1, abs(x.std() - 2) < 0.1]
    for cut in (tf.random.truncated_normal, g.truncated_normal):
        x = cut([20000], 3.0, 2.0).numpy()
        found += [x.min() > -1, x.max() < 7, abs(x.std() - 1.76) < 0.05]
    for uniform in (tf.random.uniform, g.uniform):
        x = uniform([20000], -1.0, 3.0).numpy()
        found += [x.min() >= -1, x.max() < 3, abs(x.mean() - 1) < 0.05]
        found.append(sorted(set(uniform([500], 2, 5, tf.int32).numpy().tolist())))
    x = g.binomial([20000], 10.0, 0.3).numpy()
    found += [abs(x.mean() - 3) < 0.1, x.min() >= 0, x.max() <= 10]
    x = g.uniform_full_int([20000], tf.int32).numpy() / 2.0**31
    found += [abs(x.mean()) < 0.02, abs(x.std() - 0.577) < 0.01]
    x = tf.random.poisson([20000], 4.0).numpy()
    found += [abs(x.mean() - 4) < 0.1, abs(x.var() - 4) < 0.2]
    found.append(sorted(plain(tf.random.experimental.stateless_shuffle(tf.range(9), [1, 2]))))
    return found


# --- Generator -------------------------------------------------------------------------------------------------------


@parity
def test_the_state_of_a_generator(tf):
    """Its layout, its dtype, how far each draw moves it, and that it is a variable that is not trainable."""
    Generator = tf.random.Generator
    g = Generator.from_seed(5)
    states = [g.state.numpy().copy()]
    for draw in (
        lambda: g.normal([3]),
        lambda: g.uniform([]),
        lambda: g.uniform([2, 2], maxval=9, dtype=tf.int32),
        lambda: g.truncated_normal([0]),
        lambda: g.skip(4),
        lambda: g.uniform_full_int([3]),
    ):
        draw()
        states.append(g.state.numpy().copy())
    others = [
        Generator.from_seed([1, 2]).state,
        Generator.from_seed(1, alg="threefry").state,
        Generator.from_seed(1, alg=2).state,
        Generator.from_state([1, 2, 3], alg="philox").state,
        tf.random.create_rng_state(7, "philox"),
        tf.random.create_rng_state(7, "threefry"),
    ]
    about = g.state.trainable, g.state.name, g.algorithm, Generator.from_seed(1, alg="threefry").algorithm
    return (
        states,
        others,
        about,
        Generator.from_state([1, 2, 3], "philox").key,
        len(Generator.from_non_deterministic_state().state.shape),
    )


@parity
def test_a_generator_comes_back_to_a_state(tf):
    """By its seed, its state, as a copy, by skipping."""
    Generator = tf.random.Generator
    g = Generator.from_seed(5)
    first = calls(lambda: g.normal([3]))
    same = Generator.from_seed(5)
    again = calls(lambda: same.normal([3]))
    other = Generator.from_seed(6)
    copied = Generator(copy_from=g)
    restored = Generator.from_state(g.state.numpy(), g.algorithm)
    third = plain(g.normal([3]))
    g.reset_from_seed(5)
    reset = calls(lambda: g.normal([3]))
    g.reset(tf.constant([5, 0, 0], tf.int64))
    moved = plain(g.normal([3]))
    skipping = Generator.from_seed(5)
    before = skipping.skip(3)
    return (
        first == again,
        first == calls(lambda: other.normal([3])),
        len({str(x) for x in first}),
        plain(copied.normal([3])) == third,
        plain(restored.normal([3])) == third,
        reset == first,
        moved == first[0],
        before,
        plain(skipping.normal([3])) == first[1],
        calls(lambda: Generator.from_non_deterministic_state().normal([3]), 2)[0] == first[0],
    )


@parity
def test_a_generator_that_shares_its_state(tf):
    """A Variable given as the state is used as it is."""
    g = tf.random.Generator.from_seed(5)
    shared = tf.random.Generator.from_state(g.state, alg=g.algorithm)
    shared.normal([4])
    return shared.state is g.state


@parity
def test_split_generators(tf):
    """They differ from each other and from their parent, and follow from its seed."""

    def made():
        g = tf.random.Generator.from_seed(1)
        parts = g.split(3)
        return type(parts), [plain(x.normal([2])) for x in (*parts, g)]

    kind, numbers = made()
    return kind, len({str(x) for x in numbers}), made()[1] == numbers


@parity
def test_a_generator_in_a_function(tf):
    """Its state goes in and out: numbers differ from call to call and are those of eager draws."""
    inside, outside = tf.random.Generator.from_seed(2), tf.random.Generator.from_seed(2)
    f = tf.function(lambda: inside.normal([2]))
    one, other = calls(f), calls(lambda: outside.normal([2]))
    return (
        np.allclose(one, other),
        len({str(x) for x in one}),
        inside.state.numpy().tolist() == outside.state.numpy().tolist(),
    )


@parity
def test_a_generator_that_a_function_makes(tf):
    """On its first call only, like every variable."""

    class Noise(tf.Module):
        def __init__(self):
            super().__init__()
            self.generator = None

        @tf.function
        def __call__(self):
            if self.generator is None:
                self.generator = tf.random.Generator.from_seed(1)
            return self.generator.normal([])

    noise = Noise()
    found = calls(noise)
    eager = tf.random.Generator.from_seed(1)
    return (
        np.allclose(found, calls(lambda: eager.normal([]))),
        noise.variables,
        error_of(tf.function(lambda: tf.random.Generator.from_seed(1).normal([]))),
    )


@parity
def test_a_generator_in_a_loop(tf):
    """Every round moves it on."""
    g, h = tf.random.Generator.from_seed(2), tf.random.Generator.from_seed(2)
    f = tf.function(lambda: tf.map_fn(lambda x: x + g.normal([]), tf.zeros([4])))
    return np.allclose([*plain(f()), *plain(f())], calls(lambda: h.normal([]), 8))


@parity
def test_the_global_generator(tf):
    """One for the process, which set_seed does not touch; another may be put in its place."""
    get, put = tf.random.get_global_generator, tf.random.set_global_generator
    same = get() is get()
    put(tf.random.Generator.from_seed(3))
    a = plain(get().normal([2]))
    put(tf.random.Generator.from_seed(3))
    b = plain(get().normal([2]))
    tf.random.set_seed(1)
    return same, a == b, plain(get().normal([2])) == a


@parity
def test_generators_that_do_not_fit(tf):
    """Algorithms, states, limits."""
    Generator = tf.random.Generator
    g = Generator.from_seed(1)
    return [
        error_of(lambda: Generator.from_seed(1, alg="other")),
        error_of(lambda: g.reset([1, 2])),
        error_of(lambda: g.normal([2], dtype=tf.int32)),
        error_of(lambda: g.uniform([2], 5, 2, dtype=tf.int32)),
        error_of(lambda: g.uniform([2], dtype=tf.int32)),
        error_of(lambda: g.binomial([2], counts=[1.0, 2.0, 3.0], probs=0.5)),
        error_of(lambda: g.uniform([2], 5.0, 2.0)),
    ]


@parity
def test_algorithms(tf):
    """Their names and numbers."""
    return [(x.name, x.value) for x in tf.random.Algorithm], tf.random.experimental.Generator is tf.random.Generator
