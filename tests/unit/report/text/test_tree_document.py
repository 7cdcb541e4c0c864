from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fakes.profiles import training_profile

from proton_bench.analysis.choices import FrameFormat
from proton_bench.analysis.metrics.derive import available_metrics
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.report.text.tree import list_document, view_document
from proton_bench.support.text import encode_document


def document(**changes: Any) -> dict[str, Any]:
    profile = replace(training_profile(), **changes)
    tree = build_tree(profile, ["time/ms", "wall", "util"], Selection(depth=4))
    shown = view_document(
        profile, tree, source="x.proton", frames=FrameFormat.FILE_FUNCTION, order=[1, 2]
    )
    decoded: dict[str, Any] = json.loads(encode_document(shown))
    return decoded


def test_document_is_versioned_and_names_its_metrics() -> None:
    found = document(partial=True, dropped={"lost": 3})

    assert (found["schema"], found["version"]) == ("proton_bench.view", [1, 0])
    assert (found["source"], found["partial"], found["dropped"]) == ("x.proton", True, {"lost": 3})
    assert found["devices"] == ["CUDA:0"]
    assert found["device_use"] == []
    assert found["metrics"] == [
        {"name": "time/ms", "aggregation": "inc"},
        {"name": "wall (ns)", "aggregation": "inc"},
        {"name": "util", "aggregation": "exc"},
    ]
    assert found["sorted"] == [1, 2]


def test_rows_stand_in_preorder_with_their_parents() -> None:
    found = document()

    assert [row["parent"] for row in found["rows"]] == [None, 0, 1, 2, 1, 4]
    assert [row["depth"] for row in found["rows"]] == [0, 1, 2, 3, 2, 3]
    assert found["rows"][3]["name"] == "model.py@forward"
    assert found["rows"][3]["kind"] == "python"
    assert found["deeper_rows"] == 4


def test_values_that_do_not_exist_are_null() -> None:
    rows = document()["rows"]

    assert rows[0]["values"] == [4.0, 9_000_000, None]
    assert rows[1]["values"] == [4.0, 9_000_000, None]


def test_list_document_names_what_can_be_shown() -> None:
    profile = training_profile()

    found = json.loads(encode_document(list_document(profile, available_metrics(profile), "x")))

    assert found["schema"] == "proton_bench.metrics"
    assert "time (ns)" in found["inclusive"]
    assert "wall (ns)" in found["exclusive"]
    assert "time/ms" in found["derived"]
