"""The source with its hot lines, and a comparison of lines, from the command line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.samples import Line, sampled_profile
from published import published

from proton_bench.formats.registry import write_profile

UPSTREAM = Path(__file__).parents[1] / "data" / "upstream" / "matmul-pcsampling.hatchet"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def write(folder: Path, name: str, *, moved: int = 0, wait: int = 100) -> Path:
    kernel = folder / "kernel.py"
    kernel.write_text("".join(f"text of {number}\n" for number in range(1, 41)))
    lines = (
        Line(f"{kernel}:{12 + moved}@softmax_kernel", {"long_scoreboard": 600, "wait": wait}, 300),
        Line(f"{kernel}:{14 + moved}@softmax_kernel", {"barrier": 150, "selected": 50}, 100),
    )
    path = folder / f"{name}.proton"
    write_profile(sampled_profile(lines), path)
    return path


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_source_shows_hot_lines_with_their_text(proton_here: Run, tmp_path: Path) -> None:
    shown = succeeded(proton_here("view", "--source", write(tmp_path, "x")))

    assert "1 490 PC samples, one per 1 024 cycles of a multiprocessor" in shown
    assert "12  text of 12\n" in shown
    assert "long_scoreboard 85.7 %" in shown
    assert "NVIDIA".lower() in shown


def test_source_as_json(proton_here: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "x")

    document = published(succeeded(proton_here("view", "--source", "--json", "-t", "20", path)))

    (file,) = document["files"]
    assert [line["text"] for line in file["lines"]] == ["text of 12"]


def test_a_pattern_chooses_one_file(proton_here: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "x")

    assert "text of 12" in succeeded(proton_here("view", "--source", "-i", ".*kernel.py", path))
    assert "-i .*other.py" in refused(proton_here("view", "--source", "-i", ".*other.py", path))


def test_source_of_upstreams_file_has_its_kernel_without_lines(proton_here: Run) -> None:
    shown = succeeded(proton_here("view", "--source", UPSTREAM))

    assert "765 147 samples: 8.5 % issued, 57.9 % stalled, 33.7 % not issued" in shown
    assert "barrier 33.8 %             matmul_kernel" in shown


def test_source_of_a_file_without_samples_says_how_to_record_them(proton_here: Run) -> None:
    line = refused(proton_here("view", "--source", UPSTREAM.with_name("tinymeta-hook.hatchet")))

    assert "proton run -m pcsampling" in line


@pytest.mark.parametrize("words", [("-i", "("), ("-i", "a", "-e", "b"), ("-i", "nothing")])
def test_wrong_choices_are_refused(
    words: tuple[str, ...], proton_here: Run, tmp_path: Path
) -> None:
    line = refused(proton_here("view", "--source", *words, write(tmp_path, "x")))

    assert line.startswith("proton: error: ")


def test_diff_by_line_follows_lines_that_moved(proton_here: Run, tmp_path: Path) -> None:
    base, new = write(tmp_path, "base"), write(tmp_path, "new", moved=3, wait=400)

    shown = succeeded(proton_here("diff", base, new, "--by", "line", "-t", "0"))

    (row,) = (line for line in shown.splitlines() if "kernel.py:15@softmax_kernel" in line[20:])
    assert row.split()[:4] == ["1000", "1300", "+300", "+30.0"]
    assert row.endswith("was :12")
    assert "NEW" not in shown
    assert "REMOVED" not in shown


def test_default_columns_of_a_sampled_profile_reach_its_lines(
    proton_here: Run, tmp_path: Path
) -> None:
    shown = succeeded(proton_here("view", write(tmp_path, "x")))

    assert "num_samples/%" in shown.splitlines()[5]
    (row,) = (line for line in shown.splitlines() if "kernel.py:12 " in line)
    assert row.split()[:4] == ["-", "-", "-", "51.3"]


def test_a_gate_judges_kernels_by_their_times_and_leaves_lines_out(
    proton_here: Run, tmp_path: Path
) -> None:
    base, new = write(tmp_path, "base"), write(tmp_path, "new", moved=3, wait=4000)

    done = proton_here("gate", "--json", base, new)

    document = published(done.stdout)
    totals = {(), ("train", "forward")}
    kernels = {("train", "forward", "softmax_kernel"), ("train", "sm90_xmma_gemm_f16")}
    assert {tuple(row["path"]) for row in document["rows"]} == totals | kernels
    assert {row["change"] for row in document["rows"]} == {0.0}  # though it has other samples
    assert document["structure"] == []


def test_a_query_gives_samples_of_lines_and_no_times(proton_here: Run, tmp_path: Path) -> None:
    sql = """select name, "time (ns)", num_stalled_samples from nodes where kind = 'line'"""

    document = published(succeeded(proton_here("query", "--json", write(tmp_path, "x"), sql)))

    values = [tuple(row.values() if isinstance(row, dict) else row) for row in document["rows"]]
    assert [row[1:] for row in values] == [(None, 700), (None, 200)]


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("kind", ["outside", "link", "folder link", "pipe", "environment"])
def test_a_profile_opens_no_file_elsewhere(
    proton_here: Run,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    kind: str,
    form: list[str],
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "key").write_text("SECRET\n" * 40)
    named = {
        "outside": outside / "key",
        "link": tmp_path / "link.py",
        "folder link": tmp_path / "folder" / "key",
        "pipe": tmp_path / "pipe",
        "environment": Path("/proc/self/environ"),
    }[kind]
    (tmp_path / "link.py").symlink_to(outside / "key")
    (tmp_path / "folder").symlink_to(outside)
    os.mkfifo(tmp_path / "pipe")
    write_profile(sampled_profile((Line(f"{named}:1@f", {"wait": 9}, 9),)), tmp_path / "x.proton")

    shown = succeeded(proton_here("view", "--source", *form, tmp_path / "x.proton"))

    assert "SECRET" not in shown
    assert "PATH=" not in shown
    if form:
        assert [line["text"] for line in published(shown)["files"][0]["lines"]] == [None]
