"""Made by .ci/stubs of the live namespace."""

import tapejax as tf
from tapejax.tf.values.types import TensorLike

from tapejax.math import bessel_i0 as bessel_i0
from tapejax.math import bessel_i0e as bessel_i0e
from tapejax.math import bessel_i1 as bessel_i1
from tapejax.math import bessel_i1e as bessel_i1e
def dawsn(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Dawson's integral.

    Takes float32, float64 tensors.
    """
def expint(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The exponential integral Ei, for x >= 0.

    Takes floating tensors.
    """
def fresnel_cos(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Fresnel's cosine integral.

    Takes float32, float64 tensors.
    """
def fresnel_sin(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Fresnel's sine integral.

    Takes float32, float64 tensors.
    """
def spence(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Spence's function, the dilogarithm of 1 - x.

    Takes floating tensors.
    """
