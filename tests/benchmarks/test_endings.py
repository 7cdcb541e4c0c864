"""A few of the endings that the study counts by the thousand."""

from __future__ import annotations

import pytest

pytest.importorskip("proton_bench._native")

from benchmarks.studies.endings import WAYS, main, plan


def test_every_way_is_planned() -> None:
    assert {plan(1, number).way for number in range(300)} == set(WAYS)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("endings", [6, 40])
def test_recordings_end_as_documented(capsys: pytest.CaptureFixture[str], endings: int) -> None:
    code = main(["--endings", str(endings), "--seed", "7", "--jobs", "1"])

    assert code == 0, capsys.readouterr().out
