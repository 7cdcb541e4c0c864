from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from fakes.profiles import training_profile
from fakes.samples import FACTS, sampled_profile

from proton_bench.analysis.accounting.host_time import NOT_RECORDED, Recorded, recorded_of
from proton_bench.analysis.kernels.gpu_facts import (
    CounterFacts,
    SamplingFacts,
    counter_facts,
    sampling_facts,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import RankGaps
from proton_bench.model.metrics.counter_columns import COUNTED_TIME, NOT_JOINED
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.header import (
    HeaderReport,
    counter_losses,
    device_lines,
    gap_sentences,
    gaps_of,
    gpm_lines,
    losses,
    rank_text,
    ranks_text,
    recorded_line,
    root_note,
    sampling_line,
    sampling_losses,
    steps_lines,
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
        "run of 1 s: 15 % in recorded work, 25 % elsewhere in scopes, 60 % not recorded"
    )
    assert root_note(profile) == "40 % of a run of 1 s"


def test_imports_and_compilation_before_the_steps_are_named() -> None:
    facts = {
        "by": "scope",
        "name": "step",
        "first": 3,
        "count": 2,
        "begun": 4,
        "run_ns": 10**9,
        "low_ns": 10**7,
        "median_ns": 10**7,
        "high_ns": 10**7,
        "before_ns": 9 * 10**8,
    }
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    builder.add(0, "compile_fx (dynamo_timed)", FrameKind.OP, metrics={"wall (ns)": 3 * 10**8})
    builder.add(0, "rare (dynamo_timed)", FrameKind.OP, metrics={"wall (ns)": 10**6})
    step = a_run_of(10**7, time=10**6, wall=10**6)
    step = replace(step, provenance=step.provenance.updated(steps=facts))

    before, _ = steps_lines(replace(step, whole=builder.build()))

    assert "900 ms of the run's 1 s; in all 301 ms compilation (torch.compile)" in before
    assert "compilation" not in steps_lines(step)[0]


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
        (0, 7 * 10**8, "run of 1 s: 70 % elsewhere in scopes, 30 % not recorded"),
        (6 * 10**8, 3 * 10**8, "run of 1 s: 90 % in recorded work, 10 % not recorded"),
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


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([0, 1, 2, 5], "ranks 0 to 2, 5"),
        ([1, 2], "ranks 1 to 2"),
        (list(range(0, 40, 2)), "ranks 0, 2, 4, 6, 8, 10, 12, 14, and 12 more"),
    ],
)
def test_runs_of_ranks_are_joined(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text


def test_what_is_missing_is_said_in_sentences() -> None:
    assert list(gap_sentences(RankGaps(4, (0, 3), (1, 2), (3,)))) == [
        "ranks 1 to 2 of 4 are missing",
        "rank 3 of 4 is partial: its file was written before the run ended",
    ]
    assert list(gap_sentences(RankGaps(2, (0, 1)))) == []


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, ""),
        ({"rank": 2}, "rank 2"),
        ({"rank": 2, "world_size": 4}, "rank 2 of 4"),
        ({"rank": "?", "world_size": 4}, ""),
        (
            {"ranks": {"world_size": 4, "present": [0, 1], "missing": [], "partial": []}},
            "ranks 0 to 1 of 4",
        ),
    ],
)
def test_a_profile_says_which_ranks_it_holds(facts: dict[str, Any], text: str) -> None:
    assert rank_text(Provenance(facts)) == text


@pytest.mark.parametrize("odd", [None, 3, {}, {"present": 4, "world_size": "x", "missing": ["a"]}])
def test_odd_provenance_is_not_a_gap(odd: Any) -> None:
    assert gaps_of(Provenance({"ranks": odd})) == RankGaps()


def sampled(**facts: Any) -> Profile:
    said = {**FACTS["cupti"]["pc_sampling"], **facts}
    return sampled_profile(facts={"cupti": {"library": "x", "pc_sampling": said}})


def test_period_and_estimate_are_said() -> None:
    assert sampling_line(sampled()) == (
        "1 490 PC samples, one per 1 024 cycles of a multiprocessor, shared between the call paths "
        "of a kernel by GPU time, an estimate"
    )
    assert "1 024 cycles of a multiprocessor (chosen)" in sampling_line(sampled(is_automatic=True))


def test_a_period_that_was_rounded_is_said_with_what_was_asked_for() -> None:
    assert "1 024 cycles of a multiprocessor (the nearest to 1 000 cycles)" in sampling_line(
        sampled(asked_cycles=1000)
    )
    for facts in ({"asked_cycles": 1024}, {"asked_cycles": 1000, "doubled": 1}):
        assert "nearest" not in sampling_line(sampled(**facts))


@pytest.mark.parametrize("attribution", ["exact by scope", "exact by launch"])
def test_exact_samples_are_not_called_an_estimate(attribution: str) -> None:
    line = sampling_line(sampled(attribution=attribution))

    assert line.endswith(f"their call paths {attribution}")
    assert "estimate" not in line


def test_lost_samples_and_a_longer_period_are_said() -> None:
    dropped, slower = sampling_losses(sampled(doubled=2, period_cycles=4096))

    assert dropped.startswith("DROPPED: 48 PC samples (3.1 % of all)")
    assert "doubled 2 times, to 4 096 cycles" in slower


def test_why_nothing_was_sampled_is_said() -> None:
    profile = sampled(error="CUPTI_ERROR_INSUFFICIENT_PRIVILEGES\x1b[31m", dropped=0, samples=0)

    assert sampling_line(profile) == ""
    assert sampling_losses(profile) == ("NO SAMPLES: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES\\x1b[31m",)


def test_why_some_of_it_was_not_sampled_is_said() -> None:
    (loss,) = sampling_losses(sampled(error="one context was refused", dropped=0))

    assert loss == "FEWER SAMPLES: one context was refused"


def test_profiles_without_samples_need_no_word() -> None:
    assert sampling_facts(training_profile()) is None
    assert sampling_line(training_profile()) == ""
    assert sampling_losses(training_profile()) == ()


def test_a_file_may_say_anything() -> None:
    facts = {
        "samples": -4,
        "dropped": "many",
        "period_cycles": 1.5,
        "attribution": 3,
        "is_automatic": 1,
    }
    hostile = sampled_profile(facts={"cupti": {"pc_sampling": facts}})

    assert sampling_facts(hostile) == SamplingFacts()
    assert sampling_facts(sampled_profile(facts={"cupti": {"pc_sampling": [1]}})) is None


def counted(**facts: Any) -> Profile:
    return sampled_profile(facts={"cupti": {"library": "x", "counters": facts}})


def test_counters_that_were_read_are_no_loss() -> None:
    profile = counted(bursts=3, samples=3000, lost_samples=20, error="")

    assert counter_losses(profile) == ()
    assert counter_losses(training_profile()) == ()


def test_why_counters_are_missing_is_said() -> None:
    (refused,) = counter_losses(counted(bursts=0, error="HARDWARE_BUSY\x1b[31m"))
    (short,) = counter_losses(counted(bursts=0, error=""))
    (lost,) = counter_losses(counted(bursts=0, lost_samples=5056, error=""))
    (fewer,) = counter_losses(counted(bursts=2, samples=9, error="a burst failed"))

    assert lost == "NO COUNTERS: all 5 056 samples were lost"
    assert refused == "NO COUNTERS: HARDWARE_BUSY\\x1b[31m"
    assert short.startswith("NO COUNTERS: nothing was launched, or the run was over")
    assert fewer == "FEWER COUNTERS: a burst failed"


@pytest.mark.parametrize(
    ("mode", "is_said"),
    [
        ("counters", True),
        ("copies=on+counters:burst_ms=20", True),
        ("counters=gpm", False),
        ("pcsampling", False),
        (7, False),
    ],
)
def test_file_that_was_written_before_its_counters_says_so(mode: object, is_said: bool) -> None:
    late = replace(training_profile(), provenance=Provenance({"mode": mode}))
    said = {"mode": mode, "collectors": {"cupti": {"library": "x"}}}
    in_time = replace(late, provenance=Provenance(said))

    assert bool(counter_losses(late)) is is_said
    assert counter_losses(in_time) == ()


def phase(**facts: Any) -> Profile:
    mode = "counters:burst_ms=20+periodic_flushing:format=proton"
    return replace(training_profile(), provenance=Provenance({"mode": mode, **facts}))


def test_phase_that_was_written_meanwhile_says_why_it_has_no_counters() -> None:
    lost = {NOT_JOINED: 2}

    (no_burst,) = counter_losses(phase())
    (not_joined,) = counter_losses(replace(phase(), dropped=lost))
    (ended_by_signal,) = counter_losses(phase(signal="SIGTERM", end_time_ns=1))
    (killed,) = counter_losses(replace(phase(), partial=True))
    ended = phase(collectors={"cupti": {"counters": {"bursts": 4}}})
    (last,) = counter_losses(replace(ended, dropped=lost))

    assert no_burst.startswith("NO COUNTERS: no recorded kernel of this phase ran")
    assert (
        not_joined
        == last
        == ("NO COUNTERS: they were not joined to kernels, or none were read while these ran")
    )
    assert killed == ended_by_signal
    assert killed.startswith("NO COUNTERS: this file was written before the end of its session")


def test_phase_with_counters_does_not_miss_them() -> None:
    recorded = training_profile().columns
    columns = {**recorded, COUNTED_TIME: recorded["time (ns)"]}

    assert counter_losses(replace(phase(), columns=columns)) == ()
    assert counter_losses(replace(phase(), columns=columns, dropped={NOT_JOINED: 2})) == ()


def test_counts_beside_no_recorded_kernel_are_said() -> None:
    facts = {"counters": {"bursts": 4}}
    said = {"mode": "counters:graph=launch", "collectors": {"cupti": facts}}

    (loss,) = counter_losses(replace(training_profile(), provenance=Provenance(said)))

    assert loss.startswith("NO COUNTERS: no recorded kernel")


def test_bursts_that_lasted_too_long_are_said() -> None:
    (loss,) = counter_losses(counted(bursts=2, samples=1000, lost_samples=4000, error=""))

    assert loss.startswith("FEWER COUNTERS: 4 000 samples (80 % of all)")


@pytest.mark.parametrize("said", ["text", 7, [], {}, None])
def test_facts_of_counters_may_be_anything(said: Any) -> None:
    assert counter_facts(sampled_profile(facts={"cupti": {"counters": said}})) is None
    strange = counted(bursts="many", samples=-1, error=3)
    assert counter_facts(strange) == CounterFacts()
