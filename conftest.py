"""What pytest leaves out where an optional package is missing, and the options of this suite."""

import ctypes
import functools
import gc
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
import types
import zlib
from pathlib import Path

import jax
import kept
import pytest

HERE = Path(__file__).parent
# A process has one Keras backend: tests/test_keras.py runs these in processes where it is JAX.
collect_ignore = ["tapejax/tf/libraries/keras.py", "tapejax/tf/libraries/keras_export.py"]
# Other names of modules that are collected under their own.
collect_ignore += [f"tapejax/{name}.py" for name in ("data", "keras", "saved_model", "train")]
if importlib.util.find_spec("flatbuffers") is None:
    collect_ignore.append("tapejax/tf/programs/saved_model.py")  # its doctests save models
if importlib.util.find_spec("tensorboardX") is None:
    collect_ignore.append("tapejax/tf/ops/summary.py")
if importlib.util.find_spec("grain") is None:
    collect_ignore += ["tapejax/tf/programs/data.py", "tapejax/tf/programs/pipeline.py"]
if importlib.util.find_spec("orbax") is None or importlib.util.find_spec("orbax.checkpoint") is None:
    collect_ignore.append("tapejax/tf/programs/train.py")


def pytest_addoption(parser):
    parser.addoption(
        "--shadow", action="store_true", help="run in shadow mode: what tapejax recognises is made anew, too"
    )
    parser.addoption("--optimized", action="store_true", help="compile as for users, which takes twice the time")
    parser.addoption("--plain-runner", action="store_true", help="run by `jax.jit` alone, without `tapejax.execution`")
    parser.addoption("--speculate", action="store_true", help="have each block that came twice run ahead")
    parser.addoption("--compiled", action="store_true", help="compile every operation at its first run")
    parser.addoption(
        "--cheap",
        action="store_true",
        help="send each operation through XLA's cheap passes, and compare with `jax.jit`",
    )
    parser.addoption(
        "--tensorflow",
        choices=["kept", "fresh", "keep"],
        default="kept",
        help="TensorFlow's side of the parity tests: as it was kept; computed and compared with that; kept where it is not",
    )


# Tests compile thousands of small programs and run each a few times: half the time where compiling is cheap.
CHEAP = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
if importlib.metadata.version("jaxlib").startswith("0.10."):  # a flag that is unknown ends the process
    CHEAP += " --xla_cpu_use_fusion_emitters=false"


def pytest_configure(config):
    os.environ["TAPEJAX_COMPILATION_CACHE"] = "off"  # nothing is left from one run to the next
    flags = os.environ.get("XLA_FLAGS", "")
    optimized = config.getoption("optimized") or config.getoption("cheap")
    if not optimized and CHEAP not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {CHEAP}"
    if not optimized and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        share_programs(config)
    if config.getoption("compiled"):
        os.environ["TAPEJAX_COMPILE"] = "always"
    if config.getoption("speculate"):
        os.environ["TAPEJAX_SPECULATE"] = "always"
    import_tensorboard()
    if importlib.util.find_spec("tensorflow_probability") is not None:
        import tensorflow_probability  # noqa: F401  # before TensorFlow, after which it would import tf_keras, too
    jax.monitoring.register_event_duration_secs_listener(count_programs)
    if config.getoption("shadow"):
        import tapejax

        tapejax.debugging.enable_shadow_mode()
    if config.getoption("plain_runner"):
        import tapejax._everything  # which makes its runner the current one
        from tapejax.tape import primitives, runner

        runner.use(runner.Runner())
        primitives.use(primitives.Recognition())
    kept.mode = config.getoption("tensorflow")
    if kept.mode == "keep" and config.getoption("numprocesses", None):
        raise pytest.UsageError("--tensorflow=keep writes one file for each test file: run it in one process")
    if kept.mode == "keep" and (config.option.keyword or any("::" in name for name in config.args)):
        raise pytest.UsageError("--tensorflow=keep writes what a whole test file gives: without -k, and without ::")


def share_programs(config):
    """What one process of this run has compiled is read by all of them, and after a file's programs were dropped.

    About half of all programs were compiled before, by another test, a worker or a program that a test starts. JAX counts a
    program that is read as compiled. Where a file is read while it is written, JAX warns and compiles.
    """
    folder = tempfile.mkdtemp(prefix="tapejax-compiled-")
    config.add_cleanup(functools.partial(shutil.rmtree, folder, ignore_errors=True))
    names = "compilation_cache_dir", "persistent_cache_min_compile_time_secs", "persistent_cache_min_entry_size_bytes"
    for name, value in zip(names, (folder, 0, -1), strict=True):
        os.environ[f"JAX_{name.upper()}"] = str(value)
        jax.config.update(f"jax_{name}", value)


def import_tensorboard():
    """tensorboardX without PyTorch, which it imports where that is installed: two seconds and 460 MB in each worker."""
    if importlib.util.find_spec("tensorboardX") is not None and "torch" not in sys.modules:
        sys.modules["torch"] = None
        import tensorboardX  # noqa: F401

        del sys.modules["torch"]


@pytest.fixture(autouse=True)
def cheap(request, monkeypatch):
    """With ``--cheap``: every program goes through XLA's cheap passes, and its results are compared with those of `jax.jit`."""
    if request.config.getoption("cheap"):
        from tapejax.execution import shadow, trial

        monkeypatch.setattr(trial, "MOST_NUMBERS", -1.0)
        monkeypatch.setattr(trial, "cache", types.SimpleNamespace(shadow=shadow.Comparing()))  # of runs alone


@pytest.fixture
def no_shadow():
    """Shadow mode, which makes everything anew, is off: for tests that count what is made."""
    from tapejax.execution import shadow
    from tapejax.jaxprs import cache

    before = cache.shadow
    shadow.switch(False)
    yield
    cache.shadow = before


def pytest_sessionfinish(session):
    kept.save()
    if hasattr(session.config, "workeroutput"):  # of pytest-xdist
        session.config.workeroutput["computed"] = sorted(kept.computed)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    kept.computed.update(getattr(node, "workeroutput", {}).get("computed", ()))


def pytest_terminal_summary(terminalreporter):
    if kept.computed and kept.mode == "kept":
        terminalreporter.write_line(
            "TensorFlow ran for tests whose outcomes are not kept, or are older than the tests. To keep them:\n"
            f'  pytest -m "" --tensorflow=keep {" ".join(sorted(kept.computed))}'
        )


# Files of few tests that run for minutes: a worker that starts one of these last runs it alone.
LONG = [
    "test_distribute",
    "test_notebooks",
    "test_keras",
    "test_keras_parity",
    "test_saved_model_parity",
    "test_autograph_parity",
    "test_random_parity",
]


# Notebooks, whole programs and whatever else runs in processes of its own: a third of the time. They run where their file is
# named, by `-m processes`, and in `.ci/run`.
PROCESSES = [
    "test_benchmarks",
    "test_demo",
    "test_devices",
    "test_distributed",
    "test_examples",
    "test_from_scratch",
    "test_keras",
    "test_keras_data",
    "test_keras_gradients",
    "test_keras_parity",
    "test_keras_porting",
    "test_long_life",
    "test_notebooks",
    "test_port",
    "test_programs",
    "test_run",
    "test_saved_model_parity",
    "test_stored_outputs",
    "test_stubs",
    "test_whose_code",
]

SOME_PROCESSES = ["test_distribute", "test_lazy"]  # has tests that are marked themselves


# Tests of many cases that cost the most: one case in three runs by default, all with `-m "not slow and not processes"`.
# Those that look once more at the cases of another test have `a_third` (tests/tape/plain_jax.py): two of three are slow.
SAMPLED = {
    "test_newest": "what_jax_gives what_a_tape_gives",
    "test_play": "the_numbers_are_those_of_the_recording_and_the_gradient",
    "test_gradients": "the_same_numbers_where_it_is_pasted",
    "test_loops": "a_loop_gives_what_it_gives_without_plans",
    "test_jax_functions": "no_watched_argument_is_lost",
    "arguments": "operations_take_tensors",
    "optimizers": "optimizer",
    "recomputed": "recomputed_training_is_training",
    "test_under_a_tape": "as_without_a_tape as_without_a_tape_in_jit what_a_rule_alone_closes_over second_derivative "
    "a_variable_that_a_rule_alone_reads",
    "test_plain_jax": "tape_inside gradient values_and_as_function",
    "test_perturbed": "as_in_jax second_order with_64_bit_types the_sources_say_what_is_perturbed",
    "test_recognition": "the_gradient_of_what_is_closed_over literals an_array_changed_in_place how_random_bits_are_made",
    "test_derivatives": "hessian jacobian control_flow_under_jit",
    "test_nested_properties": "every_pair_of_levels",
    "test_newest_jax": "a_feature_on_a_tape",
    "test_rules_of_rules": "tapes_around_a_program",
    "test_twins": "near_twins",
    "test_compared": "what_is_compared_is_the_same_number",
    "test_speculation_bits": "each_operation_with_a_number each_operation each_chain",
    "test_unkeyed": "rules_are_told_apart under_transformations_inside_a_block a_warm_step_compiles_nothing",
    "test_primitives": "decompositions elements_by_arrays_of_indices each_primitive_of_each_dtype",
    "test_quick_convolutions": "replaced_as_by_xla mapped_and_of_second_order",
    "test_ecosystem": "a_step",
    "test_optax": "training_equals_the_functional_loop",
    "test_random": "no_draw_is_baked_into_a_program",
    "test_ops_parity": "value_and_gradient",
    "test_signal_and_image_in_functions": "row",
    "test_zero_cotangents": "reverse_mode second_order",
    "test_generated": "programs",
    "test_sweep": "values_dtypes_gradients_and_refusals_are_tensorflows",
    "test_swept_arguments": "swept",
    "test_minimal": "a_program_of_the_guides it_records_what_jax_executes",
    "test_code": "the_code_gives_the_same_numbers",
    "test_local": "the_rule_of_an_elementwise_operation",
    "test_nested_code": "a_derivative_is_a_transformation_with_the_same_numbers",
    "test_printed_programs": "a_rule_over_a_constant printing_calls_nothing",
    "test_source": "operations_of_tensorflow spelling runs_as_it_is",
    "test_transformations": "nested_as_in_jax",
    "test_names_arguments": "rows",
    "test_names_image": "rows",
    "test_names_linalg": "rows",
    "test_names_nn": "rows",
    "test_names_program": "rows",
    "test_names_signal": "rows",
}


# Likewise of what the default suite runs as a whole, where it runs once more with one of the options of this suite; "*" are all.
SAMPLED_WITH = {
    "shadow": {"test_speculation": "it_gives_what_it_gives_without_a_plan random_programs_that_change_at_random"},
    "cheap": {"test_kinks": "*", "test_poles": "*"},
}


# What a test cannot show under one of JAX's settings (`.ci/matrix`): {setting: {reason: the beginnings of tests' names}}.
NOT_UNDER = {
    "jax_debug_nans": {
        "JAX raises where the test's own numbers are nan": [
            "test_derivatives.py::test_forward_mode[where_nan_branch]", "test_pole_products.py::", "test_products_at_poles.py::",
            "test_jacobian.py::test_at_a_pole_it_is_reverse_modes", "test_plain_jax.py::test_gradient[where_nan_branch]",
            "test_plain_jax.py::test_values_and_as_function[where_nan_branch]",
        ],
        "JAX looks at what came out of its own program, and XLA ends the process": [
            "test_trial.py::test_more_elements_than_xla_can_count_are_refused",
        ],
        "JAX donates nothing": [
            "test_contents.py::test_a_plain_jit_asks_for_nothing_but_compilation",
            "test_contents.py::test_inputs_that_a_call_returns_unchanged",
            "test_fence.py::test_what_a_jit_says_of_itself",
            "test_query.py::test_a_recorded_value_that_was_deleted_is_named",
            "test_recording.py::test_what_was_donated_is_deleted",
            "test_under_a_tape.py::test_donating_one_output_leaves_the_others",
            "test_under_a_tape.py::test_shardings_and_donation_are_kept",
        ],
        "every operation is compiled": [
            "test_interpreter.py::", "test_primitives.py::", "test_short_programs.py::test_nothing_is_compiled",
            "test_quick_convolutions.py::test_the_compiler_is_given_the_replaced_program",
            "test_quick_convolutions.py::test_a_tape_around_compiled_functions_is_served",
            "test_trial.py::test_is_compiled_after_a_number_of_calls_that_depends_on_shapes_alone",
            "test_trial.py::test_without_an_evaluator_everything_is_compiled",
            "test_trial.py::test_unknown_options_of_xla_do_not_end_the_process",
            "test_compared.py::test_what_is_compared_is_the_same_number",
            "test_unkeyed.py::test_a_warm_step_compiles_nothing", "test_unkeyed.py::test_arrays_of_a_rule_are_let_go",
        ],
    },
    "jax_enable_x64": {
        "a NumPy number is one of 64 bits, and JAX refuses branches of two types": ["test_twins.py::test_near_twins[literal]"],
    },
    "jax_check_tracer_leaks": {
        "JAX keeps no trace, and compiles anew": [
            "test_derivatives.py::test_a_jacobian_seen_before_compiles_nothing",
            "test_prints.py::test_printed_once[custom_vjp",
            "test_robustness.py::test_a_step_seen_before_compiles_nothing",
            "test_unkeyed.py::test_a_warm_step_compiles_nothing", "test_unkeyed.py::test_a_warm_step_takes_no_derivative",
            "test_unkeyed.py::test_a_program_that_was_traced_twice_comes_back",
        ],
        "the reference, JAX alone, is reported, or reports an error of its own as a leak": [
            *(f"test_plain_jax.py::test_tape_inside[in_custom_{rule}" for rule in ("jvp_rule", "vjp_backward")),
            *(f"test_plain_jax.py::{name}[custom_vjp_with_constant_closed_over_by_rule]" for name in (
                "test_gradient", "test_tape_inside_jit", "test_values_and_as_function",
            )),
            "test_derivatives.py::test_a_gradient_for_a_jitted_function",
            "test_perturbed.py::test_a_rule_that_refuses_what_is_not_perturbed",
            "test_plain_jax.py::test_references_that_are_made_of_constants[_in_loop]",
            "test_plain_jax.py::test_what_cannot_be_differentiated_is_named[pure_callback in jit]",
            "test_prints.py::test_printed_once[scan]", "test_prints.py::test_printed_once[jitted scan]",
            "test_random_programs.py::", "test_twins.py::",
            "test_under_a_tape.py::test_as_without_a_tape[jvp_over_a_batched_value]",
            "test_under_a_tape.py::test_rules_are_for_arguments[True",
            "test_under_a_tape.py::test_without_a_gradient[by_sequential_vmap]",
            "test_unkeyed.py::test_what_has_no_derivative_may_be_recorded",
            "test_under_a_tape.py::test_as_without_a_tape[shard_map_of_a_jitted_closure]",
            "test_under_a_tape.py::test_as_without_a_tape_in_jit[shard_map_of_a_jitted_closure]",
            "test_plain_jax.py::test_values_of_a_user_that_change_in_place",
            "test_plain_operations.py::test_what_asks_python_for_an_answer_is_not_differentiated",
            *(f"test_under_a_tape.py::test_a_variable_that_a_rule_alone_reads[sine_by_{rule}-in_a_tape-" for rule in (
                "jvp", "forward", "backward",
            )),
        ],
        "the tape keeps a rule that closes over what `vmap` maps": ["test_mapped_rules.py::"],
        "the test lets a tracer, or a tape that has some, out of its trace": [
            "test_faults.py::test_random_calls", "test_nested_properties.py::", "test_plain_jax.py::test_escaped_tracer",
            "test_robustness.py::test_a_tape_entered_in_jit_and_left_outside",
            "test_fence.py::test_a_tracer_knows_the_line_that_made_it",
            "test_prints.py::test_a_rule_that_calls_its_function_again",
            "test_runner.py::test_the_plain_runner_compiles_each_operation_once",
        ],
    },
    "jax_disable_jit": {
        "there is no jit: the Python function runs": [
            "test_active.py::test_values_are_known_unless_a_program_is_traced",
            "test_canonical.py::test_a_program_is_its_operations_types_and_literals",
            *(f"test_contents.py::{name}" for name in (
                "test_a_plain_jit_asks_for_nothing_but_compilation", "test_inputs_that_a_call_returns_unchanged",
                "test_the_operands_of_a_scan_are_counted", "test_arrays_that_are_closed_over_are_found_at_any_depth",
            )),
            "test_dependence.py::test_what_a_loop_carries_comes_round_any_number_of_times",
            "test_lifting.py::test_a_primitive_that_is_bound_is_lifted_with_its_parameters",
            "test_lifting.py::test_a_jit_gets_an_input_in_front_for_each_array",
            "test_operation.py::test_what_jax_cannot_differentiate_is_named",
            *(f"test_plain_operations.py::{name}" for name in (
                "test_what_a_program_closes_over_comes_in_front", "test_a_jitted_program_is_compiled_by_jax",
                "test_what_changes_in_place_has_no_derivative",
            )),
            "test_query.py::test_a_recorded_value_that_was_deleted_is_named",
            "test_recording.py::test_what_was_donated_is_deleted",
            "test_slicing.py::test_only_what_leads_to_the_target_is_in_it",
            "test_slicing.py::test_what_has_no_gradient_is_followed_where_it_is_asked_for",
            "test_trace.py::test_each_primitive_is_an_entry", "test_trace.py::test_a_jitted_function_is_one",
            "test_trial.py::", "test_interpreter.py::", "test_primitives.py::", "test_quick_convolutions.py::",
            "test_plain_operations.py::test_a_derivative_does_not_print",
            "test_plain_operations.py::test_what_asks_python_for_an_answer_is_not_differentiated",
            # `identity` gives the same array
            "test_properties.py::test_gradient_step_by_step[jnp]", "test_properties.py::test_what_is_not_watched_or_ran_before",
            "test_runner.py::test_the_plain_runner_compiles_each_operation_once",
            "test_short_programs.py::test_nothing_is_compiled",
            "test_trace.py::test_an_input_that_comes_out_is_a_value_of_its_own",
            "test_trace.py::test_what_cannot_be_followed_runs_and_has_an_entry_that_refuses_a_gradient[compiled ahead]",
            "test_under_a_tape.py::test_which_transformations_jax_finds_around[jit]",
            "test_compared.py::test_a_call_that_asks_for_more_than_compilation_stays",
            *(f"test_derivatives.py::{name}" for name in (
                "test_the_memory_of_2000_columns", "test_a_gradient_for_a_jitted_function", "test_no_gradient",
                "test_the_number_of_registered_gradients", "test_a_while_loop_under_jit", "test_traced_branches_agree",
            )),
            *(f"test_fence.py::{name}" for name in (
                "test_the_trace_is_part_of_the_key_of_compiled_functions", "test_the_trace_that_stages[jit]",
                "test_the_users_function_in_a_custom_vjp_call", "test_a_tracer_knows_the_line_that_made_it",
                "test_the_trace_of_a_loop_body_stages", "test_what_a_jit_says_of_itself",
                "test_what_a_scan_says_of_its_operands", "test_what_is_put_right_exists_and_is_asked_for",
                "test_the_answer_that_flax_asks_for_is_public", "test_what_jax_makes_of_a_number",
            )),
            "test_plain_jax.py::test_what_cannot_be_differentiated", "test_plain_jax.py::test_escaped_tracer",
            "test_plain_jax.py::test_references", "test_plain_jax.py::test_calls_that_touch_a_reference_made_outside",
            "test_plain_jax.py::test_inputs_that_are_returned[jit]", "test_plain_jax.py::test_a_tape_is_no_transformation",
            *(f"test_listing.py::{name}" for name in (
                "test_table", "test_len_index_and_iteration", "test_numpy_arrays_are_shown_by_their_type",
            )),
            "test_prints.py::test_printed_once[a ref]",
            "test_residuals.py::",
            "test_robustness.py::test_an_exception_anywhere[in_inner_gradient]",
            "test_shadow.py::test_a_wrong_operation_is_found[programs of JAX's]",
            "test_shadow.py::test_a_compiled_program_that_is_out_of_date_is_found",
            "test_twins.py::test_near_twins[name]", "test_twins.py::test_near_twins[result]",
            *(f"test_under_a_tape.py::{name}" for name in (
                "test_as_without_a_tape[reference_in_jit]", "test_as_without_a_tape_in_jit[reference_in_jit]",
                "test_outputs_are_values_of_their_own[jit]", "test_donating_one_output_leaves_the_others",
                "test_shardings_and_donation_are_kept", "test_compiled_ahead_of_time",
                "test_without_a_gradient[by_while_loop]", "test_a_mesh_set_inside",
                "test_a_program_that_asks_the_host_is_not_run_again_for_its_gradient",
                # nothing is baked into a program, so that nothing is refused
                "test_a_rule_whose_function_reads_a_variable", "test_a_variable_that_a_rule_alone_reads",
                "test_a_stateful_generator_without_a_seed",
            )),
            "test_shadow.py::test_a_wrong_representative_is_found",
        ],
        "JAX, or Flax's rule, ends in an error of its own": [
            "test_plain_jax.py::test_a_dtype_of_a_user_with_a_tangent",
            "test_plain_jax.py::test_values_of_a_user_that_change_in_place",
        ],
        "a rule runs as Python where it is not traced, and prints again": [
            "test_prints.py::test_printed_once[custom_jvp in jit]", "test_prints.py::test_a_rule_that_calls_its_function_again",
        ],
        "what gives its argument back gives Python's number, not an array": [
            "test_plain_jax.py::test_gradient[jit_tree]", "test_plain_jax.py::test_none[another part of a carry]",
            "test_plain_jax.py::test_tape_inside[in_scan", "test_plain_jax.py::test_values_and_as_function[jit_tree]",
            "test_recognition.py::test_a_kept_number_is_nobodys_value",
        ],
        "the reference calls methods of NumPy's arrays that only JAX's have": [
            *(f"test_random_programs.py::test_random_programs[{name}]" for name in ("", "function", "jit", "vmap")),
        ],
        "NumPy converts the numbers, and warns": ["test_recognition.py::test_numbers_are_told_apart[32-bit]"],
    },
    "cheap": {
        "it looks at what NumPy evaluates": [
            "test_interpreter.py::", "test_primitives.py::",
            "test_trial.py::test_is_compiled_after_a_number_of_calls_that_depends_on_shapes_alone",
        ],
    },
    "speculate": {
        "a plan is compiled": ["test_short_programs.py::test_nothing_is_compiled"],
        "last digits change when a plan begins": [
            "test_explain_says.py::test_the_gradient_is_the_same_before_and_after",
        ],
    },
    "plain_runner": {
        "a pullback that is not compiled reads what was donated": [
            "test_under_a_tape.py::test_as_without_a_tape[donated]", "test_plain_jax.py::test_donated_argument",
        ],
        "it looks at what `tapejax.execution` does": [
            "test_derivatives.py::test_the_mode_with_fewer_passes", "test_derivatives.py::test_the_memory_of_2000_columns",
            "test_long_life.py::test_what_is_used_at_each_step_stays_however_much_it_is",
            "test_prints.py::test_printed_once[custom_vjp]", "test_robustness.py::test_no_program_is_kept_alive",
            "test_robustness.py::test_caches_are_bounded",
            "test_robustness.py::test_a_step_seen_before_compiles_nothing",
            "test_robustness.py::test_a_structure_that_changes_every_step_compiles_nothing_once_its_pa",
        ],
        "JAX refuses a derivative with an explicit sharding outside its mesh, as `jax.vjp` does without a tape": [
            "test_under_a_tape.py::test_a_mesh_set_inside[Explicit]",
        ],
    },
}  # fmt: skip


def pytest_ignore_collect(collection_path, config):
    """Only tests are imported, as far as they are not named, and for `-m processes` its own alone.

    What else lies there are programs that tests run: to import them, in search of doctests, took a minute in each worker.
    """
    if collection_path.suffix != ".py":
        return None
    own = collection_path.stem in [*PROCESSES, *SOME_PROCESSES]
    alone = config.option.markexpr.startswith("processes")
    named = collection_path in [config.invocation_params.dir / name.partition("::")[0] for name in config.args]
    other = HERE / "tests" in collection_path.parents and not collection_path.name.startswith("test_") and not named
    return True if alone and not own or other else None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: item.path.stem not in LONG)
    named = {Path(argument.partition("::")[0]).stem for argument in config.args}
    # a file that is named, without -m, runs whole
    wanted = named if config.option.markexpr == config.getini("addopts")[-1] else set()
    sampled = dict(SAMPLED)
    for option, tests in SAMPLED_WITH.items():
        sampled |= tests if config.getoption(option) else {}
    for item in items:
        if item.path.stem in PROCESSES and item.path.stem not in wanted:
            item.add_marker(pytest.mark.processes)
        # the sum says the same in each process and on each day
        stem, test = item.path.stem, item.name.partition("[")[0].removeprefix("test_")
        of_many = {test, "*"} & {*sampled.get(stem, "").split()}
        if stem not in wanted and of_many and zlib.crc32(item.name.encode()) % 3:
            item.add_marker(pytest.mark.rest)
    for setting, reasons in NOT_UNDER.items():
        if getattr(jax.config, setting) if setting.startswith("jax_") else config.getoption(setting):
            for reason, names in reasons.items():
                mark = pytest.mark.skip(reason=f"{setting}: {reason}")
                for item in items:
                    if item.nodeid.rpartition("/")[2].startswith(tuple(names)):
                        item.add_marker(mark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file runs in one process, so that what it compiles is of use to it and can be dropped after it."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    try:
        return (yield)
    except Exception as error:
        if "jax_numpy_rank_promotion='raise'" in str(error) and jax.config.jax_numpy_rank_promotion == "raise":
            pytest.skip("the test's own program promotes ranks")
        raise


PROGRAMS_AT_MOST = 400  # each takes one to two megabytes
compiled = 0


def count_programs(event, duration, **_):
    global compiled
    compiled += event == "/jax/core/compile/backend_compile_duration"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Compiled programs go with the file that needed them, and in between when they are many."""
    global compiled
    if "tapejax" not in sys.modules or nextitem and nextitem.path == item.path and compiled < PROGRAMS_AT_MOST:
        return
    compiled = 0
    find_caches()
    for clear in clears:
        clear()
    jax.clear_caches()
    set_aside()
    if hasattr(C, "malloc_trim"):  # glibc keeps what was freed
        C.malloc_trim(0)


clears = []


def find_caches():
    """Notes what clears tapejax's caches, of those that the garbage collector looks at."""
    for known in gc.get_objects():
        if type(known) is sys.modules["tapejax.jaxprs.cache"].Cache:
            clears.append(known.clear)
        elif type(known) is functools._lru_cache_wrapper and known.__module__.startswith("tapejax"):
            clears.append(known.cache_clear)


def set_aside():
    """Frees garbage; what is left are modules, which the garbage collector need not search for each of the later tests."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish(session):
    if "tapejax" in sys.modules:
        importlib.import_module("tapejax._everything")  # all of it, whichever file is run
        find_caches()
        set_aside()


C = ctypes.CDLL(None)
