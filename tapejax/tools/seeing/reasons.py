"""The reasons for a missing gradient, as a table: for each case what happened, and the one change that fixes it."""

from __future__ import annotations

import ast
import textwrap
from typing import Any, NamedTuple

from ...tape.recording import Entry
from ...tape.where import Line, line_of
from .listing import name_of

# How wide text is printed.
WIDTH = 96


class Reason(NamedTuple):
    """Why there is no gradient: a `kind` for programs, what happened, the one change that fixes it; where it is known, the
    operation and the line at which the path broke."""

    kind: str
    message: str
    remedy: str
    operation: str | None = None
    line: Line | None = None

    def __str__(self) -> str:
        where = [f"  {self.line}  {self.line.text}"] if self.line else []
        remedy = textwrap.wrap(self.remedy, WIDTH, initial_indent="-> ", subsequent_indent="   ")
        return "\n".join([*textwrap.wrap(self.message, WIDTH), *where, *remedy])


class At(NamedTuple):
    """An operation and a line, either of which may be unknown."""

    operation: str | None = None
    line: Line | None = None


def at(entry: Entry | None) -> At:
    """Where an entry ran."""
    return At() if entry is None else At(name_of(entry), line_of(entry.where))


def reason(case: str, at: At = At(), **values: Any) -> Reason:  # noqa: B008
    """The `Reason` of a case of `CASES`, with `values` filled in. What stands before a colon in the case is the kind."""
    message, remedy = (text.format(**{"operation": at.operation, **values}) for text in CASES[case])
    return Reason(case.partition(":")[0], message, remedy, *at)


def as_code(name: str) -> str:
    """A name as it would stand in code; a library's own name for its variable does not."""
    try:
        ast.parse(name, mode="eval")
    except SyntaxError:
        return "..."
    return "..." if "/" in name else name


_INTO_BLOCK = "move this line, and what is computed from it, into the `with` block"
_TO_WATCH = "call tape.watch({code}) in the block, before it is used"
_SMOOTH = (
    "keep this path in floating point; in place of a hard choice (argmax, round, a comparison) use a smooth one (softmax, "
    "sigmoid, where on the values)"
)

# Why an operation passes nothing on, and what to do: of those by which that happens to training programs.
FLAT = {
    name: (why, cure)
    for names, why, cure in (
        (
            "relu relu6",
            "; below zero {operation} is flat",
            "take other initial values or a smaller step, or leaky_relu in place of {operation}",
        ),
        (
            "sigmoid logistic tanh softmax",
            "; far from zero {operation} is saturated",
            "bring {value} near zero: scale the inputs, take smaller initial weights; in a loss, leave {operation} out and give "
            "the logits to the function that takes them (..._with_logits, from_logits=True)",
        ),
        (
            "multiply mul matmul dot dot_general",
            "; a product passes on zero where the other factor is zero",
            "see where the zeros come from: layers whose weights are all zero hold each other there, so begin with random "
            "numbers (glorot_uniform); a mask of zeros, as of dropout, passes nothing on",
        ),
        (
            "clip clip_by_value",
            "; beyond its limits {operation} is flat",
            "widen the limits, or leave {value} as it is and clip the gradients (tf.clip_by_norm)",
        ),
        (
            "maximum minimum max min where select_n",
            "; {operation} chose the other side",
            "see why {operation} chooses the other side everywhere; where it is a dropout, take a smaller rate",
        ),
        ("dropout", "; it set every element to zero", "take a smaller rate"),
    )
    for name in names.split()
}
NOT_FLAT = "", "change the values (other initial ones, a smaller step), or take an operation that is not flat there"

CASES: dict[str, tuple[str, str]] = {
    # ---- the tape ----
    "not recorded": (
        "the tape recorded nothing: it was never entered, and gradient() raises RuntimeError.",
        "compute the target inside `with tape:`",
    ),
    "used up": (
        "the tape is used up: it is not persistent, and its one gradient was taken already. gradient() raises RuntimeError.",
        "make it GradientTape(persistent=True), or ask for all sources in one gradient() call; call explain() before it",
    ),
    "reset: source": (
        "{name} was watched or computed before tape.reset(), which forgets everything",
        "call tape.watch({name}) after the reset, or do not reset",
    ),
    "reset: target": (
        "{target} was computed before tape.reset(), which forgets everything",
        "compute it after the reset, or do not reset",
    ),
    "reset: part": (
        "{part}, from which the target was computed, was made before tape.reset(), which forgets it",
        "compute it again after the reset, or do not reset",
    ),
    # ---- the source ----
    "integer: source": (
        "{name} is {type}: only floating-point and complex values carry gradient",
        "make {name} a float before it is watched: tf.cast({name}, tf.float32), {name}.astype(jnp.float32)",
    ),
    "never watched": (
        "{name} was never watched: a tape watches trainable Variables by itself, and nothing else{after}",
        _TO_WATCH,
    ),
    "never watched: outside the block": (
        "tape.watch({name}) was called outside the tape's block, where it has no effect",
        "move this line into the block, before the first use",
    ),
    "never watched: computed": (
        "{name} was computed on the tape by {operation}, but from nothing that the tape watches",
        "call tape.watch({name}) right after that line, or watch what it is computed from",
    ),
    "watched late": (
        "{uncounted}{name} was used by {operation} before tape.watch({name}){where}: what was recorded earlier took it for a "
        "constant",
        "move tape.watch({name}) above this line",
    ),
    "new tensor": (
        "{name} is a tensor of its own: a slice, a copy or the like that no operation in the block used. A tape knows the values "
        "that it has seen, and not what such a tensor was made from",
        "take the gradient with respect to {of}, and slice that; or make the slice or copy in the block, and compute {target} "
        "from it",
    ),
    "not trainable": (
        "{name} is a Variable with trainable=False: a tape does not watch it of its own accord",
        f"make it trainable, or {_TO_WATCH}",
    ),
    "not watching": (
        "the tape was made with watch_accessed_variables=False, and {name} was not watched by hand",
        f"{_TO_WATCH}; or leave watch_accessed_variables on",
    ),
    "replaced": (
        "{name} is a Tensor now, no longer the Variable of {former}: this line put a new tensor in its place, which the tape "
        "does not watch",
        "change the Variable, not the name: {name}.assign(...), {name}.assign_add(...), {name}.assign_sub(...)",
    ),
    "replaced: in a library": (
        "{name} holds another value now than when the tape saw it (by all appearance {seen}, which {operation} used): a "
        "library's variable is known by the array in it",
        "take the gradient before the variable is changed, or " + _TO_WATCH,
    ),
    "another value": (
        "this {name} is not {former}: {operation} made it here, and the gradient is the one with respect to this value",
        "for the gradient with respect to the other, keep both: give what this line computes a name of its own",
    ),
    "another value: not watched": (
        "this {name} is not {former}: the name means another value now, which the tape does not watch",
        "ask for the value that was watched: give the new one a name of its own",
    ),
    "swapped": (
        "the arguments are swapped: {name} was computed from {target}, and not {target} from {name}",
        "the target comes first, then the sources: gradient({name}, {target})",
    ),
    # ---- connected, and not what was meant ----
    "zero": (
        "the gradient is zero from {operation} on: to first order {target} does not change with {value}, which is {values}{why}",
        "where {target} has a minimum there is nothing to fix; else {cure}",
    ),
    "zero: further": (
        "{operation} would pass on nothing in any case: {value} is {values}{why}",
        "{cure}",
    ),
    "zero: sum": (
        "the gradient is zero: what comes back to {name} along several ways adds up to zero",
        "if {target} should change with {name}, see whether the lines that use {name} compute what they should",
    ),
    "not finite": (
        "the gradient is {value}, and tape.check_numerics finds where it begins. {said}",
        "{cure}",
    ),
    "squashed twice": (
        "{operation} takes logits and applies a {first} of its own, and {value} is the result of {first} already",
        "give it what {first} was applied to: a last layer without activation; or, with Keras, from_logits=False",
    ),
    "broadcast": (
        "{operation} makes {shape} of {column} {column_shape} and {row} {row_shape}: each element of one with each of the other",
        "if they belong together element by element, give both one shape: tf.reshape({column}, {row_shape})",
    ),
    # ---- operations on the way ----
    "integer: target": (
        "the target {target} is {type}{made_by}: integers and booleans do not vary smoothly: they have no derivative",
        "take the gradient of the floating-point value that it was made from",
    ),
    "integer": (
        "{name} turned {value} ({type}) into {out} ({out_type}): no gradient passes through integers and booleans",
        _SMOOTH,
    ),
    "integer: inside": (
        "{name}, inside {called}, makes integers or booleans of what comes from {value}: no gradient passes through these",
        _SMOOTH,
    ),
    "stop_gradient": (
        "{name} was applied to {value}: what comes out is a constant to every derivative",
        "use {value} itself where the gradient should flow",
    ),
    "stop_gradient: inside": (
        "{name}, inside {called}, stands on the way from {value}: what comes out is a constant to every derivative",
        "take it out of {called}",
    ),
    "shape": (
        "{binds} takes only the shape and dtype of {name}: it does not depend on its values",
        "compute it from the values of {name}; or pass unconnected_gradients='zero' if zero is what you mean",
    ),
    "no derivative": (
        "the derivative of {said} with respect to {value} is zero everywhere, so {out} carries no gradient: a tape says None, "
        "where jax.grad gives zeros",
        "use a smooth operation in its place, or give it a gradient of your own with tapejax.custom_gradient",
    ),
    "no derivative: linear": (
        "the derivative of {first}, which another tape took, does not depend on {value}: {first} is linear there, so {out} is a "
        "constant",
        "there is nothing to fix: it is zero; unconnected_gradients='zero' gives zeros in place of None",
    ),
    "custom gradient": (
        "the gradient function of {operation}, a custom_gradient, returned None: it says that nothing depends on its argument, "
        "and so not on {name}",
        "return a gradient from it; zeros, if it is zero",
    ),
    "not differentiable": (
        "{operation} leads from {name} to the target, and gradient() raises {error}: {said}",
        "{remedy}",
    ),
    # ---- out of the tape's sight ----
    "state": (
        "the path goes through the state of {holder}: a Variable that is assigned keeps the number, not how it was computed",
        "compute the target from the value itself, and assign it to the Variable beside that",
    ),
    "state: new variable": (
        "line {line} makes a new Variable{called}, and a Variable keeps the number that it is given, not how it was computed: "
        "the path from {name} ends there",
        "make Variables before the block, and compute with the tensor itself: without tf.Variable(...) on this line",
    ),
    "stopped": (
        "{binds} was computed while recording was stopped (tape.stop_recording()): the tape takes it for a constant",
        "move this line out of the stop_recording() block",
    ),
    "thread": (
        "{binds} was computed in another thread: a tape records the thread that entered it",
        "compute it in the tape's thread, or enter a tape in the thread that computes",
    ),
    "python": (
        "{binds} was computed by NumPy or plain Python, which the tape does not see: to it the result is a new constant",
        "use the jnp or tf function of the same name, and do not convert (float(), np.asarray(), .numpy()) on the way",
    ),
    "python: part": (
        "the gradient{value} is that of a part of {target} only: {binds}, which enters it, left the tape here for NumPy or "
        "plain Python, and counts as a constant",
        "use the jnp or tf function of the same name, and do not convert (float(), np.asarray(), .numpy()) on the way; if a "
        "constant is meant, tf.stop_gradient says so",
    ),
    "python: number": (
        "the {role} {name} is a {made_by} and no tensor: the tape does not see what such a number is computed from, and "
        "gradient() raises TypeError",
        "pass the tensor or variable itself: float(), .numpy(), np.asarray() and get_weights() give copies; or compute it in "
        "jnp or tf",
    ),
    "python: predict": (
        "{binds} was computed by predict(), which runs outside of the tape and gives a NumPy array: to the tape a constant",
        "call the model itself in the block: model(x), or model(x, training=True)",
    ),
    "before": (
        "{binds} was computed before the tape's block, which begins at line {line}",
        _INTO_BLOCK,
    ),
    "after": ("{binds} was computed after the tape's block, which ends at line {line}", _INTO_BLOCK),
    "outside: elsewhere": ("{binds} was computed outside the tape's block", _INTO_BLOCK),
    "outside": (
        "{target} is no result of anything that the tape recorded: it was computed before, after or outside its block{stopped}, "
        "in another thread, or by NumPy",
        "compute it inside `with tape:`, with jnp or tf operations",
    ),
    "unrelated: not read": (
        "{name} was not read while the tape recorded, so {target} does not depend on it",
        "use {name} itself in the block: not a value that was read from it before, and not its .numpy()",
    ),
    "unrelated": (
        "nothing on the tape leads from {name} to {target}{ends}",
        "compute {target} from {name}, or pass unconnected_gradients='zero' if zero is what you mean",
    ),
}
