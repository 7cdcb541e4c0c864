"""Runs of pytest inside of a recorded run or script share its session, below the caller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.outputs import RunPytest, nodes_of_tests, paths

pytest.importorskip("proton_bench._native")

INNER = """
    import proton_bench as proton

    def test_inner():
        with proton.scope("inside"):
            pass
"""
OUTER = """
    import pytest

    def test_outer():
        assert pytest.main(["-q", {arguments} "inner.py"]) == {code}

    def test_after(): pass
"""
BELOW_OUTER = ("session", "test_outer.py", "test_outer", "call", "session", "inner.py")


def outer(pytester: pytest.Pytester, arguments: str = "", *, code: int = 0) -> Path:
    pytester.makepyfile(inner=INNER, test_outer=OUTER.format(arguments=arguments, code=code))
    return pytester.path


def run_script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST_")}
        | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("arguments", ["", "'--proton',", "'-p', 'proton_bench.pytest_plugin',"])
def test_nodes_of_an_inner_run_stand_below_the_test_that_started_it(
    pytester: pytest.Pytester, run_pytest: RunPytest, arguments: str
) -> None:
    folder = outer(pytester, arguments)

    result = run_pytest("--proton", "test_outer.py")

    found = paths(folder / "pytest.proton")
    assert result.ret == 0
    assert (*BELOW_OUTER, "test_inner", "call", "inside") in found
    assert ("session", "test_outer.py", "test_after", "call") in found
    assert [path.name for path in folder.glob("*.proton")] == ["pytest.proton"]
    assert result.stdout.str().count("= proton =") == 1


def test_an_inner_run_with_an_output_of_its_own_writes_it_too(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    folder = outer(pytester, "'--proton', '--proton-name', 'own',")

    result = run_pytest("--proton", "test_outer.py")

    assert result.ret == 0
    assert nodes_of_tests(folder / "own.proton")[:2] == [("session",), ("session", "inner.py")]
    assert (*BELOW_OUTER, "test_inner", "call") in paths(folder / "pytest.proton")


@pytest.mark.parametrize(("arguments", "code"), [("'--nonsense',", 4), ("'--co',", 0)])
def test_an_inner_run_keeps_its_exit_code(
    pytester: pytest.Pytester, run_pytest: RunPytest, arguments: str, code: int
) -> None:
    folder = outer(pytester, arguments, code=code)

    result = run_pytest("--proton", "test_outer.py")

    assert result.ret == 0
    assert ("session", "test_outer.py", "test_after", "teardown") in paths(folder / "pytest.proton")


def test_runs_of_pytester_in_this_process_are_part_of_their_test(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        test_plugin="""
        pytest_plugins = ["pytester"]

        def test_passes_and_fails(pytester):
            pytester.makepyfile(
                test_it='''
                    import proton_bench as proton
                    def test_passes():
                        with proton.scope("inside"): pass
                    def test_fails(): assert False
                ''',
            )
            result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
            result.assert_outcomes(passed=1, failed=1)
            result.stdout.no_fnmatch_line("*= proton =*")
        """
    )

    result = run_pytest("--proton")

    inner = ("session", "test_plugin.py", "test_passes_and_fails", "call", "session", "test_it.py")
    found = paths(pytester.path / "pytest.proton")
    assert result.ret == 0, result.stdout.str()
    assert (*inner, "test_passes", "call", "inside") in found
    assert (*inner, "test_fails", "call") in found


def test_runs_of_pytester_with_the_option_write_their_files_each_time(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        test_plugin="""
        import pytest

        pytest_plugins = ["pytester"]

        @pytest.mark.parametrize("time", [1, 2])
        def test_writes(pytester, time):
            pytester.makepyfile(test_it="def test_passes(): pass")
            result = pytester.runpytest_inprocess("--proton")
            assert result.ret == 0
            # Other formats take NumPy, which pytester drops, and which loads once in a process.
            assert (pytester.path / "pytest.proton").exists()
        """
    )

    result = run_pytest()

    assert result.ret == 0, result.stdout.str()


def test_a_script_under_the_command_line_may_run_pytest_more_than_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_passes(): pass\ndef test_fails(): assert False")
    (tmp_path / "script.py").write_text(
        "import pytest, sys\n"
        "import proton_bench as proton\n"
        "with proton.scope('first'):\n"
        "    code = pytest.main(['-q', 'test_it.py'])\n"
        "with proton.scope('second'):\n"
        "    assert pytest.main(['-q', '--proton', '-k', 'passes']) == 0\n"
        "sys.exit(code)\n"
    )

    result = run_script(tmp_path, "-m", "proton_bench", "-n", "run", "script.py")

    found = paths(tmp_path / "run.proton")
    assert result.returncode == 1
    assert ("first", "session", "test_it.py", "test_fails", "call") in found
    assert ("second", "session", "test_it.py", "test_passes", "call") in found
    assert ("second", "session", "test_it.py", "test_fails") not in found
    assert sorted(path.name for path in tmp_path.glob("*.proton")) == ["run.proton"]


def test_a_session_that_a_script_started_is_joined_and_left_to_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_passes(): pass")
    (tmp_path / "script.py").write_text(
        "import pytest\n"
        "import proton_bench as proton\n"
        "session = proton.start('pytest', backend='cpu')\n"
        "assert pytest.main(['-q', '--proton']) == 0\n"
        "with proton.scope('after'): pass\n"
        "proton.finalize(session, 'proton')\n"
    )

    result = run_script(tmp_path, "script.py")

    found = paths(tmp_path / "pytest.proton")
    assert result.returncode == 0, result.stderr
    assert ("session", "test_it.py", "test_passes", "call") in found
    assert ("after",) in found


def test_the_plugin_is_not_loaded_twice_where_a_conftest_names_it(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makeconftest("pytest_plugins = ['proton_bench.pytest_plugin']")
    pytester.makepyfile("def test_nothing(): pass")

    result = run_pytest("--proton")

    assert result.ret == 0
    assert nodes_of_tests(pytester.path / "pytest.proton")


def test_an_inner_run_with_workers_of_its_own_leaves_the_outer_profile_alone(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytest.importorskip("xdist")
    folder = outer(pytester, "'-n', '1',")

    result = run_pytest("--proton", "test_outer.py")

    assert result.ret == 0
    assert ("session", "test_outer.py", "test_after", "call") in paths(folder / "pytest.proton")
    assert list(folder.glob("*.parts-*")) == []
