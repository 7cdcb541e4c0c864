"""PC sampling beside other modes, backends and options, and its errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.fixtures import cupti_doubles
from fakes.sampled_runs import PROGRAM, Run, run

from proton_bench.analysis.kernels.gpu_facts import sampling_facts
from proton_bench.analysis.kernels.source_lines import sampled_source
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.plugin.backend import assign_modes
from proton_bench_plugins.cupti import BACKEND
from proton_bench_plugins.instrumentation import BACKEND as INSTRUMENTATION

__all__ = ["cupti_doubles", "run"]


def samples_of(folder: Path) -> int:
    profile = read_profile(folder / "out.proton")
    facts = sampling_facts(profile)
    assert facts is not None
    assert sampled_source(profile).samples.total == facts.samples
    return facts.samples


def refused(done: subprocess.CompletedProcess[str], status: int) -> str:
    assert (done.returncode, done.stdout) == (status, "")
    (line,) = done.stderr.splitlines()
    return line


def test_the_period_that_was_taken_is_said_with_the_one_that_was_asked_for(
    run: Run, tmp_path: Path
) -> None:
    run(PROGRAM, "pcsampling:interval=1000")

    view = [sys.executable, "-m", "proton_bench", "view", "out.proton"]
    shown = subprocess.run(view, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "one per 1 024 cycles of a multiprocessor (the nearest to 1 000 cycles)" in shown.stdout


@pytest.mark.parametrize(
    ("options", "graph"), [("", "node"), (":exact=scope", "launch"), (":exact=launch", "node")]
)
def test_graphs_by_node_or_launch_are_sampled(
    options: str, graph: str, run: Run, tmp_path: Path
) -> None:
    done = run(PROGRAM, f"pcsampling:interval=1024:graph={graph}:copies=on{options}")

    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    assert samples_of(tmp_path) > 0


def test_a_timeline_is_recorded_beside_samples(run: Run, tmp_path: Path) -> None:
    done = run(PROGRAM, "pcsampling:interval=1024", "-b", "cupti", "-d", "trace")

    assert done.returncode == 0, done.stderr
    assert samples_of(tmp_path) > 0
    assert {"out.proton", "out.pftrace"} <= {path.name for path in tmp_path.iterdir()}


def test_operators_of_the_cpu_are_recorded_beside_samples(run: Run, tmp_path: Path) -> None:
    done = run(PROGRAM, "pcsampling:interval=1024", "-b", "cupti+cpu")

    assert done.returncode == 0, done.stderr
    assert samples_of(tmp_path) > 0


def test_sampling_and_scopes_inside_kernels_go_together() -> None:
    sampling, inside = assign_modes([BACKEND, INSTRUMENTATION], "pcsampling:interval=64")

    assert (sampling.name, dict(sampling.options)) == ("pcsampling", {"interval": "64"})
    assert (inside.name, dict(inside.options)) == ("", {})


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("pcsampling:periodic_flushing", "malformed option 'periodic_flushing'"),
        ("pcsampling,periodic_flushing", "unsupported mode: pcsampling,periodic_flushing"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(mode: str, words: str, run: Run) -> None:
    assert words in refused(run("print('it ran')", mode), 2)


def test_a_backend_that_does_not_sample_refuses_it(run: Run) -> None:
    line = refused(run("print('it ran')", "pcsampling", "-b", "cpu"), 2)

    assert "unsupported mode: pcsampling; choose one of cpu" in line
    with pytest.raises(UsageError, match="pcsampling"):
        assign_modes([INSTRUMENTATION], "pcsampling")


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("cuptiPCSamplingEnable=26", "another process samples this GPU"),
        ("cuptiPCSamplingSetConfigurationAttribute=35", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("cuptiPCSamplingGetNumStallReasons=33", "virtual GPU does not allow profiling"),
        ("cuptiPCSamplingGetStallReasons=43", "MIG slice cannot be profiled"),
    ],
)
def test_a_refusal_says_why_and_what_to_do_once(failure: str, words: str, run: Run) -> None:
    line = refused(run("print('it ran')", "pcsampling", FAKE_CUPTI_FAIL=failure), 69)

    assert line.count(words) == (2 if "NVreg" in words else 1)  # as a parameter, and in a file
    assert "administrators: run with" not in line


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("exact", ["off", "scope", "launch"])
@pytest.mark.parametrize(
    "failure", ["GetData=999", "Disable=999", "Start@2=7", "Stop=999", "GetData=8"]
)
def test_calls_that_fail_later_leave_the_program_and_its_kernels_alone(
    failure: str, exact: str, run: Run, tmp_path: Path
) -> None:
    mode = f"pcsampling:interval=1024:exact={exact}"
    done = run(PROGRAM + "print('it ran')\n", mode, FAKE_CUPTI_FAIL=f"cuptiPCSampling{failure}")

    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr
    profile = read_profile(tmp_path / "out.proton")
    assert profile.inclusive("count")[0] == 3
    called = not failure.startswith("Start") or exact != "off"  # which starts once
    assert ("warning" in done.stderr) == called
