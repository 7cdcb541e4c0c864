"""The viewer functions on data frames and graph frames, on the cases that upstream tests."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.profiles import (
    cuda_literal,
    hip_literal,
    metadata_literal,
    node,
    training_profile,
    two_devices,
)

from proton_bench import viewer
from proton_bench.errors import MetricError, MissingExtraError, ProfileFormatError, UsageError
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder

FRAME = "/home/user/projects/example.py/test.py:1@foo"
B200 = {
    "arch": "100",
    "bus_width": 8192,
    "clock_rate": 1965000,
    "memory_clock_rate": 3996000,
    "num_sms": 148,
}
MI350 = {
    "arch": "gfx950",
    "bus_width": 8192,
    "clock_rate": 2400000,
    "memory_clock_rate": 2000000,
    "num_sms": 256,
}


@pytest.fixture(autouse=True)
def hatchet(request: pytest.FixtureRequest) -> None:
    if "without_hatchet" not in request.fixturenames:
        pytest.importorskip("hatchet")


@pytest.fixture
def without_hatchet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hatchet", None)


@pytest.fixture
def cuda_file(tmp_path: Path) -> Path:
    path = tmp_path / "cuda.hatchet"
    path.write_text(json.dumps(cuda_literal()))
    return path


@pytest.fixture
def training_file(tmp_path: Path) -> Path:
    path = tmp_path / "training.proton"
    write_profile(training_profile(), path)
    return path


def by_name(graph_frame: Any, column: str) -> dict[str, Any]:
    frame = graph_frame.dataframe
    return dict(zip(frame["name"], frame[column], strict=True))


def derived(literal: Any, *metrics: str) -> tuple[Any, list[str]]:
    found = viewer.get_raw_metrics(literal)
    found[0].update_inclusive_columns()
    columns = viewer.derive_metrics(found[0], metrics, *found[1:])
    return found[0], columns


def test_raw_metrics_distinguish_inclusive_and_exclusive() -> None:
    _, inclusive, exclusive, devices = viewer.get_raw_metrics(cuda_literal())

    assert sorted(inclusive) == ["bytes", "count", "flops8", "time (ns)"]
    assert {"device_id", "device_type"} <= set(exclusive)
    assert not set(inclusive) & set(exclusive)
    assert devices["CUDA"]["1"]["num_sms"] == 132


def test_raw_metrics_read_an_open_file(cuda_file: Path) -> None:
    with cuda_file.open() as file:
        graph_frame, *_ = viewer.get_raw_metrics(file)

    assert sorted(graph_frame.dataframe["name"]) == ["ROOT", "foo0", "foo1"]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("full", FRAME),
        ("file_function_line", "test.py:1@foo"),
        ("function_line", "1@foo"),
        ("file_function", "test.py@foo"),
        (None, FRAME),
    ],
)
def test_format_frames(style: str | None, expected: str) -> None:
    cost = {"count": 1, "time (ns)": 204800}
    tree = node("ROOT", {"count": 0, "time (ns)": 0}, node("test0", {}, node(FRAME, cost)))
    graph_frame, *_ = viewer.get_raw_metrics([tree, {}])

    names = viewer.format_frames(graph_frame, style).dataframe["name"].tolist()

    assert names.count(expected) == 1


def test_unknown_frame_format_is_named() -> None:
    graph_frame, *_ = viewer.get_raw_metrics(cuda_literal())

    with pytest.raises(UsageError, match="'short': choose from full, file_function_line"):
        viewer.format_frames(graph_frame, "short")


def test_launch_metadata_is_filtered() -> None:
    graph_frame, *_ = viewer.get_raw_metrics(metadata_literal())

    assert sorted(graph_frame.dataframe["name"]) == ["ROOT", "scope", "triton_kernel"]


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (cuda_literal(), {"0": 1e10 / 330.3e12, "1": 1e11 / 1.9765e15}),
        (hip_literal(), {"0": 1e10 / 181.04e12, "1": 1e11 / 6.475e15}),
        (two_devices("CUDA", B200, B200), {"0": 1e10 / 4.7648e15, "1": 1e11 / 4.7648e15}),
        (two_devices("HIP", MI350, MI350), {"0": 1e10 / 5.0332e15, "1": 1e11 / 5.0332e15}),
    ],
    ids=["sm89, sm90", "CDNA2, CDNA3", "sm100", "CDNA4"],
)
def test_min_time_flops(literal: Any, expected: dict[str, float]) -> None:
    graph_frame, _, _, devices = viewer.get_raw_metrics(literal)
    frame = graph_frame.dataframe

    least = viewer.get_min_time_flops(frame, devices)

    for index, seconds in expected.items():
        assert least[frame["device_id"] == index].to_numpy() == pytest.approx(seconds, rel=1e-3)
    assert least[frame["device_id"].isna()].to_numpy() == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (cuda_literal(), {"0": 9.91969e-06, "1": 2.48584e-05}),
        (hip_literal(), {"0": 1e7 / 3.2e12, "1": 1e8 / 5.3e12}),
    ],
    ids=["cuda", "hip"],
)
def test_min_time_bytes(literal: Any, expected: dict[str, float]) -> None:
    graph_frame, _, _, devices = viewer.get_raw_metrics(literal)
    frame = graph_frame.dataframe

    least = viewer.get_min_time_bytes(frame, devices)

    for index, seconds in expected.items():
        assert least[frame["device_id"] == index].to_numpy() == pytest.approx(seconds, rel=1e-5)


def test_time_derivation() -> None:
    graph_frame, columns = derived(cuda_literal(), "time/s", "time/ms", "time/us", "time/ns")

    assert columns == ["time/s (inc)", "time/ms (inc)", "time/us (inc)", "time/ns (inc)"]
    assert by_name(graph_frame, "time/us (inc)") == pytest.approx(
        {"ROOT": 409.6, "foo0": 204.8, "foo1": 204.8}
    )


def test_average_time_derivation() -> None:
    graph_frame, _ = derived(cuda_literal(), "avg_time/us")

    assert by_name(graph_frame, "avg_time/us (inc)") == pytest.approx(
        {"ROOT": 409.6 / 11, "foo0": 20.48, "foo1": 204.8}
    )


def test_cpu_time_is_named_inclusive() -> None:
    tree = node(
        "ROOT",
        {"count": 0},
        node("scope", {"cpu_time (ns)": 1_000_000}, node("k", {"count": 4})),
    )

    graph_frame, columns = derived([tree, {}], "cpu_time/ms", "avg_cpu_time/ms")

    assert columns == ["cpu_time/ms (inc)", "avg_cpu_time/ms (inc)"]
    assert by_name(graph_frame, "cpu_time/ms (inc)")["scope"] == pytest.approx(1.0)
    assert by_name(graph_frame, "avg_cpu_time/ms (inc)")["scope"] == pytest.approx(0.25)


def test_bytes_derivation() -> None:
    graph_frame, _ = derived(cuda_literal(), "byte/s", "gbyte/s", "tbyte/s")

    assert by_name(graph_frame, "gbyte/s (inc)") == pytest.approx(
        {"ROOT": 268.5546875, "foo0": 488.28125, "foo1": 48.828125}
    )


def test_flops_derivation() -> None:
    graph_frame, _ = derived(cuda_literal(), "flop8/s", "gflop8/s", "tflop8/s")

    assert by_name(graph_frame, "tflop8/s (inc)") == pytest.approx(
        {"ROOT": 268.5546875, "foo0": 488.28125, "foo1": 48.828125}
    )


def test_util() -> None:
    graph_frame, columns = derived(cuda_literal(), "util")

    assert columns == ["util"]
    used = by_name(graph_frame, "util")
    assert np.isnan(used["ROOT"])
    assert used["foo0"] == pytest.approx(0.247044, rel=1e-5)
    assert used["foo1"] == pytest.approx(0.147830, rel=1e-5)


def test_percentage_of_inclusive_and_exclusive_metrics() -> None:
    tree = node(
        "ROOT",
        {"time (ns)": 0},
        node("a", {"time (ns)": 3, "x (exc)": 1}),
        node("b", {"time (ns)": 1, "cpu_time (ns)": 5}),
        node("c", {"time (ns)": 0, "cpu_time (ns)": 15}),
    )

    graph_frame, columns = derived([tree, {}], "time/%", "cpu_time/%")

    assert columns == ["time/% (inc)", "cpu_time/%"]
    assert by_name(graph_frame, "time/% (inc)") == {"ROOT": 100.0, "a": 75.0, "b": 25.0, "c": 0.0}
    assert by_name(graph_frame, "cpu_time/%")["c"] == 75.0


def test_unknown_metric_is_named_with_the_list_flag() -> None:
    with pytest.raises(MetricError, match=r"Metric nope is not found.*--list"):
        derived(cuda_literal(), "nope")
    with pytest.raises(ValueError, match="Unsupported unit minutes"):
        derived(cuda_literal(), "time/minutes")


def test_include_keeps_paths_through_matching_frames(training_file: Path) -> None:
    graph_frame, columns = viewer.parse(["time/ms"], training_file, include=".*forward")

    names = set(graph_frame.dataframe["name"])

    assert "forward" in names
    assert "backward" not in names
    assert "kernel_1" in names
    assert columns == ["time/ms (inc)"]


def test_exclude_drops_matching_frames_and_those_below(training_file: Path) -> None:
    graph_frame, _ = viewer.parse(["time/ms"], training_file, exclude="backward")

    names = set(graph_frame.dataframe["name"])

    assert "backward" not in names
    assert "forward" in names


def test_threshold_keeps_large_frames_and_those_above(training_file: Path) -> None:
    graph_frame, _ = viewer.parse(["time/ms"], training_file, threshold=2.0)

    assert sorted(graph_frame.dataframe["name"])[1:] == [
        "ROOT",
        "backward",
        "kernel_3",
        "test_step",
    ]


def test_filters_that_exclude_each_other_are_refused(training_file: Path) -> None:
    with pytest.raises(ValueError, match="Cannot specify both include and exclude"):
        viewer.parse(["time/ms"], training_file, "a", "b")


def test_read_works_on_any_format(training_file: Path) -> None:
    graph_frame, inclusive, exclusive, devices = viewer.read(training_file)

    assert {"time (ns)", "count"} <= set(inclusive)
    assert "wall (ns)" in exclusive
    assert "CUDA" in devices
    assert by_name(graph_frame, "time (ns) (inc)")["ROOT"] == 4_000_000


def test_read_refuses_a_profile_without_metrics(tmp_path: Path) -> None:
    path = tmp_path / "empty.proton"
    write_profile(ProfileBuilder().build(), path)

    with pytest.raises(UsageError, match="No metrics found"):
        viewer.read(path)


def test_data_that_is_not_a_profile_is_refused() -> None:
    with pytest.raises(ProfileFormatError):
        viewer.get_raw_metrics({"not": "a profile"})
    with pytest.raises(ProfileFormatError):
        viewer.get_raw_metrics(io.StringIO("[{"))


def test_diff_profile_subtracts_the_second_file(cuda_file: Path, tmp_path: Path) -> None:
    literal = cuda_literal()
    literal[0]["children"][0]["metrics"]["time (ns)"] = 4800
    other = tmp_path / "other.hatchet"
    other.write_text(json.dumps(literal))
    graph_frame, columns = viewer.parse(["time/us"], cuda_file)

    difference = viewer.apply_diff_profile(
        graph_frame, columns, other, ["time/us"], None, None, None
    )

    assert by_name(difference, "time/us (inc)") == pytest.approx(
        {"ROOT": 200.0, "foo0": 200.0, "foo1": 0.0}
    )


def test_files_with_other_rows_are_subtracted_where_arrays_of_pandas_are_read_only(
    cuda_file: Path, tmp_path: Path
) -> None:
    import pandas as pd

    literal = cuda_literal()
    del literal[0]["children"][0]
    other = tmp_path / "other.hatchet"
    other.write_text(json.dumps(literal))

    with pd.option_context("mode.copy_on_write", True):
        graph_frame, columns = viewer.parse(["time/us"], cuda_file)
        difference = viewer.apply_diff_profile(
            graph_frame, columns, other, ["time/us"], None, None, None
        )

    assert by_name(difference, "time/us (inc)")["foo1"] == 0.0


def test_print_tree_and_sorted_list(cuda_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph_frame, columns = viewer.parse(["avg_time/us", "count"], cuda_file)

    viewer.print_tree(graph_frame, columns, print_sorted=True)

    lines = capsys.readouterr().out.splitlines()
    assert "├─ foo0" in lines[2]
    assert "204.800" in lines[3]
    start = lines.index("Sorted kernels by metric avg_time/us (inc)")
    assert [line.split()[-1] for line in lines[start + 1 :]] == ["foo1", "foo0"]


def test_print_tree_limits_the_depth(
    training_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph_frame, columns = viewer.parse(["time/ms"], training_file)

    viewer.print_tree(graph_frame, columns, depth=2)

    assert "forward" not in capsys.readouterr().out


def test_show_metrics_lists_names_without_units(
    training_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    viewer.show_metrics(training_file)

    text = capsys.readouterr().out
    inclusive, exclusive = text.split("Available exclusive metrics:")
    assert "- time\n" in inclusive
    assert "- wall\n" in exclusive


@pytest.mark.usefixtures("without_hatchet")
def test_missing_hatchet_is_named_in_one_line(training_file: Path) -> None:
    for call in (
        lambda: viewer.read(training_file),
        lambda: viewer.parse(["time"], training_file),
        lambda: viewer.get_raw_metrics(cuda_literal()),
    ):
        with pytest.raises(MissingExtraError, match="pip install llnl-hatchet") as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("without_hatchet")
def test_metrics_are_listed_without_hatchet(
    training_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    viewer.show_metrics(training_file)

    assert "- time\n" in capsys.readouterr().out
