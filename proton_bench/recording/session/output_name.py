"""How the command line and the pytest plugin read an output name: a path and the formats."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench.recording.job_ranks import first_set, is_one_of_several, launcher_of
from proton_bench.recording.session.output_format import (
    TRACE_FORMATS,
    TREE_FORMATS,
    chosen_trace_formats,
    suffix_of,
)
from proton_bench.recording.stderr import warn

FIELDS = ("rank", "local_rank", "host", "pid", "date", "%ENV")

_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def expand_name(name: str, environ: Mapping[str, str] | None = None) -> str:
    """Fill the fields of an output name and keep the ranks of one job apart.

    Known fields are ``{rank}``, ``{local_rank}``, ``{host}``, ``{pid}``, ``{date}`` (local time,
    ``20261231-235959``) and ``{%VARIABLE}``; ``{{`` and ``}}`` stand for braces. In a job of more
    than one process a name without ``{rank}`` gets ``.rank<N>`` at its end; a launcher that gives
    a rank and no number of ranks counts as such a job.

    Args:
        name: Output name without a suffix; "" and "-" (stdout) stay as they are.
        environ: Environment to read; the one of this process by default.

    Raises:
        UsageError: A field is unknown, or names a variable that is not set.
    """
    if name in ("", "-"):
        return name
    environ = os.environ if environ is None else environ
    launcher = launcher_of(environ)
    fields: dict[str, Callable[[], str]] = {
        "rank": lambda: environ.get(launcher.rank, "0"),
        "local_rank": lambda: first_set(launcher.local_rank, environ) or "0",
        "host": lambda: os.uname().nodename,
        "pid": lambda: str(os.getpid()),
        "date": lambda: time.strftime("%Y%m%d-%H%M%S"),
    }
    used: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        field = match[1]
        if field is None:
            return match[0][0]
        used.add(field)
        if field.startswith("%"):
            return _variable(field[1:], name, environ).replace("/", "_")
        if field not in fields:
            raise UsageError(_unknown_field(field, name))
        return fields[field]().replace("/", "_")  # no value may name another folder

    expanded = _FIELD.sub(fill, name)
    parts = zip(name.split("/"), expanded.split("/"), strict=True)
    expanded = "/".join(_kept_inside(part, given) for given, part in parts)
    if is_one_of_several(launcher, environ) and not used & {"rank", f"%{launcher.rank}"}:
        expanded += f".rank{fields['rank']()}".replace("/", "_")
    return expanded


def _variable(variable: str, name: str, environ: Mapping[str, str]) -> str:
    if "/" in variable or not environ.get(variable):
        raise UsageError(f"name {name!r}: environment variable {variable!r} is not set; set it")
    return environ[variable]


def _kept_inside(part: str, given: str) -> str:
    """Return a part of a path that names another folder only if that is how it was written."""
    return part if part == given else "_" if part in {".", ".."} else part


def _unknown_field(field: str, name: str) -> str:
    known = ", ".join(f"{{{known}}}" for known in FIELDS)
    return f"name {name!r} has an unknown field {{{field}}}; known: {known} (braces: {{{{ }}}})"


OUTPUT_SUFFIXES = (".proton", ".hatchet", ".hatchet_msgpack", ".chrome_trace", ".pftrace")
# What upstream writes of each kind of data; text, so that stdout gets it.
_UPSTREAM = {"tree": "hatchet", "trace": "chrome_trace"}
_FLUSHING = "periodic_flushing"


@dataclass(frozen=True, slots=True)
class OutputName:
    """Where a profile goes.

    Attributes:
        name: Path without a suffix, absolute; "" and "-" mean stdout.
        formats: Formats to write.
        template: The name as it was written, without a suffix.
    """

    name: str
    formats: tuple[str, ...]
    template: str = ""


def read_name(
    text: str,
    *,
    tag: str = "",
    folder: str | None = None,
    data: str = "tree",
    mode: str | None = None,
) -> OutputName:
    """Turn an output name into a path and formats; a known suffix asks for just that format.

    Args:
        text: Name as the user wrote it, with ``{rank}``-like fields; "" and "-" mean stdout.
        tag: Added to the end of the name, e.g. ``.gw0`` of a test worker.
        folder: Where relative names start; the current folder by default.
        data: Kind of data that is recorded.
        mode: Mode text; with periodic flushing its format is that of all files.

    Raises:
        UsageError: The name is a folder or has an unknown field, or a format is unknown.
    """
    upstream = _UPSTREAM.get(data, _UPSTREAM["tree"])
    if text in ("", "-"):
        return OutputName(text, (upstream,))
    stem, suffix = split_suffix(text)
    if os.path.basename(stem) in ("", ".", ".."):
        raise UsageError(f"output {text!r} is a folder: add a file name")
    # Made absolute now, because the target may change the current folder.
    expanded = expand_name(stem) + tag
    if not os.path.isabs(expanded):
        expanded = os.path.join(folder or _current_folder(), expanded)
    name = os.path.abspath(expanded)
    flushed = _flushed_format(mode, upstream)
    beside = chosen_trace_formats("perfetto") if data == "trace" else (upstream,)
    formats = (flushed,) if flushed else ("proton", *beside)
    return OutputName(name, (format_of(suffix),) if suffix else formats, stem)


def _current_folder() -> str:
    """Return the current folder; where it was removed, a new one that stays."""
    try:
        return os.getcwd()
    except OSError:
        import tempfile

        folder = tempfile.mkdtemp(prefix="proton-")
        warn(f"the current folder was removed: the profile goes to {folder}")
        return folder


def format_of(suffix: str) -> str:
    """Return the format of a known suffix with its dot."""
    formats = {f".{suffix_of(name)}": name for name in (*TREE_FORMATS, *TRACE_FORMATS)}
    return formats[suffix]


def _flushed_format(mode: str | None, default: str) -> str:
    for part in (mode or "").split("+"):
        name, *options = part.split(":")
        if name == _FLUSHING:
            chosen = [each.removeprefix("format=") for each in options if "format=" in each]
            return chosen[0] if chosen else default
    return ""


def split_suffix(text: str) -> tuple[str, str]:
    """Split a name into its stem and its known suffix, "" where it has none."""
    for suffix in OUTPUT_SUFFIXES:
        if text.endswith(suffix) and os.path.basename(text) != suffix:
            return text.removesuffix(suffix), suffix
    return text, ""
