from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.profiles import training_profile
from fakes.runs import GPU, Launched, profile_of, run_of

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import (
    CompareOptions,
    Comparison,
    compare,
    reported_metric,
    without_rows,
)
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation

BASE = (
    ("f/soft", 100, 4, "a"),
    ("f/mm", 1000, 2, "b"),
    ("g/add", 50, 1, "c"),
    ("g/old", 7, 1, "z"),
)
NEW = (
    ("f/soft", 200, 6, "a2"),
    ("f/mm", 1001, 2, "b"),
    ("h/add", 50, 1, "c"),
    ("g/fresh", 9, 3, ""),
)


def compared(
    base: tuple[Launched, ...] = BASE, new: tuple[Launched, ...] = NEW, **options: Any
) -> Comparison:
    return compare([run_of(*base)], [run_of(*new)], CompareOptions(**options))


def changes(comparison: Comparison) -> dict[str, tuple[float, ...]]:
    """Return base, new and change of each row by its path."""
    values = comparison.inclusive
    columns = (values.base.tolist(), values.new.tolist(), values.change.tolist())
    return {
        "/".join(comparison.tree.path(row)): cells
        for row, cells in enumerate(zip(*columns, strict=True))
    }


def test_by_path_values_include_those_of_the_rows_below() -> None:
    assert changes(compared()) == {
        "": (1157, 1260, 103),
        "f": (1100, 1201, 101),
        "f/soft": (100, 200, 100),
        "f/mm": (1000, 1001, 1),
        "g": (7, 9, 2),
        "g/old": (7, 0, -7),
        "g/fresh": (0, 9, 9),
        "h": (50, 50, 0),
        "h/add": (50, 50, 0),
    }


def test_by_kernel_sums_all_places() -> None:
    base = (("f/k", 5, 1, ""), ("g/k", 7, 1, ""), ("g/x", 1, 1, ""))
    new = (("f/k", 6, 2, ""), ("g/k", 8, 1, ""), ("g/x", 1, 1, ""))

    found = compared(base, new, by=By.KERNEL)

    assert changes(found) == {"": (13, 15, 2), "k": (12, 14, 2), "x": (1, 1, 0)}
    split = found.inclusive.split
    assert split is not None
    # As the places say it: one launch more in f, each there faster, and one slower in g.
    assert (split.launches.tolist(), split.latency.tolist()) == ([4, 4, 0], [-2, -2, 0])


def test_by_kernel_one_that_was_renamed_somewhere_counts_for_no_other() -> None:
    base = (("f/small", 100, 1, ""), ("g/small", 500, 1, ""), ("h/old", 7, 1, ""))
    new = (("f/large", 101, 1, ""), ("g/small", 500, 1, ""), ("h/now", 7, 1, ""))

    there, back = compared(base, new, by=By.KERNEL), compared(new, base, by=By.KERNEL)

    expected = {"": (607, 608, 1), "large": (100, 101, 1), "small": (500, 500, 0), "now": (7, 7, 0)}
    assert changes(there) == expected
    renamed = {
        there.tree.name(row) for row in np.flatnonzero(there.tree.states == RowState.RENAMED)
    }
    assert renamed == {"large", "now"}
    assert sorted(back.inclusive.change.tolist()) == [-1, -1, 0, 0]


def test_by_kernel_running_numbers_do_not_matter() -> None:
    base = (("f/triton_poi_fused_add_0", 10, 1, ""), ("g/triton_poi_fused_add_1", 20, 1, ""))
    new = (("f/triton_poi_fused_add_3", 11, 1, ""), ("g/triton_poi_fused_add_4", 22, 1, ""))

    found = changes(compared(base, new, by=By.KERNEL))
    apart = changes(compared(base, new, by=By.KERNEL, raw_names=True))

    assert found == {"": (30, 33, 3), "triton_poi_fused_add": (30, 33, 3)}
    assert len(apart) > 2


def test_by_scope_counts_what_moved_in_both_scopes() -> None:
    found = compared(by=By.SCOPE)

    assert changes(found) == {
        "": (1157, 1260, 103),
        "f": (1100, 1201, 101),
        "g": (57, 9, -48),
        "h": (0, 50, 50),
    }
    assert found.tree.states.tolist() == [
        RowState.MATCHED,
        RowState.MATCHED,
        RowState.MATCHED,
        RowState.NEW,
    ]


def test_by_test_keeps_tests_alone() -> None:
    base = (("test_a/s/k", 5, 1, ""), ("test_b/k", 7, 1, ""), ("k", 2, 1, ""))
    new = (("test_a/t/k", 9, 1, ""), ("test_b/k", 7, 1, ""), ("k", 2, 1, ""))

    found = changes(compared(base, new, by=By.TEST))

    assert found == {"": (14, 18, 4), "test_a": (5, 9, 4), "test_b": (7, 7, 0)}


def test_lines_belong_to_their_kernel() -> None:
    runs = []
    for samples in (3, 8):
        builder = ProfileBuilder()
        kernel = builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1}, device=GPU)
        builder.add(kernel, "k.py:3@k", FrameKind.LINE, metrics={"num_samples": samples})
        runs.append(Run(builder.build(), "x"))

    found = compare(runs[:1], runs[1:], CompareOptions("num_samples", By.KERNEL))

    assert changes(found) == {"": (3, 8, 5), "k": (3, 8, 5)}


def test_lines_give_a_kernel_without_values_its_row() -> None:
    runs = []
    for samples in (3, 8):
        builder = ProfileBuilder()
        kernel = builder.add(0, "k", FrameKind.KERNEL, device=GPU)
        builder.add(kernel, "k.py:3@k", FrameKind.LINE, metrics={"num_samples": samples})
        runs.append(Run(builder.build(), "x"))

    found = compare(runs[:1], runs[1:], CompareOptions("num_samples", By.KERNEL))

    assert changes(found) == {"": (3, 8, 5), "k": (3, 8, 5)}


def test_files_without_kinds_have_scopes_too() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope")
    builder.add(scope, "k", FrameKind.KERNEL, metrics={"time (ns)": 4})
    run = Run(builder.build(), "x")

    assert changes(compare([run], [run], CompareOptions(by=By.SCOPE))).keys() == {"", "scope"}


def test_rates_are_computed_anew_for_what_a_row_stands_for() -> None:
    base = (("f/k", 30, 1, ""), ("g/k", 10, 1, ""))
    new = (("f/k", 30, 1, ""), ("g/k", 50, 4, ""))

    found = compared(base, new, metric="avg_time/ns", by=By.KERNEL)

    assert found.own is None
    assert changes(found)["k"] == pytest.approx((20.0, 16.0, -4.0))


def test_occupancy_is_compared_over_all_launches_of_a_row() -> None:
    def launched(registers: int) -> Run:
        builder = ProfileBuilder()
        for path, count in (("f", 32), ("g", registers)):
            variant = Variant(grid=(9999, 1, 1), block=(128, 1, 1), registers=count)
            scope = builder.add(0, path, FrameKind.SCOPE)
            metrics = {"time (ns)": 10}
            builder.add(scope, "k", FrameKind.KERNEL, device=GPU, variant=variant, metrics=metrics)
        return Run(builder.build(), "x")

    options = CompareOptions("occupancy", By.KERNEL)
    found = compare([launched(32)], [launched(168)], options)

    assert changes(found)["k"] == pytest.approx((1.0, 38 / 64, -26 / 64))


def test_a_rate_that_one_side_lacks_is_not_a_number() -> None:
    found = compared(metric="avg_time/us")
    row = next(row for row in range(len(found)) if found.tree.name(row) == "fresh")

    assert not found.inclusive.base_valid[row]
    assert found.inclusive.new_valid[row]
    assert np.isfinite(found.inclusive.change).all()


def test_metrics_of_a_row_alone_are_compared_row_by_row() -> None:
    run = Run(training_profile(), "x")

    found = compare([run], [run], CompareOptions("wall"))

    assert not found.measure.is_additive
    assert not found.inclusive.change.any()


def test_metrics_of_a_row_alone_have_the_unit_asked_for() -> None:
    run = Run(training_profile(), "x")

    in_ns, in_ms = (compare([run], [run], CompareOptions(name)) for name in ("wall", "wall/ms"))

    assert in_ns.inclusive.base.any()
    assert in_ms.inclusive.base == pytest.approx(in_ns.inclusive.base / 1e6)
    assert (in_ms.measure.scale, in_ms.measure.unit) == (1.0, "ms")


def test_times_without_launches_are_a_rest() -> None:
    runs = []
    for time in (5, 8):
        builder = ProfileBuilder()
        builder.add(0, "k", metrics={"time (ns)": 10, "count": 2})
        builder.add(0, "host", metrics={"time (ns)": time})
        runs.append(Run(builder.build(), "x"))

    split = compare(runs[:1], runs[1:], CompareOptions()).inclusive.split

    assert split is not None
    assert (split.rest[0], split.launches[0], split.latency[0]) == (3, 0, 0)


def test_without_counts_a_change_has_no_parts() -> None:
    runs = []
    for time in (5, 8):
        builder = ProfileBuilder()
        builder.add(0, "k", metrics={"time (ns)": time})
        runs.append(Run(builder.build(), "x"))

    assert compare(runs[:1], runs[1:], CompareOptions()).inclusive.split is None


def test_values_of_several_runs_are_means_with_an_interval() -> None:
    base = [run_of(("k", time, 2, "")) for time in (10, 12)]
    new = [run_of(("k", time, 2, ""), ("late", 4, 1, "")) for time in (20, 24)]

    found = compare(base, new, CompareOptions())

    assert changes(found)["k"] == (11.0, 22.0, 11.0)
    assert changes(found)[""] == (11.0, 26.0, 15.0)
    assert found.base_runs[:, 0].tolist() == [10, 12]
    assert found.interval is not None
    assert found.interval.low[0] < 15.0 < found.interval.high[0]


def test_a_row_that_a_run_lacks_counts_as_zero_there() -> None:
    base = [run_of(("k", 10, 2, "")), run_of(("k", 10, 2, ""), ("x", 6, 1, ""))]

    found = compare(base, [run_of(("k", 10, 2, ""))], CompareOptions())

    assert changes(found)["x"] == (3.0, 0.0, -3.0)


def test_numbers_too_large_for_sums_do_not_overflow() -> None:
    huge = 2**62

    found = compared((("k", -huge, 1, ""),), (("k", huge, 1, ""), ("x", huge, 1, "")))

    assert found.inclusive.change[0] == pytest.approx(3.0 * huge)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("aggregation", [Aggregation.INCLUSIVE, Aggregation.PROPERTY])
def test_a_value_that_is_no_number_is_refused_by_its_row(
    value: float, aggregation: Aggregation
) -> None:
    runs = []
    for run, loss in (("was", 2.0), ("is", value)):
        builder = ProfileBuilder()
        builder.declare("loss", aggregation)
        above = builder.add(0, "train", FrameKind.SCOPE, metrics={"loss": 1.0})
        builder.add(above, "head", FrameKind.SCOPE, metrics={"loss": loss})
        runs.append(Run(builder.build(), f"{run}.proton"))

    with pytest.raises(UsageError) as caught:
        compare(runs[:1], runs[1:], CompareOptions(metric="loss"))

    for part in ("is.proton", "train > head", str(value)):
        assert part in str(caught.value)


def test_trials_of_autotuners_are_one_row() -> None:
    base, new = (("<autotune>/k", 9, 9, ""), ("k", 1, 1, "")), (("k", 1, 1, ""),)

    assert "<autotune>/k" not in changes(compared(base, new))


def test_deep_trees_are_compared() -> None:
    path = "/".join(f"s{depth}" for depth in range(3000))
    profile = profile_of((f"{path}/k", 5, 1, ""))

    found = compare([Run(profile, "a")], [Run(profile, "b")], CompareOptions())

    assert len(found) == 3002


def mixed(*archs: str) -> Run:
    """Return a run with a kernel on each of several devices."""
    builder = ProfileBuilder()
    for index, arch in enumerate(archs):
        metrics = {"time (ns)": 10 + index, "count": 1}
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=Device("CUDA", index, arch))
    return Run(builder.build(), f"{'-'.join(archs)}.proton")


def test_a_run_on_devices_of_several_architectures_compares_with_its_like() -> None:
    found = compare([mixed("89", "90")], [mixed("89", "90")], CompareOptions())

    assert not found.inclusive.change.any()
    assert len(found) == 3


@pytest.mark.parametrize("archs", [("90", "89"), ("89",), ("90", "90")])
def test_devices_of_several_architectures_are_distinguished(archs: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="times of different devices say little"):
        compare([mixed("89", "90")], [mixed(*archs)], CompareOptions())


def test_a_file_that_does_not_name_its_device_compares_with_any() -> None:
    named = run_of(("k", 5, 1, ""))
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 9, "count": 1})
    unnamed = Run(replace(builder.build(), devices=(Device("GPU", 0),)), "trace")

    comparison = compare([named], [unnamed], CompareOptions())

    assert comparison.inclusive.change[0] == 4
    assert "GPU" not in comparison.tree.device_names


def on_devices(kind: str, *times_ns: int) -> Run:
    """Return a run with a kernel that took so long on each device."""
    builder = ProfileBuilder()
    for index, time_ns in enumerate(times_ns):
        metrics = {"time (ns)": time_ns, "count": 1}
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=Device(kind, index))
    return Run(builder.build(), kind)


@pytest.mark.parametrize("times_ns", [(5,), (5, 70)])
def test_devices_of_unknown_kind_in_a_timeline_match_those_of_the_other_run(
    times_ns: tuple[int, ...],
) -> None:
    tree, timeline = on_devices("CUDA", *times_ns), on_devices("GPU", *times_ns)

    comparison = compare([tree], [timeline], CompareOptions())

    assert comparison.inclusive.change.tolist() == [0.0] * (1 + len(times_ns))


def test_rows_left_out_count_nowhere() -> None:
    several = [BASE, BASE[::-1]], [NEW, (*NEW, ("f/soft", 7, 1, ""))]
    runs = [[run_of(*each) for each in side] for side in several]
    bare = [
        [run_of(*[launched for launched in each if launched[0] != "f/soft"]) for each in side]
        for side in several
    ]
    whole = compare(*runs, CompareOptions())
    rows = [whole.tree.path(row) == ("f", "soft") for row in range(len(whole))]

    found, expected = without_rows(whole, np.array(rows)), compare(*bare, CompareOptions())

    assert {**changes(found), "f/soft": None} == {**changes(expected), "f/soft": None}
    assert found.interval is not None
    assert expected.interval is not None
    assert found.interval.low[0] == pytest.approx(expected.interval.low[0])
    assert changes(found)["f/soft"] == (0, 0, 0)
    assert without_rows(whole, np.zeros(len(whole), dtype=np.bool_)) is whole


def test_rates_of_rows_left_out_are_not_numbers() -> None:
    run = Run(training_profile(), "x")
    whole = compare([run], [run], CompareOptions("wall"))

    found = without_rows(whole, np.ones(len(whole), dtype=np.bool_))

    assert not found.inclusive.base_valid.any()


def host_run(*, operator_ns: int, loader_ns: int, device: str = "CPU") -> Run:
    """Return a run with an operator, and code beside it that was sampled every 10 ms."""
    builder = ProfileBuilder()
    for name in ("host_wall (ns)", "time (ns)"):
        builder.declare(name, Aggregation.INCLUSIVE)
    outside = builder.add(0, "<not recorded>", FrameKind.PYTHON)
    builder.add(outside, "train.py:8@batches", metrics={"host_wall (ns)": loader_ns})
    metrics = {"time (ns)": operator_ns, "host_wall (ns)": 10_000_000}
    builder.add(0, "aten::mm", FrameKind.OP, metrics=metrics, device=Device(device, 0))
    span = {"start_time_ns": 1, "end_time_ns": 1 + operator_ns + loader_ns}
    return Run(builder.build(provenance=span), "run")


def test_reports_of_runs_without_a_device_compare_the_time_of_the_program() -> None:
    base = host_run(operator_ns=4_000_000, loader_ns=60_000_000)
    new = host_run(operator_ns=5_000_000, loader_ns=20_000_000)
    metric = reported_metric(None, [base, new])

    comparison = compare([base], [new], CompareOptions(metric))

    found = changes(comparison)
    assert found[""] == (70_000_000, 30_000_000, -40_000_000)
    assert found["aten::mm"] == (4_000_000, 5_000_000, 1_000_000)  # measured, not sampled
    assert found["<not recorded>/train.py:8@batches"][2] == -41_000_000
    assert comparison.inclusive.split is None
    assert reported_metric("count", [base, new]) == "count"
    assert (
        reported_metric(None, [base, host_run(operator_ns=1, loader_ns=1, device="CUDA")]) is None
    )
