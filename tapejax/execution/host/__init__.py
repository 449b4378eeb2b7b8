"""Programs of JAX's evaluated by NumPy, on the host: what runs a few times only is done long before XLA would have compiled it.

It registers itself with `tapejax.execution.trial`, which does without it where it is not imported.
"""

from .. import trial as _compiling
from .interpreter import Interpreter as _Interpreter

_compiling.interpreter = _Interpreter
