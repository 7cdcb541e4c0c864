from __future__ import annotations

from proton_bench.diagnosis.examination import examine


def test_everything_is_looked_at_once() -> None:
    diagnosis = examine()

    sections = [section.name for section in diagnosis.sections]
    assert sections == [
        "versions",
        "native",
        "interpreter",
        "scripts",
        "gpu",
        "backends",
        "cpu",
        "cupti",
        "rocprofiler",
        "roctracer",
        "plugins",
        "extras",
        "environment",
        "folder",
    ]
    for section in diagnosis.sections:
        names = [finding.name for finding in section.findings]
        assert names
        assert len(set(names)) == len(names)


def test_what_scripts_may_require_is_offered() -> None:
    assert {"cpu", "replay", "gpu", "native", "torch", "hatchet", "proton"} <= set(
        examine().requirable
    )
