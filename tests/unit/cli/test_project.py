from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.cli.options import default_store, policy_file
from proton_bench.errors import UsageError


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_the_project_is_the_nearest_folder_with_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    (tmp_path / mark).touch()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")

    assert default_store() == tmp_path / ".proton"
    assert (policy_file() is not None) == (mark == "pyproject.toml")


def test_without_a_project_the_current_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert default_store() == tmp_path / ".proton"
    assert policy_file() is None


def test_a_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(UsageError, match="current folder was removed"):
        default_store()
