"""Runs slots one after the other, each in a fresh process, and keeps their profiles."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from proton_bench.analysis.accounting.host_time import HOST_METRICS
from proton_bench.analysis.run import Run
from proton_bench.errors import InterruptedExperimentError, TargetFailedError
from proton_bench.gate.experiment.arm import Arm
from proton_bench.gate.experiment.folders.kept_runs import KeptRun, KeptRuns
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.experiment.processes.command import FORMATS
from proton_bench.gate.experiment.processes.fresh_process import Launch, output_end, run_fresh
from proton_bench.gate.experiment.processes.turn import machine_turn
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.slot import Slot, missing
from proton_bench.gate.machine.conditions import disturbances_now
from proton_bench.recording.children.children import files_of_children
from proton_bench.support.files import refused, remove_files
from proton_bench.support.units import count_text

__all__ = ["Disturbances", "Series"]

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
