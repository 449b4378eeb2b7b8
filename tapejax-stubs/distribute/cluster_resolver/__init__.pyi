"""Made by .ci/stubs of the live namespace."""

import tapejax as tf

from tapejax.tf.ops.tpu import TPUClusterResolver as TPUClusterResolver
