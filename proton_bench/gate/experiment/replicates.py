"""Records several runs of one command, each in a fresh process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.gate.experiment.arm import Arm
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRuns
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.processes.interruption import interruptible
from proton_bench.gate.experiment.progress import Progress, open_progress
from proton_bench.gate.experiment.series import Series
from proton_bench.gate.experiment.slot import NEW, Stage, in_turn

__all__ = ["Replicates", "replicates"]


class Replicates:
    """Runs of one command, each in a fresh process.

    Args:
        series: The runs so far.
    """

    def __init__(self, series: Series) -> None:
        self._series = series

    def first(self, count: int) -> tuple[Run, ...]:
        """Return the profiles of so many runs, in the order in which they ran.

        Raises:
            TargetFailedError: A run failed or recorded nothing; the message has the end of its
                output.
            InterruptedExperimentError: A signal arrived; finished runs are kept.
            OutputError: Something cannot be written.
        """
        slots = in_turn(Stage.ALONE, NEW, count)
        self._series.run(slots)
        runs = self._series.read(slots)
        return tuple(runs[slot] for slot in slots)

    def say(self, text: str) -> None:
        """Show one line between the progress."""
        self._series.progress.say(text)


@contextlib.contextmanager
def replicates(
    command: Command,
    *,
    folder: Path,
    most: int = 0,
    doing: str = "gate",
    progress: Progress | None = None,
) -> Iterator[Replicates]:
    """Yield the runs of a command, which are recorded as they are asked for.

    Runs already in the folder are not repeated.

    Args:
        command: What to run.
        folder: Folder for the runs, such as `new_folder("gate", store)`.
        most: How many are made at most, for progress; 0 if all are asked for at once.
        doing: Name of the calling command, for progress.
        progress: Gets the progress; stderr by default.

    Raises:
        UsageError: Another process records into the folder.
        OutputError: Something cannot be written.
    """
    description = {"doing": doing, "command": command.to_document()}
    exists = (folder / MANIFEST).exists()
    kept = KeptRuns.open(folder) if exists else KeptRuns.create(folder, description)
    with interruptible(), kept.in_use(), progress or open_progress(doing) as shown:
        series = Series(kept, {NEW: Arm(NEW, command)}, shown)
        series.plan(in_turn(Stage.ALONE, NEW, most))
        yield Replicates(series)
