"""A timeline and a recorded session of the same events agree on the use of devices."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fakes import kineto
from fakes.recordings import write_recording
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.formats.registry import decode_profile
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.recording.session.session import SessionOptions, open_session

native = pytest.importorskip("proton_bench._native")

NCCL = "ncclDevKernel_AllReduce"
_APART_NS = 10_000  # launches stand in ranges of their own


@dataclass(frozen=True)
class Launched:
    """One launch with its kernel; ``delay_ns`` is from the call to the start."""

    scope: str
    delay_ns: int
    duration_ns: int
    waits: bool

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return NCCL if self.waits else "matmul"


LAUNCHES = st.lists(
    st.builds(
        Launched,
        scope=st.sampled_from(["", "forward", "backward"]),
        # Some start before their call, as clocks that disagree make it seem.
        delay_ns=st.integers(-300, 40_000),
        duration_ns=st.integers(0, 30_000),
        waits=st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def recorded(launches: list[Launched]) -> tuple[DeviceUse, ...]:
    """Return the use of devices of a session with these launches."""
    events: list[dict[str, object]] = []
    for number, each in enumerate(launches, 1):
        called = number * _APART_NS
        launch = {"event": "launch", "correlation_id": number, "start_ns": called}
        inside = [{"event": "scope_enter", "name": each.scope}, launch, {"event": "scope_exit"}]
        events += inside if each.scope else [launch]
    for number, each in enumerate(launches, 1):
        start = number * _APART_NS + each.delay_ns
        events.append(
            {
                "event": "kernel",
                "correlation_id": number,
                "name": each.kernel,
                "start_ns": start,
                "end_ns": start + each.duration_ns,
                "device_kind": "CUDA",
                "device_index": 0,
                "stream": 7,
            }
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pbrecord"
        write_recording(path, events)
        options = SessionOptions(
            name=Path(folder) / "out", backend="replay", mode=f"replay:file={path}"
        )
        session = open_session(options)
        uses = session.profile().device_use
        session.finalize(formats=())
    return uses


def imported(launches: list[Launched]) -> tuple[DeviceUse, ...]:
    """Return the use of devices of a torch.profiler trace with the same events."""
    events = []
    for number, each in enumerate(launches, 1):
        called = number * _APART_NS
        if each.scope:
            events.append(
                kineto.host("user_annotation", each.scope, (called - 100) / 1e3, 200 / 1e3)
            )
        events.append(kineto.call(number, called / 1e3))
        start = (called + each.delay_ns) / 1e3
        events.append(kineto.kernel(number, start, each.duration_ns / 1e3, each.kernel))
    return decode_profile(kineto.trace(events), "x.json").device_use


def by_scope(uses: tuple[DeviceUse, ...]) -> dict[str | None, DeviceUse]:
    return {use.scope: replace(use, latency_buckets=_trimmed(use)) for use in uses}


def _trimmed(use: DeviceUse) -> tuple[int, ...]:
    buckets = list(use.latency_buckets)
    while buckets and not buckets[-1]:
        buckets.pop()
    return tuple(buckets)


@settings(max_examples=how_many(20, 8))
@given(LAUNCHES)
def test_sessions_and_timelines_agree(launches: list[Launched]) -> None:
    found = by_scope(imported(launches))

    assert found[None].launches + found[None].latency_clamped == len(launches)
    assert found == by_scope(recorded(launches))
