"""The backend passes the contract test that third parties use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

PROGRAM = """
import itertools
from fakes.doubles import Cupti
from proton_bench.recording.session.session import SessionOptions, open_session
from proton_bench.plugin.contract import assert_backend_contract
from proton_bench_plugins import cupti
gpu, numbers = Cupti(), itertools.count()
assert_backend_contract(
    cupti.BACKEND,
    modes=("", "copies=on:buffer_bytes=65536:flush_period_ms=0"),
    open_session=lambda: open_session(
        SessionOptions(name=f"session{next(numbers)}", backend="cupti")
    ),
    workload=lambda: gpu.launch("kernel", 7),
)
print("kept")
"""


def test_cupti_keeps_the_contract(cupti_doubles: Doubles, tmp_path: Path) -> None:
    head = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", head + PROGRAM],
        cwd=tmp_path,
        env=cupti_doubles.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.stdout.strip() == "kept", done.stderr
    assert list(tmp_path.iterdir()) == []
