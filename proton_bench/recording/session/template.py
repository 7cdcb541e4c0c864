"""Expands ``{rank}``-like fields in output names, so that processes never overwrite one another."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping

from proton_bench.errors import UsageError
from proton_bench.recording.job_ranks import first_set, is_one_of_several, launcher_of

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
