from __future__ import annotations

from pathlib import Path

import pytest

# Here, because `pytester` drops at its end what a test imported, and numpy loads only once.
import proton_bench.gate  # noqa: F401
from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.settings import Settings


@pytest.fixture
def read(pytester: pytest.Pytester):  # type: ignore[no-untyped-def]
    def settings(*words: str) -> Settings:
        return Settings.read(pytester.parseconfig("-pno:asyncio", *words))

    return settings


def test_without_options_nothing_is_asked(read, pytester: pytest.Pytester) -> None:
    found = read()

    assert not found.gates
    assert not found.asks
    assert found.storage == pytester.path / ".proton"
    assert found.runs == 0


def test_store_and_policy_are_those_of_the_project_around(
    read, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = pytester.path
    (above / "pyproject.toml").write_text('[tool.proton.gate]\nthreshold = "7%"\n')
    below = pytester.mkdir("tests")
    (below / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(below)

    found = read("--rootdir=.")

    assert found.project == below
    assert found.storage == above / ".proton"
    assert found.policy_file == above / "pyproject.toml"


def test_options_are_read(read, pytester: pytest.Pytester) -> None:
    found = read(
        *("--proton-compare=main", "--proton-compare=./other", "--proton-runs=6"),
        *("--proton-compare-fail=mean:5%", "--proton-compare-fail=calls:0"),
        *("--proton-save=pr", "--proton-json=x/o.json"),
    )
    here = pytester.path

    assert found.compare == ("main", "./other")
    assert found.compare_fail == ("mean:5%", "calls:0")
    assert (found.runs, found.save) == (6, "pr")
    assert found.json == here / "x/o.json"
    assert found.gates
    assert found.asks


def test_the_policy_of_the_project_is_read_before_tests_run(
    read, pytester: pytest.Pytester
) -> None:
    project = pytester.path / "pyproject.toml"
    project.write_text("[tool.proton.gate]\nlevle = 0.01\n")
    pytester.makeini("[pytest]\n")

    assert read().policy_file == project
    with pytest.raises(UsageError, match="unknown key 'levle'"):
        read("--proton-compare=main")


def test_one_value_each_so_that_no_path_is_swallowed(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig("-pno:asyncio", "--proton-compare", "main", "tests")

    assert config.option.file_or_dir == ["tests"]


def test_a_fresh_process_judges_nothing_and_saves_nothing(read, tmp_path: Path) -> None:
    found = read(
        *("--proton-compare=main", "--proton-save=pr", "--proton-json=o.json", "--proton-runs=6"),
        *("--proton-compare-fail=mean:5%", f"--proton-replicate={tmp_path}/tests.json"),
    )

    assert not found.gates
    assert found.asks
    assert (found.runs, found.json, found.compare_fail) == (0, None, ())
    assert found.replicate == tmp_path / "tests.json"


GATED = ("--proton-compare=main",)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*GATED, "--proton-disable"), "--proton-disable measures nothing"),
        (("--proton-json=o", "--proton-disable"), "--proton-disable measures nothing"),
        (("--proton-runs=4",), "give --proton-compare=BASE or --proton-save=NAME"),
        ((*GATED, "--proton-runs=0"), "--proton-runs=0: expected a number of processes"),
        ((*GATED, "--proton-runs=many"), "--proton-runs=many: expected a number"),
        ((*GATED, "--proton-runs=2.5"), "a number of processes"),
        (("--proton-compare-fail=mean:5%",), "--proton-compare-fail is for the gate"),
        ((*GATED, "--proton-compare-fail=mean:5q"), "column 7: 'q' is not a unit"),
        (("--proton-save=a b",), "cannot be the name of a baseline"),
    ],
)
def test_what_means_nothing_is_refused(read, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(*words)

    assert said in str(error.value)
