"""`proton merge` on the command line: files of several processes become one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import pytest
from fakes import session_chrome
from fakes.perfetto import SessionTrace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import published
from sweeps import how_many

from proton_bench.cli import main
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.support.files import opened_output

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def write_tree(folder: Path, rank: int, *, name: str | None = None, time_ns: int = 10) -> Path:
    builder = ProfileBuilder()
    step = builder.add(0, "step", FrameKind.SCOPE)
    metrics = {"time (ns)": time_ns, "count": 1}
    builder.add(step, "k", FrameKind.KERNEL, metrics=metrics, device=Device("CUDA", 0))
    facts = {"rank": rank, "world_size": 4, "host": "h", "pid": 100 + rank, "start_time_ns": 5}
    file = folder / (name or f"job.rank{rank}.proton")
    write_profile(builder.build(provenance=facts), file)
    return file


def packets(rank: int) -> SessionTrace:
    trace = SessionTrace(rank, world_size=4, process_id=100 + rank)
    stream = trace.stream()
    trace.slice(stream, 100, 150, ["step", "k"], "kernel", launch=1)
    return trace


def test_trees_add_up_and_missing_ranks_are_named(tmp_path: Path, proton_here: Run) -> None:
    files = [write_tree(tmp_path, rank) for rank in (0, 1, 3)]

    done = proton_here("merge", *files, "-o", "job.proton")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "proton: warning: rank 2 of 4 is missing\n"
    merged = read_profile(tmp_path / "job.proton")
    assert merged.inclusive("time (ns)")[0] == 30
    assert merged.devices == (Device("CUDA", 0), Device("CUDA", 1), Device("CUDA", 2))
    shown = proton_here("view", "job.proton").stdout
    assert "ranks 0 to 1, 3 of 4" in shown
    assert "INCOMPLETE: rank 2 of 4 is missing" in shown


def test_ranks_are_kept_apart_on_request(tmp_path: Path, proton_here: Run) -> None:
    files = [write_tree(tmp_path, rank) for rank in range(4)]

    done = proton_here("merge", "--by", "rank", *reversed(files), "-o", "job.hatchet")

    assert done.returncode == 0, done.stderr
    merged = read_profile(tmp_path / "job.hatchet")
    assert [merged.name(row) for row in merged.children(0)] == [f"rank {n}" for n in range(4)]


def test_a_pattern_may_name_all_formats_of_a_run(tmp_path: Path, proton_here: Run) -> None:
    first = write_tree(tmp_path, 0)
    write_profile(read_profile(first), tmp_path / "job.rank0.hatchet")
    second = write_tree(tmp_path, 1)
    partial = write_tree(tmp_path, 1, name="job.rank1.partial.proton", time_ns=3)

    done = proton_here("merge", *sorted(tmp_path.iterdir()), "-o", "job.proton")

    assert done.returncode == 0, done.stderr
    left_out = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(left_out) == 2
    assert str(first.with_suffix(".hatchet")) in left_out[0]
    assert str(partial) in left_out[1]
    assert str(second) in left_out[1]
    assert read_profile(tmp_path / "job.proton").inclusive("time (ns)")[0] == 20


def test_a_partial_file_counts_where_it_is_all_that_is_left(
    tmp_path: Path, proton_here: Run
) -> None:
    write_tree(tmp_path, 0)
    write_tree(tmp_path, 1, name="job.rank1.partial.proton", time_ns=3)

    done = proton_here("merge", *sorted(tmp_path.iterdir()), "-o", "job.proton")

    assert "ranks 2 to 3 of 4 are missing" in done.stderr
    assert "rank 1 of 4 is partial" in done.stderr
    merged = read_profile(tmp_path / "job.proton")
    assert merged.inclusive("time (ns)")[0] == 13
    assert merged.partial


def test_phases_of_one_process_add_up(tmp_path: Path, proton_here: Run) -> None:
    for part in (0, 1, 10):
        write_tree(tmp_path, 0, name=f"x.part_{part}.proton")

    done = proton_here("merge", *tmp_path.iterdir(), "-o", "x.proton")

    assert done.returncode == 0, done.stderr
    assert read_profile(tmp_path / "x.proton").inclusive("count")[0] == 3


def test_timelines_become_a_profile(tmp_path: Path, proton_here: Run) -> None:
    (tmp_path / "a.rank0.pftrace").write_bytes(packets(0).finish())
    one = session_chrome.trace(session_chrome.step(), 1)
    (tmp_path / "a.rank1.chrome_trace").write_bytes(one)

    done = proton_here("merge", *tmp_path.iterdir(), "-o", "a.proton")

    assert "ranks 2 to 3 of 4 are missing" in done.stderr
    assert read_profile(tmp_path / "a.proton").inclusive("count")[0] == 5


def test_timelines_become_a_timeline(tmp_path: Path, proton_here: Run) -> None:
    for rank in (0, 1, 3):
        (tmp_path / f"a.rank{rank}.pftrace").write_bytes(packets(rank).finish())

    done = proton_here("merge", *tmp_path.iterdir(), "-o", "a.pftrace")

    assert done.returncode == 0
    assert done.stderr == "proton: warning: rank 2 of 4 is missing\n"
    merged = read_profile(tmp_path / "a.pftrace")
    assert merged.inclusive("count")[0] == 3
    assert len([device for device in merged.devices if device.kind == "GPU"]) == 3
    shown = proton_here("view", "a.pftrace").stdout
    assert "INCOMPLETE: rank 2 of 4 is missing" in shown


def test_a_rank_that_was_killed_is_in_the_timeline_as_far_as_it_goes(
    tmp_path: Path, proton_here: Run
) -> None:
    (tmp_path / "a.rank0.pftrace").write_bytes(packets(0).finish())
    (tmp_path / "a.rank1.partial.pftrace").write_bytes(packets(1).unfinished() + b"\x1f\x8b\x08")

    done = proton_here("merge", *tmp_path.iterdir(), "-o", "a.pftrace")

    assert "rank 1 of 4 is partial" in done.stderr
    merged = read_profile(tmp_path / "a.pftrace")
    assert merged.inclusive("count")[0] == 2
    assert merged.partial


def test_the_slowest_rank_is_named(tmp_path: Path, proton_here: Run) -> None:
    files = [write_tree(tmp_path, rank, time_ns=1000 * (rank + 1)) for rank in range(3)]

    text = proton_here("merge", "--stragglers", *files)
    done = proton_here("merge", "--stragglers", "--json", *files)

    lines = [" ".join(line.split()) for line in text.stdout.splitlines()]
    assert lines[:2] == [
        "INCOMPLETE: rank 3 of 4 is missing",
        "slowest spread % rank 0 (us) rank 1 (us) rank 2 (us) scope",
    ]
    assert lines[3] == "rank 2 100.0 1.000 2.000 3.000 step"
    document = published(done.stdout)
    assert document["schema"] == "proton_bench.stragglers"
    assert [scope["slowest_rank"] for scope in document["scopes"]] == [2, 2]
    assert document["scopes"][1]["work_ns"] == [1000, 2000, 3000]
    assert document["job"]["missing"] == [3]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["job.rank0.proton"], "-o is missing"),
        (["job.rank0.proton", "-o", "x.unknown"], "the suffix is not that of a format"),
        (["job.rank0.proton", "-o", "job.rank0.proton"], "is an input"),
        (["job.rank0.proton", "job.rank0.proton", "-o", "x.proton"], "named twice"),
        (["nothing.proton", "-o", "x.proton"], "cannot read nothing.proton"),
        (["nothing.pftrace", "-o", "x.pftrace"], "cannot read nothing.pftrace"),
        (["job.rank0.proton", "-o", "x.pftrace"], "is not a timeline in Perfetto's format"),
        (["t.pftrace", "-o", "x.chrome_trace"], ".pftrace"),
        (["t.pftrace", "-o", "t.pftrace"], "is an input"),
        (["t.pftrace", "-o", "x.pftrace", "--by", "rank"], "--by is for trees"),
        (["job.rank0.proton", "--stragglers"], "two or more"),
        (["job.rank0.proton", "--json", "-o", "x.proton"], "give that too"),
        (["a\0b", "-o", "x.proton"], "null byte"),
    ],
)
def test_wrong_words_are_one_clear_error(
    words: list[str], problem: str, tmp_path: Path, proton_here: Run
) -> None:
    write_tree(tmp_path, 0)
    (tmp_path / "t.pftrace").write_bytes(packets(0).finish())
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    done = proton_here("merge", *words)

    assert done.returncode == 2
    assert problem in done.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("suffix", ["proton", "pftrace"])
def test_an_output_that_cannot_be_written_leaves_nothing(
    suffix: str, tmp_path: Path, proton_here: Run
) -> None:
    write_tree(tmp_path, 0, name="a.proton")
    (tmp_path / "a.pftrace").write_bytes(packets(0).finish())

    done = proton_here("merge", f"a.{suffix}", "-o", f"none/x.{suffix}")

    assert done.returncode == 74
    assert len(list(tmp_path.iterdir())) == 2


def test_an_input_that_goes_meanwhile_is_named_and_not_the_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "a.pftrace"
    file.write_bytes(packets(0).finish())

    def opened_later(output: Path) -> AbstractContextManager[IO[bytes]]:
        file.unlink()
        return opened_output(output)

    monkeypatch.setattr("proton_bench.cli.commands.merge.opened_output", opened_later)

    assert main(["merge", str(file), "-o", str(tmp_path / "x.pftrace")]) == 2
    assert "a.pftrace" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["merge", "-o"], ["export", "--to", "kineto", "-o"]])
def test_a_full_disk_is_blamed_on_the_output(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.pftrace").write_bytes(packets(0).finish())
    out = tmp_path / ("x.json" if "export" in words else "x.pftrace")
    out.symlink_to("/dev/full")

    assert main([words[0], str(tmp_path / "a.pftrace"), *words[1:], str(out)]) == 74


def test_a_damaged_file_leaves_no_output(tmp_path: Path, proton_here: Run) -> None:
    (tmp_path / "a.pftrace").write_bytes(packets(0).finish())
    (tmp_path / "b.pftrace").write_bytes(b"\x0a\x05hello")

    done = proton_here("merge", "a.pftrace", "b.pftrace", "-o", "x.pftrace")

    assert done.returncode == 2, done.stderr
    assert "b.pftrace" in done.stderr
    assert {file.name[0] for file in tmp_path.iterdir()} == {"a", "b"}


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=how_many(60, 10)
)
@given(
    content=st.binary(max_size=300),
    kind=st.sampled_from(["pftrace", "proton", "hatchet"]),
    cut=st.integers(0, 400),
)
def test_no_bytes_end_in_a_traceback(
    content: bytes, kind: str, cut: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start = packets(0).finish() if kind == "pftrace" else b""
    file = tmp_path / f"x.partial.{kind}"
    file.write_bytes(start[:cut] + content)

    code = main(["merge", str(file), "-o", str(tmp_path / f"out.{kind}")])

    assert code in (0, 2)
    assert "Traceback" not in capfd.readouterr().err
