from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.processes import own_environment

# A package of that name is installed beside the environment, where the tests run editable.
INSTALL = """python -c '
import pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_path("purelib"), "proton_bench")
folder.mkdir()
folder.joinpath("__init__.py").touch()
'"""
WHERE = "import numpy, proton_bench; print(proton_bench.__file__)"


def test_own_packages_come_before_those_installed_editable_beside(tmp_path: Path) -> None:
    with own_environment(tmp_path / "own", tmp_path, INSTALL) as own:
        done = subprocess.run(
            [own.interpreter, "-c", WHERE],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=own.variables,
        )

    assert done.stdout.startswith(own.packages)


def test_packages_beside_it_can_be_imported(tmp_path: Path) -> None:
    pytest.importorskip("proton_bench._native")
    with own_environment(tmp_path / "own", tmp_path, "true") as own:
        done = subprocess.run(
            [own.interpreter, "-c", f"import proton_bench._native; {WHERE}"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=own.variables,
        )

    assert done.stdout


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_in_the_place_of_an_environment_stays(tmp_path: Path, is_link: bool) -> None:
    mine = tmp_path / ("mine" if is_link else "own")
    mine.mkdir()
    (mine / "notes.txt").write_text("not saved")
    if is_link:
        (mine / "pyvenv.cfg").touch()
        (tmp_path / "own").symlink_to(mine)

    with (
        pytest.raises(UsageError, match="in the place of an environment"),
        own_environment(tmp_path / "own", tmp_path, "true"),
    ):
        pass

    assert (mine / "notes.txt").read_text() == "not saved"
