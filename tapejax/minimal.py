"""A ``GradientTape`` for JAX, the whole idea in one file. Start here: nothing below needs the rest of tapejax.

A tape is a way to get a *function* back out of code that has already run; for functions, JAX has the calculus.

1. **Record.** JAX hands each operation to its *current trace*. In the ``with`` block that is a `_Recorder`, which runs it
   as JAX would have, so that values are ordinary arrays, and notes ``(operation, inputs, outputs)`` on the tape.
2. **Sweep.** The chain rule from back to front: each noted operation, the last one first, takes the cotangents of its
   outputs back to its inputs, where they are added up. A value is recognised by the identity of its array.
3. **Delegate.** What one operation does to cotangents is JAX's: `jax.vjp` of it. ``jacobian`` is the sweep under `jax.vmap`.

    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> with GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = jnp.sum(jnp.sin(x) * x)
    >>> print(tape.gradient(y, x))
    [ 1.3817732   0.07700372 -2.8288574 ]

What it lacks, and where that is: *speed* (one trace for all tapes, ``tape/trace.py``; what was recorded before is recognised
and compiled, ``execution/``); gradients of what a jitted function *closes over*, which are lost in silence, and custom rules
inside `jax.grad` (``jaxprs/``); *TensorFlow's* Variables, checks, and its conventions of complex gradients (``tf/``).
"""

import contextlib
import functools

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
        targets = jax.tree.leaves(target)
        ends = jax.tree.map(jnp.ones_like, targets) if output_gradients is None else jax.tree.leaves(output_gradients)
        back = {key: ct for key, ct in self._sweep(targets, ends).items() if key in self.known}
        zeros = (lambda x: None) if unconnected_gradients == "none" else jnp.zeros_like
        return jax.tree.map(lambda x: back[id(x)] if id(x) in back else zeros(x), sources)

    def jacobian(self, target, sources):
        """The derivative of each element of the target with respect to each of the source: a sweep for each element."""
        rows = jnp.eye(target.size, dtype=target.dtype).reshape(target.size, *target.shape)
        stacked = jax.vmap(lambda row: self.gradient(target, sources, row))(rows)
        return jax.tree.map(lambda x: x.reshape(*target.shape, *x.shape[1:]), stacked)

    def batch_jacobian(self, target, source):
        """The Jacobian of each row of the target with respect to the same row of the source; it may depend on no other."""
        columns = jnp.eye(target[0].size, dtype=target.dtype).reshape(-1, 1, *target.shape[1:])
        pulled = jax.vmap(lambda column: self.gradient(target, source, column + jnp.zeros_like(target)))(columns)
        return pulled if pulled is None else jnp.moveaxis(pulled, 0, 1).reshape(*target.shape, *source.shape[1:])

    def _sweep(self, targets, cotangents):
        """The cotangent of each value by its id: the entries from the last to the first, each pulled back by JAX."""
        if self.answered and not self.persistent:
            raise RuntimeError("This tape has answered: make it with persistent=True to ask more than once.")
        self.answered, back = True, {}
        for y, cotangent in zip(targets, cotangents, strict=True):
            back[id(y)] = back.get(id(y), 0) + cotangent
        for operation, inputs, outputs in reversed(tuple(self.entries)):
            reached = [j for j, y in enumerate(outputs) if id(y) in back]
            for i, x in enumerate(inputs if reached else ()):
                at = functools.partial(_at, operation, inputs, i, reached)
                if id(x) in self.known and _connected(at, x):
                    (cotangent,) = jax.vjp(at, x)[1]([back[id(outputs[j])] for j in reached])
                    back[id(x)] = back.get(id(x), 0) + cotangent
        return back


def _at(operation, inputs, i, wanted, x):
    """The outputs of an operation that are wanted, as a function of its input `i`."""
    outputs = jax.tree.leaves(operation(*inputs[:i], x, *inputs[i + 1 :]))
    return [outputs[j] for j in wanted]


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
