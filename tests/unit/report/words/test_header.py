from __future__ import annotations

import io
from dataclasses import replace

import pytest
from fakes.profiles import training_profile

from proton_bench.analysis.accounting.host_time import NOT_RECORDED, Recorded, recorded_of
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.header import (
    HeaderReport,
    device_lines,
    gpm_lines,
    losses,
    recorded_line,
    root_note,
)
from proton_bench.support.console import open_console


def printed(report: HeaderReport) -> str:
    file = io.StringIO()
    open_console(file).print(report, end="")
    return file.getvalue()


def test_header_names_file_rows_backend_and_devices() -> None:
    profile = replace(training_profile(), provenance=Provenance({"backend": "cupti"}))

    assert printed(HeaderReport(profile, "x.proton")) == (
        "x.proton  10 rows, backend cupti, CUDA:0 (90)\n"
        "own cost of the profiler: unknown, the file does not say\n\n"
    )


def test_header_shows_partial_and_dropped_records() -> None:
    profile = replace(
        training_profile(), partial=True, dropped={"buffer full": 12345, "none": 0, "a\nb": 1}
    )

    assert losses(profile) == (
        "PARTIAL: the file was written before the run ended",
        "DROPPED: 12 345 records: buffer full",
        "DROPPED: 1 record: a\\nb",
    )
    assert "DROPPED: 12 345 records: buffer full\n" in printed(HeaderReport(profile, "x"))


def test_name_of_the_file_is_escaped() -> None:
    assert printed(HeaderReport(training_profile(), "a\x1b[31m")).startswith("a\\x1b[31m  ")


def test_header_says_how_busy_each_device_was() -> None:
    use = DeviceUse(
        *(None, 0, 62_000_000, 38_000_000, 0, 4_000_000, 500_000, 4, 0, 36_000, 6000, 12_000),
        latency_first_bucket=88,
        latency_buckets=(3, 1),
    )
    profile = replace(training_profile(), device_use=(use, replace(use, scope="step")))

    (line,) = device_lines(profile)
    assert line == (
        "CUDA:0 busy 62 %, of it only waiting 4 %, idle 38 % of 100 ms, "
        "kernels start 8.704 us after their launch (median; mean 9 us), "
        "up to 500 us more was busy: launch-bound"
    )
    assert f"\n{line[:60]}" in printed(HeaderReport(profile, "x"))


def test_kernels_that_start_late_were_queued() -> None:
    use = DeviceUse(
        *(None, 0, 99_000_000, 1_000_000, 0, 0, 0, 4, 0, 120_000_000, 6000, 40_000_000),
        latency_first_bucket=198,
        latency_buckets=(4,),
    )
    (line,) = device_lines(replace(training_profile(), device_use=(use,)))

    assert "ms after their launch, queued behind others (median; mean 30 ms)" in line


def test_shares_of_devices_are_those_of_the_run_where_its_length_is_known() -> None:
    use = DeviceUse(None, 0, busy_ns=3_000_000, idle_ns=1_000_000)
    facts = Provenance({"start_time_ns": 7, "end_time_ns": 20_000_007})
    profile = replace(training_profile(), device_use=(use,), provenance=facts)

    (line,) = device_lines(profile)

    assert line == "CUDA:0 busy 15 % of the run, idle 5 % of it between its first and last work"
    assert recorded_line(profile) != ""


def a_run_of(run_ns: int, **columns: int) -> Profile:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    metrics = {f"{name} (ns)": value for name, value in columns.items()}
    outer = builder.add(0, "step", metrics=metrics)
    builder.add(outer, "inner", metrics={name: value // 2 for name, value in metrics.items()})
    return builder.build(provenance={"start_time_ns": 5, "end_time_ns": 5 + run_ns})


def test_header_and_root_say_how_much_of_the_run_was_recorded() -> None:
    profile = a_run_of(10**9, time=10**8, wall=4 * 10**8)

    recorded = recorded_of(profile)
    assert recorded == Recorded(10**9, 1.5e8, 4e8)
    assert recorded_line(profile)[:60] in printed(HeaderReport(profile, "x"))
    assert recorded_line(profile) == (
        "run of 1 s: 15 % in recorded work, 25 % elsewhere in scopes, 60 % without a row"
    )
    assert root_note(profile) == "40 % of a run of 1 s"


def test_times_of_several_processes_are_said_to_be_a_sum() -> None:
    profile = a_run_of(4 * 10**8, time=10**8, wall=10**8)
    length = {"start_time_ns": 5, "end_time_ns": 5 + 2 * 10**8, "host": "a"}
    parts = ({**length, "pid": 7}, {**length, "pid": 8})

    merged = replace(profile, provenance=Provenance({"parts": parts}))

    assert recorded_line(merged).startswith("run of 400 ms in 2 processes: ")
    assert root_note(merged).endswith("run of 400 ms in 2 processes")
    assert "processes" not in recorded_line(profile)


@pytest.mark.parametrize(
    ("time", "wall", "line"),
    [
        (0, 7 * 10**8, "run of 1 s: 70 % elsewhere in scopes, 30 % without a row"),
        (6 * 10**8, 3 * 10**8, "run of 1 s: 90 % in recorded work, 10 % without a row"),
        (
            2 * 10**8,
            5 * 10**9,
            "run of 1 s: 300 ms of recorded work, 5 s in scopes, at the same time",
        ),
    ],
)
def test_parts_of_a_run_without_samples_add_up_too(time: int, wall: int, line: str) -> None:
    assert recorded_line(a_run_of(10**9, time=time, wall=wall)) == line


def test_a_run_on_a_gpu_tells_no_time_of_the_host_where_none_was_recorded() -> None:
    builder = ProfileBuilder()
    builder.declare("host_wall (ns)", Aggregation.INCLUSIVE)
    builder.add(0, NOT_RECORDED, metrics={"host_wall (ns)": 10**9})
    profile = builder.build(provenance={"start_time_ns": 5, "end_time_ns": 5 + 10**9})
    use = DeviceUse(*(None, 0, 30_000_000, 970_000_000, 0, 0, 0, 0, 0, 0, 0))

    assert "host" in recorded_line(profile)
    assert NOT_RECORDED in root_note(profile)
    assert "host" not in recorded_line(replace(profile, device_use=(use,)))
    assert "3 %" in root_note(replace(profile, device_use=(use,)))


def test_a_run_of_which_nothing_was_recorded_says_so() -> None:
    profile = a_run_of(10**9)

    assert recorded_of(profile) == Recorded(10**9, 0.0, None)
    assert recorded_line(profile) != ""
    assert root_note(profile) == ""


def test_work_of_several_devices_is_not_part_of_the_run() -> None:
    assert "%" not in recorded_line(a_run_of(10**9, time=3 * 10**9))
    assert root_note(a_run_of(10**9, time=3 * 10**9)) == ""


def test_files_without_the_length_of_the_run_do_not_show_it() -> None:
    assert recorded_of(training_profile()) is None
    assert recorded_line(training_profile()) == root_note(training_profile()) == ""


def test_a_merged_run_took_what_its_processes_took_together() -> None:
    one = a_run_of(10**9, time=10**8)
    later = replace(
        one, provenance=Provenance({"start_time_ns": 10**12, "end_time_ns": 3 * 10**9 + 10**12})
    )

    assert recorded_of(Profile.merge([one, later])) == Recorded(4 * 10**9, 3e8, None)


@pytest.mark.parametrize(
    "facts",
    [
        {"start_time_ns": False, "end_time_ns": True},
        {"start_time_ns": 9, "end_time_ns": 5},
        {"start_time_ns": 1.5, "end_time_ns": 3.5},
        {"start_time_ns": 1, "end_time_ns": 9, "parts": [{"start_time_ns": 1}, 7]},
    ],
)
def test_times_that_cannot_be_leave_the_run_unknown(facts: dict[str, object]) -> None:
    assert recorded_of(replace(training_profile(), provenance=Provenance(facts))) is None


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        (None, ()),
        ("gpm", ()),
        (
            [{"device": 0, "means": {"dram_pct": 12.4, "tensor_pct": 0.2, "sm_active_pct": 31}}],
            ("GPU over the run: SM active 31 %, tensor <1 %, DRAM 12 %",),
        ),
        (
            [
                {"device": 0, "means": {"dram_pct": 12.0}, "missing": "lost\x1b[0m"},
                {"device": 1, "means": {"dram_pct": "12", "tensor_pct": float("nan")}},
            ],
            (
                "CUDA:0 over the run: DRAM 12 %, no more counters: lost\\x1b[0m",
                "CUDA:1 over the run: no counters, the run was too short",
            ),
        ),
        (
            [{"device": -1, "missing": "no driver"}],
            ("GPU over the run: no counters: no driver",),
        ),
    ],
)
def test_header_says_how_busy_units_were_over_the_run(
    entries: object, lines: tuple[str, ...]
) -> None:
    facts = {} if entries is None else {"gpm": entries}
    profile = replace(training_profile(), provenance=Provenance(facts))

    assert gpm_lines(profile) == lines
    for line in lines:
        assert line in printed(HeaderReport(profile, "x"))
