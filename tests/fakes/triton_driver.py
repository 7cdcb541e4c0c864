"""A driver for Triton without a device: kernels are compiled and loaded, and launches noted."""

from __future__ import annotations

from typing import Any

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime._allocation import _profile_allocator


class FakeDriver:
    """Pretends that a GPU is there.

    Attributes:
        launches: (kernel, bytes of its profile buffer) of each launch.
    """

    def __init__(self, backend: str = "cuda", arch: Any = 90, warp_size: int = 32) -> None:
        self.target = GPUTarget(backend, arch, warp_size)
        self.utils = self
        self.launches: list[tuple[str, int]] = []
        self._next_function = 1000
        driver.set_active(self)

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        """Return what launches a kernel."""
        return _Launcher(self, metadata)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 7

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return {"max_shared_mem": 232448, "arch": self.target.arch}

    def load_binary(self, *arguments: Any) -> tuple[int, int, int, int, int]:
        """Return (module, function, registers, spills, most threads)."""
        self._next_function += 1
        return 1, self._next_function, 32, 0, 1024

    def unload_module(self, module: int) -> None:
        pass


class _Launcher:
    def __init__(self, fake: FakeDriver, metadata: Any) -> None:
        self._fake = fake
        self._metadata = metadata

    def __call__(self, *arguments: Any) -> None:
        grid, launch_metadata = arguments[:3], arguments[6]
        size = self._metadata.profile_scratch_size * grid[0] * grid[1] * grid[2]
        knobs.runtime.launch_enter_hook(launch_metadata)
        if size:
            _profile_allocator(size, 128, arguments[3]).data_ptr()
        self._fake.launches.append((self._metadata.name, size))
        knobs.runtime.launch_exit_hook(launch_metadata)
