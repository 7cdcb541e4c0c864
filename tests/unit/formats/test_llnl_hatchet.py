"""llnl-hatchet reads our files with the inclusive sums that we show."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import msgpack
import pytest
from reference.golden_profile import golden_profile

from proton_bench.formats.registry import find_format, read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.profile import Profile

UPSTREAM = Path(__file__).parents[2] / "data" / "upstream"


Sums = dict[tuple[str, ...], float]


def frame_sums(database: list[Any], metric: str) -> Sums:
    """Return hatchet's inclusive sums by path, as upstream's viewer asks for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hatchet = pytest.importorskip("hatchet", reason="llnl-hatchet is not installed")
        frame = hatchet.GraphFrame.from_literal(database[:1])
        frame.update_inclusive_columns()
        column = frame.dataframe[f"{metric} (inc)"].fillna(0)
        return {
            tuple(each.frame["name"] for each in node.path()[1:]): float(column.loc[node])
            for node in frame.graph.traverse()
        }


def shown(profile: Profile, metric: str) -> Sums:
    return {profile.path(row): float(value) for row, value in enumerate(profile.inclusive(metric))}


@pytest.mark.parametrize("metric", ["time (ns)", "count", "flops16"])
def test_golden_sums_agree(metric: str) -> None:
    folded = golden_profile().fold_variants()
    database = json.loads(find_format("hatchet").encode(folded))

    assert frame_sums(database, metric) == shown(folded, metric)


@pytest.mark.parametrize("path", sorted(UPSTREAM.glob("eager*.hatchet")), ids=lambda p: p.stem)
def test_upstream_sums_agree(path: Path) -> None:
    assert frame_sums(json.loads(path.read_text()), "time (ns)") == shown(
        read_profile(path), "time (ns)"
    )


def test_msgpack_sums_agree() -> None:
    folded = golden_profile().fold_variants()
    content = find_format("hatchet_msgpack").encode(folded)

    database = msgpack.unpackb(content, raw=False, strict_map_key=False)

    assert frame_sums(database, "time (ns)") == shown(folded, "time (ns)")


def test_vectors_and_empty_names_do_not_disturb_hatchet() -> None:
    builder = ProfileBuilder()
    row = builder.add(0, "", metrics={"time (ns)": 1, "v": [1, 2]})
    builder.add(row, "k", metrics={"time (ns)": 2, "v": [3, 4]})

    database = json.loads(find_format("hatchet").encode(builder.build()))

    assert frame_sums(database, "time (ns)") == {
        (): 3.0, ("",): 3.0, ("", "k"): 2.0,
    }  # fmt: skip


def test_deepest_files_that_we_write_can_be_read(tmp_path: Path) -> None:
    builder = ProfileBuilder()
    row = 0
    for _ in range(2000):
        row = builder.add(row, "f", metrics={"time (ns)": 1, "v": [1, 2]})
    write_profile(builder.build(), tmp_path / "deep.hatchet")
    # A fresh interpreter: pytest's own frames count towards the recursion limit of json.
    program = "import json, sys; print(len(json.load(open(sys.argv[1]))))"

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "deep.hatchet")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("2\n", "")


def test_hints_at_root_name_every_inclusive_metric() -> None:
    tree = json.loads(find_format("hatchet").encode(golden_profile()))[0]

    hinted = set(tree["metrics"])

    assert hinted == {"time (ns)", "count", "flops16", "bytes"}
    assert set(tree["metrics"].values()) == {0}
    assert tree["aggregations"] == {
        "experts": "inc",
        "layout": "pty",
        "own": "exc",
        "registers": "pty",
        "weights": "inc",
    }
