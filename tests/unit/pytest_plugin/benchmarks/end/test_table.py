from __future__ import annotations

from dataclasses import dataclass

import pytest
from fakes.benchmarks import record_of

from proton_bench.pytest_plugin.benchmarks.end.table import tables


@dataclass
class Chosen:
    group_by: str = "group"
    sort: str = "none"
    columns: tuple[str, ...] = ("median", "rounds", "calls", "clock")
    time_unit: str = "auto"


RECORDS = [
    record_of("f.py::test_b[2]", cpu_ns=(2e6, 3e6, 4e6), group="slow", parameters={"n": "2"}),
    record_of("f.py::test_a[1]", cpu_ns=(500.0,), parameters={"n": "1"}),
    record_of("g.py::test_b[1]", cpu_ns=(1e6, 1e6), group="slow", parameters={"n": "1"}),
]


def shown(**chosen: object) -> list[str]:
    return tables(RECORDS, Chosen(**chosen))  # type: ignore[arg-type]


def test_each_group_has_a_table_in_a_unit_of_its_own() -> None:
    assert shown() == [
        "slow:",
        "median (ms)  rounds  calls  clock  benchmark",
        "          3       3      4    cpu  f.py::test_b[2]",
        "          1       2      4    cpu  g.py::test_b[1]",
        "median (ns)  rounds  calls  clock  benchmark",
        "        500       1      4    cpu  f.py::test_a[1]",
    ]


@pytest.mark.parametrize(
    ("group_by", "titles"),
    [
        ("name", ["test_b[2]:", "test_a[1]:", "test_b[1]:"]),
        ("func", ["test_b:", "test_a:"]),
        ("fullname", ["f.py::test_b[2]:", "f.py::test_a[1]:", "g.py::test_b[1]:"]),
        ("param", ["n=2:", "n=1:"]),
    ],
)
def test_tables_are_grouped(group_by: str, titles: list[str]) -> None:
    assert [line for line in shown(group_by=group_by) if line.endswith(":")] == titles


@pytest.mark.parametrize(
    ("sort", "tests"), [("median", ["g.py", "f.py"]), ("name", ["f.py", "g.py"])]
)
def test_tables_are_sorted(sort: str, tests: list[str]) -> None:
    lines = shown(sort=sort)[2:4]

    assert [line.rpartition("  ")[2].partition("::")[0] for line in lines] == tests


def test_columns_and_unit_are_chosen() -> None:
    lines = shown(columns=("max", "stddev", "iqr"), time_unit="us")

    assert lines[1] == "max (us)  stddev (us)  iqr (us)  benchmark"
    assert lines[2].split()[:3] == ["4000", "1000", "2000"]


def test_hostile_names_stay_on_their_line() -> None:
    lines = tables([record_of("f.py::test[\x1b[31m\n]")], Chosen())  # type: ignore[arg-type]

    assert lines[1].endswith(r"f.py::test[\x1b[31m\n]")
