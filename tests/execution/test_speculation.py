"""execution/speculation.py: a block that came back runs ahead of its operations, and nobody can tell."""

import gc
import random
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import rewriting, speculation, trial
from tapejax.execution.shadow import ShadowError
from tapejax.tape import rules

pytestmark = pytest.mark.skipif(
    bool(jax.config.jax_debug_nans or jax.config.jax_disable_jit), reason="no operation runs before it arrives"
)


class Held:
    """How often a plan held, and how many operations were given what was computed ahead."""

    def __init__(self):
        self.answers = self.steps = 0


@pytest.fixture
def held(monkeypatch):
    """Each block that came twice runs ahead. What is yielded counts."""
    counted = Held()
    answer, step = speculation.FollowedBlock.answer, speculation.FollowedBlock.step

    def counting_answer(self, query):
        found = answer(self, query)
        counted.answers += found is not None
        return found

    def counting_step(self, op, inputs):
        found = step(self, op, inputs)
        counted.steps += found is not None
        return found

    monkeypatch.setattr(speculation.FollowedBlock, "answer", counting_answer)
    monkeypatch.setattr(speculation.FollowedBlock, "step", counting_step)
    monkeypatch.setattr(speculation, "early", True)
    forget()
    yield counted
    forget()


def forget():
    speculation._plans.clear()
    speculation._sightings.clear()
    speculation.begun = False


def only_plans():
    (beginning,) = (found for _, found in speculation._plans.items())
    return beginning.plans


def without(fn, /, *args):
    """``fn(*args)`` with no operation run before it arrives."""
    early, begun = speculation.early, speculation.begun
    speculation.early, speculation.begun = None, False
    try:
        return fn(*args)
    finally:
        speculation.early, speculation.begun = early, begun


def require_same(found, expected, context=None):
    assert jax.tree.structure(found) == jax.tree.structure(expected), context
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype and np.isfinite(x).all() == np.isfinite(y).all(), context
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5 * float(np.abs(y).max(initial=0)), err_msg=str(context))


# ---- steps, each in a loop ---------------------------------------------------------------------------------------------


def plain(i, w, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w + b))
    return loss, tape.gradient(loss, [w, b])


def new_data(i, w, b):
    x, y = tf.constant([1.0 + i, 2.0]), tf.constant([3.0, 1.0 * i])
    with tf.GradientTape() as tape:
        h = tf.tanh(x * w + b)
        loss = tf.reduce_sum(tf.square(tf.exp(h) - y))
    return loss, tape.gradient(loss, [w, b])


def number_changes(i, w, b):
    rate = 0.1 * (i // 4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(w * b)) * rate + tf.cos(w))
    return loss, tape.gradient(loss, [w, b])


def number_of_another_type(i, w, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(w * (2.0 if i % 4 else 2)) * w + (-0.0 if i % 3 else 0.0) + b)
    return loss, tape.gradient(loss, [w, b])


def assigned_inside(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0)
        w.assign_add([0.1, 0.1])
        loss = tf.reduce_sum(tf.square(h * w + b))
    return loss, tape.gradient(loss, [w, b])


def assigned_inside_at_times(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.cos(tf.sin(w * 2.0) + b)
        if i % 5 == 4:
            w.assign_add([0.1, 0.1])
        loss = tf.reduce_sum(tf.square(h * w + b))
    return loss, tape.gradient(loss, [w, b])


def updated(i, w, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w + b))
    gradients = tape.gradient(loss, [w, b])
    w.assign_sub(0.1 * gradients[0])
    b.assign_sub(0.1 * gradients[1])
    return loss, gradients


def branches(i, w, b):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = tf.sin(x * w) + 1.0
        h = h * h
        if i % 3 == 2:
            h = tf.exp(h)
        loss = tf.reduce_sum(tf.tanh(h) + b)
    return loss, tape.gradient(loss, [w, b])


def branch_on_a_value(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0) * w + b
        loss = tf.reduce_sum(tf.square(h) if float(h[0]) > 0.5 else tf.exp(h))
    gradients = tape.gradient(loss, [w, b])
    w.assign([0.5 + 0.25 * (i % 4), -0.5])
    return loss, gradients


def sources_change(i, w, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w + b))
    return loss, tape.gradient(loss, [w] if i % 5 == 4 else [b, w])


def target_changes(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0) * w + b
        loss = tf.reduce_sum(tf.square(h))
    return loss, tape.gradient(h if i % 6 == 5 else loss, [b, w])


def cotangents(i, w, b):
    with tf.GradientTape() as tape:
        loss = tf.square(tf.sin(w * 2.0) * w + b)
    return loss, tape.gradient(loss, [b, w], output_gradients=[1.0 * i, 2.0] if i % 5 > 2 else None)


def persistent(i, w, b):
    with tf.GradientTape(persistent=True) as tape:
        h = tf.sin(w * 2.0) * w + b
        loss = tf.reduce_sum(tf.square(h))
    return loss, tape.gradient(loss, [b, w]), tape.gradient(loss, [b, w]), tape.gradient(h, [w, b])


def gradient_in_the_block(i, w, b):
    with tf.GradientTape(persistent=True) as tape:
        h = tf.sin(w * 2.0) * w + b
        g = tape.gradient(tf.reduce_sum(tf.square(h)), w)
        loss = tf.reduce_sum(g * g)
    return loss, tape.gradient(loss, [w, b])


def nested(i, w, b):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w + b) * w)
        g = tape.gradient(loss, w)
        second = tf.reduce_sum(g * g)
    return loss, g, outer.gradient(second, w)


def jacobian(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0) * w * tf.reduce_sum(w) + b
    return h, tape.jacobian(h, [w, b]) if i % 3 == 2 else tape.gradient(h, [w, b])


def stopped(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0)
        with tape.stop_recording():
            k = h * w
        loss = tf.reduce_sum(tf.square(h * k + b))
    return loss, tape.gradient(loss, [b, w])


def reset(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0) * w + b
        if i % 4 == 3:
            tape.reset()
        loss = tf.reduce_sum(tf.square(h * w))
    return loss, tape.gradient(loss, [b, w])


def watched_late(i, w, b):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = tf.sin(x * w) * x
        tape.watch(x if i % 4 == 3 else h)
        loss = tf.reduce_sum(tf.square(h * x + b))
    return loss, tape.gradient(loss, [x, h, w])


def watched_in_another_place(i, w, b):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        if i % 4:
            tape.watch(x)
        h = tf.sin(x * 2.0) * x
        tape.watch(x)
        loss = tf.reduce_sum(tf.square(h * x + 1.0))
    return loss, tape.gradient(loss, [x, h])


def same_as_its_input(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.stop_gradient(w) * w
        k = tf.reshape(h, [2])
        m = tf.identity(k)
        loss = tf.reduce_sum(tf.square(m) + k * h + b)
    return loss, tape.gradient(loss, [k, h, m, w])


def several_outputs(i, w, b):
    with tf.GradientTape() as tape:
        one, other = tf.split(tf.sin(w * 2.0) * w, 2)
        values, where = tf.math.top_k(w * b, 2)
        loss = tf.reduce_sum(one * other + values) + tf.reduce_sum(tf.cast(where, "float32"))
    return loss, tape.gradient(loss, [w, b])


def one_value_for_two(i, w, b):
    x = tf.constant([1.0, 2.0])
    y = x if i % 4 == 3 else tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.sin(x * y) * x + y)
    return loss, tape.gradient(loss, [x])


def x64_at_times(i, w, b):
    with jax.enable_x64(i % 3 == 2):
        return plain(i, w, b)


def precision_at_times(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.reshape(tf.sin(w * 2.0) * w, [2, 1])
        with jax.default_matmul_precision("highest" if i % 3 == 2 else "default"):
            loss = tf.reduce_sum(tf.matmul(h, h, transpose_b=True)) + tf.reduce_sum(b)
    return loss, tape.gradient(loss, [w, b])


def draws(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0) * w + tf.random.normal([2])
        h = tf.nn.dropout(tf.exp(h), 0.5)
        loss = tf.reduce_sum(tf.square(h + b))
    return loss, tape.gradient(loss, [w, b])


def under_transformations(i, w, b):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sum(jnp.sin(x * 2.0) * x + x)
        return tape.gradient(y, x)

    x = jnp.ones(3) * i
    return f(x), jax.jit(f)(x), jax.vmap(f)(jnp.stack([x, x]))


def unconnected(i, w, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w))
    return loss, tape.gradient(loss, [w, b], unconnected_gradients="zero" if i % 2 else "none")


def plain_jax(i, w, b):
    with tf.GradientTape() as tape:
        h = jnp.where(jnp.cos(w * 2.0) > 0, w, 0.5) ** 2 + np.float32(3.0)
        loss = jnp.sum(jax.nn.relu(h * b) + jax.nn.softmax(h))
    return loss, tape.gradient(loss, [w, b])


def other_shapes(i, w, b):
    x = tf.constant(np.ones((2 + i % 2, 2), "float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(x * w) * w + b))
    return loss, tape.gradient(loss, [w, b])


def custom_rule(i, w, b):
    @tf.custom_gradient
    def doubled(x):
        return x * 2.0, lambda dy: dy * 3.0

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(doubled(tf.sin(w * 2.0)) * w + b))
    return loss, tape.gradient(loss, [w, b])


def another_tape_watches(i, w, b):
    with tf.GradientTape() as tape:
        h = tf.sin(w * 2.0) * w
        if i % 3 == 2:
            with tf.GradientTape() as inner:
                k = tf.square(h) * w + b
            return k, inner.gradient(k, [h, w, b])
        loss = tf.reduce_sum(tf.square(h) * w + b)
    return loss, tape.gradient(loss, [w, b])


STEPS = [
    x
    for x in list(globals().values())
    if getattr(x, "__code__", None) and x.__code__.co_varnames[:3] == ("i", "w", "b")
]
# Those in which no plan ever holds: nothing is known before it arrives, or something runs Python.
NEVER = {nested, gradient_in_the_block, assigned_inside, custom_rule}


def trained(step, times=24):
    tf.random.set_seed(0)
    w, b = tf.Variable([1.5, -0.5]), tf.Variable([0.1, 0.2])
    return [step(i, w, b) for i in range(times)]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_it_gives_what_it_gives_without_a_plan(held, step):
    require_same(trained(step), without(trained, step))
    if step not in NEVER:
        assert held.steps > 0


@pytest.mark.parametrize("step", [plain, updated, new_data, plain_jax, unconnected])
def test_it_holds_in_each_step_once_there_is_a_plan(held, step, no_shadow):
    trained(step)
    assert held.answers == 22


@pytest.mark.parametrize("step", [plain, updated, new_data, several_outputs, draws, plain_jax])
def test_it_is_to_the_last_bit_what_compiled_operations_give(held, step, monkeypatch, no_shadow):
    monkeypatch.setattr(trial, "enabled", False)
    without(trained, step)  # of which the first steps compile pullbacks one by one
    found, expected = (jax.tree.leaves(x[2:]) for x in (trained(step), without(trained, step)))
    assert held.answers
    for x, y in zip(found, expected, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


# ---- random programs ---------------------------------------------------------------------------------------------------

UNARY = [
    tf.sin,
    tf.tanh,
    tf.exp,
    tf.square,
    tf.sigmoid,
    tf.stop_gradient,
    tf.identity,
    tf.nn.relu,
    jnp.cos,
    tf.nn.softplus,
]
BINARY = [
    lambda x, y: x * y,
    lambda x, y: x + y,
    lambda x, y: x - y,
    tf.maximum,
    tf.minimum,
    lambda x, y: x / (2 + y * y),
]


def random_program(draw):
    """Lines, each an operation and the numbers of its operands; those below 5 are variables, data and a constant."""
    lines = []
    for k in range(draw.randint(5, 14)):
        operand = lambda k=k: draw.choice([draw.randrange(5), draw.randrange(5 + k)])  # noqa: E731
        lines.append(
            (draw.choice(BINARY), operand(), operand()) if draw.random() < 0.6 else (draw.choice(UNARY), operand())
        )
    return lines


def changed(lines, draw):
    """The program with one line, or its end, otherwise."""
    lines = list(lines)
    k = draw.randrange(len(lines))
    operation, *operands = lines[k]
    kind = draw.randrange(4)
    if kind == 0:
        lines[k] = (draw.choice(BINARY if len(operands) == 2 else UNARY), *operands)
    elif kind == 1:
        lines[k] = operation, *[draw.randrange(5 + k) for _ in operands]
    elif kind == 2:
        del lines[max(k, 3) :]
    else:
        lines.append((draw.choice(UNARY), draw.randrange(5 + len(lines))))
    return lines


def run(lines, variables, data, way, draw):
    u, v, w = variables
    with tf.GradientTape(persistent=way == "twice") as tape:
        if way == "watch":
            tape.watch(data)
        values = [u, v, w, data, 0.5 if way != "number" else 0.25]
        for k, (operation, *operands) in enumerate(lines):
            if way == "assign" and k == len(lines) // 2:
                u.assign(v * 0.9)
            if way == "late" and k == len(lines) // 2:
                tape.watch(values[-1])
            values.append(
                operation(*[tf.convert_to_tensor(values[i]) if len(operands) == 1 else values[i] for i in operands])
            )
            values[-1] = tf.clip_by_value(tf.convert_to_tensor(values[-1]), -3.0, 3.0)
        loss = tf.reduce_sum(values[-1] * values[-2])
    sources = [*variables, data, values[5]][:: -1 if way == "backwards" else 1]
    found = [tape.gradient(loss, sources)]
    if way == "twice":
        found.append(tape.gradient(values[-1], sources))
    for variable, gradient in zip(sources, found[0], strict=True):
        if gradient is not None and isinstance(variable, tf.Variable):
            variable.assign_sub(0.05 * tf.clip_by_value(gradient, -1.0, 1.0))
    return loss, values[5:], found


def random_steps(seed, times=26):
    draw = random.Random(seed)
    usual, other = random_program(draw), None
    variables = [tf.Variable(np.float32([draw.uniform(-1, 1) for _ in range(3)])) for _ in range(3)]
    fixed = tf.constant([0.3, -0.2, 0.9])
    ways = ["watch", "number", "assign", "late", "backwards", "twice"]
    found = []
    for _ in range(times):
        if other is None or draw.random() < 0.3:
            other = changed(usual, draw)
        lines = other if draw.random() < 0.25 else usual
        data = fixed if draw.random() < 0.6 else tf.constant([draw.uniform(-1, 1) for _ in range(3)])
        way = draw.choice(ways) if draw.random() < 0.15 else "plain"
        found.append(run(lines, variables, data, way, draw))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_that_change_at_random(held, seed):
    found, expected = random_steps(seed), without(random_steps, seed)
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        require_same(x, y, f"step {i} of seed {seed}")
    assert held.steps > 20


# ---- what could go wrong -----------------------------------------------------------------------------------------------


def variables():
    return tf.Variable([1.5, -0.5]), tf.Variable([0.1, 0.2])


def test_what_is_given_is_an_array_with_an_identity_of_its_own(held, no_shadow):
    w, b = variables()
    for _ in range(5):
        with tf.GradientTape() as tape:
            h = tf.stop_gradient(w.value())
            k = tf.reshape(h, [2])
            m = tf.identity(k * 1.0)
            loss = tf.reduce_sum(m * w + b)
        arrays = [x for entry in tape._recording.entries for x in entry.outputs]
        assert len({*map(id, arrays)}) == len(arrays) and all(type(x) is type(jnp.ones(1)) for x in arrays)
        assert w._array not in [x for x in arrays if x is w._array]
        tape.gradient(loss, [w, b])
    assert held.answers


def test_a_donated_variable_is_told_of_where_it_is_read(held, no_shadow):
    donate = jax.jit(lambda x: x + 1, donate_argnums=0)
    w, b = variables()
    for i in range(4):
        plain(i, w, b)
    assert held.answers == 2
    donate(b._array)
    with tf.GradientTape():
        h = tf.sin(w * 2.0) * w
        np.testing.assert_allclose(h, np.sin([3.0, -1.0]) * [1.5, -0.5], rtol=1e-5)
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            h + b


@pytest.mark.parametrize("multiply", [tf.multiply, jnp.multiply])
@pytest.mark.parametrize("what", ["source", "result"])
def test_what_is_donated_after_its_segment_began_is_told_of(held, no_shadow, what, multiply):
    donate = jax.jit(lambda x: x + 1, donate_argnums=0)
    w, b = jnp.array([1.5, -0.5]), jnp.array([0.1, 0.2])
    for i in range(5):
        with tf.GradientTape() as tape:
            tape.watch([w, b])
            h = jnp.sin(w * 2.0)
            if i == 4:
                assert held.steps == 12
                donate(b if what == "source" else h)
                with pytest.raises((RuntimeError, ValueError), match="deleted"):
                    multiply(h, b)
                return
            loss = tf.reduce_sum(tf.square(multiply(h, b)))
        tape.gradient(loss, [w, b])


def test_a_mode_that_is_switched_on_after_its_segment_began(held, no_shadow):
    w, b = variables()
    for i in range(5):
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0) - 2.0
            if i == 4:
                with jax.debug_nans(True), pytest.raises(FloatingPointError):
                    tf.math.log(h)
                return
            loss = tf.reduce_sum(tf.math.log(h) * b)
        tape.gradient(loss, [w, b])
    assert held.steps


def test_after_an_interrupt_nothing_is_given_that_was_ahead(held, no_shadow, monkeypatch):
    w, b = variables()

    def step():
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0)
            try:
                k = h * w
            except KeyboardInterrupt:
                assert tape._recording.speculation is False
                k = h * w
            loss = tf.reduce_sum(tf.square(k + b))
        return loss, tape.gradient(loss, [w, b])

    expected = without(step)
    for _ in range(4):
        require_same(step(), expected)
    assert held.answers == 2
    follow, came = speculation.FollowedBlock.step, []

    def interrupted(self, op, inputs):
        found = follow(self, op, inputs)
        came.append(op)
        if len(came) == 3:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(speculation.FollowedBlock, "step", interrupted)
    require_same(step(), expected)
    assert held.answers == 2


def test_a_recorded_value_that_was_donated_is_told_of(held, no_shadow):
    donate = jax.jit(lambda x: x + 1, donate_argnums=0)
    w, b = variables()
    for i in range(5):
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0) * w + b
            loss = tf.reduce_sum(tf.square(h))
        if i < 4:
            tape.gradient(loss, [w, b])
    assert held.answers == 2
    donate(h._array)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        tape.gradient(loss, [w, b])


def test_a_gradient_that_is_registered_after_the_plan(held, monkeypatch, no_shadow):
    monkeypatch.setattr(rules, "_rules", {})
    w, b = variables()
    for i in range(4):
        plain(i, w, b)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w + b))
        rules.register("sin", lambda ins, outs, cts: [cts[0] * 10.0])
    x, y = np.array(w), np.array(b)
    outer = 2 * (np.sin(2 * x) * x + y)
    try:
        expected = outer * (20.0 * x + np.sin(2 * x))
        np.testing.assert_allclose(tape.gradient(loss, w), expected, rtol=1e-5)
        for i in range(4):
            np.testing.assert_allclose(plain(i, w, b)[1][0], expected, rtol=1e-5)
    finally:
        for kept, _ in rules.caches:
            kept.clear()


def test_debug_nans_finds_them_where_they_arise(held):
    w, b = variables()

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.math.log(w * x) * w + b)
        return tape.gradient(loss, [w, b])

    for _ in range(4):
        step(1.0)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        step(1.0)


def test_a_plan_keeps_no_variable_and_no_array(held, no_shadow):
    w, b = variables()
    for i in range(4):
        plain(i, w, b)
    assert held.answers == 2
    gone = weakref.ref(w), weakref.ref(w._array), weakref.ref(b)
    del w, b
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
    require_same(plain(0, *variables()), without(plain, 0, *variables()))


def test_what_an_operation_without_a_key_holds_is_let_go(held, no_shadow):
    """It never comes again, so that nothing is noted of its program: what its rule closes over was kept with that."""
    x = jnp.arange(1.0, 4.0)

    def once():
        w = jnp.arange(3.0)

        @jax.custom_vjp
        def product(a, b):
            return a * b

        product.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (w * ct * kept[1], w * ct * kept[0]))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax.lax.cond(x[0] > 0, lambda x: product(x, x), lambda x: -product(x, x), x)
        np.testing.assert_array_equal(tape.gradient(y, x), 2 * w * x)
        return weakref.ref(w)

    kept = [once() for _ in range(4)]
    gc.collect()
    assert sum(w() is not None for w in kept) <= 1  # JAX itself may keep the last


def test_two_models_in_one_line(held, no_shadow):
    one, other = variables(), (tf.Variable([0.3, 0.4]), tf.Variable([1.0, 2.0]))
    for i in range(24):
        for model in (one, other):
            require_same(plain(i, *model), without(plain, i, *model))
    assert held.answers >= 28


def test_a_plan_that_keeps_failing_is_dropped(held, no_shadow):
    w, b = variables()
    for i in range(3):
        plain(i, w, b)
    assert held.answers == 1 and len(speculation._plans) == 1
    for _ in range(8):
        with tf.GradientTape() as tape:
            tf.sin(w * 2.0) * w
        del tape
    # the tape's line is another
    assert [len(beginning.plans) for _, beginning in speculation._plans.items()] == [1]

    def step(fails):
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0) * w
            loss = tf.reduce_sum(h - b if fails else h + b)
        tape.gradient(loss, [w, b])

    speculation._plans.clear()
    for _ in range(4):
        step(False)
    (beginning,) = (found for _, found in speculation._plans.items())
    launched = []
    launch = speculation.FollowedBlock.launch
    speculation.FollowedBlock.launch = lambda self, chunk: launched.append(chunk) or launch(self, chunk)
    try:
        speculation.early = None
        for _ in range(10):
            step(True)
    finally:
        speculation.FollowedBlock.launch, speculation.early = launch, True
    assert len(launched) == speculation.MOST_FAILURES + 1 and beginning.plans == []


def test_threads_follow_one_plan_each_with_values_of_its_own(held, no_shadow):
    results, failed = {}, []

    def work(k):
        try:
            w, b = tf.Variable([1.0 + k, 0.5]), tf.Variable([0.1 * k, 0.2])
            results[k] = [new_data(i % 3, w, b) for i in range(12)]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    found = dict(results)
    for k in range(4):
        without(work, k)
        require_same(found[k], results[k])


def test_placed_arrays_are_left_alone(held, no_shadow):
    w, b = variables()
    here = jax.devices()[0]
    for _ in range(6):
        x = jax.device_put(jnp.array([1.0, 2.0]), here)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.sin(x * w) * w + b))
        (g,) = tape.gradient(loss, [w])
        assert loss._array.committed and g._array.committed
    assert held.steps == 0


def test_what_prints_prints_each_time(held, capsys):
    w, b = variables()
    for i in range(6):
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0) * w
            tf.print("step", i)
            loss = tf.reduce_sum(tf.square(h + b))
        tape.gradient(loss, [w, b])
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("step") == 6


class OfALibrary:
    """A variable of another library's, which tapes watch from the start while it is trainable."""

    def __init__(self, array):
        self.value, self.trainable = array, True

    def __jax_array__(self):
        return self.value


def test_variables_of_a_library(held):
    def train():
        variables = [OfALibrary(jnp.array(x)) for x in ([1.5, -0.5], [0.1, 0.2])]
        found = []
        for i in range(12):
            variables[i % 2].trainable = i < 6 or i > 9  # the tape watches as many, but another one, in the next step
            with tf.GradientTape() as tape:
                w, b = [x.value for x in variables]
                loss = jnp.sum(jnp.square(jnp.sin(w * 2.0) * w + b))
            found.append((loss, tape.gradient(loss, variables)))
            for x, gradient in zip(variables, found[-1][1], strict=True):
                x.value = x.value - 0.1 * (0.0 if gradient is None else gradient.numpy())
        return found

    assert any(gradients.count(None) for _, gradients in train())
    require_same(train(), without(train))
    assert held.answers


def test_what_must_not_run_before_it_arrives(held, no_shadow):
    def halved(x):
        return jax.lax.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, x)  # without an end for an infinite x

    seen = []
    count = lambda x: jax.pure_callback(lambda x: seen.append(x) or x, x, x)  # noqa: E731
    for f, times in ((halved, 0), (count, 4)):
        for i in range(6):
            x = jnp.float32(np.inf if i > 3 else 2.0 + i)
            with tf.GradientTape() as tape:
                w = tf.Variable(1.5)
                y = jnp.cos(jnp.sin(w * 2.0) * x)
                if np.isfinite(x):
                    y = y + jax.lax.stop_gradient(jax.jit(f)(x))
                loss = jnp.square(y) * w
            tape.gradient(loss, w)
        jax.effects_barrier()
        assert len(seen) == times


def test_an_exception_in_the_block_leaves_it_as_it_was(held, no_shadow):
    w, b = variables()
    for i in range(4):
        plain(i, w, b)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), tf.GradientTape():
            tf.sin(w * 2.0)
            1 / 0  # noqa: B018
    require_same(plain(0, w, b), without(plain, 0, w, b))


def test_a_loop_that_was_unrolled_runs_in_equal_segments(held, no_shadow):
    w, b = variables()

    def step():
        h = tf.constant([0.5, 0.25])
        with tf.GradientTape() as tape:
            for _ in range(150):
                h = tf.tanh(h * w + b)
            loss = tf.reduce_sum(h)
        return loss, tape.gradient(loss, [w, b])

    expected = without(step)
    speculation._compiled.clear()
    for _ in range(4):
        require_same(step(), expected)
    (plan,) = only_plans()
    assert held.answers == 2 and len(plan.segments) == 4
    assert len({id(segment.run) for segment in plan.segments.values()}) <= 3


def test_a_result_that_is_a_number(held):
    @jax.custom_vjp
    def same(n):
        return n

    same.defvjp(lambda n: (n, None), lambda _, g: (g,))
    x = jnp.arange(3.0)
    for _ in range(4):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sin(x ** same(2)) * same(1.5)
        np.testing.assert_allclose(tape.gradient(y, x), 3.0 * x * np.cos(x**2), rtol=1e-5)


def test_a_convolution_that_xla_is_slow_at_is_replaced_in_a_plan_too(held, no_shadow, monkeypatch):
    compiled, compile_ = [], speculation._compile

    def keeping(steps, backward, given, *others):
        run = compile_(steps, backward, given, *others)
        compiled.append(run.trace(*given).jaxpr)
        return run

    monkeypatch.setattr(speculation, "_compile", keeping)
    x, kernel = tf.ones([1, 4, 4, 2]), tf.Variable(tf.ones([3, 3, 2, 1]))
    for _ in range(4):
        with tf.GradientTape() as tape:
            h = tf.nn.depthwise_conv2d(x, kernel * 2.0, [1, 1, 1, 1], "SAME")
            loss = tf.reduce_sum(tf.square(h + 1.0))
        gradient = tape.gradient(loss, kernel)
    assert held.answers and compiled
    assert all(rewriting.rewritten(program, divisions=False) is program for program in compiled)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.depthwise_conv2d(x, kernel * 2.0, [1, 1, 1, 1], "SAME") + 1.0))
    np.testing.assert_allclose(gradient, tape.gradient(loss, kernel), rtol=1e-6)


def test_shadow_mode_finds_a_plan_with_another_program(held, no_shadow):
    w, b = tf.Variable([1.5, -0.5]), tf.Variable([0.1, 0.2])
    for i in range(4):
        plain(i, w, b)
    (plan,) = only_plans()
    with tf.debugging.shadow_mode():
        plain(4, w, b)
        plan.numbers = plan.numbers[::-1]
        with pytest.raises(ShadowError):
            plain(5, w, b)


def test_a_large_block_is_left_alone(held, no_shadow, monkeypatch):
    monkeypatch.setattr(speculation, "MOST_BYTES", 16)
    trained(plain, 5)
    assert held.steps == 0


def test_large_gradients_are_not_there_before_they_are_asked_for(held, no_shadow, monkeypatch):
    monkeypatch.setattr(speculation, "MOST_BYTES", 256)
    w, b = tf.Variable(np.ones(100, "float32")), tf.Variable(1.0)
    for large in (True, False):
        for _ in range(5):
            with tf.GradientTape() as tape:
                loss = tf.square(tf.sin(w[0] * 2.0) * b + b)
            tape.gradient(loss, [w, b] if large else b)
        assert (held.steps == 0) == large


def test_without_a_setting_a_plan_is_made_when_it_pays(held, no_shadow, monkeypatch):
    monkeypatch.setattr(speculation, "early", speculation._SETTINGS[""])
    monkeypatch.setattr(speculation, "COMPILE_KIND", 100)
    monkeypatch.setattr(speculation, "COMPILE", 1_000)
    trained(plain, 8)
    assert held.steps == 0
    trained(plain, 30)
    assert held.answers


def test_a_plan_pays_earlier_while_its_operations_are_on_trial(held, no_shadow, monkeypatch):
    monkeypatch.setattr(speculation, "early", speculation._SETTINGS[""])
    monkeypatch.setattr(trial, "enabled", True)
    excess, begins, (w, _) = trial.Trial.excess, [], variables()
    for seen in (excess, lambda self, runs: 0.0, excess):
        forget()
        monkeypatch.setattr(trial.Trial, "excess", seen)
        for _ in range(5):
            with tf.GradientTape() as tape:  # of what no other test has run so often that it is compiled
                y = tf.asinh(tf.sinh(tf.atan(tf.cosh(w))))
            tape.gradient(y, w)
        ((_, sighting),) = speculation._sightings.items()
        begins.append(sighting.at)
    assert begins[0] == begins[2] < begins[1] / 1.3


def test_switched_off_there_is_no_plan(held, no_shadow, monkeypatch):
    monkeypatch.setattr(speculation, "early", speculation._SETTINGS["off"])
    monkeypatch.setattr(speculation, "COMPILE_KIND", 0)
    monkeypatch.setattr(speculation, "COMPILE", 0)
    trained(plain, 30)
    assert not held.steps and not speculation._plans.items()


# ---- what a plan may lose ----------------------------------------------------------------------------------------------


def test_two_ends_in_turn_are_soon_given_up(held, no_shadow, monkeypatch):
    launched, launch = [], speculation.FollowedBlock.launch
    monkeypatch.setattr(speculation.FollowedBlock, "launch", lambda *args: launched.append(args) or launch(*args))
    w, b = variables()
    for i in range(120):
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0) * w
            h = tf.tanh(h) if i % 2 else tf.sin(h)
            loss = tf.reduce_sum(h * h + b)
        tape.gradient(loss, [w, b])
    wasted = len(launched) - held.answers
    assert wasted < 5 * (speculation.MOST_FAILURES + 1)
    assert len(launched) < 60


def test_many_structures_that_begin_alike_make_few_plans(held, no_shadow, monkeypatch):
    compiled, compile_ = [], speculation._compile
    monkeypatch.setattr(speculation, "_compile", lambda *args: compiled.append(args) or compile_(*args))
    w, b = variables()
    for i in range(200):
        with tf.GradientTape() as tape:
            h = tf.sin(w * 2.0) * w
            for _ in range(i % 25):
                h = tf.tanh(h)
            loss = tf.reduce_sum(h * h + b)
        tape.gradient(loss, [w, b])
    assert len(compiled) <= 2 * speculation.MOST_ALIKE


def test_one_that_holds_often_makes_room_for_others(held, no_shadow, monkeypatch):
    monkeypatch.setattr(speculation, "HELD_FOR_ANOTHER", 5)
    w, b = variables()
    for length in range(12):
        answers = held.answers
        for _ in range(8):
            with tf.GradientTape() as tape:
                h = tf.sin(w * 2.0) * w
                for _ in range(length):
                    h = tf.tanh(h)
                loss = tf.reduce_sum(h * h + b)
            tape.gradient(loss, [w, b])
        assert held.answers > answers


def test_variables_that_are_new_at_each_step_are_not_waited_for(held, no_shadow):
    def step(i):
        w, b = tf.Variable([1.5, -0.5]), tf.Variable([0.1, 0.2 + i])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.sin(w * 2.0) * w + tf.cos(w) * w) * b)
        return loss, tape.gradient(loss, [w, b])

    require_same([step(i) for i in range(12)], without(lambda: [step(i) for i in range(12)]))
    for _, beginning in speculation._plans.items():
        assert not any("_value_of" in str(guess) for plan in beginning.plans for guess in plan.predicted.values())


# ---- JAX's modes, and the user's memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [jax.debug_nans, jax.debug_infs])
def test_a_mode_that_is_on_for_the_gradient_alone(held, mode, no_shadow):
    w = tf.Variable([-1.0 if mode is jax.debug_nans else 0.0, 1.0])
    for i in range(6):
        with tf.GradientTape() as tape:
            y = tf.sqrt(w * 2.0)
            loss = tf.reduce_sum((y + y) * 0.5)
        if i < 5:
            tape.gradient(loss, w)
    assert held.answers == 3
    with mode(True), pytest.raises(FloatingPointError):
        tape.gradient(loss, w)


def test_a_transfer_guard_inside_the_block(held, no_shadow):
    x = jnp.array([1.0, 2.0, 3.0])

    def step(guard):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = jnp.sin(x) * x
            with jax.transfer_guard_host_to_device(guard):
                k = jnp.multiply(h, 2.5)
            loss = jnp.sum(k * h)
        return tape.gradient(loss, x)

    expected = without(step, "allow")
    for _ in range(4):
        require_same(step("allow"), expected)
    assert held.steps
    with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
        step("disallow")
    require_same(step("allow"), expected)


def test_a_buffer_that_is_filled_again(held, no_shadow):
    """JAX takes the memory of an aligned array without a copy, and a chunk may run after the operation has returned."""
    memory = np.zeros(8 * 4 + 64, np.uint8)
    buffer = memory[-memory.ctypes.data % 64 :][:32].view(np.float32)
    matrix, w = jnp.ones((300, 300)) / 300, jnp.ones(8)
    deep = jax.jit(lambda m, f: jax.lax.scan(lambda c, _: (jnp.tanh(c + f), None), m, None, length=100)[0])
    for i in range(8):
        buffer[:] = i + 1
        with tf.GradientTape() as tape:
            tape.watch(w)
            h = jnp.sin(w) * buffer
            m = deep(jnp.broadcast_to(jnp.sum(h), (300, 300)) * matrix, matrix)
            loss = jnp.sum(m) * 0.0 + jnp.sum(h)
        buffer[:] = 1000.0
        np.testing.assert_allclose(tape.gradient(loss, w), np.cos(1.0) * (i + 1) * np.ones(8), rtol=1e-5)
    assert held.answers
