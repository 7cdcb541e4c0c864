"""`.hatchet`: nested JSON nodes, as upstream's viewer and llnl-hatchet read them."""

from __future__ import annotations

from typing import Any

import msgspec

from proton_bench.formats.base import decoded
from proton_bench.formats.hatchet.tree import Node, device_map, tree_profile
from proton_bench.model.profile import Profile
from proton_bench.support.text import json_bytes

# Deeper trees are not indented: blanks would outgrow the values a hundred times.
_MAX_INDENTED = 31

_with_devices = msgspec.json.Decoder(tuple[Node, dict[str, Any]])
_tree_alone = msgspec.json.Decoder(tuple[Node])


class HatchetJson:
    """The `.hatchet` format."""

    name = "hatchet"
    suffixes = (".hatchet",)

    def sniff(self, content: bytes) -> bool:
        """Return whether this is a JSON array of objects."""
        return b"".join(content[:256].split())[:2] == b"[{"

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; files of Triton 3.6.0 to 3.9.0."""
        try:
            root, devices = _with_devices.decode(content)
        except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
            # Older files have no device map; otherwise the second attempt gives the error.
            (root,), devices = decoded(lambda: _tree_alone.decode(content), source), {}
        return tree_profile(root, devices, source)

    def encode(self, profile: Profile, *, upstream_shape: bool = False) -> bytes:
        """Return the whole file, indented like upstream's unless it is deep.

        Args:
            profile: Profile to write.
            upstream_shape: Have the rows that upstream would have recorded.
        """
        from proton_bench.formats.hatchet.rows import HatchetRows  # readers have no use for it

        rows = HatchetRows.of(profile, upstream_shape=upstream_shape)
        is_deep = int(rows.profile.depths().max()) > _MAX_INDENTED
        # Encoders recurse, too: parts of deep trees are encoded one after the other.
        tree = rows.nested(lambda node: msgspec.Raw(msgspec.json.encode(node)))
        devices = msgspec.Raw(msgspec.json.encode(device_map(rows.profile.devices), order="sorted"))
        content = msgspec.json.encode([tree, devices])
        if not is_deep:
            content = b"\n%b\n" % msgspec.json.format(content, indent=4)
        return json_bytes(content)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        from proton_bench.formats.hatchet.rows import losses

        return losses(profile)
