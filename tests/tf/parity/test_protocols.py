"""What programs hand over: keys of variables, objects that are taken apart, empty tensors, test cases."""

import dataclasses

import attrs
from harness import error_of, parity


@dataclasses.dataclass
class Masked:
    mask: bool
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])

    def parts(self):
        return [type(self).__name__, self.mask, self.value]


@parity
def test_references_sort(tf):
    """So a dict by references is a structure: for gradients, nest and functions."""
    variables = [tf.Variable(float(i)) for i in (1, 2, 3)]
    references = [v.ref() for v in variables]
    by_reference = {v.ref(): v for v in variables}
    with tf.GradientTape() as tape:
        y = variables[0] * variables[1] * variables[2]
    gradients = tape.gradient(y, by_reference)
    doubled = tf.nest.map_structure(lambda v: v * 2.0, by_reference)
    values = {r: tf.constant(float(i)) for i, r in enumerate(references)}
    called = tf.function(lambda d: {key: x * 2.0 for key, x in d.items()})(values)
    return (
        sorted(references) == sorted(references[::-1]),
        [[d[r] for r in references] for d in (gradients, doubled, called)],
        references[0] < references[0],
        (references[0] < references[1]) != (references[0] > references[1]),
        error_of(lambda: references[0] < 3),
        error_of(lambda: references[0] > 3),
    )


@parity
def test_a_dataclass_is_a_structure_of_nest(tf):
    """Its components are its leaves, its metadata comes back."""
    x = tf.constant(2.0)
    masked, deep = Masked(True, x), Masked(False, [x, {"a": tf.constant(3.0)}])
    return [
        tf.nest.is_nested(masked),
        tf.nest.flatten(masked),
        tf.nest.flatten({"k": deep, "a": 1}),
        tf.nest.map_structure(lambda a, b: a + b, masked, masked).parts(),
        tf.nest.map_structure(lambda a: a * 2.0, deep).parts(),
        tf.nest.pack_sequence_as(masked, [tf.constant(5.0)]).parts(),
        error_of(tf.nest.assert_same_structure, masked, Masked(False, x)),
        error_of(tf.nest.assert_same_structure, masked, [x]),
        error_of(tf.nest.assert_same_structure, masked, Masked(True, [x])),
    ]


@parity
def test_a_dataclass_under_a_tape(tf):
    """As source and target, in forward mode, and as the argument of a custom gradient."""
    x, v = tf.constant(2.0), tf.Variable(2.0)
    masked = Masked(True, x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(masked)
        y, z = masked.value**2, Masked(True, v).value ** 2
    found = [tape.gradient(y, masked).parts(), tape.gradient(Masked(True, y), x), tape.jacobian(y, masked).parts()]
    found.append(tape.gradient(z, Masked(True, v)).parts())
    with tf.autodiff.ForwardAccumulator(masked, Masked(True, tf.constant(1.0))) as accumulator:
        y = masked.value**2
    return [*found, accumulator.jvp(y)]


@parity
def test_a_dataclass_in_a_function(tf):
    """Its metadata counts by value: another one traces again."""
    x, traces = tf.constant(2.0), []

    @tf.function
    def f(masked):
        traces.append(1)
        return Masked(masked.mask, masked.value * 3.0)

    found = [f(Masked(True, x)).parts(), f(Masked(True, x * 2.0)).parts(), len(traces)]
    found += [f(Masked(False, x)).parts(), len(traces)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(Masked(True, x)).value
    chosen = tf.function(lambda p: tf.cond(p, lambda: Masked(True, x), lambda: Masked(True, x * 7.0)))
    looped = tf.while_loop(lambda m: m.value < 10.0, lambda m: [Masked(True, m.value * 2.0)], [Masked(True, x)])
    return found, tape.gradient(y, x), chosen(tf.constant(False)).parts(), looped[0].parts()


@attrs.define
class Pair:
    second: object
    first: object


@attrs.frozen
class Holder:
    pair: Pair
    rest: object = 3


@attrs.define
class Both:
    mask: bool
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


@parity
def test_objects_of_attrs_are_taken_apart_by_their_fields(tf):
    """Also where they say another way: that is for dataclasses."""
    doubled = tf.nest.map_structure(lambda x: x * 2, Both(True, 3))
    return tf.nest.flatten(Both(True, 3)), [type(doubled).__name__, doubled.mask, doubled.value]


@parity
def test_objects_of_attrs_are_structures(tf):
    """Their fields are their children, in the order in which they are declared."""
    one, two = tf.constant(1.0), tf.constant(2.0)
    pair = Pair(one, [two, {"a": one}])
    holder = Holder(pair)
    doubled = tf.nest.map_structure(lambda x: x * 2, holder)
    packed = tf.nest.pack_sequence_as(holder, [1, 2, 3, 4])
    return [
        tf.nest.is_nested(holder),
        tf.nest.flatten(holder),
        [type(doubled).__name__, doubled.pair.first, doubled.rest],
        [packed.pair.second, packed.pair.first, packed.rest],
        error_of(tf.nest.assert_same_structure, pair, Pair(one, [two, {"a": 3}])),
        error_of(tf.nest.assert_same_structure, pair, (one, [two, {"a": one}])),
        error_of(tf.nest.assert_same_structure, pair, Pair(one, two)),
        error_of(tf.nest.assert_same_structure, [pair], [holder]),
    ]


@parity
def test_objects_of_attrs_go_where_structures_go(tf):
    """Tapes, functions, loops, branches, datasets and modules take them, and give them."""

    def parts(pair):
        return [type(pair).__name__, pair.second, pair.first]

    pair = Pair(tf.constant(2.0), tf.constant(3.0))
    with tf.GradientTape() as tape:
        tape.watch(pair)
        y = pair.second**2 * pair.first
    found = [parts(tape.gradient(y, pair))]

    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = Pair(x.second * 2.0, x.first)
        return Holder(x)

    found += [parts(f(pair).pair), parts(f.get_concrete_function(pair)(pair).pair)]
    found.append(parts(tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, Pair(x.first, x.second)), (0, pair))[1]))
    found.append(parts(tf.cond(tf.constant(True), lambda: pair, lambda: Pair(0.0, 0.0))))
    found.append(parts(tf.scan(lambda x, e: Pair(x.second + e, x.first * e), tf.constant([1.0, 2.0]), pair)))
    rows = Pair(tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0]))
    found.append(tf.map_fn(lambda x: x.second * x.first, rows, fn_output_signature=tf.float32))
    dataset = tf.data.Dataset.from_tensor_slices(rows).map(lambda x: Holder(x, x.second)).batch(2)
    found += [(parts(element.pair), element.rest) for element in dataset]
    module = tf.Module()
    module.held = Pair(tf.Variable(1.0), [tf.Variable(2.0)])
    return found, len(module.variables), len(module.trainable_variables)


@parity
def test_compute_gradient_of_empty_tensors(tf):
    """Matrices without rows or columns; an integer has no gradient."""
    found = []
    for shape in ([0], [0, 3], [3, 0]):
        x = tf.zeros(shape)
        found.append(tf.test.compute_gradient(lambda x: x * 2.0, [x]))
        found.append(tf.test.compute_gradient(tf.reduce_sum, [x]))
        found.append(tf.test.compute_gradient(lambda x, y: x * y, [x, tf.constant(2.0)]))
    found.append(tf.test.compute_gradient(lambda x: x[:0], [tf.ones([2])]))
    found.append(tf.test.compute_gradient(lambda x: x, [tf.zeros([0], tf.complex64)]))
    return found, error_of(tf.test.compute_gradient, lambda x: x, [tf.constant(2)])


@parity
def test_a_variable_has_nothing_to_initialize(tf):
    """Variable.initializer is None."""
    v = tf.Variable(1.0)
    v.set_shape([])
    return v.initializer, error_of(v.set_shape, [2])


@parity
def test_assertions_of_test_cases(tf):
    """Which of them hold and which fail."""

    class Case(tf.test.TestCase):
        def runTest(self):  # noqa: N802  unittest's name
            pass

    case, x, found = Case(), tf.constant([1.0, 2.0, 3.0]), []

    def holds(name, *args, **kwargs):
        error = error_of(getattr(case, name), *args, **kwargs)
        found.append((name, None if error is None else "AssertionError" in error.bases or error.name))

    def raising(name, action, *args):
        def run():
            with getattr(case, name)(*args):
                action()

        error = error_of(run)
        found.append((name, None if error is None else "AssertionError" in error.bases or error.name))

    def boom():
        raise ValueError("boom 1")

    for name in ("Greater", "GreaterEqual", "Less", "LessEqual"):
        for number in (0.0, 1.0, 2.0, 3.0, 4.0):
            holds(f"assertAll{name}", x, number)
    for name, calls in {
        "assertAllInSet": [(x, {1.0, 2.0, 3.0, 4.0}), (x, [1.0, 2.0])],
        "assertLen": [([1, 2], 2), ([1], 2), (3, 1)],
        "assertEmpty": [([],), ([1],)],
        "assertNotEmpty": [([],), ([0],)],
        "assertBetween": [(2, 1, 3), (4, 1, 3)],
        "assertContainsSubset": [([1], [1, 2]), ([3], [1, 2])],
        "assertNoCommonElements": [([1], [2]), ([1], [1])],
        "assertSameElements": [([1, 1, 2], [2, 1]), ([1], [1, 2]), ("ab", "ba"), ([[1], [2]], [[2], [1]])],
        "assertItemsEqual": [([1, 1, 2], [2, 1, 1]), ([1, 1, 2], [2, 1])],
        "assertSequenceStartsWith": [([1], [1, 2]), (1, [1, 2]), ([2], [1, 2]), ([], [1, 2])],
        "assertContainsSubsequence": [([1, 2, 3], [1, 3]), ([1, 2, 3], [3, 1])],
        "assertContainsExactSubsequence": [([1, 2, 3], [2, 3]), ([1, 2, 3], [1, 3])],
        "assertContainsInOrder": [(["a", "c"], "abc"), (["c", "a"], "abc"), ("b", "abc")],
        "assertSequenceAlmostEqual": [([1.0], [1.0 + 1e-9]), ([1.0], [1.1]), ([1.0], [1.0, 2.0])],
        "assertDictAlmostEqual": [({"a": 1.0}, {"a": 1.0 + 1e-9}), ({"a": 1.0}, {"a": 1.1}), ({"a": 1.0}, {"b": 1.0})],
        "assertSameStructure": [({"a": [1, 2]}, {"a": (1, 2)}), ({"a": [1]}, {"a": (3,)}), ([1], {"b": 1})],
        "assertJsonEqual": [('{"a": 1}', '{ "a":1}'), ('{"a": 1}', '{"a":2}')],
        "assertStartsWith": [("abc", "a"), ("abc", "c")],
        "assertEndsWith": [("abc", "a"), ("abc", "c")],
        "assertRegexMatch": [("abc", ["x", "b"]), ("abc", ["x"]), ("abc", "b"), ("abc", [])],
        "assertIsSubclass": [(bool, int), (int, str)],
        "assertRaisesWithLiteralMatch": [(ValueError, "boom 1", boom), (ValueError, "boom", boom)],
    }.items():
        for arguments in calls:
            holds(name, *arguments)
    raising("assertRaisesWithPredicateMatch", boom, ValueError, "boom")
    raising("assertRaisesWithPredicateMatch", boom, ValueError, lambda error: "2" in str(error))
    raising("assertRaisesWithPredicateMatch", lambda: None, ValueError, "")

    class Mixed(tf.test.TestCase):  # as with absl's parameterized.TestCase
        def assertDictEqual(self, a, b, msg=None):  # noqa: N802
            self.assertMappingEqual(a, b, msg, mapping_type=dict)

    for case_of in (case, Mixed()):
        for other in ({"a": 1}, {"a": 2}, {"b": 1}, {}):
            error = error_of(case_of.assertMappingEqual, {"a": 1}, other)
            found.append(None if error is None else "AssertionError" in error.bases)
    same = case.get_temp_dir() == case.get_temp_dir()
    with case.session():
        value = case.evaluate(x)
    case.doCleanups()
    return found, same, value
