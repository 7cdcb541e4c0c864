from __future__ import annotations

import json
from pathlib import Path

import pytest

from proton_bench.model.metrics.counter_columns import USUAL_CEILINGS
from proton_bench.recording.counters.ceilings import (
    ceiling_facts,
    ceiling_file,
    load_ceilings,
    store_ceilings,
)

GPU = {"name": "NVIDIA H200/../x", "driver": "580.95"}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_measured_ceilings_replace_the_usual_ones(cache: Path) -> None:
    file = ceiling_file(GPU["name"], GPU["driver"])
    assert file.is_relative_to(cache)

    store_ceilings(file, {"dram": 0.9, "fp64": 0.97})

    facts = ceiling_facts([GPU, {"name": "other", "driver": "1"}])
    assert facts["ceilings"] == {**USUAL_CEILINGS, "dram": 0.9, "fp64": 0.97}
    assert facts["ceilings_measured"] == ["dram", "fp64"]


def test_another_driver_has_the_usual_ones() -> None:
    store_ceilings(ceiling_file(GPU["name"], GPU["driver"]), {"dram": 0.9})

    facts = ceiling_facts([{**GPU, "driver": "590.1"}])

    assert facts == {"ceilings": dict(USUAL_CEILINGS), "ceilings_measured": []}


def test_an_unknown_gpu_has_the_usual_ones() -> None:
    assert ceiling_facts([])["ceilings"] == dict(USUAL_CEILINGS)
    assert ceiling_facts([{"name": "NVIDIA H200"}])["ceilings"] == dict(USUAL_CEILINGS)


@pytest.mark.parametrize("value", [0.0, 0.05, 1.2, "0.9", True, None, float("nan"), float("inf")])
def test_what_cannot_be_a_ceiling_is_not_kept(cache: Path, value: object) -> None:
    file = cache / "x.json"

    assert store_ceilings(file, {"dram": value, "tensor": 0.9}) == {"tensor": 0.9}  # type: ignore[dict-item]

    file.write_text(json.dumps({"dram": value, "tensor": 0.9, "moon": 0.5}))
    assert load_ceilings(file) == {"tensor": 0.9}


@pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 100_000])
def test_a_damaged_file_is_as_if_it_were_missing(cache: Path, content: str) -> None:
    file = cache / "x.json"
    file.write_text(content)

    assert load_ceilings(file) == {}
