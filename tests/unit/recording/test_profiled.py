from __future__ import annotations

from pathlib import Path

import pytest

import proton_bench as proton
from proton_bench.errors import ProtonError, SessionError, UsageError

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
