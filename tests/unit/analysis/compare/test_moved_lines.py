"""Lines of a kernel are found again after an edit, by their order and their share."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.run_rows import GONE, former_lines
from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

GPU = Device("CUDA", 0, "90", 132, 1, 1, 1)
Lines = Mapping[int, int]


def kernel(lines: Lines, *, file: str = "/src/k.py", function: str = "k") -> Profile:
    builder = ProfileBuilder()
    row = builder.add(0, function, FrameKind.KERNEL, metrics={"count": 1}, device=GPU)
    for line, samples in lines.items():
        builder.add(
            row, f"{file}:{line}@{function}", FrameKind.LINE, metrics={"num_samples": samples}
        )
    return builder.build()


def moved(base: Lines, new: Lines) -> dict[int, int | None]:
    """Return the new number of each line of the base, None for those that are gone."""
    found = former_lines([kernel(base)], [kernel(new)])
    return {
        line: None
        if found[f"/src/k.py:{line}@k"].endswith(GONE)
        else int(found[f"/src/k.py:{line}@k"].partition(":")[2].partition("@")[0])
        for line in base
    }


def numbered(*lines: int) -> dict[int, int]:
    """Give lines samples that depend on the line alone: a uniform kernel."""
    return {line: 100 + 7 * (line % 5) for line in lines}


def test_lines_that_stay_keep_their_number() -> None:
    lines = numbered(*range(10, 20))

    assert moved(lines, lines) == {line: line for line in lines}


def test_a_function_that_moved_as_a_whole_keeps_its_lines() -> None:
    lines = {12: 600, 13: 50, 14: 300, 17: 50}

    assert moved(lines, {line + 3: n for line, n in lines.items()}) == {
        12: 15,
        13: 16,
        14: 17,
        17: 20,
    }


def test_densely_sampled_functions_are_found_by_their_ends() -> None:
    lines = dict.fromkeys(range(10, 30), 100)

    assert moved(lines, {line + 1: 100 for line in range(10, 30)}) == {
        line: line + 1 for line in range(10, 30)
    }


def test_lines_behind_an_insertion_move_and_those_before_it_stay() -> None:
    base = dict.fromkeys(range(10, 21), 100)
    new = dict.fromkeys((*range(10, 15), *range(17, 23)), 100)

    found = moved(base, new)

    assert found == {line: line if line < 15 else line + 2 for line in range(10, 21)}


# Lines that differ in their samples, and the same without line 12, which was deleted.
VARIED = {10: 100, 11: 400, 12: 30, 13: 200, 14: 60, 15: 300, 16: 20, 17: 150}
WITHOUT_12 = {10: 100, 11: 400, 12: 200, 13: 60, 14: 300, 15: 20, 16: 150}


def test_a_line_that_was_removed_is_gone() -> None:
    assert moved(VARIED, WITHOUT_12) == {
        **{line: line for line in (10, 11)},
        12: None,
        **{line: line - 1 for line in range(13, 18)},
    }


def test_what_became_hotter_is_the_same_line_where_its_neighbours_are() -> None:
    assert moved({10: 100, 11: 100, 12: 100}, {10: 100, 11: 900, 12: 100}) == {
        10: 10,
        11: 11,
        12: 12,
    }


def test_exchanged_sides_pair_the_same_lines() -> None:
    base, new = {12: 600, 13: 50, 20: 300}, {14: 500, 15: 60, 22: 310, 30: 5}

    there = {(line, found) for line, found in moved(base, new).items() if found}
    back = {(found, line) for line, found in moved(new, base).items() if found}

    assert there == back == {(12, 14), (13, 15), (20, 22)}


def test_a_file_in_another_folder_is_the_same_file() -> None:
    there = kernel({5: 10}, file="/old/src/k.py")

    found = former_lines([there], [kernel({6: 10}, file="/new/src/k.py")])

    assert found == {"/old/src/k.py:5@k": "/new/src/k.py:6@k"}


def test_a_function_that_is_gone_is_left_alone() -> None:
    assert former_lines([kernel({5: 10})], [kernel({5: 10}, function="other")]) == {}


# -- in a comparison -----------------------------------------------------------------------------
def compared(base: Lines, new: Lines, *, raw: bool = False, by: By = By.PATH) -> Comparison:
    options = CompareOptions("num_samples", by, raw_names=raw)
    return compare([Run(kernel(base), "a")], [Run(kernel(new), "b")], options)


def rows(found: Comparison) -> dict[str, tuple[int, int, str]]:
    return {
        f"{found.tree.name(row)}{GONE if found.tree.states[row] == RowState.REMOVED else ''}": (
            int(found.inclusive.base[row]),
            int(found.inclusive.new[row]),
            RowState(found.tree.states[row]).name,
        )
        for row in range(len(found.tree))
        if found.tree.kinds[row] == FrameKind.LINE
    }


def test_a_moved_line_is_one_row_with_both_values() -> None:
    found = compared({12: 600, 14: 300, 17: 50}, {15: 700, 17: 310, 20: 50})

    assert rows(found) == {
        "/src/k.py:15@k": (600, 700, "MATCHED"),
        "/src/k.py:17@k": (300, 310, "MATCHED"),
        "/src/k.py:20@k": (50, 50, "MATCHED"),
    }


def test_a_line_that_is_gone_is_not_the_line_that_has_its_number_now() -> None:
    found = compared(VARIED, WITHOUT_12)

    assert sorted(found.tree.states.tolist()) == [RowState.MATCHED] * 9 + [RowState.REMOVED]
    (gone,) = (values for values in rows(found).values() if values[2] == "REMOVED")
    assert gone == (30, 0, "REMOVED")


def test_a_line_that_is_gone_is_not_called_renamed() -> None:
    builder = ProfileBuilder()
    row = builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1}, device=GPU)
    builder.add(row, "/lib/std.py:9@k", FrameKind.LINE, metrics={"num_samples": 4})
    base = builder.build()

    found = compare(
        [Run(base, "a")], [Run(kernel({5: 4}), "b")], CompareOptions("num_samples", By.PATH)
    )

    assert [RowState(state).name for state in found.tree.states.tolist()] == [
        "MATCHED",
        "MATCHED",
        "REMOVED",
        "NEW",
    ]


def test_raw_names_compare_lines_by_their_numbers() -> None:
    found = compared({12: 600, 14: 300}, {14: 700, 16: 310}, raw=True)

    assert rows(found) == {
        f"/src/k.py:12@k{GONE}": (600, 0, "REMOVED"),
        "/src/k.py:14@k": (300, 700, "MATCHED"),
        "/src/k.py:16@k": (0, 310, "NEW"),
    }


def test_by_line_sums_a_line_over_all_call_paths_and_keeps_the_total() -> None:
    runs = []
    for extra in (0, 40):
        builder = ProfileBuilder()
        for scope in ("forward", "backward"):
            above = builder.add(0, scope, FrameKind.SCOPE)
            row = builder.add(above, "k", FrameKind.KERNEL, metrics={"num_samples": 5}, device=GPU)
            builder.add(row, "k.py:3@k", FrameKind.LINE, metrics={"num_samples": 10 + extra})
        runs.append(Run(builder.build(), "x"))

    found = compare(runs[:1], runs[1:], CompareOptions(by=By.LINE))

    named = {
        found.tree.name(row): (int(found.inclusive.base[row]), int(found.inclusive.new[row]))
        for row in range(len(found))
    }
    assert named == {"ROOT": (30, 110), "k": (10, 10), "k.py:3@k": (20, 100)}
    assert found.measure.name == "num_samples"
    assert not found.measure.has_latency


def test_by_line_needs_samples() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1, "time (ns)": 5})
    run = Run(builder.build(), "plain.proton")

    with pytest.raises(UsageError, match=r"'plain.proton' .* -m pcsampling"):
        compare([run], [run], CompareOptions(by=By.LINE))
