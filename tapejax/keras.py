"""``tapejax.keras``: see `tapejax.tf.libraries.keras`, the module that this name stands for."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tapejax.tf.libraries.keras")
