from __future__ import annotations

import subprocess
import sys

import pytest

from proton_bench.cli.boundary import exit_code
from proton_bench.errors import OutputError


def raising(error: BaseException) -> int:
    raise error


def test_the_code_of_a_command_that_ends_well_is_kept() -> None:
    assert exit_code(lambda: 3) == 3


def test_our_errors_are_one_line_with_their_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = exit_code(lambda: raising(OutputError("cannot write x")))

    assert code == 74
    assert capsys.readouterr().err == "proton: error: cannot write x\n"


def test_a_bug_shows_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    code = exit_code(lambda: raising(ZeroDivisionError("bug")))

    shown = capsys.readouterr().err
    assert code == 70
    assert "ZeroDivisionError: bug" in shown
    assert "internal error" in shown


def test_an_interrupt_is_130() -> None:
    assert exit_code(lambda: raising(KeyboardInterrupt())) == 130


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = (
        "import sys\n"
        "from proton_bench.cli.boundary import exit_code\n"
        "sys.exit(exit_code(lambda: sys.stdout.write('x' * 100_000) and 0))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()

    _, error = process.communicate()

    assert process.returncode == 141
    assert error == b""


def test_system_exit_passes() -> None:
    with pytest.raises(SystemExit):
        exit_code(lambda: raising(SystemExit(4)))
