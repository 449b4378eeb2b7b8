"""The notebooks' exercises: where they are, their folded answers, and a wrong answer to each."""

from __future__ import annotations

import ast
import re

# One wrong answer each, such as a student might give.
WRONG = {
    "1_first_tape/cell-19": "factor = np.sin(2 * 0.5)",
    "1_first_tape/cell-44": "guess = [1.0, 1.0, 1.0, 1.0]",
    "2_tape_and_functional/best-step-measured": """
def quotient_errors():  # in double precision, whatever was asked for
    return np.abs((np.sin(1 + steps) - np.sin(1)) / steps - np.cos(1))
measured = {"float32": quotient_errors(), "float64": quotient_errors()}""",
    "2_tape_and_functional/best-step-found": "best = [2.0**-24, 2.0**-53]",
    "2_tape_and_functional/cell-18": "power = torque * rates",
    "3_beyond_the_gradient/cell-10": """
sums = tf.reduce_sum(tape.jacobian(p, x), axis=0)
along = tape.gradient(u, x)""",
    "4_why_is_my_gradient_none/cell-15": 'have_one = {"w", "b"}',
    "4_why_is_my_gradient_none/cell-19": "guess = None",
    "4_why_is_my_gradient_none/cell-79": "guess = 7.0",
    "4_why_is_my_gradient_none/cell-94": "mistakes = 3",
    "4_why_is_my_gradient_none/repair-check": """
offset = tf.Variable(0.0)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean((slope * xs + offset - ys) ** 2) + tf.stop_gradient(0.01 * slope**2)
gradients = tape.gradient(loss, [slope, offset])""",
    "5_port_a_program/cell-36": """
def count_right(weights, points, labels):
    return jnp.sum((logits_of(weights, points) > 0) == labels[:, 0])""",
    "5_port_a_program/cell-38": """
both = [f([array for pair in weights for array in pair]), loss_of(weights, points, labels)]""",
    "6_keras_flax_equinox/cell-16": "guess = list",
    "6_keras_flax_equinox/cell-33": "away = -tape.gradient(loss, points)",
    "6_keras_flax_equinox/cell-35": """
with tf.GradientTape() as tape:
    loss = cross_entropy(jax.vmap(head)(features(points)))
explanation = tape.explain(loss, [features.trainable_variables, head])""",
    "6_keras_flax_equinox/cell-37": "compiled = [2 * v for v in keras_model.trainable_variables]",
    "7_how_the_tape_works/minimal-guess": "right = set(faults)",
    "7_how_the_tape_works/slice-guess": "left = 7",
    "7_how_the_tape_works/rules": """
rules = {
    "sin": lambda bar, x: [bar * jnp.cos(x)],
    "reduce_sum": lambda bar, x: [bar * jnp.ones_like(x)],
    "exp": lambda bar, x: [bar * jnp.exp(x)],
    "multiply": lambda bar, a, b: [bar * b, bar * a],
    "true_divide": lambda bar, a, b: [bar / b, bar * a / b**2],
    "matmul": lambda bar, a, b: [bar @ b.T, a.T @ bar],
}""",
    "7_how_the_tape_works/cell-51": """
def as_function(tape, target, source):
    return lambda x: target""",
    "7_how_the_tape_works/cell-55": """
def push(tape, target, source, tangent):
    return tape.gradient(target, source) * tangent""",
}


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
        lines[blank.lineno - 1 : blank.end_lineno] = answer.splitlines() if blank is blanks[0] else []
    return "\n".join(lines)


def wrong_answer(path, cells, i):
    """Where a loop is to be repaired, wrong is the loop above."""
    return WRONG.get(f"{path.stem}/{cells[i].id}") or cells[i - 1].source.rsplit("\n\n", 1)[0]
