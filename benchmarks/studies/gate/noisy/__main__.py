"""Real experiments of `program.py`, alike and with a slower path, and gates of their runs.

``python -m benchmarks.studies.gate.noisy ab --out FOLDER --times 20 --threshold min:8%``
``python -m benchmarks.studies.gate.noisy ab --device cuda --out FOLDER --times 5 --threshold 3%
--percent 3 --launches 60 --seconds 400``: on a GPU, less than eight minutes
``python -m benchmarks.studies.gate.noisy resample --out FOLDER``
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.studies.gate.noisy.program import PATHS
from benchmarks.studies.gate.rules import are_open
from benchmarks.studies.gate.study.gates import Tally, blocks_of, judge_block
from proton_bench.analysis.run import Run
from proton_bench.formats.registry import read_profile
from proton_bench.gate.experiment.looks import MOST_PAIRS, looks
from proton_bench.gate.judge.benchmarks import measure_subject, subject_of
from proton_bench.gate.judge.check import choose_checks
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.observations import observe_checks
from proton_bench.gate.judge.suite import UNDECIDED_SHARE
from proton_bench.gate.judge.verdict import EXIT_CODES, SuiteVerdict
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.threshold import parse_threshold
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.decision import Background, Limits, decide, weigh

Numbers = npt.NDArray[np.float64]

_PROGRAM = Path(__file__).with_name("program.py")
_RESULTS = "results.jsonl"
_VERDICTS = {code: verdict for verdict, code in EXIT_CODES.items()}
# Verdicts of gates that compared their sides.
_DECISIONS = (SuiteVerdict.PASS, SuiteVerdict.FAIL, SuiteVerdict.INCONCLUSIVE)
# All verdicts of experiments whose runs did not fail.
_SHOWN = (*_DECISIONS, SuiteVerdict.INCOMPARABLE)
_ALL_NAMES = {name for paths in PATHS.values() for name in paths.names}
STATISTICS = ("median", "min")


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
    words = ["ab", "-b", backend, "-t", options.threshold, "--json", "last.json", "--base", program]
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


def logarithms(runs: Sequence[Run], statistic: str) -> Numbers:
    """Return ``ln`` of the statistic of each run and path of the program."""
    policy = Policy(thresholds=(parse_threshold(f"{statistic}:3%"),))
    half = len(runs) // 2
    subject = subject_of(Arrangement(tuple(runs[:half]), tuple(runs[half:])), policy)
    measured = measure_subject(subject)
    tree = measured.comparison.tree
    checks = [
        each
        for each in choose_checks(measured, subject.policy)
        if each.threshold.metric == statistic and tree.path(each.row)[0] in _ALL_NAMES
    ]
    return np.concatenate(observe_checks(measured, checks).logarithms())


def verdict_of(
    base: Numbers, new: Numbers, order: Numbers, *, threshold: float, plainly: bool = False
) -> tuple[str, npt.NDArray[np.bool_]]:
    """Return what `proton ab` says of paths with equal shares, and which ones it calls worse.

    Args:
        base: ``ln`` of the statistic, one line for each pair, one column for each path.
        new: The same of the new side.
        order: +1 for each pair in which the base ran first, -1 for the others.
        threshold: As a share.
        plainly: Whether to keep the noise that paths share.
    """
    count = base.shape[1]
    limits = Limits(np.full(count, np.log1p(threshold)), np.ones(count))
    background = Background(np.zeros(count), np.zeros(count), ["time"] * count)
    for look in looks(len(order)):
        evidence = weigh(
            *(each[: look.pairs] for each in (base, new, order)),
            background=background,
            margin=limits.margin,
            fewest_runs=Policy().runs,
        )
        if plainly:
            evidence = replace(evidence, unshared=None)
        found = decide(evidence, limits, part=look.part)
        if not are_open(found, limits, len(order)).any():
            break
    is_open = (~found.worse & ~found.allowed).mean() > UNDECIDED_SHARE
    told = "FAIL" if found.worse.any() else "INCONCLUSIVE" if is_open else "PASS"
    return told, found.worse


def resample(out: Path, *, pairs: int, percent: float) -> Iterator[str]:
    """Yield a table of gates of consecutive runs, which share runs with one another."""
    runs = base_runs(out)
    yield f"{len(runs)} runs of the unchanged program, at most {pairs} pairs, +{percent:g} %"
    yield "| threshold | shared noise | gates | PASS | FAIL | INCONCLUSIVE | found |"
    yield "|---|---|---|---|---|---|---|"
    for statistic in STATISTICS:
        logs = logarithms(runs, statistic)
        windows = [logs[at : at + 2 * pairs] for at in range(0, len(logs) - 2 * pairs + 1, 2)]
        for threshold in (0.05, 0.08):
            for plainly in (True, False):
                asked = {"threshold": threshold, "plainly": plainly}
                alike = (_pair_up(each, None, percent=percent) for each in windows)
                codes = Counter(verdict_of(*each, **asked)[0] for each in alike)
                found = [
                    verdict_of(*_pair_up(each, path, percent=percent), **asked)[1][path]
                    for each in windows
                    for path in range(logs.shape[1])
                ]
                kept = "kept" if plainly else "removed"
                cells = [f"{statistic}:{100 * threshold:g}%", kept, str(len(windows))]
                cells += [str(codes[verdict]) for verdict in _DECISIONS]
                yield f"| {' | '.join([*cells, _share(found)])} |"


def drawn_gates(
    out: Path, *, gates: int, pairs: int, threshold: str, percent: float
) -> Iterator[str]:
    """Yield a table of gates of runs drawn at random, each judged by all checks of `proton gate`.

    In turn, runs that follow one another are a pair; apart, all runs of one side are older. Nothing
    changed; in the last column one path after the other is slower by calculation.
    """
    runs = base_runs(out)
    asked = parse_threshold(threshold)
    logs = logarithms(runs, asked.metric or "median")
    policy = Policy().with_thresholds([threshold])
    rng = np.random.default_rng(1)
    tallies = {"in turn": Tally(), "apart": Tally()}
    found = []
    for number in range(gates):
        chosen = np.sort(rng.choice(len(runs), 2 * pairs, replace=False))
        drawn = [runs[at] for at in chosen]
        (block,) = blocks_of(drawn, pairs)
        tallies["in turn"].add(judge_block(block, policy))
        base, new = (drawn[:pairs], drawn[pairs:])[:: -1 if number % 2 else 1]
        tallies["apart"].add(judge(base, new, policy))
        for path in range(logs.shape[1]):
            sides = _pair_up(logs[chosen], path, percent=percent)
            found.append(verdict_of(*sides, threshold=asked.ratio or 0.0)[1][path])
    yield f"{len(runs)} runs of the unchanged program, {pairs} pairs, {threshold}"
    columns = " | ".join((*_SHOWN, f"+{percent:g} % found in {logs.shape[1]} paths"))
    yield f"| runs | gates | {columns} |"
    yield "|---|---|---|---|---|---|---|"
    for title, tally in tallies.items():
        cells = [title, str(tally.gates), *(str(tally.verdicts[each.value]) for each in _SHOWN)]
        yield f"| {' | '.join(cells)} | {_share(found) if title == 'in turn' else ''} |"


def _extent(values: Sequence[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}" if values else "-"


def _share(found: Sequence[bool | np.bool_]) -> str:
    return f"{100.0 * np.mean(found):.0f} %" if found else "-"


def _pair_up(
    logs: Numbers, slow: int | None, *, percent: float
) -> tuple[Numbers, Numbers, Numbers]:
    """Return base, new and order of consecutive runs, with one path slower on the new side."""
    order = np.where(np.arange(len(logs) // 2) % 2 == 0, 1.0, -1.0)
    first, second = logs[0::2], logs[1::2]
    base = np.where(order[:, None] > 0, first, second)
    new = np.where(order[:, None] > 0, second, first)
    if slow is not None:
        new[:, slow] += np.log1p(percent / 100.0)
    return base, new, order


def _judged_again(asked: argparse.Namespace) -> Iterator[str]:
    chosen = {"pairs": asked.pairs, "percent": asked.percent}
    if asked.what == "resample":
        return resample(asked.out, **chosen)
    return drawn_gates(asked.out, gates=asked.times, threshold=asked.threshold, **chosen)


def main() -> None:
    """Run experiments, or judge their runs again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("ab", "resample", "gates"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=tuple(PATHS), default="cpu")
    parser.add_argument("--times", type=int, default=20, help="experiments, or gates, of each kind")
    parser.add_argument("--threshold", default="min:8%")
    parser.add_argument("--launches", type=int, default=400)
    parser.add_argument("--percent", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after")
    parser.add_argument("--pairs", type=int, default=MOST_PAIRS, help="of a resampled one")
    asked = parser.parse_args()
    if asked.what != "ab":
        print(*_judged_again(asked), sep="\n")
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
