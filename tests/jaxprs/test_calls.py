"""`jaxprs/calls.py`: calls of Python functions, as a trace gets them from JAX, traced into jaxprs."""

import jax
import jax.numpy as jnp
import pytest

from tapejax.jaxprs import calls
from tapejax.jaxprs.fence import Trace, current_trace, under

X = jnp.array(2.0)


class Intercepting(Trace):
    """Hands a call of a custom rule to `on_call` in place of making it."""

    def __init__(self, outer, on_call):
        super().__init__()
        self.outer, self.on_call = outer, on_call

    def process_primitive(self, primitive, tracers, params, /):
        return under(self.outer, primitive.bind, *tracers, **params)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, **params):
        return under(self.outer, self.on_call, primitive, (fun, jvp), tracers, params)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, /, **params):
        return under(self.outer, self.on_call, primitive, (fun, fwd, bwd), tracers, params)


def intercepted(fn, *args, then):
    """What ``fn(*args)`` gives where its call of a custom rule is answered by `then`."""
    return under(Intercepting(current_trace(), then), fn, *args)


def squares(notes=None):
    @jax.custom_jvp
    def square(x):
        return x * x

    @square.defjvp
    def rule(primals, tangents):
        if notes is not None:
            notes.append("rule")
        return square(*primals), 10 * primals[0] * tangents[0]

    return square


@jax.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, ct: (30 * x * x * ct,))


@pytest.mark.parametrize("fn, value, slope", [(squares(), 4.0, 20.0), (cube, 8.0, 120.0)], ids=["jvp", "vjp"])
def test_a_call_is_staged_with_its_rule(fn, value, slope):
    kept = []

    def then(primitive, subfuns, args, params):
        staged, repack = calls.stage(primitive, subfuns, args, params)
        kept.append(staged)
        return repack(jax.core.eval_jaxpr(staged.jaxpr, staged.consts, *args))

    assert intercepted(fn, X, then=then) == value
    (staged,) = kept
    assert [eqn.primitive.name for eqn in staged.eqns][0].startswith("custom_")
    assert jax.grad(lambda x: jax.core.eval_jaxpr(staged.jaxpr, staged.consts, x)[0])(X) == slope


@pytest.mark.parametrize("fn, value", [(squares(), 4.0), (cube, 8.0)], ids=["jvp", "vjp"])
def test_a_call_can_be_made_again_any_number_of_times(fn, value):
    kept = []

    def then(primitive, subfuns, args, params):
        again, repack = calls.rebind(primitive, subfuns, params)
        kept.append(again)
        return repack(again(*args))

    assert intercepted(fn, X, then=then) == value
    (again,) = kept
    assert [again(X) for _ in range(3)] == [[value]] * 3


def test_the_name_is_that_of_the_users_function():
    names = []

    def then(primitive, subfuns, args, params):
        names.append(calls.function_name(subfuns[0]))
        return calls.rebind(primitive, subfuns, params)[0](*args)

    intercepted(squares(), X, then=then)
    assert names == ["square"] and calls.function_name(squares) == "squares" and calls.function_name(3) is None


def test_a_call_of_the_users_functions_has_no_key_that_may_be_kept():
    keys = []

    def then(primitive, subfuns, args, params):
        keys.append(calls.stable_key(subfuns, args, params))
        return calls.rebind(primitive, subfuns, params)[0](*args)

    intercepted(squares(), X, then=then)
    intercepted(jax.nn.relu, X, then=then)
    intercepted(jax.nn.relu, X, then=then)
    intercepted(jax.nn.relu, jnp.ones(3), then=then)
    assert keys[0] is None and keys[1] is not None
    assert keys[1] == keys[2] != keys[3]


def test_who_made_the_call():
    found = []

    def then(primitive, subfuns, args, params):
        found.append(calls.within_transformation(subfuns))
        return calls.rebind(primitive, subfuns, params)[0](*args)

    intercepted(squares(), X, then=then)
    intercepted(jax.vmap(squares()), jnp.ones(3), then=then)
    assert found == [False, True]


def test_a_rule_is_traced_now_and_not_once_more():
    notes, kept = [], []

    def then(primitive, subfuns, args, params):
        staged, repack = calls.stage(primitive, subfuns, args, params)
        calls.trace_rules(staged, subfuns)
        kept.append((staged, list(notes)))
        return repack(jax.core.eval_jaxpr(staged.jaxpr, staged.consts, *args))

    intercepted(squares(notes), X, then=then)
    ((staged, before),) = kept
    assert before == ["rule"]
    assert jax.grad(lambda x: jax.core.eval_jaxpr(staged.jaxpr, staged.consts, x)[0])(X) == 20.0
    assert notes == before


def test_a_rule_that_fails_is_left_for_when_it_is_needed():
    fails = jax.custom_jvp(lambda x: x * x)

    @fails.defjvp
    def rule(primals, tangents):
        raise ValueError("the user's")

    def then(primitive, subfuns, args, params):
        staged, repack = calls.stage(primitive, subfuns, args, params)
        calls.trace_rules(staged, subfuns)
        return repack(jax.core.eval_jaxpr(staged.jaxpr, staged.consts, *args))

    assert intercepted(fails, X, then=then) == 4.0


def test_what_the_caller_reads_is_stored_by_one_of_function_and_rule():
    """JAX refuses results that both have stored: of a call that traced its rule, the function's are forgotten."""
    seen = []

    def then(primitive, subfuns, args, params):
        out = under(current_trace(), primitive.bind, *args, subfuns=subfuns, **params)
        stores = [[store for store in fun.stores if store is not None] for fun in subfuns[:2]]
        seen.append([*map(calls.are_filled, stores)])
        calls.keep_stores_of_rule(subfuns)
        seen.append([any(map(calls.is_filled, found)) for found in stores])
        return out

    jax.jvp(lambda x: intercepted(squares(), x, then=then), (X,), (X,))
    intercepted(squares(), X, then=then)
    assert all(sum(found) == 1 for found in seen[1::2])


# ---- JAX's own functions with rules ---------------------------------------------------------------------------------


@jax.custom_jvp
def mine(x):
    return jnp.sin(x)


mine.defjvps(lambda dx, y, x: dx * jnp.cos(x))


def test_a_constant_of_jax_is_known_by_its_identity():
    assert all(map(calls.is_jaxs_own, (jax.nn.relu, jax.nn.relu6, jax.scipy.special.xlogy, jax.scipy.special.logit)))


def test_a_function_of_the_users_is_not():
    assert not calls.is_jaxs_own(mine)
    again = jax.custom_jvp(jax.nn.relu.fun)  # in JAX's module by its name, and with JAX's code
    again.defjvp(lambda primals, tangents: (again(*primals), tangents[0]))
    assert again.__module__ == jax.nn.relu.__module__ and not calls.is_jaxs_own(again)


def test_nor_one_of_jax_with_a_rule_of_the_users(monkeypatch):
    def twice(primals, tangents):
        return jax.nn.relu(*primals), 2 * tangents[0]

    for fn in (jax.nn.relu, jax.scipy.special.xlogy):  # whether it was called before or not
        for _ in range(2):
            with monkeypatch.context() as patch:
                patch.setattr(fn, "jvp", twice)
                assert not calls.is_jaxs_own(fn)
            assert calls.is_jaxs_own(fn)
            calls._own.pop(fn, None) if fn is jax.nn.relu else None


def test_nor_one_that_has_static_arguments():
    (fn,) = [x for x in vars(jax._src.nn.functions).values() if getattr(x, "nondiff_argnums", ()) == (1,)]
    assert not calls.is_jaxs_own(fn)
