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

table.gradients("sqrtm", lambda tf, x: tf.linalg.sqrtm(x), POSITIVE)
table.gradients("matrix_square_root", lambda tf, x: tf.matrix_square_root(x), np.stack([POSITIVE, POSITIVE + 1]))
table.values("logm", lambda tf: tf.linalg.logm(POSITIVE.astype(np.complex64)))
table.values(
    "eig", lambda tf: [tf.sort(tf.math.real(tf.eigvals(POSITIVE))), tf.sort(tf.math.real(tf.eig(POSITIVE)[0]))]
)


def factors(tf, x):
    return tf.linalg.lu(tf.stop_gradient(x))


table.gradients("lu_solve", lambda tf, x, b: tf.linalg.lu_solve(*factors(tf, x), b), GENERAL, RHS)
table.gradients("lu_solve-of-factors", lambda tf, f, b: tf.linalg.lu_solve(f, [[1, 0, 3, 2]] * 2, b), GENERAL, RHS)
table.gradients("lu_reconstruct", lambda tf, f: tf.linalg.lu_reconstruct(f, [[1, 3, 0, 2]] * 2), GENERAL)
table.values("lu_matrix_inverse", lambda tf: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(GENERAL)))

MAIN, OFF = BANDS[0, 1], BANDS[0, 0, :3]
for only in (True, False):
    table.values(
        f"eigh_tridiagonal-{only}",
        lambda tf, only=only: [
            tf.abs(x) if not only else x
            for options in ({}, {"select": "i", "select_range": [1, 2]}, {"select": "v", "select_range": [3.0, 5.0]})
            for x in (lambda found: [found] if only else found)(
                tf.linalg.eigh_tridiagonal(MAIN, OFF, eigvals_only=only, **options)
            )
        ],
    )
FORMATS = {
    "compact": lambda tf, d: d,
    "sequence": lambda tf, d: (d[:, 0], d[:, 1], d[:, 2]),
    "matrix": lambda tf, d: tf.linalg.diag(d, k=(-1, 1), align="LEFT_RIGHT"),
}
for how, build in FORMATS.items():
    table.gradients(
        f"tridiagonal_solve-{how}",
        lambda tf, d, b, how=how, build=build: tf.linalg.tridiagonal_solve(build(tf, d), b, diagonals_format=how),
        BANDS,
        RHS,
    )
    table.gradients(
        f"tridiagonal_matmul-{how}",
        lambda tf, d, b, how=how, build=build: tf.linalg.tridiagonal_matmul(build(tf, d), b, diagonals_format=how),
        BANDS,
        RHS,
    )
table.gradients("tridiagonal_solve-vector", lambda tf, d, b: tf.linalg.tridiagonal_solve(d, b), BANDS[0], RHS[0, :, 0])
table.gradients(
    "tridiagonal_solve-transposed",
    lambda tf, d, b: tf.linalg.tridiagonal_solve(d, b, transpose_rhs=True),
    BANDS,
    RHS.swapaxes(1, 2).copy(),
)

# ---- Several diagonals ---------------------------------------------------------------------------------------------

for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
    for k in [(-1, 2), (1, 3), (-2, -1)]:
        count, longest = k[1] - k[0] + 1, {(-1, 2): 3, (1, 3): 3, (-2, -1): 2}[k]
        table.gradients(
            f"diagonals-{align}-{k}",
            lambda tf, x, d, k=k, align=align: [
                tf.linalg.diag_part(x, k=k, align=align, padding_value=9.0),
                tf.linalg.set_diag(x, d, k=k, align=align),
                tf.linalg.diag(d, k=k, num_rows=3, num_cols=5, align=align, padding_value=7.0),
            ],
            WIDE,
            RNG.normal(size=(2, count, longest)).astype(f32),
            slow=k == (1, 3),
        )
table.values(
    "diag-sizes",
    lambda tf: [
        tf.linalg.diag([1, 2], k=1),
        tf.linalg.diag([1, 2], k=-1, num_rows=3),
        tf.linalg.diag([1, 2], num_cols=4),
        tf.linalg.diag([[1, 2, 3], [4, 5, 0]], k=(-1, 0)),
        tf.linalg.diag([[1, 2, 3], [4, 5, 0]], k=(-1, 0), num_rows=4),
    ],
)
table.errors(
    "diagonals-errors",
    lambda tf: [
        lambda: tf.linalg.diag_part(WIDE, k=(2, 1)),
        lambda: tf.linalg.diag_part(WIDE, k=5),
        lambda: tf.linalg.set_diag(WIDE, WIDE, k=(0, 1)),
        lambda: tf.linalg.diag([[1, 2]], k=(0, 1)),
        lambda: tf.linalg.lu_solve(GENERAL[0, :2], [0, 1], RHS[0]),
        lambda: tf.linalg.tridiagonal_solve(BANDS, RHS, diagonals_format="dense"),
        lambda: tf.linalg.sqrtm(WIDE),
    ],
)

table.gradients("pinv-cut", lambda tf, x: tf.linalg.pinv(x, rcond=0.5), WIDE)
table.gradients(
    "cholesky-reads-the-lower-triangle",
    lambda tf, x: tf.linalg.cholesky(x),
    np.tril(POSITIVE) + np.triu(7 * POSITIVE, 1),
)

test_rows = table.test()
