"""The native module, or the one clear error when it does not load.

All recording code imports ``native`` from here, so analysis never needs it.
"""

from __future__ import annotations

from proton_bench.errors import NativeModuleError

__all__ = ["native"]

try:
    from proton_bench import _native as native
except ImportError as error:
    raise NativeModuleError(
        f"the native module proton_bench._native does not load ({error}), so recording is "
        "impossible; analysis still works. Reinstall proton-bench with a C++ compiler and "
        "without PROTON_BENCH_BUILD_NATIVE=OFF"
    ) from error
