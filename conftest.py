"""What pytest leaves out where an optional package is missing."""

import importlib.util

collect_ignore = []
if importlib.util.find_spec("flatbuffers") is None:
    collect_ignore.append("tapejax/saved_model.py")  # its doctests save models
