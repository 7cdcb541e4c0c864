"""The scopes of the kernels here: ours, or upstream's in a process that measures upstream.

Kernels name their scopes through ``pl``, so that the same source is measured under both. Set
``BENCHMARK_SCOPES`` to "ours" or "upstream" before this module is imported.
"""

from __future__ import annotations

import os
from types import ModuleType


def _language(which: str) -> ModuleType:
    if which == "upstream":
        import triton.profiler.language as language
    else:
        import proton_bench.language as language  # type: ignore[no-redef]
    language.enable_semantic("triton")
    return language


pl = _language(os.environ.get("BENCHMARK_SCOPES", "ours"))
