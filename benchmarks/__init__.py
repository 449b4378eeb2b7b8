"""Times of the same lines under tapejax, TensorFlow and plain JAX: ``python -m benchmarks``."""
