"""The messages of a session about passes that recorded nothing."""

from __future__ import annotations

import pytest

from proton_bench_plugins.instrumentation.passes import parse_passes
from proton_bench_plugins.instrumentation.passes.listing import unused_passes

KERNELS = ("add", "matmul", "softmax", "reduce", "scan")


@pytest.mark.parametrize(
    ("text", "taken", "said"),
    [
        (
            "loads:kernel=zzz",
            "",
            "pass 'loads:kernel=zzz' matched no kernel; these ran: add, ",
        ),
        ("print-ops:kernel=zzz", "", "pass 'print-ops:kernel=zzz' matched no kernel"),
        ("loads:kernel=add:line=9", "", "'loads:kernel=add:line=9' matched no operation of add;"),
        ("stores:file=x.py", "", "'stores:file=x.py' matched no operation of add, matmul, softmax"),
        ("loads:line=3-7|9-", "", "'loads:line=3-7|9-' matched no operation of"),
        ("stores,dots", "stores", "pass 'dots' matched no operation of add, matmul"),
    ],
)
def test_pass_that_took_nothing_is_named(text: str, taken: str, said: str) -> None:
    assert said in (unused_passes(parse_passes(text), KERNELS, [taken]) or "")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("loads", "loads"),
        ("dots:kernel=mat*", "dots:kernel=mat*"),
        ("loads:line=9", "loads:line=9"),
        ("loads:line=9-9", "loads:line=9"),
        ("loads,print-ops:kernel=zzz", "loads"),
    ],
)
def test_passes_that_took_something_are_not(text: str, taken: str) -> None:
    assert unused_passes(parse_passes(text), KERNELS, [taken]) is None


def test_all_are_named_on_one_line_and_few_kernels() -> None:
    said = unused_passes(parse_passes("loads:kernel=a,stores:kernel=b"), KERNELS, []) or ""

    assert said.count("matched no kernel; these ran: add, matmul, softmax, reduce and 1") == 2
    assert "\n" not in said


@pytest.mark.parametrize("text", ["loads", "loads:kernel=a,dots", "print-ops"])
def test_without_kernels_that_is_the_reason(text: str) -> None:
    said = unused_passes(parse_passes(text), [], [])

    assert said is not None
    assert f"'{text}'" in said
    assert "no Triton kernel ran" in said
