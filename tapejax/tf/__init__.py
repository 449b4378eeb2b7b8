"""TensorFlow's surface: values, operations, programs, libraries."""

import importlib

# A part of it imported by itself, as by pickle, is no surface yet: the rest attaches operators and registers conventions.
# Whoever needs everything imports this package for it. So all threads take this package's lock first, and none waits for what
# another has half of.
importlib.import_module("tapejax._everything")
