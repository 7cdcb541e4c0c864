"""`.csv` and `.parquet`: a line for each row of the tree, for spreadsheets and databases.

Both are only written: a table of rows has neither distributions nor facts of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import MissingExtraError
from proton_bench.formats.base import WriteOnly
from proton_bench.model.arrays import Array
from proton_bench.model.columns import chosen, metric_columns, objects, row_columns
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible

# The last is a command of GitHub's log at the start of a line.
_SPECIAL = re.compile(r'[",]|^\s*::')
# Text that spreadsheets evaluate, also in wide forms, and numbers, which they should.
_FORMULA = re.compile("[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf|nan)", re.IGNORECASE)


def csv_line(cells: Iterable[str]) -> str:
    """Return one line with its end.

    Control characters are escaped, and ``'`` is put before a text that a spreadsheet would
    evaluate; a single empty cell is quoted, else the line would be empty.
    """
    return (",".join(map(csv_cell, cells)) or '""') + "\n"


def csv_cell(cell: str) -> str:
    """Return one cell of such a line; numbers are unchanged."""
    shown = _inert(visible(cell, len(cell)))
    return _quoted(shown) if _SPECIAL.search(shown) else shown


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _inert(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


_LOST = "a table has rows and their metrics, but no distributions, facts of devices or provenance"
_NUMBERS = (int, float)


class CsvTable(WriteOnly):
    """UTF-8 CSV with a heading; no value is an empty field, vectors are JSON."""

    name = "csv"
    suffixes = (".csv",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        del profile
        return (_LOST,)

    def encode(self, profile: Profile) -> bytes:
        """Return the file. Texts that look like formulas stay."""
        columns = _columns(profile)
        cells = [_cells(values.tolist()) for values in columns.values()]
        lines = [csv_line(columns)]
        lines += [f"{','.join(line)}\n" for line in zip(*cells, strict=True)]
        return "".join(lines).encode()


class ParquetTable(WriteOnly):
    """Parquet with typed columns, written by DuckDB."""

    name = "parquet"
    suffixes = (".parquet",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        del profile
        return (_LOST,)

    def encode(self, profile: Profile) -> bytes:
        """Return the file.

        Raises:
            MissingExtraError: DuckDB is not installed.
        """
        import tempfile  # slow to load

        duckdb = _import_duckdb()
        arrays, named = {}, []
        for place, (name, values) in enumerate(_columns(profile).items()):
            kind, quoted = _type(values), (name or "unnamed").replace('"', '""')
            is_text = kind == "VARCHAR"
            arrays[f"c{place}"] = objects([*map(_cell, values.tolist())]) if is_text else values
            named.append(f'c{place}::{kind} AS "{quoted}"')
        with tempfile.TemporaryDirectory() as folder, _opened(duckdb) as connection:
            file = str(Path(folder) / "rows.parquet").replace("'", "''")
            connection.register("incoming", arrays)
            connection.execute(
                f"COPY (SELECT {', '.join(named)} FROM incoming) TO '{file}' (FORMAT parquet)"
            )
            return (Path(folder) / "rows.parquet").read_bytes()


def _opened(duckdb: Any) -> Any:
    """Return a database without network access."""
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
def _columns(profile: Profile) -> dict[str, Array]:
    """Return facts of rows, then each metric, and for inclusive ones the sum over the subtree.

    NaN and infinity are missing. SQL and Parquet ignore case, so later ones of equal names get a
    number.
    """
    columns = _facts(profile)
    taken = set(columns)
    for metric, suffix, values in metric_columns(profile):
        free, number = f"{metric}{suffix}", 1
        while free.casefold() in taken:
            number += 1
            free = f"{metric}{suffix} #{number}"
        taken.add(free.casefold())
        # Readers of CSV take a column with such a text for one of texts.
        columns[free] = np.ma.masked_invalid(values) if values.dtype.kind == "f" else values
    return columns


def _facts(profile: Profile) -> dict[str, Array]:
    rows, variants, places = row_columns(profile), profile.variants, profile.variant_rows
    devices = [f"{device.kind}:{device.index}" for device in profile.devices]
    return {
        "row": np.arange(len(profile)),
        **{name: rows[name] for name in ("parent", "depth", "name", "kind")},
        "device": chosen(devices, profile.device_rows),
        "code_hash": chosen([each.code_hash or None for each in variants], places),
        "grid": chosen(["x".join(map(str, each.grid)) for each in variants], places),
        "block": chosen(["x".join(map(str, each.block)) for each in variants], places),
    }


def _cells(values: list[Any]) -> list[str]:
    """Return the values of a column as cells; many texts are equal."""
    known: dict[Any, str] = {None: ""}
    return [
        str(value)
        if type(value) in _NUMBERS
        else known.get(value)
        or known.setdefault(value, csv_cell("" if value is None else _cell(value)))
        for value in values
    ]


def _cell(value: Any) -> Any:
    """Return a cell: vectors are JSON, other values are unchanged."""
    return msgspec.json.encode(value).decode() if isinstance(value, tuple) else value


def _type(values: Array) -> str:
    """Return the type of a column; without values it is text."""
    if values.dtype == object or not np.ma.count(values):
        return "VARCHAR"
    return "BIGINT" if values.dtype.kind == "i" else "DOUBLE"
