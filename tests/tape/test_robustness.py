"""A tape in the long run and in rough weather: memory, threads, exceptions, and what gets compiled."""

from __future__ import annotations

import asyncio
import functools
import gc
import statistics
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from plain_jax import FLOAT

import tapejax as tf
from tapejax.execution import schedule
from tapejax.jaxprs import cache, contents, custom_rules, fence, interning, lifting
from tapejax.jaxprs.cache import Cache
from tapejax.jaxprs.fence import ClosedJaxpr
from tapejax.tape import active, dispatch, operation, primitives, slicing, trace
from tapejax.tape import sweep as derivatives
from tests.compiling import compiles


def taped(function, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs)
    return tape.gradient(y, xs)


def assert_works():
    """The next tape works, and JAX's trace is as it was."""
    assert not active.active_recordings()
    x = jnp.arange(3.0)
    (gradient,) = taped(lambda v: v * v, x)
    np.testing.assert_allclose(gradient, 2 * np.arange(3.0))


@pytest.fixture(autouse=True)
def trace_is_restored():
    before = fence.current_trace()
    yield
    assert fence.current_trace() is before
    assert_works()


# ---- in the long run --------------------------------------------------------------------------------------------------


def dense(x, w, b):
    """A step through both entrances: direct dispatch, interception of jnp functions and of a custom_jvp."""
    return jnp.mean(jax.nn.relu(operation.apply(jnp.matmul, x, w) + b) ** 2)


MODULES = (
    contents,
    custom_rules,
    derivatives,
    interning,
    lifting,
    active,
    dispatch,
    schedule,
    slicing,
    operation,
    primitives,
)


def caches():
    """The number of things remembered between tapes."""
    return sum(
        len(cache)
        for module in MODULES
        for cache in vars(module).values()
        if isinstance(cache, (dict, set, weakref.WeakKeyDictionary, Cache))
    ) + sum(
        function.cache_info().currsize
        for module in MODULES
        for function in vars(module).values()
        if hasattr(function, "cache_info")
    )


@pytest.mark.slow
def test_ten_thousand_tapes():
    """Time per tape, live arrays, memory and caches are flat."""
    x, w, b = jnp.ones((4, 3)), jnp.ones((3, 2)), jnp.zeros(2)
    times = []
    for i in range(10_000):
        begin = time.perf_counter()
        taped(dense, x, w, b)
        times.append(time.perf_counter() - begin)
        if i == 2_000:
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0], len(jax.live_arrays()), caches()
        if i == 3_000:  # tracing memory makes everything slower: only a part of the way
            gc.collect()
            after = tracemalloc.get_traced_memory()[0], len(jax.live_arrays()), caches()
            tracemalloc.stop()
    gc.collect()
    assert after[0] - before[0] < 200_000  # bytes, in a thousand tapes
    assert after[1] == before[1] and len(jax.live_arrays()) <= before[1]
    assert caches() == before[2]
    assert statistics.median(times[-1000:]) < 2 * statistics.median(times[1000:2000])


def test_what_a_tape_recorded_is_freed_with_it():
    x = jnp.arange(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jnp.sin(x)
        z = y * y
    inside = weakref.ref(y)
    del y
    assert inside() is not None  # the backward pass needs it
    tape.gradient(z, x)
    assert inside() is not None
    del tape
    gc.collect()
    assert inside() is None

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.nn.relu(x)
        z = jax.jit(functools.partial(jnp.multiply, y))(jax.nn.gelu(y))
    inside = weakref.ref(y)
    del y
    tape.gradient(z, x)  # uses the tape up
    gc.collect()
    assert inside() is None


def test_python_ends_inside_a_block_without_a_word():
    program = "import tapejax; import jax.numpy as jnp; tape = tapejax.GradientTape(); tape.__enter__(); jnp.sin(1.0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# A rule that closes over an array is known by that array: it is kept, and another array is another program.
@pytest.mark.parametrize(
    "function",
    [
        lambda w, e: jnp.sum(w * e),
        lambda w, e: jax.jit(lambda: jnp.sum(w * e))(),
        lambda w, e: lax.scan(lambda c, _: (c * w, None), e, None, length=2)[0].sum(),
        lambda w, e: clipped(e)(w).sum(),
        lambda w, e: with_rule_over(e)(w).sum(),
        lambda w, e: lax.cond(True, lambda: w * e, lambda: w).sum(),
    ],
    ids=["jnp", "jit", "scan", "custom_vjp", "custom_jvp", "cond"],
)
def test_no_array_is_kept_alive(function):
    """Batches come and go: no cache of ours may hold on to them, not even those that a function closes over."""
    w = jnp.ones(3)
    refs = []
    for i in range(20):
        batch = jnp.full(3, float(i))
        refs.append(weakref.ref(batch))
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = function(w, batch)
        tape.gradient(y, w)
        del batch, tape, y
    gc.collect()
    assert sum(ref() is not None for ref in refs) <= 2  # JAX's own caches may hold the first or the last


def clipped(bound):
    """A fresh custom_vjp at every call, whose rule closes over an array."""
    f = jax.custom_vjp(lambda v: v * 1.0)
    f.defvjp(lambda v: (f(v), None), lambda _, g: (jnp.clip(g, -bound, bound),))
    return f


def with_rule_over(factor):
    f = jax.custom_jvp(lambda v: v * 1.0)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * factor))
    return f


def test_no_program_is_kept_alive(no_shadow):
    """A function that is made anew each time leaves nothing behind: neither its programs nor those of the loops in it."""

    def once():
        @tf.function
        def f(x):
            return tf.reduce_sum(lax.scan(lambda c, _: (c * 2.0, None), jnp.asarray(x), None, length=3)[0])

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) + f(x)
            y = y + lax.fori_loop(0, 2, lambda _, c: c * 3.0, y)
        return tape.gradient(y, x)

    def programs():
        gc.collect()
        return sum(isinstance(each, ClosedJaxpr) for each in gc.get_objects())

    x = jnp.ones(3)
    counts = []
    for _ in range(3):
        for _ in range(10):
            once()
        counts.append(programs())
    assert counts[2] <= counts[1] + 5, counts


def test_caches_are_bounded(monkeypatch):
    """Programs of ever new structure do not pile up."""
    limit, kept = 50, {id(each): each for each in cache._caches}
    cache.clear()
    for each in kept.values():
        monkeypatch.setattr(each, "size", limit)
    x = jnp.arange(3.0)
    for n in range(2 * limit):
        taped(lambda v, n=n: v * float(n) + jax.nn.relu(v) * n if n % 2 else v.at[0].set(n) ** n, x)
    sizes = [len(each) for each in kept.values()]
    assert max(sizes) <= limit
    assert sum(size >= limit // 2 for size in sizes) >= 3  # some were filled, and dropped what they had first


def test_ten_thousand_operations_on_one_tape():
    x = jnp.float32(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(5_000):
            y = operation.apply(jnp.multiply, y, jnp.float32(1.0001))
            y = operation.apply(jnp.add, y, 0.0)
    np.testing.assert_allclose(tape.gradient(y, x), 1.0001**5_000, rtol=1e-3)


# ---- what gets compiled -------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_process(monkeypatch):
    """The more programs were compiled whole, the more often the next must come back first: forget those of other tests."""
    monkeypatch.setattr(schedule, "_unused_compiles", set())


def test_counting_works():
    x = jnp.arange(3.0)
    with compiles() as compiled:
        jax.jit(lambda v: v * 2 + 1)(x)
    assert len(compiled) == 1


def step_through_ops(x):
    return operation.apply(jnp.sum, operation.apply(jnp.sin, operation.apply(jnp.multiply, x, x)))


def step_through_jnp(x):
    return jnp.mean(jax.nn.softmax(jnp.tanh(x * 2.0) + x[::-1]) ** 2)


def step_with_fresh_lambdas(x):
    y = lax.scan(lambda c, e: (c * e + x.sum(), jnp.sin(c)), 0.5, x)[1]
    return lax.cond(True, lambda: y * x, lambda: x).sum() + lax.fori_loop(0, 3, lambda i, c: c * x, y).sum()


def step_with_fresh_jit(x):
    return jax.jit(lambda: jax.jit(lambda v: v * x)(jnp.sin(x)))().sum()


def step_with_fresh_checkpoint(x):
    return jax.checkpoint(lambda v: jnp.sin(v) * x)(x).sum()


def step_with_custom_jvp(x):
    return jax.nn.relu(x).sum() + jax.nn.gelu(jax.nn.selu(x)).sum() + jax.nn.logsumexp(x)


def step_with_fresh_custom_jvp(x):
    return with_rule_over(3.0)(x).sum()


def step_with_fresh_custom_vjp(x):
    return clipped(0.5)(x * 2).sum()


def step_with_fresh_custom_vjp_over_an_array(x):
    return clipped(jnp.arange(3.0) / 10)(x * 2).sum()


def step_with_fresh_custom_jvp_over_an_array(x):
    return with_rule_over(jnp.arange(3.0) / 10)(x * 2).sum()


def step_with_vmap_and_grad(x):
    return jax.vmap(lambda e: e * x)(jax.grad(lambda v: jnp.sum(v**3))(x)).sum()


def step_in_place(x):
    return x.at[jnp.array([0, 2])].add(x[:2]).at[1].set(0.0).sum() + jnp.linalg.norm(x)


def step_with_random_numbers(x):
    key = jax.random.fold_in(jax.random.key(0), 1)
    return (x * jax.random.normal(key, (3,)) + jax.random.permutation(key, x)).sum()


def step_of_nested_tapes(x):
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = jnp.sum(jax.nn.softplus(x) ** 3)
    return jnp.sum(inner.gradient(y, x) ** 2)


def step_with_variables(x):
    return (VARIABLE * tf.sin(x) + VARIABLE**2).numpy().size * x.sum() + jnp.sum(jnp.asarray(VARIABLE * x))


VARIABLE = tf.Variable([1.0, 2.0, 3.0], dtype=FLOAT)

STEPS = [pytest.param(value, id=name) for name, value in list(globals().items()) if name.startswith("step_")]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_seen_before_compiles_nothing(fresh_process, no_shadow, step):
    x = jnp.asarray([0.5, 1.0, 1.5])
    for _ in range(4):
        taped(step, x)
    with compiles() as compiled:
        for i in range(5):
            taped(step, jnp.asarray([0.5, 1.0, float(i)], FLOAT))
    assert compiled == []


def test_a_step_seen_before_compiles_nothing_with_every_kind_of_gradient(fresh_process):
    """Also by output_gradients, for several targets, and as zeros."""
    x, g = jnp.asarray([0.5, 1.0, 1.5]), jnp.ones(3)

    def step():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, g])
            y = jnp.sin(x)
            z = [y * x, y]
        tape.gradient(z, [x, g], output_gradients=[g, g], unconnected_gradients="zero")
        tape.gradient(z[0], [x, y])
        tape.jacobian(y, x)

    for _ in range(4):
        step()
    with compiles() as compiled:
        for _ in range(3):
            step()
    assert compiled == []


def test_a_structure_that_changes_every_step_compiles_nothing_once_its_parts_were_seen(no_shadow):
    x = jnp.asarray([0.5, 1.0, 1.5])
    parts = [jnp.sin, jnp.tanh, lambda v: v * v, lambda v: v + 1.0, jax.nn.relu]

    def chain(*choice):
        def function(v):
            for i in choice:
                v = parts[i](v)
            return v

        return function

    random = np.random.default_rng(0)
    for _ in range(2):
        for i in range(len(parts)):
            for j in range(len(parts)):
                taped(chain(i, j), x)
    with compiles() as compiled:
        for _ in range(20):
            taped(chain(*random.integers(0, len(parts), random.integers(8, 14))), x)
    assert compiled == []


def test_one_trace_for_all_tapes():
    """JAX's jit cache is keyed by the trace: a new one for each tape would make every call miss it."""
    traces = set()
    for _ in range(3):
        with tf.GradientTape():
            traces.add(id(fence.current_trace()))
    assert len(traces) == 1


# ---- threads --------------------------------------------------------------------------------------------------------------


def test_eight_threads():
    """Each thread has tapes of its own, which see nothing of the others."""
    x = jnp.arange(1.0, 4.0)
    barrier, failures = threading.Barrier(8), []

    def work(k):
        try:
            with tf.GradientTape() as kept_open:
                kept_open.watch(x)
                barrier.wait(60)
                for n in range(20):
                    assert len(active.active_recordings()) == 1
                    with tf.GradientTape() as outer:
                        outer.watch(x)
                        with tf.GradientTape() as tape:
                            tape.watch(x)
                            y = jnp.sum(jax.nn.relu(x) ** 3 * k) + operation.apply(jnp.sum, x) * n
                        (first,) = [tape.gradient(y, x)]
                    np.testing.assert_allclose(first, 3 * x**2 * k + n, rtol=1e-5)
                    np.testing.assert_allclose(outer.gradient(first, x), 6 * x * k, rtol=1e-5)
            assert not active.active_recordings()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_that_meet_a_rule_at_the_same_time_for_the_first_time():
    """What is recognised by its key is made by each of them, and one of the results is kept for all."""
    x, failures, interval = jnp.arange(1.0, 4.0), [], sys.getswitchinterval()

    def work(barrier, function):
        try:
            barrier.wait(60)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            np.testing.assert_allclose(tape.gradient(y, x), [3.0, 3.0, 3.0])
        except BaseException as error:
            failures.append(error)

    sys.setswitchinterval(1e-5)
    try:
        for _ in range(5):
            function = jax.custom_jvp(jax.jit(lambda x: x * 2.0))
            function.defjvp(jax.jit(lambda primals, tangents: (primals[0] * 2.0, tangents[0] * 3.0)))
            barrier = threading.Barrier(8)
            threads = [threading.Thread(target=work, args=(barrier, function)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def test_a_thread_started_in_a_block_is_not_recorded():
    x = jnp.arange(3.0)
    seen = []
    with tf.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=lambda: seen.append((jnp.sin(x), active.active_recordings())))
        thread.start()
        thread.join()
        y = seen[0][0] * x
    assert not seen[0][1]
    np.testing.assert_allclose(tape.gradient(y, x), np.sin(np.arange(3.0)), rtol=1e-6)


# ---- exceptions -------------------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """As KeyboardInterrupt: no `Exception`."""


def fail(*_):
    raise Stopped


def at_once(x):
    fail()


def after_an_operation(x):
    jnp.sin(x)
    fail()


def in_watch(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        try:
            tape.watch(object())
        except ValueError:
            fail()


def in_inner_tape(x):
    with tf.GradientTape() as inner, tf.GradientTape():
        inner.watch(x)
        fail()


def in_inner_gradient(x):
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x + 1)
    try:
        inner.gradient(y, x)
    except LookupError:
        fail()


def in_jit(x):
    jax.jit(lambda v: fail(v * 2))(x)


def in_jit_with_a_tape(x):
    def inner(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            fail(v * 2)

    jax.jit(inner)(x)


def in_scan(x):
    lax.scan(lambda c, e: fail(c * e), 0.0, x)


def in_vmap(x):
    jax.vmap(lambda v: fail(v * 2))(x)


def in_grad(x):
    jax.grad(lambda v: fail(v * 2))(x)


def in_custom_vjp(x):
    f = jax.custom_vjp(lambda v: fail(v * 2))
    f.defvjp(fail, fail)
    f(x)


def in_custom_jvp(x):
    f = jax.custom_jvp(lambda v: fail(v * 2))
    f.defjvp(fail)
    f(x)


def in_op(x):
    operation.apply(fail, x)


def in_outside(x):
    with active.outside():
        fail()


def in_stop_recording(x):
    with tf.GradientTape() as tape, tape.stop_recording():
        fail()


def in_shapes(x):
    try:
        jnp.dot(x, jnp.ones(7))
    except TypeError:
        fail()


def in_generator(x):
    def steps():
        with tf.GradientTape() as tape:
            tape.watch(x)
            yield x * 2
            fail()

    for _ in steps():
        pass


FAILURES = [
    at_once,
    after_an_operation,
    in_watch,
    in_inner_tape,
    in_inner_gradient,
    in_jit,
    in_jit_with_a_tape,
    in_scan,
]
FAILURES += [
    in_vmap,
    in_grad,
    in_custom_vjp,
    in_custom_jvp,
    in_op,
    in_outside,
    in_stop_recording,
    in_shapes,
    in_generator,
]


@pytest.mark.parametrize("failing", FAILURES, ids=lambda f: f.__name__)
def test_an_exception_anywhere(failing):
    """It comes through, JAX's trace is as it was, this tape still knows what it saw, and the next one works."""
    x = jnp.arange(3.0)
    before = fence.current_trace()
    with tf.GradientTape() as outer:
        outer.watch(x)
        inside = fence.current_trace()
        with pytest.raises(Stopped), tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            failing(x)
        assert fence.current_trace() is inside
        z = y * x
    assert fence.current_trace() is before
    np.testing.assert_allclose(tape.gradient(y, x), [0.0, 2.0, 4.0])
    np.testing.assert_allclose(outer.gradient(z, x), [0.0, 3.0, 12.0])
    assert_works()


@pytest.mark.parametrize("error", [ZeroDivisionError, Stopped])
def test_an_exception_in_the_backward_pass(error):
    """The rule's exception comes when its gradient is asked for; the tape can be asked again."""

    def backward(_, g):
        raise error

    f = jax.custom_vjp(lambda v: v * 1.0)
    f.defvjp(lambda v: (f(v), None), backward)
    x = jnp.arange(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2
        z = f(y)
    for _ in range(2):
        with pytest.raises(error):
            tape.gradient(z, x)
        assert_works()
    if error is ZeroDivisionError:
        np.testing.assert_allclose(tape.gradient(y, x), np.full(3, 2.0))


@pytest.mark.parametrize("failing", [at_once, after_an_operation, in_inner_tape, in_jit], ids=lambda f: f.__name__)
def test_an_exception_under_jit(failing):
    def step(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            failing(v)

    for transform in (jax.jit, jax.vmap, jax.grad):
        with pytest.raises(Stopped):
            transform(step)(jnp.arange(3.0) if transform is not jax.grad else jnp.float32(1.0))
        assert_works()


def test_trace_is_restored_under_jit():
    """A tape under jit leaves jit's own trace as it found it."""

    @jax.jit
    def step(v):
        before = fence.current_trace()
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = v * v
            assert fence.current_trace() is not before
        assert fence.current_trace() is before
        return tape.gradient(y, v)

    np.testing.assert_allclose(step(jnp.arange(3.0)), [0.0, 2.0, 4.0])


# ---- tapes in odd places ------------------------------------------------------------------------------------------------


def test_tapes_left_out_of_order():
    x = jnp.arange(1.0, 4.0)
    a, b = tf.GradientTape(), tf.GradientTape()
    a.__enter__()
    a.watch(x)
    b.__enter__()
    b.watch(x)
    y = x * x
    a.__exit__(None, None, None)
    z = y * x
    b.__exit__(None, None, None)
    np.testing.assert_allclose(a.gradient(y, x), 2 * x)
    np.testing.assert_allclose(b.gradient(z, x), 3 * x**2)


def test_a_tape_left_twice():
    tape = tf.GradientTape()
    with tape:
        tape.__exit__(None, None, None)
    assert_works()


def test_a_tape_in_a_generator():
    """The block of a generator that is paused is open: what the consumer computes meanwhile is in it, as in TensorFlow."""
    x = jnp.arange(1.0, 4.0)

    def squares():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            yield y
        yield tape.gradient(y, x)

    steps = squares()
    next(steps)
    assert len(active.active_recordings()) == 1
    np.testing.assert_allclose(next(steps), 2 * x)
    assert not active.active_recordings()


def test_a_generator_that_is_abandoned():
    x = jnp.arange(1.0, 4.0)

    def squares():
        with tf.GradientTape() as tape:
            tape.watch(x)
            yield x * x

    steps = squares()
    next(steps)
    steps.close()
    assert_works()


def test_a_tape_in_a_coroutine():
    """Blocks that do not span an `await` are each other's business no more than elsewhere."""
    x = jnp.arange(1.0, 4.0)

    async def work(k):
        for _ in range(3):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x * k
            await asyncio.sleep(0)
            found = tape.gradient(y, x)
        return found

    async def run():
        return await asyncio.gather(*(work(k) for k in range(4)))

    for k, found in enumerate(asyncio.run(run())):
        np.testing.assert_allclose(found, 2 * x * k)


def test_a_tape_dropped_while_recording():
    """A tape that was entered by hand and forgotten goes on recording until it is left: as in TensorFlow."""
    x = jnp.arange(1.0, 4.0)
    tape = tf.GradientTape()
    tape.__enter__()
    tape.watch(x)
    y = x * x
    np.testing.assert_allclose(tape.gradient(y, x), 2 * x)  # stops it
    assert_works()


def test_a_tape_entered_in_jit_and_left_outside():
    """Nonsense, but it must not break the tapes that follow."""
    tape = tf.GradientTape()
    x = jnp.arange(3.0)
    jax.jit(lambda v: (tape.__enter__(), v * 2)[1])(x)
    tape.__exit__(None, None, None)
    assert_works()


def test_what_a_call_stored_is_gone():
    """As an interrupt may leave it: the call is staged anew."""
    x = jnp.array([1.0, -2.0])

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax.nn.relu(x) * 3.0
        return tape.gradient(y, x)

    expected = gradient()
    for kept in (trace._staged._young, trace._staged._old):
        for call in kept.values():
            for store in call.stores:
                if store:
                    store.reset()
    for _ in range(2):
        np.testing.assert_array_equal(gradient(), expected)


class Interrupted:
    """A function that fails at its first call as JAX does where an interrupt has left a mark in its caches."""

    def __init__(self, fn, message="Recursively calling <weakref to 'ClosedJaxpr'>"):
        self.fn, self.message, self.calls = fn, message, 0

    def __call__(self, *args):
        self.calls += 1
        if self.calls == 1:
            raise RecursionError(self.message)
        return self.fn(*args)


def by_dispatch(fn, x):
    return dispatch.run(operation.Op("sin", jnp.sin, fn), (x,))


def by_interception(fn, x):
    found = fence.current_trace()
    return found.run(operation.Op("sin", jnp.sin, fn), (x,)) if type(found) is active.kind else fn(x)


@pytest.mark.parametrize("inside", [True, False], ids=["in a block", "outside"])
@pytest.mark.parametrize("door", [by_dispatch, by_interception])
def test_after_an_interrupt_while_compiling_it_is_done_once_more(door, inside, monkeypatch):
    """JAX would take the call for a recursive one until its caches are cleared."""
    if door is by_interception and not inside:
        pytest.skip("nothing is intercepted")
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    x, fn = jnp.array([1.0, 2.0]), Interrupted(jnp.sin)
    if inside:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = door(fn, x)
        np.testing.assert_allclose(tape.gradient(y, x), jnp.cos(x), rtol=1e-6)
    else:
        np.testing.assert_allclose(door(fn, x), jnp.sin(x), rtol=1e-6)
    assert fn.calls == 2 and cleared == [True]
    assert_works()


def test_a_function_interrupted_while_it_was_compiled(monkeypatch):
    from tapejax.tf.values import staging

    v = tf.Variable(1.0)

    @tf.function
    def step(x):
        return v.assign_add(x) * 1.0

    assert step(1.0).numpy() == 2.0
    monkeypatch.setattr(jax, "clear_caches", lambda: None)
    run = staging.Compiled._run_plain
    interrupted = Interrupted(run)
    monkeypatch.setattr(staging.Compiled, "_run_plain", lambda *args: interrupted(*args))
    assert step(1.0).numpy() == 3.0 and interrupted.calls == 2


def test_a_recursion_of_the_users_is_an_error():
    fn = Interrupted(jnp.sin, "maximum recursion depth exceeded")
    with pytest.raises(RecursionError, match="maximum recursion"):
        by_dispatch(fn, jnp.ones(2))
    assert fn.calls == 1


def test_an_activation_interrupted_while_it_is_made(monkeypatch):
    """It has nothing to end, and says nothing when it goes."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    for made in ((), ("_active",), ("_recording", "_active")):
        activation = object.__new__(active.Activation)
        for name in made:
            setattr(activation, name, [] if name == "_active" else object())
        del activation
        gc.collect()
    assert not said
