"""Columns of the `.proton` format: little-endian arrays, each raw or zlib."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.formats.base import corrupt
from proton_bench.formats.budget import DecodeBudget, Limit

__all__ = ["PackedBytes", "PackedColumn", "array", "inflate", "pack", "pack_bytes"]

COMPRESS_ABOVE = 4096
COMPRESS_LEVEL = 4
# Deflate cannot exceed 1032:1, so a larger claim is false.
MAX_DEFLATE_RATIO = 1032


class PackedBytes(msgspec.Struct):
    """Bytes of the file; ``size`` is their number once inflated."""

    codec: str
    size: int
    content: bytes = msgspec.field(name="bytes")

    def packed(self) -> dict[str, Any]:
        """Return the map that is written."""
        return {"codec": self.codec, "size": self.size, "bytes": self.content}


class PackedColumn(PackedBytes, kw_only=True):
    """One array of the file."""

    dtype: str


def inflate(packed: PackedBytes, budget: DecodeBudget, what: str) -> bytes:
    """Return the bytes; sizes are checked before anything is allocated.

    Raises:
        ProfileFormatError: The bytes are damaged or not as many as declared.
    """
    source = budget.source
    if packed.codec == "raw":
        if packed.size != len(packed.content):
            raise corrupt(source, f"{what} declares {packed.size} bytes, has {len(packed.content)}")
        return packed.content
    if packed.codec != "zlib":
        raise corrupt(
            source,
            f"{what} has the unknown codec {packed.codec[:40]!r}",
            "known are raw and zlib; a newer proton_bench may read it",
        )
    if not 0 <= packed.size <= MAX_DEFLATE_RATIO * len(packed.content):
        raise corrupt(source, f"{what} declares {packed.size} bytes in {len(packed.content)}")
    budget.take(Limit.BYTES, packed.size)
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed.content, packed.size + 1)
    except zlib.error as error:
        raise corrupt(source, f"{what} cannot be inflated ({error})") from None
    if len(content) != packed.size or not stream.eof:
        raise corrupt(source, f"{what} does not inflate to the declared {packed.size} bytes")
    return content


def array(
    packed: PackedColumn, budget: DecodeBudget, *, what: str, dtype: str, count: int | None = None
) -> npt.NDArray[Any]:
    """Return the column as a read-only array.

    Args:
        packed: The column of the file.
        budget: The budget of the file.
        what: Name of the column for messages.
        dtype: The only type allowed, as numpy writes it.
        count: The only number of elements allowed; None allows any.

    Raises:
        ProfileFormatError: The column is damaged, or of another type or length.
    """
    width = np.dtype(dtype).itemsize
    if packed.dtype != dtype:
        raise corrupt(budget.source, f"{what} holds {packed.dtype[:40]!r}, expected {dtype!r}")
    if count is not None and packed.size != count * width:
        raise corrupt(budget.source, f"{what} has {packed.size} bytes, expected {count * width}")
    content = inflate(packed, budget, what)
    if len(content) % width:
        raise corrupt(budget.source, f"{what} ends within an element")
    return np.frombuffer(content, dtype=dtype)


def pack_bytes(content: bytes) -> dict[str, Any]:
    """Return the map for some bytes, compressed if that is shorter."""
    if len(content) > COMPRESS_ABOVE:
        short = zlib.compress(content, COMPRESS_LEVEL)
        if len(short) < len(content):
            return {"codec": "zlib", "size": len(content), "bytes": short}
    return {"codec": "raw", "size": len(content), "bytes": content}


def pack(values: npt.NDArray[Any], dtype: str) -> dict[str, Any]:
    """Return the map for an array."""
    return {"dtype": dtype, **pack_bytes(values.astype(dtype, copy=False).tobytes())}
