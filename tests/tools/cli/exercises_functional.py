"""Answers to the exercises of notebook 0b: wrong ones with what has to be said of them, and right ones written differently."""

from __future__ import annotations

import exercises_written

STEM = "0b_functional_ad_from_scratch"
PARTS = exercises_written.parts_of("transformations.py")


def changed(names, *changes):
    """{the right answer with one text replaced by another: what has to be said}; `names` are the answer's functions."""
    right = "\n\n".join(PARTS[name] for name in names.split())
    wrong = {}
    for old, new, said in changes:
        assert old in right, f"{old!r} is not in the answer"
        wrong[right.replace(old, new, 1)] = said
    return wrong


RULES = "sine cosine rectify step exponential"

TOLD: dict[str, dict[str, str]] = {
    "by-hand": {
        "by_hand = [6.909, 5.168, 4.0]": "this is y, the primal",
        "by_hand = [4.584, 5.168, 4.0]": "This is for 1 and 1",
        "by_hand = [23.0, 5.168, 4.0]": "two paths",
        "by_hand = [22.584, 2.584, 2.0]": "you forgot upstream",
        "by_hand = [22.584, 4.0, 5.168]": "in the other order",
        "by_hand = [22.584, 6.0, 4.0]": "two paths",
        "by_hand = [22.584, 2.0, 3.0]": "the primals of a and b",
        "by_hand = [22.0, 5.168, 4.0]": "It should be 22.58",
        "by_hand = 22.584": "Asked for: a list of three numbers",
    },
    "rules": {
        **changed(
            RULES,
            ("[cos(a)]", "[sin(a)]", "this is the value again"),
            ("[-sin(a)]", "[sin(a)]", "the sign"),
            ("return sin(a), [cos(a)]", "return math.sin(a), [math.cos(a)]", "sine takes plain numbers only"),
            ("[cos(a)]", "[math.cos(plain(a))]", "was computed from a plain number"),
            ("sin(a), [cos(a)]", "math.sin(plain(a)), [math.cos(plain(a))]", "computed from plain numbers"),
            ("[cos(a)]", "cos(a)", "a list of one derivative"),
            ("relu(a), [is_positive(a)]", "relu(a), [relu(a)]", "the derivative in rectify"),
            ("is_positive(a), [0.0]", "is_positive(a), [is_positive(a)]", "this is the value again"),
            ("is_positive(a), [0.0]", "is_positive(a)", "a list of one derivative"),
            ("return y, [y]", "return y, [a]", "the derivative in exponential"),
            ("return y, [y]", "return y, [math.exp(plain(a))]", "was computed from a plain number"),
        ),
        "sine = cosine = rectify = step = exponential = 1.0": "Asked for: five functions",
    },
    "push": {
        **changed(
            "push",
            ("x.value if has(x, tag)", "x.value if isinstance(x, Dual)", "You took it out of its box"),
            ("x.tangent if has(x, tag)", "x.tangent if isinstance(x, Dual)", "perturbation confusion"),
            ("weighted_sum(derivatives, tangents)", "value", "this is the value, the primal"),
            ("weighted_sum(derivatives, tangents)", "sum(tangents)", "without the local derivatives"),
            ("return Dual(value, weighted_sum(derivatives, tangents), tag)", "return value", "a Dual"),
            ("tangents), tag)", "tangents), next(TAGS))", "not that of its transformation"),
            ("value, weighted_sum(derivatives, tangents)", "weighted_sum(derivatives, tangents), value", "its tangent"),
            (
                "weighted_sum(derivatives, tangents)",
                "weighted_sum(derivatives[:1], tangents[:1])",
                "the tangent of a * b",
            ),
        ),
        """
def push(tag, rule, *inputs):  # dual numbers without tags
    values = [getattr(x, "value", x) for x in inputs]
    tangents = [getattr(x, "tangent", 0.0) for x in inputs]
    value, derivatives = rule(*values)
    return Dual(value, weighted_sum(derivatives, tangents), tag)""": "perturbation confusion",
        "push = 3.0": "Asked for: a function of (tag, rule, *inputs)",
    },
    "jvp": {
        **changed(
            "jvp",
            ("tag = next(TAGS)", "tag = 1", "perturbation confusion"),
            ("Dual(x, t, tag)", "Dual(x, 1.0, tag)", "not 1 for each"),
            ("y.tangent if has(y, tag) else 0.0", "y.value if has(y, tag) else 0.0", "this is the value, the primal"),
            ("return value, each", "return each", "two things"),
            ("y.tangent if has(y, tag)", "y.tangent if isinstance(y, Dual)", "a result with another tag is a constant"),
            ("y.value if has(y, tag) else y", "y", "a box came out"),
            ("each(results, lambda y: y.tangent if has(y, tag) else 0.0)", "results.tangent", "use each"),
            ("y.tangent if has(y, tag) else 0.0", "y.tangent", "is not a box"),
            ("    results = f", "    f(*primals)\n    results = f", "one run of f is enough"),
        ),
        """
def jvp(f, primals, tangents):
    value, tangent = transformations.jvp(f, primals, tangents)
    return tangent, value""": "The value comes first",
        """
def jvp(f, primals, tangents):  # the tags are the same for all derivatives
    results = f(*(Dual(x, t, 0) for x, t in zip(primals, tangents)))
    return each(results, lambda y: getattr(y, "value", y)), each(results, lambda y: getattr(y, "tangent", 0.0))""": (
            "perturbation confusion"
        ),
        "jvp = None": "Asked for: a function of (f, primals, tangents)",
    },
    "linearize-cell": {
        **changed(
            "linearize",
            ("jvp(f, primals, inputs)", "jvp(f, primals, [1.0 for _ in primals])", "the program has no rows"),
            ("tangent if isinstance(tangent, list) else [tangent]", "tangent", "outputs is a list"),
            ("return value, Linear", "return Linear", "two things, the value and a Linear"),
            ("[Unknown(rows) for _ in primals]", "[Unknown([]) for _ in primals]", "no rows"),
            ("[Unknown(rows) for _ in primals]", "[Unknown(rows)] * len(primals)", "an Unknown of its own"),
            ("return value, Linear", "return f(*primals), Linear", "one run of f is enough"),
            ("return value, Linear", "return tangent, Linear", "Asked for: a number for the value"),
            ("Linear(inputs, rows", "Linear(primals, rows", "as inputs a list of two Unknowns"),
            ("tangent if isinstance(tangent, list) else [tangent]", "[value]", "the matrix of the program"),
        ),
        "linearize = Linear": "two things",
        "linearize = 'linear'": "Asked for: a function of (f, *primals)",
    },
    "evaluate": {
        **changed(
            "evaluate",
            ("zip(linear.inputs, tangents, strict=True)", "zip(linear.inputs, [1.0] * 9)", "not 1 for each"),
            ("weighted_sum(weights, ", "weighted_sum([1.0] * 9, ", "Asked for: a function of (linear, *tangents)"),
            (
                "weighted_sum(weights, [known[x] for x in unknowns])",
                "sum(known[x] for x in unknowns)",
                "weights are left out",
            ),
            (
                "weighted_sum(weights, [known[x] for x in unknowns])",
                "weights[-1] * known[unknowns[-1]]",
                "last summand",
            ),
            ("known.get(x, 0.0)", "known[x]", "an output may be 0.0"),
            ("in linear.rows", "in reversed(linear.rows)", "from the first to the last"),
            (
                "return [known.get(x, 0.0) for x in linear.outputs]",
                "return known",
                "a list with the tangent of each result",
            ),
            (
                "weighted_sum(weights, [known[x] for x in unknowns])",
                "math.fsum(w * known[x] for w, x in zip(weights, unknowns))",
                "add with weighted_sum",
            ),
        ),
        """
def evaluate(linear, *tangents):
    bar = dict(zip(linear.outputs, tangents))
    for result, weights, unknowns in reversed(linear.rows):
        for w, x in zip(weights, unknowns):
            bar[x] = bar.get(x, 0.0) + w * bar.get(result, 0.0)
    return [bar.get(x, 0.0) for x in linear.inputs]""": "this is the transpose",
        "evaluate = jvp": "raised",
        "evaluate = 1.0": "Asked for: a function of (linear, *tangents)",
    },
    "transpose-cell": {
        "def transpose(linear):\n    return linear": "this is the program itself",
        **changed(
            "transpose",
            ("arriving.setdefault(x, []).append((weight, bar))", "arriving[x] = [(weight, bar)]", "add what arrives"),
            ("in reversed(linear.rows)", "in linear.rows", "from the last to the first"),
            ("append((weight, bar))", "append((1.0, bar))", "the weights are left out"),
            ("append((weight, bar))", "append((bar, weight))", "raised TypeError"),
            (
                "Linear(inputs, rows, [total(x) for x in linear.inputs])",
                "[total(x) for x in linear.inputs]",
                "a Linear",
            ),
            ("rows, arriving = [], {}", "rows, arriving = linear.rows, {}", "has to stay as it was"),
            ("[Unknown(rows) for _ in linear.outputs]", "linear.outputs", "Not right"),
            (
                "return Linear(inputs, rows, [total(x) for x in linear.inputs])",
                "return Linear([total(x) for x in linear.inputs], rows, inputs)",
                "Not right",
            ),
            ("        bar = total(result)", "        bar = total(linear.outputs[0])", "Not right"),
            (
                "for x, bar in zip(linear.outputs, inputs):",
                "for x, bar in [(linear.outputs[-1], inputs[-1])]:",
                "Not right",
            ),
        ),
        """
def transpose(linear):  # a function, not a program
    def pull(*cotangents):
        bar = dict(zip(linear.outputs, cotangents))
        for result, weights, unknowns in reversed(linear.rows):
            for w, x in zip(weights, unknowns):
                bar[x] = bar.get(x, 0.0) + w * bar.get(result, 0.0)
        return [bar.get(x, 0.0) for x in linear.inputs]
    return pull""": "a Linear",
        "transpose = np.transpose": "a Linear",
    },
    "vjp-and-grad": {
        **changed(
            "vjp grad",
            ("evaluate(backward, *cotangents)", "evaluate(backward, *[1.0] * len(cotangents))", "you forgot upstream"),
            ("evaluate(backward, *cotangents)", "list(primals)", "the primals"),
            ("backward = transpose(linear)", "backward = linear", "is it transposed?"),
            ("return value, lambda", "return lambda", "two things, the value and a function"),
            ("[1](1.0)[0]", "[1](1.0)", "one number, for the first argument"),
            ("vjp(f, *primals)[1](1.0)[0]", "vjp(f, *primals)[0]", "you returned the primal"),
            ("[1](1.0)[0]", "[1](1.0)[-1]", "the last argument"),
            ("[1](1.0)[0]", "[1](2.0)[0]", "It should be 2.58"),
            (
                "return lambda *primals: vjp(f, *primals)[1](1.0)[0]",
                "return vjp(f, 2.0, 3.0)[1](1.0)[0]",
                "from grad a function",
            ),
            (
                "evaluate(backward, *cotangents)",
                "evaluate(transpose(linearize(f, *primals)[1]), *cotangents)",
                "f runs once",
            ),
        ),
        "vjp, grad = linearize, jvp": "from vjp two things",
        "vjp = grad = 1.0": "Asked for: two functions",
    },
    "batch-and-vmap": {
        **changed(
            "batch vmap",
            ("widened(x)", "x", "two batches were paired"),
            ("return Batch(rule(*values)[0], tag)", "return rule(*values)[0]", "from batch a Batch"),
            ("rule(*values)[0]", "rule(*values)[1][0]", "array in the Batch"),
            ("rule(*values)[0], tag)", "rule(*values)[0], next(TAGS))", "not that of its transformation"),
            ("return each(results, lambda y: outward(y, tag, len(arrays[0])))", "return results", "a box came out"),
            (
                "each(results, lambda y: outward(y, tag, len(arrays[0])))",
                "outward(results, tag, len(arrays[0]))",
                "a list of two arrays",
            ),
            ("len(arrays[0])", "1", "a function that does not use its argument"),
            ("    return mapped", "    return f", "Not right"),
        ),
        PARTS["batch"]
        + """
def vmap(f):
    def mapped(*arrays):
        return np.array([f(*xs) for xs in zip(*arrays)])
    return mapped""": "f ran 3 times",
        PARTS["batch"] + "\n\ndef vmap(f):\n    return lambda *arrays: np.vectorize(f)(*arrays)": "One run on boxes",
        "batch, vmap = 1.0, 2.0": "Asked for: two functions",
    },
    "jacobians": {
        **changed(
            "jacobian_forward jacobian_reverse",
            ("np.stack(rows, axis=1)", "np.array(rows)", "this is the transpose"),
            ("np.array(columns)", "np.stack(columns, axis=1)", "this is the transpose"),
            ("np.array(columns)", "columns[0]", "a matrix, with a row for each of 2 results"),
            ("*np.eye(len(primals))", "*np.ones((len(primals), len(primals)))", "jacobian_forward of"),
            (
                "    _, linear = linearize(f, *primals)\n    backward",
                "    f(*primals)\n    _, linear = linearize(f, *primals)\n    backward",
                "once is enough",
            ),
        ),
        """
def jacobian_forward(f, *primals):
    n = len(primals)
    return np.array([jvp(f, primals, list(e))[1] for e in np.eye(n)]).T


jacobian_reverse = jacobian_forward""": "runs f 3 times",
        "jacobian_forward = jacobian_reverse = linearize": "a matrix",
        "jacobian_forward, jacobian_reverse = [[1.0]], [[2.0]]": "Asked for: two functions",
    },
}
WRONG = {f"{STEM}/{cell}": ("", [*answers]) for cell, answers in TOLD.items()}
SAID = {f"{STEM}/{cell}": [*answers.values()] for cell, answers in TOLD.items()}

# Right answers that are written differently.
RIGHT: dict[str, list[str]] = {
    f"{STEM}/by-hand": ["by_hand = (22.584, 5.168, 4)", "by_hand = np.array([3 + 20 - 0.416, 6 - 0.832, 4.0])"],
    f"{STEM}/rules": [
        """
def sine(a):
    return (sin(a), [cos(a)])


def cosine(a):
    return cos(a), [-1.0 * sin(a)]


def rectify(a):
    slope = is_positive(a)
    return a * slope, [slope]


def step(a):
    return is_positive(a), [0.0 * a]
"""
    ],
    f"{STEM}/push": [
        """
def push(tag, rule, *inputs):
    def parts(x):
        return (x.value, x.tangent) if isinstance(x, Dual) and x.tag == tag else (x, 0.0)

    values, tangents = zip(*map(parts, inputs))
    value, derivatives = rule(*values)
    tangent = 0.0
    for derivative, t in zip(derivatives, tangents):
        tangent = weighted_sum([1.0, derivative], [tangent, t])
    return Dual(value, tangent, tag)
""",
        """
def push(tag, rule, *inputs):
    mine = [has(x, tag) for x in inputs]
    value, derivatives = rule(*(x.value if m else x for m, x in zip(mine, inputs)))
    known = [(d, x.tangent) for d, m, x in zip(derivatives, mine, inputs) if m]
    return Dual(value, weighted_sum(*zip(*known)), tag)
""",
    ],
    f"{STEM}/jvp": [
        """
def jvp(f, primals, tangents):
    tag = next(TAGS)
    y = f(*[Dual(x, t, tag) for x, t in zip(primals, tangents)])
    ys = [r if has(r, tag) else Dual(r, 0.0, tag) for r in (y if isinstance(y, list) else [y])]
    if isinstance(y, list):
        return [r.value for r in ys], [r.tangent for r in ys]
    return ys[0].value, ys[0].tangent
"""
    ],
    f"{STEM}/linearize-cell": [
        """
def linearize(f, *primals):
    program = Linear([], [], [])
    program.inputs.extend(Unknown(program.rows) for x in primals)
    value, tangents = jvp(f, primals, program.inputs)
    program.outputs.extend(tangents if type(tangents) is list else (tangents,))
    return (value, program)
"""
    ],
    f"{STEM}/evaluate": [
        """
def evaluate(linear, *tangents):
    known = {0.0: 0.0}
    for x, tangent in zip(linear.inputs, tangents):
        known[x] = tangent
    for result, weights, unknowns in linear.rows:
        known[result] = 0.0
        for w, x in zip(weights, unknowns):
            known[result] = known[result] + w * known[x]
    return [known[x] for x in linear.outputs]
"""
    ],
    f"{STEM}/transpose-cell": [
        """
def transpose(linear):
    rows = []
    inputs = [Unknown(rows) for _ in linear.outputs]
    bars = {}
    for x, bar in zip(linear.outputs, inputs):
        bars[x] = weighted_sum([1.0, 1.0], [bars.get(x, 0.0), bar])
    for result, weights, unknowns in linear.rows[::-1]:
        if result in bars:
            for weight, x in zip(weights, unknowns):
                bars[x] = weighted_sum([1.0, weight], [bars.get(x, 0.0), bars[result]])
    return Linear(inputs, rows, [bars.get(x, 0.0) for x in linear.inputs])
""",
        """
def transpose(linear):  # by the pullback, run on cotangents that are not known
    def pull(bars):
        arriving = {x: [] for x in [*linear.inputs, *(row[0] for row in linear.rows), 0.0]}
        for x, bar in zip(linear.outputs, bars):
            arriving[x].append((1.0, bar))
        for result, weights, unknowns in reversed(linear.rows):
            if arriving[result]:
                bar = weighted_sum(*zip(*arriving[result]))
                for pair in zip(weights, unknowns):
                    arriving[pair[1]].append((pair[0], bar))
        return [weighted_sum(*zip(*arriving[x])) if arriving[x] else 0.0 for x in linear.inputs]

    new = Linear([], [], [])
    new.inputs.extend(Unknown(new.rows) for _ in linear.outputs)
    new.outputs.extend(pull(new.inputs))
    return new
""",
    ],
    f"{STEM}/vjp-and-grad": [
        """
def vjp(f, *primals):
    value, linear = linearize(f, *primals)

    def pull(*cotangents):
        return evaluate(transpose(linear), *cotangents)

    return value, pull


def grad(f):
    def df(*primals):
        _, pull = vjp(f, *primals)
        first, *_ = pull(1.0)
        return first

    return df
"""
    ],
    f"{STEM}/batch-and-vmap": [
        """
def batch(tag, rule, *inputs):
    value, _ = rule(*[x.value if isinstance(x, Batch) and x.tag == tag else widened(x) for x in inputs])
    return Batch(value, tag)


def vmap(f):
    def mapped(*arrays):
        tag, size = next(TAGS), len(arrays[0])
        boxes = [Batch(inward(np.asarray(x) if isinstance(x, list) else x), tag) for x in arrays]
        return each(f(*boxes), lambda y: outward(y, tag, size))

    return mapped
"""
    ],
    f"{STEM}/jacobians": [
        """
def jacobian_forward(f, *primals):
    linear = linearize(f, *primals)[1]
    return np.vstack(vmap(lambda *v: evaluate(linear, *v))(*np.eye(len(linear.inputs))))


def jacobian_reverse(f, *primals):
    values, pull = vjp(f, *primals)
    return np.array(vmap(pull)(*np.eye(len(values)))).T
"""
    ],
}
