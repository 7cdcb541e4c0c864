from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.model.frame import StringTable
from proton_bench.model.metrics.metric import MetricColumn, MetricSpec, ValueKind


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
