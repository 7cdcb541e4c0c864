"""`.hatchet`: nested JSON nodes, as upstream's viewer and llnl-hatchet read them."""

from __future__ import annotations

from typing import Any

import msgspec

from proton_bench.formats.base import corrupt, decoded
from proton_bench.formats.deep_json import parse_json
from proton_bench.formats.hatchet.devices import device_map
from proton_bench.formats.hatchet.rows import HatchetRows, losses
from proton_bench.formats.hatchet.tree import Node, deep_node, tree_profile
from proton_bench.model.profile import Profile
from proton_bench.support.text import json_text

__all__ = ["HatchetJson"]

# Deeper lines are not indented: blanks would outgrow the values a hundred times.
_MAX_INDENT = 64

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
        """Return the profile; files of Triton 3.6.0 to 3.9.0 and trees of any depth."""
        try:
            root, devices = _with_devices.decode(content)
        except RecursionError:
            root, devices = _decode_deep(content, source)
        except (msgspec.MsgspecError, UnicodeError, ValueError):
            # Older files have no device map; otherwise the second attempt gives the error.
            (root,), devices = decoded(lambda: _tree_alone.decode(content), source), {}
        return tree_profile(root, devices, source)

    def encode(self, profile: Profile) -> bytes:
        """Return the whole file, indented like upstream's."""
        rows = HatchetRows.of(profile)
        text = ["\n[\n"]
        _Writer(rows, text).write()
        devices = msgspec.json.encode(device_map(rows.profile.devices))
        indented = msgspec.json.format(devices, indent=4).decode().replace("\n", "\n    ")
        text.append(f",\n    {indented}\n]\n")
        return json_text("".join(text)).encode()

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        return losses(profile)


def _decode_deep(content: bytes, source: str) -> tuple[Node, dict[str, Any]]:
    text = decoded(content.decode, source)
    items = parse_json(text, lambda fields: deep_node(fields, source), source)
    if not isinstance(items, list) or not 1 <= len(items) <= 2 or not isinstance(items[0], Node):
        raise corrupt(source, "it is not a list of one tree and a device map")
    devices = items[1] if len(items) == 2 else {}
    if not isinstance(devices, dict):
        raise corrupt(source, "the device map is not a map")
    return items[0], devices


class _Writer:
    """Writes the nodes of a tree while walking it in pre-order."""

    def __init__(self, rows: HatchetRows, text: list[str]) -> None:
        self._rows = rows
        self._text = text
        self._names = [_quoted(name) for name in rows.profile.strings]
        self._keys: dict[str, str] = {}

    def write(self) -> None:
        profile = self._rows.profile
        frames, ends = profile.frames.tolist(), profile.subtree_end.tolist()
        text = self._text
        open_rows: list[int] = []
        for row in range(len(profile)):
            while open_rows and row >= ends[open_rows[-1]]:
                self._close(open_rows.pop(), frames, depth=len(open_rows))
            pad = _pad(1 + 2 * len(open_rows))
            if open_rows:
                text.append("\n" if row == open_rows[-1] + 1 else ",\n")
            text.append(f"{pad}{{\n")
            if row == 0 and self._rows.aggregations:
                text.append(f'{_pad(2)}"aggregations": ')
                text.append(f"{msgspec.json.encode(self._rows.aggregations).decode()},\n")
            has_children = ends[row] > row + 1
            text.append(
                f'{_pad(2 + 2 * len(open_rows))}"children": [' + ("" if has_children else "]")
            )
            open_rows.append(row)
        while open_rows:
            self._close(open_rows.pop(), frames, depth=len(open_rows))

    def _close(self, row: int, frames: list[int], *, depth: int) -> None:
        ends = self._rows.profile.subtree_end
        pad = _pad(2 + 2 * depth)
        inner = _pad(3 + 2 * depth)
        closing = f"\n{pad}]" if ends[row] > row + 1 else ""
        self._text.append(
            f'{closing},\n{pad}"frame": {{\n{inner}"name": {self._names[frames[row]]},\n'
            f'{inner}"type": "function"\n{pad}}},\n{pad}"metrics": '
            f"{self._metrics(row, depth)}"
        )
        if self._names[frames[row]] == '""':
            # hatchet treats an empty name as missing and looks here.
            self._text.append(f',\n{pad}"name": ""')
        self._text.append(f"\n{_pad(1 + 2 * depth)}}}")

    def _metrics(self, row: int, depth: int) -> str:
        cells = self._rows.cells[row]
        if not cells:
            return "{}"
        inner = _pad(3 + 2 * depth)
        lines = [f"{inner}{self._key(name)}{_value(value, depth)}" for name, value in cells]
        return "{\n" + ",\n".join(lines) + f"\n{_pad(2 + 2 * depth)}}}"

    def _key(self, name: str) -> str:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = f"{_quoted(name)}: "
        return key


def _pad(level: int) -> str:
    return " " * (4 * level) if level <= _MAX_INDENT else ""


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _value(value: Any, depth: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if not value:
        return "[]"
    inner = _pad(4 + 2 * depth)
    lines = ",\n".join(f"{inner}{_value(element, depth)}" for element in value)
    return f"[\n{lines}\n{_pad(3 + 2 * depth)}]"
