"""Two gloo ranks that torchrun starts, and a file of each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.running import PATIENCE_S, source

from proton_bench.formats.registry import read_profile

pytest.importorskip("torch")

RANKS = 2
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
# Rank 1 records until all that it did so far was written to each file, and is killed then.
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

    names = ["job.rank1.partial." + suffix for suffix in os.environ["PARTIALS"].split()]
    while rank == 1 and not all(map(shows_what_was_done, names)):
        with proton.scope("waits"):
            torch.ones(4) + 1
    if rank == 1:
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
        paths = {profile.path(row) for row in range(len(profile))}
        assert {("step", "forward", "aten::ones"), ("step", "reduce")} <= paths


def test_the_recorder_may_start_torchrun(tmp_path: Path) -> None:
    write(tmp_path, TRAIN, END)

    done = run(
        tmp_path, "-m", "proton_bench", "run", "-n", "job.proton",
        "env", sys.executable, *TORCHRUN, "train.py",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    check_files(tmp_path)


def test_the_file_of_the_only_rank_is_named(tmp_path: Path) -> None:
    write(tmp_path, TRAIN, END)

    done = run(
        tmp_path, "-m", "proton_bench", "run", "-n", "job", "env", sys.executable, "-m",
        "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "train.py",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "children wrote job.hatchet, job.proton" in done.stderr
    assert "no profile" not in done.stderr


def ready_rank(running: subprocess.Popen[str]) -> int:
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("ready "):
            return int(line.split()[1])
    assert running.stderr is not None
    raise AssertionError(running.stderr.read())
