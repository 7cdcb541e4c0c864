"""Exports of Nsight Systems: kernels stand below the NVTX ranges open at their launch."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fakes import nsys
from fakes.nsys import KERNEL, NVTX, RUNTIME, call, kernel, push, write_export

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import decode_profile, read_profile
from proton_bench.formats.timeline.launched_work import AMBIGUOUS, UNMATCHED
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

TEXTS = nsys.texts("void gemm<float>(float*)", "gemm", "registered")


def read(path: Path, **tables: Any) -> Profile:
    names = {"kernels": KERNEL, "calls": RUNTIME, "ranges": NVTX}
    rows = {names.get(name, name): value for name, value in tables.items()}
    return read_profile(write_export(path / "x.sqlite", {"StringIds": TEXTS, **rows}))


def paths(profile: Profile) -> set[str]:
    return {" > ".join(profile.path(row)) for row in range(1, len(profile))}


def row_of(profile: Profile, name: str) -> int:
    return next(row for row in range(len(profile)) if profile.name(row) == name)


RANGES = [push("step", 0, 100), push("forward", 10, 50), push("backward", 50, 90)]


def test_a_kernel_stands_below_the_ranges_that_were_open_at_its_launch(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        kernels=[kernel(1, 500, 520), kernel(2, 600, 605), kernel(3, 700, 701)],
        calls=[call(1, 20), call(2, 60), call(3, 200)],
        ranges=RANGES,
    )

    name = "void gemm<float>(float*)"
    assert paths(profile) == {
        *("step", "step > forward", "step > backward", name),
        *(f"step > forward > {name}", f"step > backward > {name}"),
    }
    assert profile.inclusive("time (ns)").tolist()[0] == 26
    assert profile.dropped == {}


def test_rows_carry_variant_device_and_kind(tmp_path: Path) -> None:
    shape = dict(zip(("gridX", "gridY", "gridZ"), (4, 2, 1), strict=True))
    shape |= dict(zip(("blockX", "blockY", "blockZ"), (128, 1, 1), strict=True))
    memory = {"staticSharedMemory": 16, "dynamicSharedMemory": 32, "registersPerThread": 40}
    memory["localMemoryPerThread"] = 256

    profile = read(
        tmp_path,
        kernels=[kernel(1, 0, 9, **shape, **memory)],
        calls=[call(1, 0)],
        TARGET_INFO_GPU=[
            {"id": 0, "name": "NVIDIA H200", "smCount": 132, "computeMajor": 9, "computeMinor": 0}
        ],
    )

    assert profile.kind(1) is FrameKind.KERNEL
    assert profile.device(1) == Device("CUDA", 0, arch="90", num_sms=132)
    variant = profile.variant(1)
    assert variant == Variant(grid=(4, 2, 1), block=(128, 1, 1), shared_bytes=48, registers=40)
    assert variant.local_bytes == 256
    assert profile.provenance["device_names"]["CUDA:0"] == "NVIDIA H200"


def test_provenance_holds_tool_version_host_and_start(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        kernels=[kernel(1, 0, 9)],
        META_DATA_EXPORT=[{"name": "EXPORT_PRODUCT_VERSION", "value": "2025.1.1.103"}],
        TARGET_INFO_SYSTEM_ENV=[{"name": "Hostname", "value": "node1"}],
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": 17}],
    )

    facts = profile.provenance.to_plain()
    assert (facts["tool"], facts["tool_version"]) == ("nsys", "2025.1.1.103")
    assert (facts["host"], facts["start_time_ns"]) == ("node1", 17)


def test_processes_have_correlation_ids_and_devices_of_their_own(tmp_path: Path) -> None:
    other = nsys.thread(8, 8)
    profile = read(
        tmp_path,
        kernels=[kernel(1, 500, 520), kernel(1, 500, 530, globalPid=nsys.process(8))],
        calls=[call(1, 20), call(1, 20, globalTid=other)],
        ranges=[push("one", 0, 100), push("other", 0, 100, globalTid=other)],
        TARGET_INFO_GPU=[{"id": index, "name": f"gpu{index}"} for index in range(2)],
        TARGET_INFO_CUDA_DEVICE=[{"gpuId": pid - 7, "cudaId": 0, "pid": pid} for pid in (7, 8)],
    )

    found = {
        profile.path(row)[0]: (profile.column("time (ns)").get(row), profile.device(row))
        for row in range(len(profile))
        if profile.kind(row) is FrameKind.KERNEL
    }
    assert found == {"one": (20, Device("CUDA", 0)), "other": (30, Device("CUDA", 1))}


def test_the_schema_of_2020_is_read_without_processes_and_shapes(tmp_path: Path) -> None:
    path = write_export(
        tmp_path / "x.sqlite",
        {"StringIds": TEXTS, KERNEL: [kernel(1, 500, 520)], RUNTIME: [], NVTX: RANGES},
        nsys.OLD,
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT INTO {RUNTIME} VALUES (20, 25, {nsys.thread(7, 7)}, 1)")
        connection.commit()

    profile = read_profile(path)

    assert "step > forward > void gemm<float>(float*)" in paths(profile)


def test_texts_of_ranges_may_be_registered_or_missing(tmp_path: Path) -> None:
    profile = read(tmp_path, ranges=[push(None, 0, 9, textId=3), push(None, 10, 19)])

    assert paths(profile) == {"registered", "<no text>"}


def test_a_range_that_never_ended_lasts_as_long_as_the_recording(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        kernels=[kernel(1, 500, 520)],
        calls=[call(1, 60)],
        ranges=[push("open", 50, None), *RANGES[:1]],
    )

    assert profile.column("wall (ns)").get(row_of(profile, "open")) == 520 - 50
    assert "open > void gemm<float>(float*)" in paths(profile)


def test_only_ranges_of_one_thread_hold_anything(tmp_path: Path) -> None:
    start_end = {"eventType": nsys.START_END}
    profile = read(
        tmp_path,
        ranges=[
            push("kept", 0, 10, **start_end),
            push("same", 20, 30, endGlobalTid=nsys.thread(7, 7), **start_end),
            push("lost", 0, 10, endGlobalTid=nsys.thread(7, 9), **start_end),
            push("mark", 5, 5, eventType=nsys.MARK),
        ],
    )

    assert paths(profile) == {"kept", "same"}
    assert list(profile.dropped.values()) == [1]


def test_copies_sets_and_whole_graphs_stand_at_their_calls(tmp_path: Path) -> None:
    work = {"start": 500, "end": 510}
    profile = read(
        tmp_path,
        calls=[call(1, 20), call(2, 21), call(3, 22)],
        ranges=RANGES[:1],
        CUPTI_ACTIVITY_KIND_MEMCPY=[{**work, "correlationId": 1, "copyKind": 1}],
        CUPTI_ACTIVITY_KIND_MEMSET=[{**work, "correlationId": 2}],
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[{**work, "correlationId": 3, "graphId": 4}],
    )

    assert {profile.name(row): profile.kind(row) for row in profile.children(1)} == {
        "<memcpy H2D>": FrameKind.COPY,
        "<memset>": FrameKind.COPY,
        "<graph 4>": FrameKind.GRAPH,
    }


def test_bytes_of_copies_and_use_of_devices_are_read(tmp_path: Path) -> None:
    work = {"start": 300, "end": 400}
    profile = read(
        tmp_path,
        NVTX_EVENTS=[push("step", 0, 100)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 20), call(2, 30), call(3, 40)],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(3, 450, 500)],
        CUPTI_ACTIVITY_KIND_MEMCPY=[{**work, "correlationId": 1, "copyKind": 1, "bytes": 64}],
        CUPTI_ACTIVITY_KIND_MEMSET=[{**work, "correlationId": 2, "bytes": 36}],
    )

    whole, step = profile.device_use

    assert profile.column("bytes").get(row_of(profile, "<memcpy H2D>")) == 64
    assert profile.inclusive("bytes")[0] == 100
    assert (whole.busy_ns, whole.idle_ns, whole.launches) == (150, 280 + 50, 1)
    assert (step.scope, step.latency_sum_ns) == ("step", 410)


def test_what_cannot_be_attributed_is_counted_and_kept_under_root(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        kernels=[kernel(1, 500, 520), kernel(2, 600, 605), kernel(3, 9, 8)],
        calls=[call(2, 20), call(2, 60)],
        ranges=RANGES,
    )

    assert profile.dropped[UNMATCHED] == 1
    assert profile.dropped[AMBIGUOUS] == 1
    assert sum(profile.dropped.values()) == 3
    assert profile.inclusive("time (ns)")[0] == 25


def test_an_export_without_kernels_shows_its_ranges(tmp_path: Path) -> None:
    profile = read(tmp_path, ranges=RANGES)

    assert list(profile.columns) == ["wall (ns)", "time (ns)", "count"]


def test_a_table_with_a_damaged_name_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = write_export(tmp_path / "x.sqlite", {"StringIds": TEXTS, KERNEL: [kernel(1, 5, 9)]})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(name AS BLOB)")
        connection.commit()

    with pytest.raises(ProfileFormatError, match=r"x\.sqlite"):
        read_profile(path)


def test_content_decides_the_format_and_bytes_are_read_like_files(tmp_path: Path) -> None:
    content = write_export(tmp_path / "x.sqlite", {NVTX: RANGES}).read_bytes()
    (tmp_path / "x.json").write_bytes(content)

    assert paths(read_profile(tmp_path / "x.json")) == paths(decode_profile(content, "x"))


def test_reading_writes_nothing_beside_the_file(tmp_path: Path) -> None:
    read(tmp_path, ranges=RANGES)

    assert [path.name for path in tmp_path.iterdir()] == ["x.sqlite"]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"kernels": [kernel(1, "a", 9)]}, "holds 'a' for a number"),
        ({"kernels": [kernel(1, 1.5, 9)]}, "holds '1.5' for a number"),
        ({"kernels": [kernel("x", 1, 9)]}, "holds 'x' for a number"),
        ({"kernels": [kernel(1, 1, 9, gridX="wide")]}, "holds 'wide' for a number"),
        ({"calls": [call(1, 0) | {"start": b"x"}]}, "for a number"),
        ({"ranges": [push("a", 0, "end")]}, "holds 'end' for a number"),
        ({"ranges": [push("a", 0, 5, globalTid="t")]}, "holds 't' for a number"),
    ],
)
def test_values_of_wrong_types_are_refused(
    tables: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ProfileFormatError, match=message):
        read(tmp_path, **tables)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE t (a)", "no table of Nsight Systems"),
        (f"CREATE TABLE {KERNEL} (start INTEGER)", "no column end, correlationId"),
        (f"CREATE VIEW {KERNEL} AS SELECT 1 AS start", "no table of Nsight Systems"),
    ],
)
def test_other_databases_are_refused(statement: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()

    with pytest.raises(ProfileFormatError, match=message):
        read_profile(path)


def test_texts_without_a_key_are_read_once(tmp_path: Path) -> None:
    schema = nsys.MODERN | {"StringIds": "id INTEGER, value TEXT"}
    many = 3000
    rows = {
        "StringIds": nsys.texts(*(f"kernel {number}" for number in range(many))),
        KERNEL: [kernel(n, n, n + 1, demangledName=n + 1) for n in range(many)],
    }

    profile = read_profile(write_export(tmp_path / "x.sqlite", rows, schema))

    assert paths(profile) == {f"kernel {number}" for number in range(many)}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("aten::mv, seq = 812, op_id = 99", "aten::mv"),
        ("aten::mv, op_id = 99", "aten::mv"),
        ("aten::mv, seq = -1, op_id = 9, sizes = [[3], []], input_op_ids = [(8,0)]", "aten::mv"),
        ("aten::mv, op_id = 9, sizes = [[3, 4]]", "aten::mv"),
        ("aten::mv, seq = 12", "aten::mv"),
        ("MvBackward0, seq = 12, sizes = [[]]", "MvBackward0"),
        ("prefill, seq = 128", "prefill, seq = 128"),
        ("load, op_id = x1", "load, op_id = x1"),
        ("load, op_id = 1x", "load, op_id = 1x"),
        (", op_id = 1", ", op_id = 1"),
    ],
)
def test_ranges_have_names_without_the_number_of_the_call(
    tmp_path: Path, text: str, name: str
) -> None:
    profile = read(tmp_path, ranges=[push(text, 3, 9), push("other", 20, 30)])

    assert paths(profile) == {name, "other"}


def test_calls_of_one_operator_are_one_row(tmp_path: Path) -> None:
    ranges = [push(f"aten::mv, op_id = {at}", at, at + 8) for at in range(0, 120, 10)]

    profile = read(tmp_path, ranges=ranges)

    assert profile.column("count").get(row_of(profile, "aten::mv")) == 12


@pytest.mark.parametrize(
    "tables",
    [
        {f"{NVTX}_V2": RANGES},
        {f"{NVTX}_V3": RANGES, f"{KERNEL}_V7": [kernel(1, 500, 520)]},
        {"StringIds_V4": TEXTS, f"{RUNTIME}_V11": [call(1, 20)]},
    ],
)
def test_tables_with_a_version_in_their_name_are_read(tmp_path: Path, tables: Any) -> None:
    names = {KERNEL: [kernel(1, 500, 520)], RUNTIME: [call(1, 20)], NVTX: RANGES}
    plain = {name.rpartition("_V")[0] for name in tables}
    rest = {
        name: rows for name, rows in ({"StringIds": TEXTS} | names).items() if name not in plain
    }

    profile = read_profile(write_export(tmp_path / "v.sqlite", {**rest, **tables}))

    assert "step > forward > void gemm<float>(float*)" in paths(profile)
    assert profile.dropped == {}


def test_a_table_that_is_not_read_is_named_with_its_rows(tmp_path: Path) -> None:
    more = {f"{NVTX}_V2": RANGES[:2], f"{NVTX}_V10": RANGES[1:]}

    profile = read(tmp_path, ranges=RANGES[:1], **more)

    assert paths(profile) == {"step"}
    assert sorted(profile.dropped.values()) == [2, 2]
    assert all("NVTX_EVENTS_V" in reason for reason in profile.dropped)
