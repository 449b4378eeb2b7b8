"""tape/where.py: the line of the user's code that asked for an operation."""

import jax.numpy as jnp
from taping import recorded

from tapejax.tape import where


def test_the_caller_is_the_code_of_the_user():
    code, instruction = where.caller(0)
    assert code.co_name == "test_the_caller_is_the_code_of_the_user" and instruction > 0


def test_a_line_prints_as_file_and_number():
    line = where.line_of(where.caller(0))
    assert str(line) == f"test_where.py:{line.number}" and line.text == "line = where.line_of(where.caller(0))"


def test_no_code_of_the_user_is_no_line():
    assert where.line_of(None) is None


def test_libraries_serve_the_user():
    assert where.serves(jnp.__file__) and where.serves(where.__file__) and not where.serves(__file__)


def test_an_entry_knows_its_line():
    recording, _ = recorded(lambda x: jnp.sin(x), jnp.ones(2))
    assert recording.entries[0].line.function == "<lambda>"
