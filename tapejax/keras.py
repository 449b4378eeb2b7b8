"""``tapejax.keras``: see `tapejax.tf.libraries.keras`, the module that this name stands for."""

import importlib
import sys

importlib.import_module("tapejax._everything")  # first: then no thread waits for another's half of it
sys.modules[__name__] = importlib.import_module("tapejax.tf.libraries.keras")
