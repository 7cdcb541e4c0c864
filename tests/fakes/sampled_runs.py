"""Programs that are run under ``-m pcsampling`` on the doubles of libcupti."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.doubles import Doubles

TESTS = Path(__file__).parents[1]
HEAD = f"""
import sys; sys.path.insert(0, {str(TESTS)!r})
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
gpu.context_created(1)
gpu.module_loaded(5, 77, 4096)
gpu.pc_module("softmax_kernel", 77)
gpu.pc_module("nolines_gemm", 77)
"""
# A kernel of 3 ms under one scope and of 1 ms under another, and one that has no lines.
PROGRAM = """
with proton.scope("long"):
    gpu.launch_with("softmax_kernel", duration_ns=3_000_000)
with proton.scope("short"):
    gpu.launch_with("softmax_kernel", duration_ns=1_000_000)
gpu.launch_with("nolines_gemm", duration_ns=1_000_000)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, cupti_doubles: Doubles) -> Run:
    """Return ``run(program, mode, *options, **variables)``: proton, with cupti by default."""

    def run_program(
        program: str, mode: str, *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(HEAD + program, encoding="utf-8")
        command = [sys.executable, "-m", "proton_bench", "-n", "out", "-m", mode]
        command += options or ("-b", "cupti")
        return subprocess.run(
            [*command, str(script)],
            cwd=tmp_path,
            env=cupti_doubles.environment(**variables),
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run_program
