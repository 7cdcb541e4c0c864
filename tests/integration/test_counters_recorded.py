"""Hardware counters from the double's samples to the rows of a file, and to a timeline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from proton_bench.analysis.metrics.derive import derive
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

__all__ = ["cupti_doubles"]

TESTS = Path(__file__).parents[1]
# The double's DRAM is busy in 80 % of a copy and in 20 % of a product, the tensor pipes in 90 % of
# a product, and a cycle takes a nanosecond. The order of kernels varies, as their lengths do.
PROGRAM = f"""
import random, sys, time; sys.path.insert(0, {str(TESTS)!r})
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
gpu.context_created(1)
choose = random.Random(1)
end = time.monotonic() + 90
while gpu.pm_bursts() < 4 and time.monotonic() < end:
    name = choose.choice(["copy_kernel", "gemm_kernel"])
    with proton.scope(name.replace("kernel", "scope")):
        gpu.launch_with(name, duration_ns=choose.randrange(60_000, 90_000))
    time.sleep(120e-6)  # paced, and not busy: bursts are decoded when nothing else runs
"""


def record(folder: Path, doubles: Doubles, *options: str, **variables: str) -> None:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "proton_bench", "-n", "out", "-m", "counters", "-b", "cupti"]
    done = subprocess.run(
        [*command, *options, "program.py"],
        cwd=folder,
        env=doubles.environment(FAKE_CUPTI_CLOCK="real", **variables),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def values(profile: Profile, metric: str) -> dict[str, Any]:
    found = derive(profile, [metric])[0].to_list()
    return {profile.name(row): found[row] for row in range(len(profile))}


def test_shares_of_kernels_come_from_samples_of_the_device(
    tmp_path: Path, cupti_doubles: Doubles
) -> None:
    record(tmp_path, cupti_doubles)

    profile = read_profile(tmp_path / "out.proton")

    dram, tensor = values(profile, "dram_pct"), values(profile, "tensor_pct")
    assert dram["copy_kernel"] == pytest.approx(80.0, abs=3.0)
    assert dram["gemm_kernel"] == pytest.approx(20.0, abs=3.0)
    assert dram["copy_scope"] == dram["copy_kernel"]
    assert tensor["gemm_kernel"] == pytest.approx(90.0, abs=3.0)
    assert tensor["copy_kernel"] == pytest.approx(0.0, abs=3.0)
    times, whole = values(profile, "counter_time (ns)"), values(profile, "time (ns)")
    assert times["copy_kernel"] == whole["copy_kernel"]
    assert values(profile, "sm_cycles")["ROOT"] == pytest.approx(times["ROOT"], rel=0.01)
    assert 0 < values(profile, "counter_coverage")["ROOT"] <= 100.0


def test_merged_runs_have_the_shares_of_both(tmp_path: Path, cupti_doubles: Doubles) -> None:
    record(tmp_path, cupti_doubles)
    (tmp_path / "out.proton").rename(tmp_path / "first.proton")
    record(tmp_path, cupti_doubles)
    merge = [sys.executable, "-m", "proton_bench", "merge", "first.proton", "out.proton"]

    subprocess.run([*merge, "-o", "both.proton"], cwd=tmp_path, check=True, timeout=120)

    files = [read_profile(tmp_path / f"{name}.proton") for name in ("first", "out", "both")]
    parts = [values(profile, "counter_sampled (ns)")["copy_kernel"] for profile in files]
    assert parts[2] == pytest.approx(parts[0] + parts[1])
    assert values(files[2], "dram_pct")["copy_kernel"] == pytest.approx(80.0, abs=3.0)
    errors = [values(profile, "dram_err")["copy_kernel"] for profile in files]
    assert errors[2] <= max(errors[:2]) + 0.001


def test_samples_are_tracks_of_a_timeline(tmp_path: Path, cupti_doubles: Doubles) -> None:
    record(tmp_path, cupti_doubles, "-d", "trace", PROTON_BENCH_TRACE_FORMATS="chrome_trace")

    events = json.loads((tmp_path / "out.chrome_trace").read_bytes())["traceEvents"]

    dram = [event for event in events if event["name"] == "GPU 0 DRAM in bursts"]
    busy_us = [each["ts"] for each in dram if each["args"]["%"] > 79.9]
    copies = [event for event in events if event["name"] == "copy_kernel" and event["ph"] == "X"]
    spans = [(each["ts"] - 0.001, each["ts"] + each["dur"] + 0.001) for each in copies]
    assert busy_us
    # On the clock of the kernels: samples that are full of a copy begin inside of one.
    assert all(any(start <= at <= end for start, end in spans) for at in busy_us)
