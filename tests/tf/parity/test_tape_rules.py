"""The life of a tape: entering, recording, watching, stopping, answering; and what each refuses."""

import numpy as np
from harness import error_of, parity

# --- making and entering --------------------------------------------------------------------------------------------


@parity
def test_the_arguments_of_a_tape(tf):
    """persistent and watch_accessed_variables, by position or by name, and nothing else."""
    v = tf.Variable(3.0)
    with tf.GradientTape(True, False) as tape:
        y = v * v
    return (
        tape.gradient(y, v),
        tape.gradient(y, v),
        error_of(tf.GradientTape, unknown=1),
        error_of(tf.GradientTape, True, False, 3),
    )


@parity
def test_entering_gives_the_tape(tf):
    """The name after `as` is the tape itself."""
    tape = tf.GradientTape()
    with tape as entered:
        pass
    return entered is tape


@parity
def test_an_active_tape_cannot_be_entered(tf):
    """A tape that is recording cannot be entered a second time."""

    def enter_twice():
        with tf.GradientTape() as tape, tape:
            pass

    return error_of(enter_twice)


@parity
def test_after_a_refused_entry_the_next_tape_works(tf):
    """A refused second entry leaves no tape active."""
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        before = v * v
        refused = error_of(tape.__enter__)
        after = v * 5.0
    outside = v * 7.0
    return refused, tape.gradient(before, v), tape.gradient(after, v), tape.gradient(outside, v)


@parity
def test_a_finished_tape_goes_on_recording_when_entered_again(tf):
    """Entering again continues the recording; what was computed between the entries is not on it."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
    between = v * y
    with tape:
        z = y * 3.0
        w = between * y
    return [tape.gradient(target, v) for target in (y, between, z, w)]


@parity
def test_a_non_persistent_tape_goes_on_recording_when_entered_again(tf):
    """The same holds for a tape that answers once, as long as it has not answered."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    with tape:
        z = y * v
    return tape.gradient(z, v)


@parity
def test_a_used_up_tape_starts_afresh_when_entered_again(tf):
    """After gradient() a non-persistent tape may be entered for a new recording that does not know the old one."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    first = tape.gradient(y, v)
    with tape:
        z = v * y
    return first, tape.gradient(z, v), error_of(tape.gradient, z, v)


@parity
def test_a_used_up_tape_entered_again_has_forgotten_its_watches(tf):
    """The new recording after gradient() watches nothing that the old one was told to watch."""
    x, v = tf.constant(2.0), tf.Variable(4.0, name="v")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * v
    first = tape.gradient(y, [x, v])
    with tape:
        z = x * 3.0
    names = [variable.name for variable in tape.watched_variables()]
    return first, tape.gradient(z, x), names


@parity
def test_a_persistent_tape_goes_on_after_answering(tf):
    """A persistent tape keeps its recording when it is entered again after gradient()."""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    first = tape.gradient(y, x)
    with tape:
        z = y * x
    return first, tape.gradient(z, x)


@parity
def test_an_exception_leaves_the_recording(tf):
    """An exception passes through the block, and what was recorded before it can be differentiated."""
    v = tf.Variable(3.0)

    def fail():
        with tape:
            results.append(v * v)
            raise KeyError("from inside")

    tape, results = tf.GradientTape(persistent=True), []
    raised = error_of(fail)
    outside = v * 2.0
    return raised, tape.gradient(results[0], v), tape.gradient(outside, v)


@parity
def test_after_an_exception_the_next_tape_works(tf):
    """An exception in one block does not disturb the next."""
    v = tf.Variable(3.0)

    def fail():
        with tf.GradientTape(), tf.GradientTape() as inner, inner.stop_recording():
            raise ZeroDivisionError

    raised = error_of(fail)
    with tf.GradientTape() as tape:
        y = v**2
    return raised, tape.gradient(y, v)


@parity
def test_an_error_of_an_operation_inside_the_block(tf):
    """An operation that raises is not recorded and does not disturb the others."""
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
        refused = error_of(lambda: y + tf.constant([1.0, 2.0, 3.0]))
        z = y * 3.0
    return refused, tape.gradient(z, v)


@parity
def test_tapes_may_be_left_in_any_order(tf):
    """Leaving the outer tape first stops only the outer tape."""
    v = tf.Variable(2.0)
    outer, inner = tf.GradientTape(persistent=True), tf.GradientTape(persistent=True)
    outer.__enter__()
    inner.__enter__()
    y = v**3
    outer.__exit__(None, None, None)
    z = y * v
    inner.__exit__(None, None, None)
    return outer.gradient(y, v), outer.gradient(z, v), inner.gradient(z, v)


@parity
def test_a_deleted_tape_takes_nothing_with_it(tf):
    """Results outlive their tape."""
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    gradient = tape.gradient(y, v)
    del tape
    return gradient, y


@parity
def test_a_tape_as_an_attribute(tf):
    """A tape may live in an object and be used from other methods than the one that entered it."""

    class Trainer:
        def __init__(self):
            self.v = tf.Variable(3.0)

        def forward(self):
            with tf.GradientTape() as self.tape:
                self.loss = self.v**2

        def backward(self):
            return self.tape.gradient(self.loss, self.v)

    trainer = Trainer()
    trainer.forward()
    return trainer.backward()


# --- asking ---------------------------------------------------------------------------------------------------------


@parity
def test_a_tape_that_was_never_entered(tf):
    """Before the first entry there is nothing to answer from, and nothing to watch, stop or reset."""
    v = tf.Variable(2.0)

    def stop(tape):
        with tape.stop_recording():
            pass

    return [
        (
            error_of(tf.GradientTape(persistent).gradient, v, v),
            error_of(tf.GradientTape(persistent).watch, v),
            error_of(stop, tf.GradientTape(persistent)),
            error_of(tf.GradientTape(persistent).reset),
            tf.GradientTape(persistent).watched_variables(),
        )
        for persistent in (False, True)
    ]


@parity
def test_asking_inside_the_block(tf):
    """gradient() may be called while the tape records; a non-persistent tape then stops recording."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        gradient = tape.gradient(y, v)
        z = v * 3.0
        inside = error_of(tape.gradient, z, v)
    return gradient, inside, error_of(tape.gradient, z, v)


@parity
def test_a_tape_used_up_inside_its_block_frees_the_outer_tape_of_nothing(tf):
    """An inner tape that answered inside its block stops; the outer tape records on."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = v**3
            slope = inner.gradient(y, v)
            z = slope * v
    return slope, outer.gradient(z, v)


@parity(warns=True)
def test_asking_a_persistent_tape_inside_its_block(tf):
    """A persistent tape goes on recording, and records its own gradient too (at a cost, hence the warning)."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v**4
        slope = tape.gradient(y, v)
        z = v * slope
    return slope, tape.gradient(z, v), tape.gradient(slope, v)


@parity
def test_asking_while_recording_is_stopped(tf):
    """Inside stop_recording a persistent tape answers without recording the answer."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v**3
        with tape.stop_recording():
            slope = tape.gradient(y, v)
        z = v * slope
    return slope, tape.gradient(z, v), tape.gradient(slope, v)


@parity
def test_a_non_persistent_tape_used_up_while_stopped(tf):
    """A tape used up inside stop_recording starts afresh when recording goes on."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        with tape.stop_recording():
            first = tape.gradient(y, v)
        z = v * 3.0
    return first, tape.gradient(z, v)


@parity
def test_a_refused_question_does_not_use_the_tape_up(tf):
    """A call refused for its arguments leaves a non-persistent tape ready."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    return (
        error_of(tape.gradient, None, v),
        error_of(tape.gradient, y, v, unconnected_gradients="nothing"),
        tape.gradient(y, v),
    )


@parity
def test_asking_for_nothing_uses_the_tape_up(tf):
    """An unconnected question is an answered question."""
    v, w = tf.Variable(3.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    return tape.gradient(y, w), error_of(tape.gradient, y, v)


@parity
def test_operations_outside_the_block(tf):
    """Before the block, after the block: not recorded. A value computed before is a constant."""
    v = tf.Variable(2.0)
    before = v * v
    with tf.GradientTape(persistent=True) as tape:
        y = before * v
    after = y * v
    return tape.gradient(before, v), tape.gradient(y, v), tape.gradient(y, before), tape.gradient(after, v)


@parity
def test_names_of_arguments(tf):
    """gradient's arguments by name."""
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    return tape.gradient(
        target=y,
        sources=v,
        output_gradients=tf.constant([1.0, 10.0]),
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )


# --- watch ----------------------------------------------------------------------------------------------------------


@parity
def test_watching_counts_from_then_on(tf):
    """Uses before watch() do not count, uses after it do."""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        before = x * x
        tape.watch(x)
        after = x**3
        both = before * after
    return [tape.gradient(target, x) for target in (before, after, both, [before, after])]


@parity
def test_watching_twice_is_watching(tf):
    """A second watch of the same tensor changes nothing."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.watch(x)
        z = y * x
    return tape.gradient(z, x)


@parity
def test_watch_returns_nothing(tf):
    """watch() is a command."""
    with tf.GradientTape() as tape:
        return tape.watch(tf.constant(1.0))


@parity
def test_watching_structures(tf):
    """watch() takes any nesting of tensors and variables."""
    x, v, u = tf.constant(2.0), tf.Variable(3.0, trainable=False), tf.constant([5.0])
    with tf.GradientTape() as tape:
        tape.watch([x, {"variable": v, "more": (u, [])}])
        y = x * v * u
    return tape.gradient(y, [x, v, u])


@parity
def test_watching_what_cannot_be_watched(tf):
    """Only tensors and variables can be watched."""
    one = tf.constant(1.0)
    no_tensors = [np.ones(2, "float32"), None, "text", 2.0, 3, [1.0, 2.0], [one, 2.0], object(), one.shape]
    with tf.GradientTape() as tape:
        errors = [error_of(tape.watch, value) for value in no_tensors]
        nothing = [error_of(tape.watch, value) for value in ([], (), {})]
    return errors, nothing


@parity(warns=True)
def test_watching_an_integer(tf):
    """An integer tensor is watched with a warning and without effect."""
    x = tf.constant([1, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.cast(x, tf.float32) * 2.0
    return tape.gradient(y, x), tape.gradient(y, x, unconnected_gradients="zero")


@parity(warns=True)
def test_watching_a_boolean(tf):
    """The same for booleans."""
    mask = tf.constant([True, False])
    with tf.GradientTape() as tape:
        tape.watch(mask)
        y = tf.where(mask, [1.0, 2.0], [3.0, 4.0])
    return tape.gradient(y, mask)


@parity(warns=True)
def test_watching_an_integer_variable(tf):
    """And for an integer variable, which still counts as watched."""
    count = tf.Variable(3, name="count")
    with tf.GradientTape() as tape:
        tape.watch(count)
        y = count * count
    return tape.gradient(y, count), [v.name for v in tape.watched_variables()]


@parity
def test_an_integer_variable_that_is_only_read(tf):
    """An integer variable that is read needs no warning, and has no gradient."""
    count, v = tf.Variable(3), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.cast(count * count, tf.float32) * v
    return tape.gradient(y, [count, v])


@parity
def test_watching_an_intermediate(tf):
    """A watched intermediate is where the recording begins."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(y)
        z = y * x
    return tape.gradient(z, [x, y])


@parity
def test_watching_after_the_block(tf):
    """After the block watch() records nothing and is forgotten."""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        pass
    tape.watch(x)
    outside = x * x
    with tape:
        inside = x * x
    return tape.gradient(outside, x), tape.gradient(inside, x), tape.gradient(x, x)


@parity
def test_watching_after_the_tape_is_used_up(tf):
    """A used up tape has no recording to watch on."""
    x, v = tf.constant(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    return error_of(tape.watch, x)


@parity
def test_a_constant_beside_a_watched_value(tf):
    """The other operand of a watched value has no gradient of its own unless it is watched too."""
    x, a = tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        b = a * a
        targets = [x * a, x / a, x**a, tf.maximum(x, a), tf.stack([x, a]), tf.where(True, x, a), x / b]
    return [tape.gradient(target, [x, a, b]) for target in targets]


@parity
def test_a_matrix_beside_a_watched_value(tf):
    """The same for matrix products and concatenations."""
    x, a = tf.ones([2, 2]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        targets = [x @ a, a @ x, tf.concat([x, a], 0), tf.einsum("ij,jk->ki", x, a)]
    return [tape.gradient(target, [x, a]) for target in targets]


@parity
def test_equal_values_are_not_the_same_tensor(tf):
    """A tape knows tensors by identity: an equal tensor, or the same NumPy array converted twice, is another source."""
    numbers = np.array([1.0, 2.0], "float32")
    first, second = tf.constant(numbers), tf.constant(numbers)
    with tf.GradientTape() as tape:
        tape.watch(first)
        y = first * second
    return tape.gradient(y, [first, second])


@parity
def test_the_same_tensor_under_two_names(tf):
    """Another name for a tensor is the tensor; convert_to_tensor and a cast to its own dtype give it back as it is."""
    x = tf.constant(3.0)
    alias, converted, cast = x, tf.convert_to_tensor(x), tf.cast(x, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(alias)
        y = converted * cast
    return tape.gradient(y, [x, converted, cast])


@parity
def test_a_constant_made_of_a_watched_tensor(tf):
    """tf.constant(tensor) and tf.identity(tensor)."""
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        same, copy = tf.constant(x), tf.identity(x)
        y = same * same + 10.0 * copy
    return tape.gradient(y, [x, same, copy])


# --- watched_variables ----------------------------------------------------------------------------------------------


def names(tape):
    return [variable.name for variable in tape.watched_variables()]


@parity
def test_watched_variables_come_in_order_of_creation(tf):
    """Neither the order of reading nor of watching counts, and each is listed once."""
    late_user, early_user = tf.Variable(1.0, name="first"), tf.Variable(2.0, name="second")
    frozen = tf.Variable(3.0, name="frozen", trainable=False)
    with tf.GradientTape() as tape:
        _ = early_user * early_user + frozen
        tape.watch(late_user)
        _ = early_user * late_user
    listed = tape.watched_variables()
    return names(tape), isinstance(listed, tuple), listed[0] is late_user, listed[1] is early_user


@parity
def test_watched_variables_before_during_and_after(tf):
    """The list fills while recording and survives gradient(), for both kinds of tape."""
    result = []
    for persistent in (False, True):
        v, w = tf.Variable(2.0, name="v"), tf.Variable(3.0, name="w")
        tape = tf.GradientTape(persistent=persistent)
        result.append(names(tape))
        with tape:
            y = v * v
            result.append(names(tape))
            y = y * w
        result.append(names(tape))
        tape.gradient(y, v)
        result.append(names(tape))
    return result


@parity
def test_watched_variables_of_two_entries(tf):
    """A second entry adds to the list."""
    v, w = tf.Variable(2.0, name="v"), tf.Variable(3.0, name="w")
    with tf.GradientTape() as tape:
        _ = v * v
    with tape:
        _ = w * w
    return names(tape)


@parity
def test_a_watched_frozen_variable_is_listed(tf):
    """watch() overrules trainable=False."""
    frozen = tf.Variable(3.0, trainable=False, name="frozen")
    with tf.GradientTape() as tape:
        tape.watch(frozen)
        y = frozen * frozen
    return names(tape), tape.gradient(y, frozen)


@parity
def test_watch_accessed_variables_false(tf):
    """Then only watch() lists a variable, and reads before it do not count."""
    v, w = tf.Variable(2.0, name="v"), tf.Variable(3.0, name="w")
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        before = w * w
        tape.watch(w)
        y = v * w
    return names(tape), tape.gradient(y, [v, w]), tape.gradient(before, w)


@parity
def test_what_counts_as_access(tf):
    """Looking at a value is access; looking at a shape or dtype is not."""
    access = {
        "arithmetic": lambda v: v + 1.0,
        "numpy": lambda v: v.numpy(),
        "float": lambda v: float(v),
        "text": lambda v: repr(v),
        "read_value": lambda v: v.read_value(),
        "value": lambda v: v.value(),
        "identity": lambda v: tf.identity(v),
        "convert": lambda v: tf.convert_to_tensor(v),
        "compare": lambda v: v > 0.0,
        "shape": lambda v: v.shape,
        "dtype": lambda v: v.dtype,
        "name": lambda v: v.name,
        "trainable": lambda v: v.trainable,
    }
    variables = [tf.Variable(1.0, name=name) for name in access]
    with tf.GradientTape() as tape:
        for variable, look in zip(variables, access.values()):
            look(variable)
    return names(tape)


@parity
def test_assignment_counts_as_access(tf):
    """Assigning inside the block watches the variable."""
    v, w = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="w")
    with tf.GradientTape() as tape:
        v.assign(2.0)
        w.assign_add(2.0)
    return names(tape)


@parity
def test_a_tape_lists_only_its_own_variables(tf):
    """A variable read before or after the block is not listed."""
    v, w, u = (tf.Variable(1.0, name=name) for name in "vwu")
    _ = v * v
    with tf.GradientTape() as tape:
        _ = w * w
    _ = u * u
    return names(tape)


# --- stop_recording -------------------------------------------------------------------------------------------------


@parity
def test_stop_recording(tf):
    """What happens inside is not recorded; the results are constants afterwards."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        with tape.stop_recording() as nothing:
            hidden = y * y
        z = y * hidden
    return nothing, tape.gradient(hidden, v), tape.gradient(z, v), tape.gradient(z, [y, hidden])


@parity
def test_stop_recording_where_it_is_refused(tf):
    """Recording cannot be stopped after the block, or twice."""
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            nested = error_of(tape.stop_recording().__enter__)
    return nested, error_of(tape.stop_recording().__enter__)


@parity
def test_an_exception_while_stopped(tf):
    """Recording goes on after an exception inside stop_recording."""
    v = tf.Variable(2.0)

    def fail(tape):
        with tape.stop_recording():
            raise KeyError("inside")

    with tf.GradientTape() as tape:
        y = v * v
        raised = error_of(fail, tape)
        z = y * v
    return raised, tape.gradient(z, v)


@parity
def test_watching_while_stopped(tf):
    """watch() inside stop_recording has no effect."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


@parity
def test_reading_a_variable_while_stopped(tf):
    """A variable that is only read inside stop_recording is not watched; its value is a constant."""
    v, w = tf.Variable(2.0, name="v"), tf.Variable(3.0, name="w")
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            value = v.read_value()
        y = value * w
    return names(tape), tape.gradient(y, [v, w])


@parity
def test_stopping_one_of_two_tapes(tf):
    """stop_recording stops one tape, not those around or inside it."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer, tf.GradientTape(persistent=True) as inner:
        with inner.stop_recording():
            seen_by_outer = v * v
        with outer.stop_recording():
            seen_by_inner = v * v
        with outer.stop_recording(), inner.stop_recording():
            seen_by_none = v * v
        seen_by_both = v * v
    targets = [seen_by_outer, seen_by_inner, seen_by_none, seen_by_both]
    return [(outer.gradient(target, v), inner.gradient(target, v)) for target in targets]


# --- reset ----------------------------------------------------------------------------------------------------------


@parity
def test_reset_forgets_what_was_recorded(tf):
    """reset() inside the block starts the recording afresh."""
    v, w = tf.Variable(2.0, name="v"), tf.Variable(3.0, name="w")
    with tf.GradientTape() as tape:
        y = v * v
        tape.reset()
        z = w * w + y
    return names(tape), tape.gradient([y, z], [v, w])


@parity
def test_reset_forgets_what_was_watched(tf):
    """A tensor has to be watched again after reset()."""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        tape.reset()
        forgotten = x * x
        tape.watch(x)
        known = x * x
    return tape.gradient(forgotten, x), tape.gradient(known, x)


@parity
def test_reset_in_a_loop(tf):
    """A loss that is computed again after reset() counts once."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = v * v
        for _ in range(3):
            if float(loss) > 0.0:
                tape.reset()
                loss = v * v * 0.5
    return tape.gradient(loss, v)


@parity
def test_reset_where_it_is_refused(tf):
    """reset() needs a tape that is recording."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        with tape.stop_recording():
            stopped = error_of(tape.reset)
    after_block = error_of(tape.reset)
    gradient = tape.gradient(y, v)
    return stopped, after_block, gradient, error_of(tape.reset)


@parity
def test_reset_after_an_exception(tf):
    """Left by an exception, a tape is not recording: reset() is refused, entering goes on."""
    v = tf.Variable(2.0)
    tape = tf.GradientTape()

    def fail():
        with tape:
            v.assign_add(1.0)
            raise KeyError("inside")

    raised, refused = error_of(fail), error_of(tape.reset)
    with tape:
        tape.reset()
        y = v * v
    return raised, refused, tape.gradient(y, v)


@parity(differs="an integer target carries no gradient: None, though it came beside a float one")
def test_an_integer_target_beside_a_float_one(tf):
    """TensorFlow gives zeros for the indices of `top_k`."""
    x = tf.Variable([3.0, 1.0, 2.0])
    with tf.GradientTape() as tape:
        _, indices = tf.math.top_k(x, 2)
    return tape.gradient(indices, x)


@parity
def test_watched_after_it_was_used(tf):
    """What the tape kept for another watched input counts for a source that is watched later, too; a variable's read does not."""
    x, w, frozen = tf.constant(3.0), tf.Variable(2.0), tf.Variable(5.0, trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        kept, not_kept, later = x * w, x * x, frozen * w
        mixed = not_kept * w
        tape.watch([x, frozen])
        targets = [kept, not_kept, mixed, kept + x * not_kept, later, frozen * later]
    found = [tape.gradient(y, [x, w, frozen]) for y in targets]
    with tf.GradientTape(persistent=True) as tape:
        middle = x * x
        before = middle * w
        tape.watch(middle)
        after = middle * before
    found += [tape.gradient(y, [x, w, middle]) for y in (middle, before, after)] + [tape.jacobian(after, middle)]
    with tf.GradientTape(persistent=True) as tape:
        with tape.stop_recording():
            constant = x * w
        tape.watch(x)
        y = constant * x * w
    found.append(tape.gradient(y, [x, w]))
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        a = x * w
        tape.watch(w)
        targets = [a, w * a, w * x]
    return found, [tape.gradient(y, [x, w]) for y in targets]


@parity
def test_programs_watched_after_they_were_used(tf):
    """The same through functions, loops, branches and custom gradients."""
    traced = tf.function(lambda a, b: a * b)
    custom = tf.custom_gradient(lambda a, b: (a * b, lambda d: (d * b, d * a)))
    found = []
    for f in (
        traced,
        custom,
        lambda a, b: tf.concat([a, b], 0),
        lambda a, b: tf.matmul(a, b, transpose_b=True),
        tf.recompute_grad(lambda a, b: a * b),
        lambda a, b: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x * b), (0, a))[1],
        lambda a, b: tf.map_fn(lambda row: row * b, a),
        lambda a, b: tf.cond(True, lambda: a * b, lambda: a),
    ):
        a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(a)
            y = f(a, b)
            tape.watch(b)
            z = f(a, b)
        found.append([tape.gradient(y, b), tape.gradient(z, b)])
    return found
