"""Real experiments of `program.py`, alike and with a slower path, and gates of their runs.

``python -m benchmarks.studies.gate.noisy ab --out FOLDER --times 20 --threshold min:8%``
``python -m benchmarks.studies.gate.noisy ab --device cuda --out FOLDER --times 5 --threshold 3%
--percent 3 --launches 60 --seconds 400``: on a GPU, less than eight minutes
``python -m benchmarks.studies.gate.noisy gates --out FOLDER --times 40 --pairs 6 --threshold 3%``
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies.gate.noisy.program import PATHS
from proton_bench.analysis.run import Run
from proton_bench.formats.registry import read_profile
from proton_bench.gate.experiment import MOST_PAIRS
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import paired_as
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decided_checks import Context
from proton_bench.gate.verdict.result import EXIT_CODES, SuiteVerdict

_PROGRAM = Path(__file__).with_name("program.py")
_RESULTS = "results.jsonl"
_VERDICTS = {code: verdict for verdict, code in EXIT_CODES.items()}
# Verdicts of gates that compared their sides.
_DECISIONS = (SuiteVerdict.PASS, SuiteVerdict.FAIL, SuiteVerdict.INCONCLUSIVE)
# All verdicts of experiments whose runs did not fail.
_SHOWN = (*_DECISIONS, SuiteVerdict.INCOMPARABLE)


@dataclass(frozen=True)
class Options:
    """What `ab` runs."""

    out: Path
    device: str
    times: int
    threshold: str
    launches: int
    percent: float
    seconds: float


def run_all(options: Options) -> None:
    """Run experiments of equal sides and of a slower path in turn; finished ones are kept."""
    options.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(_PROGRAM, options.out)
    (options.out / "pyproject.toml").touch()  # the project whose folder keeps the runs
    results = options.out / _RESULTS
    done = len(results.read_text().splitlines()) if results.exists() else 0
    # Tiles hide some rows of a product from a GPU.
    paths = PATHS[options.device]
    names = paths.names if options.device == "cpu" else tuple(paths.functions)
    begin = time.perf_counter()
    for number in range(done, 2 * options.times):
        if time.perf_counter() - begin > options.seconds:
            print(f"{options.seconds:g} s are over", flush=True)
            break
        slow = names[(7 * number + 3) % len(names)] if number % 2 else ""
        found = {"slow": slow, "load": os.getloadavg()[0], **_experiment(options, slow)}
        with results.open("a") as stream:
            stream.write(json.dumps(found) + "\n")
        print(f"{number + 1}: {_line(found)}", flush=True)


def _experiment(options: Options, slow: str) -> dict[str, Any]:
    program = f"{_PROGRAM.name} --device {options.device} --launches {options.launches}"
    slower = ["--slow", slow, "--percent", str(options.percent)] if slow else []
    backend = "cupti" if options.device == "cuda" else "cpu"
    words = ["ab", "-t", options.threshold, "--json", "last.json", "--base", program]
    words += ["--", "-b", backend]
    last = options.out / "last.json"
    last.unlink(missing_ok=True)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", *words, *program.split(), *slower],
        cwd=options.out,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(last.read_text()) if last.exists() else {}
    rows, notes = (document.get(name, []) for name in ("rows", "notes"))
    return {
        "code": done.returncode,
        "seconds": time.perf_counter() - begin,
        "pairs": len(document.get("base_runs", [])),
        "regressed": [
            next(iter(row["path"]), "whole run") for row in rows if row["verdict"] == "REGRESSED"
        ],
        "said": [note["text"] for note in notes] if document else [done.stderr[-1000:].strip()],
    }


def _line(result: dict[str, Any]) -> str:
    """Return one experiment on one line."""
    regressed = ", ".join(dict.fromkeys(result["regressed"])) or "nothing"
    said = "".join(f"; {each}" for each in result["said"])
    return (
        f"{result['slow'] or 'alike'}: {_verdict(result)} after {result['pairs']} pairs in "
        f"{result['seconds']:.0f} s, {regressed} regressed{said}"
    )


def _verdict(result: dict[str, Any]) -> SuiteVerdict:
    return _VERDICTS.get(result["code"], SuiteVerdict.ERROR)


def summary(results: Sequence[dict[str, Any]]) -> str:
    """Return a table of the verdicts of equal sides and of slower ones."""
    heads = ("sides", "experiments", *_SHOWN, "the slower path found", "pairs", "seconds of one")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for title, chosen in (
        ("alike", [each for each in results if not each["slow"]]),
        ("one path slower", [each for each in results if each["slow"]]),
    ):
        codes = Counter(_verdict(each) for each in chosen)
        # A scope with one path got slower with it.
        found = sum(set(each["regressed"]) == {each["slow"]} for each in chosen)
        shown = str(found) if title != "alike" else ""
        counts = " | ".join(str(codes[verdict]) for verdict in _SHOWN)
        pairs, seconds = (_extent([each[of] for each in chosen]) for of in ("pairs", "seconds"))
        lines.append(f"| {title} | {len(chosen)} | {counts} | {shown} | {pairs} | {seconds} |")
    return "\n".join(lines)


# -- the same runs again -------------------------------------------------------------------------
def base_runs(out: Path) -> list[Run]:
    """Return all runs of the unchanged program in the order in which they began."""
    files = sorted(out.glob(".proton/ab/*/pair-*-base.proton"))
    alike = []
    for manifest in sorted(out.glob(".proton/ab/*/manifest.json")):
        if "--slow" not in manifest.read_text():
            alike += sorted(manifest.parent.glob("pair-*-new.proton"))
    runs = [
        Run(read_profile(file), str(file))
        for file in (*files, *alike)
        if ".partial" not in file.name
    ]
    return sorted(runs, key=lambda run: run.profile.provenance["start_time_ns"])


def drawn_gates(out: Path, *, gates: int, pairs: int, threshold: str) -> Iterator[str]:
    """Yield a table of gates of runs drawn at random, each decided as by `proton gate`.

    In turn, runs that follow one another are a pair; apart, all runs of one side are older.
    """
    runs = base_runs(out)
    policy = Policy().with_thresholds([threshold])
    rng = np.random.default_rng(1)
    verdicts: dict[str, Counter[SuiteVerdict]] = {"in turn": Counter(), "apart": Counter()}
    for number in range(gates):
        drawn = [runs[at] for at in np.sort(rng.choice(len(runs), 2 * pairs, replace=False))]
        turns = [pair % 2 == 0 for pair in range(pairs)]
        base = [drawn[2 * pair + (not turn)] for pair, turn in enumerate(turns)]
        new = [drawn[2 * pair + turn] for pair, turn in enumerate(turns)]
        context = Context(arrangement=paired_as(base, new, turns))
        verdicts["in turn"][gate_result(base, new, policy, context=context).verdict] += 1
        older, newer = (drawn[:pairs], drawn[pairs:])[:: -1 if number % 2 else 1]
        verdicts["apart"][gate_result(older, newer, policy).verdict] += 1
    yield f"{len(runs)} runs of the unchanged program, {pairs} pairs, {threshold}"
    yield f"| runs | gates | {' | '.join(_SHOWN)} |"
    yield "|---|---|---|---|---|---|"
    for title, counts in verdicts.items():
        cells = [title, str(counts.total()), *(str(counts[verdict]) for verdict in _SHOWN)]
        yield f"| {' | '.join(cells)} |"


def _extent(values: Sequence[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}" if values else "-"


def main() -> None:
    """Run experiments, or judge their runs again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("ab", "gates"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=tuple(PATHS), default="cpu")
    parser.add_argument("--times", type=int, default=20, help="experiments, or gates, of each kind")
    parser.add_argument("--threshold", default="min:8%")
    parser.add_argument("--launches", type=int, default=400)
    parser.add_argument("--percent", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after")
    parser.add_argument("--pairs", type=int, default=MOST_PAIRS, help="of a gate")
    asked = parser.parse_args()
    if asked.what != "ab":
        chosen = {"gates": asked.times, "pairs": asked.pairs, "threshold": asked.threshold}
        print(*drawn_gates(asked.out, **chosen), sep="\n")
        return
    out, device = asked.out, asked.device
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # of `timeout`
    try:
        chosen = (asked.times, asked.threshold, asked.launches, asked.percent, asked.seconds)
        run_all(Options(out, device, *chosen))
    finally:
        lines = (out / _RESULTS).read_text().splitlines() if (out / _RESULTS).exists() else []
        print(summary([json.loads(line) for line in lines]), flush=True)


if __name__ == "__main__":
    main()
