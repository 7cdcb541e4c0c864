"""Busy, idle and waiting time of devices, against a count of single nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.formats.timeline.launched_work import (
    UNCALLED,
    DeviceWork,
    device_uses,
    is_waiting_kernel,
    with_uses,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.metrics.device_use import LONG_IDLE_NS, DeviceUse, latency_bucket

SCOPES = ("forward", "backward")


@dataclass(frozen=True)
class Piece:
    """One kernel; ``called`` None: its launch is not known."""

    start: int
    duration: int
    scope: int = -1
    called: int | None = None
    waits: bool = False
    device: int = 0


def work(*pieces: Piece) -> DeviceWork:
    def numbers(values: list[int]) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    return DeviceWork(
        device=numbers([each.device for each in pieces]),
        scope=numbers([each.scope for each in pieces]),
        start=numbers([each.start for each in pieces]),
        end=numbers([each.start + each.duration for each in pieces]),
        called=numbers([UNCALLED if each.called is None else each.called for each in pieces]),
        is_timed=np.array([each.called is not None for each in pieces], dtype=np.bool_),
        is_waiting=np.array([each.waits for each in pieces], dtype=np.bool_),
    )


def uses(*pieces: Piece) -> dict[str | None, DeviceUse]:
    return {use.scope: use for use in device_uses(work(*pieces), SCOPES) if use.device == 0}


def covered(pieces: list[Piece]) -> set[int]:
    return {ns for each in pieces for ns in range(each.start, each.start + each.duration)}


def test_what_overlaps_counts_once_and_gaps_belong_to_the_later_scope() -> None:
    found = uses(Piece(0, 10, 0), Piece(5, 10, 1), Piece(20, 5, 0), Piece(40, 5, 1))

    assert (found[None].busy_ns, found[None].idle_ns) == (25, 20)
    assert (found["forward"].busy_ns, found["forward"].idle_ns) == (15, 5)
    assert (found["backward"].busy_ns, found["backward"].idle_ns) == (15, 15)


def test_long_gaps_are_told_from_short_ones() -> None:
    pieces = (Piece(LONG_IDLE_NS, 1, 0, called=0), Piece(2 * LONG_IDLE_NS, 1, 1))

    found = uses(*pieces, Piece(3 * LONG_IDLE_NS + 1, 1, 1))

    assert found[None].long_idle_ns == 2 * LONG_IDLE_NS
    assert found[None].short_idle_ns == LONG_IDLE_NS - 1
    assert found["forward"].long_idle_ns == LONG_IDLE_NS
    assert (found["backward"].long_idle_ns, found["backward"].short_idle_ns) == (
        LONG_IDLE_NS,
        LONG_IDLE_NS - 1,
    )


def test_the_window_begins_with_the_first_launch() -> None:
    found = uses(Piece(100, 10, 1, called=60), Piece(120, 10, 0, called=70))

    assert found[None].idle_ns == 40 + 10
    assert (found["backward"].idle_ns, found["forward"].idle_ns) == (40, 10)


def test_waiting_is_when_nothing_runs_but_kernels_that_wait() -> None:
    found = uses(Piece(0, 10, 0), Piece(5, 20, 0, waits=True), Piece(30, 5, 1, waits=True))

    assert (found[None].busy_ns, found[None].waiting_ns) == (30, 20)
    assert (found["forward"].waiting_ns, found["backward"].waiting_ns) == (15, 5)


def test_latencies_are_summed_without_those_that_cannot_be() -> None:
    far = Piece(2**43, 1, called=70)
    use = uses(Piece(100, 1, called=60), Piece(110, 1, called=100), Piece(120, 1, called=125), far)[
        None
    ]

    assert (use.launches, use.latency_clamped) == (2, 2)
    assert (use.latency_sum_ns, use.latency_min_ns, use.latency_max_ns) == (50, 10, 40)
    assert sum(use.latency_buckets) == 2
    assert use.latency_ns(0.5) == pytest.approx(10, rel=0.06)


def test_devices_are_kept_apart_and_unknown_ones_left_out() -> None:
    found = list(
        device_uses(work(Piece(0, 5, device=1), Piece(2, 9, device=0), Piece(0, 99, device=-1)), ())
    )

    assert [(use.device, use.busy_ns) for use in found] == [(0, 9), (1, 5)]


def test_times_that_cannot_be_subtracted_are_left_out() -> None:
    found = uses(Piece(-(2**62) + 1, 5), Piece(10, 5), Piece(2**62 - 9, 5))

    assert (found[None].busy_ns, found[None].idle_ns) == (5, 0)
    assert list(device_uses(work(), ())) == []


PIECES = st.builds(
    Piece,
    start=st.integers(0, 60),
    duration=st.integers(0, 12),
    scope=st.integers(-1, 1),
    called=st.none() | st.integers(0, 60),
    waits=st.booleans(),
)


@given(st.lists(PIECES, min_size=1, max_size=12))
def test_sums_are_those_of_single_nanoseconds(pieces: list[Piece]) -> None:
    found = uses(*pieces)
    whole = found[None]

    busy = covered(pieces)
    working = covered([each for each in pieces if not each.waits])
    called = [each.called for each in pieces if each.called is not None]
    first = min(each.start for each in pieces)
    last = max(each.start + each.duration for each in pieces)
    assert whole.busy_ns == len(busy)
    assert whole.waiting_ns == len(busy - working)
    assert whole.wall_ns == last - min([first, *called])
    for number, name in enumerate(SCOPES):
        own = [each for each in pieces if each.scope == number]
        assert (name in found) == bool(own)
        if own:
            assert found[name].busy_ns == len(covered(own))
    scoped = sum(use.idle_ns for name, use in found.items() if name is not None)
    assert scoped <= whole.idle_ns
    if all(each.scope >= 0 for each in pieces):
        assert scoped == whole.idle_ns


@given(st.integers(0, 2**62))
def test_buckets_hold_what_belongs_to_them(latency: int) -> None:
    use = DeviceUse(
        None,
        0,
        latency_max_ns=2**63 - 1,
        latency_first_bucket=latency_bucket(latency),
        latency_buckets=(1,),
    )

    assert use.latency_ns(0.5) == pytest.approx(latency, rel=0.0667)


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", True),
        ("ncclKernel_Broadcast", True),
        ("_Z32ncclDevKernel_AllGather_RING_LL24", True),
        ("my_ncclDevKernel", False),
        ("gemm", False),
        ("", False),
    ],
)
def test_kernels_of_nccl_wait(name: str, waits: bool) -> None:
    assert is_waiting_kernel(name) is waits


def test_uses_get_the_positions_of_the_profiles_devices() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", device=Device("CUDA", 3))
    found = with_uses(
        builder.build(),
        iter([DeviceUse(None, 3, busy_ns=5), DeviceUse(None, 7)]),
        {3: Device("CUDA", 3)},
    )

    assert found.device_use == (DeviceUse(None, 0, busy_ns=5),)


def test_many_scopes_share_one_pass() -> None:
    pieces = [Piece(10 * place, 5, place % 5000) for place in range(10_000)]

    found = list(device_uses(work(*pieces), [f"s{number}" for number in range(5000)]))

    # The whole device, and the first scopes of it.
    assert len(found) == 1 + 4096
    assert {use.busy_ns for use in found[1:]} == {10}
    assert found[1].idle_ns == 5
    assert found[2].idle_ns == 10


def test_a_launch_at_an_impossible_time_is_none() -> None:
    use = uses(Piece(100, 10, called=2**62), Piece(120, 10, called=90))[None]

    assert (use.launches, use.idle_ns) == (1, 10 + 10)
