"""The processes of an experiment: what they run, of which revision, where, and how they end."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from proton_bench.errors import (
    InterruptedExperimentError,
    OutputError,
    TargetFailedError,
    UsageError,
)
from proton_bench.gate.project import shown
from proton_bench.recording.launcher.run_options import RunOptions, runner_command
from proton_bench.recording.launcher.target import TargetKind
from proton_bench.support.files import write_file

FORMATS = ("proton",)


@dataclass(frozen=True, slots=True)
class Command:
    """A command and how to record it.

    Attributes:
        options: As `proton run` reads them; names of output are filled in for each run.
        arguments: The target's own arguments.
        flags: Options for the interpreter.
    """

    options: RunOptions
    arguments: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def line(
        self,
        name: str,
        *,
        first_folders: tuple[str, ...] = (),
        revision: str = "",
        interpreter: str = "",
    ) -> list[str]:
        """Return the command line of one run.

        Args:
            name: Absolute output path without a suffix.
            first_folders: Folders that modules are looked for in first.
            revision: Commit that they are a checkout of, "" for none.
            interpreter: Python to use instead of this one.
        """
        options = replace(
            self.options,
            name=name,
            template=_literal(name),
            formats=FORMATS,
            quiet=True,
            strict=True,
            first_folders=first_folders,
            revision=revision,
            modules_file=f"{name}.modules.json",
            canary=True,
        )
        line = runner_command(options, self.arguments, self.flags)
        return [interpreter or line[0], *line[1:]]

    @property
    def text(self) -> str:
        """The target and its arguments as text."""
        is_pytest = self.options.kind is TargetKind.PYTEST
        target = "pytest" if is_pytest else self.options.target or str(self.options.kind)
        return shlex.join([target, *self.arguments])

    @property
    def script(self) -> str:
        """Path of the script that is measured, "" for another target."""
        options = self.options
        is_script = options.kind is TargetKind.SCRIPT
        return os.path.join(options.folder, options.target) if is_script else ""

    def to_document(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "options": json.loads(self.options.to_json()),
            "arguments": list(self.arguments),
            "flags": list(self.flags),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Command:
        """Return the command from `to_document`."""
        options = RunOptions.from_json(json.dumps(document["options"]))
        return cls(options, tuple(document["arguments"]), tuple(document["flags"]))


def _literal(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")


# Usual folders of packages in repositories.
_SOURCES = ("", "src", "python")
# Variables that git sets for hooks, which would name another repository.
_GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of a repository.

    Attributes:
        root: Top folder of the working tree.
        ref: As given by the user.
        commit: Its full hash.
    """

    root: str
    ref: str
    commit: str

    @property
    def label(self) -> str:
        """The same as text."""
        return f"{self.ref}, {self.commit[:10]}"


def find_revision(ref: str, folder: str) -> Revision:
    """Return the commit of a name in the repository around a folder.

    Raises:
        UsageError: The folder is not in a repository, or the commit does not exist.
    """
    try:
        root = git(folder, "rev-parse", "--show-toplevel")
    except UsageError as error:
        raise UsageError(
            f"{error}; outside a repository `proton ab --base CMD` compares commands"
        ) from error
    if not ref or ref.startswith("-"):
        raise UsageError(f"--base-ref {ref!r} is not a revision")
    try:
        commit = git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    except UsageError as error:
        if ref == "HEAD":
            raise UsageError(
                f"{root!a} has no commit yet; compare commands, with --base CMD"
            ) from error
        raise UsageError(
            f"there is no commit {ref!r} in {root!a}; fetch it with `git fetch origin`"
        ) from error
    return Revision(os.path.realpath(root), ref, commit)


def changed_files(revision: Revision, other: str | None = None) -> frozenset[str]:
    """Return the files that differ between a revision and another one, from the top folder.

    Args:
        revision: The one.
        other: Commit of the other; None means the working tree.

    Raises:
        UsageError: git fails.
    """
    commits = [revision.commit] if other is None else [revision.commit, other]
    listed = git(revision.root, "diff", "--name-only", "--no-renames", "-z", *commits, "--")
    return frozenset(each for each in listed.split("\0") if each)


@contextlib.contextmanager
def worktree(revision: Revision, folder: Path) -> Iterator[Path]:
    """Check a revision out into a folder for the block; the folder is removed at its end.

    Raises:
        UsageError: git fails.
    """
    _remove(revision, folder)  # left over by a killed process
    try:
        git(revision.root, "worktree", "add", "--detach", "--force", str(folder), revision.commit)
        yield folder
    finally:
        _remove(revision, folder)


def first_folders_of(revision: Revision, tree: Path, *, script: str = "") -> tuple[str, ...]:
    """Return the folders of a checked-out revision that come first in the module search path.

    They are the counterpart of the script's folder, which Python puts first, the top folder, `src`,
    `python`, and counterparts of the working tree's folders on this process's path.

    Args:
        revision: The revision.
        tree: Its folder.
        script: Path of the measured script, "" for another target.
    """
    own = [os.path.dirname(os.path.realpath(script))] if script else []
    first, others = (_inside(folders, revision.root) for folders in (own, sys.path))
    candidates = [
        tree / each for each in (*first, *_SOURCES, *others) if "site-packages" not in each
    ]
    found = [str(each) for each in candidates if each.is_dir()]
    packages = [each for each in found if os.path.exists(os.path.join(each, "__init__.py"))]
    return tuple(dict.fromkeys(each for each in found if each not in packages))


def _inside(folders: Sequence[str], root: str) -> list[str]:
    """Return the folders below a root, relative to it."""
    found = map(os.path.realpath, folders)
    return [os.path.relpath(each, root) for each in found if _is_below(each, root)]


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)


def _remove(revision: Revision, folder: Path) -> None:
    """Remove a folder that git knows as a worktree, and nothing else."""
    place = os.path.realpath(folder)
    with contextlib.suppress(UsageError):
        known = git(revision.root, "worktree", "list", "--porcelain").splitlines()
        if f"worktree {place}" in known and not folder.is_symlink():
            git(revision.root, "worktree", "remove", "--force", "--force", place)
        git(revision.root, "worktree", "prune")


# Settings with which a repository can make git start programs.
_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def git(folder: str, *words: str) -> str:
    """Return what git prints in a folder, without the last line breaks.

    Raises:
        UsageError: It cannot be started, or fails.
    """
    environment = {name: os.environ[name] for name in os.environ if name not in _GIT_VARIABLES}
    try:
        done = subprocess.run(
            ["git", *_HARMLESS, "-C", folder or ".", *words],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**environment, "LC_ALL": "C", "GIT_LFS_SKIP_SMUDGE": "1"},
        )
    except OSError as error:
        raise UsageError(f"git cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "backslashreplace").strip()
        raise UsageError(f"git {words[0]} failed in {folder!a}: {said}")
    return os.fsdecode(done.stdout).rstrip("\n")


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first signal into `InterruptedExperimentError`; later ones are ignored.

    This works only on the main thread. Ignored signals stay ignored.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        raise InterruptedExperimentError(signal.Signals(number))

    taken = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    former = {}
    try:
        for each in taken:
            former[each] = signal.signal(each, interrupt)
    except ValueError:  # not the main thread
        taken = []
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


_PATIENCE_S = 10.0
_SHOWN_LINES = 20
_SHOWN_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start.

    Attributes:
        line: Program and arguments.
        folder: Current folder.
        log: File that takes stdout and stderr.
        environment: The complete environment.
        inherited: File descriptors that the process gets.
    """

    line: Sequence[str]
    folder: str
    log: Path
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Exit code, -n after signal n.
        seconds: Its duration.
    """

    code: int
    seconds: float

    @property
    def text(self) -> str:
        """The same as text."""
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        return f"was ended by {signal.Signals(-self.code).name}"


def run_fresh(launch: Launch) -> Ended:
    """Run a process to its end. Any interruption ends the process and its children.

    Raises:
        UsageError: It cannot be started.
        OutputError: Its log cannot be written.
    """
    try:
        # Create a new file: an existing one may be a link to elsewhere.
        launch.log.unlink(missing_ok=True)
        log = launch.log.open("xb")
    except OSError as error:
        raise OutputError(f"cannot write {str(launch.log)!a}: {error.strerror}") from error
    with log:
        begun = time.monotonic()
        running = None
        try:
            running = _start(launch, log)
            code = running.wait()
        finally:
            if running is not None:
                _end(running)
    return Ended(code, time.monotonic() - begun)


def output_end(log: Path) -> str:
    """Return the last lines of a process's output, "" for none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _SHOWN_BYTES, 0))
            text = stream.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-_SHOWN_LINES:])


def _start(launch: Launch, log: BinaryIO) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            launch.line,
            cwd=launch.folder or None,
            env=dict(launch.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=launch.inherited,
        )
    except OSError as error:
        raise UsageError(f"cannot start {launch.line[0]!a}: {error.strerror}") from error


def _end(running: subprocess.Popen[bytes]) -> None:
    """Terminate the rest of the group, then kill it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGTERM)
    try:
        running.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


# Makes packages installed beside this one visible in an environment, after its own packages.
_LINK = "proton_bench_parent.pth"
# Editable installs beside this one may put a finder in front of all paths, and so in front of the
# environment's own packages. Finders that the others bring come last.
_FINDERS = "proton_bench_own_finders"
_NOTE_FINDERS = f"import sys; sys.{_FINDERS} = list(sys.meta_path)"
_SORT_FINDERS = (
    f"import sys; sys.meta_path.sort(key=sys.__dict__.pop({_FINDERS!r}).__contains__, reverse=True)"
)


@dataclass(frozen=True, slots=True)
class OwnEnvironment:
    """The environment of a side.

    Attributes:
        interpreter: Its Python.
        packages: Folders of its own packages.
        variables: Variables of an activated shell.
    """

    interpreter: str
    packages: str
    variables: dict[str, str]


@contextlib.contextmanager
def own_environment(folder: Path, tree: Path, setup: str) -> Iterator[OwnEnvironment]:
    """Create an environment and run a shell command in it; it is removed after the block.

    Packages of this process's environment are visible in it, unless it has its own.

    Args:
        folder: Where to create it.
        tree: Current folder of the command: the side's version of the repository.
        setup: What to run, such as ``pip install .``.

    Raises:
        UsageError: Something else is in its place.
        TargetFailedError: The command failed; the message has the end of its output.
        OutputError: It cannot be created.
    """
    if os.path.lexists(folder) and (folder.is_symlink() or not (folder / "pyvenv.cfg").is_file()):
        raise UsageError(
            f"{shown(folder)} is in the place of an environment, and would be lost: move it away"
        )
    try:
        made = _make(folder)
        log = folder.with_suffix(".log")
        environment = {**os.environ, **made.variables}
        ended = run_fresh(Launch(["/bin/sh", "-c", setup], str(tree), log, environment))
        if ended.code != 0:
            error = TargetFailedError(
                f"--setup {setup!r} in {shown(tree)} {ended.text}; the end of its output "
                f"({shown(log)}):"
            )
            error.add_note(output_end(log))
            raise error
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path) -> OwnEnvironment:
    schemes = {"base": str(folder), "platbase": str(folder)}
    packages = sysconfig.get_path("purelib", "venv", vars=schemes)
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(folder)
        write_file(Path(packages) / _LINK, "\n".join(_links()) + "\n")
    except OSError as error:
        raise OutputError(f"cannot make {str(folder)!a}: {error.strerror or error}") from error
    programs = folder / "bin"
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    variables = {"VIRTUAL_ENV": str(folder), "PATH": path}
    return OwnEnvironment(str(programs / "python"), packages, variables)


def _links() -> list[str]:
    """Return lines of a ``.pth`` file: sites with their own such files, then other folders."""
    sites = [path for path in site.getsitepackages() if os.path.isdir(path)]
    others = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    links = [f"import site; site.addsitedir({path!r})" for path in sites]
    links = [_NOTE_FINDERS, *links, _SORT_FINDERS]
    return [*links, *(path for path in dict.fromkeys(others) if path not in sites)]
