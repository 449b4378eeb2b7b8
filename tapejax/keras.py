"""``tapejax.keras``: see `tapejax.libraries.keras`, the module that this name stands for."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tapejax.libraries.keras")
