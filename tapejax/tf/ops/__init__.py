"""TensorFlow's functions, by family. Importing this package attaches the operators to `Tensor` and `Variable`."""

from . import operators as operators
