"""What we believe of JAX beyond what it promises: one test for each thing in `jaxprs/fence.py`.

On a new JAX these say what moved. They need JAX and NumPy only. A name that is gone is reported sooner, when tapejax is imported:
the error ends with what to do.
"""

from __future__ import annotations

import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src import config
from jax.experimental import io_callback

from tapejax.jaxprs import calls, contents, prints
from tapejax.jaxprs import fence as fence


def equations(fn, *args):
    return jax.make_jaxpr(fn)(*args).eqns


def trace_inside(transformed, *args):
    """The trace that is current where `transformed(probe)` runs `probe`."""
    seen = []

    def probe(x):
        seen.append(fence.current_trace())
        return jnp.sum(x * 2.0)

    transformed(probe)(*args)
    return seen[0]


def test_a_name_that_is_gone_says_what_to_do():
    program = "import jax._src.core as core; del core.Ref; from tapejax import GradientTape"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "has no attribute 'Ref'" in done.stderr and "tapejax/jaxprs/fence.py" in done.stderr.splitlines()[-1], (
        done.stderr
    )


# ---- traces ---------------------------------------------------------------------------------------------------------


class Doubling(fence.Trace):
    """Runs each operation under the eager trace and notes its name."""

    def __init__(self, outer):
        super().__init__()
        self.requires_low = False
        self.outer, self.seen = outer, []

    def process_primitive(self, primitive, tracers, params, /):
        self.seen.append(primitive.name)
        return fence.under(self.outer, primitive.bind, *tracers, **params)


def test_jax_hands_operations_to_the_current_trace():
    trace = Doubling(fence.current_trace())
    with fence.set_current_trace(trace):
        assert fence.current_trace() is trace
        y = lax.add(jnp.float32(1.0), jnp.float32(2.0))
    assert trace.seen[-1] == "add" and float(y) == 3.0
    assert type(fence.current_trace()) is fence.EvalTrace


def test_a_trace_is_set_by_two_calls_in_c():
    # what an interrupt cannot come in between: see the comment in the fence
    for call in (fence.set_trace_reference, fence.set_trace_key):
        assert not isinstance(call, (types.FunctionType, types.MethodType)) and not hasattr(call, "__code__")
    assert fence.trace_reference.value is fence.current_trace()
    assert fence.current_trace()._weakref() is fence.current_trace()


def test_the_trace_is_part_of_the_key_of_compiled_functions():
    f = jax.jit(lambda x: x + 1.0)
    f(1.0)
    trace = Doubling(fence.current_trace())
    with fence.set_current_trace(trace):
        f(1.0)
    assert trace.seen == ["jit"] or trace.seen == ["pjit"]


def test_under_restores_the_trace_after_an_exception():
    before = fence.current_trace()
    with pytest.raises(ZeroDivisionError):
        fence.under(Doubling(before), lambda: 1 / 0)
    assert fence.current_trace() is before


@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad], ids=["grad", "value_and_grad"])
def test_the_traces_of_differentiation(transform):
    trace = trace_inside(transform, 1.0)
    assert isinstance(trace, fence.DIFFERENTIATING_TRACES)
    assert type(trace.parent_trace) is fence.EvalTrace


def test_the_trace_of_a_tangent():
    trace = trace_inside(lambda f: lambda x: jax.jvp(f, (x,), (x,)), 1.0)
    assert isinstance(trace, fence.DIFFERENTIATING_TRACES) and type(trace.parent_trace) is fence.EvalTrace


def test_the_trace_of_a_batch_has_a_parent():
    trace = trace_inside(jax.vmap, jnp.ones(3))
    assert not isinstance(trace, (*fence.DIFFERENTIATING_TRACES, fence.StagingTrace))
    assert type(trace.parent_trace) is fence.EvalTrace


@pytest.mark.parametrize("transform", [jax.jit, jax.make_jaxpr, lambda f: lambda x: jax.eval_shape(f, x)])
def test_the_trace_that_stages(transform):
    assert isinstance(trace_inside(transform, 1.0), fence.StagingTrace)


def test_the_trace_of_a_loop_body_stages():
    assert isinstance(
        trace_inside(lambda f: lambda x: lax.fori_loop(0, 2, lambda _, v: f(v), x), 1.0), fence.StagingTrace
    )


# ---- values and effects ---------------------------------------------------------------------------------------------


def test_a_ref_is_told_by_its_type():
    assert isinstance(jax.new_ref(jnp.ones(2)), fence.Ref) and not isinstance(jnp.ones(2), fence.Ref)
    jaxpr = jax.make_jaxpr(lambda x: jax.new_ref(x)[...])(1.0).jaxpr
    assert [isinstance(v.aval, fence.RefType) for eqn in jaxpr.eqns for v in eqn.outvars] == [True, False]


def test_a_rule_has_the_stores_of_what_it_is_made_of():
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    (eqn,) = jax.make_jaxpr(jax.vmap(f))(jnp.ones(2)).eqns
    thunk = eqn.params["fwd_jaxpr_thunk"]
    assert not all(fence.stores_in(thunk))  # there is an empty one
    thunk.call_wrapped(True)
    assert all(fence.stores_in(thunk)) and fence.stores_in(thunk)


def test_a_type_of_the_user_is_told_from_jax_own():
    from jax.experimental import hijax

    class Type(hijax.HiType):
        pass

    known = type("Known", (), {})
    hijax.register_hitype(known, lambda _: Type())
    assert type(fence.user_type(known())) is Type
    assert [fence.user_type(x) for x in (1.0, jnp.ones(2), jax.new_ref(jnp.ones(2)), object())] == [None] * 4


def test_which_dtypes_carry_gradient():
    dtypes = "float32", "bfloat16", "complex64", "float8_e4m3fn", "int32", "bool", jax.random.key(0).dtype
    tangents = [fence.tangent_dtype(jnp.dtype(d) if isinstance(d, str) else d) for d in dtypes]
    assert [d != jax.dtypes.float0 for d in tangents] == [True] * 4 + [False] * 3
    assert fence.add_tangents(jnp.float32(1.0), jnp.float32(2.0)) == 3.0


def test_what_a_value_of_a_mutable_type_holds():
    from jax.experimental import hijax

    if not hasattr(hijax, "MutableHiType"):
        assert [fence.held_in(x) for x in (1.0, jnp.ones(2), jax.new_ref(jnp.ones(2)))] == [[]] * 3
        pytest.skip("this JAX has no such types")
    from jax._src.tree_util import FlatTree

    class Box:
        held = jnp.ones(2)

        def cur_qdd(self):
            return None

        type_state = cur_qdd

    class BoxType(hijax.MutableHiType):
        def __hash__(self):
            return hash(type(self))

        def __eq__(self, other):
            return type(self) is type(other)

        def read_loval(self, _, box):
            return [box.held]

    class Growing(Box):
        pass

    class GrowingType(BoxType):  # what it takes from a program is another than what it gives to one
        read_loval = hijax.MutableHiType.read_loval

        def read_loval_out(self, _, box):
            return FlatTree.flatten({"x": [box.held]})

    hijax.register_hitype(Box, lambda _: BoxType())
    hijax.register_hitype(Growing, lambda _: GrowingType())
    assert BoxType().has_qdd and fence.held_in(Box()) == fence.held_in(Growing()) == [Box.held]
    assert [fence.held_in(x) for x in (1.0, jnp.ones(2), jax.new_ref(jnp.ones(2)), object())] == [[]] * 4


def test_a_program_is_traced_with_types_that_are_no_arrays():
    from jax.experimental import hijax

    class Type(hijax.HiType):
        def __hash__(self):
            return hash(type(self))

        def __eq__(self, other):
            return type(self) is type(other)

    for each in ([Type()], [jax.typeof(jnp.ones(2))], [jax.typeof(jnp.asarray(2.0))]):
        assert jax.make_jaxpr(lambda x: x)(*each).in_avals == each


def test_zeros_of_a_type():
    for x in (jnp.ones(2), jnp.asarray(2.0), jnp.ones(2, "complex64"), jnp.arange(2)):
        tangent = jax.typeof(x).to_tangent_aval()
        assert jnp.shape(fence.zeros_of(tangent)) == x.shape and fence.zeros_of(tangent).dtype == tangent.dtype


def test_what_touches_a_ref_of_outside_has_an_effect():
    ref = jax.new_ref(jnp.ones(2))

    def effects(f):
        return [e for e in jax.make_jaxpr(f)(ref, jnp.ones(2)).effects if isinstance(e, fence.REF_EFFECTS)]

    assert effects(lambda ref, x: ref[...]) and effects(lambda ref, x: ref.__setitem__(..., x))
    assert not effects(lambda ref, x: jax.new_ref(x)[...]) and not effects(lambda ref, x: x)


@pytest.mark.parametrize("ordered", [False, True])
def test_what_asks_the_host_has_an_effect(ordered):
    shape = jax.ShapeDtypeStruct((), np.float32)
    closed = jax.make_jaxpr(lambda: io_callback(lambda: np.float32(1.0), shape, ordered=ordered))()
    assert contents.asks_host(closed)
    assert not contents.asks_host(jax.make_jaxpr(lambda x: jax.pure_callback(np.sin, shape, x))(np.float32(1.0)))


@pytest.mark.parametrize(
    "call", [jax.debug.callback, lambda *args, **ordered: io_callback(print, None, *args[1:], **ordered)]
)
@pytest.mark.parametrize("ordered", [False, True])
def test_what_prints_has_an_effect(call, ordered):
    closed = jax.make_jaxpr(lambda x: [call(print, x, ordered=ordered), x * 2])(1.0)
    assert contents.prints(closed) and not contents.asks_host(closed)
    again = prints.without_prints(closed)
    assert not again.effects and [eqn.primitive.name for eqn in again.eqns] == ["mul"]


def test_trace_context_is_all_settings_that_decide_a_program():
    before = fence.trace_context()
    assert hash(before) is not None and before == fence.trace_context()
    with jax.default_matmul_precision("float32"):
        assert fence.trace_context() != before
    with jax.enable_x64(not jax.config.jax_enable_x64) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        changed = fence.trace_context()
    assert changed != before or jax.config.jax_enable_x64
    assert fence.trace_context() == before


def test_a_primitive_without_a_lowering():
    primitive = fence.Primitive("tapejax_test_python_only")
    primitive.def_impl(lambda x: x)
    assert not fence.has_lowering(primitive)
    assert fence.has_lowering(lax.add_p)


def test_public_primitives():
    assert fence.is_public(lax.add_p)
    assert not fence.is_public(fence.Primitive("no_such_thing")) and not fence.is_public(fence.Primitive("add"))


# ---- programs -------------------------------------------------------------------------------------------------------


def test_a_closed_jaxpr_has_a_jaxpr_and_constants():
    array = jnp.arange(3.0)
    closed = jax.make_jaxpr(lambda x: x + array)(array)
    assert isinstance(closed, fence.ClosedJaxpr)
    inner = contents.open_jaxpr(closed)
    assert isinstance(inner, fence.Jaxpr)
    assert len(inner.invars) == 1 and [float(x) for x in fence.eval_jaxpr(inner, closed.consts, array)[0]] == [0, 2, 4]
    np.testing.assert_array_equal(fence.jaxpr_as_fun(closed)(array)[0], [0, 2, 4])
    assert closed.replace(jaxpr=inner, consts=closed.consts).consts == closed.consts


def test_a_literal_is_made_of_a_value_and_its_type():
    (equation,) = equations(lambda x: x * 2.0, 1.0)
    (literal,) = [v for v in equation.invars if isinstance(v, fence.Literal)]
    again = fence.Literal(literal.val, literal.aval)
    assert again.val == literal.val and again.aval == literal.aval
    assert equation.replace(invars=list(equation.invars)).primitive is equation.primitive


def test_the_context_of_an_equation_is_compared_and_entered():
    f = lambda key: jax.random.bits(key, (2,))  # noqa: E731
    key = jax.random.key(0)
    with jax.threefry_partitionable(True):
        (*_, one) = equations(f, key)
    with jax.threefry_partitionable(False):
        (*_, other) = equations(f, key)
    assert one.ctx == one.ctx and hash(one.ctx) == hash(one.ctx)
    assert one.ctx != other.ctx
    with one.ctx.manager:
        assert jax.config.jax_threefry_partitionable


def test_what_a_jit_says_of_itself():
    (equation,) = equations(jax.jit(lambda x: x * 2.0), 1.0)
    assert equation.primitive.name in contents.JIT and contents.is_plain_jit(equation.params)
    assert all(x is fence.UNSPECIFIED for x in equation.params["in_shardings"])
    (donating,) = equations(jax.jit(lambda x: x * 2.0, donate_argnums=0), 1.0)
    assert not contents.is_plain_jit(donating.params)


def test_jitted_functions_are_of_one_type():
    for jitted in (jax.jit(jnp.sin), jax.jit(jnp.sin, static_argnums=()), jax.nn.relu.fun):
        assert isinstance(jitted, fence.JitFunction) and isinstance(jitted, jax.stages.Wrapped)
    assert not isinstance(len, fence.JitFunction)


def test_what_a_scan_says_of_its_operands():
    array = jnp.arange(3.0)

    def step(carry, x):
        return (carry[0] + x * array[0], carry[1] * carry[0]), x

    (equation,) = [e for e in equations(lambda x: lax.scan(step, (x, x), array), 1.0) if e.primitive.name == "scan"]
    consts, carry = contents.scan_counts(equation.params)
    assert carry == 2 and len(equation.invars) == consts + carry + 1


def test_parameters_of_control_flow():
    loops = equations(lambda x: lax.while_loop(lambda v: v < 9.0, lambda v: v * 2.0, x), 1.0)
    (loop,) = [e for e in loops if e.primitive.name == "while"]
    assert {"cond_nconsts", "body_nconsts", "cond_jaxpr", "body_jaxpr"} <= loop.params.keys()
    (cond,) = [e for e in equations(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), 1.0) if e.primitive.name == "cond"]
    assert len(cond.params["branches"]) == 2 and len(cond.invars) == 2


# ---- functions with rules of their own --------------------------------------------------------------------------------


@jax.custom_jvp
def cubed(x):
    return x**3


cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3.0 * primals[0] ** 2 * tangents[0]))


@jax.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, ct: (2.0 * x * ct,))


def test_the_rule_of_a_custom_jvp_call_can_be_traced():
    (equation,) = equations(cubed, 2.0)
    assert equation.primitive.name == "custom_jvp_call" and not equation.params["symbolic_zeros"]
    thunk = equation.params[contents.RULES["custom_jvp_call"]]
    jaxpr, consts, zeros = thunk.call_wrapped(False)
    value, tangent = fence.eval_jaxpr(jaxpr, consts, 2.0, 1.0)
    assert (float(value), float(tangent), list(zeros)) == (8.0, 12.0, [False])


def test_the_rule_of_a_custom_vjp_call_can_be_traced():
    (equation,) = equations(squared, 2.0)
    params = equation.params
    assert equation.primitive.name == "custom_vjp_call" and params["num_consts"] == 0
    jaxpr, consts = params[contents.RULES["custom_vjp_call"]].call_wrapped(True)
    assert [float(x) for x in fence.eval_jaxpr(jaxpr, consts, 2.0)][0] == 4.0
    trees = params["out_trees"]()
    assert len(trees) >= 3 and float(jax.tree.leaves(params["bwd"].call_wrapped(2.0, 1.0))[0]) == 4.0


def test_the_users_function_in_a_custom_vjp_call():
    """The same one wherever the call stands, so that it can be recognised by it."""

    def backward(x, ct):
        return (2.0 * x * ct,)

    function = jax.custom_vjp(lambda x: x * x)
    function.defvjp(lambda x: (x * x, x), backward)
    (equation,) = equations(function, 2.0)
    (inside,) = equations(lambda x: lax.scan(lambda c, _: (function(c), None), x, None, length=2)[0], 2.0)
    (again,) = inside.params["jaxpr"].eqns
    assert fence.function_in(equation.params["bwd"]) is fence.function_in(again.params["bwd"]) is backward


def test_get_bind_params_gives_what_bind_takes():
    for function in (cubed, squared):
        (equation,) = equations(function, 2.0)
        given = equation.primitive.get_bind_params(equation.params)
        assert float(equation.primitive.bind(2.0, **given)[0]) == float(function(2.0))


def test_a_custom_call_arrives_at_a_trace_as_functions():
    class Catching(Doubling):
        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, **params):
            self.caught = fun, params
            return fence.under(self.outer, primitive.bind, *tracers, subfuns=(fun, jvp), **params)

    trace = Catching(fence.current_trace())
    with fence.set_current_trace(trace):
        assert float(cubed(2.0)) == 8.0
    fun, params = trace.caught
    assert calls.function_name(fun) == "cubed" and "symbolic_zeros" in params
    assert isinstance(fun.stores, tuple) and isinstance(fun.transforms, tuple) and callable(fun.populate_stores)


# ---- answers of JAX's that are put right ------------------------------------------------------------------------------


def test_what_is_put_right_exists_and_is_asked_for():
    assert callable(fence.core.trace_state_clean) and callable(fence.core.TracingContext.is_top_level)
    assert callable(fence.custom_derivatives._maybe_perturbed)
    assert callable(fence.stages.Compiled.__call__)
    assert fence.core.trace_state_clean()
    seen = []
    jax.jit(lambda x: seen.append(fence.core.trace_state_clean()) or x)(1.0)
    assert seen == [False]


@pytest.mark.parametrize("simplified", [False, True])
def test_arrays_that_are_written_into_a_program_but_where_a_derivative_may_be_taken(simplified):
    before = jax.config.jax_use_simplified_jaxpr_constants
    try:
        jax.config.update("jax_use_simplified_jaxpr_constants", simplified)
        for x in (jnp.ones(3), np.ones(3, "float32")):
            assert [fence.core.is_literalable(x, for_ad) for for_ad in (False, True)] == [simplified, False]
    finally:
        jax.config.update("jax_use_simplified_jaxpr_constants", before)


def test_the_answer_that_flax_asks_for_is_public():
    from jax.extend import core as public

    outside = public.get_opaque_trace_state()
    seen = []
    jax.jit(lambda x: seen.append(public.get_opaque_trace_state() == outside) or x)(1.0)
    assert seen == [False]


# ---- arrays and numbers ---------------------------------------------------------------------------------------------


def test_arrays_that_have_a_value_are_of_one_type():
    x = jnp.ones(2)
    for array in (x, jax.jit(jnp.sin)(x), x[0], jax.device_put(np.ones(2)), jnp.asarray(2.0)):
        assert type(array) is fence.ConcreteArray and array.aval.dtype is array.dtype
    assert type(jax.random.key(0)) is not fence.ConcreteArray


@pytest.mark.parametrize("wide", [False, True])
def test_what_jax_makes_of_a_number(wide):
    """Its type is that of an array from the host, with 64-bit types on or off: the same compiled program takes both."""
    with jax.enable_x64(wide):
        assert fence.enable_x64.value is wide
        for number in (2.5, 3, True):
            aval, traced = jax.typeof(number), []
            fn = jax.jit(lambda x, traced=traced: traced.append(x.aval) or x)
            array = fence.array_from_host(np.asarray(number, aval.dtype), aval)
            assert fn(number) == fn(array) and traced == [aval] and not array.committed


def test_jax_asks_a_registered_type_for_its_type():
    class Opaque:
        __jax_array__ = None

    fence.refuse_type(Opaque, "said in our words")
    with pytest.raises(ValueError, match="said in our words"):
        jax.grad(lambda x: Opaque())(1.0)


def test_a_tracer_knows_the_line_that_made_it():
    kept = []
    jax.jit(lambda x: kept.append(x + 1.0))(1.0)  # that it is no line of tapejax, test_explain_students.py says
    assert __file__ in fence.made_at(kept[0])


def test_what_is_traced_at_the_source_of_an_equation_has_its_line_and_its_scopes():
    def line(x):
        return jax.named_scope("inner")(jax.lax.sin)(x)

    (eqn,) = jax.make_jaxpr(line)(1.0).eqns

    def again(x):
        with jax.named_scope("outer"), fence.at_source(eqn):
            return eqn.primitive.bind(x, **eqn.params)

    (copied,) = jax.make_jaxpr(again)(1.0).eqns
    assert copied.source_info.traceback is eqn.source_info.traceback
    assert str(copied.source_info.name_stack) == "outer/inner"


def test_a_pullback_takes_symbolic_zeros():
    """What comes back to a result that is not used: JAX runs nothing for it."""
    told = []

    @jax.custom_vjp
    def f(x):
        return x, 2 * x

    f.defvjp(lambda x: (f(x.value), None), lambda _, cts: told.extend(map(type, cts)) or (cts[0],), symbolic_zeros=True)
    _, pull = jax.vjp(jax.jit(lambda x: list(f(x))), jnp.ones(3))
    aval = jax.typeof(jnp.ones(3)).to_ct_aval()
    np.testing.assert_array_equal(pull([jnp.full(3, 5.0), fence.Zero(aval)])[0], np.full(3, 5.0))
    assert told[1] is jax.custom_derivatives.SymbolicZero


# What JAX can be told that a program which is compiled already does not depend on, when it runs on a CPU.
NOT_OF_A_RUN = set(
    # what is looked at while a program is traced, compiled, kept, exported or loaded
    (
        "array_garbage_collection_guard bcoo_cusparse_lowering captured_constants_report_frames "
        "captured_constants_warn_bytes check_tracer_leaks compilation_cache_check_contents compilation_cache_dir "
        "compilation_cache_expect_pgle compilation_cache_include_metadata_in_key compilation_cache_max_size "
        "custom_vjp_disable_shape_check disable_bwd_checks disable_vmap_shmap_error disallow_mesh_context_manager "
        "enable_checks enable_compilation_cache enable_custom_prng enable_remat_opt_pass "
        "exec_time_optimization_effort explain_cache_misses export_deserialize_expired_versions "
        "export_ignore_forward_compatibility include_full_tracebacks_in_locations "
        "jax_export_calling_convention_version legacy_prng_key log_checkpoint_residuals log_compiles "
        "memory_fitting_effort memory_fitting_level no_tracing optimization_level "
        "persistent_cache_enable_xla_caches persistent_cache_min_compile_time_secs "
        "persistent_cache_min_entry_size_bytes pgle_aggregation_percentile raise_persistent_cache_errors "
        "refs_to_pins remove_custom_partitioning_ptr_from_cache_key share_binary_between_hosts "
        "share_binary_between_hosts_timeout_ms source_url_schema traceback_filtering traceback_in_locations_limit "
        "jax2tf_associative_scan_reductions jax2tf_default_native_serialization jax_serialization_version use_rgv3 "
        "use_cpp_shard_args xla_runtime_errors random_seed_offset default_prng_impl send_traceback_to_runtime "
        # between devices, and from them to the user: no operation does that on a CPU; other threads
        "transfer_guard_device_to_device transfer_guard_device_to_host thread_guard "
        # other platforms, several processes, and what is fixed when JAX starts
        "cpu_collectives_implementation debug_leaked_clients_on_clear_backends distributed_debug "
        "distributed_verify_secure_credentials gpu_use_magma jax_mosaic_allow_hlo jax_mosaic_unzip_debug_locations "
        "jax_pallas_auto_assign_collective_ids jax_pallas_auto_assign_collective_ids_limit "
        "jax_pallas_poison_buffers jax_pjrt_client_create_options jax_platforms "
        "jax_ragged_dot_use_ragged_dot_instruction mtls_ca_file mtls_cert_file mtls_key_file mtls_peer_uri_prefix "
        "no_collectives "
    ).split()
)


def test_every_setting_that_acts_on_a_run_is_known():
    """What runs ahead, and the keys of what is kept, depend on these: a setting that a new JAX adds has to be looked at."""
    unknown = {}
    for name, setting in vars(config).items():
        if not isinstance(setting, config.State) or setting in fence.RUN_MODES or name in NOT_OF_A_RUN:
            continue
        before, context = setting.swap_local("otherwise"), None
        try:
            context = fence.trace_context()
        finally:
            setting.set_local(before)
        if context == fence.trace_context():
            unknown[name] = setting.value
    # this one sets all guards
    assert unknown.keys() == {"_transfer_guard"}
    before = [mode.value for mode in fence.RUN_MODES]
    with jax.transfer_guard("log"):
        assert [mode.value for mode in fence.RUN_MODES].count("log") == 1
    assert [mode.value for mode in fence.RUN_MODES] == before


def test_another_library_in_the_same_places():
    """One that puts its function over ours is asked first and ours goes on; with no tape the answers are JAX's own."""
    program = """
import jax, jax.numpy as jnp
from jax._src import core, custom_derivatives
from tapejax import GradientTape

asked = []

def over(owner, name):
    below = getattr(owner, name)
    def above(*args, **kwargs):
        asked.append(name)
        return below(*args, **kwargs)
    setattr(owner, name, above)
    return lambda: setattr(owner, name, below)

def gradient():
    x = jnp.float32(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        f, closed = jax.closure_convert(lambda y: y * x, jnp.float32(2.0))
        y = f(jnp.float32(2.0), *closed)
    return float(tape.gradient(y, x)), len(closed)

before = over(core, "is_literalable"), over(custom_derivatives, "_maybe_perturbed")
assert gradient() == (2.0, 1)
after = over(custom_derivatives, "_maybe_perturbed"), over(core, "is_literalable")
asked.clear()
assert gradient() == (2.0, 1) and "_maybe_perturbed" in asked
for put_back in (*after, *before):
    put_back()
x = jnp.float32(3.0)
assert jax.closure_convert(lambda y: y * x, jnp.float32(2.0))[1] == []
assert core.trace_state_clean()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
