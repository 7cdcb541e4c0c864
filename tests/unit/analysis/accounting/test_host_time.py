from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proton_bench.analysis.accounting.host_time import (
    IDLE,
    NOT_RECORDED,
    OTHER_THREADS,
    RunTime,
    host_paths,
    own_lines,
    run_ns,
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
from proton_bench.model.steps import HOST_WALL

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


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        ({"recorded_ns": 3 * SECOND}, 3),
        ({"window_count": 2}, 6),  # the second was open when the file was written
        ({"window_count": 3}, None),  # one is not known any more
        ({"window_count": 2, "recorded_ns": 3 * SECOND}, 3),
    ],
)
def test_a_run_is_as_long_as_its_windows(facts: dict[str, int], seconds: int | None) -> None:
    windows = ({"begin_ns": 6 * SECOND, "end_ns": 8 * SECOND}, {"begin_ns": 11 * SECOND})

    length = run_ns(host_profile(windows=windows, **facts))

    assert length == (None if seconds is None else seconds * SECOND)


def test_the_time_of_a_run_is_split_between_recorded_work_and_the_rest() -> None:
    assert run_time_of(host_profile()) == RunTime(
        wall_ns=10 * SECOND,
        host_recorded_ns=2 * SECOND,
        host_not_recorded_ns=8 * SECOND,
        imports_ns=0,
        before_ns=SECOND,
    )


def host_times(profile: Profile) -> dict[str, tuple[float | None, ...]]:
    """Return times of rows: with rows below and alone on the main thread, with these on others."""
    names = ["host_wall/ns", "self_host_wall/ns"]
    names += ["other_threads/ns"] if OTHER_THREADS in profile.columns else []
    columns = [metric.to_list() for metric in derive(profile, names)]
    return {profile.name(row): values for row, values in enumerate(zip(*columns, strict=True))}


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

    assert host_times(profile) == {
        "ROOT": (100, None, 45),
        "kernel": (90, 70, None),
        "load": (20, 20, None),
        "of another thread": (None, None, 45),
        "layer": (6, 3, None),
        "aten::mm": (3, 3, None),
        NOT_RECORDED: (4, 4, None),
        "a.py:1@<module>": (None, None, None),
    }


def test_a_timed_row_shares_its_time_with_rows_inside_that_have_samples_alone() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    epoch = builder.add(0, "epoch", FrameKind.SCOPE, metrics={"wall (ns)": 600, HOST_WALL: 100})
    builder.add(epoch, "net", FrameKind.LAYER, metrics={HOST_WALL: 300})
    builder.add(0, NOT_RECORDED, FrameKind.PYTHON, metrics={HOST_WALL: 500})

    assert host_times(builder.build()) == {
        "ROOT": (900, None),
        "epoch": (600, 150),
        "net": (450, 450),
        NOT_RECORDED: (300, 300),
    }


def test_threads_inherit_a_scope_and_do_not_take_its_time() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    pool = builder.add(0, "pool", FrameKind.SCOPE, metrics={"wall (ns)": 800, HOST_WALL: 750})
    job = builder.add(pool, "job", FrameKind.SCOPE, metrics={"wall (ns)": 2800})
    parse = {"wall (ns)": 2700, OTHER_THREADS: 2690}
    builder.add(job, "parse", FrameKind.SCOPE, metrics=parse)
    builder.add(0, NOT_RECORDED, FrameKind.PYTHON, metrics={HOST_WALL: 250, OTHER_THREADS: 90})

    assert host_times(builder.build()) == {
        "ROOT": (1000, None, 2890),
        "pool": (800, 800, 2800),
        "job": (None, None, 2800),
        "parse": (None, None, 2700),
        NOT_RECORDED: (200, 200, 90),
    }


@pytest.mark.parametrize(("count", "is_on_main"), [(1, True), (200, False)])
def test_rows_without_samples_are_on_the_main_thread_if_it_had_time_for_them(
    count: int, is_on_main: bool
) -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    work = {"wall (ns)": SECOND, HOST_WALL: SECOND - SECOND // 50}
    builder.add(0, "work", FrameKind.SCOPE, metrics=work)
    beside = {"wall (ns)": SECOND, OTHER_THREADS: SECOND}
    builder.add(0, "beside", FrameKind.SCOPE, metrics=beside)
    for number in range(count):
        builder.add(0, f"request {number}", FrameKind.SCOPE, metrics={"wall (ns)": SECOND // 100})

    shares = derive(builder.build(), ["host_wall/%"])[0].to_list()

    assert sum(each for each in shares[1:] if each) == pytest.approx(100)
    assert (shares[3] > 0.9) == is_on_main


def test_tasks_that_take_turns_share_the_time_around_them() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    loop = builder.add(0, "loop", FrameKind.SCOPE, metrics={"wall (ns)": 90, HOST_WALL: 100})
    for name, wall_ns in (("read", 80), ("send", 40)):
        builder.add(loop, name, FrameKind.SCOPE, metrics={"wall (ns)": wall_ns})

    assert host_times(builder.build()) == {
        "ROOT": (100, 10),
        "loop": (90, 0),
        "read": (60, 60),
        "send": (30, 30),
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
    outer = {"wall (ns)": 36 * SECOND, HOST_WALL: SECOND, OTHER_THREADS: 7 * SECOND}
    shared = builder.add(0, "handle", FrameKind.SCOPE, metrics=outer)
    inner = {"wall (ns)": 28 * SECOND, HOST_WALL: 4 * SECOND, OTHER_THREADS: 24 * SECOND}
    builder.add(shared, "reply", FrameKind.SCOPE, metrics=inner)
    alone = {"wall (ns)": 3 * SECOND, HOST_WALL: 2 * SECOND}
    builder.add(0, "load", FrameKind.SCOPE, metrics=alone)
    builder.add(0, NOT_RECORDED, FrameKind.PYTHON, metrics={HOST_WALL: 2 * SECOND})
    profile = replace(builder.build(), provenance=Provenance(FACTS))

    values, shares = derive(profile, ["host_wall/s", "host_wall/%"])

    assert values.to_list() == pytest.approx([9.0, 4.5, 4.0, 3.0, 1.5])
    assert max(shares.to_list()) == pytest.approx(100.0)
