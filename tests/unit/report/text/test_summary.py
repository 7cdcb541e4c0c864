from __future__ import annotations

import linecache
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes.counted import Kernel, counted_profile

from proton_bench.analysis.metrics.derive import derive
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.report.text.summary import hottest_paths, source_line, summary_lines

LIBRARY = "/venv/lib/python3.11/site-packages/torch/data.py"
SECOND = 1_000_000_000


def gpu_run(folder: str = "/home/me") -> Profile:
    """Return a run of 10 s whose GPU works for 1 s."""
    builder = ProfileBuilder()
    device = Device("CUDA", 0)
    builder.add(
        0, "gemm", FrameKind.KERNEL, metrics={"time (ns)": SECOND, "count": 4}, device=device
    )
    start = {"host_wall (ns)": SECOND, "idle (ns)": SECOND}
    host = builder.add(0, "<not recorded>", FrameKind.PYTHON, metrics=start)
    load = builder.add(host, f"{folder}/train.py:31@load", FrameKind.PYTHON)
    for line, seconds in ((7, 3), (8, 1)):
        spent = {"host_wall (ns)": seconds * SECOND, "idle (ns)": seconds * SECOND}
        builder.add(load, f"{LIBRARY}:{line}@get", FrameKind.PYTHON, metrics=spent)
    step = {"host_wall (ns)": 5 * SECOND, "idle (ns)": 4 * SECOND}
    builder.add(host, f"{folder}/train.py:40@<module>", FrameKind.PYTHON, metrics=step)
    use = DeviceUse(device=0, scope=None, busy_ns=SECOND, idle_ns=9 * SECOND)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + 10 * SECOND, "directory": folder}
    return replace(builder.build(provenance=facts), device_use=(use,))


def test_idle_time_is_that_of_lines_of_own_code() -> None:
    lines = summary_lines(gpu_run())

    assert lines[:2] == [
        "run of 10 s: GPU busy 10 %, idle 90 %",
        "main thread meanwhile: 40 % in train.py:40 <module>, 40 % in train.py:31 load",
    ]


def test_lines_of_own_code_are_shown_with_their_text(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("\n" * 39 + "step( batch )\n")
    os.utime(script, (1, 1))  # before the run
    profile = gpu_run(str(tmp_path))

    assert "40 % in train.py:40 <module> (step( batch )), 40" in summary_lines(profile)[1]


def test_all_shares_of_a_screen_are_those_of_the_run() -> None:
    *_, heading, row = summary_lines(gpu_run())

    assert heading.split()[:2] == ["of", "run"]
    assert row.split()[:2] == ["10.0", "%"]  # of the run, as in the line above


def host_run(tmp_path: Path) -> Profile:
    """Return a run of 20 s on a CPU: imports for 12 s, a model, a loader, and its own lines."""
    script = tmp_path / "fit.py"
    script.write_text("import torch\n\n\ndef load():\n    return read( 'data' )\n")
    builder = ProfileBuilder()
    cpu = Device("CPU", 0)

    def seconds(number: float) -> dict[str, int]:
        return {"host_wall (ns)": int(number * SECOND)}

    for number in range(3):
        builder.add(0, f"aten::op{number}", FrameKind.OP, metrics=seconds(1), device=cpu)
    host = builder.add(0, "<not recorded>", FrameKind.PYTHON)
    main = builder.add(host, f"{script}:1@<module>", FrameKind.PYTHON)
    for number in range(6):
        module = f"/v/lib/python3.12/site-packages/torch/m{number}.py:3@<module>"
        builder.add(main, module, FrameKind.PYTHON, metrics=seconds(2))
    builder.add(main, f"{script}:5@load", FrameKind.PYTHON, metrics=seconds(4))
    builder.add(host, "/v/lib/python3.12/runpy.py:8@run", FrameKind.PYTHON, metrics=seconds(1))
    os.utime(script, (5, 5))  # before the run
    facts = {"start_time_ns": 9, "end_time_ns": 20 * SECOND + 9, "directory": str(tmp_path)}
    return builder.build(provenance=facts)


def test_imports_are_one_row_and_the_last(tmp_path: Path) -> None:
    lines = summary_lines(host_run(tmp_path), "fit.proton")

    assert lines[0] == (
        "run of 20 s: host 15 % in recorded work, 60 % in imports, 25 % in other code"
    )
    assert [line.split()[0] for line in lines[2:7]] == ["20.0", "5.0", "5.0", "5.0", "60.0"]
    assert lines[6].split()[-1] == "imports"


def test_shares_are_those_of_samples_where_rows_were_also_timed() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    session = builder.add(0, "session", FrameKind.TEST, metrics={"wall (ns)": 10 * SECOND})
    collected = {"wall (ns)": 6 * SECOND, "host_wall (ns)": 6 * SECOND}
    builder.add(session, "collection", FrameKind.TEST, metrics=collected)
    test = {"wall (ns)": 4 * SECOND, "host_wall (ns)": 4 * SECOND}
    builder.add(session, "test_a.py", FrameKind.TEST, metrics=test)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + 10 * SECOND}

    _, heading, test_row, imports = summary_lines(builder.build(provenance=facts))

    assert heading.split()[:3] == ["of", "run", "host_wall/ms"]
    assert (test_row.split()[0], test_row.split()[-1]) == ("40.0", "test_a.py")
    assert (imports.split()[0], imports.split()[-1]) == ("60.0", "imports")


def test_paths_have_the_times_of_a_view_and_none_of_other_threads() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    for name, walls in {
        "load": {"wall (ns)": 30, "host_wall (ns)": 10},
        "check": {"wall (ns)": 4},  # between two samples
        "beside": {"wall (ns)": 70, "other_threads (ns)": 60},
    }.items():
        builder.add(0, name, FrameKind.SCOPE, metrics=walls)
    host = builder.add(0, "<not recorded>", FrameKind.PYTHON)
    builder.add(host, "/home/me/a.py:5@fit", FrameKind.PYTHON, metrics={"host_wall (ns)": 20})
    builder.add(host, "imports", FrameKind.PYTHON, metrics={"host_wall (ns)": 70})
    profile = builder.build(provenance={"start_time_ns": 1, "end_time_ns": 101})

    (own,) = derive(profile, ["self_host_wall/us"])
    lines = hottest_paths(profile)[1:]

    assert sorted(float(line.split()[2]) for line in lines) == pytest.approx(
        sorted(filter(None, own.to_list()))
    )
    assert sum(float(line.split("%")[0]) for line in lines) == pytest.approx(100, abs=0.3)
    assert not any("beside" in line for line in lines)


def test_a_line_of_own_code_is_shown_with_its_text(tmp_path: Path) -> None:
    lines = summary_lines(host_run(tmp_path), width=100)

    assert lines[2].endswith("fit.py:5 load: return read( 'data' )")


def test_text_of_a_line_that_changed_after_the_run_is_left_out(tmp_path: Path) -> None:
    profile = host_run(tmp_path)

    assert source_line(profile, f"{tmp_path}/fit.py:1@<module>") == "import torch"
    os.utime(tmp_path / "fit.py", (2**33, 2**33))
    assert source_line(profile, f"{tmp_path}/fit.py:1@<module>") == ""


def test_work_of_other_threads_is_named_beside_the_run(tmp_path: Path) -> None:
    profile = host_run(tmp_path)
    values = np.zeros(len(profile), dtype="<i8")
    values[1], values[2], values[-1] = 2 * SECOND, 7 * SECOND, 3 * SECOND
    spec = MetricSpec("other_threads (ns)", Aggregation.INCLUSIVE)
    column = MetricColumn(spec, ValueKind.INT, values, values > 0)

    lines = summary_lines(replace(profile, columns={**profile.columns, spec.name: column}))

    assert lines[1] == (
        "other threads: 9 s in recorded work, most in aten::op1; 3 s in other code, which may wait"
    )
    assert not any("other threads" in line for line in summary_lines(profile))


def test_a_line_of_a_cell_is_shown_with_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = (30, None, ["import torch\n", "model.fit( 3 )\n"], "<cell 7>")
    monkeypatch.setitem(linecache.cache, "<cell 7>", cell)

    assert source_line(gpu_run(), "<cell 7>:2@<module>") == "model.fit( 3 )"


def test_trials_of_autotuners_are_named_with_their_time() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "attention", FrameKind.SCOPE)
    trials = builder.add(scope, "<autotune>", FrameKind.STATE)
    for row, seconds in ((scope, 0.5), (trials, 2), (trials, 1)):
        metrics = {"time (ns)": int(seconds * SECOND), "count": 3}
        builder.add(row, f"kernel{seconds}", FrameKind.KERNEL, metrics=metrics)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + 10 * SECOND}

    lines = summary_lines(builder.build(provenance=facts))

    assert "autotuners tried configurations for 3 s, 30.0 % of the run" in lines
    assert any(line.endswith("attention › trials of the autotuner") for line in lines)
    assert not any("autotuner" in line for line in summary_lines(gpu_run()))


@pytest.mark.parametrize("most", [7, 8, 9])
def test_a_summary_has_as_many_lines_as_are_asked_for(most: int) -> None:
    lost = {f"reason {number}": 7 for number in range(20)}

    lines = summary_lines(replace(gpu_run(), dropped=lost), "x.proton", most=most)

    assert len(lines) <= most
    assert any(line.endswith("more remarks: see proton view") for line in lines)
    assert "proton view x.proton" in lines[-1]


def test_the_hottest_path_of_a_library_is_the_own_line_that_called_it() -> None:
    builder = ProfileBuilder()
    own = builder.add(0, "/home/me/train.py:3@main", FrameKind.PYTHON)
    for line in range(5):
        name = f"{LIBRARY}:{line}@inner"
        builder.add(own, name, FrameKind.PYTHON, metrics={"host_wall (ns)": SECOND})

    _, line = hottest_paths(builder.build(provenance={"directory": "/home/me"}))

    assert line.split() == ["100", "%", "5000.000", "train.py:3", "main"]


def test_commands_for_more_name_the_file() -> None:
    assert "proton view 'my run.proton'" in summary_lines(gpu_run(), "my run.proton")[-1]


def test_lines_keep_their_width_where_paths_are_long() -> None:
    builder = ProfileBuilder()
    row = 0
    for depth in range(30):
        row = builder.add(row, f"a scope with a long name {depth}")
    builder.add(row, "kernel" * 40, FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})

    lines = hottest_paths(builder.build(), width=60)

    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith("kernel")


def test_limits_of_paths_are_named_where_counters_were_recorded() -> None:
    counted = counted_profile(Kernel(path="net/copy", units={"dram": 0.8}))

    heading, line = hottest_paths(counted)

    assert "limit" in heading.split()
    assert "memory:dram 95 %" in line
    assert any("proton why x.proton" in each for each in summary_lines(counted, "x.proton"))


def test_limits_are_not_named_without_counters() -> None:
    heading, _ = hottest_paths(counted_profile(Kernel(path="net/copy")))

    assert "limit" not in heading.split()
