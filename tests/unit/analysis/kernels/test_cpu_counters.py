from __future__ import annotations

import pytest

from proton_bench.analysis.kernels.cpu_counters import cpu_counter_error
from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.errors import UnknownMetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def counted() -> Profile:
    """A scope around two operators, of which the second has no counts."""
    builder = ProfileBuilder()
    scope = builder.add(0, "step", FrameKind.SCOPE, metrics={"instructions": 1000})
    counts = {"instructions": 3000, "cpu_cycles": 2000, "cache_misses": 8, "branch_misses": 0}
    builder.add(scope, "aten::add", FrameKind.OP, metrics=counts)
    builder.add(scope, "aten::mul", FrameKind.OP, metrics={"time (ns)": 1})
    return builder.build()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ipc", [2.0, 2.0, 1.5, None]),
        ("CACHE_MPKI", [2.0, 2.0, 8 / 3, None]),
        ("branch_mpki", [0.0, 0.0, 0.0, None]),
    ],
)
def test_ratios_are_of_a_row_with_all_rows_below(name: str, expected: list[float | None]) -> None:
    (found,) = derive(counted(), [name])

    assert found.to_list() == [
        value if value is None else pytest.approx(value) for value in expected
    ]


def test_ratios_are_offered_where_they_can_be_derived() -> None:
    builder = ProfileBuilder()
    builder.add(0, "aten::add", FrameKind.OP, metrics={"instructions": 1, "cache_misses": 1})
    partial = builder.build()

    assert {"ipc", "cache_mpki", "branch_mpki"} <= {*available_metrics(counted()).derivable}
    assert "cache_mpki" in available_metrics(partial).derivable
    assert "ipc" not in available_metrics(partial).derivable
    with pytest.raises(UnknownMetricError):
        derive(partial, ["ipc"])


@pytest.mark.parametrize("said", [None, 1, {}, {"error": 3}, {"error": ""}])
def test_facts_without_a_text_give_no_reason(said: object) -> None:
    builder = ProfileBuilder()

    profile = builder.build(provenance={"collectors": {"cpu": {"cpu_counters": said}}})

    assert cpu_counter_error(profile) == ""
