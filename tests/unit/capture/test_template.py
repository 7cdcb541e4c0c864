from __future__ import annotations

import os
import re

import pytest

from proton_bench.capture.template import expand_name
from proton_bench.errors import UsageError


def test_a_name_without_fields_stays_as_it_is() -> None:
    assert expand_name("runs/x.y", {}) == "runs/x.y"


@pytest.mark.parametrize("name", ["", "-"])
def test_stdout_gets_no_rank(name: str) -> None:
    assert expand_name(name, {"RANK": "3", "WORLD_SIZE": "8"}) == name


def test_fields_are_filled_from_the_environment_and_the_process() -> None:
    environ = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "JOB": "night/ly"}

    name = expand_name("{rank}-{local_rank}-{pid}-{host}-{%JOB}", environ)

    assert name == f"3-1-{os.getpid()}-{os.uname().nodename}-night_ly"


def test_date_is_sortable() -> None:
    assert re.fullmatch(r"\d{8}-\d{6}", expand_name("{date}", {}))


def test_double_braces_are_braces() -> None:
    assert expand_name("a{{rank}}", {}) == "a{rank}"


def test_ranks_of_one_job_are_kept_apart() -> None:
    assert expand_name("x", {"RANK": "2", "WORLD_SIZE": "4"}) == "x.rank2"
    assert expand_name("x-{rank}", {"RANK": "2", "WORLD_SIZE": "4"}) == "x-2"
    assert expand_name("x-{%RANK}", {"RANK": "2", "WORLD_SIZE": "4"}) == "x-2"


def test_a_single_process_gets_no_rank() -> None:
    assert expand_name("x", {"RANK": "0", "WORLD_SIZE": "1"}) == "x"
    assert expand_name("x", {"RANK": "0", "WORLD_SIZE": "many"}) == "x"


@pytest.mark.parametrize(
    "environ",
    [
        {"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "6"},
        {
            "OMPI_COMM_WORLD_RANK": "5",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_SIZE": "6",
        },
    ],
)
def test_other_launchers_are_known(environ: dict[str, str]) -> None:
    assert expand_name("x", environ) == "x.rank5"
    assert expand_name("{rank}.{local_rank}", environ) == "5.1"


def test_torchrun_inside_a_slurm_job_wins() -> None:
    environ = {"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}

    assert expand_name("x", environ) == "x.rank1"


def test_an_unknown_field_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"\{gpu\}.*\{rank\}, \{local_rank\}, \{host\}"):
        expand_name("x{gpu}", {})


def test_an_unset_variable_is_named() -> None:
    with pytest.raises(UsageError, match="'JOB' is not set"):
        expand_name("{%JOB}", {})
