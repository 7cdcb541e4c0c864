from __future__ import annotations

import hashlib
import importlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from proton_bench.recording.launcher.loaded_modules import write_loaded_modules
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.launcher.run_options import RunOptions, runner_command
from proton_bench.recording.launcher.target import TargetKind

OPTIONS = RunOptions(
    kind=TargetKind.SCRIPT,
    target="x\udcff\n.py",
    name="/data/x",
    formats=("proton",),
    backend="cpu+replay",
    mode="a:b=c",
    interpret=False,
)


def test_options_survive_the_way_through_the_command_line() -> None:
    text = OPTIONS.to_json()

    assert text.isascii()
    assert "\n" not in text
    assert RunOptions.from_json(text) == OPTIONS


def test_the_command_keeps_the_targets_arguments_apart() -> None:
    command = runner_command(OPTIONS, ["-n", "a b", "--"], ["-u"])

    assert command[:2] == [sys.executable, "-u"]
    assert command[3] == OPTIONS.to_json()
    assert command[4:] == ["-n", "a b", "--"]


@pytest.fixture
def two_versions(tmp_path: Path) -> Path:
    """A module in two versions, ``here`` and ``ahead`` of it."""
    for version in ("here", "ahead"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "thing.py").write_text(f"VERSION = {version!r}\n")
        (tmp_path / version / "conftest.py").write_text(f"print('conftest', {version!r})\n")
    return tmp_path


def run(folder: Path, kind: TargetKind, target: str, *arguments: str) -> str:
    """Return the output of a target with one folder first in its path."""
    options = RunOptions(
        kind=kind,
        target=target,
        name=str(folder / "out"),
        formats=("proton",),
        folder=str(folder),
        backend="cpu",
        quiet=True,
        first_folders=(str(folder / "ahead"),),
    )
    done = subprocess.run(
        runner_command(options, arguments),
        cwd=folder / "here",
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_a_script_finds_what_is_ahead_before_what_lies_beside_it(two_versions: Path) -> None:
    script = two_versions / "here" / "script.py"
    script.write_text("import thing; print('thing', thing.VERSION)\n")

    assert run(two_versions, TargetKind.SCRIPT, str(script)) == "thing ahead\n"


def test_code_finds_what_is_ahead_before_the_current_folder(two_versions: Path) -> None:
    code = "import thing; print('thing', thing.VERSION)"

    assert run(two_versions, TargetKind.CODE, code) == "thing ahead\n"


@pytest.mark.parametrize("package", [False, True])
def test_tests_are_those_of_their_place_and_import_what_is_ahead(
    two_versions: Path, package: bool
) -> None:
    tests = two_versions / "here" / "tests"
    tests.mkdir()
    if package:
        (tests / "__init__.py").write_text("")
    beside = "tests.beside" if package else "beside"
    (tests / "beside.py").write_text("")
    (tests / "test_it.py").write_text(
        f"import thing\nimport {beside}\ndef test_it():\n    print('thing', thing.VERSION)\n"
    )

    words = ("-q", "-s", "-p", "no:cacheprovider", "tests")
    said = run(two_versions, TargetKind.PYTEST, "", *words)

    assert "conftest here\n" in said
    assert "conftest ahead\n" not in said
    assert "thing ahead\n" in said


def test_path_of_the_settings_stays_behind(two_versions: Path) -> None:
    here = two_versions / "here"
    (here / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (here / "test_it.py").write_text(
        "import thing\ndef test_it():\n    print('thing', thing.VERSION)\n"
    )

    said = run(two_versions, TargetKind.PYTEST, "", "-q", "-s", "-p", "no:cacheprovider")

    assert "thing ahead\n" in said


def test_processes_of_the_target_find_what_is_ahead_on_their_path(
    two_versions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the folder of their own script comes before it."""
    monkeypatch.setenv("PYTHONPATH", str(two_versions / "here"))
    child = two_versions / "child.py"
    child.write_text("import thing; print('thing', thing.VERSION)\n")
    code = f"import subprocess, sys; subprocess.run([sys.executable, {str(child)!r}])"
    command = ("-c", shlex.join([sys.executable, str(child)]))

    assert run(two_versions, TargetKind.CODE, code) == "thing ahead\n"
    assert "thing ahead\n" in run(two_versions, TargetKind.PROGRAM, "/bin/sh", *command)


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


@pytest.fixture
def module_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that can be imported and is not."""
    name = f"watched_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    finders = list(sys.meta_path)
    yield name
    sys.modules.pop(name, None)
    sys.meta_path[:] = finders


def test_function_runs_after_the_module_did(module_name: str) -> None:
    answers: list[int] = []
    ImportCallback(module_name, lambda module: answers.append(module.answer))

    module = importlib.import_module(module_name)

    assert answers == [42]
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__


def test_function_runs_at_once_for_a_loaded_module(module_name: str) -> None:
    module = importlib.import_module(module_name)
    seen: list[ModuleType] = []

    ImportCallback(module_name, seen.append)

    assert seen == [module]


def test_function_runs_once(module_name: str) -> None:
    seen: list[ModuleType] = []
    ImportCallback(module_name, seen.append)

    module = importlib.import_module(module_name)
    importlib.reload(module)

    assert seen == [module]


def test_cancelled_callback_does_not_run(module_name: str) -> None:
    seen: list[ModuleType] = []
    callback = ImportCallback(module_name, seen.append)

    callback.cancel()
    callback.cancel()
    importlib.import_module(module_name)

    assert seen == []


def test_two_callbacks_for_one_module_both_run(module_name: str) -> None:
    seen: list[str] = []
    ImportCallback(module_name, lambda _: seen.append("first"))
    ImportCallback(module_name, lambda _: seen.append("second"))

    importlib.import_module(module_name)

    assert sorted(seen) == ["first", "second"]


def test_module_that_does_not_exist_is_still_missing() -> None:
    callback = ImportCallback("no_such_module_anywhere", lambda _: None)

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")

    callback.cancel()
    assert callback not in sys.meta_path
