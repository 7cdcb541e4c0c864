"""`proton noise`: measures how much runs of one command vary on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.gate.experiment.folders.noise_store import save_noise
from proton_bench.gate.experiment.folders.store import new_folder
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.replicates import record_runs
from proton_bench.gate.machine.calibration import FEWEST_RUNS, measure_noise, resample_false_alarms
from proton_bench.gate.machine.noise import Noise
from proton_bench.gate.machine.rate import Rate
from proton_bench.gate.policy.policy import Policy

__all__ = ["MeasuredNoise", "measure_aa"]


@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """The result.

    Attributes:
        noise: Noise of each path.
        false_alarms: How often the gate failed one half of these runs against the other.
        file: File of the noise.
        folder: Folder of the runs.
    """

    noise: Noise
    false_alarms: Rate
    file: Path
    folder: Path


def measure_aa(
    command: Command,
    count: int,
    policy: Policy,
    *,
    store: Path,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> MeasuredNoise:
    """Run a command several times and store its noise as the prior of this machine.

    Args:
        command: What to run.
        count: Number of runs; an odd last one adds nothing to pairs.
        policy: Policy of the gate.
        store: The project's ``.proton``.
        folder: Folder of the runs, which may have earlier ones; a new one by default.
        progress: Gets the progress.

    Raises:
        UsageError: There are too few runs.
        ProtonError: See `record_runs`.
    """
    if count < FEWEST_RUNS:
        raise UsageError(f"--runs {count} say too little about noise: give {FEWEST_RUNS} or more")
    place = folder or new_folder("noise-runs", store)
    runs = record_runs(command, count, doing="noise", folder=place, progress=progress)
    noise = measure_noise(runs, policy)
    alarms = resample_false_alarms(runs, policy)
    facts = {
        "command": command.text,
        "false_alarms": alarms.events,
        "resampled_gates": alarms.trials,
    }
    file = save_noise(noise, store, facts=facts)
    return MeasuredNoise(noise, alarms, file, place)
