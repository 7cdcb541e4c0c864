"""Held against their labels: python -m benchmarks.studies.why.study --out FOLDER.

Records `program` three times: by `counters` and by `counters=exact`, and with samples of program
counters, whose stall reasons are added to both. Prints a line per kernel with its label, the
verdict, and what part of their peaks DRAM and tensor units reached by either way. Needs a GPU,
torch and Triton. Returns 1 where a verdict is wrong, or more than `--most-unknown` are unknown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.studies.why.labels import LABELS, Label
from proton_bench.analysis.why.answer import why
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

__all__ = ["Row", "judge", "main", "table"]

_TOP = Path(__file__).parents[3]
# Rounds are fewer where launches wait for each other.
_RUNS = {
    "sampled": ("counters:copies=on", ()),
    "exact": ("counters:exact=launch:copies=on", ("--rounds", "2", "--slice-ms", "3")),
    "stalls": ("pcsampling:copies=on", ("--rounds", "4")),
}
_TIME = "counter_time (ns)"


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
            _record(
                (options.out / name).absolute(), mode, words or ("--rounds", str(options.rounds))
            )
    profiles = {
        name: read_profile(options.out / f"{name}.proton")
        for name in _RUNS
        if (options.out / f"{name}.proton").exists()
    }
    rows = judge(profiles)
    print(table(rows))
    wrong = sum(row.is_wrong for row in rows)
    unknown = sum(row.kind == "unknown" for row in rows)
    print(f"\n{len(rows)} kernels: {wrong} wrong, {unknown} unknown")
    return 1 if wrong or unknown > options.most_unknown else 0


def _record(target: Path, mode: str, words: Sequence[str]) -> None:
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cupti", "-m", mode]
    command += ["-n", str(target), str(Path(__file__).with_name("program.py")), *words]
    print(" ".join(command), flush=True)
    paths = os.pathsep.join(filter(None, (str(_TOP), os.environ.get("PYTHONPATH", ""))))
    subprocess.run(command, check=False, cwd=_TOP, env={**os.environ, "PYTHONPATH": paths})


def judge(profiles: Mapping[str, Profile]) -> list[Row]:
    """Return a row for each label.

    Args:
        profiles: By the name of their run; ``sampled`` decides, or ``exact`` without it. Samples
            of program counters are added to it.
    """
    main_run = next(profiles[name] for name in ("sampled", "exact") if name in profiles)
    parts = [main_run, profiles["stalls"]] if "stalls" in profiles else [main_run]
    answer = why(Profile.merge(parts))
    rows = []
    for label in LABELS:
        found = [row for row in answer.rows if label.name in row.path]
        verdict = max(found, key=lambda row: row.time_ns).verdict if found else None
        shares = {
            (run, quantity): _share(profile, label.name, quantity)
            for run, profile in profiles.items()
            if run != "stalls"
            for quantity in ("dram", "tensor")
        }
        kind, short = (verdict.kind, verdict.short) if verdict else ("unknown", "no row")
        rows.append(Row(label, kind, short, shares))
    return rows


def _share(profile: Profile, scope: str, quantity: str) -> float | None:
    """Return the part of a unit's peak below a scope, in percent."""
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
