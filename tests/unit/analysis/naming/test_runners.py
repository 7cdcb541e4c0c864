from __future__ import annotations

import pytest

from proton_bench.analysis.accounting.host_time import HOST_WALL, NOT_RECORDED
from proton_bench.analysis.naming.nested import without_runners
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

SHELL = "/v/lib/python3.13/site-packages/IPython/core/interactiveshell.py"
CELL = "/tmp/ipykernel_7/93.py"


def profile_of(*paths: tuple[str, ...]) -> Profile:
    """Return a profile with an operator, and paths outside of recorded work, of 7 ns each."""
    builder = ProfileBuilder()
    builder.add(0, "aten::neg", FrameKind.OP, metrics={HOST_WALL: 7})
    rows = {(): builder.add(0, NOT_RECORDED, FrameKind.PYTHON)}
    for path in paths:
        for depth in range(1, len(path) + 1):
            if path[:depth] not in rows:
                above = rows[path[: depth - 1]]
                rows[path[:depth]] = builder.add(above, path[depth - 1], FrameKind.PYTHON)
        builder.set(rows[path], HOST_WALL, 7)
    return builder.build()


def times_of(profile: Profile) -> dict[tuple[str, ...], int]:
    column = profile.columns[HOST_WALL]
    return {profile.path(int(row)): int(column.values[row]) for row in column.known.nonzero()[0]}


def test_frames_down_to_a_cell_are_left_out() -> None:
    shell = ("/a/launch.py:18@<module>", f"{SHELL}:5@run_code")
    profile = profile_of(
        shell,
        (*shell, f"{CELL}:1@<module>"),
        (*shell, f"{CELL}:2@<module>", f"{CELL}:9@work"),
        (*shell, f"{CELL}:3@<module>", f"{SHELL}:8@run_cell_magic", f"{CELL}:6@<module>"),
    )

    assert times_of(without_runners(profile)) == {
        ("aten::neg",): 7,
        (NOT_RECORDED,): 7,
        (NOT_RECORDED, f"{CELL}:1@<module>"): 7,
        (NOT_RECORDED, f"{CELL}:2@<module>", f"{CELL}:9@work"): 7,
        (NOT_RECORDED, f"{CELL}:6@<module>"): 7,
    }


@pytest.mark.parametrize("paths", [(), (("/a/fit.py:1@<module>", "/a/fit.py:2@load"),)])
def test_other_rows_stay_as_they_are(paths: tuple[tuple[str, ...], ...]) -> None:
    profile = profile_of(*paths)

    folded = without_runners(profile)

    assert [folded.path(row) for row in range(len(folded))] == [
        profile.path(row) for row in range(len(profile))
    ]
    assert times_of(folded) == times_of(profile)
