"""Mode texts and objects become settings, or are refused with the name of the option."""

from __future__ import annotations

from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.mode import MMA, Default
from proton_bench.plugin.backend import Mode, assign_modes, parse_mode, with_data
from proton_bench_plugins.instrumentation import BACKEND
from proton_bench_plugins.instrumentation.settings import (
    DEFAULT_BYTE_LIMIT,
    OPTIONS,
    Settings,
    read_settings,
)


def settings(text: str) -> Settings:
    return read_settings(parse_mode(text))


def test_no_mode_is_the_default() -> None:
    assert settings("") == Settings() == settings("default")
    assert settings("mma") == Settings(mode="mma")


@pytest.mark.parametrize("kind", [Default, MMA])
def test_an_object_says_the_same_as_its_text(kind: Any) -> None:
    mode = kind(
        sampling_strategy="selective",
        sampling_options="0,2",
        buffer_type="global",
        buffer_size=4096,
        optimizations="time_shift,clock32",
    )

    read = settings(str(mode))

    assert read == Settings(
        mode=mode.name,
        warp_ids=(0, 2),
        buffer_type="global",
        buffer_size=4096,
        optimizations=("clock32", "time_shift"),
    )
    assert read.deducts_cost
    assert not read.wide_clock


def test_upstreams_own_text_is_understood() -> None:
    text = (
        "default:metric_type=METRIC_TYPE.CYCLE:sampling_strategy=SAMPLING_STRATEGY.NONE"
        ":sampling_options=:granularity=GRANULARITY.WARP:buffer_strategy=BUFFER_STRATEGY.CIRCULAR"
        ":buffer_type=BUFFER_TYPE.GLOBAL:buffer_size=0:optimizations="
    )

    assert settings(text) == Settings(buffer_type="global")


def test_values_of_ours_pass_through_the_text() -> None:
    mode = Default(
        passes="loops,loads:kernel=matmul*+dots", cta="0,4-7", byte_limit=1 << 20, compare=False
    )
    (assigned,) = assign_modes([BACKEND], str(mode))

    read = read_settings(assigned)

    assert read.passes == "loops,loads:kernel=matmul*+dots"
    assert read.cta == ((0, 0), (4, 7))
    assert read.byte_limit == 1 << 20
    assert not read.compare


def test_what_upstream_does_not_have_stands_in_no_text_by_itself() -> None:
    assert str(Default()).endswith(":buffer_size=0:optimizations=")


def test_the_byte_limit_has_a_default() -> None:
    assert settings("default:byte_limit=0").byte_limit == DEFAULT_BYTE_LIMIT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "default:buffer_strategy=flush",
            "buffer_strategy=flush: no version of Triton supports this",
        ),
        ("default:granularity=cta", "granularity=cta: no version of Triton supports this"),
        ("default:granularity=warp_2", "write granularity=warp"),
        ("default:granularity=lane", "Unknown granularity: lane; choose from: cta, warp"),
        ("default:metric_type=joule", "Unknown metric_type: joule"),
        ("default:optimizations=fast", "Unknown optimization: fast"),
        ("default:buffer_size=-1", "buffer_size=-1: give a whole number of bytes"),
        ("default:buffer_size=4k", "buffer_size=4k"),
        ("default:byte_limit=" + "9" * 30, "byte_limit="),
        ("default:sampling_options=0,1", "needs sampling_strategy=selective"),
        ("default:sampling_strategy=selective:sampling_options=0,x", "sampling_options=0,x"),
        ("default:sampling_strategy=selective:sampling_options=99999999999", "count them from 0"),
        ("default:sampling_strategy=selective:sampling_options=2,0", "as in sampling_options=0,2"),
        ("default:sampling_strategy=selective:sampling_options=1,1", "as in sampling_options=1"),
        ("default:cta=5-2", "cta=5-2: write numbers and ranges"),
        ("default:trace=yes", "trace=yes; choose from: on, off"),
        ("fancy:cta=1", "Unknown mode: fancy"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=r".") as raised:
        settings(text)

    assert said in str(raised.value)


def test_selective_without_names_means_all() -> None:
    assert settings("default:sampling_strategy=selective").warp_ids == ()


@pytest.mark.parametrize(
    "text",
    [
        "default:buffer_type=global",
        "default:buffer_size=4096",
        "default:sampling_strategy=selective:sampling_options=0",
        "default:optimizations=clock32",
        "default:optimizations=sched_stores",
        "default:optimizations=sched_barriers",
    ],
)
def test_whatever_changes_the_code_changes_the_digest(text: str) -> None:
    assert settings(text).digest() != Settings().digest()


@pytest.mark.parametrize(
    "text", ["mma", "default:optimizations=time_shift", "default:cta=3", "default:trace=on"]
)
def test_what_is_decided_later_leaves_the_digest_alone(text: str) -> None:
    assert settings(text).digest() == Settings().digest()


def test_passes_are_part_of_the_digest() -> None:
    assert Settings().digest("loops") != Settings().digest("loads") != Settings().digest()


def test_the_digest_is_not_a_mode_of_tritons_own() -> None:
    assert all(word not in Settings().digest() for word in ("consan", "gsan", "iisan", ","))


@pytest.mark.parametrize("text", ["", "default", "mma"])
def test_a_trace_is_asked_for_by_the_kind_of_data(text: str) -> None:
    (mode,) = assign_modes([BACKEND], text)

    traced = with_data(BACKEND, mode, "trace")

    assert read_settings(traced).trace
    assert traced.text != mode.text  # not the mode of a session that wants a tree
    assert with_data(BACKEND, mode, "tree") is mode


def test_a_backend_that_does_not_ask_gets_no_option() -> None:
    from dataclasses import replace

    assert with_data(replace(BACKEND, trace_option=""), Mode(), "trace") == Mode()


def test_every_option_of_the_mode_objects_is_one_of_the_backend() -> None:
    full = str(Default(passes="loops", cta="1", byte_limit=1))

    assert set(parse_mode(full).options) <= OPTIONS.keys()
