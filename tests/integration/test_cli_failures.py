"""Wrong use, failures of the profiler itself, and the files that remain."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.outputs import SCOPED, written

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_lost_records_are_reported(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script("from proton_bench import _native; _native.add_dropped('buffer full', 3)")

    done = proton("-n", "x", target, PROTON_BENCH_QUIET="")

    assert "proton: warning: 3 records were lost" in done.stderr


def test_an_empty_profile_is_warned_about(proton: Run, script: Callable[[str], str]) -> None:
    empty = proton("-n", "x", script("pass"), PROTON_BENCH_QUIET="")
    full = proton("-n", "y", script(SCOPED), PROTON_BENCH_QUIET="")

    assert "proton: warning: the profile is empty" in empty.stderr
    assert "empty" not in full.stderr


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("pass", 5),
        ("raise SystemExit(3)", 3),
        ("1 / 0", 1),
        (SCOPED, 0),
    ],
)
def test_a_strict_run_that_recorded_nothing_fails(
    proton: Run, script: Callable[[str], str], text: str, code: int
) -> None:
    assert proton("-n", "x", "--strict", script(text)).returncode == code


def test_levels_folded_in_hatchet_are_warned_about(
    proton: Run, script: Callable[[str], str]
) -> None:
    target = script(
        """
        import proton_bench as proton
        for level in range(600):
            proton.enter_scope(f"level_{level}")
        """
    )

    done = proton("-n", "x", target)

    assert re.search("^proton: warning: x.hatchet: .* 400 ", done.stderr, re.MULTILINE)


def test_a_disabled_profiler_leaves_the_target_alone(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script(
        """
        import proton_bench as proton
        with proton.scope("x"):
            print(proton.start("y"))
        proton.deactivate()
        proton.finalize()
        """
    )

    done = proton("-n", "x", target, TRITON_PROTON_DISABLE="1")

    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    assert written(tmp_path) == set()


def test_a_full_disk_leaves_nothing_half_written(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script(
        SCOPED + "    import resource, signal, sys\n"
        "    sys.dont_write_bytecode = True\n"  # Python leaves half a file where a disk is full
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
    )

    done = proton("-n", "x", "--strict", target, PROTON_BENCH_QUIET="")

    assert done.returncode == 74
    assert "proton: warning: the profile was not written" in done.stderr
    assert "Traceback" not in done.stderr
    assert written(tmp_path) == set()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["y.py"], 2, r"script 'y\.py' does not exist"),
        (["python", "-m", "no_such_module"], 2, "no module named 'no_such_module'"),
        (["viw", "x"], 2, "did you mean 'view'"),
        (["-b", "cuptii", "x.py"], 2, "Unknown profiler: cuptii; did you mean 'cupti'"),
        (["-m", "sampling", "x.py"], 2, "unsupported mode: sampling; choose one of cpu"),
        (["-c", "native", "x.py"], 2, r"Unknown context source: native.*shadow, python"),
        (["-d", "table", "x.py"], 2, r"Unknown data: table.*tree"),
        (["-k", "nvtx", "x.py"], 2, r"Unsupported hook: 'nvtx'.*triton"),
        (["-k", "tritom", "x.py"], 2, "did you mean 'triton'"),
        (["-n", "{gpu}", "x.py"], 2, r"unknown field \{gpu\}; known: \{rank\}"),
        (["-o", "x.txt", "x.py"], 2, r"end it with \.proton"),
        (["-o", "x.pftrace", "x.py"], 2, r"perfetto needs a timeline: .*-d trace"),
        (["-o", "x.pftrace", "ls"], 2, r"perfetto needs a timeline: .*-d trace"),
        (
            ["-m", "periodic_flushing", "-d", "trace", "-o", "x.pftrace", "x.py"],
            2,
            "perfetto cannot be written at the end",
        ),
        (["-n", "a", "-o", "b.proton", "x.py"], 2, "-n.*-o"),
        (["-z", "x.py"], 2, "-z.*see `proton run --help`"),
        (["-n", "/proc/x", "x.py"], 74, "/proc/x"),
        (["-n", "/proc/x", "ls"], 74, "/proc/x"),
        (["run"], 2, "nothing to run"),
        (["-n"], 2, "-n.*see `proton --help`"),
    ],
)
def test_wrong_use_is_one_clear_line_and_the_target_does_not_run(
    proton: Run,
    script: Callable[[str], str],
    tmp_path: Path,
    words: list[str],
    code: int,
    message: str,
) -> None:
    script("print('ran')")

    done = proton(*words)

    assert done.returncode == code, done.stderr
    assert re.search(f"^proton: error: .*{message}", done.stderr, re.MULTILINE), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert written(tmp_path) == set()


@pytest.mark.parametrize(("words", "code"), [([], 3), (["--strict"], 74)])
def test_a_profile_that_cannot_be_written_is_a_warning_or_strict(
    proton: Run, script: Callable[[str], str], tmp_path: Path, words: list[str], code: int
) -> None:
    target = script(
        """
        import os, shutil
        shutil.rmtree("out")
        open("out", "w").close()
        raise SystemExit(3)
        """
    )
    (tmp_path / "out").mkdir()

    done = proton("-n", "out/x", *words, target, PROTON_BENCH_QUIET="")

    assert done.returncode == code, done.stderr
    assert "proton: warning: the profile was not written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("words", "code"), [(["--quiet"], 0), (["--strict"], 74)])
def test_a_format_that_cannot_be_made_any_more_is_a_warning_or_strict(
    proton: Run, script: Callable[[str], str], tmp_path: Path, words: list[str], code: int
) -> None:
    target = script(
        """
        import sys
        import proton_bench
        with proton_bench.scope("step"):
            pass
        sys.modules["numpy"] = None
        """
    )

    done = proton("-b", "cpu", "-o", "x.hatchet", *words, target)

    assert done.returncode == code, done.stderr
    assert "x.hatchet was not written" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "x.proton").exists()
