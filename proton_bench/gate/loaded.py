"""Checks, by the files that its runs loaded, whether an experiment is valid."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from proton_bench.gate.processes import Revision, changed_files
from proton_bench.gate.runs import TREE, KeptRun, KeptRuns
from proton_bench.gate.slot import BASE, NEW, Stage
from proton_bench.gate.verdict.result import Note, Reason

# The measuring program: both sides run the current one on purpose.
_TESTS = re.compile(r"(test_.*|.*_test|conftest)\.py")


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """One module that a run loaded.

    Attributes:
        name: As in ``sys.modules``.
        file: Its file, with links resolved.
        sha256: Of its content; "" for one of an installed package.
    """

    name: str
    file: str
    sha256: str

    @property
    def is_script(self) -> bool:
        """Whether it is the script itself, which multiprocessing gives a second name."""
        return self.name in {"__main__", "__mp_main__"}

    @property
    def is_yardstick(self) -> bool:
        """Whether it is the measuring program itself: the script, or a test file."""
        return self.is_script or bool(_TESTS.fullmatch(os.path.basename(self.file)))

    @property
    def place(self) -> str:
        """Its path in its package: ``pkg/core.py``, "" if its name does not say."""
        depth = self.name.count(".") + (os.path.basename(self.file).startswith("__init__."))
        parts = self.file.split(os.sep)[-depth - 1 :]
        return "/".join(parts) if depth else ""


Loaded = Sequence[LoadedModule]


def loaded_alike(base: Loaded, new: Loaded, changed: Iterable[str], *, root: str) -> list[str]:
    """Return the changed files of which both sides loaded the same version.

    Args:
        base: Modules of a run of the base.
        new: Modules of a run of the new side.
        changed: Files that differ between the two versions, from the top folder.
        root: Top folder of the working tree.
    """
    touched = frozenset(changed)
    others = {module.name: module for module in base}
    found = set()
    for module in new:
        other = others.get(module.name)
        source = _source(module, touched, root)
        if other is None or not source or module.is_yardstick:
            continue
        if _hash(other) == _hash(module):
            found.add(source)
    return sorted(found)


def loads_any(modules: Loaded, changed: Iterable[str], *, places: Sequence[str]) -> bool:
    """Return whether any changed file was loaded as a module, the script and tests included.

    Args:
        modules: Modules of a run.
        changed: Files that differ, from the top folder.
        places: Corresponding top folders.
    """
    touched = frozenset(changed)
    return any(_source(module, touched, place) for module in modules for place in places)


def changed_meanwhile(runs: Sequence[Loaded]) -> list[str]:
    """Return the files of one side that differ between its runs."""
    seen: dict[str, str] = {}
    found = set()
    for run in runs:
        for module in run:
            if module.sha256 and seen.setdefault(module.file, module.sha256) != module.sha256:
                found.add(module.file)
    return sorted(found)


def _source(module: LoadedModule, touched: frozenset[str], root: str) -> str:
    """Return the changed file of a module, wherever it was loaded from; "" for none."""
    relative = os.path.relpath(module.file, root)
    if relative in touched:
        return relative
    place = module.place
    if not place:
        return ""
    return next((each for each in sorted(touched) if _ends_with(each, place)), "")


def _ends_with(path: str, place: str) -> bool:
    parts, last = PurePosixPath(path).parts, PurePosixPath(place).parts
    return parts[-len(last) :] == last


def _hash(module: LoadedModule) -> str:
    if module.sha256:
        return module.sha256
    try:
        with open(module.file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return module.file


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Validity:
    """The result of the check.

    Attributes:
        fatal: Why the sides cannot be compared.
        notes: Further notes.
    """

    fatal: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()


def check_validity(kept: KeptRuns, revision: Revision | None) -> Validity:
    """Check the files that the runs loaded so far.

    Raises:
        UsageError: git fails.
        ProfileFormatError: The list of a run is damaged.
    """
    modules = {arm: _modules(kept, arm) for arm in (BASE, NEW)}
    fatal = [_edited(arm, files) for arm in modules if (files := changed_meanwhile(modules[arm]))]
    if revision is None:
        return Validity(tuple(fatal))
    if not all(modules.values()):
        return Validity(tuple(fatal), (_unknown(),))
    notes = []
    changed, root = changed_files(revision), revision.root
    base, new = modules[BASE][0], modules[NEW][0]
    if alike := loaded_alike(base, new, changed, root=root):
        fatal.append(_alike(alike, revision.ref))
    places = (root, str(kept.folder / TREE))
    modules_alone = [each for each in [*base, *new] if not each.is_script]
    if not loads_any(modules_alone, changed, places=places):
        loaded = [loads_any([*base, *new], [each], places=places) for each in changed]
        if not any(loaded):
            notes.append(_idle(revision.ref))
        elif all(loaded):
            fatal.append(_only_script(revision.ref, Reason.NOT_COMPARABLE))
        else:  # the others may be what it reads
            notes.append(_only_script(revision.ref, Reason.NOTICE))
    return Validity(tuple(fatal), tuple(notes))


def _modules(kept: KeptRuns, arm: str) -> list[Loaded]:
    runs: list[KeptRun] = [run for stage in Stage for run in kept.of(stage, arm)]
    listed = [kept.modules(run) for run in runs]
    return [[LoadedModule(**each) for each in found] for found in listed if found is not None]


def _alike(files: list[str], ref: str) -> Note:
    return Note(
        Reason.NOT_COMPARABLE,
        f"{_listed(files)} changed since {ref}, but both sides loaded the same version, so their "
        "times say nothing about the change. An installed package comes before the worktree in the "
        "search path: give each side its own environment with --setup 'pip install .'. Or the "
        "program puts a folder in front of sys.path: name the folder in PYTHONPATH instead",
    )


def _only_script(ref: str, reason: Reason) -> Note:
    return Note(
        reason,
        f"of the files that changed since {ref} only the script was loaded, and both sides ran the "
        "current one: it measures the modules that it imports. To compare two scripts, name the "
        "old one with --base, such as --base old.py",
    )


def _idle(ref: str) -> Note:
    return Note(
        Reason.NOTICE,
        f"no side loaded a file that changed since {ref} as a module; if the changed code has to "
        "be built, give each side its own environment with --setup",
    )


def _edited(arm: str, files: list[str]) -> Note:
    return Note(
        Reason.NOT_COMPARABLE,
        f"{_listed(files)} changed between the runs of the {arm} side: do not edit files while "
        "both sides are measured, and start again",
    )


def _unknown() -> Note:
    return Note(
        Reason.NOTICE,
        "it is unknown which files the sides loaded and whether they ran different code, because "
        "the target is not a Python program or ended abruptly",
    )


def _listed(files: list[str]) -> str:
    rest = len(files) - _SHOWN
    return ", ".join(files[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
