from __future__ import annotations

from typing import Any

import pytest

from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind, StringTable, escape_surrogates
from proton_bench.model.members import RankGaps, rank_gaps
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.origin import Origin, is_partial_name


def test_empty_builder_is_a_root() -> None:
    profile = ProfileBuilder().build()

    profile.self_check()
    assert len(profile) == 1
    assert profile.name(0) == "ROOT"
    assert profile.kind(0) is FrameKind.ROOT


def test_rows_added_in_any_order_stand_in_preorder() -> None:
    builder = ProfileBuilder()
    a, b = builder.add(0, "a"), builder.add(0, "b")
    builder.add(b, "b1", metrics={"x": 1})
    builder.add(a, "a1", metrics={"x": 2})

    profile = builder.build()

    assert [profile.path(row) for row in range(5)] == [
        (), ("a",), ("a", "a1"), ("b",), ("b", "b1"),
    ]  # fmt: skip
    assert profile.column("x").to_list() == [None, None, 2, None, 1]


def test_numbers_are_inclusive_and_texts_properties_unless_declared() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    builder.add(0, "a", metrics={"time (ns)": 1, "note": "x", "wall (ns)": 3})

    columns = builder.build().columns

    assert {name: column.spec.aggregation for name, column in columns.items()} == {
        "time (ns)": Aggregation.INCLUSIVE,
        "note": Aggregation.PROPERTY,
        "wall (ns)": Aggregation.EXCLUSIVE,
    }


def test_devices_and_variants_are_stored_once() -> None:
    builder = ProfileBuilder()
    gpu, variant = Device("CUDA", 0), Variant("ab")
    for name in ("k", "l"):
        builder.add(0, name, FrameKind.KERNEL, device=gpu, variant=variant)

    profile = builder.build()

    assert profile.devices == (gpu,)
    assert profile.variants == (variant,)
    assert [profile.device(row) for row in range(3)] == [None, gpu, gpu]
    assert [profile.variant(row) for row in range(3)] == [None, variant, variant]


@pytest.mark.parametrize("parent", [-1, 1, 99])
def test_parent_must_exist(parent: int) -> None:
    with pytest.raises(UsageError, match="rows are 0 to 0"):
        ProfileBuilder().add(parent, "a")


def test_mixed_types_of_one_metric_become_the_widest() -> None:
    builder = ProfileBuilder()
    first = builder.add(0, "a", metrics={"m": 1})
    second = builder.add(0, "b", metrics={"m": "text"})
    column = builder.build().columns["m"]
    assert [column.get(first), column.get(second)] == ["1", "text"]


def test_metric_on_a_missing_row_is_refused() -> None:
    builder = ProfileBuilder()
    builder.set(5, "m", 1)

    with pytest.raises(MetricError, match="row"):
        builder.build()


def test_hostile_names_survive() -> None:
    builder = ProfileBuilder()
    names = ["", "a\x00b", "x\ny", "[red]", "\udc80", "n" * 1_000_000]
    for name in names:
        builder.add(0, name)

    profile = builder.build()

    assert [profile.name(row) for row in profile.children(0)] == [
        *names[:4], "\\udc80", names[5],
    ]  # fmt: skip


def test_kind_numbers_are_those_of_the_file_format() -> None:
    numbers = [kind.value for kind in FrameKind]

    assert numbers == list(range(12))
    assert FrameKind.KERNEL == 4
    assert FrameKind.TEST == 10
    assert FrameKind.LAYER == 11


def test_lone_surrogates_are_escaped() -> None:
    assert escape_surrogates("a\udc80b") == "a\\udc80b"


def test_other_text_is_left_alone() -> None:
    for text in ("", "plain", "é", "\U0001f600", "a\x00b"):
        assert escape_surrogates(text) is text


def test_table_gives_equal_texts_one_position() -> None:
    table = StringTable()

    positions = [table.index(text) for text in ("a", "b", "a", "\udc80", "\\udc80")]

    assert positions == [0, 1, 0, 2, 2]
    assert table.texts() == ("a", "b", "\\udc80")
    assert len(table) == 3


def test_provenance_names_the_process() -> None:
    facts = {
        "host": "h",
        "pid": 7,
        "rank": 3,
        "local_rank": 1,
        "world_size": 8,
        "start_time_ns": 5,
    }

    assert Origin.of(facts, "x.proton") == Origin(
        host="h", process_id=7, rank=3, local_rank=1, world_size=8, start_time_ns=5
    )


def test_the_name_supplies_what_the_file_lacks() -> None:
    found = Origin.of({}, "x.rank3.pid12.part_2.partial.hatchet")

    assert (found.rank, found.process_id, found.part, found.is_partial) == (3, 12, 2, True)
    assert found.identity is None


def test_the_file_counts_before_its_name() -> None:
    assert Origin.of({"rank": 0, "pid": 1}, "x.rank3.pid12.proton").place == ("", 0, 1)


@pytest.mark.parametrize("odd", [None, "3", True, -1, 2**31, 1.0, [3]])
def test_what_is_not_a_number_is_none(odd: Any) -> None:
    found = Origin.of({"rank": odd, "pid": odd, "world_size": odd, "host": 5}, "x.proton")

    assert found == Origin()


def test_ranks_come_in_order_then_their_processes_then_their_parts() -> None:
    origins = [
        Origin(rank=None, process_id=1),
        Origin(rank=10),
        Origin(rank=2, start_time_ns=9, process_id=4),
        Origin(rank=2, start_time_ns=3, process_id=5, part=10),
        Origin(rank=2, start_time_ns=3, process_id=5, part=9),
    ]

    ordered = sorted(origins, key=lambda each: each.order)

    assert ordered == [origins[4], origins[3], origins[2], origins[1], origins[0]]


@pytest.mark.parametrize(
    ("name", "is_partial"),
    [
        ("x.partial.proton", True),
        ("x.partial.chrome_trace.gz", True),
        ("x.proton", False),
        ("partial.proton", False),
        ("x.partial.1234.pftrace", True),
        ("x.partial.1234-2.proton", True),
        ("x.partial.y.proton", False),
    ],
)
def test_names_of_partial_files_are_known(name: str, is_partial: bool) -> None:
    assert is_partial_name(name) is is_partial


def test_gaps_are_found_by_the_size_of_the_job() -> None:
    origins = [Origin(rank=1, world_size=4), Origin(rank=3, world_size=4, is_partial=True)]

    assert rank_gaps(origins) == RankGaps(4, present=(1, 3), missing=(0, 2), partial=(3,))


def test_without_a_size_ranks_up_to_the_last_one_count() -> None:
    assert rank_gaps([Origin(rank=2)]) == RankGaps(3, present=(2,), missing=(0, 1))


def test_files_without_ranks_have_no_gaps() -> None:
    assert rank_gaps([Origin(process_id=4)]) == RankGaps()
    assert RankGaps().to_plain() == {}


def test_a_size_that_no_job_has_is_not_listed() -> None:
    assert len(rank_gaps([Origin(rank=0, world_size=2**31 - 1)]).missing) < 2**21
