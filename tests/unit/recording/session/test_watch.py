from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.session.watch import library_asks, release_outputs, watch_outputs

native = pytest.importorskip("proton_bench._native")


@pytest.fixture
def outputs(tmp_path: Path) -> Iterator[SimpleNamespace]:
    plan = SimpleNamespace(
        path=str(tmp_path / "x"),
        data="tree",
        trace_formats=(),
        writable_timelines=(),
        is_written_meanwhile=False,
    )
    core = native.Session("shadow", False)
    yield SimpleNamespace(core=core, plan=plan)
    release_outputs(core)
    core.remove()


def watch(outputs: SimpleNamespace) -> None:
    watch_outputs(outputs.core, outputs.plan, ("proton", "json"), ends_by_signal=True)


def test_the_watch_lasts_as_long_as_there_is_something_to_write(outputs: SimpleNamespace) -> None:
    plain = signal.signal

    watch(outputs)
    watch(outputs)

    assert native.is_watching()
    assert signal.signal is not plain
    release_outputs(outputs.core)
    assert not native.is_watching()
    assert signal.signal is plain


def test_a_format_that_the_end_cannot_write_is_refused(outputs: SimpleNamespace) -> None:
    with pytest.raises(UsageError, match="perfetto needs a timeline"):
        watch_outputs(outputs.core, outputs.plan, ("perfetto",), ends_by_signal=True)

    assert not native.is_watching()


def test_handlers_are_installed_and_returned_as_usual(outputs: SimpleNamespace) -> None:
    watch(outputs)

    def handler(number: int, frame: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGTERM, handler)

    assert before is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is handler
    assert signal.signal(signal.SIGTERM, before) is handler


def test_a_handler_of_python_is_called_through_ours(outputs: SimpleNamespace) -> None:
    seen: list[int] = []
    watch(outputs)
    before = signal.signal(signal.SIGHUP, lambda number, _: seen.append(number))

    try:
        signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert seen == [signal.SIGHUP]


def test_an_interrupt_is_a_keyboard_interrupt(outputs: SimpleNamespace) -> None:
    watch(outputs)

    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("text", ["x", "-1", "inf", "nan"])
def test_a_wrong_interval_is_refused_and_nothing_watched(
    outputs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PROTON_BENCH_PARTIAL_INTERVAL_S", text)

    with pytest.raises(UsageError, match="PROTON_BENCH_PARTIAL_INTERVAL_S"):
        watch(outputs)
    assert not native.is_watching()


def test_the_watch_can_be_refused(
    outputs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_SIGNALS", "0")

    watch(outputs)

    assert not native.is_watching()
    assert native.protected_count() == 0


def test_the_library_watches_only_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not library_asks()
    monkeypatch.setenv("PROTON_BENCH_SIGNALS", "1")
    assert library_asks()
