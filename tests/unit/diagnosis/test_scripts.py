from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.diagnosis.finding import Finding, Status
from proton_bench.diagnosis.scripts import (
    SCRIPTS,
    Place,
    environment_place,
    fix_scripts,
    script_section,
)
from proton_bench.errors import OutputError

# What pip writes, in its older form.
PIP = """#!{python}
# -*- coding: utf-8 -*-
import re
import sys
from {module} import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
BOTH = ("proton-bench 0.1.0", "triton 3.7.1")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An environment with our four scripts, in which Triton declares two of them as well."""
    folder = tmp_path / "environment" / "bin"
    folder.mkdir(parents=True)
    for name, (module, _) in SCRIPTS.items():
        write(folder / name, PIP.format(python=sys.executable, module=module))
    owners = {name: BOTH[: 1 if "bench" in name else 2] for name in SCRIPTS}
    return Place(folder, str(folder), sys.executable, owners)


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def take(place: Place, name: str = "proton") -> None:
    write(
        place.folder / name, PIP.format(python="/usr/bin/python", module="triton.profiler.proton")
    )


def finding(place: Place, name: str) -> Finding:
    return next(each for each in script_section(place).findings if each.name == name)


def test_our_scripts_are_ok_and_another_claim_is_reported(place: Place) -> None:
    shared, own = finding(place, "proton"), finding(place, "proton-bench")

    assert (shared.status, shared.value) == (Status.OK, str(place.folder / "proton"))
    assert shared.advice.startswith("triton 3.7.1 declares it too")
    assert (own.status, own.advice) == (Status.OK, "")


def test_a_script_that_triton_took_names_the_owner_and_the_cure(place: Place) -> None:
    take(place)

    found = finding(place, "proton")

    assert found.status is Status.PROBLEM
    assert found.value == f"{place.folder / 'proton'} belongs to triton 3.7.1"
    assert "proton-bench doctor --fix-scripts" in found.advice


def test_a_program_that_is_not_a_python_script_is_not_ours(place: Place) -> None:
    (place.folder / "proton-bench").write_bytes(b"\x7fELF\x02 from proton_bench.cli import main")

    assert "an unknown program" in finding(place, "proton-bench").value


def test_a_script_that_an_uninstall_took_away_is_absent(place: Place) -> None:
    (place.folder / "proton").unlink()

    found = finding(place, "proton")

    assert (found.status, found.value) == (Status.ABSENT, f"not in {place.folder}")


def test_a_script_outside_of_path_is_a_note(place: Place, tmp_path: Path) -> None:
    elsewhere = Place(place.folder, str(tmp_path), place.python, place.owners)

    found = finding(elsewhere, "proton-bench")

    assert found.status is Status.NOTE
    assert str(place.folder) in found.advice


def test_a_script_of_another_environment_that_comes_first_is_named(
    place: Place, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other / "proton", "#!/bin/sh\n")
    path = os.pathsep.join([str(other), place.search_path])

    found = finding(Place(place.folder, path, place.python, place.owners), "proton")

    assert found.status is Status.PROBLEM
    assert f"a shell starts {other / 'proton'}" in found.advice


def test_fix_writes_only_what_is_missing_or_of_someone_else(place: Place) -> None:
    take(place)
    (place.folder / "proton-viewer").unlink()
    before = (place.folder / "proton-bench").read_bytes()

    written = fix_scripts(place)

    assert written == [place.folder / "proton", place.folder / "proton-viewer"]
    assert [finding(place, name).status for name in SCRIPTS] == [Status.OK] * len(SCRIPTS)
    assert (place.folder / "proton-bench").read_bytes() == before
    assert sorted(os.listdir(place.folder)) == sorted(SCRIPTS)
    assert fix_scripts(place) == []


@pytest.mark.parametrize("folder", ["python", "a b'c", "x" * 150])
def test_a_written_script_starts_the_interpreter_wherever_it_lies(
    place: Place, tmp_path: Path, folder: str
) -> None:
    python = tmp_path / folder / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    take(place)

    fix_scripts(Place(place.folder, place.search_path, str(python), place.owners))

    shown = subprocess.run(
        [place.folder / "proton", "--version"], check=True, capture_output=True, text=True
    )
    assert shown.stdout.startswith("proton-bench ")


def test_a_folder_that_cannot_be_written_is_an_output_error() -> None:
    place = Place(Path("/proc/self"), "", sys.executable, {})

    with pytest.raises(OutputError, match=r"/proc/self/proton cannot be written .*python -m"):
        fix_scripts(place)


def test_this_environment_declares_our_scripts() -> None:
    owners = environment_place().owners

    assert all(any("bench" in owner for owner in owners[name]) for name in SCRIPTS)
