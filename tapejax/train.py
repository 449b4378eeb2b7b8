"""``tapejax.train``: see `tapejax.tf.programs.train`, the module that this name stands for."""

import importlib
import sys

importlib.import_module("tapejax._everything")  # first: then no thread waits for another's half of it
sys.modules[__name__] = importlib.import_module("tapejax.tf.programs.train")
