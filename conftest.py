"""What pytest leaves out where an optional package is missing."""

import importlib.util

# Keras has one backend for each process: tests/keras_on_jax.py runs these doctests in one that has JAX.
collect_ignore = ["tapejax/keras.py"]
if importlib.util.find_spec("flatbuffers") is None:
    collect_ignore.append("tapejax/saved_model.py")  # its doctests save models
