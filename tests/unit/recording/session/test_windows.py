"""When a run is recorded, as its options say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile, read_steps
from proton_bench.model.steps import Steps

pytest.importorskip("proton_bench._native")

from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import open_session
from proton_bench.recording.session.steps import mark_step
from proton_bench.recording.session.windows import (
    Amount,
    PlannedWindows,
    StepCount,
    WindowPlan,
    schedule,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("10", Amount(10)),
        ("500ms", Amount(0.5, is_time=True)),
        ("1.5s", Amount(1.5, is_time=True)),
        ("2m", Amount(120, is_time=True)),
        ("1h", Amount(3600, is_time=True)),
    ],
)
def test_a_bare_number_is_steps_and_one_with_a_unit_is_time(text: str, amount: Amount) -> None:
    assert Amount.read("--for", text) == amount


@pytest.mark.parametrize(
    ("texts", "after", "every", "length"),
    [
        ({"steps": "10:20"}, Amount(10), None, Amount(10)),
        ({"steps": ":20"}, Amount(0), None, Amount(20)),
        ({"steps": "10:"}, Amount(10), None, None),
        ({"every": "1000", "for": "5"}, Amount(1000), Amount(1000), Amount(5)),
        ({"for": "5", "each": ""}, Amount(0), None, Amount(5)),
        (
            {"after": "3", "every": "1m", "for": "20"},
            Amount(3),
            Amount(60, is_time=True),
            Amount(20),
        ),
    ],
)
def test_options_become_a_plan(
    texts: dict[str, str], after: Amount, every: Amount | None, length: Amount | None
) -> None:
    plan = WindowPlan.read(texts)

    assert (plan.after, plan.every, plan.length) == (after, every, length)


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        ({"steps": "x"}, "10:20"),
        ({"steps": ":"}, "10:20"),
        ({"steps": "20:10"}, "10:20"),
        ({"steps": "1:2", "after": "3"}, "--after"),
        ({"for": "5x"}, "10s"),
        ({"for": "1.5"}, "10s"),
        ({"for": "0"}, "more than 0"),
        ({"for": "9" * 12}, "at most"),
        ({"every": "5"}, "--for"),
        ({"every": "5", "for": "5"}, "shorter"),
        ({"after": "5", "align": "10"}, "such as 10s"),
        ({"each": ""}, "--steps"),
    ],
)
def test_wrong_options_say_what_to_write(texts: dict[str, str], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        WindowPlan.read(texts)


def test_the_best_mark_of_a_program_counts_its_steps() -> None:
    count = StepCount()

    counted = [count.add(mark) for mark in ("optimizer", "optimizer", "declared", "optimizer")]

    assert counted == [True, True, True, False]
    assert (count.by, count.over) == ("declared", 2)  # a better mark takes no step back


def test_a_schedule_does_what_torchs_does() -> None:
    torch = pytest.importorskip("torch")
    for numbers in (
        {"wait": 1, "warmup": 1, "active": 3, "repeat": 2, "skip_first": 4},
        {"wait": 0, "warmup": 1, "active": 1},
        {"wait": 2, "warmup": 1, "active": 2, "repeat": 1},
    ):
        ours, theirs = schedule(**numbers), torch.profiler.schedule(**numbers)

        assert [ours(i).name for i in range(30)] == [theirs(i).name for i in range(30)]


@pytest.mark.parametrize(
    "numbers", [{"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}]
)
def test_a_schedule_needs_active_steps(numbers: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="active"):
        schedule(**numbers)


def scopes(file: Path) -> list[str]:
    profile = read_profile(file)
    return sorted(profile.name(row) for row in range(1, len(profile)))


def run_steps(count: int) -> None:
    for i in range(count):
        with proton.scope(f"step{i}"):
            pass
        proton.step()


def test_each_window_of_a_schedule_has_a_file_and_one_session_number(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    session = proton.start(tmp_path / "out", backend="cpu", schedule=plan)
    assert session is not None

    run_steps(9)
    proton.finalize(session, "proton")

    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["out.w1.hatchet", "out.w2.hatchet"]
    assert [scopes(file) for file in files] == [["step2", "step3"], ["step6", "step7"]]


def test_a_window_that_is_open_at_the_end_is_written(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=0, active=5)
    session = proton.start(tmp_path / "out", backend="cpu", schedule=plan)
    assert session is not None

    run_steps(3)
    proton.finalize(session, "proton")

    assert scopes(tmp_path / "out.w1.proton") == ["step1", "step2"]


def test_a_schedule_of_torch_is_taken_as_it_is(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)

    with proton.profiled(tmp_path / "out", shows=False, backend="cpu", schedule=plan) as block:
        run_steps(4)

    assert block.profile is not None
    names = [block.profile.name(row) for row in range(1, len(block.profile))]
    assert "step1" in names
    assert not {"step0", "step2"} & set(names)
    assert [file.name for file in sorted(tmp_path.glob("*.proton"))] == ["out.w1.proton"]


def test_without_a_name_a_block_has_all_windows(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=0, active=1)

    with proton.profiled(shows=False, backend="cpu", schedule=plan) as block:
        run_steps(4)

    assert block.profile is not None
    names = [block.profile.name(row) for row in range(1, len(block.profile))]
    assert {"step1", "step3"} <= set(names)
    assert not {"step0", "step2"} & set(names)


def test_a_schedule_that_never_records_writes_nothing_and_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = schedule(wait=9, warmup=0, active=1)
    session = proton.start(tmp_path / "out", backend="cpu", schedule=plan)

    run_steps(3)
    proton.finalize(session)

    assert list(tmp_path.iterdir()) == []
    assert "nothing was recorded" in capfd.readouterr().err


@pytest.mark.parametrize("wrong", ["x", lambda _step: 3, 7])
def test_what_is_no_schedule_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(UsageError, match="torch"):
        proton.start(tmp_path / "out", backend="cpu", schedule=wrong)
    assert list(tmp_path.iterdir()) == []


def test_files_of_windows_need_a_name() -> None:
    with pytest.raises(UsageError, match="name="):
        proton.start("-", backend="cpu", schedule=schedule(wait=0, warmup=0, active=1))


def planned(folder: Path, **texts: str) -> PlannedWindows:
    plan = WindowPlan.read({name.replace("_", "-"): text for name, text in texts.items()})
    options = SessionOptions(name=folder / "out", backend="cpu", samples_host=True)
    return PlannedWindows(plan, options, ("proton",))


@pytest.mark.parametrize(
    ("texts", "is_kept"),
    [
        ({"steps": "3:5"}, False),  # begins after the last step
        ({"steps": "0:5"}, True),
        ({"after": "3"}, True),
        ({"after": "3", "for": "1m"}, True),
    ],
)
def test_only_a_window_of_steps_that_has_none_is_spare(
    tmp_path: Path, texts: dict[str, str], is_kept: bool
) -> None:
    windows = planned(tmp_path, each="", **texts)
    run_steps(3)

    windows.end()
    windows.session.finalize(())

    assert (windows.opened, windows.session.has_window) == (1, is_kept)


def test_a_better_mark_takes_no_step_back(tmp_path: Path) -> None:
    windows = planned(tmp_path, after="10")
    for _ in range(12):
        mark_step("optimizer", "SGD")
    run_steps(4)  # the first of them ends the step of the last optimizer

    windows.end()
    windows.session.finalize(())

    (window,) = windows.session.windows
    assert (window["first_step"], window["steps"]) == (10, 5)
    assert windows.session.skipped_steps == (11, 11)


@pytest.mark.parametrize("follows", [False, True])
def test_windows_beside_a_session_leave_its_steps_alone(tmp_path: Path, follows: bool) -> None:
    whole = open_session(
        SessionOptions(name=tmp_path / "whole", backend="cpu", samples_host=follows)
    )
    plan = schedule(wait=3, warmup=0, active=2)
    # A block follows the steps, too.
    with proton.profiled(tmp_path / "own", shows=False, backend="cpu", schedule=plan):
        run_steps(40)
    whole.finalize(("proton",))

    (profile,) = read_steps([tmp_path / "whole.proton"])
    steps = Steps.of(profile.provenance)
    assert (steps is not None) == follows
    assert steps is None or (steps.first, steps.count, steps.begun) == (17, 16, 40)


def test_a_trigger_that_came_is_not_said_to_be_missing(tmp_path: Path) -> None:
    windows = planned(tmp_path, window_on=f"file:{tmp_path / 'on'}", **{"for": "3"})
    windows.switch(on=True)
    missed = windows.missed()
    windows.end()
    windows.session.finalize(())

    assert "proton_bench.step()" in missed
    assert "--window-on" not in missed


def test_a_mark_that_ends_a_window_begins_the_next_one(tmp_path: Path) -> None:
    plan = schedule(wait=0, warmup=0, active=6)
    with proton.profiled(tmp_path / "own", shows=False, backend="cpu", schedule=plan):
        run_steps(12)

    profiles = read_steps([tmp_path / f"own.w{number}.proton" for number in (1, 2)])
    steps = [Steps.of(each.provenance) for each in profiles]
    assert [(each.first, each.count, each.begun) for each in steps if each] == [
        (3, 2, 6),
        (8, 2, 12),
    ]
