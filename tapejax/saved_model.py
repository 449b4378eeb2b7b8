"""``tapejax.saved_model``: see `tapejax.programs.saved_model`, the module that this name stands for."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tapejax.programs.saved_model")
