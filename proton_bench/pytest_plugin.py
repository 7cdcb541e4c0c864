"""Gives a profile the structure of a test run: session > file > class > test > setup, call.

``proton pytest tests/`` opens the session itself, and this plugin only adds the nodes;
``pytest --proton`` has the plugin open the session and write the files. The exit code stays
pytest's in both.

The next word keeps pytest from warning that it came too late to rewrite this module's asserts,
which have none: PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import contextlib
import heapq
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proton_bench.errors import ProtonError

if TYPE_CHECKING:
    from proton_bench.capture.output_name import OutputName
    from proton_bench.capture.session import Session
    from proton_bench.profile.profile import Profile

__all__ = ["hottest_paths"]

_ENTRY_POINT = "proton_bench"
_SESSION = "session"
_TIME = "time (ns)"
_COUNT = "count"
_SUMMARY_ROWS = 10
_MAX_NAME = 200
_PIPED_WIDTH = 200  # paths of Python frames have thousands of characters
_SEPARATOR = " > "

_notices = pytest.StashKey[list[str]]()


# -- options and life cycle ----------------------------------------------------------------------
def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add ``--proton`` and what goes with it."""
    if pluginmanager.get_name(sys.modules[__name__]) != _ENTRY_POINT:
        # Loaded as `-p proton_bench.pytest_plugin`: the entry point must not load it again.
        pluginmanager.set_blocked(_ENTRY_POINT)
    group = parser.getgroup("proton", "profiling with proton_bench")
    group.addoption("--proton", action="store_true", help="profile this test run")
    group.addoption(
        "--proton-name", metavar="NAME", default="proton", help="output name without a suffix"
    )
    group.addoption("--proton-backend", metavar="NAME[+NAME]", help="see `proton plugins`")
    group.addoption(
        "--proton-context", metavar="SOURCE", default="shadow", help="shadow or python call paths"
    )
    group.addoption("--proton-mode", metavar="MODE", help="mode of the backend")
    group.addoption("--proton-hook", metavar="HOOK", help="launch hook, e.g. triton")
    group.addoption(
        "--proton-no-interpret",
        action="store_true",
        help="do not switch Triton to its interpreter where there is no GPU driver",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let the backends prepare before a conftest imports torch or triton."""
    options = early_config.known_args_namespace
    if not options.proton or options.proton_no_interpret or _under_command_line():
        return
    if _is_disabled():
        return
    from proton_bench.plugin.manager import resolve_backend

    # What is wrong with the backend is reported when the session is opened.
    with contextlib.suppress(ProtonError):
        notices = [
            backend.prepare()
            for backend in resolve_backend(options.proton_backend)
            if backend.prepare is not None
        ]
        # pytest captures stderr at this point and would lose the text.
        early_config.stash[_notices] = [notice for notice in notices if notice]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Open the session, or join the one of the command line."""
    if config.getoption("help"):
        return
    for notice in config.stash.get(_notices, []):
        sys.stderr.write(f"proton: {notice}\n")
    recorder: object
    if _under_command_line():
        workers = "tests in workers are not profiled; `pytest --proton -n ...` profiles each worker"
        recorder = WorkersNote(workers) if _is_xdist_controller(config) else TestRecorder(None)
    elif not config.getoption("proton") or _is_disabled():
        return
    elif _is_xdist_controller(config):
        recorder = WorkersNote(f"each worker wrote its own profile: {_output(config).name}.gw*")
    else:
        try:
            recorder = TestRecorder(_open_session(config))
        except ProtonError as error:
            raise pytest.UsageError(f"proton: {error}") from None
    config.pluginmanager.register(recorder, "proton_bench_recorder")


def _under_command_line() -> bool:
    flags = sys.modules.get("proton_bench.flags")
    return flags is not None and bool(flags.flags.command_line)


def _is_disabled() -> bool:
    from proton_bench.capture.session import is_disabled

    return is_disabled()


def _is_xdist_controller(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput") and str(config.getoption("dist", "no")) != "no"


# -- where the profile goes ----------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _OwnSession:
    """A session that this plugin opened and has to finish."""

    session: Session
    formats: tuple[str, ...]


def _output(config: pytest.Config) -> OutputName:
    from proton_bench.capture.output_name import read_name

    worker = getattr(config, "workerinput", {}).get("workerid")
    return read_name(
        str(config.getoption("proton_name")),
        tag=f".{worker}" if worker else "",
        folder=str(config.invocation_params.dir),
    )


def _open_session(config: pytest.Config) -> _OwnSession:
    from proton_bench.capture.session import SessionOptions, open_session

    output = _output(config)
    session = open_session(
        SessionOptions(
            name=output.name,
            context=config.getoption("proton_context"),
            backend=config.getoption("proton_backend"),
            mode=config.getoption("proton_mode"),
            hook=config.getoption("proton_hook"),
        )
    )
    return _OwnSession(session, output.formats)


# -- recording -----------------------------------------------------------------------------------
class TestRecorder:
    """Hooks that put nodes around everything that pytest runs.

    Args:
        own: The session that this plugin opened; None under the command line, which finishes its
            session itself.
    """

    __test__ = False  # pytest must not take the class for a test

    def __init__(self, own: _OwnSession | None) -> None:
        self._own = own
        self._nodes = contextlib.ExitStack()
        self._lines: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Open the node of the whole run."""
        self._nodes.enter_context(_node(_SESSION))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Open the nodes of the file, the classes and the test."""
        with contextlib.ExitStack() as nodes:
            for name in _names(item):
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

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Close the run's node, take the summary and write the files, before pytest reports."""
        self._nodes.close()
        self._lines = _reported(self._summary) + _reported(self._write)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the hottest paths."""
        if not self._lines:
            return
        width = terminalreporter._tw.fullwidth if terminalreporter.isatty else _PIPED_WIDTH
        terminalreporter.section("proton: hottest paths")
        for line in self._lines:
            terminalreporter.write_line(_shortened(line, width))

    def pytest_unconfigure(self) -> None:
        """Write the files of a run that ended before its tests started."""
        self._nodes.close()
        for line in _reported(self._write):
            sys.stderr.write(f"proton: {line}\n")

    def _summary(self) -> list[str]:
        session = self._own.session if self._own is not None else _command_line_session()
        if session is None or not session.is_live:
            return ["a test finalized the session of this run: the profile ends there"]
        return hottest_paths(session.profile())

    def _write(self) -> list[str]:
        own, self._own = self._own, None
        if own is None:
            return []
        paths: Sequence[Path] = own.session.finalize(formats=own.formats)
        return [f"wrote {path}" for path in paths]


class WorkersNote:
    """Tells what became of the tests that the workers of pytest-xdist ran."""

    def __init__(self, text: str) -> None:
        self._text = text

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the text."""
        terminalreporter.section("proton")
        terminalreporter.write_line(self._text)


@contextlib.contextmanager
def _node(name: str) -> Iterator[None]:
    from proton_bench import _native

    depth, states = _native.thread_depth(), _native.state_depth()
    _native.enter_scope(name, _native.KIND_TEST)
    try:
        yield
    finally:
        # A test may leave scopes and states open; neither may shift later tests.
        for _ in range(_native.state_depth() - states):
            _native.exit_state()
        for _ in range(_native.thread_depth() - depth - 1):
            _native.exit_op()
        if _native.thread_depth() > depth:
            _native.exit_scope(name)


def _names(item: pytest.Item) -> list[str]:
    chain = item.listchain()
    file = next((i for i, node in enumerate(chain) if isinstance(node, pytest.File)), None)
    if file is None:
        return [item.nodeid or item.name]
    return [chain[file].nodeid or chain[file].name, *(node.name for node in chain[file + 1 :])]


def _command_line_session() -> Session | None:
    from proton_bench.capture.session import find_session

    return find_session(0)


def _reported(step: Any) -> list[str]:
    # A profile that cannot be read or written must not change what pytest says of the tests.
    try:
        lines: list[str] = step()
    except (ProtonError, ImportError) as error:
        return [f"error: {error}"]
    return lines


# -- summary -------------------------------------------------------------------------------------
def hottest_paths(profile: Profile, limit: int = _SUMMARY_ROWS) -> list[str]:
    """Render the call paths with the most time of their own as plain text.

    Args:
        profile: Profile of a test run; ``time (ns)`` counts for the node that has it.
        limit: Lines at most.

    Returns:
        One line per path: time, share of the total, calls, path; a sentence when there is none.
    """
    folded = profile.fold_variants()
    times, counts = _own_values(folded, _TIME), _own_values(folded, _COUNT)
    total = sum(times)
    if not total:
        return ["no operator, kernel or copy was recorded"]
    hottest = heapq.nlargest(limit, range(len(times)), key=times.__getitem__)
    return [
        f"{times[row] / 1e6:>11.3f} ms {times[row] / total:>6.1%} {counts[row]:>7} x  "
        + _SEPARATOR.join(_shown_path(folded, row))
        for row in hottest
        if times[row]
    ]


def _shown_path(profile: Profile, row: int) -> list[str]:
    from proton_bench.profile.frame import FrameKind

    names: list[str] = []
    while row > 0:
        name = profile.name(row)
        # Of Python frames, "folder/file.py:line@function", the folder only takes room.
        is_python = profile.kind(row) is FrameKind.PYTHON
        names.append(_printable(name.rpartition("/")[2] if is_python else name))
        row = int(profile.parents[row])
    if len(names) > 1 and names[-1] == _SESSION:
        names.pop()
    return names[::-1]


def _own_values(profile: Profile, metric: str) -> list[int]:
    column = profile.columns.get(metric)
    if column is None or not column.kind.is_number:
        return [0] * len(profile)
    values: list[int] = column.values.tolist()
    return values


def _printable(name: str) -> str:
    shown = name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 3] + "..."
    if shown.isprintable():
        return shown
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in shown
    )


def _shortened(line: str, width: int) -> str:
    """Leave out frames after the first; the end of a path says what is hot."""
    head, mark, path = line.partition(" x  ")
    first, *parts = path.split(_SEPARATOR)
    while len(parts) > 1 and len(line) > width:
        parts.pop(0)
        line = head + mark + _SEPARATOR.join((first, "...", *parts))
    return line
