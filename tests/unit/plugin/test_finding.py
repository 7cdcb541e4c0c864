from __future__ import annotations

import pytest

from proton_bench.plugin import Finding, Status


@pytest.mark.parametrize(
    ("status", "is_usable"),
    [(Status.OK, True), (Status.NOTE, True), (Status.ABSENT, False), (Status.PROBLEM, False)],
)
def test_what_is_absent_or_broken_is_not_usable(status: Status, is_usable: bool) -> None:
    assert Finding("x", status, "value").usable is is_usable
