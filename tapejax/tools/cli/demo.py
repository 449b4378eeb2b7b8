"""``python -m tapejax demo``: what a tape shows, in ten seconds of terminal."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable

FILE = "<demo>"

# (what is shown, the code that shows it)
PARTS: tuple[tuple[str, str], ...] = (
    (
        "A small computation, on a tape",
        """\
import jax
import jax.numpy as jnp
import tapejax as tf

x = jnp.array([1.0, 2.0, 3.0])
w = tf.Variable([0.5, -1.0, 0.25])

with tf.GradientTape(persistent=True) as tape:
    h = jnp.tanh(w * x)
    loss = jnp.sum(h**2)
""",
    ),
    ("The tape", "print(tape)\n"),
    ("The gradient", "print(tape.gradient(loss, w).numpy())\n"),
    ("The backward pass, step by step", "for step in tape.steps(loss, w):\n    print(step)\n"),
    ("The function on the tape, as plain jnp code", "f = tape.as_function(loss, w)\nprint(f)\n"),
    ("The same gradient by jax.grad", "print(jax.grad(f)(w.numpy()))\n"),
    (
        "A gradient that is None, and why",
        """\
with tf.GradientTape() as broken:
    steps = tf.floor(w * 10.0)
    total = tf.reduce_sum(steps * x)

print(broken.explain(total, [w, x]))
print(broken.gradient(total, [w, x]))
""",
    ),
    (
        "The tape, played: a page for the browser",
        """import os
import tempfile

file = os.path.join(tempfile.mkdtemp(), "tape.html")
tape.play(loss, w).save(file)
print(file)
""",
    ),
)


def main() -> int:
    """Runs the parts one after the other, each behind its code; returns the exit status."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # where ∂ cannot be written
    heading, code = _writers()
    linecache.cache[FILE] = (0, None, [line for _, text in PARTS for line in text.splitlines(keepends=True)], FILE)
    space: dict = {"__name__": "__demo__"}
    at = 0
    for title, text in PARTS:
        heading(title)
        code(text)
        # each part has the line numbers of the whole, so that the tape can show them
        exec(compile("\n" * at + text, FILE, "exec"), space)
        at += text.count("\n")
    heading("More: tape.draw(), tape.check_numerics(), tape.jaxpr(), and the notebooks")
    return 0


def _writers() -> tuple[Callable[[str], None], Callable[[str], None]]:
    """How headings and code are written: in colours where the terminal has them, by Rich if it is installed."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return (lambda title: print(f"\n{title}\n{'-' * len(title)}")), _prompted
    try:
        from rich.console import Console
        from rich.syntax import Syntax
    except ImportError:
        return (lambda title: print(f"\n\033[1;34m{title}\033[0m")), (
            lambda text: _prompted(text, "\033[36m", "\033[0m")
        )
    console = Console()

    def heading(title: str) -> None:
        console.print()
        console.rule(f"[bold]{title}", align="left")

    return heading, lambda text: console.print(Syntax(text.rstrip(), "python", background_color="default"))


def _prompted(text: str, start: str = "", end: str = "") -> None:
    for line in text.splitlines():
        prompt = "... " if line.startswith(" ") else ">>> " if line else ""
        print(f"{start}{prompt}{line}{end}".rstrip())
    print()
