"""An editable install in an environment whose projects turn warnings into errors."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("scikit_build_core")

ROOT = Path(__file__).parents[2]
BUILD = "import sys; sys.path.insert(0, 'native'); import build_backend as backend; "
SETTINGS = {
    "error": '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n',
    "user warnings": '[tool.pytest.ini_options]\nfilterwarnings = ["error::UserWarning"]\n',
    "options": '[tool.pytest.ini_options]\naddopts = "-W error"\n',
    "but some": '[tool.pytest.ini_options]\nfilterwarnings = ["error", "ignore::FutureWarning"]\n',
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The editable wheel without the recorder, which takes a second to build."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-c", f"{BUILD}backend.build_editable({str(folder)!r})"],
        cwd=ROOT,
        env={**os.environ, "PROTON_BENCH_BUILD_NATIVE": "OFF"},
        check=True,
        capture_output=True,
    )
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with that wheel, and every other package of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    places = [Path(each) for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    for each in (each for place in places if place.is_dir() for each in place.iterdir()):
        is_ours = "proton_bench" in each.name or each.suffix == ".pth"
        if not is_ours and not (packages / each.name).exists():
            (packages / each.name).symlink_to(each)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    return folder / "bin" / "python"


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_pytest_of_a_project_without_us_passes_as_before(
    python: Path, tmp_path: Path, settings: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "test_theirs.py").write_text("def test_theirs() -> None:\n    assert 2 > 1\n")

    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:asyncio", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "warning" not in done.stdout


def test_the_environment_has_the_plugin(python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python, "-m", "pytest", "--help"], cwd=tmp_path, capture_output=True, text=True
    )

    assert "--proton" in done.stdout


def test_the_list_of_files_of_the_wheel_is_right(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        lines = [line.split(",") for line in archive.read(record).decode().splitlines()]
        for name, digest, size in lines:
            if name != record:
                content = archive.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
                assert (digest, int(size)) == (f"sha256={found.rstrip('=')}", len(content))
    assert sorted(names) == sorted(name for name, _, _ in lines)
