"""A virtual environment for one side, set up by a command of the user."""

from __future__ import annotations

import contextlib
import os
import shutil
import site
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import OutputError, TargetFailedError, UsageError
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.experiment.processes.fresh_process import Launch, output_end, run_fresh
from proton_bench.support.files import write_file

__all__ = ["OwnEnvironment", "own_environment"]

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
