"""The reduction on the device gives the results of a plain one in Python, for every option."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from reference.record_oracle import Layout, reduced

from proton_bench import _native

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

FUNCTION = 1
CASES = 60


@pytest.fixture
def runtime() -> Iterator[Any]:
    torch.zeros(1, device="cuda")
    made = _native.InstrumentationRuntime()
    made.start()
    yield made
    made.stop()


def put_on_device(address: int, data: bytes) -> None:
    """Copy bytes to memory of the device, and wait."""
    driver = ctypes.CDLL("libcuda.so.1")
    copy = driver.cuMemcpyHtoD_v2
    copy.argtypes = (ctypes.c_ulonglong, ctypes.c_char_p, ctypes.c_size_t)
    assert copy(address, data, len(data)) == 0


def segment(source: random.Random, case: Layout) -> tuple[bytes, int]:
    """Return the bytes of one segment, and how many words its warp wrote."""
    slots = case.slots
    ring = bytearray(source.randbytes(slots * 8))
    clock = source.choice((source.getrandbits(43), (1 << 43) - source.randrange(3000)))
    nonsense, events = source.random() < 0.2, source.random() < 0.25
    count = 0 if source.random() < 0.2 else source.randrange(slots * 3 + 1)
    opened: list[int] = []
    for index in range(count):
        clock += source.randrange(1 << 36) if source.random() < 0.05 else source.randrange(3000)
        if nonsense:
            is_end, scope = source.random() < 0.5, source.randrange(256)
        elif opened and source.random() < 0.5:
            is_end, scope = True, opened.pop()
        else:
            is_end, scope = False, source.randrange(case.scopes)
            opened.append(scope)
        tag = is_end << 31 | scope << 23 | (events and source.random() < 0.3) << 22
        tag |= 0 if case.short_clock else clock >> 32 & 0x7FF
        struct.pack_into("<II", ring, index % slots * 8, tag, clock & 0xFFFFFFFF)
    return bytes(ring), 2 * count


def make_case(source: random.Random) -> tuple[Layout, bytes]:
    """Return a layout and the buffer of one launch."""
    warps, slots = source.choice((1, 2, 4, 5, 8, 16, 32)), 1 << source.randrange(9)
    ids = sorted(source.sample(range(warps), source.randrange(1, warps + 1)))
    ids = ids if source.random() < 0.3 else []
    segments = len(ids) or warps
    stride = -(-(40 + 4 * warps + segments * slots * 8) // 128) * 128
    case = Layout(
        scratch_bytes=stride,
        slots=slots,
        warps=warps,
        warp_ids=tuple(ids),
        scopes=source.choice((1, 2, 3, 6, 17, 40, 200, 256)),
        short_clock=source.random() < 0.3,
        record_cost_cycles=source.choice((0, 0, 25)),
    )
    blocks = []
    for index in range(source.choice((1, 3, 40))):
        made = [segment(source, case) for _ in range(segments)]
        words = [0] * warps
        for warp, (_, written) in zip(case.recording, made, strict=True):
            words[warp] = written
        preamble = source.choices((0xDEADBEEF, 0, 0x1234), (20, 1, 1))[0]
        block = struct.pack("<IIIIQQQ", preamble, index, 5, segments * slots * 8, 1, 2, 3)
        block += struct.pack(f"<{warps}I", *words) + b"".join(data for data, _ in made)
        blocks.append(block.ljust(stride, b"\xa5"))
    return case, b"".join(blocks)


def reduce_on_device(runtime: Any, case: Layout, buffer: bytes) -> Any:
    """Have the device reduce the buffer of a launch."""
    stream = torch.cuda.current_stream().cuda_stream
    layout = {
        "name": "case",
        "scratch_bytes": case.scratch_bytes,
        "warps": case.warps,
        "warp_ids": list(case.warp_ids),
        "names": {scope: str(scope) for scope in range(case.scopes)},
        "short_clock": case.short_clock,
        "record_cost": case.record_cost_cycles,
        "private": True,
    }
    runtime.add_kernel(FUNCTION, layout)
    memory = runtime.allocator(len(buffer), 128, stream)
    put_on_device(memory.data_ptr(), buffer)
    runtime.launch_exit(SimpleNamespace(data={"function": FUNCTION, "stream": stream}))
    return runtime.take(FUNCTION, stream)


def test_device_and_host_reduce_to_the_same(runtime: Any) -> None:
    source = random.Random(7)
    different = []
    for number in range(CASES):
        case, buffer = make_case(source)

        found = reduce_on_device(runtime, case, buffer)

        if found != reduced(buffer, case):
            different.append((number, case))
    assert different == []


def test_a_buffer_is_used_again_without_being_cleared(runtime: Any) -> None:
    source = random.Random(8)
    case, buffer = make_case(source)
    reduce_on_device(runtime, case, buffer)
    case, buffer = make_case(source)

    found = reduce_on_device(runtime, case, buffer)

    assert found == reduced(buffer, case)
