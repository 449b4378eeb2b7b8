"""Wrong answers to the exercises of notebook 0: changes of the right ones, in notebooks/from_scratch.py, and others."""

from __future__ import annotations

import ast
from pathlib import Path

WHOLE = (Path(__file__).resolve().parents[2] / "notebooks" / "from_scratch.py").read_text(encoding="utf-8")
PARTS = {
    part.name: ast.get_source_segment(WHOLE, part)
    for part in ast.parse(WHOLE).body
    if isinstance(part, (ast.FunctionDef, ast.ClassDef))
}
RULES = "\n\n".join(PARTS[name] for name in ("add", "subtract", "multiply", "sine", "rectify"))


def changed(right, *changes):
    """For each change (old, new) the right answer with it: of `right`, or of the part of that name."""
    right = PARTS.get(right, right)
    assert all(old in right for old, _ in changes), changes
    return [right.replace(old, new, 1) for old, new in changes]


ANY = ""
WRONG: dict[str, tuple[str, list[str]]] = {
    "0_a_tape_from_scratch/by-hand": (
        "by_hand",
        [
            "[3.0, 2.0]",  # one path only
            "[3 * math.cos(2), 2.0]",  # multiplied over the paths
            "[2.0, 3 + math.cos(2)]",
            "[3 - math.cos(2), 2.0]",
            "[2.0, 3.0]",
            "[math.cos(2), 0.0]",
            "2.584",
            "'3, 2'",
        ],
    ),
    "0_a_tape_from_scratch/four-rules": (
        ANY,
        [
            *changed(
                RULES,
                ("[1.0, -1.0]", "[1.0, 1.0]"),
                ("[b, a]", "[a, b]"),
                ("[b, a]", "[a * b]"),
                ("[math.cos(a)]", "[-math.cos(a)]"),
                ("math.sin(a), [math.cos(a)]", "math.sin(a), math.cos(a)"),  # no list
                ("(0.0, [0.0])", "(0.0, [1.0])"),
                ("a > 0.0", "a >= 0.0"),
                ("return a * b, [b, a]", "return a * b"),
                ("a - b, [1.0, -1.0]", "b - a, [-1.0, 1.0]"),
            ),
            "subtract = multiply = sine = rectify = add",
        ],
    ),
    "0_a_tape_from_scratch/operators": (
        ANY,
        [
            *changed(
                "Operators",
                ("self.apply(subtract, other, self)", "self.apply(subtract, self, other)"),
                ("self.apply(subtract, self, other)", "self.apply(subtract, other, self)"),
                ("self.apply(multiply, other, self)", "self.apply(add, other, self)"),
                ("self.apply(multiply, self, other)", "self.apply(multiply, self, self)"),
                ("self.apply(multiply, self, other)", "multiply(self, other)"),
                ("self.apply(multiply, self, other)", "self * other"),  # calls itself for ever
                ("self.apply(subtract, self, other)", "self.apply(self, other)"),
                ("return self.apply(multiply, self, other)", "self.apply(multiply, self, other)"),
                ("__rmul__", "__lmul__"),
            ),
            "Operators = 'operators'",
        ],
    ),
    "0_a_tape_from_scratch/record": (
        ANY,
        [
            *changed(
                "record",
                ("    TAPE.append((result, inputs, derivatives))\n", ""),
                ("(result, inputs, derivatives)", "(inputs, result, derivatives)"),
                ("(result, inputs, derivatives)", "(value, inputs, derivatives)"),
                ("(result, inputs, derivatives)", "(result, [x.value for x in inputs], derivatives)"),
                ("(result, inputs, derivatives)", "[result, inputs, derivatives]"),
                ("x if isinstance(x, Number) else Number(x)", "Number(x.value if isinstance(x, Number) else x)"),
                ("x if isinstance(x, Number) else Number(x)", "x"),
                ("(result, inputs, derivatives)", "(result, inputs, derivatives[::-1])"),
                ("return result", "return value"),
                ("return result", "return Number(value)"),
                ("TAPE.append((result, inputs, derivatives))", "TAPE.extend([(result, inputs, derivatives)] * 2)"),
            ),
            "record = TAPE",
        ],
    ),
    "0_a_tape_from_scratch/gradient": (
        ANY,
        [
            *changed(
                "gradient",
                ("bar.get(x, 0.0) + ", ""),  # the last summand only
                ("reversed(TAPE)", "TAPE"),
                ("bar[result] * derivative", "derivative"),
                ("bar[result] * derivative", "bar[result] + derivative"),
                ("{target: 1.0}", "{target: target.value}"),
                ("{target: 1.0}", "{target: 0.0}"),
                ("if result in bar", "if result is target"),
                ("[bar.get(x) for x in sources]", "[bar.get(x, 0.0) for x in sources]"),
                ("[bar.get(x) for x in sources]", "bar"),
                ("reversed(TAPE)", "iter(TAPE.pop, None)"),  # empties the tape, and fails at its end
                (
                    "    for result",
                    "    bar = {**bar, **{x: 0.0 for _, xs, _ in TAPE for x in xs if x is not target}}\n    for result",
                ),
            ),
            # by value: two numbers of equal value are taken for one
            changed(
                changed("gradient", ("if result in bar", "if result.value in bar"))[0]
                .replace("{target: 1.0}", "{target.value: 1.0}")
                .replace(
                    "bar[x] = bar.get(x, 0.0) + bar[result]", "bar[x.value] = bar.get(x.value, 0.0) + bar[result.value]"
                ),
                ("bar.get(x) for", "bar.get(x.value) for"),
            )[0],
            "gradient = 3.0",
        ],
    ),
    "0_a_tape_from_scratch/topological-order": (
        ANY,
        [
            *changed(
                "topological_order",
                ("        if x not in visited:", "        if True:"),  # a number for each path
                ("            order.append(x)", "            order.insert(0, x)"),
                (
                    "            for i in inputs_of.get(x, []):\n                visit(i)\n            order.append(x)",
                    "            order.append(x)\n            for i in inputs_of.get(x, []):\n                visit(i)",
                ),  # before its inputs
                ("return order", "return order[:-1]"),
                ("return order", "return [x.value for x in order]"),
                ("return order", "return [*inputs_of]"),  # the results, those of others too
                ("return order", "return set(order)"),
            ),
            # breadth first, then reversed: right for a chain, wrong where a short way goes around a long one
            """
def topological_order(target, inputs_of):
    order = [target]
    for x in order:
        order += [i for i in dict.fromkeys(inputs_of.get(x, [])) if i not in order]
    return order[::-1]""",
            "topological_order = []",
        ],
    ),
    "0_a_tape_from_scratch/push": (
        ANY,
        [
            *changed(
                "push",
                ("derivative * x.tangent", "x.tangent"),
                ("derivative * x.tangent", "derivative"),
                ("sum(derivative * x.tangent", "max(derivative * x.tangent"),
                ("derivative * x.tangent", "derivative * x.value"),
                ("else Dual(x)", "else Dual(x, 1.0)"),  # a constant that changes
                ("x if isinstance(x, Dual) else Dual(x)", "x"),
                ("return Dual(", "return ("),
                ("    return", "    TAPE.append((value, inputs, derivatives))\n    return"),
                ("zip(derivatives, inputs)", "zip(reversed(derivatives), inputs)"),
            ),
            "push = multiply",
            "push = None",
        ],
    ),
    "0_a_tape_from_scratch/forward-gradient": (
        ANY,
        [
            *changed(
                "forward_gradient",
                ("float(j == i)", "1.0"),  # all at once: the sum of the derivatives
                ("float(j == i)", "float(j != i)"),
                (".tangent", ".value"),
                ("range(len(values))", "[0]"),
                ("[derivative(i) for i in range(len(values))]", "sum(derivative(i) for i in range(len(values)))"),
                ("Dual(x, float(j == i))", "Dual(float(j == i), x)"),
                ("[derivative(i) for", "[derivative(0) for"),
            ),
            """
def forward_gradient(f, values):  # with the tape
    TAPE.clear()
    xs = [Number(x) for x in values]
    return gradient(f(*xs), xs)""",
            """
def forward_gradient(f, values):  # difference quotients
    y = f(*map(Dual, values)).value
    shifted = lambda i: [Dual(x + 1e-6 * (i == j)) for j, x in enumerate(values)]
    return [(f(*shifted(i)).value - y) / 1e-6 for i in range(len(values))]""",
            "forward_gradient = [2.584, 2.0]",
        ],
    ),
    "0_a_tape_from_scratch/hessian-times": (
        ANY,
        [
            *changed(
                "hessian_times",
                ("[g.tangent for", "[g.value for"),  # the gradient
                ("Dual(x, v)", "Dual(v, x)"),
                ("Dual(x, v)", "Dual(x, 1.0)"),
                ("Number(Dual(x, v))", "Dual(x, v)"),
                ("Number(Dual(x, v))", "Number(x)"),
                ("[g.tangent for g in", "[g for g in"),
                ("[g.tangent for g in gradient(f(*xs), xs)]", "f(*xs).value.tangent"),  # the derivative along v
                ("[g.tangent for", "[g.tangent * g.value for"),
            ),
            """
def hessian_times(f, values, direction):  # a difference of two gradients
    def gradient_at(step):
        TAPE.clear()
        xs = [Number(x + step * v) for x, v in zip(values, direction)]
        return np.array(gradient(f(*xs), xs))
    return (gradient_at(1e-5) - gradient_at(-1e-5)) / 2e-5""",
            "hessian_times = [0.0, 0.0]",
        ],
    ),
    "0_a_tape_from_scratch/train": (
        ANY,
        [
            *changed(
                "train",
                ("w - rate * g", "w + rate * g"),
                ("w - rate * g", "w - g"),
                ("            TAPE.clear()\n", ""),
                ("range(epochs)", "range(1)"),
                ("losses.append(loss.value)", "losses.append(loss)"),
                ("return weights, losses", "return losses, weights"),
                ("return weights, losses", "return weights"),
                ("return weights, losses", "return numbers, losses"),
                ("return weights, losses", "return weights, losses[-len(data):]"),
                ("            weights = [w", "            new = [w"),  # never replaced
                ("            weights = [w", "            weights[:] = [w"),  # changes the list that came
                ("for point, label in data", "for point, label in reversed(data)"),
            ),
            """
def train(loss_of, data, weights, epochs, rate):  # one step for all points
    losses = []
    for _ in range(epochs):
        TAPE.clear()
        numbers = [Number(w) for w in weights]
        each = [loss_of(numbers, point, label) for point, label in data]
        weights = [w - rate * g for w, g in zip(weights, gradient(sum(each), numbers))]
        losses += [loss.value for loss in each]
    return weights, losses""",
            "train = start",
        ],
    ),
}
