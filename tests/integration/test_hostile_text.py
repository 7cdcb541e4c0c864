"""Text of files, names, variables and errors never commands a terminal or a CI runner.

The tests walk every command and option of the application, so that new ones are covered too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import typer
from fakes.runs import GPU

from proton_bench.cli import main
from proton_bench.cli.app import COMMANDS, build_app
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

HOSTILE = "::error::pwn ##[error]pwn\x1b[2J\x1b]0;t\x07\x9b31m\u202e\u2028\u2029\r\n::set-env::y"
# A link, a title, a device's string, marks that hide, and starts of lines that look empty.
HOSTILE += (
    "\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\\x1bPq\x1b\\\x08\x85\xad\u200b\u3164\ufe0f\U000e0041"
)
HOSTILE += "\r\n\xa0::add-mask::z\n\ufeff::stop-commands::z"
HOSTILE_FILE = HOSTILE.replace("/", "")
# The first changes the environment of the tests; with the others Python itself prints.
SKIPPED = {("doctor", "--fix-scripts")}
MEANT = re.compile(rb"^::(error|warning|stop-commands|[0-9a-f]{32})(?= |::)", re.MULTILINE)
CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\xad\u200b\u3164\ufe0f\ufeff]"
)


def hostile_profile(path: Path, value: int = 100) -> Path:
    builder = ProfileBuilder(HOSTILE)
    for count, name in enumerate((HOSTILE, f"[red]{HOSTILE}[/red]", "::a::", f"x.py:1@{HOSTILE}")):
        scope = builder.add(0, name, FrameKind.SCOPE)
        metrics: dict[str, Any] = {"time (ns)": value * (count + 1), "count": 1, HOSTILE: 2}
        kernel = builder.add(scope, name, FrameKind.KERNEL, metrics=metrics, device=GPU)
        builder.add(kernel, f"{name}.py:3@{name}", FrameKind.LINE, metrics={"num_samples": 5})
    facts: dict[str, Any] = {"backend": HOSTILE, HOSTILE: HOSTILE, "directory": HOSTILE}
    facts["git"] = {"revision": HOSTILE}
    profile = builder.build(provenance=facts, dropped={HOSTILE: 3}, partial=True)
    write_profile(profile, path)
    return path


def harm(written: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """Return what a terminal or a CI runner would obey, with the name of what was written."""
    found = []
    for what, content in written:
        text = content.decode("utf-8")
        if control := CONTROL.search(text):
            found.append((what, text[max(control.start() - 60, 0) : control.end() + 20]))
        commands = [line for line in text.split("\n") if line.lstrip().startswith("::")]
        found += [(what, line) for line in [*commands, *re.findall(r".*##\[.*", text)]]
    return found


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


LEAVES = dict(leaves(typer.main.get_command(build_app(COMMANDS))))


def option_words(path: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield every option of a command alone, with a hostile value where it takes one."""
    for parameter in LEAVES[path].params:
        if parameter.param_type_name != "option" or not parameter.opts:
            continue
        name = parameter.opts[-1]
        if (path[0], name) in SKIPPED:
            continue
        yield [name] if parameter.is_flag else [name, HOSTILE]


Walk = Callable[..., list[tuple[str, bytes]]]


@pytest.fixture
def walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Walk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    monkeypatch.setenv("PROTON_BENCH_BASELINES", HOSTILE)
    monkeypatch.setattr(os, "execv", lambda *_: sys.exit(0))

    def run(*words: str, own_commands: bool = False) -> list[tuple[str, bytes]]:
        """Run a command; return what it wrote, without our own annotations if it has some."""
        with contextlib.suppress(SystemExit):
            main(words)
        said = capfdbinary.readouterr()
        return [
            (f"{stream} of {words}", MEANT.sub(b"own", content) if own_commands else content)
            for stream, content in (("stdout", said.out), ("stderr", said.err))
        ]

    return run


@pytest.mark.parametrize("path", LEAVES, ids="-".join)
def test_nothing_that_a_command_prints_is_obeyed(path: tuple[str, ...], walk: Walk) -> None:
    one, other = str(hostile_profile(Path(HOSTILE_FILE + ".proton"))), "other.proton"
    hostile_profile(Path(other), 200)
    Path("damaged.proton").write_bytes(HOSTILE.encode())
    own = "--github" in [word for words in option_words(path) for word in words]
    inputs = [[], [f"--{HOSTILE}"], ["missing" + HOSTILE]]
    if path[0] not in {"run", "ab"}:  # their words are programs
        inputs += [["damaged.proton"], [one], [one, other]]

    written = [each for words in inputs for each in walk(*path, *words)]
    for option in option_words(path):
        written += walk(*path, *option, *inputs[-1], own_commands=own)

    assert harm(written) == []


@pytest.mark.parametrize("form", ["folded", "json", "csv", "speedscope", "hatchet"])
def test_exports_to_the_standard_output_are_harmless(form: str, walk: Walk) -> None:
    profile = str(hostile_profile(Path("a.proton")))

    written = walk("export", profile, "--to", form, "-o", "-")

    assert harm(written) == []


@pytest.mark.parametrize(
    "words",
    [
        ["view", "a.proton", "--json"],
        ["view", "a.proton", "-m", HOSTILE],
        ["view", "a.proton", "--source"],
        ["view", "a.proton", "--source", "--json"],
        ["diff", "a.proton", "b.proton", "--json"],
        ["diff", "a.proton", "b.proton", "--markdown"],
        ["query", "a.proton", "select name, path from nodes", "--csv"],
        ["query", "a.proton", "select name, path from nodes", "--json"],
        ["report", "a.proton", "-o", "-"],
        ["gate", "a.proton", "b.proton", "--json"],
        ["gate", "a.proton", "b.proton", "--junit", "-"],
        ["gate", "a.proton", "b.proton", "--markdown", "-"],
        ["gate", "a.proton", "b.proton", "--github"],
        ["gate", "a.proton", "b.proton", "--github", "--json"],
        ["gate", "a.proton", "b.proton", "--github", "--junit", "-"],
    ],
)
def test_forms_for_machines_are_harmless_in_a_log(words: list[str], walk: Walk) -> None:
    for count, name in enumerate("ab", 1):
        hostile_profile(Path(f"{name}.proton"), 100 * count)

    written = walk(*words, own_commands="--github" in words)

    assert harm(written) == []


def test_files_of_a_gate_are_harmless_when_they_are_shown(walk: Walk, tmp_path: Path) -> None:
    for count, name in enumerate("ab", 1):
        hostile_profile(Path(f"{name}.proton"), 100 * count)

    words = ["--markdown", "gate.md", "--junit", "gate.xml", "--github"]
    written = walk("gate", "a.proton", "b.proton", *words, own_commands=True)

    files = [(name, (tmp_path / name).read_bytes()) for name in ("gate.md", "gate.xml", "summary")]
    assert harm(written + files) == []
    Xml.parse(tmp_path / "gate.xml")


def test_error_of_a_run_is_one_harmless_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "proton_bench", "run", f"missing{HOSTILE_FILE}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)

    assert done.returncode != 0
    assert harm([("stderr", done.stderr)]) == []
    assert done.stdout == b""


SCOPED = """
import proton_bench as proton
with proton.scope("a\\x9b31m\\u202e##[error]b", {"flops": 1}):
    pass
"""


def on_a_terminal(words: list[str], folder: Path, code: int = 0) -> bytes:
    """Return what a command shows there until it ends with a code."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "proton_bench", *words]
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=subprocess.PIPE) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO once the last writer is gone
            while piece := os.read(ours, 1 << 16):
                shown += piece
        os.close(ours)
        assert running.stderr is not None
        running.stderr.read()
    assert running.returncode == code
    return shown.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    "words",
    [
        *(["run", "-b", "cpu", *form, "-n", "-", "x.py"] for form in ([], ["-d", "trace"])),
        *(
            ["export", "a.proton", "--to", form, "-o", "-"]
            for form in ("proton", "parquet", "pprof")
        ),
    ],
    ids=" ".join,
)
def test_a_terminal_gets_no_bytes_of_a_profile(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCOPED)
    hostile_profile(tmp_path / "a.proton")

    shown = on_a_terminal(words, tmp_path)

    assert shown
    assert harm([("the terminal", shown)]) == []


def test_a_pipe_gets_a_profile_that_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCOPED)
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cpu", "-n", "-", "x.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)

    assert harm([("stdout", done.stdout)]) == []
    tree = json.loads(done.stdout)
    assert tree[0]["children"][0]["frame"]["name"] == "a\x9b31m\u202e##[error]b"
