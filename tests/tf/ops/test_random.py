"""Random numbers beyond what TensorFlow says: in JAX's own programs, on threads, in 32 bits; states; messages."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

Generator = tf.random.Generator


def plain(x):
    return np.asarray(x).tolist()


# ---- in JAX's own programs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda draw: jax.jit(draw),
        lambda draw: lambda: jax.lax.scan(lambda c, _: (c, draw()), None, None, length=2)[1],
        lambda draw: tf.function(lambda: jax.jit(draw)()),
        lambda draw: tf.function(lambda: jax.lax.scan(lambda c, _: (c, draw()), None, None, length=2)[1]),
        lambda draw: jax.jit(lambda: jax.lax.map(lambda _: draw(), jnp.arange(2))),
        lambda draw: jax.jit(lambda: jax.lax.cond(jnp.array(True), draw, draw)),
    ],
    ids=["jit", "scan", "jit in function", "scan in function", "map in jit", "cond in jit"],
)
@pytest.mark.parametrize("seed", [None, 3])
def test_no_draw_is_baked_into_a_program(make, seed):
    def draw():
        return tf.random.uniform([2], seed=seed)._array

    f = make(draw)

    def rounds():
        tf.random.set_seed(7)
        return [plain(f()) for _ in range(3)]

    first = rounds()
    rows = np.reshape(first, (-1, 2))
    assert len({tuple(row) for row in rows}) == len(rows)
    assert first == rounds()


def test_draws_in_a_program_do_not_move_those_outside():
    f = jax.jit(lambda: tf.random.uniform([])._array)
    f()
    tf.random.set_seed(7)
    expected = [float(tf.random.uniform([])) for _ in range(3)]
    tf.random.set_seed(7)
    found = []
    for _ in range(3):
        f()
        found.append(float(tf.random.uniform([])))
    assert found == expected


def test_a_gradient_through_a_program_that_draws():
    "It is of the numbers that were drawn: the program is not run again."
    v, w = tf.Variable([1.0, 2.0]), jnp.ones(2)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(w)
        y = jax.jit(lambda a: a * w * tf.random.uniform([2])._array)(v)
        z = jax.lax.scan(lambda c, x: (c, x * tf.random.uniform([])._array), 0.0, v._array)[1]
        u = tf.function(lambda: jax.jit(lambda a: a * tf.random.uniform([2])._array)(v._read()))()
    for target, source in ((y, v), (y, w), (z, v)):
        np.testing.assert_allclose(tape.gradient(target, source), np.asarray(target) / np.asarray(source), rtol=1e-6)
    with pytest.raises(LookupError, match="tapejax.function"):
        tape.gradient(u, v)
    assert tape.gradient(y, tf.constant(1.0)) is None


def test_jax_differentiates_a_program_that_draws():
    def f(x):
        return x * jax.jit(lambda: tf.random.uniform([])._array)()

    y, slope = jax.value_and_grad(f)(1.0)
    assert y == slope
    assert jax.jit(jax.value_and_grad(f))(1.0)[0] != y


def test_a_tape_in_a_program_that_draws():
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * tf.random.uniform([3])
        return y, tape.gradient(y, x)

    run = jax.jit(lambda x: jax.tree.map(jnp.asarray, step(tf.convert_to_tensor(x))))
    y, gradient = run(jnp.ones(3))
    np.testing.assert_allclose(y._array, gradient._array)
    assert plain(run(jnp.ones(3))[0]._array) != plain(y._array)


def test_shapes_can_be_found_without_drawing():
    tf.random.set_seed(1)
    first = float(tf.random.uniform([]))
    tf.random.set_seed(1)
    assert jax.eval_shape(lambda: tf.random.normal([2, 3])._array).shape == (2, 3)
    assert float(tf.random.uniform([])) == first


def test_a_generator_in_a_plain_jit_is_refused():
    g = Generator.from_seed(1)
    before = plain(g.state)
    with pytest.raises(RuntimeError, match="tapejax.function"):
        jax.jit(lambda: g.normal([2])._array)()
    assert plain(g.state) == before


def test_rows_in_rows_draw_their_own():
    found = tf.vectorized_map(lambda row: tf.vectorized_map(lambda x: x + tf.random.uniform([]), row), tf.zeros([3, 4]))
    assert len(set(np.ravel(found.numpy()).tolist())) == 12


def test_an_exception_in_a_vectorized_map_leaves_draws_as_they_were():
    with pytest.raises(ZeroDivisionError):
        tf.vectorized_map(lambda x: x * tf.random.uniform([]) / (1 / 0), tf.zeros([3]))
    assert tf.random.uniform([2]).shape == (2,)


# ---- on threads -----------------------------------------------------------------------------------------------------


def test_threads_draw_different_numbers():
    found = []

    def draw():
        found.extend(float(tf.random.uniform([])) for _ in range(50))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200


# ---- states ---------------------------------------------------------------------------------------------------------


def test_states_have_32_bits_where_there_are_no_more():
    g = Generator.from_seed(2**33 + 5)
    assert g.state.dtype == tf.int32 and plain(Generator.from_seed(5).state) == [5, 0, 0]
    with jax.enable_x64(True):
        assert Generator.from_seed(2**33 + 5).state.dtype == tf.int64
    assert plain(g.normal([3])) != plain(Generator.from_seed(5).normal([3]))


def test_the_counter_carries():
    g = Generator.from_state([-256, 0, 7], alg="philox")
    first = plain(g.uniform([]))
    assert plain(g.state) == [0, 1, 7]
    g.skip(2**24 - 1)
    assert plain(g.state) == [-256, 1, 7]
    assert plain(g.uniform([])) != first


def test_bad_arguments_move_no_state():
    g = Generator.from_seed(1)
    before = plain(g.state)
    for call in (
        lambda: g.uniform([2], 5, 2, dtype=tf.int32),
        lambda: g.normal([2], dtype=tf.int32),
        lambda: g.reset([1, 2]),
        lambda: g.binomial([2], counts=[1.0, 2.0, 3.0], probs=0.5),
        lambda: g.normal("shape"),
    ):
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
            call()
    assert plain(g.state) == before
    tf.random.set_seed(1)
    first = float(tf.random.uniform([]))
    tf.random.set_seed(1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.random.uniform([2], 5, 2, dtype=tf.int32)
    assert float(tf.random.uniform([])) == first


def test_ways_to_make_a_generator_that_say_too_much_or_too_little():
    g = Generator.from_seed(1)
    with pytest.raises(ValueError, match="from_seed"):
        Generator()
    with pytest.raises(ValueError, match="not both"):
        Generator(copy_from=g, alg="philox")
    with pytest.raises(ValueError, match="at most 3"):
        Generator.from_seed([1, 2, 3, 4])


def test_a_draw_is_one_entry_of_the_tape_and_its_state_none():
    g, v = Generator.from_seed(1), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        g.normal([], v)
    assert str(tape).count("random_normal") == 1 and "advance" not in str(tape)


def test_numbers_do_not_depend_on_who_compiles():
    g, h = Generator.from_seed(1), Generator.from_seed(1)
    np.testing.assert_allclose(tf.function(lambda: g.normal([5]))(), h.normal([5]), rtol=1e-6)
    with tf.GradientTape():
        inside = g.normal([5])
    np.testing.assert_array_equal(inside, h.normal([5]))


def test_names_that_are_missing_say_what_to_use():
    with pytest.raises(AttributeError, match="jax.random.permutation"):
        tf.random.all_candidate_sampler  # noqa: B018


def test_a_generator_is_saved_with_its_module(tmp_path):
    pytest.importorskip("flatbuffers")

    class Noise(tf.Module):
        def __init__(self):
            super().__init__()
            self.generators = [Generator.from_seed(1), Generator.from_seed(2)]

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def __call__(self, x):
            own = tf.random.uniform([2], seed=3)
            return (
                x
                + self.generators[0].normal([2])
                + self.generators[1].normal([2])
                + own
                + tf.random.uniform([2], seed=3)
            )

    noise = Noise()
    noise(tf.zeros([2]))
    tf.saved_model.save(noise, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    tf.random.set_seed(1)
    expected = [plain(noise(tf.zeros([2]))) for _ in range(3)]
    tf.random.set_seed(1)
    np.testing.assert_allclose([plain(loaded(tf.zeros([2]))) for _ in range(3)], expected, rtol=1e-6)
    assert len({str(x) for x in expected}) == 3
