from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.call_path_oracle import CallPathOracle
from reference.profile_view import inclusive_by_path

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.native.file import NativeFile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance


def sample() -> Profile:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    test = builder.add(0, "test", FrameKind.TEST, metrics={"wall (ns)": 900})
    step = builder.add(test, "step", FrameKind.SCOPE, metrics={"wall (ns)": 800})
    gpu = Device("CUDA", 0)
    builder.add(step, "mm", FrameKind.KERNEL, metrics={"time (ns)": 5, "f": 0.5}, device=gpu)
    builder.add(step, "ln", FrameKind.KERNEL, metrics={"time (ns)": 7, "note": "n"}, device=gpu)
    builder.add(0, "empty")
    return builder.build()


def test_tree_is_walked_by_rows() -> None:
    profile = sample()

    assert list(profile.children(0)) == [1, 5]
    assert list(profile.children(2)) == [3, 4]
    assert list(profile.children(5)) == []
    assert profile.path(4) == ("test", "step", "ln")
    assert profile.depths().tolist() == [0, 1, 2, 3, 3, 1]


def test_inclusive_metrics_are_summed() -> None:
    profile = sample()

    totals = profile.inclusive("time (ns)")

    assert totals.dtype == np.int64
    assert totals.tolist() == [12, 12, 12, 5, 7, 0]
    assert profile.inclusive("f").tolist() == [0.5, 0.5, 0.5, 0.5, 0.0, 0.0]


def test_exclusive_metrics_stay_on_their_row() -> None:
    assert sample().inclusive("wall (ns)").tolist() == [0, 900, 800, 0, 0, 0]


def test_covered_rows_have_a_value_below() -> None:
    covered = sample().covered("time (ns)")

    assert covered.tolist() == [True, True, True, True, True, False]


def test_unknown_metric_is_named_with_the_choices() -> None:
    with pytest.raises(MetricError, match=r"'x'; it has: wall \(ns\), time \(ns\), f, note"):
        sample().inclusive("x")


def test_texts_have_no_sum() -> None:
    with pytest.raises(MetricError, match="no sum"):
        sample().inclusive("note")


@pytest.mark.parametrize(
    ("values", "total"),
    [((1.0, math.inf), math.inf), ((1.0, math.nan), math.nan), ((math.inf, -math.inf), math.nan)],
)
def test_sums_with_nan_and_infinity_are_those_of_floats(
    values: tuple[float, ...], total: float
) -> None:
    builder = ProfileBuilder()
    for value in values:
        builder.add(0, str(value), metrics={"x": value})

    assert str(builder.build().inclusive("x").tolist()) == str([total, *values])


def test_folded_rows_keep_nan_and_infinity() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "epoch", metrics={"x": 0.25})
    builder.add(scope, "batch", metrics={"x": math.inf})

    assert builder.build().fold_below(1).inclusive("x").tolist() == [math.inf, math.inf]


def test_sums_beyond_64_bits_become_floats() -> None:
    builder = ProfileBuilder()
    for name in "abc":
        builder.add(0, name, metrics={"x": 2**62})

    assert builder.build().inclusive("x").tolist() == [3 * 2.0**62, 2.0**62, 2.0**62, 2.0**62]


def test_small_floats_survive_beside_large_ones() -> None:
    builder = ProfileBuilder()
    builder.add(0, "large", metrics={"x": 1e18})
    small = builder.add(0, "small")
    builder.add(small, "leaf", metrics={"x": 1e-6})

    assert builder.build().inclusive("x")[2] == 1e-6


def test_ten_thousand_levels_are_summed() -> None:
    builder = ProfileBuilder()
    row = 0
    for level in range(10_000):
        row = builder.add(row, f"f{level}", metrics={"x": 1})

    profile = builder.build()

    assert profile.inclusive("x")[0] == 10_000
    assert len(profile.path(10_000)) == 10_000


def test_nothing_in_a_profile_changes() -> None:
    profile = sample()

    with pytest.raises(FrozenInstanceError):
        profile.partial = True  # type: ignore[misc]
    assert not profile.parents.flags.writeable
    with pytest.raises(TypeError):
        profile.columns["x"] = profile.columns["f"]  # type: ignore[index]


def test_a_pickled_profile_is_the_same() -> None:
    profile = replace(
        sample(),
        dropped={"full": 1},
        extra={"later": [1]},
        provenance=Provenance({"git": {"dirty": True}}),
    )

    again = pickle.loads(pickle.dumps(profile))

    assert NativeFile().encode(again) == NativeFile().encode(profile)
    with pytest.raises(TypeError):
        again.columns["x"] = again.columns["f"]


def test_printing_a_profile_is_short() -> None:
    text = repr(sample())

    assert text == "<Profile of 6 rows with wall (ns), time (ns), f, note>"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("frames", np.array([0, 1, 2], "<i4")),
        ("frames", np.array([0, 1, 2, 3, 4, 99], "<i4")),
        ("frames", np.array([0, 1, 2, 3, 4, -1], "<i4")),
        ("kinds", np.array([1, 2, 2, 2, 2, 77], np.uint8)),
        ("kinds", np.array([1], np.uint8)),
        ("device_rows", np.array([0, 0, 0, 0, 0, 1], "<i4")),
        ("device_rows", np.array([-2] * 6, "<i4")),
        ("variant_rows", np.array([0] * 6, "<i4")),
        ("variant_rows", np.array([-1] * 5, "<i4")),
    ],
)
def test_self_check_names_what_does_not_fit(field: str, value: Any) -> None:
    broken = replace(sample(), **{field: value})

    with pytest.raises(ProfileFormatError, match=field.removesuffix("_rows")):
        broken.self_check()


paths = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=4), st.integers(-(2**40), 2**40)),
    max_size=20,
)


@given(entries=paths)
def test_sums_are_those_of_the_oracle(entries: list[tuple[list[str], int]]) -> None:
    oracle, builder = CallPathOracle(), ProfileBuilder()
    known: dict[tuple[str, ...], int] = {(): 0}
    for path, value in entries:
        oracle.add(path, {"x": value})
        for depth in range(1, len(path) + 1):
            here = tuple(path[:depth])
            if here not in known:
                known[here] = builder.add(known[here[:-1]], here[-1])
    for where, own in oracle.metrics.items():
        if "x" in own:
            builder.set(known[where], "x", own["x"])
    builder.set(builder.add(0, "last"), "x", 0)
    oracle.add(["last"], {"x": 0})

    profile = builder.build()

    assert inclusive_by_path(profile, "x") == oracle.inclusive("x")
    assert [profile.path(row) for row in range(len(profile))] == oracle.preorder()


FACTS: dict[str, Any] = {"backend": "cpu", "versions": {"torch": "2.13"}, "argv": ["a", ["b"]]}


def test_facts_are_read_like_a_mapping() -> None:
    provenance = Provenance(FACTS)

    assert provenance["backend"] == "cpu"
    assert provenance.get("rank") is None
    assert dict(provenance["versions"]) == {"torch": "2.13"}
    assert len(provenance) == 3


def test_nested_facts_cannot_be_changed() -> None:
    provenance = Provenance(FACTS)

    with pytest.raises(TypeError):
        provenance["versions"]["torch"] = "1"
    assert provenance["argv"] == ("a", ("b",))


def test_plain_copy_equals_what_was_given() -> None:
    plain = Provenance(FACTS).to_plain()

    assert plain == FACTS
    assert repr(Provenance(FACTS)) == f"Provenance({FACTS!r})"


def test_update_makes_a_new_object() -> None:
    first = Provenance(FACTS)

    second = first.updated(backend="replay", rank=1)

    assert (first["backend"], second["backend"], second["rank"]) == ("cpu", "replay", 1)
