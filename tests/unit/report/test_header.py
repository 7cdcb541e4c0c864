from __future__ import annotations

import io
from dataclasses import replace

from fakes.profiles import training_profile

from proton_bench.analysis.device_use import device_verdicts
from proton_bench.profile import Provenance
from proton_bench.profile.device_use import DeviceUse
from proton_bench.report.header import HeaderReport, device_line, losses
from proton_bench.report.theme import open_console


def printed(report: HeaderReport) -> str:
    file = io.StringIO()
    open_console(file).print(report, end="")
    return file.getvalue()


def test_header_names_file_rows_backend_and_devices() -> None:
    profile = replace(training_profile(), provenance=Provenance({"backend": "cupti"}))

    assert printed(HeaderReport(profile, "x.proton")) == (
        "x.proton  10 rows, backend cupti, CUDA:0 (90)\n"
        "own cost of the profiler: not known, the file does not say\n\n"
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


def test_header_says_how_busy_each_device_was() -> None:
    use = DeviceUse(
        *(None, 0, 62_000_000, 38_000_000, 4_000_000, 500_000, 4, 0, 36_000, 6000, 12_000),
        latency_first_bucket=88,
        latency_buckets=(3, 1),
    )
    profile = replace(training_profile(), device_use=(use, replace(use, scope="step")))

    (line,) = map(device_line, device_verdicts(profile))
    assert line == (
        "CUDA:0 busy 62 %, of it only waiting 4 %, idle 38 % of 100 ms, "
        "launch latency 8.704 us (median), 9 us (mean), up to 500 us more was busy: launch-bound"
    )
    assert f"\n{line[:60]}" in printed(HeaderReport(profile, "x"))
