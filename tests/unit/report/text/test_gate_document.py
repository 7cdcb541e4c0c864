from __future__ import annotations

import json

import pytest
from fakes.outcomes import every_outcome, hostile_outcome

from proton_bench.report.text.gate import gate_document
from proton_bench.support.text import encode_document


@pytest.mark.parametrize("name", every_outcome())
def test_document_names_its_schema_version_verdict_and_exit_code(name: str) -> None:
    shown = every_outcome()[name]

    document = json.loads(encode_document(gate_document(shown)))

    assert (document["schema"], document["version"]) == ("proton_bench.gate", [3, 0])
    assert document["verdict"] == str(shown.result.verdict)
    assert document["exit_code"] == shown.result.exit_code
    assert document["headline"].startswith(document["verdict"])
    assert document["error"] == (shown.problem or None)


def test_rows_hold_null_for_what_is_not_known() -> None:
    rows = json.loads(encode_document(gate_document(every_outcome()["fail"])))["rows"]

    assert [row["verdict"] for row in rows] == ["REGRESSED", "INCONCLUSIVE", "INCONCLUSIVE", "SAME"]
    assert rows[2]["change"] is None


def test_names_that_are_not_utf8_are_escaped() -> None:
    document = json.loads(encode_document(gate_document(hostile_outcome())))

    assert document["base_runs"][0].startswith("<script>")
    assert "\\ud800" in document["base_runs"][0]
