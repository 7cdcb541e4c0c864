"""The section of ``proton doctor`` on CUPTI: libraries, other profilers, privileges, and a test.

CUPTI and CUDA are opened in child processes that end, never in this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proton_bench.errors import BackendUnavailableError
from proton_bench.plugin import Finding, Status
from proton_bench.recording.counters.gpm import gpm_obstacle
from proton_bench.recording.gpu.nvidia import gpu_facts
from proton_bench.support.child import run_child
from proton_bench_plugins.cupti import selftest, version_probe
from proton_bench_plugins.cupti.availability import find_obstacle
from proton_bench_plugins.cupti.library import Candidate, find_candidates
from proton_bench_plugins.cupti.privileges import ADVICE, Permission, read_privileges

__all__ = [
    "counter_finding",
    "examine",
    "library_findings",
    "sampling_finding",
    "subscriber_finding",
    "trial_finding",
]

_OLDEST = 22  # CUPTI's number of CUDA 12.4
# Nsight and others are loaded into every process by these.
_INJECTION = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
_PRELOADED = ("injection", "nsight", "nsys", "cupti", "parcagpu")
_NAME = "cupti"
_WAYS = {"sampling": "kernels by sampling", "ranges": "kernels exactly (counters=exact)"}
_WHOLE = ("off", None)

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def examine() -> list[Finding]:
    """Return all findings; takes a second or two with a GPU."""
    try:
        candidates = find_candidates()
    except BackendUnavailableError as error:
        return [Finding("libcupti", Status.PROBLEM, str(error), provides=(_NAME,))]
    obstacle = find_obstacle()
    return [
        *library_findings(candidates),
        subscriber_finding(os.environ),
        sampling_finding(),
        counter_finding(candidates, obstacle, gpm_obstacle=gpm_obstacle()),
        trial_finding(candidates, obstacle),
    ]


def library_findings(candidates: Sequence[Candidate], run: Run | None = None) -> list[Finding]:
    """Return each libcupti with its version, and which of them is used and why.

    Args:
        candidates: As ``find_candidates`` returns them.
        run: Runs a command; ``subprocess`` by default.
    """
    ask = run or run_child
    found: list[Finding] = []
    files: list[str] = []
    for path, origin, only_if_loaded in candidates:
        if only_if_loaded:
            continue
        is_named = os.path.sep in path
        done = ask([sys.executable, "-I", "-S", version_probe.__file__, path])
        version, _, file = done.stdout.partition("\n")[0].strip().partition(" ")
        if not version.isdecimal():
            if is_named:
                found.append(_unloadable(f"libcupti {len(found) + 1}", path, done))
            continue
        if os.path.realpath(file) in files:
            continue
        name, value = f"libcupti {len(found) + 1}", f"CUDA {_release(int(version))}, {file}"
        status, advice = _choice(int(version), origin, is_taken=bool(files))
        found.append(Finding(name, status, value, advice))
        files.append(os.path.realpath(file))
    advice = "install nvidia-cuda-cupti, or name one with PROTON_BENCH_CUPTI_LIB"
    return found or [Finding("libcupti", Status.ABSENT, "none found", advice)]


def _choice(version: int, origin: str, *, is_taken: bool) -> tuple[Status, str]:
    if is_taken:
        return Status.OK, f"{origin}: not used, an earlier one loads"
    if version < _OLDEST:
        advice = "used, but too old: 12.4 is the oldest; name another with PROTON_BENCH_CUPTI_LIB"
        return Status.PROBLEM, f"{origin}: {advice}"
    if origin.isupper():
        return Status.OK, f"used: {origin} names it"
    why = "the first that loads, unless the program has loaded one before"
    return Status.OK, f"{origin}: used, {why}"


def _unloadable(name: str, path: str, done: subprocess.CompletedProcess[str]) -> Finding:
    lines = done.stderr.strip().splitlines()
    why = lines[-1] if lines else _ending(done.returncode)
    return Finding(name, Status.ABSENT, path, f"does not load: {why}")


def _release(version: int) -> str:
    """Return "12.8" of 26 and "13.0" of 130001, as the native module does."""
    if version >= 100_000:
        return f"{version // 10_000}.{version // 100 % 100}"
    return f"12.{version - 18}" if version >= 18 else f"before 12 ({version})"


def subscriber_finding(environ: Mapping[str, str]) -> Finding:
    """Return whether the environment loads another profiler into programs.

    Args:
        environ: The environment to check.
    """
    set_ = [
        f"{name}={environ[name]}"
        for name in _INJECTION
        # A libcupti there delivers NVTX ranges to any subscriber, as our sessions do.
        if environ.get(name) and not os.path.basename(environ[name]).startswith("libcupti")
    ]
    preloaded = environ.get("LD_PRELOAD", "").replace(":", " ").split()
    set_ += [
        f"LD_PRELOAD={path}"
        for path in preloaded
        if any(word in os.path.basename(path).lower() for word in _PRELOADED)
    ]
    if not set_:
        return Finding("other profilers", Status.OK, "none is loaded into programs")
    advice = "CUPTI serves one profiler at a time: unset this, or run without nsys and ncu"
    return Finding("other profilers", Status.NOTE, ", ".join(set_), advice)


def sampling_finding(
    parameters: Path = Path("/proc/driver/nvidia/params"),
    process: Path = Path("/proc/self/status"),
) -> Finding:
    """Return whether this user may sample program counters and read hardware counters.

    Args:
        parameters: Parameters of the driver.
        process: Status of a process, with its capabilities.
    """
    name = "counters and PC sampling"
    found = read_privileges(parameters, process)
    if found.permission is Permission.UNKNOWN:
        return Finding(name, Status.NOTE, found.text)
    if found.permission is not Permission.REFUSED:
        return Finding(name, Status.OK, found.text)
    advice = f"kernels are recorded anyway; for `-m pcsampling` {ADVICE}"
    return Finding(name, Status.NOTE, found.text, advice)


def counter_finding(
    candidates: Sequence[Candidate],
    without: str | None,
    *,
    gpm_obstacle: str,
    gpus: Sequence[Mapping[str, Any]] | None = None,
    permission: Permission | None = None,
    run: Run | None = None,
) -> Finding:
    """Return how `-m counters` can measure here: per kernel, over the whole run, or not at all.

    Whether another profiler uses the counters shows only when a run opens them.

    Args:
        candidates: Candidates for libcupti.
        without: Why the backend cannot run here, or None.
        gpm_obstacle: Why no GPU has GPM, or "".
        gpus: Facts of GPUs; None asks the driver.
        permission: Permission of this process; None reads it.
        run: Runs a command; ``subprocess`` by default.
    """
    obstacle, advice = "", ""
    ways = _counter_ways(candidates, run or run_child)
    held = read_privileges().permission if permission is None else permission
    known = gpu_facts() if gpus is None else gpus
    sliced = [gpu for gpu in known if gpu.get("mig") not in _WHOLE]
    if without:
        obstacle = without
    elif not ways:
        obstacle, advice = "this libcupti has no counters", "they need CUDA 12.6 or newer"
    elif held is Permission.REFUSED:
        obstacle, advice = held.value, ADVICE
    elif sliced:
        obstacle, advice = "the GPU is divided (MIG)", "use a whole GPU: nvidia-smi -mig 0"
    kernels = [text for way, text in _WAYS.items() if way in ways] if not obstacle else []
    found = [*kernels, *([] if gpm_obstacle else ["the whole run (GPM)"])]
    missing = dict.fromkeys(each for each in (obstacle, gpm_obstacle) if each)
    value = ", ".join(found) or "none"
    if missing:
        value += f"; not more: {'; '.join(missing)}" if found else f": {'; '.join(missing)}"
    status = Status.OK if kernels else Status.NOTE
    return Finding("hardware counters", status, value, advice)


def _counter_ways(candidates: Sequence[Candidate], run: Run) -> list[str]:
    """Return the ways to read counters of the first libcupti that loads."""
    for path, _, only_if_loaded in candidates:
        if not only_if_loaded:
            done = run([sys.executable, "-I", "-S", version_probe.__file__, path])
            lines = done.stdout.splitlines()
            if lines and lines[0].partition(" ")[0].isdecimal():
                return lines[1].split() if len(lines) > 1 else []
    return []


def trial_finding(
    candidates: Sequence[Candidate], obstacle: str | None, run: Run | None = None
) -> Finding:
    """Return whether a kernel can be recorded, tested in a child process.

    Args:
        candidates: Candidates for libcupti.
        obstacle: Why the test is unnecessary, or None.
        run: Runs a command; ``subprocess`` by default.
    """
    name = "recording a kernel"
    if obstacle is not None:
        return Finding(name, Status.ABSENT, "not tried", obstacle, provides=(_NAME,))
    module = selftest.__name__
    done = (run or run_child)([sys.executable, "-P", "-m", module, json.dumps(list(candidates))])
    answers = [line for line in done.stdout.splitlines() if line.startswith(selftest.MARK)]
    if not answers:
        last = done.stderr.strip().splitlines()[-1:]
        why = "; ".join([_ending(done.returncode), *last])
        advice = "try another libcupti with PROTON_BENCH_CUPTI_LIB; the driver's log is in dmesg"
        return Finding(name, Status.PROBLEM, f"the test {why}", advice, provides=(_NAME,))
    return _judge(name, json.loads(answers[-1].removeprefix(selftest.MARK)))


def _judge(name: str, result: Mapping[str, Any]) -> Finding:
    if "error" in result:
        return Finding(name, Status.PROBLEM, result["error"], provides=(_NAME,))
    facts = result["facts"]
    with_ = f"libcupti {facts['version']}, driver of CUDA {facts['driver']}"
    if result["kernel"]:
        value = f"CUPTI starts ({with_}); a kernel could not be launched: {result['kernel']}"
        advice = "check in the section gpu whether the GPU is full or used by another process"
        return Finding(name, Status.NOTE, value, advice, provides=(_NAME,))
    if result["records"] == 0:
        value = f"a kernel ran, but its record did not arrive ({with_})"
        advice = "name a libcupti that fits the driver with PROTON_BENCH_CUPTI_LIB"
        return Finding(name, Status.PROBLEM, value, advice, provides=(_NAME,))
    return Finding(name, Status.OK, f"works ({with_})", provides=(_NAME,))


def _ending(code: int) -> str:
    return f"died of signal {-code}" if code < 0 else f"ended with code {code}"
