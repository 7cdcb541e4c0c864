from __future__ import annotations

from dataclasses import replace

import pytest

from proton_bench.analysis.accounting.device_use import device_verdicts, with_device_use
from proton_bench.analysis.metrics.derive import available_metrics, default_metrics, derive
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile

GPU = Device("CUDA", 0)
LATENCY = {"launch_latency_sum (ns)": 900, "launch_latency_count": 3}


def profile(*uses: DeviceUse) -> Profile:
    """step > {add, mul}, and a kernel under no scope that is called like one."""
    builder = ProfileBuilder()
    step = builder.add(0, "step", FrameKind.SCOPE)
    for name in ("add", "mul"):
        metrics = {"time (ns)": 50, "count": 3, **LATENCY}
        builder.add(step, name, FrameKind.KERNEL, metrics=metrics, device=GPU)
    builder.add(0, "idle", FrameKind.KERNEL, metrics={"time (ns)": 9, "count": 1}, device=GPU)
    return replace(builder.build(), device_use=uses)


def values(shown: Profile, metric: str) -> dict[str, object]:
    (found,) = derive(shown, [metric])
    return {
        shown.name(row): value for row, value in enumerate(found.to_list()) if value is not None
    }


def use(busy_ns: int, idle_ns: int, scope: str | None = None, **more: int) -> DeviceUse:
    return DeviceUse(scope, 0, busy_ns=busy_ns, idle_ns=idle_ns, **more)


def test_times_of_devices_stand_on_the_root_and_on_top_level_scopes() -> None:
    shown = profile(use(60, 40), use(50, 30, "step"), use(1, 1, "idle"), use(1, 1, "gone"))

    assert values(shown, "gpu_busy") == {"ROOT": 60, "step": 50}
    assert values(shown, "gpu_idle (ns)") == {"ROOT": 40, "step": 30}
    assert values(shown, "gpu_wall") == {"ROOT": 100, "step": 80}


def test_times_of_several_devices_are_summed() -> None:
    shown = profile(use(60, 40), replace(use(5, 6), device=1))

    assert values(shown, "gpu_busy") == {"ROOT": 65}


def test_shares_are_those_of_the_wall_time() -> None:
    shown = profile(use(60, 20, waiting_ns=20), use(30, 30, "step"))

    assert values(shown, "gpu_busy/%") == {"ROOT": 75.0, "step": 50.0}
    assert values(shown, "gpu_idle/%") == {"ROOT": 25.0, "step": 50.0}
    assert values(shown, "gpu_waiting/%") == {"ROOT": 25.0, "step": 0.0}


def test_launch_latency_is_the_mean_over_the_kernels_below() -> None:
    assert values(profile(), "launch_latency") == {
        **dict.fromkeys(("ROOT", "step", "add", "mul"), 300.0)
    }


def test_metrics_of_devices_are_listed_where_they_are_known() -> None:
    assert "gpu_busy (ns)" in available_metrics(profile(use(1, 1))).recorded
    assert "gpu_busy (ns)" not in available_metrics(profile()).recorded
    assert default_metrics(profile(use(1, 1))) == default_metrics(profile())


def test_a_recorded_metric_keeps_its_name() -> None:
    builder = ProfileBuilder()
    builder.add(0, "add", FrameKind.KERNEL, metrics={"gpu_busy (ns)": 7}, device=GPU)
    shown = replace(builder.build(), device_use=(use(60, 40),))

    assert values(shown, "gpu_busy") == {"ROOT": 7, "add": 7}


def test_a_profile_without_devices_is_not_touched() -> None:
    plain = ProfileBuilder().build()

    assert with_device_use(plain) is plain


def test_the_default_view_keeps_times_of_devices() -> None:
    tree = build_tree(profile(use(60, 40), use(50, 30, "step")), ["gpu_busy"], Selection())

    assert tree.metrics[0].to_list()[:2] == [60, 50]


FAST = {"launches": 3, "latency_sum_ns": 18_000, "latency_max_ns": 6000, "latency_min_ns": 6000}
SOON = {**FAST, "latency_first_bucket": 84, "latency_buckets": (3,)}
QUEUED = {**SOON, "latency_max_ns": 10**6, "latency_min_ns": 10**6, "latency_first_bucket": 143}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (use(60, 40, **SOON), "launch-bound"),  # type: ignore[arg-type]
        (use(95, 5, **SOON), ""),  # type: ignore[arg-type]
        (use(60, 40, **QUEUED), ""),  # type: ignore[arg-type]
        (use(60, 40), ""),
        (use(60, 40, **SOON, latency_clamped=1), ""),  # type: ignore[arg-type]
        (use(60, 40, **SOON, latency_clamped=3), ""),  # type: ignore[arg-type]
        (use(60, 40, **SOON, waiting_ns=30), "waits for other devices"),  # type: ignore[arg-type]
    ],
)
def test_a_verdict_says_why_a_device_was_not_busier(found: DeviceUse, reason: str) -> None:
    (verdict,) = device_verdicts(profile(found, use(1, 1, "step")))

    assert verdict.device == "CUDA:0"
    assert verdict.reason == reason


def test_latencies_that_clocks_contradict_are_not_shown() -> None:
    (verdict,) = device_verdicts(profile(use(60, 40, **SOON, latency_clamped=1)))  # type: ignore[arg-type]

    assert verdict.latency_ns is None


def test_a_device_without_time_has_no_verdict() -> None:
    assert device_verdicts(profile(use(0, 0))) == ()
