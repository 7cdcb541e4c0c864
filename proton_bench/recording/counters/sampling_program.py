"""The program of the process that samples counters: ``sampling_program.py MODULE PROCESS``.

It takes the native module from its file and nothing else of the package, so that it starts the same
way whatever the search path of the recorded program holds. PROCESS is the recorded program, for
those who look at a list of processes.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location

_SOCKET = 0  # its end of a pair, set by the native core

if __name__ == "__main__":
    spec = spec_from_file_location("proton_bench._native", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    native = module_from_spec(spec)
    spec.loader.exec_module(native)
    native.serve_counter_samples(_SOCKET)
