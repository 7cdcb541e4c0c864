"""Whether the files that runs loaded allow a comparison of the two sides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proton_bench.gate import loaded as validity
from proton_bench.gate.loaded import check_validity
from proton_bench.gate.processes import Revision
from proton_bench.gate.slot import BASE, NEW, Stage
from proton_bench.gate.verdict.result import Reason

REVISION = Revision("/repo", "main", "0" * 40)
CHANGED = "pkg/core.py"
NAMES = {"/repo/x.py": "__mp_main__"}

Files = list[tuple[str, str]]


class Kept:
    """Runs of one stage, of which each side has a list of (file, version)."""

    folder = Path("/kept")

    def __init__(self, **files: Sequence[Files | None]) -> None:
        self._files = files

    def of(self, stage: Stage, arm: str = "") -> list[Files | None]:
        return list(self._files[arm]) if stage is Stage.PAIR else []

    def modules(self, run: Files | None) -> list[dict[str, str]] | None:
        if run is None:
            return None
        return [
            {"name": NAMES.get(file, "pkg.core"), "file": file, "sha256": version}
            for file, version in run
        ]


def checked(
    base: Sequence[Files | None], new: Sequence[Files | None], revision: Revision | None
) -> tuple[list[Reason], list[Reason]]:
    """Return the reasons that are fatal, and those that are only noted."""
    kept: Any = Kept(**{BASE: base, NEW: new})
    found = check_validity(kept, revision)
    return [note.reason for note in found.fatal], [note.reason for note in found.notes]


@pytest.fixture(autouse=True)
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validity, "changed_files", lambda revision: [CHANGED])


OLD, NOW = [("/kept/tree/pkg/core.py", "old")], [("/repo/pkg/core.py", "now")]


def test_sides_that_loaded_their_own_version_are_compared() -> None:
    assert checked([OLD, OLD], [NOW, NOW], REVISION) == ([], [])


@pytest.mark.parametrize("revision", [REVISION, None])
def test_a_file_that_was_edited_between_runs_is_fatal(revision: Revision | None) -> None:
    edited = [("/repo/pkg/core.py", "edited")]

    assert checked([OLD, OLD], [NOW, edited], revision) == ([Reason.NOT_COMPARABLE], [])


def test_one_version_on_both_sides_is_fatal_between_revisions_alone() -> None:
    assert checked([NOW], [NOW], REVISION) == ([Reason.NOT_COMPARABLE], [])
    assert checked([NOW], [NOW], None) == ([], [])


def test_a_change_that_no_side_loaded_is_noted() -> None:
    other = [("/repo/pkg/other.py", "1")]

    assert checked([other], [other], REVISION) == ([], [Reason.NOTICE])


@pytest.mark.parametrize(
    ("others", "reasons"),
    [([], ([Reason.NOT_COMPARABLE], [])), (["kernel.cu"], ([], [Reason.NOTICE]))],
)
def test_a_change_of_the_script_alone_is_fatal(
    others: list[str], reasons: tuple[list[Reason], list[Reason]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "changed_files", lambda revision: ["x.py", *others])
    script = [*NOW, ("/repo/x.py", "1")]

    assert checked([script], [script], REVISION) == reasons


@pytest.mark.parametrize("files", [NOW, None])
def test_sides_that_run_the_same_code_are_noted(
    files: Files | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "changed_files", lambda revision: [])

    assert checked([files], [files], REVISION) == ([], [Reason.NOTICE])
    assert checked([NOW], [NOW], None) == ([], [])


@pytest.mark.parametrize("unknown", [[], [None]])
def test_unknown_files_of_a_side_are_noted(unknown: list[Files | None]) -> None:
    assert checked([OLD], unknown, REVISION) == ([], [Reason.NOTICE])
