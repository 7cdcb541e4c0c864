"""Hooks of every process that runs tests: the marker, the fixture, and their records."""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import inspect
import json
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.marker import (
    FIXTURE,
    MARKER,
    Asked,
    is_benchmark,
    read_marker,
)
from proton_bench.pytest_plugin.benchmarks.settings import Settings
from proton_bench.rounds.measurement import (
    Around,
    CpuTimer,
    Device,
    Measurement,
)
from proton_bench.rounds.record import BenchmarkRecord

if TYPE_CHECKING:
    from proton_bench.recording.session.session import Session


_MAX_VALUE = 80
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


# pytest numbers the values that it cannot write out: ``shape0``, ``shape1``. Inserting a value
# before them renames all that follow, and a gate by these names would compare different things.
def benchmark_ids(items: Iterable[pytest.Item]) -> dict[str, str]:
    """Return the names of tests by their node ids.

    They are the node ids with values of parameters instead of numbers, unless two tests would have
    the same name: these keep their node ids.
    """
    found = {item.nodeid: _stable_id(item) for item in items}
    uses = Counter(found.values())
    return {test: name if uses[name] == 1 else test for test, name in found.items()}


def _stable_id(item: pytest.Item) -> str:
    callspec: Any = getattr(item, "callspec", None)
    if callspec is None:
        return item.nodeid
    suffix = f"[{callspec.id}]"
    if not item.nodeid.endswith(suffix):
        return item.nodeid
    stable = _stable_parameters(str(callspec.id), callspec.params)
    return f"{item.nodeid.removesuffix(suffix)}[{stable}]"


def parameters_of(item: pytest.Item) -> dict[str, str]:
    """Return the test's parameters as text, by name."""
    callspec = getattr(item, "callspec", None)
    params: Mapping[str, Any] = {} if callspec is None else callspec.params
    return {name: _text(value) or type(value).__qualname__ for name, value in params.items()}


def _stable_parameters(numbered: str, params: Mapping[str, Any]) -> str:
    for name, value in params.items():
        text = _text(value)
        if text is None:
            continue
        # pytest's number is between dashes, or at either end.
        found = re.search(rf"(?<![^-]){re.escape(name)}\d+(?![^-])", numbered)
        if found is not None:
            numbered = f"{numbered[: found.start()]}{name}={text}{numbered[found.end() :]}"
    return numbered


def _text(value: object) -> str | None:
    """Return a value as text, None if only its address distinguishes it."""
    if isinstance(value, enum.Enum):
        return str(value)
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001 - code of a test
        return None
    if _ADDRESS.search(said):
        return None
    said = " ".join(said.split())
    if len(said) <= _MAX_VALUE:
        return said
    digest = hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{said[: _MAX_VALUE - 10]}..{digest}"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a benchmark.

    Attributes:
        around: Opens nodes of the profile.
        measures: Whether to measure; else the function is called once.
        is_coroutine: Whether the test awaits what the fixture returns.
    """

    around: Around
    measures: bool
    is_coroutine: bool


class BenchmarkCall:
    """Times one function for one test.

    Attributes:
        extra_info: Extra values of the test for the JSON file.
        measurement: The measurement; None before it, or without measuring.
    """

    def __init__(self, test: str, asked: Asked, where: Surroundings) -> None:
        self.extra_info: dict[str, Any] = {}
        self.measurement: Measurement | None = None
        self._test = test
        self._asked = asked
        self._where = where
        self._is_used = False
        self._awaited: bool | None = None

    @property
    def was_forgotten(self) -> bool:
        """Whether a returned coroutine was never awaited."""
        return self._awaited is False

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function many times and return the result of its first call.

        Args:
            fn: A function or an async function; await the result in an asynchronous test.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Raises:
            UsageError: It is not a function, the test already timed one, or there is no such
                device.
        """
        if not callable(fn):
            raise UsageError(f"proton_bench takes a function and its arguments, not {fn!r}")
        if self._is_used:
            raise UsageError(
                f"{self._test} called proton_bench twice, but one test is one benchmark: write "
                "two tests or parametrize this one"
            )
        self._is_used = True
        call = functools.partial(fn, *args, **kwargs)
        if not _gives_coroutines(fn):
            return self._measured(call)
        self._awaited = False
        coroutine = self._measured_coroutine(call)
        if self._where.is_coroutine:
            return coroutine
        import asyncio

        return asyncio.run(coroutine)

    def _measured(self, call: Callable[[], Any]) -> Any:
        use = _use_of_cuda(call)
        result = call()
        if not self._where.measures:
            return result
        device = self._device(uses_cuda=use(result))
        from proton_bench.rounds.kernels import timed

        self.measurement, _ = timed(
            call, self._asked.plan, device=device, around=self._where.around
        )
        return result

    async def _measured_coroutine(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._awaited = True
        if self._asked.plan.cudagraph:
            raise UsageError(f"{self._test}: a coroutine cannot be captured into a CUDA graph")
        use = _use_of_cuda(call)
        result = await call()
        if not self._where.measures:
            return result
        device = self._device(uses_cuda=use(result))
        from proton_bench.rounds.kernels import timed_coroutine

        self.measurement = await timed_coroutine(
            call, self._asked.plan, device=device, around=self._where.around
        )
        return result

    def _device(self, *, uses_cuda: bool) -> Device:
        plan = self._asked.plan
        if plan.cudagraph and plan.device is Device.CPU:
            raise UsageError(f"{self._test}: cudagraph=True and device='cpu' exclude each other")
        if plan.device is Device.CUDA or plan.cudagraph:
            _check_gpu()
            return Device.CUDA
        return plan.device or (Device.CUDA if uses_cuda else Device.CPU)


def _check_gpu() -> None:
    from proton_bench.rounds.cuda import cuda_torch

    try:
        cuda_torch()
    except UsageError as error:
        raise UsageError(
            f"{error}; leave device='cuda' and cudagraph out to measure on the CPU"
        ) from None


def _gives_coroutines(fn: Callable[..., Any]) -> bool:
    while isinstance(fn, functools.partial):
        fn = fn.func
    if isinstance(fn, type) or inspect.iscoroutinefunction(fn):
        return not isinstance(fn, type)
    return inspect.iscoroutinefunction(type(fn).__call__)


def _use_of_cuda(call: Callable[[], Any]) -> Callable[[object], bool]:
    from proton_bench.rounds.cuda import UseOfCuda

    return UseOfCuda(call).seen


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
        item.stash[_record] = BenchmarkRecord.of(
            self._ids.get(item.nodeid, item.nodeid),
            asked.plan,
            measurement,
            node_id=item.nodeid,
            parameters=parameters_of(item),
            metric=str(asked.metric or measurement.device),
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
        from proton_bench.recording.children.child_profiles import AddedProfile
        from proton_bench.rounds.in_profile import profile_of

        self._session.add_profile(AddedProfile(profile_of(records), "", _nothing))


def _apart(records: Iterable[BenchmarkRecord]) -> list[BenchmarkRecord]:
    """Return the last record of each place: a test that ran again replaces its record."""
    return list({record.path: record for record in records}.values())


def _nothing() -> None:
    """Release nothing: the rounds are in no file."""
