"""The answers of notebook 8, with which it goes on where nothing is answered."""

import functools
import itertools
import math

import numpy as np


# Products of matrices.
def multiplications(sizes):
    pairs = [m * n for m, n in zip(sizes, sizes[1:])]
    return sizes[0] * sum(pairs[1:]), sizes[-1] * sum(pairs[:-1])


@functools.cache
def fewest_multiplications(sizes):
    def split_at(i):
        return (
            fewest_multiplications(sizes[: i + 1]) + fewest_multiplications(sizes[i:]) + sizes[0] * sizes[i] * sizes[-1]
        )

    return min((split_at(i) for i in range(1, len(sizes) - 1)), default=0)


def sum_over_paths(matrices, i, j):
    total = 0.0
    for middle in itertools.product(*(range(len(matrix)) for matrix in matrices[:-1])):
        path = (j, *middle, i)
        total += math.prod(matrix[b, a] for matrix, a, b in zip(matrices, path, path[1:]))
    return total


# Operations.
def gradient_of_product(xs):
    partial = [xs[0]]
    for x in xs[1:]:
        partial.append(partial[-1] * x)
    bar, gradient = 1.0, []
    for x, before in zip(xs[:0:-1], partial[-2::-1]):
        gradient.append(bar * before)
        bar = bar * x
    return [bar, *gradient[::-1]]


def matmul_flops(m, k, n):
    return 2 * m * k * n, 4 * m * k * n


# Checkpoints.
def in_segments(chain, start, n, length):
    kept = [start]
    while len(kept) * length < n:
        state = kept[-1]
        for _ in range(length):
            state = chain.forward(state)
        kept.append(state)
    bar = 1.0
    while kept:
        states = [kept.pop()]
        while len(states) < length:
            states.append(chain.forward(states[-1]))
        while states:
            bar = chain.backward(states.pop(), bar)
    return bar


@functools.cache
def fewest_steps(n, slots):
    if n == 1:
        return 0
    if slots == 1:
        return n * (n - 1) // 2
    return min(m + fewest_steps(n - m, slots - 1) + fewest_steps(m, slots) for m in range(1, n))


def revolve(chain, start, n, slots, bar):
    if n == 1:
        return chain.backward(start, bar)

    def cost(m):
        return m + fewest_steps(n - m, slots - 1) + fewest_steps(m, slots)

    m = n - 1 if slots == 1 else min(range(1, n), key=cost)
    middle = start
    for _ in range(m):
        middle = chain.forward(middle)
    bar = revolve(chain, middle, n - m, slots - 1, bar)
    del middle
    return revolve(chain, start, m, slots, bar)


# Sparse Jacobians.
def colour(pattern):
    colours, taken = [], []  # for each colour the rows in which one of its columns has an entry
    for column in pattern.T:
        free = (c for c, rows in enumerate(taken) if not np.any(rows & column))
        c = next(free, len(taken))
        taken[c:] = [taken[c] | column if c < len(taken) else column, *taken[c + 1 :]]
        colours.append(c)
    return colours


def compressed_jacobian(push, pattern, colours):
    jacobian = np.zeros(pattern.shape)
    for c in range(max(colours) + 1):
        columns = np.array(colours) == c
        jacobian += np.where(pattern & columns, np.asarray(push(columns.astype(float)))[:, None], 0.0)
    return jacobian
