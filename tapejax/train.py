"""``tapejax.train``: see `tapejax.tf.programs.train`, the module that this name stands for."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tapejax.tf.programs.train")
