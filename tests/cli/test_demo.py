"""`python -m tapejax demo`."""

import os
import subprocess
import sys

import pytest

from tapejax import __main__
from tapejax.cli import demo


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


def test_where_there_is_no_such_letter():
    command = [sys.executable, "-m", "tapejax", "demo"]
    done = subprocess.run(command, capture_output=True, timeout=120, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and b"?loss/?w" in done.stdout


TERMINALS = {
    # what is set, whether Rich may be used, and what the first heading looks like
    "rich": ({}, True, "A small computation, on a tape\x1b[0m "),
    "plain colours": ({}, False, "\x1b[1;34mA small computation, on a tape\x1b[0m"),
    "NO_COLOR": ({"NO_COLOR": "1"}, True, "\nA small computation, on a tape\n-----"),
    "dumb": ({"TERM": "dumb"}, True, "\nA small computation, on a tape\n-----"),
}


@pytest.mark.parametrize("name", TERMINALS)
def test_in_a_terminal(name):
    pty = pytest.importorskip("pty")
    variables, rich, heading = TERMINALS[name]
    if rich and not variables:
        pytest.importorskip("rich")
    master, slave = pty.openpty()
    block = "" if rich else "sys.modules['rich'] = None; "
    code = f"import sys; {block}from tapejax.cli import demo; sys.exit(demo.main())"
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", "COLUMNS": "120"} | variables
    with subprocess.Popen([sys.executable, "-c", code], stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        said = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
    os.close(master)
    text = said.decode().replace("\r", "")
    assert process.returncode == 0 and "def f(w):" in text and "[None, None]" in text
    assert heading in text, text[:300]
    assert ("\x1b[" in text) == (name in ("rich", "plain colours"))
