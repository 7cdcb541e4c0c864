"""Passes of ``--instrument`` over real kernels, on every Triton that is to be tested with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("triton")

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "gfx942", "gfx950")
Facts = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def triton(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def everything(triton: str, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """All kernels with the pass ``all``."""
    cache = tmp_path_factory.mktemp("cache")
    return run_on(triton, cache, "pass_program.py", "all")["kernels"]


def each(facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    for kernel, targets in facts.items():
        for target, found in targets.items():
            yield f"{kernel} on {target}", found


def kinds(facts: dict[str, Any]) -> set[str]:
    return {scope.partition(".")[0] for scope in facts["scopes"]}


def test_every_kernel_reaches_the_stage_on_every_target(everything: Facts) -> None:
    assert {(kernel, *targets) for kernel, targets in everything.items()} == {
        (kernel, *TARGETS) for kernel in everything
    }
    assert {"matmul", "softmax", "layer_norm", "attention", "tma_matmul"} <= set(everything)


def test_the_verifier_accepts_every_module(everything: Facts) -> None:
    assert [name for name, facts in each(everything) if not facts["verified"]] == []


def test_apart_from_records_nothing_changes(everything: Facts) -> None:
    assert [name for name, facts in each(everything) if not facts["is_same"]] == []


def test_triton_reads_the_scopes_back(everything: Facts) -> None:
    for name, facts in each(everything):
        assert sorted(facts["names"]) == sorted(facts["scopes"]), name
        assert sorted(facts["ids"]) == list(range(len(facts["ids"]))), name
        assert facts["records"] == 2 * len(facts["scopes"]), name
        assert len(set(facts["scopes"])) == len(facts["scopes"]), name


def test_scopes_are_named_by_kind_number_and_line(everything: Facts) -> None:
    scopes = everything["softmax"]["cuda:90"]["scopes"]

    assert [scope.partition(".py:")[0] for scope in scopes] == [
        "load.0@pass_kernels",
        "store.0@pass_kernels",
    ]
    assert all(scope.partition(".py:")[2].isdigit() for scope in scopes)


def test_loops_of_a_kernel_are_numbered_in_the_order_of_the_source(everything: Facts) -> None:
    scopes = everything["layer_norm"]["cuda:90"]["scopes"]
    loops = [scope for scope in scopes if scope.startswith("loop")]

    assert [loop.partition("@")[0] for loop in loops] == ["loop.0", "loop.1", "loop.2"]
    assert loops == sorted(loops, key=lambda loop: int(loop.rpartition(":")[2]))


def test_an_inner_loop_is_numbered_after_the_loop_around_it(everything: Facts) -> None:
    for target in TARGETS:
        facts = everything["persistent_matmul"][target]
        number = dict(zip(facts["names"], facts["ids"], strict=True))
        outer, inner = [scope for scope in facts["scopes"] if scope.startswith("loop")]

        assert outer.startswith("loop.0@")
        assert [number[inner], number[outer]] in [list(pair) for pair in facts["parents"]]


def test_issue_and_wait_of_asynchronous_operations_are_bracketed(everything: Facts) -> None:
    matmul, tma = everything["matmul"], everything["tma_matmul"]

    assert {"load_issue", "load_wait", "local_load", "dot"} <= kinds(matmul["cuda:80"])
    assert {"load_issue", "load_wait", "dot_issue", "dot_wait"} <= kinds(matmul["cuda:90"])
    assert {"load_issue", "load_wait", "dot_issue", "dot_wait"} <= kinds(matmul["cuda:100"])
    assert {"load_issue", "load_wait", "store_issue", "store_wait"} <= kinds(tma["cuda:90"])
    assert {"load_issue", "load_wait", "dot_issue", "dot_wait"} <= kinds(tma["cuda:100"])
    assert {"load", "local_load", "dot", "store"} <= kinds(matmul["gfx942"])


def test_operations_in_warp_specialised_partitions_are_bracketed(everything: Facts) -> None:
    facts = everything["specialized_matmul"]["cuda:100"]

    partition = facts["text"].index(next(t for t in facts["text"] if t.startswith("partition0")))
    assert any("proton.record" in line for line in facts["text"][partition:])
    assert {"load_issue", "dot_issue", "loop"} <= kinds(facts)


def test_regions_of_while_and_if_are_bracketed(everything: Facts) -> None:
    for target in TARGETS:
        found = [scope.partition("@")[0] for scope in everything["count_down"][target]["scopes"]]

        assert found == ["load.0", "loop.0", "load.1", "barrier.0", "atomic.0"]


def test_an_inlined_function_is_known_by_its_own_line(everything: Facts) -> None:
    scopes = everything["calls_inlined"]["cuda:80"]["scopes"]
    inlined, own, _ = [int(scope.rpartition(":")[2]) for scope in scopes]

    assert inlined < own


def test_a_kernel_with_a_second_function_is_left_alone_with_the_reason(everything: Facts) -> None:
    facts = everything["calls_noinline"]["gfx942"]

    assert facts["scopes"] == []
    assert "one function only" in facts["skipped"]
    assert "doubled_apart" in facts["skipped"]


def test_a_kernel_without_matching_operations_is_left_alone(everything: Facts) -> None:
    facts = everything["no_memory"]["cuda:90"]

    assert (facts["scopes"], facts["records"], facts["skipped"]) == ([], 0, "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loops", {"loop"}),
        ("loads", {"load_issue", "load_wait"}),
        ("stores", {"store"}),
        ("dots", {"dot_issue", "dot_wait"}),
        ("waits", {"load_wait", "dot_wait"}),
        ("barriers", set()),
        ("print-ops", {"load_issue", "load_wait", "loop", "dot_issue", "dot_wait", "store"}),
    ],
)
def test_a_pass_brackets_its_kinds(
    triton: str, tmp_path: Any, name: str, expected: set[str]
) -> None:
    facts = run_on(triton, tmp_path, "pass_program.py", name, "matmul")["kernels"]["matmul"]

    assert kinds(facts["cuda:90"]) == expected
    assert facts["cuda:90"]["records"] == (
        0 if name == "print-ops" else 2 * len(facts["cuda:90"]["scopes"])
    )


def test_filters_keep_names_and_take_operations_away(
    triton: str, everything: Facts, tmp_path: Any
) -> None:
    names = everything["layer_norm"]["cuda:90"]["scopes"]
    line = names[-1].rpartition(":")[2]
    text = f"loads:kernel=soft*,all:kernel=layer_norm:file=pass_k*.py:line={line}-"

    facts = run_on(triton, tmp_path, "pass_program.py", text, "softmax", "layer_norm", "matmul")

    assert facts["kernels"]["matmul"]["cuda:90"]["scopes"] == []
    assert kinds(facts["kernels"]["softmax"]["cuda:90"]) == {"load"}
    assert facts["kernels"]["layer_norm"]["cuda:90"]["scopes"] == [names[-1]]
