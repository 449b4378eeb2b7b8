"""``tapejax.data``: see `tapejax.tf.programs.data`, the module that this name stands for."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tapejax.tf.programs.data")
