"""Options of pytest about benchmarks and the gate, checked before a test runs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.experiment.folders.project import policy_of_project, store_of_project

__all__ = [
    "COLUMNS",
    "GROUPINGS",
    "UNITS",
    "Settings",
    "add_options",
]

COLUMNS = ("min", "max", "mean", "median", "stddev", "iqr", "rounds", "calls", "clock")
_SHOWN = "median,iqr,min,rounds,calls,clock"
_SORTS = ("none", "name", *COLUMNS[:6])
GROUPINGS = ("group", "name", "func", "fullname", "param")
UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_FAIL_OR_PASS = ("fail", "pass")


def add_options(group: Any) -> None:
    """Add the options to a group of pytest's parser."""
    add = group.addoption
    add("--proton-only", action="store_true", help="run benchmarks only")
    add("--proton-skip", action="store_true", help="skip benchmarks")
    add("--proton-disable", action="store_true", help="call benchmarks once, measure nothing")
    add(
        "--proton-compare",
        action="append",
        metavar="BASE",
        help="gate: a baseline, a profile or a folder of runs; may be repeated for several runs",
    )
    add(
        "--proton-compare-fail",
        action="append",
        metavar="EXPR",
        help="a threshold, such as median:5%%; may be repeated",
    )
    add("--proton-policy", metavar="FILE", help="policy of the gate instead of pyproject.toml's")
    add("--proton-runs", metavar="R", help="measure in R fresh processes, or fewer that decide all")
    add("--proton-inconclusive", choices=_FAIL_OR_PASS, help="result of an undecided gate")
    add(
        "--proton-missing-baseline",
        choices=_FAIL_OR_PASS,
        default="fail",
        help="result of a gate without a baseline",
    )
    add("--proton-save", metavar="NAME", help="save the run as a candidate of a baseline")
    add("--proton-autosave", action="store_true", help="save it as a candidate of `pytest`")
    add("--proton-storage", metavar="DIR", help="folder of baselines instead of .proton")
    add("--proton-json", metavar="FILE", help="write times and verdict as JSON")
    add("--proton-markdown", metavar="FILE", help="write the verdict as a comment")
    add("--proton-junit", metavar="FILE", help="write the verdict as JUnit XML")
    add("--proton-html", metavar="FILE", help="write the changes as a page")
    add("--proton-github", action="store_true", help="print annotations of GitHub Actions")
    add("--proton-timer", metavar="MODULE.NAME", help="function that returns ns, for the CPU")
    add("--proton-group-by", choices=GROUPINGS, default="group", help="tables of benchmarks")
    add("--proton-sort", choices=_SORTS, default="none", help="order within a table")
    add("--proton-columns", metavar="NAME[,NAME]", default=_SHOWN, help=", ".join(COLUMNS))
    add("--proton-time-unit", choices=("auto", *UNITS), default="auto", help="unit of times")
    add("--proton-histogram", action="store_true", help="draw a histogram of the rounds")
    # Options of the fresh processes of --proton-runs: tests to run, nothing to judge.
    add("--proton-replicate", metavar="FILE", help="used by --proton-runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options.

    Attributes:
        only: Only benchmarks run.
        skip: Benchmarks are skipped.
        disable: Benchmarks are called once.
        compare: What the gate compares with, as words of `proton gate`.
        compare_fail: Thresholds.
        policy: File of the policy; None means the project's.
        project: Top folder of the tests.
        runs: Fresh processes to measure in; 0 measures in this one.
        inconclusive: Result of an undecided gate, ``fail`` or ``pass``; None leaves it to the
            policy.
        missing_passes: Whether a gate without a baseline passes.
        save: Baselines to save a candidate of.
        storage: Folder of the baselines.
        json: File for times and verdict.
        markdown: File for the verdict as a comment.
        junit: File for the verdict as JUnit XML.
        html: File for a page of the changes.
        github: Whether annotations are printed.
        clock: Clock of the CPU in ns.
        group_by: How to group benchmarks into tables.
        sort: Order within a table.
        columns: Columns of the table.
        time_unit: Unit of its times.
        histogram: Whether the rounds of each benchmark are drawn.
        replicate: File with the tests that a fresh process runs; None in every other process.
    """

    only: bool
    skip: bool
    disable: bool
    compare: tuple[str, ...]
    compare_fail: tuple[str, ...]
    policy: Path | None
    project: Path
    runs: int
    inconclusive: str | None
    missing_passes: bool
    save: tuple[str, ...]
    storage: Path
    json: Path | None
    markdown: Path | None
    junit: Path | None
    html: Path | None
    github: bool
    clock: Callable[[], int]
    group_by: str
    sort: str
    columns: tuple[str, ...]
    time_unit: str
    histogram: bool
    replicate: Path | None

    @property
    def gates(self) -> bool:
        """Whether whole runs are compared or saved after the tests."""
        return bool(self.compare or self.save)

    @property
    def policy_file(self) -> Path | None:
        """File of the policy, as for `proton gate`, or None."""
        return self.policy or policy_of_project(self.project)

    @property
    def asks(self) -> bool:
        """Whether the times are used beyond the table."""
        return self.gates or self.json is not None or self.only or self.replicate is not None

    @classmethod
    def read(cls, config: pytest.Config) -> Settings:
        """Return the options.

        Raises:
            UsageError: An option is invalid, or two exclude each other.
        """
        option = config.getoption
        is_replicate = option("proton_replicate") is not None
        here = config.invocation_params.dir

        def file(name: str) -> Path | None:
            found = option(name)
            return None if found is None else here / found

        save = [option("proton_save")] if option("proton_save") is not None else []
        save += ["pytest"] if option("proton_autosave") else []
        found = cls(
            only=option("proton_only"),
            skip=option("proton_skip"),
            disable=option("proton_disable"),
            compare=() if is_replicate else tuple(option("proton_compare") or ()),
            compare_fail=() if is_replicate else tuple(option("proton_compare_fail") or ()),
            policy=file("proton_policy"),
            project=config.rootpath,
            runs=0 if is_replicate else _runs(option("proton_runs")),
            inconclusive=option("proton_inconclusive"),
            missing_passes=option("proton_missing_baseline") == "pass",
            save=() if is_replicate else tuple(dict.fromkeys(save)),
            storage=file("proton_storage") or store_of_project(config.rootpath),
            json=None if is_replicate else file("proton_json"),
            markdown=None if is_replicate else file("proton_markdown"),
            junit=None if is_replicate else file("proton_junit"),
            html=None if is_replicate else file("proton_html"),
            github=option("proton_github"),
            clock=_clock(option("proton_timer")),
            group_by=option("proton_group_by"),
            sort=option("proton_sort"),
            columns=_columns(option("proton_columns")),
            time_unit=option("proton_time_unit"),
            histogram=option("proton_histogram"),
            replicate=file("proton_replicate"),
        )
        if not is_replicate:
            _check(found)
            _check_gate(found)
        return found


def _check(settings: Settings) -> None:
    if settings.only and settings.skip:
        raise UsageError("--proton-only and --proton-skip leave no test: give one of them")
    measured = settings.gates or settings.json is not None
    for name in ("disable", "skip"):
        if measured and getattr(settings, name):
            raise UsageError(
                f"--proton-{name} measures nothing, so there is nothing for --proton-compare, "
                "--proton-save or --proton-json"
            )
    if settings.runs and not settings.gates:
        raise UsageError(
            "--proton-runs measures for a gate or a baseline: give --proton-compare=BASE or "
            "--proton-save=NAME too"
        )
    if settings.compare:
        return
    judged = {
        "--proton-compare-fail": settings.compare_fail,
        "--proton-policy": settings.policy,
        "--proton-inconclusive": settings.inconclusive,
        "--proton-markdown": settings.markdown,
        "--proton-junit": settings.junit,
        "--proton-html": settings.html,
        "--proton-github": settings.github,
    }
    alone = [name for name, value in judged.items() if value]
    if alone:
        raise UsageError(f"{alone[0]} is for the gate: give --proton-compare=BASE too")


def _check_gate(settings: Settings) -> None:
    """Check before the tests run that the gate will be possible afterwards."""
    if settings.save:
        from proton_bench.gate.baseline.store import check_name

        for name in settings.save:
            check_name(name)
    if settings.compare_fail:
        from proton_bench.gate.policy.threshold import parse_threshold

        for text in settings.compare_fail:
            parse_threshold(text)
    if settings.compare and settings.policy_file is not None:
        from proton_bench.gate.policy.policy import read_policy

        read_policy(settings.policy_file)


def _runs(text: str | None) -> int:
    if text is None:
        return 0
    try:
        runs = int(text)
    except ValueError:
        runs = 0
    if runs < 1:
        raise UsageError(f"--proton-runs={text}: expected a number of processes, 1 or more")
    return runs


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or not names:
        what = f"{unknown[0]!r} is not a column" if unknown else "no column is named"
        raise UsageError(f"--proton-columns={text}: {what}; columns are {', '.join(COLUMNS)}")
    return names


def _clock(text: str | None) -> Callable[[], int]:
    if text is None:
        return time.perf_counter_ns
    module, _, name = text.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--proton-timer={text}: {error}") from None
    if not callable(found):
        raise UsageError(f"--proton-timer={text} is not a function: write MODULE.NAME")
    clock: Callable[[], int] = found
    return clock
