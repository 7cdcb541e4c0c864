"""Held against their labels: python -m benchmarks.studies.why.study --out FOLDER.

Records `program` four times: by `counters`, each kernel for a while and all kernels mixed, by
`counters=exact`, and with samples of program counters, whose stall reasons are added. Nsight
Compute counts it once more where there is `ncu`. Prints a line per kernel with its label, the
verdict, and what part of their peaks DRAM and tensor units reached by each way. Needs a GPU, torch
and Triton. Returns 1 where a verdict is wrong, or more than `--most-unknown` are unknown.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.studies.why.labels import LABELS, Label, shuffled_labels
from proton_bench.analysis.why.answer import why
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

__all__ = ["Row", "judge", "main", "record", "share", "table"]

_TOP = Path(__file__).parents[3]
_PROGRAM = Path(__file__).with_name("program.py")
_COPIES = ("dram-copy", "copy-engine")
_LAUNCHES = 2  # of each kernel
# Rounds are fewer where launches wait for each other.
_RUNS = {
    "mixed": ("counters:copies=on", ("--mixed",)),
    "sampled": ("counters:copies=on", ()),
    "exact": ("counters:exact=launch:copies=on", ("--rounds", "2", "--slice-ms", "3")),
    "stalls": ("pcsampling:copies=on", ("--rounds", "4")),
}
_TIME = "counter_time (ns)"
_NCU = "ncu"
_NCU_RUN = ("--rounds", "1", "--slice-ms", "0")  # two launches of each
_NCU_METRICS = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": "l2",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": "l1",
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed": "issue",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel's verdict and what was measured.

    Attributes:
        label: What is right.
        kind: The verdict's kind.
        short: The verdict in words.
        shares: Part of the peak in percent by (run, quantity); None where it is not known.
    """

    label: Label
    kind: str
    short: str
    shares: Mapping[tuple[str, str], float | None]

    @property
    def is_wrong(self) -> bool:
        """Whether something else is named than what is right."""
        return self.kind != "unknown" and self.kind not in self.label.right


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, judge and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the profiles")
    parser.add_argument("--rounds", type=int, default=40, help="of the sampled run")
    parser.add_argument("--most-unknown", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="judge the profiles that are there")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.keep:
        for name, (mode, words) in _RUNS.items():
            rounds = () if "--rounds" in words else ("--rounds", str(options.rounds))
            record((options.out / name).absolute(), mode, (str(_PROGRAM), *words, *rounds))
        _count_by_ncu(options.out / "ncu.csv")
    profiles = {
        name: read_profile(options.out / f"{name}.proton")
        for name in _RUNS
        if (options.out / f"{name}.proton").exists()
    }
    rows = judge(profiles, _of_ncu(options.out / "ncu.csv"))
    print(table(rows))
    wrong = sum(row.is_wrong for row in rows)
    unknown = sum(row.kind == "unknown" for row in rows)
    print(f"\n{len(rows)} kernels: {wrong} wrong, {unknown} unknown")
    return 1 if wrong or unknown > options.most_unknown else 0


def record(target: Path, mode: str, program: Sequence[str]) -> None:
    """Record a script with its words, as `target` with the endings of the files."""
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cupti", "-m", mode]
    _run([*command, "-n", str(target), *program])


def _run(command: Sequence[str]) -> None:
    print(" ".join(command), flush=True)
    paths = os.pathsep.join(filter(None, (str(_TOP), os.environ.get("PYTHONPATH", ""))))
    subprocess.run(command, check=False, cwd=_TOP, env={**os.environ, "PYTHONPATH": paths})


def _count_by_ncu(target: Path) -> None:
    if shutil.which("ncu") is None:
        return
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"]
    command += ["--metrics", ",".join(_NCU_METRICS), "--log-file", str(target)]
    _run([*command, sys.executable, str(_PROGRAM), *_NCU_RUN])


def _of_ncu(source: Path) -> dict[tuple[str, str], float]:
    """Return the part of the peak in percent by (kernel, quantity): the mean of its launches.

    Its launches are in the order of the program's only round; it does not see copies.
    """
    if not source.exists():
        return {}
    lines = source.read_text(encoding="utf-8").splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    names = [name for name in shuffled_labels() if name not in _COPIES]
    found: dict[tuple[str, str], list[float]] = {}
    for row in csv.DictReader(lines[start:]):
        quantity = _NCU_METRICS.get(row["Metric Name"])
        if quantity is not None:
            name = names[int(row["ID"]) // _LAUNCHES]
            found.setdefault((name, quantity), []).append(float(row["Metric Value"]))
    return {key: statistics.fmean(values) for key, values in found.items()}


def judge(
    profiles: Mapping[str, Profile], by_ncu: Mapping[tuple[str, str], float] | None = None
) -> list[Row]:
    """Return a row for each label.

    Args:
        profiles: By the name of their run; ``mixed`` decides, or ``exact`` without it. Samples of
            program counters are added to it.
        by_ncu: Parts of the peak in percent by (kernel, quantity).
    """
    main_run = next(profiles[name] for name in ("mixed", "exact") if name in profiles)
    parts = [main_run, profiles["stalls"]] if "stalls" in profiles else [main_run]
    answer = why(Profile.merge(parts))
    rows = []
    for label in LABELS:
        found = [row for row in answer.rows if label.name in row.path]
        verdict = max(found, key=lambda row: row.time_ns).verdict if found else None
        shares = {
            (run, quantity): share(profile, label.name, quantity)
            for run, profile in profiles.items()
            if run != "stalls"
            for quantity in ("dram", "tensor", "l2")
        }
        if by_ncu:
            shares |= {
                (_NCU, quantity): by_ncu.get((label.name, quantity))
                for quantity in _NCU_METRICS.values()
            }
        kind, short = (verdict.kind, verdict.short) if verdict else ("unknown", "no row")
        rows.append(Row(label, kind, short, shares))
    return rows


def share(profile: Profile, scope: str, quantity: str) -> float | None:
    """Return the part of a unit's peak below a scope in percent, None where it is not known."""
    name = f"{quantity}_busy (ns)"
    if name not in profile.columns or _TIME not in profile.columns:
        return None
    places = [row for row in range(len(profile)) if profile.name(row) == scope]
    time_ns = sum(float(profile.inclusive(_TIME)[row]) for row in places)
    busy_ns = sum(float(profile.inclusive(name)[row]) for row in places)
    return 100.0 * busy_ns / time_ns if time_ns > 0 else None


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table of Markdown."""
    runs = list(dict.fromkeys(key for row in rows for key in row.shares))
    heads = ["kernel", "right", "verdict", "", *(f"{quantity} {run}" for run, quantity in runs)]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        mark = "WRONG" if row.is_wrong else "unknown" if row.kind == "unknown" else "right"
        cells = [row.label.name, row.label.right[0], f"{row.kind} ({row.short})", mark]
        cells += [_text(row.shares.get(key)) for key in runs]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _text(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
