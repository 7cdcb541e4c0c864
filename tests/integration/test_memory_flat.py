"""Memory stays level however many scope names and phases a session sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path

import proton_bench as proton
from proton_bench import _native, data

PHASES, NAMES = 60, 500


def resident_kb():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def phase(number):
    for name in range(number * NAMES, (number + 1) * NAMES):
        with proton.scope(f"request {name}", {"flops": 1}):
            launch = _native.emit_launch()
        _native.emit_kernel(launch, f"kernel {name % 7}", 0, 10, "CUDA", 0, 0)
    alive = _native.live_context_count(), _native.live_name_count()
    data.advance_phase(session)
    data.clear(session, number)
    return alive


session = proton.start("flat", backend="cpu")
phase(0)
proton.finalize(session)
kept = _native.live_name_count()  # of metrics, which a process keeps
for context in ("shadow", "python"):
    session = proton.start("flat", backend="cpu", context=context)
    warm = [phase(number) for number in range(20)][-1]
    before_kb = resident_kb()
    last = [phase(number) for number in range(20, PHASES)][-1]
    growth_kb = resident_kb() - before_kb
    proton.finalize(session)
    names = _native.live_name_count() - kept
    print(context, warm == last, growth_kb, _native.live_context_count(), names)
"""
GROWTH_LIMIT_KB = 2048  # 20 000 leaked names, the least that a leak would be, take more


def test_memory_is_level_over_phases_full_of_new_names(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert result.returncode == 0, result.stderr
    for line in result.stdout.splitlines():
        context, is_level, growth_kb, contexts, names = line.split()
        assert is_level == "True", context
        assert int(growth_kb) < GROWTH_LIMIT_KB, context
        assert (int(contexts), int(names)) == (0, 0), context
    assert result.stdout.count("\n") == 2
