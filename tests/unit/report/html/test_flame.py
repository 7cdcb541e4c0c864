from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.profiles import deep_profile, training_profile
from fakes.runs import profile_of, profiles, run_of
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.report.html.flame import (
    FlameGraph,
    arranged,
    flame_of_comparison,
    flame_of_tree,
    row_widths,
)


def graph(profile: Profile, *metrics: str, **options: Any) -> FlameGraph:
    tree = build_tree(profile, metrics or default_metrics(profile), Selection(depth=10**6))
    return flame_of_tree(tree, **options)


def changes(base: Run, new: Run, metric: str | None = None) -> FlameGraph:
    return flame_of_comparison(compare([base], [new], CompareOptions(metric)))


def names(flame: FlameGraph) -> list[str]:
    return [flame.strings[place] for place in flame.names]


def check_shape(flame: FlameGraph) -> None:
    """Check that rows stand in pre-order, each at least as wide as the rows below it."""
    rows = len(flame.parents)
    for _, widths in flame.widths:
        below = np.zeros(rows)
        for row in range(rows - 1, 0, -1):
            assert flame.parents[row] < row
            below[flame.parents[row]] += widths[row]
        assert bool((np.array(widths) >= below * (1 - 1e-6)).all())
    open_rows = [0]
    for row in range(1, rows):
        while open_rows[-1] != flame.parents[row]:
            open_rows.pop()
        open_rows.append(row)
    assert {len(column.values) for column in flame.columns} <= {rows}


def test_widest_sibling_comes_first() -> None:
    flame = graph(training_profile())

    assert names(flame)[:6] == [
        *("ROOT", "test_step", "backward", "/home/me/model.py:7@backward"),
        *("kernel_3", "kernel_1"),
    ]
    assert flame.parents == [-1, 0, 1, 2, 3, 3, 1, 6, 7, 7]
    assert flame.widths[0][1][:3] == [4_000_000, 4_000_000, 3_000_000]


@given(profiles())
def test_rows_keep_their_shape(profile: Profile) -> None:
    flame = graph(profile, "time/ns")

    check_shape(flame)
    assert flame.hidden == 0
    assert flame.columns[0].values[0] == int(profile.inclusive("time (ns)")[0])


@given(profiles(), profiles())
def test_rows_of_comparisons_keep_their_shape(base: Profile, new: Profile) -> None:
    flame = changes(Run(base, "base"), Run(new, "new"), "time")

    check_shape(flame)
    totals = [column.values[0] for column in flame.columns[:2]]
    assert totals == [int(side.inclusive("time (ns)")[0]) for side in (new, base)]
    assert flame.tints is not None
    assert all(-1 <= tint <= 1 for tint in flame.tints)


def test_smallest_rows_are_left_out_and_counted() -> None:
    kernels = [(f"s/k{place}", place + 1, 1, "") for place in range(100)]

    flame = graph(profile_of(*kernels), limit=12)

    assert names(flame) == ["ROOT", "s", *(f"k{place}" for place in range(99, 89, -1))]
    assert flame.hidden == 90
    assert flame.widths[0][1][0] == flame.columns[0].values[0] == 5050


def test_deep_tree_needs_no_recursion() -> None:
    flame = graph(deep_profile(20_000))

    assert flame.parents == list(range(-1, 20_000))


def test_wall_on_the_clock_is_as_wide_as_what_lies_below() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    outer = builder.add(0, "outer", FrameKind.SCOPE, metrics={"wall (ns)": 10})
    for name, wall in (("a", 7), ("b", 6)):
        builder.add(outer, name, FrameKind.SCOPE, metrics={"wall (ns)": wall})

    flame = graph(builder.build())

    assert flame.widths[0][1] == [13, 13, 7, 6]
    assert flame.columns[0].values == [10, 10, 7, 6]


def test_negative_and_missing_values_have_no_width() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "s", FrameKind.SCOPE)
    builder.add(scope, "up", FrameKind.KERNEL, metrics={"x": 5})
    builder.add(scope, "down", FrameKind.KERNEL, metrics={"x": -9, "y": 1})
    builder.add(scope, "none", FrameKind.KERNEL, metrics={"y": 1})

    flame = graph(builder.build(), "x", "y")

    assert dict(zip(names(flame), flame.widths[0][1], strict=True)) == {
        "ROOT": 5,
        "s": 5,
        "up": 5,
        "down": 0,
        "none": 0,
    }
    assert dict(zip(names(flame), flame.columns[0].values, strict=True))["down"] == -9


@pytest.mark.parametrize("metric", ["avg_time/us", "tflop16/s", "label", "util"])
def test_what_does_not_add_up_is_refused(metric: str) -> None:
    with pytest.raises(MetricError, match=f"-m time/ms,{metric}"):
        graph(training_profile(), metric)


def test_rates_of_comparisons_are_refused() -> None:
    run = run_of(("s/a", 10, 1, ""))

    with pytest.raises(MetricError, match="proton diff"):
        changes(run, run, "avg_time/us")


def test_what_is_gone_has_the_width_that_it_had() -> None:
    flame = changes(run_of(("a", 10, 1, ""), ("gone", 30, 1, "")), run_of(("a", 20, 1, "")))

    by_name = {name: row for row, name in enumerate(names(flame))}
    sizes = {
        title: [widths[by_name[name]] for name in ("a", "gone")] for title, widths in flame.widths
    }
    assert sizes == {"larger of both": [20, 30], "new": [20, 0], "base": [10, 30]}
    assert flame.notes == {by_name["gone"]: "REMOVED"}
    assert flame.tints is not None
    assert [flame.tints[by_name[name]] for name in ("a", "gone")] == [0.5, -1]


def test_names_are_made_visible_and_cut() -> None:
    flame = graph(profile_of(("a\nb\x1b[1m", 1, 1, ""), ("x" * 5000, 2, 1, "")))

    assert names(flame)[1].endswith("... (904 more characters)")
    assert names(flame)[2] == "a\\nb\\x1b[1m"


def test_devices_are_distinguished() -> None:
    flame = graph(training_profile())

    assert flame.device_names == ("", "CUDA:0")
    assert [flame.devices[row] for row in (0, 4)] == [0, 1]


def test_frames_of_libraries_are_told_from_own_ones() -> None:
    own = ("/home/me/model.py:3@forward", "kernel@plt", "site-packages", "<string>:1@f")
    others = (
        "/venv/lib/python3.12/site-packages/torch/nn/module.py:1751@_call_impl",
        "/usr/lib/python3/dist-packages/six.py:3@reraise",
        "/usr/lib/python3.12/threading.py:1010@run",
        "/opt/lib64/python3.13t/runpy.py:88@_run_code",
        "<frozen runpy>:88@_run_code",
        "/venv/lib/python3.9/site-packages/torch/x.py:forward@12",
    )
    builder = ProfileBuilder()
    for name in (*own, *others):
        builder.add(0, name, FrameKind.PYTHON, metrics={"time (ns)": 1})

    flame = graph(builder.build())

    assert {flame.strings[place] for place in flame.libraries} == set(others)


def test_calls_are_a_width_beside_the_time() -> None:
    flame = graph(profile_of(("s/a", 100, 3, ""), ("s/b", 300, 1, "")), "time/ns", "count")

    assert [title for title, _ in flame.widths] == ["time", "count"]
    assert flame.widths[1][1] == [4, 4, 1, 3]


def test_only_what_adds_up_is_summed() -> None:
    flame = graph(training_profile(), "time/ms", "count", "avg_time/us")

    assert [column.sums for column in flame.columns] == [True, True, False]


SIZES = st.one_of(st.just(0.0), st.floats(allow_nan=True, width=32), st.integers(0, 50).map(float))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Return the parents of rows in pre-order, and a size of each."""
    parents = [-1]
    above = [0]
    for row in range(1, draw(st.integers(1, 40))):
        del above[draw(st.integers(1, len(above))) :]
        parents.append(above[-1])
        above.append(row)
    return parents, [draw(SIZES) for _ in parents]


@given(trees(), st.integers(1, 50))
def test_rows_keep_their_parents_and_stand_by_width(
    tree: tuple[list[int], list[float]], limit: int
) -> None:
    parents, sizes = tree
    widths = row_widths(np.array(parents), np.array(sizes))

    found = arranged(np.array(parents), widths, limit)

    order = found.order.tolist()
    assert len(order) == len(set(order)) == min(limit, len(parents))
    assert order[0] == 0
    last: dict[int, float] = {}
    for place, (row, above) in enumerate(zip(order, found.parents, strict=True)):
        assert above < place
        assert (order[above] if above >= 0 else -1) == parents[row]
        assert widths[row] <= last.get(above, np.inf)
        last[above] = widths[row]


def test_row_is_as_wide_as_what_is_below_it() -> None:
    parents, sizes = np.array([-1, 0, 1, 1, 0]), np.array([0.0, 3.0, 2.0, 2.0, -7.0])

    assert row_widths(parents, sizes).tolist() == [4.0, 4.0, 2.0, 2.0, 0.0]


@pytest.mark.parametrize("value", [np.nan, -np.inf, -1.0])
def test_what_is_not_a_size_has_no_width(value: float) -> None:
    assert row_widths(np.array([-1]), np.array([value])).tolist() == [0.0]


def test_equal_rows_keep_their_order() -> None:
    parents = np.array([-1, 0, 0, 0])

    assert arranged(parents, np.array([3.0, 1.0, 1.0, 1.0]), 9).order.tolist() == [0, 1, 2, 3]
