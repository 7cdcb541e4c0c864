"""Processes of a study of the gate: what they are told, what is kept, and what goes wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.studies.gate.study import archive as archives
from benchmarks.studies.gate.study.__main__ import main
from benchmarks.studies.gate.study.archive import FILE_NAME, Archive, StudyError
from benchmarks.studies.gate.study.plan import SLOWDOWNS, Plan, Work
from benchmarks.studies.gate.study.runner import Measuring, measure
from benchmarks.studies.gate.study.sides import works_of

SETTINGS = {"backend": "cpu", "kind": "operators", "seed": 3, "tiny": True}
ROOT = Path(__file__).parents[2]


def writer(numbers: list[int], fails: Callable[[int], bool] = lambda _: False) -> object:
    def record(plan: Plan, out: Path) -> None:
        numbers.append(plan.number)
        if fails(len(numbers)):
            raise StudyError("it broke")
        out.write_bytes(b"profile")

    return record


def test_every_process_is_recorded_and_saved_after_one_that_warms_up(tmp_path: Path) -> None:
    numbers: list[int] = []

    done = measure(Archive(SETTINGS), Measuring(3, tmp_path), writer(numbers))  # type: ignore[arg-type]

    assert done
    assert numbers == [-1, 0, 1, 2]
    assert Archive.load(tmp_path).runs == dict.fromkeys(range(3), b"profile")
    assert Archive.load(tmp_path / FILE_NAME).settings == SETTINGS


def test_resuming_records_what_is_missing(tmp_path: Path) -> None:
    numbers: list[int] = []
    known = Archive(SETTINGS, {0: b"old", 2: b"old"})

    assert measure(known, Measuring(4, tmp_path), writer(numbers))  # type: ignore[arg-type]

    assert numbers == [-1, 1, 3]
    assert known.runs[0] == b"old"


def test_a_complete_study_starts_nothing(tmp_path: Path) -> None:
    numbers: list[int] = []

    assert measure(Archive(SETTINGS, {0: b""}), Measuring(1, tmp_path), writer(numbers))  # type: ignore[arg-type]

    assert numbers == []


def test_a_spent_budget_ends_the_study_with_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(SETTINGS)

    assert not measure(archive, Measuring(3, tmp_path, budget_s=-1.0), writer([]))  # type: ignore[arg-type]

    assert archive.runs == {}
    assert "stopped before process 0" in capsys.readouterr().out


def test_a_process_that_fails_once_is_run_again(tmp_path: Path) -> None:
    numbers: list[int] = []

    assert measure(Archive(SETTINGS), Measuring(1, tmp_path), writer(numbers, lambda n: n == 2))  # type: ignore[arg-type]

    assert numbers == [-1, 0, 0]


def test_a_process_that_fails_twice_ends_the_study_and_keeps_the_others(tmp_path: Path) -> None:
    numbers: list[int] = []

    with pytest.raises(StudyError, match="process 1 failed twice: it broke"):
        measure(Archive(SETTINGS), Measuring(3, tmp_path), writer(numbers, lambda n: n > 2))  # type: ignore[arg-type]

    assert list(Archive.load(tmp_path).runs) == [0]


def test_a_broken_process_is_told_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive({**SETTINGS, "backend": "no-such-backend", "kind": "no-such-kind"})

    with pytest.raises(StudyError, match="failed twice: it ended with 1"):
        measure(archive, Measuring(1, tmp_path))

    said = capsys.readouterr().out
    assert "attempt 2" in said
    assert "ValueError: kind 'no-such-kind': choose from operators" in said


def test_a_process_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no end after 0 s"):
        measure(Archive(SETTINGS), Measuring(1, tmp_path, limit_s=0.0))


def test_an_archive_that_grew_too_large_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive(SETTINGS, {0: b"a"})
    archive.save(tmp_path)
    monkeypatch.setattr(archives, "LARGEST_BYTES", 10)
    archive.runs[1] = b"b"

    with pytest.raises(StudyError, match="more than 10"):
        archive.save(tmp_path)

    assert list(Archive.load(tmp_path).runs) == [0]
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04broken"])
def test_damaged_archives_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)

    with pytest.raises(StudyError, match="cannot be read as a study"):
        Archive.load(tmp_path)


def test_archives_of_others_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(archives, "_SCHEMA", "another")
        Archive(SETTINGS).save(tmp_path)
    with pytest.raises(StudyError, match="holds no study"):
        Archive.load(tmp_path)

    with monkeypatch.context() as patched:
        patched.setattr(archives, "_VERSION", 9)
        Archive(SETTINGS).save(tmp_path)
    with pytest.raises(StudyError, match="version 9, not 1"):
        Archive.load(tmp_path)


def test_wrong_command_lines_end_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Archive(SETTINGS).save(tmp_path)
    measuring = ["measure", "--out", str(tmp_path), "--backend", "cpu"]

    assert main([*measuring, "--processes", "0"]) == 2
    assert main(measuring) == 2
    assert main([*measuring, "--resume"]) == 2
    assert main(["analyse", str(tmp_path / "nothing")]) == 2

    told = capsys.readouterr().err
    for part in ("1 or more", "--resume, or another folder", "was measured with", "measure first"):
        assert part in told


def test_each_process_has_an_order_of_its_own_that_the_seed_decides() -> None:
    works = [Work("a", 100, lambda _: None), Work("b", 100, lambda _: None)]
    orders = [Plan("cpu", "operators", 1, number).order(works) for number in (0, 1, 0)]

    assert orders[0] == orders[2]
    assert orders[0] != orders[1]
    assert sorted(step.variant for step in orders[0]) == sorted(
        2 * ["base", "+1%", "+2%", "+3%", "+5%", "+10%"]
    )


def test_a_slowdown_is_that_part_of_the_iterations() -> None:
    work = Work("a", 100, lambda _: None)

    assert [work.extra(each) for each in (0.0, *SLOWDOWNS)] == [0, 1, 2, 3, 5, 10]
    assert Work("b", 2, lambda _: None).extra(0.01) == 1


def test_measuring_needs_no_library_of_the_analysis() -> None:
    program = (
        "import sys; import benchmarks.studies.gate.study.__main__, benchmarks.gate.study.process; "
        "print(sorted({'scipy', 'pandas', 'rich', 'typer', 'torch'} & sys.modules.keys()))"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "cupti"])
def test_dry_processes_write_profiles_with_every_path(tmp_path: Path, backend: str) -> None:
    pytest.importorskip("triton" if backend == "cupti" else "torch")
    told = ["measure", "--dry", "--backend", backend, "--processes", "1", "--out", str(tmp_path)]

    assert main(told) == 0

    (run,) = Archive.load(tmp_path).profiles()
    assert len(works_of([run])) == 8
    assert run.profile.provenance["study"]["number"] == 0
    assert "canary" not in run.profile.provenance  # nothing has an SM clock here
