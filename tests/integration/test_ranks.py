"""Four gloo ranks: a file of each, merged with labels, and a killed one said by number."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.running import PATIENCE_S, source, started

from proton_bench.formats.registry import read_profile

pytest.importorskip("torch")

Run = Callable[..., "subprocess.CompletedProcess[str]"]

RANKS = 4
TRAIN = """
    import os
    import torch
    import torch.distributed as dist
    import proton_bench as proton

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for _ in range(3):
        with proton.scope("step"):
            with proton.scope("forward"):
                found = torch.ones(32, 32) @ torch.ones(32, 32)
            with proton.scope("reduce"):
                dist.all_reduce(found)
"""
END = """
    dist.destroy_process_group()
"""
# Rank 2 records until all that it did so far was written to each file, and is killed then.
DIES = """
    import signal
    from proton_bench.errors import ProtonError
    from proton_bench.formats.registry import read_profile

    def shows_what_was_done(name):
        try:
            profile = read_profile(name)
        except ProtonError:  # it is not there yet, or being written
            return False
        return any(profile.path(row) == ("waits",) for row in range(len(profile)))

    names = ["job.rank2.partial." + suffix for suffix in os.environ["PARTIALS"].split()]
    while rank == 2 and not all(map(shows_what_was_done, names)):
        with proton.scope("waits"):
            torch.ones(4) + 1
    if rank == 2:
        print("ready", os.getpid(), flush=True)
        signal.pause()
    dist.destroy_process_group()
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS))


def write(folder: Path, *parts: str) -> None:
    (folder / "train.py").write_text(source(*parts))


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def names(folder: Path, suffix: str = "proton") -> list[str]:
    return sorted(file.name for file in folder.glob(f"*.{suffix}"))


def check_files(folder: Path) -> None:
    assert names(folder) == [f"job.rank{rank}.proton" for rank in range(RANKS)]
    for rank in range(RANKS):
        profile = read_profile(folder / f"job.rank{rank}.proton")
        facts = profile.provenance
        assert (facts["rank"], facts["local_rank"], facts["world_size"]) == (rank, rank, RANKS)
        assert facts["host"] == os.uname().nodename
        assert ("step", "reduce") in {profile.path(row) for row in range(len(profile))}


def test_torchrun_may_start_the_recorder(tmp_path: Path, proton_here: Run) -> None:
    write(tmp_path, TRAIN, END)

    done = run(tmp_path, *TORCHRUN, "-m", "proton_bench", "run", "-n", "job.proton", "train.py")

    assert done.returncode == 0, done.stderr
    check_files(tmp_path)
    merged = proton_here("merge", *tmp_path.glob("job.*"), "-o", "all.proton", "--by", "rank")
    assert (merged.returncode, merged.stderr) == (0, "")
    profile = read_profile(tmp_path / "all.proton")
    assert [profile.name(row) for row in profile.children(0)] == [
        f"rank {rank}" for rank in range(RANKS)
    ]
    assert profile.provenance.to_plain()["ranks"]["present"] == list(range(RANKS))
    table = proton_here("merge", "--stragglers", "-m", "wall", "--json", *tmp_path.glob("job.*"))
    steps = {tuple(scope["path"]): scope for scope in json.loads(table.stdout)["scopes"]}
    assert all(work > 0 for work in steps["step", "forward"]["work_ns"])


def test_the_recorder_may_start_torchrun(tmp_path: Path) -> None:
    write(tmp_path, TRAIN, END)

    done = run(
        tmp_path, "-m", "proton_bench", "run", "-n", "job.proton",
        "env", sys.executable, *TORCHRUN, "train.py",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    check_files(tmp_path)


def test_what_is_missing_of_a_killed_rank_is_said(tmp_path: Path, proton_here: Run) -> None:
    write(tmp_path, TRAIN, DIES)
    words = (*TORCHRUN, "-m", "proton_bench", "run", "-n", "job.proton", "train.py")

    soon = {"PROTON_BENCH_PARTIAL_INTERVAL_S": "0.2", "PARTIALS": "proton"}
    with started(words, tmp_path, **soon) as running:
        process_id = ready_rank(running)
        os.kill(process_id, signal.SIGKILL)
        running.communicate(timeout=PATIENCE_S)

    assert "job.rank2.proton" not in names(tmp_path)
    merged = proton_here("merge", *tmp_path.glob("job.rank*"), "-o", "all.proton")
    assert merged.returncode == 0
    assert "rank 2 of 4 is partial" in merged.stderr
    profile = read_profile(tmp_path / "all.proton")
    assert profile.partial
    assert 2 in profile.provenance.to_plain()["ranks"]["partial"]
    alone = read_profile(tmp_path / "job.rank2.partial.proton")
    assert ("step", "reduce") in {alone.path(row) for row in range(len(alone))}


def ready_rank(running: subprocess.Popen[str]) -> int:
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("ready "):
            return int(line.split()[1])
    assert running.stderr is not None
    raise AssertionError(running.stderr.read())
