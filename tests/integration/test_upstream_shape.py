"""Under PROTON_BENCH_UPSTREAM_TREE our tree is upstream's, node by node, on libcupti's double.

Upstream is the native module of Triton's wheel in a process of its own. `BETTER` names the
programs of which it loses something: there our tree is compared with the complete one.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from device_cases import CASES, run_program
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

HERE = Path(__file__).parent
STREAMS = sorted((HERE.parent / "data" / "cupti").glob("*.cupti.gz"))
Node = dict[str, Any]

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("proton_bench_plugins.cupti") is None,
        reason="the cupti backend is not built",
    )
]
needs_upstream = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)

# Programs that upstream ends with an error, or of whose kernels it loses some, or shows below other
# graphs too: the tree below each scope, as paths of frames with the number of calls.
BETTER: dict[str, dict[str, int | None]] = {
    "graph_child": {
        "captured": None,
        "captured > first": None,
        "captured > second": None,
        "replay": None,
        "replay > <captured_at>": None,
        "replay > <captured_at> > captured": None,
        "replay > <captured_at> > captured > first": 1,
        "replay > <captured_at> > captured > second": 1,
    },
    "graph_late": {"replay": None, "replay > first": 2, "replay > second": 2},
    "graph_pause": {
        "seen": None,
        "seen > first": None,
        **{
            f"{replay}{below}": count
            for replay in ("replay", "replay again")
            for below, count in {
                "": None,
                " > second": 1,
                " > <captured_at>": None,
                " > <captured_at> > seen": None,
                " > <captured_at> > seen > first": 1,
            }.items()
        },
    },
    **{
        name: {
            f"{above}{below}": count
            for number in range(2)
            for above, below, count in (
                (f"capture {number}", "", None),
                (f"capture {number}", f" > kernel {number}", None),
                (f"replay {number}", "", None),
                (f"replay {number}", " > <captured_at>", None),
                (f"replay {number}", f" > <captured_at> > capture {number}", None),
                (f"replay {number}", f" > <captured_at> > capture {number} > kernel {number}", 1),
            )
        }
        for name in ("two_graphs", "graph_update")
    },
}


def run(face: str, program: str, doubles: Doubles, folder: Path) -> Node:
    environment = doubles.environment(FAKE_CUDA_DEVICES="2", PROTON_BENCH_UPSTREAM_TREE="1")
    return run_program(face, program, environment, folder)


def paths(root: Node) -> dict[str, Node]:
    """Return every node by its path; each path is that of one node."""
    found: dict[str, Node] = {}
    open_nodes = [("", root)]
    while open_nodes:
        above, node = open_nodes.pop()
        for child in node["children"]:
            path = f"{above}{child['frame']['name']}"
            assert path not in found
            assert child["frame"]["type"] == "function"
            assert child.keys() == {"children", "frame", "metrics"}
            found[path] = child["metrics"]
            open_nodes.append((f"{path} > ", child))
    return found


@pytest.mark.nightly(keep=3)
@needs_upstream
@pytest.mark.parametrize("program", [case.name for case in CASES if case.name not in BETTER])
def test_the_tree_is_upstreams(program: str, cupti_doubles: Doubles, tmp_path: Path) -> None:
    theirs = run("upstream", program, cupti_doubles, tmp_path)
    ours = run("ours", program, cupti_doubles, tmp_path)

    assert paths(ours) == paths(theirs)
    assert ours.keys() == theirs.keys()
    assert ours["metrics"] == theirs["metrics"]


@pytest.mark.parametrize("program", BETTER)
def test_what_upstream_loses_has_the_place_that_it_would_have(
    program: str, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    nodes = paths(run("ours", program, cupti_doubles, tmp_path))

    assert {path: metrics.get("count") for path, metrics in nodes.items()} == BETTER[program]


# Streams of which upstream 3.7 loses graphs or shows empty frames of kernels that never ran, and
# scopes in which it shows what a graph held before an update.
LOSING = {"graph_late": "nowhere", "graph_traced": "nowhere", "graph_changes": "update > "}


@pytest.mark.nightly(keep=3)
@needs_upstream
@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name.split(".")[0])
def test_a_recorded_stream_gives_upstreams_tree(
    stream: Path, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    plain = tmp_path / "stream.cupti"
    plain.write_bytes(gzip.decompress(stream.read_bytes()))

    theirs = paths(run("upstream", str(plain), cupti_doubles, tmp_path))
    ours = paths(run("ours", str(plain), cupti_doubles, tmp_path))

    stale = LOSING.get(stream.name.split(".")[0])
    if stale is None:
        assert ours == theirs
    else:
        known = {path: each for path, each in theirs.items() if each and not path.startswith(stale)}
        assert {path: ours[path] for path in known} == known


PROGRAM = """
import os, sys
sys.path[:0] = sys.argv[1:3]
if sys.argv[4] != "ours":
    from proton_bench.recording import compat
    compat.install()
if sys.argv[4] == "alias":
    import triton.profiler as proton
else:
    import proton_bench as proton
from doubles import Cupti
cupti = Cupti()
graph = [cupti.capture_begin(7), cupti.launch("first", 7), cupti.capture_end(7)][-1]
late = cupti.graph_instantiate(graph)
session = proton.start(sys.argv[3], backend="cupti")
with proton.scope("outer", {"items(exc)": 1}):
    cupti.graph_launch(late, 7)
proton.deactivate(session, flushing=True)
import json
from proton_bench import data
print(json.dumps(data.get(session)))
proton.finalize()
"""


@pytest.mark.parametrize(
    ("names", "variable", "is_theirs"),
    [
        ("alias", None, True),
        ("alias", "0", False),
        ("ours", None, False),
        ("ours", "1", True),
        ("installed", None, False),
    ],
)
def test_programs_that_import_triton_profiler_see_upstreams_tree(
    names: str, variable: str | None, is_theirs: bool, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    asked = {} if variable is None else {"PROTON_BENCH_UPSTREAM_TREE": variable}
    folders = [str(HERE.parent / "fakes"), str(HERE)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *folders, str(tmp_path / "x"), names],
        env=cupti_doubles.environment(**asked),
        capture_output=True,
        text=True,
        check=True,
    )

    written = json.loads((tmp_path / "x.hatchet").read_text())
    assert json.loads(done.stdout) == written
    (outer,) = written[0]["children"]
    (first,) = outer["children"]
    assert first["frame"]["name"] == ("first" if is_theirs else "<captured_at>")
    assert outer["metrics"] == {"items": 1}
    assert ("aggregations" in written[0]) is not is_theirs


TESTED = """
import proton_bench as proton

def test_one():
    with proton.scope("work"):
        pass
    with proton.scope("rest"):
        pass
"""


@pytest.mark.parametrize(("variable", "rows"), [("1", {"work", "rest"}), ("0", {"session"})])
def test_tests_of_pytest_are_rows_of_our_tree_alone(
    variable: str, rows: set[str], tmp_path: Path, child_options: str
) -> None:
    (tmp_path / "test_it.py").write_text(TESTED)
    command = [
        sys.executable,
        "-m",
        "proton_bench",
        "-n",
        "x.hatchet",
        "pytest",
        "-q",
        "test_it.py",
    ]
    subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PROTON_BENCH_UPSTREAM_TREE": variable, "PYTEST_ADDOPTS": child_options},
        check=True,
        capture_output=True,
    )

    (root, *_) = json.loads((tmp_path / "x.hatchet").read_text())
    assert {child["frame"]["name"] for child in root["children"]} == rows
