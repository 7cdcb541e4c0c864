from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import ProfileFormatError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.metrics.device_use import DeviceUse, combine_uses
from proton_bench.model.profile import Profile


def bucket(latency: int) -> int:
    if latency < 8:
        return latency
    octave = int(math.log2(latency))
    return (octave - 2) * 8 + (latency >> (octave - 3) & 7)


def of(latencies: list[int]) -> DeviceUse:
    places = [bucket(latency) for latency in latencies]
    first = min(places)
    counts = [places.count(place) for place in range(first, max(places) + 1)]
    return DeviceUse(
        *(None, 0, 10, 20, 5, 0, 0, len(latencies), 0, sum(latencies)),
        *(min(latencies), max(latencies), first, tuple(counts)),
    )


@given(st.lists(st.integers(0, 2**41), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_is_one_of_the_latencies_nearly(latencies: list[int], quantile: float) -> None:
    exact = sorted(latencies)[max(0, math.ceil(quantile * len(latencies)) - 1)]

    assert of(latencies).latency_ns(quantile) == pytest.approx(exact, rel=0.0667, abs=0.5)


def test_without_launches_there_is_no_latency() -> None:
    assert DeviceUse(None, 0).latency_ns(0.5) is None
    assert DeviceUse(None, 0, latency_buckets=(0, 0)).latency_ns(0.5) is None


def test_wall_is_busy_and_idle() -> None:
    assert DeviceUse(None, 0, busy_ns=70, idle_ns=30).wall_ns == 100


@given(
    st.lists(st.integers(0, 2**41), min_size=1, max_size=20),
    st.lists(st.integers(0, 2**41), min_size=1, max_size=20),
)
def test_combined_uses_are_those_of_all_launches(left: list[int], right: list[int]) -> None:
    (found,) = combine_uses([of(left), of(right)])

    assert found == replace(of(left + right), busy_ns=20, idle_ns=40, long_idle_ns=10)


def test_uses_of_different_scopes_and_devices_stay_apart() -> None:
    uses = [DeviceUse("a", 0, 1), DeviceUse("a", 1, 2), DeviceUse(None, 0, 3), DeviceUse("a", 0, 4)]

    assert [use.busy_ns for use in combine_uses(uses)] == [5, 2, 3]


def test_a_use_without_latencies_takes_nothing_from_those_of_others() -> None:
    (found,) = combine_uses([DeviceUse(None, 0), of([5, 9])])

    assert (found.latency_min_ns, found.latency_max_ns) == (5, 9)
    assert found.latency_ns(0.0) == 5


def profile_on(device: Device, *uses: DeviceUse) -> Profile:
    builder = ProfileBuilder()
    builder.add(0, "kernel", metrics={"time (ns)": 1}, device=device)
    return replace(builder.build(), device_use=uses)


def test_merged_profiles_name_their_devices_anew() -> None:
    left = profile_on(Device("CUDA", 0), DeviceUse(None, 0, busy_ns=5))
    right = profile_on(Device("CUDA", 1), DeviceUse(None, 0, busy_ns=7))

    merged = Profile.merge([left, right, left])

    found = {merged.devices[use.device].index: use.busy_ns for use in merged.device_use}
    assert found == {0: 10, 1: 7}


def test_a_device_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProfileFormatError, match="names device 1 of 1"):
        profile_on(Device("CUDA", 0), DeviceUse(None, 1)).self_check()
