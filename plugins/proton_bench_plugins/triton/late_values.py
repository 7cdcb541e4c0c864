"""Tensor metrics on a device: copied in stream order, read once they arrived."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench import _native
from proton_bench.errors import MetricError
from proton_bench.flags import flags
from proton_bench.recording.context.metric import ROOFLINE_TYPES, normalize_metrics, own_operators

# An event is recorded after this many copies of a stream; it marks all of them as done.
_BATCH = 256
# With more pending batches the oldest is awaited, so that memory stays bounded.
_MOST_BATCHES = 64

# The stream that copies, the name of the metric, and the tensor in host memory it comes to.
_Copy = tuple[Any, str, Any]


@dataclass(frozen=True, slots=True)
class _Deferred:
    """Values of one launch; the native side keeps the place where they belong."""

    place: int
    kernel: str
    values: list[tuple[str, Any]]


class LateValues:
    """Pending values of a device. May be used from any thread.

    Args:
        report: Called with a kernel whose value cannot be used, and why.
    """

    def __init__(self, report: Callable[[str, BaseException | str], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._open: dict[Any, list[_Deferred]] = {}  # by stream
        self._batches: deque[tuple[Any, list[_Deferred]]] = deque()  # with the event that ends them

    def copy(self, kernel: str, tensors: Mapping[str, Any]) -> list[_Copy]:
        """Begin to copy tensors to the host, each in the order of its device's current stream."""
        import torch

        copies: list[_Copy] = []
        try:
            for name, tensor in tensors.items():
                if torch.cuda.is_current_stream_capturing():
                    self._report(
                        kernel, f"metric {name!r} is a tensor in a graph that no session records"
                    )
                    continue
                with own_operators():
                    source = _converted(name, tensor.detach())
                    host = torch.empty(source.shape, dtype=source.dtype, pin_memory=True)
                    host.copy_(source, non_blocking=True)
                copies.append((torch.cuda.current_stream(tensor.device), name, host))
        except Exception as error:  # noqa: BLE001 - the target's launch must not fail because of us
            self._report(kernel, f"metric {name!r}: its tensor cannot be read: {error}")
        return copies

    def expect(self, kernel: str, copies: list[_Copy]) -> None:
        """Keep the frame of copied values: the one open on this thread."""
        for stream in dict.fromkeys(stream for stream, _, _ in copies):
            place = _native.defer_metrics()
            if place == 0:
                return
            values = [(name, host) for at, name, host in copies if at == stream]
            with self._lock:
                deferred = self._open.setdefault(stream, [])
                deferred.append(_Deferred(place, kernel, values))
                is_full = len(deferred) >= _BATCH and not _is_captured(stream)
                if is_full:
                    self._close(stream)
            if is_full:
                self.collect(waiting=False)

    def collect(self, *, waiting: bool) -> None:
        """Add the values that have arrived.

        Args:
            waiting: Wait for all copied values. Those of a stream under capture come later, because
                an event would become part of the graph.
        """
        with self._lock, own_operators():
            if waiting:
                for stream in [each for each in self._open if not _is_captured(each)]:
                    self._close(stream)
            done: list[_Deferred] = []
            while self._batches:
                event, deferred = self._batches[0]
                if waiting or len(self._batches) > _MOST_BATCHES:
                    event.synchronize()
                elif not event.query():
                    break
                self._batches.popleft()
                done += deferred
        for each in done:
            self._add(each)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._open.clear()
            self._batches.clear()

    def _close(self, stream: Any) -> None:
        """End the stream's batch. The lock is held."""
        self._batches.append((stream.record_event(), self._open.pop(stream)))

    def _add(self, deferred: _Deferred) -> None:
        metrics = []
        for name, host in deferred.values:
            try:
                metrics += normalize_metrics({name: host})
            except MetricError as error:
                self._report(deferred.kernel, str(error))
        try:
            _native.add_deferred_metrics(deferred.place, metrics)
        except MetricError as error:
            self._report(deferred.kernel, str(error))


def _converted(name: str, tensor: Any) -> Any:
    """For upstream's trees: convert to their type, by a kernel that they show."""
    if not flags.upstream_shape:
        return tensor
    import torch

    kind = ROOFLINE_TYPES.get(name, float if tensor.is_floating_point() else int)
    return tensor.to(torch.float64 if kind is float else torch.int64)


def _is_captured(stream: Any) -> bool:
    import torch

    with torch.cuda.stream(stream):
        return bool(torch.cuda.is_current_stream_capturing())


def is_late(value: object) -> bool:
    """Return whether a value is a tensor on a GPU."""
    return bool(getattr(value, "is_cuda", False))
