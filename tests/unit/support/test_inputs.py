from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.support.inputs import unreadable


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("nihgtly.proton", "; did you mean 'nightly.proton'?"),
        ("other", "; name a profile that exists"),
        ("gone/nightly.proton", "; name a profile that exists"),
    ],
)
def test_a_missing_file_is_answered_with_the_nearest_name_beside_it(
    tmp_path: Path, name: str, end: str
) -> None:
    (tmp_path / "nightly.proton").touch()
    error = FileNotFoundError(2, "No such file or directory")

    assert str(unreadable(tmp_path / name, error, "profile")).endswith(end)


def test_another_error_names_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "nightly.proton").touch()
    error = PermissionError(13, "Permission denied")

    assert "nightly" not in str(unreadable(tmp_path / "nihgtly.proton", error))
