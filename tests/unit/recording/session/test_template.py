from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from proton_bench import recording
from proton_bench.errors import UsageError
from proton_bench.recording.job_ranks import LAUNCHERS, rank_facts, rank_variable
from proton_bench.recording.session.output_name import expand_name

_CHILD = "children/child_path/sitecustomize.py"


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
    ("rank", "local_rank", "world_size"),
    [
        ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
        ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
        ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
        ("PMIX_RANK", "SLURM_LOCALID", "SLURM_NTASKS"),
        ("PALS_RANKID", "PALS_LOCAL_RANKID", "PMI_SIZE"),
        ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE"),
    ],
)
def test_other_launchers_are_known(rank: str, local_rank: str, world_size: str) -> None:
    environ = {rank: "5", local_rank: "1", world_size: "6"}

    assert expand_name("x", environ) == "x.rank5"
    assert expand_name("{rank}.{local_rank}", environ) == "5.1"
    assert rank_facts(environ) == {"rank": 5, "local_rank": 1, "world_size": 6}
    assert rank_variable(environ) == rank


@pytest.mark.parametrize("rank", ["0", "3"])
def test_a_rank_of_an_unknown_number_of_ranks_is_kept_apart(rank: str) -> None:
    assert expand_name("x", {"PMIX_RANK": rank}) == f"x.rank{rank}"
    assert rank_facts({"PMIX_RANK": rank}) == {"rank": int(rank)}


def test_the_tasks_of_a_step_count_before_those_of_the_allocation() -> None:
    environ = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"}

    assert expand_name("x", environ) == "x"
    assert rank_facts(environ)["world_size"] == 1


@pytest.mark.parametrize("odd", ["", "-1", "many", "\u0664", "9" * 40])
def test_what_is_not_a_rank_is_none(odd: str) -> None:
    assert rank_facts({"RANK": odd, "WORLD_SIZE": odd}) == {}
    assert expand_name("x", {"RANK": odd, "WORLD_SIZE": odd}) == "x"


def test_children_look_for_the_same_variables() -> None:
    module = ast.parse((Path(recording.__file__).parent / _CHILD).read_text())
    found = next(
        node.value
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_RANKS"
    )

    assert eval(ast.unparse(found), {}) == tuple(launcher.rank for launcher in LAUNCHERS)


def test_torchrun_inside_a_slurm_job_wins() -> None:
    environ = {"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}

    assert expand_name("x", environ) == "x.rank1"


def test_an_unknown_field_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"\{gpu\}.*\{rank\}, \{local_rank\}, \{host\}"):
        expand_name("x{gpu}", {})


def test_an_unset_variable_is_named() -> None:
    with pytest.raises(UsageError, match="'JOB' is not set"):
        expand_name("{%JOB}", {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("out/{%V}/x", ".."),
        ("out/{%V}", ".."),
        ("{%V}{%V}/x", "."),
        (".{%V}/x", "."),
        ("{%V}/x", "/"),
    ],
)
def test_no_value_leaves_the_folder(name: str, value: str) -> None:
    expanded = expand_name(name, {"V": value})

    assert not os.path.normpath(expanded).startswith((".", "/"))
    assert os.path.normpath(expanded).count("/") == name.count("/")


def test_a_folder_above_may_be_written() -> None:
    assert expand_name("../{%V}", {"V": "x"}) == "../x"
