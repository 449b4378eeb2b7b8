"""Which operations ran in a program that has been traced anew, as JAX and tapejax do with the body of a loop.

An equation keeps its traceback when it is traced anew. By these the equations of a body are matched with those that it had when
tapejax traced it, and noted its operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

from ...jaxprs.types import Equation, JaxProgram
from ...tf.values.staging import TracedBody, TracedStep

Key: TypeAlias = tuple[int, int, int]  # a traceback, and which of how many equations that have it


class Retraced:
    """The operations of `bodies`, to be found in what has been traced anew of them."""

    def __init__(self, bodies: Sequence[TracedBody] = ()):
        self._bodies = [(_keyed(body.program), body) for body in bodies]

    def steps(self, jaxpr: JaxProgram) -> dict[Any, TracedStep]:
        """The operations of a program, by the variables that they made."""
        steps, eqns = dict[Any, TracedStep](), _keyed(jaxpr)
        for made, body in self._bodies:
            now = dict[int, Any]()
            for key in made.keys() & eqns.keys():
                # constants that became inputs come first
                sides = [(*eqn.outvars, *eqn.invars[::-1]) for eqn in (made[key], eqns[key])]
                for v, x in zip(*sides, strict=False):
                    now[id(v)] = x if now.get(id(v), x) is x else None  # as in another function with the same equation
            now |= {id(x): now.get(id(v)) for v, x in zip(body.program.constvars, body.constants, strict=True)}
            for step in body.ran:
                inputs, outputs = [now.get(id(x), x) for x in step.inputs], [now.get(id(x)) for x in step.outputs]
                if all(x is not None for x in (*inputs, *outputs)):
                    steps |= dict.fromkeys(outputs, TracedStep(step.op, tuple(inputs), tuple(outputs)))
        return steps


def _keyed(jaxpr: JaxProgram) -> dict[Key, Equation]:
    alike = defaultdict[int, list[Equation]](list)
    for eqn in jaxpr.eqns:
        alike[id(eqn.source_info.traceback)].append(eqn)
    return {(key, i, len(eqns)): eqn for key, eqns in alike.items() for i, eqn in enumerate(eqns)}
