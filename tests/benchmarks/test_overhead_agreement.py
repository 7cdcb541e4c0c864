"""Comparison of recordings with torch.profiler."""

from __future__ import annotations

import pytest

from benchmarks.overhead.agreement import Window, backward_agrees, base_name, judge

ALONE = {"step_0/backward": 6, "step_1/backward": 3}


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void at::native::add<float, 4>(int, float*)", "at::native::add"),
        ("void (anonymous namespace)::sum_kernel<int>(int)", "anonymous::sum_kernel"),
    ],
)
def test_names_are_compared_without_arguments(name: str, base: str) -> None:
    assert base_name(name) == base


def test_same_launches_and_close_times_agree() -> None:
    ours = {"add": (3, 1005), "void mul<int>(int)": (2, 1000)}
    theirs = {"add": (3, 1000), "mul<int>": (2, 1000)}

    agreement = judge([Window(ours, theirs)] * 3)

    assert agreement.is_met
    assert agreement.launches == (15, 15)
    assert agreement.ratio is not None
    assert agreement.ratio.middle == pytest.approx(1.0025)


def test_one_launch_less_is_a_difference() -> None:
    windows = [Window({"add": (3, 1000)}, {"add": (3, 1000)})] * 5
    windows.append(Window({"add": (2, 1000)}, {"add": (3, 1000)}))

    agreement = judge(windows)

    assert not agreement.is_met
    assert agreement.differences == {"add": (2, 3)}


def test_as_many_launches_of_other_kernels_do_not_agree() -> None:
    agreement = judge([Window({"add": (3, 1000)}, {"mul": (3, 1000)})])

    assert not agreement.is_met
    assert agreement.differences == {"add": (3, 0), "mul": (0, 3)}


@pytest.mark.parametrize("total", [985, 1015])
def test_times_farther_apart_than_one_percent_do_not_agree(total: int) -> None:
    assert not judge([Window({"add": (3, total)}, {"add": (3, 1000)})] * 3).is_met


def test_nothing_recorded_does_not_agree() -> None:
    agreement = judge([Window({}, {})])

    assert agreement.ratio is None
    assert not agreement.is_met


def test_backward_kernels_below_their_steps_agree() -> None:
    ours = {
        "step_0/forward": 2,
        "step_0/backward": 4,
        "step_0/backward/inner": 2,
        "step_1/backward": 3,
    }

    assert backward_agrees(ours, ALONE) == []


def test_backward_kernels_elsewhere_are_named() -> None:
    ours = {"": 1, "step_0/forward": 7, "step_0/backward": 5, "step_1/backward": 3}

    assert backward_agrees(ours, ALONE) == [
        "1 kernels below no scope",
        "step_0/backward: 5 kernels, 6 in its recording alone",
    ]


def test_steps_without_kernels_do_not_agree() -> None:
    assert backward_agrees({}, {"step_0/backward": 0}) != []
    assert backward_agrees({}, {}) == ["no step was recorded alone"]
