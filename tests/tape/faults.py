"""Exceptions from every call of the core, and interrupts at random moments: programs, how they are stopped, and what must hold.

    python -m tests.tape.faults --calls 20000 --interrupts 5000 --seed 0

Each program runs again and again and is stopped each time at another place. After each: JAX's trace is as it was, no tape
records, no variable holds a tracer, nothing of the thread's state is left over, and the next tape gives the right gradient.

`every_call` and `random_calls` raise from a profile function, at the points at which Python looks for signals: when a Python
function begins and when a C function has returned. `interrupts` are real ones (SIGINT), sent by another process.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tapejax as tf
from tapejax.jaxprs import fence as jaxcore
from tapejax.tape import active
from tapejax.tf.ops import random as tf_random
from tapejax.tf.values import reading

PACKAGE = Path(tf.__file__).parent
CORE = tuple(
    str(path)
    for path in (
        *sorted([*PACKAGE.glob("jaxprs/*.py"), *PACKAGE.glob("tape/*.py"), *PACKAGE.glob("execution/*.py")]),
        *(PACKAGE / "tf" / "ops" / f"{name}.py" for name in ("custom_gradient", "registry")),
        *(PACKAGE / "tf" / "values" / f"{name}.py" for name in ("reading", "staging", "structures", "tensor")),
        PACKAGE / "tf" / "programs" / "function.py",
    )
)
# What JAX 0.10 says of a function for good, without tapejax too, if an interrupt came while its cache asked whether to explain
# a miss: the cache takes the function for one that is still being traced (`_weakref_lru_cache` in jax/_src/util.py).
JAXS_OWN = "Recursively calling"
EAGER = jaxcore.current_trace()
NUMPYS_ERRORS = np.geterr()
tape_logger = logging.getLogger("tapejax")
X = jnp.asarray([0.5, -1.0, 2.0], jnp.float32)

# ---- programs -------------------------------------------------------------------------------------------------------

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(make: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[make.__name__] = make
    return make


@program
def both_entrances() -> Any:
    v = watched(tf.Variable([1.0, 2.0, 3.0]))
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(X)
        with tf.GradientTape() as inner:
            inner.watch(X)
            y = jnp.sum(jax.nn.relu(X) * 2.0) + tf.reduce_sum(tf.sin(X) * v)
            y = y + jax.jit(lambda: jnp.sum(X * 3.0))()
        first = inner.gradient(y, X)
        z = jnp.sum(first * first)
    return [first, outer.gradient(z, X), outer.gradient(z, v), *outer.gradient(y, [X, v], output_gradients=y)]


@program
def jacobians() -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = jnp.sin(X) * X
        wide = jnp.stack([X, X * X])
        short = jnp.sum(y)[None]
    rows = jnp.stack([X, X])
    with tf.GradientTape() as batch:
        batch.watch(rows)
        z = rows * rows
    return [tape.jacobian(y, X), tape.jacobian(wide, X), tape.jacobian(short, X), batch.batch_jacobian(z, rows)]


@program
def assigned_variables() -> Any:
    v, w = watched(tf.Variable(2.0), tf.Variable([1.0, 1.0, 1.0]))
    with tf.GradientTape() as tape:
        y = v * tf.reduce_sum(w)
        v.assign(3.0)
        v.assign_add(y)
        w.scatter_nd_update([[1]], [5.0])
        y = y + v * tf.reduce_sum(w)
    return [*tape.gradient(y, [v, w]), v, w]


@program
def functions() -> Any:
    v, count = watched(tf.Variable(2.0), tf.Variable(0, trainable=False))

    class Made(tf.Module):
        scale = None

        @tf.function
        def __call__(self, x: Any) -> Any:
            if self.scale is None:
                self.scale = watched(tf.Variable(tf.ones([3]) * 2.0))
            return x * self.scale

    made = Made()

    @tf.function
    def f(x: Any) -> Any:
        count.assign_add(1)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(made(x) * v)
        with tf.init_scope():
            v.assign(v + 1.0)
        _, total = tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * v), (0, y), maximum_iterations=3)
        count.assign_add(1)
        return total + tf.reduce_sum(tape.gradient(y, x)), tf.random.uniform([])

    with tf.GradientTape() as tape:
        tape.watch(X)
        y, drawn = f(X)
        y = y + f(X)[0]
    gradients = tape.gradient(y, [X, v, made.scale])
    return [*gradients, v, count, made.scale, drawn * 0.0]


@program
def rules() -> Any:
    v = watched(tf.Variable(2.0))

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        def backward(dy: Any, variables: Any = None) -> Any:
            return dy * v * 10.0, [tf.reduce_sum(dy)]

        return x * v, backward

    ours = jax.custom_vjp(lambda x: x * 1.0)
    ours.defvjp(lambda x: (x, x), lambda x, g: (g * 2.0 * x,))
    forward = jax.custom_jvp(lambda x: x * 1.0)
    forward.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 3.0))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = scaled(X)
        z = tf.recompute_grad(lambda x: tf.sin(x) * v)(X)
        both = forward(ours(X))
    jitted = tf.function(lambda x: scaled(x))
    with tf.GradientTape() as traced:
        traced.watch(X)
        again = jitted(X)
    return [*tape.gradient(y, [X, v]), *tape.gradient(z, [X, v]), tape.gradient(both, X), traced.gradient(again, X)]


@program
def forward_mode() -> Any:
    direction = jnp.ones_like(X)
    with tf.autodiff.ForwardAccumulator(X, direction) as outer:
        with tf.autodiff.ForwardAccumulator(X, direction) as inner:
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = jnp.sum(tf.sin(X) * jnp.tanh(X))
            first = tape.gradient(y, X)
        second = inner.jvp(first)
    return [first, second, outer.jvp(second)]


def quietly(gradient: Callable, *args: Any) -> Any:
    """Not even the tape complains of a gradient inside its block."""
    level = tape_logger.level
    try:
        tape_logger.setLevel("ERROR")
        return gradient(*args)
    finally:
        tape_logger.setLevel(level)


@program
def in_and_out() -> Any:
    v = watched(tf.Variable(3.0))
    with tf.GradientTape(persistent=True) as tape:
        a = v * 2.0
        with tape.stop_recording():
            b = v * 100.0
        c = quietly(tape.gradient, a, v) * v * b
        tape.reset()
        d = v * v * jnp.asarray(c)
    with tf.GradientTape() as other:
        e = v * v
        found = other.gradient(e, v)
    function = tape.as_function(d, [v])
    return [b, c, tape.gradient(d, v), found, function([jnp.float32(2.0)])]


@program
def inside_jax() -> Any:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sum(jnp.sin(x) ** 2) + jax.lax.fori_loop(0, 2, lambda _, c: c * 2.0, jnp.sum(x))
        return tape.gradient(y, x)

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(jax.vmap(slope)(X)) + jax.grad(lambda x: jnp.sum(slope(x) ** 2))(X).sum() + jax.jit(slope)(X).sum()
    return [tape.gradient(y, X)]


# ---- what must hold -------------------------------------------------------------------------------------------------

_variables: list[Any] = []


def _thread_state() -> dict[str, Any]:
    """What the modules of tapejax keep for each thread."""
    return {
        f"{module.__name__}.{name}": repr(_fields(value))
        for module in list(sys.modules.values())
        if module.__name__.startswith("tapejax")
        for name, value in vars(module).items()
        if isinstance(value, threading.local)
    }


def _fields(state: threading.local) -> dict[str, Any]:
    """Its fields, those too that are as the class has them; not how many variables were made, which is not put back."""
    names = sorted({*vars(type(state)), *vars(state)} - {"variables_made"})
    return {name: getattr(state, name) for name in names if not name.startswith("__")}


AT_REST: dict[str, Any] = {}  # filled when the first program has run in peace


def watched(*variables: Any) -> Any:
    """The variables, which are looked at after the program."""
    _variables.extend(variables)
    return variables if len(variables) > 1 else variables[0]


def checked() -> list[str]:
    """What is not as it should be when no tape records; it is put right."""
    wrong = []
    if (trace := jaxcore.trace_reference.value) is not EAGER:
        wrong.append(f"JAX's trace is {trace!r}")
    if jaxcore.core.trace_state.value is not EAGER._weakref:
        wrong.append("JAX's compiled functions are looked up for another trace")
    if active.active_recordings() or active._eager_recordings.active:
        wrong.append("a tape records")
    if reading.context.capture is not None:
        wrong.append("a function is being traced")
    if reading.tracing._is_owned():  # type: ignore[attr-defined]
        wrong.append("the lock of tracing is held")
    wrong += [f"{v.name} holds {v._array!r}" for v in _variables if isinstance(v._array, jax.core.Tracer)]
    if any(isinstance(x, jax.core.Tracer) for x in (tf_random.state.seed, tf_random.state.count)):
        wrong.append("the state of random numbers holds a tracer")
    wrong += [f"{name} is {state}" for name, state in _thread_state().items() if state != AT_REST[name]]
    del _variables[:]
    if np.geterr() != NUMPYS_ERRORS:
        wrong.append(f"NumPy's handling of errors is {np.geterr()}")
        np.seterr(**NUMPYS_ERRORS)
    if wrong:
        jaxcore.set_trace(EAGER)
        del active._eager_recordings.active[:]
        reading.context.capture = None
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(jax.nn.relu(X) * 2.0) + tf.reduce_sum(tf.square(X))
    if not np.allclose(tape.gradient(y, X), [3.0, -2.0, 6.0]):
        wrong.append("the next gradient is not right")
    return wrong


class Stopped(BaseException):
    """As KeyboardInterrupt: no `Exception`."""


def answer(run: Callable[[], Any]) -> list[Any]:
    return [np.asarray(x) for x in run()]


def expect(run: Callable[[], Any], expected: list[Any]) -> list[str]:
    """What is wrong when the program runs through."""
    found = answer(run)
    same = len(found) == len(expected) and all(
        np.allclose(a, b, rtol=1e-5, equal_nan=True) for a, b in zip(found, expected)
    )
    return checked() + ([] if same else [f"{run.__name__} gives {found}, not {expected}"])


# ---- stopped at a call ----------------------------------------------------------------------------------------------


class Raiser:
    """A profile function that raises at one of the points at which an interrupt could come; `stop` chooses it."""

    def __init__(self, stop: Callable[[Any], bool]):
        self._stop = stop
        self.where = ""

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            caller = frame.f_back
            if frame.f_code.co_filename not in CORE and (caller is None or caller.f_code.co_filename not in CORE):
                return
            point = "enter", frame.f_code, caller and caller.f_code, caller and caller.f_lasti
        elif event == "c_return" and frame.f_code.co_filename in CORE:
            point = "return", getattr(argument, "__name__", ""), frame.f_code, frame.f_lasti
        else:
            return
        if self._stop(point):
            sys.setprofile(None)
            self.where = f"{point[0]} {getattr(point[1], 'co_qualname', point[1])} at {frame.f_code.co_filename}:{frame.f_lineno}"
            raise Stopped(self.where)


def stopped(run: Callable[[], Any], stop: Callable[[Any], bool]) -> tuple[str, list[str]]:
    """Where the program was stopped ("" if it ran through), and what is not as it should be afterwards."""
    raiser = Raiser(stop)
    unraisable, sys.unraisablehook = sys.unraisablehook, lambda _: None  # in a destructor it goes no further
    try:
        sys.setprofile(raiser)
        try:
            run()
        finally:
            sys.setprofile(None)
    except Stopped:
        pass
    except Exception as error:  # what JAX makes of it
        if not raiser.where:
            raise
        traceback.clear_frames(error.__traceback__)
    finally:
        sys.unraisablehook = unraisable
    return raiser.where, checked()


def every_call(name: str) -> tuple[int, list[str]]:
    """Stops the program once at each call instruction of the core that it gets to: how many there were, what was wrong."""
    run = PROGRAMS[name]
    done: set[Any] = set()

    def stop(point: Any) -> bool:
        if point in done:
            return False
        done.add(point)
        return True

    wrong = []
    while True:
        where, found = stopped(run, stop)
        wrong += [f"{name}: {where}: {what}" for what in found]
        if not where:
            return len(done), wrong + expect(run, expected(name))


def random_calls(name: str, count: int, seed: int) -> list[str]:
    """Stops the program `count` times, each time at a random one of all its calls."""
    run, rng = PROGRAMS[name], random.Random(seed)
    passed = [0]

    def counting(_: Any) -> bool:
        passed[0] += 1
        return False

    stopped(run, counting)
    total, wrong = passed[0], []
    for _ in range(count):
        left = [rng.randrange(total)]

        def stop(_: Any, left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] < 0

        where, found = stopped(run, stop)
        wrong += [f"{name}: {where}: {what}" for what in found]
    return wrong + expect(run, expected(name))


_expected: dict[str, list[Any]] = {}


def expected(name: str) -> list[Any]:
    """What the program gives in peace. Call it first before the program is disturbed."""
    if name not in _expected:
        _expected[name] = answer(PROGRAMS[name])
        del _variables[:]
        AT_REST.update(_thread_state())
    return _expected[name]


# ---- interrupted ----------------------------------------------------------------------------------------------------

SENDER = """
import os, random, sys, time
pid, longest, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
while sys.stdin.readline():
    time.sleep(rng.random() * longest)
    os.kill(pid, 2)
"""


@contextlib.contextmanager
def sender(longest: float, seed: int) -> Iterator[Callable[[], None]]:
    """A process that sends one SIGINT, at a random time of up to `longest` seconds after it was asked to."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", SENDER, str(os.getpid()), str(longest), str(seed)],
        stdin=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None

    def send() -> None:
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]

    try:
        yield send
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def _in_jax_alone(frame: Any) -> bool:
    """Whether an interrupt came where a program calls JAX outside of any tape: JAX's trace may stay what JAX had set (in its
    `bind`, in one of some ten thousand interrupts), as it may without tapejax."""
    while frame is not None and frame.f_code.co_filename != __file__:
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            return False
        frame = frame.f_back
    return not active.active_recordings() and not active._eager_recordings.active


def interrupts(count: int, seed: int, programs: list[str]) -> tuple[int, list[str]]:
    """Interrupts the programs in turn, `count` times in all: how many came while one ran, and what was wrong."""
    armed = pending = False

    def interrupted(_: int, frame: Any) -> None:
        nonlocal armed, pending
        pending = False
        if _in_jax_alone(frame):
            return
        if armed:
            armed = False
            raise KeyboardInterrupt

    hits, wrong = 0, []
    before = signal.signal(signal.SIGINT, interrupted)
    unraisable, sys.unraisablehook = sys.unraisablehook, lambda _: None  # one that came in a destructor or callback
    try:
        for i, name in enumerate(programs):
            run, wanted = PROGRAMS[name], expected(name)
            begin = time.perf_counter()
            run()
            del _variables[:]
            longest = (time.perf_counter() - begin) * 1.2
            share = count // len(programs) + (i < count % len(programs))
            with sender(longest, seed + i) as send:
                while share > 0:
                    if not pending:
                        pending = True
                        send()
                    try:
                        armed = True
                        run()
                        armed = False
                        del _variables[:]
                        continue
                    except KeyboardInterrupt:
                        pass
                    except Exception as error:  # what JAX makes of it
                        if armed:  # or an earlier interrupt has left something behind
                            armed = False
                            jax.clear_caches()
                            if JAXS_OWN not in str(error):
                                last = traceback.extract_tb(error.__traceback__)[-1]
                                where = f"{last.filename}:{last.lineno}"
                                wrong.append(f"{name}, after interrupt {hits}: {error!r:.200} ({where})")
                        traceback.clear_frames(error.__traceback__)
                    hits, share = hits + 1, share - 1
                    wrong += [f"{name}, interrupt {hits}: {what}" for what in checked()]
                while pending:
                    time.sleep(0.001)
            wrong += expect(run, wanted)
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = unraisable
    return hits, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=0, help="random calls to stop at, in all programs together")
    parser.add_argument("--every", action="store_true", help="stop at every call instruction")
    parser.add_argument("--interrupts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", action="append", choices=list(PROGRAMS), help="only these")
    given = parser.parse_args()
    chosen = given.program or list(PROGRAMS)
    assert threading.current_thread() is threading.main_thread()
    begin, wrong = time.perf_counter(), []
    for name in chosen:
        expected(name)
        if given.every:
            count, found = every_call(name)
            print(f"{name}: stopped at {count} calls, {len(found)} wrong", flush=True)
            wrong += found
        if given.calls:
            found = random_calls(name, given.calls // len(chosen), given.seed)
            print(f"{name}: stopped at {given.calls // len(chosen)} random calls, {len(found)} wrong", flush=True)
            wrong += found
    if given.interrupts:
        hits, found = interrupts(given.interrupts, given.seed, chosen)
        print(f"{hits} interrupts, {len(found)} wrong")
        wrong += found
    for what in wrong[:50]:
        print("WRONG", what)
    print(f"seed {given.seed}, {time.perf_counter() - begin:.0f} s, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
