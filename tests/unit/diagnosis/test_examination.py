from __future__ import annotations

import sys

import pytest

from proton_bench.diagnosis.examination import examine

SECTIONS = ["versions", "scripts", "gpu", "backends", "extras"]


def test_everything_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROTON_BENCH_CHECK", raising=False)
    diagnosis = examine()

    assert [each.name for each in diagnosis.sections if each.name != "environment"] == SECTIONS
    for section in diagnosis.sections:
        names = [finding.name for finding in section.findings]
        assert names
        assert len(set(names)) == len(names)


def test_what_scripts_may_require_is_offered() -> None:
    assert {"cpu", "replay", "gpu", "native", "torch", "hatchet", "proton"} <= set(
        examine().requirable
    )


def test_without_the_native_module_the_rest_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "proton_bench._native", None)

    diagnosis = examine()

    assert {"native", "torch", "hatchet", "proton"} <= set(diagnosis.requirable)
    assert [finding.name for finding in diagnosis.missing(["native"])] == ["native module"]
    assert "backends" in [section.name for section in diagnosis.sections]
