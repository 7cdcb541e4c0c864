"""The line above a report about how program counters were sampled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.profiles import training_profile
from fakes.samples import FACTS, sampled_profile

from proton_bench.analysis.kernels.gpu_facts import (
    CounterFacts,
    SamplingFacts,
    counter_facts,
    sampling_facts,
)
from proton_bench.model.metrics.counter_columns import COUNTED_TIME, NOT_JOINED
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.header import counter_losses, sampling_line, sampling_losses


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
