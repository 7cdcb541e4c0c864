from __future__ import annotations

import io

import pytest
from fakes.runs import Launched, profile_of, run_of
from fakes.suites import suite
from rich.console import Console

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.ranking import Threshold, rank
from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.report.text.diff import DiffReport
from proton_bench.report.text.tree import print_report
from proton_bench.report.words.diff import Column
from proton_bench.support.console import open_console

BASE = (
    ("f/soft", 100, 4, "a"),
    ("f/mm", 1000, 2, "b"),
    ("g/add", 50, 1, "c"),
    ("g/old", 7, 1, "z"),
)
NEW = (
    ("f/soft", 200, 6, "a2"),
    ("f/mm_v2", 1001, 2, "b"),
    ("h/add", 50, 1, "c"),
    ("g/fresh", 9, 3, ""),
)


def compared(
    base: tuple[Launched, ...] = BASE,
    new: tuple[Launched, ...] = NEW,
    options: CompareOptions | None = None,
) -> Comparison:
    runs = [run_of(*base, source="base.proton"), run_of(*new, source="new.proton")]
    return compare(runs[:1], runs[1:], options or CompareOptions())


def report(comparison: Comparison, threshold: str | None = None) -> DiffReport:
    least = None if threshold is None else Threshold.parse(threshold)
    return DiffReport(comparison, rank(comparison, least, 100))


def printed(shown: DiffReport) -> list[str]:
    file = io.StringIO()
    print_report(open_console(file), shown)
    return file.getvalue().splitlines()


class Terminal(io.StringIO):
    """A terminal in memory."""

    def isatty(self) -> bool:
        return True


def on_terminal(shown: DiffReport, width: int) -> list[str]:
    file = Terminal()
    console = Console(
        file=file, width=width, color_system=None, markup=False, emoji=False, highlight=False
    )
    print_report(console, shown)
    return file.getvalue().splitlines()


def test_report_has_a_headline_the_sides_rows_and_a_legend() -> None:
    assert printed(report(compared())) == [
        "+8.9 % (+103 ns): 97 % of it is soft under f, slower per call by 33 %, 2 calls "
        "more, with other code",
        "base  base.proton: 1.157 us",
        " new  new.proton: 1.26 us",
        "both  own cost of the profiler: unknown, the files do not say",
        "",
        "base (us)  new (us)  change (us)        %  of total  by launches (us)  by latency (us)"
        "  launches  name",
        "    1.157     1.260       +0.103   +8.9 %    +8.9 %            +0.060           +0.043"
        "        +4  ROOT",
        "    1.100     1.201       +0.101   +9.2 %    +8.7 %            +0.058           +0.043"
        "        +2    f",
        "    0.100     0.200       +0.100   +100 %    +8.6 %            +0.058           +0.042"
        "        +2      soft  other code",
        "    1.000     1.001       +0.001   +0.1 %    +0.1 %             0.000           +0.001"
        "         0      mm_v2  RENAMED from mm",
        "    0.007     0.009       +0.002  +28.6 %    +0.2 %            +0.002            0.000"
        "        +2    g",
        "        -     0.009       +0.009        -    +0.8 %            +0.009            0.000"
        "        +3      fresh  NEW",
        "    0.007         -       -0.007        -    -0.6 %            -0.007            0.000"
        "        -1      old  REMOVED",
        "    0.050     0.050        0.000      0 %       0 %             0.000            0.000"
        "         0    h  NEW above moved rows",
        "    0.050     0.050        0.000      0 %       0 %             0.000            0.000"
        "         0      add  MOVED from g",
        "",
        "Legend",
        "  time (ns), by path",
        "  change: new minus base, of the row and all rows below it",
        "  of total: the change as a share of the base's total; these add up",
        "  by launches: mean latency of both sides x more or fewer launches",
        "  by latency: mean launches of both sides x change of one launch",
    ]


def test_a_profile_against_itself_shows_the_total_alone() -> None:
    lines = printed(report(compared(BASE, BASE)))

    assert lines[0] == "no change of time (ns)"
    assert lines[6].endswith("  ROOT")
    assert lines[7] == ""
    assert "  6 smaller rows are left out and changed by 0 ns in total; " in lines[-1]


def test_rates_have_neither_totals_nor_parts() -> None:
    lines = printed(report(compared(options=CompareOptions("avg_time/us", By.KERNEL))))

    assert lines[0] == "avg_time/us 0.1446 -> 0.105 (-27.4 %)"
    assert lines[5] == "  base     new   change        %  name"
    assert "     -  0.0030        -        -    fresh  NEW" in lines


def test_several_runs_show_their_spread() -> None:
    base = [run_of(("k", time, 2, ""), source=f"a{time}") for time in (1000, 1200)]
    new = [run_of(("k", time, 2, ""), source=f"b{time}") for time in (2000, 2400)]

    comparison = compare(base, new, CompareOptions())
    lines = printed(report(comparison))

    assert lines[0].startswith("+100 % (+1.1 us), 95 % interval ")
    assert lines[1] == "base  a1000, a1200: median 1.1 us of 2 runs, 1 us to 1.2 us"
    assert lines[5].split("  ")[:4] == ["base (us)", "new (us)", "change (us)", "+- (us)"]


def test_an_interval_around_nothing_is_said_to_be_doubtful() -> None:
    base = [run_of(("k", time, 2, "")) for time in (1000, 3000)]

    lines = printed(report(compare(base, [run_of(("k", 2100, 2, ""))], CompareOptions())))

    assert "perhaps no change at all" in lines[0]


def test_a_narrow_terminal_costs_columns_but_neither_change_nor_name() -> None:
    shown = report(compared())

    wide, narrow = on_terminal(shown, 140), on_terminal(shown, 60)

    assert wide[5] == printed(shown)[5]
    assert narrow[5].split() == ["base", "(us)", "new", "change", "%", "name"]
    assert all(len(line) <= 60 for line in narrow[5:14])
    assert "columns do not fit; a pipe or file gets all" in narrow[-1]


def test_benchmarks_that_were_called_differently_often_are_reported() -> None:
    comparison = compare([Run(suite(10, 4), "a")], [Run(suite(40, 8), "b")], CompareOptions())

    lines = printed(report(comparison))

    assert lines[0] == "no change of time (ns) at the base's number of calls"
    assert lines[4].startswith("2 benchmarks were called a different number of times")
    assert any(line.startswith("  new: values from rounds of benchmarks ") for line in lines)


def test_a_very_narrow_terminal_keeps_the_change_and_cuts_names() -> None:
    long = "k" * 200

    lines = on_terminal(report(compared(((long, 5, 1, ""),), ((long, 9, 1, ""),))), 30)

    assert lines[5].split() == ["change", "(ns)", "name"]
    assert "…" in lines[7]


def test_a_name_that_is_cut_leaves_room_for_the_state_of_the_row() -> None:
    names = "k" * 200, "n" * 200, "o" * 200
    base = tuple((f"s/{name}", 5000, 1, code) for name, code in zip(names, "abc", strict=True))
    new = (("s/" + "r" * 200, 5000, 1, "a"), ("t/" + names[1], 5000, 1, "b"), base[2])

    lines = on_terminal(report(compared(base, (*new, ("s/" + "m" * 200, 50, 1, "d")))), 90)

    assert all(len(line) <= 90 for line in lines[6:14])
    ends = [line.split()[-1] for line in lines if "…" in line]
    assert sorted(ends) == ["MOVED…", "NEW", "RENAMED…"]


def test_a_pipe_gets_whole_names() -> None:
    long = "k" * 3000

    lines = printed(report(compared(((long, 5, 1, ""),), ((long, 9, 1, ""),))))

    assert any(line.endswith(long) for line in lines)


def test_columns_are_measured_once_and_not_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    width = Column.width.fget
    assert width is not None

    def counted(column: Column) -> int:
        asked.append(column.title)
        return int(width(column))

    monkeypatch.setattr(Column, "width", property(counted))
    base = profile_of(*((f"s/k{number}", 10, 1, "") for number in range(50)))
    new = profile_of(*((f"s/k{number}", 20, 1, "") for number in range(50)))
    changed = compare([Run(base, "a")], [Run(new, "b")], CompareOptions())

    lines = printed(report(changed, "0"))

    assert len(lines) > 50
    assert len(asked) < 30
    assert changed.inclusive.change is changed.inclusive.change


def test_worse_is_red_and_better_green() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", width=200)
    base, new = (("a", 1000, 1, "a"), ("b", 500, 1, "b")), (("a", 1300, 1, "a"), ("b", 300, 1, "b"))

    print_report(console, report(compared(base, new)))

    assert "\x1b[1;31m     +0.300" in file.getvalue()
    assert "\x1b[1;32m     -0.200" in file.getvalue()


def test_more_of_a_rate_is_green() -> None:
    runs = []
    for flops in (1000, 2000):
        builder = ProfileBuilder()
        builder.add(0, "k", metrics={"time (ns)": 10, "flops16": flops})
        runs.append(Run(builder.build(), "x"))
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", width=200)

    print_report(console, report(compare(runs[:1], runs[1:], CompareOptions("gflop16/s"))))

    assert "\x1b[1;32m+" in file.getvalue()
    assert "\x1b[1;31m" not in file.getvalue()


def test_names_are_never_markup_nor_control_characters() -> None:
    hostile = ("[red]x[/bold]", "<script>\x1b[2J\n")
    kernels = tuple((f"s/{name.replace('/', '|')}", 9, 1, "") for name in hostile)

    text = "\n".join(printed(report(compared(kernels[:1], kernels), "0")))

    assert "    [red]x[|bold]" in text
    assert "<script>\\x1b[2J\\n  NEW" in text
    assert "\x1b" not in text


def test_deep_rows_say_how_deep_they_are() -> None:
    path = "/".join(f"s{depth}" for depth in range(90))

    comparison = compared(((f"{path}/k", 5, 1, ""),), ((f"{path}/k", 9, 1, ""),))
    lines = printed(report(comparison, "1"))

    assert any(line.endswith("[91] k") for line in lines)


def test_devices_are_named_where_there_are_several() -> None:
    runs = []
    for time in (5, 9):
        builder = ProfileBuilder()
        for index in (0, 1):
            device = Device("CUDA", index, "90")
            builder.add(0, "k", metrics={"time (ns)": time + index}, device=device)
        runs.append(Run(builder.build(), "x"))

    lines = printed(report(compare(runs[:1], runs[1:], CompareOptions())))

    assert [line.split("  ")[-1] for line in lines[7:9]] == ["k [CUDA:1]", "k [CUDA:0]"]


def test_what_a_kernel_was_launched_with_is_reported_where_it_changed() -> None:
    runs = []
    for size, config in ((8, "BLOCK: 64"), (4, "BLOCK: 128")):
        builder = ProfileBuilder()
        variant = Variant("c", (size, 1, 1), (32, 1, 1), registers=size, config=config)
        builder.add(0, "k", metrics={"time (ns)": size}, variant=variant)
        runs.append(Run(builder.build(), "x"))

    lines = printed(report(compare(runs[:1], runs[1:], CompareOptions())))

    configured = "grid 8x1x1 -> 4x1x1  registers 8 -> 4  config BLOCK: 64 -> BLOCK: 128"
    assert lines[7].endswith(f"k  {configured}")


def test_partial_runs_and_lost_records_are_reported() -> None:
    profile = profile_of(("k", 5, 1, ""))
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 6, "count": 1})
    partial = builder.build(partial=True, dropped={"buffer full": 3})

    lines = printed(report(compare([Run(profile, "a")], [Run(partial, "b")], CompareOptions())))

    assert lines[4] == "b: PARTIAL: the file was written before the run ended"
    assert lines[5] == "b: DROPPED: 3 records: buffer full"


@pytest.mark.parametrize("metric", ["time", "time/us", "avg_time/ns", "count", "time/%"])
@pytest.mark.parametrize("by", list(By))
def test_every_metric_can_be_shown_by_everything(metric: str, by: By) -> None:
    lines = printed(report(compared(options=CompareOptions(metric, by)), "0"))

    assert lines[0]
    assert not any("nan" in line for line in lines)
