from __future__ import annotations

import pytest

from proton_bench.errors import BackendUnavailableError, UsageError
from proton_bench.support.reporting import report_error


def test_an_error_is_one_line_and_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = report_error(BackendUnavailableError("no driver"))

    assert code == 69
    assert capsys.readouterr().err == "proton: error: no driver\n"


def test_debug_adds_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_DEBUG", "1")

    with pytest.raises(UsageError) as caught:
        raise UsageError("wrong")
    report_error(caught.value)

    error_lines = capsys.readouterr().err.splitlines()
    assert error_lines[0] == "Traceback (most recent call last):"
    assert error_lines[-1] == "proton: error: wrong"
