"""The workloads as a PyTorch user would write them, eager: ``STEPS[NAME](torch)`` is a step as in ``workloads.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import workloads
from benchmarks.workloads import Step


def mlp(batch: int, width: int) -> Callable[[Any], Step]:
    def build(torch):
        functional = torch.nn.functional
        x, y, parameters = workloads.mlp_data(batch, width)
        x, y = torch.tensor(x), torch.tensor(y)
        layers = [(_parameter(torch, w), _parameter(torch, b)) for w, b in parameters]
        leaves = [leaf for layer in layers for leaf in layer]

        def step(i):
            h = x
            for w, b in layers[:-1]:
                h = functional.relu(torch.addmm(b, h, w))
            w, b = layers[-1]
            loss = functional.mse_loss(torch.addmm(b, h, w), y)
            return loss, torch.autograd.grad(loss, leaves)

        return step

    return build


def deep_mlp(batch: int, width: int, layers: int) -> Callable[[Any], Step]:
    def build(torch):
        x, weights = workloads.deep_data(batch, width, layers)
        x, weights = torch.tensor(x), [_parameter(torch, w) for w in weights]
        biases = [_parameter(torch, workloads.np.zeros(width, "float32")) for _ in weights]

        def step(i):
            h = x
            for w, b in zip(weights, biases, strict=True):
                h = torch.nn.functional.gelu(torch.addmm(b, h, w), approximate="tanh")
            loss = torch.mean(torch.square(h))
            return loss, torch.autograd.grad(loss, [p for layer in zip(weights, biases, strict=True) for p in layer])

        return step

    return build


def one_operation(number: bool) -> Callable[[Any], Step]:
    def build(torch):
        x = _parameter(torch, workloads.square_data())
        y = torch.tensor(workloads.square_data())

        def step(i):
            for _ in range(workloads.REPEATED):
                z = x * 2.0 if number else x + y
            return z.sum(), [z]

        return step

    return build


def chain(operations: int) -> Callable[[Any], Step]:
    def build(torch):
        x = _parameter(torch, 0.5)

        def step(i):
            y = x
            for _ in range(operations // 2):
                y = torch.sin(y) * 1.01
            return y, torch.autograd.grad(y, [x])

        return step

    return build


def changing(torch) -> Step:
    x, w = workloads.changing_data()
    x, w = torch.tensor(x), _parameter(torch, w)
    vocabulary = {
        "matmul": lambda h: h @ w,
        "tanh": torch.tanh,
        "sin": torch.sin,
        "relu": torch.relu,
        "add": lambda h: h + w,
        "multiply": lambda h: h * w,
        "transpose": lambda h: h.T,
        "mean": lambda h: h - h.mean(0),
    }

    def step(i):
        h = x
        for word in workloads.words(i):
            h = vocabulary[word](h)
        loss = torch.sum(h + w)
        return loss, torch.autograd.grad(loss, [w])

    return step


def rnn(steps: int) -> Callable[[Any], Step]:
    def build(torch):
        inputs, u, v, b, start = workloads.rnn_data(steps)
        inputs, start = [torch.tensor(x) for x in inputs], torch.tensor(start)
        u, v, b = (_parameter(torch, w) for w in (u, v, b))

        def step(i):
            state = start
            for x in inputs:
                state = torch.tanh(x @ u + state @ v + b)
            loss = torch.mean(torch.square(state))
            return loss, torch.autograd.grad(loss, [u, v, b])

        return step

    return build


def jacobian(batch: int, width: int) -> Callable[[Any], Step]:
    def build(torch):
        x, (kernel,) = workloads.layer_data(batch, width, layers=1)
        x, kernel = torch.tensor(x), torch.tensor(kernel)

        def layer(kernel):
            y = torch.relu(x @ kernel)
            return y, y.sum()

        rows = torch.func.jacrev(layer, has_aux=True)

        def step(i):
            matrix, loss = rows(kernel)
            return loss, [matrix]

        return step

    return build


def batch_jacobian(batch: int, width: int) -> Callable[[Any], Step]:
    def build(torch):
        elu = torch.nn.functional.elu
        x, weights = workloads.layer_data(batch, width, layers=2)
        x, (first, second) = torch.tensor(x), map(torch.tensor, weights)

        def layers(x):
            y = elu(elu(x @ first) @ second)
            return y, y.sum()

        rows = torch.func.vmap(torch.func.jacrev(layers, has_aux=True))

        def step(i):
            matrices, sums = rows(x)
            return sums.sum(), [matrices]

        return step

    return build


def hessian(batch: int, width: int) -> Callable[[Any], Step]:
    def build(torch):
        x, (kernel,) = workloads.layer_data(batch, width, layers=1)
        x, kernel = torch.tensor(x), torch.tensor(kernel)

        def loss(kernel):
            return torch.mean(torch.square(torch.tanh(x @ kernel)))

        matrix = torch.func.hessian(loss)
        return lambda i: (loss(kernel), [matrix(kernel)])

    return build


def _parameter(torch, value: Any) -> Any:
    return torch.tensor(value, requires_grad=True)


STEPS: dict[str, Callable[[Any], Step]] = {
    "operation": one_operation(number=False),
    "number": one_operation(number=True),
    "small-mlp": mlp(*workloads.SMALL),
    "large-mlp": mlp(*workloads.LARGE),
    "deep-mlp": deep_mlp(4096, 1024, 12),
    "chain": chain(400),
    "changing": changing,
    "rnn": rnn(300),
    "jacobian": jacobian(7, 20),
    "batch-jacobian": batch_jacobian(32, 50),
    "hessian": hessian(32, 8),
}
