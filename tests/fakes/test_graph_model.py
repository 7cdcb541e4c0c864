"""The double reports graphs as libcupti did: its callbacks match a recorded stream."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes import stream_file
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

HERE = Path(__file__).parent
RECORDED = HERE.parent / "data" / "cupti" / "graph_changes.cupti.gz"
MODULE_PROFILED, EDGE_CREATED = 8, 15  # not enabled
IDS = ("cbid", "graph", "original_graph", "graph_exec", "node", "original_node")

# The workload `graph_changes` of cupti_recorder/workloads.py.
WORKLOAD = """
import sys
from pathlib import Path
sys.path[:0] = [{fakes!r}, {recorder!r}]
import doubles, worker
recording = worker.Recording(sys.argv[1], sys.argv[2], (10,))
double = doubles.Cupti(sys.argv[2])

def capture():
    double.capture_begin(7)
    double.launch("add_kernel", 7)
    double.launch("add_kernel", 7)
    return double.capture_end(7)

def launch(executable):
    double.graph_launch(executable, 7)
    double.graph_launch(executable, 7)

with recording() as mark:
    mark("capture")
    first = capture()
    executable = double.graph_instantiate(first)
    launch(executable)
    mark("update")
    second = capture()
    double.graph_update(executable, second)
    launch(executable)
    mark("clone")
    clone = double.graph_clone(first)
    of_clone = double.graph_instantiate(clone)
    launch(of_clone)
    mark("child")
    parent = double.graph_create()
    double.graph_add_child(parent, clone)
    of_parent = double.graph_instantiate(parent)
    launch(of_parent)
    mark("destruction")
    for each in (executable, of_clone, of_parent):
        double.graph_exec_destroy(each)
    for each in (first, second, clone, parent):
        double.graph_destroy(each)
recording.write(sys.argv[3])
"""

Report = tuple[int, ...]


def graph_reports(stream: stream_file.Stream) -> dict[str, list[Report]]:
    """Return the reports on graphs, by the part of the workload."""
    parts: dict[str, list[Report]] = {}
    part: list[Report] = []
    for call in stream.calls():
        if call.fields["domain"] == stream_file.MARK:
            part = parts.setdefault(str(call.text), [])
        elif call.fields["domain"] == stream_file.RESOURCE:
            told_of = tuple(call.fields[name] for name in IDS)
            part += [told_of] if told_of[0] not in {MODULE_PROFILED, EDGE_CREATED} else []
    return parts


def replayed(stream: stream_file.Stream) -> list[tuple[int, int]]:
    """Return graph and node of every record, in their order."""
    return [(record.u32(156), record.u64(144)) for record in stream.records() if record.kind == 10]


@pytest.fixture(scope="module")
def both(
    cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory
) -> tuple[stream_file.Stream, stream_file.Stream]:
    sys.path.insert(0, str(HERE))
    import record_streams

    folder = tmp_path_factory.mktemp("graphs")
    recorder, output = record_streams.build(folder), folder / "double.cupti"
    code = WORKLOAD.format(fakes=str(HERE), recorder=str(HERE / "cupti_recorder"))
    command = [sys.executable, "-c", code, str(recorder), str(cupti_doubles.cupti), str(output)]
    subprocess.run(command, check=True)
    return stream_file.read_stream(output), stream_file.read_stream(RECORDED)


Both = tuple[stream_file.Stream, stream_file.Stream]


@pytest.mark.parametrize("part", ["capture", "update", "clone", "child"])
def test_graphs_are_made_as_they_were_recorded(both: Both, part: str) -> None:
    double, real = graph_reports(both[0]), graph_reports(both[1])

    assert double[part] == real[part]


def test_the_same_graphs_and_nodes_are_destroyed(both: Both) -> None:
    double, real = graph_reports(both[0])["destruction"], graph_reports(both[1])["destruction"]

    assert sorted(double) == sorted(real)


def test_records_name_the_nodes_that_they_named(both: Both) -> None:
    assert replayed(both[0]) == replayed(both[1])
