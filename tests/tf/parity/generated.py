"""Programs in TensorFlow's names, made at random: tapes, variables, control flow, custom gradients.

    python -m tests.tf.parity.generated --first 0 --count 1000

runs as many under TensorFlow and under tapejax, and prints where they differ; with ``--show`` it prints the text of the first.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Shape = tuple[int, ...]
SHAPES: list[Shape] = [(), (3,), (2, 3), (3, 2)]

# Of x: the shape stays.
UNARY = """
tf.sin(x) | tf.exp(-x) | tf.tanh(x) | tf.sqrt(tf.abs(x) + 1.0) | tf.nn.relu(x) | tf.sigmoid(x) | tf.floor(x) | tf.round(x)
tf.sign(x) | tf.abs(x) | tf.cast(tf.cast(x, tf.int32), tf.float32) | tf.stop_gradient(x) | tf.identity(x) | x**2 | x**3.0
tf.square(x) | -x | 1.0 / (x + 5.0) | 2 * x | x - 1 | tf.nn.softplus(x) | tf.nn.elu(x) | tf.nn.leaky_relu(x) | tf.nn.gelu(x)
tf.clip_by_value(x, -1.0, 1.0) | tf.math.log1p(tf.abs(x)) | tf.where(x > 0.0, x, tf.exp(x)) | tf.where(x == 0.0, 1.0, x)
tf.maximum(x, 0.0) | tf.minimum(x, 1) | x % 2.0 | x // 2.0 | tf.math.reciprocal_no_nan(x) | tf.math.erf(x) | tf.math.atan(x)
tf.nn.relu6(x * 3) | tf.nn.silu(x) | tf.math.softsign(x) | tf.math.ceil(x) | tf.zeros_like(x) | tf.ones_like(x) * x
tf.grad_pass_through(tf.round)(x) | custom(x) | traced(x) | recomputed(x)
"""
# Of x and y, of one shape or y a number: the shape is that of x.
BINARY = """
x + y | x - y | x * y | x / (y * y + 1.0) | tf.maximum(x, y) | tf.minimum(x, y) | tf.math.squared_difference(x, y)
tf.where(x > y, x, y) | tf.math.divide_no_nan(x, y) | tf.abs(x) ** y | tf.math.floormod(x, y) | tf.atan2(x, y + 4.0)
traced_pair(x, y) | tf.math.xlogy(x, tf.abs(y) + 0.5) | tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * y, lambda: y - x)
"""
# Of x with at least one axis, by what becomes of the shape. N is the length of the first axis, ROWS as many of its indices.
SAME = """
tf.nn.softmax(x) | tf.nn.log_softmax(x) | tf.cumsum(x) | tf.reverse(x, [0]) | tf.sort(x) | x[::-1] | tf.roll(x, 1, 0)
tf.nn.l2_normalize(x, -1) | tf.clip_by_norm(x, 1.0) | tf.reduce_max(x, axis=-1, keepdims=True) + x
tf.concat([x[1:], x[:1]], 0) | tf.stack(tf.unstack(x)) | tf.gather(x, ROWS) | tf.math.unsorted_segment_sum(x, ROWS, N)
tf.tensor_scatter_nd_update(x, [[0]], [x[1]]) | tf.repeat(x, 2, axis=0)[:N]
tf.tensor_scatter_nd_add(x, [[0], [0]], [x[1], x[0]]) | tf.map_fn(lambda a: a * a, x) | tf.vectorized_map(tf.sin, x)
tf.scan(lambda a, b: a + 0.5 * b, x) | tf.linalg.normalize(x)[0]
"""
ROW = """
x[0] | x[-1] | tf.reduce_prod(x, axis=0) | tf.reduce_sum(x, axis=0) | tf.math.reduce_variance(x, axis=0)
tf.foldl(lambda a, b: a * 0.5 + b, x) | tf.split(x, N)[0][0]
"""
NUMBER = """
tf.reduce_sum(x) | tf.reduce_mean(x) | tf.reduce_max(x) | tf.norm(x) | tf.math.reduce_std(x) | tf.reshape(x, [-1])[0]
tf.reduce_logsumexp(x)
"""
# Of a matrix x.
TURNED = "tf.transpose(x) | tf.reshape(x, SHAPE)"
MATRIX = "x @ tf.transpose(x) @ x | tf.linalg.band_part(x, 0, -1)"
TRACE = "tf.linalg.trace(x) | tf.matmul(x, x, transpose_b=True)[0, 0] | tf.einsum('ij,ij->', x, x)"
# A variable v, and a tensor y of its shape.
ASSIGNMENTS = "v.assign(y * 0.5) | v.assign_add(y) | v.assign_sub(tf.ones_like(y))"
SLICES = "v[0].assign(y[1]) | v.scatter_add(tf.IndexedSlices([y[0]], [1]))"
READS = "v * 1.0 | v.read_value() | v.value() | tf.identity(v) | v + v"


def rows(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


class Program:
    """The text of one program: a function ``program(tf, custom, traced, traced_pair, recomputed)`` of many results."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0
        self.values: list[tuple[str, Shape]] = []
        self.variables: list[tuple[str, Shape]] = []
        self.constants: list[tuple[str, Shape]] = []
        self.tapes: list[str] = []
        self.outer: list[str] = []  # what was computed directly in the outer tape's block
        self.inner: list[str] = []  # gradients of inner tapes
        self.make()
        self.text = "def program(tf, custom, traced, traced_pair, recomputed):\n" + "\n".join(self.lines)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def one(self, table: str) -> str:
        return self.random.choice(rows(table))

    def literal(self, shape: Shape) -> Any:
        if shape:
            return [self.literal(shape[1:]) for _ in range(shape[0])]
        if self.chance(0.6):  # where many functions have a kink, or meet
            return self.random.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])
        return round(self.random.uniform(-2, 2), 2)

    def some(self, shape: Shape | None = None) -> tuple[str, Shape]:
        """A value, of this shape if there is one, most likely a late one."""
        found = [value for value in self.values if shape is None or value[1] == shape]
        return self.random.choice(found[-6:] if self.chance(0.7) else found)

    def add(self, text: str, shape: Shape, prefix: str = "t") -> str:
        self.count += 1
        name = f"{prefix}{self.count}"
        self.line(f"{name} = {text}")
        self.values.append((name, shape))
        return name

    def of(self, table: str, x: str, shape: Shape) -> str:
        text = self.one(table)
        if shape:
            picked = [self.random.randrange(shape[0]) for _ in range(shape[0])]
            text = text.replace("ROWS", str(picked)).replace("SHAPE", str([*shape[::-1]])).replace("N", str(shape[0]))
        return _with(text, x=x)

    def computed(self) -> str:
        x, shape = self.some()
        if self.chance(0.35):
            return self.add(self.of(UNARY, x, shape), shape)
        if not shape or self.chance(0.35):
            y, _ = self.some(shape if self.chance(0.8) else ())
            return self.add(_with(self.one(BINARY), x=x, y=y), shape)
        kinds = [(SAME, shape), (ROW, shape[1:]), (NUMBER, ())]
        if len(shape) == 2:
            kinds += [(TURNED, shape[::-1]), (MATRIX, shape), (TRACE, ())]
        table, result = self.random.choice(kinds)
        return self.add(self.of(table, x, shape), result)

    def statement(self, depth: int = 0) -> None:
        chosen = self.random.random()
        if chosen < 0.68:
            name = self.computed()
            if depth == 0:
                self.outer.append(name)
        elif chosen < 0.72:
            shape = self.random.choice(SHAPES)
            self.add(f"tf.broadcast_to({self.some(())[0]}, {[*shape]})", shape)
        elif chosen < 0.80:
            v, shape = self.random.choice(self.variables)
            table = SLICES if shape and self.chance(0.2) else ASSIGNMENTS
            self.line(_with(self.one(table), v=v, y=self.some(shape)[0]))
        elif chosen < 0.84:
            v, shape = self.random.choice(self.variables)
            self.add(_with(self.one(READS), v=v), shape)
        elif chosen < 0.88:
            self.line(f"{self.random.choice(self.tapes)}.watch({self.some()[0]})")
        elif chosen < 0.91:
            self.block(f"with {self.random.choice(self.tapes)}.stop_recording():", depth)
        elif chosen < 0.95 and depth < 2:
            self.inner_tape(depth)
        else:
            self.branch()

    def block(self, head: str, depth: int) -> None:
        self.line(head)
        self.indent += 1
        for _ in range(self.random.randrange(1, 4)):
            self.statement(depth + 1)
        self.indent -= 1

    def inner_tape(self, depth: int) -> None:
        self.count += 1
        tape = f"tape{self.count}"
        source, shape = self.some()
        setting = self.random.choice(["", "persistent=True", "watch_accessed_variables=False"])
        self.line(f"with tf.GradientTape({setting}) as {tape}:")
        self.indent += 1
        self.tapes.append(tape)
        self.line(f"{tape}.watch({source})")
        for _ in range(self.random.randrange(1, 5)):
            self.statement(depth + 1)
        target, _ = self.some()
        self.tapes.remove(tape)
        self.indent -= 1
        found = f"{tape}.gradient({target}, {source}, unconnected_gradients='zero')"
        self.inner.append(self.add(f"tf.convert_to_tensor({found})", shape))

    def branch(self) -> None:
        test, (value, shape) = self.some(())[0], self.some()
        self.count += 1
        name = f"t{self.count}"
        self.line(f"if float({test}) > 0.3:")
        self.line(f"    {name} = {value} * 2.0")
        self.line("else:")
        self.line(f"    {name} = tf.sin({value})")
        self.values.append((name, shape))

    def make(self) -> None:
        for i in range(self.random.randrange(1, 4)):
            shape = self.random.choice(SHAPES)
            trainable = ", trainable=False" if self.chance(0.15) else ""
            self.line(f"v{i} = tf.Variable({self.literal(shape)}{trainable})")
            self.variables.append((f"v{i}", shape))
        for i, shape in enumerate(SHAPES):
            self.line(f"c{i} = tf.constant({self.literal(shape)})")
            self.constants.append((f"c{i}", shape))
        self.values = self.variables + self.constants
        accessed = ", watch_accessed_variables=False" if self.chance(0.2) else ""
        self.line(f"with tf.GradientTape(persistent=True{accessed}) as tape:")
        self.indent += 1
        self.tapes.append("tape")
        watched = [name for name, _ in self.constants if self.chance(0.7)]
        self.line(f"tape.watch([{', '.join(watched)}])")
        for _ in range(self.random.randrange(4, 16)):
            self.statement()
        self.outer.append(self.computed())
        self.indent -= 1
        self.ask()

    def ask(self) -> None:
        given = [name for name, _ in self.variables + self.constants]
        self.line(f"sources = [{', '.join([*given, *self.random.sample(self.outer, min(2, len(self.outer)))])}]")
        first, last = self.outer[0], self.outer[-1]
        self.line("found = [")
        for target in dict.fromkeys(self.outer[-3:]):
            self.line(f"    tape.gradient({target}, sources),")
        self.line(f"    tape.gradient([{first}, {last}], sources, unconnected_gradients='zero'),")
        self.line(f"    tape.gradient({first}, sources, output_gradients=tf.ones_like({first}) * 0.5),")
        if self.chance(0.15):
            self.line(f"    tape.jacobian({last}, [{given[0]}, {given[-1]}]),")
        self.line("]")
        names = dict.fromkeys([name for name, _ in self.variables] + self.outer + self.inner)
        self.line(f"return found, [{', '.join(f'{name} * 1.0' for name in names)}]")


def _with(text: str, **names: str) -> str:
    """`text` with these names in the places of its own."""
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], text)


def body_of(seed: int) -> Callable[[Any], Any]:
    """The program of this seed as the body of a parity test."""
    text = Program(seed).text

    def body(tf: Any) -> Any:
        @tf.custom_gradient
        def custom(x):
            return x * x, lambda cotangent: cotangent * 3.0 * x

        traced = tf.function(lambda x: tf.sin(x) * x)
        traced_pair = tf.function(lambda x, y: tf.maximum(x, y) * y)
        recomputed = tf.recompute_grad(lambda x: tf.tanh(x) * x)
        names: dict[str, Any] = {}
        exec(compile(text, f"<program {seed}>", "exec"), names)
        found, values = names["program"](tf, custom, traced, traced_pair, recomputed)
        # rows of an embedding's gradient are IndexedSlices in TensorFlow
        dense = [[None if x is None else tf.convert_to_tensor(x) for x in each] for each in found]
        return dense, values

    return body


# Sums in single precision, of numbers that may cancel.
TOLERANCE = {"rtol": 2e-4, "atol": 2e-5}


def options(doc: str | None) -> argparse.ArgumentParser:
    """The arguments that each hunt of this kind has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--show", action="store_true")
    return parser


def both(given: argparse.Namespace, text_of: Callable[[int], str]) -> tuple[Any, Any, Any]:
    """The harness, TensorFlow and tapejax; with ``--show`` the first program is printed, and that is all."""
    if given.show:
        print(text_of(given.first))
        sys.exit()
    sys.path.insert(0, str(Path(__file__).parent))
    import harness

    return harness, harness.import_tensorflow(), harness.import_tapejax()


def main() -> None:
    given = options(__doc__).parse_args()
    harness, tensorflow, tapejax = both(given, lambda seed: Program(seed).text)
    differ = 0
    for seed in range(given.first, given.first + given.count):
        try:
            body = body_of(seed)
            expected = harness.outcome_under_tensorflow(body, tensorflow)
            harness.compare(body, expected, tapejax, **TOLERANCE)
        except (Exception, pytest.fail.Exception) as error:
            differ += 1
            print(f"program {seed}: {str(error)[-400:]}", flush=True)
    print(f"{given.count} programs, {differ} differ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
