"""Hooks of the process that pytest was started as: times, a file and the gate's verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from proton_bench.errors import InterruptedExperimentError, ProtonError
from proton_bench.pytest_plugin.benchmarks.in_test import ATTRIBUTE
from proton_bench.pytest_plugin.benchmarks.settings import Settings
from proton_bench.rounds.record import BenchmarkRecord
from proton_bench.support.text import visible, visible_lines
from proton_bench.support.units import count_text, duration_text

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run
    from proton_bench.pytest_plugin.benchmarks.end.judging import Judging


# Code of `proton gate` for wrong usage and unreadable or unwritable files; wins over the others.
_WRONG = 2


class BenchmarksOfRun:
    """Hooks that collect the records of benchmarks and judge them after the last test.

    Args:
        config: Of the run.
        settings: The options.
        recorded: Returns the run with what its workers recorded.
    """

    def __init__(
        self, config: pytest.Config, settings: Settings, recorded: Callable[[], Run]
    ) -> None:
        self._config = config
        self._settings = settings
        self._recorded = recorded
        self._records: dict[str, BenchmarkRecord] = {}
        self._passed: dict[str, pytest.TestReport] = {}
        self._judging: Judging | None = None
        self._lines: list[str] = []
        self._exit_code = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the record of a benchmark, from this process or a worker."""
        plain = getattr(report, ATTRIBUTE, None)
        if report.when == "call" and plain is not None:
            record = BenchmarkRecord.from_plain(plain)
            self._records[record.node_id] = record
            self._passed[record.node_id] = report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[Any]:
        """Judge after the last test, while tests can still fail."""
        try:
            found = yield
        except BaseException:
            if self._settings.gates:
                self._lines.append("skipped: the run was stopped, so nothing was compared or saved")
            self._write_times()
            raise
        if not self._config.option.collectonly:
            try:
                if self._settings.gates:
                    self._judge(session)
            finally:
                self._write_times()
        return found

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the gate's exit code if pytest's is 0."""
        if session.exitstatus == pytest.ExitCode.OK and self._exit_code:
            session.exitstatus = self._exit_code

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show times and the verdict."""
        if self._records:
            terminalreporter.section("proton: benchmarks")
            for record in self._records.values():
                terminalreporter.write_line(visible_lines(_line(record)))
            if len({record.worker for record in self._records.values()}) > 1:
                terminalreporter.write_line(
                    "measured by concurrent workers, which disturb times on the CPU"
                )
        if self._lines:
            terminalreporter.section("proton gate")
            for line in self._lines:
                terminalreporter.write_line(visible_lines(line))
            self._lines = []

    def _write_times(self) -> None:
        if self._settings.json is None:
            return
        from proton_bench.pytest_plugin.benchmarks.end.document import write_document

        verdict = None if self._judging is None else self._judging.document()
        try:
            write_document(self._settings.json, list(self._records.values()), verdict)
        except ProtonError as error:
            self._lines.append(f"error: {error}")
            self._exit_code = _WRONG

    def _judge(self, session: pytest.Session) -> None:
        if session.testsfailed:
            self._lines.append(
                f"skipped: {session.testsfailed} failed, so nothing was compared or saved"
            )
            return
        from proton_bench.pytest_plugin.benchmarks.end.judging import Judging

        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None and terminal._tw.width_of_current_line:
            terminal._tw.line()  # else notices would follow "[100%]"
        judging = Judging(self._config, self._settings, list(self._records.values()))
        try:
            judging.run(self._recorded)
        except InterruptedExperimentError as error:
            raise KeyboardInterrupt(str(error)) from None
        self._judging = judging
        self._lines += judging.lines()
        self._exit_code = judging.exit_code
        for test, text in judging.failures().items():
            self._fail(test, text)

    def _fail(self, test: str, text: str) -> None:
        """Make a passed test fail, for the terminal, JUnit files and --last-failed alike."""
        from proton_bench.pytest_plugin.benchmarks.end.failure import GateFailure

        passed = self._passed[test]
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        shown = [] if terminal is None else terminal.stats.get("passed", [])
        if passed in shown:
            shown.remove(passed)
        path, line, _ = passed.location
        failed = pytest.TestReport(
            nodeid=passed.nodeid,
            location=passed.location,
            keywords=passed.keywords,
            outcome="failed",
            longrepr=GateFailure(text, path, line or 0),  # type: ignore[arg-type]
            when="call",
        )
        self._config.hook.pytest_runtest_logreport(report=failed)


def _line(record: BenchmarkRecord) -> str:
    """Return one line: the median time of a call, and how it was measured."""
    rounds = count_text(len(record.gated_ns), "round")
    time = f"{duration_text(record.median_ns)} ({record.clock}, median of {rounds})"
    return f"{time}  {visible(record.id)}"
