from __future__ import annotations

from fakes.fleet import ranked
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.store.rows import StackTree, new_stacks, path_hashes, stack_hashes

NAMES = st.text(min_size=1, max_size=3)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    builder = ProfileBuilder(draw(NAMES))
    for row in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from([FrameKind.SCOPE, FrameKind.KERNEL]))
        builder.add(draw(st.integers(0, row)), draw(NAMES), kind)
    return builder.build()


def keys(profile: Profile) -> list[tuple[tuple[str, int], ...]]:
    """Return names and kinds from below the root down to each row."""
    found: list[tuple[tuple[str, int], ...]] = [()]
    for row in range(1, len(profile)):
        above = found[int(profile.parents[row])]
        found.append((*above, (profile.name(row), int(profile.kind(row)))))
    return found


@given(profiles(), profiles())
def test_hashes_are_equal_where_names_and_kinds_are(one: Profile, other: Profile) -> None:
    found: dict[object, set[int]] = {}
    for profile in (one, other):
        for key, hash in zip(keys(profile), stack_hashes(profile).tolist(), strict=True):
            found.setdefault(key, set()).add(hash)

    assert all(len(hashes) == 1 for hashes in found.values())
    assert len(set.union(*found.values())) == len(found)


@given(profiles())
def test_stacks_give_the_paths_back(profile: Profile) -> None:
    hashes = stack_hashes(profile)
    known: set[int] = set()
    tree = StackTree.of(new_stacks(profile, hashes, known))

    assert known == set(hashes.tolist())
    assert (path_hashes(tree) == tree.hashes).all()
    places = {hash: row for row, hash in enumerate(tree.hashes.tolist())}
    for row, hash in enumerate(hashes.tolist()):
        assert tree.path(places[hash]) == profile.path(row)
    assert len(new_stacks(profile, hashes, known)) == 0


def test_hashes_never_change() -> None:
    assert stack_hashes(ranked(0)).tolist() == [
        *(0, 1613163739403714777, 755921812282471524, 1931484593693383540)
    ]


def test_python_frames_have_file_and_line() -> None:
    builder = ProfileBuilder()
    builder.add(0, "model/block.py:12@forward", FrameKind.PYTHON)
    profile = builder.build()

    (row,) = new_stacks(profile, stack_hashes(profile), {0}).to_pylist()

    assert (row["file"], row["line"], row["kind"]) == ("model/block.py", 12, "python")
