from __future__ import annotations

import pytest

from proton_bench.errors import BackendUnavailableError
from proton_bench.support.reporting import report_error


def test_an_error_is_one_line_and_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = report_error(BackendUnavailableError("no driver"))

    assert code == 69
    assert capsys.readouterr().err == "proton: error: no driver\n"
