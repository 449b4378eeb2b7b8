"""What goes into gradient() and what comes out: sources, targets, output gradients, unconnected gradients."""

import collections

import numpy as np
from harness import error_of, parity

Pair = collections.namedtuple("Pair", "left right")

INVITES_MISTAKES = "output_gradients must match the targets in number and shape; TensorFlow pads, drops or broadcasts"
ONE_CLASS_OF_ERROR = "a number as target or source is a TypeError like any other non-tensor, not an AttributeError"


def recorded(tf, function, *values):
    """A persistent tape over function(*variables), its target and its variables."""
    variables = [tf.Variable(value) for value in values]
    with tf.GradientTape(persistent=True) as tape:
        target = function(*variables)
    return tape, target, variables


# --- sources --------------------------------------------------------------------------------------------------------


@parity
def test_every_structure_of_sources(tf):
    """The result is built like the sources: list, tuple, dict, OrderedDict, namedtuple, nested."""
    tape, y, (a, b) = recorded(tf, lambda a, b: a * b, 2.0, 3.0)
    return [
        tape.gradient(y, structure)
        for structure in (
            a,
            [a, b],
            (a, b),
            {"second": b, "first": a},
            collections.OrderedDict([("b", b), ("a", a)]),
            Pair(a, {"z": b, "y": [a, (b,)]}),
            [[a], [[b], a]],
        )
    ]


@parity
def test_no_sources(tf):
    """Empty structures are answered with themselves."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    return [tape.gradient(y, structure) for structure in ([], (), {}, {"none": []}, [[], [a]])]


@parity
def test_a_source_given_twice(tf):
    """A source that is given twice has its whole gradient twice."""
    tape, y, (a,) = recorded(tf, lambda a: a**3, 2.0)
    return tape.gradient(y, [a, a, {"again": a}])


@parity
def test_an_intermediate_together_with_its_ancestors(tf):
    """Each source has its own total derivative, whatever else is asked for."""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * x + y
        w = z * y
    return (
        tape.gradient(w, [x, y, z]),
        tape.gradient(w, [z, y]),
        tape.gradient(w, x),
        tape.gradient(z, [w, y]),
    )


@parity
def test_intermediates_of_an_operation_with_several_results(tf):
    """The results of split and unstack are sources of their own."""
    tape, parts, (v,) = recorded(tf, lambda v: tf.unstack(v) + tf.split(v, 3), [1.0, 2.0, 3.0])
    with tape:
        y = parts[0] * parts[1] + tf.reduce_sum(parts[4] ** 2)
    return tape.gradient(y, [v, parts[0], parts[1], parts[2], parts[4], parts[5]])


@parity
def test_a_source_that_is_the_target(tf):
    """The derivative of anything with respect to itself is one, recorded or not."""
    unseen, unread = tf.constant([1.0, 2.0]), tf.Variable(3.0)
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    return (
        tape.gradient(unseen, unseen),
        tape.gradient(unread, unread),
        tape.gradient(y, [y, a]),
        tape.gradient(a, a),
    )


@parity
def test_the_dependent_value_as_source(tf):
    """A value that was computed from the target is not connected to it."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = y * 3.0
    return tape.gradient(y, [z, y, x])


@parity
def test_what_cannot_be_a_source(tf):
    """A source has to be a tensor or a variable."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    return [error_of(tape.gradient, y, source) for source in (None, [a, None], "a", object(), {1, 2})]


@parity(differs=ONE_CLASS_OF_ERROR)
def test_a_number_as_source(tf):
    """Neither a Python number nor a NumPy array is a source."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    no_sources = [2.0, 3, [a, 2.0], np.array([1.0]), np.float32(2.0)]
    return [error_of(tape.gradient, y, source) for source in no_sources]


@parity
def test_a_generator_of_sources(tf):
    """A generator is refused; the values of a dict are taken."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    return error_of(tape.gradient, y, (v for v in [a])), tape.gradient(y, {"a": a}.values())


@parity
def test_dict_keys_that_cannot_be_sorted(tf):
    """A dict of sources needs keys that can be ordered."""
    tape, y, (a, b) = recorded(tf, lambda a, b: a * b, 2.0, 3.0)
    return error_of(tape.gradient, y, {1: a, "b": b}), tape.gradient(y, {2: a, 1: b})


# --- targets --------------------------------------------------------------------------------------------------------


@parity
def test_every_structure_of_targets(tf):
    """The gradients of all targets in a structure add up."""
    tape, y, (a,) = recorded(tf, lambda a: {"square": a**2, "rest": [a * 3.0, (a, a / 4.0)]}, 2.0)
    return (
        tape.gradient(y, a),
        tape.gradient(y["rest"], a),
        tape.gradient(Pair(y["square"], y["square"]), a),
        tape.gradient([], a),
        tape.gradient({}, [a]),
    )


@parity
def test_a_target_given_twice(tf):
    """A target that is given twice counts twice."""
    tape, y, (a,) = recorded(tf, lambda a: a**3, 2.0)
    return tape.gradient([y, y], a), tape.gradient([y, [y, y]], [a])


@parity
def test_targets_that_build_on_each_other(tf):
    """One target may be computed from another."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = y * 10.0
    return tape.gradient([y, z], [x, y])


@parity
def test_targets_of_different_shapes(tf):
    """Targets need not have one shape."""
    tape, targets, (v,) = recorded(tf, lambda v: [v[0] * 3.0, v * v, tf.tensordot(v, v, 0)], [1.0, 2.0])
    return tape.gradient(targets, v)


@parity
def test_some_targets_unconnected(tf):
    """Targets without a path are left out."""
    tape, targets, (v,) = recorded(tf, lambda v: [v * v, tf.constant(5.0), tf.Variable(1.0) * 2.0], 3.0)
    return tape.gradient(targets, v), tape.gradient(targets[1:], v)


@parity
def test_integer_targets(tf):
    """An integer or boolean target has no gradient; beside a float one it is left out."""
    tape, (y, whole, flag), (a,) = recorded(tf, lambda a: (a * a, tf.cast(a * a, tf.int32), a > 1.0), 2.5)
    return (
        tape.gradient(whole, a),
        tape.gradient(flag, a),
        tape.gradient([whole, y], a),
        tape.gradient([y, flag, whole], [a]),
        tape.gradient(whole, a, unconnected_gradients="zero"),
    )


@parity
def test_what_cannot_be_a_target(tf):
    """A target has to be a tensor, a variable or a structure of them."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    return [error_of(tape.gradient, target, a) for target in (None, [None, y], "y", object())]


@parity(differs=ONE_CLASS_OF_ERROR)
def test_a_number_as_target(tf):
    """Neither a Python number nor a NumPy array is a target."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    return [error_of(tape.gradient, target, a) for target in (5.0, 5, [y, 5.0], np.array(5.0))]


@parity(differs=ONE_CLASS_OF_ERROR)
def test_a_target_that_python_computed(tf):
    """float(x) * 2 is no tensor any more."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = float(x) * 2.0
    return y, error_of(tape.gradient, y, x)


# --- output_gradients -----------------------------------------------------------------------------------------------


@parity
def test_output_gradients_weigh_the_target(tf):
    """output_gradients is the vector of a vector-Jacobian product."""
    tape, y, (v,) = recorded(tf, lambda v: v**2, [1.0, 2.0, 3.0])
    weights = [1.0, 0.0, -2.0]
    return (
        tape.gradient(y, v, output_gradients=tf.constant(weights)),
        tape.gradient(y, v, output_gradients=np.array(weights, "float32")),
        tape.gradient(y, v, output_gradients=tf.Variable(weights)),
        tape.gradient(y, v, tf.constant(weights)),
        tape.gradient(y, [v], output_gradients=[tf.constant(weights)]),
    )


@parity
def test_a_python_number_as_output_gradient(tf):
    """For a scalar target a Python float does."""
    tape, y, (v,) = recorded(tf, lambda v: v**2, 3.0)
    return tape.gradient(y, v, output_gradients=0.5)


@parity
def test_output_gradients_of_several_targets(tf):
    """A list of targets takes a list or tuple of output gradients, one each."""
    tape, targets, (v,) = recorded(tf, lambda v: [v**2, 3.0 * v, tf.reduce_sum(v)], [1.0, 2.0])
    weights = [tf.constant([1.0, 10.0]), tf.constant([0.5, 0.0]), tf.constant(100.0)]
    return [tape.gradient(targets, v, output_gradients=structure) for structure in (weights, tuple(weights))]


@parity
def test_output_gradients_in_a_dict(tf):
    """A dict of targets takes a dict of output gradients, key for key."""
    tape, targets, (v,) = recorded(tf, lambda v: {"square": v**2, "line": 3.0 * v}, [1.0, 2.0])
    weights = {"square": tf.constant([1.0, 10.0]), "line": tf.constant([100.0, 1000.0])}
    return tape.gradient(targets, v, output_gradients=weights)


@parity
def test_output_gradients_of_another_dtype(tf):
    """An output gradient has to have its target's dtype."""
    tape, y, (v,) = recorded(tf, lambda v: v * v, 3.0)
    return (
        error_of(tape.gradient, y, v, output_gradients=tf.constant(2)),
        error_of(tape.gradient, y, v, output_gradients=tf.constant(2.0, tf.float16)),
    )


@parity
def test_a_python_integer_as_output_gradient(tf):
    """A Python int is an int32 tensor, which is no output gradient of a float target."""
    tape, y, (v,) = recorded(tf, lambda v: v * v, 3.0)
    return error_of(tape.gradient, y, v, output_gradients=2)


@parity
def test_output_gradients_of_another_shape(tf):
    """An output gradient that does not broadcast to its target is refused."""
    tape, y, (v,) = recorded(tf, lambda v: v * v, [1.0, 2.0])
    return error_of(tape.gradient, y, v, output_gradients=tf.constant([1.0, 2.0, 3.0])), error_of(
        tape.gradient, y, v, output_gradients=tf.ones([2, 2])
    )


@parity(differs=INVITES_MISTAKES)
def test_output_gradients_that_pass_through_unchecked(tf):
    """TensorFlow hands a wrong shape on where the operation happens not to look at it."""
    tape, y, (v,) = recorded(tf, lambda v: v + 1.0, [1.0, 2.0])
    return error_of(tape.gradient, y, v, output_gradients=tf.constant([1.0, 2.0, 3.0]))


@parity(differs=INVITES_MISTAKES)
def test_too_few_output_gradients(tf):
    """TensorFlow takes ones for the missing output gradients."""
    tape, targets, (v,) = recorded(tf, lambda v: [v * v, 3.0 * v], [1.0, 2.0])
    return error_of(tape.gradient, targets, v, output_gradients=[tf.constant([1.0, 10.0])])


@parity(differs=INVITES_MISTAKES)
def test_too_many_output_gradients(tf):
    """TensorFlow misplaces output gradients that are too many."""
    tape, targets, (v,) = recorded(tf, lambda v: [v * v, 3.0 * v], [1.0, 2.0])
    return error_of(tape.gradient, targets, v, output_gradients=[tf.constant([1.0, 10.0])] * 3)


@parity(differs=INVITES_MISTAKES)
def test_a_list_of_numbers_for_one_target(tf):
    """TensorFlow takes a list for a list of output gradients, and its first number for all elements."""
    tape, y, (v,) = recorded(tf, lambda v: v * v, [1.0, 2.0])
    return tape.gradient(y, v, output_gradients=[1.0, 10.0])


@parity
def test_none_among_the_output_gradients(tf):
    """None is no output gradient."""
    tape, targets, (v,) = recorded(tf, lambda v: [v * v, 3.0 * v], [1.0, 2.0])
    return (
        error_of(tape.gradient, targets, v, output_gradients=[tf.constant([1.0, 10.0]), None]),
        error_of(tape.gradient, targets[0], v, output_gradients=[None]),
    )


@parity
def test_output_gradients_of_integer_targets(tf):
    """The output gradient of an integer target is dropped with it; its neighbour keeps its own."""
    tape, targets, (v,) = recorded(tf, lambda v: [tf.cast(v, tf.int32), v * v], [1.0, 2.0])
    weights = [tf.constant([7, 7]), tf.constant([1.0, 10.0])]
    return (
        tape.gradient(targets, v, output_gradients=weights),
        tape.gradient(targets[0], v, output_gradients=weights[0]),
    )


@parity
def test_the_output_gradient_of_the_source_itself(tf):
    """When target and source are one, the output gradient comes back."""
    tape, _, (v,) = recorded(tf, lambda v: v * v, [1.0, 2.0])
    return tape.gradient(v, v, output_gradients=tf.constant([5.0, 7.0]))


@parity
def test_output_gradients_are_recorded_by_an_outer_tape(tf):
    """A vector-Jacobian product is linear in its vector, and an outer tape knows it."""
    v, weights = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = v**2
        product = inner.gradient(y, v, output_gradients=weights * weights)
    return outer.gradient(product, [weights, v])


# --- unconnected_gradients ------------------------------------------------------------------------------------------


@parity
def test_the_ways_to_say_what_unconnected_means(tf):
    """The enum's members or their values; anything else is refused."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    other = tf.Variable([1.0, 2.0])
    Unconnected = tf.UnconnectedGradients
    accepted = [Unconnected.NONE, Unconnected.ZERO, "none", "zero"]
    refused = ["ZERO", "zeros", None, 0, True]
    return (
        [tape.gradient(y, [a, other], unconnected_gradients=choice) for choice in accepted],
        [error_of(tape.gradient, y, a, unconnected_gradients=choice) for choice in refused],
    )


@parity
def test_the_members_of_unconnected_gradients(tf):
    """UnconnectedGradients is an enum of two."""
    Unconnected = tf.UnconnectedGradients
    return (
        [member.value for member in Unconnected],
        list(Unconnected),
        Unconnected("zero") is Unconnected.ZERO,
    )


@parity
def test_zeros_look_like_their_source(tf):
    """Zeros have the source's shape and dtype, also for sources that no tape ever saw."""
    tape, y, (a,) = recorded(tf, lambda a: a * a, 2.0)
    sources = {
        "half": tf.Variable(tf.ones([2, 3], tf.float16)),
        "whole": tf.constant([1, 2]),
        "flag": tf.constant(True),
        "empty": tf.zeros([0, 2]),
        "connected": a,
        "complex": tf.constant([1.0, 2.0]),
    }
    return tape.gradient(y, sources, unconnected_gradients="zero")


@parity
def test_zeros_for_an_unconnected_target(tf):
    """A target that nothing leads to gives zeros for every source."""
    tape, _, (a, b) = recorded(tf, lambda a, b: a * b, 2.0, [1.0, 2.0])
    zero = tf.UnconnectedGradients.ZERO
    return (
        tape.gradient(tf.constant(1.0), [a, b], unconnected_gradients=zero),
        tape.gradient(tf.constant(1), [a, b], unconnected_gradients=zero),
        tape.gradient([], [a, b], unconnected_gradients=zero),
    )


# --- nest -----------------------------------------------------------------------------------------------------------


@parity
def test_nest_flattens_and_packs(tf):
    """Dicts are flattened in the order of their keys; None and arrays are leaves."""
    structure = {"b": [1, (2, 3)], "a": Pair(4, {"y": 5, "x": None})}
    flat = tf.nest.flatten(structure)
    packed = tf.nest.pack_sequence_as(structure, [letter for letter in "fedcba"])
    return flat, packed, tf.nest.flatten(7), tf.nest.flatten([]), tf.nest.flatten(np.ones(2))


@parity
def test_nest_maps(tf):
    """map_structure walks structures of one shape side by side."""
    first, second = {"a": [1, 2], "b": (3,)}, {"a": [10, 20], "b": (30,)}
    return (
        tf.nest.map_structure(lambda x, y: x + y, first, second),
        error_of(tf.nest.map_structure, lambda x, y: x, first, {"a": [1], "b": (3,)}),
        error_of(tf.nest.map_structure, lambda x, y: x, [1], (1,)),
        error_of(tf.nest.assert_same_structure, [1, 2], [1]),
        tf.nest.is_nested([1]),
        tf.nest.is_nested("text"),
    )


@parity
def test_nest_over_gradients(tf):
    """Scaling a structure of gradients keeps the structure."""
    tape, y, (a, b) = recorded(tf, lambda a, b: a * tf.reduce_sum(b), 2.0, [1.0, 2.0])
    return tf.nest.map_structure(lambda g: 0.1 * g, tape.gradient(y, {"a": a, "b": [b]}))
