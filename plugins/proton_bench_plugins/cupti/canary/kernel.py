"""One kernel in PTX, loaded into a context that the target has or will have."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack

from proton_bench_plugins.cupti.canary.driver import RELAXED, Driver

__all__ = ["CanaryKernel"]

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
