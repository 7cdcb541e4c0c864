from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench import _native
from proton_bench.formats.registry import read_profile
from proton_bench.plugin import Mode
from proton_bench.plugin.contract import assert_backend_contract
from proton_bench_plugins import cpu
from proton_bench_plugins.cpu import collector

PROGRAM = Path(__file__).with_name("counted_program.py")
PAGE_FAULTS = ("page_faults", 1, 2)
RUNS = 9  # of the program: eight threads, and once more


def refuse(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(_native, "probe_perf_event", lambda event: code)


needs_kernel = pytest.mark.skipif(
    _native.probe_perf_event(PAGE_FAULTS) != 0,
    reason="a sandbox here forbids perf_event_open",
)


# -- what the kernel gives -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOENT, "virtual"),
        (errno.EOPNOTSUPP, "virtual"),
        (errno.EACCES, "sysctl kernel.perf_event_paranoid=2"),
        (errno.EPERM, "container"),
        (errno.ENOSYS, "CONFIG_PERF_EVENTS"),
        (errno.E2BIG, os.strerror(errno.E2BIG)),
    ],
)
def test_a_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch, code: int, advice: str) -> None:
    refuse(monkeypatch, code)

    assert advice in collector.refusal()


def test_a_refusal_names_the_setting_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refuse(monkeypatch, errno.EACCES)
    (tmp_path / "paranoid").write_text("4\n")
    monkeypatch.setattr(collector, "_PARANOID", tmp_path / "paranoid")

    assert "is 4:" in collector.refusal()


# -- recording -----------------------------------------------------------------------------------
def test_a_refused_run_says_so_once_and_keeps_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(monkeypatch, errno.EPERM)
    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    counting = cpu.BACKEND.open(Mode("counters", {}, "counters"))

    for _ in range(2):
        counting.start()
        counting.stop()

    (line,) = capsys.readouterr().err.splitlines()
    facts = counting.facts()["cpu_counters"]  # type: ignore[attr-defined]
    assert set(facts) == {"error"}
    assert facts["error"] in line


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program recorded, beside what it printed."""
    file = tmp_path_factory.mktemp("counted") / "counted.proton"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(file.with_suffix(""))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file.with_suffix(".json").write_text(done.stdout.splitlines()[-1])
    return file


@needs_kernel
def test_counts_of_a_row_are_its_own_and_add_up(output: Path) -> None:
    profile = read_profile(output)
    rows = {profile.path(row): row for row in range(len(profile))}
    own = profile.column("page_faults")

    outer, inner = own.get(rows[("outer",)]), own.get(rows[("outer", "inner")])

    assert outer >= RUNS * 300
    assert inner >= RUNS * 5000
    assert outer < inner / 5  # so the outer row has nothing of the inner one
    assert profile.inclusive("page_faults")[0] == outer + inner


@needs_kernel
def test_descriptors_are_closed_and_forked_children_go_on(output: Path) -> None:
    facts = json.loads(output.with_suffix(".json").read_text())

    assert facts["after"] == facts["before"]
    assert facts["child"] == 0


@needs_kernel
def test_a_profile_says_what_was_counted(output: Path) -> None:
    profile = read_profile(output)

    assert profile.provenance["collectors"]["cpu"]["cpu_counters"] == {"events": ("page_faults",)}
    assert not profile.dropped


def test_a_run_goes_on_without_counters_and_keeps_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "target.py").write_text("import sys; sys.exit(3)")
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cpu", "-m", "counters"]

    done = subprocess.run(
        [*command, "target.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 3, done.stderr
    assert (tmp_path / "target.proton").exists()


def test_the_mode_keeps_the_contract_of_backends() -> None:
    assert_backend_contract(cpu.BACKEND, modes=("", "counters"))
