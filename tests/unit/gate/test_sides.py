"""Rows of both sides are the same rows, wherever the base was checked out."""

from __future__ import annotations

from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.gate.runs import at_home
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def profile(*names: str) -> Profile:
    builder = ProfileBuilder()
    row = 0
    for name in names:
        row = builder.add(row, name, FrameKind.PYTHON, metrics={"time (ns)": 1})
    return builder.build()


def test_files_of_the_base_are_named_as_those_of_the_working_tree() -> None:
    tree = Path("/repo/.proton/ab/x/base-tree")
    run = Run(profile(f"{tree}/pkg/core.py:3@f", "/lib/other.py:1@g", "scope"), "x")

    found = at_home(run, tree, "/repo")

    assert found.profile.path(3) == ("/repo/pkg/core.py:3@f", "/lib/other.py:1@g", "scope")
    assert found.source == "x"


def test_what_names_no_file_of_the_base_stays_as_it_is() -> None:
    run = Run(profile("/repo/pkg/core.py:3@f"), "x")

    assert at_home(run, Path("/tree"), "/repo") is run
