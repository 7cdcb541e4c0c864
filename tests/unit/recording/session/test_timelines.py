"""Sessions with ``data="trace"`` write timelines if a backend records them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends
from reference.record_oracle import Layout, Program, Record

import proton_bench as proton
from proton_bench import _native as native
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.recording.session.options import SessionOptions, plan_capture
from proton_bench.recording.session.recording import drift_of

LAYOUT = Layout(warps=1, scopes=1, slots=8)


WARP = (Record(0, is_end=False, clock=100), Record(0, is_end=True, clock=350))


@pytest.fixture
def timeline_backend(fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that records timelines and one that does not."""
    inside = fakes.make("inside", data=("tree", "trace"), trace_option="trace")
    made = {"inside": inside, "fake": fakes.make("fake")}

    def resolve(text: str | None = None) -> tuple[object, ...]:
        return tuple(made[name] for name in (text or "inside").split("+"))

    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", resolve)


def launch() -> None:
    with proton.scope("step"):
        buffer = Program(0, (WARP,)).packed(LAYOUT)
        native.emit_cycles("k", buffer, LAYOUT.attributes(), (("body", None),), 1_000_000_000)


def scopes_inside(folder: Path) -> list[dict[str, Any]]:
    """Record a launch with a timeline; return the slices of it that Chrome's file has."""
    session = proton.start(str(folder / "x"), data="trace")
    launch()
    proton.finalize(session)
    events: list[dict[str, Any]] = json.loads((folder / "x.chrome_trace").read_text())[
        "traceEvents"
    ]
    return events


@pytest.mark.usefixtures("timeline_backend")
def test_a_trace_is_written_beside_the_tree_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_NATIVE", "1")

    events = scopes_inside(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.chrome_trace", "x.proton"]
    assert [event["name"] for event in events] == ["body", "k CTA0"]
    assert events[0]["dur"] == 0.25
    assert read_profile(tmp_path / "x.proton").inclusive("cycles").max() == 250


@pytest.mark.usefixtures("timeline_backend")
def test_a_tree_keeps_no_timeline(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"))
    launch()

    with pytest.raises(UsageError, match="chrome_trace needs a timeline"):
        proton.finalize(session, "chrome_trace")

    proton.finalize(session)
    assert [path.name for path in tmp_path.iterdir()] == ["x.hatchet"]


@pytest.mark.usefixtures("timeline_backend")
def test_every_backend_of_the_session_must_record_timelines() -> None:
    assert plan_capture(SessionOptions(name="x", data="trace")).data == "trace"

    with pytest.raises(UsageError, match="'fake' does not record data='trace'; choose from: tree"):
        plan_capture(SessionOptions(name="x", data="trace", backend="inside+fake"))


@pytest.mark.usefixtures("timeline_backend")
def test_scopes_inside_kernels_alone_have_both_formats_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_TRACE_FORMATS", "chrome_trace,perfetto")

    events = scopes_inside(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.chrome_trace", "x.pftrace"]
    assert [event["name"] for event in events] == ["body", "k CTA0"]


@pytest.mark.parametrize(
    ("collectors", "drift_ns"),
    [
        ({}, 0),
        ({"cpu": {}}, 0),
        ({"cpu": {}, "cupti": {"clock_drift_ns": -40}}, -40),
        ({"one": {"clock_drift_ns": 30}, "other": {"clock_drift_ns": -40}}, -40),
    ],
)
def test_the_largest_drift_of_a_collector_counts(
    collectors: dict[str, dict[str, int]], drift_ns: int
) -> None:
    assert drift_of(collectors) == drift_ns
