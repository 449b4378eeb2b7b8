"""What pytest leaves out where an optional package is missing, and the option ``--shadow``."""

import importlib.util

# A process has one Keras backend: tests/test_keras.py runs these in processes where it is JAX.
collect_ignore = ["tapejax/keras.py", "tests/keras_on_jax"]
if importlib.util.find_spec("flatbuffers") is None:
    collect_ignore.append("tapejax/saved_model.py")  # its doctests save models
if importlib.util.find_spec("grain") is None:
    collect_ignore += ["tapejax/data.py", "tapejax/pipeline.py"]
if importlib.util.find_spec("orbax") is None or importlib.util.find_spec("orbax.checkpoint") is None:
    collect_ignore.append("tapejax/train.py")


def pytest_addoption(parser):
    parser.addoption(
        "--shadow", action="store_true", help="run in shadow mode: what tapejax recognises is made anew, too"
    )


def pytest_configure(config):
    if config.getoption("--shadow"):
        import tapejax

        tapejax.debugging.enable_shadow_mode()
