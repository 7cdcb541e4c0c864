"""Buffers of kernels in a mode of a plugin, kept until they are read by its reader.

The content is unknown here, so nothing is reduced on the GPU: whole buffers are copied back. That
waits for the GPU, once per flush or when they take too much memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

from proton_bench import _native
from proton_bench.errors import UsageError
from proton_bench.plugin.kernel_mode import KernelBuffer, KernelMode
from proton_bench.recording.context.metric import Metric, normalize_metrics, own_operators
from proton_bench.recording.stderr import warn
from proton_bench_plugins.instrumentation.compiler.scope_table import KernelScopes


class DeviceMemory(Protocol):
    """Memory of the current device, from torch."""

    def allocate(self, size: int) -> Any:
        """Return zeroed memory with ``data_ptr()``, in the order of the current stream."""

    def fetch(self, memory: Any) -> memoryview:
        """Wait for the memory, and return its bytes."""


class TorchMemory:
    """Memory of torch's allocator."""

    def allocate(self, size: int) -> Any:
        """Return zeroed memory."""
        import torch

        with _unseen():
            return torch.zeros(size, dtype=torch.uint8, device="cuda")

    def fetch(self, memory: Any) -> memoryview:
        """Wait for the memory, and return its bytes."""
        with _unseen():
            return memoryview(memory.cpu().numpy())


@contextmanager
def _unseen() -> Iterator[None]:
    """Keep work of this thread out of the tree, because it is not the target's."""
    _native.mute_launches()
    try:
        with own_operators():
            yield
    finally:
        _native.unmute_launches()


_MOST_KEPT_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class _Kernel:
    scopes: KernelScopes
    metadata: Mapping[str, Any]
    ir: str


@dataclass(frozen=True, slots=True)
class _Launch:
    place: int
    kernel: _Kernel
    memory: Any
    size: int


class _LaunchFrames(_native.launch_hook):
    """Opens the frame of a kernel below the scopes that are open on the calling thread."""

    def keep_place(self, kernel: str) -> int:
        """Keep the place of a kernel's frame for values that come later; 0 without a session."""
        self.enter(SimpleNamespace(data={"name": kernel}, extras=[]))
        try:
            return _native.defer_metrics()
        finally:
            self.exit(None)


class ValueRuntime:
    """Gives launches buffers, and their content to a mode's reader.

    Args:
        mode: The mode.
        byte_limit: Most bytes of one buffer.
        memory: Allocator of buffers.
    """

    def __init__(
        self, mode: KernelMode, byte_limit: int, memory: DeviceMemory | None = None
    ) -> None:
        self._mode = mode
        self._byte_limit = byte_limit
        self._memory = memory if memory is not None else TorchMemory()
        self._kernels: dict[int, _Kernel] = {}
        self._pending = threading.local()
        self._lock = threading.Lock()
        self._launches: list[_Launch] = []
        self._kept_bytes = 0
        self._read = 0
        self._frames = _LaunchFrames()
        self._kinds = {metric.name: metric.kind for metric in mode.metrics}

    def start(self) -> None:
        """Do nothing: a buffer is made when a launch asks for it."""

    def stop(self) -> None:
        """Drop unread buffers."""
        with self._lock:
            self._launches.clear()
            self._kept_bytes = 0

    def allocator(self, size: int, alignment: int, stream: int | None) -> Any:
        """Return the buffer of this thread's next launch.

        Raises:
            UsageError: It would be larger than the mode allows.
        """
        del alignment, stream  # torch aligns to more; the launch is on torch's current stream
        if size > self._byte_limit:
            raise UsageError(
                f"a launch needs {size} bytes for mode {self._mode.name!r}, but byte_limit is "
                f"{self._byte_limit}: raise it, or launch a smaller grid"
            )
        memory = self._memory.allocate(size)
        if getattr(self._pending, "memory", None) is not None:  # that launch never ended
            _native.add_dropped("buffers of kernels", 1)
        self._pending.memory, self._pending.size = memory, size
        return self._pending.memory

    def read_records(self, stream: int) -> bytes | None:
        """Return None: the buffers of a plugin's mode are for its own reader."""
        del stream
        return None

    def launch_exit(self, metadata: Any) -> None:
        """Keep the buffer of the launch that this thread made."""
        memory = getattr(self._pending, "memory", None)
        kernel = self._kernels.get(metadata.data.get("function"))
        if memory is None or kernel is None:  # no buffer, or that of a launch around it
            return
        self._pending.memory = None
        launch = _Launch(
            self._frames.keep_place(kernel.scopes.name), kernel, memory, self._pending.size
        )
        with self._lock:
            self._launches.append(launch)
            self._kept_bytes += launch.size
            is_full = self._kept_bytes > _MOST_KEPT_BYTES
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Wait for the launches, and add the content of their buffers.

        During graph capture buffers are kept, because waiting would end the capture.
        """
        if _native.any_capture_open():
            return
        with self._lock:
            launches, self._launches = self._launches, []
            self._kept_bytes = 0
        for launch in launches:
            try:
                self._add(launch)
            except Exception as error:  # noqa: BLE001 - a mode's reader may raise anything
                _native.add_dropped("buffers of kernels", 1)
                name = launch.kernel.scopes.name
                warn(f"a buffer of kernel {name!r} is not read: {type(error).__name__}: {error}")

    def add_kernel(self, function: int, kernel: KernelScopes) -> None:
        """Register the kernel of a loaded function."""
        metadata = json.loads(kernel.metadata_path.read_text(encoding="utf-8"))
        ir = kernel.ttgir_path.read_text(encoding="utf-8")
        self._kernels[function] = _Kernel(kernel, metadata, ir)

    def add_plain(self, function: int) -> None:
        """Learn that a loaded function records nothing."""

    def remove_kernel(self, function: int) -> None:
        """Forget a function."""
        self._kernels.pop(function, None)

    def facts(self) -> dict[str, Any]:
        """Return how many buffers were read."""
        return {"buffers_read": self._read}

    def _add(self, launch: _Launch) -> None:
        kernel = launch.kernel
        buffer = KernelBuffer(
            kernel=kernel.scopes.name,
            data=self._memory.fetch(launch.memory),
            bytes_per_program=kernel.scopes.profile_scratch_size,
            metadata=kernel.metadata,
            ir=kernel.ir,
        )
        metrics = list(self._metrics(self._mode.reader(buffer)))
        if metrics and launch.place:
            _native.add_deferred_metrics(launch.place, metrics)
        self._read += 1

    def _metrics(self, values: Iterable[tuple[str, float]]) -> Iterable[Metric]:
        for name, value in values:
            if name not in self._kinds:
                known = ", ".join(self._kinds) or "none"
                raise UsageError(
                    f"mode {self._mode.name!r} declares no metric {name!r}; it declares: {known}"
                )
            kind = self._kinds[name]
            yield from normalize_metrics({name if kind == "inc" else f"{name} ({kind})": value})
