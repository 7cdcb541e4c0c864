from __future__ import annotations

import io
from pathlib import Path
from threading import Event

import pytest

from proton_bench.cli.commands.run import default_name, read_output
from proton_bench.cli.files import ProgressLine, beside, refuse_input
from proton_bench.cli.options import default_store, policy_file
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


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_the_project_is_the_nearest_folder_with_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    (tmp_path / mark).touch()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")

    assert default_store() == tmp_path / ".proton"
    assert (policy_file() is not None) == (mark == "pyproject.toml")


def test_without_a_project_the_current_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert default_store() == tmp_path / ".proton"
    assert policy_file() is None


def test_a_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(UsageError, match="current folder was removed"):
        default_store()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run.proton", "run.html"),
        ("run.partial.proton", "run.partial.html"),
        ("a/b.hatchet_msgpack", "a/b.html"),
        ("run.txt", "run.txt.html"),
        (".proton", ".proton.html"),
    ],
)
def test_suffix_of_a_known_format_is_exchanged(name: str, expected: str) -> None:
    assert beside(Path(name), ".html") == Path(expected)


def test_input_is_never_the_output(tmp_path: Path) -> None:
    file, link = tmp_path / "x.proton", tmp_path / "link"
    file.write_text("x")
    link.symlink_to(file)

    with pytest.raises(UsageError, match="is an input"):
        refuse_input(link, [tmp_path / "other", file])


@pytest.mark.parametrize(("target", "source"), [("new.html", "x.proton"), ("-", "-")])
def test_other_files_and_stdout_are_written(target: str, source: str) -> None:
    assert refuse_input(Path(target), [Path(source)]) is None


class Terminal(io.StringIO):
    """A terminal that says when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_step_of_a_slow_command_is_shown_and_removed() -> None:
    terminal = Terminal()

    with ProgressLine(terminal, patience_s=0.0) as progress:
        progress.step("reading")
        assert terminal.written.wait(60)
        progress.step("writing")

    assert terminal.getvalue().endswith("proton: writing ...\r\x1b[K")
    assert "\n" not in terminal.getvalue()


def test_quick_command_shows_nothing() -> None:
    terminal = Terminal()

    with ProgressLine(terminal, patience_s=3600.0) as progress:
        progress.step("reading")

    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_no_terminal_is() -> None:
    stream = io.StringIO()

    with ProgressLine(stream, patience_s=0.0) as progress:
        progress.step("reading")

    assert stream.getvalue() == ""
