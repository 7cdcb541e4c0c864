"""Analysis of made-up studies: what is recovered, and what is said where something is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes.gated import SECOND_NS, profile_of_times

from benchmarks.studies.gate.study.__main__ import main
from benchmarks.studies.gate.study.archive import Archive, StudyError
from benchmarks.studies.gate.study.components import (
    launches_of,
    main_paths,
    realised,
    shared_of,
    spreads_of,
)
from benchmarks.studies.gate.study.defaults import advise
from benchmarks.studies.gate.study.gates import DEFAULT, STRICT, blocks_of, judge_aa, judge_power
from benchmarks.studies.gate.study.plan import BASE, SLOWDOWNS, variant_name
from benchmarks.studies.gate.study.rebuilt import off_the_line
from benchmarks.studies.gate.study.rivals import rivals
from benchmarks.studies.gate.study.sides import METRIC, cut, paths_of, slowed_naming, works_of
from benchmarks.studies.gate.study.simulated import machine_of, simulations
from proton_bench.analysis.run import Run
from proton_bench.formats.registry import write_profile

SETTINGS = {"backend": "cupti", "kind": "cuda", "seed": 0, "tiny": False}
WORKS = ("gemm", "copy")


def study(
    processes: int = 16, *, between: float = 0.002, clock: bool = True, seed: int = 5
) -> list[Run]:
    """Return processes of two kernels of 100 us with all their variants."""
    rng = np.random.default_rng(seed)
    runs = []
    for number in range(processes):
        common = rng.normal(0.0, 0.001)
        times, codes = {"<canary>/fma": [80_000.0] * 4, "<flush>/memset": [5e4] * 9}, {}
        for work in WORKS:
            for slowdown in (0.0, *SLOWDOWNS):
                path = f"{work}/{variant_name(slowdown)}/{work}_kernel"
                middle = np.log(1e5 * (1 + slowdown)) + common + rng.normal(0.0, between)
                times[path] = np.exp(middle + rng.normal(0.0, 0.004, 20)).tolist()
                codes[path] = f"{work}{slowdown}"
        order = [f"{work}/{variant_name(s)}" for work in WORKS for s in (0.0, *SLOWDOWNS)]
        facts = {
            "study": {"number": number, "order": rng.permutation(order).tolist()},
            "start_time_ns": number * SECOND_NS,
            "end_time_ns": number * SECOND_NS + 1,
            **({"canary": {"sm_clock_hz": float(1.98e9 * np.exp(-common))}} if clock else {}),
        }
        profile = profile_of_times(times, codes=codes, provenance=facts)
        runs.append(Run(profile, f"{number:03d}.proton"))
    return runs


def saved(runs: list[Run], folder: Path, **settings: object) -> Path:
    folder.mkdir(exist_ok=True)
    archive = Archive({**SETTINGS, **settings})
    for number, run in enumerate(runs):
        path = folder / f"{number}.proton"
        write_profile(run.profile, path)
        archive.runs[number] = path.read_bytes()
    archive.save(folder)
    return folder


def test_spreads_are_those_that_went_in() -> None:
    launches = launches_of(study(60, between=0.01))

    spreads, shared = spreads_of(launches), shared_of(launches)

    assert len(spreads) == 12
    assert np.mean([each.between for each in spreads]) == pytest.approx(0.01, rel=0.2)
    assert np.mean([each.within for each in spreads]) == pytest.approx(0.004, rel=0.2)
    assert all(abs(each.order) < 0.01 for each in spreads)
    assert shared.process < 0.01
    assert realised(launches)["gemm", 0.10] == pytest.approx(0.10, abs=0.01)


def test_the_tick_is_seen_through_rounding_to_another_clock() -> None:
    rng = np.random.default_rng(2)
    ticks = 32.0 * rng.integers(2000, 2100, 200) + rng.integers(-1, 2, 200)
    path = ("gemm", "base", "k")
    own = launches_of(
        [
            Run(profile_of_times({"/".join(path): ticks[at : at + 50].tolist()}), "x")
            for at in (0, 50)
        ]
    )

    rounded = replace(own, times=np.rint(own.times * 0.9137))

    assert [each.step_ns for each in spreads_of(own)] == [32]
    assert [each.step_ns for each in spreads_of(rounded)] == [1]


def test_binaries_off_the_line_of_their_iterations_are_found() -> None:
    launches = launches_of(study(8, between=1e-5))
    place = main_paths(launches)["gemm", "+5%"]
    launches.locations[:, place] += 0.02

    found = off_the_line(launches)

    assert found["copy"] < 0.003
    assert found["gemm"] == pytest.approx(0.015, abs=0.003)


def test_what_processes_share_is_found_and_gone_in_cycles() -> None:
    launches = launches_of(study(60, between=1e-4))

    spreads, shared = spreads_of(launches), shared_of(launches)

    assert shared.process == pytest.approx(0.001, rel=0.4)
    assert np.mean([each.cycles for each in spreads]) < np.mean([each.between for each in spreads])


def test_a_side_shows_a_slowed_variant_in_the_place_of_the_base() -> None:
    run = study(1)[0]

    sides = [cut(run, slowed_naming("gemm", 0.05, new=new)) for new in (False, True)]
    own = [paths_of(side)["gemm", BASE, "gemm_kernel"] for side in sides]

    assert own[0] == paths_of(run)["gemm", "base", "gemm_kernel"]
    assert own[1] == paths_of(run)["gemm", "+5%", "gemm_kernel"]
    assert all(("gemm", "+5%", "gemm_kernel") not in paths_of(side) for side in sides)
    assert all(len(paths_of(side)) == 11 for side in sides)
    assert "<flush>" not in sides[0].profile.strings
    assert "<canary>" in sides[0].profile.strings


def test_cutting_keeps_numbers_and_can_hide_code_and_clock() -> None:
    run = study(1)[0]

    whole = cut(run, lambda _, variant: variant)
    hidden = cut(run, lambda _, variant: variant, coded=False, clocked=False)

    flushed = 9 * 5e4
    total = whole.profile.inclusive(METRIC)[0]
    assert total == pytest.approx(run.profile.inclusive(METRIC)[0] - flushed)
    assert len(whole.profile.variants) == 12
    assert hidden.profile.variants == ()
    assert "canary" not in hidden.profile.provenance


def test_gates_are_disjoint_and_the_sides_take_turns() -> None:
    runs = study(17)

    blocks = blocks_of(runs, 4)

    used = [run.source for block in blocks for run in (*block.base, *block.new)]
    assert len(blocks) == 2
    assert len(set(used)) == len(used) == 16
    assert [run.source[:3] for run in blocks[0].base] == ["000", "003", "004", "007"]
    assert blocks[0].base_first == (True, False, True, False)


def test_identical_programs_do_not_fail_and_large_slowdowns_are_found() -> None:
    runs = study(16)
    blocks = blocks_of(runs, 4)

    unchanged = judge_aa(blocks, STRICT, coded=False)
    power = judge_power(blocks, ["gemm"])

    assert unchanged.gates == 2
    assert unchanged.paths == 12
    assert unchanged.failed.events == 0
    assert judge_aa(blocks, DEFAULT, coded=True).failed.events == 0
    assert power["gemm", 0.10].found == 2
    assert power["gemm", 0.01].found == 0


def test_rules_of_others_see_the_same_launches() -> None:
    found = {each.name: each for each in rivals(launches_of(study(16)), 4)}

    whitney = found["Mann-Whitney at 5 %, launches of all runs"]
    assert whitney.found[0.10].value == 1.0
    assert whitney.found[0.10].trials == 4
    assert found["pytest-benchmark `mean:5%`, launches of all runs"].alarms.events == 0
    assert found["pytest-benchmark `mean:5%`, launches of all runs"].found[0.02].value == 0.0


def test_the_simulation_takes_measured_spreads_and_is_seeded() -> None:
    launches = launches_of(study(16))
    spreads, shared = spreads_of(launches), shared_of(launches)
    machine = machine_of(spreads, shared)

    lines = [simulations(machine, gates=2, seed=1) for _ in range(2)]

    assert lines[0] == lines[1]
    assert lines[0][0].session.endswith("12 measured paths")
    assert max(between for between, _ in machine.measured) < 0.02
    names = [each.name for each in advise(spreads, shared, launches=launches, simulated=lines[0])]
    assert names == ["session-shift", "margin", "threshold", "floor", "pairs", "canary shift"]


def test_advice_does_not_follow_a_machine_that_is_too_noisy() -> None:
    launches = launches_of(study(16, between=0.5, clock=False))
    spreads, shared = spreads_of(launches), shared_of(launches)

    found = {each.name: each for each in advise(spreads, shared, launches=launches, simulated=[])}

    assert "too noisy" in found["threshold"].recommended
    assert "canary shift" not in found


def test_the_command_prints_tables_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(saved(study(8, seed=n), tmp_path / str(n))) for n in (1, 2)]

    assert main(["analyse", *folders, "--pairs", "4", "--gates", "2"]) == 0

    printed = capsys.readouterr().out
    for part in ("16 processes, 2 gates", "Mann-Whitney", "Simulated, not measured", "time alone"):
        assert part in printed
    document = json.loads((tmp_path / "1" / "analysis.json").read_text())
    assert document["power"]["gemm/0.1"]["gates"] == 2
    assert document["processes"] == 16


def test_gates_with_slowed_kernels_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(study(8), tmp_path / "study")

    assert main(["analyse", str(folder), "--pairs", "4", "--gates", "0", "--unchanged"]) == 0

    printed = capsys.readouterr().out
    assert "Nothing changed" in printed
    assert "One kernel slowed" not in printed
    assert json.loads((folder / "analysis.json").read_text())["power"] == {}


@pytest.mark.parametrize(
    ("runs", "message"),
    [(0, "holds no runs"), (7, "too few for a gate of 4 pairs")],
)
def test_studies_with_too_few_runs_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: int, message: str
) -> None:
    folder = saved(study(runs), tmp_path / "study")

    assert main(["analyse", str(folder), "--pairs", "4"]) == 2

    assert message in capsys.readouterr().err


def test_studies_of_other_kinds_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(saved([], tmp_path / kind, kind=kind)) for kind in ("cuda", "operators")]

    assert main(["analyse", *folders]) == 2

    assert "in different ways" in capsys.readouterr().err


def test_a_damaged_profile_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Archive(SETTINGS, {0: b"no profile"}).save(tmp_path)

    assert main(["analyse", str(tmp_path)]) == 2

    assert "000.proton" in capsys.readouterr().err


def test_runs_without_all_variants_are_told() -> None:
    profile = profile_of_times({"gemm/base/k": [1e5], "gemm/+1%/k": [1e5]})

    with pytest.raises(StudyError, match="lacks variants of gemm"):
        works_of([Run(profile, "000.proton")])


def test_runs_without_a_common_path_are_told() -> None:
    runs = [
        Run(profile_of_times({f"gemm/{variant}/k{at}": [1e5] for variant in ("base", "+1%")}), "x")
        for at in range(2)
    ]

    with pytest.raises(StudyError, match="in every process"):
        launches_of(runs)


def test_variants_that_some_processes_did_not_measure_are_told() -> None:
    launches = launches_of(study(2))
    kept = [at for at, path in enumerate(launches.paths) if path[:2] != ("gemm", "+5%")]
    fewer = replace(
        launches,
        paths=[launches.paths[at] for at in kept],
        locations=launches.locations[:, kept],
    )

    with pytest.raises(StudyError, match="gemm has no launches of"):
        realised(fewer)
