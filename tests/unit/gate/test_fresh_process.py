"""A process of a run and its children end with the run."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from proton_bench.errors import InterruptedExperimentError, OutputError, UsageError
from proton_bench.gate.processes import (
    Launch,
    interruptible,
    output_end,
    run_fresh,
)


def launch(folder: Path, code: str, *words: str) -> Launch:
    log = folder / "x.log"
    return Launch([sys.executable, "-c", code, *words], str(folder), log, os.environ)


def test_output_and_code_are_kept(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd()); print('said', file=sys.stderr); sys.exit(3)"
    ended = run_fresh(launch(tmp_path, code))

    assert ended.code == 3
    assert ended.text == "ended with exit code 3"
    assert sorted(output_end(tmp_path / "x.log").splitlines()) == sorted([str(tmp_path), "said"])


def test_a_signal_is_named(tmp_path: Path) -> None:
    ended = run_fresh(launch(tmp_path, "import os; os.kill(os.getpid(), 9)"))

    assert ended.text == "was ended by SIGKILL"


def test_only_the_end_of_long_output_is_shown(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"\xff" + b"".join(b"%d\n" % n for n in range(5000)))

    assert output_end(tmp_path / "x.log").splitlines() == [str(n) for n in range(4980, 5000)]
    assert not output_end(tmp_path / "nothing")


def test_an_interrupted_run_takes_its_children_with_it(tmp_path: Path) -> None:
    """Both wait for each other's end of a pipe, so only signals end them."""
    os.mkfifo(tmp_path / "never")
    code = (
        "import os, sys, subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'open(\"never\").read()'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "os.kill(int(sys.argv[1]), 15)\n"
        "open('never').read()\n"
    )

    with pytest.raises(InterruptedExperimentError) as caught, interruptible():
        run_fresh(launch(tmp_path, code, str(os.getpid())))

    assert caught.value.exit_code == 128 + signal.SIGTERM
    child = int((tmp_path / "child").read_text())
    _assert_ends(child)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_cannot_be_started_is_reported(tmp_path: Path) -> None:
    nothing = Launch(["/no/such/program"], "", tmp_path / "x.log", {})

    with pytest.raises(UsageError, match="cannot start"):
        run_fresh(nothing)


def test_a_log_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        run_fresh(Launch([sys.executable], "", tmp_path / "no" / "x.log", {}))


def _assert_ends(number: int) -> None:
    """Wait for the end of a process that is not a child; a zombie has ended."""
    try:
        descriptor = os.pidfd_open(number)
    except ProcessLookupError:
        return
    import select

    ready, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    assert ready
