"""The gate of a test run: runs of its benchmarks, the base, and the result."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from proton_bench.analysis.run import Run
from proton_bench.errors import InterruptedExperimentError, ProtonError
from proton_bench.gate.baselines import BaselineStore, RecordedRuns, read_side
from proton_bench.gate.experiment import FreshRuns, fresh_runs, gate_fresh, gate_recorded
from proton_bench.gate.policy import Policy, PolicyWords
from proton_bench.gate.processes import Command
from proton_bench.gate.project import store_of_project
from proton_bench.gate.runs import new_folder
from proton_bench.gate.verdict.result import EXIT_CODES, GateResult, Outcome, SuiteVerdict
from proton_bench.pytest_plugin.benchmarks.settings import Settings
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import PYTEST_AS_MODULE, TargetKind
from proton_bench.report.text.gate import GateReport, gate_document
from proton_bench.report.words.gate import explained, row_text, structure_text
from proton_bench.rounds.record import BenchmarkRecord
from proton_bench.support.files import write_file
from proton_bench.support.text import visible

_TESTS = "tests.json"


@contextlib.contextmanager
def fresh_runs_of(
    config: pytest.Config, tests: Sequence[str], *, fewest: int, most: int
) -> Iterator[FreshRuns]:
    """Yield runs of tests, each in a fresh process without workers, and keep the profiles.

    Args:
        config: Of this run, whose arguments the processes are started with.
        tests: Node ids of the tests.
        fewest: Processes before the first verdict, 0 for those of the policy.
        most: Processes there are at most.

    Raises:
        OutputError: Something cannot be written.
    """
    folder = new_folder("pytest", store_of_project(config.rootpath))
    file = folder / _TESTS
    write_file(file, json.dumps(list(tests)))
    command = replicate_command(config, file)
    with fresh_runs(command, doing="pytest", folder=folder, fewest=fewest, most=most) as fresh:
        yield fresh


def replicate_command(config: pytest.Config, tests: Path) -> Command:
    """Return the command of a fresh process.

    Args:
        config: Of this run.
        tests: File with the node ids of the tests.
    """
    option = config.getoption
    arguments = [os.fspath(each) for each in config.invocation_params.args]
    own = [f"--proton-replicate={tests}"]
    if config.pluginmanager.hasplugin("xdist"):
        # Workers would disturb each other's measurements.
        own += ["-n0", "--dist=no"]
    if option("basetemp"):
        # Each process empties its folder for temporary files, and this run may need its own.
        own.append(f"--basetemp={tests.parent / 'tmp'}")
    folder = str(config.invocation_params.dir)
    return Command(
        RunOptions(
            kind=TargetKind.PYTEST,
            target=PYTEST_AS_MODULE if _sees(folder) else "",
            name="",
            formats=(),
            folder=folder,
            context=option("proton_context"),
            backend=option("proton_backend"),
            mode=option("proton_mode"),
            command=("pytest", *arguments),
        ),
        tuple(_before_paths(arguments, own)),
    )


def _sees(folder: str) -> bool:
    """Whether modules of the folder can be imported, as under ``python -m pytest``."""
    return "" in sys.path or folder in sys.path


def _before_paths(arguments: Sequence[str], own: Sequence[str]) -> list[str]:
    """Put options in front of ``--``, after which nothing is an option."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:place], *own, *arguments[place:]]


class Judging:
    """Compares, decides, and only then saves, so that no run is compared with itself.

    Args:
        config: Of the test run.
        settings: The options.
        records: Records of the benchmarks in this run.
    """

    def __init__(
        self, config: pytest.Config, settings: Settings, records: Sequence[BenchmarkRecord]
    ) -> None:
        self._config = config
        self._settings = settings
        self._records = records
        self._store = BaselineStore(settings.storage)
        self._outcome: Outcome | None = None
        self._runs: Sequence[Run] = []
        self._saved = ""
        self._problem = ""

    def run(self, recorded: Callable[[], Run]) -> None:
        """Measure, compare and save; errors are shown.

        Args:
            recorded: Returns what the test run recorded.

        Raises:
            InterruptedExperimentError: A signal arrived while fresh processes measured.
        """
        try:
            self._decide(recorded)
        except InterruptedExperimentError:
            raise
        except ProtonError as error:
            self._outcome = Outcome.failed(error.report())
        try:
            self._save()
        except ProtonError as error:
            self._problem = str(error)

    @property
    def exit_code(self) -> int:
        """Exit code if no test failed: that of `proton gate`."""
        if self._problem:
            return EXIT_CODES[SuiteVerdict.ERROR]
        if self._outcome is None:
            return 0
        return self._outcome.result.exit_code

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the gate, None without one."""
        return self._outcome

    def document(self) -> dict[str, Any] | None:
        """Return the verdict as `proton gate --json` prints it, None without a gate."""
        return None if self._outcome is None else gate_document(self._outcome)

    def failures(self) -> dict[str, str]:
        """Return what got worse, by node id of each test that the gate fails."""
        outcome = self._outcome
        if outcome is None:
            return {}
        owners = {record.id: record.node_id for record in self._records}
        found: dict[str, list[str]] = {}
        for row in outcome.result.regressions:
            found.setdefault(owners.get(row.path[0], ""), []).append(
                f"{row_text(row, outcome)}; allowed {row.threshold.rpartition('@')[2]}"
            )
        for change in outcome.structure:
            if change.fails:
                text = structure_text(change, outcome)
                found.setdefault(owners.get(change.path[0], ""), []).append(text)
        found.pop("", None)
        return {test: _failure_text(lines) for test, lines in found.items()}

    def lines(self) -> list[str]:
        """Return the verdict for the terminal."""
        lines = []
        outcome = self._outcome
        if outcome is not None and outcome.problem:
            said = f"{outcome.result.verdict}: {outcome.problem}"
            lines += [visible(line) for line in said.split("\n")]
        elif outcome is not None:
            lines += _report_lines(outcome)
        if outcome is not None:
            lines += self._advice(outcome)
        if self._problem:
            lines.append(f"error: {visible(self._problem)}")
        if self._saved:
            lines.append(
                f"saved as candidate {self._saved}; `proton baseline promote {self._saved}` makes "
                "it the baseline"
            )
        return lines

    def _decide(self, recorded: Callable[[], Run]) -> None:
        settings = self._settings
        if not self._records:
            self._outcome = self._without_benchmarks()
            return
        if not settings.runs:
            self._runs = [recorded()]
            if settings.compare:
                self._outcome = explained(gate_recorded(self._base(), self._runs, self._policy()))
            return
        tests = [record.node_id for record in self._records]
        # What is saved may become a base, for which every run counts.
        fewest = settings.runs if settings.save else 0
        with fresh_runs_of(self._config, tests, fewest=fewest, most=settings.runs) as fresh:
            if settings.compare:
                outcome, self._runs = gate_fresh(self._base(), fresh, self._policy())
                self._outcome = explained(outcome)
            else:
                self._runs = fresh.first(settings.runs)

    def _base(self) -> RecordedRuns:
        return read_side(self._settings.compare, self._store)

    def _policy(self) -> Policy:
        settings = self._settings
        words = PolicyWords(None, settings.compare_fail, ())
        return words.policy(settings.policy_file)

    def _save(self) -> None:
        if self._settings.save and self._runs:
            self._saved = self._store.save(self._settings.save, self._runs).reference

    def _without_benchmarks(self) -> Outcome:
        problem = "no test is a benchmark: use the fixture or the marker proton_bench"
        if not self._settings.compare:
            return Outcome.failed(problem)
        return Outcome(GateResult(SuiteVerdict.NO_BASELINE), problem=problem)

    def _advice(self, outcome: Outcome) -> list[str]:
        verdict = outcome.result.verdict
        if verdict is SuiteVerdict.INCONCLUSIVE and not self._settings.runs:
            return [
                "rounds of one process are one replicate, which decides only structure: use "
                "--proton-runs=6 to measure in 6 fresh processes"
            ]
        return []


def _failure_text(lines: Sequence[str]) -> str:
    noun = "check" if len(lines) == 1 else "checks"
    return "\n".join([f"proton gate: {len(lines)} {noun} got worse: {lines[0]}", *lines[1:]])


def _report_lines(outcome: Outcome) -> list[str]:
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, color_system=None).print(GateReport(outcome), crop=False, soft_wrap=True)
    return text.getvalue().rstrip("\n").split("\n")
