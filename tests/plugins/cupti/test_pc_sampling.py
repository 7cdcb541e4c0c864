"""The mode ``pcsampling`` through ``proton`` and the library, on the doubles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.fixtures import cupti_doubles
from fakes.sampled_runs import PROGRAM, Run, run

from proton_bench.analysis.kernels.gpu_facts import SamplingFacts, sampling_facts
from proton_bench.analysis.kernels.source_lines import sampled_source
from proton_bench.formats.registry import read_profile
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

__all__ = ["cupti_doubles", "run"]


def recorded(folder: Path) -> tuple[Profile, SamplingFacts]:
    profile = read_profile(folder / "out.proton")
    facts = sampling_facts(profile)
    assert facts is not None
    return profile, facts


def rows(profile: Profile, name: str) -> dict[tuple[str, ...], int]:
    return {profile.path(row): row for row in range(len(profile)) if profile.name(row) == name}


def test_samples_stand_by_line_below_their_kernel(run: Run, tmp_path: Path) -> None:
    done = run(PROGRAM, "pcsampling:interval=1024")

    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    profile, facts = recorded(tmp_path)
    assert (facts.period_cycles, facts.is_automatic) == (1024, False)
    kernel = rows(profile, "softmax_kernel")["long", "softmax_kernel"]
    lines = [profile.name(row) for row in profile.children(kernel)]
    assert lines == [f"/src/kernels.py:{line}@softmax_kernel" for line in (10, 11, 12, 13)]
    assert {profile.kind(row) for row in profile.children(kernel)} == {FrameKind.LINE}
    (bare,) = rows(profile, "nolines_gemm").values()
    assert list(profile.children(bare)) == []
    assert profile.column("num_samples").values[bare] > 0


def test_no_sample_is_lost_between_the_device_and_the_tree(run: Run, tmp_path: Path) -> None:
    made = "\nimport json; print(json.dumps([gpu.pc_made(0), gpu.pc_made(1)]))\n"
    done = run(PROGRAM + made, "pcsampling:interval=1024")

    with_reason, not_issued = eval(done.stdout)
    profile, facts = recorded(tmp_path)
    assert facts.samples == with_reason
    assert profile.inclusive("num_stalled_samples")[0] == with_reason
    assert profile.inclusive("num_samples")[0] == with_reason + not_issued
    assert sampled_source(profile).samples.total == with_reason


def test_scopes_share_samples_by_time_and_say_that_it_is_an_estimate(
    run: Run, tmp_path: Path
) -> None:
    run(PROGRAM, "pcsampling:interval=1024")

    profile, facts = recorded(tmp_path)
    samples = profile.inclusive("num_samples")
    at = rows(profile, "softmax_kernel")
    long, short = (int(samples[at[scope, "softmax_kernel"]]) for scope in ("long", "short"))
    assert long == pytest.approx(3 * short, rel=0.01)
    assert facts.is_estimated


@pytest.mark.parametrize("exact", ["scope", "launch"])
def test_exact_samples_are_said_to_be(exact: str, run: Run, tmp_path: Path) -> None:
    done = run(PROGRAM, f"pcsampling:interval=1024:exact={exact}")

    assert done.returncode == 0, done.stderr
    _, facts = recorded(tmp_path)
    assert facts.attribution == f"exact by {exact}"
    assert facts.samples > 0


def test_a_period_is_chosen_where_none_is_named(run: Run, tmp_path: Path) -> None:
    run(PROGRAM.replace("_000_000", "_000_000_000"), "pcsampling")

    _, facts = recorded(tmp_path)
    assert facts.is_automatic
    assert facts.period_cycles >= 32
    assert facts.samples > 0


def test_dropped_samples_are_counted_and_shown(run: Run, tmp_path: Path) -> None:
    run("gpu.pc_drop(1, 500)\n" + PROGRAM, "pcsampling:interval=1024")

    _, facts = recorded(tmp_path)
    assert facts.dropped == 500
    view = [sys.executable, "-m", "proton_bench", "view", "--source", "out.proton"]
    shown = subprocess.run(view, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "DROPPED: 500 PC samples" in shown.stdout


def test_a_refusal_ends_the_run_before_the_program_and_names_the_privilege(run: Run) -> None:
    program = "print('it ran')\n" + PROGRAM

    done = run(program, "pcsampling", FAKE_CUPTI_FAIL="cuptiPCSamplingEnable=35")

    assert (done.returncode, done.stdout) == (69, "")
    (line,) = done.stderr.splitlines()
    assert "NVreg_RestrictProfilingToAdminUsers=0" in line
    assert "CAP_SYS_ADMIN" in line


def test_a_context_that_is_refused_later_is_warned_of_at_the_end(run: Run, tmp_path: Path) -> None:
    program = "gpu.context_created(2)\n" + PROGRAM + "gpu.launch_with('late', context=2)\n"

    done = run(program, "pcsampling:interval=1024", FAKE_CUPTI_FAIL="cuptiPCSamplingEnable@2=35")

    profile, facts = recorded(tmp_path)
    assert profile.inclusive("count")[0] == 4  # kernels are recorded all the same
    assert "some PC samples are missing" in done.stderr
    for text in (done.stderr, facts.error):
        assert "NVreg_RestrictProfilingToAdminUsers=0" in text


def test_files_for_upstreams_tools_have_its_metrics_alone(run: Run, tmp_path: Path) -> None:
    run(PROGRAM, "pcsampling:interval=1024")

    ours, theirs = (read_profile(tmp_path / f"out.{end}") for end in ("proton", "hatchet"))
    assert b"stalled_not_Selected" in (tmp_path / "out.hatchet").read_bytes()
    assert "not_issued_wait" in ours.columns
    assert "not_issued_wait" not in theirs.columns
    for metric in ("num_samples", "stalled_not_selected", "stalled_wait"):
        assert theirs.inclusive(metric)[0] == ours.inclusive(metric)[0]
    lines = [name for name in theirs.strings if "@" in name]
    assert lines == [name for name in ours.strings if "@" in name]
