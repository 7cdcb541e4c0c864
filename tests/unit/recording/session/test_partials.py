from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.session.partials import library_asks, write_partials

native = pytest.importorskip("proton_bench._native")


@pytest.fixture
def outputs(tmp_path: Path) -> Iterator[SimpleNamespace]:
    plan = SimpleNamespace(path=str(tmp_path / "x"), data="tree", writable_timelines=())
    core = native.Session("shadow", False)
    ended: list[object] = []
    yield SimpleNamespace(
        core=core, plan=plan, ended=ended, finalize=lambda *, formats: ended.append(formats)
    )
    core.release_partials(is_written=True)
    core.remove()


def test_a_format_that_the_end_cannot_write_is_refused(outputs: SimpleNamespace) -> None:
    with pytest.raises(UsageError, match="perfetto needs a timeline"):
        write_partials(outputs, ("perfetto",))
    assert outputs.ended == [()]


@pytest.mark.parametrize("text", ["x", "-1", "inf", "nan"])
def test_a_wrong_interval_is_refused(
    outputs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PROTON_BENCH_PARTIAL_INTERVAL_S", text)

    with pytest.raises(UsageError, match="PROTON_BENCH_PARTIAL_INTERVAL_S"):
        write_partials(outputs, ("proton",))
    assert outputs.ended == [()]


def test_zero_seconds_switch_it_off(
    outputs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    core = SimpleNamespace(write_partials=lambda *words: calls.append(words))
    session: Any = SimpleNamespace(core=core, plan=outputs.plan)

    for text in ("0", "0.5"):
        monkeypatch.setenv("PROTON_BENCH_PARTIAL_INTERVAL_S", text)
        write_partials(session, ("proton",))

    assert calls == [(outputs.plan.path.encode(), 0.5)]


def test_sessions_of_a_library_have_partial_files_only_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PROTON_BENCH_PARTIAL_INTERVAL_S", raising=False)
    assert not library_asks()
    monkeypatch.setenv("PROTON_BENCH_PARTIAL_INTERVAL_S", "1")
    assert library_asks()
