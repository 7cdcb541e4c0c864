from __future__ import annotations

import io
from dataclasses import replace

from fakes.profiles import training_profile

from proton_bench.profile import Provenance
from proton_bench.report.header import HeaderReport, losses
from proton_bench.report.theme import open_console


def printed(report: HeaderReport) -> str:
    file = io.StringIO()
    open_console(file).print(report, end="")
    return file.getvalue()


def test_header_names_file_rows_backend_and_devices() -> None:
    profile = replace(training_profile(), provenance=Provenance({"backend": "cupti"}))

    assert printed(HeaderReport(profile, "x.proton")) == (
        "x.proton  10 rows, backend cupti, CUDA:0 (90)\n\n"
    )


def test_header_shows_partial_and_dropped_records() -> None:
    profile = replace(
        training_profile(), partial=True, dropped={"buffer full": 12345, "none": 0, "a\nb": 1}
    )

    assert losses(profile) == (
        "PARTIAL: the run had not ended when this was written",
        "DROPPED: 12 345 records: buffer full",
        "DROPPED: 1 record: a\\nb",
    )
    assert "DROPPED: 12 345 records: buffer full\n" in printed(HeaderReport(profile, "x"))


def test_name_of_the_file_is_escaped() -> None:
    assert printed(HeaderReport(training_profile(), "a\x1b[31m")).startswith("a\\x1b[31m  ")
