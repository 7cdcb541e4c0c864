from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fakes.gated import GPU, H200, profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.gate.experiment import flipped_paths
from proton_bench.gate.machine import Finding, Tier, examine_runs, machine_of
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind


def run_of(device: Device = H200, **facts: Any) -> Run:
    return Run(profile_of_times({"k": [1.0]}, provenance=facts, device=device), "x")


def gpus(*, at_end: bool = False, **facts: Any) -> dict[str, Any]:
    return {"gpus_at_end" if at_end else "gpus_at_start": [{**GPU, **facts}]}


def test_runs_alike_have_no_findings() -> None:
    assert examine_runs([run_of(triton="3.6")], [run_of(triton="3.6"), run_of()]) == ()


@pytest.mark.parametrize(
    ("facts", "tier", "fact"),
    [
        (gpus(name="NVIDIA H100"), Tier.HARD, "GPU name"),
        (gpus(mig="1g.10gb"), None, ""),
        ({"backend": "cpu"}, None, ""),
        ({"host": "there"}, Tier.UNIT, "host"),
        (gpus(uuid="GPU-2"), Tier.UNIT, "GPU uuid"),
        (gpus(driver="580"), Tier.TOOL, "GPU driver"),
        (gpus(power_limit_w=350), None, ""),
        ({"triton": "3.7"}, None, ""),
    ],
)
def test_facts_have_tiers_and_unknown_ones_make_no_difference(
    facts: dict[str, Any], tier: Tier | None, fact: str
) -> None:
    found = examine_runs([run_of()], [run_of(**facts)])

    assert [(each.tier, each.fact) for each in found] == ([(tier, fact)] if tier else [])


def test_findings_say_both_sides_hardest_first() -> None:
    found = examine_runs(
        [run_of(triton="3.6", host="a")], [run_of(triton="3.7", host="b"), run_of(triton="3.6")]
    )

    assert found == (
        Finding(Tier.UNIT, "host", "a", "b, here"),
        Finding(Tier.TOOL, "triton", "3.6", "3.6, 3.7"),
    )


def test_devices_of_other_kinds_and_models_are_hard() -> None:
    h100 = Device("CUDA", 0, "90", 114)
    cpu = Device("CPU", 0)

    (model,) = examine_runs([run_of()], [run_of(h100)])
    (kind,) = examine_runs([run_of()], [run_of(cpu)])

    assert (model.tier, model.fact) == (Tier.HARD, "CUDA device")
    assert model.base == "architecture 90, 132 multiprocessors"
    assert (kind.tier, kind.fact, kind.base, kind.new) == (
        Tier.HARD,
        "kind of device",
        "CUDA",
        "CPU",
    )


def test_only_the_gpus_of_the_run_count() -> None:
    both = [GPU, {**GPU, "uuid": "GPU-2", "name": "Other"}]
    used = {"cupti": {"devices": [{"index": 0, "uuid": "1", "name": "NVIDIA H200"}]}}

    found = examine_runs([run_of()], [run_of(gpus_at_start=both, collectors=used)])

    assert found == ()


@pytest.mark.parametrize(
    ("bits", "reason"), [(8, "hardware slowdown"), (32, "heat"), (128, "power brake"), (1, "")]
)
def test_clocks_held_down_disturb_a_run(bits: int, reason: str) -> None:
    found = examine_runs([run_of()], [run_of(**gpus(at_end=True, throttle_reasons=bits))])

    assert [(each.tier, each.fact, each.new) for each in found] == (
        [(Tier.STATE, "clocks", reason)] if reason else []
    )


def test_the_power_cap_disturbs_only_where_some_runs_met_it() -> None:
    capped = gpus(throttle_reasons=4)

    assert examine_runs([run_of(**capped)], [run_of(**capped)]) == ()
    (found,) = examine_runs([run_of()], [run_of(**capped)])
    assert (found.fact, found.base, found.new) == ("power cap", "", "met")


@pytest.mark.parametrize(
    ("fact", "values", "tier"),
    [
        ("mig", ("off", "1g.18gb"), Tier.HARD),
        ("ecc", ("on", "off"), Tier.HARD),
        ("memory_bytes", (150 << 30, 80 << 30), Tier.HARD),
        ("power_limit_w", (700, 350), Tier.TOOL),
    ],
)
def test_what_a_gpu_is_set_to_has_its_tier(
    fact: str, values: tuple[object, object], tier: Tier
) -> None:
    base, new = (run_of(**gpus(**{fact: value})) for value in values)

    (found,) = examine_runs([base], [new])

    assert found == Finding(tier, f"GPU {fact}", str(values[0]), str(values[1]))


def test_sides_that_ended_at_other_temperatures_were_disturbed() -> None:
    def warm(*degrees: float) -> list[Run]:
        return [run_of(**gpus(at_end=True, temperature_c=each)) for each in degrees]

    assert examine_runs(warm(40, 42, 70), warm(50, 52, 51)) == ()
    assert examine_runs(warm(40), [run_of()]) == ()
    (found,) = examine_runs(warm(40, 42), warm(60))
    assert found == Finding(Tier.STATE, "temperature", "40 C, 42 C", "60 C")


def test_processes_of_others_disturb_a_run() -> None:
    shared = {**gpus(other_processes=[7, 8]), **gpus(at_end=True, other_processes=[8])}

    assert examine_runs([run_of(**gpus(other_processes=[]))], [run_of()]) == ()
    (found,) = examine_runs([run_of()], [run_of(**shared)])
    assert found == Finding(Tier.STATE, "other processes", "", "2")


def test_strange_provenance_is_not_a_traceback() -> None:
    strange = {"gpus_at_start": 3, "collectors": [1], "backend": ["x"], "gpus_at_end": [5]}
    odd = gpus(at_end=True, temperature_c="hot", other_processes=[[1], None])

    assert examine_runs([run_of(**strange)], [run_of()]) == ()
    assert examine_runs([run_of(**odd)], [run_of()]) == ()


def test_the_machine_is_its_hard_and_unit_facts() -> None:
    found = machine_of(run_of(triton="3.6").profile)

    assert found == {
        "CUDA device": "architecture 90, 132 multiprocessors",
        "host": "here",
        "GPU name": "NVIDIA H200",
        "GPU uuid": "GPU-1",
    }


def run(configs: Mapping[str, tuple[str, ...]], *, trial: str = "") -> Run:
    builder = ProfileBuilder()
    scope = builder.add(0, "fwd", FrameKind.SCOPE)
    for name, chosen in configs.items():
        for config in chosen:
            variant = Variant(config=config, code_hash=config)
            builder.add(scope, name, FrameKind.KERNEL, metrics={"count": 1}, variant=variant)
    if trial:
        state = builder.add(scope, "<autotune>", FrameKind.STATE)
        variant = Variant(config=trial)
        builder.add(state, "matmul", FrameKind.KERNEL, metrics={"count": 1}, variant=variant)
    return Run(builder.build(), "x")


def test_another_choice_is_a_flip() -> None:
    runs = [run({"matmul": (block,), "add": ("a",)}) for block in ("64", "64", "128")]

    assert flipped_paths(runs) == {("fwd", "matmul"): ("128", "64")}


def test_several_choices_for_several_shapes_are_no_choice() -> None:
    assert flipped_paths([run({"matmul": ("64", "128")})] * 2) == {}


def test_trials_and_untuned_kernels_are_no_choice() -> None:
    assert flipped_paths([run({"add": ("",)}, trial=block) for block in ("64", "128")]) == {}
