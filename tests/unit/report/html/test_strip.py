from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.timeline.slices import HOST, CallPath, TimelineSlice
from proton_bench.model.origin import Origin
from proton_bench.report.html.strip import BINS, Strip, TimelineTimes, read_strip

DATA = Path(__file__).parents[3] / "data"


def piece(
    start_ns: int, end_ns: int, *path: str, kind: str = "kernel", device: int = 0
) -> TimelineSlice:
    return TimelineSlice(
        origin=Origin(),
        path=CallPath(path),
        program="",
        kind=kind,
        name=path[-1],
        start_ns=start_ns,
        duration_ns=end_ns - start_ns,
        device=device,
        row=0,
        lane=0,
    )


def call(start_ns: int, end_ns: int, *path: str) -> TimelineSlice:
    return piece(start_ns, end_ns, *path, kind="op", device=HOST)


def strip_of(*pieces: TimelineSlice) -> Strip:
    times = TimelineTimes()
    for each in pieces:
        times.take(each)
    found = times.strip()
    assert found is not None
    return found


def shares(strip: Strip, track: str) -> list[float]:
    """Return the busy share of each quarter."""
    busy = strip.tracks[track]
    size = BINS // 4
    return [round(sum(busy[at : at + size]) / size, 2) for at in range(0, BINS, size)]


def test_overlapping_work_is_busy_once() -> None:
    strip = strip_of(piece(0, 1000, "a"), piece(500, 1500, "b"), piece(3000, 4000, "c"))

    assert strip.span_ns == 4000
    assert shares(strip, "GPU:0") == [1.0, 0.5, 0.0, 1.0]


def test_work_inside_of_other_work_adds_nothing() -> None:
    strip = strip_of(piece(0, 4000, "a"), piece(1000, 1100, "b"))

    assert shares(strip, "GPU:0") == [1.0, 1.0, 1.0, 1.0]


def test_each_device_has_a_track() -> None:
    strip = strip_of(piece(0, 1000, "a"), piece(3000, 4000, "b", device=1))

    assert shares(strip, "GPU:0") == [1.0, 0.0, 0.0, 0.0]
    assert shares(strip, "GPU:1") == [0.0, 0.0, 0.0, 1.0]


def test_host_is_in_its_innermost_call() -> None:
    strip = strip_of(piece(0, 4000, "k"), call(1000, 3000, "step"), call(2000, 2500, "step", "add"))

    places = [
        strip.host[at] for at in (0, BINS * 3 // 8, BINS * 9 // 16, BINS * 11 // 16, BINS - 1)
    ]
    shown = [strip.paths[place] if place >= 0 else None for place in places]
    assert shown == [None, ("step",), ("step", "add"), ("step",), None]


def test_without_devices_the_host_is_the_track() -> None:
    strip = strip_of(call(0, 1000, "a"), call(2000, 4000, "b"))

    assert shares(strip, "host") == [1.0, 0.0, 1.0, 1.0]


def test_nothing_with_a_length_has_no_strip() -> None:
    times = TimelineTimes()
    times.take(piece(5, 5, "a"))
    times.take(msgspec.structs.replace(piece(5, 9, "a"), is_open=True))

    assert times.strip() is None


def test_names_are_made_visible_and_deep_paths_cut() -> None:
    strip = strip_of(call(0, 10, *(f"level {level}" for level in range(99)), "\x1b[31m"))

    (path,) = strip.paths
    assert path[0] == "(88 more)"
    assert len(path) == 13
    assert path[-1].isprintable()


def test_many_devices_are_counted() -> None:
    strip = strip_of(*(piece(0, 10, "k", device=device) for device in range(20)))

    assert (len(strip.tracks), strip.hidden) == (16, 4)


@pytest.mark.parametrize("suffix", ["pftrace", "chrome_trace"])
def test_timelines_of_sessions_have_a_strip(suffix: str) -> None:
    strip = read_strip(DATA / "golden" / f"timeline.{suffix}")

    assert strip is not None
    ((name, busy),) = strip.tracks.items()
    # As exact as the file, whose times are of today.
    assert (name, round(sum(busy) / BINS * strip.span_ns)) == ("rank 3 GPU:0", 793)


@pytest.mark.parametrize(
    "name", ["golden/profile.proton", "upstream/tiny-trace.chrome_trace", "golden/profile.json"]
)
def test_other_files_have_none(name: str) -> None:
    assert read_strip(DATA / name) is None


def test_damaged_timeline_is_an_error(tmp_path: Path) -> None:
    content = (DATA / "golden" / "timeline.chrome_trace").read_bytes()
    file = tmp_path / "cut.chrome_trace"
    file.write_bytes(content[: len(content) * 2 // 3] + b"}}]")

    with pytest.raises(ProfileFormatError):
        read_strip(file)
