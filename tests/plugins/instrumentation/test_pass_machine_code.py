"""Scopes of passes in machine code: the compiler takes them, and the clock is read for each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("proton_bench._native")
pytest.importorskip("triton")

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "gfx942", "gfx950")
KERNELS = ("matmul", "specialized_matmul", "count_down")
CASES = [(kernel, target) for kernel in KERNELS for target in TARGETS]


@pytest.mark.nightly
@pytest.mark.parametrize("triton", TRITONS, ids=lambda folder: folder or "installed")
def test_every_target_compiles_the_scopes_of_all_passes(triton: str, tmp_path: Path) -> None:
    found = run_on(triton, tmp_path, "pass_machine_program.py", "all", json.dumps(CASES))

    assert len(found) == len(CASES)
    for case, facts in zip(CASES, found, strict=True):
        assert facts["records"] == 2 * len(facts["names"]) > 0, case
        assert facts["clock_reads"] >= facts["records"], case
        assert facts["sass_clock_reads"] is None or facts["sass_clock_reads"] > 0, case
        assert facts["scratch"] > 0, case
        assert all("@pass_kernels.py:" in name for name in facts["names"].values()), case
