"""How long the main thread read batches of DataLoaders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proton_bench.analysis.accounting.host_time import IDLE, NOT_RECORDED
from proton_bench.analysis.accounting.input_time import (
    LOADING,
    RECEIVING,
    STARTING,
    WAITING,
    input_time_of,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.model.steps import HOST_WALL

MS = 10**6
TORCH = "/env/lib/python3.12/site-packages/torch"
LOADER = f"{TORCH}/utils/data/dataloader.py"
QUEUES = "/usr/lib/python3.12/multiprocessing"


def sampled(*paths: tuple[tuple[str, ...], int], idle: bool = False, **facts: Any) -> Profile:
    """Samples of the host below ``train.py:7@main``, in ms."""
    builder = ProfileBuilder()
    top = builder.add(0, NOT_RECORDED, FrameKind.PYTHON)
    main = builder.add(top, "/home/me/train.py:7@main", FrameKind.PYTHON)
    for path, spent in paths:
        row = main
        for number, name in enumerate(path):
            is_last = number == len(path) - 1
            metrics = {HOST_WALL: spent * MS} | ({IDLE: spent * MS // 2} if idle else {})
            row = builder.add(row, name, FrameKind.PYTHON, metrics=metrics if is_last else {})
    times = {"start_time_ns": 1, "end_time_ns": 1 + 100 * MS}
    profile = builder.build()
    return replace(profile, provenance=Provenance({**times, "directory": "/home/me", **facts}))


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ((f"{LOADER}:780@_next_data", f"{TORCH}/utils/data/_utils/fetch.py:50@fetch"), LOADING),
        (
            (
                f"{LOADER}:780@_next_data",
                f"{TORCH}/utils/data/_utils/fetch.py:50@fetch",
                f"{QUEUES}/connection.py:9@poll",  # of the data set's own
            ),
            LOADING,
        ),
        (
            (
                f"{LOADER}:1448@_try_get_data",
                f"{QUEUES}/queues.py:113@get",
                f"{QUEUES}/connection.py:9@poll",
            ),
            WAITING,
        ),
        ((f"{LOADER}:1448@_try_get_data", "/usr/lib/python3.12/threading.py:5@wait"), WAITING),
        ((f"{LOADER}:1448@_try_get_data", f"{QUEUES}/queues.py:122@get"), RECEIVING),
        (
            (
                f"{LOADER}:1448@_try_get_data",
                f"{QUEUES}/queues.py:122@get",
                f"{TORCH}/multiprocessing/reductions.py:540@rebuild_storage_fd",
            ),
            RECEIVING,
        ),
    ],
)
def test_the_innermost_frame_says_what_reading_does(inner: tuple[str, ...], expected: str) -> None:
    found = input_time_of(sampled(((f"{LOADER}:741@__next__", *inner), 30)))

    assert found.wall_ns == 30 * MS
    assert found.main_part == expected
    assert found.lines == {"/home/me/train.py:7@main": 30 * MS}


def test_workers_that_start_are_told_from_their_batches() -> None:
    found = input_time_of(
        sampled(
            ((f"{LOADER}:500@__iter__", f"{QUEUES}/connection.py:9@poll"), 20),
            ((f"{LOADER}:741@__next__", f"{QUEUES}/queues.py:122@get"), 5),
            (("/home/me/data.py:3@other",), 50),
        )
    )

    assert found.wall_ns == 25 * MS
    assert found.parts == {STARTING: 20 * MS, RECEIVING: 5 * MS}


def test_idle_time_is_known_where_a_device_was_recorded() -> None:
    path = (f"{LOADER}:741@__next__", f"{QUEUES}/connection.py:9@poll")

    assert input_time_of(sampled((path, 30))).idle_ns is None
    assert input_time_of(sampled((path, 30), idle=True)).idle_ns == 15 * MS


def test_a_range_that_samples_name_below_their_lines_counts_once() -> None:
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    path = (f"{LOADER}:741@__next__", f"{QUEUES}/connection.py:9@poll", name)

    found = input_time_of(sampled((path, 30), idle=True))

    assert (found.wall_ns, found.idle_ns) == (30 * MS, 15 * MS)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("_SingleProcessDataLoaderIter", LOADING), ("_MultiProcessingDataLoaderIter", WAITING)],
)
def test_ranges_of_torch_count_with_all_inside(kind: str, expected: str) -> None:
    builder = ProfileBuilder()
    cpu = Device("CPU", 0)

    def metrics(ms: int) -> dict[str, int]:
        return {"time (ns)": ms * MS, "count": 1, HOST_WALL: ms * MS}

    row = builder.add(
        0, f"enumerate(DataLoader)#{kind}.__next__", FrameKind.OP, metrics=metrics(4), device=cpu
    )
    builder.add(row, "aten::stack", FrameKind.OP, metrics=metrics(3), device=cpu)
    builder.add(0, "aten::mm", FrameKind.OP, metrics=metrics(5), device=cpu)

    found = input_time_of(builder.build())

    assert found.wall_ns == 7 * MS
    assert found.main_part == expected
