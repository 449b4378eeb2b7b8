"""Floats and bools where integers or truths are wanted: TensorFlow refuses them, and with which error."""

from harness import error_of, parity


def wrong_arguments(tf):
    """By what is wrong: a call, each made eagerly and in a function."""
    f, i, m = tf.constant([1.0, 0.0]), tf.constant([1, 0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    b, z = tf.constant([True, False]), tf.constant([1j, 2.0])
    row, two = tf.constant([[0.0]]), tf.constant(2.0)
    return {
        "one_hot": lambda: tf.one_hot(f, 3),
        "one_hot of bools": lambda: tf.one_hot(b, 3),
        "gather": lambda: tf.gather(m, f),
        "gather by bools": lambda: tf.gather(m, b),
        "gather by a list": lambda: tf.gather(m, [0.0, 1.0]),
        "gather_nd": lambda: tf.gather_nd(m, tf.constant([[0.0, 1.0]])),
        "embedding_lookup": lambda: tf.nn.embedding_lookup(m, f),
        "sparse labels": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=f, logits=m),
        "sparse labels of bools": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=m),
        "integer logits": lambda: tf.nn.softmax_cross_entropy_with_logits(labels=f, logits=i),
        "bitwise_and": lambda: tf.bitwise.bitwise_and(f, f),
        "bitwise_or with floats": lambda: tf.bitwise.bitwise_or(f, i),
        "bitwise_xor of bools": lambda: tf.bitwise.bitwise_xor(b, b),
        "invert": lambda: tf.bitwise.invert(f),
        "right_shift by floats": lambda: tf.bitwise.right_shift(i, f),
        "logical_and": lambda: tf.logical_and(f, f),
        "logical_and with floats": lambda: tf.logical_and(b, f),
        "logical_or of integers": lambda: tf.logical_or(i, b),
        "logical_not": lambda: tf.logical_not(f),
        "&": lambda: f & f,
        "~": lambda: ~f,
        "reduce_all": lambda: tf.reduce_all(f),
        "reduce_any": lambda: tf.reduce_any(i),
        "segment_sum": lambda: tf.math.segment_sum(m, f),
        "unsorted_segment_sum": lambda: tf.math.unsorted_segment_sum(m, f, 2),
        "num_segments": lambda: tf.math.unsorted_segment_sum(m, i, two),
        "scatter_nd": lambda: tf.scatter_nd(row, f[:1], [3]),
        "tensor_scatter_nd_update": lambda: tf.tensor_scatter_nd_update(f, row, f[:1]),
        "dynamic_partition": lambda: tf.dynamic_partition(f, f, 2),
        "dynamic_stitch": lambda: tf.dynamic_stitch([f], [f]),
        "in_top_k": lambda: tf.math.in_top_k(f, m, 1),
        "top_k": lambda: tf.math.top_k(f, k=two),
        "k of top_k": lambda: tf.math.top_k(f, k=1.0),
        "reshape": lambda: tf.reshape(m, tf.constant([4.0])),
        "reshape to a list": lambda: tf.reshape(m, [4.0]),
        "zeros": lambda: tf.zeros([2.0]),
        "fill": lambda: tf.fill([2.0], 1),
        "tile": lambda: tf.tile(f, [2.0]),
        "pad": lambda: tf.pad(f, [[1.0, 1.0]]),
        "transpose": lambda: tf.transpose(m, [1.0, 0.0]),
        "slice": lambda: tf.slice(m, [0.0, 0.0], [1.0, 1.0]),
        "an index": lambda: m[0.5],
        "an index, a tensor": lambda: m[two],
        "split": lambda: tf.split(m, [1.0, 1.0]),
        "roll": lambda: tf.roll(f, 1.0, 0),
        "concat": lambda: tf.concat([m, m], 1.0),
        "expand_dims": lambda: tf.expand_dims(f, 1.0),
        "axis": lambda: tf.reduce_sum(f, axis=0.0),
        "axis, a tensor": lambda: tf.reduce_sum(f, axis=tf.constant(0.0)),
        "axis of cumsum": lambda: tf.cumsum(f, axis=tf.constant(0.0)),
        "argmax": lambda: tf.argmax(m, axis=0.5),
        "where": lambda: tf.where(f, f, f),
        "random shapes": lambda: tf.random.normal([2.0]),
        "depth": lambda: tf.one_hot(i, two),
        "num of linspace": lambda: tf.linspace(0.0, 1.0, 3.0),
        "eye": lambda: tf.eye(3.0),
        "repeat": lambda: tf.repeat(f, 2.0),
        "reverse_sequence": lambda: tf.reverse_sequence(m, f, 1, 0),
        "box_indices": lambda: tf.image.crop_and_resize(tf.ones([1, 4, 4, 1]), tf.ones([1, 4]), f[:1], [2, 2]),
        "max_output_size": lambda: tf.image.non_max_suppression(tf.ones([1, 4]), f[:1], 2.0),
        "band_part": lambda: tf.linalg.band_part(m, two, 0),
        "complex numbers in order": lambda: tf.maximum(z, z),
        "sqrt of integers": lambda: tf.sqrt(i),
        "exp of bools": lambda: tf.exp(b),
        "sum of bools": lambda: tf.reduce_sum(b),
    }


@parity
def test_eagerly(tf):
    "Every call raises an error of TensorFlow's class."
    return {name: error_of(call) for name, call in wrong_arguments(tf).items()}


@parity
def test_in_a_function(tf):
    "And while a function is traced."
    names = [name for name in wrong_arguments(tf) if name != "zeros"]  # which TensorFlow makes in a graph, of any shape
    return {name: error_of(lambda name=name: tf.function(lambda: wrong_arguments(tf)[name]())()) for name in names}


@parity
def test_updates_of_a_variable(tf):
    "Indices of updates are integers, too; and nothing is assigned."
    v = tf.Variable([1.0, 2.0])
    places, values = tf.constant([[0.0]]), tf.constant([5.0])
    errors = [
        error_of(lambda: v.scatter_nd_update(places, values)),
        error_of(lambda: v.scatter_nd_add(places, values)),
        error_of(lambda: v.scatter_update(tf.IndexedSlices(values, places[0]))),
    ]
    return errors, v


@parity
def test_what_is_taken(tf):
    "Lengths of sequence_mask are cast, of whatever dtype they are."
    return [tf.sequence_mask(x, 3) for x in ([1.0, 2.5], [1, 2], [True, False])], tf.sequence_mask([1, 2], 3.0)
