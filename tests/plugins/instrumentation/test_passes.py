"""Passes of ``--instrument`` over real kernels, on every Triton that is to be tested with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("triton")

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "gfx942", "gfx950")
Facts = dict[str, dict[str, dict[str, Any]]]


PROGRAMS = ("matmul", "softmax", "layer_norm", "attention", "persistent_matmul", "tma_matmul")
SPECIAL = ("specialized_matmul", "count_down", "calls_inlined", "calls_noinline", "no_memory")
# Kinds of scopes that a pass gives a matmul on Hopper.
EXPECTED = {
    "loops": {"loop"},
    "loads": {"load_issue", "load_wait"},
    "stores": {"store"},
    "dots": {"dot_issue", "dot_wait"},
    "waits": {"load_wait", "dot_wait"},
    "barriers": set(),
    "print-ops": {"load_issue", "load_wait", "loop", "dot_issue", "dot_wait", "store"},
    "stores,print-ops": {"store"},
}
FILTERED = "loads:kernel=soft*,stores:kernel=layer_norm:file=pass_k*.py,loads:line=1-2"
HOPPER = ["cuda:90"]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Everything that the tests below look at, by text, kernel and target."""
    wanted = {
        "all": {
            **dict.fromkeys((*PROGRAMS, *SPECIAL), TARGETS),
            "unrolled": HOPPER,
        },
        FILTERED: dict.fromkeys(("softmax", "layer_norm", "matmul"), HOPPER),
        **{text: {"matmul": HOPPER} for text in EXPECTED},
    }
    return run_on(
        request.param, tmp_path_factory.mktemp("cache"), "pass_program.py", json.dumps(wanted)
    )


@pytest.fixture(scope="module")
def everything(found: dict[str, Facts]) -> Facts:
    """All kernels with the pass ``all``."""
    return found["all"]


def each(facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    for kernel, targets in facts.items():
        for target, found in targets.items():
            yield f"{kernel} on {target}", found


def kinds(facts: dict[str, Any]) -> set[str]:
    return {scope.partition(".")[0] for scope in facts["scopes"]}


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
    assert "only in one function" in facts["skipped"]
    assert "doubled_apart" in facts["skipped"]


def test_a_kernel_without_matching_operations_is_left_alone(everything: Facts) -> None:
    facts = everything["no_memory"]["cuda:90"]

    assert (facts["scopes"], facts["records"], facts["skipped"]) == ([], 0, "")


def test_a_kernel_with_too_many_operations_keeps_loops_and_rare_ones(everything: Facts) -> None:
    facts = everything["unrolled"]["cuda:90"]
    left_out = [scope.partition("@")[0] for scope in facts["left_out"]]

    assert len(facts["scopes"]) == 255
    assert kinds(facts) == {"loop", "store", "load"}
    assert left_out == [f"load.{number}" for number in range(253, 261)]


def test_waits_for_barriers_are_named_by_what_arrives_there(everything: Facts) -> None:
    def waits(kernel: str, target: str) -> set[str]:
        facts = everything[kernel][target]
        pairs = zip(facts["scopes"], facts["ops"], strict=True)
        return {scope.partition(".")[0] for scope, op in pairs if op == "ttng.wait_barrier"}

    assert waits("tma_matmul", "cuda:90") == {"load_wait"}
    assert waits("tma_matmul", "cuda:100") == {"load_wait", "dot_wait"}
    assert waits("matmul", "cuda:100") == {"dot_wait"}
    assert waits("specialized_matmul", "cuda:100") == {"load_wait", "dot_wait", "barrier_wait"}


@pytest.mark.parametrize("passes", EXPECTED)
def test_a_pass_brackets_its_kinds(found: dict[str, Facts], passes: str) -> None:
    facts = found[passes]["matmul"]["cuda:90"]

    assert kinds(facts) == EXPECTED[passes]
    assert facts["records"] == (0 if "print-ops" in passes else 2 * len(facts["scopes"]))


def test_filters_keep_names_and_take_operations_away(found: dict[str, Facts]) -> None:
    facts, plain = found[FILTERED], found["all"]["layer_norm"]["cuda:90"]["scopes"]

    assert facts["matmul"]["cuda:90"]["scopes"] == []
    assert kinds(facts["softmax"]["cuda:90"]) == {"load"}
    assert facts["layer_norm"]["cuda:90"]["scopes"] == [plain[-1]]
