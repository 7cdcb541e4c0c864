"""Writes databases as ``nsys export --type sqlite`` does.

Tables and columns are those of NVIDIA's page "SQLite Export Schema Reference" and of exports with
schema 3.x: ``MODERN`` is the schema of current versions, ``OLD`` that of 2020.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

_WORK = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER"
)
MODERN = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, "
    "value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER, id INTEGER, name TEXT, smCount INTEGER, "
    "computeMajor INTEGER, computeMinor INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, "
    "numMultiprocessors INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_WORK}, demangledName INTEGER NOT NULL, "
    "shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, "
    "registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, "
    "blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, "
    "localMemoryPerThread INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_WORK}, bytes INTEGER, copyKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_WORK}, value INTEGER, bytes INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_WORK}, graphId INTEGER, graphExecId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, "
    "returnValue INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, "
    "rangeId INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
    "domainId INTEGER",
}
OLD = {
    "StringIds": MODERN["StringIds"],
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, "
    "streamId INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, globalTid INTEGER, "
    "correlationId INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER",
}
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
PUSH_POP, START_END, MARK = 59, 60, 34

Row = dict[str, Any]


def process(pid: int) -> int:
    """Return the global id of a process."""
    return 1 << 56 | pid << 24


def thread(pid: int, tid: int) -> int:
    """Return the global id of a thread."""
    return process(pid) | tid


def push(text: str | None, start: int, end: int | None, **more: Any) -> Row:
    """Return an NVTX range of thread 7 of process 7."""
    row = {"text": text, "start": start, "end": end, "globalTid": thread(7, 7)}
    return {"eventType": PUSH_POP, **row, **more}


def call(correlation: int, start: int, **more: Any) -> Row:
    """Return a CUDA call of thread 7 of process 7."""
    row = {"start": start, "end": start + 5, "globalTid": thread(7, 7)}
    return {**row, "correlationId": correlation, **more}


def kernel(correlation: int, start: int, end: int, **more: Any) -> Row:
    """Return a kernel, named by text 1, of process 7 on device 0."""
    row = {"start": start, "end": end, "correlationId": correlation, "demangledName": 1}
    return {**row, "shortName": 2, "deviceId": 0, "streamId": 7, **more}


def write_export(
    path: Path, rows: Mapping[str, Sequence[Row]], schema: Mapping[str, str] | None = None
) -> Path:
    """Write a database with the tables that have rows, and return its path.

    Kernels, copies and calls of schemas with processes belong to process 7 unless they say so.
    """
    tables = MODERN if schema is None else schema
    with closing(sqlite3.connect(path)) as connection:
        for table, entries in rows.items():
            columns = tables[re.sub(r"_V\d+$", "", table)]
            connection.execute(f"CREATE TABLE {table} ({columns})")
            for entry in entries:
                _insert(connection, table, _complete(entry, columns))
        connection.commit()
    return path


def _complete(entry: Row, columns: str) -> Row:
    if "globalPid" not in columns:
        return entry
    return {"globalPid": process(7), "contextId": 1, "streamId": 7, "deviceId": 0, **entry}


def _insert(connection: sqlite3.Connection, table: str, row: Row) -> None:
    columns = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" for _ in row)
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))


def texts(*values: str) -> list[Row]:
    """Return the rows of the table of texts, numbered from 1."""
    return [{"id": number, "value": value} for number, value in enumerate(values, 1)]
