"""``proton why`` and ``proton view --why`` through the command line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.counted import Kernel, counted_profile
from published import published

from proton_bench.analysis.why.verdict import KINDS
from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.provenance import Provenance


@pytest.fixture
def file(tmp_path: Path) -> str:
    profile = counted_profile(
        Kernel(path="net/mlp/gemm", time_ns=4e6, units={"tensor": 0.9, "dram": 0.1}),
        Kernel(path="net/norm/copy", time_ns=2e6, units={"tensor": 0.0, "dram": 0.8}),
        Kernel(path="net/other", time_ns=1e6),
    )
    path = tmp_path / "run.proton"
    write_profile(profile, path)
    return str(path)


def document(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(words) == 0
    found: dict[str, Any] = published(capfd.readouterr().out)
    return found


def test_document_has_verdicts_with_evidence(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = document(capfd, "why", file, "--json")

    assert found["schema"] == "proton_bench.why"
    assert found["version"] == [1, 0]
    rows = found["rows"]
    assert isinstance(rows, list)
    assert [(row["path"][-1], row["verdict"]["kind"]) for row in rows] == [
        ("gemm", "compute:tensor"),
        ("copy", "memory:dram"),
        ("other", "unknown"),
    ]
    assert {row["kind"] for row in rows} == {"kernel"}
    for row in rows:
        verdict = row["verdict"]
        assert verdict["kind"] in KINDS
        assert verdict["evidence"] or verdict["measure"]
        for evidence in verdict["evidence"]:
            assert evidence.keys() == {"id", "text", "value", "unit"}


def test_row_that_no_unit_limits_has_the_reason_instead_of_all_units(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.proton"
    write_profile(counted_profile(Kernel(path="k", units={"dram": 0.3, "l2": 0.2})), path)

    assert main(["why", str(path)]) == 0

    shown = capfd.readouterr().out
    assert "missing are" in shown
    assert "30 %" not in shown


def test_document_of_a_row(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = document(capfd, "why", file, "norm", "--json")

    (row,) = found["rows"]  # type: ignore[misc]
    assert row["path"] == ["net", "norm"]


@pytest.mark.parametrize("words", [[], ["k"], ["--json"]])
def test_what_a_file_lost_is_said(
    words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.proton"
    profile = replace(counted_profile(Kernel(path="k")), partial=True, dropped={"full": 3})
    write_profile(profile, path)

    assert main(["why", str(path), *words]) == 0

    said = capfd.readouterr().out
    assert "PARTIAL" in said
    assert "DROPPED: 3 records: full" in said


def test_length_of_a_run_that_a_file_does_not_say_is_unknown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "run.proton")
    gemm = counted_profile(Kernel(path="ampere_sgemm_128x64_nn"))
    write_profile(replace(gemm, provenance=Provenance()), Path(path))

    assert main(["why", path]) == 0
    assert "of run" not in capfd.readouterr().out.replace("of work", "")
    assert document(capfd, "why", path, "--json")["span_ns"] is None


def test_text_names_the_verdict_and_its_evidence(
    file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", file, "norm"]) == 0

    said = capfd.readouterr().out
    assert "memory:dram" in said
    assert "counter.dram" in said


@pytest.mark.parametrize("words", [["no such row"], ["x/y"]])
def test_row_that_is_not_there_is_wrong_usage(
    file: str, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", file, *words]) == 2

    assert capfd.readouterr().out == ""


def test_missing_and_damaged_files_are_wrong_usage(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged.proton"
    damaged.write_bytes(b"no profile")

    assert main(["why", str(tmp_path / "missing.proton")]) == 2
    assert main(["why", str(damaged)]) == 2

    assert len(capfd.readouterr().err.splitlines()) == 2


def test_view_has_a_column(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = document(capfd, "view", file, "-m", "time/ms,why", "--json")

    names = [metric["name"] for metric in found["metrics"]]  # type: ignore[attr-defined]
    place = names.index("why")
    rows = {row["name"]: row["values"][place] for row in found["rows"]}  # type: ignore[attr-defined]
    assert rows["gemm"].startswith("compute:tensor")
    assert rows["norm"].startswith("memory:dram")
    assert "why" in document(capfd, "view", file, "--list", "--json")["derived"]  # type: ignore[operator]


KERNELS = str(Path(__file__).parents[1] / "data" / "counters" / "kernels_h100.proton")


def test_a_finding_is_chosen_by_its_id(capfd: pytest.CaptureFixture[str]) -> None:
    whole = document(capfd, "why", KERNELS, "--json")
    for finding in whole["findings"]:
        one = document(capfd, "why", KERNELS, finding["id"], "--json")
        assert one["findings"] == [finding]
        assert main(("why", KERNELS, finding["id"])) == 0
        text = capfd.readouterr().out
        assert all(f"({evidence['id']})" in text for evidence in finding["evidence"])
        assert finding["source"] in text

    assert [row["path"][0] for row in one["rows"]] == ["mm16", "mm64"]


@pytest.mark.parametrize("tokens", [50, 100, 200, 400, 10_000])
def test_text_fits_into_the_budget(tokens: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(("why", KERNELS)) == 0
    whole = capfd.readouterr().out
    assert main(("why", KERNELS, "--budget", str(tokens))) == 0
    text = capfd.readouterr().out

    assert len(text.encode()) <= 3 * tokens
    *kept, last = text.splitlines()
    assert whole.splitlines()[: len(kept)] == kept
    left = len(whole.splitlines()) - len(kept)
    assert last == (whole.splitlines()[-1] if text == whole else f"{left} more lines")


LOADER = Path(__file__).parents[2] / "benchmarks/studies/why/loader.py"


@pytest.mark.parametrize("context", ["layers", "layers+ops"])
def test_a_recorded_loop_that_waits_for_its_data_is_input_bound(
    context: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cpu", "-c", context]
    command += ["-n", "run", str(LOADER), "--steps", "40", "--item-ms", "2"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)

    found = document(capfd, "why", str(tmp_path / "run.proton"), "--json")

    first = found["findings"][0]
    assert first["id"] == "input-bound"
    assert "loader.py" in first["text"]
    assert "num_workers" in first["helps"]
    (share,) = [each["value"] for each in first["evidence"] if each["id"] == "host.input"]
    assert share > 0.5
