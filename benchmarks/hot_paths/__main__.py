"""Test whether this working tree is slower than another revision on its own hot paths.

    python -m benchmarks.hot_paths --base-ref origin/main [--pairs 6] [--setup CMD] [gate options]

Each side is installed into its own environment, fresh processes of both run in turn, and
`proton gate` judges them by `policy.toml`. This tree's `record.py` times both sides. Exit codes and
other options, such as ``--github`` or ``--junit FILE``, are those of the gate.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from proton_bench.cli import main as proton
from proton_bench.errors import ProtonError
from proton_bench.gate.processes import (
    OwnEnvironment,
    find_revision,
    own_environment,
    worktree,
)

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
# The build tools come from the environment that this runs in, as in the Makefile.
_SETUP = "python -m pip install -q --no-deps --no-build-isolation ."
_PAIRS = 6


def in_turn(pairs: int) -> list[tuple[str, int]]:
    """Return the order of sides, with the number of the pair: base, new, new, base, ..."""
    found = []
    for pair in range(pairs):
        order = ("base", "new") if pair % 2 == 0 else ("new", "base")
        found += [(side, pair) for side in order]
    return found


def record(sides: Mapping[str, OwnEnvironment], pairs: int, folder: Path) -> None:
    """Run every process; stop at the first failure.

    Raises:
        SystemExit: A process failed; it printed the reason.
    """
    variables = _doubles()
    for side, pair in in_turn(pairs):
        (folder / side).mkdir(parents=True, exist_ok=True)
        out = folder / side / f"{pair}.proton"
        own = sides[side]
        command = [own.interpreter, str(_HERE / "record.py"), str(out)]
        environment = {**os.environ, **own.variables, **variables}
        done = subprocess.run(
            command, cwd=folder, env=environment, check=False, stdout=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{side}, process {pair + 1}, ended with {done.returncode}")
        if not done.stdout.startswith(own.packages):
            raise SystemExit(
                f"{side} measured {done.stdout.strip()}, which --setup did not install"
            )


def _doubles() -> dict[str, str]:
    """Return the variables that replace NVIDIA's libraries by doubles; empty without doubles."""
    sys.path.append(str(_ROOT / "tests"))
    from fakes.doubles import NoCompilerError, doubles

    try:
        plain = doubles(_ROOT / "build" / "doubles").environment()
    except NoCompilerError:
        return {}
    return {name: value for name, value in plain.items() if os.environ.get(name) != value}


def main(words: Sequence[str] | None = None) -> int:
    """Record both sides, judge them, and return the gate's exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot_paths", allow_abbrev=False)
    parser.add_argument("--base-ref", required=True, help="commit, branch or tag")
    parser.add_argument("--pairs", type=int, default=_PAIRS)
    parser.add_argument("--setup", default=_SETUP, help="installs a side, in its tree")
    asked, of_gate = parser.parse_known_args(words)
    try:
        revision = find_revision(asked.base_ref, str(_ROOT))
        with TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            tree = stack.enter_context(worktree(revision, folder / "tree"))
            sides = {
                side: stack.enter_context(own_environment(folder / side, place, asked.setup))
                for side, place in (("base", tree), ("new", _ROOT))
            }
            runs = folder / "runs"
            record(sides, asked.pairs, runs)
            policy = ["--policy", str(_HERE / "policy.toml"), "--all"]
            return proton(["gate", *policy, *of_gate, str(runs / "base"), str(runs / "new")])
    except ProtonError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
