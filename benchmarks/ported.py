"""What `tapejax port` makes of programs as practitioners write them: ``python -m benchmarks.ported [NAME ...]``.

For each program of `tests/tools/cli/port/practice` a row of the table in docs/porting.md: the lines of OUT.py that are not blank,
the largest difference of a loss, and of an entry of the parameters and state after the last step, and the CPU time of OUT.py
and of ``tapejax run``, compiling and imports included.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = (
    "conditional_gan wgan_gp vq_vae inverse_pinn advantage_actor_critic dqn sac warm_up adjoint dp_sgd pgd graph_network"
).split()


def run(*arguments: str) -> tuple[str, float]:
    """What Python prints with these arguments, and the CPU seconds that it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)} | os.environ
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=env, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name: str, folder: Path) -> str:
    program, out = str(ROOT / "tests/tools/cli/port/practice" / f"{name}.py"), folder / f"{name}.py"
    printed, _ = run("-m", "tapejax", "port", program, "-o", str(out))
    match = re.search(r"(\d+) of \d+ steps; largest difference (\S+)", printed)
    last = re.search(r"entries; largest difference (\S+):", printed)
    assert match is not None and last is not None, printed
    lines = sum(map(bool, out.read_text().splitlines()))
    _, ported = run(str(out))
    _, whole = run("-m", "tapejax", "run", program)
    return f"| {name} | {lines} | {match[1]} | {match[2]} | {last[1]} | {ported:.1f} | {whole:.1f} |"


def main() -> None:
    print(
        "| program | lines | steps | loss difference | last difference | CPU s, OUT.py | CPU s, `tapejax run` |",
        "|---|" + "---:|" * 6,
        sep="\n",
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or PROGRAMS:
            print(row(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
