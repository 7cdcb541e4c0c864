"""The passes that compile records to machine code, in upstream's order with every option."""

from __future__ import annotations

from typing import Any

from proton_bench_plugins.instrumentation.compiler.target import Target
from proton_bench_plugins.instrumentation.settings import Settings

__all__ = ["SCRATCH_ALIGNMENT", "add_llvm_passes", "add_ttgir_passes"]

# Alignment of a launch's buffer in bytes.
SCRATCH_ALIGNMENT = 128
_LEAST_SCRATCH = 1  # the pass makes it as large as it needs
_AMPLE_SHARED = 1 << 26  # bytes; no device has as many


def add_ttgir_passes(
    pm: Any, settings: Settings, target: Target, *, room_bytes: int | None = None
) -> None:
    """Add the passes that turn records of TTGIR into stores of clock values.

    Args:
        pm: ``ir.pass_manager`` of Triton's bindings.
        settings: Options of the mode.
        target: Device to compile for.
        room_bytes: What the records of a program need; None: the pass takes what there is. A
            size that the settings name goes first.
    """
    from triton._C.libtriton import passes, proton

    strategy = "selective" if settings.warp_ids else "none"
    proton.add_convert_proton_to_protongpu(  # the bindings take their arguments by place only
        pm,
        _choice(proton.METRIC_TYPE, settings.metric_type),
        _choice(proton.SAMPLING_STRATEGY, strategy),
        ",".join(str(warp) for warp in settings.warp_ids),
        _choice(proton.GRANULARITY, settings.granularity),
        _choice(proton.BUFFER_STRATEGY, settings.buffer_strategy),
        _choice(proton.BUFFER_TYPE, settings.buffer_type),
        settings.buffer_size or room_bytes or 0,
        _shared_limit(settings, target),
        _LEAST_SCRATCH,
        SCRATCH_ALIGNMENT,
        settings.wide_clock,
    )
    passes.common.add_cse(pm)
    if "sched_stores" in settings.optimizations:
        proton.add_schedule_buffer_store(pm)
    proton.add_allocate_proton_shared_memory(pm)
    if "sched_barriers" in settings.optimizations and target.kind == "hip":
        proton.add_sched_barriers(pm)


def add_llvm_passes(pm: Any, target: Target) -> None:
    """Add the passes that turn those stores into instructions of the device.

    Args:
        pm: ``ir.pass_manager`` of Triton's bindings.
        target: Device to compile for.
    """
    from triton._C.libtriton import proton

    # From 3.9 on Triton lays out the buffer itself.
    lay_out = getattr(proton, "add_allocate_proton_global_scratch_buffer", None)
    if lay_out is not None:
        lay_out(pm)
    if target.kind == "cuda":
        proton.add_convert_proton_nvidia_gpu_to_llvm(pm)
    else:
        proton.add_convert_proton_amd_gpu_to_llvm(pm, target.arch)


def _shared_limit(settings: Settings, target: Target) -> int:
    """Return the shared memory that the pass may use, in bytes.

    Where several programs fit a multiprocessor it gives records no more than 4 % of it, however
    much was asked for. Who asks gets it: `check_space` holds the kernel to the device's limit.
    """
    return _AMPLE_SHARED if settings.buffer_size else target.max_shared


def _choice(choices: Any, name: str) -> Any:
    return getattr(choices, name.upper())
