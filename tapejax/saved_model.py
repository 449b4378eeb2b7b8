"""``tapejax.saved_model``: see `tapejax.tf.programs.saved_model`, the module that this name stands for."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tapejax.tf.programs.saved_model")
