"""Records several runs of one command, each in a fresh process."""

from __future__ import annotations

from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.gate.experiment.arm import Arm
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRuns
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.processes.interruption import interruptible
from proton_bench.gate.experiment.progress import Progress, open_progress
from proton_bench.gate.experiment.series import Series
from proton_bench.gate.experiment.slot import NEW, Stage, in_turn

__all__ = ["Replicates", "record_runs"]


class Replicates:
    """Runs of one command and their folder.

    Attributes:
        runs: In the order in which they ran.
        folder: Folder of all profiles, logs and the manifest.
    """

    def __init__(self, runs: tuple[Run, ...], folder: Path) -> None:
        self.runs = runs
        self.folder = folder


def record_runs(
    command: Command,
    count: int,
    *,
    folder: Path,
    doing: str = "gate",
    progress: Progress | None = None,
) -> Replicates:
    """Run a command several times, each in a fresh process, and return the profiles.

    Runs already in the folder are not repeated.

    Args:
        command: What to run.
        count: Number of runs.
        folder: Folder for the runs, such as `new_folder("gate", store)`.
        doing: Name of the calling command, for progress.
        progress: Gets the progress; stderr by default.

    Raises:
        TargetFailedError: A run failed or recorded nothing; the message has the end of its output.
        InterruptedExperimentError: A signal arrived; finished runs are kept.
        OutputError: Something cannot be written.
    """
    description = {"doing": doing, "command": command.to_document()}
    exists = (folder / MANIFEST).exists()
    kept = KeptRuns.open(folder) if exists else KeptRuns.create(folder, description)
    slots = in_turn(Stage.ALONE, NEW, count)
    with interruptible(), kept.in_use(), progress or open_progress(doing) as shown:
        series = Series(kept, {NEW: Arm(NEW, command)}, shown)
        series.run(slots)
        runs = series.read(slots)
    return Replicates(tuple(runs[slot] for slot in slots), folder)
