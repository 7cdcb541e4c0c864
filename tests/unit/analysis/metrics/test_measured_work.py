from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.measured_work import size_text, traffic_text
from proton_bench.analysis.metrics.peak import peak_rates
from proton_bench.errors import MetricError
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

DATA = Path(__file__).parents[3] / "data" / "counters"
H100 = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 5120)
BYTES, FLOPS16 = peak_rates(H100)["bytes"], peak_rates(H100)["flops16"]
FMA = 2 * 128 * 132 * 1.98e9  # operations in a second of all lanes
SECOND = 1e9  # in ns


def counted(*, half: float = 0.01, clock: float = 1.0, **shares: float) -> dict[str, float]:
    """Metrics of a kernel of one second whose units had these shares of their peaks."""
    found = {"time (ns)": SECOND, "count": 1.0, "counter_time (ns)": SECOND}
    found["sm_cycles"] = clock * 1.98e9
    for unit, share in shares.items():
        found[f"{unit}_busy (ns)"] = share * SECOND
        found[f"{unit}_variance (ns^2)"] = (half / 1.959964 * SECOND) ** 2
    return found


def kernels(*metrics: dict[str, float], names: tuple[str, ...] = (), **facts: Any) -> Profile:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE)
    for number, each in enumerate(metrics):
        name = names[number] if names else f"kernel_{number}"
        builder.add(scope, name, FrameKind.KERNEL, metrics=each, **{"device": H100, **facts})
    return builder.build()


def values(profile: Profile, name: str) -> list[Any]:
    return derive(profile, [name])[0].to_list()


def test_bytes_are_the_share_of_bandwidth_and_add_up() -> None:
    profile = kernels(counted(dram=0.8), counted(dram=0.2))

    assert values(profile, "dram_bytes") == pytest.approx(
        [BYTES, BYTES, 0.8 * BYTES, 0.2 * BYTES], rel=1e-6
    )
    assert values(profile, "dram_gbyte/s")[1:] == pytest.approx(
        [0.5e-9 * BYTES, 0.8e-9 * BYTES, 0.2e-9 * BYTES], rel=1e-6
    )


def test_intervals_of_bytes_and_their_sums_follow_the_share() -> None:
    (metric,) = derive(
        kernels(counted(dram=0.8, half=0.03), counted(dram=0.2, half=0.04)), ["dram_bytes"]
    )

    assert metric.halves is not None
    assert metric.halves.tolist()[1:] == pytest.approx(
        [0.05 * BYTES, 0.03 * BYTES, 0.04 * BYTES], rel=1e-4
    )


def test_bytes_are_withheld_with_their_share() -> None:
    profile = kernels(counted(dram=0.8, half=0.07), counted(dram=0.8))

    assert values(profile, "dram_bytes")[2:] == [None, pytest.approx(0.8 * BYTES, rel=1e-6)]
    assert values(profile, "dram_gbyte/s")[2] is None


def test_a_slower_clock_means_fewer_operations() -> None:
    (done,) = values(kernels(counted(fp32=0.5, clock=0.8)), "pipe_flop/s")[2:]

    assert done == pytest.approx(0.5 * 0.8 * FMA, rel=1e-6)


def test_cycles_may_be_sums_over_all_multiprocessors() -> None:
    (done,) = values(kernels(counted(fp32=0.5, clock=132 * 0.8)), "pipe_flop/s")[2:]

    assert done == pytest.approx(0.5 * 0.8 * FMA, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("nvjet_sm90_hss_256x128_64x4_1x2_h_bz_coopA_NNN", {}),
        ("matmul_kernel", {"flops16": 1e12}),
    ],
    ids=["by its name", "by what its launches name"],
)
def test_width_of_a_product_says_what_tensor_cores_did(name: str, flops: dict[str, float]) -> None:
    profile = kernels({**counted(tensor=0.9, fp32=0.0), **flops}, names=(name,))

    assert values(profile, "pipe_flop/s")[2] == pytest.approx(0.9 * FLOPS16, rel=1e-6)


def test_operations_of_unknown_width_are_not_guessed() -> None:
    busy, idle = counted(tensor=0.9, fp32=0.1), counted(tensor=0.05, fp32=0.8)

    assert values(kernels(busy, idle), "pipe_flop/s") == [
        *(None, None, None),
        pytest.approx(0.8 * FMA, rel=1e-6),
    ]


def test_measured_work_of_known_kernels_is_right() -> None:
    profile = read_profile(DATA / "kernels_h100.proton")
    floats, elements = 8192 * 8192, 132 * 8 * 1024
    truth = {
        "transpose": ("dram_bytes", 2 * 4 * floats),
        "softmax": ("dram_bytes", 2 * 4 * floats),
        "mm16": ("pipe_flops", 2 * 4096**3),
        "mm64": ("pipe_flops", 2 * 2048**3),
        "fma": ("pipe_flops", 16_000 * elements),
        "dfma": ("pipe_flops", 4_000 * elements),
    }
    launches = values(profile, "launches")
    scopes = {profile.name(row): row for row in profile.children(0)}

    found = {
        scope: values(profile, metric)[scopes[scope]] / launches[scopes[scope]] / amount
        for scope, (metric, amount) in truth.items()
    }

    assert found == pytest.approx(dict.fromkeys(truth, 1.0), abs=0.07)
    assert found["transpose"] == pytest.approx(1.0, abs=0.01)
    assert found["softmax"] == pytest.approx(1.0, abs=0.01)
    assert found["fma"] == pytest.approx(1.0, abs=0.01)


def test_traffic_compares_what_launches_name() -> None:
    named = {**counted(dram=0.3), "bytes": 4.2e12}

    assert values(kernels(named), "traffic")[2] == "names 4.2 TB, DRAM moved 1.01 TB"


def test_traffic_compares_what_the_code_asks_for() -> None:
    both = {**counted(dram=0.3), "bytes": 4.2e12, "code_bytes": 9e12}
    asked, quiet = {**counted(dram=0.3), "code_bytes": 2e12}, counted(dram=0.3)

    assert values(kernels(both), "traffic")[2] == "asks for 9 TB, DRAM moved 1.01 TB"
    assert values(kernels(asked, quiet), "traffic")[2:] == [
        *("asks for 2 TB, DRAM moved 1.01 TB", None)
    ]
    assert "traffic" in available_metrics(kernels(asked)).derivable


def test_traffic_is_not_compared_where_others_ran_too() -> None:
    named, other = {**counted(dram=0.3), "bytes": 4.2e12}, counted(dram=0.3)

    texts = values(kernels(named, other), "traffic")

    assert [text is None for text in texts] == [True, True, False, True]


def test_traffic_is_not_compared_where_much_was_not_measured() -> None:
    named = {**counted(dram=0.3), "bytes": 4.2e12, "time (ns)": 1.2 * SECOND}

    assert values(kernels(named), "traffic") == [None] * 3


@pytest.mark.parametrize(
    ("named", "moved", "explained"),
    [(4.2e9, 1.1e9, "caches"), (1e9, 4e9, "more"), (1e9, 1.05e9, ""), (1e9, 5e8, "")],
)
def test_difference_is_explained_beyond_its_interval(
    named: float, moved: float, explained: str
) -> None:
    half = 6e8 if moved == 5e8 else 1e6

    for name in ("bytes", "code_bytes"):
        text = traffic_text({name: named}, moved, half)

        assert (":" in text, explained in text) == (bool(explained), True)

    both = traffic_text({"bytes": 1e3, "code_bytes": named}, moved, half)
    assert all(each in both for each in (size_text(named), size_text(1e3), size_text(moved)))


def test_sizes_have_decimal_prefixes() -> None:
    assert [size_text(each) for each in (0.0, 999.0, 1.1e9, 4.2e13)] == [
        *("0 B", "999 B", "1.1 GB", "42 TB"),
    ]


def test_only_what_can_be_computed_is_offered() -> None:
    def offered(profile: Profile) -> set[str]:
        return set(available_metrics(profile).derivable)

    assert {"dram_bytes", "dram_gbyte/s"} <= offered(kernels(counted(dram=0.1)))
    assert "pipe_flops" not in offered(kernels(counted(dram=0.1)))
    assert "traffic" not in offered(kernels(counted(dram=0.1)))
    assert "traffic" in offered(kernels({**counted(dram=0.1), "bytes": 1.0}))
    assert "dram_bytes" not in offered(kernels({"time (ns)": 1.0}))
    unknown = Device("CUDA", 0, "1", 132, 1_980_000, 2_619_000, 5120)
    assert "dram_bytes" not in offered(kernels(counted(dram=0.1), device=unknown))


@pytest.mark.parametrize("name", ["dram_bytes", "pipe_tflop/s", "traffic"])
def test_missing_counters_are_an_error(name: str) -> None:
    with pytest.raises(MetricError):
        values(kernels({"time (ns)": 1.0}), name)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -1.0, 0.0, 5e-324, 1e300, 1e308])
@pytest.mark.parametrize(
    "metric",
    ["dram_busy (ns)", "dram_variance (ns^2)", "fp32_busy (ns)", "counter_time (ns)", "sm_cycles"],
)
def test_numbers_that_cannot_be_are_withheld(metric: str, value: float) -> None:
    profile = kernels({**counted(dram=0.5, fp32=0.2), "bytes": 1e9, metric: value})

    for name in ("dram_bytes", "dram_gbyte/s", "pipe_flops", "pipe_tflop/s"):
        assert all(found is None or math.isfinite(found) for found in values(profile, name))
