from __future__ import annotations

import pytest

from proton_bench.formats.hatchet.tree import assumed_aggregations
from proton_bench.model.metrics.metric import Aggregation, ValueKind

INC, EXC, PTY = Aggregation.INCLUSIVE, Aggregation.EXCLUSIVE, Aggregation.PROPERTY


@pytest.mark.parametrize(
    ("name", "kind", "hinted", "expected"),
    [
        ("time (ns)", ValueKind.INT, {"time (ns)"}, INC),
        ("note", ValueKind.STR, {"note"}, PTY),
        ("start_time (ns)", ValueKind.INT, {"start_time (ns)"}, PTY),
        ("wall (ns)", ValueKind.INT, {"time (ns)"}, EXC),
        ("cpu_time (ns)", ValueKind.INT, set(), EXC),
        ("cpu_time (ns)", ValueKind.INT, {"cpu_time (ns)"}, INC),
        ("cycles", ValueKind.INT, set(), EXC),
        ("cycles", ValueKind.INT, {"cycles", "normalized_cycles"}, INC),
        ("own", ValueKind.FLOAT, {"time (ns)", "flops"}, EXC),
        ("flops", ValueKind.FLOAT, {"time (ns)", "stalled_wait"}, INC),
        ("flops", ValueKind.FLOAT, set(), INC),
        ("experts", ValueKind.INT_VECTOR, {"flops"}, INC),
    ],
)
def test_meaning_is_taken_from_hints_and_names(
    name: str, kind: ValueKind, hinted: set[str], expected: Aggregation
) -> None:
    assert assumed_aggregations({name: kind}, frozenset(hinted)) == {name: expected}
