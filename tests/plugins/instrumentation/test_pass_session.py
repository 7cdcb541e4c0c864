"""Sessions with passes on a simulated driver: names, caches, remarks."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("triton")
pytest.importorskip("torch")

OWN = {"loop", "load"}  # scopes in the source of the kernel
Runs = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Two runs with one folder of Triton's cache."""
    cache = tmp_path_factory.mktemp("cache")
    return [run_on(request.param, cache, "pass_session.py") for _ in range(2)]


def kinds(names: list[str]) -> list[str]:
    return sorted(name.partition("@")[0] for name in names)


def test_scopes_of_passes_stand_beside_those_of_the_source(runs: Runs) -> None:
    first = runs[0]

    assert kinds(first["stores"]["names"]) == sorted([*OWN, "store.0"])
    assert kinds(first["stores,loops:line=1-999"]["names"]) == sorted([*OWN, "loop.0", "store.0"])
    assert any(name.startswith("store.0@scoped_kernels.py:") for name in first["stores"]["names"])


def test_other_passes_are_another_kernel(runs: Runs) -> None:
    hashes = [found["hash"] for found in runs[0].values()]

    assert len(set(hashes)) == len(hashes)


def test_a_later_run_finds_the_kernels_and_their_names(runs: Runs) -> None:
    first, again = runs

    for text in ("stores", "loops,stores"):
        assert again[text] == first[text]


def test_listing_compiles_anew_whatever_the_cache_holds(runs: Runs) -> None:
    first, again = runs

    assert first["print-ops"]["hash"] != again["print-ops"]["hash"]
    assert kinds(first["print-ops"]["names"]) == sorted(OWN)


def test_the_text_of_passes_survives_the_mode(runs: Runs) -> None:
    texts = ("stores,loops:line=1-999", "loads:kernel=other")

    assert [runs[0][text]["passes"] for text in texts] == list(texts)


def test_filters_that_leave_nothing_leave_the_source_its_scopes(runs: Runs) -> None:
    for run in runs:
        found = run["loads:kernel=other"]
        assert kinds(found["names"]) == sorted(OWN)
        assert found["remark"] == ("pass 'loads:kernel=other' matched no kernel; these ran: add")


def test_filters_that_match_are_silent_also_for_cached_kernels(runs: Runs) -> None:
    for run in runs:
        assert run["stores,loops:line=1-999"]["remark"] is None


def test_lines_that_match_nothing_are_named(runs: Runs) -> None:
    for run in runs:
        assert run["stores,loads:line=5000-"]["remark"] == (
            "pass 'loads:line=5000-' matched no operation of add; --instrument=print-ops lists "
            "the operations"
        )


def test_what_had_no_room_is_a_fact_of_the_session_also_of_cached_kernels(runs: Runs) -> None:
    for run in runs:
        assert run["crowded"]["left_out"] == {"unrolled": 6}
        assert len(run["crowded"]["names"]) == 255


def test_passes_that_find_nothing_name_the_kernels_that_ran(runs: Runs) -> None:
    for run in runs:
        assert (
            "pass 'dots:kernel=unrolled' matched no operation of unrolled" in run["empty"]["remark"]
        )
