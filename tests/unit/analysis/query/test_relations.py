"""The tables of a query as arrays; no database is needed for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from fakes.profiles import deep_profile, training_profile

from proton_bench.analysis.query.relations import TABLES, LabelledRun, relations, wide_columns
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

FRAME = "/home/me/model.py:3@forward"


def lines(table: str, profile: Profile, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the lines of one table as plain values; masked ones are None."""
    run = LabelledRun("x", "x.proton", profile)
    found = []
    for relation in relations(run, [table], columns):
        assert relation.table == table
        cells = {name: values.tolist() for name, values in relation.columns.items()}
        assert {len(column) for column in cells.values()} == {len(relation)}
        found += [
            {**relation.constants, **dict(zip(cells, row, strict=True))}
            for row in zip(*cells.values(), strict=True)
        ]
    return found


@pytest.mark.parametrize("table", TABLES)
def test_relations_name_columns_of_their_table_only(table: str) -> None:
    for line in lines(table, training_profile()):
        assert line.keys() <= TABLES[table].keys()
        assert line["run"] == "x"


def test_nodes_stand_in_preorder_with_the_range_of_their_subtree() -> None:
    found = lines("nodes", training_profile())

    assert [line["node"] for line in found] == list(range(10))
    assert [line["parent"] for line in found[:4]] == [None, 0, 1, 2]
    assert [line["depth"] for line in found[:4]] == [0, 1, 2, 3]
    assert found[2]["subtree_end"] == 6
    assert found[2]["kind"] == "scope"
    assert (found[4]["name"], found[4]["device"], found[4]["variant"]) == ("kernel_1", 0, None)


def test_numbers_are_columns_of_nodes_with_their_sums() -> None:
    profile = training_profile()
    columns = wide_columns([profile])

    found = lines("nodes", profile, list(columns))

    assert columns["time (ns)"] == columns["time (ns) (inc)"] == columns["wall (ns)"] == "BIGINT"
    assert columns["flops16"] == "DOUBLE"
    assert "wall (ns) (inc)" not in columns
    assert "label" not in columns
    assert (found[1]["time (ns)"], found[1]["time (ns) (inc)"]) == (None, 4_000_000)
    assert (found[4]["time (ns)"], found[4]["wall (ns)"]) == (250_000, None)


def test_names_that_differ_in_case_or_are_taken_are_not_columns_twice() -> None:
    builder = ProfileBuilder()
    metrics = {"Time": 1, "time": 2, "Name": 3, "zero\0": 4}
    builder.add(0, "a", metrics=metrics)

    profile = builder.build()

    assert set(wide_columns([profile])) == {"Time", "Time (inc)", "Name (inc)"}
    assert {line["metric"] for line in lines("metrics", profile)} == set(metrics)


def test_integers_of_one_run_and_floats_of_another_are_floats() -> None:
    profiles = []
    for value in (1, 0.5):
        builder = ProfileBuilder()
        builder.add(0, "a", metrics={"x": value, "y": 1})
        profiles.append(builder.build())

    columns = wide_columns(profiles)

    assert (columns["x"], columns["x (inc)"], columns["y"]) == ("DOUBLE", "DOUBLE", "BIGINT")


def test_sums_beyond_64_bits_are_floats() -> None:
    builder = ProfileBuilder()
    for name in ("a", "b", "c"):
        builder.add(0, name, metrics={"bytes": 2**62})

    columns = wide_columns([builder.build()])

    assert (columns["bytes"], columns["bytes (inc)"]) == ("BIGINT", "DOUBLE")


def test_metrics_have_own_values_and_sums() -> None:
    found = [line for line in lines("metrics", training_profile()) if line["node"] in {2, 4}]

    values = {(line["metric"], line["node"]): line for line in found}
    assert values["time (ns)", 2]["value"] is None
    assert values["time (ns)", 2]["inclusive"] == 1_000_000
    assert values["time (ns)", 4]["value"] == 250_000
    assert values["time (ns)", 4]["unit"] == "ns"
    assert values["count", 4]["unit"] is None
    assert values["wall (ns)", 2]["aggregation"] == "exc"
    assert values["label", 2]["text"] == "l-forward"


def test_nan_and_infinity_are_values() -> None:
    builder = ProfileBuilder()
    builder.declare("exc", Aggregation.EXCLUSIVE)
    builder.add(0, "a", metrics={"x": float("nan"), "exc": float("inf")})
    builder.add(0, "b", metrics={"x": 2.0, "exc": 1.0})

    found = lines("nodes", builder.build(), ["x", "x (inc)", "exc"])

    assert str([line["x"] for line in found]) == "[None, nan, 2.0]"
    assert str([line["x (inc)"] for line in found]) == "[nan, nan, 2.0]"
    assert [line["exc"] for line in found] == [None, float("inf"), 1.0]


def test_vectors_are_lists() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"v": [1, 2]})
    builder.add(0, "b", metrics={"v": [3, 4]})

    found = lines("metrics", builder.build())

    assert [line["vector"] for line in found] == [[1.0, 2.0], [3.0, 4.0]]


def test_frames_are_distinct_names_with_the_parts_of_python_frames() -> None:
    by_name = {line["name"]: line for line in lines("frames", training_profile())}

    assert by_name["kernel_1"]["nodes"] == 2
    assert by_name["kernel_1"]["file"] is None
    python = by_name[FRAME]
    assert (python["file"], python["line"], python["function"]) == (
        "/home/me/model.py",
        3,
        "forward",
    )


@pytest.mark.parametrize("name", ["a@b", "a:@b", "a:x@b", "@", ":1", "k:²@f"])
def test_other_names_are_not_python_frames(name: str) -> None:
    builder = ProfileBuilder()
    builder.add(0, name)

    found = lines("frames", builder.build())

    assert {(line["file"], line["line"], line["function"]) for line in found} == {
        (None, None, None)
    }


def test_huge_line_numbers_do_not_fail() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a:" + "9" * 5000 + "@f")

    assert [line["line"] for line in lines("frames", builder.build())] == [None, None]


def test_frames_have_names_without_inductors_running_number() -> None:
    builder = ProfileBuilder()
    builder.add(0, "triton_poi_fused_add_3")

    found = lines("frames", builder.build())

    assert [line["stable_name"] for line in found] == ["ROOT", "triton_poi_fused_add"]


def test_devices_and_variants_say_what_is_known() -> None:
    builder = ProfileBuilder()
    variant = Variant("c0de", (2, 3, 1), (128, 1, 1), 1024, "*fp32", 40)
    gpu = Device("CUDA", 0, "90", 132)
    builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1}, device=gpu, variant=variant)
    profile = builder.build()

    (device,) = lines("devices", profile)
    (found,) = lines("variants", profile)

    assert (device["device"], device["index"], device["num_sms"]) == (0, 0, 132)
    assert device["clock_rate_khz"] is None
    assert device["busy_ns"] is None
    assert (found["grid"], found["registers"], found["raw_name"]) == ([2, 3, 1], 40, None)


def test_distributions_have_their_moments() -> None:
    builder = ProfileBuilder()
    row = builder.add(0, "k", metrics={"time (ns)": 5})
    builder.set_distribution(row, "time (ns)", Distribution.from_samples([1.0, 4.0]))

    (found,) = lines("distributions", builder.build())

    assert (found["metric"], found["n"], found["sum"]) == ("time (ns)", 2, 5.0)
    assert (found["minimum"], found["maximum"]) == (1.0, 4.0)
    assert found["geometric_mean"] == pytest.approx(2.0)


def test_runs_say_where_a_profile_comes_from() -> None:
    facts = {"host": "h", "pid": 7, "backend": ("cupti", "cpu"), "rank": "?", "git": {"a": 1}}

    (found,) = lines("runs", ProfileBuilder().build(provenance=Provenance(facts)))

    assert (found["host"], found["pid"], found["backend"]) == ("h", 7, "cupti+cpu")
    assert (found["rank"], found["nodes"], found["partial"]) == (None, 1, False)
    assert json.loads(found["provenance"])["git"] == {"a": 1}


def test_runs_say_what_recording_cost() -> None:
    facts = {"estimated_cost_ns": 50, "start_time_ns": 0, "end_time_ns": 1000}

    (only,) = lines("runs", ProfileBuilder().build(provenance=Provenance(facts)))
    (silent,) = lines("runs", ProfileBuilder().build())

    assert (only["estimated_cost_ns"], only["estimated_cost_share"]) == (50, 0.05)
    assert (silent["estimated_cost_ns"], silent["estimated_cost_share"]) == (None, None)


def test_deep_trees_are_accepted() -> None:
    assert lines("nodes", deep_profile(20_000))[-1]["depth"] == 20_000


def test_small_metrics_of_one_shape_are_one_relation() -> None:
    builder = ProfileBuilder()
    metrics = {f"m{number} (ns)": number for number in range(50)}
    builder.add(0, "k", metrics=metrics | {"text": "x"})
    run = LabelledRun("a", "a.proton", builder.build())

    found = list(relations(run, ["metrics"], []))

    assert len(found) == 2
    assert found[0].columns["metric"].tolist()[::2] == list(metrics)
    assert set(found[0].columns["unit"].tolist()) == {"ns"}
