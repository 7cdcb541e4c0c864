"""Gives a profile the structure of a test run: session > file > class > test > setup, call.

``proton pytest tests/`` opens the session itself, and this plugin only adds the nodes; ``pytest
--proton`` makes the plugin open the session and write the files. The exit code stays pytest's in
both, except with a gate. ``testrun`` handles runs, ``benchmarks`` benchmarks
and their gate; this module decides which process records.

The next word keeps pytest from warning that it came too late to rewrite this module's asserts,
which have none: PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import pytest

from proton_bench.errors import ProtonError
from proton_bench.pytest_plugin.benchmarks.marker import MARKER_LINE
from proton_bench.pytest_plugin.benchmarks.registration import (
    add_to_controller,
    add_to_run,
    add_to_worker,
    check_devices,
    no_profile,
    note_choice,
)
from proton_bench.pytest_plugin.benchmarks.settings import Settings, add_options
from proton_bench.pytest_plugin.testrun.report import ProfileReport, RunSession, TestNodes
from proton_bench.pytest_plugin.testrun.workers import (
    WorkerEnd,
    WorkerOrders,
    WorkerParts,
    is_controller,
)
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from proton_bench.recording.session.output_name import OutputName

__all__: list[str] = []

_ENTRY_POINT = "proton_bench"
# Options with which pytest runs no test, so there is nothing to record.
_NO_TESTS = (
    *("help", "version", "collectonly", "markers"),
    *("showfixtures", "show_fixtures_per_test", "cacheshow"),
)

_notices = pytest.StashKey[list[str]]()
_part = pytest.StashKey[RunSession]()
# Recorded runs of pytest in progress in this process, the outermost first.
_recorded: list[pytest.Config] = []


# -- options and life cycle ----------------------------------------------------------------------
def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add ``--proton`` and its related options."""
    # Known under one of these names; pytest refuses to load it again under the other.
    for name in {_ENTRY_POINT, __name__} - {pluginmanager.get_name(sys.modules[__name__])}:
        pluginmanager.set_blocked(name)
    group = parser.getgroup("proton", "profiling with proton_bench")
    group.addoption("--proton", action="store_true", help="profile this test run")
    group.addoption(
        "--proton-name", metavar="NAME", default="pytest", help="output name without a suffix"
    )
    group.addoption("--proton-backend", metavar="NAME[+NAME]", help="see `proton doctor`")
    group.addoption(
        "--proton-context",
        metavar="SOURCE[+SOURCE]",
        default="auto",
        help="what makes call paths, as `proton run -c`",
    )
    group.addoption("--proton-mode", metavar="MODE", help="mode of the backend")
    add_options(group)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let the backends prepare before a conftest imports torch or triton."""
    orders = WorkerOrders.take()
    if orders is not None:
        _start_worker(early_config, orders)
        return
    options = early_config.known_args_namespace
    asked = [options.proton, options.proton_compare, options.proton_save]
    if not any(asked) or _under_command_line():
        return
    if not _is_disabled() and not _recorded:
        # pytest captures stderr at this point and would lose the text.
        early_config.stash[_notices] = _prepare(options.proton_backend)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Open a session, or join the existing one."""
    config.addinivalue_line("markers", MARKER_LINE)
    try:
        settings = Settings.read(config)
    except ProtonError as error:
        raise pytest.UsageError(f"proton: {error}") from None
    if any(config.getoption(name, None) for name in _NO_TESTS):
        if not is_controller(config):
            add_to_run(config, settings, None, recorded=no_profile)
        return
    for notice in config.stash.get(_notices, []):
        sys.stderr.write(f"proton: {visible(notice)}\n")
    if hasattr(config, "workerinput"):
        _record_worker(config, settings)
        return
    try:
        _record(config, settings)
    except ProtonError as error:
        raise pytest.UsageError(f"proton: {error}") from None


def _start_worker(config: pytest.Config, orders: WorkerOrders) -> None:
    orders.claim_device()
    if orders.compat:
        from proton_bench.recording import compat

        compat.install()
    if orders.interpret:
        _prepare(orders.backend)  # the controller passed on the notices
    try:
        config.stash[_part] = orders.open_part()
    except ProtonError as error:
        # The controller could open one; the tests run anyway, and this part is missing.
        sys.stderr.write(f"proton: error: {error}\n")


def _prepare(backend: str | None) -> list[str]:
    from proton_bench.plugin.manager import resolve_backend

    # Errors of the backend are reported when the session is opened.
    with contextlib.suppress(ProtonError):
        backends = resolve_backend(backend)
        notices = [each.prepare() for each in backends if each.prepare is not None]
        return [notice for notice in notices if notice]
    return []


def _under_command_line() -> bool:
    flags = sys.modules.get("proton_bench.flags")
    return flags is not None and bool(flags.flags.command_line)


def _is_disabled() -> bool:
    from proton_bench.recording.session.session import is_disabled

    return is_disabled()


# -- recording ----------------------------------------------------------------------------------
def _record(config: pytest.Config, settings: Settings) -> None:
    """Record a run outside workers, if it asks for that or is inside a recorded one."""
    distributes = is_controller(config)
    devices = check_devices(settings, config.option.tx) if distributes else ()
    # Fresh processes record themselves; parts of workers need a session to merge into.
    wanted = (settings.gates and not settings.runs) or (distributes and settings.asks)
    run = _session_of(config, wanted=wanted)
    is_inner = run is None or bool(_recorded and run.formats is None)
    if run is None or is_inner:
        if distributes:
            add_to_controller(config, settings, no_profile)
            return
        session = None if run is None else run.session
        recorded = no_profile if run is None else ProfileReport(run, list).recorded
        add_to_run(config, settings, session, recorded=recorded)
        # The nodes of an inner run are below the test that started it.
        if _recorded:
            _add_nodes(config)
        return
    note_choice(config, run.session)
    if distributes:
        parts = WorkerParts(run.session, interpret=not _under_command_line(), devices=devices)
        report = ProfileReport(run, parts.gather, parts.profile)
        add_to_controller(config, settings, report.recorded)
        _register(config, "workers", parts)
    else:
        nodes = TestNodes()
        report = ProfileReport(run, nodes.gather)
        add_to_run(config, settings, run.session, recorded=report.recorded)
        _add_nodes(config, nodes)
    _register(config, "report", report)


def _record_worker(config: pytest.Config, settings: Settings) -> None:
    run = config.stash.get(_part, None)
    add_to_worker(config, settings, None if run is None else run.session)
    if run is not None:
        _add_nodes(config)
        _register(config, "part", WorkerEnd(run))


def _add_nodes(config: pytest.Config, nodes: TestNodes | None = None) -> None:
    _register(config, "nodes", nodes or TestNodes())
    _recorded.append(config)
    config.add_cleanup(lambda: _recorded.remove(config))


def _register(config: pytest.Config, what: str, plugin: object) -> None:
    config.pluginmanager.register(plugin, f"proton_bench_{what}")


def _session_of(config: pytest.Config, *, wanted: bool) -> RunSession | None:
    """Return the session that a run asks for, opened if necessary, or None."""
    if _under_command_line():
        from proton_bench.recording.session.session import find_session

        session = find_session(0)  # None if profiling is disabled
        return None if session is None else RunSession(session, None)
    if not (config.getoption("proton") or wanted) or _is_disabled():
        return None
    from proton_bench.recording.session.recording import live_sessions

    output = _output(config)
    for session in live_sessions():
        if session.path == output.name:
            return RunSession(session, None)
    return _opened(config, output)


def _opened(config: pytest.Config, output: OutputName) -> RunSession:
    from proton_bench.recording.session.partials import write_partials
    from proton_bench.recording.session.session import SessionOptions, open_session

    session = open_session(
        SessionOptions(
            name=output.name,
            context=config.getoption("proton_context"),
            backend=config.getoption("proton_backend"),
            mode=config.getoption("proton_mode"),
            samples_host=True,
        )
    )
    write_partials(session, output.formats)
    return RunSession(session, output.formats)


def _output(config: pytest.Config) -> OutputName:
    from proton_bench.recording.session.output_name import read_name

    name, folder = str(config.getoption("proton_name")), str(config.invocation_params.dir)
    return read_name(name, folder=folder)
