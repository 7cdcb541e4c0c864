"""`.hatchet_msgpack`: the nodes of `.hatchet` as MessagePack."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from proton_bench.formats.base import decoded
from proton_bench.formats.hatchet.rows import HatchetRows, losses
from proton_bench.formats.hatchet.tree import Node, device_map, tree_profile
from proton_bench.model.arrays import Integers
from proton_bench.model.profile import Profile

_decoder = msgspec.msgpack.Decoder(tuple[Node, dict[str, Any]])
_encode = msgspec.msgpack.Encoder().encode
# The order in which upstream writes a kernel's own metrics; the others follow by name.
_FIRST = ("time (ns)", "count", "device_id", "device_type")


class HatchetMsgpack:
    """The `.hatchet_msgpack` format."""

    name = "hatchet_msgpack"
    suffixes = (".hatchet_msgpack",)

    def sniff(self, content: bytes) -> bool:
        """Return whether this is an array of two that starts with a small map with a frame."""
        return content[:1] == b"\x92" and b"\xa5frame" in content[:4096]

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; files of Triton 3.9.0."""
        root, devices = decoded(lambda: _decoder.decode(content), source)
        return tree_profile(root, devices, source)

    def encode(self, profile: Profile, *, upstream_shape: bool = False) -> bytes:
        """Return the whole file.

        Args:
            profile: Profile to write.
            upstream_shape: Have the rows that upstream would have recorded, and of their leaves
                those with metrics.
        """
        rows = HatchetRows.of(profile, upstream_shape=upstream_shape, first=_FIRST)
        content = [b"\x92"]
        is_shown = np.ones(len(rows.profile), dtype=np.bool_)
        if upstream_shape:
            is_leaf = rows.profile.subtree_end == np.arange(1, len(is_shown) + 1)
            is_shown[1:] = (rows.has_values | ~is_leaf)[1:]
        _write_nodes(rows, np.flatnonzero(is_shown), content)
        content.append(_encode(device_map(rows.profile.devices)))
        return b"".join(content)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        return losses(profile)


def _write_nodes(rows: HatchetRows, shown: Integers, content: list[bytes]) -> None:
    profile = rows.profile
    names = [_encode({"name": name, "type": "function"}) for name in profile.strings]
    children = np.bincount(profile.parents[shown[1:]], minlength=len(profile)).tolist()
    for row, frame in zip(shown.tolist(), profile.frames[shown].tolist(), strict=True):
        head = b"\x83"
        if row == 0 and rows.aggregations:
            head = b"\x84\xacaggregations" + _encode(rows.aggregations)
        content.append(
            head
            + b"\xa5frame"
            + names[frame]
            + b"\xa7metrics"
            + _encode(rows.cells[row])
            + b"\xa8children"
            + _array_head(children[row])
        )


def _array_head(size: int) -> bytes:
    if size < 16:
        return bytes((0x90 | size,))
    if size < 1 << 16:
        return b"\xdc" + size.to_bytes(2, "big")
    return b"\xdd" + size.to_bytes(4, "big")
