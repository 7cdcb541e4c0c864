from __future__ import annotations

import sys
import traceback
import zipfile
from pathlib import Path

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.launcher.target import Target, TargetKind, load_target, own_traceback


@pytest.fixture(autouse=True)
def interpreter_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Targets change these for good; the next test must not see it."""
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(tmp_path)


def run(kind: TargetKind, value: str, *arguments: str) -> dict[str, object]:
    load_target(Target(kind, value, arguments))()
    return vars(sys.modules["__main__"])


def test_a_script_is_main_with_its_own_arguments_and_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script = tmp_path / "sub" / "x.py"
    script.write_text("import sys\nname, argv, first = __name__, list(sys.argv), sys.path[0]\n")

    main = run(TargetKind.SCRIPT, "sub/x.py", "-n", "a")

    assert main["name"] == "__main__"
    assert main["argv"] == ["sub/x.py", "-n", "a"]
    assert main["first"] == str(script.parent.resolve())
    assert main["__file__"] == str(script.absolute())
    assert main["__spec__"] is None


def test_the_future_imports_of_the_runner_are_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def f(a: int): ...\nkind = type(f.__annotations__['a'])\n")

    assert run(TargetKind.SCRIPT, "x.py")["kind"] is type


def test_a_declared_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(b"# coding: latin-1\nname = '\xe9'\n")

    assert run(TargetKind.SCRIPT, "x.py")["name"] == "\u00e9"


def test_a_module_runs_like_with_m(tmp_path: Path) -> None:
    package = tmp_path / "pkg_of_target_test"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys\nargv = sys.argv\n")

    main = run(TargetKind.MODULE, package.name, "a")

    assert main["argv"] == [str(package / "__main__.py"), "a"]
    assert main["__package__"] == package.name


@pytest.mark.parametrize("name", ["no_such_module_at_all", "json.no_such", "no_such.sub", "..x"])
def test_a_missing_module_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        load_target(Target(TargetKind.MODULE, name))


def test_a_failing_import_in_the_package_is_the_error_of_the_target(tmp_path: Path) -> None:
    package = tmp_path / "pkg_with_missing_import"
    package.mkdir()
    (package / "__init__.py").write_text("import no_such_dependency\n")
    (package / "sub.py").touch()

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load_target(Target(TargetKind.MODULE, f"{package.name}.sub"))


def test_a_folder_and_a_zip_run_their_main(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("where = 'folder'\n")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "where = 'zip'\n")

    assert run(TargetKind.SCRIPT, "app")["where"] == "folder"
    assert run(TargetKind.SCRIPT, "app.pyz")["where"] == "zip"


def test_code_runs_like_with_c() -> None:
    main = run(TargetKind.CODE, "import sys; argv = sys.argv", "a")

    assert main["argv"] == ["-c", "a"]


def test_a_missing_script_is_named() -> None:
    with pytest.raises(UsageError, match=r"cannot read the script 'y\.py': \S"):
        load_target(Target(TargetKind.SCRIPT, "y.py"))


def test_tracebacks_begin_in_the_target(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def f():\n    raise KeyError('k')\nf()\n")
    program = load_target(Target(TargetKind.SCRIPT, "x.py"))

    with pytest.raises(KeyError) as caught:
        program()
    error = caught.value
    frames = traceback.extract_tb(own_traceback(error.with_traceback(error.__traceback__.tb_next)))

    assert [(frame.filename, frame.name) for frame in frames] == [
        (str(tmp_path / "x.py"), "<module>"),
        (str(tmp_path / "x.py"), "f"),
    ]
