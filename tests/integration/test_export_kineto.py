"""Timelines of ours exported as torch.profiler's Kineto writes them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from reference.chrome_timeline import WORK, work_of
from timeline_runs import TimelineRun, record_program

from proton_bench.formats.registry import read_profile

__all__ = ["cupti_doubles"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Event = dict[str, Any]
FORMATS = pytest.mark.parametrize("suffix", [".chrome_trace", ".pftrace"])
CATEGORIES = {"cuda_runtime", "user_annotation", "cpu_op", *WORK}


@pytest.fixture(scope="module")
def trace(
    cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., TimelineRun]:
    """Record a program, or return the recording that another test read."""
    runs: dict[object, TimelineRun] = {}

    def traced(what: str, **variables: str) -> TimelineRun:
        key = (what, *sorted(variables.items()))
        if key not in runs:
            folder = tmp_path_factory.mktemp("run")
            runs[key] = record_program(what, cupti_doubles, folder, **variables)
        return runs[key]

    return traced


def ranks(trace: Callable[..., TimelineRun], count: int) -> list[TimelineRun]:
    world = {"WORLD_SIZE": str(count)}
    return [trace("launches", RANK=str(n), LOCAL_RANK=str(n), **world) for n in range(count)]


def read(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))


def of(document: dict[str, Any], *categories: str) -> list[Event]:
    return [event for event in document["traceEvents"] if event.get("cat") in categories]


def unix_ns(document: dict[str, Any], event: Event) -> int:
    return document["baseTimeNanoseconds"] + round(event["ts"] * 1000)


@FORMATS
@pytest.mark.parametrize("what", ["launches", "threads", "many", "copies.cupti"])
def test_work_has_the_times_of_the_run(
    what: str, suffix: str, trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    run = trace(what, DEVICE_PROGRAM_MODE="copies=on")

    done = proton_here("export", run.name.with_suffix(suffix), "--to", "kineto", "-o", "out")

    assert (done.returncode, done.stderr) == (0, "")
    document = read(Path("out/rank0.json.gz"))
    work = of(document, *WORK)
    base_ns = int(run.timeline.facts["baseTimeNanoseconds"])
    assert Counter((unix_ns(document, e), round(e["dur"] * 1000)) for e in work) == Counter(
        (base_ns + each.start_ns, each.duration_ns) for each in run.timeline.of(*WORK)
    )
    scopes = of(document, "user_annotation")
    assert len(scopes) == len(run.timeline.of("scope", "metric"))
    assert sum(count for count, _ in work_of(run.tree).values()) == len(work)


@FORMATS
def test_events_have_the_form_of_kineto(
    suffix: str, trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    run = trace("copies", DEVICE_PROGRAM_MODE="copies=on")

    proton_here("export", run.name.with_suffix(suffix), "--to", "kineto", "-o", "out.json.gz")

    document = read(Path("out.json.gz"))
    assert document["schemaVersion"] == 1
    assert document["baseTimeNanoseconds"] % (7_889_238 * 10**9) == 0
    assert document["distributedInfo"] == {"rank": 0}
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert {event["cat"] for event in slices} <= CATEGORIES
    for event in slices:
        assert set(event) == {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"}
        assert event["ts"] > 0
        assert event["dur"] >= 0
    for event in of(document, *WORK):
        assert (event["pid"], event["tid"]) == (event["args"]["device"], event["args"]["stream"])
    (copy,), (settings,) = of(document, "gpu_memcpy"), of(document, "gpu_memset")
    assert copy["name"] == "Memcpy HtoD"
    assert copy["args"]["bytes"] == 4096
    assert copy["args"]["memory bandwidth (GB/s)"] == pytest.approx(4.096 / copy["dur"], rel=1e-6)
    assert settings["name"] == "Memset (Device)"
    named = {e["name"] for e in document["traceEvents"] if e["ph"] == "M"}
    assert named == {
        *("process_name", "process_labels", "process_sort_index"),
        *("thread_name", "thread_sort_index"),
    }


@FORMATS
@pytest.mark.parametrize("what", ["launches", "graph"])
def test_a_launch_and_its_work_are_joined(
    what: str, suffix: str, trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    run = trace(what)

    proton_here("export", run.name.with_suffix(suffix), "--to", "kineto", "-o", "out.json.gz")

    document = read(Path("out.json.gz"))
    calls = {e["args"]["correlation"]: e for e in of(document, "cuda_runtime")}
    kernels = of(document, "kernel")
    assert len(calls) == len(run.timeline.of("cuda_runtime"))
    assert {e["args"]["correlation"] for e in kernels} == set(calls)
    is_graph = what == "graph"
    name = "cudaGraphLaunch" if is_graph else "cudaLaunchKernel"
    assert {e["name"] for e in calls.values()} == {name}
    for kernel in kernels:
        assert calls[kernel["args"]["correlation"]]["ts"] < kernel["ts"]
    starts = {e["id"] for e in document["traceEvents"] if e["ph"] == "s"}
    assert starts == {e["id"] for e in document["traceEvents"] if e["ph"] == "f"} == set(calls)


@FORMATS
def test_what_is_exported_is_read_as_the_same_profile(
    suffix: str, trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    run = trace("launches")

    proton_here("export", run.name.with_suffix(suffix), "--to", "kineto", "-o", "out.json.gz")

    assert work_of(read_profile(Path("out.json.gz"))) == work_of(run.tree)


@pytest.mark.parametrize(
    ("suffix", "is_merged"), [(".pftrace", False), (".pftrace", True), (".chrome_trace", False)]
)
def test_each_rank_has_a_file_on_one_time_base(
    suffix: str, trace: Callable[..., TimelineRun], proton_here: Run, *, is_merged: bool
) -> None:
    runs = ranks(trace, 3)
    files = [run.name.with_suffix(suffix) for run in runs]
    if is_merged:
        proton_here("merge", *files, "-o", f"all{suffix}")
        files = [Path(f"all{suffix}")]

    done = proton_here("export", *files, "--to", "kineto", "-o", "out")

    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in Path("out").iterdir()) == [
        f"rank{rank}.json.gz" for rank in range(3)
    ]
    for rank, run in enumerate(runs):
        text = gzip.decompress(Path(f"out/rank{rank}.json.gz").read_bytes()).decode()
        assert f'"rank": {rank}' in text  # with the space that HTA looks for
        document = json.loads(text)
        first = min(run.timeline.of("kernel"), key=lambda each: each.start_ns)
        base_ns = int(run.timeline.facts["baseTimeNanoseconds"])
        starts = [unix_ns(document, event) for event in of(document, "kernel")]
        assert min(starts) == base_ns + first.start_ns
        assert len(starts) == len(run.timeline.of("kernel"))
    bases = {read(Path(f"out/rank{rank}.json.gz"))["baseTimeNanoseconds"] for rank in range(3)}
    assert len(bases) == 1


def test_a_run_is_exported_from_beside_its_tree(
    trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    run = trace("launches")

    done = proton_here("export", run.name.with_suffix(".proton"), "--to", "kineto")

    assert done.returncode == 0, done.stderr
    document = read(run.name.parent / "rank0.json.gz")
    assert len(of(document, "kernel")) == len(run.timeline.of("kernel"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run.proton", "--to", "kineto"), "is a tree, and there is no timeline beside it"),
        (("run.hatchet", "--to", "kineto"), "is not a timeline of proton_bench"),
        (("upstream.chrome_trace", "--to", "kineto"), "is not a timeline of proton_bench"),
        (("missing.pftrace", "--to", "kineto"), "cannot read missing.pftrace"),
        (("run.pftrace", "--to", "kineto", "-o", "-"), "name a folder with -o"),
        (("run.proton", "run.pftrace", "--to", "json"), "only one profile can be exported"),
        (("cut.pftrace", "--to", "kineto"), "damaged|not a packet"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    words: tuple[str, ...], message: str, trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    run = trace("launches")
    shutil.copy(run.perfetto, "run.pftrace")
    if "is a tree" in message:
        Path("run.pftrace").rename("other.pftrace")
    shutil.copy(run.name.with_suffix(".proton"), "run.proton")
    proton_here("export", "run.proton", "--to", "hatchet")
    data = Path(__file__).parents[1] / "data"
    shutil.copy(data / "upstream-3.9.0" / "run.chrome_trace", "upstream.chrome_trace")
    packets = gzip.decompress(run.perfetto.read_bytes())
    Path("cut.pftrace").write_bytes(packets[:3000] + b"\xff" * 40 + packets[3000:])

    done = proton_here("export", *words)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert re.search(message, done.stderr)
    assert not list(Path().glob("rank*"))


def test_several_ranks_do_not_go_into_one_file(
    trace: Callable[..., TimelineRun], proton_here: Run
) -> None:
    files = [run.chrome for run in ranks(trace, 2)]

    done = proton_here("export", *files, "--to", "kineto", "-o", "one.json.gz")

    assert done.returncode == 2
    assert "name a folder with -o" in done.stderr
    assert not Path("one.json.gz").exists()
