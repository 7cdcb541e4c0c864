"""Many files of one command, waits for pipes, and paths too deep to write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fakes.hostile import FIRST
from fuzz.bounded import bounded

from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

SECONDS = 8


def run(folder: Path, *words: object) -> tuple[int, str]:
    """Run a command in a bounded child; return its exit code, and what it wrote to stderr."""
    ended = bounded(folder, words, SECONDS)
    return ended.code, ended.stderr


def test_many_ranks_are_merged(tmp_path: Path) -> None:
    names = [f"{number}.proton" for number in range(64)]
    for name in names:
        builder = ProfileBuilder()
        for row in range(300):
            builder.add(0, f"k{row}", FrameKind.KERNEL, metrics={"time (ns)": row, "count": 1})
        write_profile(builder.build(), tmp_path / name)

    code, text = run(tmp_path, "merge", *names, "-o", "out.proton")

    assert code == 0, text[-500:]
    assert read_profile(tmp_path / "out.proton").inclusive("count")[0] == 64 * 300


@pytest.mark.parametrize(
    "words",
    [
        ("view", "a.pftrace"),
        ("merge", "a.pftrace", "b.pftrace", "-o", "out.pftrace"),
        ("merge", "a.chrome_trace", "b.chrome_trace", "-o", "out.proton"),
        ("merge", "a.pftrace", "b.pftrace", "-o", "out.proton"),
        ("export", "a.pftrace", "--to", "kineto", "-o", "out"),
        ("query", "a.proton", "SELECT 1"),
    ],
)
def test_pipes_that_stall_are_refused(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proton_bench.support.inputs._PIPE_WAIT_MS", 50)
    pipes = [tmp_path / word for word in words if word[:2] in ("a.", "b.")]
    for pipe in pipes:
        os.mkfifo(pipe)
    # A writer that stays and writes no more.
    writers = [os.open(pipe, os.O_RDWR) for pipe in pipes]
    for writer in writers:
        os.write(writer, FIRST)

    code, text = run(tmp_path, *words)

    for writer in writers:
        os.close(writer)
    assert code == 2, text[-500:]
    assert text.count("error:") == 1
    assert "Traceback" not in text


@pytest.mark.parametrize("threshold", ["median:3%", "**@median:3%"])
def test_a_gate_of_a_deep_tree_ends(tmp_path: Path, threshold: str) -> None:
    for factor, name in enumerate(("a.proton", "b.proton"), 1):
        builder, row = ProfileBuilder(), 0
        for level in range(20_000):
            row = builder.add(row, f"s{level % 9}", FrameKind.SCOPE)
            metrics = {"time (ns)": 5 * factor, "count": 1}
            builder.add(row, "k", FrameKind.KERNEL, metrics=metrics)
        write_profile(builder.build(), tmp_path / name)

    code, text = run(tmp_path, "gate", "a.proton", "b.proton", "--threshold", threshold)

    # Selectors are about all paths, whose names grow with the square of the depth.
    assert code == (2 if "**" in threshold else 3), text[-500:]
    assert len(text.splitlines()) <= 1
