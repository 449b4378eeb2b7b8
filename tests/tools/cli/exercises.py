"""The notebooks' exercises: where they are, their folded answers, and wrong answers to each."""

from __future__ import annotations

import ast
import re

import exercises_9_10
import exercises_functional
import exercises_writing
import exercises_written


def quotients(quotient):
    return f"""
def errors_in(dtype):
    one, h = dtype(1), steps.astype(dtype)
    return np.abs({quotient} - np.cos(1))
measured = {{"float32": errors_in(np.float32), "float64": errors_in(np.float64)}}"""


def jacobians(sums, along):
    return f"""
def jacobian(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x)
def sums(f, x):
    J = jacobian(f, x)
    return {sums}
def along(f, x):
    J = jacobian(f, x)
    return {along}"""


def repaired(loss):
    return f"""
offset = tf.Variable(0.0)
with tf.GradientTape() as tape:
    errors = tf.abs(slope * xs + offset - ys)
    loss = {loss}
gradients = tape.gradient(loss, [slope, offset])"""


def halved(both):
    return f"""
half = [(w / 2, b / 2) for w, b in weights]
flat = lambda pairs: [array for pair in pairs for array in pair]
both = {both}"""


def explained(explanation):
    return f"""
with tf.GradientTape(persistent=True) as tape:
    tape.watch(head)
    loss = cross_entropy(jax.vmap(head)(features(points)))
explanation = {explanation}"""


def gradients(decorator, result):
    return f"""
{decorator}
def gradients_of(at):
    with tf.GradientTape() as tape:
        loss = cross_entropy(keras_model(at))
    return {result}"""


def rules_with(name, rule):
    right = {
        "sin": "lambda bar, x: [bar * jnp.cos(x)]",
        "reduce_sum": "lambda bar, x: [bar * jnp.ones_like(x)]",
        "exp": "lambda bar, x: [bar * jnp.exp(x)]",
        "multiply": "lambda bar, a, b: [bar * b, bar * a]",
        "true_divide": "lambda bar, a, b: [bar / b, -bar * a / b**2]",
        "matmul": "lambda bar, a, b: [bar @ b.T, a.T @ bar]",
    }
    return "rules = {" + ", ".join(f'"{key}": {value}' for key, value in {**right, name: rule}.items()) + "}"


def replay(known):
    return f"""
def as_function(tape, target, source):
    def f(x):
        {known}
        for _, run, inputs, outputs in tape.entries:
            if any(id(i) in known for i in inputs):
                new = jax.tree.leaves(run(*(known.get(id(i), i) for i in inputs)))
                known.update(zip(map(id, outputs), new))
        return known[id(target)]
    return f"""


def pulled(result):
    return f"""
def push(tape, target, source, tangent):
    bar = {{id(target): jnp.ones_like(target)}}
    for name, run, inputs, (output,) in reversed(tape.entries):
        if id(output) in bar:
            value, pull = jax.vjp(run, *inputs)
            going = pull(jax.tree.unflatten(jax.tree.structure(value), [bar[id(output)]]))
            for x, bar_x in zip(inputs, going):
                bar[id(x)] = bar.get(id(x), 0.0) + bar_x
    return {result}"""


def pushed(result):
    return f"""
def push(tape, target, source, tangent):
    dot = {{id(source): tangent}}
    for _, run, inputs, outputs in tape.entries:
        tangents = jax.jvp(run, inputs, [dot.get(id(x), jnp.zeros_like(x)) for x in inputs])[1]
        dot.update(zip(map(id, outputs), jax.tree.leaves(tangents)))
    return {result}"""


def taped(result, watched="x", block="y = x**2 * jnp.sin(x)"):
    return f"""
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch({watched})
        {block}
    return {result}"""


# Wrong answers, such as a student might give: at least five to each. Where all answers bind one name to a value, the name is
# the key and the values are listed; `ANY` marks those that are whole programs. The last ones are of a wrong kind.
ANY = ""
WRONG: dict[str, tuple[str, list[str]]] = {
    "1_first_tape/cell-19": (
        "factor",
        [
            "np.sin(1.0)",
            "np.cos(0.5)",
            "2 * np.cos(1.0)",
            "14.6789 / 7.931",
            "np.cos(np.degrees(1.0))",
            "'cos(1)'",
            "[0.54]",
        ],
    ),
    "1_first_tape/cell-44": (
        "guess",
        ["[1.0, 1.0, 1.0, 1.0]", "[1, 2, 3, 4]", "[5, 11, 18, 26]", "[26, 21, 15, 8]", "10.0", "[4, 3, 2]", "'4321'"],
    ),
    "2_tape_and_functional/best-step-measured": (
        ANY,
        [
            quotients("(np.sin(1 + steps) - np.sin(1)) / steps"),  # in double precision, whatever was asked for
            quotients("(np.sin(one + h) - np.sin(one - h)) / (2 * h)"),
            quotients("(np.sin(one) - np.sin(one - h)) / h"),
            quotients(
                "(np.sin(one + h) - np.sin(one)) / h * (dtype == np.float32) + np.cos(1) * (dtype == np.float64)"
            ),
            quotients("(np.sin(one + h) - np.sin(one)) / h").replace("np.abs", "np.asarray"),  # with its sign
            quotients("(np.sin(one + h) - np.sin(one)) / h").replace(
                "np.cos(1))", "np.cos(1)) / np.cos(1)"
            ),  # relative
            "measured = {'float32': 0.5, 'float64': 0.5}",
            "measured = {'float32': steps / 2}",
            "measured = [np.abs(steps), np.abs(steps)]",
        ],
    ),
    "2_tape_and_functional/best-step-found": (
        "best",
        [
            "[2.0**-24, 2.0**-53]",
            "[2.0**-12, 2.0**-26.5]",
            "[2.0**-11.5, 2.0**-26]",  # the root of 2 u
            "[2.0**-8, 2.0**-18]",
            "[2.0**-25.5, 2.0**-11]",
            "[4 * 2.0**-12, 4 * 2.0**-26.5]",
            "[-(2.0**-11), -(2.0**-25.5)]",
            "0.0005",
            "{'float32': 0.0005, 'float64': 2e-8}",
        ],
    ),
    "2_tape_and_functional/cell-18": (
        "power",
        ["torque.sum()", "-(torque @ rates)", "torque @ torque", "torque @ angles", "torque * rates", "'1.2 W'"],
    ),
    "3_beyond_the_gradient/cell-10": (
        ANY,
        [
            jacobians("tf.reduce_sum(J, axis=1)", "tf.linalg.matvec(J, x)"),  # of rows
            jacobians("tf.reduce_sum(J)", "tf.linalg.matvec(J, x)"),
            jacobians("tf.zeros(8)", "tf.zeros(8)"),
            jacobians("tf.reduce_sum(J, axis=0)", "tf.linalg.matvec(J, x, transpose_a=True)"),
            jacobians("tf.reduce_sum(J, axis=0)", "tf.linalg.matvec(J, tf.ones_like(x))"),
            jacobians("tf.reduce_sum(J, axis=0)", "J * x"),
            jacobians("tf.linalg.matvec(J, tf.ones_like(x))", "tf.linalg.matvec(J, x)"),
            "sums, along = np.zeros(8), np.zeros(8)",
        ],
    ),
    "4_why_is_my_gradient_none/cell-15": (
        "have_one",
        ['{"w", "b"}', '{"b"}', "set()", "{'parameters'}", "'w'", "['w']"],
    ),
    "4_why_is_my_gradient_none/cell-19": ("guess", ["None", "12.0", "3.0", "9.0", "2.0", "18.0", "'six'"]),
    "4_why_is_my_gradient_none/cell-79": ("guess", ["7.0", "None", "6.0", "0.0", "[7.0, 1.0]", "'None'"]),
    "4_why_is_my_gradient_none/cell-94": ("mistakes", ["1", "2", "3", "5", "None", "['floor']"]),
    "4_why_is_my_gradient_none/repair-check": (
        ANY,
        [
            repaired("tf.reduce_mean(errors**2) + tf.stop_gradient(0.01 * slope**2)"),
            repaired("tf.reduce_mean(errors**2)"),
            repaired("tf.reduce_mean(errors) + 0.01 * slope**2"),
            repaired("tf.reduce_sum(errors**2) + 0.01 * slope**2"),
            repaired("tf.reduce_mean(errors**2) + 0.01 * slope**2").replace("[slope, offset]", "[offset, slope]"),
            repaired("tf.reduce_mean(errors**2) + 0.01 * slope**2").replace("tf.Variable(0.0)", "tf.constant(0.0)"),
            repaired("tf.reduce_mean(errors**2) + 0.01 * slope**2").replace("[slope, offset]", "slope"),
        ],
    ),
    "5_port_a_program/cell-36": (
        ANY,
        [
            "def count_right(weights, points, labels): return jnp.sum((logits_of(weights, points) > 0) == labels[:, 0])",
            "def count_right(weights, points, labels): return jnp.sum(logits_of(weights, points) > 0)",
            "def count_right(weights, points, labels): return jnp.mean((logits_of(weights, points) > 0) == (labels > 0.5))",
            "def count_right(weights, points, labels): return jnp.sum((logits_of(weights, points) > 0.5) == (labels > 0.5))",
            "def count_right(weights, points, labels): return jnp.sum((logits_of(weights, points) > 0) != (labels > 0.5))",
            "def count_right(weights, points, labels): return 367",
            "def count_right(w, p, l): return jnp.sum((logits_of(weights, points) > 0) == (labels > 0.5))",  # the globals
            "count_right = jnp.sum((logits_of(weights, points) > 0) == (labels > 0.5))",
        ],
    ),
    "5_port_a_program/cell-38": (
        ANY,
        [
            halved("[by_hand(half, points, labels)] * 2"),
            halved("[by_tape(flat(half))] * 2"),
            halved("[by_tape(flat(weights)), by_hand(weights, points, labels)]"),
            halved("[by_tape(flat(weights)) / 2, by_hand(weights, points, labels) / 2]"),
            halved("[by_tape(flat(half)), by_hand(weights, points, labels)]"),
            halved("[by_tape(flat([(w / 2, b) for w, b in weights])), by_hand(half, points, labels)]"),
            halved("[f(flat(half)), loss_of(half, points, labels)]"),
            halved("by_tape(flat(half))"),
            halved("half"),
        ],
    ),
    "6_keras_flax_equinox/cell-16": (
        "guess",
        ["list", "dict", "jax.Array", "tuple", "tf.Tensor", "'MLP'", "equinox_model"],
    ),
    "6_keras_flax_equinox/cell-33": (
        "away",
        [
            "-tape.gradient(loss, points)",
            "points + tape.gradient(loss, points)",
            "jnp.zeros_like(points)",
            "tape.gradient(loss, [points])[0][::-1]",
            "(lambda g: g / jnp.linalg.norm(g, axis=1, keepdims=True))(tape.gradient(loss, points))",
            "tape.gradient(loss, votes)",
            "tape.gradient(loss, sources)",
        ],
    ),
    "6_keras_flax_equinox/cell-35": (
        ANY,
        [
            explained("tape.explain(loss, [features.trainable_variables, head])").replace("    tape.watch(head)\n", ""),
            explained("tape.explain(loss, features.trainable_variables)"),
            explained("tape.explain(loss, head)"),
            explained("tape.explain(loss, [features.trainable_variables, features.trainable_variables])"),
            explained("tape.explain(loss, [features.trainable_variables, head])").replace(
                "points)", "points).__array__()"
            ),
            explained("tape.gradient(loss, [features.trainable_variables, head])"),
            explained("'connected'"),
        ],
    ),
    "6_keras_flax_equinox/cell-37": (
        ANY,
        [
            gradients("", "tape.gradient(loss, keras_model.trainable_variables)"),
            gradients(
                "@jax.jit", "tape.gradient(loss, keras_model.trainable_variables)"
            ),  # keeps the weights that it met
            gradients("@tf.function", "[2 * g for g in tape.gradient(loss, keras_model.trainable_variables)]"),
            gradients("@tf.function", "tape.gradient(loss, keras_model.trainable_variables[::-1])"),
            gradients("@tf.function", "tape.gradient(loss, keras_model.trainable_variables[:4])"),
            gradients("@tf.function", "tape.gradient(loss, keras_model.trainable_variables)").replace(
                "(at)", "(points)", 1
            ),
            gradients("@tf.function", "loss"),
            gradients("@tf.function", "tape.gradient(loss, keras_model.trainable_variables)")
            + "\ngradients_of = gradients_of(points)",
        ],
    ),
    "7_how_the_tape_works/minimal-guess": (
        "right",
        [
            "set(faults)",
            "set()",
            "{'stop_gradient(x) * x'}",
            '{"a rule of one\'s own"}',
            "{'jit that closes over x'}",
            "2",
            "sorted(faults)[:2]",
        ],
    ),
    "7_how_the_tape_works/slice-guess": ("left", ["7", "12", "5", "4", "11", "['sin', 'multiply']", "'six'"]),
    "7_how_the_tape_works/rules": (
        ANY,
        [
            rules_with("true_divide", "lambda bar, a, b: [bar / b, bar * a / b**2]"),
            rules_with("multiply", "lambda bar, a, b: [bar * a, bar * b]"),
            rules_with("matmul", "lambda bar, a, b: [bar @ b, a @ bar]"),
            rules_with("matmul", "lambda bar, a, b: [b.T @ bar, bar @ a.T]"),
            rules_with("exp", "lambda bar, x: [bar * x]"),
            rules_with("exp", "lambda bar, x: bar * jnp.exp(x)"),
            rules_with("reduce_sum", "lambda bar, x: [bar]"),
            rules_with("reduce_sum", "'bar'"),
            "rules = [jnp.cos, jnp.exp]",
        ],
    ),
    "7_how_the_tape_works/cell-51": (
        ANY,
        [
            "def as_function(tape, target, source): return lambda x: target",
            "def as_function(tape, target, source): return lambda x: jnp.sum(jnp.sin(x) * x)",  # no replay
            "def as_function(tape, target, source): return lambda x: tape.entries[-1][1](x)",  # the last operation only
            "def as_function(tape, target, source): return lambda x: tape.gradient(target, source) @ x",
            replay("known = {id(source): x}").replace("known.get(id(i), i)", "i"),  # with the old values
            replay("known = {id(source): x}").replace(
                "if any(id(i) in known for i in inputs)", "if True"
            ),  # the middle, too
            "def as_function(tape, target, source): return target",
            "as_function = lambda x: jnp.sum(jnp.sin(x) * x)",
        ],
    ),
    "7_how_the_tape_works/cell-55": (
        ANY,
        [
            "def push(tape, target, source, tangent): return tape.gradient(target, source) @ tangent",  # backward
            pulled("bar[id(source)] @ tangent"),  # backward, with a sweep of its own
            "def push(tape, target, source, tangent): return tangent",
            "def push(tape, target, source, tangent): return jax.jvp(tape.entries[-1][1], (target,), (target,))[1]",
            pushed("dot[id(target)]").replace("dot.get(id(x), jnp.zeros_like(x))", "dot.get(id(x), jnp.ones_like(x))"),
            pushed("dot[id(source)]"),
            pushed("dot"),
            "push = jnp.cos",
        ],
    ),
}
WRONG |= exercises_9_10.WRONG
WRONG |= {
    "tape_or_functional/slope": (
        ANY,
        [
            "slope = jax.grad(lambda x: x**2 * jnp.sin(x))",  # no tape
            taped("y"),
            taped("tape.gradient(y, x)", block="y = x**2 * jnp.sin(float(x))"),
            taped("tape.gradient(y, x)", block="y = jax.lax.stop_gradient(x) ** 2 * jnp.sin(x)"),
            taped("tape.gradient(y, x)", watched="jnp.array(1.0)"),
            "slope = lambda x: 2 * x * jnp.cos(x)",
            "slope = lambda x: 2 * x * jnp.sin(x) - x**2 * jnp.cos(x)",
            "slope = jax.grad(jax.grad(lambda x: x**2 * jnp.sin(x)))",
            "slope = 2.0",
        ],
    ),
    "tape_or_functional/predicted": (
        "predicted",
        [
            '{"tape": 0.0, "jax": 0.0}',
            '{"tape": None, "jax": None}',
            '{"tape": 0.0, "jax": None}',
            '{"tape": 3.0, "jax": 3.0}',
            '{"tape": None, "jax": 6.0}',
            '{"tape": None, "jax": "zero"}',
            "[None, 0.0]",
            "None",
        ],
    ),
    "tape_or_functional/middle": (
        "middle",
        [
            "jax.grad(lambda x: jnp.sin(x * x) * x)(x)",
            "jax.grad(lambda x: jnp.sin(h) * x)(x)",
            "jax.grad(lambda h: jnp.sin(h) * x)(x)",
            "jax.grad(jnp.sin)(h)",
            "jax.grad(lambda h: jnp.sin(h) * jnp.sqrt(h))(h)",
            "jax.grad(lambda z: jnp.sin(z * z) * 1.5)(x)",
            "y",
            "-by_tape",
            "jax.grad(lambda h: jnp.sin(h) * x)",
        ],
    ),
}
WRONG |= {
    "guides/turn-1": (
        "predicted",
        [
            '{"a": None, "b": None, "c": None, "d": -1.0, "e": None}',
            '{"a": 1.0, "b": 1.0, "c": None, "d": -1.0, "e": None}',
            '{"a": 1.0, "b": None, "c": 1.0, "d": -1.0, "e": None}',
            '{"a": 1.0, "b": None, "c": None, "d": 1.0, "e": None}',
            '{"a": 1.0, "b": None, "c": None, "d": -1.0, "e": 5.0}',
            '{"a": 2.0, "b": None, "c": None, "d": -1.0, "e": None}',
            '{"a": 1.0, "b": 0.0, "c": None, "d": -1.0, "e": None}',
            '{"a": 1.0, "d": -1.0}',
            "[1.0, None, None, -1.0, None]",
        ],
    ),
}

# What is changed in the answer to a loop, so that it is wrong.
LOOP_CHANGES = [
    ("assign_sub", "assign_add"),
    ("range(20)", "range(19)"),
    ("0.2 *", "0.1 *"),
    ("reduce_mean", "reduce_sum"),
    ("losses.append(float(loss))", "losses.append(float(speed))"),
    ("losses.append(float(loss))", "losses = float(loss)"),
]


def is_exercise(cell):
    return cell.cell_type == "code" and "style.check(" in cell.source


def answer_of(cells, i):
    folded = re.match(r"<details><summary>Answer</summary>\n\n(.*?)\n\n</details>", cells[i + 1].source, re.DOTALL)
    assert folded, "the answer of an exercise is folded, in the next cell"
    return re.search(r"```python\n(.*?)```", folded[1], re.DOTALL)[1]


def filled_in(source, answer):
    """The cell with `answer` in the place of the statements that hold a ``...``."""
    lines, statements = source.splitlines(), ast.parse(source).body
    blanks = [s for s in statements if any(isinstance(n, ast.Constant) and n.value is ... for n in ast.walk(s))]
    for blank in reversed(blanks):
        first = min(node.lineno for node in (blank, *getattr(blank, "decorator_list", [])))
        lines[first - 1 : blank.end_lineno] = answer.splitlines() if blank is blanks[0] else []
    return "\n".join(lines)


def wrong_answers(path, cells, i):
    """Where a loop is to be repaired, wrong are the loop above, and changes of the right one."""
    if (place := f"{path.stem}/{cells[i].id}") in WRONG:
        name, answers = WRONG[place]
        return [f"{name} = {answer}" if name else answer for answer in answers]
    right = answer_of(cells, i)
    if place in exercises_writing.CHANGED:
        return exercises_writing.wrong(place, right)
    other = answer_of(cells, next(k for k, cell in enumerate(cells) if cell.id == other_loop(cells[i].id)))
    return [cells[i - 1].source.rsplit("\n\n", 1)[0], other, *(right.replace(*change) for change in LOOP_CHANGES)]


def other_loop(id):
    """The exercise whose answer is tried here, too: that of the first loop, in the first that of the last."""
    return "loop-5-check" if id == "loop-1-check" else "loop-1-check"


WRONG |= exercises_written.WRONG | exercises_functional.WRONG
RIGHT = exercises_functional.RIGHT  # written differently than the folded answer
SAID = exercises_functional.SAID  # what has to be said of each wrong answer, in their order
