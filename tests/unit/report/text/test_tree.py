from __future__ import annotations

import io

import pytest
from fakes.profiles import deep_profile, training_profile
from rich.cells import cell_len
from rich.console import Console

from proton_bench.analysis.choices import FrameFormat
from proton_bench.analysis.metrics.values import INTERVAL_NOTE
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile
from proton_bench.report.text.tree import MAX_INDENT, SortedReport, TreeReport, print_report
from proton_bench.support.console import open_console


def tree_of(profile: Profile, *metrics: str, depth: int = 100) -> MetricTree:
    return build_tree(profile, metrics or ("time/ms", "count"), Selection(depth=depth))


def printed(*reports: object) -> list[str]:
    file = io.StringIO()
    print_report(open_console(file), *reports)
    return file.getvalue().splitlines()


def test_tree_has_columns_guides_and_a_legend() -> None:
    lines = printed(TreeReport(tree_of(training_profile()), FrameFormat.FILE_FUNCTION))

    assert lines == [
        "time/ms (inc)  count  name",
        "        4.000      8  ROOT",
        "        4.000      -  └─ test_step",
        "        1.000      -     ├─ forward",
        "        1.000      -     │  └─ model.py@forward",
        "        0.250      1     │     ├─ kernel_1",
        "        0.750      3     │     └─ kernel_3",
        "        3.000      -     └─ backward",
        "        3.000      -        └─ model.py@backward",
        "        0.750      1           ├─ kernel_1",
        "        2.250      3           └─ kernel_3",
        "",
        "(inc): with all rows below; count: calls of the row, of ROOT all launches",
    ]


def test_legend_says_once_what_intervals_are() -> None:
    shares = {f"{unit}_busy (ns)": 5.0 for unit in ("dram", "tensor")}
    errors = {f"{unit}_variance (ns^2)": 0.01 for unit in ("dram", "tensor")}
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 10.0, "counter_time (ns)": 10.0, **shares, **errors})
    tree = tree_of(builder.build(), "time/ns", "dram_pct", "tensor_pct")

    (legend,) = printed(TreeReport(tree))[-1:]

    assert legend.count(INTERVAL_NOTE) == 1
    assert legend.count("points") == 1
    assert "points" not in printed(TreeReport(tree_of(builder.build(), "time/ns")))[-1]


def test_missing_values_and_texts_are_shown() -> None:
    lines = printed(TreeReport(tree_of(training_profile(), "wall/ms", "label")))

    assert lines[1] == "        9.000           -  ROOT"
    assert lines[3] == "        2.000   l-forward     ├─ forward"


def test_vectors_are_shown() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"v": [1, 2.5]})

    assert "[1, 2.5]  └─ a" in printed(TreeReport(tree_of(builder.build(), "v")))[2]


def test_rows_that_are_too_deep_are_counted() -> None:
    lines = printed(TreeReport(tree_of(training_profile(), depth=2)))

    assert lines[-1] == "8 deeper rows are not shown; -d shows more"


def test_devices_are_named_where_there_are_several() -> None:
    builder = ProfileBuilder()
    for index in (0, 1):
        metrics = {"time (ns)": 1}
        builder.add(0, "k", metrics=metrics, device=Device("CUDA", index))

    names = [line.split("─ ")[-1] for line in printed(TreeReport(tree_of(builder.build(), "time")))]

    assert names[2:4] == ["k [CUDA:0]", "k [CUDA:1]"]


def test_names_are_never_read_as_markup_or_commands() -> None:
    builder = ProfileBuilder()
    builder.add(0, "[bold red]k[/] \x1b[31m\nnext :smile:", metrics={"time (ns)": 1})

    lines = printed(TreeReport(tree_of(builder.build(), "time")))

    assert lines[2].endswith("└─ [bold red]k[/] \\x1b[31m\\nnext :smile:")


def test_piped_names_are_whole_however_long() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k" * 3000, metrics={"time (ns)": 1})

    assert printed(TreeReport(tree_of(builder.build(), "time")))[2].endswith("k" * 3000)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_cuts_names_in_the_middle() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k" * 300, metrics={"time (ns)": 1})
    file = Terminal()

    print_report(
        Console(file=file, width=60, color_system=None),
        TreeReport(tree_of(builder.build(), "time")),
    )

    lines = file.getvalue().splitlines()
    assert len(lines[2]) <= 60
    assert "k…k" in lines[2]


def on_terminal(width: int, *reports: object) -> list[str]:
    file = Terminal()
    print_report(Console(file=file, width=width, color_system=None), *reports)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [24, 40, 60, 80])
def test_no_line_crosses_the_edge_of_a_narrow_terminal(width: int) -> None:
    tree = tree_of(deep_profile(5000), "time/ms", "time/%", depth=6000)

    lines = on_terminal(width, TreeReport(tree, bars=True), SortedReport(tree))

    assert max(map(cell_len, lines)) <= width
    # The two reports have a line for each row, at least.
    assert len(lines) > 2 * len(tree) - 2
    assert any("[4999] " in line for line in lines)


def test_columns_that_do_not_fit_are_reported() -> None:
    lines = on_terminal(40, TreeReport(tree_of(training_profile(), "time/ms", "time/%", "count")))

    assert lines[0] == "time/ms  time/%  name"
    assert "1 column does not fit; a pipe or file" in lines


def test_bars_stand_before_names_where_there_is_room() -> None:
    tree = tree_of(training_profile(), "time/ms")

    assert printed(TreeReport(tree, bars=True))[1] == "        4.000  ██████████  ROOT"
    assert on_terminal(80, TreeReport(tree, bars=True))[1] == "        4.000  ██████████  ROOT"
    assert on_terminal(40, TreeReport(tree, bars=True))[1] == "  4.000  ROOT"


def test_forced_colours_do_not_cut_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    builder = ProfileBuilder()
    builder.add(0, "k" * 300, metrics={"time (ns)": 1})

    assert "k" * 300 in printed(TreeReport(tree_of(builder.build(), "time")))[2]


def test_colours_follow_the_first_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    text = "\n".join(printed(TreeReport(tree_of(training_profile()))))

    assert "\x1b[1;31m        4.000" in text


def test_very_deep_tree_is_printed_without_recursion_in_lines_of_bounded_length() -> None:
    lines = printed(TreeReport(tree_of(deep_profile(10_000), "time", depth=20_000)))

    deepest = lines[10_001]
    assert deepest.endswith("└─ [10000] level 9999")
    assert max(map(len, lines)) < 3 * MAX_INDENT + 60


def test_output_that_is_ascii_only_gets_plain_guides() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")

    print_report(open_console(stream), TreeReport(tree_of(training_profile())))
    stream.flush()

    assert "|- kernel_1" in raw.getvalue().decode("ascii")


def test_sorted_report_lists_rows_below_the_root_largest_first() -> None:
    lines = printed(SortedReport(tree_of(training_profile(), "time/ms"), FrameFormat.FILE_FUNCTION))

    assert lines[0] == "Sorted kernels by metric time/ms (inc)"
    names = [line.split("  ")[-1] for line in lines[1:]]
    assert names == [
        "test_step",
        "backward",
        "model.py@backward",
        "kernel_3",
        "forward",
        "model.py@forward",
        "kernel_3",
        "kernel_1",
        "kernel_1",
    ]


def test_tree_without_metrics_shows_names() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"x": 1})
    tree = build_tree(builder.build(), [], Selection())

    assert printed(TreeReport(tree), SortedReport(tree)) == ["name", "ROOT", "└─ a"]
