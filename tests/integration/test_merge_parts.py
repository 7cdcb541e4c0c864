"""Merged parts of periodic flushing hold what one file of the same run would hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from reference.chrome_timeline import Path_, work_of

from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

__all__ = ["cupti_doubles"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAMS = Path(__file__).with_name("upstream_trace_programs.py")
SUFFIXES = {"perfetto": "pftrace", "hatchet_msgpack": "hatchet_msgpack"}
FORMS = ["chrome_trace", "perfetto", "proton", "hatchet", "hatchet_msgpack"]
STEPS = """
    import sys
    import proton_bench as proton
    from proton_bench import data

    with proton.scope("across"):
        for number in range(120):
            if len(sys.argv) > 1 and number and number % 40 == 0:
                data.advance_phase()
            with proton.scope(f"step {number % 3}", {"flops": number}):
                with proton.scope("inner"):
                    pass
"""


def values(profile: Profile, metric: str) -> dict[Path_, float]:
    """Return the value of a metric by path."""
    column = profile.columns.get(metric)
    found: Counter[Path_] = Counter()
    for row in range(1, len(profile)) if column is not None else ():
        if column is not None and column.valid[row]:
            found[profile.path(row)] += column.get(row)
    return dict(found)


def suffix_of(form: str) -> str:
    return SUFFIXES.get(form, form)


def merged_suffix(form: str) -> str:
    """Return what the parts become: timelines in Chrome's format are merged as profiles."""
    return "proton" if form == "chrome_trace" else suffix_of(form)


@pytest.fixture(scope="module")
def recorded(cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program of phases in one file, and in parts of every format."""
    folder = tmp_path_factory.mktemp("phases")
    for name, form in [("whole", ""), *((form, form) for form in FORMS)]:
        environment = cupti_doubles.environment(
            PROTON_BENCH_TRACE_FORMATS="chrome_trace,perfetto" if not form else ""
        )
        command = [sys.executable, str(PROGRAMS), "phases", str(folder / name), form]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_device_work_are_the_whole(form: str, recorded: Path, proton_here: Run) -> None:
    parts = sorted(recorded.glob(f"{form}.part_*.{suffix_of(form)}"))
    assert len(parts) == 5

    done = proton_here("merge", *reversed(parts), "-o", f"merged.{merged_suffix(form)}")

    assert (done.returncode, done.stderr) == (0, "")
    merged, whole = (
        read_profile(Path(f"merged.{merged_suffix(form)}")),
        read_profile(recorded / "whole.proton"),
    )
    assert work_of(merged) == work_of(whole)
    assert values(merged, "items") == values(whole, "items")
    assert sum(values(merged, "items").values()) == sum(range(200))
    assert not merged.partial


def test_slices_of_parts_are_those_of_the_whole(recorded: Path, proton_here: Run) -> None:
    proton_here("merge", *recorded.glob("perfetto.part_*.pftrace"), "-o", "merged.pftrace")

    proton_here("export", "merged.pftrace", "--to", "kineto", "-o", "merged.json")
    proton_here("export", recorded / "whole.pftrace", "--to", "kineto", "-o", "whole.json")

    merged, whole = (slices(Path(f"{name}.json")) for name in ("merged", "whole"))
    assert merged == whole
    assert merged["user_annotation", "across"] == 1
    assert merged["cuda_runtime", "cudaGraphLaunch"] == 200


def slices(file: Path) -> Counter[tuple[str, str]]:
    """Count the slices of an exported file by category and name."""
    events = json.loads(file.read_text())["traceEvents"]
    return Counter((event["cat"], event["name"]) for event in events if event["ph"] == "X")


@pytest.mark.parametrize("form", ["chrome_trace", "perfetto", "proton"])
def test_parts_of_a_run_on_the_cpu_are_the_whole(
    form: str, proton: Run, script: Callable[[str], str], tmp_path: Path, proton_here: Run
) -> None:
    data = "trace" if form in ("chrome_trace", "perfetto") else "tree"
    mode = f"periodic_flushing:format={form}"
    target, suffix = script(STEPS), suffix_of(form)
    whole = proton("-b", "cpu", "-d", data, "-o", f"whole.{suffix}", target)
    split = proton("-b", "cpu", "-d", data, "-m", mode, "-n", "split", target, "in phases")
    assert (whole.returncode, split.returncode) == (0, 0), whole.stderr + split.stderr

    out = tmp_path / f"merged.{merged_suffix(form)}"
    done = proton_here("merge", *Path().glob(f"split.part_*.{suffix}"), "-o", out)

    assert (done.returncode, done.stderr) == (0, "")
    found, expected = (read_profile(file) for file in (out, tmp_path / f"whole.{suffix}"))
    assert values(found, "flops") == values(expected, "flops")
    assert sum(values(found, "flops").values()) == sum(range(120))
    walls = values(found, "wall (ns)")
    assert walls.keys() == values(expected, "wall (ns)").keys()
    assert all(wall_ns > 0 for wall_ns in walls.values())
