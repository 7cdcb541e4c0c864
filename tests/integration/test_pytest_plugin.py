from __future__ import annotations

import os
import subprocess
import sys

import pytest
from integration.outputs import RunPytest, below_file, needs_torch, paths

from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.text.hottest import hottest_paths

pytest.importorskip("proton_bench._native")

SCOPED = """
    import proton_bench as proton
    import pytest

    @pytest.fixture
    def resource():
        with proton.scope("acquire"):
            pass
        yield
        with proton.scope("release"):
            pass

    class TestGroup:
        @pytest.mark.parametrize("size", [1, 2])
        def test_sized(self, size):
            with proton.scope(f"size_{size}"):
                pass

    def test_with_resource(resource):
        with proton.scope("work"):
            pass
"""


# -- the tree ------------------------------------------------------------------------------------
def test_tests_are_nodes_of_file_class_and_phase(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_scoped=SCOPED)

    result = run_pytest("--proton")

    found = paths(pytester.path / "pytest.proton")
    root = ("session", "test_scoped.py")
    assert result.ret == 0
    assert (*root, "TestGroup", "test_sized[1]", "call", "size_1") in found
    assert (*root, "TestGroup", "test_sized[2]", "call", "size_2") in found
    assert (*root, "test_with_resource", "setup", "acquire") in found
    assert (*root, "test_with_resource", "call", "work") in found
    assert (*root, "test_with_resource", "teardown", "release") in found
    assert (pytester.path / "pytest.hatchet").exists()


def test_nodes_have_the_kind_test_and_carry_wall_time(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_scoped=SCOPED)

    run_pytest("--proton", "--proton-backend", "cpu")

    profile = read_profile(pytester.path / "pytest.proton")
    rows = {profile.path(row)[-1:]: row for row in range(1, len(profile))}
    assert profile.kind(rows["test_with_resource",]) is FrameKind.TEST
    assert profile.kind(rows["work",]) is FrameKind.SCOPE
    assert profile.column("wall (ns)").get(rows["test_with_resource",]) > 0


def test_python_frames_stand_below_the_nodes_of_their_test(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        test_frames="""
        from proton_bench import _native

        def launch():
            launched = _native.emit_launch()
            _native.emit_kernel(launched, "fill", 0, 10, "CUDA", 0, 0)

        def test_launches():
            launch()
        """
    )

    result = run_pytest("--proton", "--proton-context", "python")

    assert result.ret == 0
    kernel = next(path for path in paths(pytester.path / "pytest.proton") if path[-1] == "fill")
    assert kernel[:4] == ("session", "test_frames.py", "test_launches", "call")
    assert [name.rpartition("@")[2] for name in kernel[-3:-1]] == ["test_launches", "launch"]


def test_the_disable_knob_switches_the_option_off(
    pytester: pytest.Pytester, run_pytest: RunPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")
    pytester.makepyfile(test_scoped=SCOPED)

    result = run_pytest("--proton")

    assert result.ret == 0
    assert not list(pytester.path.glob("*.proton"))


def test_failures_and_x_keep_their_exit_code_and_their_nodes(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        def test_first(): pass
        def test_second(): assert False
        def test_third(): pass
        """
    )

    result = run_pytest("--proton", "-x")

    found = {path[0] for path in below_file(pytester.path / "pytest.proton")}
    assert result.ret == 1
    assert found == {"test_first", "test_second"}


def test_scopes_left_open_or_closed_twice_do_not_shift_later_tests(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import proton_bench as proton

        import pytest
        from proton_bench.errors import ScopeError

        def test_leaves_open():
            proton.enter_scope("left")
            proton.enter_state("left")
        def test_closes_too_many():
            with pytest.raises(ScopeError, match="in this test"):
                proton.exit_scope()
        def test_last():
            with proton.scope("inside"): proton.enter_scope("deeper", metrics={"a": 1})
        """
    )

    result = run_pytest("--proton")

    found = below_file(pytester.path / "pytest.proton")
    assert result.ret == 0
    assert ("test_last", "call", "inside", "deeper") in found
    assert ("test_leaves_open", "call", "left") in found
    assert ("test_last", "call", "inside") in found


# -- files ---------------------------------------------------------------------------------------
def test_a_test_that_changes_the_folder_does_not_move_the_output(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import os

        def test_moves(tmp_path): os.chdir(tmp_path)
        """
    )

    result = run_pytest("--proton", "--proton-name", "moved")

    assert result.ret == 0
    assert (pytester.path / "moved.proton").exists()
    assert (pytester.path / "moved.hatchet").exists()


def test_a_known_suffix_in_the_name_writes_only_that_file(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile("def test_nothing(): pass")

    run_pytest("--proton", "--proton-name", "only.hatchet")

    assert [path.name for path in pytester.path.glob("only*")] == ["only.hatchet"]


def test_nothing_is_recorded_or_written_without_the_option(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_no_heavy_import():
            assert not {"torch", "triton", "numpy", "rich"} & set(sys.modules)
        """
    )

    result = run_pytest()

    result.stdout.no_fnmatch_line("*= proton =*")
    assert result.ret == 0
    assert list(pytester.path.glob("*.proton")) == []


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    ("words", "code"),
    [(["test_one.py", "-k", "two"], 5), (["none.py"], 4), (["test_broken.py"], 2)],
)
def test_a_run_without_tests_keeps_its_exit_code_and_the_earlier_profile(
    pytester: pytest.Pytester, run_pytest: RunPytest, words: list[str], code: int, is_there: bool
) -> None:
    pytester.makepyfile(test_one="def test_one(): pass", test_broken="import nothing_of_this_name")
    file = pytester.path / "pytest.proton"
    if is_there:
        file.write_text("earlier")

    result = run_pytest("--proton", *words)

    assert result.ret == code
    result.stdout.fnmatch_lines(["no tests ran, so no profile was written"])
    assert file.exists() == is_there
    assert not is_there or file.read_text() == "earlier"


@pytest.mark.parametrize(("words", "code"), [(["-k", "two"], 5), (["--nonsense"], 4)])
def test_the_command_line_writes_no_profile_of_a_run_without_tests(
    pytester: pytest.Pytester, words: list[str], code: int
) -> None:
    pytester.makepyfile(test_one="def test_one(): pass")

    result = subprocess.run(
        [sys.executable, "-m", "proton_bench", "pytest", "-q", *words],
        cwd=pytester.path,
        capture_output=True,
        text=True,
    )

    assert result.returncode == code
    assert "proton: warning: no tests ran, so no profile was written" in result.stderr
    assert list(pytester.path.glob("*.proton")) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--proton-backend", "nonsense"),
        ("--proton-context", "nonsense"),
        ("--proton-mode", "nonsense"),
        ("--proton-hook", "nonsense"),
        ("--proton-name", "/proc/nonsense/run"),
    ],
)
def test_a_wrong_option_ends_the_run_with_a_clear_message(
    pytester: pytest.Pytester, run_pytest: RunPytest, option: str, value: str
) -> None:
    pytester.makepyfile("def test_nothing(): pass")

    result = run_pytest("--proton", option, value)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: proton: *nonsense*"])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_the_plugin_can_be_named_as_a_module_beside_its_entry_point(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile("def test_nothing(): pass")

    result = run_pytest("-p", "proton_bench.pytest_plugin", "--proton")

    assert result.ret == 0
    assert (pytester.path / "pytest.proton").exists()


def test_a_test_that_finalizes_every_session_does_not_break_the_run(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import proton_bench as proton

        def test_own_session(tmp_path):
            own = proton.start(tmp_path / "own", backend="cpu")
            proton.finalize(own)

        def test_all(): proton.finalize()
        def test_last(): pass
        """
    )

    result = run_pytest("--proton")

    found = {path[0] for path in below_file(pytester.path / "pytest.hatchet")}
    assert result.ret == 0
    assert {"test_own_session", "test_all"} <= found
    result.stdout.fnmatch_lines(["a test finalized the session of this run: *"])


def test_a_profile_that_cannot_be_written_is_reported_and_keeps_the_exit_code(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.mkdir("out")
    pytester.makepyfile(
        """
        import shutil
        def test_removes_the_folder(): shutil.rmtree("out")
        """
    )

    result = run_pytest("--proton", "--proton-name", "out/run")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["error: *out/run*"])


@pytest.mark.parametrize(("ends", "code"), [("pass", 74), ("assert False", 1)])
def test_a_strict_run_fails_where_its_profile_cannot_be_written(
    pytester: pytest.Pytester, run_pytest: RunPytest, ends: str, code: int
) -> None:
    pytester.mkdir("out")
    pytester.makepyfile(
        f"""
        import shutil
        def test_removes_the_folder():
            shutil.rmtree("out")
            {ends}
        """
    )

    result = run_pytest("--proton", "--proton-strict", "--proton-name", "out/run")

    assert result.ret == code
    result.stdout.fnmatch_lines(["error: *out/run*"])


def test_a_strict_run_that_writes_its_profile_passes(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile("def test_nothing(): pass")

    assert run_pytest("--proton", "--proton-strict").ret == 0
    assert (pytester.path / "pytest.proton").exists()


# -- the interpreter -----------------------------------------------------------------------------
def test_the_interpreter_is_on_before_a_conftest_can_import_triton(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makeconftest("import os; value = os.environ.get('TRITON_INTERPRET')")
    pytester.makepyfile(
        """
        import conftest
        def test_value(): assert conftest.value == "1"
        """
    )

    result = run_pytest("--proton")

    assert result.ret == 0
    result.stderr.fnmatch_lines(["proton: no GPU driver found: *"])


def test_the_interpreter_can_be_refused(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    pytester.makepyfile(
        """
        import os
        def test_value(): assert "TRITON_INTERPRET" not in os.environ
        """
    )

    result = run_pytest("--proton", "--proton-no-interpret")

    assert result.ret == 0


# -- under the command line ----------------------------------------------------------------------
def test_the_command_line_session_gets_nodes_and_a_summary(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_scoped=SCOPED)

    result = subprocess.run(
        [sys.executable, "-m", "proton_bench", "-n", "cli", "pytest", "-q", "--proton"],
        cwd=pytester.path,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )

    found = below_file(pytester.path / "cli.proton")
    assert result.returncode == 0
    assert ("test_with_resource", "call", "work") in found
    assert "proton: wrote cli.proton, cli.hatchet\nr" in result.stderr
    assert "test_scoped.py › Test" in result.stderr
    everything = paths(pytester.path / "cli.proton")
    assert not [path for path in everything if any("report/text" in name for name in path)]
    assert not (pytester.path / "pytest.proton").exists()


# -- summary -------------------------------------------------------------------------------------
@needs_torch
def test_the_summary_shows_where_tests_spent_their_time(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        test_ops="""
        def test_product():
            import torch
            torch.ones(64, 64) @ torch.ones(64, 64)
        """
    )

    result = run_pytest("--proton")

    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*= proton =*",
            "of run * calls  path",
            "*%*  test_ops.py › test_product › call*",
        ]
    )
    result.stdout.fnmatch_lines(["wrote pytest.proton, pytest.hatchet"])


def profile_of(times: dict[str, int]) -> Profile:
    builder = ProfileBuilder()
    test = builder.add(0, "test_a", FrameKind.TEST)
    for name, time_ns in times.items():
        builder.add(test, name, FrameKind.KERNEL, metrics={"time (ns)": time_ns, "count": 2})
    return builder.build()


def test_what_the_summary_imports_is_not_time_of_the_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Something to see while samples are taken; what pytest itself does may take no millisecond.
    pytester.makeconftest(
        """
        import time

        def pytest_configure():
            end = time.process_time() + 0.2
            while time.process_time() < end:
                pass
        """
    )
    pytester.makepyfile("def test_nothing(): pass")
    monkeypatch.setenv("PROTON_BENCH_HOST_SAMPLES", "1000")

    pytester.runpytest_subprocess("-p", "no:cacheprovider", "--proton")

    profile = read_profile(pytester.path / "pytest.proton")
    names = {profile.name(row) for row in range(len(profile))}
    assert any("conftest.py" in name for name in names)
    assert not any("report/text/hottest.py" in name for name in names)


def test_hottest_paths_come_first_and_are_limited() -> None:
    profile = profile_of({"cold": 1_000_000, "hot": 3_000_000, "none": 0})

    heading, *lines = hottest_paths(profile, limit=2)

    assert heading.split() == ["share", "time/ms", "calls", "path"]
    assert [line.split() for line in lines] == [
        ["75.0%", "3.000", "2", "test_a", "›", "hot"],
        ["25.0%", "1.000", "2", "test_a", "›", "cold"],
    ]


def test_hottest_paths_escape_hostile_names() -> None:
    _, line = hottest_paths(profile_of({"a\nb\x1b[31m" + "x" * 1000: 10}))

    assert "a\\nb\\x1b[31mxxx" in line
    assert len(line) < 300


def test_a_profile_without_times_says_so() -> None:
    assert hottest_paths(ProfileBuilder().build()) == ["no operator, kernel or copy was recorded"]
