"""A pytest plugin: NumPy prints three digits, so what is recognised by how it prints is confused."""

import numpy as np

np.set_printoptions(precision=3)
