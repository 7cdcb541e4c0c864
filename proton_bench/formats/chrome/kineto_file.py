"""`rank<N>.json.gz`: timelines as torch.profiler's Kineto writes them, for tools of those."""

from __future__ import annotations

import json
import re
from typing import IO, Any

import msgspec

from proton_bench.formats.timeline.slices import HOST, TimelineSlice
from proton_bench.model.origin import Origin

_BASE_NS = 7_889_238 * 10**9  # a quarter of a year, as Kineto counts from
_CATEGORIES = {
    "scope": "user_annotation",
    "metric": "user_annotation",
    "test": "user_annotation",
    "op": "cpu_op",
    "launch": "cuda_runtime",
    "graph": "kernel",
}
_COPY = re.compile(r"<memcpy (?:(\w)2(\w)|P2P)>")
_BUFFER_BYTES = 1 << 18
_encode = msgspec.json.encode


def base_of(start_ns: int) -> int:
    """Return the unix time that the times of a file count from, where its first one is this.

    Files of ranks that ran in the same quarter of a year have the same, so that tools lay them
    beside each other as they are.
    """
    return start_ns - start_ns % _BASE_NS


class KinetoFile:
    """Writes the slices of one rank, which may be several processes.

    Args:
        stream: Where to write.
        origin: The rank's first process.
        base_ns: Unix time that times count from.
    """

    def __init__(self, stream: IO[bytes], origin: Origin, base_ns: int) -> None:
        self._stream = stream
        self._base_ns = base_ns
        self._known: set[tuple[object, ...]] = set()
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        distributed: dict[str, Any] = {"rank": origin.rank or 0}
        if origin.world_size is not None:
            distributed["world_size"] = origin.world_size
        head = {
            "schemaVersion": 1,
            "distributedInfo": distributed,
            "host_name": origin.host,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": base_ns,
        }
        # With the spaces that readers of Kineto's files look for.
        self._stream.write(json.dumps(head).encode()[:-1] + b', "traceEvents": [\n')
        self._separator = b""

    def add(self, found: TimelineSlice) -> None:
        """Write a slice, with an arrow where it was launched."""
        is_host = found.device == HOST
        process = (found.origin.process_id or 0) if is_host else found.device
        self._describe(found, process, is_host=is_host)
        place = {"pid": process, "tid": found.lane}
        ts = _us(found.start_ns - self._base_ns)
        self._write(
            {
                "ph": "X",
                "cat": self._category(found),
                "name": _kineto_name(found),
                **place,
                "ts": ts,
                "dur": _us(found.duration_ns),
                "args": self._arguments(found),
            }
        )
        if found.correlation:
            flow: dict[str, Any] = {"cat": "ac2g", "name": "ac2g", "id": found.correlation}
            end = {"ph": "s"} if found.kind == "launch" else {"ph": "f", "bp": "e"}
            self._write({**end, **flow, **place, "ts": ts})

    def close(self) -> None:
        """Write what ends the file; the stream stays open."""
        self._flush()
        self._stream.write(b"\n]}\n")

    def _category(self, found: TimelineSlice) -> str:
        if found.kind == "copy":
            return "gpu_memset" if "memset" in found.name.lower() else "gpu_memcpy"
        if found.device == HOST and found.kind == "kernel":
            return "cpu_op"  # Triton's interpreter ran it
        return _CATEGORIES.get(found.kind, found.kind)

    def _arguments(self, found: TimelineSlice) -> dict[str, Any]:
        arguments: dict[str, Any] = dict(found.values)
        if found.device != HOST:
            arguments.update(device=found.device, stream=found.lane)
        if found.correlation or found.kind == "launch":
            arguments["correlation"] = found.correlation
        if found.moved_bytes >= 0:
            arguments["bytes"] = found.moved_bytes
            if found.duration_ns:  # bytes per ns are GB/s
                rate = found.moved_bytes / found.duration_ns
                arguments["memory bandwidth (GB/s)"] = rate
        return arguments

    def _describe(self, found: TimelineSlice, process: int, *, is_host: bool) -> None:
        """Name a process or device, and a thread or stream, before their first slice."""
        key = (is_host, process)
        if key not in self._known:
            self._known.add(key)
            label = "CPU" if is_host else f"GPU {process}"
            order = process if is_host else 5_000_000 + process  # devices below, as Kineto has them
            self._name(process, 0, "process_name", name=found.program or "python")
            self._name(process, 0, "process_labels", labels=label)
            self._name(process, 0, "process_sort_index", sort_index=order)
        if (*key, found.lane) not in self._known:
            self._known.add((*key, found.lane))
            thread = f"thread {found.lane} ({found.lane_name})"
            name = thread if is_host else f"stream {found.lane}"
            self._name(process, found.lane, "thread_name", name=name)
            self._name(process, found.lane, "thread_sort_index", sort_index=found.lane)

    def _name(self, process: int, lane: int, what: str, **arguments: object) -> None:
        place = {"ts": 0, "pid": process, "tid": lane}
        self._write({"ph": "M", "name": what, **place, "args": arguments})

    def _write(self, event: dict[str, Any]) -> None:
        encoded = self._separator + _encode(event)
        self._separator = b",\n"
        self._kept.append(encoded)
        self._kept_bytes += len(encoded)
        if self._kept_bytes >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._stream.write(b"".join(self._kept))
        self._kept, self._kept_bytes = [], 0


def _us(ns: int) -> msgspec.Raw:
    """Return microseconds with every nanosecond: as floats these times lack the last digits."""
    return msgspec.Raw(b"%d.%03d" % divmod(ns, 1000))


def _kineto_name(found: TimelineSlice) -> str:
    """Return the name of a slice; tools recognise copies by theirs."""
    if found.kind != "copy":
        return found.name
    match = _COPY.fullmatch(found.name)
    if match is not None:
        return f"Memcpy {match[1]}to{match[2]}" if match[1] else "Memcpy PtoP"
    return "Memset (Device)" if "memset" in found.name.lower() else "Memcpy"
