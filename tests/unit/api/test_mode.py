"""Modes as objects."""

from __future__ import annotations

from typing import Any

import pytest

from proton_bench import mode as modes
from proton_bench.errors import UsageError
from proton_bench.mode import MMA, BaseMode, Default, Optimize, PCSampling
from proton_bench.plugin.backend import parse_mode


def test_sampling_mode_has_an_interval() -> None:
    assert str(PCSampling()) == "pcsampling:interval=1000"
    assert parse_mode(str(PCSampling(interval=64))).options == {"interval": "64"}


@pytest.mark.parametrize("interval", [0, -5])
def test_interval_must_be_positive(interval: int) -> None:
    with pytest.raises(ValueError, match=f"interval {interval}"):
        PCSampling(interval=interval)


@pytest.mark.parametrize(("mode", "name"), [(Default, "default"), (MMA, "mma")])
def test_instrumentation_mode_is_a_mode_text(mode: Any, name: str) -> None:
    parsed = parse_mode(str(mode(sampling_strategy="selective", sampling_options="0,2")))

    assert isinstance(mode(), BaseMode)
    assert parsed.name == name
    assert parsed.options["sampling_strategy"] == "selective"
    assert parsed.options["sampling_options"] == "0,2"
    assert parsed.options["granularity"] == "warp"
    assert parsed.options["optimizations"] == ""


@pytest.mark.parametrize(
    "given",
    [
        "clock32, time_shift",
        ["clock32", "time_shift"],
        [Optimize.CLOCK32, modes.optimizations["time_shift"]],
    ],
)
def test_optimizations_may_be_a_list_or_a_text(given: Any) -> None:
    assert "optimizations=clock32,time_shift" in str(Default(optimizations=given))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("metric_type", "seconds"),
        ("granularity", "thread"),
        ("buffer_strategy", "ring"),
        ("buffer_type", "disk"),
        ("sampling_strategy", "some"),
    ],
)
def test_unknown_value_is_named_with_the_choices(field: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"Unknown {field}: {value}; choose from: "):
        Default(**{field: value})  # type: ignore[arg-type]


def test_unknown_optimization_is_named_with_the_choices() -> None:
    with pytest.raises(UsageError, match="Unknown optimization: fast; choose from: time_shift"):
        Default(optimizations="fast")


def test_upstreams_tables_hold_what_the_modes_take() -> None:
    chosen = Default(
        metric_type=modes.metric_types["cycle"],
        sampling_strategy=modes.sampling_strategies["none"],
        granularity=modes.granularities["warp_group_8"],
        buffer_strategy=modes.buffer_strategies["flush"],
        buffer_type=modes.buffer_types["global"],
    )

    assert str(chosen) == str(
        Default(granularity="warp_group_8", buffer_strategy="flush", buffer_type="global")
    )


def test_values_of_the_compilers_own_kind_are_taken() -> None:
    kinds = pytest.importorskip("triton._C.libtriton").proton

    chosen: Any = Default(granularity=kinds.GRANULARITY.WARP, buffer_type=kinds.BUFFER_TYPE.GLOBAL)

    assert (chosen.granularity, chosen.buffer_type) == ("warp", "global")
