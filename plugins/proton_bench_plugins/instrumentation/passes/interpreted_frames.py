"""The position of an interpreted kernel, from the frames of its thread."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from types import FrameType

from proton_bench_plugins.instrumentation.passes.source_place import Place, own_first

__all__ = ["Spot", "find_spot"]

_EXECUTOR = "GridExecutor.__call__"
_INTERPRETER = os.path.join("triton", "runtime", "interpreter.py")
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_MOST_FRAMES = 200


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a kernel.

    Attributes:
        kernel: Name of the kernel.
        places: Lines, the closest first, as for a compiled operation.
        key: The instruction and its callers, because two loads may be on one line.
    """

    kernel: str
    places: tuple[Place, ...]
    key: tuple[Hashable, ...]


def find_spot(frame: FrameType | None) -> Spot | None:
    """Return the position of the kernel that runs in a frame, None without a kernel.

    Args:
        frame: The innermost frame.
    """
    places: list[Place] = []
    key: list[Hashable] = []
    kernel = ""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        code = frame.f_code
        if code.co_filename.endswith(_INTERPRETER):
            if code.co_qualname == _EXECUTOR:
                return Spot(kernel, own_first(places), tuple(key))
        elif not code.co_filename.startswith(_OURS):
            places.append(Place(code.co_filename, frame.f_lineno))
            key += (code, frame.f_lasti)
            kernel = code.co_name
        frame = frame.f_back
    return None
