"""`.csv` and `.parquet`: a line for each row of the tree, for spreadsheets and databases.

Both are only written: a table of rows holds neither distributions nor what is known of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import MissingExtraError
from proton_bench.formats.base import WriteOnly
from proton_bench.formats.export.csv_text import csv_cell, csv_line
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile

__all__ = ["CsvTable", "ParquetTable"]

_LOST = "a table holds rows and their metrics, no distributions, facts of devices or provenance"
_NUMBERS = (int, float)
_FACTS = ("row", "parent", "depth", "name", "kind", "device", "code_hash", "grid", "block")


class CsvTable(WriteOnly):
    """UTF-8 CSV with a heading; no value is an empty field, vectors are JSON."""

    name = "csv"
    suffixes = (".csv",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Say what the file does not hold."""
        del profile
        return (_LOST,)

    def encode(self, profile: Profile) -> bytes:
        """Return the file. Texts that look like formulas stay."""
        columns = dict(_columns(profile))
        cells = [_cells(values) for values in columns.values()]
        lines = [csv_line(columns)]
        lines += [f"{','.join(line)}\n" for line in zip(*cells, strict=True)]
        return "".join(lines).encode()


class ParquetTable(WriteOnly):
    """Parquet with typed columns, written by DuckDB."""

    name = "parquet"
    suffixes = (".parquet",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Say what the file does not hold."""
        del profile
        return (_LOST,)

    def encode(self, profile: Profile) -> bytes:
        """Return the file.

        Raises:
            MissingExtraError: DuckDB is not installed.
        """
        duckdb = _import_duckdb()
        arrays, named = {}, []
        for place, (name, values) in enumerate(_columns(profile)):
            arrays[f"c{place}"] = _array(values)
            quoted = name.replace('"', '""')
            named.append(f'c{place}::{_type(values)} AS "{quoted}"')
        with tempfile.TemporaryDirectory() as folder, _opened(duckdb) as connection:
            file = str(Path(folder) / "rows.parquet").replace("'", "''")
            connection.register("incoming", arrays)
            connection.execute(
                f"COPY (SELECT {', '.join(named)} FROM incoming) TO '{file}' (FORMAT parquet)"
            )
            return (Path(folder) / "rows.parquet").read_bytes()


def _opened(duckdb: Any) -> Any:
    """Return a database that fetches nothing."""
    config = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    return duckdb.connect(":memory:", config=config)


def _import_duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError(
            f"Parquet needs DuckDB, which cannot be imported ({error}): pip install duckdb"
        ) from error
    return duckdb


# -- columns -------------------------------------------------------------------------------------
def _columns(profile: Profile) -> Iterator[tuple[str, list[Any]]]:
    """Yield facts of rows, then each metric, and of inclusive ones the sum over the subtree.

    SQL and Parquet ignore case: of names that then are one, later ones get a number.
    """
    taken: set[str] = set()
    for name, values in (*_facts(profile), *_metrics(profile)):
        free, number = name, 1
        while free.casefold() in taken:
            number += 1
            free = f"{name} #{number}"
        taken.add(free.casefold())
        yield free, values


def _facts(profile: Profile) -> Iterator[tuple[str, list[Any]]]:
    kinds = [kind.name.lower() for kind in FrameKind]
    devices = [f"{device.kind}:{device.index}" for device in profile.devices]
    variants = profile.variants
    places = profile.variant_rows.tolist()
    found = {
        "row": list(range(len(profile))),
        "parent": [above if above >= 0 else None for above in profile.parents.tolist()],
        "depth": profile.depths().tolist(),
        "name": [profile.strings[place] for place in profile.frames.tolist()],
        "kind": [kinds[kind] for kind in profile.kinds.tolist()],
        "device": [devices[at] if at >= 0 else None for at in profile.device_rows.tolist()],
        "code_hash": [variants[at].code_hash or None if at >= 0 else None for at in places],
        "grid": [_shape(variants[at].grid) if at >= 0 else None for at in places],
        "block": [_shape(variants[at].block) if at >= 0 else None for at in places],
    }
    yield from ((name, found[name]) for name in _FACTS)


def _shape(sizes: tuple[int, int, int]) -> str:
    return "x".join(map(str, sizes))


def _metrics(profile: Profile) -> Iterator[tuple[str, list[Any]]]:
    for name, column in profile.columns.items():
        yield name, _values(column)
        if column.kind.is_number and column.spec.aggregation is Aggregation.INCLUSIVE:
            sums = profile.inclusive(name).astype(object)
            sums[~profile.covered(name)] = None
            yield f"{name} (inc)", sums.tolist()


def _values(column: MetricColumn) -> list[Any]:
    if column.kind.is_number:
        cells = column.values.astype(object)
        cells[~(column.valid & np.isfinite(column.values))] = None
        return list(cells.tolist())
    if column.kind is ValueKind.STR:
        return column.to_list()
    return [
        None if value is None else msgspec.json.encode(value).decode() for value in column.to_list()
    ]


def _cells(values: list[Any]) -> list[str]:
    """Return the values of a column as they stand in the lines; texts are many and often alike."""
    known: dict[Any, str] = {None: ""}
    return [
        str(value)
        if type(value) in _NUMBERS
        else known.get(value) or known.setdefault(value, csv_cell("" if value is None else value))
        for value in values
    ]


def _type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} and kinds:
        return "BIGINT"
    return "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"


def _array(values: list[Any]) -> Any:
    """Return an array that DuckDB reads without a guess at its type."""
    known = np.array([value is not None for value in values], dtype=np.bool_)
    kind = _type(values)
    if kind == "VARCHAR":
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found
    numbers = np.array([value or 0 for value in values], dtype="i8" if kind == "BIGINT" else "f8")
    return np.ma.array(numbers, mask=~known)
