"""The code of Triton's kernels that were loaded before a session, which CUPTI does not report."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["LoadedCubin", "loaded_cubins"]

_COMPILER = "triton.compiler.compiler"


@dataclass(frozen=True, slots=True)
class LoadedCubin:
    """Code of a kernel.

    Attributes:
        image: The cubin.
        ptx: Its PTX, "" if unknown.
    """

    image: bytes
    ptx: str = ""


def loaded_cubins() -> Iterator[LoadedCubin]:
    """Yield the code of each kernel that Triton has on a GPU of this process, once.

    This imports nothing. Scanning all objects takes a few ms per million.
    """
    kind = getattr(sys.modules.get(_COMPILER), "CompiledKernel", None)
    if not isinstance(kind, type):
        return
    seen: set[int] = set()
    # Triton has no list of them: it has one cache per function and device.
    for each in gc.get_objects():
        if type(each) is not kind or getattr(each, "module", None) is None:
            continue
        image = getattr(each, "kernel", None)
        if isinstance(image, bytes) and image and hash(image) not in seen:
            seen.add(hash(image))
            yield LoadedCubin(image, _ptx(each))


def _ptx(kernel: object) -> str:
    texts = getattr(kernel, "asm", None)
    text = texts.get("ptx") if isinstance(texts, Mapping) else None
    return text if isinstance(text, str) else ""
