from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from published import published
from typer.testing import CliRunner

from proton_bench.cli.app import build_app
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile

SCRIPT = """
import sys

def work():
    return sum(range(100))

def fails():
    raise ValueError("of the script")

number = len(sys.argv)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("timed_script.py").write_text(SCRIPT, encoding="utf-8")
    return "timed_script.py"


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what the command changes in its process."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("timed_script", None)


def run(*words: str) -> Result:
    return CliRunner().invoke(build_app(["bench"]), ["bench", *words])


def test_a_function_of_a_script_is_timed(script: str) -> None:
    done = run(f"{script}::work", "--json", "-n", "out")

    document = published(done.stdout)
    assert (document["name"], document["clock"]) == ("work", "cpu")
    assert "work" in read_profile("out.proton").strings


@pytest.mark.parametrize(
    "target", ["timed_script.py", "timed_script.py::", "missing.py::work", "timed_script.py::wrk"]
)
@pytest.mark.usefixtures("script")
def test_a_wrong_target_is_an_error(target: str) -> None:
    assert isinstance(run(target).exception, UsageError)


def test_errors_of_the_script_are_shown_as_python_shows_them(script: str) -> None:
    done = run(f"{script}::fails")

    assert done.exit_code == 1
    assert "ValueError: of the script" in done.output
