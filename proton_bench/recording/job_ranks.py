"""The rank of this process in its job, from the environment variables of job launchers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MOST_DIGITS = 9  # no job has more ranks


@dataclass(frozen=True, slots=True)
class Launcher:
    """Environment variables in which a launcher gives a process its place.

    Attributes:
        rank: Variable of the rank; there where the launcher started this process.
        local_rank: Variables of the rank on this host, the best first.
        world_size: Variables of the number of ranks, the best first.
    """

    rank: str
    local_rank: tuple[str, ...]
    world_size: tuple[str, ...]


# torchrun's come first: inside a Slurm or MPI job they are the finer ones. Those that several
# launchers set (PMI) follow more specific ones, and Slurm's are last: it starts other launchers.
LAUNCHERS = (
    Launcher("RANK", ("LOCAL_RANK",), ("WORLD_SIZE",)),
    Launcher("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_SIZE",)),
    Launcher("MV2_COMM_WORLD_RANK", ("MV2_COMM_WORLD_LOCAL_RANK",), ("MV2_COMM_WORLD_SIZE",)),
    Launcher("PALS_RANKID", ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"), ("PALS_SIZE", "PMI_SIZE")),
    Launcher("JSM_NAMESPACE_RANK", ("JSM_NAMESPACE_LOCAL_RANK",), ("JSM_NAMESPACE_SIZE",)),
    Launcher("PMI_RANK", ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"), ("PMI_SIZE",)),
    Launcher("PMIX_RANK", ("SLURM_LOCALID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
    Launcher("SLURM_PROCID", ("SLURM_LOCALID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
)


def rank_facts(environ: Mapping[str, str]) -> dict[str, int]:
    """Return ``rank``, ``local_rank`` and ``world_size``, as far as a launcher gave them."""
    launcher = launcher_of(environ)
    texts = {
        "rank": environ.get(launcher.rank, ""),
        "local_rank": first_set(launcher.local_rank, environ),
        "world_size": first_set(launcher.world_size, environ),
    }
    return {field: int(value) for field, value in texts.items() if _is_number(value)}


def rank_variable(environ: Mapping[str, str]) -> str:
    """Return the name of the variable in which the launcher gave this process its rank."""
    return launcher_of(environ).rank


def launcher_of(environ: Mapping[str, str]) -> Launcher:
    """Return the launcher that started this process; torchrun's variables without one."""
    return next((one for one in LAUNCHERS if one.rank in environ), LAUNCHERS[0])


def is_one_of_several(launcher: Launcher, environ: Mapping[str, str]) -> bool:
    """Return whether the job has more than one process, as far as the launcher says."""
    size = first_set(launcher.world_size, environ)
    if size:
        return _is_number(size) and int(size) > 1
    return _is_number(environ.get(launcher.rank, ""))


def first_set(variables: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Return the value of the first variable that is set, "" without one."""
    return next((environ[each] for each in variables if environ.get(each)), "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
