"""Random programs with state, control flow, custom rules and tapes in tapes, through both entrances and in all ways of running.

A program is data: a list of instructions on growing lists of values, of vectors of three floats, of integers, of complex
numbers, and on two Variables. It runs on tapes (`Taped`), and beside derivatives (`Reference`): the chain rule in NumPy, over the
Jacobians of single operations, which JAX has differentiated. Of a transformed block the reference holds only what it means, so
nothing remembered can come in.

`Chooser` is `random.Random` or Hypothesis's imitation of it.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import tapejax as tf
from tapejax.execution import chunks, schedule
from tapejax.tape import dispatch
from tapejax.tape.operation import PythonOp, op_of

from .interpreted import interpreted

Chooser = random.Random
SIZE = 3

# ---- operations: bounded, smooth where they are evaluated, and functions that stay the same objects -----------------


class Operation(NamedTuple):
    """`takes` and `gives` kinds of values: (f)loat, (i)nteger, (c)omplex. `along` are the operands that gradient comes from."""

    takes: str
    gives: str
    fn: Callable
    along: tuple[int, ...]
    tensors: Callable | None = None  # the same by TensorFlow's names


_rule = jax.custom_jvp(lambda x: jnp.cos(x))
_rule.defjvp(lambda p, t: (_rule(*p), 3 * p[0] * t[0]))
_back_rule = jax.custom_vjp(lambda x, y: jnp.tanh(x * y))
_back_rule.defvjp(lambda x, y: (_back_rule(x, y), (x, y)), lambda saved, g: (2 * g * saved[1], g * saved[0]))
_same = jax.jit(lambda x: x)
_pair = jax.jit(lambda x, y: (x, jnp.sin(y), y))

OPERATIONS: dict[str, Operation] = {}


def operation(
    takes: str, gives: str = "f", along: tuple[int, ...] | None = None, tensors: Callable | None = None
) -> Any:
    def add(fn: Callable) -> Callable:
        floats = tuple(i for i, kind in enumerate(takes) if kind != "i")
        fn.__name__ = f"op{len(OPERATIONS)}"
        OPERATIONS[f"{len(OPERATIONS)}"] = Operation(takes, gives, fn, floats if along is None else along, tensors)
        return fn

    return add


for takes, along, fn, tensors in [
    ("f", None, lambda x: jnp.sin(x), tf.sin),
    ("f", None, lambda x: jnp.tanh(x), tf.tanh),
    ("f", None, lambda x: jnp.exp(-x * x), lambda x: tf.exp(-tf.square(x))),
    ("f", None, lambda x: x * 0.5 + 0.1, lambda x: 0.5 * x + 0.1),
    ("f", None, lambda x: jnp.sqrt(x * x + 1), lambda x: tf.sqrt(tf.square(x) + 1.0)),
    ("f", None, lambda x: jax.nn.sigmoid(x), tf.sigmoid),
    ("f", None, lambda x: jax.nn.leaky_relu(x + 0.37), lambda x: tf.nn.leaky_relu(x + 0.37, alpha=0.01)),
    ("f", None, lambda x: jax.nn.softmax(x), tf.nn.softmax),
    ("f", None, lambda x: jnp.cumsum(x) / 3, lambda x: tf.cumsum(x) / 3),
    ("f", None, lambda x: x[::-1], lambda x: tf.reverse(x, [0])),
    ("f", None, lambda x: jnp.broadcast_to(jnp.sum(x) / 3, (SIZE,)), lambda x: tf.broadcast_to(tf.reduce_sum(x) / 3, [SIZE])),
    ("f", None, lambda x: jnp.sort(x), tf.sort),
    ("f", None, lambda x: -x, tf.negative),
    ("f", None, lambda x: x[np.array([2, 0, 0])], lambda x: tf.gather(x, [2, 0, 0])),
    ("f", None, lambda x: _same(x), tf.identity),
    ("f", None, lambda x: _rule(x), None),
    ("f", (), lambda x: lax.stop_gradient(x), tf.stop_gradient),
    ("f", (), lambda x: jnp.floor(x + 0.37), lambda x: tf.floor(x + 0.37)),
    ("f", (), lambda x: jnp.where(x > 0.1, 1.0, 2.0), lambda x: tf.cast(tf.where(x > 0.1, 1.0, 2.0), x.dtype)),
    ("ff", None, lambda x, y: x + y, lambda x, y: x + y),
    ("ff", None, lambda x, y: x - 0.5 * y, lambda x, y: tf.subtract(x, 0.5 * y)),
    ("ff", None, lambda x, y: jnp.tanh(x * y), lambda x, y: tf.tanh(tf.multiply(x, y))),
    ("ff", None, lambda x, y: x / (1 + y * y), lambda x, y: x / (1.0 + y**2)),
    ("ff", None, lambda x, y: jnp.outer(x, y)[0] / 2, None),
    ("ff", None, lambda x, y: jnp.dot(x, y) / 3 * x, lambda x, y: tf.tensordot(x, y, 1) / 3 * x),
    ("ff", None, lambda x, y: jnp.where(np.array([True, False, True]), x, y), lambda x, y: tf.where([True, False, True], x, y)),
    ("ff", None, lambda x, y: jnp.where(x > 0.1, y, x * 0.5), lambda x, y: tf.where(x > 0.1, y, x * 0.5)),
    ("ff", (0,), lambda x, y: x[jnp.argmax(y)] + jnp.zeros(SIZE), None),
    ("ff", None, lambda x, y: x.at[np.array([1, 1])].add(y[:2]).at[0].set(0.25), None),
    ("ff", (1,), lambda x, y: lax.stop_gradient(x) * y, lambda x, y: tf.stop_gradient(x) * y),
    ("ff", None, lambda x, y: _back_rule(x, y), None),
    ("ff", (0, 1), lambda x, y: _pair(x, y)[1] - _pair(x, y)[0], None),
    ("fi", None, lambda x, n: x[n % SIZE], lambda x, n: tf.gather(x, n % SIZE)),
    ("fi", None, lambda x, n: x * n.astype(x.dtype) / 4, lambda x, n: x * tf.cast(n, x.dtype) / 4),
]:  # fmt: skip
    operation(takes, "f", along, tensors)(fn)
operation("f", "i", ())(lambda x: jnp.floor(jnp.clip(x, -5, 5) * 4).astype("int32"))
operation("ii", "i", ())(lambda m, n: (m + n) % 7)
operation("i", "i", ())(lambda n: n * 2 - 1)
operation("ff", "c", None, tf.complex)(lambda x, y: lax.complex(x, y))
operation("cc", "c", None, lambda x, y: x * y)(lambda x, y: x * y)
operation("c", "c", None, lambda x: tf.exp(0.25j * x))(lambda x: jnp.exp(np.complex64(0.25j) * x))
operation("c", "c", None, tf.math.conj)(lambda x: jnp.conj(x))
operation("cf", "c")(lambda x, y: x * y)
operation("c", "f", None, tf.math.real)(lambda x: jnp.real(x))
operation("c", "f", None, tf.math.imag)(lambda x: jnp.imag(x))
operation("c", "f")(lambda x: jnp.log1p(jnp.real(x * jnp.conj(x))))

MAKES = {"i": "34", "c": "37"}  # an integer or complex number of floats
FLOATS = [name for name, op in OPERATIONS.items() if set(op.takes + op.gives) == {"f"}]
# Outside a tape JAX answers these with their very argument.
FRESH = [name for name in FLOATS if not {"_same", "stop_gradient"} & set(OPERATIONS[name].fn.__code__.co_names)]
OTHERS = [name for name in OPERATIONS if name not in FLOATS]


class Block(NamedTuple):
    """A function of two floats: operations on a growing list, and a literal that the last value is multiplied by."""

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    factor: float

    def function(self) -> Callable:
        """A new function object every time, as a lambda in a loop is."""

        def block(*args: Any) -> Any:
            values = list(args)
            for name, places in self.steps:
                values.append(OPERATIONS[name].fn(*(values[i % len(values)] for i in places)))
            return values[-1] * self.factor

        return block

    def along(self) -> set[int]:
        """Which of the two arguments gradient comes from."""
        reach: list[set[int]] = [{0}, {1}]
        for name, places in self.steps:
            op = OPERATIONS[name]
            reach.append(set().union(*(reach[places[i] % len(reach)] for i in op.along)))
        return reach[-1]


def _block(rng: Chooser) -> Block:
    steps = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        name = rng.choice(FLOATS)
        steps.append((name, tuple(rng.randrange(4) for _ in OPERATIONS[name].takes)))
    return Block(tuple(steps), rng.choice([0.5, 0.75, -0.75, 1.0, np.float32(0.5), np.float32(0.50001)]))


# A fixed supply, so that what was seen before comes again, in other company.
BLOCKS = [_block(random.Random(i)) for i in range(150)]

# ---- blocks under transformations: (make functions of blocks, x, y) -> a float --------------------------------------


def _custom_jvp(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    rule = jax.custom_jvp(lambda x, y: f(x, y))
    rule.defjvp(lambda p, t: (rule(*p), t[0] * g(*p) + t[1] * 2))
    return rule(x, y)


def _custom_vjp(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    rule = jax.custom_vjp(lambda x, y: f(x, y))
    rule.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct * g(*r), ct * 2))
    return rule(x, y)


def _while(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    start = (0, lax.stop_gradient(x))
    return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1], c[1])), start)[1] * y


def _python_if(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    if isinstance(x, jax.core.Tracer) and not _known(x):
        return lax.cond(jnp.sum(x) > 0.2, lambda x, y: f(x, y), lambda x, y: g(x, y), x, y)
    return f(x, y) if jnp.sum(x) > 0.2 else g(x, y)


def _known(x: Any) -> bool:
    try:
        float(jnp.sum(x))
    except jax.errors.ConcretizationTypeError:
        return False
    return True


def _python_loop(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    for _ in range(3):
        x = f(x, y)
    return x


TRANSFORMED: dict[str, Callable] = {
    "python if": _python_if,
    "python loop": _python_loop,
    "jit": lambda f, g, x, y: jax.jit(lambda x, y: f(x, y))(x, y),
    "jit, closure": lambda f, g, x, y: jax.jit(lambda x: f(x, y))(x),
    "jit, results": lambda f, g, x, y: sum(jax.jit(lambda x, y: (x, f(x, y), y * 2))(x, y)) / 3,
    "jit in jit": lambda f, g, x, y: jax.jit(lambda x: jax.jit(lambda y: f(x, y))(y) + g(x, x))(x),
    "checkpoint": lambda f, g, x, y: jax.checkpoint(lambda x, y: f(x, y))(x, y),
    "cond": lambda f, g, x, y: lax.cond(jnp.sum(x) > 0.2, lambda x: f(x, y), lambda x: g(x, y), x),
    "switch": lambda f, g, x, y: lax.switch(
        (jnp.sum(y) > 0).astype("int32"), [lambda x: g(x, y), lambda x: f(x, y)], x
    ),
    "scan": lambda f, g, x, y: lax.scan(lambda c, _: (f(c, y), None), x, None, length=2)[0],
    "scan, rows": lambda f, g, x, y: lax.scan(lambda c, r: (f(c, r), c + r), x, jnp.stack([x, y]))[1][1] / 2,
    "fori_loop": lambda f, g, x, y: lax.fori_loop(0, 2, lambda i, c: f(c, y) + i * 0.1, x),
    "while_loop": _while,
    "vmap": lambda f, g, x, y: jax.vmap(lambda r: f(r, y))(jnp.stack([x, y]))[0],
    "map": lambda f, g, x, y: lax.map(lambda r: f(r, y), jnp.stack([x, y]))[0],
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "jax.grad": lambda f, g, x, y: jax.grad(lambda x: jnp.sum(f(x, y)))(x) + 0 * y,
    "jax.jvp": lambda f, g, x, y: jax.jvp(lambda x: f(x, y), (x,), (y,))[1],
}


def _tape(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    y = y * 1  # another value than `x`, as it is to jax.grad
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = f(x, y)
    return _raw(tape.gradient(z, x, unconnected_gradients="zero"))


def _accumulator(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    y = y * 1
    with tf.autodiff.ForwardAccumulator(x, y) as accumulator:
        z = f(x, y)
    return _raw(accumulator.jvp(z, unconnected_gradients="zero"))


def _tensors_loop(f: Callable, g: Callable, x: Any, y: Any) -> Any:
    return _raw(tf.while_loop(lambda i, _: i < 2, lambda i, c: (i + 1, f(_raw(c), y)), (0, x), maximum_iterations=2)[1])


TRANSFORMED |= {
    "function": lambda f, g, x, y: tf.function(lambda x, y: f(x, y))(x, y),
    "custom_gradient": lambda f, g, x, y: tf.custom_gradient(lambda x, y: (f(x, y), lambda ct: (ct * g(x, y), ct * 2)))(
        x, y
    ),
    "recompute_grad": lambda f, g, x, y: tf.recompute_grad(lambda x, y: f(x, y))(x, y),
    "while_loop of tensors": _tensors_loop,
    "map_fn": lambda f, g, x, y: _raw(tf.map_fn(lambda r: f(_raw(r), y), jnp.stack([x, y])))[0],
    "tape": _tape,
    "accumulator": _accumulator,
}


def _raw(x: Any) -> Any:
    return x._array if isinstance(x, tf.Tensor) else x


# ---- programs -------------------------------------------------------------------------------------------------------


class Instruction(NamedTuple):
    """`kind`: op, block, read, assign, assign_add, watch, stop. `what`: the operation, or the transformation with its blocks."""

    kind: str
    what: Any
    places: tuple[int, ...]
    entrance: str = "jax"


class Program(NamedTuple):
    instructions: tuple[Instruction, ...]
    seed: int  # of the arguments
    asks: str
    where: str  # eagerly, or under which transformation
    how: str  # compiled whole, step by step, in chunks, or as tapejax decides
    repeat: int
    targets: tuple[int, ...]
    weighted: bool  # with output gradients
    compiled: bool  # by XLA, not operation by operation

    def __str__(self) -> str:
        lines = [f"# {name}: {value}" for name, value in zip(self._fields[1:], self[1:], strict=True)]
        return "\n".join([*lines, *map(_line, self.instructions)])


def _line(instruction: Instruction) -> str:
    kind, what, places, entrance = instruction
    if kind in ("op", "stop"):
        op = OPERATIONS[what]
        return f"{kind} {what} ({op.takes} -> {op.gives}) of {places}, through {entrance}"
    if kind == "block":
        name, f, g = what
        return f"{name} of {places}: {BLOCKS[f]}, {BLOCKS[g]}"
    return f"{kind} {what} {places}"


# Not one operation, or perhaps none.
SEVERAL = {"vmap", "python if", "python loop", "jax.grad", "jax.jvp", "cond", "while_loop of tensors", "map_fn"}
SEVERAL |= {"tape", "accumulator"}
REVERSE_ONLY = {"custom_vjp", "custom_gradient"}
PIECES = {"jax.grad": "grad", "tape": "grad", "jax.jvp": "jvp", "accumulator": "jvp"}  # what they compute of a block
_BACK_RULE = next(name for name, op in OPERATIONS.items() if "_back_rule" in op.fn.__code__.co_names)
# Blocks that can be differentiated forward.
FORWARD = [i for i, block in enumerate(BLOCKS) if all(name != _BACK_RULE for name, _ in block.steps)]


WHERE = [""] * 16 + ["jit", "jit", "function", "function", "vmap"]


def generate(rng: Chooser, where: str | None = None) -> Program:
    where = rng.choice(WHERE) if where is None else where
    asks = rng.choice(["gradient"] * 7 + ["persistent", "jacobian", "jvp"])
    state = where in ("", "function") and asks in ("gradient", "persistent") and rng.random() < 0.5
    forward = asks == "jvp"
    length = rng.choice([1, 2, 2, 3, 3, 4, 5, 7])
    how = rng.choice(["", "", "", "step by step", "whole"])
    if where == "" and not state and asks == "gradient" and rng.random() < 0.02:
        how, length = "chunks", 2
    instructions = []
    for _ in range(length):
        roll = rng.random()
        places = tuple(rng.randrange(12) for _ in range(3))
        if state and roll < 0.35:
            kind = rng.choice(["read", "read", "assign", "assign_add"])
            instructions.append(Instruction(kind, rng.randrange(2), places))
        elif asks == "gradient" and roll < 0.40 and how != "chunks":
            kind = rng.choice(["watch", "stop", "stop"])
            instructions.append(Instruction(kind, rng.choice(FRESH), places))
        elif roll < 0.55 and how != "chunks":
            name = rng.choice(sorted(TRANSFORMED))
            if forward and name in REVERSE_ONLY:
                name = "jit"
            supply = FORWARD[:20] if name in PIECES else FORWARD if forward else range(len(BLOCKS))
            instructions.append(Instruction("block", (name, rng.choice(supply), rng.choice(supply)), places))
        else:
            # a Jacobian of complex numbers is a matter of convention
            names = FLOATS if roll < 0.85 or asks in ("jacobian", "jvp", "persistent") else OTHERS
            name = rng.choice(names)
            if forward and name == _BACK_RULE:
                name = FLOATS[0]
            entrance = rng.choice(["jax", "jax", "apply", "tensors"])
            instructions.append(Instruction("op", name, places[: len(OPERATIONS[name].takes)], entrance))
    if how == "chunks":
        instructions = instructions * rng.choice([12, 13, 20])
    targets = tuple(rng.randrange(3) for _ in range(rng.choice([1, 1, 1, 2])))
    return Program(
        tuple(instructions),
        rng.randrange(5),
        asks,
        where,
        how,
        1 if how == "chunks" else rng.choice([1, 1, 1, 2, 3]),
        targets if asks == "gradient" else targets[:1],
        rng.random() < 0.3,
        rng.random() < 0.01,
    )


WATCHED = 3  # of the four arguments


def arguments(seed: int) -> list[Any]:
    numbers = np.random.default_rng(seed).uniform(-1, 1, (4, SIZE)).astype(np.float32)
    return [jnp.asarray(row, float) for row in numbers]


class Machine:
    """Runs the instructions: on a tape (`Taped`), or beside derivatives (`Reference`)."""

    def __init__(self) -> None:
        self.values: dict[str, list[int]] = {"f": [], "i": [], "c": []}  # positions in `all`
        self.all: list[Any] = []

    def keep(self, kind: str, x: Any) -> None:
        self.values[kind].append(len(self.all))
        self.all.append(x)

    def place(self, kind: str, i: int) -> int:
        """The position of the value that an operand stands for; one is made where there is none of its kind."""
        if not self.values[kind]:
            floats = [self.place("f", i), self.place("f", i + 1)]
            name = MAKES[kind]
            self.compute(name, floats[: len(OPERATIONS[name].takes)], "jax", False)
        positions = self.values[kind]
        return positions[i % len(positions)]

    def run(self, program: Program) -> None:
        for kind, what, places, entrance in program.instructions:
            if kind in ("op", "stop"):
                positions = [self.place(k, i) for k, i in zip(OPERATIONS[what].takes, places, strict=False)]
                self.compute(what, positions, entrance, kind == "stop")
            elif kind == "block":
                self.transform(*what, [self.place("f", i) for i in places[:2]])
            elif kind == "watch":
                self.watch(self.place("f", places[0]))
            else:
                self.state(kind, what, self.place("f", places[0]))

    def compute(self, name: str, positions: list[int], entrance: str, stopped: bool) -> None:
        raise NotImplementedError

    def transform(self, name: str, f: int, g: int, positions: list[int]) -> None:
        raise NotImplementedError

    def watch(self, position: int) -> None:
        raise NotImplementedError

    def state(self, kind: str, which: int, position: int) -> None:
        raise NotImplementedError


def entrances(op: Operation, entrance: str) -> Callable:
    if entrance == "apply":
        return lambda *xs: dispatch.run(op_of(op.fn, {}), xs)
    if entrance == "tensors":
        if op.tensors is None:
            return lambda *xs: dispatch.run(op_of(op.fn, {}), xs)
        return lambda *xs: _raw(op.tensors(*[tf.Tensor(x) for x in xs]))  # type: ignore[misc]
    return op.fn


class Taped(Machine):
    def __init__(self, tape: Any, variables: list[Any]):
        super().__init__()
        self.tape, self.variables = tape, variables

    def compute(self, name: str, positions: list[int], entrance: str, stopped: bool) -> None:
        op = OPERATIONS[name]
        xs = [self.all[i] for i in positions]
        with self.tape.stop_recording() if stopped and self.tape is not None else contextlib.nullcontext():
            self.keep(op.gives, entrances(op, entrance)(*xs))

    def transform(self, name: str, f: int, g: int, positions: list[int]) -> None:
        x, y = (self.all[i] for i in positions)
        self.keep("f", TRANSFORMED[name](BLOCKS[f].function(), BLOCKS[g].function(), x, y))

    def watch(self, position: int) -> None:
        self.tape.watch(self.all[position])

    def state(self, kind: str, which: int, position: int) -> None:
        variable = self.variables[which]
        if kind == "read":
            self.keep("f", _raw(variable.value()))
        else:
            getattr(variable, kind)(self.all[position])


# ---- what has to come out --------------------------------------------------------------------------------------------


class Dual(NamedTuple):
    """A value and its derivative with respect to all that a gradient may be asked for. Complex numbers are pairs of real ones."""

    value: np.ndarray
    jacobian: np.ndarray

    def __add__(self, other: Any) -> Dual:  # type: ignore[override]
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.jacobian + other.jacobian)
        return Dual(self.value + other, self.jacobian)

    def __mul__(self, other: Any) -> Dual:  # type: ignore[override]
        if isinstance(other, Dual):
            jacobian = self.jacobian * other.value[:, None] + other.jacobian * self.value[:, None]
            return Dual(self.value * other.value, jacobian)
        return Dual(self.value * other, self.jacobian * other)

    def constant(self) -> Dual:
        return Dual(self.value, np.zeros_like(self.jacobian))

    def sum(self) -> float:
        return float(np.sum(self.value))


def _packed(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x.real, x.imag]) if x.dtype.kind == "c" else x


def _unpacked(x: np.ndarray, kind: str) -> np.ndarray:
    return x[:SIZE] + 1j * x[SIZE:] if kind == "c" else x


@functools.cache
def piece(name: Any) -> Callable:
    """The value of an operation, and its Jacobian with respect to each operand, compiled once for all programs.

    `name` is an operation's, or ("grad" or "jvp", a block's number). Nothing else is in the function, so nothing can be mixed up.
    """
    if name in OPERATIONS:
        op = OPERATIONS[name]
        fn, takes = op.fn, op.takes
    else:
        way, block = name
        f, takes = BLOCKS[block].function(), "ff"
        if way == "grad":

            def fn(x: Any, y: Any) -> Any:
                return jax.grad(lambda x: jnp.sum(f(x, y)))(x) + 0 * y
        else:

            def fn(x: Any, y: Any) -> Any:
                return jax.jvp(lambda x: f(x, y), (x,), (y,))[1]

    def of_reals(*xs: Any) -> Any:
        y = fn(*(lax.complex(x[:SIZE], x[SIZE:]) if kind == "c" else x for x, kind in zip(xs, takes, strict=True)))
        return jnp.concatenate([jnp.real(y), jnp.imag(y)]) if y.dtype.kind == "c" else y

    inexact = tuple(i for i, kind in enumerate(takes) if kind != "i")

    def both(*xs: Any) -> Any:
        def at(*some: Any) -> Any:
            full = list(xs)
            for i, x in zip(inexact, some, strict=True):
                full[i] = x
            return of_reals(*full)

        some = [xs[i] for i in inexact]
        y = at(*some)
        if y.dtype.kind == "i":
            return y, ()
        return y, jax.jacrev(at, tuple(range(len(some))))(*some) if some else ()

    compiled = jax.jit(both)

    def run(*xs: Dual) -> Dual:
        with interpreted(False):
            y, rows = compiled(*(x.value for x in xs))
        jacobian = np.zeros((y.size, xs[0].jacobian.shape[1]))
        for i, row in zip(inexact, rows, strict=False):
            jacobian += np.asarray(row, np.float64) @ xs[i].jacobian
        return Dual(np.asarray(y), jacobian)

    return run


def _of_block(index: int) -> Callable:
    block = BLOCKS[index]

    def run(x: Dual, y: Dual) -> Dual:
        values = [x, y]
        for name, places in block.steps:
            values.append(piece(name)(*(values[i % len(values)] for i in places)))
        return values[-1] * block.factor

    return run


def _by_rule(f: Callable, g: Callable, x: Dual, y: Dual) -> Dual:
    return Dual(f(x, y).value, g(x, y).value[:, None] * x.jacobian + 2 * y.jacobian)


def _first(f: Callable, g: Callable, x: Dual, y: Dual) -> Dual:
    return f(x, y)


def _while_of_duals(f: Callable, g: Callable, x: Dual, y: Dual) -> Dual:
    c = x.constant()
    for _ in range(2):
        c = f(c, c).constant()
    return c * y


# Of each transformation of blocks what it means. For a gradient of a block there is a piece.
MEANING: dict[str, Callable] = {
    "python if": lambda f, g, x, y: f(x, y) if x.sum() > 0.2 else g(x, y),
    "python loop": lambda f, g, x, y: f(f(f(x, y), y), y),
    "jit": _first,
    "jit, closure": _first,
    "jit, results": lambda f, g, x, y: (x + f(x, y) + y * 2) * (1 / 3),
    "jit in jit": lambda f, g, x, y: f(x, y) + g(x, x),
    "checkpoint": _first,
    "cond": lambda f, g, x, y: f(x, y) if x.sum() > 0.2 else g(x, y),
    "switch": lambda f, g, x, y: f(x, y) if y.sum() > 0 else g(x, y),
    "scan": lambda f, g, x, y: f(f(x, y), y),
    "scan, rows": lambda f, g, x, y: (f(x, x) + y) * 0.5,
    "fori_loop": lambda f, g, x, y: f(f(x, y), y) + 0.1,
    "while_loop": _while_of_duals,
    "vmap": _first,
    "map": _first,
    "custom_jvp": _by_rule,
    "custom_vjp": _by_rule,
    "function": _first,
    "custom_gradient": _by_rule,
    "recompute_grad": _first,
    "while_loop of tensors": lambda f, g, x, y: f(f(x, y), y),
    "map_fn": _first,
}


class Reference(Machine):
    """Forward, with the derivative beside every value: the chain rule over pieces that JAX has differentiated."""

    def __init__(self, contents: list[np.ndarray], values: int):
        super().__init__()
        self.width = 2 * SIZE * values + SIZE * len(contents)
        self.contents = list(contents)
        # True, False, or None: what a transformed block computes of some values that a tape follows and others that it does not
        self.tracked: list[bool | None] = []
        self.unsure: set[int] = set()  # watched later, and whether all earlier uses count is not known
        # not followed, and used beside what is: that counts if the tape kept the very operation
        self.beside: set[int] = set()

    def own(self, begin: int, size: int) -> np.ndarray:
        rows = np.zeros((size, self.width))
        rows[np.arange(size), begin + np.arange(size)] = 1
        return rows

    def columns(self, position: int) -> slice:
        return slice(2 * SIZE * position, 2 * SIZE * position + len(self.all[position].value))

    def state_columns(self, which: int) -> slice:
        begin = self.width - SIZE * (len(self.contents) - which)
        return slice(begin, begin + SIZE)

    def add(self, kind: str, x: Dual, tracked: bool | None) -> None:
        self.tracked.append(False if kind == "i" else tracked)
        self.keep(kind, Dual(x.value, x.jacobian + self.own(2 * SIZE * len(self.all), len(x.value))))

    def argument(self, x: Any, tracked: bool) -> None:
        self.add("f", Dual(np.asarray(x), np.zeros((SIZE, self.width))), tracked)

    def operands(self, positions: list[int]) -> list[Dual]:
        if any(self.tracked[i] is not False for i in positions):
            self.beside.update(i for i in positions if self.tracked[i] is False)
        return [self.all[i].constant() if self.tracked[i] is False else self.all[i] for i in positions]

    def compute(self, name: str, positions: list[int], entrance: str = "", stopped: bool = False) -> None:
        result = piece(name)(*self.operands(positions))
        marks = {self.tracked[i] for i in positions}
        along = {self.tracked[positions[i]] for i in OPERATIONS[name].along}
        tracked = True if True in along else False if marks == {False} else None
        self.add(OPERATIONS[name].gives, result.constant() if stopped else result, False if stopped else tracked)

    def transform(self, name: str, f: int, g: int, positions: list[int]) -> None:
        x, y = self.operands(positions)
        if name in PIECES:
            result = piece((PIECES[name], f))(x, y)
        else:
            result = MEANING[name](_of_block(f), _of_block(g), x, y)
        marks = {self.tracked[i] for i in positions}
        unsure = len(marks) > 1 or name in SEVERAL  # the block may use but one of them
        self.add("f", result, False if marks == {False} else None if unsure else marks.pop())

    def watch(self, position: int) -> None:
        if self.tracked[position] is None or position in self.beside:
            self.unsure.add(position)
        self.tracked[position] = True

    def state(self, kind: str, which: int, position: int) -> None:
        if kind == "read":
            begin = self.state_columns(which).start
            self.add("f", Dual(self.contents[which], self.own(begin, SIZE)), True)
        else:
            x = self.all[position].value
            self.contents[which] = x if kind == "assign" else self.contents[which] + x


# ---- running them ---------------------------------------------------------------------------------------------------

Found = dict[str, Any]


class Either(NamedTuple):
    """One or the other."""

    value: Any
    other: Any = None


def _targets(case: Program, machine: Machine) -> list[int]:
    """The positions of the targets: among the last values."""
    inexact = sorted(machine.values["f"] + machine.values["c"])
    return [inexact[-1 - i % len(inexact)] for i in case.targets]


def _weights(case: Program, i: int) -> np.ndarray:
    return np.roll([1.0, 2.0, -0.5], i) if case.weighted else np.ones(SIZE)


def taped(case: Program, xs: list[Any], variables: list[Any]) -> Found:
    """Values and derivatives, on tapes."""
    forward = case.asks == "jvp"
    if forward:
        tape: Any = tf.autodiff.ForwardAccumulator(xs[0], jnp.cos(xs[0]))
    else:
        tape = tf.GradientTape(persistent=case.asks == "persistent")
    with tape:
        if not forward:
            tape.watch(xs[:WATCHED])
        machine = Taped(None if forward else tape, variables)
        for x in xs:
            machine.keep("f", x)
        machine.run(case)
    ends = [machine.all[i] for i in _targets(case, machine)]
    out: Found = {f"value {i}": x for i, x in enumerate(machine.all)}
    if forward:
        return out | {"jvp": _raw(tape.jvp(ends[0]))}
    if case.asks == "jacobian":
        return out | {"jacobian": tape.jacobian(ends[0], xs[0])}
    sources = [x for x in machine.all if x.dtype.kind != "i"]
    names = [f"gradient of value {i}" for i, x in enumerate(machine.all) if x.dtype.kind != "i"]
    names += [f"gradient of variable {i}" for i in range(len(variables))]
    cotangents = [jnp.asarray(_weights(case, i), y.dtype) for i, y in enumerate(ends)] if case.weighted else None
    found = tape.gradient(ends, [*sources, *variables], cotangents)
    out |= dict(zip(names, map(_raw, found), strict=True))
    if case.asks == "persistent":
        out["again"] = tape.gradient(ends, xs[0], cotangents)
        out["jacobian"] = tape.jacobian(ends[0], xs[0])
    return out


def expected(case: Program, xs: list[Any], contents: list[np.ndarray]) -> tuple[Found, list[np.ndarray]]:
    """What has to come out, and what the variables hold afterwards."""
    machine = Reference(contents, len(xs) + 2 * len(case.instructions) + 2)
    for i, x in enumerate(xs):
        machine.argument(x, i == 0 if case.asks == "jvp" else i < WATCHED)
    machine.run(case)
    kinds = {position: kind for kind, positions in machine.values.items() for position in positions}
    out: Found = {f"value {i}": _unpacked(x.value, kinds[i]) for i, x in enumerate(machine.all)}
    places = _targets(case, machine)
    rows = machine.all[places[0]].jacobian[:, machine.columns(0)]
    if case.asks == "jvp":
        return out | {"jvp": rows @ np.cos(machine.all[0].value)}, machine.contents
    if case.asks == "jacobian":
        return out | {"jacobian": rows}, machine.contents
    # the gradient of a complex number's real part, as TensorFlow has it
    total = sum(_weights(case, i) @ machine.all[p].jacobian[:SIZE] for i, p in enumerate(places))
    for i in range(len(machine.all)):
        if kinds[i] != "i" and i not in machine.unsure:
            g = _unpacked(total[machine.columns(i)], kinds[i])
            # a target is connected with itself, followed or not
            own = None
            if i in places:  # the gradient is of the source's dtype
                own = sum(_weights(case, j).astype(g.dtype) for j, p in enumerate(places) if p == i)
            followed = machine.tracked[i]
            out[f"gradient of value {i}"] = g if followed else own if followed is False else Either(g, own)
    for i in range(len(contents)):
        out[f"gradient of variable {i}"] = total[machine.state_columns(i)]
    if case.asks == "persistent":
        out["again"], out["jacobian"] = out["gradient of value 0"], rows
    return out, machine.contents


@contextlib.contextmanager
def running(how: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if how == "step by step":
            stack.enter_context(mock.patch.object(schedule, "COMPILE_AT_MOST", 0))
        elif how == "whole":
            decide = schedule._worth_compiling
            stack.enter_context(
                mock.patch.object(schedule, "_worth_compiling", lambda p, v: decide(p, v) or _can_be_whole(p))
            )
        elif how == "chunks":
            stack.enter_context(mock.patch.object(schedule, "COMPILE_AT_MOST", 8))
            stack.enter_context(mock.patch.object(chunks, "CHUNK", 4))
        yield


def _can_be_whole(p: Any) -> bool:
    return 1 < len(p.steps) <= 64 and not any(isinstance(step.op, PythonOp) for step in p.steps)


class Verdict(NamedTuple):
    kind: str
    detail: str = ""
    refused: bool = False


def judge(case: Program) -> Verdict:
    xs = arguments(case.seed)
    stateful = any(step.kind in ("read", "assign", "assign_add") for step in case.instructions)
    # Variables are made where there is something to do for them: to read one under jax.jit is refused.
    contents = [np.asarray(xs[3]) * np.float32(0.5), np.cos(np.asarray(xs[3]))] if stateful else []
    with interpreted(not case.compiled), running(case.how):
        variables = [tf.Variable(x) for x in contents]
        run = _under(case, variables)
        for _ in range(case.repeat):
            wanted, contents = expected(case, xs, contents)
            if any(not np.all(np.abs(x) < 1e4) for x in jax.tree.leaves(wanted)):
                return Verdict("", refused=True)
            try:
                found = run(xs)
            except Exception as error:
                return Verdict(f"raised {type(error).__name__}", f"{type(error).__name__}: {str(error)[:500]}")
            for key, y in wanted.items():
                if problem := differ(found.get(key), y):
                    return Verdict(f"{key.rstrip('0123456789 ')}: wrong", f"{key}: {problem}")
            for i, (variable, x) in enumerate(zip(variables, contents, strict=True)):
                if problem := differ(variable._array, x):
                    return Verdict("what a variable holds: wrong", f"variable {i}: {problem}")
    return Verdict("")


def _under(case: Program, variables: list[Any]) -> Callable:
    def run(xs: list[Any]) -> Found:
        return taped(case, xs, variables)

    def some(xs: list[Any]) -> Found:
        return {k: v for k, v in run(xs).items() if v is not None}

    if case.where == "jit":
        return jax.jit(some)
    if case.where == "function":
        compiled = tf.function(lambda xs: some([_raw(x) for x in xs]))
        return lambda xs: {k: _raw(v) for k, v in compiled(xs).items()}
    if case.where == "vmap":
        mapped = jax.vmap(some)
        return lambda xs: {k: v[0] for k, v in mapped([jnp.stack([x, x * 0.5]) for x in xs]).items()}
    return run


def differ(found: Any, expected: Any) -> str:
    if isinstance(expected, Either):
        return differ(found, expected.value) if differ(found, expected.other) else ""
    if found is None:
        return "" if expected is None or not np.any(np.asarray(expected)) else f"None instead of {np.asarray(expected)}"
    if expected is None:
        return "" if not np.any(np.asarray(found)) else f"{np.asarray(found)} instead of None"
    x, y = np.asarray(found), np.asarray(expected)
    if x.shape != y.shape or x.dtype.kind != y.dtype.kind or x.dtype != jax.dtypes.canonicalize_dtype(x.dtype):
        return f"{x.dtype}{x.shape} instead of {y.dtype}{y.shape}"
    scale = max(1.0, float(np.max(np.abs(y), initial=0)))
    tolerance = 1e-9 if x.dtype.name in ("float64", "complex128") else 3e-4
    return "" if np.all(np.abs(x - y) <= tolerance * scale) else f"{x.tolist()} instead of {y.tolist()}"


def family(case: Program) -> str:
    return ", ".join(filter(None, [case.asks, case.where, case.how]))


def tally(case: Program, verdict: Verdict) -> list[str]:
    words = [f"asks {case.asks}", f"under {case.where or 'nothing'}", f"run {case.how or 'as it is decided'}"]
    words += sorted({f"with {step.what[0] if step.kind == 'block' else step.kind}" for step in case.instructions})
    return words + ["left out: too large"] * verdict.refused
