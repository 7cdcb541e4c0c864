from __future__ import annotations

import sys

import pytest

from proton_bench.diagnosis.examination import examine

SECTIONS = ["versions", "scripts", "calibration", "backends"]


def test_everything_is_examined_once() -> None:
    diagnosis = examine()

    named = [section.name for section in diagnosis.sections]
    assert named in (SECTIONS, [name for name in SECTIONS if name != "calibration"])  # without GPU
    for section in diagnosis.sections:
        names = [finding.name for finding in section.findings]
        assert names
        assert len(set(names)) == len(names)


def test_what_scripts_may_require_is_offered() -> None:
    assert {"cpu", "replay", "native", "torch", "proton"} <= set(examine().requirable)


def test_without_the_native_module_the_rest_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "proton_bench._native", None)

    diagnosis = examine()

    assert {"native", "torch", "proton"} <= set(diagnosis.requirable)
    assert [finding.name for finding in diagnosis.missing(["native"])] == ["native module"]
    assert "backends" in [section.name for section in diagnosis.sections]
