"""Facts about this run that a later reader of its profile will ask for; only cheap ones."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.recording.gpu.nvidia import gpu_facts
from proton_bench.recording.job_ranks import rank_facts
from proton_bench.recording.native import native
from proton_bench.recording.session.options import CapturePlan

_CALLS = 32
_ROUNDS = 8
_OPERATORS_PER_NODE = 2  # autograd's frame around the node, and the operator that the node calls


@dataclass(frozen=True, slots=True)
class RecordCosts:
    """Nanoseconds per record.

    Attributes:
        operator_ns: Of an operator.
        node_ns: Of a node of a backward pass, without the operators around and inside.
    """

    operator_ns: float
    node_ns: float


def measure_record_costs(*, has_nodes: bool) -> RecordCosts | None:
    """Measure them with the observers of now, in some milliseconds.

    A chain of small operators runs with and without records on the calling thread. No session sees
    them, no device and no random numbers are used, and what the program set for torch stays.

    Args:
        has_nodes: Measure backward passes too. The first one of a process starts threads, so not
            before the program ran one.

    Returns:
        None where they cannot be measured: torch is not imported, its own profiler runs, which
        would see the chain, or the program did something to torch that forbids it.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or torch.autograd._profiler_enabled():
        return None
    enabled = native.enable_torch_records(enabled=True)
    if enabled is None:
        return None
    native.mute_ops()
    try:
        with _plain(torch):
            return _measure(torch, has_nodes=has_nodes)
    except Exception:  # noqa: BLE001 - an estimate is not worth the profile
        return None
    finally:
        native.unmute_ops()
        native.enable_torch_records(enabled=enabled)


@contextlib.contextmanager
def _plain(torch: Any) -> Iterator[None]:
    """Run operators as if the program had changed nothing about them."""
    with (
        torch._C.DisableTorchFunction(),
        torch._C._DisableTorchDispatch(),
        torch.inference_mode(mode=False),
        torch.enable_grad(),
    ):
        yield


def _measure(torch: Any, *, has_nodes: bool) -> RecordCosts:
    start = torch.zeros(1, dtype=torch.float32, device="cpu", requires_grad=True)

    def forward() -> Any:
        end = start
        for _ in range(_CALLS):
            end = end.neg()
        return end

    passes: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for _ in range(_ROUNDS):
        for enabled, times in passes.items():
            native.enable_torch_records(enabled=enabled)
            forward()  # torch lists its observers anew
            end, forward_ns = _timed(forward)
            backward_ns = 0
            if has_nodes:
                backward = functools.partial(torch.autograd.grad, end, start)
                _, backward_ns = _timed(backward)
            times.append((forward_ns, backward_ns))
    least_ns = {on: [min(part) for part in zip(*each, strict=True)] for on, each in passes.items()}
    forward_added_ns, backward_added_ns = (
        (observed - bare) / _CALLS
        for observed, bare in zip(least_ns[True], least_ns[False], strict=True)
    )
    operator_ns = max(forward_added_ns, 0.0)
    return RecordCosts(operator_ns, max(backward_added_ns - _OPERATORS_PER_NODE * operator_ns, 0.0))


def _timed(work: Callable[[], Any]) -> tuple[Any, int]:
    start_ns = time.perf_counter_ns()
    result = work()
    return result, time.perf_counter_ns() - start_ns


_GIT_TIMEOUT_S = 2.0
_GIT_VARIABLES = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_LIBRARIES = ("torch", "triton", "numpy")


def start_facts(plan: CapturePlan) -> dict[str, Any]:
    """Return what is known when a session starts.

    Times are int64 nanoseconds: ``start_time_ns`` of the real-time clock, and
    ``realtime_base_ns`` is what to add to the profile's CLOCK_MONOTONIC times to get it.
    """
    now_ns = time.time_ns()
    facts: dict[str, Any] = {
        "proton_bench": native.version,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "backend": plan.backend_names,
        "mode": "+".join(dict.fromkeys(mode.text for mode in plan.modes if mode.text)),
        "context": plan.context,
        "hook": type(plan.hook).__name__ if plan.hook is not None else None,
        "command": list(plan.command),
        "directory": _directory(),
        "host": os.uname().nodename,
        "system": f"{os.uname().sysname} {os.uname().release} {os.uname().machine}",
        "pid": os.getpid(),
        "start_time_ns": now_ns,
        "realtime_base_ns": now_ns - time.monotonic_ns(),
    }
    if plan.revision:
        facts["git"] = {"revision": plan.revision, "dirty": False}
    process_started_ns = _process_start_ns(now_ns)
    if process_started_ns is not None:
        facts["process_start_time_ns"] = process_started_ns
    if plan.host_rate_hz:
        facts["host_rate_hz"] = plan.host_rate_hz
    facts.update(rank_facts(os.environ))
    if "PYTEST_XDIST_WORKER" in os.environ:
        facts["worker"] = os.environ["PYTEST_XDIST_WORKER"]
    gpus = gpu_facts()
    if gpus:
        facts["gpus_at_start"] = gpus
    return facts


def end_facts(
    started: Mapping[str, Any], counts: Mapping[str, int], stopped_ns: int
) -> dict[str, Any]:
    """Return the facts of the start and what became known until now.

    Args:
        started: What ``start_facts`` returned.
        counts: The session's counts of records; they give the profiler's own estimated cost.
        stopped_ns: When the session stopped to record, CLOCK_MONOTONIC.
    """
    # By the clock that is never set, so that a run is as long as it took.
    ended_ns = stopped_ns + int(started["realtime_base_ns"])
    facts = {**started, "end_time_ns": ended_ns, **_library_versions()}
    facts["estimated_cost_ns"] = estimated_cost_ns(counts)
    if "gpus_at_start" in started:
        facts["gpus_at_end"] = gpu_facts()
    git = started.get("git") or git_facts(str(started["directory"]))
    if git:
        facts["git"] = git
    return facts


def estimated_cost_ns(counts: Mapping[str, int]) -> int:
    """Estimate what recording took from the target.

    Scopes, layers and operators were timed where the target called us, some of many. What torch
    itself spends to show an operator, and what a launch or a value costs, is measured now.

    Args:
        counts: The session's counts of records, and of what the profiler did meanwhile.
    """
    events = counts["launches"] + counts["metrics"]
    operators, nodes = counts["operators"], counts["nodes"]
    cost_ns = 0.0
    if operators or nodes:
        costs = measure_record_costs(has_nodes=nodes > 0)
        if costs is not None:
            cost_ns = operators * costs.operator_ns + nodes * costs.node_ns
    cost_ns += events * native.event_cost_ns()
    return round(cost_ns) + counts["calls_ns"] + counts["drain_ns"]


@functools.lru_cache(maxsize=8)
def git_facts(directory: str) -> dict[str, Any]:
    """Return ``revision`` and ``dirty`` of the work tree around a folder, {} outside of one.

    Args:
        directory: Absolute path. Asked once per process; git gets two seconds.
    """
    if not _is_in_work_tree(directory):
        return {}
    import subprocess

    def ask(*words: str) -> str:
        # The folder may be another user's: its settings must not start a program.
        command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
        done = subprocess.run(
            [*command, "-C", directory, *words],
            capture_output=True,
            check=True,
            timeout=_GIT_TIMEOUT_S,
            env={**os.environ, **_GIT_VARIABLES},
            stdin=subprocess.DEVNULL,
        )
        return done.stdout.decode("utf-8", "surrogateescape")

    try:
        settings = ask("config", "--show-scope", "--name-only", "--list", "-z").split("\0")
        state = [*_without_filters(settings), "status", "--porcelain=v2", "--branch"]
        lines = ask(*state, "--untracked-files=no", "--ignore-submodules=all").splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    oids = [line.rpartition(" ")[2] for line in lines if line.startswith("# branch.oid ")]
    if not oids:
        return {}
    return {"revision": oids[0], "dirty": any(not line.startswith("#") for line in lines)}


def _without_filters(settings: list[str]) -> list[str]:
    """Return the options that turn off filters of contents that a repository's own settings name.

    Args:
        settings: Scopes and names of all settings in turn.
    """
    options: list[str] = []
    for scope, name in zip(settings[::2], settings[1::2], strict=False):
        if scope in {"local", "worktree"} and name.startswith("filter."):
            driver = name.rpartition(".")[0]
            for key in ("clean", "process"):
                options += ["-c", f"{driver}.{key}="]
            options += ["-c", f"{driver}.required=false"]
    return options


def _is_in_work_tree(directory: str) -> bool:
    while True:
        if os.path.exists(os.path.join(directory, ".git")):
            return True
        parent = os.path.dirname(directory)
        if parent == directory:
            return False
        directory = parent


def _process_start_ns(now_ns: int) -> int | None:
    """Return when this process began by the real-time clock, to a clock tick of the kernel."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # After the name, which may hold anything, comes field 3.
            fields = file.read().rpartition(b")")[2].split()
        ticks = int(fields[22 - 3])
    except (OSError, ValueError, IndexError):
        return None
    age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * 10**9 // os.sysconf("SC_CLK_TCK")
    return now_ns - max(age_ns, 0)


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return "/"


def _library_versions() -> dict[str, str]:
    """Versions of what the target imported; nothing is imported for it."""
    versions: dict[str, str] = {}
    for name in _LIBRARIES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = str(version)
    torch_version = sys.modules.get("torch.version")
    for name in ("cuda", "hip"):
        version = getattr(torch_version, name, None)
        if version:
            versions[name] = str(version)
    return versions
