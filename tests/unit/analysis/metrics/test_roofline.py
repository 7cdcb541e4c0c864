from __future__ import annotations

from typing import Any

import pytest
from fakes.profiles import training_profile
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.peak import ARCHITECTURES, known_architectures, peak_rates
from proton_bench.analysis.metrics.roofline import roofline
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager

H100 = Device("CUDA", 0, "90", 132, 1_830_000, 2_619_000, 5120)


FLOPS16, BYTES = peak_rates(H100)["flops16"], peak_rates(H100)["bytes"]


def kernels(*work: dict[str, float], device: Device = H100) -> Profile:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE)
    for number, metrics in enumerate(work):
        builder.add(scope, f"k{number}", FrameKind.KERNEL, metrics=metrics, device=device)
    return builder.build()


def values(profile: Profile, *names: str) -> list[list[Any]]:
    return [metric.to_list() for metric in derive(profile, names)]


def test_kernels_are_bound_by_what_takes_longer() -> None:
    profile = kernels(
        {"time (ns)": 4000, "flops16": FLOPS16 * 2e-6, "bytes": BYTES * 1e-6},
        {"time (ns)": 5000, "flops16": FLOPS16 * 1e-6, "bytes": BYTES * 5e-6},
    )

    roof, bound, distance = values(profile, "roof_time/us", "bound", "roof_distance")

    assert roof == pytest.approx([7.0, 7.0, 2.0, 5.0], rel=1e-6)
    assert bound == ["memory", "memory", "compute", "memory"]
    assert distance == pytest.approx([9 / 7, 9 / 7, 2.0, 1.0], rel=1e-6)


def test_devices_without_known_peaks_are_named_beside_the_others() -> None:
    builder = ProfileBuilder()
    for device in (H100, Device("XPU", 0, "x1")):
        builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 9, "bytes": 8}, device=device)
    profile = builder.build()

    (metric,) = derive(profile, ["roof_time/us"])

    assert roofline(profile).unknown == ("XPU x1",)
    assert metric.meaning.endswith("; peak rates are not known for: XPU x1")
    assert [value is None for value in metric.to_list()] == [False, False, True]


def test_a_known_architecture_with_missing_facts_is_named() -> None:
    profile = kernels({"time (ns)": 9, "bytes": 8}, device=Device("CUDA", 0, "90"))

    with pytest.raises(MetricError, match=r"CUDA 90 \(.*clocks"):
        derive(profile, ["bound"])


def test_intensity_is_operations_per_byte() -> None:
    profile = kernels({"time (ns)": 1, "flops16": 600.0, "bytes": 20}, {"flops16": 5.0})

    assert values(profile, "intensity") == [[30.25, 30.25, 30.0, None]]


def test_time_of_kernels_without_known_work_is_left_out_of_the_distance() -> None:
    profile = kernels({"time (ns)": 2000, "bytes": BYTES * 1e-6}, {"time (ns)": 9000})

    (distance,) = values(profile, "roof_distance")

    assert distance[:3] == pytest.approx([2.0, 2.0, 2.0], rel=1e-6)
    assert distance[3] is None


def test_work_of_a_scope_counts_on_the_device_below() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE, metrics={"bytes": BYTES * 1e-6})
    builder.add(scope, "k", FrameKind.KERNEL, metrics={"time (ns)": 4000}, device=H100)

    roof, distance = values(builder.build(), "roof_time/us", "roof_distance")

    assert roof[:2] == pytest.approx([1.0, 1.0], rel=1e-6)
    assert roof[2] is None
    assert distance[:2] == pytest.approx([4.0, 4.0], rel=1e-6)


def test_scope_over_different_devices_has_no_roof_of_its_own() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE, metrics={"bytes": 1e9})
    for index in (0, 1):
        device = Device("CUDA", index, "90", 132, 1_830_000, 2_619_000, 5120)
        work = {"time (ns)": 1000, "bytes": BYTES * 1e-6}
        builder.add(scope, "k", FrameKind.KERNEL, metrics=work, device=device)

    (roof,) = values(builder.build(), "roof_time/us")

    assert roof == pytest.approx([2.0, 2.0, 1.0, 1.0], rel=1e-6)


WORK = st.lists(
    st.fixed_dictionaries(
        {
            "time (ns)": st.integers(1, 10**9),
            "bytes": st.integers(0, 10**12),
            "flops16": st.floats(0, 1e15),
            "flops8": st.floats(0, 1e15),
        }
    ),
    min_size=1,
    max_size=8,
)


@given(WORK)
def test_roof_of_a_scope_is_the_sum_of_its_kernels(work: list[dict[str, float]]) -> None:
    profile = kernels(*work)
    roof = roofline(profile)

    expected = [
        max(
            each["flops16"] / FLOPS16 + each["flops8"] / peak_rates(H100)["flops8"],
            each["bytes"] / BYTES,
        )
        for each in work
    ]
    assert roof.seconds[2:] == pytest.approx(expected, rel=1e-9, abs=1e-30)
    assert roof.seconds[0] == pytest.approx(sum(expected), rel=1e-9, abs=1e-30)
    assert roof.seconds[0] >= roof.compute_seconds[0] >= 0


@given(WORK, st.floats(1.5, 100))
def test_faster_kernels_are_nearer_to_the_roof(work: list[dict[str, float]], factor: float) -> None:
    slower = [each | {"time (ns)": round(each["time (ns)"] * factor) + 1} for each in work]
    (near,), (far,) = (
        values(kernels(*work), "roof_distance"),
        values(kernels(*slower), "roof_distance"),
    )

    assert all((a is None and b is None) or a < b for a, b in zip(near, far, strict=True))


def test_a_profile_without_work_says_what_to_record() -> None:
    with pytest.raises(MetricError, match=r"bytes, flops8, .* -k triton"):
        derive(kernels({"time (ns)": 1}), ["bound"])


def test_roofline_needs_times() -> None:
    with pytest.raises(MetricError, match="time"):
        derive(kernels({"bytes": 1}), ["roof_distance"])


def test_an_unknown_device_is_named_with_how_to_add_it() -> None:
    profile = kernels({"time (ns)": 1, "bytes": 1}, device=Device("ACME", 0, "x1"))

    with pytest.raises(MetricError, match=r"ACME x1.* CUDA 75.*proton_dev"):
        derive(profile, ["roof_time/us"])


def test_plugin_adds_the_peaks_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class Acme:
        @hookimpl
        def proton_device_peaks(self) -> dict[tuple[str, str], dict[str, float]]:
            return {("ACME", "x1"): {"flops16": 1e12, "bytes": 1e9}}

    manager = PluginManager(())
    manager.register(Acme(), "acme")
    monkeypatch.setattr("proton_bench.plugin.manager.get_plugin_manager", lambda: manager)
    profile = kernels({"time (ns)": 4000, "bytes": 1000}, device=Device("ACME", 0, "x1"))

    roof, bound = values(profile, "roof_time/us", "bound")

    assert roof == pytest.approx([1.0, 1.0, 1.0], rel=1e-9)
    assert bound == ["memory", "memory", "memory"]


def test_roofline_is_listed_where_work_was_recorded() -> None:
    names = {"roof_time/us", "bound", "roof_distance", "intensity"}

    assert names <= set(available_metrics(training_profile()).derivable)
    assert not names & set(available_metrics(kernels({"time (ns)": 1})).derivable)


# Board, facts as drivers report them, and published rates: width -> TFLOPS, GB/s.
BOARDS = [
    ("T4", Device("CUDA", 0, "75", 40, 1_590_000, 5_001_000, 256), {8: 130, 16: 65, 32: 8.1}, 320),
    (
        "A100",
        Device("CUDA", 0, "80", 108, 1_410_000, 1_215_000, 5120),
        {8: 624, 16: 312, 32: 156, 64: 19.5},
        1555,
    ),
    (
        "A10",
        Device("CUDA", 0, "86", 72, 1_695_000, 6_251_000, 384),
        {8: 250, 16: 125, 32: 62.5},
        600,
    ),
    ("Orin", Device("CUDA", 0, "87", 16, 1_300_000), {8: 85}, 204.8),
    (
        "L40S",
        Device("CUDA", 0, "89", 142, 2_520_000, 9_001_000, 384),
        {8: 733, 16: 366, 32: 183},
        864,
    ),
    (
        "H100",
        Device("CUDA", 0, "90", 132, 1_830_000, 2_619_000, 5120),
        {8: 1979, 16: 989, 32: 495},
        3350,
    ),
    (
        "B200",
        Device("CUDA", 0, "100", 148, 1_850_000, 3_996_000, 8192),
        {8: 4500, 16: 2250, 32: 1100, 64: 35},
        8000,
    ),
    ("B300", Device("CUDA", 0, "103", 148, 1_850_000, 3_996_000, 8192), {8: 4500, 64: 1.1}, 8000),
    ("T5000", Device("CUDA", 0, "110", 20, 1_575_000), {8: 517}, 273),
    ("T5000 of CUDA 12", Device("CUDA", 0, "101", 20, 1_575_000), {8: 517}, 273),
    (
        "RTX PRO 6000",
        Device("CUDA", 0, "120", 188, 2_617_000, 14_001_000, 512),
        {8: 1007, 16: 504, 32: 252, 64: 1.97},
        1792,
    ),
    ("DGX Spark", Device("CUDA", 0, "121", 48, 2_540_000), {8: 250}, 273),
    ("MI250X", Device("HIP", 0, "gfx90a", 110, 1_700_000), {16: 191.5, 64: 47.9}, 1638),
    ("MI300X", Device("HIP", 0, "gfx942", 304, 2_100_000), {8: 2615, 16: 1307, 64: 163}, 5300),
    ("MI355X", Device("HIP", 0, "gfx950", 256, 2_400_000), {8: 5033, 16: 2516, 32: 157}, 8000),
    (
        "RX 7900 XTX",
        Device("HIP", 0, "gfx1100", 48, 2_500_000, 1_249_000, 384),
        {16: 123, 32: 61, 64: 1.92},
        960,
    ),
    ("Strix Halo", Device("HIP", 0, "gfx1151", 20, 2_900_000), {16: 59.4}, 256),
    (
        "RX 9070 XT",
        Device("HIP", 0, "gfx1201", 32, 2_970_000, 1_250_000, 256),
        {8: 389, 16: 195, 32: 48.7},
        640,
    ),
]


@pytest.mark.parametrize(
    ("device", "tflops", "gbytes"), [b[1:] for b in BOARDS], ids=[b[0] for b in BOARDS]
)
def test_rates_agree_with_what_is_said_of_boards(
    device: Device, tflops: dict[int, float], gbytes: float
) -> None:
    peaks = peak_rates(device)

    assert {w: peaks[f"flops{w}"] / 1e12 for w in tflops} == pytest.approx(tflops, rel=0.03)
    assert peaks["bytes"] / 1e9 == pytest.approx(gbytes, rel=0.025)


def test_name_cut_to_six_characters_is_its_family() -> None:
    facts = (48, 2_500_000, 1_249_000, 384)

    assert peak_rates(Device("HIP", 0, "gfx110", *facts)) == peak_rates(
        Device("HIP", 0, "gfx1102", *facts)
    )


@pytest.mark.parametrize("device", [Device("CPU", 0), Device("CUDA", 0, "70"), Device("HIP", 0)])
def test_unknown_architecture_has_no_rates(device: Device) -> None:
    assert peak_rates(device) == {}


def test_rates_without_device_facts_are_left_out() -> None:
    assert peak_rates(Device("CUDA", 0, "90")) == {}


def test_every_architecture_is_named() -> None:
    known = [arch for table in ARCHITECTURES.values() for arch in table]

    assert len(known) > 18
    assert [arch for arch in known if arch not in known_architectures()] == []
