"""What pytest leaves out where an optional package is missing."""

import importlib.util

# A process has one Keras backend: tests/test_keras.py runs these in processes where it is JAX.
collect_ignore = ["tapejax/keras.py", "tapejax/libraries/keras.py", "tests/libraries/keras_on_jax"]
if importlib.util.find_spec("flatbuffers") is None:
    collect_ignore.append("tapejax/programs/saved_model.py")  # its doctests save models
if importlib.util.find_spec("grain") is None:
    collect_ignore += ["tapejax/programs/data.py", "tapejax/programs/pipeline.py"]
if importlib.util.find_spec("orbax") is None or importlib.util.find_spec("orbax.checkpoint") is None:
    collect_ignore.append("tapejax/programs/train.py")
