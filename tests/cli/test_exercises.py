"""The notebooks' exercises: as they are they run, the folded answer is right, and a wrong one is told."""

from __future__ import annotations

import ast
import importlib.util
import re
import symtable

import pytest
import test_notebooks
from test_notebooks import FOLDER, NOTEBOOKS, each_notebook, manager, nbformat

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


def names(source):
    """The names that a cell binds, and those that it reads."""

    def globals_of(table):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from globals_of(child)

    table = symtable.symtable(source, "cell", "exec")
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    return bound, set(globals_of(table))


def needed(cells):
    """The exercises, and the cells that lead to them: those that bind what a later one reads. None of the others is run."""
    wanted, chosen = set(), []
    for i, cell in reversed(list(enumerate(cells))):
        if cell.cell_type == "code":
            bound, read = names(cell.source)
            if is_exercise(cell):
                read |= names(answer_of(cells, i))[1]
            if is_exercise(cell) or bound & wanted:
                wanted = (wanted - bound) | read
                chosen.append(i)
    return chosen[::-1]


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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a cell, in one kernel for all: what it prints, and the name of the exception."""
    kernel, environment = test_notebooks.kernel_here(tmp_path_factory.mktemp("jupyter"), manager.KernelManager)
    kernel.start_kernel(env=environment, cwd=str(FOLDER))
    client = kernel.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)

    def run(source):
        printed = []

        def hear(message):
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = client.execute_interactive(source, output_hook=hear, timeout=300)
        return "".join(printed), reply["content"].get("ename")

    yield run
    client.stop_channels()
    kernel.shutdown_kernel(now=True)


LONG = "5_port_a_program", "6_keras_flax_equinox"  # their exercises come after minutes of training and imports


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in LONG else []) for p in NOTEBOOKS]
)
def test_exercises(run, path):
    notebook = nbformat.read(path, 4)
    cells = notebook.cells
    missing = {name for name in test_notebooks.imported(notebook) if not (FOLDER / f"{name}.py").exists()}
    missing = sorted(name for name in missing if not importlib.util.find_spec(name))
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")

    run("%reset -f")
    for i in needed(cells):
        cell = cells[i].source
        if is_exercise(cells[i]):
            printed, error = run(filled_in(cell, answer_of(cells, i)))
            assert error is None and set(printed.splitlines()) == {"Right."}, cell
            # where a loop is to be repaired, wrong is the loop above
            wrong = WRONG.get(f"{path.stem}/{cells[i].id}") or cells[i - 1].source.rsplit("\n\n", 1)[0]
            assert run(filled_in(cell, wrong))[1] == "AssertionError", cell
        printed, error = run(cell)
        assert error is None, cell
        assert not is_exercise(cells[i]) or set(printed.splitlines()) == {"Not answered yet."}, cell


def test_every_wrong_answer_has_its_exercise():
    found = {
        f"{path.stem}/{cell.id}" for path in NOTEBOOKS for cell in nbformat.read(path, 4).cells if is_exercise(cell)
    }
    assert set(WRONG) == {place for place in found if "/loop-" not in place}


@each_notebook
def test_a_notebook_begins_with_its_goals(path):
    title, goals, *_ = nbformat.read(path, 4).cells
    assert title.source.startswith("# ")
    assert goals.source.startswith("**After this notebook you can**\n\n* ")
    assert 3 <= len(re.findall(r"(?m)^\* ", goals.source)) <= 5


@each_notebook
def test_questions_have_folded_answers(path):
    text = "\n\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    assert text.count("<details><summary>") == text.count("</summary>\n\n") == text.count("\n\n</details>")
    for question in text.split("**Question.**")[1:]:
        assert re.match(r"(?:(?!\n#)(?!\*\().)*<details><summary>Answer</summary>", question, re.DOTALL), question[:200]
