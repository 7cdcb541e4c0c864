"""What ``proton gate`` does once its options are read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from proton_bench.cli.gating.options import chosen_policy
from proton_bench.cli.gating.outputs import Outputs
from proton_bench.cli.gating.sides import Words, read_words
from proton_bench.errors import InterruptedExperimentError, OutputError, ProtonError, UsageError
from proton_bench.gate.baseline.noise_file import read_noise
from proton_bench.gate.baseline.reference import Side
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.gate.experiment.judged import judged
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.machine.noise import Noise
from proton_bench.gate.policy.policy_words import PolicyWords
from proton_bench.report.words.diff_summary import certain_headline
from proton_bench.support.reporting import report_error

__all__ = ["Known", "Wanted", "judge"]


@dataclass(frozen=True, slots=True)
class Known:
    """Where to learn of the machine's noise: a file, or what is kept below a folder."""

    file: Path | None
    folder: Path
    is_refused: bool

    def named(self) -> Noise | None:
        """Return the noise of the file.

        Raises:
            UsageError: The file cannot be read, or was both named and refused.
            ProfileFormatError: It is corrupt.
        """
        if self.file is not None and self.is_refused:
            raise UsageError("--noise FILE and --no-noise exclude each other: give one of them")
        return None if self.file is None else read_noise(self.file)

    @property
    def store(self) -> Path | None:
        """Folder below which noise is looked for, None for nowhere."""
        return None if self.is_refused else self.folder


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be judged, by what.

    Attributes:
        words: What the command line says of the sides.
        policy: What it says of the policy.
        known: Where to learn of the machine's noise; its folder has the baselines too.
    """

    words: Words
    policy: PolicyWords
    known: Known


def judge(wanted: Wanted, outputs: Outputs) -> int:
    """Judge new runs by base runs, write the outcome and return the exit code."""
    store = BaselineStore(wanted.known.folder)
    try:
        outcome, after = _answered(wanted, store)
    except InterruptedExperimentError:
        raise
    except ProtonError as error:
        return _refuse(error, outputs)
    outputs.write(outcome)
    if wanted.words.save is not None and after.runs:
        entry = store.save(wanted.words.save, after.runs)
        sys.stderr.write(f"proton: saved as candidate {entry.reference}\n")
    return outcome.result.exit_code


def _refuse(error: ProtonError, outputs: Outputs) -> int:
    """Say in all outputs what is wrong; what is wrong with these comes second."""
    code = report_error(error)
    try:
        outputs.write(Outcome.failed(error.report()))
    except OutputError as other:
        report_error(other)
    return code


def _answered(wanted: Wanted, store: BaselineStore) -> tuple[Outcome, Side]:
    sides = read_words(wanted.words)
    policy = chosen_policy(wanted.policy)
    noise = wanted.known.named()
    before, after = sides.read(store, wanted.known.folder)
    kept = wanted.known.store
    outcome = judged(before, after, policy, explain=certain_headline, noise=noise, store=kept)
    return outcome, after
