"""``tf.summary`` under both systems: what the files hold that TensorBoard reads."""

import concurrent.futures
import glob
import tempfile

import numpy as np
import pytest
from events import read
from harness import error_of, parity

pytest.importorskip("tensorboardX")


def written(tf, body):
    """What `body(writer)` returns, and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder)
        try:
            with writer.as_default():
                result = body(writer)
            writer.close()
        finally:
            tf.summary.experimental.set_step(None)
        return result, read(folder)


@parity
def test_each_kind(tf):
    """Numbers, histograms, images and text, with descriptions and name scopes."""
    rng = np.random.default_rng(0)
    pictures = rng.uniform(-0.2, 1.2, (4, 3, 5, 3)).astype("float32")

    def body(writer):
        S = tf.summary
        found = [
            S.scalar("a number", 1.5, step=1, description="what it is"),
            S.scalar("truth", True, step=np.int32(2)),
            S.scalar("", tf.constant(3), step=tf.constant(3, tf.int64)),
            S.histogram("h", rng.normal(size=(20, 5)), step=4),
            S.histogram("few", [1, 2, 2, 3], step=4, buckets=3),
            S.histogram("equal", tf.fill([3], 2.0), step=5, buckets=4),
            S.histogram("none", tf.zeros([0]), step=5),
            S.histogram("no buckets", [1.0, 2.0], step=5, buckets=-1),
            S.image("pictures", pictures, step=6, max_outputs=2),
            S.image("grey", tf.constant(pictures[..., :1]), step=6),
            S.image("bytes", tf.cast(pictures[:1] * 100 + 50, tf.uint8), step=7),
            S.text("t", "some *text*", step=8),
            S.text("table", [["a", "b"], ["c", "d"]], step=8),
        ]
        with tf.name_scope("outer"):
            S.scalar("x", tf.Variable(2.0), step=tf.Variable(9, dtype=tf.int64))
        return found

    return written(tf, body)


@parity
def test_steps_and_errors(tf):
    """Where the step comes from, and what is refused."""
    S = tf.summary

    def body(writer):
        found = [
            error_of(lambda: S.scalar("x", 1.0)),
            error_of(lambda: S.scalar("x", [1.0, 2.0], step=1)),
            error_of(lambda: S.scalar("x", 1.0, step=[1, 2])),
            error_of(lambda: S.scalar("x", 1.0, step=1.5)),
            error_of(lambda: S.scalar("x", 1.0, step="one")),
            error_of(lambda: S.scalar("x", 1.0, step=tf.constant(1.0))),
            error_of(lambda: S.image("x", tf.zeros([2, 3]), step=1)),
            error_of(lambda: S.image("x", tf.zeros([1, 2, 3, 3]), step=1, max_outputs=-1)),
            error_of(lambda: S.image("x", tf.zeros([1, 2, 3, 5]), step=1)),
            error_of(lambda: S.histogram("x", [1.0], step=1, buckets=2.0)),
            error_of(lambda: S.text("x", [1.0], step=1)),
            error_of(lambda: S.write("x", [1.0])),
            error_of(lambda: S.flush(3)),
            error_of(lambda: S.trace_export("x", step=1)),
        ]
        S.experimental.set_step(7)
        S.scalar("a", 1.0)
        with writer.as_default(step=8) as same:
            S.scalar("b", 2.0)
            S.scalar("c", 3.0, step=[9])
            found += [S.experimental.get_step(), same is writer]
        found.append(S.experimental.get_step())
        counter = tf.Variable(10, dtype=tf.int64)
        S.experimental.set_step(counter)
        counter.assign_add(1)
        S.scalar("d", 4.0)
        return found

    return written(tf, body)


@parity
def test_writers(tf):
    """Writers that are set for good, do nothing, or are closed; and conditions."""
    with concurrent.futures.ThreadPoolExecutor() as threads:  # the writer that is set here stays set in its thread
        return threads.submit(writers, tf).result()


def writers(tf):
    S = tf.summary
    found = [S.scalar("x", 1.0), S.should_record_summaries(), error_of(lambda: S.create_file_writer(None))]
    found.append(error_of(lambda: S.scalar("x", 1.0, step=[1, 2])))
    with S.create_noop_writer().as_default():
        found.append(S.scalar("x", 1.0, step=1))

    def body(writer):
        with S.record_if(False):
            found.extend([S.scalar("a", 1.0), S.should_record_summaries()])
            with S.record_if(lambda: tf.constant(True)):
                found.extend([S.scalar("b", 1.0, step=1), S.should_record_summaries()])
        writer.flush()
        S.flush()
        S.trace_on(graph=True, profiler=False)
        S.trace_off()
        writer.init()
        return isinstance(writer, S.SummaryWriter)

    with tempfile.TemporaryDirectory() as folder:
        closed = S.create_file_writer(folder, filename_suffix=".end")
        closed.set_as_default()
        S.scalar("x", 1.0, step=1)
        closed.close()
        found += [error_of(lambda: S.scalar("x", 1.0, step=1)), error_of(closed.as_default), error_of(closed.init)]
        found += [closed.close(), closed.flush(), [name[-4:] for name in glob.glob(folder + "/*")]]
        return written(tf, body), found


@parity
def test_in_a_function(tf):
    """A summary in a compiled function is written at each call, under the conditions and scopes there."""
    S = tf.summary
    rng = np.random.default_rng(0)

    def body(writer):
        step = tf.Variable(0, dtype=tf.int64)
        w = tf.Variable([1.0, 2.0])

        @tf.function
        def train(x):
            step.assign_add(1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((w * x) ** 2)
                S.scalar("loss", loss, step=step)
            grad = tape.gradient(loss, w)
            w.assign_sub(0.1 * grad)
            with tf.name_scope("inner"), S.record_if(lambda: tf.equal(step % 2, 0)):
                recorded = S.histogram("gradient", grad, step=step, buckets=3)
            with S.record_if(False):
                S.scalar("never", loss)
            S.image("weights", tf.reshape(w, [1, 1, 2, 1]), step=step)
            S.text("note", "constant", step=step)
            return loss, recorded

        @tf.function
        def own_writer(x):
            with writer.as_default(step=20):
                S.scalar("own", x)

        with tf.name_scope("outer"):
            found = [train(tf.constant(rng.normal(size=2), tf.float32)) for _ in range(3)]
        own_writer(tf.constant(1.0))
        own_writer(tf.constant(2.0))
        return found

    return written(tf, body)


@parity
def test_a_tape_around_a_function(tf):
    """What a function writes, or prints, it writes once, also where its gradient is taken."""

    def body(path):
        w = tf.Variable(2.0)

        @tf.function
        def f(x, count):
            y = w * x
            tf.summary.scalar("y", y, step=1)
            tf.print("y", y, output_stream=path)
            for _ in tf.range(2):
                y = y * w
                tf.print("loop", y, output_stream=path)
            if count is not None:
                while count > 0:
                    count, y = count - 1, y * w
                    tf.print("while", y, output_stream=path)
            return tf.cond(y > 0.0, lambda: printed(y * y), lambda: y)

        def printed(x):
            tf.print("branch", x, output_stream=path)
            return x

        def derivatives(count):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as tape:
                    y = f(tf.constant(3.0), count)
                g = tape.gradient(y, w)
            return y, g if count is not None else outer.gradient(g, w)

        @tf.function
        def inside(x):
            with tf.GradientTape() as tape:
                for i in tf.range(2):
                    tf.print("inside", i, output_stream=path)
                    x = printed(x * w)
            return tape.gradient(x, w)

        return derivatives(None), derivatives(tf.constant(2)), inside(tf.constant(3.0))

    with tempfile.NamedTemporaryFile("r") as file:
        return written(tf, lambda writer: body(f"file://{file.name}")), sorted(file)  # not in order


def loop(tf):
    def body(writer):
        @tf.function
        def f(x):
            for i in tf.range(3, dtype=tf.int64):
                tf.summary.scalar("loop", x * tf.cast(i, tf.float32), step=i)
                if i > 1:
                    tf.summary.scalar("large", x, step=i)

        f(tf.constant(3.0))

    return written(tf, body)[1]


@parity
def test_in_a_loop(tf):
    """Summaries in a loop and a branch, in their order."""
    return [(tag.split("/")[-1], *rest) for tag, *rest in loop(tf)]


@parity(differs="AutoGraph's loops and branches are no name scopes")
def test_tags_in_a_loop(tf):
    """The tags of these."""
    return [tag for tag, *_ in loop(tf)]


@parity
def test_kinds_of_ones_own(tf):
    """`write` with metadata, in a `summary_scope`."""

    def body(writer):
        with tf.summary.experimental.summary_scope("my kind") as (tag, _):
            found = tf.summary.write(tag, lambda: tf.constant([1, 2]), step=1)
        return (
            found,
            tf.summary.write("words", ["a", "b"], step=2),
            tf.summary.write("numbers", np.ones(2, "float32"), step=3),
        )

    return written(tf, body)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_tensorflow_reads_what_is_written():
    """TensorFlow's reader, which checks each record, finds it."""
    import tapejax

    tf = pytest.importorskip("tensorflow")
    with tempfile.TemporaryDirectory() as folder:
        writer = tapejax.summary.create_file_writer(folder)
        with writer.as_default():
            for step in range(30):
                tapejax.summary.scalar("x", step**2, step=step)
        writer.close()
        (file,) = glob.glob(f"{folder}/*")
        events = [event for event in tf.compat.v1.train.summary_iterator(file) if event.summary.value]
    found = [(event.step, float(tf.make_ndarray(event.summary.value[0].tensor))) for event in events]
    assert found == [(step, step**2) for step in range(30)]
