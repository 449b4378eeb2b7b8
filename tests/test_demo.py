"""`python -m tapejax demo`."""

import subprocess
import sys

from tapejax import __main__, demo


def test_plain_text(capsys):
    assert __main__.main(["demo"]) == 0
    said = capsys.readouterr().out
    for title, _ in demo.PARTS:
        assert title in said
    for text in (
        "∂",
        "matmul" if "matmul" in said else "multiply",
        "∂loss/∂w",
        "def f(w):",
        "floor",
        "<demo>:19",
        "never watched",
    ):
        assert text in said, said
    assert "\033[" not in said and "[None, None]" in said


def test_in_a_process_of_its_own():
    done = subprocess.run([sys.executable, "-m", "tapejax", "demo"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "" and "def f(w):" in done.stdout
