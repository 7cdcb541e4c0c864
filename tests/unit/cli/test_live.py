from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from fakes.partials import partial_at, write
from published import published

from proton_bench.cli.live import Waiting, _followed, watch
from proton_bench.errors import UsageError

MS = 1_000_000
ENDED = 2**22 + 1  # no process has this number


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "run.partial.proton"
    write(partial_at(10, kernels={"a": MS}, busy_ns=MS), file)
    return file


def waiting(*then: Callable[[], object]) -> Waiting:
    """Return what does the next of these things instead of each pause."""
    left = list(then)

    def pause(seconds: float) -> None:
        del seconds
        left.pop(0)()

    return Waiting(pause, lambda: 13 * 10**9)


def reading(
    target: Path, capsys: pytest.CaptureFixture[str], *then: Callable[[], object]
) -> dict[str, Any]:
    watch(target, once=True, as_json=True, waiting=waiting(*then))
    found: dict[str, Any] = published(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", ["run.partial.proton", "run.proton", "run"])
def test_a_recording_is_followed_by_any_of_its_names(
    file: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = reading(
        file.with_name(name),
        capsys,
        lambda: None,  # nothing new at first
        lambda: write(partial_at(12, kernels={"a": 5 * MS}, busy_ns=3 * MS), file),
    )

    assert found["kernels"] == [{"name": "a", "time_ns": 4 * MS, "count": 4}]
    assert found["busy"] == {"CUDA:0": 0.001}
    assert (found["age_ns"], found["is_over"], found["pid"]) == (10**9, False, os.getpid())


def test_a_process_is_followed_by_the_file_that_it_holds(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    with file.open("rb"):
        found = reading(
            Path(str(os.getpid())),
            capsys,
            lambda: write(partial_at(12, kernels={"a": 5 * MS}), file),
        )

    assert found["source"] == str(file)
    assert found["kernels"]


def test_the_next_file_of_a_process_is_followed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = file.with_name("run.w2.partial.proton")
    monkeypatch.setattr("proton_bench.cli.live._PROC", file.parent / "proc")
    folder = file.parent / "proc" / "7" / "fd"
    folder.mkdir(parents=True)
    (folder / "4").symlink_to(file)
    monkeypatch.chdir(file.parent)
    children = file.parent / "proc" / "7" / "task" / "7" / "children"
    children.parent.mkdir(parents=True)
    children.write_text("8")  # which has ended

    def begin_the_next() -> None:
        write(partial_at(20, kernels={"a": MS}, pid=7), following)
        (folder / "5").symlink_to(following)

    write(partial_at(10, pid=7), file)
    sources = [
        report.source
        for report, _ in _followed(
            Path("7"),
            waiting(file.unlink, lambda: None, begin_the_next, lambda: rmtree(folder.parent)),
        )
    ]

    assert sources == [str(file)] * 2 + [str(following)] * 2


def test_a_recording_that_ends_gives_its_last_reading(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reading(file, capsys, file.unlink)["is_over"]


def test_the_recording_of_a_killed_process_is_over(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(partial_at(10, pid=ENDED), file)

    assert reading(file, capsys)["is_over"]


@pytest.mark.parametrize("target", [str(ENDED), "missing.proton"])
def test_what_does_not_exist_is_an_error(target: str, tmp_path: Path) -> None:
    target = target if target.isdecimal() else str(tmp_path / target)

    with pytest.raises(UsageError):
        watch(Path(target), once=True, as_json=False)


def test_a_process_without_a_recording_is_an_error() -> None:
    with pytest.raises(UsageError, match="not recorded"):
        watch(Path(str(os.getpid())), once=True, as_json=False)


def test_following_needs_a_terminal(file: Path) -> None:
    with pytest.raises(UsageError, match="terminal"):
        watch(file, once=False, as_json=False)
