"""Machine code of records for AMD's GPUs: what it reads, where it puts it, and for which GPU it is.

Nothing runs: the compilers of Triton's wheels make the code without a GPU.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("proton_bench._native")
pytest.importorskip("triton")


ELF_AMDGPU = 224
ELF_GPU = {"gfx942": 0x4C, "gfx950": 0x4F}  # lowest byte of an ELF file's flags
RECORDS = {"add": 4, "matmul": 4, "gluon_copy": 4}
GLOBAL = "default:buffer_type=global"
CASES = [
    *((kernel, target, "default") for kernel in RECORDS for target in ELF_GPU),
    *(("add", target, GLOBAL) for target in ELF_GPU),
    *(("add", target, None) for target in ELF_GPU),
]

Found = dict[tuple[str, str, str | None], dict[str, Any]]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: Path(folder).name or "installed")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Return the result of each case; one process compiles them all."""
    cache = tmp_path_factory.mktemp("cache")
    answer = run_on(request.param, cache, "instrumented_compile.py", json.dumps(CASES))
    facts = dict(zip(CASES, answer["found"], strict=True))
    if answer["triton"].startswith("3.6"):  # has no records in global memory for AMD's GPUs
        errors = [facts.pop(("add", target, GLOBAL)) for target in ELF_GPU]
        assert all("cannot be compiled with records" in error["error"] for error in errors)
    return facts


def with_records(found: Found) -> Found:
    return {case: facts for case, facts in found.items() if case[2] is not None}


def stores(facts: dict[str, Any], prefix: str) -> int:
    return sum(n for name, n in facts["instructions"].items() if name.startswith(prefix))


def test_every_record_reads_the_clock_of_the_shader(found: Found) -> None:
    for case, facts in with_records(found).items():
        assert facts["instructions"]["s_memtime"] >= RECORDS[case[0]] == facts["records"], case


def test_a_block_reads_the_real_time_at_its_start_and_around_writing_back(found: Found) -> None:
    for case, facts in with_records(found).items():
        assert facts["instructions"]["s_memrealtime"] == 3, case


def test_a_block_reads_where_it_runs(found: Found) -> None:
    for case, facts in with_records(found).items():
        assert facts["hardware_registers"] == ["HW_REG_HW_ID", "HW_REG_XCC_ID"], case
        assert facts["instructions"]["s_getreg_b32"] == 3, case


def test_records_go_to_shared_memory_or_straight_to_global_memory(found: Found) -> None:
    for (kernel, target, mode), facts in with_records(found).items():
        plain = found["add", target, None]
        assert facts["scratch"] > 0, (kernel, target, mode)
        if mode == GLOBAL:
            assert stores(facts, "ds_write") == 0, (kernel, target)
            assert stores(facts, "global_store") >= stores(plain, "global_store") + RECORDS[kernel]
        else:
            assert stores(facts, "ds_write") >= RECORDS[kernel], (kernel, target)
            assert facts["shared"] > 0, (kernel, target)


def test_code_without_records_reads_no_clock_and_keeps_nothing(found: Found) -> None:
    for target in ELF_GPU:
        facts = found["add", target, None]
        for name in ("s_memtime", "s_memrealtime", "s_getreg_b32"):
            assert name not in facts["instructions"], target
        assert (stores(facts, "ds_"), facts["shared"], facts["scratch"]) == (0, 0, 0)


def test_the_binary_is_for_the_gpu_that_was_asked_for(found: Found) -> None:
    for case, facts in found.items():
        assert facts["elf_machine"] == ELF_AMDGPU, case
        assert facts["elf_flags"] & 0xFF == ELF_GPU[case[1]], case
