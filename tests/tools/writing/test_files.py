"""What the source of a file says of names."""

import linecache

from tapejax.tools.writing.files import MODULES, source_of

TEXT = """
import jax.numpy as jn
import numpy as jnp
import scipy
from jax import lax, nn as n
from jax.nn import softmax
from scipy import special

a, b = jn.sin(1.0), 2
"""


def test_modules_and_pairs_of_a_file():
    linecache.cache["<a file of a test>"] = len(TEXT), None, TEXT.splitlines(True), "<a file of a test>"
    source = source_of("<a file of a test>")
    assert source.modules["jn"] == "jnp" and source.modules["jnp"] == "np" and source.modules["n"] == "jax.nn"
    assert source.modules["softmax"] == "jax.nn.softmax" and not {"scipy", "special"} & source.modules.keys()
    assert source.pairs == {(9, 9, 7, 18): ("a", 9), (9, 9, 20, 21): ("b", 9)}


def test_a_file_without_source():
    assert source_of("<no such file>").modules == MODULES
