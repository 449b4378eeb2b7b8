"""`python -m tapejax demo`."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading

import pytest

from tapejax import __main__
from tapejax.tools.cli import demo


@pytest.fixture(autouse=True)
def temporary(monkeypatch, tmp_path):
    """The demo's last part writes a page into a folder of its own, here in `tmp_path`."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_plain_text(capsys, temporary):
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
    (page,) = temporary.glob("*/tape.html")
    assert str(page) in said and "The tape of loss" in page.read_text(encoding="utf-8")


def test_in_a_process_of_its_own_where_there_is_no_such_letter():
    command = [sys.executable, "-m", "tapejax", "demo"]
    done = subprocess.run(command, capture_output=True, timeout=120, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?loss/?w" in done.stdout and b"def f(w):" in done.stdout


TERMINALS = {
    # what is set, and what the first heading looks like
    "colours": ({}, "\x1b[1;34mA small computation, on a tape\x1b[0m"),
    "NO_COLOR": ({"NO_COLOR": "1"}, "\nA small computation, on a tape\n-----"),
    "dumb": ({"TERM": "dumb"}, "\nA small computation, on a tape\n-----"),
}


@pytest.mark.parametrize("name", TERMINALS)
def test_in_a_terminal(name, monkeypatch):
    pty = pytest.importorskip("pty")
    variables, heading = TERMINALS[name]
    monkeypatch.delenv("NO_COLOR", raising=False)
    for variable, value in {"TERM": "xterm", "COLUMNS": "120", **variables}.items():
        monkeypatch.setenv(variable, value)

    master, slave = pty.openpty()
    parts = []

    def read():  # a terminal holds few characters
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(master, 4096):
                parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with open(slave, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        status = demo.main()
    reader.join()
    os.close(master)
    text = b"".join(parts).decode().replace("\r", "")
    assert status == 0 and "def f(w):" in text and "[None, None]" in text
    assert heading in text, text[:300]
    assert ("\x1b[" in text) == (name == "colours")
