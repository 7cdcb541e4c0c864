"""Recording windows of ``proton run`` on the double of libcupti."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from fakes.program_runs import run_proton

from proton_bench.analysis.accounting.host_time import run_time_of
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.report.words.header import recorded_line

__all__ = ["cupti_doubles"]

# Step n launches its own kernel n times, and says whether CUPTI was on.
PROGRAM = """
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
on = []
for i in range(20):
    with proton.scope("step"):
        for _ in range(i + 1):
            gpu.launch(f"kernel_{i}", 7)
    on.append(gpu.is_kind_enabled(10) or gpu.is_enabled(1, 307))
    proton.step()
print("on", [i for i in range(20) if on[i]])
print("detached", gpu.calls("cuptiFinalize"))
"""
HEAD = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
FULL = {f"kernel_{i}": i + 1 for i in range(20)}


def counts(file: Path) -> dict[str, int]:
    return counts_of(read_profile(file))


def counts_of(profile: Profile) -> dict[str, int]:
    calls = profile.column("count").to_list() if "count" in profile.columns else []
    names = [profile.name(row) for row in range(len(profile))]
    return {name: int(call) for name, call in zip(names, calls, strict=False) if "kernel" in name}


def steps(first: int, end: int) -> dict[str, int]:
    return {f"kernel_{i}": i + 1 for i in range(first, end)}


def steps_on(output: str) -> list[int]:
    line = next(line for line in output.splitlines() if line.startswith("on "))
    return list(eval(line[3 : line.index("]") + 1]))


def test_a_window_has_the_launches_of_its_steps_and_no_others(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    environment = cupti_doubles.environment()
    run_proton(environment, tmp_path, PROGRAM, "-b", "cupti")
    assert counts(tmp_path / "out.proton") == FULL

    done = run_proton(environment, tmp_path, PROGRAM, "-b", "cupti", "--steps", "5:15")

    assert done.returncode == 0, done.stderr
    assert counts(tmp_path / "out.proton") == steps(5, 15)
    assert "detached 1" in done.stdout  # it would cost each later launch something
    assert steps_on(done.stdout) == list(range(5, 15))


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        (("--steps", ":3"), [*range(3)]),
        (("--every", "6", "--for", "2"), [6, 7, 12, 13, 18, 19]),
        (("--after", "0s"), [*range(20)]),
        (("--steps", "40:50"), []),
        (("--after", "1h", "--for", "1m"), []),
    ],
)
def test_windows_are_where_the_options_say(
    cupti_doubles: Doubles, tmp_path: Path, options: tuple[str, ...], recorded: list[int] | None
) -> None:
    done = run_proton(cupti_doubles.environment(), tmp_path, PROGRAM, "-b", "cupti", *options)

    assert done.returncode == 0, done.stderr
    assert steps_on(done.stdout) == recorded
    assert counts(tmp_path / "out.proton") == {f"kernel_{i}": i + 1 for i in recorded}
    assert ("before a window began" in done.stderr) == (recorded == [])


def test_each_window_has_its_own_file(cupti_doubles: Doubles, tmp_path: Path) -> None:
    options = ("-b", "cupti", "--every", "5", "--for", "2", "--each")

    done = run_proton(cupti_doubles.environment(), tmp_path, PROGRAM, *options)

    assert done.returncode == 0, done.stderr
    profiles = [read_profile(tmp_path / f"out.w{number}.proton") for number in (1, 2, 3)]
    assert [counts_of(each) for each in profiles] == [steps(i, i + 2) for i in (5, 10, 15)]
    windows = [each.provenance["windows"] for each in profiles]
    assert [[(one["first_step"], one["steps"]) for one in each] for each in windows] == [
        [(5, 2)],
        [(10, 2)],
        [(15, 2)],
    ]
    assert len(list(tmp_path.glob("out*.proton"))) == 3
    assert "warning" not in done.stderr


def test_time_between_windows_is_not_idle_time(cupti_doubles: Doubles, tmp_path: Path) -> None:
    options = ("-b", "cupti", "--every", "6", "--for", "2")

    run_proton(cupti_doubles.environment(), tmp_path, PROGRAM, *options)

    profile = read_profile(tmp_path / "out.proton")
    facts = profile.provenance
    lengths = [each["end_ns"] - each["begin_ns"] for each in facts["windows"]]
    assert len(lengths) == 3
    assert sum(lengths) == facts["recorded_ns"] == run_time_of(profile).wall_ns
    assert facts["recorded_ns"] < facts["end_time_ns"] - facts["start_time_ns"]
    assert "in 3 windows" in recorded_line(profile)


def test_a_window_that_cannot_be_written_ends_them_and_the_program_goes_on(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    broken = PROGRAM.replace(
        "    proton.step()", "    if i == 11: os.mkdir('out.w2.proton')\n    proton.step()"
    )
    options = ("-b", "cupti", "--every", "5", "--for", "2", "--each", "--strict")

    done = run_proton(cupti_doubles.environment(), tmp_path, "import os\n" + broken, *options)

    assert done.returncode == 74, done.stderr
    assert "no further window is recorded" in done.stderr
    assert "out.w1.proton" in done.stderr
    assert "detached" in done.stdout


def test_children_have_the_same_windows(cupti_doubles: Doubles, tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(HEAD + PROGRAM)
    parent = "import subprocess; subprocess.run([sys.executable, 'child.py'])"

    done = run_proton(
        cupti_doubles.environment(), tmp_path, parent, "-b", "cupti", "--steps", "3:5", "--each"
    )

    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("out*.proton")
    assert file.name.endswith(".w1.proton")
    assert counts(file) == steps(3, 5)
    assert file.name in done.stderr
    assert "before a window began" not in done.stderr


OUTSIDE = """
import os, signal, time
from fakes.doubles import Cupti
import proton_bench as proton
from proton_bench import _native
gpu = Cupti()
def wait_until(recording):
    while _native.is_recording() != recording:
        time.sleep(0.001)
def work(name):
    with proton.scope(name):
        gpu.launch(name + "_kernel", 7)
for i in range(2):
    work(f"before_{i}")
    ON
    wait_until(True)
    work(f"inside_{i}")
    OFF
    wait_until(False)
work("after")
"""


@pytest.mark.parametrize(
    ("trigger", "on", "off"),
    [
        ("SIGUSR2", "os.kill(os.getpid(), signal.SIGUSR2)", "os.kill(os.getpid(), signal.SIGUSR2)"),
        ("file:on", "open('on', 'w').close()", "os.remove('on')"),
    ],
)
def test_windows_are_opened_from_outside(
    cupti_doubles: Doubles, tmp_path: Path, trigger: str, on: str, off: str
) -> None:
    program = OUTSIDE.replace("ON", on).replace("OFF", off)

    done = run_proton(
        cupti_doubles.environment(), tmp_path, program, "-b", "cupti", "--window-on", trigger
    )

    assert done.returncode == 0, done.stderr
    assert counts(tmp_path / "out.proton") == {"inside_0_kernel": 1, "inside_1_kernel": 1}


def test_a_trigger_that_never_came_is_named(cupti_doubles: Doubles, tmp_path: Path) -> None:
    options = ("-b", "cupti", "--window-on", "cuda", "--strict")

    done = run_proton(cupti_doubles.environment(), tmp_path, PROGRAM, *options)

    assert done.returncode == 5
    assert "--window-on cuda" in done.stderr


EARLIER_GRAPH = """
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
graph = gpu.graph_create()
gpu.graph_add_kernel(graph, "replayed_kernel", 1)
executable = gpu.graph_instantiate(graph)
for _ in range(9):
    gpu.graph_launch(executable, 7)
    proton.step()
"""


@pytest.mark.parametrize("apart", [(), ("--each",)])
def test_a_graph_that_is_older_than_its_windows_is_told_of_once(
    cupti_doubles: Doubles, tmp_path: Path, apart: tuple[str, ...]
) -> None:
    options = ("-b", "cupti", "--every", "3", "--for", "1", *apart)

    done = run_proton(cupti_doubles.environment(), tmp_path, EARLIER_GRAPH, *options)

    files = sorted(tmp_path.glob("out*.proton"))
    assert [counts(file) for file in files] == (
        [{"replayed_kernel": 1}] * 2 if apart else [{"replayed_kernel": 2}]
    )
    assert done.stderr.count("captured before profiling began") == 1
