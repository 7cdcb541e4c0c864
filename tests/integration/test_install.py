"""Triton's wheel owns scripts named proton and proton-viewer too; ours must stay reachable.

Two wheels of a few bytes stand for the two packages: one with the scripts that pyproject.toml
declares, one with Triton's. pip lets the wheel that was installed last win, in silence.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TRITON_SCRIPTS = {"proton": "fake_triton:main", "proton-viewer": "fake_triton:main"}
SAY = "import sys\n\n\ndef main():\n    print({!r})\n"


def write_wheel(folder: Path, name: str, modules: dict[str, str], scripts: dict[str, str]) -> Path:
    """Write the smallest wheel that pip installs."""
    info = f"{name}-1.0.dist-info"
    points = "\n".join(["[console_scripts]", *(f"{key} = {to}" for key, to in scripts.items())])
    members = modules | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points + "\n",
    }
    record = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in (members | {f"{info}/RECORD": record}).items():
            wheel.writestr(member, text)
    return path


@pytest.fixture
def wheels(tmp_path: Path) -> dict[str, Path]:
    """Return the two wheels by owner."""
    main = "from proton_bench.cli import main\n\nmain()\n"
    ours = {
        "proton_bench/__init__.py": "",
        "proton_bench/__main__.py": main,
        "proton_bench/cli/__init__.py": SAY.format("proton_bench"),
        "proton_bench/cli/viewer.py": SAY.format("proton_bench viewer"),
    }
    triton = {"fake_triton.py": SAY.format("triton")}
    return {
        "ours": write_wheel(tmp_path, "proton_bench", ours, PROJECT["scripts"]),
        "triton": write_wheel(tmp_path, "fake_triton", triton, TRITON_SCRIPTS),
    }


def install(tmp_path: Path, wheels: list[Path]) -> Path:
    """Install the wheels one after the other in a new environment; return its bin folder."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    for wheel in wheels:
        command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        options = ["--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]
        subprocess.run([*command, *options], check=True, env=os.environ | {"PIP_FIND_LINKS": ""})
    return environment / "bin"


def output(script: Path, *arguments: str) -> str:
    """Return what the script prints, run where no source folder hides the installed package."""
    done = subprocess.run(
        [script, *arguments], cwd=script.parent, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("order", "owner"),
    [(("ours", "triton"), "triton"), (("triton", "ours"), "proton_bench")],
)
def test_own_names_reach_us_and_shared_ones_belong_to_the_last_install(
    order: tuple[str, str], owner: str, tmp_path: Path, wheels: dict[str, Path]
) -> None:
    scripts = install(tmp_path, [wheels[name] for name in order])

    assert output(scripts / "proton-bench") == "proton_bench"
    assert output(scripts / "proton-bench-viewer") == "proton_bench viewer"
    assert output(scripts / "python", "-m", "proton_bench") == "proton_bench"
    assert output(scripts / "proton") == owner
