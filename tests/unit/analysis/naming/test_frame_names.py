from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.accounting.host_time import NOT_RECORDED
from proton_bench.analysis.naming.frame_names import Places, frame_texts, parse_frame
from proton_bench.analysis.naming.nested import without_runners
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.model.steps import HOST_WALL
from proton_bench.support.text import visible

SITE = "/home/x/.venv/lib/python3.11/site-packages"


PLACES = Places.of(Provenance({"directory": "/home/x", "command": ("python", "runs/train.py")}))


@pytest.mark.parametrize(
    ("file", "short"),
    [
        (f"{SITE}/torch/nn/modules/linear.py", "torch/nn/modules/linear.py"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", "yaml/loader.py"),
        ("/usr/lib/python3.12/threading.py", "threading.py"),
        ("/opt/conda/lib/python3.13t/asyncio/runners.py", "asyncio/runners.py"),
        ("<frozen runpy>", "<frozen runpy>"),
        ("/home/x/model/block.py", "model/block.py"),
        ("/home/x/runs/train.py", "runs/train.py"),
        ("/elsewhere/deep/tool.py", "tool.py"),
        ("train.py", "train.py"),
    ],
)
def test_paths_begin_at_the_package_or_the_folder_of_the_run(file: str, short: str) -> None:
    name = f"{file}:134@forward"

    assert frame_texts([name], PLACES) == {name: f"{short}:134 forward"}


def test_script_in_another_folder_is_shown_from_there() -> None:
    places = Places.of(Provenance({"directory": "/tmp", "command": ("python", "/src/a/run.py")}))

    assert places.short("/src/a/lib/model.py") == "lib/model.py"


def test_files_that_end_alike_keep_as_much_as_tells_them_apart() -> None:
    names = ["/a/x/model.py:1@f", "/a/y/model.py:1@f", "/b/other.py:1@f"]

    texts = frame_texts(names, Places())

    assert list(map(texts.get, names)) == ["x/model.py:1 f", "y/model.py:1 f", "other.py:1 f"]


def test_older_spelling_is_read() -> None:
    name = f"{SITE}/torch/x.py:forward@12"

    assert frame_texts([name], PLACES) == {name: "torch/x.py:12 forward"}


def test_names_that_are_no_frames_have_no_text() -> None:
    assert frame_texts(["aten::mm", "user@host", "a.py:1"], PLACES) == {}
    assert parse_frame("user@host") is None


@pytest.mark.parametrize(
    ("file", "library"),
    [
        (f"{SITE}/torch/nn/modules/linear.py", "torch"),
        (f"{SITE}/six.py", "six"),
        ("/usr/lib/python3.12/threading.py", "python"),
        ("<frozen importlib._bootstrap>", "python"),
        ("/home/x/train.py", ""),
        ("/home/me/editable/mylib/core.py", ""),
        ("<string>", ""),
    ],
)
def test_what_lies_below_site_packages_or_the_standard_library_is_a_library(
    file: str, library: str
) -> None:
    assert PLACES.library(file) == library


def test_who_works_within_an_installed_package_owns_it() -> None:
    places = Places.of(Provenance({"directory": f"{SITE}/mine"}))

    assert places.library(f"{SITE}/mine/core.py") == ""
    assert places.library(f"{SITE}/torch/core.py") == "torch"


@pytest.mark.parametrize(
    "facts", [{}, {"directory": 4, "command": "x"}, {"command": (1, "../a.py")}]
)
def test_odd_provenance_names_no_folder(facts: dict[str, object]) -> None:
    assert Places.of(Provenance(facts)) == Places()


PARTS = st.sampled_from(
    ["/", "a", "b", "site-packages/", ".py", "\n", "\\n", "lib/python3.11/", ":1"]
)


FILES = st.lists(PARTS, max_size=6).map("".join)


@given(st.lists(st.tuples(FILES, st.integers(0, 2), st.sampled_from(["f", "f g", "1@f"]))))
def test_different_frames_never_have_the_same_text(parts: list[tuple[str, int, str]]) -> None:
    names = {f"{file}:{line}@{function}" for file, line, function in parts}

    texts = frame_texts(names, Places(("/a/",)))

    assert set(texts) == names
    assert len({visible(text) for text in texts.values()}) == len(names)


SHELL = "/v/lib/python3.13/site-packages/IPython/core/interactiveshell.py"


CELL = "/tmp/ipykernel_7/93.py"


def profile_of(*paths: tuple[str, ...]) -> Profile:
    """Return a profile with an operator, and paths outside of recorded work, of 7 ns each."""
    builder = ProfileBuilder()
    builder.add(0, "aten::neg", FrameKind.OP, metrics={HOST_WALL: 7})
    rows = {(): builder.add(0, NOT_RECORDED, FrameKind.PYTHON)}
    for path in paths:
        for depth in range(1, len(path) + 1):
            if path[:depth] not in rows:
                above = rows[path[: depth - 1]]
                rows[path[:depth]] = builder.add(above, path[depth - 1], FrameKind.PYTHON)
        builder.set(rows[path], HOST_WALL, 7)
    return builder.build()


def times_of(profile: Profile) -> dict[tuple[str, ...], int]:
    column = profile.columns[HOST_WALL]
    return {profile.path(int(row)): int(column.values[row]) for row in column.known.nonzero()[0]}


def test_frames_down_to_a_cell_are_left_out() -> None:
    shell = ("/a/launch.py:18@<module>", f"{SHELL}:5@run_code")
    profile = profile_of(
        shell,
        (*shell, f"{CELL}:1@<module>"),
        (*shell, f"{CELL}:2@<module>", f"{CELL}:9@work"),
        (*shell, f"{CELL}:3@<module>", f"{SHELL}:8@run_cell_magic", f"{CELL}:6@<module>"),
    )

    assert times_of(without_runners(profile)) == {
        ("aten::neg",): 7,
        (NOT_RECORDED,): 7,
        (NOT_RECORDED, f"{CELL}:1@<module>"): 7,
        (NOT_RECORDED, f"{CELL}:2@<module>", f"{CELL}:9@work"): 7,
        (NOT_RECORDED, f"{CELL}:6@<module>"): 7,
    }


@pytest.mark.parametrize("paths", [(), (("/a/fit.py:1@<module>", "/a/fit.py:2@load"),)])
def test_other_rows_stay_as_they_are(paths: tuple[tuple[str, ...], ...]) -> None:
    profile = profile_of(*paths)

    folded = without_runners(profile)

    assert [folded.path(row) for row in range(len(folded))] == [
        profile.path(row) for row in range(len(profile))
    ]
    assert times_of(folded) == times_of(profile)
