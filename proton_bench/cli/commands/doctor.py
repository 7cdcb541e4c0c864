"""``proton doctor``: what of this installation works, what is missing, and how to mend it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from proton_bench.cli.output_file import print_bytes
from proton_bench.diagnosis.examination import examine
from proton_bench.diagnosis.finding import Finding, Status
from proton_bench.diagnosis.profiles import examine_files
from proton_bench.diagnosis.scripts import environment_place, fix_scripts
from proton_bench.errors import BackendUnavailableError, ProfileFormatError, UsageError
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.diagnosis import DiagnosisReport, diagnosis_document
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["command"]


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Examine these profiles instead: whether their numbers can be true. Exits with 2 "
            "where some cannot.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="NAME",
            help="Exit with 69 when this is missing: a backend, an extra, a package such as torch, "
            "a script such as proton, native or gpu. May stand several times.",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix-scripts",
            help="First write the scripts proton and proton-viewer of this environment anew, "
            "when another package owns them.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Examine this installation: versions, scripts, backends, extras, settings; or profiles."""
    if files and (require or fix):
        raise UsageError("--require and --fix-scripts are about the installation, not about files")
    if fix:
        _fix()
    diagnosis = examine_files(files) if files else examine()
    required = require or []
    if as_json:
        print_bytes(encode_document(diagnosis_document(diagnosis, required)))
    else:
        print_report(open_console(), DiagnosisReport(diagnosis))
    if files and any(each.status is Status.PROBLEM for each in diagnosis.findings()):
        raise ProfileFormatError("numbers of these files contradict each other, as told above")
    missing = diagnosis.missing(required)
    if missing:
        raise BackendUnavailableError("; ".join(map(_explain, missing)))


def _fix() -> None:
    written = fix_scripts(environment_place())
    for path in written:
        sys.stderr.write(f"proton: wrote {visible(path)}\n")
    if not written:
        sys.stderr.write("proton: the scripts of this environment are ours already\n")


def _explain(finding: Finding) -> str:
    advice = f" ({finding.advice})" if finding.advice else ""
    return f"--require: {finding.name}: {finding.value}{advice}"
