"""Timelines of several processes as one: nothing is lost, and nothing runs into another."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from fakes import kineto
from fakes.perfetto import BEGIN, END, START_NS, SessionTrace, foreign, packed
from fakes.session_chrome import BASE_NS, event, launch, step, trace, unfinished

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.chrome.merge import merge_chrome, survey_chrome
from proton_bench.formats.perfetto.merge import merge_perfetto, survey_perfetto
from proton_bench.formats.registry import decode_profile
from proton_bench.formats.timeline.inputs import TimelineInput


def chrome(*files: Path) -> dict[str, Any]:
    """Return the merged document, after a look at the profile that it makes."""
    stream = io.BytesIO()
    merge_chrome([survey_chrome(file) for file in files], stream)
    decode_profile(stream.getvalue(), "x.chrome_trace").self_check()
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def perfetto(*files: Path) -> bytes:
    stream = io.BytesIO()
    merge_perfetto([survey_perfetto(file) for file in files], stream)
    return stream.getvalue()


def written(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def slices(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["traceEvents"] if each["ph"] == "X"]


def names(document: dict[str, Any]) -> dict[int, str]:
    return {
        each["pid"]: each["args"]["name"]
        for each in document["traceEvents"]
        if each["name"] == "process_name"
    }


# -- Chrome's format -----------------------------------------------------------------------------
def test_times_count_from_the_earliest_base(tmp_path: Path) -> None:
    late = BASE_NS + 2_500_125
    one = written(tmp_path, "0", trace(step(), 0, base_ns=late))
    other = written(tmp_path, "1", trace(step(), 1))

    document = chrome(one, other)

    assert document["baseTimeNanoseconds"] == BASE_NS
    starts = [each["ts"] for each in slices(document) if each["name"] == "k"]
    assert starts == [2600.125, 100]


def test_processes_have_numbers_and_labels_of_their_own(tmp_path: Path) -> None:
    files = [
        written(tmp_path, f"{rank}", trace(step(), rank, host=f"n{rank}", process_id=40 + rank))
        for rank in range(3)
    ]

    document = chrome(*files)

    assert names(document) == {
        0: "rank 0 host n0 process 40",
        1: "rank 1 host n1 process 41",
        2: "rank 2 host n2 process 42",
    }
    assert {each["pid"] for each in slices(document)} == {0, 1, 2}
    threads = [each for each in document["traceEvents"] if each["name"] == "thread_name"]
    assert [each["pid"] for each in threads] == [0, 1, 2]


def test_arrows_of_two_files_do_not_meet(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{rank}", trace(step(), rank)) for rank in range(2)]

    arrows = [each for each in chrome(*files)["traceEvents"] if each["ph"] in "sf"]

    ids: dict[int, set[int]] = {}
    for each in arrows:
        ids.setdefault(each["pid"], set()).add(each["id"])
    assert ids[0].isdisjoint(ids[1])
    assert [len(each) for each in ids.values()] == [2, 2]


def test_parts_of_one_process_share_its_tracks_and_arrows(tmp_path: Path) -> None:
    first = written(tmp_path, "x.part_0.chrome_trace", trace(launch(["k"], 1, 7)))
    second = written(tmp_path, "x.part_1.chrome_trace", trace(launch(["k"], 5, 7)))

    document = chrome(first, second)

    assert {each["pid"] for each in document["traceEvents"]} == {0}
    assert {each["id"] for each in document["traceEvents"] if each["ph"] == "s"} == {7}


def test_the_profile_of_the_whole_is_the_sum_of_the_parts(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{rank}", trace(step(rank), rank)) for rank in range(3)]
    stream = io.BytesIO()
    merge_chrome([survey_chrome(file) for file in files], stream)

    profile = decode_profile(stream.getvalue(), "x.chrome_trace")

    assert profile.inclusive("count")[0] == 12
    assert profile.inclusive("time (ns)")[0] == 3 * 90_000 + 3000
    assert [device.index for device in profile.devices if device.kind == "GPU"] == [0, 1, 2]
    assert profile.provenance.to_plain()["ranks"]["present"] == [0, 1, 2]


def test_what_a_killed_rank_left_is_merged_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = written(tmp_path, "x.rank0.chrome_trace", trace(step(), 0))
    torn = unfinished(step(), 1).encode()[:-40]
    partial = written(tmp_path, "x.rank1.partial.chrome_trace", torn)

    document = chrome(whole, partial)

    assert len(slices(document)) == 2 * len([e for e in step() if e["ph"] == "X"])
    assert document["proton_bench"]["is_partial"] is True
    assert names(document)[1] == "rank 1 host node process 7 partial"


def test_a_compressed_file_is_merged(tmp_path: Path) -> None:
    one = written(tmp_path, "0.chrome_trace.gz", gzip.compress(trace(step(), 0)))

    assert len(slices(chrome(one, written(tmp_path, "1", trace(step(), 1))))) == 12


def test_other_keys_of_events_are_kept(tmp_path: Path) -> None:
    odd = event("scope", ['é"\\'], 1, 2) | {"cname": "good", "tts": 5, "id2": {"local": "0x1"}}

    found = slices(chrome(written(tmp_path, "0", trace([odd]))))

    assert found == [odd]


def test_traces_of_torch_are_laid_beside_each_other(tmp_path: Path) -> None:
    work = [kineto.host("cpu_op", "aten::mm", 0, 9), kineto.call(1, 2), kineto.kernel(1, 20, 5)]
    files = [written(tmp_path, f"{n}.pt.trace.json", kineto.trace(work)) for n in range(2)]

    document = chrome(*files)

    assert len(slices(document)) == 6
    assert document["schemaVersion"] == 1
    assert len({each["pid"] for each in slices(document)}) == 4


def test_a_file_without_a_base_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "old", b'{"displayTimeUnit":"us","traceEvents":[]}')

    with pytest.raises(UsageError, match="old: it does not say when its times begin"):
        survey_chrome(file)


def test_timelines_of_two_tools_are_refused(tmp_path: Path) -> None:
    ours = written(tmp_path, "ours", trace(step()))
    torch = written(tmp_path, "torch", kineto.trace([]))

    with pytest.raises(UsageError, match=r"ours.* is of proton_bench and .*torch"):
        chrome(ours, torch)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"baseTimeNanoseconds":1,"traceEvents":[{"ts":1}',
        b'{"baseTimeNanoseconds":1,"traceEvents":[{"ts":"x"}]}',
        b'{"baseTimeNanoseconds":1,"traceEvents":[{"ts":1' + b"0" * 400 + b"}]}",
        b'{"baseTimeNanoseconds":1,"traceEvents":[{"ts":1e300}]}',
        b'{"baseTimeNanoseconds":1,"traceEvents":[3]}',
        b'{"baseTimeNanoseconds":1,"traceEvents":[{"pid":[]}]}',
        b"\x1f\x8b\0\0",
    ],
)
def test_hostile_traces_are_one_clear_error(content: bytes, tmp_path: Path) -> None:
    file = written(tmp_path, "x", content)

    with pytest.raises((ProfileFormatError, UsageError), match=r"x: .*; "):
        chrome(file)


def test_large_traces_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", "10")  # to trace memory takes time
    peaks = []
    for count in (20_000, 60_000):
        events = [event("scope", ["a", f"b{n % 9}"], n, 1) for n in range(count)]
        file = written(tmp_path, "x", trace(events, 0))
        del events
        tracemalloc.start()
        with (tmp_path / "out").open("wb") as stream:
            merge_chrome([survey_chrome(file)], stream)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.2 * peaks[0]


def test_a_file_of_several_processes_is_not_merged_again(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{n}", trace(step(), n, process_id=40 + n)) for n in range(2)]
    merged = written(tmp_path, "m", json.dumps(chrome(*files)).encode())

    with pytest.raises(UsageError, match="m is of several processes already: name the files"):
        chrome(merged, files[0])


def test_parts_that_were_merged_are_a_file_of_their_process(tmp_path: Path) -> None:
    facts = {"rank": 3, "process_id": 40}
    files = [written(tmp_path, f"x.part_{n}.json", trace(step(), **facts)) for n in range(2)]
    merged = written(tmp_path, "m", json.dumps(chrome(*files)).encode())

    found = survey_chrome(merged).origin
    assert (found.rank, found.process_id, found.world_size) == (3, 40, 4)


# -- Perfetto's format ---------------------------------------------------------------------------
def recorded(rank: int, **facts: Any) -> SessionTrace:
    found = SessionTrace(rank, world_size=4, process_id=100 + rank, **facts)
    thread, stream = found.thread(), found.stream()
    found.slice(thread, 10, 90, ["step"], "scope")
    found.slice(stream, 100, 150, ["step", "k"], "kernel", launch=1)
    return found


def test_files_follow_one_another_byte_by_byte(tmp_path: Path) -> None:
    contents = [recorded(rank).finish() for rank in range(3)]
    files = [written(tmp_path, f"{n}.pftrace", content) for n, content in enumerate(contents)]

    merged = perfetto(*files)

    assert merged == b"".join(contents)
    profile = decode_profile(merged, "x.pftrace")
    assert profile.inclusive("count")[0] == 3
    assert profile.inclusive("time (ns)")[0] == 150
    assert profile.provenance.to_plain()["ranks"] == {
        "world_size": 4, "present": [0, 1, 2], "missing": [3], "partial": [],
    }  # fmt: skip
    assert [device.index for device in profile.devices if device.kind == "GPU"] == [0, 1, 2]


def test_the_survey_knows_the_process(tmp_path: Path) -> None:
    found = survey_perfetto(written(tmp_path, "x.pftrace", recorded(2, host="h1").finish()))

    assert isinstance(found, TimelineInput)
    origin = found.origin
    assert (origin.rank, origin.host, origin.process_id, origin.world_size) == (2, "h1", 102, 4)
    assert origin.start_time_ns == START_NS
    assert not origin.is_partial


def test_a_torn_end_is_left_out(tmp_path: Path) -> None:
    content = recorded(1).unfinished()
    torn = written(tmp_path, "x.rank1.partial.pftrace", content[:-20])
    whole = written(tmp_path, "x.rank0.pftrace", recorded(0).finish())

    assert survey_perfetto(torn).origin.is_partial
    merged = perfetto(torn, whole)

    profile = decode_profile(merged, "x.pftrace")
    assert gzip.decompress(merged)
    assert profile.inclusive("count")[0] >= 1
    assert profile.partial


def test_files_without_compression_are_packed(tmp_path: Path) -> None:
    plain = written(tmp_path, "a.pftrace", packed(recorded(0).packets))
    other = written(tmp_path, "b.pftrace", recorded(1).finish())

    merged = perfetto(plain, other)

    assert gzip.decompress(merged)
    assert decode_profile(merged, "x.pftrace").inclusive("count")[0] == 2


def test_a_file_that_was_packed_once_more_is_not_copied_as_it_is(tmp_path: Path) -> None:
    twice = written(tmp_path, "a.pftrace", gzip.compress(recorded(0).finish(), mtime=0))
    other = written(tmp_path, "b.pftrace", recorded(1).finish())

    merged = perfetto(twice, other)

    assert not gzip.decompress(merged).startswith(b"\x1f\x8b")
    assert decode_profile(merged, "x.pftrace").inclusive("count")[0] == 2


def test_parts_of_one_process_may_share_their_tracks(tmp_path: Path) -> None:
    parts = [
        written(tmp_path, f"x.part_{number}.pftrace", recorded(0).finish()) for number in range(2)
    ]

    assert decode_profile(perfetto(*parts), "x.pftrace").inclusive("count")[0] == 2


def test_a_file_of_several_ranks_is_not_merged_again(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{rank}", recorded(rank).finish()) for rank in range(2)]
    merged = written(tmp_path, "m", perfetto(*files))

    with pytest.raises(UsageError, match="m is of several processes already: name the files"):
        perfetto(merged, files[0])


def test_other_files_with_the_same_tracks_are_refused(tmp_path: Path) -> None:
    content = foreign([(BEGIN, 1, "a", "t"), (END, 2, "", "t")])
    one, other = written(tmp_path, "a", content), written(tmp_path, "b", content + content)

    with pytest.raises(UsageError, match=r"a and .*b use the same numbers of tracks"):
        perfetto(one, other)


@pytest.mark.parametrize("content", [b"\x0a\x05hello", b"{}", b"\x1f\x8b" + b"\0" * 30])
def test_hostile_packets_are_one_clear_error(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ProfileFormatError, match=r"x: .*; "):
        perfetto(written(tmp_path, "x", content))
