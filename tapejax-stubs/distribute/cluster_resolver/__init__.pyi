"""Made by .ci/stubs of the live namespace."""

import tapejax as tf

from tapejax.tf.programs.distribute import SimpleClusterResolver as SimpleClusterResolver
from tapejax.tf.programs.distribute import TFConfigClusterResolver as TFConfigClusterResolver
from tapejax.tf.ops.tpu import TPUClusterResolver as TPUClusterResolver
