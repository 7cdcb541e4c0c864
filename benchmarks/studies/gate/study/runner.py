"""Fresh processes of a study, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.studies.gate.study.archive import Archive, StudyError
from benchmarks.studies.gate.study.plan import Plan

__all__ = ["Measuring", "measure"]

_ROOT = Path(__file__).parents[3]
_LAST_LINES = 12
_WARMING = -1

Record = Callable[[Plan, Path], None]


@dataclass(frozen=True, slots=True)
class Measuring:
    """How to measure.

    Attributes:
        processes: How many in all.
        out: Folder of the archive.
        budget_s: No process is begun that would end later than this.
        limit_s: Longest time for one process.
    """

    processes: int
    out: Path
    budget_s: float = float("inf")
    limit_s: float = 300.0


def measure(archive: Archive, measuring: Measuring, record: Record | None = None) -> bool:
    """Measure what the archive lacks; return whether it is complete now.

    The first process fills caches of compilers and is not kept. A process that fails once is run
    again; failing twice, it ends the study, which keeps what it has.

    Args:
        archive: What is there already; profiles are added and saved one by one.
        measuring: How.
        record: Runs one process and has it write a file, by default in a fresh interpreter.

    Raises:
        StudyError: A process failed twice, or the archive grew too large.
    """
    run = record or _fresh(measuring)
    begin, longest = time.monotonic(), 0.0
    missing = [n for n in range(measuring.processes) if n not in archive.runs]
    with TemporaryDirectory(prefix="gate_study_") as folder:
        if missing:
            _recorded(run, _plan(archive, _WARMING), Path(folder))
        for number in missing:
            spent = time.monotonic() - begin
            if spent + longest > measuring.budget_s:
                print(f"{spent:.0f} s are spent: stopped before process {number}", flush=True)
                return False
            began = time.monotonic()
            archive.runs[number] = _recorded(run, _plan(archive, number), Path(folder))
            archive.save(measuring.out)
            seconds = time.monotonic() - began
            longest = max(longest, seconds)
            print(f"process {number + 1} of {measuring.processes}: {seconds:.1f} s", flush=True)
    return True


def _plan(archive: Archive, number: int) -> Plan:
    known = archive.settings
    return Plan(
        backend=known["backend"],
        kind=known["kind"],
        seed=known["seed"],
        number=number,
        tiny=known["tiny"],
    )


def _recorded(run: Record, plan: Plan, folder: Path) -> bytes:
    out = folder / f"process_{plan.number}.proton"
    for attempt in (1, 2):
        try:
            run(plan, out)
            return out.read_bytes()
        except (StudyError, FileNotFoundError) as error:
            print(f"process {plan.number}, attempt {attempt}: {error}", flush=True)
            failure = error
    raise StudyError(f"process {plan.number} failed twice: {failure}") from failure


def _fresh(measuring: Measuring) -> Record:
    """Return a function that records in a fresh interpreter; all share one compiler cache."""

    def run(plan: Plan, out: Path) -> None:
        plan_text = json.dumps({**asdict(plan), "out": str(out)})
        command = [sys.executable, "-m", "benchmarks.studies.gate.study.process", plan_text]
        try:
            done = subprocess.run(
                command,
                cwd=_ROOT,
                env=_environment(),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=measuring.limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise StudyError(f"no end after {measuring.limit_s:.0f} s") from error
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
            raise StudyError(f"it ended with {done.returncode}\n{last}")

    return run


def _environment() -> dict[str, str]:
    """Return this process's environment, without what other runs of Triton or ours left in it."""
    left_over = ("PROTON_BENCH_NATIVE", "TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE")
    return {key: value for key, value in os.environ.items() if key not in left_over}
