"""``proton gate``, after its options are read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from proton_bench.cli.gating.bisect_codes import SKIP
from proton_bench.cli.gating.options import chosen_policy
from proton_bench.cli.gating.outputs import Outputs
from proton_bench.cli.gating.sides import Words, read_words
from proton_bench.errors import (
    InterruptedExperimentError,
    OutputError,
    ProtonError,
    TargetFailedError,
    UsageError,
)
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
    """Where to read the machine's noise: a file, or the store below a folder."""

    file: Path | None
    folder: Path
    is_refused: bool

    def named(self) -> Noise | None:
        """Return the noise of the file.

        Raises:
            UsageError: The file cannot be read, or --no-noise was given too.
            ProfileFormatError: It is corrupt.
        """
        if self.file is not None and self.is_refused:
            raise UsageError("--noise FILE and --no-noise exclude each other: give one of them")
        return None if self.file is None else read_noise(self.file)

    @property
    def store(self) -> Path | None:
        """Folder of stored noise, None for none."""
        return None if self.is_refused else self.folder


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sides of a gate, its policy and its noise.

    Attributes:
        words: The sides on the command line.
        policy: The policy on the command line.
        known: Where to read the machine's noise; its folder has the baselines too.
    """

    words: Words
    policy: PolicyWords
    known: Known


def judge(wanted: Wanted, outputs: Outputs, *, skips_failures: bool = False) -> int:
    """Compare new runs with base runs, write the outcome and return the exit code.

    Args:
        wanted: What to compare.
        outputs: Where the outcome goes.
        skips_failures: Whether a failed run makes `git bisect run` skip the revision.
    """
    store = BaselineStore(wanted.known.folder)
    try:
        outcome, after = _answered(wanted, store)
    except InterruptedExperimentError:
        raise
    except ProtonError as error:
        code = _refuse(error, outputs)
        return SKIP if skips_failures and isinstance(error, TargetFailedError) else code
    outputs.write(outcome)
    if wanted.words.save is not None and after.runs:
        entry = store.save(wanted.words.save, after.runs)
        sys.stderr.write(f"proton: saved as candidate {entry.reference}\n")
    return outcome.result.exit_code


def _refuse(error: ProtonError, outputs: Outputs) -> int:
    """Write the error to all outputs; an error of an output comes second."""
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
