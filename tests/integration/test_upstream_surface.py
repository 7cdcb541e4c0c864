"""Every public name of ``triton.profiler`` exists, takes the same arguments and does the same.

What three versions of upstream show is recorded, and what calls of the newest come to
(``tests/fakes/upstream_surface.py`` makes it anew); the installed Triton and those of
``PROTON_BENCH_TRITONS`` are compared too. All differences are listed here, and
``docs/reference/compatibility.md`` explains them.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.tritons import TRITONS
from fakes.upstream_surface import DATA, behaviour_of, survey_of

pytest.importorskip("proton_bench._native")
pytest.importorskip("triton")
pytest.importorskip("hatchet")

RECORDED: dict[str, Any] = json.loads(DATA.read_text())
NEWEST = max(RECORDED["versions"])

# Upstream's own machinery, which has no counterpart.
ABSENT = {
    "hooks.instrumentation.CudaAllocator",
    "hooks.instrumentation.Instrumentation",
    "metric.scalar_metric_kernel",
    "metric.tensor_metric_kernel",
}
# Objects of ours that are read in the same way.
TYPES = {
    ("ContextVar", "LaunchVariable"),
    ("_local", "_ThreadLocalScopes"),
    ("function", "value"),  # how a version of Python shows a union of types
}
DIFFERENT = {
    # Triton calls them by place; the native ones take no keywords.
    "LaunchHook.enter",
    "LaunchHook.exit",
    # 3.6.0 calls its argument `file`, and takes one that is open, as ours does too.
    "viewer.get_raw_metrics",
    # An event is made by allocate_event.
    "language.Event",
    "LaunchHook.flops_width: value",  # a tuple, as nothing changes it
    "LaunchHook.metrics: value",
}
# Our result instead, by the name of the call.
OTHER_RESULTS = {
    # Scopes of kernels are host scopes where Python runs the kernel.
    "scopes_in_kernels_outside_of_kernels": {"returned": None},
}
# Its text names what was recorded, between upstream's two sentences.
OTHER_TEXTS = {"metric_that_the_viewer_does_not_find": "Metric y is not found"}


@functools.cache
def ours(version: str) -> dict[str, Any]:
    return survey_of("", RECORDED["versions"][version])


@functools.cache
def our_calls() -> dict[str, Any]:
    return behaviour_of("ours")


def places() -> list[Any]:
    return [
        pytest.param(version, module, id=f"{version}-{module}")
        for version, modules in RECORDED["versions"].items()
        for module in modules
    ]


@pytest.mark.parametrize(("version", "module"), places())
def test_every_name_is_there_and_takes_the_same_arguments(version: str, module: str) -> None:
    theirs = RECORDED["versions"][version][module]
    found = ours(version)[module]
    short = module.removeprefix("triton.profiler").removeprefix(".")

    said = []
    for name, facts in theirs.items():
        place = f"{short}.{name}".removeprefix(".")
        if name not in found:
            said += [] if place in ABSENT else [f"{place} is missing"]
        else:
            said += differences(place, facts, found[name])

    assert said == []


@pytest.mark.parametrize("name", list(RECORDED["calls"][NEWEST]))
def test_a_call_does_what_the_newest_upstream_does(name: str) -> None:
    theirs, found = RECORDED["calls"][NEWEST][name], our_calls()[name]

    if name in OTHER_RESULTS:
        assert found == OTHER_RESULTS[name]
    elif "returned" in theirs:
        assert found == theirs
    else:
        text = theirs["text"].removeprefix("[PROTON] ").rstrip(".")
        assert set(theirs["raised"]) <= set(found["raised"])
        assert OTHER_TEXTS.get(name, text) in found["text"]


@pytest.mark.parametrize("folder", TRITONS, ids=lambda folder: Path(folder).name or "installed")
def test_what_is_recorded_is_what_this_triton_shows(folder: str) -> None:
    version = version_of(folder)
    if version not in RECORDED["versions"]:
        pytest.skip(f"Triton {version} is not recorded")

    assert survey_of(folder) == RECORDED["versions"][version]
    if version in RECORDED["calls"]:
        assert behaviour_of("theirs", folder) == RECORDED["calls"][version]


def version_of(folder: str) -> str:
    if not folder:
        return importlib.metadata.version("triton")
    return next(Path(folder).glob("triton-*.dist-info")).stem.split("-")[1]


def differences(place: str, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return the differences that a script could notice."""
    if is_named(place) or (theirs["kind"], ours["kind"]) in TYPES:
        return []
    if theirs["kind"] != ours["kind"]:
        return [f"{place}: {theirs['kind']} is a {ours['kind']}"]
    said = []
    if not accepts(theirs.get("signature"), ours.get("signature"), place):
        said.append(f"{place}{theirs['signature']} takes {ours['signature']}")
    for fact in ("type", "value", "choices", "keys"):
        mine = ours.get(fact)
        is_same = fact not in theirs or theirs[fact] == mine or is_named(f"{place}: {fact}")
        if not is_same and (fact != "type" or (theirs[fact], mine) not in TYPES):
            said.append(f"{place}: {fact} {theirs[fact]} is {mine}")
    for fact in ("bases", "fields"):
        lost = [each for each in theirs.get(fact, ()) if each not in ours[fact]]
        said += [f"{place}: {fact} {lost} are missing"] if lost else []
    return said + differing_members(place, theirs.get("members", {}), ours.get("members", {}))


def differing_members(place: str, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    said = []
    for name, member in theirs.items():
        inner = f"{place}.{name}"
        found = ours.get(name)
        said += [f"{inner} is missing"] if found is None else differences(inner, member, found)
    return said


def is_named(place: str) -> bool:
    return any(place.endswith(each) for each in DIFFERENT)


def accepts(theirs: list[Any] | None, ours: list[Any] | None, place: str) -> bool:
    """Return whether ours takes every call that theirs takes, with the same defaults."""
    if theirs is None:
        return True
    if place.rpartition(".")[2].startswith("__"):
        return True  # called by syntax; C functions do not show what they take
    if ours is None:
        return False
    mine = {name: (place, kind, default) for place, (name, kind, default) in enumerate(ours)}
    for place_of, (name, kind, default) in enumerate(theirs):
        if kind.startswith("VAR_"):
            continue  # upstream's singleton passes arguments that its own __init__ refuses
        if name not in mine:
            return False
        position, my_kind, my_default = mine[name]
        by_place = kind != "KEYWORD_ONLY"
        if my_kind != kind or (by_place and position != place_of):
            return False
        if default is not None and my_default != default:
            return False
    known = {name for name, _, _ in theirs}
    return all(
        default is not None or kind.startswith("VAR_")
        for name, kind, default in ours
        if name not in known
    )
