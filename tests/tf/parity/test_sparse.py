"""``tf.sparse`` under both systems: products, conversions and their gradients."""

import numpy as np
from harness import error_of, parity

PLACES = [[0, 1], [1, 0], [1, 2], [3, 3]]


def matrix(tf, values=(2.0, -1.0, 3.0, 0.5), dtype="float32"):
    return tf.SparseTensor(PLACES, tf.constant(values, dtype), [4, 5])


def shown(x):
    return x.indices, x.values, x.dense_shape, list(x.shape), x.dtype.name


@parity
def test_products_and_their_gradients(tf):
    """Sparse times dense, either way round, adjoint or not; gradients of both."""
    rng = np.random.default_rng(0)
    found = []
    for shape, options in (
        ((5, 3), {}),
        ((4, 3), {"adjoint_a": True}),
        ((3, 5), {"adjoint_b": True}),
        ((3, 4), {"adjoint_a": True, "adjoint_b": True}),
    ):
        values, b = tf.Variable([2.0, -1.0, 3.0, 0.5]), tf.Variable(rng.normal(size=shape).astype("float32"))
        with tf.GradientTape() as tape:
            y = tf.sparse.sparse_dense_matmul(tf.SparseTensor(PLACES, values, [4, 5]), b, **options)
            loss = tf.reduce_sum(y**3)
        found.append((y, [tf.convert_to_tensor(g) for g in tape.gradient(loss, [values, b])]))
    dense = tf.constant(rng.normal(size=(2, 4)).astype("float32"))
    found.append(tf.sparse.sparse_dense_matmul(dense, matrix(tf)))
    a = matrix(tf, [1 + 2j, 3j, 1.0, -1j], "complex64")
    found.append(tf.sparse.sparse_dense_matmul(a, tf.ones((4, 2), tf.complex64), adjoint_a=True))
    found.append(error_of(lambda: tf.sparse.sparse_dense_matmul(matrix(tf), tf.ones((4, 2)))))
    return found


@parity
def test_conversions(tf):
    """From dense and back, with gradients."""
    x = tf.Variable([[0.0, 2.0, 0.0], [3.0, 0.0, -1.0]])
    with tf.GradientTape(persistent=True) as tape:
        sparse = tf.sparse.from_dense(x)
        y = tf.sparse.to_dense(sparse.with_values(sparse.values**2)) * [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    found = [shown(sparse), y, tape.gradient(y, x), tape.gradient(y, sparse.values)]
    found.append(tf.sparse.to_dense(matrix(tf), default_value=7.0))
    for places in ([[1, 0], [0, 1]], [[0, 0], [0, 0]], [[0, 5]]):
        wrong = tf.SparseTensor(places, np.ones(len(places)), [2, 2])
        found.append(error_of(lambda: tf.sparse.to_dense(wrong)))  # noqa: B023
    return found


@parity
def test_the_rest(tf):
    """Order, transposes, functions of the values, sums, the identity."""
    unordered = tf.SparseTensor(PLACES[::-1], [1.0, 2.0, 3.0, 4.0], [4, 5])
    a = matrix(tf)
    return [
        shown(tf.sparse.reorder(unordered)),
        shown(tf.sparse.transpose(a)),
        shown(tf.sparse.transpose(a, perm=[0, 1])),
        shown(tf.sparse.map_values(tf.nn.relu, a)),
        shown(tf.sparse.map_values(tf.add, a, a)),
        tf.sparse.reduce_sum(a),
        tf.sparse.reduce_sum(a, axis=1),
        tf.sparse.reduce_sum(a, axis=0, keepdims=True),
        shown(tf.sparse.eye(2, 3)),
        isinstance(a, tf.sparse.SparseTensor),
        error_of(lambda: tf.SparseTensor([[0, 1]], [1.0, 2.0], [2, 2])),
        error_of(lambda: tf.SparseTensor([[0, 1, 2]], [1.0], [2, 2])),
    ]


@parity
def test_a_graph_network_in_a_function(tf):
    """Two layers of a graph convolution, the adjacency an argument of the compiled step."""
    rng = np.random.default_rng(1)
    w1, w2 = (tf.Variable(rng.normal(size=shape).astype("float32")) for shape in ((3, 4), (4, 2)))
    x, labels = tf.constant(rng.normal(size=(4, 3)).astype("float32")), tf.constant([0, 1, 1, 0])
    adjacency = tf.SparseTensor([[0, 1], [1, 0], [2, 3], [3, 3]], [1.0, 0.5, 0.5, 1.0], [4, 4])

    @tf.function
    def step(adjacency, x):
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.sparse.sparse_dense_matmul(adjacency, x @ w1))
            logits = tf.sparse.sparse_dense_matmul(adjacency, h) @ w2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for w, g in zip((w1, w2), tape.gradient(loss, (w1, w2))):
            w.assign_sub(0.5 * g)
        return loss

    return [step(adjacency, x) for _ in range(3)], w1, w2


@parity
def test_products_with_dense_tensors(tf):
    """A tensor of the shape, one that is broadcast, a number (whose gradient TensorFlow does not have)."""
    values, found = tf.constant([1.0, 2.0, 3.0]), []
    indices = [[0, 1], [1, 0], [1, 2]]
    for other in (tf.constant([[4.0], [5.0]]), tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])):
        with tf.GradientTape() as tape:
            tape.watch([values, other])
            product = tf.SparseTensor(indices, values, [2, 3]) * other
            total = tf.reduce_sum(product.values**2)
        quotient = tf.SparseTensor(indices, values, [2, 3]) / other
        found.append((tf.sparse.to_dense(product), tf.sparse.to_dense(quotient), tape.gradient(total, [values, other])))
    matrix = tf.SparseTensor(indices, values, [2, 3])
    return found, [tf.sparse.to_dense(x) for x in (matrix * 3.0, matrix / 2, matrix * tf.constant(2.0))]


@parity(x64_only="places are int32 while 64-bit types are off")
def test_a_sparse_tensor_printed(tf):
    print(tf.SparseTensor([[0, 2], [1, 0]], [1, 2], [2, 3]))


def whole(x):
    return [x.indices, x.values, x.dense_shape]


@parity
def test_sparse_tensors_in_other_shapes(tf):
    """With the values go their gradients; concat has none."""
    x = tf.constant([1.0, -2.0, 3.0])
    other = tf.SparseTensor([[0, 0]], [5.0], [2, 3])
    actions = [
        *(lambda s, n=n: tf.sparse.reshape(s, n) for n in ([3, 2], [-1], [1, 2, 3], [-1, 2])),
        *(lambda s, n=n: tf.sparse.expand_dims(s, n) for n in (0, 1, -1, None)),
        lambda s: tf.sparse.retain(s, [True, False, True]),
        lambda s: tf.sparse.retain(s, tf.constant([False] * 3)),
        lambda s: tf.sparse.concat(0, [s, other, s]),
        lambda s: tf.sparse.concat(-1, [s, other]),
        lambda s: tf.sparse.concat(0, [s, tf.SparseTensor([[0, 0]], [5.0], [1, 4])], expand_nonconcat_dims=True),
        lambda s: tf.sparse.add(s, other),
        lambda s: tf.sparse.add(s, s),
        lambda s: tf.sparse.add(s, tf.SparseTensor([[0, 1]], [-1.0], [2, 3]), threshold=0.5),
        lambda s: tf.sparse.add(s, other, threshold=2.5),
    ]
    found = []
    for action in actions:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = action(tf.SparseTensor([[0, 1], [1, 0], [1, 2]], x, [2, 3]))
        slope = tape.gradient(y.values, x)
        found.append([whole(y), None if slope is None else tf.convert_to_tensor(slope)])
    sparse = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], x, [2, 3])
    return (
        found,
        [tf.sparse.add(sparse, tf.ones([2, 3])), tf.sparse.add(tf.ones([2, 3]), sparse)],
        error_of(lambda: tf.sparse.sparse_dense_matmul(tf.ones([2, 2]), tf.ones([2, 1]))),
        error_of(lambda: tf.sparse.reshape(sparse, [4])),
        error_of(lambda: tf.sparse.expand_dims(sparse, 3)),
        error_of(lambda: tf.sparse.retain(sparse, [True])),
        error_of(lambda: tf.sparse.concat(0, [sparse, tf.SparseTensor([[0, 0]], [5.0], [1, 4])])),
        error_of(lambda: tf.sparse.add(sparse, tf.SparseTensor([[0, 0]], [5.0], [1, 4]))),
    )
