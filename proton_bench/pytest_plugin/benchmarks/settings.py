"""Options of pytest about benchmarks and the gate, checked before a test runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.project import policy_of_project, store_of_project


def add_options(group: Any) -> None:
    """Add the options to a group of pytest's parser."""
    add = group.addoption
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
    add("--proton-runs", metavar="R", help="measure in R fresh processes, or fewer that decide all")
    add("--proton-save", metavar="NAME", help="save the run as a candidate of a baseline")
    add("--proton-json", metavar="FILE", help="write times and verdict as JSON")
    # Options of the fresh processes of --proton-runs: tests to run, nothing to judge.
    add("--proton-replicate", metavar="FILE", help="used by --proton-runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options.

    Attributes:
        disable: Benchmarks are called once.
        compare: What the gate compares with, as words of `proton gate`.
        compare_fail: Thresholds.
        project: Top folder of the tests.
        runs: Fresh processes to measure in; 0 measures in this one.
        save: Baseline to save a candidate of, "" for none.
        storage: Folder of the baselines.
        json: File for times and verdict.
        replicate: File with the tests that a fresh process runs; None in every other process.
    """

    disable: bool
    compare: tuple[str, ...]
    compare_fail: tuple[str, ...]
    project: Path
    runs: int
    save: str
    storage: Path
    json: Path | None
    replicate: Path | None

    @property
    def gates(self) -> bool:
        """Whether whole runs are compared or saved after the tests."""
        return bool(self.compare or self.save)

    @property
    def policy_file(self) -> Path | None:
        """File of the policy, as for `proton gate`, or None."""
        return policy_of_project(self.project)

    @property
    def asks(self) -> bool:
        """Whether the times are used beyond the terminal."""
        return self.gates or self.json is not None or self.replicate is not None

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
            path = option(name)
            return None if path is None else here / path

        found = cls(
            disable=option("proton_disable"),
            compare=() if is_replicate else tuple(option("proton_compare") or ()),
            compare_fail=() if is_replicate else tuple(option("proton_compare_fail") or ()),
            project=config.rootpath,
            runs=0 if is_replicate else _runs(option("proton_runs")),
            save="" if is_replicate else option("proton_save") or "",
            storage=store_of_project(config.rootpath),
            json=None if is_replicate else file("proton_json"),
            replicate=file("proton_replicate"),
        )
        if not is_replicate:
            _check(found)
            _check_gate(found)
        return found


def _check(settings: Settings) -> None:
    if settings.disable and (settings.gates or settings.json is not None):
        raise UsageError(
            "--proton-disable measures nothing, so there is nothing for --proton-compare, "
            "--proton-save or --proton-json"
        )
    if settings.runs and not settings.gates:
        raise UsageError(
            "--proton-runs measures for a gate or a baseline: give --proton-compare=BASE or "
            "--proton-save=NAME too"
        )
    if settings.compare_fail and not settings.compare:
        raise UsageError("--proton-compare-fail is for the gate: give --proton-compare=BASE too")


def _check_gate(settings: Settings) -> None:
    """Check before the tests run that the gate will be possible afterwards."""
    if settings.save:
        from proton_bench.gate.baselines import check_name

        check_name(settings.save)
    if settings.compare_fail:
        from proton_bench.gate.policy import parse_threshold

        for text in settings.compare_fail:
            parse_threshold(text)
    if settings.compare and settings.policy_file is not None:
        from proton_bench.gate.policy import read_policy

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
