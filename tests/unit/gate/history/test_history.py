from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.histories import MACHINE, judged, point, points_of_times, slower, stepped

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.gate.history.history import (
    ACKNOWLEDGED_FILE,
    Acknowledgement,
    acknowledge,
    read_acknowledged,
    series_of,
    write_acknowledged,
)
from proton_bench.gate.history.points import Point
from proton_bench.gate.verdict.result import SuiteVerdict


def test_a_step_upward_fails() -> None:
    found = judged(slower())

    assert found.verdict is SuiteVerdict.FAIL
    (trace,) = found.failing
    assert trace is found.traces[0]
    assert trace.series.key.path == ("step", "a")
    assert [step.at for step in trace.failing] == [20]
    assert trace.change == pytest.approx(0.05, abs=0.005)
    assert trace.levels == pytest.approx([1e5, 1.05e5], rel=0.005)


def test_a_step_downward_passes_unless_more_is_better() -> None:
    faster = {"step/a": stepped(40, (20, -0.05))}

    assert judged(points_of_times(faster)).verdict is SuiteVerdict.PASS
    for direction in (-1, 0):
        points = points_of_times(faster, direction=direction)
        assert judged(points).verdict is SuiteVerdict.FAIL


def test_nothing_changed_passes() -> None:
    found = judged(points_of_times({"step/a": stepped(40)}))

    assert (found.verdict, found.failing) == (SuiteVerdict.PASS, ())


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(
    ("size", "back", "fails"),
    [
        (0.05, -0.05, False),
        (0.05, -0.01, True),
        (0.05, -0.04, False),
        (0.02, -0.015, False),
        (1.0, -0.5, False),
        (1.0, -0.45, True),
        (1.0, -0.3, True),
    ],
)
def test_a_step_that_was_taken_back_passes(
    size: float, back: float, fails: bool, direction: int
) -> None:
    logs = direction * stepped(60, (20, size), (40, back))
    found = judged(points_of_times({"step/a": logs}, direction=direction))

    assert len(found.traces[0].steps) == 2
    assert bool(found.failing) is fails


def test_noise_that_hides_what_is_left_of_a_step_leaves_it_taken_back() -> None:
    values = stepped(60, (20, 1.0), (40, -0.48), noise=0.05)

    (trace,) = judged(points_of_times({"step/a": values})).traces

    assert len(trace.steps) == 2
    assert abs(trace.change) > 0.015
    assert not trace.failing


def test_a_quarantined_path_never_fails() -> None:
    points = [
        replace(each, values={s: replace(v, is_quarantined=True) for s, v in each.values.items()})
        for each in slower()
    ]

    found = judged(points)

    assert found.traces[0].steps
    assert found.verdict is SuiteVerdict.PASS


def test_an_acknowledged_step_passes_and_a_later_one_fails() -> None:
    before = judged(slower())
    known = acknowledge(before.traces, by="me@here", at_ns=5)

    assert [(each.path, each.by, each.at_ns) for each in known] == [(("step", "a"), "me@here", 5)]
    assert known[0].revision == before.traces[0].series.points[-1].revision
    assert judged(slower(), known).verdict is SuiteVerdict.PASS
    later = points_of_times({"step/a": stepped(70, (20, 0.05), (50, 0.03))})
    (trace,) = judged(later, known).failing
    assert [step.at for step in trace.failing] == [50]


def test_an_acknowledgement_covers_the_range_of_the_step() -> None:
    noisy = points_of_times({"step/a": stepped(60, (30, 0.02), noise=0.012)})
    found = judged(noisy)
    (step,) = found.traces[0].steps
    assert step.earliest < step.latest

    (known,) = acknowledge(found.traces, by="me", at_ns=1)

    assert known.until_ns == noisy[step.latest].time_ns


def test_what_is_acknowledged_needs_no_other_acknowledgement() -> None:
    known = acknowledge(judged(slower()).traces, by="me", at_ns=1)

    assert acknowledge(judged(slower(), known).traces, by="me", at_ns=2) == []


def test_steps_without_a_time_cannot_be_acknowledged() -> None:
    found = judged(slower(time_ns=None))

    with pytest.raises(UsageError):
        acknowledge(found.traces, by="me", at_ns=1)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_too_few_points_are_no_pass(count: int) -> None:
    found = judged(points_of_times({"step/a": stepped(count)}))

    assert found.fewest_after is None
    assert found.verdict is SuiteVerdict.NO_BASELINE


def test_points_in_which_no_step_of_so_many_series_can_be_found_are_no_pass() -> None:
    found = judged(points_of_times({f"step/k{seed}": stepped(15, seed=seed) for seed in range(20)}))

    assert found.verdict is SuiteVerdict.NO_BASELINE
    assert found.enough_points > 15


def test_no_points_at_all_are_no_pass() -> None:
    assert judged([]).verdict is SuiteVerdict.NO_BASELINE


def test_failing_series_come_first_then_those_with_steps() -> None:
    times = {
        "step/same": stepped(40),
        "step/faster": stepped(40, (20, -0.2), seed=2),
        "step/slower": stepped(40, (20, 0.03), seed=3),
        "step/slowest": stepped(40, (20, 0.1), seed=4),
    }

    found = judged(points_of_times(times))

    names = [trace.series.key.path[-1] for trace in found.traces]
    assert names == ["slowest", "slower", "faster", "same"]


def test_devices_are_not_mixed_into_a_step() -> None:
    """Two machines of different speed, in turn: neither got slower."""
    points = []
    for number in range(40):
        fast = number % 2 == 0 if number < 20 else number % 8 == 0
        machine = (("host", "fast" if fast else "slow"),)
        time = (1e5 if fast else 2e5) * float(np.exp(stepped(1, seed=number)[0] - np.log(1e5)))
        points.append(point(number, {"step/a": time}, machine=machine))

    found = judged(points)

    assert len(found.traces) == 2
    assert not any(trace.steps for trace in found.traces)


def known(series: str, until_ns: int = 5) -> Acknowledgement:
    return Acknowledgement(series, ("step", "a\nb"), "median", until_ns, "me@here", 7, "abc")


def test_a_store_without_any_has_none(tmp_path: Path) -> None:
    assert read_acknowledged(tmp_path / ".proton") == {}


def test_the_acknowledgement_of_the_latest_step_counts(tmp_path: Path) -> None:
    write_acknowledged(tmp_path / ".proton", [known("a"), known("b", until_ns=9)])
    write_acknowledged(tmp_path / ".proton", [known("a", until_ns=9), known("b")])

    expected = {"a": known("a", until_ns=9), "b": known("b", until_ns=9)}
    assert read_acknowledged(tmp_path / ".proton") == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "proton_bench.acknowledged", "version": [2, 0], "series": []}',
        b'{"schema": "proton_bench.acknowledged", "version": [1, 0], "series": [{}]}',
    ],
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / ACKNOWLEDGED_FILE
    file.write_bytes(content)

    with pytest.raises(ProfileFormatError, match="remove it"):
        write_acknowledged(tmp_path, [known("a")])
    assert file.read_bytes() == content


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".proton").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").symlink_to(tmp_path / "new")
    (tmp_path / ACKNOWLEDGED_FILE).symlink_to(tmp_path / "new")

    for store in (tmp_path / ".proton", tmp_path):
        with pytest.raises(UsageError, match="symbolic link"):
            write_acknowledged(store, [known("a")])
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_acknowledged(tmp_path, [known("a")])

    def refuse(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(OutputError):
            write_acknowledged(tmp_path, [known("b")])
    assert read_acknowledged(tmp_path) == {"a": known("a")}


A = ("step", "a")


def changed(found: Point, **facts: Any) -> Point:
    """Return a point whose values have other facts."""
    values = {subject: replace(value, **facts) for subject, value in found.values.items()}
    return replace(found, values=values)


def test_points_are_in_order_of_time() -> None:
    points = [point(number, {"step/a": 1e5 + number}) for number in (3, 1, 2)]

    (found,) = series_of(points, share=0.005)

    assert found.key.path == A
    assert found.values.tolist() == [1e5 + 1, 1e5 + 2, 1e5 + 3]


def test_without_a_time_the_given_order_counts() -> None:
    points = [point(3, {"step/a": 1.0e5}), point(1, {"step/a": 2.0e5}, time_ns=None)]

    (found,) = series_of(points, share=0.005)

    assert found.values.tolist() == [1.0e5, 2.0e5]


def test_a_point_without_a_time_stays_behind_the_one_before_it() -> None:
    points = [point(number, {"step/a": 1e5 + number}) for number in (3, 1, 2)]
    other = point(9, {"step/a": 1e5 + 9}, time_ns=None)
    first = point(8, {"step/a": 1e5 + 8}, time_ns=None)

    (found,) = series_of([first, *points[:2], other, points[2]], share=0.005)

    assert [value - 1e5 for value in found.values] == [1, 9, 2, 8, 3]


@pytest.mark.parametrize(
    "facts",
    [{"group": "other"}, {"machine": (*MACHINE, ("GPU uuid", "GPU-2"))}, {"machine": ()}],
)
def test_baselines_and_machines_have_series_of_their_own(facts: dict[str, Any]) -> None:
    points = [point(1, {"step/a": 1e5}), point(2, {"step/a": 1e5}, **facts)]

    found = series_of(points, share=0.005)

    assert [len(each.points) for each in found] == [1, 1]
    assert len({each.key.digest for each in found}) == 2


def test_units_are_never_mixed() -> None:
    points = [point(1, {"step/a": 1e5}), changed(point(2, {"step/a": 1e5}), unit="cycles")]

    assert [each.key.unit for each in series_of(points, share=0.005)] == ["ns", "cycles"]


def test_means_in_place_of_medians_are_a_series_of_their_own() -> None:
    medians = [point(number, {"step/a": 1e5}) for number in range(3)]
    means = [changed(point(number, {"step/a": 1.2e5}), metric="mean") for number in range(3, 5)]

    one, other = series_of([*medians, *means], share=0.005)

    assert [(each.metric, len(each.points)) for each in (one, other)] == [
        ("median", 3),
        ("mean", 2),
    ]
    (alone,), (of_means,) = (series_of(points, share=0.005) for points in (medians, means))
    assert of_means.metric == "mean"
    assert one.key.digest == alone.key.digest == of_means.key.digest != other.key.digest


def test_a_path_counts_if_it_is_large_enough_once() -> None:
    small = [changed(point(number, {"step/a": 1e5}), share=0.004) for number in range(3)]
    large = changed(point(3, {"step/a": 1e5}), share=0.006)

    assert series_of(small, share=0.005) == []
    (found,) = series_of([*small, large], share=0.005)
    assert len(found.points) == 4


def test_a_path_that_was_not_there_has_fewer_points() -> None:
    points = [point(1, {"step/a": 1e5}), point(2, {"step/b": 1e5}), point(3, {"step/a": 2e5})]

    found = {each.key.path[-1]: each for each in series_of(points, share=0.005)}

    assert [each.source for each in found["a"].points] == ["run1.proton", "run3.proton"]
    assert len(found["b"].points) == 1


@pytest.mark.parametrize(("least", "expected"), [(9.9e3, 10.5e3), (10.1e3, 10.1e3)])
def test_one_estimator_holds_for_a_whole_series(least: float, expected: float) -> None:
    points = [
        changed(point(1, {"step/a": 10.1e3}), as_short=10.5e3),
        changed(point(2, {"step/a": least}), as_short=least),
    ]

    (found,) = series_of(points, share=0.005)

    assert found.values[0] == expected
