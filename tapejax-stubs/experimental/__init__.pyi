"""Made by .ci/stubs of the live namespace."""



from tapejax.experimental import dlpack as dlpack
from tapejax.experimental import numpy as numpy
