"""Made by .ci/stubs of the live namespace."""

from typing import Any

from tapejax.programs.function import ConcreteFunction as ConcreteFunction
from tapejax.programs.function import Function as GenericFunction
from tapejax.programs.function import Function as PolymorphicFunction
from typing import Any as TensorLike
