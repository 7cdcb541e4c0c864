"""The list of files that a process loaded."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from proton_bench.recording.launcher.loaded_modules import write_loaded_modules


def written(folder: Path) -> dict[str, dict[str, str]]:
    write_loaded_modules(str(folder / "modules.json"))
    return {each["name"]: each for each in json.loads((folder / "modules.json").read_text())}


def test_files_of_projects_have_a_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "thing_of_a_project.py"
    source.write_text("x = 1\n")
    link = tmp_path / "linked"
    link.mkdir()
    (link / source.name).symlink_to(source)
    monkeypatch.syspath_prepend(str(link))
    __import__("thing_of_a_project")
    monkeypatch.setitem(sys.modules, "thing", sys.modules.pop("thing_of_a_project"))

    found = written(tmp_path)["thing"]

    assert found["file"] == str(source)
    assert found["sha256"] == hashlib.sha256(b"x = 1\n").hexdigest()


def test_installed_packages_have_none_and_the_standard_library_is_left_out(
    tmp_path: Path,
) -> None:
    found = written(tmp_path)

    assert found["pytest"]["sha256"] == ""
    assert "json" not in found
    assert "sys" not in found
    assert not list(tmp_path.glob("*.partial"))


def test_modules_without_a_file_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "none", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "odd", type(sys)("odd"))
    sys.modules["odd"].__file__ = "/no/such/file.py"

    assert not {"none", "odd"} & written(tmp_path).keys()
