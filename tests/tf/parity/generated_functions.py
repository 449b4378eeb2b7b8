"""Programs in TensorFlow's names, made at random: functions whose control flow AutoGraph converts, under tapes.

    python -m tests.tf.parity.generated_functions --first 0 --count 1000

runs as many under TensorFlow and under tapejax, and prints where they differ; with ``--show`` it prints the text of the first.
Where TensorFlow refuses a call and tapejax does not, that is counted apart.
"""

from __future__ import annotations

import collections
import linecache
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.tf.parity.generated import TOLERANCE, both, options

# What a value is: "number" and "vector" are floats of the program's dtype, "int" and "bool" scalars.
UNARY = """
tf.sin(x) | tf.tanh(x) | x * 0.5 | x - 1.0 | 0.2 * x**2 | tf.nn.relu(x) | tf.abs(x) | tf.exp(-tf.abs(x)) | -x
tf.cos(x) * 2.0 | tf.where(x > 0.0, x, 0.1 * x) | tf.identity(x) | tf.stop_gradient(x) | x / (2.0 + x * x) | custom(x)
traced(x) | leaky(x) | looped(x) | early(x, n) | recomputed(x) | scaled(x) | tf.clip_by_value(x, -1.0, 1.0)
tf.sqrt(tf.abs(x) + 0.5) | power(x, 2) | counted(x) | (lambda z: z * z * 0.3)(x) | tf.cast(i, F) * 0.25 + x
tf.nn.softplus(x) | tf.zeros_like(x) + 0.5 | either(x) | m.method(x)
"""
BINARY = """
x + y | x - y | x * y * 0.5 | tf.maximum(x, y) | tf.minimum(x, y) | tf.where(x > y, x, y) | x / (1.0 + y * y)
traced_pair(x, y) | (x if c else y) | (x if p else y) | (y if not c else x * 0.5) | tf.cond(c, lambda: x * 0.5, lambda: y)
tf.case([(c, lambda: y)], default=lambda: x)
tf.switch_case(tf.convert_to_tensor(j) % 3, [lambda: x, lambda: y, lambda: x - y])
tf.while_loop(lambda q, z: q < n, lambda q, z: (q + 1, tf.sin(z) + y * 0.3), (i, x))[1] | chosen(x, y)
tf.cond(c, lambda: traced(x), lambda: custom(y))
tf.while_loop(lambda z: tf.reduce_sum(z) < -9.0, lambda z: [z + 1.0], [x * y])[0]
tf.while_loop(lambda q, z: q < 9, lambda q, z: [q + 2, z * 0.5 + y], [j, x], maximum_iterations=2)[-1]
tf.nest.flatten({'a': x, 'b': y})[0]
"""
VECTOR = """
x[::-1] | tf.cumsum(x) * 0.3 | tf.nn.softmax(x) | tf.map_fn(lambda r: r * a, x) | tf.scan(lambda s, r: s * 0.5 + r, x)
tf.roll(x, 1, 0) | tf.map_fn(lambda r: leaky(r), x) | tf.map_fn(lambda r: r * 2.0 if r > a else -r, x) | tf.sort(x)
tf.concat([x[1:], x[:1]], 0) | x * a | tf.scan(lambda s, r: tf.tanh(s) + r * a, x, initializer=a)
tf.vectorized_map(lambda r: tf.sin(r) * a, x) | x + a | x - tf.reduce_mean(x) | tf.tensor_scatter_nd_update(x, [[1]], [a])
tf.stack([x[1], a, x[0]]) | tf.stack([r * a for r in tf.unstack(x)]) | tf.gather(x, [2, 0, 1])
tf.map_fn(lambda q: x[q] * tf.cast(q, F), tf.range(3), fn_output_signature=F) | filled(x, a) | tf.broadcast_to(a, [3]) + x
"""
NUMBER = """
tf.reduce_sum(x) | tf.reduce_mean(x) | tf.reduce_max(x) | x[0] | x[-1] | x[j % 3] | tf.foldl(lambda s, r: s * 0.5 + r, x)
total(x) | tf.foldr(lambda s, r: tf.sin(s) + r, x, initializer=a) | tf.norm(x + 3.0) | tf.reduce_prod(x * 0.5) | first(x)
"""
INT = """
i + 1 | i * 2 - j | tf.minimum(i, j) | i % 4 | (i if c else j) | n - i | i // 2 | tf.cast(a > 0.0, tf.int32) + i
tf.constant(2) | abs(i - j) | tf.cast(tf.argmax(x), tf.int32) | tf.shape(x)[0] | tf.where(c, i, 3) | k + i | bound(i)
"""
CONDITION = """
a > 0.0 | tf.reduce_sum(x) > 0.3 | i % 2 == 0 | i < n | c and a < 1.0 | c or i > 2 | not c | 0.0 < a < 1.0
tf.reduce_any(x > 0.5) | i == j | not c and not (a > 0.5) | a > 0.0 and p | p and a > 0.0 | p or c
tf.math.logical_xor(c, a > b) | tf.abs(a) < 0.7 and tf.reduce_max(x) > 0.0 | n > 2 | i >= j and a != b
(c or i < 2) and not p | 0 <= i <= n < 9 | within(a) | tf.reduce_all(x < 2.0)
"""
PYTHON = """
flag | not flag | k > 1 | k == 2 and flag | k % 2 == 0 | flag is None | isinstance(k, int) | w is not None | len(log) > 5
"""
HELPERS = {
    "custom": """
@tf.custom_gradient
def custom(x):
    y = x * x * 0.5
    return y, lambda cotangent: cotangent * 3.0 * x""",
    "traced": """
@tf.function
def traced(x):
    if tf.reduce_sum(x) > 0.0:
        x = tf.sin(x) * x
    return x""",
    "traced_pair": """
@tf.function
def traced_pair(x, y):
    for q in tf.range(2):
        if tf.reduce_sum(y) > tf.cast(q, F):
            x = x * 0.5 + y
        else:
            x = x - y * 0.5
    return x""",
    "leaky": """
def leaky(x, slope=0.2):
    if tf.reduce_sum(x) > 0.0:
        return x * w
    return slope * x""",
    "looped": """
def looped(x):
    s = tf.zeros_like(x)
    for q in tf.range(3):
        if q == 1:
            continue
        s = s * w + x * tf.cast(q, F) * 0.5
    return s""",
    "early": """
def early(x, n):
    if n > 3:
        return -x
    elif n > 1:
        y = x * 0.5
        if tf.reduce_sum(y) > 0.0:
            return y
        return y - w
    else:
        y = x + 1.0
    return y * w""",
    "recomputed": """
recomputed = tf.recompute_grad(lambda x: tf.tanh(x) * x)""",
    "scaled": """
scaled = lambda x: x * w if tf.reduce_sum(x) > 0.5 else x - w""",
    "power": """
def power(x, k):
    if k == 0:
        return tf.ones_like(x)
    return x * 0.7 * power(x, k - 1)""",
    "counted": """
def counted(x):
    counts.assign_add(1.0)
    return x * counts * 0.1""",
    "either": """
def either(x):
    def low():
        return tf.minimum(x, w)
    def high():
        return tf.maximum(x, -w) if tf.reduce_sum(x) < 2.0 else x
    f = low if flagged else high
    return f() * 0.5""",
    "chosen": """
def chosen(x, y, *rest, swap=False, **more):
    if swap:
        x, y = y, x
    if tf.reduce_sum(x) > tf.reduce_sum(y):
        x, y = y * 0.5, x
    return x - y * 0.25""",
    "filled": """
def filled(x, a):
    array = tf.TensorArray(F, size=3)
    for q in tf.range(3):
        a = a * 0.5 + x[q]
        if a > 0.2:
            array = array.write(q, a)
        else:
            array = array.write(q, a * w)
    return array.stack()""",
    "total": """
def total(x):
    s = tf.zeros([], F)
    for r in x:
        if r < 0.0:
            continue
        if s > 1.5:
            break
        s += r * w
    return s""",
    "first": """
def first(x):
    q = tf.constant(0)
    while q < 3 and x[tf.minimum(q, 2)] < 0.1:
        q += 1
    return x[tf.minimum(q, 2)] * w""",
    "bound": """
def bound(i):
    while i > 4:
        i = i // 2
    return i""",
    "within": """
def within(a):
    return tf.abs(a) < 0.8 and not a == 0.0""",
}
DTYPES = ("tf.float32", "tf.float32", "tf.float32", "tf.float64")


def rows(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


def replaced(text: str, names: dict[str, str]) -> str:
    """`text` with these names in the places of its own."""
    return re.sub(rf"(?<![\w.'])({'|'.join(names)})\b(?!=)", lambda found: names[found[0]], text)


class Program:
    """The text of one program: a function ``program(tf, attempt)`` of many results."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0
        self.values: dict[str, list[str]] = {}
        self.fixed: set[str] = set()  # what is not assigned anew
        self.loops: list[str] = []  # around what is written: "traced" or "python"
        self.used: set[str] = set()  # of the helpers
        self.make()
        self.text = "def program(tf, attempt):\n" + "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def number(self) -> float:
        if self.chance(0.3):
            return self.random.choice([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
        return round(self.random.uniform(-1.5, 1.5), 2)

    def some(self, kind: str) -> str:
        found = self.values[kind]
        return self.random.choice(found[-5:] if self.chance(0.7) else found)

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def row(self, table: str) -> str:
        """A row of the table, but no new helper once there are two: to convert them takes TensorFlow long."""
        while True:
            text = self.random.choice(rows(table))
            needed = {name for name in HELPERS if re.search(rf"\b{name}\b", text)}
            if len(self.used | needed) <= max(2, len(self.used)):
                self.used |= needed
                return text

    def of(self, table: str, **given: str) -> str:
        """A row of the table, with names of the program in the places of the table's."""
        text = self.row(table)
        kinds = {"x": "vector", "a": "number", "b": "number", "i": "int", "j": "int"}
        names = {name: self.some(kind) for name, kind in kinds.items()} | given
        for name in ("c", "p"):
            if re.search(rf"(?<![\w.']){name}\b", text):
                if name == "c" and self.values["bool"] and self.chance(0.4):
                    names["c"] = self.some("bool")
                elif name == "c":
                    names["c"] = f"({self.of('a > 0.0 | i % 2 == 0 | tf.reduce_sum(x) > 0.3 | i < n')})"
                else:
                    names["p"] = f"({self.random.choice(rows(PYTHON))})"
        return replaced(text, names)

    def condition(self) -> str:
        return self.of(CONDITION)

    def expression(self, kind: str) -> str:
        if kind == "int":
            return self.of(INT)
        if kind == "bool":
            return self.condition()
        if self.chance(0.35):
            return self.of(UNARY, x=self.some(kind))
        if kind == "vector" and self.chance(0.4):
            return self.of(VECTOR)
        if kind == "number" and self.chance(0.4):
            return self.of(NUMBER)
        return self.of(BINARY, x=self.some(kind), y=self.some(kind))

    # ---- statements

    def statements(self, depth: int, least: int = 1, most: int = 2) -> None:
        kept = {kind: list(names) for kind, names in self.values.items()}
        for _ in range(self.random.randint(least, most)):
            self.statement(depth)
        if depth:
            self.values = kept

    def block(self, head: str, depth: int, *, within: str = "", least: int = 1) -> None:
        self.line(head)
        self.indent += 1
        self.loops += [within] * bool(within)
        written = len(self.lines)
        self.statements(depth + 1, least)
        if written == len(self.lines):
            self.line("pass")
        del self.loops[len(self.loops) - bool(within) :]
        self.indent -= 1

    def kind(self) -> str:
        return self.random.choices(["number", "vector", "int", "bool"], [8, 5, 2, 1])[0]

    def assign_new(self, kind: str | None = None) -> None:
        kind = kind or self.kind()
        text, name = self.expression(kind), self.name({"number": "s", "vector": "u", "int": "i", "bool": "c"}[kind])
        self.line(f"{name} = {text}")
        self.values[kind].append(name)

    def assign_again(self) -> None:
        kind = self.kind()
        names = [x for x in self.values[kind] if x not in self.fixed]
        names = [x for x in names if x.isidentifier() or x.endswith("]") or x.startswith("o.")]
        if not names:
            return self.assign_new(kind)
        name = self.random.choice(names)
        if kind in ("number", "vector") and self.chance(0.3):
            self.line(f"{name} += 0.5 * {self.some(kind if kind == 'vector' and self.chance(0.5) else 'number')}")
        elif len(names) > 1 and self.chance(0.15):
            other = self.random.choice(names)
            if other != name and name.isidentifier() and other.isidentifier():
                self.line(f"{name}, {other} = {other}, {name}")
        else:
            self.line(f"{name} = {self.expression(kind)}")
        return None

    def statement(self, depth: int) -> None:
        chosen = self.random.random()
        if self.loops and chosen < 0.1:
            self.jump()
        elif chosen < 0.3:
            self.assign_new()
        elif chosen < 0.55:
            self.assign_again()
        elif chosen < 0.63:
            self.assign_variable()
        elif depth > 1:
            self.assign_again()
        elif chosen < 0.76:
            self.branch(depth)
        elif chosen < 0.9:
            self.random.choices(
                [self.while_, self.for_range, self.for_rows, self.for_python, self.array, self.append],
                [3, 3, 2, 2, 1, 1],
            )[0](depth)
        elif chosen < 0.95:
            self.tape(depth)
        elif chosen < 0.98:
            self.structure()
        else:
            self.local_function()

    def jump(self) -> None:
        word = self.random.choice(["break", "continue"])
        if self.loops[-1] == "python":
            self.line(f"if {self.random.choice(rows(PYTHON))}:")
        else:
            self.line(f"if {self.condition()}:")
        if self.chance(0.4):
            self.indent += 1
            self.assign_again()
            self.indent -= 1
        self.line(f"    {word}")

    def assign_variable(self) -> None:
        kind = self.random.choice(list(self.variables))
        v = self.random.choice(self.variables[kind])
        if kind == "int":
            self.line(f"{v}.assign_add({self.random.choice(['1', '2', self.some('int')])})")
        else:
            x = self.random.choice([self.some(kind), f"tf.sin({self.some(kind)})"])
            text = self.random.choice(["assign_add(0.2 * X)", "assign(tf.tanh(X))", "assign_sub(0.1 * X)"])
            self.line(f"{v}.{text.replace('X', x)}")

    def branch(self, depth: int) -> None:
        python = self.chance(0.2)
        test = self.random.choice(rows(PYTHON)) if python else self.condition()
        joined = None
        if self.chance(0.4):
            kind = self.kind()
            joined = kind, self.name("t")
        heads = [f"if {test}:"]
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            heads.append(f"elif {self.random.choice(rows(PYTHON)) if self.chance(0.2) else self.condition()}:")
        if joined or self.chance(0.6):
            heads.append("else:")
        forgets = joined and self.chance(0.03)
        for place, head in enumerate(heads):
            self.block(head, depth, least=0 if joined and not (forgets and place == 1) else 1)
            if joined and not (forgets and place == 1):
                self.line(f"    {joined[1]} = {self.expression(joined[0])}")
        if joined:
            self.values[joined[0]].append(joined[1])

    def bound(self) -> str:
        return self.random.choice(["n", "n", "3", "2", "k", "tf.constant(2)", f"tf.minimum({self.some('int')}, 3)"])

    def while_(self, depth: int) -> None:
        q = self.name("q")
        self.line(f"{q} = {self.random.choice(['tf.constant(0)', 'tf.constant(0)', '0', 'tf.zeros([], tf.int32)'])}")
        more = "" if self.chance(0.6) else self.random.choice([" and ", " and not "]) + f"({self.condition()})"
        bound = self.random.choice(["n", "n", "3", "tf.constant(2)"])
        self.line(f"while {q} < {bound}{more}:")
        self.indent += 1
        self.loops.append("traced")
        self.line(f"{q} += 1")  # first: a `continue` must not skip it
        self.values["int"].append(q)
        self.fixed.add(q)
        self.statements(depth + 1)
        self.loops.pop()
        self.indent -= 1
        if q not in self.values["int"]:
            self.values["int"].append(q)

    def for_range(self, depth: int) -> None:
        q = self.name("q")
        bound = self.bound()
        args = self.random.choice([bound, bound, bound, f"1, {bound}", f"{bound}, 0, -1", f"0, {bound}, delta=2"])
        python = self.chance(0.1) and "k" != bound and "delta" not in args
        self.values["int"].append(q)
        self.fixed.add(q)
        self.block(f"for {q} in {'' if python else 'tf.'}range({args}):", depth, within="traced")
        self.values["int"].remove(q)

    def for_rows(self, depth: int) -> None:
        r = self.name("r")
        pair = f"tf.stack([{self.some('number')}, {self.some('number')}])"
        over = self.random.choice([self.some("vector"), "rows", "tf.reverse(rows, [0])", pair])
        kind = "vector" if "rows" in over else "number"
        self.values[kind].append(r)
        self.fixed.add(r)
        self.block(f"for {r} in {over}:", depth, within="traced")
        self.values[kind].remove(r)

    def for_python(self, depth: int) -> None:
        r = self.name("r")
        over = self.random.choice(
            [
                f"[{self.some('number')}, {self.some('number')}]",
                "range(2)",
                "range(k)",
                "tf.unstack(x)",
                "enumerate",
                "zip",
            ]
        )
        if over == "enumerate":
            over, r = f"enumerate([{self.some('number')}, {self.some('number')}])", f"_, {r}"
        elif over == "zip":
            over, r = f"zip([{self.some('number')}, {self.some('number')}], [1.0, 2.0])", f"{r}, _"
        name = r.replace("_", "").replace(",", "").strip()
        if "range" not in over:
            self.values["number"].append(name)
            self.fixed.add(name)
        self.block(f"for {r} in {over}:", depth, within="python")
        if "range" not in over:
            self.values["number"].remove(name)

    def array(self, depth: int) -> None:
        array, q, u = self.name("array"), self.name("q"), self.name("u")
        kind = self.random.choice(["number", "vector"])
        shape = f", element_shape={'[]' if kind == 'number' else '[None]'}"
        self.line(f"{array} = tf.TensorArray(F, size=3{self.random.choice(['', ', clear_after_read=False', shape])})")
        self.values["int"].append(q)
        self.fixed.add(q)
        if self.chance(0.7):
            self.line(f"for {q} in tf.range(3):")
            self.indent += 1
        else:
            self.line(f"{q} = tf.constant(0)")
            self.line(f"while {q} < 3:")
            self.indent += 1
        self.loops.append("traced")
        kept = {kind: list(names) for kind, names in self.values.items()}
        for _ in range(self.random.randrange(3)):
            self.assign_again()
        if self.chance(0.2):
            self.line(f"if {self.condition()}:")
            self.line(f"    {array} = {array}.write({q}, {self.expression(kind)})")
            self.line("else:")
            self.line(f"    {array} = {array}.write({q}, {self.expression(kind)})")
        else:
            self.line(f"{array} = {array}.write({q}, {self.expression(kind)})")
        if f"while {q}" in "".join(self.lines[-8:]):
            self.line(f"{q} += 1")
        self.values = kept
        self.loops.pop()
        self.indent -= 1
        self.values["int"].remove(q)
        if kind == "number":
            self.line(f"{u} = {array}.{self.random.choice(['stack()', 'stack()', 'gather([2, 0, 1])'])}")
        else:
            text = self.random.choice(["tf.reduce_sum(A.stack(), 0) * 0.3", "A.read(1)", "A.concat()[2:5]"])
            self.line(f"{u} = {text.replace('A', array)}")
        self.values["vector"].append(u)

    def append(self, depth: int) -> None:
        items, r, u = self.name("items"), self.name("r"), self.name("u")
        self.line(f"{items} = []")
        self.values["number"].append(r)
        self.fixed.add(r)
        self.line(f"for {r} in {self.random.choice(['tf.unstack(x)', '[s0, s0 * 0.5, 1.0]', 'x'])}:")
        self.indent += 1
        kept = {kind: list(names) for kind, names in self.values.items()}
        for _ in range(self.random.randrange(3)):
            self.assign_again()
        self.line(f"{items}.append({self.expression('number')})")
        self.indent -= 1
        self.values = kept
        self.values["number"].remove(r)
        self.line(f"{u} = tf.stack({items})")
        self.values["vector"].append(u)

    def tape(self, depth: int) -> None:
        tape, g, y = self.name("tape"), self.name("g"), self.name("y")
        kind = self.random.choice(["number", "number", "vector"])
        source = self.random.choice([self.some(kind), *self.variables[kind]])
        setting = self.random.choice(["", "", "persistent=True", "watch_accessed_variables=False"])
        self.line(f"with tf.GradientTape({setting}) as {tape}:")
        self.indent += 1
        self.line(f"{tape}.watch({source})")
        around, self.loops = self.loops, []  # a jump out of the block would skip what is used behind it
        kept = {kind: list(names) for kind, names in self.values.items()}
        again = self.fixed
        self.fixed = self.fixed | {source}
        for _ in range(self.random.randrange(1, 3)):
            self.statement(depth + 1)
        target = self.random.choice(["number", "vector"])
        self.line(f"{y} = {self.of(BINARY, x=self.some(target), y=source if target == kind else self.some(target))}")
        self.indent -= 1
        self.values, self.loops, self.fixed = kept, around, again
        if self.chance(0.5):
            self.line(f"{g} = tf.convert_to_tensor({tape}.gradient({y}, {source}, unconnected_gradients='zero'))")
        else:
            self.line(f"{g} = {tape}.gradient({y}, {source})")
            self.line(f"{g} = {source} * 0.25 if {g} is None else {g} * 1.0")
        self.values[kind].append(g)
        if self.chance(0.3) and source in self.variables[kind]:
            self.line(f"{source}.assign_sub(0.1 * {g})")

    def structure(self) -> None:
        name = self.name("d")
        if self.chance(0.5):
            self.line(f"{name} = {{'a': {self.some('number')} * 1.0, 'b': {self.some('vector')} * 1.0}}")
            self.values["number"].append(f"{name}['a']")
            self.values["vector"].append(f"{name}['b']")
        else:
            one, two = self.some("number"), self.some("number")
            self.line(f"{name} = ({one} * 1.0, {two} * 0.5)")
            if self.chance(0.7):
                loop = self.random.choice(["for _ in tf.range(n):", f"if {self.condition()}:", "for _ in tf.range(2):"])
                self.line(loop)
                self.line(f"    {name} = ({name}[1] * 0.5, {name}[0] + {self.some('number')})")
            for i in range(2):
                value = f"{name}[{i}]"
                self.values["number"].append(value)
                self.fixed.add(value)

    def local_function(self) -> None:
        name, z, r = self.name("local"), self.name("z"), self.name("s")
        kind = self.random.choice(["number", "vector"])
        self.line(f"def {name}({z}, scale=0.5):")
        self.indent += 1
        around, self.loops = self.loops, []
        kept = {kind: list(names) for kind, names in self.values.items()}
        again, self.fixed = self.fixed, {x for names in self.values.values() for x in names}  # else local to it
        self.values[kind].append(z)
        for _ in range(self.random.randrange(2)):
            self.assign_new()
        if self.chance(0.6):
            self.line(f"if {self.condition()}:")
            self.line(f"    return {self.some(kind)} * scale")
            if self.chance(0.5):
                self.line(f"elif {self.condition()}:")
                self.line(f"    {z} = {self.expression(kind)}")
        self.line(f"return {self.expression(kind)}")
        self.indent -= 1
        self.values, self.loops, self.fixed = kept, around, again
        self.line(f"{r} = {name}({self.some(kind)}) + {name}({self.some(kind)}, scale=0.1)")
        self.values[kind].append(r)

    # ---- the program

    def make(self) -> None:
        dtype = self.random.choice(DTYPES)
        self.line(f"F = {dtype}")
        self.line("log = []")
        self.line(f"w, flagged = tf.constant({self.number()}, F), {self.chance(0.5)}")
        self.line("counts = tf.Variable(1.0, dtype=F)")
        self.line("class Model(tf.Module):")
        self.line("    def method(self, x):")
        self.line("        if tf.reduce_sum(x) > 0.0:")
        self.line("            x = x * self.v0")
        self.line("        return x + self.rate")
        self.line("m = Model()")
        self.line(f"m.rate = {self.number()}")
        trainable = ", trainable=False" if self.chance(0.1) else ""
        self.line(f"m.v0 = tf.Variable({self.number()}, dtype=F{trainable})")
        self.line(f"v1 = tf.Variable([{self.number()}, {self.number()}, {self.number()}], dtype=F)")
        self.line("v2 = tf.Variable(1)")
        self.variables = {"number": ["m.v0"], "vector": ["v1"], "int": ["v2"]}
        self.line("# HELPERS")
        self.line("@tf.function" + self.random.choice(["", "", "", "(reduce_retracing=True)"]))
        self.line("def f(x, a, n, k, flag):")
        self.indent += 1
        self.line("log.append(1)")
        self.line("s0, u0, i0 = a * 1.0, x * 0.5, n * 1")
        self.line("o = Model()")
        self.line("o.held = x[0] * 0.5")
        self.line(f"rows = tf.stack([x, x * {self.number()}])")
        self.values = {
            "number": ["a", "s0", "o.held", "m.v0"],
            "vector": ["x", "u0", "v1"],
            "int": ["n", "i0", "v2"],
            "bool": [],
        }
        self.fixed = {"a", "x", "n", "m.v0", "v1", "v2"}
        for _ in range(self.random.randrange(2, 5)):
            self.statement(0)
            if self.chance(0.08):
                self.line(f"if {self.condition()}:")
                self.line(
                    f"    return {self.some('number')} * 1.0, {self.some('vector')} * 1.0, {self.some('int')} + 0"
                )
        sums = {
            kind: " + ".join(["0.5 * " * (kind != "int") + x for x in names[-4:]])
            for kind, names in self.values.items()
        }
        self.line(f"result = {self.expression('number')} + s0 + {sums['number']}")
        self.line(f"results = {self.expression('vector')} + u0 + {sums['vector']}")
        self.line(f"return result, results, {self.expression('int')} + i0 + {sums['int']}")
        self.indent -= 1
        self.calls()
        text = "\n".join(self.lines)
        added: list[str] = []
        for name, code in HELPERS.items():
            if re.search(rf"\b{name}\b", text):
                added += ["    " + line for line in code.strip().splitlines()]
        place = self.lines.index("    # HELPERS")
        self.lines[place : place + 1] = added

    def tensor(self, *shape: int) -> str:
        if shape:
            return f"tf.constant([{', '.join(str(self.number()) for _ in range(*shape))}], F)"
        return f"tf.constant({self.number()}, F)"

    def calls(self) -> None:
        """The calls: each with its results, its gradients by one of several ways of asking, and the variables after it."""
        ways = ["sum", "rows", "zero", "second", "persistent", "jacobian", "forward"]
        way = self.random.choices(ways, [5, 2, 2, 1.5, 0.5, 0.2, 0.5])[0]
        self.line("def call(*args):")
        self.line("    sources = [args[0], args[1], m.v0, v1, w]")
        around = "        " if way == "second" else "    "
        if way == "second":
            self.line("    with tf.GradientTape() as outer:")
            self.line("        outer.watch([args[0], args[1], w])")
        # TensorFlow makes functions for higher orders where a tape is persistent, which takes it several times as long
        self.line(f"{around}with tf.GradientTape({'persistent=True' * (way == 'persistent')}) as tape:")
        self.line(f"{around}    tape.watch([args[0], args[1], w])")
        self.line(f"{around}    y = f(*args)")
        self.line(f"{around}    z = y[0] * y[0] * 0.5 + tf.reduce_sum(y[1] * v1)")
        asked = {"rows": "y[1], sources", "zero": "y[0], sources, unconnected_gradients='zero'"}.get(way, "z, sources")
        if way == "jacobian":
            self.line("    found = [tape.jacobian(y[1], sources)]")
        else:
            self.line(f"{around}found = [tape.gradient({asked})]")
        if way == "persistent":
            self.line("    found += [tape.gradient(y[0], sources), tape.gradient(y[1], sources)]")
        if way == "second":
            self.line("    found += [outer.gradient([x for x in found[0] if x is not None], sources)]")
        if way == "forward":
            tangents = "tf.ones_like(args[0]), tf.ones_like(args[1])"
            self.line(f"    with tf.autodiff.ForwardAccumulator(args[:2], ({tangents})) as forward:")
            self.line("        y = f(*args)")
            self.line("    found += [[forward.jvp(y[0]), forward.jvp(y[1])]]")
        self.line("    dense = [[None if x is None else tf.convert_to_tensor(x) for x in each] for each in found]")
        self.line("    return y, dense")
        self.line("results = []")
        for place in range(3):
            n, k = self.random.choice([0, 1, 2, 3, 4, 5]), self.random.choice([1, 2, 2, 3])
            flag = self.random.choice(["True", "False", "None"]) if place else "True"
            n = f"tf.constant({n})" if self.chance(0.85) else str(n)
            args = f"{self.tensor(3)}, {self.tensor()}, {n}, {2 if place < 2 else k}, {'True' if place < 2 else flag}"
            self.line(f"results.append(attempt(call, {args}))")
            self.line("results.append([m.v0.numpy(), v1.numpy(), v2.numpy(), counts.numpy()])")
            if self.chance(0.3):
                self.line(f"m.v0.assign({self.number()})")
        self.line("return results")


def body_of(seed: int) -> Callable[[Any], Any]:
    """The program of this seed as the body of a parity test. AutoGraph reads its text."""
    text, file = Program(seed).text, f"<function {seed}>"

    def body(tf: Any) -> Any:
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        names: dict[str, Any] = {"__name__": "generated_function"}
        exec(compile(text, file, "exec"), names)
        return names["program"](tf, attempt)

    return body


def attempt(action: Callable, *args: Any) -> Any:
    """What the call gives, or its error."""
    from outcomes import error_of

    found: list[Any] = []
    error = error_of(lambda: found.append(action(*args)))
    return found[0] if error is None else error


def without_taken(expected: Any, actual: Any, taken: list[str]) -> Iterator[tuple[Any, Any]]:
    """The pairs of results up to the first call that only TensorFlow refuses: after it, variables may differ."""
    from outcomes import Error

    for one, other in zip(expected, actual, strict=True):
        if isinstance(one, Error) and not isinstance(other, Error):
            taken.append(f"{one.name}: {one.message[-150:]}")
            return
        yield one, other


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--x64", choices=["off", "on", "both"], default="both", help="the mode of 64-bit types")
    parser.add_argument("--taken", action="store_true", help="say what TensorFlow refuses and tapejax takes")
    given = parser.parse_args()
    harness, tensorflow, tapejax = both(given, lambda seed: Program(seed).text)
    import jax
    from outcomes import Error, Outcome

    from tests.tape.interpreted import interpreted  # to compile the programs takes much longer

    seen: collections.Counter = collections.Counter()
    for seed in range(given.first, given.first + given.count):
        try:
            body = body_of(seed)
            start = time.process_time()
            expected = harness.outcome_under_tensorflow(body, tensorflow)
            middle = time.process_time()
            seen["TensorFlow's seconds"] += middle - start
            seen["calls"] += len(expected.value[1]) // 2
            refused = [x for x in expected.value[1] if isinstance(x, Error)]
            seen["refused by TensorFlow"] += len(refused)
            for x64 in {"off": [False], "on": [True], "both": [False, True]}[given.x64]:
                taken: list[str] = []
                with jax.enable_x64(x64), interpreted():
                    actual = harness.outcome_under_tapejax(body, tapejax)
                pairs = list(without_taken(expected.value[1], actual.value[1], taken))
                one, other = (Outcome(list(x), "", []) for x in zip(*pairs, strict=True)) if pairs else ([], [])
                found = harness.differences(one, other, **TOLERANCE, x64=x64) if pairs else []
                seen["taken by tapejax only"] += bool(taken)
                if taken and given.taken:
                    print(f"program {seed} taken: {taken[0]!r}", flush=True)
                if found:
                    seen["programs that differ"] += 1
                    text = "\n    ".join(x[:700] for x in found[:3])
                    print(f"program {seed}, x64 {x64}: {len(found)} differ\n    {text}", flush=True)
            seen["tapejax's seconds"] += time.process_time() - middle
            if given.taken:
                print(f"program {seed}: {middle - start:.1f} s and {time.process_time() - middle:.1f} s", flush=True)
        except (Exception, pytest.fail.Exception) as error:
            seen["raised"] += 1
            print(f"program {seed} raised {type(error).__name__}: {str(error)[-400:]}", flush=True)
    print(f"{given.count} programs:", dict(seen))
    sys.exit(bool(seen["programs that differ"] + seen["raised"]))


if __name__ == "__main__":
    main()
