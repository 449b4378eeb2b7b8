"""The wrapper: with `jaxprs` some 3,500 lines, and all that a tape is.

``from tapejax.tape import GradientTape`` imports these and no more. What shows a tape (`explain`, say) comes with the rest.
"""

from .accumulator import ForwardAccumulator as ForwardAccumulator
from .gradient_tape import GradientTape as GradientTape
from .gradient_tape import UnconnectedGradients as UnconnectedGradients
