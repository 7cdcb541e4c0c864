"""The cost of records is read from the facts of the collector only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.profiles import training_profile

from proton_bench.analysis.kernels.gpu_facts import RecordCost, record_costs
from proton_bench.analysis.metrics.occupancy import resident_blocks
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.header import record_cost_notes

MATMUL = {
    "name": "matmul",
    "warps": 8,
    "arch": "90",
    "registers": 136,
    "plain_registers": 120,
    "shared_bytes": 106496,
    "plain_shared_bytes": 98304,
    "dropped_maxnreg": 128,
}


def profile(*kernels: Any) -> Profile:
    facts = {"collectors": {"instrumentation": {"kernels": list(kernels)}}}
    return replace(training_profile(), provenance=Provenance(facts))


def test_a_kernel_is_set_beside_itself_without_records() -> None:
    assert record_costs(profile(MATMUL)) == (
        RecordCost("matmul", (136, 120), (106496, 98304), (1, 2), 128),
    )


def test_the_report_says_what_changed() -> None:
    assert record_cost_notes(profile(MATMUL)) == (
        "RECORDS: matmul takes 136 registers instead of 120 and +8,192 B of shared memory; "
        "1 program fits a multiprocessor instead of 2; its maxnreg=128 is dropped by Triton",
    )


def test_a_kernel_that_stayed_as_it_was_is_not_reported() -> None:
    same = {**MATMUL, "registers": 120, "shared_bytes": 98304, "dropped_maxnreg": 0}

    assert record_cost_notes(profile(same, {"name": "copy", "scopes": 2})) == ()


def test_configurations_of_one_kernel_and_many_kernels_stay_readable() -> None:
    many = [{**MATMUL, "name": f"kernel{number}"} for number in range(9)]

    notes = record_cost_notes(profile(MATMUL, MATMUL, *many))

    assert len(notes) == 6
    assert notes[-1] == "RECORDS: also for 5 more kernels"


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"collectors": 3},
        {"collectors": {"instrumentation": []}},
        {"collectors": {"instrumentation": {"kernels": "matmul"}}},
        {"collectors": {"instrumentation": {"kernels": [None, 7, {"name": 3}]}}},
    ],
)
def test_strange_facts_are_not_costs(facts: dict[str, Any]) -> None:
    found = replace(training_profile(), provenance=Provenance(facts))

    assert record_costs(found) == ()


@pytest.mark.parametrize("value", [-1, True, "9", 1 << 40, None, 2.5])
def test_strange_numbers_are_not_known(value: Any) -> None:
    entry = {**MATMUL, "registers": value, "shared_bytes": value, "warps": value}

    assert record_costs(profile(entry)) == (RecordCost("matmul", None, None, None, 128),)


@pytest.mark.parametrize(
    ("arch", "warps", "needs", "blocks"),
    [
        ("90", 4, (32, 0), 16),
        ("90", 4, (168, 0), 3),
        ("80", 8, (64, 82000), 2),
        ("gfx942", 4, (32, 0), None),
    ],
)
def test_blocks_of_a_multiprocessor(
    arch: str, warps: int, needs: tuple[int, int], blocks: int | None
) -> None:
    assert resident_blocks(arch, warps, needs) == blocks
