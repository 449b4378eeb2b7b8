"""tapejax: TensorFlow's GradientTape for JAX."""

from .tape import GradientTape, UnconnectedGradients
from .values import Tensor, Variable, constant, convert_to_tensor, is_tensor
