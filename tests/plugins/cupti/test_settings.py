"""Options of the mode and variables of the environment."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proton_bench.errors import UsageError
from proton_bench.mode import PCSampling
from proton_bench.plugin.backend import assign_modes, parse_mode
from proton_bench_plugins.cupti import BACKEND
from proton_bench_plugins.cupti.settings import PcSampling, Settings, read_settings


def test_defaults() -> None:
    assert read_settings(parse_mode(None), {}) == Settings(
        buffer_bytes=1 << 20, flush_period_ms=100, copies=False, vendor_clock=False
    )


def test_options_and_variables_are_read() -> None:
    mode = parse_mode("buffer_bytes=100000:flush_period_ms=0:copies=on:shared=on")

    assert read_settings(mode, {"PROTON_BENCH_CUPTI_CLOCK": "vendor"}) == Settings(
        buffer_bytes=100_000, flush_period_ms=0, copies=True, vendor_clock=True, shared=True
    )


def test_graphs_are_recorded_by_node_or_by_launch() -> None:
    assert not read_settings(parse_mode("graph=node"), {}).whole_graphs
    assert read_settings(parse_mode("graph=launch"), {}).whole_graphs


@pytest.mark.parametrize(
    ("environ", "nvtx"),
    [
        ({}, True),
        ({"TRITON_ENABLE_NVTX": "1"}, True),
        ({"TRITON_ENABLE_NVTX": "off"}, False),
    ],
)
def test_nvtx_is_on_unless_a_variable_says_otherwise(
    environ: Mapping[str, str], *, nvtx: bool
) -> None:
    assert read_settings(parse_mode(None), environ).nvtx is nvtx


@pytest.mark.parametrize(
    ("mode", "environ", "message"),
    [
        ("buffer_bytes=1", {}, "option 'buffer_bytes' .* from 65536 to 268435456"),
        ("buffer_bytes=" + 5000 * "1", {}, "option 'buffer_bytes' .* from 65536 to 268435456"),
        ("flush_period_ms=x", {}, "option 'flush_period_ms' .* whole number"),
        ("copies=maybe", {}, "choose from: off, on"),
        ("graph=all", {}, "choose from: node, launch"),
        ("shared=yes", {}, "choose from: off, on"),
        ("", {"TRITON_ENABLE_NVTX": "maybe"}, "TRITON_ENABLE_NVTX is 'maybe'"),
        ("", {"PROTON_BENCH_CUPTI_CLOCK": "sun"}, "choose from: monotonic, vendor"),
    ],
)
def test_wrong_values_are_refused(mode: str, environ: Mapping[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings(parse_mode(mode), environ)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"TRITON_ENABLE_HW_TRACE": "1"}, True),
        ({"TRITON_ENABLE_HW_TRACE": "0"}, False),
    ],
)
def test_hardware_trace_is_asked_for(environ: Mapping[str, str], expected: bool) -> None:
    assert read_settings(parse_mode(None), environ).hardware_trace is expected


@pytest.mark.parametrize(
    ("interval", "exponent"),
    [
        ("", 0),
        (":interval=auto", 0),
        (":interval=AUTO", 0),
        (":interval=1000", 10),
        (":interval=1024", 10),
        (":interval=1535", 10),
        (":interval=1536", 11),
        (":interval=1", 5),
        (":interval=33", 5),
        (":interval=2147483648", 31),
        (":interval=999999999999999999", 31),
    ],
)
def test_interval_is_the_nearest_power_of_two_that_the_sampler_takes(
    interval: str, exponent: int
) -> None:
    settings = read_settings(parse_mode("pcsampling" + interval), {})

    assert settings.pc_sampling == PcSampling("continuous", exponent)


def test_samples_are_read_at_borders_where_exactness_is_asked_for() -> None:
    for exact, collection in (("off", "continuous"), ("scope", "scope"), ("Launch", "launch")):
        settings = read_settings(parse_mode(f"pcsampling:exact={exact}:interval=4096"), {})
        assert settings.pc_sampling == PcSampling(collection, 12)


def test_other_options_hold_beside_sampling_and_no_other_mode_samples() -> None:
    settings = read_settings(parse_mode("pcsampling:copies=on:graph=launch"), {})

    assert settings.copies
    assert settings.whole_graphs
    assert read_settings(parse_mode("copies=on"), {}).pc_sampling is None


@pytest.mark.parametrize(
    "value", ["0", "-3", "1e3", "1.5", "often", "", "\N{ARABIC-INDIC DIGIT FIVE}", 500 * "1"]
)
def test_wrong_intervals_are_refused(value: str) -> None:
    message = r"option 'interval' .* positive number of cycles, or auto"
    with pytest.raises(UsageError, match=message):
        read_settings(parse_mode(f"pcsampling:interval={value}"), {})


def test_unknown_exactness_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match=r"option 'exact' .* choose from: off, scope, launch"):
        read_settings(parse_mode("pcsampling:exact=kernel"), {})


def test_text_of_the_mode_object_is_a_mode_of_the_backend() -> None:
    for mode in (PCSampling(), PCSampling("auto", exact="scope")):
        (assigned,) = assign_modes([BACKEND], str(mode))
        assert assigned.name == "pcsampling"
        assert read_settings(assigned, {}).pc_sampling is not None
