from __future__ import annotations

from typing import Any

import pytest
from fakes.counted import Kernel, counted_profile

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.explanation import explain
from proton_bench.analysis.run import Run
from proton_bench.analysis.why.changes import kernel_changes
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.device import Variant
from proton_bench.report.words.diff import headline

OTHER = Kernel(path="net/other", time_ns=1e6)


def launched(registers: int, blocks: int = 528, **more: Any) -> Variant:
    return Variant(grid=(blocks, 1, 1), block=(256, 1, 1), registers=registers, **more)


def compared(base: Kernel, new: Kernel) -> Comparison:
    sides = [[Run(counted_profile(each, OTHER), "x")] for each in (base, new)]
    return compare(*sides, CompareOptions())


def changed(base: Kernel, new: Kernel) -> dict[str, Evidence]:
    comparison = compared(base, new)
    explanation = explain(comparison)
    assert explanation is not None
    found = kernel_changes(comparison, explanation.causes[0])
    return {each.id: each for each in found}


def kernel(time_ns: float, **more: Any) -> Kernel:
    return Kernel(path="net/gemm", time_ns=time_ns, **more)


def test_registers_explain_occupancy() -> None:
    found = changed(
        kernel(1e6, variant=launched(64)),
        kernel(2e6, variant=launched(128)),
    )

    assert found.keys() == {"launch.occupancy"}
    assert found["launch.occupancy"].value == pytest.approx(0.25 - 0.5)
    assert "64 -> 128" in found["launch.occupancy"].text


@pytest.mark.parametrize(("before", "said"), [(0, True), (256, False), (-1, False)])
def test_spilled_registers_are_named(before: int, said: bool) -> None:
    found = changed(
        kernel(1e6, variant=launched(128, code_hash="a", local_bytes=before)),
        kernel(2e6, variant=launched(128, code_hash="b", local_bytes=256)),
    )

    texts = [each.text for each in found.values()]
    assert texts == (["local memory 0 B -> 256 B"] if said else [])


MIX = {"mma": 8, "global loads": 64, "integer": 900}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (
            {"global loads": 128, "integer": 700, "local loads": 48, "fp32": 60, "barriers": 9},
            "mma 8 -> 0, fp32 0 -> 60, local loads 0 -> 48, barriers 0 -> 9",
        ),
        ({**MIX, "global loads": 128}, "global loads 64 -> 128"),
        ({**MIX, "integer": 950}, ""),
        (MIX, ""),
        ({}, ""),
    ],
    ids=["most", "one", "a little", "nothing", "unknown"],
)
def test_instructions_of_other_code_are_named(after: dict[str, int], said: str) -> None:
    found = changed(
        kernel(1e6, variant=launched(64, code_hash="a", instructions=MIX)),
        kernel(2e6, variant=launched(64, code_hash="b", instructions=after)),
    )

    texts = [each.text for each in found.values()]
    assert texts == ([f"instructions ({said})"] if said else [])


def test_instructions_of_several_codes_are_weighted_by_time() -> None:
    variants = [
        launched(64, code_hash=code, instructions={"fp32": count})
        for code, count in (("a", 100), ("b", 200))
    ]
    sides = []
    for times in ((3e6, 1e6), (1e6, 9e6)):
        kernels = [
            kernel(time, variant=variant) for time, variant in zip(times, variants, strict=True)
        ]
        sides.append([Run(counted_profile(*kernels, OTHER), "x")])
    explanation = explain(comparison := compare(*sides, CompareOptions()))
    assert explanation is not None

    (found,) = kernel_changes(comparison, explanation.causes[0])

    assert found.text == "instructions (fp32 125 -> 190)"


def test_bytes_are_those_of_one_launch() -> None:
    found = changed(
        kernel(1e6, count=10, units={"dram": 0.4}),
        kernel(4e6, count=20, units={"dram": 0.3}),
    )

    # Twice as long per launch at three quarters of the rate.
    assert found["counter.dram_bytes"].value == pytest.approx(0.5)


def test_instructions_are_those_of_one_call() -> None:
    found = changed(
        kernel(1e6, count=10, metrics={"instructions": 1e7}),
        kernel(3e6, count=20, metrics={"instructions": 2.196e7}),
    )

    assert found["counter.instructions"].value == pytest.approx(0.098)


def test_units_clock_and_grid_are_named() -> None:
    found = changed(
        kernel(1e6, units={"tensor": 0.8}, metrics={"sm_cycles": 1.98e6}),
        kernel(2e6, units={"tensor": 0.4}, metrics={"sm_cycles": 2 * 1.7e6}),
    )
    grid = changed(kernel(1e6, variant=launched(64)), kernel(2e6, variant=launched(64, 132)))

    assert found["counter.tensor"].value == pytest.approx(-0.4)
    assert found["counter.clock"].value == pytest.approx(1.7 / 1.98 - 1)
    assert "launch.grid" in grid


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (kernel(1e6), kernel(2e6)),
        (kernel(1e6, variant=launched(64)), kernel(2e6, variant=launched(64))),
        (kernel(1e6, units={"dram": 0.4}), kernel(2e6)),
        (
            kernel(1e6, units={"dram": 0.4}, error=0.1),
            kernel(2e6, units={"dram": 0.8}, error=0.1),
        ),
        (kernel(1e6, units={"dram": 0.4}), kernel(2e6, units={"dram": 0.2})),
    ],
    ids=["nothing recorded", "nothing changed", "one side", "too wide", "as many bytes"],
)
def test_nothing_is_said_without_evidence(base: Kernel, new: Kernel) -> None:
    assert changed(base, new) == {}


def test_new_rows_have_no_change() -> None:
    new = Kernel(path="net/added", time_ns=5e6, variant=launched(64))

    assert changed(OTHER, new) == {}


def test_rows_of_other_paths_do_not_count() -> None:
    beside = Kernel(path="beside/gemm", time_ns=9e6, variant=launched(255))
    sides = [
        [Run(counted_profile(kernel(time, variant=launched(regs)), beside), "x")]
        for time, regs in ((1e6, 64), (2e6, 128))
    ]
    comparison = compare(*sides, CompareOptions())
    explanation = explain(comparison)
    assert explanation is not None

    (found,) = kernel_changes(comparison, explanation.causes[0])

    assert "64 -> 128" in found.text


def test_headline_says_it() -> None:
    comparison = compared(kernel(1e6, variant=launched(64)), kernel(2e6, variant=launched(128)))

    assert "occupancy 50 -> 25 % (registers 64 -> 128)" in headline(comparison)
