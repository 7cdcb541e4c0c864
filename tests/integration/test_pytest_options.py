"""Options, ends and kinds of tests of pytest: the exit code and the tree stay right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from integration.outputs import RunPytest, below_file, nodes_of_tests, paths

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")

ONE = "def test_one(): pass"
FIXTURES = """
    import unittest
    import proton_bench as proton
    import pytest

    def make(scope):
        @pytest.fixture(scope=scope)
        def resource():
            with proton.scope(f"{scope} up"): pass
            yield
            with proton.scope(f"{scope} down"): pass
        return resource

    of_session, of_module, of_class = make("session"), make("module"), make("class")

    class TestFirst:
        def test_a(self, of_session, of_module, of_class): pass
        def test_b(self, of_class): pass

    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            with proton.scope("set up class"): pass
        @classmethod
        def tearDownClass(cls):
            with proton.scope("tear down class"): pass
        def setUp(self):
            with proton.scope("set up"): pass
        def test_c(self):
            for n in range(2):
                with self.subTest(n=n), proton.scope("sub"): pass
        def test_d(self): pass
"""


def profiles(pytester: pytest.Pytester) -> list[str]:
    return sorted(path.name for path in pytester.path.glob("*.proton"))


# -- runs without tests --------------------------------------------------------------------------
@pytest.mark.parametrize("option", ["--collect-only", "--fixtures-per-test", "--version"])
def test_options_that_run_no_test_leave_an_earlier_profile_alone(
    pytester: pytest.Pytester, run_pytest: RunPytest, option: str
) -> None:
    pytester.makepyfile(ONE)
    (pytester.path / "pytest.proton").write_text("earlier")

    result = run_pytest("--proton", option)

    assert result.ret == 0
    assert (pytester.path / "pytest.proton").read_text() == "earlier"
    result.stdout.no_fnmatch_line("*hottest paths*")


def test_listing_tests_with_workers_starts_none(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(ONE)

    result = run_pytest("--proton", "-n", "2", "--collect-only")

    assert result.ret == 0
    assert list(pytester.path.glob("*proton*")) == []


def test_a_benchmark_of_pytest_benchmark_runs_beside_ours(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytest.importorskip("pytest_benchmark", reason="a package of .ci/drop-in")
    pytester.makepyfile("""
        import proton_bench as proton

        def work():
            with proton.scope("work", {"items": 1}):
                pass

        def test_one(benchmark):
            benchmark.pedantic(work, rounds=3)
    """)

    result = run_pytest("--proton", "--benchmark-json=times.json")

    profile = read_profile(pytester.path / "pytest.proton")
    works = [row for row in range(len(profile)) if profile.name(row) == "work"]
    assert result.ret == 0
    assert [profile.column("items").get(row) for row in works] == [3]
    times = json.loads((pytester.path / "times.json").read_text())
    assert times["benchmarks"][0]["stats"]["rounds"] == 3


def test_the_option_can_stand_in_the_configuration(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makeini("[pytest]\naddopts = --proton --proton-name=always")
    pytester.makepyfile(ONE)

    result = run_pytest()

    assert result.ret == 0
    assert nodes_of_tests(pytester.path / "always.proton")


def test_a_blocked_plugin_records_nothing(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    pytester.makepyfile(ONE)

    result = run_pytest("-p", "no:proton_bench")

    assert result.ret == 0
    assert profiles(pytester) == []


def test_a_run_without_a_terminal_writes_its_profile(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(ONE)

    result = run_pytest("--proton", "-p", "no:terminal")

    assert result.ret == 0
    result.stderr.fnmatch_lines(["proton: wrote pytest.proton, pytest.hatchet"])


def test_the_last_failed_tests_can_be_run_again(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(ONE + "\ndef test_two(): assert False")

    first = run_pytest("-p", "cacheprovider")
    again = run_pytest("-p", "cacheprovider", "--lf", "--proton")

    assert first.ret == again.ret == 1


def test_tests_are_named_relative_to_rootdir(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.mkdir("sub").joinpath("test_deep.py").write_text(ONE)
    pytester.makeini("[pytest]")

    result = run_pytest("--proton", "--import-mode=importlib", "--rootdir=.", "sub")

    assert result.ret == 0
    assert ("session", "sub/test_deep.py", "test_one", "call") in paths(
        pytester.path / "pytest.proton"
    )


# -- how a run ends ------------------------------------------------------------------------------
@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    ("conftest", "code"),
    [
        ("def pytest_configure(config): pytest.exit('enough', returncode=7)", 7),
        ("def pytest_sessionstart(session): pytest.exit('enough', returncode=7)", 7),
        ("def pytest_collection(session): pytest.exit('enough', returncode=7)", 7),
        ("def pytest_runtest_setup(item): pytest.exit('enough', returncode=7)", 7),
        ("def pytest_runtest_call(item): raise KeyboardInterrupt", 2),
        ("def pytest_runtest_logreport(report): raise RuntimeError('broken')", 3),
        ("def pytest_sessionfinish(session): raise RuntimeError('broken')", 1),
        ("def pytest_configure(config): raise pytest.UsageError('wrong')", 4),
    ],
)
def test_a_run_that_ends_early_keeps_its_code_and_its_profile(
    pytester: pytest.Pytester, run_pytest: RunPytest, conftest: str, code: int
) -> None:
    pytester.makeconftest(f"import pytest\n{conftest}")
    pytester.makepyfile(ONE)

    plain = run_pytest()
    result = run_pytest("--proton")

    assert result.ret == plain.ret == code
    assert profiles(pytester) == ["pytest.proton"]
    wrote = [line for line in result.outlines + result.errlines if "wrote " in line]
    assert len(wrote) == 1


def test_an_exit_of_a_conftest_comes_before_any_recording(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makeconftest("import pytest\npytest.exit('enough', returncode=7)")

    plain = run_pytest()
    result = run_pytest("--proton")

    assert result.ret == plain.ret
    assert profiles(pytester) == []


def test_the_debugger_works(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile("def test_fails():\n    value = 41\n    assert value == 42")

    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--proton", "--pdb", "-p", "no:cacheprovider"],
        cwd=pytester.path,
        input="p value + 1000\nc\n",
        capture_output=True,
        text=True,
    )

    assert result.returncode == 1
    assert "1041" in result.stdout
    assert ("test_fails", "call") in below_file(pytester.path / "pytest.proton")


# -- kinds of tests ------------------------------------------------------------------------------
def test_fixtures_stand_below_the_test_that_sets_them_up_and_the_one_that_tears_them_down(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(FIXTURES)

    result = run_pytest("--proton")

    found = below_file(pytester.path / "pytest.proton")
    first, unit = ("TestFirst",), ("TestUnit",)
    assert result.ret == 0
    assert {path for path in found if path[-1].endswith((" up", " down", " class", "sub"))} == {
        (*first, "test_a", "setup", "session up"),
        (*first, "test_a", "setup", "module up"),
        (*first, "test_a", "setup", "class up"),
        (*first, "test_b", "teardown", "class down"),
        (*unit, "test_c", "setup", "set up class"),
        (*unit, "test_c", "call", "set up"),
        (*unit, "test_c", "call", "sub"),
        (*unit, "test_d", "call", "set up"),
        (*unit, "test_d", "teardown", "tear down class"),
        (*unit, "test_d", "teardown", "module down"),
        (*unit, "test_d", "teardown", "session down"),
    }


def test_fixtures_that_end_after_a_stopped_run_stand_below_the_session(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(
        """
        import proton_bench as proton
        import pytest

        @pytest.fixture(scope="session")
        def shared():
            yield
            with proton.scope("released"): pass

        def test_fails(shared): assert False
        def test_never(shared): pass
        """
    )

    result = run_pytest("--proton", "-x")

    released = [path for path in paths(pytester.path / "pytest.proton") if path[-1] == "released"]
    assert result.ret == 1
    assert len(released) == 1
    assert released[0][0] == "session"


def test_subtests_stand_below_the_call(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    pytester.makepyfile(
        """
        import proton_bench as proton

        def test_parts(subtests):
            for n in range(2):
                with subtests.test(msg=f"part {n}"), proton.scope(f"scope_{n}"):
                    assert n == 0
        """
    )

    result = run_pytest("--proton")

    found = below_file(pytester.path / "pytest.proton")
    assert result.ret == 1
    assert {("test_parts", "call", "scope_0"), ("test_parts", "call", "scope_1")} <= found


def test_doctests_are_tests(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    pytester.makepyfile(
        library='''
        """
        >>> import proton_bench as proton
        >>> with proton.scope("in doctest"): pass
        """
        '''
    )
    pytester.maketxtfile(test_text=">>> 1 + 1\n2\n")

    result = run_pytest("--proton", "--doctest-modules")

    found = paths(pytester.path / "pytest.proton")
    assert result.ret == 0
    assert ("session", "library.py", "library", "call", "in doctest") in found
    assert ("session", "test_text.txt", "test_text.txt", "call") in found


def test_long_and_odd_ids_are_kept_whole(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    pytester.makepyfile(
        r"""
        import pytest

        long = pytest.param("", id="x" * 100_000)

        @pytest.mark.parametrize("text", [long, "a::b[c]", "\u00e9", ""])
        def test_text(text): pass
        """
    )

    result = run_pytest("--proton", "-q", "--no-header", "--proton-backend", "cpu")

    names = {path[0] for path in below_file(pytester.path / "pytest.proton")}
    assert result.ret == 0
    assert f"test_text[{'x' * 100_000}]" in names
    assert {"test_text[a::b[c]]", r"test_text[\xe9]", "test_text[]"} <= names


def test_a_test_that_runs_again_adds_to_the_same_nodes(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for last in (False, True):
                item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
                reports = runtestprotocol(item, nextitem=nextitem, log=False)
                if last or not any(report.failed for report in reports):
                    break
                item._initrequest()
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            return True
        """
    )
    pytester.makepyfile(
        """
        import proton_bench as proton

        tries = []

        def test_flaky():
            tries.append(1)
            with proton.scope("try", {"tries": 1}): pass
            assert len(tries) == 2
        """
    )

    result = run_pytest("--proton")

    profile = read_profile(pytester.path / "pytest.proton")
    (row,) = (row for row in range(len(profile)) if profile.name(row) == "try")
    assert result.ret == 0
    assert profile.column("tries").get(row) == 2
    assert [path[-1] for path in nodes_of_tests(pytester.path / "pytest.proton")].count("call") == 1


@pytest.mark.parametrize("words", [["--collect-only"], ["-p", "no:proton_bench"]])
def test_the_command_line_shows_no_summary_of_runs_without_nodes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(ONE)

    result = pytester.run(sys.executable, "-m", "proton_bench", "pytest", "-q", *words)

    assert result.ret == 0
    result.stdout.no_fnmatch_line("*hottest paths*")


def test_the_disabled_command_line_shows_no_summary(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(ONE)

    result = pytester.run(sys.executable, "-m", "proton_bench", "pytest", "-q")

    assert result.ret == 0
    assert profiles(pytester) == []
    result.stdout.no_fnmatch_line("*hottest paths*")
