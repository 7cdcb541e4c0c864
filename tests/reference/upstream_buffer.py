"""Upstream's host copy of a profile buffer (``enable_host_buffer``): a header, then the blocks."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "upstream"
# By id, with the scope around each: from the kernel that wrote the buffers.
SCOPES = (("load", None), ("load_x", 0), ("load_y", 0), ("loop", None), ("fma", 3), ("store", None))


@dataclass(frozen=True)
class HostBuffer:
    """The buffer of one launch.

    Attributes:
        payload: Blocks of all programs.
        layout: The layout for ``emit_cycles``.
        programs: Number of blocks.
    """

    payload: bytes
    layout: dict[str, object]
    programs: int


def read_host_buffer(content: bytes, *, scopes: int, short_clock: bool = False) -> HostBuffer:
    """Read the header: version, offset and size of the header, then of the payload, ...

    The rest of it is the kind of device, the programs, their warps, the bytes of a block and the
    warps that record: how many, and which.
    """
    version, _, _, payload_at, payload_size, _ = struct.unpack_from("<6I", content)
    assert version == 1
    programs, warps, scratch_bytes, recording = struct.unpack_from("<4I", content, 24)
    warp_ids = struct.unpack_from(f"<{recording}I", content, 40)
    layout = {
        "scratch_bytes": scratch_bytes,
        "warps": warps,
        "warp_ids": warp_ids,
        "scopes": scopes,
        "short_clock": short_clock,
    }
    return HostBuffer(content[payload_at : payload_at + payload_size], layout, programs)


def shared_buffer(name: str) -> HostBuffer:
    """Return one of the recorded buffers, such as ``default-tree``."""
    content = gzip.decompress((DATA / f"intra-{name}.bin.gz").read_bytes())
    return read_host_buffer(content, scopes=len(SCOPES), short_clock="clock32" in name)
