"""Four gloo ranks on this machine, of which one is late."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.running import PATIENCE_S, source

from proton_bench.analysis.collectives import Operation, operations_of
from proton_bench.formats.registry import read_profile

pytest.importorskip("torch")

RANKS = 4
STEPS = 30
# Rank 2 works 20 ms longer before each call; DDP and compiled code call from C++.
TRAIN = f"""
    import sys, time
    import torch
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional

    def prepare(rank):
        end = time.perf_counter() + (0.02 if rank == 2 else 0.0)
        while time.perf_counter() < end:
            sum(range(100))

    def train(rank):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        values = torch.ones(1000)
        for step in range({STEPS}):
            prepare(rank)
            dist.all_reduce(values)
            if step % 10 == 0:
                model(torch.ones(2, 8)).sum().backward()
                functional.all_reduce(values, "sum", dist.group.WORLD) + 1
                dist.all_reduce(values, async_op=True).wait()
"""
OF_TORCHRUN = """
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(dist.get_rank())
    dist.destroy_process_group()
"""
SPAWNED = f"""
    def main(rank, file):
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", init_method="file://" + file, rank=rank, world_size={RANKS}
        )
        train(rank)
        dist.destroy_process_group()

    if __name__ == "__main__":
        torch.multiprocessing.spawn(main, (sys.argv[1],), nprocs={RANKS})
"""
# All ranks do the same; a barrier lets them come together.
OF_NETWORKS = f"""
    import sys
    import torch
    import torch.distributed as dist

    rank = int(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method="tcp://10.77.0.1:29511", rank=rank, world_size={RANKS}
    )
    values = torch.ones(1 << 18)
    parts = [torch.empty_like(values) for _ in range({RANKS})]
    for step in range(10):
        dist.barrier()
        dist.all_gather(parts, values)
    dist.destroy_process_group()
"""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PROTON_BENCH_HOST_SAMPLES": "100"}


def proton(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", *words],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def all_reduce_of(file: Path) -> Operation:
    return next(each for each in operations_of(read_profile(file)) if "all_reduce" in each.name)


def finding_of(folder: Path, name: str) -> dict[str, Any]:
    document = json.loads(proton(folder, "why", "m.proton", "--json"))
    return next(each for each in document["findings"] if each["id"] == name)


@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
def test_the_rank_that_comes_late_is_named_with_its_line(tmp_path: Path, launcher: str) -> None:
    if launcher == "torchrun":
        (tmp_path / "train.py").write_text(source(TRAIN, OF_TORCHRUN))
        start = [
            "env", sys.executable, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(RANKS), "train.py",
        ]  # fmt: skip
    else:
        (tmp_path / "train.py").write_text(source(TRAIN, SPAWNED))
        start = ["train.py", str(tmp_path / "store")]
    proton(tmp_path, "run", "-n", "n", *start)
    files = sorted(file.name for file in tmp_path.glob("n.*.proton"))
    assert len(files) == RANKS
    facts = [read_profile(tmp_path / file).provenance for file in files]
    assert sorted(each["rank"] for each in facts) == [*range(RANKS)]

    proton(tmp_path, "merge", *files, "-o", "m.proton")

    operation = all_reduce_of(tmp_path / "m.proton")
    # Once for each step; and by DDP, by the functional collective, and asynchronously.
    assert operation.calls == operation.compared == STEPS + 3 * STEPS // 10
    assert operation.ranks == (0, 1, 2, 3)
    ddp, plain = 4 * (8 * 8 + 8), 4 * 1000
    assert operation.bytes == pytest.approx((36 * plain + 3 * ddp) / 39)
    assert operation.bus_bandwidth
    assert operation.late[2] >= STEPS * 0.8
    finding = finding_of(tmp_path, "slow-rank")
    assert finding["text"].startswith("rank 2 was late in ")
    assert re.search(r"train\.py:(9|10) prepare$", finding["text"]), finding["text"]


@contextlib.contextmanager
def networks() -> Iterator[list[str]]:
    """Make a network namespace for each rank, joined by a bridge in one more."""
    hub, *ranks = [f"pb{os.getpid()}-{name}" for name in ("hub", *range(RANKS))]
    made: list[str] = []

    def do(words: str) -> None:
        done = subprocess.run(words.split(), capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            pytest.skip(f"{words}: {done.stderr.strip()}")

    try:
        for name in (hub, *ranks):
            do(f"ip netns add {name}")
            made.append(name)
        do(f"ip -n {hub} link add bridge type bridge")
        do(f"ip -n {hub} link set bridge up")
        for rank, name in enumerate(ranks):
            do(f"ip link add v{rank} netns {hub} type veth peer name eth0 netns {name}")
            do(f"ip -n {hub} link set v{rank} master bridge up")
            do(f"ip -n {name} addr add 10.77.0.{rank + 1}/24 dev eth0")
            do(f"ip -n {name} link set eth0 up")
            do(f"ip -n {name} link set lo up")
        yield ranks
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, timeout=PATIENCE_S)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="only root can make networks, with ip and tc of iproute2",
)
def test_a_slow_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(source(OF_NETWORKS))
    with networks() as names:
        # What rank 2 sends, which in a ring goes to rank 3.
        slow = (
            f"tc -n {names[2]} qdisc add dev eth0 root tbf rate 100mbit burst 256kb latency 400ms"
        )
        subprocess.run(slow.split(), check=True, timeout=PATIENCE_S)
        running = [
            subprocess.Popen(
                [
                    "ip", "netns", "exec", name, sys.executable, "-m", "proton_bench",
                    "run", "-n", f"n.{rank}", "train.py", str(rank),
                ],
                cwd=tmp_path,
                env={**os.environ, **ENVIRONMENT, "GLOO_SOCKET_IFNAME": "eth0"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, name in enumerate(names)
        ]  # fmt: skip
        errors = [each.communicate(timeout=2 * PATIENCE_S)[1] for each in running]
    assert [each.returncode for each in running] == [0] * RANKS, errors
    proton(tmp_path, "merge", *[f"n.{rank}.proton" for rank in range(RANKS)], "-o", "m.proton")

    finding = finding_of(tmp_path, "slow-link")

    assert finding["text"].startswith("transfers to rank 3 (in a ring from rank 2) run at 0.")
    assert "gloo:all_gather" in finding["text"]


def test_sessions_of_one_process_have_their_own_calls(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        source(
            """
            import sys, torch, torch.distributed as dist
            import proton_bench as proton

            dist.init_process_group(
                "gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1
            )
            values = torch.ones(8)
            for name, calls in (("a", 3), ("b", 2)):
                session = proton.start(name, context="layers", backend="cpu")
                for _ in range(calls):
                    dist.all_reduce(values)
                proton.finalize(session, "proton")
                dist.all_reduce(values)
            dist.destroy_process_group()
            """
        )
    )

    subprocess.run(
        [sys.executable, "train.py", str(tmp_path / "store")],
        cwd=tmp_path, env={**os.environ, **ENVIRONMENT}, check=True, timeout=PATIENCE_S,
    )  # fmt: skip

    counts = [all_reduce_of(tmp_path / f"{name}.proton").calls for name in "ab"]
    facts = [read_profile(tmp_path / f"{name}.proton").provenance["collectives"] for name in "ab"]
    assert counts == [3, 2]
    assert [each["from_start"] for each in facts] == [False, False]
    assert all_reduce_of(tmp_path / "b.proton").bytes == 4 * 8
