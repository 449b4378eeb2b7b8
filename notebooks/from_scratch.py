"""What notebook 0 builds, whole: a tape for numbers, and dual numbers. It goes on with these where nothing is answered."""

import math

TAPE = []  # an entry for each operation, in the order in which they ran: (result, inputs, local derivatives)


# Rules: from the values of the inputs to the value of the result, and its derivative with respect to each input.
def add(a, b):
    return a + b, [1.0, 1.0]


def subtract(a, b):
    return a - b, [1.0, -1.0]


def multiply(a, b):
    return a * b, [b, a]


def sine(a):
    return math.sin(a), [math.cos(a)]


def rectify(a):
    return (a, [1.0]) if a > 0.0 else (0.0, [0.0])


def divide(a, b):
    return a / b, [1.0 / b, -a / (b * b)]


def power(n):
    return lambda a: (a**n, [n * a ** (n - 1)])


def absolute(a):
    return (a, [1.0]) if a > 0.0 else (-a, [-1.0]) if a < 0.0 else (0.0, [0.0])


def exponential(a):
    y = math.exp(a)
    return y, [y]


class Operators:
    def __add__(self, other):  # self + other
        return self.apply(add, self, other)

    def __radd__(self, other):  # other + self
        return self.apply(add, other, self)

    def __sub__(self, other):  # self - other
        return self.apply(subtract, self, other)

    def __rsub__(self, other):  # other - self
        return self.apply(subtract, other, self)

    def __mul__(self, other):  # self * other
        return self.apply(multiply, self, other)

    def __rmul__(self, other):  # other * self
        return self.apply(multiply, other, self)


# Those of section 9, where a rule is all that it takes.
Operators.__truediv__ = lambda self, other: self.apply(divide, self, other)
Operators.__rtruediv__ = lambda self, other: self.apply(divide, other, self)
Operators.__pow__ = lambda self, n: self.apply(power(n), self)
Operators.__abs__ = lambda self: self.apply(absolute, self)
Operators.__neg__ = lambda self: -1.0 * self


# Reverse mode.
class Number(Operators):
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Number({self.value!r})"

    def apply(self, rule, *inputs):
        return record(rule, *inputs)


def record(rule, *inputs):
    inputs = [x if isinstance(x, Number) else Number(x) for x in inputs]
    value, derivatives = rule(*(x.value for x in inputs))
    result = Number(value)
    TAPE.append((result, inputs, derivatives))
    return result


def gradient(target, sources):
    bar = {target: 1.0}
    for result, inputs, derivatives in reversed(TAPE):
        if result in bar:
            for x, derivative in zip(inputs, derivatives):
                bar[x] = bar.get(x, 0.0) + bar[result] * derivative
    return [bar.get(x) for x in sources]


def topological_order(target, inputs_of):
    order, visited = [], set()

    def visit(x):
        if x not in visited:
            visited.add(x)
            for i in inputs_of.get(x, []):
                visit(i)
            order.append(x)

    visit(target)
    return order


# Forward mode.
class Dual(Operators):
    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def __repr__(self):
        return f"Dual({self.value!r}, {self.tangent!r})"

    def apply(self, rule, *inputs):
        return push(rule, *inputs)


def push(rule, *inputs):
    inputs = [x if isinstance(x, Dual) else Dual(x) for x in inputs]
    value, derivatives = rule(*(x.value for x in inputs))
    return Dual(value, sum(derivative * x.tangent for derivative, x in zip(derivatives, inputs)))


def forward_gradient(f, values):
    def derivative(i):
        return f(*(Dual(x, float(j == i)) for j, x in enumerate(values))).tangent

    return [derivative(i) for i in range(len(values))]


# Forward over reverse.
def hessian_times(f, values, direction):
    TAPE.clear()
    xs = [Number(Dual(x, v)) for x, v in zip(values, direction)]
    return [g.tangent for g in gradient(f(*xs), xs)]


def train(loss_of, data, weights, epochs, rate):
    losses = []
    for _ in range(epochs):
        for point, label in data:
            TAPE.clear()
            numbers = [Number(w) for w in weights]
            loss = loss_of(numbers, point, label)
            weights = [w - rate * g for w, g in zip(weights, gradient(loss, numbers))]
            losses.append(loss.value)
    return weights, losses
