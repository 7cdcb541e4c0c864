from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proton_bench.analysis.accounting.calls import call_values, launch_values, with_entered
from proton_bench.analysis.accounting.own_cost import OwnCost, own_cost
from proton_bench.analysis.kernels.source_lines import sampled_source
from proton_bench.analysis.metrics.derive import derive
from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import find_format, read_steps, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.model.steps import LEAST_SAMPLED_NS, Steps, per_step

STEPS: dict[str, Any] = {
    "by": "scope",
    "name": "step *",
    "first": 4,
    "count": 4,
    "begun": 9,
    "low_ns": 90,
    "median_ns": 100,
    "high_ns": 120,
    "before_ns": 1000,
    "run_ns": 2000,
}


def a_profile(*, length_ns: int = 400, **facts: Any) -> Profile:
    builder = ProfileBuilder()
    scope = builder.add(0, "step")
    metrics = {"time (ns)": 401, "count": 6, "host_wall (ns)": length_ns // 2, "registers": 32}
    builder.add(scope, "kernel", metrics=metrics, device=Device("CUDA", 0))
    builder.declare("registers", Aggregation.PROPERTY)
    facts = {"start_time_ns": 5000, "end_time_ns": 5000 + length_ns, **facts}
    use = DeviceUse(None, 0, busy_ns=300, idle_ns=100, launches=6, latency_sum_ns=600)
    return replace(builder.build(provenance=facts), device_use=(use,))


def whole_run(steady: Profile | None = None, count: int = 60) -> Profile:
    builder = ProfileBuilder()
    builder.add(0, "kernel", metrics={"time (ns)": 9000, "count": count})
    facts = {"start_time_ns": 0, "end_time_ns": 20_000, "estimated_cost_ns": 1200}
    content = b"" if steady is None else find_format("proton").encode(steady)
    return replace(builder.build(provenance=facts), steady=content)


def a_step(steady: Profile, run: Profile) -> Profile:
    step = per_step(steady, run)
    assert step is not None
    return step


def test_sums_and_the_length_are_those_of_one_step_and_properties_stay() -> None:
    step = a_step(a_profile(steps=STEPS), whole_run())

    assert step.inclusive("time (ns)")[0] == 100.25
    assert step.inclusive("count")[0] == 1.5
    assert step.column("registers").to_list()[-1] == 32
    assert step.provenance["end_time_ns"] - step.provenance["start_time_ns"] == 100
    use = step.device_use[0]
    assert (use.busy_ns, use.idle_ns, use.launches, use.latency_sum_ns) == (75, 25, 2, 200)
    assert launch_values(step).values[0] == 1.5


def test_a_step_has_the_part_of_the_cost_that_its_launches_are() -> None:
    step = a_step(a_profile(steps=STEPS), whole_run(count=60))

    assert step.provenance["estimated_cost_ns"] == 1200 * 6 / 60 / 4


def test_timed_scopes_share_the_cost_and_count_their_calls_of_one_step() -> None:
    def timed(calls: int, **facts: Any) -> Profile:
        builder = ProfileBuilder()
        samples = Distribution.from_samples([50.0] * calls)
        scope = builder.add(0, "step", FrameKind.SCOPE, metrics={WALL: 50 * calls})
        builder.set_distribution(scope, WALL, samples)
        builder.declare(WALL, Aggregation.EXCLUSIVE)
        return builder.build(provenance={"start_time_ns": 0, "end_time_ns": 400, **facts})

    step = a_step(timed(6, steps=STEPS), timed(60, estimated_cost_ns=1200))

    assert own_cost(step) == OwnCost(30, 100)
    assert call_values(with_entered(step)).to_list()[-1] == 1.5


def test_the_cost_of_a_step_without_records_is_unknown() -> None:
    builder = ProfileBuilder()
    run = builder.build(provenance={"estimated_cost_ns": 1200})

    assert own_cost(a_step(a_profile(steps=STEPS), run)) is None


def test_counts_below_one_in_a_step_are_not_lost() -> None:
    builder = ProfileBuilder()
    counts = {"kept_records": 3, "lost_records": 1, "cycles": 6, "instances": 2}
    builder.add(0, "kernel", FrameKind.KERNEL, metrics={**counts, "num_samples": 5})
    facts = {"steps": STEPS, "start_time_ns": 0, "end_time_ns": 400}
    step = a_step(builder.build(provenance=facts), whole_run())

    cycles, coverage = derive(step, ["avg_cycles", "coverage"])

    assert (cycles.to_list()[-1], coverage.to_list()[-1]) == (3, 75)
    assert sampled_source(step).samples.total == 5


@pytest.mark.parametrize("length_ns", [LEAST_SAMPLED_NS, LEAST_SAMPLED_NS - 1])
def test_samples_of_the_host_add_up_to_the_step_or_are_left_out(length_ns: int) -> None:
    step = a_step(a_profile(length_ns=length_ns, steps=STEPS), whole_run())

    if length_ns < LEAST_SAMPLED_NS:
        assert "host_wall (ns)" not in step.columns
    else:
        assert step.inclusive("host_wall (ns)")[0] == length_ns / 4


def test_samples_of_other_threads_alone_are_no_picture_of_the_step() -> None:
    steady = a_profile(length_ns=LEAST_SAMPLED_NS, steps=STEPS)
    others = replace(steady.column("host_wall (ns)"), spec=MetricSpec("other_threads (ns)"))
    steady = replace(steady, columns={"other_threads (ns)": others})

    assert not a_step(steady, whole_run()).columns


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"steps": {**STEPS, "before_ns": -1}},
        {"steps": STEPS, "start_time_ns": None},
        {"steps": STEPS, "end_time_ns": 4000},
    ],
)
def test_steps_that_are_not_known_are_a_run(tmp_path: Path, facts: dict[str, Any]) -> None:
    write_profile(whole_run(a_profile(**facts)), tmp_path / "run.proton")

    (profile,) = read_steps([tmp_path / "run.proton"])

    assert profile.inclusive("time (ns)")[0] == 9000


def test_a_merged_profile_has_no_steps_of_one_process() -> None:
    run = whole_run(a_profile(steps=STEPS))

    assert not Profile.merge([run, run]).steady


@pytest.mark.parametrize(
    "change",
    [{"count": 0}, {"count": "4"}, {"count": 2**64 - 1}, {"by": 1}, {"run_ns": None}],
)
def test_facts_about_steps_that_cannot_be_are_none(change: dict[str, Any]) -> None:
    assert Steps.of(Provenance({"steps": {**STEPS, **change}})) is None


def test_files_keep_their_steady_steps(tmp_path: Path) -> None:
    file = tmp_path / "run.proton"
    write_profile(whole_run(a_profile(steps=STEPS)), file)

    (step,), (run,) = read_steps([file]), read_steps([file], whole=True)

    assert (step.inclusive("time (ns)")[0], run.inclusive("time (ns)")[0]) == (100.25, 9000)
    assert Steps.of(step.provenance) == Steps(**STEPS)


def test_files_are_compared_by_steps_only_if_all_have_some(tmp_path: Path) -> None:
    write_profile(whole_run(a_profile(steps=STEPS)), tmp_path / "steps.proton")
    write_profile(whole_run(), tmp_path / "run.proton")

    profiles = read_steps([tmp_path / "steps.proton", tmp_path / "run.proton"])

    assert [profile.inclusive("time (ns)")[0] for profile in profiles] == [9000, 9000]


def test_damaged_steps_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    builder = ProfileBuilder()
    builder.add(0, "kernel", metrics={"count": 1})
    damaged = replace(builder.build(), steady=b"\x80no profile")
    write_profile(damaged, tmp_path / "bad.proton")

    with pytest.raises(ProfileFormatError, match=r"bad\.proton"):
        read_steps([tmp_path / "bad.proton"])


def test_quantiles_of_merged_rows_are_those_of_all_steps() -> None:
    builder = ProfileBuilder()
    for variant in range(3):  # one kernel in three variants, whose times are not divisible by 4
        times = [101.0 + variant, 102.0, 104.0, 106.0]
        row = builder.add(0, "kernel", metrics={"time (ns)": int(sum(times)), "count": 4})
        builder.set_distribution(row, "time (ns)", Distribution.from_samples(times))
    steady = builder.build(provenance={"start_time_ns": 0, "end_time_ns": 4000, "steps": STEPS})

    samples = per_step(steady, whole_run()).fold_variants().samples("time (ns)")

    assert samples is not None
    assert samples.n.tolist() == [12]
