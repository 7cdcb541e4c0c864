"""A study of the gate from its processes to its tables, on a dry run and on made-up profiles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fakes.gated import SECOND_NS, profile_of_times

from benchmarks.studies.gate.study.__main__ import main
from benchmarks.studies.gate.study.archive import Archive, StudyError
from benchmarks.studies.gate.study.gates import DEFAULT, STRICT, blocks_of, judge_aa, judge_power
from benchmarks.studies.gate.study.plan import SLOWDOWNS, Plan, variant_name
from benchmarks.studies.gate.study.runner import Measuring, measure
from benchmarks.studies.gate.study.sides import works_of
from proton_bench.analysis.run import Run
from proton_bench.formats.registry import write_profile

SETTINGS = {"backend": "cupti", "kind": "cuda", "seed": 0, "tiny": False}
WORKS = ("gemm", "copy")


def study(processes: int, *, seed: int = 5) -> list[Run]:
    """Return processes of two kernels of 100 us with all their variants."""
    rng = np.random.default_rng(seed)
    runs = []
    for number in range(processes):
        common = rng.normal(0.0, 0.001)
        times, codes = {"<canary>/fma": [80_000.0] * 4, "<flush>/memset": [5e4] * 9}, {}
        for work in WORKS:
            for slowdown in (0.0, *SLOWDOWNS):
                path = f"{work}/{variant_name(slowdown)}/{work}_kernel"
                middle = np.log(1e5 * (1 + slowdown)) + common + rng.normal(0.0, 0.002)
                times[path] = np.exp(middle + rng.normal(0.0, 0.004, 20)).tolist()
                codes[path] = f"{work}{slowdown}"
        order = [f"{work}/{variant_name(s)}" for work in WORKS for s in (0.0, *SLOWDOWNS)]
        facts = {
            "study": {"number": number, "order": rng.permutation(order).tolist()},
            "start_time_ns": number * SECOND_NS,
            "end_time_ns": number * SECOND_NS + 1,
            "canary": {"sm_clock_hz": float(1.98e9 * np.exp(-common))},
        }
        profile = profile_of_times(times, codes=codes, provenance=facts)
        runs.append(Run(profile, f"{number:03d}.proton"))
    return runs


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("backend", ["cpu", "cupti"])
def test_dry_processes_write_profiles_with_every_path(tmp_path: Path, backend: str) -> None:
    pytest.importorskip("triton" if backend == "cupti" else "torch")
    words = ["measure", "--dry", "--backend", backend, "--processes", "1", "--out", str(tmp_path)]

    assert main(words) == 0

    (run,) = Archive.load(tmp_path).profiles()
    assert len(works_of([run])) == 8


def test_a_study_that_broke_goes_on_where_it_was(tmp_path: Path) -> None:
    numbers: list[int] = []

    def record(plan: Plan, out: Path) -> None:
        numbers.append(plan.number)
        if len(numbers) in {3, 4}:
            raise StudyError("it broke")
        out.write_bytes(b"profile")

    with pytest.raises(StudyError, match="process 1 failed twice: it broke"):
        measure(Archive(SETTINGS), Measuring(2, tmp_path), record)

    assert measure(Archive.load(tmp_path), Measuring(2, tmp_path), record)
    assert numbers == [-1, 0, 1, 1, -1, 1]


def test_the_command_prints_tables_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(SETTINGS)
    for number, run in enumerate(study(16)):
        write_profile(run.profile, tmp_path / "x.proton")
        archive.runs[number] = (tmp_path / "x.proton").read_bytes()
    archive.save(tmp_path)

    assert main(["analyse", str(tmp_path), "--pairs", "4", "--gates", "2"]) == 0

    printed = capsys.readouterr().out
    for part in ("16 processes, 2 gates", "Mann-Whitney", "Simulated, not measured", "time alone"):
        assert part in printed
    document = json.loads((tmp_path / "analysis.json").read_text())
    assert document["power"]["gemm/0.1"]["gates"] == 2


def test_identical_programs_do_not_fail_and_large_slowdowns_are_found() -> None:
    blocks = blocks_of(study(24), 6)

    power = judge_power(blocks, ["gemm"])

    assert judge_aa(blocks, STRICT, coded=False).failed.events == 0
    assert judge_aa(blocks, DEFAULT, coded=True).failed.events == 0
    assert (power["gemm", 0.10].found, power["gemm", 0.01].found) == (2, 0)
