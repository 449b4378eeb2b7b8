"""tape/slicing.py: a recording cut down to what leads from sources to targets."""

import gc

import jax.numpy as jnp
from taping import X, Y, program_of, recorded

from tapejax.tape.operation import apply, op_of
from tapejax.tape.query import Query
from tapejax.tape.slicing import Step, compact


def names(program):
    return [step.op.name for step in program.steps]


def test_only_what_leads_to_the_target_is_in_it():
    def fn(x):
        jnp.cos(x)
        return jnp.sin(x) * Y

    assert names(program_of(fn, X)[0]) == ["sin", "multiply"]


def test_two_runs_of_the_same_code_give_equal_programs():
    def fn(x):
        return apply(jnp.multiply, apply(jnp.sin, x), x)

    one, other = program_of(fn, X)[0], program_of(fn, Y)[0]
    assert one == other and hash(one) == hash(other)
    assert one != program_of(lambda x: jnp.cos(x) * x, X)[0]


def test_the_first_slots_are_those_that_are_read():
    program, values = program_of(lambda x: jnp.sin(x) * x, X)
    read = {slot for step in program.steps for slot in step.ins} | {*program.targets}
    assert read == set(range(len(values))) and values[program.sources[0]] is X


def test_a_program_keeps_nothing_for_each_of_its_steps(no_shadow):
    """Python's garbage collector goes through whatever is kept: a tuple for each step made it run four times as often."""

    def fn(x):
        for _ in range(50):
            x = apply(jnp.multiply, apply(jnp.sin, x), Y)
        return x

    program, _ = program_of(fn, X)
    kept, found = [vars(program)], set()
    while kept:
        inside = [x for x in gc.get_referents(kept.pop()) if isinstance(x, (tuple, list, dict)) and id(x) not in found]
        found.update(map(id, inside))
        kept += inside
    assert len(program.steps) == 100 and len(found) < 25


def test_what_is_not_connected_has_no_slot():
    recording, y = recorded(lambda x: jnp.sin(x), X)
    program, _ = Query(recording, [y], [X, Y]).program()
    assert program.sources[0] is not None and program.sources[1] is None


def test_integers_carry_nothing():
    program, _ = program_of(lambda x: jnp.argmax(x).astype("float32") * Y, X)
    assert names(program) == [] and program.sources == (None,)


def test_what_has_no_gradient_is_followed_where_it_is_asked_for():
    recording, y = recorded(lambda x: jnp.floor(x) * 2.0, X)
    assert names(Query(recording, [y], [X]).program()[0]) == []
    assert names(Query(recording, [y], [X], include_nondifferentiable=True).program()[0]) == ["floor", "multiply"]


def test_a_step_says_which_inputs_and_outputs_carry_gradient():
    program, _ = program_of(lambda x: Y * jnp.divmod(x, 2.0)[1], X)
    (*_, product) = program.steps
    assert product.active_ins == (1,) and product.active_outs == (0,)
    assert program.targets == product.outs


def test_slots_are_numbered_anew_what_is_read_first():
    steps = [Step(op_of(jnp.sin, {}), (7,), (9,), (0,), (0,)), Step(op_of(jnp.multiply, {}), (9, 4), (5,), (0,), (0,))]
    program, read = compact(steps, [5, None], [7])
    assert read == (7, 9, 4, 5)  # the old number of each slot whose value is read, which a target's is
    assert [(step.ins, step.outs) for step in program.steps] == [((0,), (1,)), ((1, 2), (3,))]
    assert program.targets == (3, None) and program.sources == (0,)
