"""Entries of the registry of metrics."""

from __future__ import annotations

import pytest
from fakes.counted import Kernel, counted_profile

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.registry import REGISTRY
from proton_bench.errors import UnknownMetricError
from proton_bench.model.profile import Profile


def counted_work() -> Profile:
    """Return a run with counters, operations and bytes."""
    return counted_profile(
        Kernel(
            path="net (Net)/aten::mm/gemm",
            time_ns=1e6,
            units={"tensor": 0.8, "dram": 0.3},
            metrics={"flops16": 1e9, "bytes": 1e6},
        )
    )


def test_an_offered_name_has_one_entry_that_computes_it() -> None:
    profile = counted_work()
    numbers = available_metrics(profile).recorded

    for metric in REGISTRY:
        for name in metric.offered(profile, numbers):
            entries = [each for each in REGISTRY if each.names.fullmatch(name)]
            is_in_unit = not entries and name.startswith("self_")  # a formula of the one without
            assert entries == [metric] or is_in_unit
            assert len(derive(profile, [name])[0].values) == len(profile)


@pytest.mark.parametrize("name", ["SELF_TIME", " Bound ", "Tensor_PCT"])
def test_case_and_blanks_do_not_matter(name: str) -> None:
    profile = counted_work()

    assert derive(profile, [name])[0].name == name.strip().lower()


def test_an_unknown_self_time_suggests_a_known_one() -> None:
    with pytest.raises(UnknownMetricError, match="self_time"):
        derive(counted_work(), ["self_tim"])
