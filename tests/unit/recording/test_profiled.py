from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import proton_bench as proton
from proton_bench.analysis.accounting.host_time import run_time_of
from proton_bench.errors import ProtonError, SessionError, UsageError
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import open_session
from proton_bench.report.words.header import losses

pytest.importorskip("torch")


def work() -> None:
    import torch

    with proton.scope("inside"):
        torch.ones(4, 4) @ torch.ones(4, 4)


def paths(profile: proton.Profile) -> set[tuple[str, ...]]:
    return {profile.path(row) for row in range(len(profile))}


def test_a_block_has_its_profile_and_prints_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    with proton.profiled(backend="cpu") as block:
        work()

    assert block.profile is not None
    assert ("inside", "aten::matmul", "aten::mm") in paths(block.profile)
    assert proton.last() is block.profile
    assert list(tmp_path.iterdir()) == []
    _, *rows = [line.split() for line in capfd.readouterr().err.splitlines()]
    assert any("inside" in row for row in rows)


def test_a_block_knows_the_time_outside_of_recorded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("PROTON_BENCH_HOST_SAMPLES", "100")

    with proton.profiled(shows=False, backend="cpu") as block:
        begin = time.perf_counter()
        while time.perf_counter() < begin + 0.3:
            sum(range(50))
        torch.ones(4, 4) @ torch.ones(4, 4)

    assert block.profile is not None
    times = run_time_of(block.profile)
    assert times.wall_ns is not None
    assert sum(times.host_parts.values()) == pytest.approx(times.wall_ns, rel=0.02)
    assert times.host_parts["in other code"] > 0.28e9


def test_what_follows_the_block_is_no_part_of_it() -> None:
    session = open_session(SessionOptions(name="x", backend="cpu", samples_host=True))
    session.settle()
    settled = time.time_ns()
    while time.time_ns() < settled + 50_000_000:
        pass
    profile = session.profile()
    session.finalize(formats=())

    assert profile.provenance["end_time_ns"] < settled + 20_000_000


def test_forked_processes_are_counted_as_missing() -> None:
    with proton.profiled(shows=False, backend="cpu") as block:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        subprocess.run([sys.executable, "-c", "pass"], preexec_fn=lambda: None, check=True)

    assert block.profile is not None
    (line,) = [each for each in losses(block.profile) if "forked" in each]
    assert line.startswith("INCOMPLETE: 3 forked processes not recorded")


def test_a_block_inside_of_itself_is_refused_and_recorded_once() -> None:
    block = proton.profiled(shows=False, backend="cpu")

    with block:
        with pytest.raises(SessionError), block:
            pass
        work()

    assert block.profile is not None
    assert ("inside", "aten::matmul", "aten::mm") in paths(block.profile)


def test_a_named_block_writes_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    with proton.profiled("x", shows=False, backend="cpu"):
        work()

    assert {file.name for file in tmp_path.iterdir()} == {"x.proton", "x.hatchet"}
    assert capfd.readouterr().err == ""


def test_a_block_with_a_timeline_has_its_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with proton.profiled("x.pftrace", shows=False, backend="cpu", data="trace"):
        work()

    assert {file.name for file in tmp_path.iterdir()} == {"x.pftrace"}


def test_an_error_of_the_block_leaves_it_recorded() -> None:
    block = proton.profiled(shows=False, backend="cpu")

    def fail() -> None:
        with block:
            work()
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert block.profile is not None
    assert ("inside",) in {path[:1] for path in paths(block.profile)}


def test_a_wrong_option_leaves_nothing_switched_on() -> None:
    with pytest.raises(UsageError), proton.profiled(backend="cpu", data="nonsense"):
        pass

    with proton.profiled(shows=False, backend="cpu") as block:
        work()
    assert block.profile is not None


def test_the_last_profile_is_that_of_the_session_that_ended_last(tmp_path: Path) -> None:
    with proton.profiled(shows=False, backend="cpu") as block:
        work()
    proton.start(str(tmp_path / "x"), backend="cpu")
    with proton.scope("another"):
        work()
    proton.finalize()

    assert proton.last() is not block.profile
    assert ("another", "inside") in {path[:2] for path in paths(proton.last())}


def test_without_a_file_of_the_last_session_there_is_an_error(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"), backend="cpu")
    proton.finalize()
    (tmp_path / "x.hatchet").unlink()

    with pytest.raises(ProtonError):
        proton.last()


def test_layers_of_a_model_are_rows_of_a_block() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))

    with proton.profiled(shows=False, backend="cpu") as block:
        model(torch.ones(1, 4))

    assert block.profile is not None
    assert ("Sequential", "0 (Linear)", "aten::linear") in {
        path[:3] for path in paths(block.profile)
    }
