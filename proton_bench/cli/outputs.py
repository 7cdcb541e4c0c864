"""Writes the outcome of a gate to the terminal, files and GitHub Actions."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from proton_bench.cli.files import STDOUT, print_bytes
from proton_bench.errors import OutputError, UsageError
from proton_bench.gate.verdict.result import Outcome, SuiteVerdict
from proton_bench.report.text.ci import (
    add_to_summary,
    gate_junit,
    resumed,
    stopped,
    write_annotations,
)
from proton_bench.report.text.gate import GateReport, gate_document, gate_markdown
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.files import write_file
from proton_bench.support.text import encode_document, raw, visible_lines


@dataclass(frozen=True, slots=True)
class Outputs:
    """The wanted outputs of a gate.

    Attributes:
        everything: Whether the terminal shows rows that are the same.
        json: File for a JSON document, "-" for standard output instead of the report.
        markdown: File for Markdown, "-" for standard output instead of the report.
        junit: File for JUnit XML, "-" for standard output instead of the report.
        github: Whether annotations are printed and the job summary is added to.
    """

    everything: bool
    json: Path | None
    markdown: Path | None
    junit: Path | None
    github: bool

    def __post_init__(self) -> None:
        if [self.json, self.markdown, self.junit].count(STDOUT) > 1:
            raise UsageError(
                "--json, --markdown - and --junit - all print to standard output: give one of them"
            )

    def write(self, outcome: Outcome) -> None:
        """Write all wanted outputs, files first, so that a full pipe affects none of them.

        Raises:
            OutputError: A file cannot be written; the others are, and the outcome is shown.
        """
        if outcome.result.verdict is SuiteVerdict.INCONCLUSIVE and not outcome.result.exit_code:
            sys.stderr.write(
                "proton: warning: the gate is undecided, and passes because of "
                "inconclusive=pass of the policy\n"
            )
        failed: list[OutputError] = []
        printed: bytes | None = None
        for file, content in self._files(outcome):
            if file == STDOUT:
                printed = content
                continue
            try:
                write_file(file, content)
            except OutputError as error:
                failed.append(error)
        if self.github:
            try:
                add_to_summary(outcome)
            except OutputError as error:
                failed.append(error)
        self._print(outcome, printed)
        if failed:
            for other in failed[1:]:
                failed[0].add_note(str(other))
            raise failed[0]

    def _files(self, outcome: Outcome) -> Iterator[tuple[Path, bytes]]:
        if self.json is not None:
            yield self.json, encode_document(gate_document(outcome))
        if self.markdown is not None:
            text = gate_markdown(outcome)
            yield self.markdown, visible_lines(text).encode()
        if self.junit is not None:
            yield self.junit, gate_junit(outcome)

    def _print(self, outcome: Outcome, instead: bytes | None) -> None:
        """Print the report, or what goes to standard output instead."""
        console = open_console()  # from here on no character fails to encode
        if instead is None:
            self._report(outcome, console)
        else:
            print_bytes(instead)
        if self.github:
            write_annotations(console.file if instead is None else sys.stderr, outcome)

    def _report(self, outcome: Outcome, console: Console) -> None:
        if outcome.result.verdict is SuiteVerdict.ERROR:
            return  # standard error has the message
        token = secrets.token_hex(16)
        if self.github:
            raw(console.file).write(f"{stopped(token)}\n")
        print_report(console, GateReport(outcome, self.everything))
        if self.github:
            raw(console.file).write(f"{resumed(token)}\n")
