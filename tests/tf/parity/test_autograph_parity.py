"""Python's control flow on traced tensors in tf.function, which AutoGraph converts."""

import numpy as np
import pytest
from harness import error_of, parity

pytest.importorskip("malt", reason="the extra `autograph` is not installed")


def gradient(tf, f, *args):
    "The value of f in a tf.function and its gradient with respect to all arguments."
    args = [tf.Variable(x) for x in args]
    compiled = tf.function(f)
    with tf.GradientTape() as tape:
        y = compiled(*args)
    return y, tape.gradient(y, args)


# ---- if -----------------------------------------------------------------------------------------------------------------


@parity
def test_if_else(tf):
    "A branch is taken by the value, in one program; the gradient is that of the branch taken."

    def f(x):
        if x > 0:
            y = x * x
        else:
            y = -3.0 * x
        return y

    compiled = tf.function(f)
    values = [compiled(tf.constant(x)) for x in (2.0, -2.0)]
    return values, gradient(tf, f, 2.0), gradient(tf, f, -2.0), compiled.experimental_get_tracing_count()


@parity
def test_if_without_else(tf):
    "What an if without else assigns keeps its value where the condition is false."

    @tf.function
    def f(x):
        y = tf.zeros_like(x)
        if tf.reduce_sum(x) > 1.0:
            y = x + 1.0
        return y, x

    return f(tf.constant([1.0, 2.0])), f(tf.constant([0.0, 0.5]))


@parity
def test_elif_chain(tf):
    "A chain of conditions, with numbers that become tensors."

    @tf.function
    def sign(x):
        if x > 0:
            s = 1
        elif x < 0:
            s = -1
        else:
            s = 0
        return s

    return [sign(tf.constant(x)) for x in (3.5, -2.0, 0.0)]


@parity
def test_early_returns(tf):
    "Returns in branches, nested."

    @tf.function
    def f(x):
        if x < 0:
            return -x
        if x < 1:
            return x * x
        if x > 10:
            return tf.constant(10.0)
        else:
            return 2 * x - 1

    return [f(tf.constant(x)) for x in (-2.0, 0.5, 3.0, 30.0)]


@parity
def test_several_variables_in_a_branch(tf):
    "Structures that a branch assigns, and variables that only one of the branches changes."

    @tf.function
    def f(x):
        pair, d, count = (x, x + 1.0), {"a": x, "b": [x * 2.0]}, 0
        if x > 1.0:
            pair = (pair[1], pair[0])
            d = {"a": x * 5.0, "b": [x]}
        else:
            count = count + 1
        return pair, d, count

    return f(tf.constant(2.0)), f(tf.constant(0.0))


@parity
def test_variable_assigned_in_branch(tf):
    "A tf.Variable assigned in a branch."
    total, count = tf.Variable(0.0), tf.Variable(0, dtype=tf.int32)

    @tf.function
    def f(x):
        if x > 0:
            total.assign_add(x)
            count.assign_add(1)
        else:
            total.assign(-1.0)

    values = []
    for x in (1.0, 2.0, -1.0, 5.0):
        f(tf.constant(x))
        values.append((total.numpy(), count.numpy()))
    return values


@parity
def test_conditional_expression(tf):
    "a if c else b, and its gradient."

    def f(x, y):
        return x * y if x > y else x + y

    return gradient(tf, f, 3.0, 2.0), gradient(tf, f, 1.0, 2.0)


@parity
def test_and_or_not(tf):
    "Logical operators on tensors, mixed with Python's booleans."

    @tf.function
    def f(x, y, flag):
        a = x > 0 and y > 0
        b = x > 0 or y > 0
        c = not (x > 0)
        d = flag and x > 0
        e = (x > 0) and flag
        g = flag or x > 0
        h = not flag or y > 0
        return a, b, c, d, e, g, h

    return [f(tf.constant(x), tf.constant(y), flag) for x, y in ((1.0, 2.0), (-1.0, 2.0)) for flag in (True, False)]


@parity
def test_chained_comparison(tf):
    "0 < x < 1 <= y."

    @tf.function
    def f(x, y):
        if 0 < x < 1 <= y:
            return x
        return y

    return f(tf.constant(0.5), tf.constant(2.0)), f(tf.constant(1.5), tf.constant(2.0))


@parity
def test_lazy_and(tf):
    "The right side of `and` is computed only where the left side holds."

    @tf.function
    def f(x, i):
        found = tf.constant(-1.0)
        if i < 3 and x[tf.minimum(i, 2)] > 1.0:
            found = x[tf.minimum(i, 2)]
        return found

    x = tf.constant([1.0, 2.0, 3.0])
    return [f(x, tf.constant(i)) for i in range(5)]


@parity
def test_python_conditions_stay_pythons(tf):
    "Conditions on Python values choose while tracing."

    @tf.function
    def f(x, training, scale=None, names=("a", "b")):
        if training and scale is None:
            x = x + 1.0
        for name in names:
            if name == "a":
                x = x * 2.0
        while scale is not None and scale > 1:
            x = x * 3.0
            scale = scale - 1
        return x

    x = tf.constant(1.0)
    return f(x, True), f(x, False), f(x, False, 3), f(x, True, 2, ("a", "a"))


@parity
def test_errors_of_if(tf):
    "What cannot be a branch."

    def undefined(x):
        if x > 0:
            y = 1
        return y

    def dtypes(x):
        if x > 0:
            y = 1
        else:
            y = 1.0
        return y

    def no_return(x):
        if x > 0:
            return x

    def none(x):
        if x > 0:
            return x
        return None

    def no_boolean(x):
        if tf.cast(x, tf.int32):
            return x
        return -x

    def structure(x):
        if x > 0:
            y = (x, x)
        else:
            y = x
        return y

    def expression(x):
        return 1 if x > 0 else 2.0

    every = (undefined, dtypes, no_return, none, no_boolean, structure, expression)
    return [error_of(tf.function(f), tf.constant(1.0)) for f in every]


# ---- for ----------------------------------------------------------------------------------------------------------------


@parity
def test_for_range(tf):
    "for i in tf.range(n), and its gradient."

    def f(x):
        y = x
        for i in tf.range(4):
            y = y * x + tf.cast(i, tf.float32)
        return y

    return gradient(tf, f, 1.5)


@parity
def test_for_range_of_a_tensor(tf):
    "The bound is an argument: one program for all bounds."

    @tf.function
    def triangle(n):
        total = 0
        for i in tf.range(n):
            total += i
        return total

    @tf.function
    def steps(a, b, c):
        total = tf.constant(0, tf.int32)
        for i in tf.range(a, b, delta=c):
            total = total * 2 + i
        return total

    values = [triangle(tf.constant(n)) for n in (0, 1, 5, 10)]
    others = [steps(*map(tf.constant, abc)) for abc in ((0, 5, 2), (5, 0, -1), (3, 3, 1))]
    return values, others, triangle.experimental_get_tracing_count()


@parity
def test_gradient_where_the_bound_is_a_tensor(tf):
    "The gradient of a loop whose length only the run knows."
    x, n = tf.Variable(1.1), tf.constant(7)

    @tf.function
    def f(n):
        y = tf.constant(1.0)
        for i in tf.range(n):
            y = y * x + tf.cast(i, tf.float32) * x
        return y

    with tf.GradientTape() as tape:
        y = f(n)
    return y, tape.gradient(y, x)


@parity
def test_range_of_a_tensor(tf):
    "Python's range of a tensor."

    @tf.function
    def f(n, x):
        for _ in range(n):
            x = x * 2.0
        return x

    return f(tf.constant(3), tf.constant(1.0)), f(tf.constant(0), tf.constant(1.0))


@parity
def test_for_rows(tf):
    "for x in tensor, with gradients to the tensor and to what is used in the loop."
    rows, w = tf.Variable([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]), tf.Variable([0.5, -1.0])

    @tf.function
    def f():
        total = tf.constant(0.0)
        for row in tf.convert_to_tensor(rows):
            score = tf.reduce_sum(row * w)
            if score > 0:
                total += score**2
            else:
                total -= score
        return total

    with tf.GradientTape() as tape:
        y = f()
    return y, tape.gradient(y, [rows, w])


@parity
def test_break(tf):
    "break, with a gradient: Newton's iteration until it no longer moves."

    def root(a):
        x = a
        for _ in tf.range(50):
            new = 0.5 * (x + a / x)
            if tf.abs(new - x) < 1e-5:
                break
            x = new
        return x

    return gradient(tf, root, 7.0)


@parity
def test_continue(tf):
    "continue, and an index that is used after the loop."

    def f(x):
        last = tf.constant(-1)
        for i in tf.range(6):
            if i % 2 == 0:
                continue
            x = x * 1.5
            last = i
        return x, last, i

    @tf.function
    def compiled(x):
        return f(x)

    return compiled(tf.constant(2.0))


@parity
def test_break_and_continue(tf):
    "Both in one loop."

    @tf.function
    def f(xs, limit):
        total, seen = 0.0, 0
        for x in xs:
            if x < 0:
                continue
            if total + x > limit:
                break
            total += x
            seen += 1
        return total, seen

    xs = tf.constant([1.0, -5.0, 2.0, 3.0, -1.0, 4.0])
    return f(xs, tf.constant(4.0)), f(xs, tf.constant(100.0)), f(xs, tf.constant(0.0))


@parity
def test_nested_loops(tf):
    "A loop in a loop, with a gradient."

    def f(x):
        total = x * 0.0
        for i in tf.range(3):
            inner = x
            for j in tf.range(4):
                if j > i:
                    break
                inner = inner * x
            total = total + inner
        return total

    return gradient(tf, f, 1.25)


@parity
def test_if_inside_for_inside_if(tf):
    "Statements in one another."

    @tf.function
    def f(x, n):
        if n > 0:
            for i in tf.range(n):
                if i % 2 == 0:
                    x = x + 1.0
                else:
                    x = x * 2.0
        else:
            x = -x
        return x

    return [f(tf.constant(1.0), tf.constant(n)) for n in (0, 1, 2, 5)]


@parity
def test_first_assigned_in_the_loop(tf):
    "What a loop assigns first may be used after it."

    @tf.function
    def f(x):
        for i in tf.range(3):
            y = x * tf.cast(i, tf.float32)
            z = {"y": y, "i": i}
        return y, z, i

    return f(tf.constant(2.5))


@parity(differs="TensorFlow's AutoGraph puts zeros in the place of None; here it is as Python has it")
def test_none_before_the_loop(tf):
    "`if y is None: y = ...` in the first iteration."

    @tf.function
    def f(x):
        y = None
        for i in tf.range(3):
            if y is None:
                y = x
            else:
                y = y + x * tf.cast(i, tf.float32)
        return y

    return f(tf.constant(2.5))


@parity
def test_python_loop_over_list(tf):
    "A loop over a Python list, with a list that it fills."

    @tf.function
    def f(x):
        collected = []
        for power in [1, 2, 3]:
            if x > 1.0:
                y = x**power
            else:
                y = x
            collected.append(y)
        return tf.stack(collected)

    return f(tf.constant(2.0)), f(tf.constant(0.5))


@parity
def test_enumerate_and_zip_of_lists(tf):
    "enumerate and zip over Python lists of tensors."

    @tf.function
    def f(xs, ys):
        total = 0.0
        for i, (x, y) in enumerate(zip(xs, ys)):
            if x > y:
                total += x * (i + 1)
            else:
                total -= y
        return total

    return f([tf.constant(1.0), tf.constant(3.0)], [tf.constant(2.0), tf.constant(0.5)])


@parity
def test_errors_of_loops(tf):
    "What cannot be carried through a loop."

    def dtype(x):
        y = 0
        for _ in tf.range(3):
            y = tf.cast(y, tf.float32) + x
        return y

    def shape(x):
        y = tf.reshape(x, [1])
        for _ in tf.range(3):
            y = tf.concat([y, y], 0)
        return y

    def structure(x):
        y = x
        for _ in tf.range(3):
            y = (x, x)
        return y

    def none(x):
        y = x
        for _ in tf.range(3):
            y = None
        return y

    return [error_of(tf.function(f), tf.constant(1.0)) for f in (dtype, shape, structure, none)]


# ---- while --------------------------------------------------------------------------------------------------------------


@parity
def test_collatz(tf):
    "How long a number takes to 1."

    @tf.function
    def collatz(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    return [collatz(tf.constant(n)) for n in (1, 6, 27)], collatz.experimental_get_tracing_count()


@parity
def test_newton_while(tf):
    "Newton's iteration by while, and its gradient."

    def root(a):
        x = a
        while tf.abs(x * x - a) > 1e-5:
            x = 0.5 * (x + a / x)
        return x

    return gradient(tf, root, 7.0)


@parity
def test_while_second_order(tf):
    "The second derivative of a while loop, also where its result goes on."
    x = tf.Variable(1.5)

    @tf.function
    def f(x):
        y = x
        while y < 20.0:
            y = y * x
        return y

    @tf.function
    def further(x):
        y = f(x) * x
        return y * y if y > 1.0 else y

    found = []
    for function in (f, further):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = function(x)
            first = inner.gradient(y, x)
        found += [y, first, outer.gradient(first, x)]
    return found


@parity
def test_tapes_around_loops_inside_a_function(tf):
    "A tape in a function around loops that end when the data say so, one in another, and a tape around that tape."
    v = tf.Variable(0.5)

    def looped(n, depth, x):
        if depth == 0:
            return tf.nn.relu(tf.sin(x) + v * 0.3)
        return tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, looped(n, depth - 1, z)), (0, x))[1]

    @tf.function
    def first(n, depth):
        with tf.GradientTape() as tape:
            y = looped(n, depth, v * 1.0)
        return y, tape.gradient(y, v)

    @tf.function
    def second(n):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = looped(n, 1, v * 1.0)
            slope = inner.gradient(y, v)
        return slope, outer.gradient(slope, v)

    return first(tf.constant(3), 1), first(tf.constant(2), 2), second(tf.constant(2))


@parity
def test_long_while_gradient(tf):
    "A gradient through several hundred iterations, of two loop variables and what the loop closes over."
    x, w = tf.Variable(1.3), tf.Variable([0.05, 0.02])

    @tf.function
    def f():
        s, k = tf.constant(0.0), tf.zeros(2)
        while s < 40.0:
            s = s + x * w[0] * 2.0
            k = k * 0.99 + w * s
        return tf.reduce_sum(k) + s

    with tf.GradientTape() as tape:
        y = f()
    return y, tape.gradient(y, [x, w])


@parity
def test_while_with_break(tf):
    "break in a while loop on a tensor."

    @tf.function
    def f(x):
        steps = 0
        while x < 1000.0:
            x = x * 2.0
            steps += 1
            if steps >= 5:
                break
        return x, steps

    return f(tf.constant(1.0)), f(tf.constant(500.0)), f(tf.constant(5000.0))


@parity
def test_while_counter(tf):
    "A counter that is a tensor from the beginning, with a gradient."

    def f(x):
        i = tf.constant(0)
        while i < 5:
            x = x * x * 0.9
            i += 1
        return x

    return gradient(tf, f, 1.1)


@parity
def test_while_with_variable(tf):
    "A while loop that counts in a tf.Variable."
    v = tf.Variable(0.0)

    @tf.function
    def f(limit):
        while v < limit:
            v.assign_add(1.5)
        return v.read_value()

    return f(tf.constant(4.0)), f(tf.constant(1.0)), v


@parity
def test_maximum_iterations(tf):
    "set_loop_options(maximum_iterations=...)"

    @tf.function
    def f(x):
        i = tf.constant(0)
        while i < 100:
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
            x = x * 2.0
            i += 1
        return x, i

    return f(tf.constant(1.0))


@parity
def test_gcd(tf):
    "Two variables that a loop swaps."

    @tf.function
    def gcd(a, b):
        while b > 0:
            a, b = b, a % b
        return a

    return gcd(tf.constant(84), tf.constant(36)), gcd(tf.constant(17), tf.constant(5))


@parity
def test_fibonacci_and_bisection(tf):
    "Two short programs of every textbook."

    @tf.function
    def fibonacci(n):
        a, b = 0, 1
        for _ in tf.range(n):
            a, b = b, a + b
        return a

    @tf.function
    def bisect(low, high):
        while high - low > 1e-4:
            middle = (low + high) / 2.0
            if tf.sin(middle) > 0:
                low = middle
            else:
                high = middle
        return (low + high) / 2.0

    return fibonacci(tf.constant(20)), bisect(tf.constant(2.0), tf.constant(4.0))


# ---- functions ----------------------------------------------------------------------------------------------------------


@parity
def test_called_functions(tf):
    "Functions that a tf.function calls are converted, too: functions, closures, lambdas, default arguments, recursion."

    def relu(x, slope=0.1):
        if x > 0:
            return x
        return slope * x

    def power(x, n):
        if n == 0:
            return tf.constant(1.0)
        return x * power(x, n - 1)

    def make(threshold):
        def clip(x, *rest, high=5.0, **more):
            if x > high:
                x = x * 0.0 + high
            return x + threshold + len(rest) + len(more)

        return clip

    clip, choose = make(2.0), lambda x, y: x if x > y else y

    @tf.function
    def f(x):
        return relu(x), relu(x, 0.5), power(x, 3), clip(x, 1, high=1.0, other=2), choose(x, 1.0)

    return f(tf.constant(2.0)), f(tf.constant(-2.0))


@parity
def test_lambda(tf):
    "A lambda with a conditional expression."
    f = tf.function(lambda x: x * 2.0 if x > 1.0 else x - 1.0)
    return f(tf.constant(3.0)), f(tf.constant(0.0))


@parity
def test_methods(tf):
    "Methods of a class and of a tf.Module, super() and attributes that a branch assigns."

    class Base:
        def scale(self, x):
            if x > 0:
                return x * self.factor
            return x

    class Model(Base):
        def __init__(self):
            self.factor = 3.0

        def scale(self, x):
            return super().scale(x) + 1.0

        @tf.function
        def __call__(self, x):
            if x < 100.0:
                x = self.scale(x)
            return x

    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)

        @tf.function
        def __call__(self, x):
            y = x
            for _ in tf.range(3):
                y = self.step(y)
            return y

        def step(self, y):
            if y > 4.0:
                return y - self.w
            return y * self.w

    model, layer = Model(), Layer()
    with tf.GradientTape() as tape:
        y = layer(tf.constant(1.5))
    return model(tf.constant(2.0)), model(tf.constant(-2.0)), model(tf.constant(200.0)), y, tape.gradient(y, layer.w)


@parity
def test_bound_method_and_callable_object(tf):
    "tf.function of a bound method, and a callable object called in a function."

    class Step:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, x):
            if x > 1.0:
                x = x * self.rate
            return x

        def twice(self, x):
            return self(self(x))

    step = Step(0.5)
    twice = tf.function(step.twice)
    return twice(tf.constant(8.0)), twice(tf.constant(1.5)), tf.function(step)(tf.constant(4.0))


@parity
def test_function_in_function(tf):
    "A tf.function called in a loop of another."

    @tf.function
    def inner(x):
        if x > 2.0:
            return x - 2.0
        return x + 3.0

    @tf.function
    def outer(x):
        for _ in tf.range(5):
            x = inner(x)
        return x

    return outer(tf.constant(1.0)), inner(tf.constant(1.0))


@parity
def test_local_functions(tf):
    "Functions defined in the function, with control flow of their own, given to tf.cond, tf.map_fn and tf.while_loop."

    def absolute(x):
        if x < 0:
            return -x
        return x

    @tf.function
    def f(xs):
        def double(x):
            if x > 1.0:
                x = x * 2.0
            return x

        mapped = tf.map_fn(lambda x: double(x), xs)
        absolutes = tf.map_fn(absolute, xs)
        chosen = tf.cond(xs[0] > 0, lambda: double(xs[0]), lambda: absolute(xs[1]))
        return mapped, absolutes, chosen

    return f(tf.constant([3.0, 0.5, -2.0]))


@parity
def test_do_not_convert(tf):
    "do_not_convert and autograph=False."

    @tf.autograph.experimental.do_not_convert
    def plain(x):
        return x if x > 0 else -x

    @tf.function
    def f(x):
        if x > 0:
            return plain(x)
        return x

    @tf.function(autograph=False)
    def g(x):
        if x > 0:
            return x
        return -x

    return error_of(f, tf.constant(1.0)), error_of(g, tf.constant(1.0))


@parity
def test_side_effects_happen_once(tf):
    "What a function prints and counts while it is traced."
    seen = []

    @tf.function
    def f(x):
        print("tracing")
        seen.append(1)
        if x > 0:
            y = x
        else:
            y = -x
        while y < 10.0:
            y = y * 2.0
        return y

    return f(tf.constant(1.0)), f(tf.constant(-3.0)), len(seen)


@parity
def test_try_with_and_control_flow(tf):
    "Conditions within try and with."

    @tf.function
    def f(x):
        with tf.name_scope("scope"):
            try:
                if x > 0:
                    y = x
                else:
                    y = -x
            finally:
                z = 1.0
        return y + z

    return f(tf.constant(1.0)), f(tf.constant(-2.0))


@parity
def test_recursion_on_structures(tf):
    "Recursion over a Python structure with tensors in it."

    def total(tree):
        if isinstance(tree, dict):
            result = 0.0
            for key in sorted(tree):
                result = result + total(tree[key])
            return result
        if tf.reduce_sum(tree) > 0:
            return tf.reduce_sum(tree)
        return tf.constant(0.0)

    return tf.function(total)({"a": tf.constant([1.0, 2.0]), "b": {"c": tf.constant(-3.0), "d": tf.constant(4.0)}})


# ---- tapes --------------------------------------------------------------------------------------------------------------


@parity
def test_tape_inside(tf):
    "A tape in the function around a loop, and one within the loop."
    x = tf.Variable(1.2)

    @tf.function
    def around():
        with tf.GradientTape() as tape:
            y = x * 1.0
            for i in tf.range(4):
                if i > 1:
                    y = y * x
                else:
                    y = y + x
        return y, tape.gradient(y, x)

    @tf.function
    def within():
        total = tf.constant(0.0)
        for i in tf.range(3):
            with tf.GradientTape() as tape:
                y = x ** tf.cast(i + 1, tf.float32)
            total += tape.gradient(y, x)
        return total

    return around(), within()


@parity
def test_tapes_inside_and_outside(tf):
    "A gradient within the function, differentiated outside."
    x = tf.Variable(1.2)

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                if y > 2.0:
                    y = y * 0.5
                else:
                    y = y * x
        return tape.gradient(y, x)

    with tf.GradientTape() as tape:
        g = slope(x)
    return g, tape.gradient(g, x)


@parity
def test_gradient_descent(tf):
    "Training until the loss is small: a tape in a while loop that assigns variables."
    w, b = tf.Variable([[1.0], [-1.0]]), tf.Variable([0.5])
    data = np.random.default_rng(0).normal(size=(16, 2)).astype("float32")
    labels = data @ np.array([[2.0], [3.0]], "float32") + 1.0

    @tf.function
    def train(x, y):
        loss, steps = tf.constant(np.inf, tf.float32), 0
        while loss > 0.01:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w + b - y) ** 2)
            dw, db = tape.gradient(loss, [w, b])
            w.assign_sub(0.1 * dw)
            b.assign_sub(0.1 * db)
            steps += 1
        return loss, steps

    return train(tf.constant(data), tf.constant(labels)), w, b


@parity
def test_discounted_returns(tf):
    "The returns of an episode, backward, in a TensorArray."

    @tf.function
    def returns(rewards, gamma=0.9):
        n = tf.shape(rewards)[0]
        array = tf.TensorArray(tf.float32, size=n)
        rewards = rewards[::-1]
        running = tf.constant(0.0)
        for i in tf.range(n):
            running = rewards[i] + gamma * running
            array = array.write(i, running)
        found = array.stack()[::-1]
        return (found - tf.reduce_mean(found)) / (tf.math.reduce_std(found) + 1e-6)

    return returns(tf.constant([1.0, 0.0, 2.0, -1.0]))


@parity
def test_recurrent_cell(tf):
    "A recurrent network over time, its outputs in a TensorArray, with gradients."
    rng = np.random.default_rng(1)
    w, u = (tf.Variable(rng.normal(size=(3, 3)).astype("float32") * 0.3) for _ in range(2))
    xs = tf.constant(rng.normal(size=(5, 2, 3)).astype("float32"))

    @tf.function
    def run(xs):
        state, outputs = tf.zeros([2, 3]), tf.TensorArray(tf.float32, size=5)
        for t in tf.range(5):
            state = tf.tanh(xs[t] @ w + state @ u)
            outputs = outputs.write(t, state)
        return outputs.stack()

    with tf.GradientTape() as tape:
        y = tf.reduce_sum(run(xs) ** 2)
    return y, tape.gradient(y, [w, u])


@parity
def test_environment_steps(tf):
    "An episode that ends early: rewards masked by a flag that the loop carries."

    @tf.function
    def episode(position, limit):
        total, done = 0.0, False
        for _ in tf.range(20):
            if not done:
                position = position * 1.5 + 0.1
                total += 1.0
                done = position > limit
        return total, position, done

    return episode(tf.constant(0.1), tf.constant(2.0)), episode(tf.constant(0.0), tf.constant(1e9))


@parity
def test_mandelbrot(tf):
    "Complex numbers in a while loop."

    @tf.function
    def escape(c):
        z, n = tf.zeros_like(c), 0
        while tf.abs(z) < 2.0 and n < 30:
            z = z * z + c
            n += 1
        return n

    return [escape(tf.constant(c, tf.complex64)) for c in (0.0, 1.0, 0.3 + 0.5j, -1.5 + 0.1j)]


@parity
def test_runge_kutta(tf):
    "An ordinary differential equation, step by step, with a gradient with respect to its parameter."
    k = tf.Variable(0.7)

    def field(t, y):
        return -k * y + tf.sin(t)

    @tf.function
    def solve(y, steps):
        t, h = tf.constant(0.0), 1.0 / tf.cast(steps, tf.float32)
        for _ in tf.range(steps):
            a = field(t, y)
            b = field(t + h / 2, y + h / 2 * a)
            if tf.abs(b) > 1e-3:
                y = y + h * b
            else:
                y = y + h * a
            t += h
        return y

    with tf.GradientTape() as tape:
        y = solve(tf.constant([1.0])[0], tf.constant(10))
    return y, tape.gradient(y, k)


@parity
def test_float64(tf):
    "dtypes pass through branches and loops."

    @tf.function
    def f(x, n):
        for i in tf.range(n, dtype=tf.int64):
            if tf.cast(i, tf.float64) < x:
                x = x + tf.cast(i, x.dtype)
        return x, n

    return f(tf.constant(1.5, tf.float64), tf.constant(4, tf.int64))


@parity
def test_builtins_of_tensors(tf):
    "int, float and len of traced tensors."

    @tf.function
    def f(x):
        return int(x[0]), float(tf.cast(x[1], tf.int32)), len(x)

    return f(tf.constant([1.5, 2.5, -3.0]))


@parity
def test_gradients_of_a_variable_that_a_loop_assigns(tf):
    "Each read of a variable has a gradient to the variable, also after an assignment in the loop or branch."

    def counted(v, x):
        while x < 20.0:
            v.assign_add(1.0)
            x = x * v
        return x

    def mixed(v, x):
        for _ in tf.range(3):
            x = x * v
            v.assign_add(x * 0.1)
            x = x + v
        return x

    def branches(v, x):
        for _ in tf.range(4):
            if x > 3.0:
                v.assign(v * x)
                x = x * 0.5
            else:
                x = x * v + 1.0
        return x * v

    def loop(v, x):
        def body(i, x):
            v.assign_add(1.0)
            return i + 1, x * v

        return tf.while_loop(lambda i, x: i < 3, body, (tf.constant(0), tf.identity(x)))[1]

    def cond(v, x):
        def assign():
            v.assign(x * 3.0)
            return x * v

        return tf.cond(x > 1.0, assign, lambda: x * v) * v

    def descent(v, x):
        total = 0.0
        for _ in tf.range(3):
            with tf.GradientTape() as tape:
                y = x * v * v
            slope = tape.gradient(y, v)
            v.assign_sub(0.1 * slope)
            total = total + slope * slope
        return total

    found = []
    for f in (counted, mixed, branches, loop, cond, descent):
        v, x = tf.Variable(1.0), tf.Variable(2.0)
        compiled = tf.function(lambda x, f=f, v=v: f(v, x))
        with tf.GradientTape() as tape:
            y = compiled(x) * v
        found.append((y, v.numpy(), tape.gradient(y, [x, v])))
    return found


@parity
def test_py_function_without_results(tf):
    "It runs whenever the function does, on values, in loops and branches too."
    seen = []

    def note(x):
        seen.append(float(x.numpy()))

    eager = tf.py_function(note, [tf.constant(1.0)], [])

    @tf.function
    def f(x):
        tf.py_function(note, [x * 2.0], [])
        for i in tf.range(3):
            if i != 1:
                tf.py_function(note, inp=[x + tf.cast(i, tf.float32)], Tout=[])
        return x + 1.0

    values = [float(f(tf.constant(x))) for x in (5.0, 6.0)]
    return eager, values, seen


@parity
def test_loop_over_a_dataset(tf):
    "A training epoch in one function: batches of two sizes, enumerate, break."
    w = tf.Variable(2.0)
    xs, ys = np.arange(7, dtype="float32"), np.ones(7, "float32")
    dataset = tf.data.Dataset.from_tensor_slices((xs, ys)).batch(2)

    @tf.function
    def epoch(dataset, most):
        total, count = 0.0, 0
        for i, (x, y) in enumerate(dataset):
            if tf.cast(i, tf.int32) >= most:
                break
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((w * x - y) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
            total += loss
            count += 1
        return total, count

    return [(*epoch(dataset, tf.constant(most)), w.numpy()) for most in (2, 9)]
