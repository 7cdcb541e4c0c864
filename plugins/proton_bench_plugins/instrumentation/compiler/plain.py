"""Compiles a kernel's TTGIR again without records, to compare resources."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proton_bench_plugins.instrumentation.compiler.registers import read_registers

__all__ = ["PlainKernel", "compile_plain", "strip_records"]

_RECORD = re.compile(r"^[ \t]*proton\.(record|event)\b.*\n", re.MULTILINE)
_EVENT = re.compile(r'^([ \t]*%\S+ = )proton\.allocate_event "(?:[^"\\]|\\.)*" : i32', re.MULTILINE)
_OWN = {"hash", "target", "instrumentation_mode", "ir_override", "maxnreg"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainKernel:
    """A kernel without records.

    Attributes:
        registers: Registers of a thread, None if the binary does not say.
        shared: Bytes of shared memory of a program.
    """

    registers: int | None
    shared: int


def strip_records(text: str) -> str:
    """Return TTGIR without its records and events.

    Args:
        text: TTGIR.
    """
    return _EVENT.sub(r"\1arith.constant 0 : i32", _RECORD.sub("", text))


def compile_plain(ttgir: Path, metadata: dict[str, Any], maxnreg: int | None) -> PlainKernel:
    """Compile a kernel without its records; Triton's cache has it the second time.

    Args:
        ttgir: The kernel's TTGIR with records.
        metadata: Its metadata.
        maxnreg: Limit of registers that it would have without records.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    target = metadata["target"]
    options = {key: _frozen(value) for key, value in metadata.items() if key not in _OWN}
    with tempfile.TemporaryDirectory(prefix="proton_bench") as folder:
        path = Path(folder, ttgir.name)
        path.write_text(strip_records(ttgir.read_text(encoding="utf-8")), encoding="utf-8")
        kernel = triton.compile(
            str(path),
            target=GPUTarget(target["backend"], target["arch"], target["warp_size"]),
            options={**options, "instrumentation_mode": "", "maxnreg": maxnreg},
        )
    binary = next((p for n, p in kernel.metadata_group.items() if n.endswith(".cubin")), "")
    return PlainKernel(registers=read_registers(Path(binary)), shared=int(kernel.metadata.shared))


def _frozen(value: Any) -> Any:
    """Options are hashed, and JSON made lists of tuples."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
