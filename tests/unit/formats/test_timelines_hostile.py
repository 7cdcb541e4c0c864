"""Damaged and hostile timelines end in one clear error, or in a profile that lost nothing."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fakes import nsys
from fakes.kineto import call, host, kernel, trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import FORMATS, decode_profile, find_format
from proton_bench.model.profile import Profile

DATA = Path(__file__).parents[2] / "data"
KINETO = trace([host("cpu_op", "a", 0, 9), host("cpu_op", "b", 1, 3), call(1, 2), kernel(1, 20, 5)])
PROTON = (DATA / "upstream-3.9.0" / "run.chrome_trace").read_bytes()
LINES = (DATA / "upstream" / "tiny-trace.chrome_trace").read_bytes() * 2
TRACES = {"kineto": KINETO, "proton": PROTON, "lines": LINES}


def survives(content: bytes, name: str = "hostile") -> Profile | None:
    """Decode; None for the one error allowed, else a profile whose every part was looked at."""
    try:
        profile = decode_profile(content, name)
    except ProfileFormatError as error:
        problem = str(error)
    else:
        problem = ""
    if problem:
        assert problem.startswith(f"{name}: ")
        assert ";" in problem
        assert len(problem) < 1000
        return None
    profile.self_check()
    for column in profile.columns.values():
        if column.kind.is_number:
            profile.inclusive(column.spec.name)
    for each in FORMATS:
        find_format(each).encode(profile)
    return profile


@pytest.mark.parametrize("name", TRACES)
def test_every_truncation_is_refused(name: str) -> None:
    content = TRACES[name].rstrip()
    step = max(1, len(content) // 300)
    # Between two documents of 3.6.0 a cut looks like the end.
    whole = {len(content) // 2, len(content) // 2 + 1} if name == "lines" else set()

    read = [
        cut
        for cut in range(1, len(content), step)
        if cut not in whole and survives(content[:cut], "x.chrome_trace") is not None
    ]

    assert read == []


def test_every_truncation_of_a_packed_trace_is_refused() -> None:
    content = gzip.compress(KINETO)

    read = [
        cut for cut in range(2, len(content), 7) if survives(content[:cut], "x.json.gz") is not None
    ]

    assert read == []


@pytest.mark.parametrize("name", TRACES)
def test_damaged_bytes_do_no_harm(name: str) -> None:
    generator = random.Random(7)
    outcomes = set()
    for _ in range(how_many(300, 20)):
        content = bytearray(TRACES[name])
        for _ in range(generator.randint(1, 4)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        outcomes.add(survives(bytes(content), "x.chrome_trace") is None)

    assert outcomes == {True, False}


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "kernel", "warp 0 (line 0)", "X", "[1,2]", "nan", "1e400", "\ud800"]),
    st.lists(st.integers(-3, 3), max_size=4),
    st.dictionaries(st.sampled_from(["m", "m (exc)", "n"]), st.sampled_from(["1", "[1]", "x"])),
)
FIELDS = st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"])
ARGUMENTS = st.sampled_from(
    ["correlation", "device", "grid", "block", "call_stack", "metrics", "shared memory"]
)


@settings(max_examples=how_many(300, 25))
@given(
    name=st.sampled_from(["kineto", "proton"]),
    changes=st.lists(
        st.tuples(st.integers(0, 20), FIELDS | ARGUMENTS, ODD), min_size=1, max_size=4
    ),
)
def test_odd_values_do_no_harm(name: str, changes: list[tuple[int, str, Any]]) -> None:
    whole = json.loads(TRACES[name])
    events = whole["traceEvents"]
    for index, key, value in changes:
        event = events[index % len(events)]
        arguments = event.get("args")
        if key in {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"}:
            event[key] = value
        elif isinstance(arguments, dict):
            arguments[key] = value

    profile = survives(json.dumps(whole).encode(), "x.chrome_trace")

    if profile is not None and "count" in profile.columns:
        work = sum(event.get("cat") == "kernel" and event.get("ph") == "X" for event in events)
        assert profile.inclusive("count")[0] + sum(profile.dropped.values()) >= work


@pytest.mark.parametrize("properties", [5, True, 0.5, "x", {}, {"id": 0}, [5], [{}]])
def test_devices_that_are_not_a_list_of_devices_are_refused(properties: Any) -> None:
    whole = json.loads(KINETO) | {"deviceProperties": properties}

    assert survives(json.dumps(whole).encode(), "x.json") is None


EVENT = st.builds(
    lambda make, **values: make(values),
    st.sampled_from(
        [
            lambda v: host("cpu_op", v["name"], v["ts"], v["dur"], tid=v["tid"]),
            lambda v: call(v["id"], v["ts"], tid=v["tid"]),
            lambda v: kernel(v["id"], v["ts"], v["dur"], v["name"]),
        ]
    ),
    name=st.sampled_from(["a", "b", "<script>", "[/bold]", "\u0000"]),
    ts=st.floats(0, 1e6),
    dur=st.floats(-10, 1e5),
    tid=st.integers(0, 2),
    id=st.integers(0, 3),
)


@given(events=st.lists(EVENT, max_size=25))
def test_no_kernel_is_lost_however_events_lie(events: list[dict[str, Any]]) -> None:
    profile = survives(trace(events), "x.json")

    assert profile is not None
    work = [event for event in events if event["cat"] == "kernel"]
    sizes = [(round(event["ts"] * 1000), round(event["dur"] * 1000), event) for event in work]
    kept = [event for start, size, event in sizes if size >= 0 and (start, size) != (0, 0)]
    if kept:
        assert profile.inclusive("count")[0] == len(kept)
        assert profile.inclusive("time (ns)")[0] == sum(round(e["dur"] * 1000) for e in kept)


@pytest.mark.parametrize(
    "content",
    [
        b'{"traceEvents":' + b"[" * 100_000,
        b'{"traceEvents":[{"ph":"X","args":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]}",
        b'{"schemaVersion":' + b"[" * 300 + b"]" * 300 + b',"traceEvents":[]}',
        b'{"schemaVersion":1,"traceEvents":[1,2]}',
        b'{"schemaVersion":1,"traceEvents":{"a":1}}',
        b'{"schemaVersion":1,"traceEvents":[{}],"traceEvents":3}',
        b'{"schemaVersion":1,"traceEvents":[{}]]',
        b'{"schemaVersion":1,"traceEvents":[{}]} trailing',
        b'{"traceEvents":[{"ph":"X","cat":"other","name":"x","ts":1,"dur":1}]}',
        b"\x1f\x8b" + b"\0" * 20,
        gzip.compress(b"[1,2,3]", mtime=0),
    ],
)
def test_hostile_traces_are_refused(content: bytes) -> None:
    known = survives(content, "x.chrome_trace")

    assert known is None or (known.dropped == {} and len(known) == 1)


@pytest.fixture
def export(tmp_path: Path) -> bytes:
    """Return a whole export."""
    rows = {
        "StringIds": nsys.texts("gemm"),
        nsys.KERNEL: [nsys.kernel(i, i, i + 9) for i in range(200)],
        nsys.RUNTIME: [nsys.call(i, i) for i in range(200)],
        nsys.NVTX: [nsys.push(f"r{i % 7}", i, i + 50) for i in range(200)],
    }
    return nsys.write_export(tmp_path / "whole.sqlite", rows).read_bytes()


def test_every_truncation_of_an_export_is_refused(export: bytes) -> None:
    read = [
        cut for cut in range(16, len(export), 509) if survives(export[:cut], "x.sqlite") is not None
    ]

    assert read == []


def test_damaged_exports_do_no_harm(export: bytes) -> None:
    generator = random.Random(11)
    outcomes = set()
    for _ in range(how_many(300, 20)):
        content = bytearray(export)
        for _ in range(generator.randint(1, 6)):
            content[generator.randrange(16, len(content))] = generator.randrange(256)
        outcomes.add(survives(bytes(content), "x.sqlite") is None)

    assert outcomes == {True, False}


CELL = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 50),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=how_many(150, 15)
)
@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    *((nsys.KERNEL, name) for name in ("start", "end", "correlationId", "gridX")),
                    *((nsys.KERNEL, name) for name in ("deviceId", "globalPid", "demangledName")),
                    *((nsys.RUNTIME, name) for name in ("start", "correlationId", "globalTid")),
                    *((nsys.NVTX, name) for name in ("start", "end", "eventType", "text")),
                ]
            ),
            CELL,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_odd_cells_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[tuple[str, str], Any]]
) -> None:
    path = tmp_path_factory.mktemp("nsys") / "x.sqlite"
    rows = {
        nsys.KERNEL: [nsys.kernel(1, 20, 30), nsys.kernel(2, 40, 50)],
        nsys.RUNTIME: [nsys.call(1, 2), nsys.call(2, 3)],
        nsys.NVTX: [nsys.push("r", 0, 9)],
    }
    schema = {table: _untyped(columns) for table, columns in nsys.MODERN.items()}
    for (table, column), value in cells:
        rows[table][0][column] = value
    nsys.write_export(path, rows, schema)

    profile = survives(path.read_bytes(), "x.sqlite")

    if profile is not None and "count" in profile.columns:
        assert profile.inclusive("count")[0] + sum(profile.dropped.values()) >= 2


def _untyped(columns: str) -> str:
    return ", ".join(column.split()[0] for column in columns.split(", "))


def test_generated_columns_are_not_computed(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            f"CREATE TABLE {nsys.NVTX} (start INTEGER, end INTEGER, eventType INTEGER, "
            "text TEXT AS ('computed'), globalTid INTEGER)"
        )
        values = f"VALUES (1, 2, 59, {nsys.thread(7, 7)})"
        connection.execute(f"INSERT INTO {nsys.NVTX} (start, end, eventType, globalTid) {values}")
        connection.commit()

    profile = survives(path.read_bytes(), "x.sqlite")

    assert profile is not None
    assert profile.path(1) == ("<no text>",)
