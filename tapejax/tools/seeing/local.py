"""The local derivative of an operation: the factor between the cotangents of its result and of an input.

Every number is computed by JAX, through `tape.sweep`. The rules of local.ini only say how a derivative is written; one is shown
where its value is JAX's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...jaxprs.dependence import is_key
from ...jaxprs.types import Value
from ...tape import operation
from ...tape.operation import Op
from ...tape.pullback import PullbackOp
from ...tape.recording import Entry, is_deleted
from ...tape.slicing import Step
from ...tf.values.shown import CELLS, number_text, unreadable
from ...tf.values.types import Array
from .listing import Names, name_of, options
from .steps import wide
from .tables import cut, tables

# By the name of an operation the rules for its inputs: factors, and what passes on cotangents and tangents of matrices.
ELEMENTWISE, BACK, FORWARD = (
    {name: list(map(str.strip, rules.split("|"))) for names, rules in table.items() for name in names.split()}
    for table in tables(Path(__file__).with_suffix(".ini")).values()
)
_FUNCTIONS = {name: getattr(np, name) for name in "cos sin cosh sinh exp log sign".split()}


class Local(NamedTuple):
    """How a cotangent passes an operation, and a tangent.

    `value` is the factor, where it is formed: of the shape of the input or of the result it is multiplied with elementwise, and
    summed over what was broadcast or reduced; a `matrix` is the Jacobian of what is flattened. `rule` says how it is written;
    without a `value`, `back` and `forward` do, and `shapes` of what.
    """

    rule: str = ""
    value: Array | None = None
    matrix: bool = False
    back: str = ""
    forward: str = ""
    shapes: str = ""


class StepAtInput(NamedTuple):
    """A step of the backward pass, at one of the inputs: the cotangent that came in, and the part that goes out there."""

    entry: Entry
    step: Step
    i: int
    cotangents: Mapping[int, Array]  # by the position of the output
    part: Array
    names: Names
    of: str

    def run(self, derivative: Callable[..., Op], x: Array) -> Array:
        """The pullback of one cotangent, or the pushforward of one tangent."""
        op = derivative(self.step.op, (self.i,), tuple(self.cotangents), self.step.perturbed)
        return self.step.op.run_derivative(op, (*self.entry.inputs, x))[0]


def local(at: StepAtInput) -> Local:
    """The local derivative with respect to an input."""
    x = at.entry.inputs[at.i]
    outputs = [at.entry.outputs[j] for j in at.cotangents]
    shapes = f"{sum(z.size for z in outputs)}×{x.size}"
    if isinstance(at.step.op, PullbackOp):
        return Local(back="the operation's own gradient function", shapes=shapes)
    numbers = not any([unreadable(v) or is_deleted(v) for v in (*at.entry.inputs, *outputs, at.part)])
    if not numbers or len(outputs) > 1 or jnp.iscomplexobj(x) or jnp.iscomplexobj(outputs[0]):
        return Local(shapes=shapes)
    with np.errstate(all="ignore"):
        return _of_table(at, x, *outputs) or _of_jacobian(at, x, *outputs) or Local(shapes=shapes)


def _of_table(at: StepAtInput, x: Array, z: Array) -> Local | None:
    """The local derivative of an operation that has a rule, if the rule gives JAX's numbers."""
    name, (cotangent,) = name_of(at.entry), at.cotangents.values()
    values = _environment(at, z)
    if at.i < len(rules := ELEMENTWISE.get(name, ())):
        factor = at.run(operation.pushforward, jnp.ones_like(x))
        product, rule = _summed_to(wide(cotangent) * wide(factor), x.shape), rules[at.i]
        if product is not None and _agree(product, at.part, x) and _agree(_evaluated(rule, values), factor, x):
            return Local(_written(rule, at), factor)
    if at.i < len(back := BACK.get(name, ())):
        backward_values = values | {"dz": wide(cotangent)}
        if _agree(_evaluated(back[at.i], backward_values), at.part, x):
            sides = (_evaluated(side, backward_values) for side in back[at.i].split("@"))
            shapes = " · ".join("×".join(map(str, np.shape(side))) for side in sides)
            return Local(back=_written(back[at.i], at), forward=_written(FORWARD[name][at.i], at), shapes=shapes)
    return None


def _of_jacobian(at: StepAtInput, x: Array, z: Array) -> Local | None:
    """The local derivative as the Jacobian, where that is small or a gradient."""
    if z.size == 1:
        return Local(value=at.run(operation.pullback, jnp.ones_like(z)))
    if x.size == 1:
        return Local(value=at.run(operation.pushforward, jnp.ones_like(x)))
    if not x.size or not z.size or max(x.size, z.size) > CELLS:
        return None
    units = jnp.eye(z.size, dtype=z.dtype).reshape(z.size, *z.shape)
    jacobian = jnp.stack([at.run(operation.pullback, unit).ravel() for unit in units])
    if x.shape == z.shape and not (jacobian * (1 - jnp.eye(x.size, dtype=x.dtype))).any():
        return Local(value=jacobian.diagonal().reshape(x.shape))
    return Local(f"Jacobian {z.size}×{x.size}", jacobian, matrix=True)


# ---- rules ----------------------------------------------------------------------------------------------------------


def _environment(at: StepAtInput, z: Array) -> dict[str, Any]:
    values = {name: wide(x) for name, x in zip("xyw", at.entry.inputs, strict=False) if not is_key(x)}
    exponent = _exponent(at)
    return values | {"z": wide(z), "n": values.get("y") if exponent is None else exponent}


def _exponent(at: StepAtInput) -> float | None:
    texts = options(at.entry)
    return float(texts[0]) if texts and re.fullmatch(r"-?[\d.]+", texts[0]) else None


def _evaluated(rule: str, values: Mapping[str, Any]) -> Any:
    try:
        return eval(rule, {"__builtins__": {}}, {**_FUNCTIONS, **values})  # one of the rules above
    except (NameError, TypeError, ValueError, AttributeError):  # another operation has that name, or fewer inputs
        return None


def _summed_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """`x` summed over the axes along which an input of `shape` was broadcast."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    x = x.sum(axis=tuple(i for i, (a, b) in enumerate(zip(x.shape, shape, strict=False)) if a != b), keepdims=True)
    return x if x.shape == shape else None


def _agree(numbers: Any, right: Array, like: Array) -> bool:
    """Whether two arrays are equal up to the rounding of their dtype."""
    try:
        numbers = np.broadcast_to(numbers, right.shape)
    except ValueError:  # of another shape
        return False
    if numbers.dtype == object:  # None
        return False
    close, right = float(jnp.finfo(like.dtype).eps) ** 0.5, wide(right)
    finite = np.abs(right[np.isfinite(right)])
    return bool(np.allclose(numbers, right, rtol=close, atol=close * float(finite.max(initial=0.0)), equal_nan=True))


def _written(rule: str, at: StepAtInput) -> str:
    """A rule with the names of the values, and with numbers in the place of scalars."""
    values = dict(zip("xyw", at.entry.inputs, strict=False)) | dict(zip("z", at.entry.outputs, strict=False))
    if rule in ("1", "-1") or rule in values and not np.ndim(values[rule]):
        return ""  # its value says the same
    n = _exponent(at)
    rule = re.sub(r"\bn\b", "y", rule) if n is None else rule.replace("(n - 1)", f"{n - 1:g}")

    def said(match: re.Match[str]) -> str:
        derivative, name = match.groups()
        if name == "n":
            return f"{n:g}"
        called = _called(values[name], at.names)
        over = f"∂{at.of}/∂{called}" if name == "z" else f"∂{called}/∂v"
        return over if derivative else called

    rule = re.sub(r"\b(d?)([xyzwn])\b", said, rule).replace(".mT", "ᵀ").replace(" @ ", " · ").replace(" * ", " · ")
    return rule.replace("**1", "").replace("**2", "²").replace("**3", "³").replace("**", "^")


def _called(x: Value, names: Names) -> str:
    if np.ndim(x):
        return cut(names.of(x), 14)
    number = number_text(np.asarray(x)[()])
    return f"({number})" if number.startswith("-") else number
