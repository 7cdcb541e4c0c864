from __future__ import annotations

import math
from typing import Any

import pytest

from proton_bench.analysis.why.row_facts import Ceilings
from proton_bench.model.metrics.counter_columns import USUAL_CEILINGS
from proton_bench.model.provenance import Provenance


def ceilings(**facts: Any) -> Ceilings:
    return Ceilings.of(Provenance(facts))


def test_measured_ceilings_replace_defaults() -> None:
    found = ceilings(ceilings={"dram": 0.9, "tensor": 0.8}, ceilings_measured=["dram"])

    assert found.fractions == {**USUAL_CEILINGS, "dram": 0.9, "tensor": 0.8}
    assert found.measured == {"dram"}


def test_lowest_of_several_gpus_counts() -> None:
    found = ceilings(ceilings={"A": {"dram": 0.9}, "B": {"dram": 0.8}})

    assert found.fractions["dram"] == 0.8


@pytest.mark.parametrize(
    "said",
    [
        None,
        "dram",
        [0.9],
        {"dram": "high"},
        {"dram": math.nan},
        {"dram": math.inf},
        {"dram": True},
        {"dram": 0},
        {"dram": -1},
        {"dram": 40},
        {"speed": 0.9},
        {"a": {"b": {"dram": 0.5}}},
    ],
)
def test_what_cannot_be_a_ceiling_is_ignored(said: object) -> None:
    assert ceilings(ceilings=said).fractions == USUAL_CEILINGS


@pytest.mark.parametrize("said", ["dram", [{"a": 1}], {"dram": 1}, 7, [None]])
def test_what_cannot_be_a_name_is_ignored(said: object) -> None:
    assert ceilings(ceilings={"dram": 0.9}, ceilings_measured=said).measured == frozenset()
