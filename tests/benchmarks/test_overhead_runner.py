"""Processes of arms that take turns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.overhead import runner
from benchmarks.overhead.plan import Arm, chosen
from benchmarks.overhead.runner import ArmProcess, Lockstep, Setting, measure_round, processes

Log = list[tuple[str, str, str]]


class FakeProcess:
    """Answers at once, and notes each request."""

    def __init__(self, name: str, log: Log, fails: str = "") -> None:
        self.name, self.log, self.fails = name, log, fails
        self.is_lost = False
        self.error = ""

    def send(self, do: str, workload: str = "") -> None:
        self.log.append((self.name, do, workload))

    def receive(self, what: str) -> dict[str, Any] | None:
        if what == self.fails:
            return None
        return {"seconds": 1.0, "thread_seconds": 0.5, "finalize_s": 0.1, "bytes": 1, "kernels": 2}

    def ask(self, do: str, workload: str = "") -> dict[str, Any] | None:
        self.send(do, workload)
        return self.receive(f"{do} {workload}")


def lockstep(fails: str = "", seed: int = 0, blocks: int = 3) -> tuple[Log, dict[str, Any]]:
    log: Log = []
    arms = chosen(["none", "floor", "ours"], ["tiny", "compiled_graphs"])
    running: Any = {name: FakeProcess(name, log, fails if name == "ours" else "") for name in arms}
    results: dict[str, Any] = {
        name: {
            "workloads": {
                work: {"bare": [], "profiled": [], "bare_thread": [], "profiled_thread": []}
                for work in arm.workloads
            }
        }
        for name, arm in arms.items()
    }
    order = random.Random(seed)
    Lockstep(running, arms, results=results, order=order).measure(blocks)
    return log, results


def test_blocks_without_and_with_a_profiler_alternate() -> None:
    log, _ = lockstep()
    ours = [do for name, do, workload in log if (name, workload) == ("ours", "tiny")]

    assert ours == ["block", *["block", "start", "block", "finish"] * 9]


def test_work_that_takes_long_to_capture_has_several_pairs_a_session() -> None:
    log, _ = lockstep(blocks=16)
    ours = [do for name, do, workload in log if (name, workload) == ("ours", "compiled_graphs")]

    assert ours == ["block", *[*["block"] * 8, "start", *["block"] * 9, "finish"] * 2]


@pytest.mark.parametrize(("workload", "do"), [("tiny", "start"), ("compiled_graphs", "block")])
def test_arms_take_turns(workload: str, do: str) -> None:
    log, _ = lockstep()
    names = [name for name, each, work in log if (each, work) == (do, workload)]

    turns = [names[place : place + 3] for place in range(0, len(names), 3)]

    assert all(sorted(turn) == ["floor", "none", "ours"] for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1


def test_the_order_comes_from_the_seed() -> None:
    assert lockstep(seed=1)[0] == lockstep(seed=1)[0]
    assert lockstep(seed=1)[0] != lockstep(seed=2)[0]


def test_the_first_block_is_not_kept() -> None:
    _, results = lockstep(blocks=3)

    assert results["ours"]["workloads"]["compiled_graphs"] == {
        "bare": [1.0] * 3,
        "profiled": [1.0] * 3,
        "bare_thread": [0.5] * 3,
        "profiled_thread": [0.5] * 3,
        "finalize_s": 0.1,
        "bytes": 1,
        "kernels": 2,
        "sampling": None,
    }


def test_an_arm_that_fails_in_one_workload_goes_on_with_the_next() -> None:
    log, results = lockstep(fails="start tiny")

    assert results["ours"]["workloads"]["tiny"]["profiled"] == []
    assert results["ours"]["workloads"]["compiled_graphs"]["profiled"] == [1.0] * 3
    assert ("ours", "finish", "tiny") not in log
    assert results["none"]["workloads"]["tiny"]["profiled"] == [1.0] * 9


def test_a_process_that_cannot_prepare_is_lost_and_says_why(tmp_path: Path) -> None:
    arms = {"odd": Arm("odd", "none", ("no such workload",))}

    with processes(arms, setting=Setting("cpu"), folder=tmp_path) as running:
        process = running["odd"]
        assert process.is_lost
        assert process.error == "prepare: KeyError: 'no such workload'"
        assert "KeyError" in process.last_words()


def test_a_process_that_ended_is_lost(tmp_path: Path) -> None:
    process = ArmProcess(Arm("gone", "none", ()), setting=Setting("cpu"), folder=tmp_path / "gone")
    process._process.kill()
    process._process.wait()

    answer = process.ask("prepare")
    process.end()

    assert answer is None
    assert process.is_lost
    assert process.error.startswith("prepare")


def test_a_round_measures_in_fresh_processes() -> None:
    arms = chosen(["none", "torch"], ["tiny"])
    arms["none"] = Arm("none", "none", ("tiny", "matmul"))

    result = measure_round(arms, Setting("cpu", blocks=1), random.Random(0))

    assert {name: each["error"] for name, each in result.items()} == {"none": None, "torch": None}
    tiny = result["none"]["workloads"]["tiny"]
    assert len(tiny["bare"]) == len(tiny["profiled"]) == 3
    assert tiny["bare"][0] > 0
    assert result["torch"]["workloads"]["tiny"]["bytes"] > 0


@pytest.mark.parametrize("is_apart", [False, True])
def test_arms_run_together_or_apart(monkeypatch: pytest.MonkeyPatch, is_apart: bool) -> None:
    together: list[set[str]] = []

    @contextmanager
    def fakes(arms: Mapping[str, Arm], **_: object) -> Iterator[dict[str, Any]]:
        together.append({*arms})
        yield {name: FakeProcess(name, []) for name in arms}

    monkeypatch.setattr(runner, "processes", fakes)
    arms = chosen(["none", "torch"], ["tiny"])

    result = measure_round(arms, Setting("cpu", blocks=1, apart=is_apart), random.Random(0))

    assert {*result} == {"none", "torch"}
    assert all(len(each["workloads"]["tiny"]["profiled"]) == 3 for each in result.values())
    assert len(together) == (2 if is_apart else 1)
    assert {name for group in together for name in group} == {"none", "torch"}
