"""Files of a table that several processes write, and one commits together."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from proton_bench.store.engines import deltalake_fs, pyarrow_parquet
from proton_bench.store.engines import deltalake_transaction as transaction
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import PARTITIONS, SCHEMAS
from proton_bench.store.store import MEASURED, ROW_GROUP_ROWS, Partition, Store, refused

__all__ = ["NewFiles"]

# Rows that wait in memory until they become files, one for each day and job.
_MOST_WAITING = 2 * ROW_GROUP_ROWS
_IN_LIST = ".list."
# Columns whose numbers rise in small steps.
_RISING = (f"sketch.index{_IN_LIST}element",)


class NewFiles:
    """New files of a table with partitions. `Store.commit` makes their rows count.

    Args:
        store: The store.
        table: Name of the table.
    """

    def __init__(self, store: Store, table: str) -> None:
        self._store, self._table = store, table
        fields = [each for each in SCHEMAS[table] if each.name not in PARTITIONS[table]]
        self._columns = [each.name for each in fields]
        leaves = [path for each in fields for path in _leaves(each.name, each.type)]
        # Bounds of the buckets of sketches would skip nothing.
        self._bounded = [path for path in leaves if _IN_LIST not in path]
        self._repeating = [path for path in leaves if path not in (*MEASURED, *_RISING)]
        self._waiting: defaultdict[Partition, list[pa.Table]] = defaultdict(list)
        self._rows = 0
        self._written: list[transaction.AddAction] = []

    def add(self, partition: Partition, rows: pa.Table) -> None:
        """Add rows of a day and job.

        Raises:
            OutputError: A file cannot be written.
        """
        if not len(rows):
            return
        self._waiting[partition].append(rows)
        self._rows += len(rows)
        if self._rows >= _MOST_WAITING:
            self._write()

    def finish(self) -> list[transaction.AddAction]:
        """Write what still waits, and return all files.

        Raises:
            OutputError: A file cannot be written.
        """
        self._write()
        return self._written

    def _write(self) -> None:
        with refused(f"add to the table {self._table} of {self._store.uri}"):
            folder = self._store.place(self._table)
            handler = deltalake_fs.DeltaStorageHandler(folder, self._store.settings())
            for partition, tables in self._waiting.items():
                rows = pa.concat_tables(tables).select(self._columns)
                self._written.append(self._file_of(partition, rows, pa.fs.PyFileSystem(handler)))
        self._waiting.clear()
        self._rows = 0

    def _file_of(self, partition: Partition, rows: pa.Table, folder: Any) -> transaction.AddAction:
        values = dict(zip(PARTITIONS[self._table], map(str, partition), strict=True))
        below = "/".join(f"{name}={quote(value, safe='')}" for name, value in values.items())
        path = f"{below}/part-{uuid4()}.zstd.parquet"
        facts: list[Any] = []
        with folder.open_output_stream(path) as file:
            pyarrow_parquet.write_table(
                rows,
                file,
                row_group_size=ROW_GROUP_ROWS,
                compression="zstd",
                use_dictionary=self._repeating,
                column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
                write_statistics=self._bounded,
                metadata_collector=facts,
            )
            size = file.tell()
        return transaction.AddAction(
            path,
            size,
            values,
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=_statistics(facts[0]),
        )


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the columns of a Parquet file that a column of a type becomes."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield f"{path}{_IN_LIST}element" if pa.types.is_list(kind) else path


def _statistics(file: Any) -> str:
    """Return what the log of a table says of the columns of a file, which readers skip files by."""
    found: dict[str, Any] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for place in range(file.num_columns):
        groups = [file.row_group(each).column(place) for each in range(file.num_row_groups)]
        path = groups[0].path_in_schema
        known = [group.statistics for group in groups if group.statistics is not None]
        if len(known) < len(groups):
            continue
        _put(found["nullCount"], path, sum(each.null_count for each in known))
        ranges = [each for each in known if each.num_values]
        if ranges and all(each.has_min_max for each in ranges):
            _put(found["minValues"], path, min(each.min for each in ranges))
            _put(found["maxValues"], path, max(each.max for each in ranges))
    return json.dumps({"numRecords": file.num_rows, **found})


def _put(values: dict[str, Any], path: str, value: Any) -> None:
    """Put the value of a column into those of a table, unless JSON has no such number."""
    if isinstance(value, float) and not math.isfinite(value):
        return
    *above, name = path.split(".")
    for each in above:
        values = values.setdefault(each, {})
    values[name] = value
