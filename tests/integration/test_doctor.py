"""``proton doctor`` as users call it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from published import published

Run = Callable[..., "CompletedProcess[str]"]
DATA = Path(__file__).parents[1] / "data"
NVIDIA_GPU = Path("/dev/nvidiactl")


def test_json_is_the_only_thing_on_stdout(proton_here: Run) -> None:
    done = proton_here("doctor", "--json", "--require", "cpu", "--require", "native")

    document = published(done.stdout)
    assert done.returncode == 0
    assert document["required"] == {"cpu": True, "native": True}


def test_text_shows_versions_and_backends(proton_here: Run) -> None:
    done = proton_here("doctor")

    lines = [line.split()[:2] for line in done.stdout.splitlines() if line.strip()]
    assert done.returncode == 0
    assert ["proton-bench", "ok"] in lines
    assert ["cpu", "ok"] in lines


def test_the_report_is_a_screen_without_a_native_module_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; sys.modules['proton_bench._native'] = None"
    )
    plain = {name: os.environ[name] for name in os.environ if not name.startswith("PROTON_")}
    whole, part = (
        subprocess.run(
            [sys.executable, "-m", "proton_bench", "doctor"],
            env={**plain, "PYTHONPATH": path},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.splitlines()
        for path in ("", str(tmp_path))
    )

    for lines in (whole, part):
        assert len(lines) <= 45
        assert max(map(len, lines)) <= 100
        assert lines[-1] == "No problems found."
    assert "not built: analysis works" in "\n".join(part)


@pytest.mark.parametrize("name", ["no-such-thing", "no-such-extra"])
def test_a_missing_requirement_is_69_with_one_line(proton_here: Run, name: str) -> None:
    done = proton_here("doctor", "--require", name)

    assert done.returncode == 69
    assert done.stderr.startswith(f"proton: error: --require: {name}: nothing has this name")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(NVIDIA_GPU.exists(), reason="there is a GPU to measure")
def test_a_calibration_that_measures_nothing_is_69(proton_here: Run) -> None:
    done = proton_here("doctor", "--calibrate", "--json")

    assert done.returncode == 69
    assert "calibration" in [each["name"] for each in published(done.stdout)["sections"]]
    assert "Traceback" not in done.stderr


def test_profiles_whose_numbers_can_be_true_are_fine(proton_here: Run) -> None:
    done = proton_here("doctor", "--json", DATA / "golden" / "profile.proton")

    document = published(done.stdout)
    assert done.returncode == 0
    assert document["problems"] == 0


def test_numbers_that_contradict_each_other_exit_with_2(proton_here: Run) -> None:
    file = DATA / "earlier" / "profile.json"

    done = proton_here("doctor", "--json", file, PROTON_BENCH_CHECK="")

    document = published(done.stdout)
    assert done.returncode == 2
    (section,) = document["sections"]
    assert section["name"] == str(file)
    assert [finding["name"] for finding in section["findings"]] == ["row 5"]


def test_a_file_that_is_not_a_profile_exits_with_2(proton_here: Run, tmp_path: Path) -> None:
    (tmp_path / "x.proton").write_text("nothing")

    done = proton_here("doctor", tmp_path / "x.proton")

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
