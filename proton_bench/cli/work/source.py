"""``proton view --source``, after its options are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.analysis.kernels.source_lines import sampled_source
from proton_bench.analysis.view.name_filter import NameFilter
from proton_bench.cli.output_file import print_bytes
from proton_bench.cli.project import project_folder
from proton_bench.formats.registry import read_profile
from proton_bench.report.text.source import DEFAULT_THRESHOLD, SourceReport
from proton_bench.report.tree.tree import print_report
from proton_bench.report.words.header import HeaderReport
from proton_bench.support.console import open_console

__all__ = ["SourceRequest", "show_source"]


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """The source lines to show.

    Attributes:
        file: The profile.
        names: Rows whose samples count, with those below them.
        threshold: Lines with a smaller share of all samples, in percent, are left out; None for the
            usual one.
        as_json: Print one JSON document instead of text.
        root: Folder below which source files are read; None means the project.
    """

    file: Path
    names: NameFilter = field(default_factory=NameFilter)
    threshold: float | None = None
    as_json: bool = False
    root: Path | None = None


def show_source(request: SourceRequest) -> None:
    """Print the source with its hot lines.

    Raises:
        UsageError: The file, a regular expression or the name of the source is wrong.
        MetricError: The profile has no PC samples.
        ProfileFormatError: The file is corrupt.
    """
    profile = read_profile(request.file)
    source = sampled_source(profile, request.names)
    name = str(request.file)
    least = DEFAULT_THRESHOLD if request.threshold is None else request.threshold
    root = project_folder() if request.root is None else request.root
    if request.as_json:
        from proton_bench.report.json.source import source_document
        from proton_bench.report.json.tree import encode_document

        document = source_document(source, profile, name=name, threshold=least, root=root)
        print_bytes(encode_document(document))
        return
    report = SourceReport(source, profile, root, least)
    print_report(open_console(), HeaderReport(profile, name), report)
