"""Made by .ci/stubs of the live namespace."""



from tapejax.math import bessel_i0 as bessel_i0
from tapejax.math import bessel_i0e as bessel_i0e
from tapejax.math import bessel_i1 as bessel_i1
from tapejax.math import bessel_i1e as bessel_i1e
