"""Wrong answers to the exercises of notebooks 0 and 8: changes of the right ones, which lie in files beside them, and others."""

from __future__ import annotations

import ast
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


def parts_of(name):
    """The source of each function and class of a file, its decorators included."""
    text = (NOTEBOOKS / name).read_text(encoding="utf-8")
    lines = text.splitlines()
    return {
        part.name: "\n".join(lines[min(x.lineno for x in (part, *part.decorator_list)) - 1 : part.end_lineno])
        for part in ast.parse(text).body
        if isinstance(part, (ast.FunctionDef, ast.ClassDef))
    }


FILES = {
    "0_a_tape_from_scratch": "from_scratch.py",
    "0b_functional_ad_from_scratch": "transformations.py",
    "8_what_a_gradient_costs": "costs.py",
}
PARTS = {name: part for file in ("from_scratch.py", "costs.py") for name, part in parts_of(file).items()}
MORE_RULES = "\n\n".join(PARTS[name] for name in ("divide", "power", "absolute", "exponential"))
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
                ("x if isinstance(x, Number) else Number(x)", "Number(x) if isinstance(x, float) else x"),
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
                ("if result in bar", "if bar.get(result)"),  # an adjoint of 0.0 counts, too
                ("{target: 1.0}", "{TAPE[-1][0]: 1.0}"),
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
    "0_a_tape_from_scratch/more-rules": (
        ANY,
        [
            *changed(
                MORE_RULES,
                ("-a / (b * b)", "a / (b * b)"),
                ("[1.0 / b, -a / (b * b)]", "[-a / (b * b), 1.0 / b]"),
                ("[1.0 / b, -a / (b * b)]", "[1.0, 1.0]"),
                ("[n * a ** (n - 1)]", "[a ** (n - 1)]"),
                ("[n * a ** (n - 1)]", "[n * a**n]"),
                ("[n * a ** (n - 1)]", "[2 * a]"),
                ("lambda a: (a**n, [n * a ** (n - 1)])", "(n, [n * n ** (n - 1)])"),  # no rule
                ("(-a, [-1.0])", "(-a, [1.0])"),
                ("(-a, [-1.0])", "(a, [-1.0])"),
                ("(0.0, [0.0])", "(0.0, [1.0])"),
                ("return y, [y]", "return y, [a]"),
                ("return y, [y]", "return y, [1.0]"),
                ("return y, [y]", "return y"),
            ),
            "divide = power = absolute = exponential = 1.0",
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
    "8_what_a_gradient_costs/multiplications": (
        ANY,
        [
            *changed(
                "multiplications",
                (
                    "sizes[0] * sum(pairs[1:]), sizes[-1] * sum(pairs[:-1])",
                    "sizes[-1] * sum(pairs[:-1]), sizes[0] * sum(pairs[1:])",
                ),
                ("sum(pairs[1:])", "sum(pairs)"),  # with the identity as a first factor
                ("sizes[0] * sum(pairs[1:]), sizes[-1] * sum(pairs[:-1])", "sum(pairs[1:]), sum(pairs[:-1])"),
                ("[m * n for", "[2 * m * n for"),
                ("m * n for", "m + n for"),
                ("sizes[0] * sum(pairs[1:]), ", ""),
            ),
            "def multiplications(sizes): return [math.prod(sizes)] * 2",
            "multiplications = (24, 24)",
        ],
    ),
    "8_what_a_gradient_costs/fewest-multiplications": (
        ANY,
        [
            *changed(
                "fewest_multiplications",
                ("return min(", "return max("),
                (" + sizes[0] * sizes[i] * sizes[-1]", ""),
                ("sizes[0] * sizes[i] * sizes[-1]", "sizes[i - 1] * sizes[i] * sizes[i + 1]"),
                ("range(1, len(sizes) - 1)", "range(1, 2)"),  # from one end only
                ("sizes[i:]", "sizes[i + 1 :]"),
                ("default=0", "default=1"),
            ),
            "def fewest_multiplications(sizes): return min(multiplications(sizes))",
            # the cheapest product first, and so on
            """
def fewest_multiplications(sizes):
    sizes, total = list(sizes), 0
    while len(sizes) > 2:
        i = min(range(1, len(sizes) - 1), key=lambda i: sizes[i - 1] * sizes[i] * sizes[i + 1])
        total += sizes[i - 1] * sizes.pop(i) * sizes[i]
    return total""",
            "fewest_multiplications = 40_000",
        ],
    ),
    "8_what_a_gradient_costs/sum-over-paths": (
        ANY,
        [
            *changed(
                "sum_over_paths",
                ("matrices[:-1]", "matrices[1:]"),
                ("(j, *middle, i)", "(i, *middle, j)"),
                ("math.prod(", "sum("),
                ("total +=", "total ="),
                ("matrix[b, a]", "matrix[a, b]"),
                ("return total", "return i"),
            ),
            """
def sum_over_paths(matrices, i, j):
    done = matrices[0]
    for matrix in matrices[1:]:
        done = matrix @ done
    return done[i, j]""",
            """
def sum_over_paths(matrices, i, j):
    done = matrices[0]
    for matrix in matrices[1:]:
        done = np.dot(matrix, done)
    return done[i, j]""",
            "sum_over_paths = math.prod",
        ],
    ),
    "8_what_a_gradient_costs/gradient-of-product": (
        ANY,
        [
            *changed(
                "gradient_of_product",
                ("[bar, *gradient[::-1]]", "[bar, *gradient]"),
                ("gradient.append(bar * before)", "gradient.append(before)"),
                ("bar = bar * x", "bar = x"),
                ("return [bar, *gradient[::-1]]", "return gradient[::-1]"),
                ("[bar, *gradient[::-1]]", "partial"),
            ),
            # by division, which fails where two factors are zero
            """
def gradient_of_product(xs):
    total = 1.0
    for x in xs:
        total = total * x if x else total
    return [(0.0 if x else total) if 0.0 in xs else total / x for x in xs]""",
            # by the formulas: n products of n - 1 factors
            """
def gradient_of_product(xs):
    def without(i):
        y = 1.0
        for k, x in enumerate(xs):
            y = y * x if k != i else y
        return y
    return [without(i) for i in range(len(xs))]""",
            """
def gradient_of_product(xs):
    y = xs[0]
    for x in xs[1:]:
        y = y * x
    return [y / x for x in xs]""",
            """
def gradient_of_product(xs):
    return [math.prod(map(float, xs[:i] + xs[i + 1 :])) for i in range(len(xs))]""",
            "gradient_of_product = [1.0]",
        ],
    ),
    "8_what_a_gradient_costs/matmul-flops": (
        ANY,
        [
            *(
                f"def matmul_flops(m, k, n): return {answer}"
                for answer in (
                    "m * k * n, 2 * m * k * n",
                    "2 * m * k * n, 2 * m * k * n",
                    "2 * m * k * n, 6 * m * k * n",
                    "2 * (m * k + k * n), 4 * (m * k + k * n)",
                    "4 * m * k * n, 2 * m * k * n",
                    "2 * m * n, 4 * m * n",
                    "2 * m * k * n",
                )
            ),
            "matmul_flops = 2, 4",
        ],
    ),
    "8_what_a_gradient_costs/in-segments": (
        ANY,
        [
            "def in_segments(chain, start, n, length): return keep_all(chain, start, n)",
            "def in_segments(chain, start, n, length): return keep_none(chain, start, n)",
            *changed(
                "in_segments",
                ("states = [kept.pop()]", "states = [kept[0]]; kept.pop()"),
                ("states = [kept.pop()]", "states = [kept.pop(0)]"),  # from the first to the last
                ("kept.append(state)", "kept.append(start)"),
                ("len(states) < length", "len(states) <= length"),
                ("chain.backward(states.pop(), bar)", "chain.backward(states.pop(0), bar)"),
                ("bar = chain.backward", "bar += chain.backward"),
                # keeps what it has computed again
                (
                    "states.append(chain.forward(states[-1]))",
                    "states.append(chain.forward(states[-1])); chain.history.append(states[-1])",
                ),
                ("return bar", "return chain.forwards"),
            ),
            "in_segments = 0.5",
        ],
    ),
    "8_what_a_gradient_costs/fewest-steps": (
        ANY,
        [
            *changed(
                "fewest_steps",
                ("min(m + fewest", "min(fewest"),
                (
                    "fewest_steps(n - m, slots - 1) + fewest_steps(m, slots)",
                    "fewest_steps(n - m, slots - 1) + fewest_steps(m, slots - 1)",
                ),
                (
                    "fewest_steps(n - m, slots - 1) + fewest_steps(m, slots)",
                    "fewest_steps(m, slots - 1) + fewest_steps(n - m, slots)",
                ),
                ("return n * (n - 1) // 2", "return n * n"),
                ("return n * (n - 1) // 2", "return n - 1"),
                ("return min(", "return max("),
                ("for m in range(1, n)", "for m in [(n + 1) // 2]"),  # always the middle
                ("        return 0", "        return 1"),
            ),
            "fewest_steps = 12",
        ],
    ),
    "8_what_a_gradient_costs/revolve": (
        ANY,
        [
            "def revolve(chain, start, n, slots, bar): return keep_all(chain, start, n)",
            "def revolve(chain, start, n, slots, bar): return keep_none(chain, start, n)",
            *changed(
                "revolve",
                ("min(range(1, n), key=cost)", "max(1, n // 2)"),
                ("bar = revolve(", "revolve("),
                ("chain.backward(start, bar)", "bar"),
                ("n - m, slots - 1, bar", "n - m, slots, bar"),
                ("chain, start, m, slots, bar", "chain, start, m, slots - 1, bar"),
                ("n - 1 if slots == 1 else ", ""),
                ("    return revolve(chain, start, m", "    return bar + revolve(chain, start, m"),
            ),
            "revolve = fewest_steps(10, 3)",
        ],
    ),
    "8_what_a_gradient_costs/colour": (
        ANY,
        [
            "def colour(pattern): return [*range(pattern.shape[1])]",
            "def colour(pattern): return [0] * pattern.shape[1]",
            "def colour(pattern): return [i % 3 for i in range(pattern.shape[1])]",
            "def colour(pattern): return [1 + i for i in range(pattern.shape[1])]",
            "def colour(pattern): return colour_of_rows(pattern)\n\n\n"
            + PARTS["colour"].replace("def colour(", "def colour_of_rows(").replace("pattern.T", "pattern"),
            *changed(
                "colour",
                ("not np.any(rows & column)", "True"),
                ("taken[c] | column if", "column if"),  # only the last column of a colour is looked at
                ("np.any(rows & column)", "np.all(rows & column)"),
                ("return colours", "return max(colours) + 1"),
                ("return colours", "return {*colours}"),
                ("enumerate(taken)", "[*enumerate(taken)][-1:]"),  # the last colour, or a new one
            ),
            "colour = [0, 1, 2]",
        ],
    ),
    "8_what_a_gradient_costs/compressed-jacobian": (
        ANY,
        [
            # a pass for each column
            """
def compressed_jacobian(push, pattern, colours):
    return np.stack([push(unit) for unit in np.eye(pattern.shape[1])], axis=1)""",
            *changed(
                "compressed_jacobian",
                ("jacobian += np.where(pattern & columns", "jacobian += np.where(pattern"),
                ("jacobian += np.where(pattern & columns", "jacobian += np.where(columns"),
                ("[:, None]", "[None, :len(pattern)].T * 2"),
                ("range(max(colours) + 1)", "range(max(colours))"),
                ("jacobian += ", "jacobian = "),
                ("return jacobian", "return jacobian.T"),
                ("return jacobian", "return jacobian.sum(axis=0)"),
                ("columns.astype(float)", "np.ones(len(colours))"),
            ),
            "compressed_jacobian = np.zeros((6, 6))",
        ],
    ),
}
