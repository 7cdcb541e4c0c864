"""Finds out what to run: a script, pytest, python or another program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proton_bench.errors import UsageError
from proton_bench.recording.launcher.run_options import RunOptions, current_folder
from proton_bench.recording.launcher.target import PYTEST_AS_MODULE, TargetKind
from proton_bench.support.text import did_you_mean

if TYPE_CHECKING:
    from proton_bench.gate.processes import Command


_PYTHON = re.compile(r"python(\d+(\.\d+t?)?)?")
_PYTHON_NAME = "python"
_PYTEST = ("pytest", "py.test")
_SCRIPT_SUFFIXES = (".py", ".pyw", ".pyc", ".pyz", ".zip")
# Short options of the interpreter that take a value, and those that end its options.
_VALUE_FLAGS = "WX"
_ENDING_FLAGS = "cm"
_STDIN = "-"
# Options with which the interpreter prints something and exits.
_TELLING = re.compile(r"-[^-WXcm]*[hV?].*|--(version|help(-[a-z]+)?)")
_WITHOUT_SITE = re.compile(r"-[^-WXcm]*S.*")


@dataclass(frozen=True, slots=True)
class TargetWords:
    """A target in the form that the runner needs.

    Attributes:
        kind: How to read ``value``.
        value: Path, module name or source text.
        arguments: The target's own arguments.
        flags: Options for the interpreter that runs it.
    """

    kind: TargetKind
    value: str
    arguments: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What its profile is called: the script without its suffix, the module, the program."""
        if self.kind in (TargetKind.CODE, TargetKind.STDIN):
            return _PYTHON_NAME
        if self.kind in (TargetKind.PYTEST, TargetKind.MODULE):
            return self.value if self.kind is TargetKind.MODULE else _PYTEST[0]
        return os.path.splitext(os.path.basename(os.path.abspath(self.value)))[0] or _PYTHON_NAME

    def misplaced(self, options: Collection[str]) -> str:
        """Return the first argument of a script that is one of these options, "" without one."""
        if self.kind not in (TargetKind.SCRIPT, TargetKind.MODULE):
            return ""
        words = (word.partition("=")[0] for word in self.arguments)
        return next((word for word in words if word in options), "")


def read_target(words: Sequence[str], commands: Collection[str] = ()) -> TargetWords:
    """Find out what to run.

    Args:
        words: The target and its arguments, untouched.
        commands: Names of commands, one of which a word that names nothing may have meant.

    Raises:
        UsageError: The target is missing or cannot be run.
    """
    if not words:
        raise UsageError("nothing to run: give a script, pytest, python or a program")
    target, arguments = words[0], tuple(words[1:])
    if target == _STDIN:
        return _read_python(words, commands)
    base = os.path.basename(target)
    is_program = not os.path.exists(os.path.join(target, "__main__.py"))
    if base in _PYTEST and is_program:
        return TargetWords(TargetKind.PYTEST, "", arguments)
    if _PYTHON.fullmatch(base) and is_program:
        _require_same_interpreter(target)
        return _read_python(arguments, commands)
    if _is_program(target):
        program = os.path.abspath(target) if os.path.exists(target) else target
        return TargetWords(TargetKind.PROGRAM, program, arguments)
    _require_script(target, commands)
    return TargetWords(TargetKind.SCRIPT, target, arguments)


def _is_program(target: str) -> bool:
    """Whether the word names an executable other than Python; folders and scripts are not."""
    path = Path(target)
    if path.exists():
        is_other = not target.endswith(_SCRIPT_SUFFIXES) and _is_other_program(path)
        return path.is_file() and is_other and os.access(path, os.X_OK)
    return os.sep not in target and shutil.which(target) is not None


def _require_script(target: str, commands: Collection[str]) -> None:
    path = Path(target)
    if path.is_dir():
        if not (path / "__main__.py").exists():
            raise UsageError(f"{target!r} is a folder without a __main__.py: name a script in it")
        return
    if not path.exists():
        meant = did_you_mean(target.lower(), commands) or ": check the path"
        raise UsageError(f"script {target!r} does not exist{meant}")
    if not target.endswith(_SCRIPT_SUFFIXES) and _is_other_program(path):
        raise UsageError(
            f"{target!r} is not executable: run chmod +x on it, or name its interpreter, as in "
            "`proton bash FILE`"
        )


def _is_other_program(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return False
    return line.startswith(b"\x7fELF") or (line.startswith(b"#!") and b"python" not in line)


def _require_same_interpreter(interpreter: str) -> None:
    if os.sep not in interpreter:
        return
    path = os.path.abspath(interpreter)
    ours = (os.path.dirname(os.path.abspath(sys.executable)), os.path.join(sys.prefix, "bin"))
    if os.path.dirname(path) not in ours:
        raise UsageError(
            f"{interpreter!r} is not the interpreter {sys.executable!r}: install proton-bench "
            f"there and run `{interpreter} -m proton_bench ...`"
        )


def _read_python(words: Sequence[str], commands: Collection[str]) -> TargetWords:
    """Read ``python``'s own command line; its options are passed to the new interpreter."""
    rest = list(words)
    flags: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] != _STDIN:
        word = rest.pop(0)
        if _TELLING.fullmatch(word):
            return TargetWords(TargetKind.PROGRAM, sys.executable, tuple(words))
        if _WITHOUT_SITE.fullmatch(word):
            raise UsageError(
                "`proton python -S` cannot import proton_bench to record with: leave -S out"
            )
        letter, at = _special_flag(word)
        if letter and letter in _ENDING_FLAGS:
            if at > 1:
                flags.append(word[:at])
            value = word[at + 1 :] or (rest.pop(0) if rest else "")
            return _named_code(letter, value, (tuple(rest), tuple(flags)))
        flags.append(word)
        if letter and at == len(word) - 1 and rest:
            flags.append(rest.pop(0))
    if not rest and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("`proton python` needs a script, -m MODULE or -c CODE to run")
    if not rest or rest[0] == _STDIN:
        value = "".join(rest[:1])
        return TargetWords(TargetKind.STDIN, value, tuple(rest[1:]), tuple(flags))
    _require_script(rest[0], commands)
    return TargetWords(TargetKind.SCRIPT, rest[0], tuple(rest[1:]), tuple(flags))


def _special_flag(word: str) -> tuple[str, int]:
    """Return the first letter of a cluster like ``-Bm`` that takes a value, and its place."""
    if not word.startswith("--"):
        for at, letter in enumerate(word):
            if letter in _VALUE_FLAGS + _ENDING_FLAGS:
                return letter, at
    return "", 0


def _named_code(
    letter: str, value: str, words: tuple[tuple[str, ...], tuple[str, ...]]
) -> TargetWords:
    if not value:
        raise UsageError(f"`proton python -{letter}` needs an argument")
    if letter == "c":
        return TargetWords(TargetKind.CODE, value, *words)
    if value == "pytest":
        return TargetWords(TargetKind.PYTEST, PYTEST_AS_MODULE, *words)
    return TargetWords(TargetKind.MODULE, value, *words)


def interpreter_flags(command_line: list[str]) -> list[str]:
    """Return the interpreter's own options from a command line such as ``sys.orig_argv``.

    They are passed on, so that ``python -W error -m proton_bench x.py`` works.
    """
    flags: list[str] = []
    rest = iter(command_line[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            break
        cut = next((i for i, letter in enumerate(word) if letter in "cm"), None)
        if not word.startswith(("--", "-W", "-X")) and cut is not None:
            if cut > 1:
                flags.append(word[:cut])
            break
        flags.append(word)
        if word in ("-W", "-X"):
            flags.append(next(rest, ""))
    return flags


_RECORDING = {
    **dict.fromkeys(("-b", "--backend"), "backend"),
    **dict.fromkeys(("-c", "--context"), "context"),
    **dict.fromkeys(("-m", "--mode"), "mode"),
    **dict.fromkeys(("-k", "--hook"), "hook"),
}


@dataclass(frozen=True, slots=True)
class Recording:
    """How the runs are recorded; as the options of `proton run`.

    Attributes:
        backend: Names joined by ``+``; None asks the plugins.
        context: Where call paths come from.
        mode: Mode text.
        hook: Name of a launch hook, or None.
    """

    backend: str | None = None
    context: str = "shadow"
    mode: str | None = None
    hook: str | None = None


def measured_command(words: Sequence[str], recording: Recording) -> Command:
    """Return a command from the words of `proton run TARGET ARGUMENTS`.

    Raises:
        UsageError: The words name nothing that can be run.
    """
    from proton_bench.gate.processes import Command

    target = read_target(words)
    options = RunOptions(
        kind=target.kind,
        target=target.value,
        name="",
        formats=(),
        folder=current_folder(),
        context=recording.context,
        backend=recording.backend,
        mode=recording.mode,
        hook=recording.hook,
        command=("proton", *sys.argv[1:]),
    )
    return Command(options, target.arguments, (*interpreter_flags(sys.orig_argv), *target.flags))


def split_recording(words: Sequence[str]) -> tuple[list[str], Recording]:
    """Split words that may begin with the options of `proton run` that say how to record.

    Raises:
        UsageError: An option has no value.
    """
    left, found = list(words), {}
    while left and (name := _RECORDING.get(left[0].partition("=")[0])):
        word, mark, value = left.pop(0).partition("=")
        if not mark and not left:
            raise UsageError(f"{word} needs a value, and a command after it")
        found[name] = value if mark else left.pop(0)
    return left, Recording(**found)


def split_command(text: str) -> list[str]:
    """Split a command that was given as one word.

    Raises:
        UsageError: A quotation mark is missing.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--base {text!a} is not a command: {error}") from error
