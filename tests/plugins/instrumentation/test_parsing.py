"""The text of ``--instrument`` and which operations its rules choose."""

from __future__ import annotations

import sys

import pytest

from proton_bench.errors import UsageError
from proton_bench_plugins.instrumentation.passes import (
    CustomPass,
    Inserter,
    Rule,
    parse_passes,
    pass_names,
    register_pass,
)
from proton_bench_plugins.instrumentation.passes.choice import candidates, cap
from proton_bench_plugins.instrumentation.passes.registry import Op, Place, op_kind, read_places


def op(name: str, line: int = 0, path: str = "/src/kernels.py", depth: int = 0) -> Op:
    places = (Place(path, line),) if line else ()
    return Op(name, None, None, None, places, kind=op_kind(name), depth=depth)


def names(ops: list[Op], text: str) -> list[str]:
    return [each.scope.name for each in candidates(ops, parse_passes(text))]


# -- text ----------------------------------------------------------------------------------------
def test_passes_and_filters_are_read() -> None:
    rules = parse_passes("loops, loads:kernel=matmul*|attn:line=12-20|40,dots:file=a.py:line=7-")

    assert rules == (
        Rule(name="loops"),
        Rule(name="loads", kernels=("matmul*", "attn"), lines=((12, 20), (40, 40))),
        Rule(name="dots", files=("a.py",), lines=((7, sys.maxsize),)),
    )


def test_what_is_read_is_written_the_same() -> None:
    text = "loads:kernel=a*|b:file=x.py:line=3-9|12,print-ops:json"

    assert ",".join(str(rule) for rule in parse_passes(text)) == text


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("lods", 1, "did you mean 'loads'"),
        ("loops,lods", 7, "there is no pass 'lods'"),
        ("quux", 1, "choose from: loops, loads, stores, dots, waits, barriers, all, print-ops"),
        ("loops,,dots", 7, "a pass is missing"),
        ("", 1, "a pass is missing"),
        ("loads:kernel", 7, "no filter 'kernel'; choose from: kernel=, file=, line="),
        ("loops,loads:kernels=x", 13, "no filter 'kernels=x'"),
        ("loads:kernel=", 7, "write kernel=VALUE"),
        ("loads:line=9:line=8", 14, "is given twice"),
        ("dots,loads:line=3|x", 19, "'x' is not a line"),
        ("loads:line=20-12", 12, "end before they begin"),
        ("loads:json", 7, "no filter 'json'"),
    ],
)
def test_an_error_names_the_column(text: str, column: int, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_passes(text)

    assert f"column {column}: " in str(raised.value)
    assert says in str(raised.value)


def test_the_digest_distinguishes_rules() -> None:
    texts = ("loads", "loops", "loads:line=3", "loads:line=4", "loads,loops", "print-ops")

    assert len({Inserter(parse_passes(text)).digest for text in texts}) == len(texts)
    assert Inserter(parse_passes("loads")).digest == Inserter(parse_passes(" loads ")).digest


# -- choice --------------------------------------------------------------------------------------
def test_operations_are_numbered_by_kind_and_whatever_the_filters() -> None:
    ops = [op("tt.load", 3), op("tt.store", 4), op("amdg.buffer_load", 9), op("arith.addi", 9)]

    assert names(ops, "loads,stores") == [
        "load.0@kernels.py:3",
        "store.0@kernels.py:4",
        "load.1@kernels.py:9",
    ]
    assert names(ops, "loads:line=5-") == ["load.1@kernels.py:9"]


def test_an_operation_of_two_passes_gets_one_scope() -> None:
    assert names([op("ttg.async_wait", 3)], "loads,waits,all") == ["load_wait.0@kernels.py:3"]


def test_filters_of_one_pass_do_not_narrow_another() -> None:
    ops = [op("ttg.async_wait", 3), op("ttg.async_wait", 8)]

    assert names(ops, "loads:line=3,waits:line=8") == [
        "load_wait.0@kernels.py:3",
        "load_wait.1@kernels.py:8",
    ]


def test_an_operation_without_a_location_is_named_without_a_line() -> None:
    assert names([op("scf.while")], "loops") == ["loop.0"]
    assert names([op("scf.while")], "loops:line=1-") == []


def test_files_are_matched_by_name_or_path() -> None:
    ops = [op("tt.load", 3, "/a/x.py"), op("tt.load", 3, "/b/x.py"), op("tt.load", 3, "/b/y.py")]

    assert names(ops, "loads:file=x.py") == ["load.0@x.py:3", "load.1@x.py:3"]
    assert names(ops, "loads:file=/b/*") == ["load.1@x.py:3", "load.2@y.py:3"]


def test_where_there_is_no_room_outer_loops_and_rare_kinds_stay() -> None:
    ops = [
        *(op("tt.load", line, depth=3) for line in range(10, 15)),
        op("scf.for", 1, depth=1),
        op("scf.for", 2, depth=2),
        op("tt.dot", 20),
        op("tt.dot", 21),
        op("tt.store", 30),
    ]
    found = candidates(ops, parse_passes("all"))

    kept = {room: [each.scope.name for each in cap(found, room)[0]] for room in (1, 2, 3, 6)}

    assert kept[1] == ["loop.0@kernels.py:1"]
    assert kept[2] == ["loop.0@kernels.py:1", "loop.1@kernels.py:2"]
    assert kept[3] == [*kept[2], "store.0@kernels.py:30"]
    assert kept[6] == [
        "load.0@kernels.py:10",
        *kept[2],
        "dot.0@kernels.py:20",
        "dot.1@kernels.py:21",
        "store.0@kernels.py:30",
    ]
    assert [len(part) for part in cap(found, -3)] == [0, 10]


# -- places --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("loc(unknown)", []),
        ('loc("/s/a.py":3:9)', ["a.py:3"]),
        ('loc("acc"("/s/a.py":3:9))', ["a.py:3"]),
        ('loc(callsite("/s/a.py":3:9 at "v"("/s/b.py":7:1)))', ["a.py:3", "b.py:7"]),
        ('loc(callsite("/p/triton/language/standard.py":3:9 at "/s/b.py":7:1))', ["b.py:7", "standard.py:3"]),  # noqa: E501
        ('loc("/s/a.py":3:9 to 5:2)', ["a.py:3"]),
        ('loc("/s/a \\"b\\".py":3:9)', ['a \\"b\\".py:3']),
    ],
)  # fmt: skip
def test_places_of_a_location(location: str, expected: list[str]) -> None:
    assert [str(place) for place in read_places(location)] == expected


# -- passes of plugins ---------------------------------------------------------------------------
def test_a_pass_of_a_plugin_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proton_bench_plugins.instrumentation.passes.registry._custom", {})
    converts = CustomPass(
        name="converts", summary="layouts", kinds={"ttg.convert_layout": "convert"}
    )

    register_pass(converts)
    register_pass(converts)  # the same one again is not a conflict

    ops = [op("tt.load", 1), op("ttg.convert_layout", 2)]
    assert "converts" in pass_names()
    assert names(ops, "converts,loads") == ["load.0@kernels.py:1", "convert.0@kernels.py:2"]


@pytest.mark.parametrize("name", ["loads", "all", "Loads", "a,b", "a:b", ""])
def test_a_pass_with_a_name_that_is_taken_or_unwritable_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="pass"):
        register_pass(CustomPass(name=name, summary="", kinds={}))

    assert name not in pass_names() or name in {"loads", "all"}
