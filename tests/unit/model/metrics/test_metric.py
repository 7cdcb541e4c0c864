from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.wall_times import is_span, spans_of, with_self_times
from proton_bench.model.profile import Profile


def column(values: list[Any], *, total: int = 4) -> MetricColumn:
    spec, rows = MetricSpec("m"), list(range(len(values)))
    return MetricColumn.from_rows(spec, rows, values, total=total, table=StringTable())


@pytest.mark.parametrize(
    ("name", "base", "unit"),
    [
        ("time (ns)", "time", "ns"),
        ("count", "count", ""),
        ("a (b) (us)", "a (b)", "us"),
        ("(ns)", "(ns)", ""),
        ("", "", ""),
        ("x\ny (ms)", "x\ny", "ms"),
        ("open (ns", "open (ns", ""),
    ],
)
def test_unit_stands_in_the_last_parentheses(name: str, base: str, unit: str) -> None:
    spec = MetricSpec(name)

    assert (spec.base, spec.unit) == (base, unit)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, True], ValueKind.INT),
        ([1, 2.5], ValueKind.FLOAT),
        (["a", "b"], ValueKind.STR),
        ([[1], [2, 3]], ValueKind.INT_VECTOR),
        ([[1, 2.5]], ValueKind.FLOAT_VECTOR),
        ([[], []], ValueKind.INT_VECTOR),
        ([None, None], ValueKind.INT),
    ],
)
def test_type_follows_from_the_values(values: list[Any], kind: ValueKind) -> None:
    assert column(values).kind is kind


def test_large_integers_stay_exact() -> None:
    big = 2**63 - 1

    assert column([big, -big - 1]).to_list() == [big, -big - 1, None, None]


def test_none_is_not_a_value() -> None:
    built = column([3, None, 5])

    assert built.to_list() == [3, None, 5, None]
    assert built.values.tolist() == [3, 0, 5, 0]


def test_nan_inside_a_vector_comes_from_none() -> None:
    value = column([[1.0, None]]).get(0)

    assert isinstance(value, tuple)
    assert value[0] == 1.0
    assert np.isnan(value[1])


def test_vectors_may_come_in_any_row_order() -> None:
    table = StringTable()

    built = MetricColumn.from_rows(MetricSpec("v"), [2, 0], [[1, 2], [3]], total=3, table=table)

    assert built.to_list() == [(3,), None, (1, 2)]


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ([1, 2.5], ValueKind.FLOAT, [1.0, 2.5]),
        ([1, 2**70], ValueKind.FLOAT, [1.0, 2.0**70]),
        ([1, [2]], ValueKind.INT_VECTOR, [(1,), (2,)]),
        ([1.5, [2]], ValueKind.FLOAT_VECTOR, [(1.5,), (2.0,)]),
        ([1, [2**70]], ValueKind.FLOAT_VECTOR, [(1.0,), (2.0**70,)]),
        ([1, "a"], ValueKind.STR, ["1", "a"]),
    ],
)
def test_values_of_several_kinds_become_the_widest(
    values: list[Any], kind: ValueKind, read: list[Any]
) -> None:
    table = StringTable()
    column = MetricColumn.from_rows(MetricSpec("m"), [0, 1], values, total=2, table=table)
    column = dataclasses.replace(column, strings=table.texts())
    assert column.kind is kind
    assert [column.get(0), column.get(1)] == read


@pytest.mark.parametrize("values", [[{}], [["a"]], [[[1]]], [b"x"], [2**2000]])
def test_values_that_do_not_fit_are_refused(values: list[Any]) -> None:
    with pytest.raises(MetricError, match="'m'"):
        column(values)


@pytest.mark.parametrize(
    "broken",
    [
        MetricColumn(MetricSpec("m"), ValueKind.INT, np.zeros(2, "<i8"), np.ones(3, bool)),
        MetricColumn(MetricSpec("m"), ValueKind.INT, np.zeros(3, "<f8"), np.ones(3, bool)),
        MetricColumn(MetricSpec("m"), ValueKind.INT, np.zeros(2, "<i8"), np.ones(2, bool)),
        MetricColumn(MetricSpec("m"), ValueKind.STR, np.zeros(3, "<i4"), np.ones(3, bool)),
        MetricColumn(MetricSpec("m"), ValueKind.INT_VECTOR, np.zeros(3, "<i8"), np.ones(3, bool)),
        MetricColumn(
            MetricSpec("m"),
            ValueKind.INT_VECTOR,
            np.zeros(3, "<i8"),
            np.ones(3, bool),
            np.array([0, 2, 1, 3]),
        ),
    ],
)
def test_self_check_names_the_metric_that_does_not_fit(broken: MetricColumn) -> None:
    with pytest.raises(ProfileFormatError, match="'m'"):
        broken.self_check(3)


WALL = "wall (ns)"


def ranges(*rows: tuple[int, str, int | None]) -> Profile:
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    for parent, name, wall in rows:
        metrics = {} if wall is None else {WALL: wall}
        builder.add(parent, name, FrameKind.SCOPE, metrics=metrics)
    return builder.build()


def test_a_row_has_its_time_without_that_of_the_nearest_rows_below() -> None:
    profile = ranges((0, "load", 90), (1, "read", None), (2, "decode", 50), (3, "copy", 20))

    spans = spans_of(profile, profile.columns[WALL])

    assert spans.own.tolist()[1:] == [40, 0, 30, 20]
    assert spans.whole.tolist() == [90, 90, 50, 50, 20]
    assert spans.has_own.tolist() == [False, True, False, True, True]


def test_self_times_add_up_to_the_outermost_ranges() -> None:
    profile = ranges((0, "a", 70), (1, "b", 30), (0, "c", 11), (3, "d", 11))

    assert with_self_times(profile).inclusive(WALL).tolist() == [81, 70, 30, 11, 11]


def test_time_of_a_device_is_not_time_of_the_host() -> None:
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    scope = builder.add(0, "s", FrameKind.SCOPE, metrics={WALL: 10})
    for kind, time in (("CPU", 4), ("CUDA", 400)):
        metrics = {"time (ns)": time}
        builder.add(scope, f"on {kind}", FrameKind.OP, metrics=metrics, device=Device(kind, 0))
    profile = builder.build()

    spans = spans_of(profile, profile.columns[WALL])

    assert spans.own.tolist() == [0, 6, 4, 0]


@pytest.mark.parametrize("name", ["wall", "wall (mb)", "loss (ns)"])
def test_other_metrics_are_no_ranges(name: str) -> None:
    builder = ProfileBuilder()
    builder.declare(name, Aggregation.EXCLUSIVE)
    builder.add(0, "a", metrics={name: 1})

    assert not is_span(builder.build().columns[name])


def test_folding_rows_into_one_above_counts_their_time_once() -> None:
    profile = ranges((0, "f", 30), (1, "f", 20), (2, "f", 10), (0, "g", None), (4, "h", 5))

    folded = profile.fold_below(1)

    assert folded.columns[WALL].values.tolist() == [0, 30, 5]
    assert np.flatnonzero(folded.columns[WALL].valid).tolist() == [1, 2]


@pytest.mark.parametrize("has_scope", [False, True])
def test_backward_pass_adds_to_the_time_of_its_layer(has_scope: bool) -> None:
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    top = builder.add(0, "fit", FrameKind.SCOPE, metrics={WALL: 100}) if has_scope else 0
    model = builder.add(top, "net (Net)", FrameKind.LAYER, metrics={WALL: 30})
    layer = builder.add(model, "net.fc (Linear)", FrameKind.LAYER, metrics={WALL: 20})
    backward = builder.add(layer, "<backward>", FrameKind.LAYER)
    for parent, name, time in ((layer, "addmm", 15), (backward, "mm", 50)):
        builder.add(
            parent, name, FrameKind.OP, metrics={"time (ns)": time}, device=Device("CPU", 0)
        )
    profile = builder.build()

    spans = spans_of(profile, profile.columns[WALL])

    found = dict(
        zip(
            map(profile.name, range(len(profile))),
            zip(spans.whole, spans.own, strict=True),
            strict=True,
        )
    )
    assert found["net (Net)"] == (80, 10)
    assert found["net.fc (Linear)"] == (70, 5)
    assert found["<backward>"][0] == found["mm"][0] == 50
    assert found["ROOT"][0] == (100 if has_scope else 80)
    assert not has_scope or found["fit"] == (100, 20)
