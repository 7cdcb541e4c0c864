from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proton_bench.analysis.accounting.host_time import (
    HOST_WALL,
    IDLE,
    NOT_RECORDED,
    OTHER_THREADS,
    RunTime,
    host_paths,
    own_lines,
    run_time_of,
)
from proton_bench.analysis.metrics.derive import default_metrics, derive
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import Member, merge_members
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.origin import ApartBy, Origin
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

SECOND = 10**9
FACTS = {
    "process_start_time_ns": 4 * SECOND,
    "start_time_ns": 5 * SECOND,
    "end_time_ns": 15 * SECOND,
}


def host_profile(*, idle: bool = False, device: str = "CPU", **facts: Any) -> Profile:
    """An operator of 2 s, and 8 s outside of it: 5 s in load, 3 s in the module."""
    builder = ProfileBuilder()
    operator = {HOST_WALL: 2 * SECOND, "time (ns)": 2 * SECOND, "count": 7}
    builder.add(0, "aten::mm", FrameKind.OP, metrics=operator, device=Device(device, 0))
    top = builder.add(0, NOT_RECORDED, FrameKind.PYTHON)
    for name, seconds, idle_seconds in (("a.py:1@<module>", 3, 3), ("a.py:9@load", 5, 1)):
        metrics = {HOST_WALL: seconds * SECOND}
        if idle:
            metrics[IDLE] = idle_seconds * SECOND
        top = builder.add(top, name, FrameKind.PYTHON, metrics=metrics)
    return replace(builder.build(), provenance=Provenance({**FACTS, **facts}))


def test_the_time_of_a_run_is_split_between_recorded_work_and_the_rest() -> None:
    assert run_time_of(host_profile()) == RunTime(
        wall_ns=10 * SECOND,
        host_recorded_ns=2 * SECOND,
        host_not_recorded_ns=8 * SECOND,
        imports_ns=0,
        before_ns=SECOND,
    )


def test_rows_that_were_timed_have_that_time_also_without_a_sample() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    cpu = Device("CPU", 0)
    kernel = {HOST_WALL: 90, "time (ns)": 70}
    row = builder.add(0, "kernel", FrameKind.KERNEL, metrics=kernel, device=cpu)
    builder.add(row, "load", FrameKind.SCOPE, metrics={"wall (ns)": 20})
    thread = {OTHER_THREADS: 40, "wall (ns)": 45}
    builder.add(0, "of another thread", FrameKind.SCOPE, metrics=thread)
    layer = builder.add(0, "layer", FrameKind.LAYER, metrics={HOST_WALL: 4})
    builder.add(layer, "aten::mm", FrameKind.OP, metrics={"time (ns)": 3}, device=cpu)
    top = builder.add(0, NOT_RECORDED, FrameKind.PYTHON, metrics={HOST_WALL: 6})
    builder.add(top, "a.py:1@<module>", FrameKind.PYTHON, metrics={"wall (ns)": 1})
    profile = builder.build()

    whole, own = derive(profile, ("host_wall/ns", "self_host_wall/ns"))

    values = zip(whole.to_list(), own.to_list(), strict=True)
    assert {profile.name(row): pair for row, pair in enumerate(values)} == {
        "ROOT": (100, None),
        "kernel": (90, 70),
        "load": (20, 20),
        "of another thread": (45, 45),
        "layer": (7, 4),
        "aten::mm": (3, 3),
        NOT_RECORDED: (6, 6),
        "a.py:1@<module>": (None, None),
    }


def test_one_device_is_idle_while_it_does_not_work() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 1}, device=Device("CUDA", 0))
    use = DeviceUse(None, 0, busy_ns=3 * SECOND, idle_ns=1)
    profile = replace(builder.build(), device_use=(use,), provenance=Provenance(FACTS))

    times = run_time_of(profile)

    assert (times.gpu_busy_ns, times.gpu_idle_ns) == (3 * SECOND, 7 * SECOND)
    assert not times.is_sampled
    assert host_paths(profile) == ()


LIBRARY = "/v/lib/python3.12/site-packages"


def frames_profile(*names: str, kind: FrameKind = FrameKind.PYTHON) -> Profile:
    """Return a chain of frames outside of recorded work, 1 s each, in a run of 10 s."""
    builder = ProfileBuilder()
    row = builder.add(0, NOT_RECORDED, FrameKind.PYTHON)
    for name in names:
        row = builder.add(row, name, kind, metrics={HOST_WALL: SECOND})
    return replace(builder.build(), provenance=Provenance(FACTS))


@pytest.mark.parametrize(
    ("frames", "seconds"),
    [
        (["/a/fit.py:3@<module>"], 0),
        (["/a/fit.py:3@<module>", "/a/fit.py:9@load"], 0),
        (["/a/fit.py:3@<module>", "/a/nets.py:1@<module>", "/a/nets.py:4@made"], 2),
        (["/a/fit.py:3@load", f"{LIBRARY}/x.py:4@_get", f"{LIBRARY}/y.py:1@<module>"], 1),
        ([f"{LIBRARY}/tool/__init__.py:8@<module>"], 1),
        (["/usr/lib/python3.12/importlib/__init__.py:126@import_module"], 1),
        ([f"{LIBRARY}/IPython/core/interactiveshell.py:5@run_code", "/tmp/7.py:1@<module>"], 0),
        (["<frozen runpy>:88@_run_code", "/a/fit.py:3@<module>"], 0),
        (["/a/fit.py:3@<module>", "<string>:1@<module>"], 0),
        (["no frame", "/a/fit.py:3@<module>"], 1),
    ],
)
def test_top_levels_below_other_frames_are_imports(frames: list[str], seconds: int) -> None:
    times = run_time_of(frames_profile(*frames))

    assert times.imports_ns == seconds * SECOND
    assert times.host_not_recorded_ns == len(frames) * SECOND


def test_collection_of_tests_counts_as_imports() -> None:
    builder = ProfileBuilder()
    session = builder.add(0, "session", FrameKind.TEST, metrics={HOST_WALL: SECOND})
    collection = builder.add(session, "collection", FrameKind.TEST, metrics={HOST_WALL: SECOND})
    builder.add(collection, "aten::add", FrameKind.OP, metrics={HOST_WALL: SECOND})
    builder.add(session, "test_a.py", FrameKind.TEST, metrics={HOST_WALL: 5 * SECOND})
    profile = replace(builder.build(), provenance=Provenance(FACTS))

    times = run_time_of(profile)

    assert (times.imports_ns, times.host_recorded_ns) == (2 * SECOND, 6 * SECOND)


def test_parts_of_a_run_add_up_to_it() -> None:
    profile = host_profile()
    whole = run_time_of(profile)
    paused = run_time_of(host_profile(end_time_ns=18 * SECOND))  # 3 s longer than its samples

    assert sum(whole.host_parts.values()) == whole.wall_ns
    assert sum(paused.host_parts.values()) == paused.wall_ns == 13 * SECOND
    assert paused.host_parts["not sampled"] == 3 * SECOND
    assert "not sampled" not in whole.host_parts
    assert RunTime(wall_ns=5).host_parts == {}


@pytest.mark.parametrize("by", [ApartBy.NOTHING, ApartBy.RANK, ApartBy.PROCESS])
def test_merged_processes_keep_what_was_not_recorded(by: ApartBy) -> None:
    members = []
    for rank in range(2):
        facts = {"host": "h", "pid": 40 + rank, "rank": rank}
        profile = host_profile(**facts)
        origin = Origin.of(profile.provenance, "x.proton")
        members.append(Member(f"{rank}.proton", origin, profile))

    times = run_time_of(merge_members(members, by))

    assert (times.host_recorded_ns, times.host_not_recorded_ns) == (4 * SECOND, 16 * SECOND)
    assert sum(times.host_parts.values()) == times.wall_ns == 20 * SECOND


def test_all_imports_are_one_line() -> None:
    frames = ["/a/fit.py:3@load", "/a/nets.py:1@<module>", f"{LIBRARY}/y.py:1@<module>"]
    profile = frames_profile(*frames)

    assert own_lines(profile, 3 * SECOND, by="wall") == [
        ("imports", "imports", 2 * SECOND),
        ("/a/fit.py:3@load", "fit.py:3 load", SECOND),
    ]


def test_what_a_file_does_not_say_is_unknown() -> None:
    assert run_time_of(ProfileBuilder().build()) == RunTime()


@pytest.mark.parametrize("began", ["soon", True, 6 * SECOND, -(2**70)])
def test_a_start_of_the_process_that_cannot_be_is_unknown(began: Any) -> None:
    assert run_time_of(host_profile(process_start_time_ns=began)).before_ns is None


def test_places_of_the_host_are_ordered_by_their_own_time() -> None:
    places = host_paths(host_profile(idle=True))

    assert [(place.path, place.wall_ns, place.idle_ns) for place in places] == [
        (("a.py:1@<module>", "a.py:9@load"), 5 * SECOND, SECOND),
        (("a.py:1@<module>",), 3 * SECOND, 3 * SECOND),
    ]


def test_places_can_be_ordered_by_the_time_in_which_no_device_worked() -> None:
    profile = host_profile(idle=True)

    assert [place.path[-1] for place in host_paths(profile, by="idle")] == [
        "a.py:1@<module>",
        "a.py:9@load",
    ]
    assert host_paths(host_profile(), by="idle") == ()


def test_shares_of_a_run_without_a_device_add_up_to_the_run() -> None:
    profile = host_profile()
    names = default_metrics(profile)
    (shares,) = derive(profile, [names[1]])

    assert names[:2] == ("host_wall/ms", "host_wall/%")
    assert shares.to_list() == [100.0, 20.0, 80.0, 80.0, 50.0]


def test_beside_a_device_its_time_comes_first() -> None:
    names = default_metrics(host_profile(idle=True, device="CUDA"))

    assert names[0].startswith("time/")
    assert names[-1].startswith("idle/")


def test_scopes_that_several_threads_ran_have_no_more_than_the_run() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    outer = {"wall (ns)": 36 * SECOND, HOST_WALL: SECOND}
    shared = builder.add(0, "handle", FrameKind.SCOPE, metrics=outer)
    inner = {"wall (ns)": 28 * SECOND, HOST_WALL: 4 * SECOND, OTHER_THREADS: 24 * SECOND}
    builder.add(shared, "reply", FrameKind.SCOPE, metrics=inner)
    alone = {"wall (ns)": 3 * SECOND, HOST_WALL: 2 * SECOND}
    builder.add(0, "load", FrameKind.SCOPE, metrics=alone)
    builder.add(0, NOT_RECORDED, FrameKind.PYTHON, metrics={HOST_WALL: 2 * SECOND})
    profile = replace(builder.build(), provenance=Provenance(FACTS))

    values, shares = derive(profile, ["host_wall/s", "host_wall/%"])

    assert values.to_list() == pytest.approx([9.0, 5.0, 4.0, 3.0, 2.0])
    assert max(shares.to_list()) == pytest.approx(100.0)
