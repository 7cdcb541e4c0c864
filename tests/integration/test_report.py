"""``proton report`` from files to its page, and its errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import training_profile
from fakes.runs import profile_of

from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device

DATA = Path(__file__).parents[1] / "data"
RECORDED = sorted(
    path
    for path in (*DATA.glob("upstream*/*"), *DATA.glob("golden/*"), *DATA.glob("kineto/*"))
    if path.suffix != ".md" and not path.name.endswith(".bin.gz")  # buffers, not profiles
)
BASE = profile_of(("s/a", 1000, 10, "c"), ("s/gone", 70, 1, "x"))
NEW = profile_of(("s/a", 1500, 10, "c"), ("s/fresh", 9, 2, ""))

Report = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_profile(BASE, tmp_path / "base.proton")
    write_profile(NEW, tmp_path / "new.proton")
    write_profile(training_profile(), tmp_path / "run.proton")
    return tmp_path


@pytest.fixture
def report(folder: Path, capfd: pytest.CaptureFixture[str]) -> Report:
    def run(*words: object) -> str:
        code = main(["report", *map(str, words)])
        out, err = capfd.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture
def refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> Report:
    def run(*words: object, code: int = 2) -> str:
        before = sorted(folder.iterdir())
        found = main(["report", *map(str, words)])
        out, err = capfd.readouterr()
        assert (found, out) == (code, "")
        (line,) = err.splitlines()
        assert line.startswith("proton: error: ")
        assert sorted(folder.iterdir()) == before
        return line

    return run


def data(file: Path) -> Any:
    (text,) = re.findall(
        r'<script id="report" type="application/json">(.*?)</script>', file.read_text(), re.DOTALL
    )
    return json.loads(text)


def test_a_process_of_its_own_writes_the_page_beside_the_profile(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "report", "run.proton"],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "run.html\n", "")
    assert data(folder / "run.html")["kernels"]["names"] == ["kernel_3", "kernel_1"]
    assert not list(folder.glob("*.partial*"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_recorded_file_has_a_page(report: Report, folder: Path, path: Path) -> None:
    report(path, "-o", "page.html")

    assert data(folder / "page.html")["schema"] == "proton_bench.report"


def test_comparison_is_written_under_another_name(report: Report, folder: Path) -> None:
    printed = report("new.proton", "--base", "base.proton")

    found = data(folder / "new.diff.html")
    assert printed == "new.diff.html\n"
    assert found["kernels"]["names"] == ["a", "gone", "fresh"]
    assert found["kernels"]["columns"][2]["values"] == [500, -70, 9]


def test_several_runs_of_both_sides_are_taken(report: Report, folder: Path) -> None:
    report("new.proton", "new.proton", *("--base", "base.proton") * 3, "-o", "x.html")

    page = (folder / "x.html").read_text()
    assert "of 3 runs" in page
    assert "of 2 runs" in page


def test_page_goes_to_stdout(report: Report, folder: Path) -> None:
    page = report("run.proton", "-o", "-")

    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert not list(folder.glob("*.html"))


def test_metrics_are_the_columns(report: Report, folder: Path) -> None:
    report("run.proton", "-m", "count,time/us")

    found = data(folder / "run.html")
    assert [column["title"] for column in found["flame"]["columns"]] == ["count", "time"]


def test_older_page_is_replaced(report: Report, folder: Path) -> None:
    (folder / "run.html").write_text("old")
    report("run.proton")

    assert (folder / "run.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.proton"], "cannot read nowhere.proton"),
        (["broken.proton"], "broken.proton"),
        (["base.proton", "new.proton"], "proton report NEW --base BASE"),
        (["run.proton", "-o", "run.proton"], "is an input"),
        (["new.proton", "--base", "base.proton", "-o", "base.proton"], "is an input"),
        (["run.proton", "-m", "nonsense"], "nonsense"),
        (["run.proton", "-m", "tflop16/s"], "-m time/ms,tflop16/s"),
        (["run.proton", "-m", "time,,count"], "has an empty name"),
        (["run.proton", "--ignore-devices"], "--base FILE"),
        (["new.proton", "--base", "base.proton", "-m", "time,count"], "is not one metric"),
        (["new.proton", "--base", "base.proton", "-m", "avg_time/us"], "proton diff -m"),
        (["new.proton", "--base", "amd.proton"], "give --ignore-devices to compare them anyway"),
        (["new.proton", "--base", "nowhere.proton"], "cannot read nowhere.proton"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    refused: Report, folder: Path, words: list[str], said: str
) -> None:
    (folder / "broken.proton").write_bytes(b"\x81\xa6schema")
    other = profile_of(("s/a", 10, 1, ""), device=Device("HIP", 0, "gfx942"))
    write_profile(other, folder / "amd.proton")

    assert said in refused(*words)


def test_an_empty_base_is_refused(refused: Report, folder: Path) -> None:
    write_profile(ProfileBuilder().build(), folder / "empty.proton")

    words = ("new.proton", "--base", "empty.proton")
    assert "empty.proton' is empty" in refused(*words, code=5)


@pytest.mark.parametrize("target", ["no/such/folder/x.html", "run.proton/x.html", "."])
def test_place_that_cannot_be_written_is_reported(refused: Report, target: str) -> None:
    assert "choose another file" in refused("run.proton", "-o", target, code=74)


def test_different_devices_are_compared_on_request(report: Report, folder: Path) -> None:
    other = profile_of(("s/a", 10, 1, ""), device=Device("HIP", 0, "gfx942"))
    write_profile(other, folder / "amd.proton")

    report("new.proton", "--base", "amd.proton", "--ignore-devices")

    assert (folder / "new.diff.html").exists()
