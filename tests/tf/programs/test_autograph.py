"""What AutoGraph does that TensorFlow does not, where it does it, and what it leaves alone."""

import ast
import functools
import glob
import linecache
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tf.programs import autograph, statements

pytest.importorskip("malt", reason="the extra `autograph` is not installed")


def line_of(text):
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(text))


def test_nothing_is_left_on_the_nodes_that_all_trees_share():
    @tf.function
    def f(x, n):
        for i in tf.range(n):
            x = -x + float(i) if not x > 3.0 and n != 2 else x * 2.0 - x**2
        return x

    f(tf.constant(2.0), tf.constant(3))
    nodes = {type(node): node for node in ast.walk(ast.parse(autograph._CONTEXTS_AND_OPERATORS))}
    kinds = ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop
    assert len([node for node in nodes.values() if isinstance(node, kinds)]) == 3 + 2 + 13 + 4 + 10
    assert [node for node in nodes.values() if "___pyct_anno" in vars(node) or node._fields != type(node)._fields] == []


# ---- more than TensorFlow's ------------------------------------------------------------------------------------------------


def test_return_in_a_loop():
    @tf.function
    def find(xs, limit):
        for i, x in enumerate(xs):  # of a tensor: Python's, unrolled
            if x > limit:
                return i
        return -1

    @tf.function
    def rows(xs, limit):
        for x in xs:
            if x > limit:
                return x * 2.0
        return limit

    @tf.function
    def nested(n):
        for i in tf.range(n):
            for j in tf.range(n):
                if i * j == 12:
                    return i, j
        return n, n

    xs = tf.constant([1.0, 5.0, 3.0])
    assert [int(find(xs, tf.constant(v))) for v in (0.0, 2.0, 9.0)] == [0, 1, -1]
    assert [float(rows(xs, tf.constant(v))) for v in (0.0, 2.0, 9.0)] == [2.0, 10.0, 9.0]
    assert [tuple(map(int, nested(tf.constant(n)))) for n in (3, 8)] == [(3, 3), (2, 6)]


def test_a_range_that_a_library_has_wrapped():
    """Keras wraps the functions of `tf`, so that they take its symbols."""
    wrapped = functools.wraps(tf.range)(lambda *args: tf.range(*args))

    @tf.function
    def f(n):
        total = tf.constant(0)
        for i in wrapped(n):
            total += i
        return total

    assert int(f(tf.constant(5))) == 10


def test_return_in_while():
    @tf.function
    def f(x):
        while x < 100.0:
            x = x * 2.0
            if x > 50.0:
                return x
        return x - 1.0

    assert [float(f(tf.constant(x))) for x in (2.5, 200.0, 49.0)] == [80.0, 199.0, 98.0]


def test_a_return_in_some_cases_only_is_refused():
    @tf.function
    def f(xs):
        for x in xs:
            if x > 0:
                return x

    with pytest.raises(ValueError, match="returns a value in some cases only"):
        f(tf.constant([1.0]))


def test_while_true_with_a_traced_break():
    @tf.function
    def f(x):
        steps = 0
        while True:
            x = x * 2.0
            steps += 1
            if x > 50.0:
                break
        return x, steps

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y, steps = f(x)
    assert (float(y), int(steps), float(tape.gradient(y, x))) == (96.0, 5, 32.0)


def test_break_out_of_pythons_loop():
    @tf.function
    def f(x):
        for i in range(5):  # noqa: B007
            x = x * 2.0
            if x > 10.0:
                break
        return x, i

    x, i = f(tf.constant(2.5))
    assert (float(x), int(i)) == (20.0, 2)
    x, i = f(tf.constant(0.1))
    assert int(i) == 4


def test_forward_mode_through_while():
    @tf.function
    def f(x):
        y = x
        while y < 100.0:
            y = y * x
        return y

    x = tf.Variable(1.5)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        y = f(x)
    np.testing.assert_allclose(accumulator.jvp(y), 12 * 1.5**11, rtol=1e-5)


def test_jax_differentiates_while_backward():
    @tf.function
    def f(x, w):
        y = x
        while tf.reduce_sum(y) < 1000.0:
            y = y * w + x
        return tf.reduce_sum(y * y)

    def reference(x, w, count):
        y = x
        for _ in range(count):
            y = y * w + x
        return jnp.sum(y * y)

    x, w = jnp.array([1.0, 2.0]), jnp.array([1.01, 1.02])
    y, count = x, 0
    while y.sum() < 1000.0:
        y, count = y * w + x, count + 1
    assert count > statements.loops.SLOTS  # states have to be computed anew
    found = jax.grad(lambda x, w: f(x, w)._array, (0, 1))(x, w)
    expected = jax.grad(reference, (0, 1))(x, w, count)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3)


def test_jnp_arrays_stay_jnp_arrays():
    @tf.function
    def f(x):
        kinds.append(type(x).__module__)
        while jnp.sum(x) > 0:
            x = jnp.where(x > 1, x - 2, x - 1)
            kinds.append(isinstance(x, jax.Array))
        return x if x[0] > 5 else -x

    kinds = []
    np.testing.assert_array_equal(f(jnp.array([3.0, 1.0])), [0.0, 1.0])
    assert all(kinds)


def test_a_jacobian_of_while():
    @tf.function
    def f(x):
        y = x
        while tf.reduce_max(y) < 10.0:
            y = y * x
        return y

    x = tf.Variable([1.5, 2.0])
    with tf.GradientTape() as tape:
        y = f(x)
    np.testing.assert_allclose(tape.jacobian(y, x), np.diag([4 * 1.5**3, 4 * 2.0**3]), rtol=1e-5)


def test_first_assigned_in_a_while_that_never_runs():
    @tf.function
    def f(x):
        while x < 0:
            y = x * 2.0
            x = x + 1.0
        return y

    assert float(f(tf.constant(-2.5))) == -1.0
    assert np.isnan(float(f(tf.constant(2.5))))  # TensorFlow raises when it runs

    @tf.function
    def g(x):
        while x < 0:
            n = 1
            x = x + 1.0
        return n

    assert int(g(tf.constant(-2.5))) == 1  # as Python: an integer has no nan
    with pytest.raises(UnboundLocalError, match="'n'"):
        g(tf.constant(1.0))


def test_loops_that_never_run():
    @tf.function
    def f(x):
        for i in tf.range(0):
            y = x * tf.cast(i, tf.float32)
        n = tf.constant(5)
        while n < 5:
            y = x
            n += 1
        return y

    with pytest.raises(UnboundLocalError, match="'y' is used before assignment"):
        f(tf.constant(1.0))


def test_what_stays_none_is_no_reason_to_unroll(capsys):
    @tf.function
    def f(xs, mask=None):
        previous, other = None, mask
        for x in xs:
            print("tracing")
            if previous is not None:
                x = x + previous * 0.5
            previous, other = x, mask
        return previous, other

    value, other = f(tf.ones(50))
    assert other is None and abs(float(value) - 2.0) < 1e-5
    assert capsys.readouterr().out.count("tracing") == 2  # the first iteration, all others


def test_a_list_filled_in_a_loop_over_a_tensor():
    @tf.function
    def f(xs):
        found = []
        for x in xs:
            found.append(x * 2.0)
        return tf.stack(found)

    np.testing.assert_array_equal(f(tf.constant([1.0, 2.0])), [2.0, 4.0])


def test_a_growing_tensor_array():
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(4):
            x = x * 2.0 if x < 5.0 else x - 1.0
            array = array.write(i, x)
        return array.stack()

    np.testing.assert_array_equal(f(tf.constant(2.0)), [4.0, 8.0, 7.0, 6.0])


def test_without_source():
    names = {}
    exec("def f(x):\n    return x if x > 0 else -x\n", names)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="whose source is not there"):
        tf.function(names["f"])(tf.constant(1.0))


def test_a_string_that_is_not_indented():
    def f(x):
        """The first line of the documentation,
and another."""  # fmt: skip
        return x if x > 0 else -x

    assert float(tf.function(f)(tf.constant(-2.0))) == 2.0


def test_the_text_of_another_program_is_no_source(monkeypatch):
    """From Python 3.13 on, `python -c` keeps its text as that of "<string>", which code that `exec` runs is called, too."""
    own = "def f(x):\n    return x if x > 0 else -x\n"
    other = "def g(x):\n    return 100.0 * x if x > 0 else x\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(other), None, other.splitlines(keepends=True), "<string>"))
    exec(own, names := {"tf": tf})
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="'f', whose source is not there"):
        tf.function(names["f"])(tf.constant(1.0))
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="'f', whose source is not there"):
        tf.function(lambda x: names["f"](x) if x > 0 else x)(tf.constant(-1.0))
    exec(other, names)
    assert float(tf.function(names["g"])(tf.constant(2.0))) == 200.0


def test_a_saved_model_with_control_flow(tmp_path):
    pytest.importorskip("flatbuffers")

    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, xs):
            total = 0.0
            for x in xs:
                if x > 0:
                    total += x * self.w
            while total < 100.0:
                total = total * 2.0
            return total

    tf.saved_model.save(Model(), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert [float(loaded(tf.constant(x))) for x in ([1.0, -2.0, 3.0], [1.0, 5.0])] == [128.0, 192.0]


def test_tf_print_in_a_loop(capfd):
    @tf.function
    def f(x):
        for i in tf.range(3):
            if i != 1:
                tf.print("i =", i)
            x = x + 1.0
        return x

    f(tf.constant(0.0))
    jax.effects_barrier()
    assert sorted(capfd.readouterr().err.split("\n")) == ["", "i = 0", "i = 2"]


def test_what_is_computed_anew_is_not_printed_again(capfd):
    @tf.function
    def f(x):
        while x < 100.0:
            tf.print("x =", x)
            x = x * x
        return x

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    assert (float(y), float(tape.gradient(y, x))) == (256.0, 1024.0)
    jax.effects_barrier()
    printed = capfd.readouterr().err.split()
    assert len(printed) == 3 * 3


# ---- datasets --------------------------------------------------------------------------------------------------------------


def test_a_dataset_is_read_at_each_call():
    scale = [1.0]

    def numbers():
        for i in range(3):
            yield scale[0] * i

    dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.float32))
    v = tf.Variable(3.0)

    @tf.function
    def f(x):
        for element in dataset:
            x = x + element * v
        return x

    @tf.function
    def around(x):
        return f(x) + 1.0

    assert float(f(tf.constant(0.0))) == 9.0
    scale[0] = 10.0
    with tf.GradientTape() as tape:
        y = f(tf.constant(0.0))
    assert (float(y), float(tape.gradient(y, v))) == (90.0, 30.0)
    assert float(around(tf.constant(0.0))) == 91.0
    scale[0] = 1.0
    assert float(around(tf.constant(0.0))) == 10.0
    assert f.experimental_get_tracing_count() == 1


def test_batches_of_two_shapes_and_enumerate():
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(7.0, dtype="f4"), np.ones(7, "f4"))).batch(2)

    @tf.function
    def f(stop):
        total, last = 0.0, tf.constant(-1, tf.int64)
        for i, (x, y) in enumerate(dataset):
            if i == stop:
                break
            total += tf.reduce_sum(x * y)
            last = i
        return total, last

    with jax.enable_x64(True):
        found = [tuple(map(float, f(tf.constant(stop, tf.int64)))) for stop in (9, 3, 1, 0)]
    assert found == [(21.0, 3.0), (15.0, 2.0), (1.0, 0.0), (0.0, -1.0)]


def test_a_dataset_that_changes_its_size_or_has_no_end():
    count = [2]
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(range(count[0])), output_signature=tf.TensorSpec([], tf.int32)
    )

    @tf.function
    def f(x):
        for element in dataset:
            x = x + element
        return x

    assert int(f(tf.constant(0))) == 1
    count[0] = 3
    with pytest.raises(ValueError, match="other elements now"):
        f(tf.constant(0))


# ---- lines, names, files ---------------------------------------------------------------------------------------------------


def halve(x):
    if x > 1.0:
        y = x / 2.0  # the user's line
    else:
        y = x
    return y


def test_a_tape_names_the_users_lines():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * 2.0  # before the loop
            for _ in tf.range(2):  # the loop
                y = halve(y)
        texts.append(str(tape))
        return y

    texts = []
    f(tf.constant(1.0))
    for text in ("# before the loop", "# the loop"):
        assert f"test_autograph.py:{line_of(text)} " in texts[0]


def test_errors_name_the_users_line():
    def bad(x):
        if x > 0:  # the bad statement
            y = 1
        else:
            y = 1.0
        return y

    @tf.function
    def f(x):
        return bad(x)

    with pytest.raises(TypeError, match=rf'test_autograph.py", line {line_of("# the bad statement")}: `if x > 0:'):
        f(tf.constant(1.0))


def test_a_traceback_shows_the_users_lines():
    def divide(x):
        if x[0] > 0:  # the failing branch
            x = x * tf.constant([1.0, 2.0, 3.0])  # the failing line
        return x

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(divide)(tf.constant([1.0, 2.0]))
    frames = [(frame.name, frame.lineno) for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
    assert ("divide", line_of("if x[0] > 0:  # the failing branch")) in frames
    assert line_of("# the failing line") in {line for _, line in frames}


def test_a_traceback_marks_the_users_expression():
    def add(x):
        if x[0] > 0:
            x = x * 2.0 + tf.constant([1.0, 2.0, 3.0])
        return x

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(add)(tf.constant([1.0, 2.0]))
    frame = [each for each in traceback.extract_tb(caught.tb) if each.filename == __file__][-1]
    line = linecache.getline(frame.filename, frame.lineno)
    assert line[frame.colno : frame.end_colno] == "x * 2.0 + tf.constant([1.0, 2.0, 3.0])"


def test_what_cannot_be_converted_says_why():
    @tf.function
    def f(x):
        for _ in tf.range(3):
            if x > 100:
                break
        else:
            x = x + 100.0
        return x

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="for/else statement not yet supported"):
        f(tf.constant(1.0))


def test_no_files_are_written():
    before = set(os.listdir(tempfile.gettempdir())), set(glob.glob(os.path.dirname(__file__) + "/*"))

    @tf.function
    def f(x):
        return x if x > 0 else -x

    f(tf.constant(1.0))
    after = set(os.listdir(tempfile.gettempdir())), set(glob.glob(os.path.dirname(__file__) + "/*"))
    assert not [name for name in after[0] - before[0] if "autograph" in name]
    assert after[1] == before[1]


# ---- what is left alone ----------------------------------------------------------------------------------------------------


def test_only_what_may_branch_on_a_tensor_is_converted():
    class Model:
        def __init__(self):
            self.w = tf.Variable(2.0)
            self.layers = [self]

        def plain(self, x, mask=None):
            if mask is not None:
                x = x * mask
            return x * self.w

        def branching(self, x):
            return self.w if x > 0 else x

    model = Model()

    def step(x):
        with tf.GradientTape() as tape:
            loss = model.plain(x) ** 2
            for _ in range(3):
                loss = loss + 1.0
        return tape.gradient(loss, model.w)

    def branching(x):
        return model.branching(x)

    def through_a_list(x):
        return functions[0](x) + functions[1](x)

    functions = [step, branching]
    assert not autograph.needed(step, (), {})
    total = lambda x: tf.reduce_sum(x)  # noqa: E731
    assert not autograph.needed(total, (), {})
    assert autograph.needed(branching, (), {})
    assert autograph.needed(through_a_list, (), {})
    assert autograph.needed(lambda f, x: f(x), (branching,), {})
    assert autograph.needed(model.branching, (), {})
    assert autograph.needed(halve, (), {})


def test_python_stays_python():
    calls = []

    def body(x, layers, training):
        for layer in layers:
            if training and layer:
                calls.append(layer)
                x = x + layer
        return (x, None) if training else (x, "no tensor")

    f = tf.function(lambda x, training: body(x, (1.0, 0.0, 2.0), training)[0])
    assert float(f(tf.constant(1.0), True)) == 4.0
    assert calls == [1.0, 2.0]
    assert float(f(tf.constant(1.0), False)) == 1.0


def test_libraries_are_not_converted():
    assert autograph.converted(np.linalg.norm) is np.linalg.norm
    assert autograph.converted(jnp.dot) is jnp.dot
    assert autograph.converted(tf.reduce_sum) is tf.reduce_sum
    assert autograph.converted(textwrap.dedent) is textwrap.dedent
    assert autograph.converted(halve) is not halve


def test_closures_share_code_and_keep_their_cells():
    def make(k):
        def f(x):
            if x > 0:
                return x * k
            return x

        return tf.function(f)

    one, two = make(1.0), make(2.0)
    assert (float(one(tf.constant(3.0))), float(two(tf.constant(3.0)))) == (3.0, 6.0)


def test_functions_in_threads():
    def work(i):
        @tf.function
        def f(x):
            while x < 100.0:
                x = x * 2.0 if i % 2 else x + 7.0
            return x

        results[i] = float(f(tf.constant(float(i + 1))))

    results = {}
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: 106.0, 1: 128.0, 2: 101.0, 3: 128.0}


def test_eager_functions_are_pythons():
    @tf.function
    def f(x):
        return x.numpy() if x > 0 else -x

    tf.config.run_functions_eagerly(True)
    try:
        assert f(tf.constant(2.0)) == 2.0
    finally:
        tf.config.run_functions_eagerly(False)


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr(autograph, "INSTALLED", False)

    @tf.function
    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match=r"tapejax\[autograph\]"):
        f(tf.constant(1.0))


def test_the_extra_is_imported_when_it_is_needed():
    program = """
    import sys
    import tapejax as tf
    f = tf.function(lambda x: x * 2.0)
    f(tf.constant(1.0))
    assert "malt" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


REGISTERED = {}


def registered(function):
    REGISTERED[function.__name__] = function
    return function


@registered
def branches(x):
    return x if x > 0 else -x


@registered
def goes_straight_on(x):
    return jnp.sin(x)


def test_what_a_decorator_did_when_a_function_was_defined_is_no_part_of_it():
    x = jnp.array(1.0)
    assert autograph.needed(branches, (x,), {}) and not autograph.needed(goes_straight_on, (x,), {})


def test_rows_of_jaxs_arrays_are_jaxs():
    def recurrence(w, xs, h):
        for x in xs:
            h = jnp.tanh(x @ w + h)  # of a row and a matrix: JAX's product, TensorFlow's refuses it
        return h

    w, xs, h = jnp.full((3, 4), 0.1), jnp.arange(21.0).reshape(7, 3), jnp.zeros(4)
    got = tf.function(recurrence)(w, xs, h)
    np.testing.assert_allclose(got, recurrence(w, xs, h), rtol=1e-6)
    assert isinstance(got, jax.Array)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be matrices"):
        tf.function(recurrence)(tf.constant(w), tf.constant(xs), tf.constant(h))
