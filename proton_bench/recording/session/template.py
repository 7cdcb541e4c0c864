"""Expands ``{rank}``-like fields in output names, so that processes never overwrite one another."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proton_bench.errors import UsageError

__all__ = ["FIELDS", "expand_name", "rank_facts", "rank_variable", "rank_variables"]

FIELDS = ("rank", "local_rank", "host", "pid", "date", "%ENV")

_MOST_DIGITS = 9  # no job has more ranks
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class _Launcher:
    """Environment variables in which a launcher gives a process its place.

    Attributes:
        rank: Variable of the rank; there where the launcher started this process.
        local_rank: Variables of the rank on this host, the best first.
        world_size: Variables of the number of ranks, the best first.
    """

    rank: str
    local_rank: tuple[str, ...]
    world_size: tuple[str, ...]


# torchrun's come first: inside a Slurm or MPI job they are the finer ones. What several launchers
# set (PMI) comes behind more specific ones, and Slurm last: it starts other launchers.
_LAUNCHERS = (
    _Launcher("RANK", ("LOCAL_RANK",), ("WORLD_SIZE",)),
    _Launcher("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_SIZE",)),
    _Launcher("MV2_COMM_WORLD_RANK", ("MV2_COMM_WORLD_LOCAL_RANK",), ("MV2_COMM_WORLD_SIZE",)),
    _Launcher("PALS_RANKID", ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"), ("PALS_SIZE", "PMI_SIZE")),
    _Launcher("JSM_NAMESPACE_RANK", ("JSM_NAMESPACE_LOCAL_RANK",), ("JSM_NAMESPACE_SIZE",)),
    _Launcher("PMI_RANK", ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"), ("PMI_SIZE",)),
    _Launcher("PMIX_RANK", ("SLURM_LOCALID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
    _Launcher("SLURM_PROCID", ("SLURM_LOCALID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
)


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
    launcher = _launcher(environ)
    fields: dict[str, Callable[[], str]] = {
        "rank": lambda: environ.get(launcher.rank, "0"),
        "local_rank": lambda: _first(launcher.local_rank, environ) or "0",
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
    if _is_one_of_several(launcher, environ) and not used & {"rank", f"%{launcher.rank}"}:
        expanded += f".rank{fields['rank']()}".replace("/", "_")
    return expanded


def rank_facts(environ: Mapping[str, str]) -> dict[str, int]:
    """Return ``rank``, ``local_rank`` and ``world_size``, as far as a launcher gave them."""
    launcher = _launcher(environ)
    texts = {
        "rank": environ.get(launcher.rank, ""),
        "local_rank": _first(launcher.local_rank, environ),
        "world_size": _first(launcher.world_size, environ),
    }
    return {field: int(value) for field, value in texts.items() if _is_number(value)}


def rank_variable(environ: Mapping[str, str]) -> str:
    """Return the name of the variable in which the launcher gave this process its rank."""
    return _launcher(environ).rank


def rank_variables() -> tuple[str, ...]:
    """Return every variable in which a launcher gives a rank, the one that counts first."""
    return tuple(launcher.rank for launcher in _LAUNCHERS)


def _launcher(environ: Mapping[str, str]) -> _Launcher:
    return next((one for one in _LAUNCHERS if one.rank in environ), _LAUNCHERS[0])


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


def _is_one_of_several(launcher: _Launcher, environ: Mapping[str, str]) -> bool:
    size = _first(launcher.world_size, environ)
    if size:
        return _is_number(size) and int(size) > 1
    return _is_number(environ.get(launcher.rank, ""))


def _first(variables: tuple[str, ...], environ: Mapping[str, str]) -> str:
    return next((environ[each] for each in variables if environ.get(each)), "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
