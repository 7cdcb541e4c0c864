"""``proton ab``, after its options are read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proton_bench.cli.gating.outputs import Outputs
from proton_bench.cli.options import default_store
from proton_bench.errors import (
    InterruptedExperimentError,
    ProtonError,
    UsageError,
)
from proton_bench.gate.ab import Request, begin_ab, resume_ab
from proton_bench.gate.processes import (
    Revision,
    changed_files,
    find_revision,
)
from proton_bench.gate.progress import open_progress
from proton_bench.gate.project import shown
from proton_bench.gate.runs import drop_unused, kept_folder, new_folder
from proton_bench.gate.verdict.result import Outcome
from proton_bench.report.words.gate_words import explained
from proton_bench.support.reporting import report_error

__all__ = ["Comparison", "Request", "revision"]


def revision(
    ref: str | None, *, base: str | None, setup: str | None, folder: str
) -> Revision | None:
    """Return the version to compare with; None if it is a command.

    Args:
        ref: Commit, branch or tag.
        base: Command to compare with.
        setup: Command that fills a virtual environment.
        folder: Folder of the repository.

    Raises:
        UsageError: There is no such version, or a command has one.
    """
    if base is None:
        return find_revision("HEAD" if ref is None else ref, folder)
    if ref is not None or setup is not None:
        raise UsageError("--base CMD excludes --base-ref and --setup: give one or the other")
    return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison to begin or to continue.

    Attributes:
        outputs: Where the verdict goes.
    """

    outputs: Outputs

    def begin(self, request: Request) -> int:
        """Run the experiment, show the outcome and return the exit code.

        Raises:
            UsageError: Both sides would run the same code.
        """
        revision = request.revision
        if revision is not None and not changed_files(revision):
            raise UsageError(
                f"no file that git tracks changed since {revision.ref!a}, so both sides would run "
                "the same code: name another revision with --base-ref, such as --base-ref HEAD~1, "
                "or a command with --base CMD"
            )
        folder = new_folder("ab", default_store())
        return self._outcome(folder, lambda: begin_ab(request, folder, open_progress("ab")))

    def resume(self, kept: Path | None) -> int:
        """Continue the experiment in a folder; None means the last one."""
        folder = kept_folder("ab", default_store()) if kept is None else kept
        return self._outcome(folder, lambda: resume_ab(folder, open_progress("ab")))

    def _outcome(self, folder: Path, compare: Callable[[], Outcome]) -> int:
        """Show the outcome of an experiment, also a failure, and return its exit code."""
        try:
            outcome = compare()
        except InterruptedExperimentError as error:
            hint = f"{error}; continue with `proton ab --resume {shown(folder)}`"
            raise InterruptedExperimentError(error.signal, hint) from None
        except ProtonError as error:
            if isinstance(error, UsageError):
                drop_unused(folder)
            code = report_error(error)
            self.outputs.write(Outcome.failed(error.report()))
            return code
        sys.stderr.write(f"proton ab: every run is kept in {shown(folder)}\n")
        self.outputs.write(explained(outcome))
        return outcome.result.exit_code
