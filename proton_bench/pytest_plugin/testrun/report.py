"""The end of a recorded test run: take the summary, write the files, report in pytest."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proton_bench.errors import OutputError, ProtonError
from proton_bench.model.frame import COLLECTION_NAME, TEST_RUN_NAME
from proton_bench.recording.stderr import shown_path
from proton_bench.recording.summary import best_file
from proton_bench.support.text import visible, visible_lines

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run
    from proton_bench.model.profile import Profile
    from proton_bench.recording.session.session import Session


class TestNodes:
    """Hooks that open nodes around everything that pytest runs."""

    __test__ = False  # pytest must not take the class for a test

    def __init__(self) -> None:
        self._nodes = contextlib.ExitStack()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Open the node of the whole run."""
        self._nodes.enter_context(_node(TEST_RUN_NAME))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Iterator[None]:
        """Open the node of the collection, which imports the modules of the tests."""
        with _node(COLLECTION_NAME):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Open the nodes of the file, the classes and the test."""
        with contextlib.ExitStack() as nodes:
            for name in _node_names(item):
                nodes.enter_context(_node(name))
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Open the node of the fixtures' first halves."""
        with _node("setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Open the node of the test function."""
        with _node("call"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        """Open the node of the fixtures' second halves."""
        with _node("teardown"):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Close the run's node, after the fixtures that end after the last test."""
        try:
            return (yield)
        finally:
            self.close()

    def close(self) -> None:
        """Close the run's node, if it is open."""
        self._nodes.close()

    def gather(self) -> list[str]:
        """Close the run's node and return the missing parts: none."""
        self.close()
        return []


def _node_names(item: pytest.Item) -> list[str]:
    """Return the names of the nodes around a test, from its file down to itself.

    Joined by ``::`` they are the test's node id, except where a plugin chose another id.
    """
    chain = item.listchain()
    file = next((i for i, node in enumerate(chain) if isinstance(node, pytest.File)), None)
    if file is None:
        return [item.nodeid or item.name]
    return [chain[file].nodeid or chain[file].name, *(node.name for node in chain[file + 1 :])]


@contextlib.contextmanager
def _node(name: str) -> Iterator[None]:
    from proton_bench import _native

    depth, states = _native.thread_depth(), _native.state_depth()
    _native.enter_scope(name, _native.KIND_TEST)
    try:
        yield
    finally:
        # A test may leave scopes and states open; these must not affect later tests.
        for _ in range(_native.state_depth() - states):
            _native.exit_state()
        for _ in range(_native.thread_depth() - depth - 1):
            _native.exit_op()
        if _native.thread_depth() > depth:
            _native.exit_scope(name)


_PIPED_WIDTH = 200  # paths of Python frames have thousands of characters


@dataclass(frozen=True, slots=True)
class RunSession:
    """The session that a test run records into.

    Attributes:
        session: The session.
        formats: Formats to write at the end of the run; None if the session ends elsewhere.
    """

    session: Session
    formats: tuple[str, ...] | None


class ProfileReport:
    """Hooks that end the recording of a run and show its summary.

    Args:
        run: The session of the run.
        gather: Called first, after all tests; returns lines about missing parts.
        profile: Returns the recording so far, if it is not all in the session.
    """

    def __init__(
        self,
        run: RunSession,
        gather: Callable[[], Sequence[str]],
        profile: Callable[[], Profile] | None = None,
    ) -> None:
        self._run = run
        self._gather = gather
        self._profile = profile or run.session.profile
        self._is_over = self._has_tests = False
        self._summary: list[str] = []
        self._width = _PIPED_WIDTH
        self._notes: list[str] = []
        self._files: Sequence[Path] = ()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take the width of the terminal."""
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and reporter.isatty:
            self._width = reporter._tw.fullwidth

    def pytest_runtest_logstart(self) -> None:
        """Note that a test began, here or in a worker."""
        self._has_tests = True

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """End the recording after everything that belongs to the run."""
        # Inside the wrapper that prints pytest's summary, but around all other hooks: fixtures that
        # end after the tests, and workers that are still running.
        try:
            return (yield)
        finally:
            if not (self._has_tests or self._is_over):
                self._discard()
            self._end()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the files, missing parts and the summary."""
        lines = [*self._notes, *self._summary]
        if not lines:
            return
        terminalreporter.section("proton")
        for line in lines:
            terminalreporter.write_line(visible_lines(line))
        self._notes, self._summary = [], []

    def pytest_unconfigure(self) -> None:
        """Write the files of a run that ended early; print unshown messages."""
        self._end()
        for line in self._notes:
            sys.stderr.write(f"proton: {visible(line)}\n")
        self._notes = []

    def recorded(self) -> Run:
        """End the recording and return what its file holds, so that all readers agree.

        Where the file is another's to write, or there is none, it is what was recorded so far.

        Raises:
            OutputError: The file was not written.
            ProtonError: It cannot be read, or the session was finalized.
        """
        from proton_bench.analysis.run import Run, best_of, read_runs
        from proton_bench.recording.session.options import STDOUT

        if self._run.formats is None or self._run.session.path == STDOUT:
            return Run(self._profile(), "this run")
        self._end()
        if not self._files:
            raise OutputError(
                "the profile of this run was not written, so there is nothing to compare or save"
            )
        (run,) = read_runs([best_of(self._files)])
        return run

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._notes = reported(self._settle) + reported(self._gather)
        profile = self._recorded_here()
        self._notes += reported(self._write)
        if profile is not None:
            self._summary = reported(lambda: self._summary_of(profile))

    def _discard(self) -> None:
        """Write nothing: a profile of earlier tests stays as it is."""
        self._is_over = True
        if self._run.formats is not None and self._run.session.is_live:
            self._run.session.finalize(formats=())
            self._notes = ["no tests ran, so no profile was written"]

    # Else the run would seem to spend its end with what the summary imports.
    def _settle(self) -> list[str]:
        if not self._run.session.is_live:
            return ["a test finalized the session of this run: the profile ends there"]
        if self._run.formats is not None:
            self._run.session.settle()
        return []

    def _recorded_here(self) -> Profile | None:
        """Return the profile; None if the program around the tests writes and summarizes it."""
        if self._run.formats is None or not self._run.session.is_live:
            return None
        with contextlib.suppress(ProtonError, ImportError):  # writing says why
            return self._run.session.profile()
        return None

    def _summary_of(self, profile: Profile) -> list[str]:
        from proton_bench.report.text.summary import summary_lines

        names = [str(path) for path in self._files]
        file = best_file(names)
        return summary_lines(profile, shown_path(file, os.getcwd()) if file else "", self._width)

    def _write(self) -> list[str]:
        if self._run.formats is None:
            return []
        self._files = paths = self._run.session.finalize(formats=self._run.formats)
        remarks = [f"warning: {remark}" for remark in self._run.session.remarks]
        wrote = [f"wrote {', '.join(shown_path(str(each), os.getcwd()) for each in paths)}"]
        return [*remarks, *(wrote if paths else ())]


def reported(step: Callable[[], Sequence[str]]) -> list[str]:
    """Return the lines of a step, or its error as a line.

    A profile that cannot be read or written must not change pytest's results.
    """
    try:
        return list(step())
    except (ProtonError, ImportError) as error:
        return [f"error: {error}"]
