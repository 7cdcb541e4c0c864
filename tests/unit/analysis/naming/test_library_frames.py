from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.naming.nested import fold_library_frames
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

SITE = "/env/lib/python3.11/site-packages"
PYTHON, KERNEL, OP = FrameKind.PYTHON, FrameKind.KERNEL, FrameKind.OP
TIME = "time (ns)"


def paths(profile: Profile) -> dict[tuple[str, ...], float]:
    """Return the path of each row with its inclusive time."""
    values = profile.inclusive(TIME).tolist()
    return {profile.path(row): values[row] for row in range(len(profile))}


def model() -> ProfileBuilder:
    """Build own code that calls torch, which calls operators and own code again."""
    builder = ProfileBuilder()
    own = builder.add(0, "/me/train.py:3@step", PYTHON)
    call = builder.add(own, f"{SITE}/torch/module.py:1@_wrapped", PYTHON)
    inner = builder.add(call, f"{SITE}/torch/module.py:2@_call", PYTHON)
    linear = builder.add(inner, f"{SITE}/torch/linear.py:134@forward", PYTHON)
    mm = builder.add(linear, "aten::mm", OP, metrics={TIME: 1})
    builder.add(mm, "gemm", KERNEL, metrics={TIME: 10})
    back = builder.add(inner, "/me/block.py:9@forward", PYTHON)
    builder.add(back, "copy", KERNEL, metrics={TIME: 5})
    return builder


def test_a_run_of_library_frames_is_one_row_named_after_its_end() -> None:
    profile = model().build()

    shown = paths(fold_library_frames(profile))

    own = ("/me/train.py:3@step",)
    linear = (*own, f"{SITE}/torch/linear.py:134@forward [+2 frames of torch]")
    call = (*own, f"{SITE}/torch/module.py:2@_call [+1 frame of torch]")
    assert shown == {
        (): 16,
        own: 16,
        linear: 11,
        (*linear, "aten::mm"): 11,
        (*linear, "aten::mm", "gemm"): 10,
        call: 5,
        (*call, "/me/block.py:9@forward"): 5,
        (*call, "/me/block.py:9@forward", "copy"): 5,
    }


def test_equal_ends_of_different_runs_are_one_row() -> None:
    builder = ProfileBuilder()
    for middle in ([], ["a.py:1@a"], ["a.py:1@a", "b.py:2@b"]):
        above = builder.add(0, f"{SITE}/torch/top.py:{len(middle)}@top", PYTHON)
        for name in middle:
            above = builder.add(above, f"{SITE}/numpy/{name}", PYTHON)
        end = builder.add(above, f"{SITE}/torch/end.py:7@end", PYTHON)
        builder.add(end, "k", KERNEL, metrics={TIME: 2})

    shown = paths(fold_library_frames(builder.build()))

    end = (f"{SITE}/torch/end.py:7@end [+1 to 3 frames of torch, numpy]",)
    assert shown == {(): 6, end: 6, (*end, "k"): 6}


def test_frames_with_values_of_their_own_stay() -> None:
    builder = ProfileBuilder()
    first = builder.add(0, f"{SITE}/a/x.py:1@f", PYTHON, metrics={TIME: 3})
    builder.add(first, f"{SITE}/a/y.py:1@g", PYTHON, metrics={TIME: 4})

    shown = paths(fold_library_frames(builder.build()))

    assert shown == {
        (): 7,
        (f"{SITE}/a/x.py:1@f",): 3,
        (f"{SITE}/a/y.py:1@g [+1 frame of a]",): 4,
    }


def test_single_library_frames_and_other_profiles_do_not_change() -> None:
    builder = ProfileBuilder()
    frame = builder.add(0, f"{SITE}/a/x.py:1@f", PYTHON)
    scope = builder.add(frame, "scope", FrameKind.SCOPE)
    builder.add(builder.add(scope, f"{SITE}/a/x.py:1@f", PYTHON), "k", KERNEL, metrics={TIME: 1})
    profile = builder.build()

    assert fold_library_frames(profile) is profile
    assert fold_library_frames(ProfileBuilder().build()).strings


NODES = st.sampled_from(
    [
        *(("/me/a.py:1@f", PYTHON), ("/me/b.py:2@g", PYTHON), ("scope", FrameKind.SCOPE)),
        *((f"{SITE}/torch/{n}.py:{n}@f", PYTHON) for n in range(3)),
        *((f"/usr/lib/python3.11/{n}.py:{n}@f", PYTHON) for n in range(2)),
        ("k", KERNEL),
    ]
)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    builder = ProfileBuilder()
    for row in range(draw(st.integers(0, 25))):
        name, kind = draw(NODES)
        has_value = kind is KERNEL or draw(st.integers(0, 5)) == 0
        metrics = {TIME: draw(st.integers(0, 1000)), "share (%)": 1.5} if has_value else {}
        builder.add(draw(st.integers(0, row)), name, kind, metrics=metrics)
    return builder.build()


@given(profiles())
def test_totals_and_rows_of_own_code_are_what_they_were(profile: Profile) -> None:
    folded = fold_library_frames(profile)
    folded.self_check()

    assert own_rows(folded) == own_rows(profile)
    assert callers(folded) == callers(profile)
    again = fold_library_frames(folded)
    assert np.array_equal(again.parents, folded.parents)


def callers(profile: Profile) -> set[tuple[str, str]]:
    """Return the names of own rows, each with that of the row above."""
    above = profile.parents.tolist()
    pairs = {(profile.name(above[row]), profile.name(row)) for row in range(1, len(profile))}
    return {(caller.partition(" [")[0], name) for caller, name in pairs if "/lib/" not in name}


def own_rows(profile: Profile) -> dict[tuple[str, ...], int]:
    """Return the inclusive times of paths of own rows, without the library frames between them."""
    if TIME not in profile.columns:
        return {}
    found: dict[tuple[str, ...], int] = {}
    values = profile.inclusive(TIME).tolist()
    for row in range(len(profile)):
        if "/lib/" in profile.name(row):
            continue
        path = tuple(name for name in profile.path(row) if "/lib/" not in name)
        found[path] = found.get(path, 0) + values[row]
    return found
