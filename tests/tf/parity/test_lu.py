"""`tf.linalg.lu` and what takes its factors: values, gradients where there are some, and what is refused."""

import numpy as np
from harness import error_of, parity

MATRIX = np.float32([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])


def batch(*shape, seed=0):
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def factored(tf, x):
    factors, p = tf.linalg.lu(x)
    return factors, p, tf.linalg.lu_reconstruct(factors, p), tf.linalg.lu_matrix_inverse(factors, p)


@parity(rtol=1e-4, atol=1e-5)
def test_factors(tf):
    """Of all dtypes, in batches, where pivots tie, and of nothing."""
    x = tf.constant(MATRIX)
    result = tf.linalg.lu(x)
    print(type(result).__name__, result._fields, result.p.numpy())
    matrices = [
        x,
        tf.cast(x, tf.float64),
        tf.cast(x, tf.complex64) * 1j,
        tf.cast(x, tf.complex128) * (1 - 1j),
        tf.constant(batch(2, 3, 4, 4)),
        tf.constant(batch(40, 40, seed=1)),
        tf.constant([[1.0, 2.0], [-1.0, 3.0]]),
        tf.constant([[2.0, 2.0, 1.0], [-2.0, 3.0, 1.0], [2.0, 5.0, 2.0]]),
        tf.ones([2, 1, 1]),
        tf.ones([2, 0, 0]),
    ]
    found = [factored(tf, x) for x in matrices]
    indices = [tf.linalg.lu(x, output_idx_type=dtype).p for dtype in (tf.int32, tf.int64, "int64")]
    return (
        found,
        indices,
        tf.linalg.lu(tf.ones([0, 2, 2])),
        tf.linalg.lu(input=[[1.0, 2.0], [3.0, 4.0]], name="factors"),
    )


@parity
def test_what_has_no_factors(tf):
    x = tf.constant(MATRIX)
    cases = [tf.ones([2, 3]), tf.ones([2]), 1.0, tf.ones([2, 2]), tf.zeros([2, 2]), tf.stack([x, tf.ones([3, 3])])]
    cases += [
        tf.cast(x, tf.float16),
        tf.cast(x, tf.bfloat16),
        tf.constant([[1, 2], [3, 4]]),
        [[1, 2], [3, 4]],
        [[True]],
    ]
    return [error_of(tf.linalg.lu, case) for case in cases] + [
        error_of(tf.linalg.lu, x, t) for t in ("float32", "int16")
    ]


@parity
def test_it_has_no_gradient(tf):
    """The factors have none, so a tape that reaches them raises; the rows are integers, and connect nothing."""

    def gradient(f, x=MATRIX):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    def tangent(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = tf.linalg.lu(x).lu
        return accumulator.jvp(y)

    x = tf.constant(MATRIX)
    return [
        error_of(gradient, lambda x: tf.linalg.lu(x)[0]),
        error_of(gradient, lambda x: tf.function(tf.linalg.lu)(x)[0]),
        error_of(gradient, lambda x: tf.linalg.lu_solve(*tf.linalg.lu(x), tf.ones([3, 1]))),
        error_of(tangent, x),
        gradient(lambda x: tf.cast(tf.linalg.lu(x).p, tf.float32)),
        gradient(lambda x: tf.cast(tf.linalg.lu(x).p, tf.float32) * x[0]),
        gradient(lambda x: tf.stop_gradient(tf.linalg.lu(x).lu) * x),
    ]


@parity(rtol=1e-3, atol=1e-4)
def test_solving(tf):
    """Matrices and right sides broadcast; eagerly and in a function."""
    x, two = tf.constant(MATRIX), tf.constant(batch(2, 3, 3))
    one, pair = tf.linalg.lu(x), tf.linalg.lu(two)
    rhs = tf.constant(batch(3, 2, seed=2))
    cases = [(*one, rhs), (*one, rhs[None]), (*one, batch(2, 3, 1)), (*pair, rhs), (*pair, batch(2, 3, 2))]
    cases += [(pair.lu[:, None], pair.p[:, None], batch(4, 3, 1)), (pair.lu, pair.p[:1], rhs)]
    cases += [(one.lu, tf.cast(one.p, tf.int64), rhs), (MATRIX.tolist(), [1, 0, 2], [[1.0], [2.0], [3.0]])]
    cases += [([[1, 2], [3, 4]], [0, 1], [[1], [2]]), (tf.ones([0, 0]), tf.zeros([0], tf.int32), tf.ones([0, 2]))]
    cases += [tuple(tf.cast(x, tf.complex64) * 1j if x.dtype.is_floating else x for x in (*one, rhs))]
    solve = tf.function(tf.linalg.lu_solve)
    found = [(tf.linalg.lu_solve(*case), solve(*case, validate_args=True)) for case in cases]
    twice = tf.linalg.lu_solve(one.lu, [0, 0, 1], rhs), tf.linalg.lu_matrix_inverse(one.lu, [0, 0, 1])
    return found, twice, tf.linalg.lu_solve([[0.0, 2.0], [3.0, 4.0]], [0, 1], [[1.0], [2.0]])


@parity(rtol=1e-3, atol=1e-3)
def test_gradients_of_what_takes_factors(tf):
    """With respect to the factors and the right side, also at second order."""
    p = tf.constant([[1, 0, 2], [2, 0, 1]])
    rhs = tf.constant(batch(2, 3, 2, seed=3))
    factors = tf.constant(batch(2, 3, 3, seed=4) + 3.0 * np.eye(3, dtype=np.float32))

    def gradients(f, *xs):
        with tf.GradientTape() as outer:
            outer.watch(xs)
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = tf.reduce_sum(f(*xs) ** 2)
            first = tape.gradient(y, xs)
            size = tf.add_n([tf.reduce_sum(g**2) for g in first])
        return first, outer.gradient(size, xs)

    return [
        gradients(lambda a, b: tf.linalg.lu_solve(a, p, b), factors, rhs),
        gradients(lambda a: tf.linalg.lu_matrix_inverse(a, p), factors),
        gradients(lambda a: tf.linalg.lu_reconstruct(a, p), factors),
    ]


@parity
def test_what_does_not_fit(tf):
    factors, p = tf.linalg.lu(MATRIX)
    rhs = tf.ones([3, 1])
    wrong = [
        (factors, [0, 3, 1]), (factors, [0, -1, 1]), (factors[None], [[0, 3, 1]]), (factors, [0, 1]), (factors, [0, 1, 2, 0]),
        (factors, [[0, 1, 2]]), (factors, [0.0, 1.0, 2.0]), (1.0, [0]), (factors[0], p), (factors[None], p),
    ]  # fmt: skip
    solving = [error_of(tf.linalg.lu_solve, *case, rhs) for case in wrong]
    rebuilding = [
        error_of(tf.linalg.lu_reconstruct, *case) for case in [*wrong, (factors[:2], p), (factors, [0, 0, 1])]
    ]
    inverting = [
        error_of(tf.linalg.lu_matrix_inverse, *case) for case in (wrong[0], wrong[5], wrong[7], (factors[:2], p))
    ]
    right = [tf.ones([3]), tf.ones([2, 2]), tf.ones([3, 2], tf.complex64), tf.ones([2, 3, 1])[:, :2]]
    half = tf.cast(factors, tf.float16)
    return [
        solving, rebuilding, inverting, [error_of(tf.linalg.lu_solve, factors, p, x) for x in right],
        error_of(tf.linalg.lu_solve, half, p, tf.cast(rhs, tf.float16)), tf.linalg.lu_reconstruct(half, p),
        error_of(tf.linalg.lu_solve, tf.stack([factors] * 2), tf.stack([p] * 2), tf.ones([3, 3, 1])),
    ]  # fmt: skip


@parity(
    differs="LAPACK chooses the pivot of a complex matrix by the sum of its parts' sizes, Eigen by its absolute value"
)
def test_complex_pivots(tf):
    return tf.linalg.lu(tf.constant([[3 + 0j, 1], [2 + 2j, 1j]])).p


@parity(differs="no value is known while a function is traced")
def test_a_singular_matrix_in_a_function(tf):
    return error_of(tf.function(tf.linalg.lu), tf.ones([2, 2]))
