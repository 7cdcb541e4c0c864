"""Modes as objects."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import replace
from typing import Any

import pytest

from proton_bench import mode as modes
from proton_bench.errors import UsageError
from proton_bench.mode import MMA, BaseMode, Default, Optimize, PCSampling
from proton_bench.plugin.backend import parse_mode


def test_sampling_mode_has_an_interval() -> None:
    assert str(PCSampling()) == "pcsampling:interval=1000"
    assert parse_mode(str(PCSampling(interval=64))).options == {"interval": "64"}


def test_sampling_mode_says_what_is_ours_only_where_it_is_asked_for() -> None:
    assert str(PCSampling(interval="auto")) == "pcsampling:interval=auto"
    assert str(PCSampling(64, exact="scope")) == "pcsampling:interval=64:exact=scope"


def test_unknown_way_to_attribute_samples_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match="Unknown exact: kernel; choose from: off, scope, launch"):
        PCSampling(exact="kernel")


@pytest.mark.parametrize("interval", [0, -5, "often", True])
def test_interval_must_be_positive(interval: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"it is {interval!r}")):
        PCSampling(interval=interval)


@pytest.mark.parametrize(("mode", "name"), [(Default, "default"), (MMA, "mma")])
def test_instrumentation_mode_is_a_mode_text(mode: Any, name: str) -> None:
    parsed = parse_mode(str(mode(sampling_strategy="selective", sampling_options="0,2")))

    assert isinstance(mode(), BaseMode)
    assert parsed.name == name
    assert parsed.options["sampling_strategy"] == "SAMPLING_STRATEGY.SELECTIVE"
    assert parsed.options["sampling_options"] == "0,2"
    assert parsed.options["granularity"] == "GRANULARITY.WARP"
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


@pytest.mark.parametrize("mode", [BaseMode, PCSampling, Default, MMA])
def test_option_that_a_mode_lacks_is_refused_as_python_does(mode: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        mode(sise=4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"buffer_size": -1}, "buffer_size=-1: give a whole number of bytes"),
        ({"buffer_size": "4096"}, "buffer_size='4096': give a whole number"),
        ({"buffer_size": 4096.0}, "buffer_size=4096.0"),
        ({"byte_limit": True}, "byte_limit=True"),
        ({"sampling_options": [0, 2]}, "sampling_options=[0, 2]: give a text, as in"),
        ({"sampling_options": "0:trace=on"}, "give numbers of warps"),
        ({"sampling_options": "0,,2"}, "give numbers of warps"),
        ({"passes": ["loops"]}, "passes=['loops']: give a text"),
        ({"cta": 4}, "cta=4: give a text, as in cta='0,4-7'"),
        ({"optimizations": 5}, "optimizations=5: give names"),
        ({"optimizations": [5]}, "Unknown optimization: 5"),
        ({"compare": "off"}, "compare='off': give True or False"),
    ],
)
def test_wrong_value_of_an_option_is_named(options: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Default(**options)


@pytest.mark.parametrize("interval", ["64", 1.5, True])
def test_interval_is_a_whole_number(interval: Any) -> None:
    with pytest.raises(UsageError, match="must be a positive integer"):
        PCSampling(interval=interval)


def test_modes_can_be_copied_and_pickled() -> None:
    mode = Default(buffer_size=64, optimizations="clock32")

    assert copy.deepcopy(mode) == mode == pickle.loads(pickle.dumps(mode))
    assert replace(mode, cta="1") == Default(buffer_size=64, optimizations="clock32", cta="1")


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

    assert (chosen.granularity, chosen.buffer_type) == (
        modes.granularities["warp"],
        modes.buffer_types["global"],
    )
    assert chosen.granularity == kinds.GRANULARITY.WARP
    assert chosen.granularity != kinds.GRANULARITY.CTA


def test_choices_are_those_of_the_compiler() -> None:
    kinds = pytest.importorskip("triton._C.libtriton").proton

    for choices in (
        modes.METRIC_TYPE,
        modes.SAMPLING_STRATEGY,
        modes.GRANULARITY,
        modes.BUFFER_STRATEGY,
        modes.BUFFER_TYPE,
    ):
        theirs = getattr(kinds, choices.__name__).__members__
        ours = {each.name: each.value for each in choices}
        assert ours == {name: int(getattr(each, "value", each)) for name, each in theirs.items()}


def test_a_mode_has_its_name_and_optimizations_as_members() -> None:
    mode = Default(optimizations="clock32")

    assert (mode.name, MMA().name, PCSampling().name) == ("default", "mma", "pcsampling")
    assert mode.optimizations == [Optimize.CLOCK32]
    assert modes.InstrumentationMode("mine").name == "mine"
