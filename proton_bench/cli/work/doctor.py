"""``proton doctor``, after its options are read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from proton_bench.cli.output_file import print_bytes
from proton_bench.cli.work.progress_line import ProgressLine
from proton_bench.diagnosis.examination import examine
from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.diagnosis.profiles import examine_files
from proton_bench.diagnosis.scripts import environment_place, fix_scripts
from proton_bench.errors import BackendUnavailableError, ProfileFormatError
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.diagnosis import DiagnosisReport, diagnosis_document
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["examine_installation", "examine_profiles", "write_scripts"]


def examine_installation(
    required: Sequence[str], *, calibrates: bool = False, as_json: bool = False
) -> None:
    """Print what works in this installation.

    Args:
        required: Names of requirements.
        calibrates: First measure what units of the GPU reach at best.
        as_json: Print one JSON document instead of text.

    Raises:
        BackendUnavailableError: A requirement is missing, or nothing could be measured.
    """
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


def examine_profiles(files: Sequence[str], *, as_json: bool) -> None:
    """Print whether the numbers of profiles can be true.

    Raises:
        ProfileFormatError: Some cannot.
    """
    diagnosis = examine_files(files)
    _print(diagnosis, (), as_json=as_json)
    if any(each.status is Status.PROBLEM for each in diagnosis.findings()):
        raise ProfileFormatError("numbers of these files contradict each other, see above")


def write_scripts() -> None:
    """Rewrite scripts of this environment that another package owns."""
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
    if as_json:
        print_bytes(encode_document(diagnosis_document(diagnosis, required)))
    else:
        print_report(open_console(), DiagnosisReport(diagnosis))


def _explain(finding: Finding) -> str:
    advice = f" ({finding.advice})" if finding.advice else ""
    return f"--require: {finding.name}: {finding.value}{advice}"
