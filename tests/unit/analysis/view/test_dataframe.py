from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes.profiles import cuda_literal, deep_profile, training_profile

from proton_bench.analysis.view.dataframe import to_dataframe, to_graphframe, to_literal
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import MissingExtraError
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.provenance import Provenance

# But for scopes inside kernels, whose cycles are exclusive: tests/plugins/test_upstream_records.py.
UPSTREAM = sorted((Path(__file__).parents[3] / "data" / "upstream").glob("[!i]*.hatchet"))


def test_frame_has_a_line_per_row_in_preorder() -> None:
    frame = to_dataframe(training_profile())

    assert frame["name"].tolist()[:3] == ["ROOT", "test_step", "forward"]
    assert frame["parent"].tolist()[:3] == [-1, 0, 1]
    assert frame["depth"].tolist()[:4] == [0, 1, 2, 3]
    assert frame["kind"].tolist()[:4] == ["root", "test", "scope", "python"]
    assert frame["device"].isna().tolist()[:5] == [True, True, True, True, False]


def test_integers_stay_exact_and_missing_values_are_missing() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"time (ns)": 2**60 + 1, "loss": 0.5})
    builder.add(0, "b")

    frame = to_dataframe(builder.build())

    assert frame["time (ns)"].tolist() == [pd.NA, 2**60 + 1, pd.NA]
    assert frame["time (ns) (inc)"].tolist() == [2**60 + 1, 2**60 + 1, pd.NA]
    assert frame["loss"].isna().tolist() == [True, False, True]


def test_texts_and_vectors_are_objects() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"label": "x", "v": [1, 2]})

    frame = to_dataframe(builder.build())

    assert frame["label"].tolist() == [None, "x"]
    assert frame["v"].tolist() == [None, (1, 2)]
    assert "label (inc)" not in frame


def test_metrics_never_hide_the_names_of_rows() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"name": 3})

    frame = to_dataframe(builder.build())

    assert frame["name"].tolist() == ["ROOT", "a"]
    assert frame["name (metric)"].tolist() == [pd.NA, 3]
    assert frame["name (metric) (inc)"].tolist() == [3, 3]


def test_profiles_offer_their_data_frame() -> None:
    profile = training_profile()

    pd.testing.assert_frame_equal(profile.to_pandas(), to_dataframe(profile))


def test_profiles_offer_their_graph_frame() -> None:
    pytest.importorskip("hatchet")

    graph_frame = training_profile().to_hatchet()

    assert graph_frame.dataframe["time (ns) (inc)"].max() == 4_000_000


def test_frame_of_merged_runs_adds_them_up() -> None:
    profile = training_profile()

    merged = type(profile).merge([profile, profile]).to_pandas()

    assert merged["time (ns) (inc)"].tolist()[0] == 8_000_000


def test_frame_answers_questions() -> None:
    frame = to_dataframe(training_profile())

    hottest = frame[frame["kind"] == "kernel"].groupby("name")["time (ns)"].sum()

    assert hottest.to_dict() == {"kernel_1": 1_000_000, "kernel_3": 3_000_000}


def test_missing_hatchet_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hatchet", None)

    with pytest.raises(MissingExtraError, match="llnl-hatchet") as caught:
        to_graphframe(training_profile())

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", UPSTREAM, ids=lambda path: path.stem)
def test_inclusive_sums_are_those_of_hatchet(path: Path) -> None:
    hatchet: Any = pytest.importorskip("hatchet")
    graph_frame = hatchet.GraphFrame.from_literal(json.loads(path.read_text())[:1])
    metric = next(m for m in ("time (ns)", "cycles") if m in graph_frame.dataframe)
    graph_frame.exc_metrics = [metric]
    graph_frame.update_inclusive_columns()

    tree = build_tree(read_profile(path), [metric], Selection())

    theirs = graph_frame.dataframe[["name", f"{metric} (inc)"]].dropna()
    ours = zip(map(tree.name, range(len(tree))), tree.metrics[0].to_list(), strict=True)
    assert sorted(theirs.itertuples(index=False, name=None)) == sorted(ours)


def test_graph_frame_has_inclusive_columns() -> None:
    pytest.importorskip("hatchet")

    frame = to_graphframe(training_profile()).dataframe

    assert frame[frame["name"] == "ROOT"]["time (ns) (inc)"].tolist() == [4_000_000]


def test_graph_frame_of_a_very_deep_tree_is_folded() -> None:
    pytest.importorskip("hatchet")

    frame = to_graphframe(deep_profile(2000)).dataframe

    assert frame["time (ns) (inc)"].max() == 2000
    assert len(frame) < 500


def test_literal_holds_tree_and_devices() -> None:
    tree, devices = to_literal(training_profile())

    assert tree["frame"]["name"] == "ROOT"
    assert devices["CUDA"]["0"]["arch"] == cuda_literal()[1]["CUDA"]["1"]["arch"]


def test_a_thicket_has_the_sums_and_the_provenance_of_each_run() -> None:
    thicket = pytest.importorskip("thicket", reason="needs the extra thicket")
    facts = {"host": "h", "pid": 7, "start_time_ns": 5, "git": {"revision": "abc"}}
    profile = replace(training_profile(), provenance=Provenance(facts))
    other = replace(profile, provenance=Provenance({**facts, "pid": 8}))

    both = thicket.Thicket.concat_thickets([profile.to_thicket(), other.to_thicket("second")])

    frame = both.dataframe.reset_index()
    roots = frame[frame["name"] == "ROOT"]
    assert roots["time (ns) (inc)"].tolist() == [4_000_000, 4_000_000]
    assert sorted(both.metadata["pid"]) == [7, 8]
    assert set(both.metadata["git"]) == {'{"revision": "abc"}'}
    assert set(both.profile_mapping.values()) == {"h 7 5", "second"}


def test_missing_thicket_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "thicket", None)

    with pytest.raises(MissingExtraError, match="llnl-thicket"):
        training_profile().to_thicket()
