"""The command line: ``python -m tapejax COMMAND``."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from importlib import metadata


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    argv, passed_on = _split((sys.argv[1:] if argv is None else argv) or ["--help"])
    parser = argparse.ArgumentParser("python -m tapejax", description="TensorFlow's GradientTape for JAX.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    options = parser.parse_args(argv)
    return options.command(options, passed_on)


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    # What follows the program is the program's, to the letter: argparse would take a first "--" for itself.
    if argv[:1] == ["run"]:
        program = next((i for i, word in enumerate(argv) if i and not word.startswith("-")), len(argv))
        return argv[: program + 1], argv[program + 1 :]
    if argv[:1] == ["port"] and "--" in argv:
        return argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    return argv, []


def _add_run(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program that says `import tensorflow` on JAX",
        description="Run a program or notebook that says `import tensorflow` on JAX, unmodified.",
        usage="python -m tapejax run [--full-traceback] PROGRAM.py [ARGUMENT ...]",
    )
    parser.add_argument("program", metavar="PROGRAM.py", help="the program, or a notebook (.ipynb)")
    parser.add_argument(
        "--full-traceback",
        action="store_true",
        help="show an error's frames inside tapejax, JAX and other packages, too",
    )
    parser.epilog = "The arguments that follow PROGRAM.py are passed on to it."

    def command(options: argparse.Namespace, arguments: list[str]) -> int:
        from .tools.cli import runner

        return runner.run(options.program, arguments, full_traceback=options.full_traceback)

    parser.set_defaults(command=command)


def _add_port(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "port",
        help="write the training step of a TensorFlow program with a tape in JAX, and compare the losses",
        description="Run a program, write the step of its training (init, loss, a jitted update) as a JAX module that imports "
        "neither TensorFlow nor tapejax, run that on the recorded batches, and compare the losses. The loop stays yours.",
        usage="python -m tapejax port PROGRAM.py -o OUT.py [--steps N] [--tolerance X] [-- ARGUMENT ...]",
        epilog="Exit status: 0, 1 if the losses differ, 2 if the program cannot be ported.",
    )
    parser.add_argument("program", metavar="PROGRAM.py", help="the program")
    parser.add_argument(
        "-o", "--out", metavar="OUT.py", required=True, help="the file to write; its arrays go to OUT.npz"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="end the program after N training steps")
    parser.add_argument("--tolerance", type=float, default=1e-3, metavar="X", help="of a loss, relative to its size")

    def command(options: argparse.Namespace, arguments: list[str]) -> int:
        from .tools.cli import port

        return port.port(options.program, options.out, arguments, steps=options.steps, tolerance=options.tolerance)

    parser.set_defaults(command=command)


def _add_check(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "check",
        help="say which of a program's TensorFlow names tapejax has, without running it",
        description="Read programs without running them, and report every TensorFlow name that they use: supported, "
        "or missing with what to use instead.",
        epilog="Exit status: 0, 1 if something is missing, 2 if something could not be read.",
    )
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a program, a notebook, a folder of them, or - for stdin"
    )
    parser.add_argument("--json", action="store_true", help="for tools: see `help(tapejax.check)`")
    parser.add_argument("--all", action="store_true", help="list the supported names, too")

    def command(options: argparse.Namespace, arguments: list[str]) -> int:
        from .tools.cli import check

        return check.main(options.paths, as_json=options.json, everything=options.all)

    parser.set_defaults(command=command)


def _add_demo(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "demo",
        help="what a tape shows, in ten seconds",
        description="A small computation, its tape, its gradient, and why another one is None.",
    )

    def command(options: argparse.Namespace, arguments: list[str]) -> int:
        from .tools.cli import demo

        return demo.main()

    parser.set_defaults(command=command)


# One entry a command: a function that adds its parser, whose default `command` does the work.
COMMANDS: tuple[Callable[[argparse._SubParsersAction], None], ...] = (_add_run, _add_port, _add_check, _add_demo)


def _version() -> str:
    def version(package: str) -> str:
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            return f"{package} (not installed)"

    return f"{version('tapejax')}, {version('jax')}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
