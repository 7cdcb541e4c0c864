"""Support for passes of kernel modes: a kernel's IR as text, and its part of a launch's buffer.

Triton is imported when a function here is called during a compile.
"""

from __future__ import annotations

import functools
import re
import tempfile
from pathlib import Path
from typing import Any

# The compiler's own request for a block of the buffer, because of a pair of records.
_PROBE = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.shared" = 0 : i32,
                   "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @probe() {
    proton.record start "probe"
    proton.record end "probe"
    tt.return
  }
}
"""
_ALLOCATION = re.compile(
    r"= (\S*global_scratch_alloc \{.*\bnbytes = )\d+( : i32.*\} : !tt\.ptr<i32>)"
)
_BLOCK_ALIGNMENT = 128


def allocate_block(value: str, size: int) -> str:
    """Return the operation that gives a program its block of the launch's buffer.

    Args:
        value: Name of the pointer to it, e.g. ``%block``; its type is ``!tt.ptr<i32>``.
        size: Bytes of the block of one program; Triton takes multiples of 128.
    """
    before, after = _allocation()
    rounded = -(-size // _BLOCK_ALIGNMENT) * _BLOCK_ALIGNMENT
    return f"{value} = {before}{rounded}{after}"


class TextPasses:
    """Passes of a mode that edits the text of a kernel's TTGIR; subclasses write ``edit``."""

    def edit(self, text: str, kernel: str) -> str:
        """Return the changed text; the same text leaves the kernel as it is.

        Args:
            text: TTGIR, with locations.
            kernel: Name of the kernel.
        """
        raise TypeError(f"{type(self).__name__} does not define edit({text[:0]!r}, {kernel!r})")

    def rewrite(self, module: Any, kernel: str) -> Any:
        """Pass the kernel's text to ``edit``, and parse the result.

        Args:
            module: ``ir.module`` of Triton's bindings.
            kernel: Name of the kernel.
        """
        text = module.str()
        edited = self.edit(text, kernel)
        return module if edited == text else _parse(edited, module.context)

    def lower_ttgir(self, pm: Any, backend: str, arch: str) -> None:
        """Add nothing: Triton lowers the TTGIR of the text itself."""

    def lower_llvm(self, pm: Any, backend: str, arch: str) -> None:
        """Add the pass that lowers the block to an address.

        Args:
            pm: ``ir.pass_manager`` of Triton's bindings.
            backend: ``nvidia`` or ``amd``.
            arch: Architecture, e.g. ``90`` or ``gfx942``.
        """
        from triton._C.libtriton import proton

        lay_out = getattr(proton, "add_allocate_proton_global_scratch_buffer", None)
        if lay_out is not None:
            lay_out(pm)
        if backend == "nvidia":
            proton.add_convert_proton_nvidia_gpu_to_llvm(pm)
        else:
            proton.add_convert_proton_amd_gpu_to_llvm(pm, arch)


def _parse(text: str, context: Any) -> Any:
    from triton._C.libtriton import ir

    with tempfile.TemporaryDirectory(prefix="proton_bench") as folder:
        path = Path(folder, "kernel.ttgir")
        path.write_text(text, encoding="utf-8")
        module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module


@functools.cache
def _allocation() -> tuple[str, str]:
    """Let the compiler print the operation, because its form depends on the version of Triton."""
    from triton._C.libtriton import ir, proton

    context = ir.context()
    ir.load_dialects(context)
    proton.load_dialects(context)
    module = _parse(_PROBE, context)
    pm = ir.pass_manager(context)
    proton.add_convert_proton_to_protongpu(
        *(pm, proton.METRIC_TYPE.CYCLE, proton.SAMPLING_STRATEGY.NONE, "", proton.GRANULARITY.WARP),
        *(proton.BUFFER_STRATEGY.CIRCULAR, proton.BUFFER_TYPE.GLOBAL, 0, 65536),
        *(1, _BLOCK_ALIGNMENT, True),
    )
    pm.run(module, "probe")
    found = _ALLOCATION.search(module.str_nodebug())
    if found is None:
        raise LookupError("this Triton's compiler allocates the record buffer differently")
    return found[1], found[2]
