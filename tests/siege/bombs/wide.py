"""Metrics, columns, devices and variants beyond number."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from siege.bombs.deep import session
from siege.bombs.kinds import column, edited, grown, kind_of, siblings, traced
from siege.bombs.references import CLEARED, event, slices
from siege.bombs.sqlite import KERNEL, ranges, script

from proton_bench.formats.export.json_file import JsonFile
from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.protobuf import Message

kind = kind_of("width")


def plain(**more: Any) -> dict[str, Any]:
    """Return a `.json` profile of one kernel as a document, with other keys."""
    document = json.loads(JsonFile().encode(NativeFile().decode(edited(len), "a.proton")))
    return document | more


@kind(".json")
def metrics_by_the_thousand() -> bytes:
    one = {"unit": "", "aggregation": "inclusive", "type": "int", "values": [None, 5]}
    return json.dumps(plain(metrics=[{**one, "name": f"m{n}"} for n in range(80_000)])).encode()


@kind(".proton", is_quick=True)
def columns_by_the_thousand() -> bytes:
    def change(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        document["metrics"] = [{**metric, "name": f"m{number}"} for number in range(30_000)]

    return edited(change)


@kind(".proton")
def columns_that_just_fit() -> bytes:
    def change(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        document["metrics"] = [{**metric, "name": f"m{number}"} for number in range(4500)]

    return edited(change)


@kind(".proton")
def cells_of_many_rows() -> bytes:
    rows = 900_000
    parents = np.zeros(rows, dtype="<i4")
    parents[0] = -1

    def more(number: int) -> dict[str, Any]:
        values = column(np.full(rows, 5, dtype="<i8"))
        attributes = {"unit": "", "aggregation": "inclusive", "dtype": "<i8", "values": values}
        return {"name": f"m{number}", **attributes, "valid": None, "offsets": None}

    return grown(parents, metrics=[more(number) for number in range(12)])


@kind(".hatchet_msgpack")
def packed_metric_for_each_row() -> bytes:
    nodes = b"".join(
        b"\x83\xa5frame\x81\xa4name\xa1n\xa7metrics\x81\xa5%05d\x01\xa8children\x90" % number
        for number in range(60_000)
    )
    head = b"\x92\x83\xa5frame\x81\xa4name\xa1R\xa7metrics\x80\xa8children\xdc"
    return head + (60_000).to_bytes(2, "big") + nodes + b"\x80"


@kind(".hatchet", is_quick=True)
def kinds_of_values_that_change() -> bytes:
    node = b'{"frame":{"name":"n%d"},"metrics":{"m%d":%s},"children":[]}'
    values = (b"1", b'"x"', b"[1,2]", b"1.5")
    return siblings(node % (n, n // 4, values[n % 4]) for n in range(9000))


@kind(".chrome_trace")
def metrics_of_each_scope() -> bytes:
    return session(
        b'{"ph":"X","cat":"scope","name":"n","pid":7,"tid":1,"ts":%d,"dur":1,'
        b'"args":{"call_stack":["s%d"],"metrics":{"m%d":"%d"}}}' % (n, n, n, n)
        for n in range(60_000)
    )


@kind(".json.gz")
def shapes_of_each_kernel() -> bytes:
    return traced(
        b",".join(
            b'{"ph":"X","cat":"kernel","name":"n","pid":0,"tid":7,"ts":%d,"dur":9,"args":'
            b'{"device":%d,"stream":7,"correlation":5,"grid":[%d,1,1],"block":[1,%d,1]}}'
            % (n, n % 50, n, n)
            for n in range(30_000)
        )
        + b"]}"
    )


@kind(".pftrace")
def annotations_of_each_slice() -> bytes:
    found = (
        event(
            1,
            Message().text(10, "call_stack").text(6, f'["n{number}"]'),
            Message().text(10, f"m{number}").number(4, number),
        )
        for number in range(40_000)
    )
    return CLEARED + slices(found)


@kind(".sqlite")
def columns_of_each_table() -> bytes:
    wide = ", ".join(f"c{number}" for number in range(1990))
    work = f"start, end, correlationId, deviceId, {wide}"
    lines = (f"CREATE TABLE t{number} ({wide})" for number in range(300))
    return script(ranges(9), f"CREATE TABLE {KERNEL} ({work})", *lines, page=8192)


@kind("", ("view", "run.proton", "--counters", "counters.csv"))
def columns_of_counters() -> dict[str, bytes]:
    names = b",".join(b'"m%d"' % number for number in range(200_000))
    row = b'"0","kernel"' + b",1" * 200_000
    return {"counters.csv": b'"ID","Kernel Name",' + names + b"\n" + b"\n".join([row] * 15) + b"\n"}


@kind("", ("view", "run.proton", "--counters", "counters.csv"))
def counters_of_each_launch() -> dict[str, bytes]:
    head = b'"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    rows = (b'"%d","kernel","m%d","","5"\n' % (n, n) for n in range(250_000))
    return {"counters.csv": head + b"".join(rows)}


@kind(".hatchet")
def devices_of_each_row() -> bytes:
    node = b'{"frame":{"name":"n"},"metrics":{"time (ns)":1,"device_id":"%d","device_type":"D%d"}}'
    return siblings(node % (n, n % 7) for n in range(60_000))


@kind(".json")
def distributions_of_each_row() -> bytes:
    one = {"n": 1, "zero_count": 0, "sum": 1.0, "min": 1.0, "max": 1.0, "sum_ln": 0.0}
    many = [{**one, "sum_ln2": 0.0, "metric": f"m{n}", "row": 1} for n in range(60_000)]
    return json.dumps(plain(distributions=many)).encode()


@kind(".json")
def reasons_by_the_thousand() -> bytes:
    return json.dumps(plain(dropped={f"reason {number}": 1 for number in range(30_000)})).encode()
