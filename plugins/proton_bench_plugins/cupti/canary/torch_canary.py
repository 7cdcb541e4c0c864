"""The canary of NVIDIA GPUs: a loop of dependent FMAs that counts cycles over the global timer.

That gives the clock of the multiprocessors. It is launched through the driver and not through a
library of the target, so allocator, random generators and compiled kernels are unaffected.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from proton_bench import _native
from proton_bench.plugin.canary import ScopeMaker, Ticks
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench_plugins.patch import Patch

_LIBRARY = "libcuda.so.1"
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Driver:
    """The functions of libcuda; a failing call raises OSError.

    Args:
        library: Library with the functions as attributes.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    @classmethod
    def loaded(cls) -> Driver | None:
        """Return the driver if it is already loaded, or None."""
        try:
            return cls(ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOW | os.RTLD_NOLOAD))
        except OSError:
            return None

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            OSError: It returned an error.
        """
        code = int(getattr(self._library, name)(*arguments))
        if code != 0:
            raise OSError(f"{name} failed with code {code} of the CUDA driver")

    def quietly(self, name: str, *arguments: Any) -> None:
        """Call a function, ignoring failure."""
        getattr(self._library, name)(*arguments)

    def device_in_use(self) -> int | None:
        """Return the first device with a context, or the only device; None if CUDA was not started.

        A context takes memory of its device, so none is created if there are several devices.
        """
        count = ctypes.c_int()
        if self._library.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return None
        flags, active = ctypes.c_uint(), ctypes.c_int()
        for device in range(count.value):
            references = (ctypes.byref(flags), ctypes.byref(active))
            self.call("cuDevicePrimaryCtxGetState", ctypes.c_int(device), *references)
            if active.value:
                return device
        return 0 if count.value == 1 else None

    def exchange_capture(self, mode: int) -> int:
        """Set this thread's capture mode; return the previous one."""
        return _native.exchange_capture_mode(mode) if mode >= 0 else mode

    def push_context(self, device: int) -> None:
        """Make the primary context current; the target keeps it, so it is not released."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(device))
        self.call("cuCtxPushCurrent_v2", context)

    def pop_context(self) -> None:
        """Remove it from this thread."""
        self.quietly("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def load_module(self, ptx: bytes) -> ctypes.c_void_p:
        """Compile PTX and load it."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx)
        return module

    def function(self, module: ctypes.c_void_p, name: bytes) -> ctypes.c_void_p:
        """Return a kernel of a module."""
        found = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), module, name)
        return found

    def multiprocessors(self, device: int) -> int:
        """Return how many multiprocessors a device has."""
        count = ctypes.c_int()
        where = (ctypes.c_int(_MULTIPROCESSORS), ctypes.c_int(device))
        self.call("cuDeviceGetAttribute", ctypes.byref(count), *where)
        return count.value

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Return memory of the device."""
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def stream(self) -> ctypes.c_void_p:
        """Return a non-blocking stream."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(_NON_BLOCKING))
        return made


_NAME = b"proton_canary"
_FMA = "fma.rn.f32 %value, %value, 0f3F7FBE77, 0f3A83126F;\n"  # 0.999 and 0.001: it tends to 1
# Reads of the clocks stand in blocks of their own beside the loop, so that no compiler moves them
# into it. Thread 0 of each block stores cycles, ns and the value, without which there is no loop.
_PTX = f"""
.version 6.0
.target sm_50
.address_size 64

.visible .entry proton_canary(.param .u64 out, .param .u32 rounds)
{{
.reg .pred %again, %others;
.reg .f32 %value;
.reg .u32 %left, %block, %thread;
.reg .u64 %place, %offset, %begin, %began, %end, %ended;
ld.param.u64 %place, [out];
ld.param.u32 %left, [rounds];
cvta.to.global.u64 %place, %place;
mov.u32 %thread, %tid.x;
mov.u32 %block, %ctaid.x;
mul.wide.u32 %offset, %block, 24;
add.u64 %place, %place, %offset;
cvt.rn.f32.u32 %value, %thread;
bar.sync 0;
mov.u64 %begin, %clock64;
mov.u64 %began, %globaltimer;
LOOP:
{_FMA * 16}sub.u32 %left, %left, 1;
setp.ne.u32 %again, %left, 0;
@%again bra LOOP;
bar.sync 0;
mov.u64 %end, %clock64;
mov.u64 %ended, %globaltimer;
setp.ne.u32 %others, %thread, 0;
@%others bra DONE;
sub.u64 %end, %end, %begin;
sub.u64 %ended, %ended, %began;
st.global.u64 [%place], %end;
st.global.u64 [%place+8], %ended;
st.global.f32 [%place+16], %value;
DONE:
ret;
}}
""".encode("ascii")
_THREADS = 32
# 16 FMAs of 4 cycles each: about 0.2 ms, 6000 times the tick of the timer.
_ROUNDS = 6000
_WORDS = 3


class CanaryKernel:
    """The kernel with its memory and stream, for a block.

    Args:
        driver: Calls the driver.
        device: Number of the device.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver = driver
        self._device = device
        self._undo = ExitStack()

    def __enter__(self) -> CanaryKernel:
        """Make the device's context current on this thread, and load the kernel."""
        driver = self._driver
        with self._undo as undo:
            undo.callback(driver.exchange_capture, driver.exchange_capture(RELAXED))
            driver.push_context(self._device)
            undo.callback(driver.pop_context)
            module = driver.load_module(_PTX)
            undo.callback(driver.quietly, "cuModuleUnload", module)
            self._function = driver.function(module, _NAME)
            self._blocks = driver.multiprocessors(self._device)
            self._clocks = (ctypes.c_uint64 * (_WORDS * self._blocks))()
            self._memory = driver.allocate(ctypes.sizeof(self._clocks))
            undo.callback(driver.quietly, "cuMemFree_v2", self._memory)
            self._stream = driver.stream()
            undo.callback(driver.quietly, "cuStreamDestroy_v2", self._stream)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Release everything."""
        self._undo.close()

    def launch(self) -> tuple[int, int]:
        """Run the loop on all multiprocessors and return cycles and ns, of all blocks together."""
        driver = self._driver
        arguments = (ctypes.c_uint64(self._memory.value), ctypes.c_uint32(_ROUNDS))
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(each) for each in arguments))
        shape = (self._blocks, 1, 1, _THREADS, 1, 1, 0)
        driver.call("cuLaunchKernel", self._function, *shape, self._stream, pointers, None)
        size = ctypes.c_size_t(ctypes.sizeof(self._clocks))
        driver.call("cuMemcpyDtoHAsync_v2", self._clocks, self._memory, size, self._stream)
        driver.call("cuStreamSynchronize", self._stream)
        return sum(self._clocks[0::_WORDS]), sum(self._clocks[1::_WORDS])


# A clock is steady if this many launches in a row differ at most by this share.
_STEADY_LAUNCHES = 8
_STEADY = 0.002
_MOST_WARM_UP = 300
_COUNTED = 10


class TorchCanary:
    """Runs when torch starts CUDA; in other programs only at their end."""

    def __init__(self) -> None:
        self._import: ImportCallback | None = None
        self._patch: Patch | None = None
        self._due: Callable[[], None] | None = None

    def watch(self, due: Callable[[], None]) -> None:
        """Call back once torch has started CUDA."""
        self._due = due
        self._import = ImportCallback("torch.cuda", self._attach)

    def unwatch(self) -> None:
        """Detach from torch."""
        self._due = None
        if self._import is not None:
            self._import.cancel()
        if self._patch is not None:
            self._patch.remove()

    def launch(self, scope: ScopeMaker, names: tuple[str, str]) -> Ticks | None:
        """Launch on the first device that the target uses; see `Canary.launch`."""
        driver = Driver.loaded()
        device = None if driver is None else driver.device_in_use()
        if driver is None or device is None:
            return None
        around, warming = names
        with CanaryKernel(driver, device) as kernel, scope(around):
            with scope(warming):
                _warm_up(kernel)
            counted = [kernel.launch() for _ in range(_COUNTED)]
        cycles, ns = (sum(each[place] for each in counted) for place in (0, 1))
        return Ticks(cycles, ns, _COUNTED)

    def _attach(self, module: ModuleType) -> None:
        cuda: Any = module
        if cuda.is_initialized():
            self._tell()
        elif hasattr(cuda, "_lazy_init"):
            self._patch = Patch(module, "_lazy_init", self._around_start)

    def _around_start(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        import torch.cuda

        if torch.cuda.is_initialized():  # else it is called by its own start
            if self._patch is not None:
                self._patch.remove()
            self._tell()
        return result

    def _tell(self) -> None:
        due, self._due = self._due, None
        if due is not None:
            due()


def _warm_up(kernel: CanaryKernel) -> None:
    """Launch until the clock is steady."""
    clocks: list[float] = []
    for _ in range(_MOST_WARM_UP):
        cycles, ns = kernel.launch()
        clocks.append(cycles / max(ns, 1))
        last = clocks[-_STEADY_LAUNCHES:]
        if len(last) == _STEADY_LAUNCHES and max(last) - min(last) <= _STEADY * max(last):
            return
