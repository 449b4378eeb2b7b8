"""A ``GradientTape`` for JAX, the whole idea in one file. Start here: nothing below needs the rest of tapejax.

A tape is a way to get a *function* back out of code that has already run; for functions, JAX has the calculus.

1. **Record.** JAX hands each operation to its *current trace*. In the ``with`` block that is a `_Recorder`, which runs it
   as JAX would have, so that values are ordinary arrays, and notes ``(operation, inputs, outputs)`` on the tape.
2. **Replay.** A value is recognised by the identity of its array. Put another array in the place of a source, run the
   noted operations again, and take what comes out in the place of the target: a pure function of the source.
3. **Delegate.** ``gradient`` is `jax.vjp` of that function, ``jacobian`` is `jax.jacrev` of it.

    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> with GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = jnp.sum(jnp.sin(x) * x)
    >>> print(tape.gradient(y, x))
    [ 1.3817732   0.07700372 -2.8288574 ]

What this file lacks, and which others exist for it:

* *Speed.* Every tape and every source is traced anew. ``tape/trace.py`` has one trace for all tapes, ``tape/sweep.py`` serves
  all sources together, ``execution/recognition.py`` recognises what was recorded before, ``execution/schedule.py`` compiles it.
* *Closures.* What a jitted function closes over is a constant of it: its gradients are lost in silence. ``jaxprs/lifting.py``
  turns such constants into inputs; ``jaxprs/calls.py`` records custom rules also inside `jax.grad`, where this tape fails.
* *TensorFlow.* Values are arrays, to be watched; there is no Variable and no check; complex gradients, and second ones of
  custom gradients, follow JAX's conventions. See ``tf/values/``, ``tf/ops/`` and ``tape/``.
"""

import contextlib

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun, set_current_trace, take_current_trace

custom_gradient = jax.custom_gradient  # JAX has TensorFlow's decorator, made of jax.custom_vjp


class GradientTape:
    """Records what JAX executes in its ``with`` block, and differentiates it. Sources and targets are pytrees of arrays."""

    def __init__(self, persistent=False):
        self.persistent, self.recording = persistent, True
        self.reset()

    def reset(self):
        """Forgets what was recorded and what is watched."""
        self.answered, self.entries = False, []  # (operation, inputs, outputs) of what was computed from watched values
        self.known = {}  # by id: what is watched, and what was computed from it; kept alive, or an id would be used again

    def __enter__(self):
        with take_current_trace() as outer:
            self._block = set_current_trace(_Recorder(outer, self))
        self._block.__enter__()
        return self

    def __exit__(self, *error):
        return self._block.__exit__(*error)

    def watch(self, values):
        """Makes arrays sources: what is computed from them is recorded from here on."""
        self.known.update({id(x): x for x in jax.tree.leaves(values)})

    @contextlib.contextmanager
    def stop_recording(self):
        """A block inside the block that is not recorded."""
        self.recording = False
        try:
            yield
        finally:
            self.recording = True

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        """The gradient of the sum of all targets, each times its output gradient if there are any."""

        def derivative(f, x):
            y, pullback = jax.vjp(f, x)
            return pullback(jax.tree.map(jnp.ones_like, y) if output_gradients is None else output_gradients)[0]

        return self._derive(derivative, target, sources, unconnected_gradients)

    def jacobian(self, target, sources):
        """The derivative of each element of the target with respect to each of the source."""
        return self._derive(lambda f, x: jax.jacrev(f)(x), target, sources)

    def batch_jacobian(self, target, source):
        """The Jacobian of each row of the target with respect to the same row of the source; it may depend on no other."""
        summed = self._derive(lambda f, x: jax.jacrev(lambda x: f(x).sum(0))(x), target, source)
        return summed if summed is None else jnp.moveaxis(summed, target.ndim - 1, 0)

    def _derive(self, derivative, target, sources, unconnected="none"):
        if self.answered and not self.persistent:
            raise RuntimeError("This tape has answered: make it with persistent=True to ask more than once.")
        self.answered, entries = True, tuple(self.entries)

        def with_respect_to(source):
            def replay(x):
                now = {id(source): x}
                for operation, inputs, outputs in entries:
                    if any(id(i) in now for i in inputs):
                        again = operation(*(now.get(id(i), i) for i in inputs))
                        now.update(zip(map(id, outputs), jax.tree.leaves(again), strict=True))
                return jax.tree.map(lambda y: now.get(id(y), y), target)

            if id(source) in self.known and _connected(replay, source):
                return derivative(replay, source)
            return None if unconnected == "none" else jnp.zeros_like(source)

        return jax.tree.map(with_respect_to, sources)


class _Recorder(jax.core.Trace):
    """Runs each operation under the trace that was current before, and notes it on the tape."""

    def __init__(self, outer, tape):
        super().__init__()
        self.requires_low = False  # how an operation is lowered is for the outer trace to decide
        self.outer, self.tape = outer, tape

    def stage_value(self, value):
        return self.outer.stage_value(value)

    def process_primitive(self, primitive, inputs, params, /):
        return self.record(lambda *xs: primitive.bind(*xs, **params), inputs)

    def process_custom_jvp_call(self, primitive, *functions, **params):
        *functions, inputs = functions  # these can be called once; a jaxpr of the call keeps the rule, and runs again
        with set_current_trace(self.outer):
            jaxpr = jax.make_jaxpr(lambda *xs: primitive.bind(*xs, subfuns=functions, **params))(*inputs)
        return self.record(jaxpr_as_fun(jaxpr), inputs)

    process_custom_vjp_call = process_custom_jvp_call

    def record(self, operation, inputs):
        with set_current_trace(self.outer):
            outputs = operation(*inputs)
            # stop_gradient returns the array that it was given: another value of the tape, in need of another identity
            outputs = jax.tree.map(lambda out: jnp.copy(out) if any(out is x for x in inputs) else out, outputs)
        if self.tape.recording and any(id(x) in self.tape.known for x in inputs):
            self.tape.entries.append((operation, inputs, jax.tree.leaves(outputs)))
            self.tape.watch(outputs)
        return outputs


def _connected(f, x):
    """Whether a derivative passes from x to f(x). Where none does, JAX's tangent of f(x) is a symbolic zero."""
    tangents = []
    probe = jax.custom_jvp(lambda *ys: ys)
    probe.defjvp(lambda ys, dys: (ys, tangents.extend(dys) or ys), symbolic_zeros=True)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        jax.eval_shape(lambda x: jax.jvp(lambda x: probe(*jax.tree.leaves(f(x))), [x], [x]), x)
    return not all(isinstance(dy, jax.custom_derivatives.SymbolicZero) for dy in tangents)
