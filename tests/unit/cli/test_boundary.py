from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from proton_bench.cli.boundary import exit_code
from proton_bench.errors import MissingExtraError, OutputError, UsageError


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


@pytest.mark.parametrize("values", [(1.4e308, 0.9e308), (np.inf, -np.inf)])
def test_sums_beyond_all_floats_are_no_matter_of_a_warning(values: tuple[float, float]) -> None:
    def command() -> int:
        one, other = np.array([values]).T
        return int(np.isfinite((one + other).sum()))

    assert exit_code(command) == 0


def test_an_interrupt_is_130() -> None:
    assert exit_code(lambda: raising(KeyboardInterrupt())) == 130


@pytest.mark.parametrize(
    ("error", "code"),
    [(SystemError("returned a result"), 130), (MissingExtraError("x"), 130), (UsageError("x"), 2)],
)
def test_what_an_interrupted_import_raises_is_the_interrupt(error: Exception, code: int) -> None:
    def command() -> int:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise error

    assert exit_code(command) == code
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_reader_that_goes_away_is_not_an_error() -> None:
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


_GATE = """
import sys
from contextlib import suppress
from proton_bench.cli.boundary import exit_code

def command():  # as Typer does
    try:
        sys.{stream}.write("x" * 100_000)
        sys.{stream}.flush()
    except OSError:
        sys.exit(1)

sys.exit(exit_code(command))
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_goes_away_is_not_a_regression(stream: str) -> None:
    command = [sys.executable, "-c", _GATE.format(stream=stream)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        getattr(process, stream).close()

    assert process.returncode == 141


def test_messages_to_a_closed_error_stream_are_dropped() -> None:
    program = (
        "import sys; sys.stderr = None\n"
        "from proton_bench.cli.boundary import exit_code\n"
        "sys.exit(exit_code(lambda: sys.stderr.write('written') and 3))\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True)

    assert done.returncode == 3


def test_system_exit_passes() -> None:
    with pytest.raises(SystemExit):
        exit_code(lambda: raising(SystemExit(4)))


def test_output_that_was_closed_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    assert exit_code(lambda: 0) == 0


@pytest.mark.parametrize(
    "command", ["sys.stdout.write('x') and 0", "sys.stdout.write('x' * 10**6)"]
)
def test_a_full_device_is_an_output_error(command: str) -> None:
    program = (
        "import sys\n"
        "from proton_bench.cli.boundary import exit_code\n"
        f"sys.exit(exit_code(lambda: {command}))\n"
    )

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert done.returncode == 74
    said = f"proton: error: cannot write to standard output: {os.strerror(errno.ENOSPC)}; "
    assert done.stderr.decode().startswith(said)
    assert done.stderr.count(b"\n") == 1


def test_an_error_of_a_file_that_is_not_ours_stays_a_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = exit_code(lambda: raising(FileNotFoundError(2, "No such file", "x")))

    assert code == 70
    assert "internal error" in capsys.readouterr().err
