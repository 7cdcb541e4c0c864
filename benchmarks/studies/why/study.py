"""Held against their labels: python -m benchmarks.studies.why.study --out FOLDER.

Records `program` by `counters`, all kernels mixed and each alone for a while, and with samples of
program counters, whose stall reasons are added for a second verdict. Nsight Compute counts it once
more where there is `ncu`. A training loop that waits for its data is recorded by itself, and its
first finding counts. Prints a line per kernel: its label, the verdicts, and the units that
were busiest by each way; then how far samples were from Nsight Compute. Needs a GPU, torch and
Triton. Returns 1 where a verdict is wrong, or more than `--most-unknown` are unknown.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.studies.why.labels import LABELS, LOADER, Label, shuffled_labels
from proton_bench.analysis.why.answer import Answer, why
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

_TOP = Path(__file__).parents[3]
_PROGRAM = Path(__file__).with_name("program.py")
_COPIES = ("dram-copy", "copy-engine")
_LAUNCHES = 2  # of each kernel, by Nsight Compute
_UNKNOWN = "unknown"
_RUNS = {
    "mixed": ("counters:copies=on", ("--mixed", "--rounds", "30")),
    "alone": ("counters:copies=on", ("--rounds", "1", "--slice-ms", "800")),
    "stalls": ("pcsampling:copies=on", ("--rounds", "4")),
}
_LOADER = Path(__file__).with_name("loader.py")
_TIME = "counter_time (ns)"
_NCU = "ncu"
_NCU_RUN = ("--rounds", "1", "--slice-ms", "0")  # two launches of each
_MEAN = ".avg.pct_of_peak_sustained_elapsed"
_NCU_METRICS = {
    f"dram__throughput{_MEAN}": "dram",
    f"sm__pipe_tensor_cycles_active{_MEAN}": "tensor",
    f"sm__pipe_fp64_cycles_active{_MEAN}": "fp64",
    f"sm__inst_executed_pipe_fma{_MEAN}": "fp32",
    f"sm__inst_executed_pipe_alu{_MEAN}": "alu",
    f"sm__inst_executed_pipe_xu{_MEAN}": "xu",
    f"sm__inst_executed{_MEAN}": "issue",
    f"l1tex__data_pipe_lsu_wavefronts{_MEAN}": "l1",
    f"l1tex__data_pipe_lsu_wavefronts_mem_shared{_MEAN}": "shared",
    f"lts__t_sectors{_MEAN}": "l2",
    f"lts__t_requests{_MEAN}": "l2_requests",
    "lts__t_requests.max.pct_of_peak_sustained_elapsed": "l2_slice",
    f"lts__throughput{_MEAN}": "L2 in all",
    f"sm__cycles_active{_MEAN}": "sm_active",
}
_QUANTITIES = tuple(each for each in _NCU_METRICS.values() if " " not in each)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel's verdicts and what was measured.

    Attributes:
        label: What is right.
        kinds: The kinds of its verdicts: by counters, and with PC samples if there are any.
        shorts: The verdicts in words.
        shares: Part of the peak in percent by (run, quantity), where it is known.
    """

    label: Label
    kinds: tuple[str, ...]
    shorts: tuple[str, ...]
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        """Whether something else is named than what is right."""
        return bool({*self.kinds} - {_UNKNOWN, *self.label.right})

    @property
    def is_unknown(self) -> bool:
        """Whether neither verdict says anything."""
        return {*self.kinds} == {_UNKNOWN}


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, judge and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the profiles")
    parser.add_argument("--most-unknown", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="judge the profiles that are there")
    parser.add_argument("--only", default="", help="names of labels with commas between them")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    only = [name for name in options.only.split(",") if name] or [
        *(label.name for label in LABELS),
        LOADER.name,
    ]
    kernels = [name for name in only if name != LOADER.name]
    if not options.keep:
        for name, (mode, words) in _RUNS.items() if kernels else ():
            of_run = (*words, "--only", ",".join(kernels))
            record((options.out / name).absolute(), mode, (str(_PROGRAM), *of_run))
        if LOADER.name in only:
            # Without counters, so that its steps are found.
            record((options.out / LOADER.name).absolute(), "", (str(_LOADER),))
        _count_by_ncu(options.out / "ncu.csv", kernels)
    profiles = {
        name: read_profile(options.out / f"{name}.proton")
        for name in (*_RUNS, LOADER.name)
        if (options.out / f"{name}.proton").exists()
    }
    rows = judge(profiles, _of_ncu(options.out / "ncu.csv", kernels), only=only)
    print(table(rows))
    wrong, unknown = sum(row.is_wrong for row in rows), sum(row.is_unknown for row in rows)
    print(f"\n{len(rows)} kernels: {wrong} wrong, {unknown} unknown")
    for run in ("mixed", "alone"):
        print(f"{run}, points from ncu at most: {_differences(rows, run)}")
    return 1 if wrong or unknown > options.most_unknown else 0


def record(target: Path, mode: str, program: Sequence[str]) -> None:
    """Record a script with its words, as `target` with the endings of the files."""
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cupti"]
    command += ["-k", "triton", "-m", mode] if mode else []
    _run([*command, "-n", str(target), *program])


def _run(command: Sequence[str]) -> None:
    print(" ".join(command), flush=True)
    paths = os.pathsep.join(filter(None, (str(_TOP), os.environ.get("PYTHONPATH", ""))))
    subprocess.run(command, check=False, cwd=_TOP, env={**os.environ, "PYTHONPATH": paths})


def _count_by_ncu(target: Path, kernels: Sequence[str]) -> None:
    if shutil.which("ncu") is None or not kernels:
        return
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"]
    command += ["--metrics", ",".join(_NCU_METRICS), "--log-file", str(target)]
    _run([*command, sys.executable, str(_PROGRAM), *_NCU_RUN, "--only", ",".join(kernels)])


def _of_ncu(source: Path, kernels: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return the part of the peak in percent by (kernel, quantity): the mean of its launches.

    Its launches are in the order of the program's only round; it does not see copies.
    """
    if not source.exists():
        return {}
    lines = source.read_text(encoding="utf-8").splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    names = [name for name in shuffled_labels(kernels) if name not in _COPIES]
    found: dict[tuple[str, str], list[float]] = {}
    for row in csv.DictReader(lines[start:]):
        quantity = _NCU_METRICS.get(row["Metric Name"])
        if quantity is not None:
            name = names[int(row["ID"]) // _LAUNCHES]
            found.setdefault((name, quantity), []).append(float(row["Metric Value"]))
    return {key: statistics.fmean(values) for key, values in found.items()}


def judge(
    profiles: Mapping[str, Profile],
    by_ncu: Mapping[tuple[str, str], float] | None = None,
    *,
    only: Collection[str] = (),
) -> list[Row]:
    """Return a row for each label.

    Args:
        profiles: By the name of their run; ``mixed`` decides, for a second verdict with the samples
            of program counters of ``stalls``, and ``loader`` for itself.
        by_ncu: Parts of the peak in percent by (kernel, quantity).
        only: Names of the labels; all where there is none.
    """
    answers = [why(profiles["mixed"])] if "mixed" in profiles else []
    if answers and "stalls" in profiles:
        answers.append(why(Profile.merge([profiles["mixed"], profiles["stalls"]])))
    rows = []
    for label in LABELS if answers else ():
        if only and label.name not in only:
            continue
        shares = {
            (run, quantity): part
            for run, profile in profiles.items()
            for quantity in _QUANTITIES
            if (part := share(profile, label.name, quantity)) is not None
        }
        for (name, quantity), part in (by_ncu or {}).items():
            if name == label.name:
                shares[_NCU, quantity] = part
        kinds, shorts = zip(*(_verdict(answer, label) for answer in answers), strict=True)
        rows.append(Row(label, kinds, shorts, shares))
    if LOADER.name in profiles:
        first = next(iter(why(profiles[LOADER.name]).findings), None)
        rows.append(
            Row(LOADER, (first.id,), (first.text,)) if first else Row(LOADER, (_UNKNOWN,), ("-",))
        )
    return rows


def _verdict(answer: Answer, label: Label) -> tuple[str, str]:
    rows = [row for row in answer.rows if label.name in row.path]
    if not rows:
        return _UNKNOWN, "no row"
    verdict = max(rows, key=lambda row: row.time_ns).verdict
    return verdict.kind, verdict.short


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
    runs = [
        run
        for run in (_NCU, "mixed", "alone")
        if any(run in key for row in rows for key in row.shares)
    ]
    heads = ["kernel", "right", "counters say", "with PC samples", "", *runs]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        mark = "WRONG" if row.is_wrong else _UNKNOWN if row.is_unknown else "right"
        said = [row.shorts[0], row.shorts[-1] if len(row.shorts) > 1 else ""]
        cells = [row.label.name, row.label.right[0], *said, mark]
        lines.append(f"| {' | '.join([*cells, *(_busiest(row, run) for run in runs)])} |")
    return "\n".join(lines)


def _busiest(row: Row, run: str) -> str:
    parts = {quantity: part for (of, quantity), part in row.shares.items() if of == run}
    parts.pop("sm_active", None)
    largest = sorted(parts, key=lambda each: -parts[each])[:_SHOWN]
    return ", ".join(f"{each} {parts[each]:.1f}" for each in largest) or "-"


def _differences(rows: Sequence[Row], run: str) -> str:
    found = {}
    for quantity in _QUANTITIES:
        pairs = [
            (abs(row.shares[run, quantity] - row.shares[_NCU, quantity]), row.label.name)
            for row in rows
            if (run, quantity) in row.shares and (_NCU, quantity) in row.shares
        ]
        if pairs:
            found[quantity] = max(pairs)
    return ", ".join(f"{each} {points:.1f} ({name})" for each, (points, name) in found.items())


if __name__ == "__main__":
    sys.exit(main())
