"""Warnings of our own code fail a test; warnings of other packages do not."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
NO_MODULES = {"__pycache__", "data"}
OURS = sorted(
    {path.stem for path in TESTS.iterdir() if path.is_dir() or path.suffix == ".py"} - NO_MODULES
    | {"proton_bench", "proton_bench_plugins", "tests", "benchmarks", "examples"}
)

FOREIGN = """
import warnings

warnings.warn("this package is old", DeprecationWarning)

def old():
    warnings.warn("this function calls an old one", DeprecationWarning)

def leave_open():
    file = open(__file__)

def read():
    leave_open()  # where a function has ended, a file that it left open is its caller's

def asked_in_an_old_way():
    warnings.warn("call another function", DeprecationWarning, stacklevel=2)
"""
TEST_FILE = """
import threading
import warnings

import pytest

def test_foreign_import():
    import foreign

def test_foreign_warning():
    import foreign
    foreign.old()

def test_foreign_file_left_open():
    import foreign
    foreign.read()

def test_own_call_in_an_old_way():
    import foreign
    foreign.asked_in_an_old_way()

def test_own_warning():
    warnings.warn("one of ours", UserWarning)

def test_own_file_left_open():
    open(__file__)

def test_own_error_while_collected():
    class Loose:
        def __del__(self):
            raise ValueError
    Loose()

def test_own_error_in_a_thread():
    thread = threading.Thread(target=[].pop)
    thread.start()
    thread.join()

def test_own_result():
    return 3
"""


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("below", ["", ".below"])
def test_warnings_that_are_attributed_to_our_modules_are_errors(name: str, below: str) -> None:
    with pytest.raises(UserWarning):
        warnings.warn_explicit("x", UserWarning, "x.py", 1, module=name + below)


@pytest.mark.parametrize("name", ["torch.jit._script", "pandas", "proton_benchmarks", "__main__"])
def test_warnings_that_are_attributed_to_other_modules_are_reported(name: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.warn_explicit("x", DeprecationWarning, "x.py", 1, module=name)

    assert [each.category for each in seen] == [DeprecationWarning]


def test_only_what_our_own_code_brings_about_fails_a_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")  # the caller's shell changes nothing
    packages = pytester.mkdir("packages")
    (packages / "foreign.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])
    )
    pytester.mkdir("tests")
    (pytester.path / "tests" / "test_x.py").write_text(TEST_FILE)

    pytester.runpytest_subprocess(
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(pytester.path)),
        *("-p", "no:cacheprovider", "-p", "no:xdist", "--junitxml", "results.xml", "tests"),
    )

    passed: dict[bool, list[str]] = {True: [], False: []}
    for case in ElementTree.parse(pytester.path / "results.xml").iter("testcase"):
        passed[case.find("failure") is None].append(str(case.get("name")))
    assert all(name.startswith("test_foreign_") for name in passed[True])
    assert all(name.startswith("test_own_") for name in passed[False])
    assert [len(passed[True]), len(passed[False])] == [3, 6]
