"""The environment that makes Python children of a recorded program record themselves."""

from __future__ import annotations

import json
import os
import re
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass, field

from proton_bench.recording.job_ranks import rank_variable
from proton_bench.recording.session.output_format import suffix_of
from proton_bench.recording.session.output_name import expand_name

AUTOSTART = "PROTON_BENCH_AUTOSTART"
_RANK_TAKEN = "PROTON_BENCH_RANK_TAKEN"
_PATH = "PYTHONPATH"
_FOLDER = os.path.join(os.path.dirname(__file__), "child_path")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOptions:
    """How a child records itself.

    Attributes:
        name: Output name of the parent without a suffix, its ``{rank}``-like fields not filled.
        folder: Folder for a relative name.
        formats: Formats of the files to write.
        started_ns: Start of the run, real-time clock, nanoseconds; newer files belong to it.
        context: As in ``start``; so are the four that follow.
        data: Kind of data.
        backend: Names joined by ``+``; None asks the plugins.
        mode: Mode text.
        hook: Name of a launch hook.
        revision: Commit of the program for the provenance; "" asks git.
        compat: ``triton.profiler`` resolves to this package there too.
        windows: When to record, as `WindowPlan.read` takes it; {} for the whole run.
    """

    name: str
    folder: str
    formats: tuple[str, ...]
    started_ns: int = 0
    context: str = "shadow"
    data: str = "tree"
    backend: str | None = None
    mode: str | None = None
    hook: str | None = None
    revision: str = ""
    compat: bool = False
    windows: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Encode as one ASCII line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildOptions:
        """Decode the text of ``to_json``.

        Raises:
            ValueError: The text is not from this release.
        """
        try:
            fields = json.loads(text)
            return cls(**{**fields, "formats": tuple(fields["formats"])})
        except (TypeError, KeyError) as error:
            raise ValueError(f"unknown options: {error}") from None


def follow_children(options: ChildOptions, environ: MutableMapping[str, str]) -> None:
    """Make Python processes with this environment record themselves.

    Args:
        options: How they record.
        environ: Environment to change, normally ``os.environ``.
    """
    environ[AUTOSTART] = options.to_json()
    folders = [_FOLDER, *_other_folders(environ)]
    environ[_PATH] = os.pathsep.join(folders)
    variable = rank_variable(environ)
    if variable in environ:
        # The rank is this process's; its children share it and have their process ids in names.
        environ[_RANK_TAKEN] = f"{variable}={environ[variable]}"


def forget_children(environ: MutableMapping[str, str]) -> None:
    """Undo ``follow_children``, also that of a run around this one."""
    for name in (AUTOSTART, _RANK_TAKEN):
        environ.pop(name, None)
    folders = _other_folders(environ)
    if folders:
        environ[_PATH] = os.pathsep.join(folders)
    else:
        environ.pop(_PATH, None)


def _other_folders(environ: MutableMapping[str, str]) -> list[str]:
    text = environ.get(_PATH, "")
    return [folder for folder in text.split(os.pathsep) if folder != _FOLDER] if text else []


def child_name(options: ChildOptions, *, is_rank: bool) -> str:
    """Return the absolute output path of this child, without a suffix.

    Names of ranks have their rank, all others the process id.

    Args:
        options: From the environment.
        is_rank: This process is the first of its rank.
    """
    name = os.path.abspath(os.path.join(options.folder, expand_name(options.name)))
    if "{pid}" in options.name or (is_rank and not _is_taken(name, options)):
        return name
    return f"{name}.pid{os.getpid()}"


def _is_taken(name: str, options: ChildOptions) -> bool:
    """Whether another process of this run, such as a first attempt, wrote these files."""
    window = ".w1" if "each" in options.windows else ""
    files = [f"{name}{window}.{suffix_of(each)}" for each in options.formats]
    return any(_is_newer(file, options.started_ns) for file in files)


def files_of_children(
    name: str,
    formats: tuple[str, ...],
    started_ns: int,
    *,
    killed: bool = False,
    has_own: bool = True,
) -> list[str]:
    """Return the files that children of this run have written so far, sorted.

    Args:
        name: Absolute output path of the parent, without a suffix.
        formats: Formats that they write.
        started_ns: Start of the run, real-time clock, nanoseconds.
        killed: Partial files, which killed children leave, instead of whole ones.
        has_own: The file of that name is the parent's; else it may be that of the only rank.
    """
    folder, base = os.path.split(name)
    suffixes = "|".join(re.escape(suffix_of(each)) for each in formats)
    suffixes = r"partial\.proton" if killed else suffixes
    of_child = r"(\.rank\d+(\.pid\d+)?|\.pid\d+)" + ("" if has_own else "?")
    child = re.compile(re.escape(base) + of_child + rf"(\.w\d+)?(\.part_\d+)?\.({suffixes})")
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, entry) for entry in entries if child.fullmatch(entry)]
    return [path for path in paths if _is_newer(path, started_ns)]


def _is_newer(path: str, started_ns: int) -> bool:
    try:
        # The clock of a file system may be a tick behind.
        return os.stat(path).st_mtime_ns >= started_ns - 20_000_000
    except OSError:
        return False
