"""``proton doctor``: what works, what is missing, and how to fix it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.files import ProgressLine, print_document, print_reports
from proton_bench.errors import BackendUnavailableError, ProfileFormatError, UsageError
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from proton_bench.diagnosis.finding import Diagnosis, Finding, Section


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Check the numbers of these profiles instead of the installation. Exits with 2 "
            "if some cannot be true.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="NAME",
            help="Exit with 69 if this is missing: a backend such as cupti, a package such as "
            "torch, a script such as proton, or native. May be repeated.",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix-scripts",
            help="First rewrite the scripts proton and proton-viewer of this environment if "
            "another package owns them.",
        ),
    ] = False,
    calibrates: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="First measure what units of this GPU reach at best (DRAM, tensor, fp32, fp64), "
            "in about ten seconds, and keep it for runs with counters.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Check this installation (versions, scripts, calibration, backends) or profiles."""
    if files and (require or fix or calibrates):
        raise UsageError(
            "--require, --fix-scripts and --calibrate are about the installation, not about files"
        )
    if fix:
        _write_scripts()
    if files:
        _examine_profiles(files, as_json=as_json)
    else:
        _examine_installation(require or [], calibrates=calibrates, as_json=as_json)


def _examine_installation(
    required: Sequence[str], *, calibrates: bool = False, as_json: bool = False
) -> None:
    """Print what works in this installation; an error if a requirement is missing."""
    from proton_bench.diagnosis.examination import examine
    from proton_bench.diagnosis.finding import Diagnosis, Status

    calibrated = _calibrated() if calibrates else ()
    sections = {each.name: each for each in (*examine().sections, *calibrated)}
    diagnosis = Diagnosis(tuple(sections.values()))
    _print(diagnosis, required, as_json=as_json)
    missing = diagnosis.missing(required)
    if missing:
        raise BackendUnavailableError("; ".join(map(_explain, missing)))
    failed = [
        each for section in calibrated for each in section.findings if each.status != Status.OK
    ]
    if failed:
        raise BackendUnavailableError(f"--calibrate: {failed[0].value}: {failed[0].advice}")


def _examine_profiles(files: Sequence[str], *, as_json: bool) -> None:
    """Print whether the numbers of profiles can be true; an error if some cannot."""
    from proton_bench.diagnosis.finding import Status
    from proton_bench.diagnosis.profiles import examine_files

    diagnosis = examine_files(files)
    _print(diagnosis, (), as_json=as_json)
    if any(each.status is Status.PROBLEM for each in diagnosis.findings()):
        raise ProfileFormatError("numbers of these files contradict each other, see above")


def _write_scripts() -> None:
    """Rewrite scripts of this environment that another package owns."""
    from proton_bench.diagnosis.scripts import environment_place, fix_scripts

    written = fix_scripts(environment_place())
    for path in written:
        sys.stderr.write(f"proton: wrote {visible(path)}\n")
    if not written:
        sys.stderr.write("proton: the scripts of this environment are ours already\n")


def _calibrated() -> tuple[Section, ...]:
    from proton_bench.diagnosis.calibration import calibrate  # which imports what records

    with ProgressLine() as progress:
        progress.step("measuring what this GPU reaches")
        return (calibrate(),)


def _print(diagnosis: Diagnosis, required: Sequence[str], *, as_json: bool) -> None:
    from proton_bench.report.text.diagnosis import DiagnosisReport, diagnosis_document

    if as_json:
        print_document(diagnosis_document(diagnosis, required))
    else:
        print_reports(DiagnosisReport(diagnosis))


def _explain(finding: Finding) -> str:
    advice = f" ({finding.advice})" if finding.advice else ""
    return f"--require: {finding.name}: {finding.value}{advice}"
