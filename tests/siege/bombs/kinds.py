"""The kinds of small files and commands, and the functions that make them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.protobuf import Message, varint
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

__all__ = [
    "CLASSES",
    "EARLIER",
    "FIRST",
    "KINDS",
    "Kind",
    "edited",
    "grown",
    "kind_of",
    "long_list",
    "mangled",
    "nested",
    "packet",
    "siblings",
    "traced",
    "zipped",
]

EARLIER = "what was found first"
CLASSES = {
    "nesting": "compression in compression",
    "sqlite": "databases whose pages, schemas and files lie",
    "depth": "trees as deep as the file allows",
    "counts": "declared lengths and counts",
    "references": "contents that are written once and referred to often",
    "width": "metrics, columns and devices beyond number",
    "names": "names that are long, mangled, or made for expressions",
    "order": "events that readers could go through again and again",
    "patterns": "expressions and selectors of users",
    "settings": "policies, noise, manifests and counters",
    EARLIER: "the kinds that were found first",
}

Files = Mapping[str, bytes]
Words = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One attack.

    Attributes:
        about: Its class, a key of `CLASSES`.
        name: The file, or the name of the attack.
        make: Returns the content of that file, or several files by their names.
        words: Command lines; none means all that read a profile.
        is_quick: Every run of the tests tries it.
    """

    about: str
    name: str
    make: Callable[[], bytes | Files]
    words: Words = ()
    is_quick: bool = False

    def files(self) -> Files:
        """Return the files by their names."""
        made = self.make()
        return {self.name: made} if isinstance(made, bytes) else made


KINDS: dict[str, Kind] = {}
Make = Callable[[], "bytes | Files"]


def kind_of(about: str) -> Callable[..., Callable[[Make], Make]]:
    """Return the decorator that registers what makes one kind of a class."""

    def of_suffix(
        suffix: str = "", *words: Sequence[str], is_quick: bool = False
    ) -> Callable[[Make], Make]:
        def register(make: Make) -> Make:
            name = make.__name__ + suffix
            KINDS[name] = Kind(about, name, make, words, is_quick)
            return make

        return register

    return of_suffix


# -- Perfetto ------------------------------------------------------------------------------------
def packet(content: bytes | Message) -> bytes:
    content = bytes(content)
    return b"\x0a" + varint(len(content)) + content


FIRST = packet(Message().number(8, 1).number(10, 1))


# -- Chrome --------------------------------------------------------------------------------------
def traced(events: bytes) -> bytes:
    return gzip.compress(b'{"schemaVersion":1,"deviceProperties":[],"traceEvents":[' + events)


# -- hatchet -------------------------------------------------------------------------------------
def nested(depth: int, name: str = "n", metrics: dict[str, Any] | None = None) -> bytes:
    opened = b'{"frame":{"name":%s},"metrics":%s,"children":[' % (
        json.dumps(name).encode(),
        json.dumps(metrics or {"time (ns)": 1}).encode(),
    )
    root = b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":['
    return root + opened * depth + b"]}" * depth + b"]}]"


def mangled(levels: int) -> str:
    """Return a name whose every level holds the one below twice."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1f1AIiiE" + "".join(f"S_IS{d}_S{d}_E" for d in digits[:levels])


def siblings(nodes: Iterable[bytes]) -> bytes:
    """Return a tree whose nodes stand right below the root."""
    return b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":[%s]}]' % b",".join(
        nodes
    )


# -- .proton -------------------------------------------------------------------------------------
def edited(change: Callable[[dict[str, Any]], None]) -> bytes:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    document = msgspec.msgpack.decode(NativeFile().encode(builder.build()))
    change(document)
    return msgspec.msgpack.encode(document)


def zipped(content: bytes) -> dict[str, Any]:
    return {"codec": "zlib", "size": len(content), "bytes": zlib.compress(content, 9)}


def long_list(element: bytes, count: int) -> msgspec.Raw:
    return msgspec.Raw(b"\xdd" + count.to_bytes(4, "big") + element * count)


def column(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Return an array as it stands in the file."""
    return {"dtype": values.dtype.str, **zipped(values.tobytes())}


def grown(
    parents: npt.NDArray[np.int32],
    strings: Sequence[str] = ("ROOT", "k"),
    *,
    frames: npt.NDArray[np.int32] | None = None,
    kinds: npt.NDArray[np.uint8] | None = None,
    **more: Any,
) -> bytes:
    """Return a file with these rows, each of which took 5 ns.

    Args:
        parents: Of each row, in pre-order.
        strings: Names; the root has the first.
        frames: Which name each row has; the second one without it.
        kinds: Of each row; kernels without it.
        more: Other keys of the file.
    """
    rows = len(parents)
    if frames is None:
        frames = np.minimum(np.arange(rows), 1)
    if kinds is None:
        kinds = np.full(rows, FrameKind.KERNEL, dtype="|u1")
    kinds = kinds.astype("|u1")
    kinds[0] = FrameKind.ROOT

    def change(document: dict[str, Any]) -> None:
        for metric in document["metrics"]:
            metric.update(values=column(np.full(rows, 5, dtype="<i8")), valid=None)
        document.update(rows=rows, strings=strings, parents=column(parents.astype("<i4")))
        document.update(frames=column(frames.astype("<i4")), kinds=column(kinds), **more)

    return edited(change)
