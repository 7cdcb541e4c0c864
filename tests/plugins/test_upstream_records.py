"""The buffers that upstream copied from an H200 give upstream's own trees and traces.

What differs on purpose: kinds of devices are names (upstream writes the number "1"), timelines are
in nanoseconds of the real clock (upstream takes 1 GHz for it), and events follow one another by
program and warp. Nothing was lost in these launches, so no record stands at a seam.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reference.record_oracle import HEADER
from reference.upstream_buffer import DATA, SCOPES, HostBuffer, shared_buffer

from proton_bench import _native as native
from proton_bench.formats.registry import find_format, read_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.session.conversion import encode_phase, encode_scopes

NAMES = ("default", "clock32", "global")
ONE_GHZ = 1_000_000_000


@pytest.fixture
def session() -> Iterator[Any]:
    core = native.Session("shadow", False, True)
    core.activate()
    yield core
    core.remove()


def emit(buffer: HostBuffer, clock_hz: int = ONE_GHZ) -> None:
    native.enter_scope("host")
    native.emit_cycles("scaled_add", buffer.payload, buffer.layout, SCOPES, clock_hz)
    native.exit_scope("host")


def encoded(session: Any, form: str) -> bytes:
    if form == "chrome_trace":
        return encode_scopes(session.scope_launches(0), upstream_shape=False)
    return bytes(session.encode(0, form)) if form == "proton" else encode_phase(session, 0, form)


def rows(profile: Profile) -> list[tuple[Any, ...]]:
    cycles, normalized = profile.columns["cycles"], profile.columns["normalized_cycles"]
    return [
        (profile.path(row), cycles.get(row), normalized.get(row), profile.device_rows[row] >= 0)
        for row in range(len(profile))
    ]


def trace(content: bytes) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(content)["traceEvents"]
    for event in events:  # named where an earlier test of this process had another device
        event["pid"] = event["pid"].removesuffix(" CUDA:0")
    return events


def shown(event: dict[str, Any]) -> tuple[Any, ...]:
    """Return upstream's values of an event; 3.6.0 lacks two of the three times."""
    arguments = event["args"]
    facts = [event[key] for key in ("name", "cat", "cname", "ph", "pid", "tid", "ts", "dur")]
    times = [arguments["Finalization Time (ns)"], arguments["Frequency (MHz)"]]
    return (*facts, *times, tuple(arguments["call_stack"]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["hatchet", "hatchet_msgpack", "proton"])
def test_trees_are_upstreams(session: Any, name: str, form: str) -> None:
    emit(shared_buffer(f"{name}-tree"))

    ours = find_format(form).decode(encoded(session, form), "ours")

    theirs = read_profile(DATA / f"intra-{name}-tree.hatchet")
    assert rows(ours) == rows(theirs)
    assert not ours.dropped
    assert [device.kind for device in ours.devices] == ["CUDA"]


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_upstreams_but_for_kind_and_facts_of_the_device(
    session: Any, name: str
) -> None:
    emit(shared_buffer(f"{name}-tree"))

    ours = encoded(session, "hatchet").decode().replace(': "CUDA"', ': "1"')

    theirs = (DATA / f"intra-{name}-tree.hatchet").read_text()
    facts = '"CUDA": {'  # this machine has no GPU
    assert ours.partition(facts)[0] == theirs.partition(facts)[0]


@pytest.mark.parametrize("name", NAMES)
def test_traces_are_upstreams_where_the_clock_has_one_gigahertz(session: Any, name: str) -> None:
    emit(shared_buffer(f"{name}-trace"))

    ours = [event for event in trace(encoded(session, "chrome_trace")) if event["cat"] != "core"]

    content = gzip.decompress((DATA / f"intra-{name}-trace.chrome_trace.gz").read_bytes())
    assert sorted(map(shown, ours)) == sorted(map(shown, trace(content)))


def test_times_are_of_the_real_clock_and_cycles_read_back_exactly(
    session: Any, tmp_path: Path
) -> None:
    emit(shared_buffer("default-trace"), clock_hz=1_980_000_000)
    file = tmp_path / "x.chrome_trace"
    file.write_bytes(encoded(session, "chrome_trace"))

    read = read_profile(file)
    tree = find_format("proton").decode(encoded(session, "proton"), "ours")
    whole = {path: cycles for path, cycles, *_ in rows(tree) if cycles is not None}
    inclusive = read.inclusive("cycles")

    first = next(event for event in trace(file.read_bytes()) if event["name"] == "load")
    assert first["args"]["Frequency (MHz)"] == 1980.0
    assert {read.path(row): inclusive[row] for row in range(3, len(read))} == whole
    assert not read.dropped


def test_each_program_stands_in_a_row_of_its_core(session: Any) -> None:
    emit(shared_buffer("default-trace"))

    cores = [event for event in trace(encoded(session, "chrome_trace")) if event["cat"] == "core"]

    assert sorted(event["name"] for event in cores) == [f"scaled_add CTA{i}" for i in range(4)]
    assert {event["pid"] for event in cores} == {"Cores"}
    assert all(event["tid"].startswith("Core ") and event["dur"] > 0 for event in cores)


def test_the_trace_says_when_it_began(session: Any) -> None:
    buffer = shared_buffer("default-trace")
    emit(buffer)
    size = len(buffer.payload) // buffer.programs
    begins = [
        HEADER.unpack_from(buffer.payload, size * number)[4] for number in range(buffer.programs)
    ]

    written = json.loads(encoded(session, "chrome_trace"))

    assert written["baseTimeNanoseconds"] == min(begins)
    assert written["displayTimeUnit"] == "ns"
