"""Real searches: repositories of 64 commits, in one of which a loop got a fifth longer.

Each search runs `proton bisect` in a new repository, in fresh processes, on the machine as it is.
The program records the least of 200 times of its loop, with pauses between them: without pauses all
of them may fall into one disturbance. Every fifth commit changes only a text, one does not run, and
the others change a number that the loop does not use.

    python -m benchmarks.studies.bisect.measured --searches 10
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

COMMITS = 64
BENCH = """
import sys
import time
import proton_bench as proton
from looping import loop

def timed():
    time.sleep(float(sys.argv[1]) / 1e3)
    begun = time.perf_counter_ns()
    loop()
    return time.perf_counter_ns() - begun

with proton.scope("loop", {"time (ns)": float(min(timed() for _ in range(200)))}):
    pass
"""
LOOPING = """
VERSION = {version}

def loop():
    total = 0
    for number in range({rounds}):
        total += number * number
    return total
"""
ROUNDS = 4000


@dataclass(frozen=True)
class Trial:
    """One search.

    Attributes:
        is_right: Whether the slower commit was named.
        verdict: The verdict.
        pairs: Pairs of the search, without those of the proof.
        seconds: Its duration, with the proof.
        found: The document of the command.
    """

    is_right: bool
    verdict: str
    pairs: int
    seconds: float
    found: dict[str, Any]


def make_repository(folder: Path, *, seed: int, slower: float) -> str:
    """Create a repository, with the tag ``good``, and return the title of the slower commit."""
    rng = np.random.default_rng(seed)
    useful = [number for number in range(1, COMMITS + 1) if number % 5]
    guilty, broken = rng.choice(useful, 2, replace=False).tolist()
    _git(folder, "init", "--quiet")
    (folder / "bench.py").write_text(BENCH)
    for number in range(COMMITS + 1):
        rounds = round(ROUNDS * (slower if number >= guilty else 1.0))
        text = LOOPING.format(version=number, rounds=rounds)
        if number == broken and number not in (0, COMMITS):
            text = f"raise SystemExit({number})\n"
        if number % 5 or not number:
            (folder / "looping.py").write_text(text)
        (folder / "notes.md").write_text(f"{number}\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "--quiet", "-m", f"commit {number}")
        if not number:
            _git(folder, "tag", "good")
    return f"commit {guilty}"


def search(seed: int, slower: float, pause_ms: float) -> Trial:
    """Make a repository and search it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        guilty = make_repository(folder, seed=seed, slower=slower)
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "proton_bench", "bisect", "--json", "found.json"]
            + ["good", "HEAD", "--", "-b", "cpu", "bench.py", str(pause_ms)],
            cwd=folder,
            capture_output=True,
            check=False,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / ".git" / "cache")},
        )
        seconds = time.monotonic() - begun
        if not (folder / "found.json").exists():
            raise RuntimeError(done.stderr.decode())
        found = json.loads((folder / "found.json").read_text())
    titles = [each["title"] for each in found["candidates"]]
    return Trial(titles == [guilty], found["verdict"], found["pairs"], seconds, found)


def _explained(found: dict[str, Any]) -> str:
    tested = [
        f"{each['title']} {each['state']} {100 * (each['change'] or 0):+.1f} % {each['pairs']}"
        for each in found["tested"]
    ]
    return "; ".join([found["proof"]["headline"], *tested])


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def main() -> None:
    """Run searches and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slower", type=float, default=1.2)
    parser.add_argument("--pause-ms", type=float, default=2.0)
    options = parser.parse_args()
    trials = []
    for seed in range(options.seed, options.seed + options.searches):
        trial = search(seed, options.slower, options.pause_ms)
        trials.append(trial)
        right = "right" if trial.is_right else "not"
        print(
            f"{seed}: {trial.verdict} {right}, {trial.pairs} pairs, {trial.seconds:.0f} s",
            flush=True,
        )
        if not trial.is_right:
            print(f"   {_explained(trial.found)}")
    right = sum(trial.is_right for trial in trials)
    print(f"{right} of {len(trials)} right")


if __name__ == "__main__":
    main()
