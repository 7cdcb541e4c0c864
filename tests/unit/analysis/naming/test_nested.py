from __future__ import annotations

import pytest

from proton_bench.analysis.naming.nested import IMPORTS_NAME, fold_nested
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

LIBRARY = "/usr/lib/python3.12/site-packages"


def sampled(*paths: tuple[str, ...]) -> Profile:
    """Return a profile whose host was seen once at the end of each path, for a microsecond."""
    builder = ProfileBuilder()
    rows: dict[tuple[str, ...], int] = {(): 0}
    for path in paths:
        for depth, name in enumerate(path):
            place = path[: depth + 1]
            if place not in rows:
                rows[place] = builder.add(rows[place[:-1]], name, FrameKind.PYTHON)
        row = rows[path]
        builder.set(row, "host_wall (ns)", 1000)
    return builder.build()


def names(profile: Profile) -> list[str]:
    return [profile.name(row) for row in range(1, len(profile))]


def test_imports_anywhere_are_one_row() -> None:
    main = ("<not recorded>", "/run/fit.py:4@<module>")
    lazy = ("<not recorded>", "/run/fit.py:30@<module>", "/run/fit.py:9@load")
    profile = sampled(
        (*main, f"{LIBRARY}/jax/__init__.py:7@<module>", f"{LIBRARY}/jax/core.py:70@register"),
        (*main, f"{LIBRARY}/jax/__init__.py:8@<module>"),
        (*lazy, "/run/data.py:1@<module>"),
        lazy,
        ("<not recorded>", "/run/fit.py:31@<module>"),
    )

    folded = fold_nested(profile)

    assert names(folded)[0] == "<not recorded>"
    assert names(folded).count(IMPORTS_NAME) == 1
    assert not any(LIBRARY in name or "data.py" in name for name in names(folded))
    row = names(folded).index(IMPORTS_NAME) + 1
    assert folded.inclusive("host_wall (ns)")[[0, row]].tolist() == [5000, 3000]


@pytest.mark.parametrize(
    "runner",
    ["<frozen runpy>:88@_run_code", f"{LIBRARY}/IPython/core/interactiveshell.py:3701@run_code"],
)
def test_a_program_that_another_one_runs_is_no_import(runner: str) -> None:
    profile = sampled(("<not recorded>", runner, "/run/fit.py:4@<module>", "/run/fit.py:2@step"))

    assert names(fold_nested(profile)) == names(profile)


def test_recursion_is_one_row_with_its_levels() -> None:
    walk = "/run/tree.py:12@walk"
    profile = sampled(
        ("<not recorded>", *[walk] * 7, "/run/tree.py:13@leaf"),
        ("<not recorded>", *[walk] * 3, "/run/tree.py:13@leaf"),
        ("<not recorded>", walk),
    )

    folded = fold_nested(profile)

    assert names(folded) == ["<not recorded>", f"{walk} [7 levels]", "/run/tree.py:13@leaf"]
    assert folded.inclusive("host_wall (ns)").tolist() == [3000, 3000, 3000, 2000]
    assert names(fold_nested(profile, counted=False))[1] == walk


def test_code_that_a_library_makes_is_part_of_the_frame_that_runs_it() -> None:
    make = "/usr/lib/python3.12/dataclasses.py:433@_create_fn"
    profile = sampled(
        ("<not recorded>", "/run/a.py:3@f", make, "<string>:0@<module>"),
        ("<not recorded>", "/run/a.py:5@g", "<string>:1@<module>"),
    )

    folded = fold_nested(profile)

    assert names(folded) == [
        *("<not recorded>", "/run/a.py:3@f", make),
        *("/run/a.py:5@g", "<string>:1@<module>"),
    ]


def test_kernels_of_one_name_below_each_other_stay() -> None:
    builder = ProfileBuilder()
    outer = builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1})
    builder.add(outer, "k", FrameKind.KERNEL, metrics={"count": 1})

    assert len(fold_nested(builder.build())) == 3
