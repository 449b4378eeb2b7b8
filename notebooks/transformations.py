"""What notebook 0b builds, whole: derivatives as functions of functions. It goes on with these where nothing is answered."""

import itertools
import math
import operator
from typing import NamedTuple

import numpy as np
from from_scratch import Operators

TAGS = itertools.count(1)  # each transformation takes a new tag, so the inner one has the larger tag


# What a transformation passes to a function in the place of a number.
class Box(Operators):
    def __init__(self, value, tag):
        self.value, self.tag = value, tag

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in vars(self).items())})"

    def apply(self, rule, *inputs):
        inner = max((x for x in inputs if isinstance(x, Box)), key=lambda x: x.tag)
        return inner.interpret(rule, *inputs)


def plain(x):  # the number in all the boxes
    return plain(x.value) if hasattr(x, "value") else x


def has(x, tag):
    return isinstance(x, Box) and x.tag == tag


def call(rule, function, x):  # a box applies the rule; a plain number, or each of an array, goes to the function
    if hasattr(x, "apply"):
        return x.apply(rule, x)
    return np.vectorize(function, otypes=[float])(x) if np.ndim(x) else function(x)


def sin(x):
    return call(sine, math.sin, x)


def cos(x):
    return call(cosine, math.cos, x)


def exp(x):
    return call(exponential, math.exp, x)


def relu(x):
    return call(rectify, lambda x: max(x, 0.0), x)


def is_positive(x):  # 1.0 or 0.0
    return call(step, lambda x: float(x > 0.0), x)


Box.__abs__ = lambda self: relu(self) + relu(-self)  # without a rule of its own

# What a comparison needs, as of an `if`: it looks at the number in the boxes.
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Box, _name, lambda self, other, name=_name: getattr(operator, name)(plain(self), plain(other)))
Box.__hash__, Box.__bool__ = None, lambda self: bool(plain(self))

# What arrays in boxes need.
Box.ndim = property(lambda self: np.ndim(self.value))
Box.__len__ = lambda self: len(self.value)
Box.__array_ufunc__ = None  # array * box: NumPy leaves it to the box


# Rules as in notebook 0, but of functions that take boxes: so a derivative has derivatives.
def sine(a):
    return sin(a), [cos(a)]


def cosine(a):
    return cos(a), [-sin(a)]


def rectify(a):
    return relu(a), [is_positive(a)]


def step(a):
    return is_positive(a), [0.0]


def exponential(a):
    y = exp(a)
    return y, [y]


# Forward mode.
class Dual(Box):
    def __init__(self, value, tangent, tag):
        self.value, self.tangent, self.tag = value, tangent, tag

    def interpret(self, rule, *inputs):
        return push(self.tag, rule, *inputs)


def weighted_sum(weights, tangents):
    total = 0.0
    for w, t in zip(weights, tangents, strict=True):
        if hasattr(t, "record"):  # a tangent that is not known yet: section 4
            return t.record(weights, tangents)
        if not (isinstance(t, float) and t == 0.0):
            total = total + w * t
    return total


def push(tag, rule, *inputs):
    values = [x.value if has(x, tag) else x for x in inputs]
    tangents = [x.tangent if has(x, tag) else 0.0 for x in inputs]
    value, derivatives = rule(*values)
    return Dual(value, weighted_sum(derivatives, tangents), tag)


def each(results, change):
    if isinstance(results, (list, tuple)):
        return [each(y, change) for y in results]
    if not isinstance(results, (Box, float, int, np.ndarray, np.generic)):
        raise TypeError(f"a function has to return a number, or a list of numbers, not {type(results).__name__}")
    return change(results)


def jvp(f, primals, tangents):
    tag = next(TAGS)
    results = f(*(Dual(x, t, tag) for x, t in zip(primals, tangents, strict=True)))
    value = each(results, lambda y: y.value if has(y, tag) else y)
    return value, each(results, lambda y: y.tangent if has(y, tag) else 0.0)


# Linear programs.
class Unknown:
    def __init__(self, rows):
        self.rows = rows  # the program in which it occurs

    def __repr__(self):
        row = [i for i, (result, *_) in enumerate(self.rows, 1) if result is self]
        return f"Unknown(t{row[0]})" if row else "Unknown(input)"

    def record(self, weights, tangents):
        unknown = [(w, t) for w, t in zip(weights, tangents) if isinstance(t, Unknown)]
        if any(np.ndim(w) for w, _ in unknown):
            raise TypeError("linearize takes functions of numbers. vmap stands outside, as in vmap(grad(f))")
        result = Unknown(self.rows)
        self.rows.append((result, [w for w, _ in unknown], [t for _, t in unknown]))
        return result


class Linear(NamedTuple):
    inputs: list  # Unknowns
    rows: list  # (result, weights, unknowns): the result is the sum of weight * unknown
    outputs: list  # Unknowns, or 0.0 for what does not depend on the inputs

    def __repr__(self):
        name = {x: f"x{i}" for i, x in enumerate(self.inputs, 1)}
        lines = ["inputs  " + ", ".join(name.values())]
        for i, (result, weights, unknowns) in enumerate(self.rows, 1):
            name[result] = f"t{i}"
            products = [f"{three_digits(w)}·{name.get(x, x)}" for w, x in zip(weights, unknowns)]
            lines.append(f"  t{i} = " + " + ".join(products).replace("+ -", "- "))
        return "\n".join([*lines, "results " + ", ".join(str(name.get(x, x)) for x in self.outputs)])


def three_digits(weight):
    weight = plain(weight)
    return f"{weight:.3g}" if isinstance(weight, (int, float)) else str(weight)


def linearize(f, *primals):
    rows = []
    inputs = [Unknown(rows) for _ in primals]
    value, tangent = jvp(f, primals, inputs)
    return value, Linear(inputs, rows, tangent if isinstance(tangent, list) else [tangent])


def evaluate(linear, *tangents):
    known = dict(zip(linear.inputs, tangents, strict=True))
    for result, weights, unknowns in linear.rows:
        known[result] = weighted_sum(weights, [known[x] for x in unknowns])
    return [known.get(x, 0.0) for x in linear.outputs]


def transpose(linear):
    rows, arriving = [], {}  # for each unknown: (weight, cotangent) of each of its uses
    inputs = [Unknown(rows) for _ in linear.outputs]

    def total(x):
        return weighted_sum([weight for weight, _ in arriving.get(x, [])], [bar for _, bar in arriving.get(x, [])])

    for x, bar in zip(linear.outputs, inputs):
        arriving.setdefault(x, []).append((1.0, bar))
    for result, weights, unknowns in reversed(linear.rows):
        bar = total(result)
        for weight, x in zip(weights, unknowns):
            arriving.setdefault(x, []).append((weight, bar))
    return Linear(inputs, rows, [total(x) for x in linear.inputs])


def vjp(f, *primals):
    value, linear = linearize(f, *primals)
    backward = transpose(linear)
    return value, lambda *cotangents: evaluate(backward, *cotangents)


def grad(f):
    return lambda *primals: vjp(f, *primals)[1](1.0)[0]


# Many at once.
class Batch(Box):
    ndim = property(lambda self: np.ndim(self.value) - 1)  # without the axis of the batch

    def interpret(self, rule, *inputs):
        return batch(self.tag, rule, *inputs)


def rearranged(x, change, behind=0):
    if isinstance(x, Dual):
        return Dual(rearranged(x.value, change, behind), rearranged(x.tangent, change, behind), x.tag)
    if isinstance(x, Batch):
        return Batch(rearranged(x.value, change, behind + 1), x.tag)
    return change(np.asarray(x), -1 - behind) if np.ndim(x) > behind else x


def widened(x):
    return rearranged(x, np.expand_dims)


def inward(x):
    return rearranged(x, lambda a, last: np.moveaxis(a, 0, last))


def outward(y, tag, size):
    y = y.value if has(y, tag) else widened(y) + np.zeros(size)
    return rearranged(y, lambda a, last: np.moveaxis(a, last, 0))


def batch(tag, rule, *inputs):
    values = [x.value if has(x, tag) else widened(x) for x in inputs]
    return Batch(rule(*values)[0], tag)


def vmap(f):
    def mapped(*arrays):
        tag = next(TAGS)
        results = f(*(Batch(inward(x), tag) for x in arrays))
        return each(results, lambda y: outward(y, tag, len(arrays[0])))

    return mapped


def jacobian_forward(f, *primals):
    _, linear = linearize(f, *primals)
    columns = vmap(lambda *tangents: evaluate(linear, *tangents))(*np.eye(len(primals)))
    return np.array(columns)


def jacobian_reverse(f, *primals):
    _, linear = linearize(f, *primals)
    backward = transpose(linear)
    rows = vmap(lambda *cotangents: evaluate(backward, *cotangents))(*np.eye(len(linear.outputs)))
    return np.stack(rows, axis=1)
