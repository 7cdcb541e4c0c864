"""Profilers and workloads of benchmarks.overhead where there is no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from benchmarks.overhead.floor import build
from benchmarks.overhead.plan import UNITS, WORKLOADS, Arm
from benchmarks.overhead.preparation import find_cupti
from benchmarks.overhead.tools import read_trace, read_tree

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

__all__ = ["cupti_doubles"]

ROOT = Path(__file__).parents[2]

FLOOR = """
import sys
sys.path.append("tests")
from fakes.doubles import Cupti
from benchmarks.overhead.floor import Floor

floor, cupti = Floor(sys.argv[1], sys.argv[2]), Cupti()
for _ in range(2):
    cupti.launch("before", 7)
    floor.start()
    for _ in range(100):
        cupti.launch("kernel", 7)
    print(floor.stop(), cupti.calls("cuptiSubscribe"), cupti.calls("cuptiUnsubscribe"))
"""


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    "name", [*WORKLOADS, "eager_steps", "compiled_steps", "streams", "threads"]
)
def test_every_workload_runs_on_a_cpu_with_its_scopes(name: str) -> None:
    from benchmarks.overhead.workloads import make

    seen: list[str] = []

    @contextmanager
    def scope(scope_name: str) -> Iterator[None]:
        seen.append(scope_name)
        yield

    workload = make(name, "cpu")
    workload.prepare(None)
    bare = workload.block(None)
    profiled = workload.block(scope)

    assert bare == profiled == workload.dry_units
    assert seen


def test_numbered_steps_have_scopes_of_their_own() -> None:
    from benchmarks.overhead.workloads import make

    paths: list[str] = []
    above: list[str] = []

    @contextmanager
    def scope(name: str) -> Iterator[None]:
        above.append(name)
        paths.append("/".join(above))
        yield
        above.pop()

    workload = make("eager_steps", "cpu")
    workload.prepare(None)
    workload.block(scope)

    assert [path for path in paths if path.endswith("backward")] == [
        "step_0/backward",
        "step_1/backward",
    ]


def test_every_workload_has_a_unit() -> None:
    assert set(UNITS) == set(WORKLOADS)


def test_the_floor_records_launches_on_the_double_and_starts_again(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    library = build(tmp_path)

    result = subprocess.run(
        [sys.executable, "-c", FLOOR, str(library), str(cupti_doubles.cupti)],
        cwd=ROOT,
        env=cupti_doubles.environment(),
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    first, second = ([int(word) for word in line.split()] for line in result.stdout.splitlines())
    assert first[0] == second[0] > 100 * 128
    assert first[1:] == [1, 1]
    assert second[1:] == [2, 2]


def test_the_floor_says_which_call_failed(cupti_doubles: Doubles, tmp_path: Path) -> None:
    library = build(tmp_path)

    result = subprocess.run(
        [sys.executable, "-c", FLOOR, str(library), str(cupti_doubles.cupti)],
        cwd=ROOT,
        env=cupti_doubles.environment(FAKE_CUPTI_FAIL="cuptiSubscribe=39"),
        capture_output=True,
        text=True,
    )

    assert result.returncode == 1
    assert "the floor did not start" in result.stderr
    assert "cuptiSubscribe" in result.stderr


def test_kernels_of_a_trace_are_summed_by_name(tmp_path: Path) -> None:
    events = [
        {"cat": "kernel", "name": "add", "dur": 1.001},
        {"cat": "kernel", "name": "add", "dur": 2},
        {"cat": "cpu_op", "name": "aten::add", "dur": 9},
        {"ph": "M", "name": "process_name"},
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))

    assert read_trace(tmp_path / "trace.json") == {"add": (2, 3001)}


def test_a_trace_of_several_documents_is_read_to_its_end(tmp_path: Path) -> None:
    line = json.dumps({"traceEvents": [{"cat": "kernel", "name": "add", "dur": 1}]})
    (tmp_path / "a.chrome_trace").write_text(f"{line}\n{line}\n")

    assert read_trace(tmp_path / "a.chrome_trace") == {"add": (2, 2000)}


def node(name: str, *children: dict[str, Any], **metrics: object) -> dict[str, Any]:
    return {"frame": {"name": name}, "metrics": metrics, "children": list(children)}


def test_launches_of_a_tree_are_summed_by_kernel_and_by_scope(tmp_path: Path) -> None:
    kernel = {"count": 2, "time (ns)": 10, "device_type": "CUDA"}
    tree = node(
        "ROOT",
        node("step", node("forward", node("add", **kernel)), node("add", **kernel)),
        node("mul", **kernel),
        count=0,
    )
    (tmp_path / "a.hatchet").write_text(json.dumps([tree, {}]))

    times, scopes = read_tree(tmp_path / "a.hatchet")

    assert times == {"add": (4, 20), "mul": (2, 10)}
    assert scopes == {"step/forward": 2, "step": 2, "": 2}


def test_libcupti_is_found_in_wheels_or_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "libcupti.so").touch()

    assert find_cupti(str(tmp_path / "libcupti.so")) == (tmp_path / "libcupti.so").resolve()
    assert "libcupti.so" in find_cupti("triton").name
    with pytest.raises(SystemExit, match="no such file"):
        find_cupti(str(tmp_path / "other.so"))


@pytest.mark.parametrize("data", ["tree", "trace"])
def test_upstream_records_in_a_process_without_ours(
    cupti_doubles: Doubles, tmp_path: Path, data: str
) -> None:
    program = """
import sys
sys.path.append("tests")
from benchmarks.overhead.plan import Arm
from benchmarks.overhead.tools import TOOLS, Place
from benchmarks.overhead.workloads import make

arm = Arm("upstream", "upstream", ("tiny",), data=sys.argv[2])
tool, work = TOOLS["upstream"](arm, Place("double", sys.argv[1])), make("tiny", "double")
tool.start("tiny")
work.block(tool.scope)
print(tool.finish().kernels, "proton_bench" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), data],
        cwd=ROOT,
        env=cupti_doubles.environment(),
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["8", "False"]


def test_a_trace_of_ours_has_the_kernels_of_a_tree(cupti_doubles: Doubles, tmp_path: Path) -> None:
    program = """
import sys
sys.path.append("tests")
from benchmarks.overhead.plan import ARMS
from benchmarks.overhead.tools import TOOLS, Place
from benchmarks.overhead.workloads import make

for name in ("ours", "ours_trace"):
    tool, work = TOOLS["ours"](ARMS[name], Place("double", sys.argv[1])), make("tiny", "double")
    tool.start("tiny")
    work.block(tool.scope)
    found = tool.finish()
    print(found.kernels, sorted(found.times_ns))
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        env=cupti_doubles.environment(),
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["8 ['empty']"] * 2


def test_arms_of_a_plan_name_tools_that_exist() -> None:
    from benchmarks.overhead.agreement import ARMS as COMPARED
    from benchmarks.overhead.plan import ARMS
    from benchmarks.overhead.tools import TOOLS
    from benchmarks.overhead.workloads import MAKERS

    arms: list[Arm] = [*ARMS.values(), *COMPARED.values()]

    assert {arm.tool for arm in arms} == set(TOOLS)
    assert {work for arm in arms for work in arm.workloads} == set(MAKERS)


def test_a_comparison_names_what_could_not_be_recorded(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    path = tmp_path / "agreement.json"
    command = [sys.executable, "-m", "benchmarks.overhead", "agree", "--dry"]
    command += ["--workload", "graph", "--windows", "1", "--json", str(path)]

    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "FAKE_CUPTI_FAIL": "cuptiSubscribe=39"},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 1, result.stderr
    assert "something does not agree" in result.stdout
    answers = json.loads(path.read_text())["workloads"]
    assert list(answers) == ["graph"]
    assert not answers["graph"]["agrees"]
    assert "BackendUnavailableError" in answers["graph"]["wrong"][0]


@pytest.mark.nightly
def test_a_dry_run_goes_through_everything(cupti_doubles: Doubles, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.overhead", "--dry", "--rounds", "1"]
    command += ["--blocks", "1", "--json", str(path)]
    for workload in ("tiny", "metadata", "graph"):
        command += ["--workload", workload]

    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert result.returncode == 0, result.stderr
    arms = json.loads(path.read_text())["rounds"][0]["arms"]
    recorded = {
        name: each["workloads"]["tiny"]["kernels"]
        for name, each in arms.items()
        if name in {"ours", "upstream", "ours_python", "upstream_python"}
    }
    assert recorded == dict.fromkeys(recorded, 12)
    assert len(recorded) == 4
    assert "hook=triton with launch_metadata" in result.stdout
