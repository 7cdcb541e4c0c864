"""Runs slots one after the other, each in a fresh process, and keeps their profiles."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from proton_bench.analysis.run import Run
from proton_bench.errors import (
    InterruptedExperimentError,
    OutputError,
    ProfileFormatError,
    TargetFailedError,
    UsageError,
)
from proton_bench.formats.registry import read_profile
from proton_bench.gate.baselines import check_plain
from proton_bench.gate.machine import disturbances_now
from proton_bench.gate.processes import (
    FORMATS,
    Command,
    Launch,
    OwnEnvironment,
    output_end,
    run_fresh,
)
from proton_bench.gate.progress import Progress
from proton_bench.gate.project import shown
from proton_bench.gate.slot import Slot, Stage, missing
from proton_bench.model.profile import Profile
from proton_bench.model.steps import SAMPLED
from proton_bench.recording.children.children import files_of_children
from proton_bench.support.files import refused, remove_files, write_file
from proton_bench.support.inputs import read_file, unreadable
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

# The checkout of a base in the folder of its experiment.
TREE = "base-tree"

_IGNORE = ".gitignore"


def new_folder(kind: str, store: Path) -> Path:
    """Create a folder for one experiment; names sort by time, and git ignores them.

    Args:
        kind: Name of the folder above it, such as ``ab``.
        store: The project's ``.proton``.

    Raises:
        UsageError: A part of the store is a link.
        OutputError: It cannot be made.
    """
    now = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    name = f"{now}-{secrets.token_hex(3)}"
    place = store / kind
    ignored = place / _IGNORE
    check_plain(store, place, ignored)
    with refused(f"make a folder in {str(place)!a}"):
        place.mkdir(parents=True, exist_ok=True)
        if not ignored.exists():
            write_file(ignored, "*\n")
        (place / name).mkdir()
    return (place / name).resolve()


def drop_unused(folder: Path) -> None:
    """Remove a folder of an experiment that ended before a run, and what was made for it above."""
    if any(folder.rglob("*.proton")):
        return
    with contextlib.suppress(OSError):  # it says no more than the error that ended it
        shutil.rmtree(folder)
        if os.listdir(folder.parent) == [_IGNORE]:
            shutil.rmtree(folder.parent)
            folder.parent.parent.rmdir()


def kept_folder(kind: str, store: Path) -> Path:
    """Return the folder of the latest experiment of a kind.

    Raises:
        UsageError: There is none.
    """
    try:
        names = sorted(each.name for each in (store / kind).iterdir() if each.is_dir())
    except OSError:
        names = []
    if not names:
        raise UsageError(f"there is no experiment in {shown(store / kind)}")
    return (store / kind / names[-1]).resolve()


def write_json(path: Path, document: Any) -> None:
    """Replace a file.

    Raises:
        OutputError: It cannot be written; the old content remains.
    """
    write_file(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def read_json(path: Path) -> Any:
    """Return the content of a file.

    Raises:
        UsageError: It is missing, or it cannot be read.
        ProfileFormatError: It is not JSON.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProfileFormatError(f"{str(path)!a} is not JSON: {error}") from error


def make_folder(path: Path) -> Path:
    """Create a folder and its parents.

    Raises:
        OutputError: It cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {str(path)!a}: {error.strerror}") from error
    return path


SCHEMA = "proton_bench.experiment"
VERSION = (1, 0)
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One successful run.

    Attributes:
        slot: Its slot.
        files: Names of its profiles in the folder; several if children recorded themselves.
        seconds: Duration of its process.
    """

    slot: Slot
    files: tuple[str, ...]
    seconds: float


class KeptRuns:
    """The runs of one experiment. Use `create` or `open`.

    Attributes:
        folder: Their folder.
        description: The experiment as JSON values.
    """

    def __init__(
        self, folder: Path, description: Mapping[str, Any], runs: Mapping[Slot, KeptRun]
    ) -> None:
        self.folder = folder
        self.description = description
        self._runs = dict(runs)

    @classmethod
    def create(cls, folder: Path, description: Mapping[str, Any]) -> KeptRuns:
        """Begin an experiment in a folder.

        Raises:
            UsageError: There is one already.
            OutputError: The folder or the manifest cannot be written.
        """
        make_folder(folder)
        if (folder / MANIFEST).exists():
            raise UsageError(f"{str(folder)!a} already has an experiment: name another folder")
        kept = cls(folder, description, {})
        kept._write()
        return kept

    @classmethod
    def open(cls, folder: Path) -> KeptRuns:
        """Open an existing experiment; runs with missing files are left out.

        Raises:
            UsageError: The experiment does not exist.
            ProfileFormatError: Its manifest is damaged, or of an unknown version.
        """
        path = folder / MANIFEST
        if not path.exists():
            raise UsageError(f"{str(folder)!a} has no experiment: there is no {MANIFEST} in it")
        document = read_json(path)
        try:
            if document["schema"] != SCHEMA or document["version"][0] != VERSION[0]:
                raise ProfileFormatError(
                    f"{str(path)!a} is not an experiment of version {VERSION[0]}"
                )
            runs = [_read_run(each) for each in document["runs"]]
            description = dict(document["experiment"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, ProfileFormatError):
                raise
            raise ProfileFormatError(
                f"{str(path)!a} is damaged: {type(error).__name__} {error}"
            ) from error
        there = [each for each in runs if all((folder / name).is_file() for name in each.files)]
        return cls(folder, description, {each.slot: each for each in there})

    def __contains__(self, slot: object) -> bool:
        return slot in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: KeptRun) -> None:
        """Add a run.

        Raises:
            OutputError: The manifest cannot be written; the run does not count then.
        """
        self._runs[run.slot] = run
        try:
            self._write()
        except OutputError:
            del self._runs[run.slot]
            raise

    def of(self, stage: Stage, arm: str = "") -> tuple[KeptRun, ...]:
        """Return the runs of a stage in the order of their pairs, of one side or both."""
        found = [each for slot, each in self._runs.items() if slot.stage is stage]
        chosen = [each for each in found if arm in ("", each.slot.arm)]
        return tuple(sorted(chosen, key=lambda each: each.slot.pair))

    def read(self, run: KeptRun) -> Run:
        """Return the profile of a run, merged over its processes.

        Raises:
            UsageError: A file is missing.
            ProfileFormatError: A file is damaged.
        """
        paths = [self.folder / name for name in run.files]
        profiles = [read_profile(path) for path in paths]
        whole = profiles[0] if len(profiles) == 1 else Profile.merge(profiles)
        return Run(whole, visible(Path(shown(paths[0]))))

    def modules(self, run: KeptRun) -> list[dict[str, str]] | None:
        """Return name, file and hash of the modules that a run loaded, None if unknown."""
        path = self.folder / f"{run.slot.name}.modules.json"
        return read_json(path) if path.exists() else None

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Prevent other processes from continuing the same experiment.

        Raises:
            UsageError: One does already.
        """
        with refused(f"lock {str(self.folder)!a}"):
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UsageError(f"{str(self.folder)!a} is in use by another process") from error
            yield
        finally:
            os.close(descriptor)

    def _write(self) -> None:
        document = {
            "schema": SCHEMA,
            "version": list(VERSION),
            "experiment": self.description,
            "runs": [asdict(each) for each in self._runs.values()],
        }
        write_json(self.folder / MANIFEST, document)


def _read_run(document: Mapping[str, Any]) -> KeptRun:
    slot = document["slot"]
    files = tuple(str(name) for name in document["files"])
    if not files or any("/" in name for name in files):
        raise ValueError(f"{files} are not files of a run")
    return KeptRun(
        Slot(Stage(slot["stage"]), int(slot["pair"]), str(slot["arm"]), bool(slot["base_first"])),
        files,
        float(document["seconds"]),
    )


@dataclass(frozen=True, slots=True)
class Arm:
    """One side.

    Attributes:
        name: ``base`` or ``new``.
        command: What to run.
        label: Its description: a revision, a command, the working tree.
        first_folders: Folders that come first in the module search path.
        interpreter: Python of its own environment; "" for this one.
        environment: Variables that differ from those of this process.
        revision: Commit of its checkout; "" for the code in the current folder.
    """

    name: str
    command: Command
    label: str = ""
    first_folders: tuple[str, ...] = ()
    interpreter: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""

    def inside(self, own: OwnEnvironment) -> Arm:
        """Return this side in an environment; packages built there come before its sources."""
        return replace(
            self,
            first_folders=(own.packages, *self.first_folders),
            interpreter=own.interpreter,
            environment=own.variables,
        )


@contextlib.contextmanager
def machine_turn(on_wait: Callable[[], None]) -> Iterator[int]:
    """Wait for this process's turn and keep it for the block.

    Yields a file descriptor for the measured process to inherit, so that if this process is killed,
    the turn lasts until the measured process ends.

    Args:
        on_wait: Called once if another process has its turn.

    Raises:
        OutputError: The lock cannot be written.
    """
    folder = platformdirs.user_cache_dir("proton_bench")
    try:
        os.makedirs(folder, exist_ok=True)
        # The folder may be shared by machines.
        name = os.path.join(folder, f"turn-{os.uname().nodename}.lock")
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise OutputError(f"cannot write {folder!a}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield descriptor
        finally:
            # Also for the process that inherited it: its remaining children have no turn.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


# Triton caches the choices of its autotuners, so that later processes launch the same.
_REPLAYED = {"TRITON_CACHE_AUTOTUNING": "1"}


class Disturbances:
    """What disturbs the machine before the first run; later the runs themselves are part of it."""

    def __init__(self) -> None:
        self._are_said = False

    def say_once(self, progress: Progress) -> None:
        """Show them in one line, unless there are none or they were shown before."""
        found = () if self._are_said else disturbances_now()
        self._are_said = True
        if found:
            progress.say("; ".join(found))


class Series:
    """The finished and future runs of an experiment.

    Args:
        kept: The finished runs.
        arms: Sides by name.
        progress: Gets the progress, and before the first run what disturbs it.
        homes: What paths of checkouts and environments are called, so that both sides match.
        disturbances: Of the machine; a command with several series gives all of them the same.
    """

    def __init__(
        self,
        kept: KeptRuns,
        arms: Mapping[str, Arm],
        progress: Progress,
        *,
        homes: Mapping[str, str] | None = None,
        disturbances: Disturbances | None = None,
    ) -> None:
        self.kept = kept
        self.arms = arms
        self.progress = progress
        self._homes = homes or {}
        self._disturbances = disturbances or Disturbances()

    def plan(self, slots: Sequence[Slot]) -> None:
        """Tell the progress which runs the experiment has at most."""
        self.progress.limit(len(missing(slots, self.kept)))

    def run(self, slots: Sequence[Slot]) -> None:
        """Run the missing slots in this order, and incomplete pairs again.

        Raises:
            TargetFailedError: A run failed or recorded nothing.
            InterruptedExperimentError: A signal arrived; finished runs are kept.
            OutputError: Something cannot be written.
        """
        to_come = missing(slots, self.kept)
        if to_come:
            self._disturbances.say_once(self.progress)
        self.progress.expect(len(to_come))
        with self._telling_what_is_kept():
            for slot in to_come:
                self.progress.begin(slot)
                run = self._fresh(slot)
                self.kept.add(run)
                self.progress.end(slot, run.seconds)

    def read(self, slots: Sequence[Slot]) -> dict[Slot, Run]:
        """Return the profiles of these slots."""
        by_slot = {run.slot: run for slot in slots for run in self.kept.of(slot.stage)}
        runs = {slot: self.kept.read(by_slot[slot]) for slot in slots}
        for away, home in self._homes.items():
            runs = {slot: at_home(run, Path(away), home) for slot, run in runs.items()}
        return runs

    def _fresh(self, slot: Slot) -> KeptRun:
        arm = self.arms[slot.arm]
        name = str(self.kept.folder / slot.name)
        log = self.kept.folder / f"{slot.name}.log"
        with machine_turn(self._tell_wait) as turn:
            self._remove_remains(slot.name)
            begun_ns = time.time_ns()
            launch = Launch(
                line=arm.command.line(
                    name,
                    first_folders=arm.first_folders,
                    revision=arm.revision,
                    interpreter=arm.interpreter,
                ),
                folder=arm.command.options.folder,
                log=log,
                environment={**_REPLAYED, **os.environ, **arm.environment},
                inherited=(turn,),
            )
            ended = run_fresh(launch)
        if ended.code != 0:
            raise self._failed(slot, ended.text)
        own = f"{name}.{FORMATS[0]}"
        files = [own] if os.path.exists(own) else files_of_children(name, FORMATS, begun_ns)
        if not files:
            raise self._failed(slot, "wrote no profile")
        run = KeptRun(slot, tuple(os.path.basename(file) for file in files), ended.seconds)
        profile = self.kept.read(run).profile
        recorded = [each for name, each in profile.columns.items() if name not in SAMPLED]
        if not any(column.valid.any() for column in recorded):
            raise self._failed(slot, "recorded nothing: no launch and no scope")
        return run

    def _failed(self, slot: Slot, what: str) -> TargetFailedError:
        arm = self.arms[slot.arm]
        log = self.kept.folder / f"{slot.name}.log"
        which = f"run {slot.text}" + (f" ({arm.label})" if arm.label else "")
        end = output_end(log)
        said = f"; the end of its output ({shown(log)}):" if end else "; it printed nothing"
        error = TargetFailedError(f"{which} of {arm.command.text} {what}{said}")
        if end:
            error.add_note(end)
        return error

    def _remove_remains(self, name: str) -> None:
        """Remove files of an unfinished attempt."""
        place = self.kept.folder
        with refused(f"clear {str(place)!a}"):
            remove_files(place, [each for each in os.listdir(place) if each.startswith(f"{name}.")])

    def _tell_wait(self) -> None:
        self.progress.say("waiting for the measurement of another process to end")

    @contextlib.contextmanager
    def _telling_what_is_kept(self) -> Iterator[None]:
        try:
            yield
        except InterruptedExperimentError as error:
            raise InterruptedExperimentError(
                error.signal,
                f"interrupted with {count_text(len(self.kept), 'run')} kept in "
                f"{shown(self.kept.folder)}",
            ) from None


def at_home(run: Run, tree: Path, root: str) -> Run:
    """Rename files of the base's tree to those of the working tree, so that their rows match.

    Args:
        run: A run of either side.
        tree: Folder of the base's version.
        root: Top folder of the working tree.
    """
    profile, away = run.profile, str(tree)
    if not any(away in text for text in profile.strings):
        return run
    strings = tuple(text.replace(away, root) for text in profile.strings)
    return Run(replace(profile, strings=strings), run.source)
