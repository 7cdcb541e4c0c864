"""Runs slots one after the other, each in a fresh process, and keeps their profiles."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import platformdirs

from proton_bench.analysis.accounting.host_time import HOST_METRICS
from proton_bench.analysis.run import Run
from proton_bench.errors import InterruptedExperimentError, OutputError, TargetFailedError
from proton_bench.gate.experiment.arm import Arm
from proton_bench.gate.experiment.folders.kept_runs import KeptRun, KeptRuns
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.experiment.processes.command import FORMATS
from proton_bench.gate.experiment.processes.fresh_process import Launch, output_end, run_fresh
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.slot import Slot, missing
from proton_bench.gate.machine import SLOWED
from proton_bench.recording.children.children import files_of_children
from proton_bench.recording.gpu.nvidia import gpu_facts
from proton_bench.support.files import refused, remove_files
from proton_bench.support.units import count_text

__all__ = ["Disturbances", "Series", "disturbances_now"]


@contextlib.contextmanager
def machine_turn(on_wait: Callable[[], None]) -> Iterator[int]:
    """Wait for this process's turn and keep it for the block.

    Yields a file descriptor for the measured process to inherit, so that if this process is killed,
    the turn lasts until the measured process ends.

    Args:
        on_wait: Called once if another process has its turn.

    Raises:
        OutputError: The lock cannot be written.
    """
    folder = platformdirs.user_cache_dir("proton_bench")
    try:
        os.makedirs(folder, exist_ok=True)
        # The folder may be shared by machines.
        name = os.path.join(folder, f"turn-{os.uname().nodename}.lock")
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise OutputError(f"cannot write {folder!a}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield descriptor
        finally:
            # Also for the process that inherited it: its remaining children have no turn.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


# Fewer periods in which a limit stopped a container do not matter.
_STOPPED = 0.01
_CGROUPS = "sys/fs/cgroup"


def disturbances_now(
    root: Path = Path("/"),
    gpus: Callable[[], Sequence[Mapping[str, Any]]] = gpu_facts,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, ...]:
    """Return what will disturb measurements, each as half a sentence; nothing if it is quiet.

    What cannot be read is not reported.

    Args:
        root: Folder with ``proc`` and ``sys``.
        gpus: Queries the GPUs, see `gpu_facts`.
        environ: Says in ``CUDA_VISIBLE_DEVICES`` which of them count.
    """
    found = (_load(root), _limit(root), _clocks(root), *_gpus(gpus(), environ))
    return tuple(filter(None, found))


def _load(root: Path) -> str:
    """Compare the load of the last minute with the cores; measured programs need one.

    Work that has ended, such as a build before the gate, is still part of that load, but then this
    process is the only one that runs.
    """
    seen = re.match(r"(\d+\.\d+)(?: \S+ \S+ (\d+)/)?", _text(root / "proc/loadavg"))
    cores = len(re.findall(r"^cpu\d+ ", _text(root / "proc/stat"), flags=re.MULTILINE))
    if seen is None or not cores or float(seen[1]) <= max(cores - 1, 0.5) or seen[2] in {"0", "1"}:
        return ""
    plural = "" if cores == 1 else "s"
    return (
        f"load {float(seen[1]):.1f} on {cores} core{plural}: other work takes the CPU from the "
        "measured program"
    )


def _limit(root: Path) -> str:
    """Return how often the CPU limit of a group of this process stopped its processes."""
    worst = 0.0
    for folder in _groups(root):
        counts = dict(re.findall(r"^(nr_\w+) (\d+)$", _text(folder / "cpu.stat"), re.MULTILINE))
        periods = int(counts.get("nr_periods", 0))
        worst = max(worst, int(counts.get("nr_throttled", 0)) / periods if periods else 0.0)
    if worst <= _STOPPED:
        return ""
    return (
        f"the CPU limit of this container stopped it in {100.0 * worst:.0f} % of periods: give it "
        "more CPU"
    )


def _groups(root: Path) -> list[Path]:
    """Return the folders of the control groups of this process, of both versions, and above."""
    found: list[Path] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and "cpu" not in names.split(","):
            continue
        own = PurePosixPath("/", path)
        above = [each for each in (own, *own.parents) if ".." not in each.parts]
        # In a container the path may be that of the host; its own top folder is there anyway.
        for top in [f"{_CGROUPS}/{names}", f"{_CGROUPS}/cpu"] if names else [_CGROUPS]:
            found += [root / top / each.relative_to("/") for each in above]
    return found


def _clocks(root: Path) -> str:
    """Return the range of CPU clocks, if a governor changes them."""
    lows, highs, governors = [], [], set()
    for policy in sorted((root / "sys/devices/system/cpu/cpufreq").glob("policy*")):
        governor = _text(policy / "scaling_governor").strip()
        ends = [_text(policy / f"scaling_{end}_freq").strip() for end in ("min", "max")]
        if governor in {"", "performance"} or not all(end.isdecimal() for end in ends):
            continue
        low, high = (int(end) / 1e6 for end in ends)  # kHz
        if low < high:
            lows.append(low)
            highs.append(high)
            governors.add(governor)
    if not governors:
        return ""
    named = " and ".join(sorted(governors))
    return (
        f"governor {named} changes CPU clocks between {min(lows):.1f} and {max(highs):.1f} GHz: "
        "use performance"
    )


def _gpus(gpus: Sequence[Mapping[str, Any]], environ: Mapping[str, str]) -> list[str]:
    slowed: dict[str, list[str]] = {}
    shared = []
    for index, facts in enumerate(gpus):
        if not _is_visible(index, facts, environ.get("CUDA_VISIBLE_DEVICES")):
            continue
        bits = facts.get("throttle_reasons")
        for bit, name in SLOWED.items():
            if isinstance(bits, int) and bits & bit:
                slowed.setdefault(name, []).append(str(index))
        if facts.get("other_processes"):
            shared.append(str(index))
    found = [f"{name} limits clocks of GPU {', '.join(where)}" for name, where in slowed.items()]
    return found + ([f"other processes run on GPU {', '.join(shared)}"] if shared else [])


def _is_visible(index: int, facts: Mapping[str, Any], listed: str | None) -> bool:
    """Return whether CUDA shows a GPU; its numbers are the driver's if all GPUs are alike."""
    if listed is None:
        return True
    names = [each.strip() for each in listed.split(",")]
    uuid = str(facts.get("uuid", ""))
    return str(index) in names or any(each and uuid.startswith(each) for each in names)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# Triton caches the choices of its autotuners, so that later processes launch the same.
_REPLAYED = {"TRITON_CACHE_AUTOTUNING": "1"}


class Disturbances:
    """What disturbs the machine before the first run; later the runs themselves are part of it."""

    def __init__(self) -> None:
        self._are_said = False

    def say_once(self, progress: Progress) -> None:
        """Show them in one line, unless there are none or they were shown before."""
        found = () if self._are_said else disturbances_now()
        self._are_said = True
        if found:
            progress.say("; ".join(found))


class Series:
    """The finished and future runs of an experiment.

    Args:
        kept: The finished runs.
        arms: Sides by name.
        progress: Gets the progress, and before the first run what disturbs it.
        disturbances: Of the machine; a command with several series gives all of them the same.
    """

    def __init__(
        self,
        kept: KeptRuns,
        arms: Mapping[str, Arm],
        progress: Progress,
        *,
        disturbances: Disturbances | None = None,
    ) -> None:
        self.kept = kept
        self.arms = arms
        self.progress = progress
        self._disturbances = disturbances or Disturbances()

    def plan(self, slots: Sequence[Slot]) -> None:
        """Tell the progress which runs the experiment has at most."""
        self.progress.limit(len(missing(slots, self.kept)))

    def run(self, slots: Sequence[Slot]) -> None:
        """Run the missing slots in this order, and incomplete pairs again.

        Raises:
            TargetFailedError: A run failed or recorded nothing.
            InterruptedExperimentError: A signal arrived; finished runs are kept.
            OutputError: Something cannot be written.
        """
        to_come = missing(slots, self.kept)
        if to_come:
            self._disturbances.say_once(self.progress)
        self.progress.expect(len(to_come))
        with self._telling_what_is_kept():
            for slot in to_come:
                self.progress.begin(slot)
                run = self._fresh(slot)
                self.kept.add(run)
                self.progress.end(slot, run.seconds)

    def read(self, slots: Sequence[Slot]) -> dict[Slot, Run]:
        """Return the profiles of these slots."""
        by_slot = {run.slot: run for slot in slots for run in self.kept.of(slot.stage)}
        return {slot: self.kept.read(by_slot[slot]) for slot in slots}

    def _fresh(self, slot: Slot) -> KeptRun:
        arm = self.arms[slot.arm]
        name = str(self.kept.folder / slot.name)
        log = self.kept.folder / f"{slot.name}.log"
        with machine_turn(self._tell_wait) as turn:
            self._remove_remains(slot.name)
            begun_ns = time.time_ns()
            launch = Launch(
                line=arm.command.line(
                    name,
                    first_folders=arm.first_folders,
                    revision=arm.revision,
                    interpreter=arm.interpreter,
                ),
                folder=arm.command.options.folder,
                log=log,
                environment={**_REPLAYED, **os.environ, **arm.environment},
                inherited=(turn,),
            )
            ended = run_fresh(launch)
        if ended.code != 0:
            raise self._failed(slot, ended.text)
        own = f"{name}.{FORMATS[0]}"
        files = [own] if os.path.exists(own) else files_of_children(name, FORMATS, begun_ns)
        if not files:
            raise self._failed(slot, "wrote no profile")
        run = KeptRun(slot, tuple(os.path.basename(file) for file in files), ended.seconds)
        profile = self.kept.read(run).profile
        recorded = [each for name, each in profile.columns.items() if name not in HOST_METRICS]
        if not any(column.valid.any() for column in recorded):
            raise self._failed(slot, "recorded nothing: no launch and no scope")
        return run

    def _failed(self, slot: Slot, what: str) -> TargetFailedError:
        arm = self.arms[slot.arm]
        log = self.kept.folder / f"{slot.name}.log"
        which = f"run {slot.text}" + (f" ({arm.label})" if arm.label else "")
        end = output_end(log)
        said = f"; the end of its output ({shown(log)}):" if end else "; it printed nothing"
        error = TargetFailedError(f"{which} of {arm.command.text} {what}{said}")
        if end:
            error.add_note(end)
        return error

    def _remove_remains(self, name: str) -> None:
        """Remove files of an unfinished attempt."""
        place = self.kept.folder
        with refused(f"clear {str(place)!a}"):
            remove_files(place, [each for each in os.listdir(place) if each.startswith(f"{name}.")])

    def _tell_wait(self) -> None:
        self.progress.say("waiting for the measurement of another process to end")

    @contextlib.contextmanager
    def _telling_what_is_kept(self) -> Iterator[None]:
        try:
            yield
        except InterruptedExperimentError as error:
            raise InterruptedExperimentError(
                error.signal,
                f"interrupted with {count_text(len(self.kept), 'run')} kept in "
                f"{shown(self.kept.folder)}",
            ) from None
