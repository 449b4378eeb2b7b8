"""Less common functions of matrices, and matrices of several diagonals."""

import numpy as np
from tables import Table

f32 = np.float32
RNG = np.random.default_rng(2)
GENERAL = RNG.normal(size=(2, 4, 4)).astype(f32) + 3 * np.eye(4, dtype=f32)
POSITIVE = (GENERAL[0] @ GENERAL[0].T + np.eye(4)).astype(f32)
RHS = RNG.normal(size=(2, 4, 2)).astype(f32)
BANDS = RNG.normal(size=(2, 3, 4)).astype(f32) + np.array([0, 4, 0], f32)[:, None]
WIDE = RNG.normal(size=(2, 3, 5)).astype(f32)

table = Table(rtol=1e-4, atol=1e-4)

table.values(
    "eig", lambda tf: [tf.sort(tf.math.real(tf.eigvals(POSITIVE))), tf.sort(tf.math.real(tf.eig(POSITIVE)[0]))]
)


# ---- Diagonals -----------------------------------------------------------------------------------------------------

for k in (-2, -1, 0, 1, (2, 2), 4):
    number = k[0] if isinstance(k, tuple) else k
    length = min(3 + min(number, 0), 5 - max(number, 0))
    table.gradients(
        f"diagonals-{k}",
        lambda tf, x, d, k=k: [
            tf.linalg.diag_part(x, k=k, padding_value=9.0),
            tf.linalg.set_diag(x, d, k=k, align="LEFT_RIGHT"),
            tf.linalg.diag(d, k=k, num_rows=3, num_cols=5, padding_value=7.0),
        ],
        WIDE,
        RNG.normal(size=(2, length)).astype(f32),
    )
table.values(
    "diag-sizes",
    lambda tf: [
        tf.linalg.diag([1, 2], k=1),
        tf.linalg.diag([1, 2], k=-1, num_rows=3),
        tf.linalg.diag([1, 2], num_cols=4),
    ],
)
table.errors(
    "diagonals-errors",
    lambda tf: [
        lambda: tf.linalg.diag_part(WIDE, k=(2, 1)),
        lambda: tf.linalg.diag_part(WIDE, k=5),
        lambda: tf.linalg.set_diag(WIDE, WIDE, k=(0, 1)),
        lambda: tf.linalg.diag([[1, 2]], k=(0, 1)),
    ],
)

table.gradients("pinv-cut", lambda tf, x: tf.linalg.pinv(x, rcond=0.5), WIDE)
table.gradients(
    "cholesky-reads-the-lower-triangle",
    lambda tf, x: tf.linalg.cholesky(x),
    np.tril(POSITIVE) + np.triu(7 * POSITIVE, 1),
)

table.gradients("sqrtm", lambda tf, x: tf.linalg.sqrtm(x), POSITIVE)
table.gradients("matrix_square_root", lambda tf, x: tf.matrix_square_root(x), np.stack([POSITIVE, POSITIVE + 1]))
table.values("sqrtm-empty", lambda tf: [tf.linalg.sqrtm(tf.zeros([0, 0])), tf.linalg.sqrtm(tf.zeros([0, 2, 2]))])
table.errors("sqrtm-errors", lambda tf: [lambda: tf.linalg.sqrtm(WIDE)])

test_rows = table.test()
