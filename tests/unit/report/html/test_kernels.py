from __future__ import annotations

from fakes.profiles import training_profile
from fakes.runs import profile_of, run_of

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import Selection
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.html.table import KernelTable, changed_kernels, kernel_table


def column(table: KernelTable, title: str) -> list[object]:
    (found,) = (each for each in table.columns if each.title == title)
    return found.values


def test_kernel_is_one_row_whatever_launched_it() -> None:
    table = kernel_table(training_profile(), ["time/ms", "count"], Selection())

    assert table.names == ("kernel_3", "kernel_1")
    assert column(table, "time") == [3_000_000, 1_000_000]
    assert column(table, "share") == [75, 25]
    assert column(table, "count") == [6, 2]


def test_other_values_of_the_profile_have_columns() -> None:
    table = kernel_table(training_profile(), ["time/ms", "count"], Selection())

    titles = [each.title for each in table.columns]
    assert titles == [
        *("time", "share", "count", "avg_time", "tflop16/s", "bound", "roof_distance")
    ]
    assert column(table, "avg_time") == [500_000, 500_000]
    assert column(table, "bound") == ["compute", "compute"]


def test_device_without_known_peaks_has_no_roof() -> None:
    profile = profile_of(("s/a", 10, 1, ""), device=Device("ACME", 0, "x1"))

    table = kernel_table(profile, ["time/ms"], Selection())

    assert [each.title for each in table.columns] == ["time", "share", "avg_time"]


def test_trials_are_one_row_unless_asked_for() -> None:
    profile = profile_of(("<autotune>/trial", 5, 1, ""), ("k", 9, 1, ""))

    shown = [
        kernel_table(profile, ["time/ms"], Selection(trials=trials)).names
        for trials in (False, True)
    ]

    assert shown == [("k", "<autotune>"), ("k", "trial")]


def two_devices() -> Profile:
    builder = ProfileBuilder()
    for index, time in ((0, 30), (1, 50)):
        metrics = {"time (ns)": time, "count": 1}
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=Device("CUDA", index, "90"))
    return builder.build()


def test_devices_are_distinguished_where_there_are_several() -> None:
    single = kernel_table(two_devices(), ["time/ns"], Selection())
    run = Run(two_devices(), "x.proton")
    both = changed_kernels(compare([run], [run], CompareOptions(by=By.KERNEL)))

    assert single.names == both.names == ("k", "k")
    assert column(single, "device") == ["CUDA:1", "CUDA:0"]
    assert sorted(map(str, column(both, "device"))) == ["CUDA:0", "CUDA:1"]


def test_kernels_that_changed_most_come_first() -> None:
    base = run_of(("s/a", 100, 10, ""), ("s/b", 50, 5, ""), ("t/gone", 7, 1, ""))
    new = run_of(("s/a", 90, 10, ""), ("s/b", 90, 5, ""), ("t/fresh", 3, 1, ""))

    table = changed_kernels(compare([base], [new], CompareOptions(by=By.KERNEL)))

    assert table.names == ("b", "a", "gone", "fresh")
    assert column(table, "change") == [40, -10, -7, 3]
    assert column(table, "growth") == [80, -10, None, None]
    assert column(table, "new") == [90, 90, None, 3]
    assert column(table, "status") == [None, None, "REMOVED", "NEW"]


def test_parts_of_a_change_add_up_to_it() -> None:
    base, new = run_of(("s/a", 100, 10, "")), run_of(("s/a", 180, 12, ""))

    table = changed_kernels(compare([base], [new], CompareOptions(by=By.KERNEL)))

    parts = [column(table, title)[0] for title in ("by launches", "by latency")]
    assert sum(parts) == column(table, "change")[0] == 80  # type: ignore[arg-type]
    assert (column(table, "launches new"), column(table, "launches base")) == ([12], [10])


def test_several_runs_show_an_interval() -> None:
    base = [run_of(("s/a", time, 1, "")) for time in (100, 104)]
    new = [run_of(("s/a", time, 1, "")) for time in (200, 204)]

    table = changed_kernels(compare(base, new, CompareOptions(by=By.KERNEL)))

    (reach,) = column(table, "+-")
    assert isinstance(reach, float)
    assert reach > 0
