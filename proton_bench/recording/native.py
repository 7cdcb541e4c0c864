"""The native module, or the one clear error when it does not load.

All recording code imports ``native`` from here, so analysis never needs it.
"""

from __future__ import annotations

import importlib

from proton_bench.errors import NativeModuleError

__all__ = ["native"]


def _is_subinterpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # of Python 3.13, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() != interpreters.get_main())
    return False


if _is_subinterpreter():  # the module would wait for the lock of the main one
    raise NativeModuleError(
        "proton_bench records the main interpreter alone: use scopes and sessions there, not in a "
        "subinterpreter"
    )
try:
    from proton_bench import _native as native
except ImportError as error:
    raise NativeModuleError(
        f"the native module proton_bench._native does not load ({error}), so recording is "
        "impossible; analysis still works. Reinstall proton-bench with a C++ compiler and "
        "without PROTON_BENCH_BUILD_NATIVE=OFF"
    ) from error
