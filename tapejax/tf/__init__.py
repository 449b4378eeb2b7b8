"""TensorFlow's surface: values, operations, programs, libraries."""

import importlib
import sys

# A part of it imported by itself, as by pickle, is no surface yet: the rest attaches operators and registers conventions. Another
# thread that is about it is not waited for, since it waits for the part.
if "tapejax._everything" not in sys.modules:
    importlib.import_module("tapejax._everything")
