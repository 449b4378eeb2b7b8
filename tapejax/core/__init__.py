"""The tape on JAX. Its modules import JAX and NumPy, and nothing of TensorFlow's names, of `Tensor` or of `Variable`."""
