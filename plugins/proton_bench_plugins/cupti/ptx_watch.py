"""The PTX of Triton's kernels: before Triton 3.9 only it has information about inlining."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proton_bench import _native
from proton_bench.recording.kernels.triton_hooks import TritonHeads

__all__ = ["PtxWatch"]


class PtxWatch:
    """Passes the PTX of each kernel that Triton loads to the native core while attached."""

    def __init__(self) -> None:
        self._heads = TritonHeads({"kernel_load_end_hook": _loaded})

    def attach(self) -> None:
        """Begin, unless it has begun."""
        self._heads.attach()

    def detach(self) -> None:
        """End, if it has begun."""
        self._heads.detach()


def _loaded(module: Any, function: int, name: str, metadata_group: Any, hash: str) -> None:  # noqa: PLR0917 - Triton's signature
    del module, function, name, hash
    if not isinstance(metadata_group, Mapping):
        return
    files = {Path(str(file)).suffix: path for file, path in metadata_group.items()}
    if ".ptx" not in files or ".cubin" not in files:
        return
    try:
        image = Path(files[".cubin"]).read_bytes()
        ptx = Path(files[".ptx"]).read_text(encoding="utf-8", errors="replace")
    except (OSError, TypeError, ValueError):
        return  # lines show only the inlined code
    _native.note_ptx(image, ptx)
