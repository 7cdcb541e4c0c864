"""Timelines of any length are recorded in the same memory, and nothing of them is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

TESTS = Path(__file__).resolve().parents[1]
PROGRAM = """
import json, sys
from pathlib import Path

sys.path.append(sys.argv[1])
from fakes.doubles import Cupti
import proton_bench as proton
from proton_bench.recording.session.recording import known_session

KERNELS, AT_ONCE, PER_SCOPE = 240_000, 10_000, 4
gpu = Cupti()

def resident_kb():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))

def launch(count):
    for _ in range(count // PER_SCOPE):
        with proton.scope("layer"):
            gpu.bench(PER_SCOPE)
    gpu.drain()
    core.settle()  # unfinished work of the writer does not count as growth
    return resident_kb()

session = proton.start("trace", backend="cupti", data="trace")
core = known_session(session).core
levels_kb = [launch(AT_ONCE) for _ in range(KERNELS // AT_ONCE)]
proton.deactivate(session)
core.settle()
counts = core.timeline_counts()
proton.finalize(session)
print(json.dumps({**counts, "kernels": KERNELS, "levels_kb": levels_kb}))
"""
WARM = 10  # of the first levels: texts of an encoder grow until a piece of the file fits
# What follows are 290 000 events; held, they would take 18 MB.
GROWTH_LIMIT_KB = 8192


@pytest.mark.parametrize("format_name", ["perfetto", "chrome_trace"])
def test_memory_is_level_while_a_timeline_grows(
    cupti_doubles: Doubles, tmp_path: Path, format_name: str
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(TESTS)],
        cwd=tmp_path,
        env=cupti_doubles.environment(PROTON_BENCH_TRACE_FORMATS=format_name),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    kernels, levels_kb = found["kernels"], found["levels_kb"]
    assert found["events"] == 2 * kernels + kernels // 4  # calls, kernels and scopes
    assert found["lost"] == 0
    assert levels_kb[-1] - levels_kb[WARM] < GROWTH_LIMIT_KB, levels_kb
