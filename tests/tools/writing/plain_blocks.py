"""Blocks of plain `jnp`, each line of which is printed as it stands."""

import jax
import jax.numpy as jnp
import numpy as np

_rng = np.random.default_rng(0)
X = jnp.asarray(_rng.normal(size=(16, 5)), jnp.float32)
W = jnp.asarray(_rng.normal(size=(5, 3)), jnp.float32)
B = jnp.asarray(_rng.normal(size=3), jnp.float32)
L = jnp.asarray(_rng.integers(0, 3, size=16), jnp.int32)
A = jnp.asarray((lambda m: m @ m.T + 4 * np.eye(4))(_rng.normal(size=(4, 4))), jnp.float32)
V = jnp.asarray(_rng.normal(size=8), jnp.float32)
S = jnp.float32(0.3)
K = jnp.asarray([0, 2, 1, 0, 2, 1, 1, 0], jnp.int32)


def classify(X, W, B, L):
    logits = X @ W + B
    logp = jax.nn.log_softmax(logits)
    nll = -logp[jnp.arange(16), L]
    loss = nll.mean()
    reg = jnp.sum(W**2) * 0.01
    return loss + reg


def pieces(X, V, K):
    first = X[:, 0] * X[:, 1]
    top = X[0]
    column = X[..., None]
    even = X[:, ::2]
    last = V[-1]
    rev = V[::-1]
    taken = V[K]
    block = X[2:5, 1:]
    return first.sum() + top.sum() + column.sum() + even.sum() + last + rev[0] + taken.sum() + block.sum()


def updates(X, V, K):
    a = X.at[0].set(0.0)
    b = X.at[:, 1].add(1.0)
    c = V.at[K].multiply(2.0)
    d = jnp.zeros(8).at[K].add(V)
    return a.sum() + b.sum() + c.sum() + jnp.sum(d**2)


def rotation(S):
    c, s = jnp.cos(S), jnp.sin(S)
    R = jnp.array([[c, -s], [s, c]])
    v = R @ jnp.array([1.0, 2.0])
    return v[0] * v[1]


def linear(A, V):
    U, d, Vt = jnp.linalg.svd(A, full_matrices=False)
    n = jnp.linalg.norm(A, axis=-1, keepdims=True)
    K = jnp.linalg.cholesky(A)
    z = jax.scipy.linalg.solve_triangular(K, V[:4], lower=True)
    y = jnp.linalg.solve(A, V[:4])
    q = jnp.linalg.inv(A)
    t = jnp.trace(q)
    ld = 2.0 * jnp.sum(jnp.log(jnp.diag(K)))
    s, logdet = jnp.linalg.slogdet(A)
    return d.sum() + n.sum() + z @ z + y.sum() + t + ld + logdet


def fourier(V):
    F = jnp.fft.rfft(V)
    P = jnp.abs(F) ** 2
    back = jnp.fft.irfft(F, n=8)
    return P.sum() + back[1]


def reductions(X, V):
    m = X.mean(axis=0)
    sd = X.std(axis=0)
    z = (X - m) / (sd + 1e-6)
    C = jnp.cov(X.T)
    mx = jnp.max(X, axis=-1)
    cs = jnp.cumsum(V)
    lse = jax.nn.logsumexp(X, axis=1)
    p = jax.nn.softmax(X, axis=-1)
    ent = -jnp.sum(p * jnp.log(p), axis=-1)
    var = jnp.var(V, ddof=1)
    med = jnp.median(V)
    return z.sum() + C.sum() + mx.sum() + cs[-1] + lse.sum() + ent.sum() + var + med


def shapes(X, V):
    r = X.reshape(4, 4, 5)
    t = jnp.transpose(r, (1, 0, 2))
    s = jnp.swapaxes(r, 0, 1)
    f = jnp.concatenate([V, V * 2])
    k = jnp.stack([V, V**2], axis=1)
    p = jnp.pad(V, (1, 2))
    o = jnp.roll(V, 1)
    e = jnp.expand_dims(V, 0)
    g = jnp.tile(V, (2, 1))
    rep = jnp.repeat(V, 2)
    T = X.T
    return (t * s).sum() + f.sum() + k.sum() + p.sum() + o[0] + e.sum() + g.sum() + rep.sum() + T[0, 0]


def functions(X, V, L):
    w = jnp.where(V > 0, V, 0.0)
    c = jnp.clip(V, 0, 1)
    g = jax.nn.gelu(V)
    r = jax.nn.relu(V)
    h = jax.nn.one_hot(L, 5)
    s = jax.nn.sigmoid(V)
    x = jnp.linspace(0, 1, 8)
    i = jnp.interp(S, x, V)
    y = jnp.einsum("ij,kj->ik", X, X)
    near = jnp.take_along_axis(X, L[:, None], axis=1)
    n = jax.scipy.stats.norm.logpdf(V)
    u = jax.scipy.special.gammaln(jnp.abs(V) + 1.0)
    d = jnp.diff(V)
    j = jnp.outer(V, V)
    m = jnp.maximum(V, 0.1)
    tri = jnp.tril(y)
    srt = jnp.sort(V)
    return (
        w.sum()
        + c.sum()
        + g.sum()
        + r.sum()
        + (h * X).sum()
        + s.sum()
        + i
        + y.sum()
        + near.sum()
        + n.sum()
        + u.sum()
        + d[0]
        + j.sum()
        + m.sum()
        + tri.sum()
        + srt[0]
    )


def segments(V, K):
    s = jax.ops.segment_sum(V, K, num_segments=3)
    m = jax.ops.segment_max(V, K, num_segments=3)
    return s @ m


def attention(X, W):
    q = X @ W
    k = jnp.tanh(X) @ W
    scores = q @ k.T / jnp.sqrt(3.0)
    mask = jnp.tril(jnp.ones((16, 16), bool))
    scores = jnp.where(mask, scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    return (weights @ X).sum()


def stencil(A):
    up = jnp.roll(A, 1, axis=0)
    down = jnp.roll(A, -1, axis=0)
    inner = A[1:-1, 1:-1]
    lap = A[2:, 1:-1] + A[:-2, 1:-1] + A[1:-1, 2:] + A[1:-1, :-2] - 4 * inner
    energy = 0.5 * jnp.sum(lap**2) * 0.1
    return energy + (up * down).mean()


BLOCKS = {
    classify: (X, W, B, L),
    pieces: (X, V, K),
    updates: (X, V, K),
    rotation: (S,),
    linear: (A, V),
    fourier: (V,),
    reductions: (X, V),
    shapes: (X, V),
    functions: (X, V, L),
    segments: (V, K),
    attention: (X, W),
    stencil: (A,),
}
