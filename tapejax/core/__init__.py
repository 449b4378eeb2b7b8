"""The tape on JAX. Imports `jax` and `numpy`, nothing of TensorFlow. Read in the order of ARCHITECTURE.md it is a lesson."""
