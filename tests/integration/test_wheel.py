"""The built wheels, installed into bare environments.

Nothing is fetched: dependencies come from the environment of the tests through a .pth file, which
stands behind the installed wheel, so that an editable install of ours is never found.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = ROOT / ".ci" / "check_wheel.py"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def build(folder: Path, native: str) -> Path:
    """Return the wheel in ``folder``, built once per test run, whatever worker comes first.

    The build folder of the clone is used again, so that only what changed is compiled; another
    ninja than that of this environment would compile everything anew.
    """
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            command = [*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(folder)]
            tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            settings = {"PROTON_BENCH_BUILD_NATIVE": native, "PYTHONPATH": "", "PATH": tools}
            environment = os.environ | settings
            subprocess.run([*command, str(ROOT)], check=True, env=environment, cwd=folder)
        (wheel,) = folder.glob("*.whl")
    return wheel


def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this test run see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def whole_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pybind11", reason="the extra dev builds the wheel")
    return build(shared(tmp_path_factory) / "whole-wheel", "ON")


@pytest.fixture(scope="session")
def analysis_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("scikit_build_core", reason="the extra dev builds the wheel")
    return build(shared(tmp_path_factory) / "analysis-wheel", "OFF")


def install(wheel: Path, environment: Path) -> Path:
    """Install a wheel into a new environment and return its interpreter."""
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    command = [*PIP, "--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    others = [entry for entry in sys.path if Path(entry).name.endswith("-packages")]
    (site / "dependencies.pth").write_text("\n".join(others), encoding="utf-8")
    return python


def check(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [python, CHECK, *arguments],
        cwd=python.parent,
        env=environment,
        capture_output=True,
        text=True,
    )


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_whole_wheel_records_and_shows(whole_wheel: Path, tmp_path: Path) -> None:
    done = check(install(whole_wheel, tmp_path / "environment"))

    assert (done.returncode, done.stderr) == (0, "")
    assert "the whole wheel works" in done.stdout


def test_the_analysis_wheel_shows_and_says_why_it_cannot_record(
    analysis_wheel: Path, tmp_path: Path
) -> None:
    done = check(install(analysis_wheel, tmp_path / "environment"), "--analysis-only")

    assert (done.returncode, done.stderr) == (0, "")
    assert "the analysis wheel works" in done.stdout


def test_the_whole_wheel_holds_types_the_header_and_no_tests(whole_wheel: Path) -> None:
    names = members(whole_wheel)

    assert {
        "proton_bench/py.typed",
        "proton_bench/_native.pyi",
        "proton_bench/include/proton_bench/record_sink.h",
        "proton_bench_plugins/py.typed",
        "proton_bench_plugins/cpu/__init__.py",
    } <= names
    assert f"proton_bench/_native{sysconfig.get_config_var('EXT_SUFFIX')}" in names
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"proton_bench", "proton_bench_plugins", "proton_bench_compat.pth"}


def test_the_analysis_wheel_is_for_every_platform(analysis_wheel: Path) -> None:
    assert analysis_wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in members(analysis_wheel) if name.endswith(".so")]


def test_both_wheels_hold_the_same_python_files(whole_wheel: Path, analysis_wheel: Path) -> None:
    whole, analysis = (
        {name for name in members(wheel) if name.endswith((".py", ".pyi"))}
        for wheel in (whole_wheel, analysis_wheel)
    )

    assert whole == analysis
