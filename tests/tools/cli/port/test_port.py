"""`python -m tapejax port`: programs through it whole, in processes of their own; and what it refuses, with the line."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tapejax.__main__ import main
from tapejax.tools.cli.port import comparing, definitions

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = ROOT / "tests/tools/cli/port/programs"

# Whether the program's own loop is kept, or OUT.py runs on the recorded arguments.
FAST = {"line_fit": True, "meta_learning": True, "guide_loop": True, "tensors": True}
SLOW = {
    "actor_critic": True,
    "adversarial_input": True,
    "agent": True,
    "characters": True,
    "classes": True,
    "episodes": True,
    "logistic": True,
    "metrics": True,
    "predictions": True,
    "quickstart": True,
    "random_data": True,
    "reinforce": True,
    "replay_buffer": True,
    "sampling": True,
    "tensors_in_lists": True,
    "validation": True,
    "word_vectors": True,
    "adversaries": True,
    "contrastive": True,
    "equation": True,
    "flow": True,
    "neural_ode": True,
    "norm_and_dropout": True,
    "own_train_step": False,
    "policy_gradient": True,
    "q_learning": True,
    "recurrent": False,
    "style": True,
    "wasserstein": True,
}
EXAMPLES = {
    "adversarial": True,
    "convolutional": False,
    "digits": True,
    "gan": True,
    "integrated_gradients": True,
    "mlp": True,
    "physics_informed": True,
    "regression": True,
    "vae": True,
}


def run_port(program, out, *options):
    """Ports a program in a process of its own; returns what was printed."""
    env = {"JAX_PLATFORMS": "cpu"} | os.environ
    command = [sys.executable, "-m", "tapejax", "port", str(program), "-o", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def run(out):
    """What a ported program prints, where it finds neither TensorFlow nor tapejax."""
    blocked = "import sys, runpy; sys.modules |= dict.fromkeys(('tensorflow', 'tapejax', 'keras')); runpy.run_path(sys.argv[1])"
    env = {"JAX_PLATFORMS": "cpu"} | os.environ
    done = subprocess.run(
        [sys.executable, "-c", blocked, str(out)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_same_numbers(printed, ported):
    """The lines that a ported program prints are lines of the program's, with the same numbers up to rounding."""
    number = r"-?\d+\.?\d*(?:e-?\d+)?"
    lines = [[float(x) for x in re.findall(number, line)] for line in printed.splitlines()]
    for line in ported.splitlines():
        found = [float(x) for x in re.findall(number, line)]
        assert any(len(x) == len(found) and np.allclose(x, found, rtol=2e-3, atol=2e-3) for x in lines), line


def check(program, folder, kept, *options):
    out = folder / "out.py"
    printed = run_port(program, out, *options)
    text = out.read_text()
    assert not re.search(r"^\s*(import|from) (tapejax|tensorflow|keras)", text, re.MULTILINE)
    assert "jax.value_and_grad" in text and "@jax.jit" in text
    assert printed.count("steps; largest difference") == 1 + kept
    assert kept == ("loop was not kept" not in printed)
    if kept and ROOT / "examples" not in program.parents:
        assert_same_numbers(printed.split(f"\n{program.name} and the JAX program")[0], run(out))
    assert (folder / "out.npz").exists() and kept != (folder / "out_batches.npz").exists()
    return text


@pytest.mark.parametrize("name", FAST)
def test_a_program_goes_through_whole(name, tmp_path):
    check(PROGRAMS / f"{name}.py", tmp_path, FAST[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_programs_go_through_whole(name, tmp_path):
    check(PROGRAMS / f"{name}.py", tmp_path, SLOW[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_go_through_whole(name, tmp_path):
    if name == "digits":
        pytest.importorskip("sklearn")
    check(ROOT / "examples" / f"{name}.py", tmp_path, EXAMPLES[name])


# ---- what is written, without a process for it -----------------------------------------------------------------------


def _as_expected(what, result, expected, tolerance, compare=comparing.compare):
    return compare(what, {"losses": expected, "error": ""}, expected, tolerance)


@pytest.fixture
def ported(tmp_path, monkeypatch, capsys):
    """Ports a program in this process; returns the exit status, what was printed, and OUT.py's text."""

    def run(text, *options, compare=False):
        program, out = tmp_path / "program.py", tmp_path / "out.py"
        program.write_text(textwrap.dedent(text))
        if "keras" in text:  # of which a process has one, and which changes tapejax's namespaces
            command = [sys.executable, "-m", "tapejax", "port", str(program), "-o", str(out), *options]
            env = {"JAX_PLATFORMS": "cpu"} | os.environ
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
            return done.returncode, done.stdout + done.stderr, out.read_text() if out.exists() else ""
        if not compare:
            monkeypatch.setattr(comparing, "run", lambda programs, *rest: programs)
            monkeypatch.setattr(comparing, "compare", _as_expected)
        status = main(["port", str(program), "-o", str(out), *options])
        captured = capsys.readouterr()
        return status, captured.out + captured.err, out.read_text() if out.exists() else ""

    return run


BEGIN = """
import numpy as np
import tensorflow as tf

w = tf.Variable([0.5, -0.5], name="w")
rng = np.random.default_rng(0)


def step(x, rate=0.1):
    with tf.GradientTape() as tape:
        {block}
    w.assign_sub(rate * tape.gradient(loss, w))
    return loss


{loop}
"""
PLAIN = "loss = tf.reduce_sum((w - x) ** 2)"
LOOP = "for i in range(5):\n    step(tf.constant(rng.normal(size=2), tf.float32))"


@pytest.mark.parametrize(
    "block, loop, expected",
    {
        "no step": (PLAIN, "print(w)", ["program.py: no step was seen", "by hand: give what is trained a name"]),
        "Python looks at a batch": (
            "loss = tf.reduce_sum(w - x) if float(x[0]) > 0 else tf.reduce_sum((w - x) ** 2)",
            LOOP,
            ["the argument 'x': Python looked at the value of", "program.py:11", "by hand:"],
        ),
        "steps of any length": (
            "loss = tf.add_n([tf.reduce_sum((w - y) ** 2) for y in x])",
            "for i in range(8):\n    step([tf.constant(rng.normal(size=2), tf.float32) for _ in range(i + 1)])",
            ["program.py:11: step 4 runs other operations", "by hand: let the number of operations"],
        ),
        "assigned and read again": (
            "scale.assign(tf.reduce_max(tf.abs(w)) + 1.0); loss = tf.reduce_sum((w - x) ** 2) / scale",
            "scale = tf.Variable(1.0, trainable=False)\n" + LOOP,
            ["the variable 'scale' is assigned to and read again before the gradient", "by hand: compute with"],
        ),
        "one step": (PLAIN, "step(tf.constant([1.0, 2.0]))", ["program.py:12: no step ran twice", "by hand: let it"]),
        "fails": (PLAIN, LOOP + "\nraise KeyError", ["does not run whole", "tapejax check"]),
    }.values(),
)  # fmt: skip
def test_refusals_say_the_line_and_what_to_do(ported, block, loop, expected):
    status, printed, text = ported(BEGIN.format(block=block, loop=loop))
    assert status == 2 and text == ""
    for part in expected:
        assert part in printed


def test_a_complex_variable_and_a_notebook_are_refused(ported, tmp_path, capsys):
    status, printed, _ = ported(BEGIN.format(block="loss = tf.abs(w[0] - 1.0)", loop="for i in range(3):\n    step(0)").replace(
        "[0.5, -0.5]", "[0.5 + 1.0j, 0.0]"
    ))  # fmt: skip
    assert status == 2 and "complex variable" in printed
    notebook = tmp_path / "a.ipynb"
    notebook.write_text("{}")
    assert main(["port", str(notebook), "-o", str(tmp_path / "b.py")]) == 2
    assert "a notebook" in capsys.readouterr().err


def test_what_differs_between_steps_is_an_argument_also_if_it_changes_late(ported):
    loop = "for i in range(20):\n    step(tf.constant([1.0, 2.0]), 0.1 if i < 12 else 0.01)"
    _, _, text = ported(BEGIN.format(block=PLAIN, loop=loop))
    assert (
        "def update(carry, x, rate):" in text and "    step(jnp.asarray([1.0, 2.0]), 0.1 if i < 12 else 0.01)" in text
    )


def test_a_kind_of_step_that_ran_once_takes_arguments_as_the_others_do(ported):
    loop = "sizes = [4, 4, 4, 4, 3, 4]\nfor n in sizes:\n    step(tf.constant(rng.normal(size=(n, 2)), tf.float32))"
    status, _, text = ported(BEGIN.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "{((4, 2),): update, ((3, 2),): update_2}" in text
    assert text.count("(carry, x):") == 2


def test_tensors_that_the_program_carries_are_arguments_whose_updates_stay_in_the_text(ported):
    status, printed, text = ported(
        """
        import tensorflow as tf

        def descend(x, rate):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum((x - 1.0) ** 2)
            return x - rate * tape.gradient(y, x)

        for start in ([3.0, 1.0], [-2.0, 0.5]):  # it begins anew
            x = tf.constant(start)
            for i in range(4):
                x = descend(x, 0.1)
            print(start, x.numpy())
        """,
        compare=True,
    )
    assert status == 0 and "8 of 8 steps" in printed and "loop was not kept" not in printed
    assert "    y = train(x)\n    return x - rate * step_found[" in text and "print(start, np.asarray(x))" in text


def test_a_second_name_of_a_carried_tensor_keeps_its_first_value(ported):
    loop = """x = tf.constant([3.0, 4.0])
first = x
for i in range(4):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x**2)
    x -= 0.1 * tape.gradient(y, x)
    x = tf.clip_by_value(x, first - 0.9, first + 0.9)
print(x.numpy(), first.numpy())"""
    status, printed, text = ported("import tensorflow as tf\n" + loop, compare=True)
    assert status == 0 and "4 of 4 steps" in printed and "1 kind(s)" in printed
    assert "x -= 0.1 * step_found['gradient_" in text
    assert re.search(r"x = clip_by_value_\d+\(x, first - 0.9, first \+ 0.9\)", text)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_what_a_variable_holds_between_two_updates_of_a_step_is_refused(ported):
    block = """loss = tf.reduce_sum((w - x) ** 2)
    grads = tape.gradient(loss, w)
    first.apply_gradients([(grads, w)])
    other.apply_gradients([(grads + 0.1 * w, w)])
    first.apply_gradients([(grads, w)])
    w.assign(0.9 * w)
    n.assign(between)"""
    block = block.replace("    other", "    between = tf.reduce_sum(w)\n    other")
    loop = "k = tf.keras.optimizers\nfirst, other = k.SGD(0.1), k.SGD(0.2)\nn = tf.Variable(0.0)\n" + LOOP
    text = BEGIN.format(block=block, loop=loop).replace("    w.assign_sub(rate * tape.gradient(loss, w))\n", "")
    status, printed, _ = ported(text.replace("(w - x) ** 2", "(w - x + n) ** 2"), compare=True)
    assert status == 2 and "between its two updates" in printed and "write it as two steps" in printed


def test_what_is_computed_of_gradients_is_a_result_of_the_step(ported):
    text = BEGIN.format(block=PLAIN, loop=LOOP).replace(
        "    w.assign_sub(rate * tape.gradient(loss, w))",
        "    g = tape.gradient(loss, w)\n    w.assign_sub(rate * g)\n    print('norm', float(tf.norm(g)))",
    )
    status, printed, out = ported(text, compare=True)
    assert status == 0 and "loop was not kept" not in printed
    assert re.search(r"print\('norm', float\(step_found\['norm_\d+_\d+'\]\)\)", out)


def test_what_is_looked_at_before_the_update_is_of_the_old_values(ported):
    text = BEGIN.format(block=PLAIN, loop=LOOP).replace(
        "    w.assign_sub(", "    size = tf.reduce_max(w)\n    w.assign_sub("
    ).replace("return loss", "print('sizes', float(size), float(tf.reduce_max(w)))\n    return loss")  # fmt: skip
    status, printed, out = ported(text, compare=True)
    assert status == 0 and "loop was not kept" not in printed
    assert re.search(r"size = jnp.max\(step_found\['w_\d+_\d+'\]\)", out)
    assert "float(size), float(jnp.max(step_carry[0]['w']))" in out


def test_assignments_between_steps_stay_where_they_are(ported):
    loop = """v = tf.Variable([0.0, 0.0], name="v")
for i in range(9):
    if i < 3:
        continue  # nothing is trained yet
    step(tf.constant(rng.normal(size=2), tf.float32) + v)
    if i % 3 == 0:
        v.assign(0.5 * v + w)
        v.assign_add(tf.ones(2))
print("v", v.numpy())"""
    status, printed, out = ported(BEGIN.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "6 of 6 steps" in printed and "loop was not kept" not in printed and "1 kind(s)" in printed
    assert (
        re.search(r"\n        assign(_2)?\(assigned_\d+\(", out) and "print('v', np.asarray(step_carry[1]['v']))" in out
    )


def test_a_tape_in_a_method_of_a_class(ported):
    loop = """
class Fit:
    def __init__(self, rate):
        self.w = tf.Variable([1.0, 2.0], name="coefficients")
        self.rate, self.seen = rate, []

    def loss(self, x):
        return tf.reduce_sum((self.w - x) ** 2)

    def step(self, x):
        if x[0] > 1.0:  # left alone
            return None
        with tf.GradientTape() as tape:
            loss = self.loss(x)
        self.w.assign_sub(self.rate * tape.gradient(loss, self.w))
        self.seen.append(float(loss))
        return loss


fit = Fit(0.1)
for i in range(9):
    fit.step(rng.normal(size=2).astype("float32"))
print(fit.w.numpy(), fit.seen[-1], float(fit.loss(np.ones(2, "float32"))))"""
    status, printed, out = ported(BEGIN.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "loop was not kept" not in printed
    assert "loss = train(x)" in out and "self.seen.append(float(loss))" in out and "class Fit:" in out


def test_an_expression_in_the_block_may_be_an_argument(ported):
    text = BEGIN.format(
        block=PLAIN.replace("x)", "x[None, :])"),
        loop=LOOP.replace("tf.constant(rng.normal(size=2), tf.float32)", "rng.normal(size=2)"),
    )
    status, printed, out = ported(text, compare=True)
    assert status == 0 and "loop was not kept" not in printed and "loss = train(x[None, :])" in out


def test_the_docstring_stands_above_and_what_is_added_to_goes(ported):
    loop = LOOP + "\nrows = [1.0]\nfor i in range(3):\n    rows.append(float(tf.random.normal([])))\nprint(rows)"
    _, _, out = ported('"""Fits: \\\\alpha."""' + BEGIN.format(block=PLAIN, loop=loop), compare=True)
    assert out.startswith('"""Fits: \\\\alpha.\n\nprogram.py in JAX, as `python -m tapejax port` wrote it.')
    assert out.count("Fits") == 1 and re.search(r"# program.py:\d+: print\(rows\)", out)


@pytest.mark.parametrize(
    "line, hint",
    {
        "model = None  # model.fit(x)": "where Keras trains",
        "": "`w = w - rate * gradient`",
    }.items(),
)
def test_hints_fit_the_program(ported, line, hint):
    text = "import tensorflow as tf\nx = tf.Variable(1.0)\nwith tf.GradientTape() as tape:\n    y = x**2\n"
    text += "print(tape.gradient(y, x))\n"
    status, printed, _ = ported(text + line)
    assert status == 2 and hint in printed
    status, printed, _ = ported("import tensorflow as tf\nprint(tf.constant(1.0))")
    assert status == 2 and "port is for programs with a tape" in printed


def test_a_gradient_that_changes_nothing_is_left_out(ported):
    block = """loss = tf.reduce_sum(w)
    seen = tape.gradient(loss, w)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((w - x) ** 2)"""
    status, printed, text = ported(BEGIN.format(block=block, loop=LOOP), compare=True)
    assert status == 0 and "5 of 5 steps" in printed and "gradients_2 = jax" in text and "gradients_1" not in text


def test_what_is_added_to_or_deleted_goes_with_what_made_it(ported):
    block = (
        PLAIN
        + """
        norm = tf.norm(w)
    loss.numpy()
    total = tf.norm(norm)
    total += 1
    del tape"""
    )
    text = BEGIN.format(block=block, loop=LOOP).replace("w.assign_sub(rate * tape.gradient(loss, w))", "pass")
    text = text.replace("    loss.numpy()", "    w.assign_sub(rate * tape.gradient(loss, w))\n    print(float(loss))")
    status, printed, out = ported("from __future__ import annotations\n" + text, compare=True)
    assert status == 0 and "loop was not kept" not in printed
    assert "del tape" not in out and "total = jnp.linalg" not in out
    assert "    print(float(loss))\n" in out


def test_a_loop_that_goes_on_by_what_is_left_out_is_not_kept(ported):
    counted = "n = len(tf.unstack(tf.zeros(n + 1)))"
    loop = f"n = 0\nwhile n < 4:\n    step(tf.constant([1.0, n]))\n    {counted}"
    status, printed, _ = ported(BEGIN.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "goes on by what is left out: while n < 4:" in printed


def test_tensorflow_imported_in_a_branch_is_left_out_and_the_loop_kept(ported):
    text = BEGIN.format(block=PLAIN, loop=LOOP).replace(
        "import tensorflow as tf", "if True:\n    import tensorflow as tf"
    )
    status, printed, out = ported(text, compare=True)
    assert status == 0 and "loop was not kept" not in printed and "tensorflow" not in out


def test_the_comparison_finds_a_wrong_number(ported, monkeypatch):
    kind = definitions.Definitions
    add = kind.add
    monkeypatch.setattr(kind, "add", lambda self, code, *rest: add(self, code.replace("** 2", "** 4"), *rest))
    status, printed, text = ported(BEGIN.format(block=PLAIN, loop=LOOP), compare=True)
    assert status == 1 and "beyond the tolerance from step 0 on: this is no rounding" in printed
    assert "The program's loop was not kept: run as a whole" in printed and "BATCHES = " in text


def test_it_ends_the_program_after_so_many_steps(ported):
    status, printed, _ = ported(BEGIN.format(block=PLAIN, loop=LOOP + "\n    print('step', i)"), "--steps", "3")
    assert "step 1" in printed and "step 3" not in printed and "3 of 3 steps" in printed


def test_arguments_reach_the_program(ported):
    loop = "import sys\nprint(sys.argv[1:])\n" + LOOP
    _, printed, _ = ported(BEGIN.format(block=PLAIN, loop=loop), "--", "--rate", "3")
    assert "['--rate', '3']" in printed
