"""``tf.data``: elements that cannot be made."""

import numpy as np
import pytest
from harness import parity

pytest.importorskip("grain", reason="tf.data stands on Grain")


@parity
def test_errors_are_ignored(tf):
    Dataset = tf.data.Dataset
    numbers = np.array([1, np.nan, 2, np.nan, 3], "float32")
    checked = Dataset.from_tensor_slices(numbers).map(lambda x: tf.debugging.check_numerics(x, "no number"))
    pairs = Dataset.zip(Dataset.range(5), checked)
    found = [
        checked.ignore_errors(),
        checked.ignore_errors().batch(2),
        checked.batch(2).ignore_errors(),
        checked.prefetch(2).ignore_errors(log_warning=False),
        checked.repeat(2).ignore_errors().take(4),
        checked.skip(1).ignore_errors().enumerate(),
        pairs.ignore_errors(),
        Dataset.range(3).ignore_errors(),
    ]
    return [[x for x in dataset] for dataset in found], [dataset.cardinality() for dataset in found]
