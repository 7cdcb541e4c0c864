from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.histories import judged, point, points_of_times, slower, stepped

from proton_bench.errors import UsageError
from proton_bench.gate.history.history import acknowledge
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
