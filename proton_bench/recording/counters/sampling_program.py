"""The program of the process that samples counters: ``sampling_program.py MODULE``.

It takes the native module from its file and nothing else of the package, so that it starts the same
way whatever the search path of the recorded program holds.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

_SOCKET = 0  # standard input
_LOWEST_PRIORITY = 19

if __name__ == "__main__":
    os.setpriority(os.PRIO_PROCESS, 0, _LOWEST_PRIORITY)
    spec = spec_from_file_location("proton_bench._native", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    native = module_from_spec(spec)
    spec.loader.exec_module(native)
    native.serve_counter_samples(_SOCKET)
