"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf

from tapejax.tf.programs.function import ConcreteFunction as ConcreteFunction
from tapejax.tf.programs.function import Function as GenericFunction
from tapejax.tf.programs.function import Function as PolymorphicFunction
from typing import Any as TensorLike
