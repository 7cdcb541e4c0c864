"""Tables of rows are read back by pandas and DuckDB with every value."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from proton_bench.errors import MissingExtraError
from proton_bench.formats.registry import find_format, read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible

DATA = Path(__file__).parents[3] / "data"
NAMES = (
    "<script>",
    "=1+1",
    'say "so", now',
    "line\nbreak",
    "return\ronly",
    "\x1b[31m",
    "NA",
    "' OR 1=1 --",
    "名前",
    " spaces ",
)


def shown(name: str) -> str:
    """Return a name as CSV has it; one of them would be computed."""
    return f"'{name}" if name.startswith("=") else visible(name)


def rows() -> Profile:
    builder = ProfileBuilder()
    builder.declare("label", Aggregation.PROPERTY)
    for place, name in enumerate(NAMES, 1):
        metrics: dict[str, Any] = {"time (ns)": 2**60 + place, "share": place / 8}
        builder.add(0, name, FrameKind.KERNEL, metrics={**metrics, "label": name})
    variant = Variant("c0de", (2, 3, 1), (32, 1, 1))
    builder.add(
        0,
        "vector",
        metrics={"parts": (1.5, 2.0), "share": math.nan, "Share": 1, "Name": 5},
        device=Device("CUDA", 1),
        variant=variant,
    )
    return builder.build()


def csv_frame(profile: Profile) -> pd.DataFrame:
    content = find_format("csv").encode(profile)
    whole = {"time (ns)": "Int64"}
    return pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""], dtype=whole)


def parquet_rows(profile: Profile, path: Path, sql: str) -> list[tuple[Any, ...]]:
    duckdb = pytest.importorskip("duckdb", reason="needs the extra store")
    write_profile(profile, path)
    found: list[tuple[Any, ...]] = duckdb.sql(sql.format(f"'{path}'")).fetchall()
    return found


def test_pandas_reads_what_was_written() -> None:
    frame = csv_frame(rows())

    assert frame["name"].tolist() == ["ROOT", *map(shown, NAMES), "vector"]
    assert frame["label"].tolist()[1:-1] == [*map(shown, NAMES)]
    assert frame["time (ns)"][1:-1].tolist() == [2**60 + n for n in range(1, len(NAMES) + 1)]
    last = frame.iloc[-1]
    assert (last["device"], last["grid"], last["block"]) == ("CUDA:1", "2x3x1", "32x1x1")
    assert (last["code_hash"], last["parts"], last["parent"]) == ("c0de", "[1.5,2.0]", 0)
    assert math.isnan(last["share"])


def test_duckdb_reads_parquet_with_exact_types(tmp_path: Path) -> None:
    found = parquet_rows(
        rows(),
        tmp_path / "x.parquet",
        'SELECT name, "time (ns)", share, label FROM {} ORDER BY row',
    )

    assert [line[0] for line in found] == ["ROOT", *NAMES, "vector"]
    assert [line[1] for line in found[1:-1]] == [2**60 + n for n in range(1, len(NAMES) + 1)]
    assert (found[1][2], found[-1][2]) == (0.125, None)
    assert [line[3] for line in found[1:-1]] == list(NAMES)


def test_a_metric_without_a_name_has_a_column(tmp_path: Path) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"": 6.0})

    found = parquet_rows(builder.build(), tmp_path / "x.parquet", "SELECT unnamed FROM {}")

    assert found[1:] == [(6.0,)]


def test_names_that_differ_in_case_alone_are_distinguished(tmp_path: Path) -> None:
    (line,) = parquet_rows(
        rows(),
        tmp_path / "x.parquet",
        'SELECT share, "Share #2", "Name #2" FROM {} WHERE name = \'vector\'',
    )

    assert line == (None, 1, 5)


def test_sums_over_subtrees_stand_beside_own_values(tmp_path: Path) -> None:
    profile = read_profile(DATA / "upstream" / "eager-tree.hatchet")

    query = 'SELECT "time (ns) (inc)", sum("time (ns)") OVER () FROM {} ORDER BY row LIMIT 1'
    ((inclusive, total),) = parquet_rows(profile, tmp_path / "x.parquet", query)
    frame = csv_frame(profile)

    assert inclusive == total == profile.inclusive("time (ns)")[0]
    assert frame["time (ns) (inc)"].tolist() == profile.inclusive("time (ns)").tolist()
    assert frame["time (ns)"].sum() == total


def test_duckdb_reads_the_csv_too(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs the extra store")
    write_profile(rows(), tmp_path / "x.csv")

    reader = f"read_csv('{tmp_path / 'x.csv'}', all_varchar = true, nullstr = '')"
    found = duckdb.sql(f"SELECT name FROM {reader}").fetchall()

    assert sorted(line[0] for line in found) == sorted(["ROOT", *map(shown, NAMES), "vector"])


def test_an_empty_profile_is_a_line(tmp_path: Path) -> None:
    empty = ProfileBuilder().build()

    assert len(csv_frame(empty)) == 1
    assert parquet_rows(empty, tmp_path / "x.parquet", "SELECT name FROM {}") == [("ROOT",)]


def test_what_a_table_lacks_is_reported(tmp_path: Path) -> None:
    for name in ("x.csv", "x.parquet"):
        if name.endswith("parquet"):
            pytest.importorskip("duckdb", reason="needs the extra store")
        (note,) = write_profile(rows(), tmp_path / name)
        assert "no distributions, facts of devices or provenance" in note


def test_missing_duckdb_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(MissingExtraError, match=r"pip install duckdb"):
        find_format("parquet").encode(rows())
