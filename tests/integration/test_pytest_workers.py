"""pytest-xdist: workers record parts, and the controller makes one profile of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.outputs import RunPytest, needs_torch, nodes_of_tests, paths

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")
pytest.importorskip("xdist")

# Every test starts a controller and two workers.

FIRST = """
    import proton_bench as proton
    import pytest

    @pytest.fixture(scope="module")
    def shared():
        with proton.scope("acquire"):
            pass

    class TestGroup:
        @pytest.mark.parametrize("text", ["b::c", "a@b", "é\\n"])
        def test_text(self, text, shared):
            with proton.scope("work"):
                pass

    @pytest.mark.xdist_group("one")
    def test_grouped(): pass
"""
SECOND = """
    import proton_bench as proton

    def test_first():
        with proton.scope("first", {"items": 1}):
            pass

    def test_second(): pass
    def test_third(): pass
"""
PYTHON_PATHS = """\
import unittest, pytest, torch

@pytest.fixture
def made():
    torch.ones(2)
    yield
    torch.ones(2)

def test_plain(made):
    torch.ones(2)

class TestCase(unittest.TestCase):
    def test_case(self):
        torch.ones(2)
"""
# A worker that is killed leaves nothing behind: no exit handler, no flush.
DIES = """
    import os, signal
    import pytest

    @pytest.mark.parametrize("n", range(4))
    def test_quick(n): pass

    def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def two_files(pytester: pytest.Pytester) -> Path:
    pytester.makepyfile(test_one=FIRST, test_two=SECOND)
    return pytester.path


def recorded_in(folder: Path, start: str = "") -> list[str]:
    names = (path.name for path in folder.iterdir())
    kinds = ("pytest.hatchet", "proton", "parts")
    return sorted(name for name in names if name.endswith(kinds) and name.startswith(start))


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    "mode", ["load", "loadscope", "loadfile", "loadgroup", "worksteal"], ids=str
)
def test_workers_give_one_profile_with_the_nodes_of_one_process(
    two_files: Path, run_pytest: RunPytest, mode: str
) -> None:
    run_pytest("--proton", "--proton-name", "serial", "--proton-backend", "cpu")

    result = run_pytest("--proton", "-n", "2", "--dist", mode)

    assert result.ret == 0
    assert recorded_in(two_files, "pytest.") == ["pytest.hatchet", "pytest.proton"]
    assert set(nodes_of_tests(two_files / "pytest.proton")) == set(
        nodes_of_tests(two_files / "serial.proton")
    )


@needs_torch
def test_python_paths_of_workers_are_those_of_one_process(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_paths=PYTHON_PATHS)
    for name, workers in (("serial", "0"), ("parts", "1")):
        run_pytest(
            *("--proton", "--proton-backend", "cpu", "--proton-context", "python"),
            *("--proton-name", name, "-n", workers),
        )

    serial = paths(pytester.path / "serial.proton")
    test = str(pytester.path / "test_paths.py")
    assert set(paths(pytester.path / "parts.proton")) == set(serial)
    below = {path[5:6] for path in serial if "TestCase" in path} | {
        path[4:5] for path in serial if "TestCase" not in path
    }
    lines = ("5@made", "7@made", "10@test_plain", "14@test_case")
    assert below == {(), *((f"{test}:{line}",) for line in lines)}


def test_merged_tests_stand_in_the_order_of_collection_and_parts_are_named(
    two_files: Path, run_pytest: RunPytest
) -> None:
    result = run_pytest("--proton", "-n", "2", "--dist", "load", "--maxschedchunk", "1")

    nodes = nodes_of_tests(two_files / "pytest.proton")
    tests = [path[-1] for path in nodes if path[-1].startswith("test_") and len(path) > 2]
    assert result.ret == 0
    assert [name.partition("[")[0] for name in tests] == [
        *["test_text"] * 3, "test_grouped", "test_first", "test_second", "test_third",
    ]  # fmt: skip
    assert [path[-1] for path in nodes if path[-2:-1] == ("test_first",)] == [
        "setup",
        "call",
        "teardown",
    ]

    provenance = read_profile(two_files / "pytest.proton").provenance.to_plain()
    controller, *workers = provenance["parts"]
    assert "worker" not in controller
    assert "worker" not in provenance
    assert controller["pid"] == provenance["pid"]
    assert [part["worker"] for part in workers] == ["gw0", "gw1"]
    assert {part["host"] for part in workers} == {provenance["host"]}
    assert len({part["pid"] for part in provenance["parts"]}) == 3
    assert "--proton" in provenance["command"]


def test_every_worker_of_dist_each_counts(two_files: Path, run_pytest: RunPytest) -> None:
    result = run_pytest("--proton", "--dist", "each", "--tx", "2*popen", "test_two.py")

    profile = read_profile(two_files / "pytest.proton")
    row = next(row for row in range(len(profile)) if profile.name(row) == "first")
    assert result.ret == 0
    assert profile.column("items").get(row) == 2


def test_the_command_line_merges_its_workers_too(two_files: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "proton_bench", "-n", "cli", "pytest", "-q", "-n", "2"],
        cwd=two_files,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST_")}
        | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    assert "run of " in result.stderr
    assert "proton: wrote cli.proton, cli.hatchet" in result.stderr
    assert "empty" not in result.stderr
    assert ("session", "test_two.py", "test_first", "call", "first") in paths(
        two_files / "cli.proton"
    )
    assert sorted(path.name for path in two_files.glob("cli*")) == ["cli.hatchet", "cli.proton"]


def test_workers_follow_what_the_command_line_says_of_sessions(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import triton.profiler as proton

        def test_own_session():
            assert proton.start() == 0
            proton.finalize()
            assert "PROTON_BENCH_WORKER" not in os.environ
        """
    )

    result = subprocess.run(
        [sys.executable, "-m", "proton_bench", "-n", "cli.proton", "pytest", "-q", "-n", "1"],
        cwd=pytester.path,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST_")}
        | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stdout
    assert nodes_of_tests(pytester.path / "cli.proton")[-1][-2:] == ("test_own_session", "teardown")


# -- what goes wrong -----------------------------------------------------------------------------
def test_the_tests_of_a_killed_worker_are_named_as_missing(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_dies=DIES)

    result = run_pytest("--proton", "-n", "1", "--max-worker-restart", "0")

    profile = read_profile(pytester.path / "pytest.proton")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["worker gw0 left no profile: 5 tests*"])
    assert profile.dropped == {"tests of worker gw0, which left no profile": 5}
    assert recorded_in(pytester.path) == ["pytest.hatchet", "pytest.proton"]


def test_the_worker_that_replaces_a_killed_one_is_recorded(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_dies=DIES + "\n    def test_after(): pass\n")

    result = run_pytest("--proton", "-n", "1")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert ("session", "test_dies.py", "test_after", "call") in paths(
        pytester.path / "pytest.proton"
    )


def test_what_a_killed_worker_left_half_written_is_used(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import os, pathlib, signal
        from proton_bench.recording.session.session import find_session
        from proton_bench.formats.registry import write_profile

        def test_dies():
            session = find_session(0)
            write_profile(session.profile(), f"{session.path}.partial.proton")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )

    run_pytest("--proton", "-n", "1", "--max-worker-restart", "0")

    profile = read_profile(pytester.path / "pytest.proton")
    assert profile.partial
    assert "test_dies" in {profile.name(row) for row in range(len(profile))}
    assert profile.provenance.to_plain()["parts"][-1]["partial"] is True


def test_stopping_at_a_failure_keeps_code_and_profile(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(8))
        def test_fails(n): assert False
        """
    )

    plain = run_pytest("-n", "2", "-x")
    result = run_pytest("--proton", "-n", "2", "-x")

    assert result.ret == plain.ret
    assert nodes_of_tests(pytester.path / "pytest.proton")
    assert recorded_in(pytester.path) == ["pytest.hatchet", "pytest.proton"]


def test_a_part_that_cannot_be_read_is_left_out_and_kept(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makeconftest(
        """
        import os, pytest

        @pytest.hookimpl(trylast=True)
        def pytest_unconfigure(config):
            pass

        def pytest_sessionfinish(session):
            if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
                from proton_bench.recording.session.session import find_session
                part = find_session(0)
                part.finalize(formats=())
                open(f"{part.path}.proton", "wb").write(b"no profile")
        """
    )
    pytester.makepyfile(test_two=SECOND)

    result = run_pytest("--proton", "-n", "2")

    (folder,) = pytester.path.glob("pytest.parts-*")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["error: worker gw1: *; it is kept: *gw1.proton"])
    assert sorted(path.name for path in folder.iterdir()) == ["gw0.proton", "gw1.proton"]
    assert nodes_of_tests(pytester.path / "pytest.proton")


def test_parts_are_kept_where_the_profile_cannot_be_written(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import pathlib

        def test_blocks_the_output(): pathlib.Path("pytest.proton").mkdir()
        """
    )

    result = run_pytest("--proton", "-n", "1")

    (folder,) = pytester.path.glob("pytest.parts-*")
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"error: *pytest.proton*are kept: {folder}"])
    assert [path.name for path in folder.iterdir()] == ["gw0.proton"]


def test_metrics_that_do_not_fit_leave_one_worker_out(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import os
        import proton_bench as proton
        import pytest

        @pytest.mark.parametrize("n", range(6))
        def test_metric(n):
            value = 1 if os.environ["PYTEST_XDIST_WORKER"] == "gw0" else [1, 2]
            with proton.scope("s", {"x": value}): pass
        """
    )

    result = run_pytest("--proton", "-n", "2")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["error: worker gw1 is left out: *'x' holds *; it is kept in *"])
    assert nodes_of_tests(pytester.path / "pytest.proton")


def test_an_output_that_cannot_be_written_ends_the_run_before_the_workers_start(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_two=SECOND)

    result = run_pytest("--proton", "-n", "2", "--proton-name", "/proc/nonsense/run")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: proton: *nonsense*"])


def test_options_of_distribution_without_workers_record_this_process(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_two=SECOND)

    names = {}
    for option in (["-n", "0"], ["--dist", "load"], ["-p", "no:xdist"]):
        result = run_pytest("--proton", "--proton-name", "one", *option)
        names[option[0]] = (result.ret, len(nodes_of_tests(pytester.path / "one.proton")))

    assert names == dict.fromkeys(("-n", "--dist", "-p"), (0, 14))
