"""Made by .ci/stubs of the live namespace."""

import tapejax as tf

from tapejax.tf.programs.optional import Optional as Optional
from tapejax.experimental import dlpack as dlpack
from tapejax.experimental import numpy as numpy
