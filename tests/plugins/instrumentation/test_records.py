"""Records are found in TTGIR, and errors in them are reported before a compiler does."""

from __future__ import annotations

import copy
import struct
from pathlib import Path

import pytest

from proton_bench.errors import UsageError
from proton_bench_plugins.instrumentation.collector import strip_records
from proton_bench_plugins.instrumentation.compiler.records import (
    Record,
    check_records,
    find_records,
    has_records,
)
from proton_bench_plugins.instrumentation.compiler.scope_table import read_registers
from proton_bench_plugins.instrumentation.compiler.stages import (
    Target,
    check_space,
    describe_target,
)
from proton_bench_plugins.instrumentation.settings import Settings

HEAD = 'module attributes {"ttg.num-warps" = 4 : i32} {\n'


def text(*records: str) -> str:
    lines = [f'    proton.record {record.split()[0]} "{record.split()[1]}"' for record in records]
    return HEAD + "\n".join(lines) + "\n}\n"


def refusal(source: str, **options: object) -> str:
    with pytest.raises(UsageError) as raised:
        check_records(source, "k", Settings(**options))  # type: ignore[arg-type]
    return str(raised.value)


def test_records_are_found_in_order() -> None:
    source = text("start a", "start b", "end b", "end a")

    assert has_records(source)
    assert find_records(source) == [
        *(Record("a", True), Record("b", True), Record("b", False), Record("a", False))
    ]


def test_a_kernel_without_records_has_none() -> None:
    assert not has_records(HEAD + "tt.return\n}\n")


@pytest.mark.parametrize(
    "records",
    [
        ("start a", "end a", "start a", "end a"),
        ("start a", "start b", "end a", "end b"),
        ("end a", "start a"),  # in a loop: the end stands before the start of the next round
    ],
)
def test_balanced_scopes_pass(records: tuple[str, ...]) -> None:
    source = text(*records)

    check_records(source, "k", Settings())

    assert len(find_records(source)) == len(records)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (("start a",), "kernel 'k': scope 'a' is opened but never closed"),
        (("end a",), "kernel 'k': scope 'a' is closed but never opened"),
        (("start a", "start a", "end a"), "scope 'a' is opened twice without being closed between"),
        (("end a", "end a", "start a"), "scope 'a' is closed twice without being opened between"),
    ],
)
def test_unbalanced_scopes_are_named(records: tuple[str, ...], said: str) -> None:
    assert said in refusal(text(*records))


def test_events_count_as_scopes() -> None:
    events = "".join(f'    %e{i} = proton.allocate_event "e" : i32\n' for i in range(256))

    check_records(HEAD + events, "k", Settings())
    assert "257 scopes and events" in refusal(text("start a", "end a") + events)


@pytest.mark.parametrize(
    ("size", "warp_ids", "better"),
    [(300, (), 256), (24, (0,), 16), (8, (), 32), (4096, (0, 1, 3), 3072)],
)
def test_a_buffer_that_does_not_divide_is_refused_with_a_size_that_does(
    size: int, warp_ids: tuple[int, ...], better: int
) -> None:
    source = text("start a", "end a")

    said = refusal(source, buffer_size=size, warp_ids=warp_ids)

    assert f"buffer_size={size}: kernel 'k' records {len(warp_ids) or 4} warps" in said
    assert f"write buffer_size={better}," in said
    check_records(source, "k", Settings(buffer_size=better, warp_ids=warp_ids))


def test_only_the_compiler_counts_the_warps_of_partitions() -> None:
    source = text("start a", "end a").replace("}\n", "  ttg.warp_specialize(%a)\n}\n")

    check_records(source, "k", Settings(warp_ids=(7,), buffer_size=300))

    assert "has no warp 7" in refusal(text("start a", "end a"), warp_ids=(7,))


def test_stripping_leaves_everything_else() -> None:
    source = (
        HEAD + '    %e = proton.allocate_event "x" : i32\n    proton.event start %e : i32\n'
        '    proton.record start "a" loc(#loc3)\n    %0 = tt.load %p\n'
        '    proton.record end "a"\n}\n'
    )

    assert strip_records(source) == (
        HEAD + "    %e = arith.constant 0 : i32\n    %0 = tt.load %p\n}\n"
    )


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF", b"\x7fELF" + b"\xff" * 300, b"MZ" * 90])
def test_registers_of_what_is_not_a_cubin_are_unknown(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "k.cubin"
    if content is not None:
        path.write_bytes(content)

    assert read_registers(path) is None


def test_registers_are_read_from_the_attributes_of_a_cubin(tmp_path: Path) -> None:
    names = b"\0.nv.info\0.text\0"
    attributes = struct.pack("<BBHII", 4, 0x12, 8, 1, 99) + struct.pack("<BBH", 3, 0x1B, 77)
    attributes += struct.pack("<BBHII", 4, 0x2F, 8, 1, 168)
    sections = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64 + len(names), len(attributes), 0, 0, 0, 0)
    at = 64 + len(names) + len(attributes)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", head, 2, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, 2, 0)
    path = tmp_path / "k.cubin"
    path.write_bytes(header + names + attributes + sections)

    assert read_registers(path) == 168


@pytest.mark.parametrize(
    ("kind", "arch", "size"),
    [
        ("cuda", 80, 166912),
        ("cuda", 90, 232448),
        ("cuda", 777, 101376),
        ("hip", "gfx942", 65536),
        ("hip", "gfx950:sramecc+", 163840),
    ],
)
def test_targets_without_a_device_have_the_shared_memory_of_their_kind(
    kind: str, arch: object, size: int
) -> None:
    pytest.importorskip("triton")

    target = describe_target(kind, arch)

    assert (target.kind, target.max_shared) == (kind, size)
    assert ":" not in target.arch


def compiled(**changed: int) -> dict[str, int]:
    return {"num_warps": 4, "shared": 8192, "profile_scratch_size": 8320, **changed}


SMALL = Target("cuda", "90", 100_000)


@pytest.mark.parametrize(
    "metadata",
    [
        compiled(profile_scratch_size=128),  # a few records, and then no more
        compiled(shared=102_400, profile_scratch_size=4224),  # the kernel alone takes nearly all
    ],
)
def test_a_kernel_that_takes_all_shared_memory_is_refused(metadata: dict[str, int]) -> None:
    errors = pytest.importorskip("triton.runtime.errors")

    with pytest.raises(UsageError, match="kernel 'k' leaves no shared memory") as raised:
        check_space("k", metadata, SMALL, settings=Settings())

    assert "write buffer_type=global" in str(raised.value)
    assert isinstance(raised.value, errors.OutOfResources)  # autotuners try the next configuration
    assert str(copy.deepcopy(raised.value)) == str(raised.value)


@pytest.mark.parametrize(
    ("metadata", "options"),
    [
        (compiled(), {}),
        (compiled(profile_scratch_size=128), {"buffer_type": "global"}),
        (compiled(profile_scratch_size=128), {"buffer_size": 64}),  # asked for
        (compiled(shared=300_000), {}),  # does not fit without records either
    ],
)
def test_other_kernels_are_left_to_triton(
    metadata: dict[str, int], options: dict[str, object]
) -> None:
    assert check_space("k", metadata, SMALL, settings=Settings(**options)) is None  # type: ignore[arg-type,func-returns-value]
