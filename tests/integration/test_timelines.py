"""Timelines of other tools on the command line: shown and exported like every profile."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import nsys
from fakes.kineto import call, host, kernel, trace

from proton_bench.formats.registry import read_profile

Run = Callable[..., "subprocess.CompletedProcess[str]"]

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return one file of each kind, with the kernel ``gemm`` in each."""
    kineto = tmp_path / "kineto.pt.trace.json"
    work = [
        host("cpu_op", "aten::mm", 0, 9),
        call(1, 2),
        kernel(1, 20, 5),
        kernel(7, 30, 5, "lost"),
    ]
    kineto.write_bytes(trace(work))
    export = nsys.write_export(
        tmp_path / "nsys.sqlite",
        {
            "StringIds": nsys.texts("gemm"),
            nsys.KERNEL: [nsys.kernel(1, 20, 30)],
            nsys.RUNTIME: [nsys.call(1, 2)],
            nsys.NVTX: [nsys.push("step", 0, 9)],
        },
    )
    return {
        "kineto": kineto,
        "nsys": export,
        "390": DATA / "upstream-3.9.0" / "run.chrome_trace",
        "360": DATA / "upstream" / "graph-trace.chrome_trace.gz",
    }


@pytest.mark.parametrize("kind", ["kineto", "nsys", "390", "360"])
def test_view_shows_times_below_call_paths(
    kind: str, files: dict[str, Path], proton_here: Run
) -> None:
    shown = proton_here("view", "--json", files[kind])

    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["schema"] == "proton_bench.view"
    assert "time" in document["metrics"][0]["name"]


def test_view_says_what_could_not_be_attributed(files: dict[str, Path], proton_here: Run) -> None:
    shown = proton_here("view", files["kineto"])

    assert "DROPPED: 1 record: device work whose launch is not in the file" in shown.stdout
    assert "aten::mm" in shown.stdout


@pytest.mark.parametrize("kind", ["kineto", "nsys", "390", "360"])
@pytest.mark.parametrize("to", ["proton", "hatchet", "json"])
def test_export_keeps_times_and_paths(
    kind: str, to: str, files: dict[str, Path], tmp_path: Path, proton_here: Run
) -> None:
    target = tmp_path / f"out.{to}"

    done = proton_here("export", files[kind], "--to", to, "-o", target)

    assert done.returncode == 0, done.stderr
    profile, origin = read_profile(target), read_profile(files[kind])
    assert profile.inclusive("time (ns)")[0] == origin.inclusive("time (ns)")[0]
    assert {profile.path(row) for row in range(len(profile))} == {
        origin.path(row) for row in range(len(origin))
    }


@pytest.mark.parametrize("kind", ["kineto", "nsys", "390", "360"])
def test_a_file_that_was_cut_off_ends_with_exit_code_2(
    kind: str, files: dict[str, Path], tmp_path: Path, proton_here: Run
) -> None:
    content = files[kind].read_bytes()
    damaged = tmp_path / f"cut{''.join(files[kind].suffixes)}"
    damaged.write_bytes(content[: len(content) // 2])

    done = proton_here("view", damaged)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cut" in done.stderr
