from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.pytest_plugin.testrun.parts import in_order, no_rows, read_parts

TESTS = ("b.py::T::test_x", "b.py::test_y", "a.py::test_z")
ORDER = {test: place for place, test in enumerate(TESTS)}


def run_of(
    *tests: str, worker: str = "gw0", metrics: Mapping[str, object] | None = None
) -> Profile:
    """Return the profile of a worker that ran these tests, named by their ids."""
    builder = ProfileBuilder()
    rows = {"": builder.add(0, "session", FrameKind.TEST)}
    for test in tests:
        above = ""
        for name in test.split("::"):
            path = f"{above}::{name}"
            rows[path] = rows.get(path) or builder.add(rows[above], name, FrameKind.TEST)
            above = path
        for step in ("call", "teardown", "setup"):
            builder.add(rows[above], step, FrameKind.TEST, metrics=metrics)
    return builder.build(provenance={"worker": worker})


def ids(profile: Profile) -> list[str]:
    paths = ["::".join(profile.path(row)[1:]) for row in range(len(profile))]
    return [path for path in paths if path in ORDER]


def test_tests_stand_in_the_given_order() -> None:
    ordered = in_order(run_of(*reversed(TESTS)), ORDER)

    assert ids(ordered) == list(TESTS)


def test_steps_of_a_test_stand_in_the_order_of_a_run() -> None:
    ordered = in_order(run_of(TESTS[1]), ORDER)

    assert [ordered.name(row) for row in range(4, 7)] == ["setup", "call", "teardown"]


def test_other_rows_stay_before_or_after_the_tests() -> None:
    builder = ProfileBuilder()
    builder.add(0, "import of a conftest", FrameKind.OP)
    session = builder.add(0, "session", FrameKind.TEST)
    builder.add(session, "collection", FrameKind.OP)
    file = builder.add(session, "b.py", FrameKind.TEST)
    for name in ("test_y", "made by a plugin", "T"):
        row = builder.add(file, name, FrameKind.TEST)
    builder.add(row, "test_x", FrameKind.TEST)
    builder.add(session, "last teardown", FrameKind.SCOPE)

    ordered = in_order(builder.build(), ORDER)

    assert [ordered.name(row) for row in range(1, len(ordered))] == [
        "import of a conftest", "session", "collection", "b.py", "T", "test_x", "test_y",
        "made by a plugin", "last teardown",
    ]  # fmt: skip


def test_tests_of_an_inner_run_are_not_taken_for_those_of_the_outer() -> None:
    builder = ProfileBuilder()
    row = builder.add(0, "session", FrameKind.TEST)
    for name in ("a.py", "test_z", "call", "session"):
        row = builder.add(row, name, FrameKind.TEST)
    for file, test in (("a.py", "test_z"), ("b.py", "test_y")):
        builder.add(builder.add(row, file, FrameKind.TEST), test, FrameKind.TEST)

    ordered = in_order(builder.build(), ORDER)

    assert [ordered.name(row) for row in range(6, 10)] == ["a.py", "test_z", "b.py", "test_y"]


def test_a_profile_without_rows_can_be_ordered() -> None:
    assert len(in_order(no_rows(), ORDER)) == 1


def test_parts_are_merged_in_the_order_of_the_workers(tmp_path: Path) -> None:
    for worker, test in (("gw10", TESTS[1]), ("gw1", TESTS[0])):
        write_profile(run_of(test, worker=worker), tmp_path / f"{worker}.proton")

    parts = read_parts(tmp_path, ["gw1", "gw2", "gw10"])

    assert parts.profile is not None
    assert ids(parts.profile) == [TESTS[0], TESTS[1]]
    assert (parts.missing, parts.problems) == (("gw2",), ())


def test_every_phase_of_a_worker_is_read(tmp_path: Path) -> None:
    for phase in (0, 1):
        write_profile(run_of(TESTS[phase]), tmp_path / f"gw0.part_{phase}.proton")

    parts = read_parts(tmp_path, ["gw0"])

    assert parts.profile is not None
    assert ids(parts.profile) == [TESTS[0], TESTS[1]]


def test_a_half_written_part_counts_only_where_there_is_no_whole_one(tmp_path: Path) -> None:
    write_profile(run_of(TESTS[0]), tmp_path / "gw0.partial.proton")
    write_profile(run_of(TESTS[0], TESTS[1]), tmp_path / "gw0.proton")
    write_profile(run_of(TESTS[2]), tmp_path / "gw1.partial.proton")

    whole, half = read_parts(tmp_path, ["gw0"]), read_parts(tmp_path, ["gw1"])

    assert whole.profile is not None
    assert half.profile is not None
    assert not whole.profile.partial
    assert half.profile.partial


def test_without_parts_there_is_no_profile(tmp_path: Path) -> None:
    parts = read_parts(tmp_path, ["gw0"])

    assert parts.profile is None
    assert parts.missing == ("gw0",)


@pytest.mark.parametrize("content", [b"", b"\x80", b"no profile"])
def test_a_corrupt_part_is_left_out_and_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "gw0.proton").write_bytes(content)
    write_profile(run_of(TESTS[0]), tmp_path / "gw1.proton")

    parts = read_parts(tmp_path, ["gw0", "gw1"])

    assert parts.profile is not None
    assert ids(parts.profile) == [TESTS[0]]
    assert len(parts.problems) == 1
    assert parts.problems[0].startswith("error: worker gw0: ")


def test_a_part_whose_metrics_do_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    for worker, value in (("gw0", 1), ("gw1", "text"), ("gw2", 2)):
        profile = run_of(TESTS[0], worker=worker, metrics={"x": value})
        write_profile(profile, tmp_path / f"{worker}.proton")

    parts = read_parts(tmp_path, ["gw0", "gw1", "gw2"])

    assert parts.profile is not None
    assert parts.profile.column("x").get(5) == 3
    assert len(parts.problems) == 1
    assert "worker gw1 is left out: metric 'x' holds int and str" in parts.problems[0]
