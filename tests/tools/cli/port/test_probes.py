"""What the passes over a dataset gave: its components, and code for the form of an element."""

import jax.numpy as jnp
import pytest

from tapejax.tools.cli.port.probes import Rows

X, Y = jnp.ones((2, 3)), jnp.arange(2)
FORMS = {
    "lambda x0: x0": X,
    "lambda x0, x1: (x0, x1)": (X, Y),
    "lambda x0, x1: [x0, x1]": [X, Y],
    "lambda x0, x1: {'b': x1, 'a': x0}": {"b": Y, "a": X},
    "lambda x0: (x0,)": (X,),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_element_keeps_its_form(form):
    rows = Rows()
    rows.orders, rows.lengths = [[]], [[]]
    rows.note(FORMS[form])
    assert rows.form == form
    assert rows.data("d")["d/0"].shape[0] == 1  # each row once
    assert rows.lengths[0][0][0] == 2
