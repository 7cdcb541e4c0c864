"""Rows, tables and files of benchmarks.instrumentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.instrumentation.plan import ARMS, KERNELS, LAUNCHES, chosen
from benchmarks.instrumentation.report import LEAST_ROUNDS, print_report, row_results
from benchmarks.instrumentation.results import Results


def launched(bare: float, profiled: float, **changes: Any) -> dict[str, Any]:
    return {
        "bare": {"gpu_us": bare, "wall_us": bare},
        "profiled": {"gpu_us": profiled, "wall_us": profiled},
        "finalize_s": 0.01,
        "bytes": 1000,
        "launches": 10,
        "expected": {"load": 640, "dot": 640},
        "instances": {"load": 640, "dot": 640},
        "lost": 0,
        "matches": True,
        "identical": True,
        **changes,
    }


def results(arm: str, work: str, *pairs: dict[str, Any], rounds: int = LEAST_ROUNDS) -> Results:
    each = {"arms": {arm: {"error": None, "works": {work: list(pairs)}}}}
    return Results({"gpu": "a GPU"}, {"seed": 0}, [each] * rounds)


def verdicts(measured: Results) -> dict[str, str]:
    return {row.what: row.verdict for row in row_results(measured)}


@pytest.mark.parametrize(("profiled", "verdict"), [(120.0, "PASS"), (130.0, "FAIL")])
def test_a_launch_is_judged_by_its_ratio(profiled: float, verdict: str) -> None:
    found = verdicts(results("ours_tree", "matmul", launched(100.0, profiled)))

    assert found["matmul, ours_tree, on the wall, launched in a row"] == verdict
    assert found["matmul, ours_tree, between two events"] == verdict


def test_upstream_has_no_bar() -> None:
    found = verdicts(results("upstream_trace", "matmul", launched(100.0, 100_000.0)))

    assert set(found.values()) == {""}


def test_a_short_kernel_is_judged_by_what_is_added() -> None:
    found = verdicts(results("ours_tree", "short", launched(5.0, 10.0), launched(6.0, 10.0)))

    assert found["short kernel, ours_tree, us added per launch"] == "PASS"


def test_too_few_rounds_are_undecided() -> None:
    found = verdicts(results("ours_tree", "short", launched(5.0, 6.0), rounds=LEAST_ROUNDS - 1))

    assert found["short kernel, ours_tree, us added per launch"].startswith("UNDECIDED")


def test_the_geometric_mean_needs_every_kernel() -> None:
    pair = {"bare_us": 100.0, "scoped_us": 104.0, "matches": True, "identical": True}
    works = {work: [pair] for work in KERNELS}
    every = Results(rounds=[{"arms": {"kernels": {"error": None, "works": works}}}] * 10)
    some = results("kernels", KERNELS[0], pair)

    assert verdicts(every)["geometric mean of the slowdowns"] == "PASS"
    assert verdicts(some)["geometric mean, some are missing"] == ""


@pytest.mark.parametrize(("deducted", "verdict"), [(2050.0, "PASS"), (2100.0, "FAIL")])
def test_a_chain_is_judged_by_its_error(deducted: float, verdict: str) -> None:
    pair = {"expected": 2048.0, "raw": 2200.0, "deducted": deducted}

    found = verdicts(results("cycles", "chain 512", pair))

    assert found["chain of 512, deducted: error"] == verdict
    assert found["chain of 512, raw: error"] == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"matches": False}, "not the reference's"),
        ({"identical": False}, "bit by bit"),
        ({"lost": 3}, "records were lost"),
        ({"instances": {"load": 640, "dot": 639}}, "records were lost"),
        ({"lost": None, "instances": {"load": 1}}, "records were lost"),
    ],
)
def test_what_is_wrong_is_reported_and_fails(
    changes: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = print_report(results("ours_tree", "matmul", launched(100.0, 101.0)))
    bad = print_report(results("ours_tree", "matmul", launched(100.0, 101.0, **changes)))

    assert (good, bad) == (True, False)
    assert f"! ours_tree, matmul: {said}" in capsys.readouterr().out.replace(
        "the result is not the one without a profiler, ", ""
    ).replace("the result is ", "")


def test_what_upstream_lost_is_reported_but_is_not_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair = launched(100.0, 900.0, lost=None, instances={"load": 640, "dot": 0})

    assert print_report(results("upstream_trace", "matmul", pair))
    assert "50.00% of the instances" in capsys.readouterr().out


def test_files_come_back_as_they_were_written(tmp_path: Path) -> None:
    written = results("ours_tree", "matmul", launched(1.0, 2.0))

    written.save(tmp_path / "results.json")

    assert Results.load(tmp_path / "results.json") == written
    (tmp_path / "other.json").write_text('{"schema": "x"}')
    with pytest.raises(SystemExit, match=r"other\.json"):
        Results.load(tmp_path / "other.json")


def test_every_arm_that_launches_has_numbers_of_launches() -> None:
    launching = [arm for arm in ARMS.values() if arm.name not in {"kernels", "cycles"}]

    assert {(arm.name, work) for arm in launching for work in arm.workloads} == set(LAUNCHES)


def test_parts_arms_and_works_are_chosen() -> None:
    assert set(chosen(["kernels"], None, None)) == {"kernels"}
    [arm] = chosen(None, ["ours_tree"], ["short"]).values()
    assert arm.workloads == ("short",)
    assert "kernels" not in chosen(None, None, ["matmul"])
