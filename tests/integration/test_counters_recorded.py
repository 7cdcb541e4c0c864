"""Hardware counters from the double's samples to the rows of a file, and to a timeline."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
HEAD = f"""
import os, random, signal, sys, time; sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
gpu.context_created(1)
choose = random.Random(1)

def work(is_over):
    end = time.monotonic() + 90
    while not is_over() and time.monotonic() < end:
        name = choose.choice(["copy_kernel", "gemm_kernel"])
        with proton.scope(name.replace("kernel", "scope")):
            gpu.launch_with(name, duration_ns=choose.randrange(60_000, 90_000))
        time.sleep(120e-6)  # paced, and not busy: bursts are decoded when nothing else runs

def more_bursts():
    wanted = gpu.pm_bursts() + 4
    work(lambda: gpu.pm_bursts() >= wanted)

def sampling_process():
    work(lambda: gpu.pm_bursts() >= 1)
    children = Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
    words = {{int(n): Path(f"/proc/{{n}}/cmdline").read_text() for n in children}}
    (found,) = (n for n, text in words.items() if "sampling_program" in text)
    return found
"""
PROGRAM = HEAD + "more_bursts()\n"
# It tells its own process and the one that samples, and works until it is ended.
ENDLESS = "print(os.getpid(), sampling_process(), flush=True)\nwhile True: more_bursts()\n"
COSTS = ("open_ns", "decode_ns", "info_ns", "evaluate_ns", "thread_ns", "process_ns")
COMMAND = [sys.executable, "-m", "proton_bench", "-n", "out", "-m", "counters", "-b", "cupti"]


def variables(folder: Path, doubles: Doubles, **more: str) -> dict[str, str]:
    """Return an environment in which the process that samples sees the program's kernels."""
    return doubles.environment(FAKE_CUPTI_CLOCK="real", FAKE_CUPTI_GPU=str(folder / "gpu"), **more)


def record(
    folder: Path, doubles: Doubles, *options: str, program: str = PROGRAM, **more: str
) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, *options, "program.py"],
        cwd=folder,
        env=variables(folder, doubles, **more),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


@contextmanager
def endless(
    folder: Path, doubles: Doubles, before: str = ""
) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Yield a recorded program, and a pidfd and the group of its process that samples."""
    (folder / "program.py").write_text(HEAD + before + ENDLESS, encoding="utf-8")
    with subprocess.Popen(
        [*COMMAND, "program.py"],
        cwd=folder,
        env=variables(folder, doubles),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        process, sampling = map(int, running.stdout.readline().split())
        assert process == running.pid
        watched = os.pidfd_open(sampling)
        try:
            yield running, watched, os.getpgid(sampling)
        finally:
            running.kill()
            os.close(watched)


def has_ended(watched: int) -> bool:
    return bool(select.select([watched], [], [], 60)[0])


def counter_facts(folder: Path, name: str = "out") -> dict[str, Any]:
    profile = read_profile(folder / f"{name}.proton")
    return dict(profile.provenance["collectors"]["cupti"]["counters"])


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
    facts = counter_facts(tmp_path)
    assert (facts["lost_bursts"], facts["error"]) == (0, "")
    assert min(facts[cost] for cost in COSTS) > 0
    assert not list(tmp_path.glob("*.pid*"))  # the process that samples has no profile


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
    # A sample takes 10 000 ns: one that begins a nanosecond before its copy has 79.992 %.
    busy_us = [each["ts"] for each in dram if each["args"]["%"] > 79.995]
    copies = [event for event in events if event["name"] == "copy_kernel" and event["ph"] == "X"]
    spans = [(each["ts"] - 0.001, each["ts"] + each["dur"] + 0.001) for each in copies]
    assert busy_us
    # On the clock of the kernels: samples that are full of a copy begin inside of one.
    assert all(any(start <= at <= end for start, end in spans) for at in busy_us)


def test_a_sampling_process_that_is_killed_ends_the_counters(
    tmp_path: Path, cupti_doubles: Doubles
) -> None:
    kill = "more_bursts()\nos.kill(sampling_process(), signal.SIGKILL)\n"
    after = "end = time.monotonic() + 0.5\nwork(lambda: time.monotonic() > end)\n"
    record(tmp_path, cupti_doubles, program=HEAD + kill + after)

    facts = counter_facts(tmp_path)

    assert (facts["lost_bursts"], facts["refused_devices"]) == (1, 1)
    assert "counters ended" in facts["error"]
    dram = values(read_profile(tmp_path / "out.proton"), "dram_pct")
    assert dram["copy_kernel"] == pytest.approx(80.0, abs=3.0)


def test_without_a_sampling_process_the_run_goes_on(tmp_path: Path, cupti_doubles: Doubles) -> None:
    program = """
sys.executable = "/does/not/exist/python"
session = proton.start("own", backend="cupti", mode="counters")
end = time.monotonic() + 0.5
work(lambda: time.monotonic() > end)
proton.finalize(session, output_format="proton")
"""
    (tmp_path / "program.py").write_text(HEAD + program, encoding="utf-8")
    command = [sys.executable, "program.py"]
    subprocess.run(command, cwd=tmp_path, env=variables(tmp_path, cupti_doubles), check=True)

    facts = counter_facts(tmp_path, "own")

    assert (facts["bursts"], facts["lost_bursts"]) == (0, 0)
    assert "/does/not/exist" in facts["error"]
    assert values(read_profile(tmp_path / "own.proton"), "count")["copy_kernel"] > 0


def test_samples_without_values_are_counted(tmp_path: Path, cupti_doubles: Doubles) -> None:
    fault = "cuptiProfilerHostEvaluateToGpuValues=999"
    record(tmp_path, cupti_doubles, FAKE_CUPTI_FAIL=fault)

    facts = counter_facts(tmp_path)

    assert facts["lost_samples"] > 0
    assert (facts["samples"], facts["lost_bursts"]) == (0, 0)


def test_the_sampling_process_has_the_lowest_priority_and_no_file_of_the_target(
    tmp_path: Path, cupti_doubles: Doubles
) -> None:
    program = """
os.set_inheritable(os.open("/dev/zero", os.O_RDONLY), True)
process = sampling_process()
files = os.popen(f"ls -l /proc/{process}/fd").read()
Path("seen").write_text(f"{os.getpriority(os.PRIO_PROCESS, process)} {files}")
"""
    record(tmp_path, cupti_doubles, program=HEAD + program)

    priority, _, files = (tmp_path / "seen").read_text(encoding="utf-8").partition(" ")

    assert priority == "19"
    assert "socket:" in files
    assert "/dev/zero" not in files


def test_the_sampling_process_ends_with_a_killed_target_that_left_a_forked_child(
    tmp_path: Path, cupti_doubles: Doubles
) -> None:
    fork = """
sampling_process()
parent_ends, end = os.pipe()
is_written, written = os.pipe()
if os.fork() == 0:
    held = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    Path("held").write_text(" ".join(held))
    os.write(written, b"x")
    os.close(end)
    os.read(parent_ends, 1)
    os._exit(0)
os.read(is_written, 1)
"""
    with endless(tmp_path, cupti_doubles, fork) as (running, watched, _):
        running.kill()

        assert has_ended(watched)
    assert "socket:" not in (tmp_path / "held").read_text(encoding="utf-8")


def test_ctrl_c_of_a_terminal_loses_no_burst(tmp_path: Path, cupti_doubles: Doubles) -> None:
    with endless(tmp_path, cupti_doubles) as (running, watched, group):
        assert group not in {running.pid, os.getpgrp()}
        os.killpg(running.pid, signal.SIGINT)

        assert running.wait(120) == 130
        assert has_ended(watched)
    facts = counter_facts(tmp_path)
    assert (facts["lost_bursts"], facts["error"]) == (0, "")
    assert facts["bursts"] > 0
