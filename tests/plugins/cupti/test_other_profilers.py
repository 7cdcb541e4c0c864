"""Sessions without kernels, with torch.profiler, and of programs that fail, on the doubles.

The torch of these programs is a package of theirs whose autograd.profiler behaves like the real
one, which asks for a GPU before it would ask for CUPTI.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from proton_bench.formats.registry import read_profile

__all__ = ["cupti_doubles"]

HEAD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from fakes.doubles import Cupti
import proton_bench as proton
gpu = Cupti()
"""
TORCH = (
    "from torch.autograd import profiler as torch\nfrom torch.autograd.profiler import Activity\n"
)
MODULE = """
import enum
from fakes.doubles import Cupti
gpu = Cupti()
_is_profiler_enabled = False
class Activity(enum.Enum):
    CPU = 0
    CUDA = 2
class profile:
    def __init__(self, *activities):
        self.kineto_activities, self.kineto_results = set(activities), None
    def __enter__(self):
        global _is_profiler_enabled
        _prepare_profiler("config", self.kineto_activities, activity_filter={})
        _enable_profiler("config", self.kineto_activities)
        _is_profiler_enabled = True
        return self
    def __exit__(self, *exception):
        global _is_profiler_enabled
        self.kineto_results = _disable_profiler()
        _is_profiler_enabled = False
def _prepare_profiler(config, activities, activity_filter):
    pass
def _enable_profiler(config, activities):
    global found_free
    if Activity.CUDA in activities:
        found_free = not gpu.is_enabled(1, 652)
        gpu.other_subscriber("Kineto")
        gpu.other_profiler(1)
def _disable_profiler():
    gpu.other_subscriber(None)
    gpu.other_profiler(0)
    return "results"
"""
PAUSED = "proton: warning: torch.profiler records the GPU from here on"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, cupti_doubles: Doubles) -> Run:
    """Return ``run(program, *options)``: proton with the cupti backend; none runs plain Python."""

    def run_program(
        program: str, *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(HEAD + program, encoding="utf-8")
        package = tmp_path / "torch" / "autograd"
        package.mkdir(parents=True)
        for folder in (package, package.parent):
            (folder / "__init__.py").touch()
        (package / "profiler.py").write_text(MODULE, encoding="utf-8")
        proton = ["-m", "proton_bench", "-n", "out", "-b", "cupti", *options] if options else []
        return subprocess.run(
            [sys.executable, *proton, str(script)],
            cwd=tmp_path,
            env=cupti_doubles.environment(**variables),
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )

    return run_program


def kernels(path: Path) -> list[str]:
    profile = read_profile(path)
    return [profile.strings[frame] for frame in profile.frames][1:]


def test_a_run_without_kernels_ends_with_one_warning(run: Run, tmp_path: Path) -> None:
    done = run("with proton.scope('step'):\n    pass\n", "--strict")

    assert done.returncode == 5
    assert done.stderr.count("warning") == 1
    assert "no kernel was recorded" in done.stderr
    assert kernels(tmp_path / "out.proton") == ["step"]


def test_an_empty_run_is_not_warned_of_twice(run: Run) -> None:
    done = run("", "--strict")

    assert done.stderr.count("warning") == 1


def test_quiet_says_nothing(run: Run, tmp_path: Path) -> None:
    done = run("", "--quiet")

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.proton").exists()


def test_a_session_of_the_library_warns_when_it_is_finalized(run: Run) -> None:
    program = """
first, second = (proton.start(name, backend="cupti") for name in ("first", "second"))
proton.finalize(first)
gpu.launch("k", 7)
proton.finalize(second)
"""

    done = run(program)

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no kernel was recorded") == 1


def test_torch_profiler_gets_cupti_while_it_records(run: Run, tmp_path: Path) -> None:
    program = """
gpu.launch("before", 7)
for _ in range(2):
    with torch.profile(Activity.CPU, Activity.CUDA):
        gpu.launch("theirs", 7)
    assert torch.found_free
    gpu.launch("between", 7)
print(gpu.other_profiler_buffers(), gpu.other_profiler_foreign_buffers())
"""

    done = run(TORCH + program, "--strict")

    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 0\n"
    assert done.stderr.count("warning") == 1
    assert done.stderr.startswith(PAUSED)
    assert kernels(tmp_path / "out.proton") == ["before", "between"]
    facts = read_profile(tmp_path / "out.proton").provenance["collectors"]["cupti"]
    assert facts["torch_profiler_pauses"] == 2
    assert facts["torch_profiler_paused_ns"] > 0


def test_torch_profiler_of_the_cpu_is_not_a_reason_to_pause(run: Run, tmp_path: Path) -> None:
    program = """
with torch.profile(Activity.CPU):
    gpu.launch("ours", 7)
    session = proton.start("lib", backend="cupti")
    gpu.launch("both", 7)
proton.finalize(session, "proton")
"""

    done = run(TORCH + program)

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert kernels(tmp_path / "lib.proton") == ["both"]


def test_a_torch_that_keeps_cupti_ends_in_one_warning(run: Run, tmp_path: Path) -> None:
    program = """
gpu.launch("before", 7)
torch._disable_profiler = lambda: gpu.other_profiler(0)
session = proton.start("lib", backend="cupti")
gpu.launch("ours", 7)
for _ in range(2):
    with torch.profile(Activity.CUDA):
        gpu.launch("theirs", 7)
gpu.launch("after", 7)
proton.finalize(session, "proton")
"""

    done = run(TORCH + program)

    assert done.returncode == 0, done.stderr
    first, second = done.stderr.splitlines()
    assert first.startswith(PAUSED)
    assert "torch.profiler has ended and keeps CUPTI" in second
    assert kernels(tmp_path / "lib.proton") == ["ours"]


def test_a_session_is_refused_while_torch_profiler_has_the_gpu(run: Run) -> None:
    program = """
with torch.profile(Activity.CUDA) as profiler:
    try:
        proton.start("lib", backend="cupti")
    except RuntimeError as error:
        print(error)
    gpu.launch("theirs", 7)
print(profiler.kineto_results, gpu.other_profiler_buffers())
session = proton.start("lib", backend="cupti")
gpu.launch("ours", 7)
proton.finalize(session, "proton")
"""

    done = run(TORCH + program)

    assert done.returncode == 0, done.stderr
    message, results = done.stdout.splitlines()
    assert message.startswith("torch.profiler records the GPU in this process")
    assert results == "results 1"


def test_a_torch_profiler_that_does_not_start_ends_the_pause(run: Run, tmp_path: Path) -> None:
    program = """
def refuse(config, activities):
    raise ValueError("no")
torch._enable_profiler = refuse
session = proton.start("lib", backend="cupti")
try:
    torch.profile(Activity.CUDA).__enter__()
except ValueError as error:
    print(error)
gpu.launch("ours", 7)
proton.finalize(session, "proton")
print(torch._enable_profiler is refuse)
"""

    done = run(TORCH + program)

    assert done.stdout == "no\nTrue\n", done.stderr
    assert kernels(tmp_path / "lib.proton") == ["ours"]


def test_a_forked_child_does_not_touch_what_is_its_parent_s(run: Run, tmp_path: Path) -> None:
    program = """
import os
session = proton.start("lib", backend="cupti")
child = os.fork()
if child == 0:
    with torch.profile(Activity.CUDA):
        pass
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
gpu.launch("ours", 7)
proton.finalize(session, "proton")
"""

    done = run(TORCH + program)

    assert (done.returncode, done.stderr) == (0, "")
    assert kernels(tmp_path / "lib.proton") == ["ours"]


def test_buffers_that_a_profiler_takes_in_silence_are_said_at_the_end(
    run: Run, tmp_path: Path
) -> None:
    program = """
gpu.launch("before", 7)
proton.deactivate(flushing=True)
proton.activate()
gpu.launch("ours", 7)
gpu.other_profiler(1)
gpu.launch("lost", 7)
"""

    done = run(program, "--strict")

    assert done.returncode == 0
    assert "took CUPTI's buffers; 2 records are lost" in done.stderr
    assert "2 records were lost" in done.stderr
    assert read_profile(tmp_path / "out.proton").dropped == {"launch without a kernel record": 2}


def test_a_program_that_raises_leaves_its_profile_and_its_exit_code(
    run: Run, tmp_path: Path
) -> None:
    program = """
with proton.scope("step"):
    gpu.launch("k", 7)
    raise SystemExit(5) if "exit" in sys.argv else ValueError("mid-way")
"""

    done = run(program, "--strict")

    assert done.returncode == 1
    assert "ValueError: mid-way" in done.stderr
    assert "warning" not in done.stderr
    assert kernels(tmp_path / "out.proton") == ["step", "k"]
