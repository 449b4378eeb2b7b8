"""places.py: the line of the user's code that asked for an operation."""

import sys
import types

import jax.numpy as jnp
from taping import recorded

from tapejax import places


def test_the_caller_is_the_code_of_the_user():
    code, instruction = places.caller(0)
    assert code.co_name == "test_the_caller_is_the_code_of_the_user" and instruction > 0


def test_a_line_prints_as_file_and_number():
    line = places.line_of(places.caller(0))
    assert str(line) == f"test_places.py:{line.number}" and line.text == "line = places.line_of(places.caller(0))"


def test_no_code_of_the_user_is_no_line():
    assert places.line_of(None) is None


def test_libraries_serve_the_user():
    assert places.serves(jnp.__file__) and places.serves(places.__file__) and not places.serves(__file__)


def test_an_entry_knows_its_line():
    recording, _ = recorded(lambda x: jnp.sin(x), jnp.ones(2))
    assert recording.entries[0].line.function == "<lambda>"


def test_where_only_libraries_run_there_is_no_caller(monkeypatch):
    monkeypatch.setattr(places, "_whose", lambda file: "library")
    assert places.caller(0) is None


def test_frames_that_are_skipped_do_not_count():
    def skipped():
        return places.caller(2)

    assert skipped()[0].co_name == "test_frames_that_are_skipped_do_not_count"


def test_a_file_that_is_no_file_is_printed_whole():
    code = compile("x = 1\ny = 2", "<made by a/b>", "exec")
    assert str(places.line_of((code, len(code.co_code) - 2))) == "<made by a/b>:2"


def test_a_notebook_cell_prints_as_its_label(monkeypatch):
    compiler = types.SimpleNamespace(format_code_name=lambda file: ("Cell", "In[3]") if file == "cell.py" else None)
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    lines = [places.SourceLine(file, 2, "", "f") for file in ("cell.py", "<ipython-input-1>", "/a/other.py")]
    assert [*map(str, lines)] == ["In [3]:2", "cell:2", "other.py:2"]
