#!/bin/bash
# Keras 3.15.1, PyTorch 2.13.0, JAX 0.10.2: `keras.config.set_floatx("float64")` and float64 tensors do not keep a computation in 64 bits. Some functions
# give float32, in silence, and which ones depends on the backend: with PyTorch `norm`, `median`, `quantile`, `correlate`, `logaddexp` and
# `dot_product_attention`, with JAX (64-bit types on) `norm`, `logaddexp` and `dot_product_attention`; most others keep 64 bits, and with
# TensorFlow all of these did. A gradient check by difference quotients fails there, and the same model has other digits.
#
# Guessed: float64 throughout.
# Seen, functions of float64 that give float32, and the norm's difference quotient at (3, 4), step 1e-6, where the derivative is 0.6:
#   torch: correlate dot_product_attention logaddexp median norm quantile; quotient 0.4768
#   jax: dot_product_attention logaddexp norm; quotient 0.4768
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check keras==3.15.1 torch==2.13.0 jax==0.10.2 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import sys

import keras
import numpy as np
from keras import ops

keras.config.set_floatx("float64")
x = ops.convert_to_tensor(np.array([0.3, -0.7, 1.2]))
heads = ops.convert_to_tensor(np.linspace(0.0, 1.0, 24).reshape(1, 3, 2, 4))
results = {
    "correlate": ops.correlate(x, x),
    "dot_product_attention": ops.dot_product_attention(heads, heads, heads),
    "logaddexp": ops.logaddexp(x, x),
    "logsumexp": ops.logsumexp(x),
    "median": ops.median(x),
    "norm": ops.norm(x),
    "quantile": ops.quantile(x, 0.3),
    "sqrt": ops.sqrt(ops.sum(x * x)),
    "std": ops.std(x),
}
dtypes = {name: keras.backend.standardize_dtype(result.dtype) for name, result in results.items()}
shortened = [name for name, dtype in dtypes.items() if dtype == "float32"]
high, low = (float(ops.norm(ops.convert_to_tensor(np.array([3.0 + step, 4.0])))) for step in (1e-6, -1e-6))
quotient = (high - low) / 2e-6
print(f"{keras.backend.backend()}: {' '.join(shortened)}; quotient {quotient:.4f}")
assert shortened == sys.argv[1:] and abs(quotient - 0.4768) < 1e-4
PROGRAM
export JAX_PLATFORMS=cpu JAX_ENABLE_X64=1
KERAS_BACKEND=torch "$folder/venv/bin/python" "$folder/program.py" correlate dot_product_attention logaddexp median norm quantile
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py" dot_product_attention logaddexp norm
