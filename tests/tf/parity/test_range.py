"""Numbers of the dtype, though what is multiplied or added on the way to them may need another."""

import numpy as np
from harness import parity


@parity
def test_sums_of_numbers_of_16_bits(tf):
    """They are added up in float32."""
    numbers = np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)

    def sums(x):
        return (
            tf.reduce_sum(x),
            tf.reduce_sum(x, 1),
            tf.add_n([x] * 50),
            tf.nn.avg_pool2d(x[None, :, :, None], 8, 8, "SAME"),
        )

    def off(dtype):
        """By how much of the largest number the sums differ from those in float32."""
        x = tf.cast(tf.constant(numbers), dtype)
        pairs = zip(sums(x), sums(tf.cast(x, tf.float32)))
        return [
            tf.reduce_max(tf.abs(tf.cast(one, tf.float32) - other)) / tf.reduce_max(tf.abs(other))
            for one, other in pairs
        ]

    return [[float(part) < unit for part in off(dtype)] for dtype, unit in ((tf.bfloat16, 0.02), (tf.float16, 0.0025))]


@parity
def test_standardized_images_are_float32(tf):
    """Of every dtype."""
    image = tf.reshape(tf.range(48), [4, 4, 3])
    return [
        tf.image.per_image_standardization(tf.cast(image, dtype))
        for dtype in ("float16", "bfloat16", "float64", "uint8")
    ]
