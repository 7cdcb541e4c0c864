from __future__ import annotations

import io

from proton_bench.analysis.counters.file import CounterFile, MeasuredLaunch
from proton_bench.analysis.counters.join import CounterJoin, join_counters
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.text.counters import CounterReport, counter_document
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console


def profile(*counts: int, name: str = "k") -> Profile:
    builder = ProfileBuilder()
    for place, count in enumerate(counts):
        scope = builder.add(0, f"scope {place}", FrameKind.SCOPE)
        builder.add(scope, name, FrameKind.KERNEL, metrics={"time (ns)": 1, "count": count})
    return builder.build()


def join(rows: Profile, *names: str) -> CounterJoin:
    launches = (MeasuredLaunch(name, place) for place, name in enumerate(names))
    return join_counters(rows, CounterFile("ncu", tuple(launches)))


def lines(found: CounterJoin, width: int | None = None) -> list[str]:
    stream = io.StringIO()
    console = open_console(stream)
    if width:
        console.width = width
    print_report(console, CounterReport(found, "deep.csv"))
    *found_lines, empty = stream.getvalue().splitlines()
    assert empty == ""
    return found_lines


def test_one_line_says_how_many_launches_belong_to_rows() -> None:
    assert lines(join(profile(3), "k", "k")) == [
        "counters of deep.csv: 2 of 2 launches matched; 1 launch of the profile not measured"
    ]


def test_kernels_with_different_counts_and_several_rows_are_ambiguous() -> None:
    assert lines(join(profile(4, 2), "k", "k", "k"))[1:] == [
        "AMBIGUOUS: k: 3 launches measured, 6 in the profile from 2 rows: the counters of these "
        "rows may be swapped"
    ]


def test_order_alone_is_said_once_for_all_kernels() -> None:
    assert lines(join(profile(1, 1), "k", "k"))[1:] == [
        "1 kernel was launched from several rows and paired only by order"
    ]


def test_many_kernels_and_unsafe_names_are_shortened() -> None:
    names = [f"other{place}\x1b[31m" for place in range(30)]

    found = lines(join(profile(1), *names), width=40)

    assert len(found) == 12
    assert "\x1b" not in "".join(found)
    assert found[-1] == "UNMATCHED: 20 more kernels"


def test_document_has_the_doubts() -> None:
    document = counter_document(join(profile(4, 2), "k", "k", "k"), "deep.csv")

    assert document["shared_by_order"] == [
        {"kernel": "k", "measured": 3, "launched": 6, "places": 2}
    ]
