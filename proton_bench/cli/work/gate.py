"""``proton gate``, after its options are read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from proton_bench.cli.gating.outputs import Outputs
from proton_bench.cli.gating.sides import Words, read_words
from proton_bench.cli.options import chosen_policy
from proton_bench.errors import (
    InterruptedExperimentError,
    OutputError,
    ProtonError,
)
from proton_bench.gate.baselines import BaselineStore
from proton_bench.gate.policy import PolicyWords
from proton_bench.gate.verdict.result import Outcome
from proton_bench.support.reporting import report_error

__all__ = ["Wanted", "judge"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sides of a gate and its policy.

    Attributes:
        words: The sides on the command line.
        policy: The policy on the command line.
        store: Folder of baselines.
    """

    words: Words
    policy: PolicyWords
    store: Path


def judge(wanted: Wanted, outputs: Outputs) -> int:
    """Compare new runs with base runs, write the outcome and return the exit code.

    Args:
        wanted: What to compare.
        outputs: Where the outcome goes.
    """
    store = BaselineStore(wanted.store)
    try:
        sides = read_words(wanted.words)
        outcome, after = sides.run(chosen_policy(wanted.policy), store)
    except InterruptedExperimentError:
        raise
    except ProtonError as error:
        return _refuse(error, outputs)
    try:
        outputs.write(outcome)
    finally:  # an output that cannot be written costs no runs
        if wanted.words.save is not None and after.runs:
            entry = store.save(wanted.words.save, after.runs)
            sys.stderr.write(
                f"proton: saved as candidate {entry.reference}; `proton baseline promote "
                f"{wanted.words.save}` makes it the base of later gates\n"
            )
    return outcome.result.exit_code


def _refuse(error: ProtonError, outputs: Outputs) -> int:
    """Write the error to all outputs; an error of an output comes second."""
    code = report_error(error)
    try:
        outputs.write(Outcome.failed(error.report()))
    except OutputError as other:
        report_error(other)
    return code
