"""Devices that kernels ran on, and the launch variants of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

# Kind of a device if a file does not say it.
UNNAMED_KIND = "GPU"


@dataclass(frozen=True, slots=True)
class Device:
    """One device and the facts that a roofline needs; 0 and "" mean unknown.

    Attributes:
        kind: "CUDA", "HIP", "CPU" or that of a third-party backend; `UNNAMED_KIND` if a file does
            not say it.
        index: Number of the device within its kind.
        arch: "90" for compute capability 9.0, "gfx942", or "".
        num_sms: Multiprocessors or compute units.
        clock_rate_khz: Highest core clock in kHz.
        memory_clock_rate_khz: Highest memory clock in kHz.
        bus_width_bits: Width of the memory bus in bits.
    """

    kind: str
    index: int
    arch: str = ""
    num_sms: int = 0
    clock_rate_khz: int = 0
    memory_clock_rate_khz: int = 0
    bus_width_bits: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """One way in which a kernel was launched.

    Attributes:
        code_hash: Hash of the compiled code, "" when unknown.
        grid: Blocks in x, y, z.
        block: Threads of a block in x, y, z.
        shared_bytes: Shared memory of a block in bytes, static and dynamic.
        signature: Argument types where known; "other" past the limit of variants per path.
        registers: Registers of a thread; 0 when unknown.
        raw_name: The kernel's name in the device's tools, "" if it is shown by that name.
        config: Choice of an autotuner for the code, "" if unknown.
        local_bytes: Local memory of a thread in bytes, where registers are spilled; -1 when
            unknown.
        instructions: Instructions in the assembly of the code by class, without classes that it
            has none of; empty when unknown.

    The last two follow from the code, so variants do not differ by them.
    """

    code_hash: str = ""
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    signature: str = ""
    registers: int = 0
    raw_name: str = ""
    config: str = ""
    local_bytes: int = field(default=-1, compare=False)
    instructions: dict[str, int] = field(default_factory=dict, compare=False)
