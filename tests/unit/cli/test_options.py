from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.cli.commands.run import default_name, read_output
from proton_bench.cli.target import read_target
from proton_bench.errors import UsageError


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["jobs/fit.py"], "fit"),
        (["python", "-m", "pack.fit"], "pack.fit"),
        (["python", "-c", "pass"], "python"),
        (["python3", "jobs/fit.py"], "fit"),
        (["pytest", "tests/a.py"], "pytest"),
        (["sh", "fit.sh"], "sh"),
        (["jobs/{a}%b.py"], "{a}%b"),
        (["jobs/-.py"], "-"),
        (["jobs/fit.hatchet.py"], "fit"),
        (["jobs"], "jobs"),
    ],
)
def test_a_profile_is_named_after_what_runs(
    words: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    for each in ("fit.py", "{a}%b.py", "-.py", "fit.hatchet.py", "__main__.py"):
        (tmp_path / "jobs" / each).touch()

    target = read_target(words)
    output = read_output(default_name(target.name), None)

    assert output.name == str(tmp_path / name)
    assert output.formats == ("proton", "hatchet")


def test_an_option_behind_a_script_is_the_scripts_own(tmp_path: Path) -> None:
    (tmp_path / "fit.py").touch()
    script = str(tmp_path / "fit.py")

    def misplaced(*words: str) -> str:
        return read_target(words).misplaced({"-n", "--name", "-k"})

    assert misplaced(script, "9", "--name=late", "-n") == "--name"
    assert misplaced(script, "--epochs", "-x") == ""
    assert misplaced("pytest", "-k", "fast") == ""  # pytest has that option too


def test_output_takes_the_format_from_its_suffix() -> None:
    assert read_output(None, "/data/x.hatchet").formats == ("hatchet",)
    assert read_output(None, "/data/x.hatchet").name == "/data/x"


def test_output_without_a_suffix_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'x\.txt'.*\.proton, \.hatchet, \.hatchet_msgpack"):
        read_output(None, "x.txt")


def test_name_and_output_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        read_output("x", "x.proton")
