"""`python -m tapejax port`: programs through it whole, in processes of their own; and what it refuses, with the line."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tapejax.__main__ import main
from tapejax.tools.cli.port import comparing, module

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = ROOT / "tests/tools/cli/port/programs"

FAST = "line_fit", "meta_learning", "tensors"
SLOW = (
    "actor_critic adversarial_input agent characters classes episodes logistic metrics predictions quickstart random_data"
    " reinforce replay_buffer sampling tensors_in_lists validation word_vectors adversaries contrastive equation flow guide_loop"
    " neural_ode norm_and_dropout own_train_step policy_gradient q_learning recurrent style wasserstein momentum two_phases"
    " gradient_norms fit_and_tape fit_between two_models truncated_recurrence"
).split()
EXAMPLES = "adversarial convolutional digits gan integrated_gradients mlp physics_informed regression vae".split()


def run_port(program, out, *options):
    """Ports a program in a process of its own; returns what was printed."""
    env = {"JAX_PLATFORMS": "cpu"} | os.environ
    command = [sys.executable, "-m", "tapejax", "port", str(program), "-o", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def run(out):
    """What a ported program prints, where it finds neither TensorFlow nor tapejax."""
    blocked = "import sys, runpy; sys.modules |= dict.fromkeys(('tensorflow', 'tapejax', 'keras')); "
    blocked += "runpy.run_path(sys.argv[1], run_name='__main__')"
    env = {"JAX_PLATFORMS": "cpu"} | os.environ
    done = subprocess.run(
        [sys.executable, "-c", blocked, str(out)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(program, folder, *options, tolerance=1e-3):
    """Ports a program: the steps have the program's losses, alone as well. Returns the text of OUT.py."""
    out = folder / "out.py"
    printed = run_port(program, out, *options)
    text = out.read_text()
    assert not re.search(r"^\s*(import|from) (tapejax|tensorflow|keras)", text, re.MULTILINE)
    assert re.search(r"jax\.(value_and_)?grad\(", text) and "@jax.jit" in text
    steps, difference = re.search(r"(\d+) of \1 steps; largest difference (\S+)", printed).groups()
    assert int(steps) > 1 and float(difference) < tolerance
    assert re.search(
        r"after the last step, [1-9]\d* entries; largest difference \S+: (params|state|opt_state)\[", printed
    )
    lines = run(out).splitlines()
    for line in lines:
        ours, theirs = re.fullmatch(r"\d+ (\[.*?\]) (\[.*?\])", line).groups()
        np.testing.assert_allclose(json.loads(ours), json.loads(theirs), rtol=2e-3, atol=2e-3)
    assert len(lines) == int(steps)
    return text


@pytest.mark.parametrize("name", FAST)
def test_a_program_goes_through_whole(name, tmp_path):
    check(PROGRAMS / f"{name}.py", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_programs_go_through_whole(name, tmp_path):
    check(PROGRAMS / f"{name}.py", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_go_through_whole(name, tmp_path):
    if name == "digits":
        pytest.importorskip("sklearn")
    check(ROOT / "examples" / f"{name}.py", tmp_path)


PRACTICE = (
    "actor_critic autoencoder corridor gan lstm mixture pinn trainer transformer advantage_actor_critic dqn"
    " inverse_pinn pgd vq_vae dp_sgd graph_network conditional_gan wgan_gp warm_up accumulation siamese diffusion bayesian sac"
    " gumbel_softmax multitask sharpness_aware simclr sorting language_model slow_target triplet oscillator double_dqn"
    " molecules ppo char_gru"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("name", PRACTICE)
def test_the_step_of_a_program_as_practitioners_write_it_is_short_and_agrees(name, tmp_path):
    text = check(ROOT / "tests/tools/cli/port/practice" / f"{name}.py", tmp_path, tolerance=1e-4)
    assert sum(map(bool, text.splitlines())) <= 150
    assert "pullback" not in text


@pytest.mark.slow
def test_what_the_step_of_the_corridor_differs_by_is_rounding(tmp_path):
    """Its loss is a difference of sums, and Keras's Adam has ``1 - 0.999**t`` in 32 bits: 2e-4 of the smallest loss. In 64 bits
    nothing of it is left."""
    text = (ROOT / "tests/tools/cli/port/practice/corridor.py").read_text().replace('"float32"', '"float64"')
    program = tmp_path / "corridor.py"
    program.write_text(text.replace("seed = 7", 'seed = 7\ntf.keras.backend.set_floatx("float64")'))
    check(program, tmp_path, tolerance=1e-10)


@pytest.mark.slow
def test_an_attack_by_the_sign_of_a_gradient_amplifies_rounding(tmp_path):
    """In 64 bits the losses of this program agree to 12 digits, in 32 its parameters to one or two."""
    printed = run_port(ROOT / "tests/tools/cli/port/practice/trades.py", tmp_path / "out.py")
    assert "20 of 20 steps" in printed and "no rounding" not in printed and "beyond the tolerance: " not in printed
    text = (tmp_path / "out.py").read_text()
    assert "update_2(" not in text and sum(map(bool, text.splitlines())) <= 150


@pytest.mark.slow
@pytest.mark.parametrize("name, most", {"adjoint": 130, "mixup": 165, "spiral": 200}.items())
def test_the_step_of_a_longer_program_agrees(name, most, tmp_path):
    text = check(ROOT / "tests/tools/cli/port/practice" / f"{name}.py", tmp_path, tolerance=1e-4)
    assert sum(map(bool, text.splitlines())) <= most


# ---- what is written, without a process for it -----------------------------------------------------------------------


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
            monkeypatch.setattr(comparing, "run", lambda target: ([], {}, ""))
            monkeypatch.setattr(comparing, "compare", lambda *args: 0)
            monkeypatch.setattr(comparing, "compare_last", lambda *args: 0)
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
        "a gradient that takes numbers": (
            "loss = halved(tf.reduce_sum((w - x) ** 2))",
            "@tf.custom_gradient\ndef halved(x):\n    return x, lambda dy: tf.constant(dy.numpy() / 2)\n\n\n" + LOOP,
            ["program.py:12: halved (program.py:16), a function with a gradient of its own,", "jax.pure_callback(", "by hand:"],
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
    assert "def update(params, x, rate):" in text and "params, loss = update(params, x, rate)" in text


OTHERS = {
    "restart": [
        "def update(params):",
        "# Between steps, as main() does, put what the program begins anew with (lines ",
    ],
    "per_example": ["jax.vmap(example_gradient, in_axes=(None, 0))(params, rows)", "params = update(params, rows)"],
    "conjugate_gradients": ['"state": {"d": d, "g": grads["x"]}', "params, state, loss = update_1(params, state"],
    "newton": ["jax.jacrev(", "params, loss = update(params)"],
    "gauss_newton": ["jax.jacfwd("],
    "scipy_optimizer": ["loss, grads = update(params)", "return value, grads"],
}


@pytest.mark.parametrize(
    "name", [*list(OTHERS)[:2], *(pytest.param(n, marks=pytest.mark.slow) for n in list(OTHERS)[2:])]
)
def test_steps_of_other_kinds(ported, name):
    """Values set anew, gradients of each row, tensors handed on, Jacobians, optimizers that are no part of the program."""
    if name == "scipy_optimizer":
        pytest.importorskip("scipy")
    status, printed, text = ported((PROGRAMS / f"{name}.py").read_text(), compare=True)
    assert status == 0, printed
    for part in OTHERS[name]:
        assert part in text


@pytest.mark.slow
@pytest.mark.parametrize("name, part", {"clipped_jacobian": "jax.jacrev(", "output_gradients": "jnp.vdot("}.items())
def test_an_optimizer_is_given_what_is_made_of_jacobians(ported, name, part):
    status, printed, text = ported((PROGRAMS / f"{name}.py").read_text())
    assert status == 0 and part in text, printed


@pytest.mark.slow
def test_equal_layers_are_one_function_and_a_variable_beside_a_model_is_an_entry(ported):
    status, printed, text = ported((PROGRAMS / "two_models.py").read_text())
    assert status == 0 and text.count("def dense") == 1, printed
    call = 'dense(params["first"], dense(params["part_2"]["second"]["dense"], x))'
    assert call in " ".join(text.split()) and 'params["part_2"]["temperature"]' in text


@pytest.mark.slow
def test_a_target_network_has_the_program_s_name_and_the_tree_of_the_model_that_it_follows(ported):
    program = ROOT / "tests/tools/cli/port/practice/double_dqn.py"  # whose layers are numbered on in the second model
    status, printed, text = ported(program.read_text())
    assert status == 0 and "def new_target_model(" in text and "return jax.tree.map(lambda " in text, printed
    assert 'model(state["target_model"], next_states)' in text


@pytest.mark.slow
def test_an_optimizer_goes_on_from_what_keras_had(ported):
    status, printed, text = ported((PROGRAMS / "fit_and_tape.py").read_text())
    assert status == 0 and 'restored(jax.jit(opt.init)(params), tree("slots"))' in text, printed


SCALED = """def scaled(factor):
    @tf.custom_gradient
    def scale(x):
        return factor * x, lambda dy: factor * dy

    return scale


two = tf.constant(2.0)
"""


@pytest.mark.parametrize("factor, expected", [("two", 0), ("tf.constant([2.0])", 0), ("tf.reduce_sum(x)", 2)])
def test_a_custom_gradient_that_is_made_anew_in_each_step_is_the_same_if_it_closes_over_the_same(
    ported, factor, expected
):
    block = f"loss = tf.reduce_sum(scaled({factor})(w - x) ** 2)"
    status, printed, text = ported(BEGIN.format(block=block, loop=SCALED + LOOP.replace("(5)", "(8)")), compare=True)
    assert status == expected, printed
    assert "@jax.custom_vjp" in text or "runs other operations than the steps before" in printed


def test_an_error_of_its_own_names_the_line(ported, monkeypatch):
    def fail(*args):
        raise ZeroDivisionError("of port's own")

    monkeypatch.setattr(module.PortedModule, "written", fail)
    status, printed, _ = ported(BEGIN.format(block=PLAIN, loop=LOOP))
    assert (
        status == 2
        and "program.py:12: port stopped at an error of its own, ZeroDivisionError: of port's own" in printed
    )


def test_a_written_step_that_fails_is_told_by_its_line_and_the_program_s(ported, monkeypatch):
    written = module.PortedModule.written
    wrong = lambda self: (written(self)[0].replace(" ** 2", " @ 2.5"), written(self)[1])  # noqa: E731
    monkeypatch.setattr(module.PortedModule, "written", wrong)
    status, printed, _ = ported(BEGIN.format(block=PLAIN, loop=LOOP), compare=True)
    assert status == 1 and "Traceback" not in printed
    assert "program.py:10: the step that was written from here on does not run, out.py:" in printed
    assert re.search(r"out\.py:\d+: `.*@ 2\.5.*`: \w+Error: ", printed) and "by hand:" in printed


@pytest.mark.parametrize(
    "code, wrong, entry",
    [
        ("    state = state |", "    _ = state |", "state['slow']"),  # an average that no loss reads stays as it was
        ("    return updated, state,", "    return params, state,", "params['w']"),
    ],
)
def test_parameters_and_state_that_differ_after_the_last_step_are_named(ported, monkeypatch, code, wrong, entry):
    written = module.PortedModule.written

    def with_fault(self):
        text, data = written(self)
        assert text.count(code) == 1
        return text.replace(code, wrong), data

    monkeypatch.setattr(module.PortedModule, "written", with_fault)
    loop = LOOP + "\n    slow.assign(0.9 * slow + 0.1 * w)"
    begin = BEGIN.replace("rng =", "slow = tf.Variable([0.5, -0.5])\nrng =")
    status, printed, _ = ported(begin.format(block=PLAIN, loop=loop), compare=True)
    assert status == 1 and f"  beyond the tolerance: {entry}, " in printed, printed
    assert ("this is no rounding" in printed) == (entry == "params['w']"), "a loss reads the parameters alone"


def test_a_variable_is_compared_as_it_was_before_it_is_set_anew(ported):
    """What the program puts into it after the last step that is compared is of the step after."""
    loop = "for i in range(5):\n    step(start)\n    w.assign([0.1 * i, 1.0])"
    begin = BEGIN.replace("rng =", "start = tf.constant([1.0, 2.0])\nrng =")
    status, printed, _ = ported(begin.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "after the last step, 1 entries; largest difference" in printed, printed


NORMALISED = """
import numpy as np
import tensorflow as tf

w, b = tf.Variable([[0.5, -0.5], [0.2, 0.1]], name="w"), tf.Variable([0.1, 0.3], name="b")
slow = tf.Variable([0.0, 0.0], name="slow")
rng = np.random.default_rng(0)


def step(x):
    with tf.GradientTape() as tape:
        h = x @ w + b
        loss = tf.reduce_mean(tf.nn.relu((h - tf.reduce_mean(h, 0)) / tf.math.reduce_std(h, 0)) ** 3)
    for v, g in zip((w, b), tape.gradient(loss, (w, b))):
        v.assign_sub(0.01 * g / (tf.abs(g) + 1e-12))
    slow.assign(0.9 * slow + 0.1 * b)


for i in range(6):
    step(tf.constant(rng.normal(size=(16, 2)), tf.float32))
"""


def test_a_parameter_whose_gradient_is_rounding_is_no_difference(ported, monkeypatch):
    """A bias before a normalisation, under an optimizer that divides by the size of the gradient."""
    written = module.PortedModule.written
    one, other = 'x @ params["w"] + params["b"]', '0.1 * (10 * x @ params["w"] + 10 * params["b"])'  # but for rounding
    monkeypatch.setattr(
        module.PortedModule, "written", lambda self: (written(self)[0].replace(one, other), written(self)[1])
    )
    status, printed, text = ported(NORMALISED, compare=True)
    assert status == 0 and other in text and "not compared, moved by rounding: params['b'], " in printed, printed
    assert "not compared, moved by rounding: state['slow'], " in printed
    assert "after the last step, 1 entries; largest difference" in printed


OF_OTHERS = (
    BEGIN.replace("{block}", PLAIN)[: BEGIN.index("def step")]
    + """
def net(x):
    return tf.tanh(tf.reduce_sum(w * x))


def by_a_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = net(x) ** 2
    return x + 0.1 * tf.sign(tape.gradient(loss, x))


def step(x):
{lines}
    w.assign_sub(0.1 * change)


for i in range(6):
    step(tf.constant(rng.normal(size=2), tf.float32))
"""
)


@pytest.mark.parametrize(
    "lines, parts",
    {
        "an attack by a gradient": (
            """    x_adv = by_a_gradient(x)
    with tf.GradientTape() as tape:
        loss = (net(x) - 1.0) ** 2 + (net(x_adv) - 1.0) ** 2
    change = tape.gradient(loss, w)""",
            ["def update(params, x):", "x_adv = compute_x_adv(params, x)", "0.1 * jnp.sign(jax.grad("],
        ),
        "a value of another block": (
            """    with tf.GradientTape() as first:
        value = net(x)
        loss_1 = (value - 1.0) ** 2
    advantage = 1.0 - value
    with tf.GradientTape() as second:
        loss_2 = advantage * tf.reduce_sum(tf.exp(w) * x)
    change = first.gradient(loss_1, w) + second.gradient(loss_2, w)""",
            ["def update(params, x):", "advantage = compute_advantage(params, x)\n"],
        ),
        "a direction that is a gradient": (
            """    with tf.GradientTape() as tape:
        loss = (net(x) - 1.0) ** 2
    gradient = tape.gradient(loss, w)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = (net(x) - 1.0) ** 2
        product = tf.reduce_sum(tape.gradient(loss, w) * gradient)
    change = gradient + outer.gradient(product, w)""",
            ["def update(params, x):", "assigned_values(params, grads, x)"],
        ),
    }.values(),
)
def test_what_a_loss_reads_that_came_of_another_gradient_or_block_is_computed_by_the_step(ported, lines, parts):
    """And is no argument: for a program in JAX nobody has its values."""
    status, printed, text = ported(OF_OTHERS.replace("{lines}", lines), compare=True)
    assert status == 0 and "5 of 5 steps" in printed, printed
    for part in parts:
        assert part in text, text


BEFORE = """
import numpy as np
import tensorflow as tf

w, slow = tf.Variable([1.0, -1.0], name="w"), tf.Variable([1.0, -1.0], name="slow")
rng = np.random.default_rng(0)


def step(x, done, target):
    if target is None:
        target = 0.9 * tf.reduce_sum(slow * x) * (1.0 - done)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.reduce_sum(w * x) - target) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    slow.assign(0.9 * slow + 0.1 * w)
    return target


target = None
for i in range(8):
    target = step(tf.constant(rng.normal(size=2), tf.float32), tf.zeros([1]), {kept})
"""


def test_what_a_step_computes_of_variables_before_its_tape_is_part_of_it(ported):
    status, printed, text = ported(BEFORE.format(kept="None"), compare=True)
    assert status == 0 and "7 of 7 steps" in printed, printed
    assert "(1.0 - done)" in text, "done was the same in each step, and is an argument"
    assert (
        "    target = compute_target(state, x, done)\n    value, grads = jax.value_and_grad(loss)(params, x, target)"
        in text
    )


def test_what_only_some_steps_compute_before_their_tapes_is_an_argument(ported):
    status, printed, text = ported(BEFORE.format(kept="target if i % 2 else None"), compare=True)
    assert status == 0 and "7 of 7 steps" in printed, printed
    assert "def update(params, state, x, target):" in text and "compute_target" not in text


def test_an_average_of_what_is_trained_is_in_the_state_though_no_loss_reads_it(ported, tmp_path):
    loop = LOOP + "\n    slow.assign(0.9 * slow + 0.1 * w)\n    print('slow', slow.numpy().tolist())"
    begin = BEGIN.replace("rng =", "slow = tf.Variable([0.5, -0.5])\nrng =")
    status, printed, text = ported(begin.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "4 of 4 steps" in printed, printed
    assert "after the last step, 2 entries; largest difference" in printed
    after = "import runpy, sys; m = runpy.run_path(sys.argv[1]); params, state = m['init']()\n"
    after += "for i in range(4):\n    params, state, _ = m['update'](params, state, **m['batch'](i))\n"
    after += "print(state['slow'].tolist())"
    done = subprocess.run([sys.executable, "-c", after, str(tmp_path / "out.py")], capture_output=True, text=True)
    expected = [line for line in printed.splitlines() if line.startswith("slow")][3]
    np.testing.assert_allclose(json.loads(done.stdout), json.loads(expected.removeprefix("slow")), rtol=1e-5)


def test_a_model_that_is_called_twice_in_a_tape_hands_its_averages_on(ported):
    status, printed, text = ported(
        """
        import numpy as np
        import tensorflow as tf

        rng = np.random.default_rng(0)
        layers = [tf.keras.Input((2,)), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
        net, optimizer = tf.keras.Sequential(layers), tf.keras.optimizers.SGD(0.1)
        for i in range(6):
            real, fake = (tf.constant(rng.normal(size=(4, 2)), tf.float32) for _ in range(2))
            with tf.GradientTape() as tape:
                of_real, of_fake = net(real, training=True), net(fake, training=True)
                loss = tf.reduce_mean(tf.square(of_real - 1.0)) + tf.reduce_mean(tf.square(of_fake))
            optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        """
    )
    assert status == 0 and "5 of 5 steps" in printed, printed
    assert re.search(r"(\w+), \w+ = net\(params, state\S*, real\)\n +\w+, \w+ = net\(params, \1\S*, fake\)", text), text


def test_a_model_is_one_function_whatever_it_is_called_with(ported):
    """A batch, and a tensor that is itself changed by gradients: of the last change that `stop_gradient` makes no other step."""
    status, printed, text = ported(
        """
        import numpy as np
        import tensorflow as tf

        rng = np.random.default_rng(0)
        layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(4), tf.keras.layers.BatchNormalization()]
        model, optimizer = tf.keras.Sequential(layers), tf.keras.optimizers.SGD(0.1)

        def attack(x):
            x_adv = x + 0.01
            for _ in range(2):
                with tf.GradientTape() as tape:
                    tape.watch(x_adv)
                    loss = tf.reduce_sum(model(x_adv, training=False) ** 2)
                x_adv = x_adv + 0.1 * tf.tanh(tape.gradient(loss, x_adv))
            return tf.stop_gradient(x_adv)

        for i in range(4):
            x = tf.constant(rng.normal(size=(8, 3)), tf.float32)
            x_adv = attack(x)
            with tf.GradientTape() as tape:
                difference = model(x, training=True) - model(x_adv, training=True)
                loss = tf.reduce_mean(difference**2)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        """
    )
    assert status == 0 and "2 kind(s) of step" in printed, printed
    assert text.count("def model") == 2 and text.count("def batch_normalization") == 2, "in training, and not"
    assert re.search(r"model_2\(params\[\"model\"\], \w+\S*, params\[\"x_adv\"\]\)", text), text


def test_what_keras_trains_before_the_first_tape_is_no_step(ported):
    """Nor where it runs by our own tape, operation by operation."""
    status, printed, text = ported(
        """
        import numpy as np
        import tensorflow as tf

        x = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
        net, optimizer = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)]), tf.keras.optimizers.SGD(0.1)
        net.compile("sgd", "mse", run_eagerly=True)
        net.fit(x, x[:, :1], batch_size=4, verbose=0)
        for i in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((net(x, training=True) - x[:, 1:2]) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
            net.evaluate(x, x[:, :1], verbose=0)
        """
    )
    assert status == 0 and "1 kind(s) of step" in printed and "3 of 3 steps" in printed, printed
    assert "    params, opt_state, loss = update(params, opt_state)\n" in text and "net.fit" not in text, text


def test_variables_in_objects_are_a_tree_by_their_names(ported):
    text = """
        import numpy as np
        import tensorflow as tf

        class Cell(tf.Module):
            def __init__(self):
                self.w, self.b = tf.Variable([[0.5, -0.5], [0.2, 0.1]]), tf.Variable([0.1, 0.3])

            def __call__(self, x):
                return tf.tanh(x @ self.w + self.b)

        class Net(tf.Module):
            def __init__(self):
                self.first, self.second, self.scale = Cell(), Cell(), tf.Variable(1.0)

            def __call__(self, x):
                return self.scale * self.second(self.first(x))

        net, rng = Net(), np.random.default_rng(0)
        for step in range(6):
            x = tf.constant(rng.normal(size=(4, 2)), tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((net(x) - 1.0) ** 2)
            for v, g in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables)):
                v.assign_sub(0.1 * g)
        """
    status, printed, text = ported(text, compare=True)
    assert status == 0 and "5 of 5 steps" in printed, printed
    assert 'params["scale"] * cell(params["second"], cell(params["first"], x))' in text, text


def test_variables_in_a_list_beside_the_trained_ones_are_a_tree_like_theirs(ported):
    text = """
        import numpy as np
        import tensorflow as tf

        w, b = tf.Variable([[1.0], [-1.0]], name="w"), tf.Variable([0.5], name="b")
        averages = [tf.Variable(tf.zeros_like(v), trainable=False) for v in (w, b)]
        rng = np.random.default_rng(0)
        for step in range(6):
            x = tf.constant(rng.normal(size=(4, 2)), tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w + b) ** 2)
            gradients = tape.gradient(loss, [w, b])
            for average, gradient in zip(averages, gradients):
                average.assign(0.9 * average + gradient)
            for variable, average in zip((w, b), averages):
                variable.assign_sub(0.1 * average)
        """
    status, printed, text = ported(text, compare=True)
    assert status == 0 and "5 of 5 steps" in printed, printed
    assert 'state["averages"]' in text and "lambda a, g: 0.9 * a + g" in text


def test_a_size_that_was_made_of_values_is_the_program_s_and_said(ported):
    block = "loss = tf.reduce_sum(tf.math.segment_mean((w - x) ** 2, tf.constant([0, 1], tf.int32) + n))"
    loop = "for i in range(5):\n    step(tf.constant(rng.normal(size=2), tf.float32), tf.zeros([2], tf.int32))"
    text = BEGIN.replace("rate=0.1", "n").replace("rate *", "0.1 *")
    status, printed, text = ported(text.format(block=block, loop=loop), compare=True)
    assert status == 0 and "4 of 4 steps" in printed, printed
    assert "jax.ops.segment_sum(" in text
    assert "# The argument 'n': a shape, an index or an axis was made of the value of n (program.py:11" in text


def test_batches_of_two_sizes_are_two_functions_with_the_same_arguments(ported):
    loop = "sizes = [4, 4, 4, 4, 3, 4, 4]\nfor n in sizes:\n    step(tf.constant(rng.normal(size=(n, 2)), tf.float32))"
    status, printed, text = ported(BEGIN.format(block=PLAIN, loop=loop), compare=True)
    assert status == 0 and "2 kind(s)" in printed
    assert "def update(params, x):" in text and "def update_1(params, x):" in text


def test_tensors_that_the_program_carries_are_parameters_that_main_sets_where_it_begins_anew(ported):
    text = """
        import tensorflow as tf

        for start in ([3.0, 1.0], [-2.0, 0.5]):
            x = tf.constant(start)
            for i in range(4):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum((x - 1.0) ** 2)
                x = x - 0.1 * tape.gradient(y, x)
        """
    status, printed, out = ported(text, compare=True)
    assert status == 0 and "5 of 5 steps" in printed and "def update(params):" in out
    assert "Between steps, as main() does, put what the program begins anew with into params['x']" in out
    status, printed, out = ported(text.replace(", [-2.0, 0.5]", ","), compare=True)
    assert status == 0 and "def update(params):" in out and "Between steps" not in out


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
    assert status == 0 and "4 of 4 steps" in printed and "grads = jax" in text and "grads_1" not in text


def test_the_comparison_finds_a_wrong_number(ported, monkeypatch):
    written = module.PortedModule.written
    wrong = lambda self: (written(self)[0].replace(" ** 2", " ** 4"), written(self)[1])  # noqa: E731
    monkeypatch.setattr(module.PortedModule, "written", wrong)
    status, printed, text = ported(BEGIN.format(block=PLAIN, loop=LOOP), compare=True)
    assert status == 1 and "beyond the tolerance from step 0 on: this is no rounding" in printed


def test_a_schedule_of_the_user_s_own_is_printed_as_a_function(ported):
    status, printed, text = ported("""
        import tensorflow as tf

        class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
            def __call__(self, step):
                step = tf.cast(step, tf.float32) + 1.0
                return 0.1 * tf.minimum(step / 10.0, 1.0)

        w = tf.Variable([1.0, 2.0])
        optimizer = tf.keras.optimizers.Adam(WarmUp())
        x = tf.ones([4, 2])
        for _ in range(12):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, w) - 1.0))
            optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        """)
    assert status == 0, printed
    assert (
        "def learning_rate(count):\n    step = count" in text
        and "\noptimizer = as_keras(optax.adam, learning_rate, b1=" in text
    )


def test_what_the_program_does_besides_is_no_part_of_it(ported):
    """A tape in a function that is called after training, too; and what is printed at each step."""
    status, printed, text = ported(
        """
        import numpy as np
        import tensorflow as tf

        rng = np.random.default_rng(0)
        w = tf.Variable([[1.0], [2.0]])

        def net(x):
            return tf.tanh(tf.matmul(x, w))

        def slope(x):
            with tf.GradientTape() as inner:
                inner.watch(x)
                u = net(x)
            return inner.gradient(u, x) + u

        for step in range(5):
            x = tf.constant(rng.normal(size=(4, 2)), tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(slope(x)))
            w.assign_sub(0.1 * tape.gradient(loss, w))
            tf.print("step", step, "loss", loss)
        print("after", net(tf.ones([1, 2])).numpy())
        print("slope", slope(tf.ones([1, 2])).numpy())
        """,
        compare=True,
    )
    assert status == 0 and "pullback" not in text and "jax.grad(" in text
    assert "# In place of the lines 19, 21: params, loss = update(params, x)" in text
    assert "slope(tf" not in text and "def slope(" in text


def test_lines_of_another_file_are_called_by_its_name(ported, tmp_path):
    step, loop = BEGIN.format(block=PLAIN, loop="").rstrip(), LOOP.replace("step(", "ported_step.step(")
    (tmp_path / "ported_step.py").write_text(step)
    begin = "import numpy as np, ported_step, tensorflow as tf\nrng = np.random.default_rng(0)\n"
    status, printed, text = ported(begin + loop)
    assert status == 0, printed
    assert "# In place of the lines ported_step.py:10, ported_step.py:12: params, loss = update(params, x)" in text
    assert "#   ported_step.py:10: with tf.GradientTape() as tape:" in text and "The step at ported_step.py:10" in text


def test_a_gradient_of_the_user_s_own_is_a_custom_vjp(ported):
    rule = "@tf.custom_gradient\ndef halved(x):\n    return x, lambda dy: dy / 2\n\n\n"
    status, printed, text = ported(
        BEGIN.format(block="loss = halved(tf.reduce_sum((w - x) ** 2))", loop=rule + LOOP), compare=True
    )
    assert status == 0 and "4 of 4 steps" in printed and "halved.defvjp(halved_fwd, halved_bwd)" in text


def test_it_ends_the_program_after_so_many_steps(ported):
    status, printed, _ = ported(
        BEGIN.format(block=PLAIN, loop=LOOP + "\n    print('step', i)"), "--steps", "3", compare=True
    )
    assert "step 1" in printed and "step 3\n" not in printed and "2 of 2 steps" in printed


def test_arguments_reach_the_program(ported):
    loop = "import sys\nprint(sys.argv[1:])\n" + LOOP
    _, printed, _ = ported(BEGIN.format(block=PLAIN, loop=loop), "--", "--rate", "3")
    assert "['--rate', '3']" in printed
