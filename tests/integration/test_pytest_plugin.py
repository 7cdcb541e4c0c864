from __future__ import annotations

import subprocess
import sys

import pytest
from integration.outputs import RunPytest, below_file, paths

from proton_bench.formats.registry import read_profile
from proton_bench.model.frame import FrameKind

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
def test_tests_are_nodes_of_file_class_and_phase_with_wall_time(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_scoped=SCOPED)

    result = run_pytest("--proton", "--proton-backend", "cpu")

    found = paths(pytester.path / "pytest.proton")
    root = ("session", "test_scoped.py")
    assert result.ret == 0
    assert (*root, "TestGroup", "test_sized[1]", "call", "size_1") in found
    assert (*root, "TestGroup", "test_sized[2]", "call", "size_2") in found
    assert (*root, "test_with_resource", "setup", "acquire") in found
    assert (*root, "test_with_resource", "call", "work") in found
    assert (*root, "test_with_resource", "teardown", "release") in found
    assert (pytester.path / "pytest.hatchet").exists()
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


@pytest.mark.parametrize(
    ("words", "code"),
    [(["test_one.py", "-k", "two"], 5), (["none.py"], 4), (["test_broken.py"], 2)],
)
def test_a_run_without_tests_keeps_its_exit_code_and_the_earlier_profile(
    pytester: pytest.Pytester, run_pytest: RunPytest, words: list[str], code: int
) -> None:
    pytester.makepyfile(test_one="def test_one(): pass", test_broken="import nothing_of_this_name")
    (pytester.path / "pytest.proton").write_text("earlier")

    result = run_pytest("--proton", *words)

    assert result.ret == code
    result.stdout.fnmatch_lines(["no tests ran, so no profile was written"])
    assert (pytester.path / "pytest.proton").read_text() == "earlier"


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
        ("--proton-mode", "nonsense"),
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
