"""Checks, by the files that its runs loaded, whether an experiment is valid."""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.gate.experiment.folders.kept_runs import KeptRun, KeptRuns
from proton_bench.gate.experiment.loaded import (
    Loaded,
    LoadedModule,
    changed_meanwhile,
    loaded_alike,
    loads_any,
)
from proton_bench.gate.experiment.processes.worktree import changed_files
from proton_bench.gate.experiment.request import Request
from proton_bench.gate.experiment.sides import TREE
from proton_bench.gate.experiment.slot import BASE, NEW, Stage
from proton_bench.gate.verdict.result import Note, Reason

__all__ = ["Validity", "check_validity"]

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


def check_validity(kept: KeptRuns, request: Request) -> Validity:
    """Check the files that the runs loaded so far.

    Raises:
        UsageError: git fails.
        ProfileFormatError: The list of a run is damaged.
    """
    modules = {arm: _modules(kept, arm) for arm in (BASE, NEW)}
    fatal = [_edited(arm, files) for arm in modules if (files := changed_meanwhile(modules[arm]))]
    notes = []
    if request.revision is not None:
        changed = changed_files(request.revision)
        if not all(modules.values()):
            notes.append(_unknown())
        else:
            base, new = modules[BASE][0], modules[NEW][0]
            root = request.revision.root
            alike = loaded_alike(base, new, changed, root=root)
            fatal += [_alike(alike, request)] if alike else []
            places = (root, str(kept.folder / TREE))
            modules_alone = [each for each in [*base, *new] if not each.is_script]
            if not loads_any(modules_alone, changed, places=places):
                is_script = loads_any([*base, *new], changed, places=places)
                notes.append(_unmeasured_script(request) if is_script else _idle(request))
    return Validity(tuple(fatal), tuple(notes))


def _modules(kept: KeptRuns, arm: str) -> list[Loaded]:
    runs: list[KeptRun] = [run for stage in Stage for run in kept.of(stage, arm)]
    listed = [kept.modules(run) for run in runs]
    return [[LoadedModule(**each) for each in found] for found in listed if found is not None]


def _alike(files: list[str], request: Request) -> Note:
    ref = request.revision.ref if request.revision else ""
    return Note(
        Reason.NOT_COMPARABLE,
        f"{_listed(files)} changed since {ref}, but both sides loaded the same version, so their "
        "times say nothing about the change. An installed package comes before the worktree in the "
        "search path: give each side its own environment with --setup 'pip install .'. Or the "
        "program puts a folder in front of sys.path: name the folder in PYTHONPATH instead",
    )


def _idle(request: Request) -> Note:
    ref = request.revision.ref if request.revision else ""
    return Note(
        Reason.NOTICE,
        f"no side loaded a file that changed since {ref} as a module; if the changed code has to "
        "be built, give each side its own environment with --setup",
    )


def _unmeasured_script(request: Request) -> Note:
    ref = request.revision.ref if request.revision else ""
    return Note(
        Reason.NOTICE,
        f"of the files that changed since {ref} only the script was loaded, and both sides ran "
        "the current one: it measures the modules that it imports. To compare two scripts, name "
        "the old one with --base, such as --base old.py",
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
