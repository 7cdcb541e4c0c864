from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile
from proton_bench.store.rows import ProfileKey, sample_rows, stack_hashes

KEY = ProfileKey(0, "job", "id", "batch")
TIME = "time (ns)"
# For each row the one above it, and its times: none, without samples, or with them.
TREES = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.none() | st.tuples(st.booleans(), st.lists(st.integers(0, 10**9), min_size=1)),
    ),
    max_size=30,
)


def profile_of(tree: list[tuple[int, tuple[bool, list[int]] | None]], number: type) -> Profile:
    builder = ProfileBuilder()
    for place, (above, times) in enumerate(tree):
        row = builder.add(min(above, place), f"row{place}", FrameKind.SCOPE)
        if times is None:
            continue
        has_samples, own = times
        builder.set(row, TIME, number(sum(own)))
        if has_samples:
            builder.set(row, "count", len(own))
            samples = Distribution.from_samples([float(each) for each in own])
            builder.set_distribution(row, TIME, samples)
    return builder.build()


def expected(profile: Profile, row: int, own: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """Return what the rows below a row have, from their own lines."""
    inside = range(row + 1, int(profile.subtree_end[row]))
    lines = [own[each] for each in inside if each in own and own[each]["value"] is not None]
    if not lines:
        return None
    counts = [each["count"] for each in lines if each["count"] is not None]
    has_all, is_called = all(each["min"] is not None for each in lines), bool(own[row]["count"])
    return {
        "value": math.fsum(each["value"] for each in lines),
        "count": sum(counts) if counts and not is_called else None,
        "min": min(each["min"] for each in lines) if has_all and not is_called else None,
        "max": max(each["max"] for each in lines) if has_all and not is_called else None,
    }


@pytest.mark.parametrize("number", [int, float])
@given(TREES)
def test_a_line_says_what_the_rows_below_have(number: type, tree: list[Any]) -> None:
    profile = profile_of(tree, number)
    samples = sample_rows(profile, stack_hashes(profile), KEY).to_pylist()
    lines = {each["node"]: each for each in samples if each["sample_type"] == "time"}

    assert {row for row, line in lines.items() if line["value"] is None} == {
        row
        for row in range(len(profile))
        if row not in {n for n, each in lines.items() if each["value"] is not None}
        and any(
            lines.get(each, {}).get("value") is not None
            for each in range(row + 1, int(profile.subtree_end[row]))
        )
    }
    for row, line in lines.items():
        assert line["below"] == expected(profile, row, lines)


def test_small_numbers_below_large_ones_are_kept() -> None:
    builder = ProfileBuilder()
    for value in (1e18, 0.25):
        scope = builder.add(0, f"scope{value}", FrameKind.SCOPE)
        builder.add(scope, "k", FrameKind.KERNEL, metrics={"energy (J)": value})
    profile = builder.build()

    lines = sample_rows(profile, stack_hashes(profile), KEY).to_pylist()

    assert [each["below"]["value"] for each in lines if each["below"]][1:] == [1e18, 0.25]
