"""Names of kernels that stay the same from one compilation to the next.

Inductor numbers its kernels in the order of their generation, so that a change anywhere in a model
renames all that follow. Files keep the names as they were; reports and comparisons leave the
running number out, except for raw names.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from proton_bench.model.frame import StringTable
from proton_bench.model.profile import Profile

__all__ = ["stable_name", "steady_name", "with_stable_names"]

# triton_poi_fused_add_relu_0, triton_tem_fused_mm_12, cpp_fused_add_3: the kind of kernel, what it
# computes, and the number. A name without "fused" is not Inductor's, whatever its end.
_NUMBERED = re.compile(r"(?P<stem>(?:triton_[a-z]{3}|cpp)_fused(?:_\w+?)?)_\d+")
_PYTHON_FRAME = re.compile(r"(?P<file>.*):\d+@(?P<function>.*)", re.DOTALL)


def stable_name(name: str) -> str:
    """Return the name without Inductor's running number; other names are returned unchanged."""
    if "_fused_" not in name:
        return name
    match = _NUMBERED.fullmatch(name)
    return name if match is None else match["stem"]


def with_stable_names(profile: Profile) -> Profile:
    """Return the profile with stable names; kernels that then share a name stay separate rows."""
    stable = [stable_name(text) for text in profile.strings]
    if stable == list(profile.strings):
        return profile
    table = StringTable()
    places = np.array([table.index(text) for text in stable], dtype=profile.frames.dtype)
    return replace(profile, frames=places[profile.frames], strings=table.texts())


def steady_name(name: str) -> str:
    """Return the part of a name that other edits of the program do not change.

    That is its stable name, and for ``file:line@function`` of a Python frame ``file@function``.
    """
    if "@" in name:
        match = _PYTHON_FRAME.fullmatch(name)
        return name if match is None else f"{match['file']}@{match['function']}"
    return stable_name(name)
