"""Hooks of every process that runs tests: the marker, the fixture, and their records."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.call import BenchmarkCall, Surroundings
from proton_bench.pytest_plugin.benchmarks.identity import benchmark_ids, parameters_of
from proton_bench.pytest_plugin.benchmarks.marker import (
    FIXTURE,
    MARKER,
    Asked,
    is_benchmark,
    read_marker,
)
from proton_bench.pytest_plugin.benchmarks.record import BenchmarkRecord
from proton_bench.pytest_plugin.benchmarks.settings import Settings
from proton_bench.pytest_plugin.rounds.measurement import Measurement
from proton_bench.pytest_plugin.rounds.plan import Device
from proton_bench.pytest_plugin.rounds.timer import CpuTimer

if TYPE_CHECKING:
    from proton_bench.recording.session.session import Session

__all__ = ["ATTRIBUTE", "BenchmarksInTests"]

# Property of a test's report: the record of its benchmark as plain values that workers can send.
ATTRIBUTE = "proton_bench"

_Path = tuple[tuple[str, int], ...]
_asked = pytest.StashKey[Asked]()
_wrong = pytest.StashKey[str]()
_record = pytest.StashKey[BenchmarkRecord]()


class BenchmarksInTests:
    """Hooks and the fixture.

    Args:
        settings: The options.
        session: The session that records the tests, or None.
        measures: Whether benchmarks are timed; else they are called once.
    """

    def __init__(self, settings: Settings, session: Session | None, *, measures: bool) -> None:
        self._settings = settings
        self._session = session
        self._measures = measures
        self._ids: dict[str, str] = {}
        self._records: list[BenchmarkRecord] = []
        self._path: _Path = ()

    # -- which tests run ---------------------------------------------------------------------------
    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Give every benchmark the marker, so that `-m proton_bench` chooses it."""
        if is_benchmark(item):
            item.add_marker(MARKER)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Check the markers, and deselect what a fresh process does not measure."""
        benchmarks = [item for item in items if is_benchmark(item)]
        self._ids = benchmark_ids(benchmarks)
        for item in benchmarks:
            try:
                item.stash[_asked] = read_marker(item)
            except UsageError as error:
                if not hasattr(config, "workerinput"):
                    raise pytest.UsageError(str(error)) from None
                # xdist reports a worker that exits during collection as an internal error.
                item.stash[_wrong] = str(error)
        if self._settings.replicate is not None:
            measured = set(json.loads(self._settings.replicate.read_text(encoding="utf-8")))
            others = [item for item in items if item.nodeid not in measured]
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if item.nodeid in measured]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test with an invalid marker in a worker."""
        if _wrong in item.stash:
            pytest.fail(item.stash[_wrong], pytrace=False)

    # -- measuring ---------------------------------------------------------------------------------
    @pytest.fixture
    def proton_bench(self, request: pytest.FixtureRequest) -> Iterator[BenchmarkCall]:
        """Call a function many times, record how long it takes, and return its result."""
        item: Any = request.node
        asked = item.stash.get(_asked, Asked())
        call = BenchmarkCall(
            item.nodeid,
            asked,
            Surroundings(
                around=self._around,
                measures=self._measures,
                is_coroutine=inspect.iscoroutinefunction(getattr(item, "function", None)),
            ),
        )
        yield call
        if call.was_forgotten:
            pytest.fail(
                "proton_bench timed nothing: in an asynchronous test write "
                "`await proton_bench(fn, ...)`",
                pytrace=False,
            )

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Time the whole test if it has the marker but does not use the fixture."""
        self._path = ()
        is_whole = FIXTURE not in getattr(item, "fixturenames", ())
        if not (self._measures and is_whole and item.get_closest_marker(MARKER)):
            yield
            self._keep(item, self._measured_by_fixture(item))
            return
        self._path = self._open_path()
        timer = CpuTimer()
        timer.begin()
        yield
        self._keep(item, (Measurement(Device.CPU, 1, (timer.end().cpu_ns,)), {}))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Attach the record of its benchmark to the report of a passed test."""
        report: Any = yield
        record = item.stash.get(_record, None)
        if call.when == "call" and record is not None:
            del item.stash[_record]
            if report.passed:
                setattr(report, ATTRIBUTE, record.to_plain())
                self._records.append(record)
        return report  # type: ignore[no-any-return]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[Any]:
        """Add the rounds to the session's profile after the last test."""
        try:
            return (yield)
        finally:
            self._add_to_session()

    def _measured_by_fixture(self, item: pytest.Item) -> tuple[Measurement, dict[str, Any]] | None:
        call = getattr(item, "funcargs", {}).get(FIXTURE)
        if not isinstance(call, BenchmarkCall) or call.measurement is None:
            return None
        return call.measurement, call.extra_info

    def _keep(self, item: pytest.Item, measured: tuple[Measurement, dict[str, Any]] | None) -> None:
        if measured is None:
            return
        measurement, extra = measured
        asked = item.stash.get(_asked, Asked())
        metric = asked.metric or measurement.device
        item.stash[_record] = BenchmarkRecord(
            id=self._ids.get(item.nodeid, item.nodeid),
            node_id=item.nodeid,
            parameters=parameters_of(item),
            device=str(measurement.device),
            metric=str(metric),
            calls=measurement.calls,
            cpu_ns=measurement.cpu_ns,
            gpu_ns=measurement.gpu_ns,
            warmup=measurement.warmup_calls,
            flush_l2=asked.plan.flush_l2 and measurement.device is Device.CUDA,
            cudagraph=asked.plan.cudagraph,
            threshold=asked.threshold,
            flops=asked.flops,
            bytes=asked.bytes,
            extra_info=extra,
            path=self._path,
            worker=os.environ.get("PYTEST_XDIST_WORKER", ""),
        )

    # -- the profile -------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _around(self, name: str) -> Iterator[None]:
        if self._session is None:
            yield
            return
        from proton_bench import _native

        _native.enter_scope(name)
        if name == "rounds" and not self._path:
            self._path = self._open_path()
        try:
            yield
        finally:
            _native.exit_scope(name)

    def _open_path(self) -> _Path:
        if self._session is None:
            return ()
        from proton_bench import _native

        return tuple((name, kind) for _, (name, kind, _) in _native.open_frames())

    def _add_to_session(self) -> None:
        records = _apart(record for record in self._records if record.path)
        self._records = []
        if self._session is None or not records or not self._session.is_live:
            return
        from proton_bench.pytest_plugin.benchmarks.in_profile import profile_of
        from proton_bench.recording.children.child_profiles import AddedProfile

        self._session.add_profile(AddedProfile(profile_of(records), "", _nothing))


def _apart(records: Iterable[BenchmarkRecord]) -> list[BenchmarkRecord]:
    """Return the last record of each place: a test that ran again replaces its record."""
    return list({record.path: record for record in records}.values())


def _nothing() -> None:
    """Release nothing: the rounds are in no file."""
